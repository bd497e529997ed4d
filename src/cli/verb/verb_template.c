/* burrow template: what new sandboxes are made from, by name. */
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "cli/verb/verb_client.h"
#include "cli/verb/verb_spec.h"
#include "cli/verb/verbs.h"
#include "json/json_read.h"

static const struct verb_option set_options[] = {
    {"snapshot", 0, "SNAPSHOT", "begin with this disk", false},
    VERB_SPEC_OPTIONS{NULL, 0, NULL, NULL, false},
};

static const struct verb_column columns[] = {
    {"NAME", "name", verb_put_text},
    {"IMAGE", "image", verb_put_text},
    {"SNAPSHOT", "snapshot", verb_put_text},
    {"UPDATED", "updatedAt", verb_put_age},
    VERB_COLUMNS_END,
};

static int template_set(struct verb_call *call, struct client *client, struct error *err)
{
    AUTO(client_reply) struct client_reply reply = CLIENT_REPLY_INIT;
    AUTO(json) json_t *body = json_object();

    verb_set_text(body, "snapshot", verb_value(call, "snapshot"));
    if (verb_add_spec(call, body, err) < 0)
        return -1;
    if (client_call(client, "PUT", client_path(client, "templates", call->words[0], ""), body,
                    &reply, err) < 0)
        return -1;
    return verb_print_field(call, reply.json, "name");
}

static int template_list(struct verb_call *call, struct client *client, struct error *err)
{
    AUTO(json) json_t *all = client_list(client, CLIENT_PREFIX "/templates", "templates", err);

    if (!all)
        return -1;
    return verb_print_list(call, all, columns);
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
    .work = template_set,
};

const struct verb verb_template_list = {
    .name = "template ls",
    .summary = "List templates",
    .arguments = "",
    .work = template_list,
};

const struct verb verb_template_remove = {
    .name = "template rm",
    .summary = "Delete templates; sandboxes made from them stay",
    .arguments = "NAME...",
    .words_min = 1,
    .words_max = SIZE_MAX,
    .work = remove_all,
};
