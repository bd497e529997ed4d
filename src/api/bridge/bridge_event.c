#include "api/bridge/bridge_event.h"

#include <string.h>

#include "api/bridge/bridge_internal.h"
#include "base/auto.h"
#include "base/encoding/encode.h"
#include "base/memory.h"
#include "json/json_write.h"

/* --- output ---------------------------------------------------------------------------------- */

/* How many bytes at the end are a character that has only begun: 0 to 3. */
static size_t begun_at_end(const char *bytes, size_t length)
{
    for (size_t back = 1; back <= 3 && back <= length; back++) {
        unsigned char byte = (unsigned char) bytes[length - back];
        size_t needed = byte >= 0xf0 ? 4 : byte >= 0xe0 ? 3 : byte >= 0xc0 ? 2 : 1;

        if ((byte & 0xc0) != 0x80) /* the first byte of a character */
            return needed > back ? back : 0;
    }
    return 0;
}

/* Most output ends in a line break: then it is passed on as it came. */
static bool ends_plain(const char *text, size_t length)
{
    char last[3];
    size_t count = 0;

    return length >= 4 &&
           base64_decode(BASE64_STANDARD, text + length - 4, 4, last, sizeof(last), &count) == 0 &&
           count && !((unsigned char) last[count - 1] & 0x80);
}

static void write_base64(struct text *data, const char *bytes, size_t length)
{
    char *room = length ? text_reserve(data, BASE64_TEXT_SIZE(length)) : NULL;

    if (room)
        text_commit(data, base64_encode(BASE64_STANDARD, bytes, length, room));
}

/* `bytes` has room for what is held before, and for `text`. */
static void bridge_event_join(struct bridge_event *event, struct bridge_held *held,
                              enum bridge_output output, const char *text, size_t length,
                              char *bytes)
{
    size_t before = held->output[output].length, count = 0, left;

    memcpy(bytes, held->output[output].bytes, before);
    if (base64_decode(BASE64_STANDARD, text, length, bytes + before, BASE64_BYTES_MAX(length),
                      &count) < 0)
        return; /* the agent talks nonsense */
    count += before;
    left = begun_at_end(bytes, count);
    memcpy(held->output[output].bytes, bytes + count - left, left);
    held->output[output].length = left;
    write_base64(&event->data, bytes, count - left);
}

static void read_output(struct bridge_event *event, struct bridge_held *held,
                        enum bridge_output output, json_t *told)
{
    json_t *data = json_object_get(told, "data");
    const char *text = json_string_value(data);
    size_t length = json_string_length(data);
    AUTO(free) char *bytes = NULL;

    if (!text || length > BRIDGE_EVENT_MAX / 2)
        return;
    if (!held->output[output].length && ends_plain(text, length)) {
        text_append_bytes(&event->data, text, length);
        return;
    }
    bytes = mem_alloc(sizeof(held->output[output].bytes) + BASE64_BYTES_MAX(length));
    bridge_event_join(event, held, output, text, length, bytes);
}

static void read_stdout(struct bridge_event *event, struct bridge_held *held, json_t *told)
{
    read_output(event, held, BRIDGE_STDOUT, told);
}

static void read_stderr(struct bridge_event *event, struct bridge_held *held, json_t *told)
{
    read_output(event, held, BRIDGE_STDERR, told);
}

static const char *const output_types[BRIDGE_OUTPUTS] = {"stdout", "stderr"};

void bridge_event_flush(struct bridge_event *event, struct bridge_held *held,
                        enum bridge_output output)
{
    event->type = output_types[output];
    event->is_last = false;
    text_clear(&event->data);
    write_base64(&event->data, held->output[output].bytes, held->output[output].length);
    held->output[output].length = 0;
}

/* --- the end --------------------------------------------------------------------------------- */

static void read_exit(struct bridge_event *event, struct bridge_held *held, json_t *told)
{
    json_t *code = json_object_get(told, "exitCode");
    struct json_writer json;

    (void) held;
    if (!json_is_integer(code)) {
        bridge_event_fail(event, "the agent did not tell how the command ended");
        return;
    }
    json_document_begin(&json, &event->data);
    json_add_integer(&json, "exit_code", json_integer_value(code));
    (void) json_document_end(&json); /* a number has room */
}

static void read_error(struct bridge_event *event, struct bridge_held *held, json_t *told)
{
    const char *reason = json_string_value(json_object_get(told, "error"));

    (void) held;
    bridge_error_write("exec_error", reason ? reason : "the command failed", &event->data);
}

static const struct {
    const char *told, *type;
    void (*read)(struct bridge_event *event, struct bridge_held *held, json_t *told);
    bool is_last;
} rows[] = {
    {"stdout", "stdout", read_stdout, false},
    {"stderr", "stderr", read_stderr, false},
    {"complete", "exit", read_exit, true},
    {"error", "error", read_error, true},
};

void bridge_event_read(struct bridge_event *event, struct bridge_held *held, json_t *told)
{
    const char *type = json_string_value(json_object_get(told, "type"));

    event->type = NULL;
    event->is_last = false;
    text_clear(&event->data);
    for (size_t i = 0; type && i < ARRAY_COUNT(rows); i++) {
        if (strcmp(type, rows[i].told) != 0)
            continue;
        event->type = rows[i].type;
        event->is_last = rows[i].is_last;
        rows[i].read(event, held, told);
        return;
    }
}

void bridge_event_fail(struct bridge_event *event, const char *reason)
{
    AUTO(text) struct text sentence = TEXT_INIT(BRIDGE_EVENT_MAX / 8);

    event->type = "error";
    event->is_last = true;
    text_clear(&event->data);
    text_format(&sentence, "exec failed: %s", reason);
    bridge_error_write("exec_transport_error", text_string(&sentence), &event->data);
}

void bridge_event_done(struct bridge_event *event)
{
    text_done(&event->data);
}
