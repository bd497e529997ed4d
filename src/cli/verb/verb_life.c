/* burrow start, stop, sleep, wake, rm: one order for one or many sandboxes. */
#include <stdio.h>
#include <string.h>

#include "cli/client/client_sandbox.h"
#include "cli/verb/verb_client.h"
#include "cli/verb/verbs.h"
#include "json/json_read.h"

#define NAMES_MAX 100000

static const struct verb_option stop_options[] = {
    {"all", 'a', NULL, "all that are not stopped yet and that the key may stop", false},
    {NULL, 0, NULL, NULL, false},
};

static const struct verb_option remove_options[] = {
    {"force", 'f', NULL, "one that does not exist is no failure", false},
    {NULL, 0, NULL, NULL, false},
};

struct life_order {
    const char *verb, *method, *rest;
};

static const struct life_order orders[] = {
    {"start", "POST", "/start"}, {"stop", "POST", "/stop"}, {"sleep", "POST", "/sleep"},
    {"wake", "POST", "/wake"},   {"rm", "DELETE", ""},
};

static const struct life_order *order_of(const struct verb_call *call)
{
    const struct life_order *order = orders;

    while (strcmp(order->verb, call->verb->name) != 0)
        order++;
    return order;
}

/* Returns 0, or -1 after a complaint. */
static int do_one(const struct verb_call *call, struct client *client, const char *name)
{
    AUTO(client_reply) struct client_reply reply = CLIENT_REPLY_INIT;
    const struct life_order *order = order_of(call);
    struct error err = ERROR_INIT;
    int r = client_sandbox_call(client, order->method, name, order->rest, NULL, &reply, &err);

    if (r < 0 && err.code == ERR_NOT_FOUND && verb_flag(call, "force"))
        return 0;
    if (r < 0) {
        (void) verb_complain(0, &err);
        return -1;
    }
    if (!verb_flag(call, "json"))
        (void) puts(name);
    else if (reply.json)
        verb_print_json(reply.json);
    (void) fflush(stdout);
    return 0;
}

static bool is_stopped(json_t *sandbox)
{
    const char *status = json_string_value(json_object_get(sandbox, "status"));

    return status && strcmp(status, "stopped") == 0;
}

static int do_all(const struct verb_call *call, struct client *client, struct error *err)
{
    AUTO(json) json_t *all = client_sandbox_list(client, "", err);
    bool has_failed = false;
    json_t *one;
    size_t i;

    if (!all)
        return -1;
    json_array_foreach (all, i, one) {
        if (!is_stopped(one))
            has_failed |= do_one(call, client, json_string_value(json_object_get(one, "id"))) < 0;
    }
    return has_failed;
}

static int life_work(struct verb_call *call, struct client *client, struct error *err)
{
    bool has_failed = false;

    if (verb_flag(call, "all"))
        return do_all(call, client, err);
    if (!call->word_count)
        return error_set(err, ERR_INVALID, 0, "say which: burrow %s NAME...", call->verb->name);
    for (size_t i = 0; i < call->word_count; i++)
        has_failed |= do_one(call, client, call->words[i]) < 0;
    return has_failed;
}

const struct verb verb_start = {
    .name = "start",
    .summary = "Start stopped sandboxes",
    .arguments = "NAME...",
    .words_min = 1,
    .words_max = NAMES_MAX,
    .takes_sandboxes = true,
    .work = life_work,
};

const struct verb verb_stop = {
    .name = "stop",
    .summary = "End all processes of sandboxes and keep their disks",
    .arguments = "NAME... | --all",
    .options = stop_options,
    .words_max = NAMES_MAX,
    .takes_sandboxes = true,
    .work = life_work,
};

const struct verb verb_sleep = {
    .name = "sleep",
    .summary = "Put sandboxes to sleep until somebody needs them",
    .arguments = "NAME...",
    .words_min = 1,
    .words_max = NAMES_MAX,
    .takes_sandboxes = true,
    .work = life_work,
};

const struct verb verb_wake = {
    .name = "wake",
    .summary = "Wake sleeping sandboxes",
    .arguments = "NAME...",
    .words_min = 1,
    .words_max = NAMES_MAX,
    .takes_sandboxes = true,
    .work = life_work,
};

const struct verb verb_remove = {
    .name = "rm",
    .summary = "Destroy sandboxes, with their disks",
    .arguments = "NAME...",
    .options = remove_options,
    .details = "There is no way back.",
    .words_min = 1,
    .words_max = NAMES_MAX,
    .takes_sandboxes = true,
    .work = life_work,
};
