#include "agent/port/port_watch.h"

#include <arpa/inet.h>
#include <string.h>

#include "agent/agent.h"
#include "agent/call.h"
#include "agent/port/port_probe.h"
#include "agent/process/process_answer.h"
#include "base/memory.h"
#include "json/json_read.h"
#include "json/json_write.h"

#define DELAY_FIRST_MS 1
#define DELAY_MAX_MS   50
#define INTERVAL_MAX   INT64_C(3600000)
#define PATH_LENGTH    ((size_t) 2048)
#define EVENT_MAX      ((size_t) 2048)

/* Both of them: a server may listen at either. */
enum family { FAMILY_IPV4, FAMILY_IPV6, FAMILIES };

/* Outlives its call by a moment, until its timer is closed. */
struct port_watch {
    struct call *call;
    struct process_watcher watcher;
    bool has_process;
    uint16_t port;
    const char *http; /* in the call's pool; NULL: mode "tcp" */
    int64_t status_min, status_max;
    struct port_probe *probes[FAMILIES]; /* NULL: not asking now */
    struct deadline deadline;            /* the next try */
    uint64_t delay_ms;
    uint64_t delay_max_ms;
};

/* --- events ---------------------------------------------------------------------------------- */

static void begin_event(const struct port_watch *watch, struct json_writer *json,
                        struct text *event, const char *type)
{
    json_document_begin(json, event);
    json_add_text(json, "type", type);
    json_add_integer(json, "port", watch->port);
}

static void port_watch_send_event(struct port_watch *watch, struct json_writer *json,
                                  struct text *event, const char *type)
{
    (void) json_document_end(json); /* every event is short */
    call_event(watch->call, type, text_string(event), event->length);
}

static void send_watching(struct port_watch *watch)
{
    AUTO(text) struct text event = TEXT_INIT(EVENT_MAX);
    struct json_writer json;

    begin_event(watch, &json, &event, "watching");
    port_watch_send_event(watch, &json, &event, "watching");
}

/* --- the end --------------------------------------------------------------------------------- */

static void port_watch_deadline_gone(struct deadline *deadline)
{
    free(CONTAINER_OF(deadline, struct port_watch, deadline));
}

static void port_watch_stop(struct port_watch *watch)
{
    for (size_t i = 0; i < FAMILIES; i++) {
        if (watch->probes[i])
            port_probe_cancel(watch->probes[i]);
    }
    if (watch->has_process)
        process_unwatch(&watch->watcher);
    deadline_close(&watch->deadline, port_watch_deadline_gone);
}

static void port_watch_end(struct port_watch *watch)
{
    struct call *call = watch->call;

    port_watch_stop(watch);
    call_end(call);
}

static void end_ready(struct port_watch *watch, int status)
{
    AUTO(text) struct text event = TEXT_INIT(EVENT_MAX);
    struct json_writer json;

    begin_event(watch, &json, &event, "ready");
    if (watch->http)
        json_add_integer(&json, "statusCode", status);
    port_watch_send_event(watch, &json, &event, "ready");
    port_watch_end(watch);
}

static void end_with_process(struct port_watch *watch, const struct process *process)
{
    AUTO(text) struct text event = TEXT_INIT(EVENT_MAX);
    struct json_writer json;

    begin_event(watch, &json, &event, "process_exited");
    process_add_exit(&json, process);
    port_watch_send_event(watch, &json, &event, "process_exited");
    port_watch_end(watch);
}

static void end_error(struct port_watch *watch, const char *message)
{
    AUTO(text) struct text event = TEXT_INIT(EVENT_MAX);
    struct json_writer json;

    begin_event(watch, &json, &event, "error");
    json_add_text(&json, "error", message);
    port_watch_send_event(watch, &json, &event, "error");
    port_watch_end(watch);
}

static void process_heard(struct process_watcher *watcher, enum process_event event)
{
    if (event == PROCESS_ENDED)
        end_with_process(CONTAINER_OF(watcher, struct port_watch, watcher), watcher->process);
}

static void port_watch_client_left(struct call *call)
{
    port_watch_stop(call->data);
}

/* --- trying ---------------------------------------------------------------------------------- */

static bool is_ready(const struct port_watch *watch, int result)
{
    if (!watch->http)
        return result == 0;
    return result >= watch->status_min && result <= watch->status_max;
}

static void try_later(struct port_watch *watch)
{
    deadline_set(&watch->deadline, watch->delay_ms);
    watch->delay_ms *= 2;
    if (watch->delay_ms > watch->delay_max_ms)
        watch->delay_ms = watch->delay_max_ms;
}

static void probe_done(struct port_probe *probe, void *data, int result)
{
    struct port_watch *watch = data;
    bool waiting = false;

    for (size_t i = 0; i < FAMILIES; i++) {
        if (watch->probes[i] == probe)
            watch->probes[i] = NULL;
        waiting |= watch->probes[i] != NULL;
    }
    if (is_ready(watch, result))
        end_ready(watch, result);
    else if (!waiting)
        try_later(watch);
}

static struct sys_address local_address(enum family family, uint16_t port)
{
    struct sys_address address = {.length = 0};

    if (family == FAMILY_IPV4) {
        address.length = sizeof(address.ipv4);
        address.ipv4 = (struct sockaddr_in){.sin_family = AF_INET,
                                            .sin_port = htons(port),
                                            .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    } else {
        address.length = sizeof(address.ipv6);
        address.ipv6 = (struct sockaddr_in6){
            .sin6_family = AF_INET6, .sin6_port = htons(port), .sin6_addr = IN6ADDR_LOOPBACK_INIT};
    }
    return address;
}

static void try_now(struct deadline *deadline)
{
    struct port_watch *watch = CONTAINER_OF(deadline, struct port_watch, deadline);
    struct port_probe_request request = {
        .http = watch->http,
        .http_length = watch->http ? strlen(watch->http) : 0,
        .on_done = probe_done,
        .data = watch,
    };
    bool waiting = false;

    for (enum family family = 0; family < FAMILIES; family++) {
        request.address = local_address(family, watch->port);
        waiting |=
            port_probe_start(&watch->call->agent->loop, &request, &watch->probes[family]) == 0;
    }
    if (!waiting)
        try_later(watch);
}

/* --- the request ----------------------------------------------------------------------------- */

/* What may stand in a request line as it is. */
static bool is_path(const char *path)
{
    if (path[0] != '/')
        return false;
    for (const char *at = path; *at; at++) {
        if ((unsigned char) *at <= ' ' || *at == 0x7f)
            return false;
    }
    return true;
}

static int read_mode(struct port_watch *watch, const struct json_place *root,
                     struct api_error *error)
{
    struct error err = ERROR_INIT;
    const char *mode = "http", *path = "/";

    if (json_field_text(root, "mode", JSON_OPTIONAL, 16, &mode, &err) < 0)
        return api_error_field(error, "mode", err.message);
    if (json_field_text(root, "path", JSON_OPTIONAL, PATH_LENGTH, &path, &err) < 0)
        return api_error_field(error, "path", err.message);
    if (strcmp(mode, "tcp") == 0)
        return 0;
    if (strcmp(mode, "http") != 0)
        return api_error_field(error, "mode", "must be http or tcp");
    if (!is_path(path))
        return api_error_field(error, "path", "must begin with / and hold no spaces");
    watch->http = pool_format(watch->call->pool,
                              "GET %s HTTP/1.1\r\nHost: localhost:%u\r\nAccept: */*\r\n"
                              "User-Agent: burrow-agent\r\nConnection: close\r\n\r\n",
                              path, watch->port);
    return 0;
}

static int read_request(struct port_watch *watch, const char **ret_process, struct api_error *error)
{
    struct error err = ERROR_INIT;
    struct json_place root;
    int64_t port = 0, interval = DELAY_MAX_MS;

    watch->status_min = 200;
    watch->status_max = 399;
    if (json_root_object(watch->call->arguments, &root, &err) < 0)
        return api_error_field(error, "body", err.message);
    if (json_field_integer(&root, "port", JSON_REQUIRED, 1, 65535, &port, &err) < 0)
        return api_error_field(error, "port", err.message);
    if (json_field_integer(&root, "interval", JSON_OPTIONAL, 1, INTERVAL_MAX, &interval, &err) < 0)
        return api_error_field(error, "interval", err.message);
    if (json_field_integer(&root, "statusMin", JSON_OPTIONAL, 100, 999, &watch->status_min, &err) <
        0)
        return api_error_field(error, "statusMin", err.message);
    if (json_field_integer(&root, "statusMax", JSON_OPTIONAL, 100, 999, &watch->status_max, &err) <
        0)
        return api_error_field(error, "statusMax", err.message);
    if (json_field_text(&root, "processId", JSON_OPTIONAL, PROCESS_ID_MAX, ret_process, &err) < 0)
        return api_error_field(error, "processId", err.message);
    watch->port = (uint16_t) port;
    watch->delay_ms = DELAY_FIRST_MS;
    watch->delay_max_ms = interval < DELAY_MAX_MS ? (uint64_t) interval : DELAY_MAX_MS;
    return read_mode(watch, &root, error);
}

static void port_watch_begin(struct port_watch *watch, const char *process_id)
{
    struct process *process =
        process_id ? process_find(watch->call->agent->processes, process_id) : NULL;

    watch->call->data = watch;
    watch->call->on_gone = port_watch_client_left;
    call_begin_events(watch->call);
    send_watching(watch);
    if (process_id && !process) {
        end_error(watch, "Process not found");
    } else if (process && process_has_ended(process)) {
        end_with_process(watch, process);
    } else {
        watch->has_process = process != NULL;
        watch->watcher.on_event = process_heard;
        if (process)
            process_watch(process, &watch->watcher);
        try_now(&watch->deadline);
    }
}

static void watch_port(struct call *call)
{
    AUTO(api_error) struct api_error error = API_ERROR_INIT;
    struct port_watch *watch = mem_alloc(sizeof(*watch));
    const char *process_id = NULL;

    watch->call = call;
    if (read_request(watch, &process_id, &error) < 0) {
        free(watch);
        call_fail(call, &error);
        return;
    }
    deadline_init(&call->agent->loop, &watch->deadline, try_now);
    port_watch_begin(watch, process_id);
}

/* --- the table ------------------------------------------------------------------------------- */

static const struct operation rows[] = {
    {.method = "POST",
     .path = "/api/port-watch",
     .rpc = "ports.watchPort",
     .parameters = {OPERATION_FIELDS},
     .run = watch_port,
     .name = "port.watch",
     .summary = "Wait until something answers at a port, as events",
     .has_events = true},
    {.method = "GET",
     .path = "/burrow/ports",
     .run = port_list,
     .name = "port.list",
     .summary = "Listening TCP ports and the processes behind them"},
};

const struct operation_table port_operations = {rows, ARRAY_COUNT(rows)};
