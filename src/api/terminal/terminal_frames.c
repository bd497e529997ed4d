#include "api/terminal/terminal_frames.h"

#include <string.h>

#include "base/encoding/utf8.h"
#include "json/json_read.h"
#include "json/json_write.h"

#define CONTROL_MAX ((size_t) 8 * 1024)
#define MESSAGE_MAX ((size_t) 1024)
#define TYPE_MAX    ((size_t) 64)

/* --- output ---------------------------------------------------------------------------------- */

static void terminal_frames_begin(struct json_writer *json, struct text *frame, const char *type)
{
    json_document_begin(json, frame);
    json_add_text(json, "type", type);
}

static void terminal_frames_end(struct json_writer *json)
{
    (void) json_document_end(json); /* a text that is full says so itself */
}

/* How many bytes at the end are the beginning of a character that may still become whole. */
static size_t unfinished(const char *bytes, size_t length)
{
    for (size_t back = 1; back <= TERMINAL_FRAMES_CARRY && back <= length; back++) {
        unsigned char byte = (unsigned char) bytes[length - back];
        struct utf8_check check = UTF8_CHECK_INIT;

        if (byte < 0x80)
            return 0;
        if (byte >= 0xc0)
            return utf8_check_feed(&check, bytes + length - back, back) && check.needed ? back : 0;
    }
    return 0;
}

static void write_output(struct text *frame, const char *bytes, size_t length)
{
    struct json_writer json;

    if (!length)
        return;
    terminal_frames_begin(&json, frame, "output");
    json_key(&json, "data");
    json_put_bytes(&json, bytes, length);
    terminal_frames_end(&json);
}

void terminal_frames_output(struct terminal_frames *frames, const char *bytes, size_t length,
                            struct text *frame)
{
    AUTO(text) struct text joined = TEXT_INIT(length + TERMINAL_FRAMES_CARRY);
    size_t left;

    if (frames->carried) {
        text_append_bytes(&joined, frames->carry, frames->carried);
        text_append_bytes(&joined, bytes, length);
        bytes = joined.data;
        length = joined.length;
    }
    left = unfinished(bytes, length);
    write_output(frame, bytes, length - left);
    memmove(frames->carry, bytes + length - left, left);
    frames->carried = left;
}

void terminal_frames_flush(struct terminal_frames *frames, struct text *frame)
{
    write_output(frame, frames->carry, frames->carried);
    frames->carried = 0;
}

void terminal_frames_connected(struct text *frame, const char *shell, const char *session)
{
    struct json_writer json;

    terminal_frames_begin(&json, frame, "connected");
    json_add_text(&json, "shell", shell);
    json_add_text(&json, "session", session);
    terminal_frames_end(&json);
}

void terminal_frames_error(struct text *frame, const char *message)
{
    struct json_writer json;

    terminal_frames_begin(&json, frame, "error");
    json_add_text(&json, "message", message);
    terminal_frames_end(&json);
}

/* --- the agent's control messages ------------------------------------------------------------ */

static void write_exit(const struct json_place *message, struct text *frame)
{
    json_t *code = json_object_get(message->value, "code");
    const char *signal = NULL;
    struct json_writer json;

    terminal_frames_begin(&json, frame, "exit");
    if (json_is_integer(code))
        json_add_integer(&json, "code", json_integer_value(code));
    else
        json_add_null(&json, "code"); /* nobody knows */
    if (json_field_text(message, "signal", JSON_OPTIONAL, TYPE_MAX, &signal, NULL) == 0 && signal)
        json_add_text(&json, "signal", signal);
    terminal_frames_end(&json);
}

static void write_skipped(const struct json_place *message, struct text *frame)
{
    int64_t count = 0;
    struct json_writer json;

    (void) json_field_integer(message, "bytes", JSON_OPTIONAL, 0, INT64_MAX, &count, NULL);
    terminal_frames_begin(&json, frame, "skipped");
    json_add_integer(&json, "bytes", count);
    terminal_frames_end(&json);
}

static void terminal_frames_write_error(const struct json_place *message, struct text *frame)
{
    const char *text = "the terminal failed";

    (void) json_field_text(message, "message", JSON_OPTIONAL, MESSAGE_MAX, &text, NULL);
    terminal_frames_error(frame, text);
}

static const struct {
    const char *type;
    enum terminal_control control;
    void (*write)(const struct json_place *message, struct text *frame);
} controls[] = {
    {"ready", TERMINAL_CONTROL_READY, NULL},
    {"exit", TERMINAL_CONTROL_EXIT, write_exit},
    {"error", TERMINAL_CONTROL_OTHER, terminal_frames_write_error},
    {"skipped", TERMINAL_CONTROL_OTHER, write_skipped},
};

enum terminal_control terminal_frames_control(const char *bytes, size_t length, struct text *frame)
{
    static const struct json_limits limits = {.size = CONTROL_MAX, .depth = 4, .values = 64};
    AUTO(json) json_t *message = json_read(bytes, length, &limits, NULL);
    struct json_place root;
    const char *type;

    if (!message || json_root_object(message, &root, NULL) < 0 ||
        json_field_text(&root, "type", JSON_REQUIRED, TYPE_MAX, &type, NULL) < 0)
        return TERMINAL_CONTROL_OTHER;
    for (size_t i = 0; i < ARRAY_COUNT(controls); i++) {
        if (strcmp(controls[i].type, type) != 0)
            continue;
        if (controls[i].write)
            controls[i].write(&root, frame);
        return controls[i].control;
    }
    return TERMINAL_CONTROL_OTHER;
}

/* --- input ----------------------------------------------------------------------------------- */

static int read_input(const struct json_place *root, struct terminal_frame *frame,
                      struct error *err)
{
    json_t *data = json_object_get(root->value, "data");

    if (!json_is_string(data))
        return error_set(err, ERR_INVALID, 0, "input needs data, a string");
    frame->kind = TERMINAL_FRAME_INPUT;
    frame->data = json_string_value(data);
    frame->length = json_string_length(data);
    return 0;
}

static int read_resize(const struct json_place *root, struct terminal_frame *frame,
                       struct error *err)
{
    int64_t columns = 0, rows = 0;

    if (json_field_integer(root, "cols", JSON_REQUIRED, 1, TERMINAL_FRAMES_SIZE_MAX, &columns,
                           err) < 0 ||
        json_field_integer(root, "rows", JSON_REQUIRED, 1, TERMINAL_FRAMES_SIZE_MAX, &rows, err) <
            0)
        return -1;
    frame->kind = TERMINAL_FRAME_RESIZE;
    frame->columns = (uint16_t) columns;
    frame->rows = (uint16_t) rows;
    return 0;
}

static int read_by_type(const struct json_place *root, struct terminal_frame *frame,
                        struct error *err)
{
    const char *type = NULL;

    if (json_field_text(root, "type", JSON_REQUIRED, TYPE_MAX, &type, err) < 0)
        return -1;
    if (strcmp(type, "input") == 0)
        return read_input(root, frame, err);
    if (strcmp(type, "resize") == 0)
        return read_resize(root, frame, err);
    return error_set(err, ERR_INVALID, 0, "type must be input or resize");
}

int terminal_frame_read(const char *bytes, size_t length, struct terminal_frame *ret_frame,
                        struct error *err)
{
    const struct json_limits limits = {.size = length, .depth = 4, .values = 64, .nul = true};
    struct terminal_frame frame = {.document = json_read(bytes, length, &limits, err)};
    struct json_place root;

    if (frame.document && json_root_object(frame.document, &root, err) == 0 &&
        read_by_type(&root, &frame, err) == 0) {
        *ret_frame = frame;
        return 0;
    }
    terminal_frame_done(&frame);
    return -1;
}

void terminal_frame_done(struct terminal_frame *frame)
{
    json_decref(frame->document);
    frame->document = NULL;
}
