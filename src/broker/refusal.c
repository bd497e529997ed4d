#include "broker/refusal.h"

#include <stdbool.h>
#include <string.h>

#include "base/auto.h"
#include "json/json_write.h"

static void error_begin(struct json_writer *json, const struct error *error, const char *type)
{
    json_begin_object_at(json, "error");
    json_add_text(json, "type", type);
    json_add_text(json, "message", error->message);
}

static void plain_write(struct json_writer *json, const struct error *error, const char *type)
{
    json_begin_object(json);
    error_begin(json, error, type);
    json_end_object(json);
    json_end_object(json);
}

static void anthropic_write(struct json_writer *json, const struct error *error, const char *type)
{
    json_begin_object(json);
    json_add_text(json, "type", "error");
    error_begin(json, error, type);
    json_end_object(json);
    json_end_object(json);
}

static void openai_write(struct json_writer *json, const struct error *error, const char *type)
{
    json_begin_object(json);
    error_begin(json, error, type);
    json_add_null(json, "param");
    json_add_text(json, "code", type);
    json_end_object(json);
    json_end_object(json);
}

/* In a stream of responses an error is an event of its own, flat. */
static void responses_write_event(struct json_writer *json, const struct error *error,
                                  const char *type)
{
    json_begin_object(json);
    json_add_text(json, "type", "error");
    json_add_text(json, "code", type);
    json_add_text(json, "message", error->message);
    json_add_null(json, "param");
    json_end_object(json);
}

static const char *google_status(enum err_code code)
{
    switch (error_http_status(code)) {
    case 400:
        return "INVALID_ARGUMENT";
    case 403:
        return "PERMISSION_DENIED";
    case 404:
        return "NOT_FOUND";
    case 429:
        return "RESOURCE_EXHAUSTED";
    case 504:
        return "DEADLINE_EXCEEDED";
    default:
        return "UNAVAILABLE";
    }
}

static void google_write(struct json_writer *json, const struct error *error, const char *type)
{
    json_begin_object(json);
    json_begin_object_at(json, "error");
    json_add_integer(json, "code", error_http_status(error->code));
    json_add_text(json, "message", error->message);
    json_add_text(json, "status", google_status(error->code));
    json_begin_array_at(json, "details");
    json_begin_object(json);
    json_add_text(json, "reason", type);
    json_end_object(json);
    json_end_array(json);
    json_end_object(json);
    json_end_object(json);
}

struct refusal_form {
    void (*write)(struct json_writer *json, const struct error *error, const char *type);
    void (*write_event)(struct json_writer *json, const struct error *error, const char *type);
    const char *event; /* its name in a stream; NULL: it has none */
};

static const struct refusal_form forms[] = {
    [BROKER_UNMETERED] = {plain_write, plain_write, NULL},
    [BROKER_ANTHROPIC] = {anthropic_write, anthropic_write, "error"},
    [BROKER_OPENAI_RESPONSES] = {openai_write, responses_write_event, "error"},
    [BROKER_OPENAI_CHAT] = {openai_write, openai_write, NULL},
    [BROKER_GOOGLE] = {google_write, google_write, NULL},
    [BROKER_OPENAI_OTHER] = {openai_write, openai_write, NULL},
};

void refusal_write(struct text *out, enum broker_format format, const struct error *error,
                   const char *type)
{
    struct json_writer json;

    json_writer_init_text(&json, out);
    forms[format].write(&json, error, type ? type : error_code_text(error->code));
    (void) json_writer_finish(&json);
}

void refusal_write_event(struct text *out, enum broker_format format, const struct error *error,
                         const char *type)
{
    struct json_writer json;

    if (forms[format].event)
        text_format(out, "event: %s\n", forms[format].event);
    text_append(out, "data: ");
    json_writer_init_text(&json, out);
    forms[format].write_event(&json, error, type ? type : error_code_text(error->code));
    (void) json_writer_finish(&json);
    text_append(out, "\n\n");
}
