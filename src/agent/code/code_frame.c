#include "agent/code/code_frame.h"

#include <errno.h>
#include <limits.h>
#include <string.h>

#include "json/json_read.h"
#include "json/json_write.h"

#define ERRNO_MAX 4095

static const char *const type_names[CODE_FRAME_TYPES] = {
    [CODE_FRAME_READY] = "ready", [CODE_FRAME_FAILED] = "failed", [CODE_FRAME_RESULT] = "result",
    [CODE_FRAME_ERROR] = "error", [CODE_FRAME_END] = "end",
};

/* The forms of a value that are text. "json" is any value. */
static const char *const forms[] = {"text", "html", "markdown", "svg",
                                    "png",  "jpeg", "latex",    "javascript"};

static int find_type(json_t *value, enum code_frame_type *ret_type)
{
    const char *name = json_string_value(json_object_get(value, "type"));

    for (size_t i = 0; name && i < CODE_FRAME_TYPES; i++) {
        if (strcmp(name, type_names[i]) == 0) {
            *ret_type = (enum code_frame_type) i;
            return 0;
        }
    }
    return -EBADMSG;
}

static int read_numbers(struct code_frame *frame)
{
    json_int_t pid = json_integer_value(json_object_get(frame->value, "pid"));
    json_int_t error = json_integer_value(json_object_get(frame->value, "errno"));

    if (frame->type == CODE_FRAME_READY) {
        if (pid <= 1 || pid > INT_MAX)
            return -EBADMSG;
        frame->pid = (pid_t) pid;
    } else if (frame->type == CODE_FRAME_FAILED) {
        if (error <= 0 || error > ERRNO_MAX)
            return -EBADMSG;
        frame->error = (int) -error;
    }
    return 0;
}

int code_frame_read(const char *line, size_t length, struct code_frame *ret_frame)
{
    static const struct json_limits limits = {
        .size = CODE_FRAME_MAX, .depth = JSON_WRITE_DEPTH_MAX, .values = CODE_FRAME_VALUES};
    AUTO(code_frame) struct code_frame frame = {.type = CODE_FRAME_END};
    struct error err = ERROR_INIT;

    frame.value = json_read(line, length, &limits, &err);
    if (!json_is_object(frame.value) || find_type(frame.value, &frame.type) < 0 ||
        read_numbers(&frame) < 0)
        return -EBADMSG;
    *ret_frame = frame;
    frame.value = NULL;
    return 0;
}

void code_frame_done(struct code_frame *frame)
{
    json_decref(frame->value);
    frame->value = NULL;
}

/* --- events ---------------------------------------------------------------------------------- */

static void put_string(struct json_writer *json, json_t *string)
{
    json_put_bytes(json, json_string_value(string), json_string_length(string));
}

static void write_result(const struct code_frame *frame, struct json_writer *json)
{
    json_t *document = json_object_get(frame->value, "json");
    json_t *metadata = json_object_get(frame->value, "metadata");

    for (size_t i = 0; i < ARRAY_COUNT(forms); i++) {
        json_t *form = json_object_get(frame->value, forms[i]);

        if (json_is_string(form)) {
            json_key(json, forms[i]);
            put_string(json, form);
        }
    }
    if (document) {
        json_key(json, "json");
        json_put_value(json, document);
    }
    json_key(json, "metadata");
    if (json_is_object(metadata))
        json_put_value(json, metadata);
    else
        json_put_raw(json, "{}", 2);
}

static void write_field(const struct code_frame *frame, struct json_writer *json, const char *key,
                        const char *instead)
{
    json_t *value = json_object_get(frame->value, key);

    json_key(json, key);
    if (instead || !json_is_string(value))
        json_put_text(json, instead ? instead : "");
    else
        put_string(json, value);
}

static void write_error(const struct code_frame *frame, struct json_writer *json, const char *ename,
                        const char *evalue)
{
    json_t *traceback = json_object_get(frame->value, "traceback"), *line;
    size_t index;

    write_field(frame, json, "ename", ename);
    write_field(frame, json, "evalue", evalue);
    json_begin_array_at(json, "traceback");
    json_array_foreach (traceback, index, line) {
        if (json_is_string(line))
            put_string(json, line);
    }
    json_end_array(json);
}

int code_frame_write_event(const struct code_frame *frame, const char *ename, const char *evalue,
                           struct text *event)
{
    struct json_writer json;

    json_document_begin(&json, event);
    json_add_text(&json, "type", type_names[frame->type]);
    if (frame->type == CODE_FRAME_RESULT)
        write_result(frame, &json);
    else
        write_error(frame, &json, ename, evalue);
    return json_document_end(&json);
}

int code_frame_write_error(const char *ename, const char *evalue, struct text *event)
{
    const struct code_frame frame = {.type = CODE_FRAME_ERROR};

    return code_frame_write_event(&frame, ename, evalue, event);
}
