/* burrow create: make a sandbox. */
#include <stdio.h>

#include "cli/verb/verb_client.h"
#include "cli/verb/verb_spec.h"
#include "cli/verb/verbs.h"
#include "json/json_read.h"

static const struct verb_option options[] = {
    {"template", 0, "NAME", "begin with what this one says: `burrow template ls`", false},
    VERB_SPEC_OPTIONS{NULL, 0, NULL, NULL, false},
};

static void warn_of_limits(json_t *sandbox)
{
    json_t *limit;
    size_t i;

    json_array_foreach (json_object_get(sandbox, "unenforced"), i, limit) {
        (void) fprintf(stderr,
                       "burrow: warning: this machine cannot enforce the limit of %s, see burrow "
                       "doctor\n",
                       json_string_value(limit));
    }
}

static int create_create(struct verb_call *call, struct client *client, struct error *err)
{
    AUTO(json) json_t *body = json_object();
    AUTO(client_reply) struct client_reply reply = CLIENT_REPLY_INIT;

    verb_set_text(body, "template", verb_value(call, "template"));
    if (call->word_count)
        verb_set_text(body, "name", call->words[0]);
    if (verb_add_spec(call, body, err) < 0)
        return -1;
    if (client_call(client, "POST", CLIENT_PREFIX "/sandboxes", body, &reply, err) < 0)
        return -1;
    if (reply.status == 200)
        (void) fprintf(stderr, "burrow: '%s' was there already\n", call->words[0]);
    warn_of_limits(reply.json);
    return verb_print_field(call, reply.json, verb_field(reply.json, "name") ? "name" : "id");
}

const struct verb verb_create = {
    .name = "create",
    .summary = "Make a sandbox",
    .arguments = "[NAME]",
    .options = options,
    .details = "Prints its name, or its id when it has none. A sandbox of that name that is there "
               "already is\nleft as it is, and that is no failure.",
    .examples = "  burrow create demo\n"
                "  burrow create demo --memory 2G --cpus 2 --net nat --label team=blue",
    .words_max = 1,
    .work = create_create,
};
