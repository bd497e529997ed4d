/* burrow ls: which sandboxes there are. */
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "cli/client/client_sandbox.h"
#include "cli/grid.h"
#include "cli/verb/verb_client.h"
#include "cli/verb/verbs.h"
#include "json/json_read.h"
#include "net/url.h"

static const struct verb_option options[] = {
    {"quiet", 'q', NULL, "print only ids", false},
    {"names", 0, NULL, "print only names, or ids where there is none", false},
    {"status", 0, "STATUS", "only those: running, sleeping, stopped, ...", false},
    {"label", 'l', "NAME[=TEXT]", "only those with this label", false},
    {"prefix", 0, "TEXT", "only those whose name begins so", false},
    {"owner", 0, "ID", "only those of that user, for administrators", false},
    {NULL, 0, NULL, NULL, false},
};

static const char *const titles[] = {"NAME",   "STATUS", "IMAGE", "CREATED",
                                     "ACTIVE", "ID",     "OWNER", NULL};
/* The last column is for administrators, who see several. */
static const char *const titles_of_one_owner[] = {"NAME",   "STATUS", "IMAGE", "CREATED",
                                                  "ACTIVE", "ID",     NULL};

static const char *query_of(struct client *client, const struct verb_call *call)
{
    static const char *const names[] = {"status", "label", "prefix", "owner"};
    AUTO(text) struct text query = TEXT_INIT(URL_LENGTH_MAX);

    for (size_t i = 0; i < ARRAY_COUNT(names); i++) {
        const char *value = verb_value(call, names[i]);

        if (!value)
            continue;
        text_format(&query, "&%s=", names[i]);
        url_encode(&query, value, strlen(value));
    }
    return pool_copy_text(&client->pool, text_string(&query));
}

static bool has_several_owners(json_t *sandboxes)
{
    const char *first = verb_field(json_array_get(sandboxes, 0), "owner"), *owner;
    json_t *one;
    size_t i;

    json_array_foreach (sandboxes, i, one) {
        owner = verb_field(one, "owner");
        if (first && owner && strcmp(first, owner) != 0)
            return true;
    }
    return false;
}

static void print_grid(json_t *sandboxes)
{
    bool shows_owner = has_several_owners(sandboxes);
    AUTO(grid) struct grid grid = GRID_INIT;
    AUTO(text) struct text out = TEXT_INIT(GRID_TEXT_MAX);
    int64_t now = clock_wall_ms(clock_system());
    json_t *one;
    size_t i;

    grid_titles(&grid, shows_owner ? titles : titles_of_one_owner);
    json_array_foreach (sandboxes, i, one) {
        grid_put(&grid, verb_field(one, "name"));
        grid_put(&grid, verb_field(one, "status"));
        grid_put(&grid, verb_field(one, "image"));
        grid_put(&grid, grid_age(&grid, verb_field(one, "createdAt"), now));
        grid_put(&grid, grid_age(&grid, verb_field(one, "activeAt"), now));
        grid_put(&grid, verb_field(one, "id"));
        if (shows_owner)
            grid_put(&grid, verb_field(one, "owner"));
    }
    grid_write(&grid, &out);
    verb_print(&out);
}

static void print_one_field(json_t *sandboxes, bool wants_names)
{
    AUTO(text) struct text out = TEXT_INIT(GRID_TEXT_MAX);
    json_t *one;
    size_t i;

    json_array_foreach (sandboxes, i, one) {
        const char *name = wants_names ? verb_field(one, "name") : NULL;

        text_format(&out, "%s\n", name ? name : verb_field(one, "id"));
    }
    verb_print(&out);
}

static int list(struct verb_call *call, struct client *client, struct error *err)
{
    AUTO(json) json_t *all = client_sandbox_list(client, query_of(client, call), err);

    if (!all)
        return -1;
    if (verb_flag(call, "json"))
        verb_print_json(all);
    else if (verb_flag(call, "quiet") || verb_flag(call, "names"))
        print_one_field(all, verb_flag(call, "names"));
    else
        print_grid(all);
    return 0;
}

const struct verb verb_list = {
    .name = "ls",
    .summary = "List sandboxes, the newest first",
    .arguments = "",
    .options = options,
    .examples = "  burrow ls --status sleeping\n  burrow rm $(burrow ls -q --label team=blue)",
    .work = list,
};
