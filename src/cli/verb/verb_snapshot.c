/* burrow snapshot: disks of sandboxes, kept as they were. */
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "cli/client/client_sandbox.h"
#include "cli/verb/verb_client.h"
#include "cli/verb/verbs.h"
#include "json/json_read.h"

static const struct verb_option create_options[] = {
    {"name", 0, "TEXT", "to find it by; yours alone", false},
    VERB_FREEZE_OPTION,
    {"ttl", 0, "TIME", "delete it after so long: 24h, 7d", false},
    {NULL, 0, NULL, NULL, false},
};

static const struct verb_option list_options[] = {
    {"quiet", 'q', NULL, "print only ids", false},
    {NULL, 0, NULL, NULL, false},
};

static const struct verb_column columns[] = {
    {"NAME", "name", verb_put_text},     {"SANDBOX", "sandboxId", verb_put_text},
    {"REASON", "reason", verb_put_text}, {"STATE", "state", verb_put_text},
    {"SIZE", "size", verb_put_size},     {"CREATED", "createdAt", verb_put_age},
    {"ID", "id", verb_put_text},         VERB_COLUMNS_END,
};

/* --- create ---------------------------------------------------------------------------------- */

static int snapshot_create(struct verb_call *call, struct client *client, struct error *err)
{
    AUTO(client_reply) struct client_reply reply = CLIENT_REPLY_INIT;
    AUTO(json) json_t *body = json_object();

    verb_set_text(body, "name", verb_value(call, "name"));
    verb_set_text(body, "ttl", verb_value(call, "ttl"));
    verb_set_freeze(call, body);
    if (client_sandbox_call(client, "POST", call->words[0], "/snapshots", body, &reply, err) < 0)
        return -1;
    return verb_print_field(call, reply.json, "id");
}

/* --- ls -------------------------------------------------------------------------------------- */

static int list_snapshots(struct verb_call *call, struct client *client, struct error *err)
{
    const char *path = call->word_count ? client_sandbox_path(client, call->words[0], "/snapshots")
                                        : CLIENT_PREFIX "/snapshots";
    AUTO(json) json_t *all = client_list(client, path, "snapshots", err);

    if (!all) {
        if (call->word_count && err->code == ERR_NOT_FOUND)
            client_sandbox_explain(client, call->words[0], err);
        return -1;
    }
    if (verb_flag(call, "quiet") && !verb_flag(call, "json"))
        return verb_print_lines(all, "id");
    return verb_print_list(call, all, columns);
}

/* --- rm -------------------------------------------------------------------------------------- */

static int remove_all(struct verb_call *call, struct client *client, struct error *err)
{
    (void) err; /* each failure was told already */
    return verb_remove_objects(call, client, "snapshots");
}

/* --- the verbs ------------------------------------------------------------------------------- */

const struct verb verb_snapshot_create = {
    .name = "snapshot create",
    .summary = "Keep the disk of a sandbox as it is now, and print the snapshot's id",
    .arguments = "NAME",
    .options = create_options,
    .details = "A running sandbox stands still for that moment. A snapshot stays when its sandbox "
               "is destroyed.",
    .examples = "  burrow snapshot create demo --name before-upgrade",
    .words_min = 1,
    .words_max = 1,
    .takes_sandboxes = true,
    .work = snapshot_create,
};

const struct verb verb_snapshot_list = {
    .name = "snapshot ls",
    .summary = "List snapshots, of one sandbox or all, the newest first",
    .arguments = "[NAME]",
    .options = list_options,
    .words_max = 1,
    .takes_sandboxes = true,
    .work = list_snapshots,
};

const struct verb verb_snapshot_remove = {
    .name = "snapshot rm",
    .summary = "Delete snapshots; sandboxes made from them stay",
    .arguments = "SNAPSHOT...",
    .examples = "  burrow snapshot rm before-upgrade",
    .words_min = 1,
    .words_max = SIZE_MAX,
    .work = remove_all,
};
