/* burrow gc: take away what is stored and nobody names any more. */
#include <stdio.h>

#include "cli/verb/verb_client.h"
#include "cli/verb/verbs.h"
#include "json/json_read.h"

static const struct verb_option options[] = {
    {"grace", 0, "TIME", "leave what is younger than that; 1h unless given", false},
    {NULL, 0, NULL, NULL, false},
};

static int gc_collect(struct verb_call *call, struct client *client, struct error *err)
{
    AUTO(client_reply) struct client_reply reply = CLIENT_REPLY_INIT;
    AUTO(json) json_t *body = json_object();

    verb_set_text(body, "grace", verb_value(call, "grace"));
    if (client_call(client, "POST", CLIENT_PREFIX "/gc", body, &reply, err) < 0)
        return -1;
    if (verb_flag(call, "json"))
        verb_print_json(reply.json);
    else
        (void) printf("%lld layers, %lld objects of backups and %lld snapshots taken away, %lld "
                      "bytes; %lld layers kept\n",
                      verb_number(reply.json, "layers"), verb_number(reply.json, "objects"),
                      verb_number(reply.json, "snapshots"), verb_number(reply.json, "bytes"),
                      verb_number(reply.json, "kept"));
    return 0;
}

const struct verb verb_gc = {
    .name = "gc",
    .summary = "Take away what is stored and nobody names any more",
    .arguments = "",
    .options = options,
    .details =
        "Layers of disks, objects of backups, snapshots without a row. The daemon does it "
        "by itself, see\n`--gc-every` of `burrow serve`. Nothing that a sandbox, snapshot or "
        "backup needs is ever taken\naway.",
    .work = gc_collect,
};
