/* burrow debug: what the processes did last, and what they have now. */
#include <stdio.h>
#include <string.h>

#include "cli/grid.h"
#include "cli/verb/verb_client.h"
#include "cli/verb/verbs.h"
#include "net/url.h"

#define TARGET_MAX ((size_t) 4096)

static const struct verb_option trace_options[] = {
    {"request", 0, "ID", "of one request, as X-Request-Id of its reply has it", false},
    {"sandbox", 0, "NAME", "of one sandbox", false},
    {NULL, 0, NULL, NULL, false},
};

/* --- trace ----------------------------------------------------------------------------------- */

static void add_query(struct text *target, const char *name, const char *value)
{
    if (!value)
        return;
    text_format(target, "%c%s=", strchr(text_string(target), '?') ? '&' : '?', name);
    url_encode(target, value, strlen(value));
}

static double milliseconds(json_int_t ns)
{
    return (double) ns / 1e6;
}

static void print_entries(json_t *entries)
{
    static const char *const titles[] = {"MS",      "STEP",  "PROCESS", "REQUEST",
                                         "SANDBOX", "POINT", NULL};
    AUTO(grid) struct grid grid = GRID_INIT;
    AUTO(text) struct text out = TEXT_INIT(GRID_TEXT_MAX);
    json_int_t first = 0, before = 0;
    json_t *entry;
    size_t i;

    grid_titles(&grid, titles);
    json_array_foreach (entries, i, entry) {
        json_int_t ns = json_integer_value(json_object_get(entry, "ns"));

        first = i ? first : ns;
        grid_format(&grid, "%.3f", milliseconds(ns - first));
        grid_format(&grid, "%.3f", milliseconds(i ? ns - before : 0));
        grid_put(&grid, verb_field(entry, "process"));
        grid_put(&grid, verb_field(entry, "request"));
        grid_put(&grid, verb_field(entry, "sandbox"));
        grid_put(&grid, verb_field(entry, "point"));
        before = ns;
    }
    grid_write(&grid, &out);
    verb_print(&out);
}

static int show_trace(struct verb_call *call, struct client *client, struct error *err)
{
    AUTO(client_reply) struct client_reply reply = CLIENT_REPLY_INIT;
    AUTO(text) struct text target = TEXT_INIT(TARGET_MAX);
    const char *missing;

    text_append(&target, CLIENT_PREFIX "/debug/trace");
    add_query(&target, "request", verb_value(call, "request"));
    add_query(&target, "sandbox", verb_value(call, "sandbox"));
    if (client_call(client, "GET", text_string(&target), NULL, &reply, err) < 0)
        return -1;
    missing = verb_field(reply.json, "missing");
    if (verb_flag(call, "json"))
        verb_print_json(reply.json);
    else
        print_entries(json_object_get(reply.json, "entries"));
    if (missing)
        (void) fprintf(stderr, "burrow: some are missing: %s\n", missing);
    return 0;
}

const struct verb verb_debug_trace = {
    .name = "debug trace",
    .summary = "Show what all processes did last, for one request or sandbox",
    .arguments = "",
    .options = trace_options,
    .details =
        "Daemon, launcher, janitor, porter, keepers and the agents inside keep their last steps in "
        "memory.\nThis shows them in the order of time: milliseconds since the first, and since "
        "the "
        "one before. It\nneeds an administrator's key. docs/debugging.md explains how to read it.",
    .examples = "  burrow debug trace --request mfsg22lomvzxg5dfon2xe3tbni\n"
                "  burrow debug trace --sandbox demo",
    .work = show_trace,
};

/* --- state ----------------------------------------------------------------------------------- */

static int show_state(struct verb_call *call, struct client *client, struct error *err)
{
    AUTO(client_reply) struct client_reply reply = CLIENT_REPLY_INIT;

    (void) call;
    if (client_call(client, "GET", CLIENT_PREFIX "/debug/state", NULL, &reply, err) < 0)
        return -1;
    verb_print(&reply.body);
    return 0;
}

const struct verb verb_debug_state = {
    .name = "debug state",
    .summary = "Print the tables of daemon and launcher: what is under way, and what waits",
    .arguments = "",
    .details = "Needs an administrator's key. The lines are for people and change with versions.",
    .work = show_state,
};
