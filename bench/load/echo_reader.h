/* Reads one echoed WebSocket message from a server, in however many frames and pieces. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct echo_reader {
    const unsigned char *expected; /* borrowed, or NULL: compare only number and length */
    uint64_t expected_length;
    unsigned char head[10];
    size_t head_length;  /* bytes of the frame head seen */
    uint64_t frame_left; /* payload of the current frame still to come */
    bool in_payload;
    bool started;    /* a frame of this message was seen */
    bool last_frame; /* the current frame has FIN */
    uint64_t length; /* payload of the message so far */
    uint64_t number; /* its first eight bytes, native order */
    bool differs;    /* from what was expected, number aside */
    bool done;
};

/* Start on a new message of `length` bytes. With `expected`, every byte after the first eight is
 * compared with the `length` bytes there. */
void echo_reader_begin(struct echo_reader *reader, const unsigned char *expected, uint64_t length);

/* Consume bytes up to the end of the message. Returns how many were used, or -EPROTO for control
 * frames (the bench asks for none), masked frames and frames out of order. */
ssize_t echo_reader_feed(struct echo_reader *reader, const unsigned char *bytes, size_t length);
