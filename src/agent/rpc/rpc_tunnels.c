#include "agent/call.h"
#include "agent/rpc/rpc.h"
#include "base/auto.h"
#include "json/json_write.h"

#define BODY_MAX ((size_t) 256)

static void refuse_tunnel(struct call *call)
{
    call_fail_text(call, API_PORT_OPERATION_ERROR,
                   "Tunnels are made by the control plane: expose the port there");
}

static void list_tunnels(struct call *call)
{
    AUTO(text) struct text body = TEXT_INIT(BODY_MAX);
    struct json_writer json;

    call_begin_success(&json, &body);
    json_begin_array_at(&json, "tunnels");
    json_end_array(&json);
    call_finish_success(call, &json, &body);
}

static json_t *list_result(json_t *reply)
{
    return json_incref(json_object_get(reply, "tunnels"));
}

/* What is not there needs no end. */
static void end_tunnel(struct call *call)
{
    AUTO(text) struct text body = TEXT_INIT(BODY_MAX);
    struct json_writer json;

    call_begin_success(&json, &body);
    json_add_boolean(&json, "stopped", false);
    call_finish_success(call, &json, &body);
}

static json_t *destroy_result(json_t *reply)
{
    (void) reply;
    return json_pack("{s:[s]}", OPERATION_RAW, "undefined");
}

static json_t *stop_result(json_t *reply)
{
    return json_pack("{s:O}", "stopped", json_object_get(reply, "stopped"));
}

static const struct operation rows[] = {
    {.rpc = "tunnels.runQuickTunnel",
     .parameters = {"id", "port"},
     .run = refuse_tunnel,
     .name = "tunnel.run",
     .summary = "Not here: the control plane makes tunnels"},
    {.rpc = "tunnels.runNamedTunnel",
     .parameters = {"id", "token", "port"},
     .run = refuse_tunnel,
     .name = "tunnel.run",
     .summary = "The same"},
    {.rpc = "tunnels.ensureTunnelRun",
     .parameters = {OPERATION_FIELDS},
     .run = refuse_tunnel,
     .name = "tunnel.run",
     .summary = "The same"},
    {.rpc = "tunnels.destroyTunnel",
     .parameters = {"id"},
     .run = end_tunnel,
     .rpc_result = destroy_result,
     .name = "tunnel.destroy",
     .summary = "There is none to destroy"},
    {.rpc = "tunnels.stopTunnelRun",
     .parameters = {OPERATION_FIELDS},
     .run = end_tunnel,
     .rpc_result = stop_result,
     .name = "tunnel.stop",
     .summary = "There is none to stop"},
    {.rpc = "tunnels.listTunnels",
     .run = list_tunnels,
     .rpc_result = list_result,
     .name = "tunnel.list",
     .summary = "There is none"},
};

const struct operation_table rpc_tunnels_operations = {rows, ARRAY_COUNT(rows)};
