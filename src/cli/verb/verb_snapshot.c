/* burrow snapshot: disks of sandboxes, kept as they were. */
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/number.h"
#include "cli/client/client_sandbox.h"
#include "cli/grid.h"
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

static const char *const titles[] = {"NAME", "SANDBOX", "REASON", "STATE",
                                     "SIZE", "CREATED", "ID",     NULL};

/* --- create ---------------------------------------------------------------------------------- */

static int create(struct verb_call *call, struct client *client, struct error *err)
{
    AUTO(client_reply) struct client_reply reply = CLIENT_REPLY_INIT;
    AUTO(json) json_t *body = json_object();
    AUTO(free) char *text = NULL;

    verb_set_text(body, "name", verb_value(call, "name"));
    verb_set_text(body, "ttl", verb_value(call, "ttl"));
    verb_set_freeze(call, body);
    text = json_dumps(body, JSON_COMPACT);
    if (!text)
        return error_set(err, ERR_INVALID, 0, "the name is not UTF-8");
    if (client_sandbox_call(client, "POST", call->words[0], "/snapshots", text, &reply, err) < 0)
        return -1;
    if (verb_flag(call, "json"))
        verb_print_json(reply.json);
    else
        (void) puts(verb_field(reply.json, "id"));
    return 0;
}

/* --- ls -------------------------------------------------------------------------------------- */

static void print_grid(json_t *snapshots)
{
    AUTO(grid) struct grid grid = GRID_INIT;
    AUTO(text) struct text out = TEXT_INIT(GRID_TEXT_MAX);
    int64_t now = clock_wall_ms(clock_system());
    char size[NUMBER_TEXT_SIZE];
    json_t *one;
    size_t i;

    grid_titles(&grid, titles);
    json_array_foreach (snapshots, i, one) {
        number_format_size((uint64_t) json_integer_value(json_object_get(one, "size")), size);
        grid_put(&grid, verb_field(one, "name"));
        grid_put(&grid, verb_field(one, "sandboxId"));
        grid_put(&grid, verb_field(one, "reason"));
        grid_put(&grid, verb_field(one, "state"));
        grid_put(&grid, size);
        grid_put(&grid, grid_age(&grid, verb_field(one, "createdAt"), now));
        grid_put(&grid, verb_field(one, "id"));
    }
    grid_write(&grid, &out);
    verb_print(&out);
}

static void print_ids(json_t *snapshots)
{
    AUTO(text) struct text out = TEXT_INIT(GRID_TEXT_MAX);
    json_t *one;
    size_t i;

    json_array_foreach (snapshots, i, one) {
        text_format(&out, "%s\n", verb_field(one, "id"));
    }
    verb_print(&out);
}

static int list(struct verb_call *call, struct client *client, struct error *err)
{
    const char *path = call->word_count ? client_sandbox_path(client, call->words[0], "/snapshots")
                                        : CLIENT_PREFIX "/snapshots";
    AUTO(json) json_t *all = client_list(client, path, "snapshots", err);

    if (!all) {
        if (call->word_count && err->code == ERR_NOT_FOUND)
            client_sandbox_explain(client, call->words[0], err);
        return -1;
    }
    if (verb_flag(call, "json"))
        verb_print_json(all);
    else if (verb_flag(call, "quiet"))
        print_ids(all);
    else
        print_grid(all);
    return 0;
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
    .work = create,
};

const struct verb verb_snapshot_list = {
    .name = "snapshot ls",
    .summary = "List snapshots, of one sandbox or all, the newest first",
    .arguments = "[NAME]",
    .options = list_options,
    .words_max = 1,
    .takes_sandboxes = true,
    .work = list,
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
