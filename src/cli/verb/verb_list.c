/* burrow ls: which sandboxes there are. */
#include <stdio.h>
#include <string.h>

#include "cli/client/client_sandbox.h"
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

/* The last column is for administrators, who see several. */
static int print_all(const struct verb_call *call, json_t *sandboxes)
{
    const struct verb_column columns[] = {
        {"NAME", "name", verb_put_text},
        {"STATUS", "status", verb_put_text},
        {"IMAGE", "image", verb_put_text},
        {"CREATED", "createdAt", verb_put_age},
        {"ACTIVE", "activeAt", verb_put_age},
        {"ID", "id", verb_put_text},
        {has_several_owners(sandboxes) ? "OWNER" : NULL, "owner", verb_put_text},
        VERB_COLUMNS_END,
    };

    return verb_print_list(call, sandboxes, columns);
}

static int list_list(struct verb_call *call, struct client *client, struct error *err)
{
    AUTO(json) json_t *all = client_sandbox_list(client, query_of(client, call), err);

    if (!all)
        return -1;
    if (!verb_flag(call, "json") && (verb_flag(call, "quiet") || verb_flag(call, "names")))
        return verb_print_lines(all, verb_flag(call, "names") ? "name" : "id");
    return print_all(call, all);
}

const struct verb verb_list = {
    .name = "ls",
    .summary = "List sandboxes, the newest first",
    .arguments = "",
    .options = options,
    .examples = "  burrow ls --status sleeping\n  burrow rm $(burrow ls -q --label team=blue)",
    .work = list_list,
};
