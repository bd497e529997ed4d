/* Any text as a message of /ws: what is accepted keeps the promises that the code behind it relies
 * on, and what we would answer is JSON with the client's id in it. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "agent/transport/call_websocket_message.h"
#include "base/encoding/utf8.h"
#include "json/json_read.h"

#define OUT_MAX ((size_t) 1 << 20)

static void check(bool promise)
{
    if (!promise)
        abort();
}

static void check_answer(const struct text *out, const char *id)
{
    static const struct json_limits limits = {
        .size = OUT_MAX, .depth = JSON_DEPTH_MAX, .values = JSON_VALUES_MAX, .nul = true};
    AUTO(json) json_t *answer = json_read(out->data, out->length, &limits, NULL);
    const char *known = json_string_value(json_object_get(answer, "id"));

    check(answer && !out->overflowed);
    check(id ? known && strcmp(known, id) == 0 : !known);
}

static void check_request(const struct call_websocket_message *message)
{
    check(message->method && strlen(message->method) <= CALL_WEBSOCKET_METHOD_MAX);
    check(message->target.form == URL_TARGET_ORIGIN);
    check(message->target.path.length > 0 && message->target.path.text[0] == '/');
    check(url_escapes_are_sound(message->target.path));
    check(!message->body || !json_is_null(message->body));
    check(!message->headers || json_is_object(message->headers));
    (void) call_websocket_header(message, "x-session-id");
}

static void check_good(const struct call_websocket_message *message, const char *data, size_t size)
{
    AUTO(text) struct text out = TEXT_INIT(OUT_MAX);

    check(message->id && strlen(message->id) <= CALL_WEBSOCKET_ID_MAX);
    if (message->type == CALL_WEBSOCKET_REQUEST)
        check_request(message);
    call_websocket_write_head(&out, message->id, 200, false);
    text_append_char(&out, '}');
    check_answer(&out, message->id);
    text_clear(&out);
    if (call_websocket_write_stream(&out, message->id, NULL, data, size) == 0)
        check_answer(&out, message->id);
}

static void check_fault(const struct call_websocket_fault *fault)
{
    AUTO(text) struct text out = TEXT_INIT(OUT_MAX);

    check(fault->code && fault->status == 400 && fault->message[0]);
    call_websocket_write_error(&out, fault);
    check_answer(&out, fault->id);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    AUTO(pool) struct pool pool = POOL_INIT;
    AUTO(json) json_t *root = NULL;
    struct call_websocket_message message;
    struct call_websocket_fault fault;
    const char *bytes = (const char *) data;

    if (!utf8_is_valid(bytes, size))
        return 0; /* the WebSocket refuses it */
    if (call_websocket_read(bytes, size, &pool, &root, &message, &fault) == 0)
        check_good(&message, bytes, size);
    else
        check_fault(&fault);
    return 0;
}
