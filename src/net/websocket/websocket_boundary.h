/* Where one WebSocket frame ends and the next may begin, in a stream of frames that is passed on
 * unread: there, and nowhere else, somebody in between may put in a frame of his own.
 *
 * Knows lengths alone. What frames mean, reserved bits of extensions and whether they are allowed
 * at all are the business of the two ends. Pure. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "net/websocket/websocket_frame.h"

/* All zero: before the first frame. */
struct websocket_boundary {
    uint64_t left; /* bytes of a payload that are still to come */
    uint8_t have;  /* bytes of a header that came */
    uint8_t header[WEBSOCKET_HEADER_MAX];
    bool has_close; /* a close frame came: whoever sent it sends no more */
};

/* These bytes went by. */
void websocket_boundary_pass(struct websocket_boundary *boundary, const char *bytes, size_t length);

/* Whether a frame of ours may follow. */
static inline bool websocket_boundary_is_here(const struct websocket_boundary *boundary)
{
    return !boundary->left && !boundary->have && !boundary->has_close;
}
