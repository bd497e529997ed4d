#include "cli/shell_session.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "cli/run/run_signals.h"
#include "cli/run/run_stdio.h"
#include "cli/run/run_terminal.h"
#include "json/json_read.h"
#include "net/url.h"
#include "net/websocket/websocket_http.h"

#define INPUT_SIZE     ((size_t) 16 * 1024)
#define RETRY_FIRST_MS 200
#define RETRY_MAX_MS   5000
#define PING_MS        15000
#define NOT_READY      503
#define END_MARK_MS    300
#define CONTROL_MAX    ((size_t) 4096)
#define CTRL_C         0x03
#define CTRL_D         0x04
#define CLEAR_SCREEN   "\033[H\033[2J\033[3J"

struct shell_session {
    const struct shell_session_options *options;
    struct client *client;
    struct shell_session_result *result;
    struct error *err;
    struct websocket *ws; /* NULL: not connected */
    struct run_source input;
    struct run_sink output;
    struct run_signals signals;
    struct run_terminal terminal;
    struct deadline retry;
    struct deadline end_mark; /* our input is over: the end is said again until it is heard */
    uint64_t delay_ms;        /* before the next try */
    uint64_t lost_since;      /* loop_now; 0: it is not lost */
    bool was_open;            /* once: from then on it is opened again */
    bool is_ready;            /* the terminal is: what is typed before would be lost */
    bool is_over;             /* what remains is to write the rest of the output */
    bool is_done;
    bool has_failed;
    bool has_input; /* there may be more */
};

/* --- the end --------------------------------------------------------------------------------- */

static void shell_session_finish(struct shell_session *shell)
{
    shell->is_done = true;
    loop_stop(&shell->client->loop);
}

/* Nothing more will come; what came is written first. */
static void shell_session_end(struct shell_session *shell)
{
    shell->is_over = true;
    deadline_clear(&shell->retry);
    deadline_clear(&shell->end_mark);
    run_source_want(&shell->input, false);
    if (shell->ws)
        (void) websocket_close(shell->ws, WEBSOCKET_CODE_NORMAL, NULL);
    if (run_sink_is_empty(&shell->output))
        shell_session_finish(shell);
}

static void shell_session_fail(struct shell_session *shell, const char *text)
{
    if (shell->is_over)
        return;
    shell->has_failed = true;
    (void) error_set(shell->err, ERR_UPSTREAM, 0, "the terminal of '%s': %s",
                     shell->options->sandbox, text);
    shell_session_end(shell);
}

/* --- input ----------------------------------------------------------------------------------- */

static void want_input(struct shell_session *shell)
{
    bool can_send =
        shell->ws ? shell->is_ready && !websocket_is_full(shell->ws) : shell->lost_since != 0;

    run_source_want(&shell->input, shell->has_input && !shell->is_over && can_send);
}

/* A shell that is about to read a line may miss the character. Whoever reads next there is at the
 * end of our input, too. */
static void say_end(struct deadline *deadline)
{
    struct shell_session *shell = CONTAINER_OF(deadline, struct shell_session, end_mark);
    static const char mark = CTRL_D;

    if (shell->ws && shell->is_ready)
        (void) websocket_send(shell->ws, WEBSOCKET_BINARY, &mark, 1);
    deadline_set(&shell->end_mark, END_MARK_MS);
}

static void input_over(struct shell_session *shell)
{
    shell->has_input = false;
    run_source_want(&shell->input, false);
    if (shell->ws)
        say_end(&shell->end_mark);
    else
        shell_session_end(shell);
}

static void input_ready(struct run_source *source)
{
    struct shell_session *shell = CONTAINER_OF(source, struct shell_session, input);
    char *buffer = shell->client->loop.scratch;
    ssize_t got;

    got = run_source_read(source, buffer, INPUT_SIZE);
    if (got == -EAGAIN)
        return;
    if (got <= 0)
        input_over(shell);
    else if (shell->ws)
        (void) websocket_send(shell->ws, WEBSOCKET_BINARY, buffer, (size_t) got);
    else if (memchr(buffer, CTRL_C, (size_t) got))
        shell_session_end(shell);
    if (got > 0)
        want_input(shell);
}

static void send_size(struct shell_session *shell)
{
    uint16_t columns, rows;
    char message[CONTROL_MAX];
    int length;

    run_terminal_size(shell->options->output, &columns, &rows);
    length = snprintf(message, sizeof(message), "{\"type\":\"resize\",\"cols\":%u,\"rows\":%u}",
                      columns, rows);
    if (shell->ws)
        (void) websocket_send(shell->ws, WEBSOCKET_TEXT, message, (size_t) length);
}

static void shell_session_signal_arrived(void *context, int number)
{
    struct shell_session *shell = context;

    if (number == SIGCONT && shell->terminal.raw)
        (void) run_terminal_enter(&shell->terminal, shell->terminal.fd);
    if (number == SIGWINCH || number == SIGCONT)
        send_size(shell);
    else if (number != SIGUSR1 && number != SIGUSR2)
        shell_session_end(shell); /* keys come as bytes: this was sent to us */
}

/* --- output ---------------------------------------------------------------------------------- */

static void sink_drained(struct run_sink *sink)
{
    struct shell_session *shell = sink->owner;

    if (shell->ws)
        websocket_resume(shell->ws);
}

static void sink_empty(struct run_sink *sink)
{
    struct shell_session *shell = sink->owner;

    if (shell->is_over)
        shell_session_finish(shell);
}

static void sink_failed(struct run_sink *sink)
{
    struct shell_session *shell = sink->owner;

    shell_session_fail(shell, "our own is gone");
    shell_session_finish(shell);
}

static void shell_session_say(struct shell_session *shell, const char *text)
{
    if (shell->terminal.raw)
        run_sink_write(&shell->output, text, strlen(text));
}

/* --- the connection -------------------------------------------------------------------------- */

static void take_control(struct shell_session *shell, const char *bytes, size_t length)
{
    AUTO(json) json_t *message = json_read(bytes, length, NULL, NULL);
    const char *type = json_string_value(json_object_get(message, "type"));
    const char *text = json_string_value(json_object_get(message, "message"));

    if (type && strcmp(type, "exit") == 0) {
        shell->result->has_ended = true;
        shell->result->status = (int) json_integer_value(json_object_get(message, "code")) & 255;
        shell_session_end(shell);
    } else if (type && strcmp(type, "ready") == 0) {
        shell->is_ready = true;
        want_input(shell);
    } else if (type && strcmp(type, "error") == 0) {
        shell_session_fail(shell, text ? text : "it failed");
    }
}

static void shell_session_message_arrived(struct websocket *ws, enum websocket_opcode kind,
                                          const char *bytes, size_t length)
{
    struct shell_session *shell = websocket_http_data(ws);

    if (shell->is_over)
        return;
    if (kind == WEBSOCKET_TEXT) {
        take_control(shell, bytes, length);
        return;
    }
    run_sink_write(&shell->output, bytes, length);
    if (run_sink_is_full(&shell->output))
        websocket_pause(ws);
}

static void peer_took(struct websocket *ws)
{
    want_input(websocket_http_data(ws));
}

/* Try again, more and more rarely, until patience is over. */
static void try_later(struct shell_session *shell, const char *why)
{
    uint64_t now = loop_now(&shell->client->loop);

    if (shell->is_over)
        return;
    if (!shell->was_open ||
        (shell->lost_since && now - shell->lost_since > SHELL_SESSION_PATIENCE_MS)) {
        shell_session_fail(shell, why);
        return;
    }
    if (!shell->lost_since) {
        shell->lost_since = now ? now : 1;
        shell->delay_ms = RETRY_FIRST_MS;
        shell_session_say(shell,
                          "\r\n[burrow: the connection is lost, trying again; Ctrl-C leaves]\r\n");
    }
    deadline_set(&shell->retry, shell->delay_ms);
    shell->delay_ms = shell->delay_ms * 2 < RETRY_MAX_MS ? shell->delay_ms * 2 : RETRY_MAX_MS;
    want_input(shell);
}

static void shell_session_connection_gone(struct websocket *ws)
{
    struct shell_session *shell = websocket_http_data(ws);

    shell->ws = NULL;
    shell->is_ready = false;
    try_later(shell, "the connection was lost");
}

static const struct websocket_events events = {
    .on_message = shell_session_message_arrived,
    .on_drain = peer_took,
    .on_released = shell_session_connection_gone,
};

static void connected(struct websocket *ws, void *data)
{
    struct shell_session *shell = data;

    shell->ws = ws;
    if (shell->is_over) {
        websocket_abort(ws);
        return;
    }
    if (shell->was_open)
        shell_session_say(shell, CLEAR_SCREEN); /* the replay draws all of it again */
    shell->was_open = shell->result->was_open = true;
    shell->lost_since = 0;
    send_size(shell); /* it may have changed, and a terminal that was there has another's */
    want_input(shell);
}

/* The daemon is there and says why not. While it starts again it is not ready: that passes. */
static void shell_session_refused(int status, const char *body, size_t length, void *data)
{
    struct shell_session *shell = data;
    struct error err = ERROR_INIT;

    client_refusal(status, body, length, &err);
    if (!shell->was_open || status != NOT_READY)
        shell_session_fail(shell, err.message);
}

static void not_connected(const struct error *error, void *data)
{
    try_later(data, error->message);
}

static void shell_session_dial(struct shell_session *shell)
{
    struct http_header headers[CLIENT_HEADERS];
    struct client *client = shell->client;
    AUTO(text) struct text rest = TEXT_INIT(URL_LENGTH_MAX);
    size_t count = client_headers(client, headers);
    struct websocket_dial dial = {
        .host = headers[0].value,
        .headers = headers + 1,
        .header_count = count - 1,
        .options = {.ping_interval_ms = PING_MS},
        .events = &events,
        .data = shell,
        .on_refused = shell_session_refused,
        .on_open = connected,
        .on_failure = not_connected,
    };
    uint16_t columns, rows;

    run_terminal_size(shell->options->output, &columns, &rows);
    text_append(&rest, "/terminals?sessionId=");
    url_encode(&rest, shell->options->session, strlen(shell->options->session));
    text_format(&rest, "&cols=%u&rows=%u", columns, rows);
    dial.target = client_sandbox_path(client, shell->options->sandbox, text_string(&rest));
    websocket_connect(client->origin, &dial);
}

static void retry_due(struct deadline *deadline)
{
    shell_session_dial(CONTAINER_OF(deadline, struct shell_session, retry));
}

/* --- life ------------------------------------------------------------------------------------ */

static void source_closed(struct run_source *source)
{
    (void) source;
}

static void sink_closed(struct run_sink *sink)
{
    (void) sink;
}

static void shell_session_deadline_closed(struct deadline *deadline)
{
    (void) deadline;
}

static int open_stdio(struct shell_session *shell, struct error *err)
{
    struct loop *loop = &shell->client->loop;
    int r = run_sink_init(&shell->output, loop, shell->options->output);

    if (r < 0)
        return error_set(err, ERR_INTERNAL, r, "use stdout");
    shell->output.owner = shell;
    shell->output.on_drain = sink_drained;
    shell->output.on_empty = sink_empty;
    shell->output.on_failure = sink_failed;
    r = run_source_init(&shell->input, loop, shell->options->input, input_ready);
    if (r < 0) {
        run_sink_close(&shell->output, sink_closed);
        return error_set(err, ERR_INTERNAL, r, "use stdin");
    }
    shell->has_input = true;
    return 0;
}

static void shell_session_close_all(struct shell_session *shell)
{
    run_terminal_leave(&shell->terminal);
    run_signals_close(&shell->signals);
    run_source_close(&shell->input, source_closed);
    run_sink_close(&shell->output, sink_closed);
    deadline_close(&shell->retry, shell_session_deadline_closed);
    deadline_close(&shell->end_mark, shell_session_deadline_closed);
    if (shell->ws)
        websocket_abort(shell->ws);
}

int shell_session_run(const struct shell_session_options *options,
                      struct shell_session_result *ret_result, struct error *err)
{
    struct client *client = options->client;
    struct shell_session *shell = pool_alloc(&client->pool, sizeof(*shell));
    int r;

    *ret_result = (struct shell_session_result){.status = 0};
    *shell = (struct shell_session){.options = options,
                                    .client = client,
                                    .result = ret_result,
                                    .err = err,
                                    .terminal = RUN_TERMINAL_INIT};
    if (open_stdio(shell, err) < 0)
        return -1;
    deadline_init(&client->loop, &shell->retry, retry_due);
    deadline_init(&client->loop, &shell->end_mark, say_end);
    r = run_signals_open(&shell->signals, &client->loop, shell_session_signal_arrived, shell);
    if (r < 0)
        shell_session_fail(shell, "signals cannot be listened for");
    (void) run_terminal_enter(&shell->terminal, options->input); /* a pipe will do, too */
    if (!shell->is_over)
        shell_session_dial(shell);
    while (!shell->is_done)
        loop_run(&client->loop);
    shell_session_close_all(shell);
    return shell->has_failed ? -1 : 0;
}
