/* The WebSocket handshake (RFC 6455, section 4): what the headers of an upgrade must say.
 *
 * Pure functions on header values; HTTP itself is elsewhere. A header that came several times is
 * given as one value joined with ", ", one that did not come is NULL. No extension and no
 * subprotocol is ever offered or accepted. Not blocking (the key comes from the kernel's random numbers), any thread. */
#pragma once

#include <stddef.h>

#include "base/error.h"

#define WEBSOCKET_VERSION "13"

/* Base64 of 16 and 20 bytes, and a NUL. */
#define WEBSOCKET_HANDSHAKE_KEY_SIZE    25
#define WEBSOCKET_HANDSHAKE_ACCEPT_SIZE 29

/* --- server ---------------------------------------------------------------------------------- */

/* What a client asks. All borrowed. */
struct websocket_upgrade {
    const char *method;
    int http_major;
    int http_minor;
    const char *upgrade;    /* Upgrade */
    const char *connection; /* Connection */
    const char *key;        /* Sec-WebSocket-Key */
    const char *version;    /* Sec-WebSocket-Version */
};

/* Check an upgrade request. Returns 0 and the Sec-WebSocket-Accept to answer with, or -1 with
 *   ERR_METHOD            not GET
 *   ERR_HTTP_VERSION      below HTTP/1.1
 *   ERR_UPGRADE_REQUIRED  not an upgrade to WebSocket, or another version of it: answer with
 *                         Upgrade: websocket and Sec-WebSocket-Version: WEBSOCKET_VERSION
 *   ERR_INVALID           a broken key. */
int websocket_upgrade_check(const struct websocket_upgrade *request,
                            char ret_accept[static WEBSOCKET_HANDSHAKE_ACCEPT_SIZE],
                            struct error *err);

/* --- client ---------------------------------------------------------------------------------- */

/* A new random key. */
void websocket_handshake_key(char ret_key[static WEBSOCKET_HANDSHAKE_KEY_SIZE]);

/* What a server answered. All borrowed. */
struct websocket_answer {
    int status;
    const char *upgrade;    /* Upgrade */
    const char *connection; /* Connection */
    const char *accept;     /* Sec-WebSocket-Accept */
    const char *extensions; /* Sec-WebSocket-Extensions */
    const char *protocol;   /* Sec-WebSocket-Protocol */
};

/* Check the answer to a request made with `key`. Returns 0, or -1 with ERR_UPSTREAM. */
int websocket_answer_check(const struct websocket_answer *answer, const char *key,
                           struct error *err);
