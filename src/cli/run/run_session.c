#include "cli/run/run_session.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "base/auto.h"
#include "base/memory.h"
#include "cli/client/client.h"
#include "cli/run/run_stdio.h"
#include "cli/run/run_terminal.h"
#include "net/http/http_client.h"
#include "net/websocket/websocket_http.h"

/* Input read at once: what a pipe holds. */
#define INPUT_SIZE   ((size_t) 64 * 1024)
#define ORDER_MAX    ((size_t) 4096)
#define AGENT_TARGET "/burrow/run"
#define SIGNAL_BITS  64
#define AGENT_HOST   "agent"

#define ANSWER_TIMEOUT_MS 10000
#define PING_MS           30000
/* Beyond the command's time, before we stop waiting for the agent to say that it is over. */
#define OVERTIME_MS 5000

enum { SINK_STDOUT, SINK_STDERR, SINKS };

struct run_session {
    struct loop *loop;
    struct run_session_events events;
    struct http_origin *origin; /* NULL: a borrowed one, which others close */
    struct websocket *ws;       /* NULL: not open yet, or released */
    struct text request;        /* until it was sent */
    struct run_source input;
    struct run_sink sinks[SINKS];
    uint64_t early_signals; /* bits: they came before the agent was connected */
    struct loop_task settle;
    struct deadline overtime;
    struct run_outcome outcome;
    size_t window; /* bytes of input that may be sent */
    int terminal;
    int handles;          /* to be closed before the memory is free */
    int sink_count;       /* that are open */
    bool at_terminal : 1; /* the command is */
    bool input_open : 1;  /* the source must be closed */
    bool has_input : 1;   /* there may be more of it */
    bool ended : 1;       /* the outcome is known */
    bool told : 1;        /* on_end was called */
    bool closing : 1;
};

/* --- the end -------------------------------------------------------------------------------- */

static void settle_soon(struct run_session *session)
{
    if (!session->closing)
        loop_defer(session->loop, &session->settle);
}

/* Once the outcome is known and everything is written. */
static void run_session_settle(struct loop_task *task)
{
    struct run_session *session = CONTAINER_OF(task, struct run_session, settle);

    if (!session->ended || session->told)
        return;
    for (size_t i = 0; i < SINKS; i++) {
        if (!run_sink_is_empty(&session->sinks[i]))
            return;
    }
    session->told = true;
    session->events.on_end(session->events.context, &session->outcome);
}

static void run_session_end(struct run_session *session, const struct run_outcome *outcome)
{
    if (session->ended)
        return;
    session->ended = true;
    session->outcome = *outcome;
    if (session->has_input)
        run_source_want(&session->input, false);
    if (session->ws)
        (void) websocket_close(session->ws, WEBSOCKET_CODE_NORMAL, NULL);
    settle_soon(session);
}

static void run_session_fail(struct run_session *session, const char *text)
{
    struct run_outcome outcome;

    run_outcome_fail(&outcome, text);
    run_session_end(session, &outcome);
}

/* --- input ---------------------------------------------------------------------------------- */

static void order(struct run_session *session, const struct text *message)
{
    if (session->ws && !session->ended && message->length)
        (void) websocket_send(session->ws, WEBSOCKET_TEXT, message->data, message->length);
}

static void want_input(struct run_session *session)
{
    if (session->has_input)
        run_source_want(&session->input, session->ws && !session->ended && session->window &&
                                             !websocket_is_full(session->ws));
}

static void input_over(struct run_session *session)
{
    AUTO(text) struct text message = TEXT_INIT(ORDER_MAX);

    session->has_input = false;
    run_source_want(&session->input, false);
    run_message_write_eof(&message);
    order(session, &message);
}

static void input_ready(struct run_source *source)
{
    struct run_session *session = CONTAINER_OF(source, struct run_session, input);
    char *buffer = session->loop->scratch;
    size_t size = session->window < INPUT_SIZE ? session->window : INPUT_SIZE;
    ssize_t got = run_source_read(source, buffer + 1, size);

    if (got == -EAGAIN)
        return;
    if (got <= 0) { /* an error is an end: a terminal that is gone, a folder as stdin */
        input_over(session);
        return;
    }
    buffer[0] = RUN_MESSAGE_STDIN;
    session->window -= (size_t) got;
    (void) websocket_send(session->ws, WEBSOCKET_BINARY, buffer, (size_t) got + 1);
    want_input(session);
}

/* --- output --------------------------------------------------------------------------------- */

static bool sinks_are_full(const struct run_session *session)
{
    return run_sink_is_full(&session->sinks[SINK_STDOUT]) ||
           run_sink_is_full(&session->sinks[SINK_STDERR]);
}

static void sink_drained(struct run_sink *sink)
{
    struct run_session *session = sink->owner;

    if (session->ws && !sinks_are_full(session))
        websocket_resume(session->ws);
}

static void sink_empty(struct run_sink *sink)
{
    settle_soon(sink->owner);
}

/* Nobody reads our output any more: the command shall meet a closed pipe, too. A terminal has none;
 * when it is gone there is nobody left to run for. */
static void sink_failed(struct run_sink *sink)
{
    AUTO(text) struct text message = TEXT_INIT(ORDER_MAX);
    struct run_session *session = sink->owner;

    if (session->at_terminal) {
        run_session_fail(session, "the terminal is gone");
        return;
    }
    run_message_write_close(sink->which == SINK_STDOUT ? RUN_MESSAGE_STDOUT : RUN_MESSAGE_STDERR,
                            &message);
    order(session, &message);
    sink_drained(sink);
    settle_soon(session);
}

static int open_sinks(struct run_session *session, const struct run_session_options *options)
{
    const int numbers[SINKS] = {[SINK_STDOUT] = options->output, [SINK_STDERR] = options->errors};

    for (int i = 0; i < SINKS; i++) {
        struct run_sink *sink = &session->sinks[i];
        int r = run_sink_init(sink, session->loop, numbers[i]);

        if (r < 0)
            return r;
        sink->owner = session;
        sink->which = i;
        sink->on_drain = sink_drained;
        sink->on_empty = sink_empty;
        sink->on_failure = sink_failed;
        session->sink_count++;
        session->handles++;
    }
    return 0;
}

/* --- the agent ------------------------------------------------------------------------------ */

static void take_output(struct run_session *session, const char *bytes, size_t length)
{
    size_t which = SINKS;

    if (length && bytes[0] == RUN_MESSAGE_STDOUT)
        which = SINK_STDOUT;
    else if (length && bytes[0] == RUN_MESSAGE_STDERR)
        which = SINK_STDERR;
    if (which == SINKS) {
        run_session_fail(session, "the agent sent output of an unknown kind");
        return;
    }
    run_sink_write(&session->sinks[which], bytes + 1, length - 1);
    if (sinks_are_full(session))
        websocket_pause(session->ws);
}

static void grow_window(struct run_session *session, size_t bytes)
{
    session->window += bytes;
    if (session->window > RUN_MESSAGE_WINDOW_MAX)
        session->window = RUN_MESSAGE_WINDOW_MAX;
    want_input(session);
}

static void take_text(struct run_session *session, const char *bytes, size_t length)
{
    struct error err = ERROR_INIT;
    struct run_message message;

    if (run_message_read(bytes, length, &message, &err) < 0) {
        run_session_fail(session, err.message);
        return;
    }
    switch (message.type) {
    case RUN_MESSAGE_STARTED:
        break;
    case RUN_MESSAGE_WINDOW_GROWS:
        grow_window(session, message.bytes);
        break;
    case RUN_MESSAGE_INPUT_CLOSED:
        session->has_input = false;
        run_source_shut(&session->input);
        break;
    case RUN_MESSAGE_ENDED:
        run_session_end(session, &message.outcome);
        break;
    }
}

static void run_session_message_arrived(struct websocket *ws, enum websocket_opcode kind,
                                        const char *bytes, size_t length)
{
    struct run_session *session = websocket_http_data(ws);

    if (session->ended)
        return;
    if (kind == WEBSOCKET_BINARY)
        take_output(session, bytes, length);
    else
        take_text(session, bytes, length);
}

static void agent_took(struct websocket *ws)
{
    want_input(websocket_http_data(ws));
}

static void agent_left(struct websocket *ws, unsigned int code, const char *reason, bool clean)
{
    (void) code;
    (void) reason;
    (void) clean;
    run_session_fail(websocket_http_data(ws), "the connection to the sandbox was lost");
}

static void run_session_handle_gone(struct run_session *session)
{
    if (--session->handles)
        return;
    text_done(&session->request);
    session->events.on_closed(session->events.context);
    free(session);
}

static void run_session_connection_gone(struct websocket *ws)
{
    struct run_session *session = websocket_http_data(ws);

    session->ws = NULL;
    if (!session->closing)
        agent_left(ws, WEBSOCKET_CODE_LOST, "", false); /* an end that nobody told */
    run_session_handle_gone(session);
}

static const struct websocket_events agent_events = {
    .on_message = run_session_message_arrived,
    .on_drain = agent_took,
    .on_close = agent_left,
    .on_released = run_session_connection_gone,
};

static void connected(struct websocket *ws, void *data)
{
    struct run_session *session = data;

    session->ws = ws; /* the handle of the dialling is now its */
    if (session->closing || session->ended) {
        websocket_abort(ws);
        return;
    }
    (void) websocket_send(ws, WEBSOCKET_TEXT, session->request.data, session->request.length);
    text_done(&session->request);
    for (int number = 1; number < SIGNAL_BITS; number++) {
        if (session->early_signals & UINT64_C(1) << number)
            run_session_signal(session, number);
    }
    want_input(session);
}

/* The daemon has said why in its own words, which on_failure does not have. */
static void run_session_refused(int status, const char *body, size_t length, void *data)
{
    struct run_session *session = data;
    struct error err = ERROR_INIT;

    client_refusal(status, body, length, &err);
    if (!session->closing)
        run_session_fail(session, err.message);
}

static void not_connected(const struct error *error, void *data)
{
    struct run_session *session = data;

    if (!session->closing)
        run_session_fail(session, error->message);
    run_session_handle_gone(session);
}

static void run_session_dial(struct run_session *session, const struct run_session_options *options)
{
    struct websocket_dial dial = {
        .target = AGENT_TARGET,
        .host = AGENT_HOST,
        .events = &agent_events,
        .data = session,
        .on_open = connected,
        .on_failure = not_connected,
    };

    if (options->origin) {
        dial.target = options->target;
        dial.host = options->headers[0].value;
        dial.headers = options->headers + 1;
        dial.header_count = options->header_count - 1;
        dial.on_refused = run_session_refused;
        dial.options.ping_interval_ms = PING_MS; /* a daemon far away may go without a word */
    }
    session->handles++;
    websocket_connect(options->origin ? options->origin : session->origin, &dial);
}

/* --- life ----------------------------------------------------------------------------------- */

/* The agent keeps the time; it is asked to, not trusted to. */
static void overdue(struct deadline *deadline)
{
    struct run_session *session = CONTAINER_OF(deadline, struct run_session, overtime);
    struct run_outcome outcome = {.ending = RUN_ENDED_TIME};

    run_session_end(session, &outcome);
}

static int open_parts(struct run_session *session, const struct run_session_options *options,
                      struct error *err)
{
    struct http_origin_options origin = HTTP_ORIGIN_OPTIONS_DEFAULT;
    int r = open_sinks(session, options);

    if (r < 0)
        return error_set(err, ERR_INTERNAL, r, "use stdout and stderr");
    r = run_source_init(&session->input, session->loop, options->input, input_ready);
    if (r < 0)
        return error_set(err, ERR_INTERNAL, r, "use stdin");
    session->has_input = session->input_open = true;
    session->handles++;
    if (options->origin)
        return 0;
    origin.head_timeout_ms = ANSWER_TIMEOUT_MS;
    session->origin = http_origin_new(session->loop, options->address, &origin, err);
    if (!session->origin)
        return -1;
    session->handles++;
    return 0;
}

static void nobody_listens(void *context)
{
    (void) context;
}

struct run_session *run_session_new(const struct run_session_options *options, struct error *err)
{
    struct run_session *session = mem_alloc(sizeof(*session));

    session->loop = options->loop;
    session->events = options->events;
    session->window = RUN_MESSAGE_WINDOW;
    session->terminal = options->terminal;
    session->at_terminal = options->request->columns != 0;
    session->request = (struct text) TEXT_INIT(RUN_MESSAGE_REQUEST_MAX);
    loop_task_init(&session->settle, run_session_settle);
    deadline_init(session->loop, &session->overtime, overdue);
    session->handles = 1;
    if (run_message_write_request(options->request, &session->request, err) < 0 ||
        open_parts(session, options, err) < 0) {
        session->events.on_closed = nobody_listens;
        run_session_close(session);
        return NULL;
    }
    if (options->request->timeout_ms)
        deadline_set(&session->overtime, options->request->timeout_ms + OVERTIME_MS);
    run_session_dial(session, options);
    return session;
}

void run_session_signal(struct run_session *session, int number)
{
    AUTO(text) struct text message = TEXT_INIT(ORDER_MAX);
    uint16_t columns, rows;

    if (!session->ws && !session->ended && number < SIGNAL_BITS) {
        session->early_signals |= UINT64_C(1) << number;
        return;
    }
    if (number != SIGWINCH) {
        run_message_write_signal(number, &message);
    } else if (session->terminal >= 0) {
        run_terminal_size(session->terminal, &columns, &rows);
        run_message_write_resize(columns, rows, &message);
    }
    order(session, &message);
}

static void source_closed(struct run_source *source)
{
    run_session_handle_gone(CONTAINER_OF(source, struct run_session, input));
}

static void sink_closed(struct run_sink *sink)
{
    run_session_handle_gone(sink->owner);
}

static void origin_closed(struct http_origin *origin, void *data)
{
    (void) origin;
    run_session_handle_gone(data);
}

static void run_session_deadline_closed(struct deadline *deadline)
{
    run_session_handle_gone(CONTAINER_OF(deadline, struct run_session, overtime));
}

void run_session_close(struct run_session *session)
{
    session->closing = true;
    loop_task_cancel(&session->settle);
    if (session->ws)
        websocket_abort(session->ws);
    if (session->input_open)
        run_source_close(&session->input, source_closed);
    for (int i = 0; i < session->sink_count; i++)
        run_sink_close(&session->sinks[i], sink_closed);
    if (session->origin)
        http_origin_close(session->origin, origin_closed, session);
    deadline_close(&session->overtime, run_session_deadline_closed);
}
