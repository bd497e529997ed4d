/* A body is sent with exactly so many bytes more; JSON stays JSON with the same members; and a stream
 * always asks for its usage. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "broker/usage_wish.h"
#include "json/json_read.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(bool holds)
{
    if (!holds)
        abort();
}

static void run(struct text *out, const char *bytes, size_t length, size_t step)
{
    struct usage_wish wish;

    usage_wish_init(&wish);
    for (size_t at = 0; at < length; at += step)
        usage_wish_feed(&wish, bytes + at, length - at < step ? length - at : step, out);
    usage_wish_finish(&wish, out);
    must(out->length == length + USAGE_WISH_ROOM);
}

static void check(const json_t *body, json_t *sent)
{
    json_t *options = json_object_get(sent, "stream_options");

    if (json_is_true(json_object_get(body, "stream")) &&
        (!json_object_get(body, "stream_options") ||
         json_is_object(json_object_get(body, "stream_options"))))
        must(json_is_object(options) && json_object_get(options, "include_usage") &&
             !json_is_false(json_object_get(options, "include_usage")) &&
             !json_is_null(json_object_get(options, "include_usage")));
}

/* But for the options, nothing is different. */
static void check_rest(json_t *body, json_t *sent)
{
    (void) json_object_del(body, "stream_options");
    (void) json_object_del(sent, "stream_options");
    must(json_equal(body, sent));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const char *bytes = (const char *) data;
    AUTO(text) struct text whole = TEXT_INIT(65536);
    AUTO(text) struct text pieces = TEXT_INIT(65536);
    AUTO(json) json_t *body = NULL;
    AUTO(json) json_t *sent = NULL;

    if (size > 8192)
        return 0;
    run(&whole, bytes, size, size + 1);
    run(&pieces, bytes, size, 1);
    must(memcmp(text_string(&whole), text_string(&pieces), whole.length) == 0);
    json_seed();
    body = json_read(bytes, size, NULL, NULL);
    if (!json_is_object(body) || json_object_get(body, "stream_options.include_usage"))
        return 0;
    sent = json_read(text_string(&whole), whole.length, NULL, NULL);
    must(json_is_object(sent));
    check(body, sent);
    check_rest(body, sent);
    return 0;
}
