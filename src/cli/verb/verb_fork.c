/* burrow fork, rollback and diff: what snapshots are good for. */
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "base/number.h"
#include "cli/client/client_sandbox.h"
#include "cli/verb/verb_client.h"
#include "cli/verb/verb_spec.h"
#include "cli/verb/verbs.h"
#include "json/json_read.h"
#include "net/url.h"

#define FORKS_MAX  1000
#define OUTPUT_MAX ((size_t) 64 * 1024 * 1024)

static const struct verb_option fork_options[] = {
    {"count", 'n', "NUMBER", "so many, all at once", false},
    {"name", 0, "TEXT", "of the new one; several are TEXT-1, TEXT-2, ...", false},
    {"snapshot", 0, "SNAPSHOT", "of this snapshot, instead of a sandbox as it is now", false},
    VERB_FREEZE_OPTION,
    VERB_CHANGE_OPTIONS{NULL, 0, NULL, NULL, false},
};

/* --- fork ------------------------------------------------------------------------------------ */

static int make_body(const struct verb_call *call, json_t *body, struct error *err)
{
    const char *text = verb_value(call, "count");
    int64_t count = 1;

    if (text && number_parse(text, 1, FORKS_MAX, &count) < 0)
        return error_set(err, ERR_INVALID, 0, "--count %s: a number from 1 to %d", text, FORKS_MAX);
    (void) json_object_set_new(body, "count", json_integer(count));
    verb_set_freeze(call, body);
    verb_set_text(body, "name", verb_value(call, "name"));
    return verb_add_changes(call, body, err);
}

static int fork_ask(struct verb_call *call, struct client *client, json_t *body,
                    struct client_reply *reply, struct error *err)
{
    const char *snapshot = verb_value(call, "snapshot");

    if ((snapshot != NULL) == (call->word_count == 1))
        return error_set(err, ERR_INVALID, 0, "name a sandbox, or a snapshot with --snapshot");
    if (snapshot)
        return client_call(client, "POST", client_path(client, "snapshots", snapshot, "/fork"),
                           body, reply, err);
    return client_sandbox_call(client, "POST", call->words[0], "/fork", body, reply, err);
}

static int make_forks(struct verb_call *call, struct client *client, struct error *err)
{
    AUTO(client_reply) struct client_reply reply = CLIENT_REPLY_INIT;
    AUTO(json) json_t *body = json_object();

    if (make_body(call, body, err) < 0 || fork_ask(call, client, body, &reply, err) < 0)
        return -1;
    if (verb_flag(call, "json")) {
        verb_print_json(reply.json);
        return 0;
    }
    return verb_print_lines(json_object_get(reply.json, "sandboxes"), "name");
}

/* --- rollback -------------------------------------------------------------------------------- */

static int roll_back(struct verb_call *call, struct client *client, struct error *err)
{
    AUTO(client_reply) struct client_reply reply = CLIENT_REPLY_INIT;
    AUTO(json) json_t *body = json_object();

    verb_set_text(body, "snapshot", call->words[1]);
    if (client_sandbox_call(client, "POST", call->words[0], "/rollback", body, &reply, err) < 0)
        return -1;
    if (verb_flag(call, "json"))
        verb_print_json(reply.json);
    else
        (void) printf("what it was is kept as snapshot %s\n",
                      verb_field(json_object_get(reply.json, "saved"), "id"));
    return 0;
}

/* --- diff ------------------------------------------------------------------------------------ */

static void print_what(json_t *what, struct text *out)
{
    json_t *one;
    size_t i;

    if (json_array_size(what) == 0)
        return;
    text_append(out, " (");
    json_array_foreach (what, i, one) {
        text_format(out, "%s%s", i ? ", " : "", json_string_value(one));
    }
    text_append(out, ")");
}

static void print_changes(json_t *answer)
{
    static const struct {
        const char *field;
        char mark;
    } kinds[] = {{"added", '+'}, {"changed", '~'}, {"removed", '-'}};
    AUTO(text) struct text out = TEXT_INIT(OUTPUT_MAX);
    json_t *one;
    size_t i;

    json_array_foreach (json_object_get(answer, "changes"), i, one) {
        for (size_t kind = 0; kind < ARRAY_COUNT(kinds); kind++) {
            const char *path = verb_field(one, kinds[kind].field);

            if (!path)
                continue;
            text_format(&out, "%c %s", kinds[kind].mark, path);
            print_what(json_object_get(one, "what"), &out);
            text_append(&out, "\n");
        }
    }
    verb_print(&out);
    if (json_is_true(json_object_get(answer, "truncated")))
        (void) fprintf(stderr, "burrow: warning: there is more: these are not all changes\n");
}

static int diff(struct verb_call *call, struct client *client, struct error *err)
{
    AUTO(client_reply) struct client_reply reply = CLIENT_REPLY_INIT;
    AUTO(text) struct text rest = TEXT_INIT(URL_LENGTH_MAX);

    text_append(&rest, "/diff");
    if (call->word_count > 1) {
        text_append(&rest, "?against=");
        url_encode(&rest, call->words[1], strlen(call->words[1]));
    }
    if (client_call(client, "GET",
                    client_path(client, "snapshots", call->words[0], text_string(&rest)), NULL,
                    &reply, err) < 0)
        return -1;
    if (verb_flag(call, "json"))
        verb_print_json(reply.json);
    else
        print_changes(reply.json);
    return 0;
}

/* --- the verbs ------------------------------------------------------------------------------- */

const struct verb verb_fork = {
    .name = "fork",
    .summary = "Make new sandboxes that begin with the disk of another, or of a snapshot",
    .arguments = "[NAME]",
    .options = fork_options,
    .details = "Prints their names, or ids. They have its files, variables, labels and limits; "
               "they have not its\nprocesses, ports and name.",
    .examples = "  burrow fork demo --count 10 --name try\n"
                "  burrow fork --snapshot before-upgrade",
    .words_max = 1,
    .takes_sandboxes = true,
    .work = make_forks,
};

const struct verb verb_rollback = {
    .name = "rollback",
    .summary = "Make the disk of a sandbox what it was",
    .arguments = "NAME SNAPSHOT",
    .details = "A sandbox that runs is stopped and started again. What was on its disk is kept as "
               "another\nsnapshot for a week.",
    .examples = "  burrow rollback demo before-upgrade",
    .words_min = 2,
    .words_max = 2,
    .takes_sandboxes = true,
    .work = roll_back,
};

const struct verb verb_diff = {
    .name = "diff",
    .summary = "List what changed since a snapshot, until now or until another",
    .arguments = "SNAPSHOT [SNAPSHOT]",
    .details = "+ was added, - was removed, ~ was changed.",
    .examples = "  burrow diff before-upgrade",
    .words_min = 1,
    .words_max = 2,
    .work = diff,
};
