/* One end of the socket between daemon and launcher: whole messages with their descriptors.
 *
 * Never blocks and has no loop of its own: poll `fd` for reading, and for writing while
 * wire_channel_is_waiting. What does not fit into the socket waits here, in order, up to
 * WIRE_WAITING_MAX messages; a peer that reads nothing costs no more than that.
 *
 * Knows the format of messages, not when they are permitted: wire_conversation does. One thread
 * uses a channel. */
#pragma once

#include "base/auto.h"
#include "base/list.h"
#include "wire/wire_message.h"

#define WIRE_WAITING_MAX 512

struct wire_channel {
    int fd;               /* owned; -EBADF once closed */
    unsigned int version; /* of messages; WIRE_VERSION_GREETING until one is agreed on */
    struct list waiting;  /* owned; oldest first */
    size_t waiting_count;
};

/* A message and what came with it. */
struct wire_incoming {
    struct wire_message message;
    size_t fd_count;       /* always wire_message_fds(&message) */
    int fds[WIRE_FDS_MAX]; /* owned; TAKE_FD what is to be kept */
};

/* Close the descriptors that were not taken. */
void wire_incoming_done(struct wire_incoming *incoming);

AUTO_DEFINE(wire_incoming, struct wire_incoming, wire_incoming_done);

/* Takes the connected SOCK_SEQPACKET socket `fd`, also when it fails, and makes it non-blocking. */
int wire_channel_init(struct wire_channel *channel, int fd, struct error *err);

/* Close the socket and forget what waits. May be called again. */
void wire_channel_done(struct wire_channel *channel);

/* Send a message with exactly wire_message_fds descriptors, which stay the caller's. What the
 * socket does not take now waits (descriptors as duplicates) for wire_channel_flush. Returns 0 or
 * -1, and then nothing was sent: ERR_INVALID (not a valid message, or other than its number of
 * descriptors), ERR_UNAVAILABLE (too much waits, or no descriptor is free), ERR_GONE (the peer
 * closed). */
int wire_channel_send(struct wire_channel *channel, const struct wire_message *message,
                      const int *fds, size_t count, struct error *err);

/* Send what waits, as far as the socket takes it. Returns 0, or -1 with ERR_GONE or another. */
int wire_channel_flush(struct wire_channel *channel, struct error *err);

bool wire_channel_is_waiting(const struct wire_channel *channel);

/* The next message: 1 and the message, whose descriptors the caller owns; 0 when none is there;
 * -1 when the conversation is over: ERR_GONE (the peer closed or died), or what
 * wire_message_decode says of what came, ERR_INVALID also for a wrong number of descriptors. All
 * descriptors are then closed. */
int wire_channel_receive(struct wire_channel *channel, struct wire_incoming *ret_incoming,
                         struct error *err);
