/* A listener: accepts connections on one address and hands each descriptor to its owner.
 *
 * When the process runs out of descriptors, accepting rests for LISTENER_REST_MS instead of
 * spinning: the connections wait in the kernel's queue. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "net/loop.h"
#include "sys/network/sys_socket.h"

#define LISTENER_REST_MS 100
#define LISTENER_BACKLOG 4096

struct listener;

struct listener_events {
    /* A connected, non-blocking socket, now the owner's. `peer` is its address as text. */
    void (*on_accept)(struct listener *listener, int fd, const char *peer);
    /* After listener_close: the memory is gone when this returns. */
    void (*on_closed)(struct listener *listener);
};

/* Listen on "ADDRESS:PORT", "[ADDRESS]:PORT" or "unix:PATH". NULL with a sentence in `err`. */
struct listener *listener_new(struct loop *loop, const char *address,
                              const struct listener_events *events, void *owner, struct error *err);

/* The same on a socket that listens already (unix or TCP), which is taken over also on failure. Its
 * file, when it has one, is somebody else's and stays. */
struct listener *listener_new_on(struct loop *loop, int fd, const struct listener_events *events,
                                 void *owner, struct error *err);

/* Stop and continue accepting; connections wait in the kernel meanwhile. */
void listener_pause(struct listener *listener);
void listener_resume(struct listener *listener);

/* Stop for good; removes the file of a unix socket. */
void listener_close(struct listener *listener);

void *listener_owner(const struct listener *listener);
bool listener_is_unix(const struct listener *listener);

/* The TCP port it really has, 0 for a unix socket. */
uint16_t listener_port(const struct listener *listener);
