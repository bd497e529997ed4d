/* A daemon with nothing but a provider in it, for tests of the launcher and of the provider
 * `local`: what it knows it has from the provider, so that nothing of its own survives its death.
 *
 *     burrow-launcher serve ... -- /.../provider_demo LISTEN EXITS [STOCK]
 *
 * LISTEN is "unix:PATH" or ADDRESS:PORT, where it serves once the provider is open; every exit it
 * is told becomes a line "ID KIND VALUE" at the end of the file EXITS. Answers are JSON; failures
 * are
 * {"code":..., "message":...}.
 *
 *     GET    /status                      {"pid":N, "ready":N}: ready sandboxes in stock
 *     GET    /sandboxes                   [{"id":..., "state":...}]
 *     POST   /sandboxes?id=&memory=&disk=&pids=&cpu=&network=nat    all may be left out; with an id
 *                                         it is exactly this one, never one in stock
 *     POST   /sandboxes/ID/start|stop|freeze|thaw
 *     DELETE /sandboxes/ID
 *     GET    /sandboxes/ID/port/N         what a listener inside says before it closes
 *     *      /sandboxes/ID/agent/PATH     the agent's answer */
#include "provider_demo.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/auto.h"
#include "base/memory.h"
#include "base/number.h"
#include "json/json_write.h"
#include "provider/provider_local.h"

#define REPLY_MAX      ((size_t) 16 << 20)
#define SIZE_MAX_ASKED (UINT64_C(1) << 50)

static const char *const state_texts[] = {
    [RUN_STATE_RUNNING] = "running",   [RUN_STATE_FROZEN] = "frozen",
    [RUN_STATE_STOPPING] = "stopping", [RUN_STATE_STOPPED] = "stopped",
    [RUN_STATE_BROKEN] = "broken",
};

static const char *const ending_texts[] = {
    [ENDED_UNKNOWN] = "unknown",
    [ENDED_STATUS] = "status",
    [ENDED_SIGNAL] = "signal",
    [ENDED_OOM] = "oom",
};

/* --- requests that wait ---------------------------------------------------------------------- */

static void client_left(struct http_request *request)
{
    struct asked *asked = request->data;

    asked->request = NULL;
}

struct asked *asked_new(struct http_request *request)
{
    struct asked *asked = mem_alloc(sizeof(*asked));

    *asked = (struct asked){.request = request, .demo = request->context};
    request->data = asked;
    request->on_gone = client_left;
    return asked;
}

struct http_request *asked_take(struct asked *asked)
{
    struct http_request *request = asked->request;

    free(asked);
    return request;
}

int path_id(struct http_request *request, struct id *ret_id)
{
    const char *text = http_request_parameter(request, "id");
    struct error err = ERROR_INIT;

    if (id_is_valid(text)) {
        memcpy(ret_id->text, text, ID_SIZE);
        return 0;
    }
    (void) error_set(&err, ERR_INVALID, 0, "not an id: %s", text);
    http_reply_error(request, &err);
    return -1;
}

static void encode_error(const struct http_request *request, const struct error *error,
                         struct text *body, const char **ret_content_type)
{
    struct json_writer json;

    (void) request;
    json_writer_init_text(&json, body);
    json_begin_object(&json);
    json_add_text(&json, "code", error_code_text(error->code));
    json_add_text(&json, "message", error->message);
    json_end_object(&json);
    (void) json_writer_finish(&json);
    *ret_content_type = "application/json";
}

static void put_sandbox(struct json_writer *json, const struct provider_sandbox *sandbox)
{
    json_begin_object(json);
    json_add_text(json, "id", sandbox->id.text);
    json_add_text(json, "state", state_texts[sandbox->state]);
    json_end_object(json);
}

static void reply_json(struct http_request *request, struct json_writer *json,
                       const struct text *body)
{
    struct error err = ERROR_INIT;

    if (json_writer_finish(json) == 0) {
        http_reply(request, 200, "application/json", body->data, body->length);
        return;
    }
    (void) error_set(&err, ERR_INTERNAL, 0, "an answer that is too long");
    http_reply_error(request, &err);
}

/* --- answers --------------------------------------------------------------------------------- */

static void answer_done(void *context, const struct error *failure)
{
    struct http_request *request = asked_take(context);

    if (!request)
        return;
    if (failure)
        http_reply_error(request, failure);
    else
        http_reply_text(request, 200, "application/json", "{}");
}

static void answer_sandbox(void *context, const struct error *failure,
                           const struct provider_sandbox *sandbox)
{
    struct http_request *request = asked_take(context);
    AUTO(text) struct text body = TEXT_INIT(REPLY_MAX);
    struct json_writer json;

    if (!request)
        return;
    if (failure) {
        http_reply_error(request, failure);
        return;
    }
    json_writer_init_text(&json, &body);
    put_sandbox(&json, sandbox);
    reply_json(request, &json, &body);
}

static void answer_list(void *context, const struct error *failure,
                        const struct provider_sandbox *sandboxes, size_t count)
{
    struct http_request *request = asked_take(context);
    AUTO(text) struct text body = TEXT_INIT(REPLY_MAX);
    struct json_writer json;

    if (!request)
        return;
    if (failure) {
        http_reply_error(request, failure);
        return;
    }
    json_writer_init_text(&json, &body);
    json_begin_array(&json);
    for (size_t i = 0; i < count; i++)
        put_sandbox(&json, &sandboxes[i]);
    json_end_array(&json);
    reply_json(request, &json, &body);
}

/* --- what can be asked ----------------------------------------------------------------------- */

static void get_status(struct http_request *request)
{
    struct demo *demo = request->context;
    AUTO(text) struct text body = TEXT_INIT(REPLY_MAX);
    struct json_writer json;

    json_writer_init_text(&json, &body);
    json_begin_object(&json);
    json_add_integer(&json, "pid", getpid());
    json_add_integer(&json, "ready", (int64_t) provider_local_ready(demo->provider));
    json_end_object(&json);
    reply_json(request, &json, &body);
}

static void get_sandboxes(struct http_request *request)
{
    struct demo *demo = request->context;

    provider_list(demo->provider, answer_list, asked_new(request));
}

/* A size in the query, or `otherwise`. */
static uint64_t query_size(struct http_request *request, const char *name, uint64_t otherwise)
{
    const char *text = http_request_query(request, name);
    uint64_t size;

    return text && number_parse_size(text, SIZE_MAX_ASKED, &size) == 0 ? size : otherwise;
}

static struct provider_spec read_spec(struct http_request *request)
{
    const char *network = http_request_query(request, "network");
    const char *id = http_request_query(request, "id");
    struct provider_spec spec = {
        .id = id_new(),
        .hostname = "box",
        .limits = {.memory_bytes = query_size(request, "memory", UINT64_C(256) << 20),
                   .disk_bytes = query_size(request, "disk", UINT64_C(64) << 20),
                   .pids = (uint32_t) query_size(request, "pids", 64),
                   .cpu_millis = (uint32_t) query_size(request, "cpu", 2000)},
        .network = network && strcmp(network, "nat") == 0 ? NETWORK_NAT : NETWORK_NONE,
    };

    if (id && id_is_valid(id)) {
        memcpy(spec.id.text, id, ID_SIZE);
        spec.keep_id = true;
    }
    return spec;
}

static void post_sandbox(struct http_request *request)
{
    struct demo *demo = request->context;
    struct provider_spec spec = read_spec(request);

    provider_create(demo->provider, &spec, answer_sandbox, asked_new(request));
}

static void start_sandbox(struct http_request *request)
{
    struct demo *demo = request->context;
    struct provider_spec spec = read_spec(request);

    if (path_id(request, &spec.id) == 0)
        provider_start(demo->provider, &spec, answer_sandbox, asked_new(request));
}

typedef void simple_call(struct provider *provider, const struct id *id, provider_done *done,
                         void *context);

static void call(struct http_request *request, simple_call *what)
{
    struct demo *demo = request->context;
    struct id id;

    if (path_id(request, &id) == 0)
        what(demo->provider, &id, answer_done, asked_new(request));
}

static void stop_sandbox(struct http_request *request)
{
    call(request, provider_stop);
}

static void freeze_sandbox(struct http_request *request)
{
    call(request, provider_freeze);
}

static void thaw_sandbox(struct http_request *request)
{
    call(request, provider_thaw);
}

static void delete_sandbox(struct http_request *request)
{
    struct id id;

    if (path_id(request, &id) < 0)
        return;
    forget_agent(request->context, &id);
    call(request, provider_destroy);
}

static const struct http_route routes[] = {
    {"GET", "/status", get_status, .summary = "Who we are"},
    {"GET", "/sandboxes", get_sandboxes, .summary = "All of them"},
    {"POST", "/sandboxes", post_sandbox, .summary = "A new one"},
    {"POST", "/sandboxes/{id}/start", start_sandbox, .summary = "On the disk it has"},
    {"POST", "/sandboxes/{id}/stop", stop_sandbox, .summary = "Keep its disk"},
    {"POST", "/sandboxes/{id}/freeze", freeze_sandbox, .summary = "Nothing moves"},
    {"POST", "/sandboxes/{id}/thaw", thaw_sandbox, .summary = "Everything moves"},
    {"DELETE", "/sandboxes/{id}", delete_sandbox, .summary = "End it, disk and all"},
    {"GET", "/sandboxes/{id}/port/{port}", get_port, .summary = "Listen to a port inside"},
    {"GET", "/sandboxes/{id}/agent/{path...}", ask_agent, .summary = "Ask its agent"},
    {"POST", "/sandboxes/{id}/agent/{path...}", ask_agent, .body_limit = HTTP_BODY_UNLIMITED},
};

/* --- the provider ---------------------------------------------------------------------------- */

/* Without ceremony: the sandboxes are not ours to care for, and nothing else is. */
_Noreturn static void give_up(const char *what, const struct error *why)
{
    (void) fprintf(stderr, "provider_demo: %s: %s\n", what, why->message);
    _exit(1);
}

static void exited(void *context, const struct id *id, const struct ending *ending)
{
    struct demo *demo = context;

    (void) dprintf(demo->exits, "%s %s %d\n", id->text, ending_texts[ending->kind], ending->value);
    forget_agent(demo, id);
}

static void lost(void *context, const struct error *reason)
{
    (void) context;
    give_up("the launcher is lost", reason);
}

static void opened(void *context, const struct error *failure)
{
    struct demo *demo = context;
    struct error err = ERROR_INIT;

    if (failure)
        give_up("open the provider", failure);
    if (http_server_listen(demo->server, demo->listen, NULL, &err) < 0)
        give_up("listen", &err);
}

static void open_provider(struct demo *demo, int64_t stock)
{
    const struct provider_watcher watcher = {.exited = exited, .lost = lost, .context = demo};
    struct provider_local_options options = {
        .loop = &demo->loop,
        .log = demo->log,
        .agents = getenv("BURROW_AGENTS"),
        .stock = (size_t) stock,
    };
    const char *descriptor = getenv("BURROW_LAUNCHER_FD");
    struct error err = ERROR_INIT;
    int64_t fd = -1;

    if (!options.agents || !descriptor || number_parse(descriptor, 3, 1024, &fd) < 0) {
        (void) error_set(&err, ERR_INVALID, 0, "not started by a launcher");
        give_up("start", &err);
    }
    options.conversation = (int) fd;
    demo->provider = provider_local_new(&options, &err);
    if (!demo->provider)
        give_up("make the provider", &err);
    provider_open(demo->provider, &watcher, opened, demo);
}

/* --- main ------------------------------------------------------------------------------------ */

static void stop_requested(uv_signal_t *handle, int number)
{
    (void) handle;
    (void) number;
    _exit(0);
}

int main(int argc, char **argv)
{
    struct demo demo = {0};
    struct http_mount mount = {
        .name = "demo",
        .routes = routes,
        .route_count = ARRAY_COUNT(routes),
        .context = &demo,
        .encode_error = encode_error,
    };
    struct http_server_options options = HTTP_SERVER_OPTIONS_DEFAULT;
    AUTO(http_router) struct http_router *router = http_router_new();
    struct error err = ERROR_INIT;
    int64_t stock = 0;

    if (argc < 3 || argc > 4 ||
        (argc == 4 && number_parse(argv[3], 0, PROVIDER_LOCAL_STOCK_MAX, &stock) < 0)) {
        (void) fprintf(stderr, "usage: provider_demo LISTEN EXITS [STOCK]\n");
        return 2;
    }
    (void) signal(SIGPIPE, SIG_IGN);
    demo.log = log_new(STDERR_FILENO, LOG_FORMAT_AUTO, LOG_LEVEL_INFO, clock_system());
    demo.listen = argv[1];
    demo.exits = open(argv[2], O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
    list_init(&demo.agents);
    options.router = router;
    options.clock = clock_system();
    if (demo.exits < 0 || http_router_mount(router, &mount, &err) < 0 ||
        loop_init(&demo.loop, demo.log) < 0)
        give_up("start", &err);
    demo.server = http_server_new(&demo.loop, &options);
    (void) uv_signal_init(&demo.loop.uv, &demo.stop);
    (void) uv_signal_start(&demo.stop, stop_requested, SIGTERM);
    open_provider(&demo, stock);
    loop_run(&demo.loop);
    return 1;
}
