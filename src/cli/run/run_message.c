#include "cli/run/run_message.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "base/number.h"
#include "json/json_read.h"
#include "json/json_write.h"

#define MESSAGE_MAX  ((size_t) 64 * 1024)
#define NAME_MAXIMUM ((size_t) 32)
#define TEXT_MAXIMUM ((size_t) 4096)
#define STATUS_MAX   255
#define SIGNAL_MAX   64

#define STATUS_TIMED_OUT   124
#define STATUS_FAILURE     125
#define STATUS_NOT_STARTED 126
#define STATUS_NO_PROGRAM  127
#define STATUS_SIGNAL      128

/* --- to the agent --------------------------------------------------------------------------- */

static void write_variables(const struct run_message_request *request, struct json_writer *json)
{
    json_begin_object_at(json, "env");
    for (size_t i = 0; i < request->variable_count; i++)
        json_add_text(json, request->variables[i].name, request->variables[i].value);
    json_end_object(json);
}

static void write_terminal(const struct run_message_request *request, struct json_writer *json)
{
    json_begin_object_at(json, "terminal");
    json_add_integer(json, "columns", request->columns);
    json_add_integer(json, "rows", request->rows);
    if (request->terminal_name)
        json_add_text(json, "name", request->terminal_name);
    json_end_object(json);
}

int run_message_write_request(const struct run_message_request *request, struct text *text,
                              struct error *err)
{
    struct json_writer json;

    json_document_begin(&json, text);
    json_begin_array_at(&json, "argv");
    for (const char *const *word = request->command; *word; word++)
        json_put_text(&json, *word);
    json_end_array(&json);
    if (request->directory)
        json_add_text(&json, "cwd", request->directory);
    if (request->user)
        json_add_text(&json, "user", request->user);
    if (request->timeout_ms)
        json_add_integer(&json, "timeout", (int64_t) request->timeout_ms);
    if (request->variable_count)
        write_variables(request, &json);
    if (request->columns)
        write_terminal(request, &json);
    if (json_document_end(&json) < 0)
        return error_set(err, ERR_TOO_LARGE, 0, "the command and its variables are too long");
    return 0;
}

static void begin_order(struct json_writer *json, struct text *text, const char *type)
{
    json_document_begin(json, text);
    json_add_text(json, "type", type);
}

static void end_order(struct json_writer *json)
{
    (void) json_document_end(json); /* orders are short */
}

void run_message_write_resize(uint16_t columns, uint16_t rows, struct text *text)
{
    struct json_writer json;

    begin_order(&json, text, "resize");
    json_add_integer(&json, "columns", columns);
    json_add_integer(&json, "rows", rows);
    end_order(&json);
}

void run_message_write_signal(int number, struct text *text)
{
    const char *name = sigabbrev_np(number);
    struct json_writer json;

    if (!name)
        return;
    begin_order(&json, text, "signal");
    json_add_text(&json, "signal", name);
    end_order(&json);
}

void run_message_write_eof(struct text *text)
{
    struct json_writer json;

    begin_order(&json, text, "eof");
    end_order(&json);
}

void run_message_write_close(enum run_message_channel channel, struct text *text)
{
    struct json_writer json;

    begin_order(&json, text, "close");
    json_add_integer(&json, "channel", channel);
    end_order(&json);
}

/* --- from the agent ------------------------------------------------------------------------- */

static int find_signal(const char *name)
{
    int64_t number;

    for (int i = 1; i < NSIG; i++) {
        const char *known = sigabbrev_np(i);

        if (known && strcmp(known, name) == 0)
            return i;
    }
    return number_parse(name, 1, SIGNAL_MAX, &number) == 0 ? (int) number : 0;
}

static int read_window(const struct json_place *root, struct run_message *message,
                       struct error *err)
{
    int64_t bytes = 0;

    message->type = RUN_MESSAGE_WINDOW_GROWS;
    if (json_field_integer(root, "bytes", JSON_REQUIRED, 1, RUN_MESSAGE_WINDOW_MAX, &bytes, err) <
        0)
        return -1;
    message->bytes = (size_t) bytes;
    return 0;
}

static int read_started(const struct json_place *root, struct run_message *message,
                        struct error *err)
{
    (void) root; /* the pid means nothing out here */
    (void) err;
    message->type = RUN_MESSAGE_STARTED;
    return 0;
}

static int read_closed(const struct json_place *root, struct run_message *message,
                       struct error *err)
{
    (void) root;
    (void) err;
    message->type = RUN_MESSAGE_INPUT_CLOSED;
    return 0;
}

static int read_exit(const struct json_place *root, struct run_message *message, struct error *err)
{
    struct run_outcome *outcome = &message->outcome;
    int64_t code = -1;
    const char *signal = NULL;
    bool timed_out = false;

    message->type = RUN_MESSAGE_ENDED;
    if (json_field_boolean(root, "timedOut", JSON_OPTIONAL, &timed_out, err) < 0 ||
        json_field_integer(root, "code", JSON_OPTIONAL, 0, STATUS_MAX, &code, err) < 0 ||
        json_field_text(root, "signal", JSON_OPTIONAL, NAME_MAXIMUM, &signal, err) < 0)
        return -1;
    outcome->value = signal ? find_signal(signal) : (int) code;
    outcome->ending = timed_out ? RUN_ENDED_TIME : signal ? RUN_ENDED_SIGNAL : RUN_ENDED_STATUS;
    if (!timed_out && (signal ? !outcome->value : code < 0))
        return error_set(err, ERR_UPSTREAM, 0, "an exit without a status");
    return 0;
}

/* Whatever comes from inside is shown as plain ASCII on one line. */
static void copy_printable(char *to, size_t size, const char *from)
{
    size_t length = 0;

    for (; *from && length + 1 < size; from++)
        to[length++] = *from >= ' ' && *from <= '~' ? *from : '?';
    to[length] = '\0';
}

void run_outcome_fail(struct run_outcome *outcome, const char *text)
{
    *outcome = (struct run_outcome){.ending = RUN_ENDED_FAILURE};
    copy_printable(outcome->text, sizeof(outcome->text), text);
}

static int read_error(const struct json_place *root, struct run_message *message, struct error *err)
{
    const char *stage = "", *text = "", *number = "";

    message->type = RUN_MESSAGE_ENDED;
    if (json_field_text(root, "stage", JSON_OPTIONAL, NAME_MAXIMUM, &stage, err) < 0 ||
        json_field_text(root, "errno", JSON_OPTIONAL, NAME_MAXIMUM, &number, err) < 0 ||
        json_field_text(root, "message", JSON_OPTIONAL, TEXT_MAXIMUM, &text, err) < 0)
        return -1;
    run_outcome_fail(&message->outcome, text);
    if (strcmp(stage, "program") == 0)
        message->outcome.ending = strcmp(number, "ENOENT") == 0 || strcmp(number, "ENOTDIR") == 0
                                      ? RUN_ENDED_NO_PROGRAM
                                      : RUN_ENDED_NOT_STARTED;
    return 0;
}

static const struct {
    const char *name;
    int (*read)(const struct json_place *root, struct run_message *message, struct error *err);
} types[] = {
    {"started", read_started}, {"window", read_window}, {"closed", read_closed},
    {"exit", read_exit},       {"error", read_error},
};

static int read_type(const struct json_place *root, struct run_message *ret_message,
                     struct error *err)
{
    struct run_message message = {.bytes = 0};
    const char *type = "";

    if (json_field_text(root, "type", JSON_REQUIRED, NAME_MAXIMUM, &type, err) < 0)
        return -1;
    for (size_t i = 0; i < ARRAY_COUNT(types); i++) {
        if (strcmp(types[i].name, type) != 0)
            continue;
        if (types[i].read(root, &message, err) < 0)
            return -1;
        *ret_message = message;
        return 0;
    }
    return error_set(err, ERR_UPSTREAM, 0, "an unknown message");
}

int run_message_read(const char *bytes, size_t length, struct run_message *ret_message,
                     struct error *err)
{
    static const struct json_limits limits = {.size = MESSAGE_MAX, .depth = 4, .values = 64};
    AUTO(json) json_t *document = json_read(bytes, length, &limits, err);
    struct json_place root;

    if (!document || json_root_object(document, &root, err) < 0 ||
        read_type(&root, ret_message, err) < 0) {
        if (err)
            err->code = ERR_UPSTREAM;
        return error_wrap(err, "the agent said what it should not");
    }
    return 0;
}

int run_outcome_status(const struct run_outcome *outcome)
{
    switch (outcome->ending) {
    case RUN_ENDED_STATUS:
        return outcome->value;
    case RUN_ENDED_SIGNAL:
        return STATUS_SIGNAL + outcome->value;
    case RUN_ENDED_TIME:
        return STATUS_TIMED_OUT;
    case RUN_ENDED_NO_PROGRAM:
        return STATUS_NO_PROGRAM;
    case RUN_ENDED_NOT_STARTED:
        return STATUS_NOT_STARTED;
    case RUN_ENDED_FAILURE:
        break;
    }
    return STATUS_FAILURE;
}
