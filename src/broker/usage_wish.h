/* A chat/completions request on its way out, with one wish more: {"stream":true} gets
 * "stream_options":{"include_usage":true} when it has none, because a stream tells its usage only to
 * who asks. Pure, in pieces of any size, nothing is held.
 *
 * What is sent is always USAGE_WISH_ROOM bytes longer than what came, so that a Content-Length can
 * be said before the end is seen: what the wish does not take is filled with spaces, which mean
 * nothing there. A body that is no JSON object passes with the spaces behind it. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/text.h"
#include "json/json_scan.h"

#define USAGE_WISH_ROOM ((size_t) 64)

struct usage_wish {
    struct json_scan scan;
    bool is_stream, is_no_stream; /* what "stream" says, as far as seen */
    bool has_options;             /* stream_options is there */
    bool has_usage;               /* ... with include_usage in it */
    size_t room;
    char held[8]; /* a literal that may be sent as another */
    size_t held_length;
    const char *instead; /* of what is held; static */
    const char *before;  /* goes out before the byte at hand; static */
    bool ends;           /* the byte at hand ends the document */
};

void usage_wish_init(struct usage_wish *wish);

/* Append to `out` what is to be sent for these bytes. */
void usage_wish_feed(struct usage_wish *wish, const char *bytes, size_t length, struct text *out);

/* The body is over. */
void usage_wish_finish(struct usage_wish *wish, struct text *out);
