/* The server under load: where it listens and how to reach it. */
#pragma once

#include <sys/socket.h>

struct target {
    struct sockaddr_storage address;
    socklen_t address_length;
    const char *text; /* borrowed: as given, outlives us; for messages and the Host header */
};

/* Read "ADDR:PORT" (IPv4) or "unix:PATH". Returns 0, or -EINVAL. `text` must outlive `ret`. */
int target_parse(const char *text, struct target *ret);

/* Connect and return a CLOEXEC, blocking fd the caller owns, with TCP_NODELAY set; or -errno.
 * Over TCP, connections take turns between a few loopback source addresses by `turn`, so that
 * tens of thousands fit beside each other. Blocks until connected. */
int target_connect(const struct target *target, unsigned turn);

/* Make `fd` non-blocking. Returns 0 or -errno. */
int target_unblock(int fd);

/* Close with a reset, so that no port is left in TIME_WAIT for the next round. */
void target_reset(int fd);
