/* The reading half of an HTTP/1.1 client: bytes in, one response at a time out.
 *
 * Bodies are counted and thrown away. Content-Length and chunked are understood; interim 1xx
 * answers are passed over; a body that ends with the connection is refused, because the load
 * programs keep connections. Not a strict parser: it meets servers we started ourselves.
 *
 *     response_begin(&response);
 *     while (!response_is_done(&response))
 *         used = response_feed(&response, bytes, length); */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define RESPONSE_LINE_MAX 4096

enum response_state {
    RESPONSE_STATUS,
    RESPONSE_HEADER,
    RESPONSE_BODY,
    RESPONSE_CHUNK_SIZE,
    RESPONSE_CHUNK_DATA,
    RESPONSE_CHUNK_END,
    RESPONSE_TRAILER,
    RESPONSE_DONE,
};

struct response {
    enum response_state state;
    int status;
    bool chunked;
    bool has_length;
    uint64_t remaining;  /* of the body or the current chunk */
    uint64_t body_bytes; /* seen so far, framing not counted */
    size_t line_length;
    char line[RESPONSE_LINE_MAX];
};

void response_begin(struct response *response);

/* Consume bytes up to the end of the response. Returns how many were used (less than `length`
 * only at that end), -EPROTO for what is not HTTP or has no length, -EMSGSIZE for a line longer
 * than RESPONSE_LINE_MAX. */
ssize_t response_feed(struct response *response, const char *bytes, size_t length);

bool response_is_done(const struct response *response);

/* How many of the next bytes are nothing but body, so that a reader may drop them unseen
 * (MSG_TRUNC) and say so with response_skip. */
uint64_t response_skippable(const struct response *response);
void response_skip(struct response *response, uint64_t count);
