/* The answer as one JSON document. */
#include "agent/command/execute.h"
#include "agent/command/execute_form.h"
#include "json/json_write.h"

/* All of a document that is not output, and the two outputs escaped (at worst six bytes each). */
#define DOCUMENT_MAX                                                                               \
    (2 * EXECUTE_COMMAND_MAX * 6 + (EXECUTE_OTHER_MAX + EXECUTE_HOLD_MAX) * 6 + 4096)

static const char *const output_names[EXEC_OUTPUTS] = {"stdout", "stderr"};
static const char *const truncated_names[EXEC_OUTPUTS] = {"stdoutTruncated", "stderrTruncated"};

static void json_start(struct execute_call *call)
{
    (void) call; /* said with the rest */
}

/* Send a piece of the output that is live. */
static void send_live(struct execute_call *call, const char *bytes, size_t length)
{
    struct text *scratch = &call->agent->scratch;

    text_clear(scratch);
    output_text_feed(&call->encoder[call->live], scratch, bytes, length);
    if (scratch->length > call->live_room) {
        call->truncated[call->live] = true;
        call->live_room = 0; /* no later piece may follow a missing one */
        return;
    }
    if (call->live_room != SIZE_MAX)
        call->live_room -= scratch->length;
    call_write(call->call, text_string(scratch), scratch->length);
}

static void go_live(struct execute_call *call, enum exec_output which)
{
    struct text *held = &call->held[which];

    call->live = (int) which;
    call_begin_json(call->call);
    call_write(call->call, which == EXEC_STDOUT ? "{\"stdout\":\"" : "{\"stderr\":\"", 11);
    send_live(call, text_string(held), held->length);
    text_done(held);
}

static void execute_json_hold(struct execute_call *call, enum exec_output which, const char *bytes,
                              size_t length)
{
    struct text *held = &call->held[which];
    size_t room = EXECUTE_OTHER_MAX - held->length;

    held->maximum = EXECUTE_OTHER_MAX;
    if (length > room)
        call->truncated[which] = true;
    text_append_bytes(held, bytes, length > room ? room : length);
}

static void add_output(struct execute_call *call, enum exec_output which, const char *bytes,
                       size_t length)
{
    if (call->live < 0 && call->held[which].length + length > EXECUTE_HOLD_MAX)
        go_live(call, which);
    if (call->live == (int) which)
        send_live(call, bytes, length);
    else
        execute_json_hold(call, which, bytes, length);
}

static void add_stdout(void *context, const char *bytes, size_t length)
{
    add_output(context, EXEC_STDOUT, bytes, length);
}

static void add_stderr(void *context, const char *bytes, size_t length)
{
    add_output(context, EXEC_STDERR, bytes, length);
}

static void json_output(struct execute_call *call, enum exec_output which, const char *bytes,
                        size_t length)
{
    static session_output_sink *const sinks[EXEC_OUTPUTS] = {add_stdout, add_stderr};

    if (execute_is_text_of_session(call))
        session_trim_feed(&call->trim[which], bytes, length, sinks[which], call);
    else
        add_output(call, which, bytes, length);
}

/* --- the end -------------------------------------------------------------------------------- */

static void append_output(struct execute_call *call, struct text *document, enum exec_output which)
{
    struct output_text *encoder = &call->encoder[which];
    struct text *held = &call->held[which];

    text_append_char(document, '"');
    output_text_feed(encoder, document, text_string(held), held->length);
    output_text_flush(encoder, document);
    text_append_char(document, '"');
}

/* Everything but the outputs; an object whose braces the caller leaves out. */
static void append_rest(struct execute_call *call, struct text *document,
                        const struct exec_result *result)
{
    char signal[EXECUTE_SIGNAL_SIZE];
    const char *signal_name = execute_signal_name(result, signal);
    int code = execute_exit_code(result);
    struct json_writer json;

    json_document_begin(&json, document);
    json_add_boolean(&json, "success", code == 0);
    if (code >= 0)
        json_add_integer(&json, "exitCode", code);
    else
        json_add_null(&json, "exitCode");
    if (signal_name)
        json_add_text(&json, "signal", signal_name);
    if (result->timed_out)
        json_add_boolean(&json, "timedOut", true);
    if (result->out_of_memory)
        json_add_boolean(&json, "outOfMemory", true);
    for (size_t i = 0; i < EXEC_OUTPUTS; i++) {
        if (call->truncated[i])
            json_add_boolean(&json, truncated_names[i], true);
    }
    if (!call->ask.plain)
        json_add_text(&json, "command", call->ask.command);
    json_add_integer(&json, "duration",
                     (int64_t) (loop_now(&call->agent->loop) - call->started_ms));
    if (!call->ask.plain) {
        call_add_timestamp(call->call, &json);
        json_add_text(&json, "sessionId", call->call->session);
    }
    (void) json_document_end(&json); /* the document has room for it */
}

static void append_named_output(struct execute_call *call, struct text *document,
                                enum exec_output which)
{
    text_append_char(document, '"');
    text_append(document, output_names[which]);
    text_append(document, "\":");
    append_output(call, document, which);
}

/* {"stdout":"...","stderr":"...",  and then the rest without its own brace. */
static void append_document(struct execute_call *call, struct text *document,
                            const struct exec_result *result)
{
    AUTO(text) struct text rest = TEXT_INIT(DOCUMENT_MAX);

    if (call->live < 0) {
        text_append_char(document, '{');
        append_named_output(call, document, EXEC_STDOUT);
        text_append_char(document, ',');
        append_named_output(call, document, EXEC_STDERR);
    } else { /* close what is live, then the other */
        output_text_flush(&call->encoder[call->live], document);
        text_append(document, "\",");
        append_named_output(call, document, call->live == EXEC_STDOUT ? EXEC_STDERR : EXEC_STDOUT);
    }
    append_rest(call, &rest, result);
    text_append_char(document, ',');
    text_append_bytes(document, text_string(&rest) + 1, rest.length - 1);
}

static void json_end(struct execute_call *call, const struct exec_result *result, const char *note)
{
    AUTO(text) struct text document = TEXT_INIT(DOCUMENT_MAX);

    json_output(call, EXEC_STDERR, note, strlen(note));
    append_document(call, &document, result);
    if (call->live < 0) {
        call_reply(call->call, &document);
    } else {
        call_write(call->call, text_string(&document), document.length);
        call_end(call->call);
    }
}

/* Half an object is worth nothing, and nobody must take it for the whole. */
static void json_fail(struct execute_call *call, const struct api_error *error)
{
    (void) error;
    call_break(call->call);
}

const struct execute_form execute_form_json = {
    .start = json_start,
    .output = json_output,
    .end = json_end,
    .fail = json_fail,
};
