/* The first thing a TLS client says: for whom it asks. Pure. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "net/url.h"

#define CLIENT_HELLO_MAX ((size_t) 16 * 1024) /* of records that hold it; a usual one has 2 kB */

enum client_hello_progress {
    CLIENT_HELLO_NEEDS_MORE,
    CLIENT_HELLO_READY,
    CLIENT_HELLO_NOT_TLS, /* these bytes begin no handshake of TLS */
    CLIENT_HELLO_BROKEN,  /* it begins like one, but is malformed or too long */
};

struct client_hello {
    char host[URL_HOST_MAX + 1]; /* SNI in lower case; "" when there is none */
    bool is_encrypted; /* it has an encrypted client hello: the name is not the real one */
};

/* Look at what the client sent so far, from its first byte on. */
enum client_hello_progress client_hello_read(const void *bytes, size_t length,
                                             struct client_hello *ret_hello);
