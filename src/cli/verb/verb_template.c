/* burrow template: what new sandboxes are made from, by name. */
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "cli/client/client_object.h"
#include "cli/grid.h"
#include "cli/verb/verb_client.h"
#include "cli/verb/verb_spec.h"
#include "cli/verb/verbs.h"
#include "json/json_read.h"

static const struct verb_option set_options[] = {
    {"snapshot", 0, "SNAPSHOT", "begin with this disk", false},
    VERB_SPEC_OPTIONS,
    {NULL, 0, NULL, NULL, false},
};

static const char *const titles[] = {"NAME", "IMAGE", "SNAPSHOT", "UPDATED", NULL};

static int set(struct verb_call *call, struct client *client, struct error *err)
{
    AUTO(client_reply) struct client_reply reply = CLIENT_REPLY_INIT;
    AUTO(json) json_t *body = json_object();
    AUTO(free) char *text = NULL;

    verb_set_text(body, "snapshot", verb_value(call, "snapshot"));
    if (verb_add_spec(call, body, err) < 0)
        return -1;
    text = json_dumps(body, JSON_COMPACT);
    if (!text)
        return error_set(err, ERR_INVALID, 0, "what was asked for is not UTF-8");
    if (client_call(client, "PUT", client_object_path(client, "templates", call->words[0], ""),
                    text, &reply, err) < 0)
        return -1;
    if (verb_flag(call, "json"))
        verb_print_json(reply.json);
    else
        (void) puts(call->words[0]);
    return 0;
}

static void print_grid(json_t *templates)
{
    AUTO(grid) struct grid grid = GRID_INIT;
    AUTO(text) struct text out = TEXT_INIT(GRID_TEXT_MAX);
    int64_t now = clock_wall_ms(clock_system());
    json_t *one;
    size_t i;

    grid_titles(&grid, titles);
    json_array_foreach (templates, i, one) {
        grid_put(&grid, verb_field(one, "name"));
        grid_put(&grid, verb_field(one, "image"));
        grid_put(&grid, verb_field(one, "snapshot"));
        grid_put(&grid, grid_age(&grid, verb_field(one, "updatedAt"), now));
    }
    grid_write(&grid, &out);
    verb_print(&out);
}

static int list(struct verb_call *call, struct client *client, struct error *err)
{
    AUTO(client_reply) struct client_reply reply = CLIENT_REPLY_INIT;
    json_t *templates;

    if (client_call(client, "GET", CLIENT_PREFIX "/templates", NULL, &reply, err) < 0)
        return -1;
    templates = json_object_get(reply.json, "templates");
    if (verb_flag(call, "json"))
        verb_print_json(templates);
    else
        print_grid(templates);
    return 0;
}

static int remove_all(struct verb_call *call, struct client *client, struct error *err)
{
    (void) err; /* each failure was told already */
    return verb_remove_objects(call, client, "templates");
}

const struct verb verb_template_set = {
    .name = "template set",
    .summary = "Make or replace a template",
    .arguments = "NAME",
    .options = set_options,
    .details = "`burrow create --template NAME` begins with what it says; its own options count "
               "over it.",
    .examples = "  burrow template set blue --memory 2G --env MODE=test\n"
                "  burrow template set ready --snapshot installed",
    .words_min = 1,
    .words_max = 1,
    .work = set,
};

const struct verb verb_template_list = {
    .name = "template ls",
    .summary = "List templates",
    .arguments = "",
    .work = list,
};

const struct verb verb_template_remove = {
    .name = "template rm",
    .summary = "Delete templates; sandboxes made from them stay",
    .arguments = "NAME...",
    .words_min = 1,
    .words_max = SIZE_MAX,
    .work = remove_all,
};
