#include "api/terminal/terminal_relay.h"

#include <string.h>

#include "api/agent/agents.h"
#include "api/http/api.h"
#include "api/terminal/terminal_frames.h"
#include "base/memory.h"
#include "domain/sandbox/sandbox_use.h"
#include "domain/sandbox/sandboxes.h"
#include "json/json_write.h"
#include "net/websocket/websocket_http.h"

#define USUAL_SHELL      "bash"
#define FRAME_MAX        ((size_t) 4096)
#define TARGET_MAX       ((size_t) 32 * 1024)
#define PING_INTERVAL_MS 30000
#define DELETE_BODY_MAX  ((size_t) 4096)

struct relay {
    struct api *api;        /* borrowed */
    struct sandbox_use use; /* as long as the client is there */
    struct id sandbox;
    struct websocket *client; /* NULL: gone */
    struct websocket *agent;  /* NULL: not there yet, or gone */
    struct terminal_frames frames;
    char *target;     /* owned: of the agent's terminal */
    char *session;    /* owned */
    char *shell;      /* owned: as it was asked for */
    bool own_session; /* ends with the connection; false once that is under way */
    bool was_open;    /* the agent's terminal was reached */
    bool is_ready;    /* its shell runs */
    bool has_exited;  /* and its shell has ended */
    bool is_over;     /* the client was told the end, or left */
    int references;   /* client, agent (from the dial on), the last request */
};

static void delete_session(struct relay *relay);

static void terminal_relay_release(struct relay *relay)
{
    if (--relay->references)
        return;
    if (relay->own_session && relay->was_open) {
        relay->own_session = false;
        delete_session(relay);
    }
    if (relay->references) /* the last request is on its way */
        return;
    sandbox_use_end(&relay->use);
    free(relay->target);
    free(relay->session);
    free(relay->shell);
    free(relay);
}

/* --- to the client --------------------------------------------------------------------------- */

static void send_frame(struct relay *relay, const struct text *frame)
{
    if (relay->client && frame->length)
        (void) websocket_send(relay->client, WEBSOCKET_TEXT, frame->data, frame->length);
}

static void close_client(struct relay *relay, unsigned int code, const char *reason)
{
    relay->is_over = true;
    if (relay->client)
        (void) websocket_close(relay->client, code, reason);
}

static void terminal_relay_fail(struct relay *relay, unsigned int code, const char *message)
{
    AUTO(text) struct text frame = TEXT_INIT(FRAME_MAX);

    if (relay->is_over)
        return;
    terminal_frames_error(&frame, message);
    send_frame(relay, &frame);
    close_client(relay, code, message);
}

/* --- the end of a session of its own --------------------------------------------------------- */

static void deletion_ended(struct http_exchange *exchange)
{
    terminal_relay_release(http_exchange_data(exchange));
}

static void deletion_failed(struct http_exchange *exchange, const struct error *error)
{
    (void) error; /* it ends with the sandbox at the latest */
    terminal_relay_release(http_exchange_data(exchange));
}

static void ignore_head(struct http_exchange *exchange)
{
    (void) exchange;
}

static void ignore_body(struct http_exchange *exchange, const char *bytes, size_t length)
{
    (void) exchange;
    (void) bytes;
    (void) length;
}

static void delete_session(struct relay *relay)
{
    static const struct http_exchange_events events = {
        .on_head = ignore_head,
        .on_body = ignore_body,
        .on_end = deletion_ended,
        .on_failure = deletion_failed,
    };
    static const struct http_header headers[] = {HTTP_HEADER("Host", "agent"),
                                                 HTTP_HEADER("Content-Type", "application/json")};
    AUTO(text) struct text body = TEXT_INIT(DELETE_BODY_MAX);
    struct http_exchange_request request = {.method = "POST",
                                            .target = "/api/session/delete",
                                            .headers = headers,
                                            .header_count = ARRAY_COUNT(headers)};
    struct http_origin *origin = agents_origin(relay->api->agents, &relay->sandbox, NULL);
    struct http_exchange *exchange;
    struct json_writer json;

    if (!origin)
        return;
    json_document_begin(&json, &body);
    json_add_text(&json, "sessionId", relay->session);
    (void) json_document_end(&json); /* the name is ours, and short */
    request.body_length = (int64_t) body.length;
    relay->references++;
    exchange = http_exchange_start(origin, &request, &events, relay);
    http_exchange_write(exchange, text_string(&body), body.length);
    http_exchange_end(exchange);
}

/* --- the agent ------------------------------------------------------------------------------- */

static void flush_output(struct relay *relay)
{
    AUTO(text) struct text frame = TEXT_INIT(FRAME_MAX);

    terminal_frames_flush(&relay->frames, &frame);
    send_frame(relay, &frame);
}

static void take_control(struct relay *relay, const char *bytes, size_t length)
{
    AUTO(text) struct text frame = TEXT_INIT(FRAME_MAX);

    enum terminal_control control = terminal_frames_control(bytes, length, &frame);

    if (control == TERMINAL_CONTROL_EXIT)
        relay->has_exited = true;
    if (control == TERMINAL_CONTROL_READY) { /* before there is a shell, keys would be lost */
        relay->is_ready = true;
        websocket_resume(relay->client);
    }
    if (frame.length)
        flush_output(relay);
    send_frame(relay, &frame);
}

static void agent_said(struct websocket *ws, enum websocket_opcode kind, const char *bytes,
                       size_t length)
{
    struct relay *relay = websocket_http_data(ws);
    AUTO(text) struct text frame = TEXT_INIT(TERMINAL_FRAMES_OUTPUT_MAX(length));

    if (relay->is_over)
        return;
    if (kind == WEBSOCKET_TEXT) {
        take_control(relay, bytes, length);
    } else {
        terminal_frames_output(&relay->frames, bytes, length, &frame);
        send_frame(relay, &frame);
    }
    if (relay->client && websocket_is_full(relay->client))
        websocket_pause(ws);
}

static void agent_took(struct websocket *ws)
{
    struct relay *relay = websocket_http_data(ws);

    if (relay->client && relay->is_ready)
        websocket_resume(relay->client);
}

/* The terminal is no more: by its exit, or because the agent or the sandbox went. */
static void agent_over(struct relay *relay)
{
    if (relay->is_over)
        return;
    flush_output(relay);
    if (relay->has_exited)
        close_client(relay, WEBSOCKET_CODE_NORMAL, "the shell has ended");
    else
        terminal_relay_fail(relay, WEBSOCKET_CODE_INTERNAL, "the terminal was lost");
}

static void agent_closed(struct websocket *ws, unsigned int code, const char *reason, bool clean)
{
    (void) code;
    (void) reason;
    (void) clean;
    agent_over(websocket_http_data(ws));
}

static void agent_released(struct websocket *ws)
{
    struct relay *relay = websocket_http_data(ws);

    relay->agent = NULL;
    agent_over(relay); /* an abort tells nobody else */
    terminal_relay_release(relay);
}

static const struct websocket_events agent_events = {
    .on_message = agent_said,
    .on_drain = agent_took,
    .on_close = agent_closed,
    .on_released = agent_released,
};

static void agent_opened(struct websocket *ws, void *data)
{
    struct relay *relay = data;
    AUTO(text) struct text frame = TEXT_INIT(FRAME_MAX);

    relay->agent = ws;
    relay->was_open = true;
    if (relay->is_over) { /* the client left meanwhile */
        (void) websocket_close(ws, WEBSOCKET_CODE_NORMAL, NULL);
        return;
    }
    terminal_frames_connected(&frame, relay->shell ? relay->shell : USUAL_SHELL, relay->session);
    send_frame(relay, &frame);
}

static void agent_refused(const struct error *error, void *data)
{
    struct relay *relay = data;

    terminal_relay_fail(relay, WEBSOCKET_CODE_INTERNAL, error->message);
    terminal_relay_release(relay);
}

static void terminal_relay_dial(struct relay *relay)
{
    struct error err = ERROR_INIT;
    struct http_origin *origin = agents_origin(relay->api->agents, &relay->sandbox, &err);
    const struct websocket_dial call = {
        .target = relay->target,
        .host = "agent",
        .events = &agent_events,
        .data = relay,
        .on_open = agent_opened,
        .on_failure = agent_refused,
    };

    if (!origin) {
        terminal_relay_fail(relay, WEBSOCKET_CODE_INTERNAL, err.message);
        return;
    }
    relay->references++;
    websocket_connect(origin, &call);
}

static void runs(struct sandbox_use *use, const struct error *failure)
{
    struct relay *relay = CONTAINER_OF(use, struct relay, use);

    if (failure)
        terminal_relay_fail(relay, WEBSOCKET_CODE_POLICY, failure->message);
    else
        terminal_relay_dial(relay);
}

/* --- the client ------------------------------------------------------------------------------ */

static void pass_size(struct relay *relay, const struct terminal_frame *frame)
{
    AUTO(text) struct text message = TEXT_INIT(FRAME_MAX);

    text_format(&message, "{\"type\":\"resize\",\"cols\":%u,\"rows\":%u}", frame->columns,
                frame->rows);
    (void) websocket_send(relay->agent, WEBSOCKET_TEXT, message.data, message.length);
}

static void refuse_frame(struct relay *relay, const struct error *error)
{
    AUTO(text) struct text frame = TEXT_INIT(FRAME_MAX);

    if (websocket_is_full(relay->client))
        return; /* who does not read cannot make us write */
    terminal_frames_error(&frame, error->message);
    send_frame(relay, &frame);
}

static void client_said(struct websocket *ws, enum websocket_opcode kind, const char *bytes,
                        size_t length)
{
    struct relay *relay = websocket_http_data(ws);
    AUTO(terminal_frame) struct terminal_frame frame = {.document = NULL};
    struct error err = ERROR_INIT;

    if (!relay->agent)
        return;
    if (kind != WEBSOCKET_TEXT)
        (void) error_set(&err, ERR_INVALID, 0, "frames are JSON in text messages");
    else
        (void) terminal_frame_read(bytes, length, &frame, &err);
    if (err.code)
        refuse_frame(relay, &err);
    else if (frame.kind == TERMINAL_FRAME_RESIZE)
        pass_size(relay, &frame);
    else if (frame.length)
        (void) websocket_send(relay->agent, WEBSOCKET_BINARY, frame.data, frame.length);
    if (websocket_is_full(relay->agent))
        websocket_pause(ws);
}

static void terminal_relay_client_took(struct websocket *ws)
{
    struct relay *relay = websocket_http_data(ws);

    if (relay->agent)
        websocket_resume(relay->agent);
}

static void client_closed(struct websocket *ws, unsigned int code, const char *reason, bool clean)
{
    struct relay *relay = websocket_http_data(ws);

    (void) code;
    (void) reason;
    (void) clean;
    relay->is_over = true;
    if (relay->agent)
        (void) websocket_close(relay->agent, WEBSOCKET_CODE_NORMAL, NULL);
}

static void client_released(struct websocket *ws)
{
    struct relay *relay = websocket_http_data(ws);

    client_closed(ws, WEBSOCKET_CODE_LOST, "", false); /* an abort tells nobody else */
    relay->client = NULL;
    terminal_relay_release(relay);
}

static const struct websocket_events client_events = {
    .on_message = client_said,
    .on_drain = terminal_relay_client_took,
    .on_close = client_closed,
    .on_released = client_released,
};

/* --- the request ----------------------------------------------------------------------------- */

static void add_parameter(struct text *target, const char *name, const char *value)
{
    if (!value || !value[0])
        return;
    text_format(target, "%c%s=", strchr(text_string(target), '?') ? '&' : '?', name);
    url_encode(target, value, strlen(value));
}

static char *make_target(struct http_request *request, const char *session)
{
    static const char *const passed[] = {"cols", "rows", "shell"};
    struct text target = TEXT_INIT(TARGET_MAX);

    text_append(&target, "/ws/pty");
    add_parameter(&target, "sessionId", session);
    for (size_t i = 0; i < ARRAY_COUNT(passed); i++)
        add_parameter(&target, passed[i], http_request_query(request, passed[i]));
    return text_take(&target);
}

static char *new_session(void)
{
    struct id id = id_new();
    struct text name = TEXT_INIT(FRAME_MAX);

    text_format(&name, "terminal-%s", id.text);
    return text_take(&name);
}

static struct relay *relay_new(struct http_request *request)
{
    const char *session = http_request_query(request, "session");
    const char *shell = http_request_query(request, "shell");
    struct relay *relay = mem_alloc(sizeof(*relay));

    relay->api = api_of(request);
    relay->own_session = !session || !session[0];
    relay->session = relay->own_session ? new_session() : mem_copy_text(session);
    relay->shell = shell && shell[0] ? mem_copy_text(shell) : NULL;
    relay->target = make_target(request, relay->session);
    relay->references = 1;
    return relay;
}

/* The sandbox, when the caller may work in it. */
static struct sandbox *terminal_relay_find(struct http_request *request, struct error *err)
{
    const struct caller *caller = request_caller(request);
    struct sandbox *sandbox =
        sandbox_find(api_of(request)->domain, caller, http_request_parameter(request, "id"), err);

    if (!sandbox || caller_may_enter(caller))
        return sandbox;
    (void) error_set(err, ERR_FORBIDDEN, 0, "this key may look and not change anything");
    return NULL;
}

void terminal_relay(struct http_request *request)
{
    static const struct websocket_options options = {.role = WEBSOCKET_SERVER,
                                                     .ping_interval_ms = PING_INTERVAL_MS};
    struct error missing = ERROR_INIT, err = ERROR_INIT;
    struct sandbox *sandbox = terminal_relay_find(request, &missing);
    struct relay *relay = relay_new(request);

    relay->client = websocket_accept(request, &options, &client_events, relay, &err);
    if (!relay->client) {
        terminal_relay_release(relay);
        http_reply_error(request, &err);
        return;
    }
    if (!sandbox) {
        terminal_relay_fail(relay, WEBSOCKET_CODE_POLICY, missing.message);
        return;
    }
    relay->sandbox = sandbox->id;
    websocket_pause(relay->client); /* until there is a shell to type to */
    sandbox_use_begin(relay->api->domain, sandbox, &relay->use, SANDBOX_USE_START, runs);
}
