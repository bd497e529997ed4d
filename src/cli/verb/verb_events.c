/* burrow events: what happened, and what happens. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/number.h"
#include "cli/client/client.h"
#include "cli/client/client_sandbox.h"
#include "cli/verb/verb_client.h"
#include "cli/verb/verbs.h"
#include "json/json_read.h"
#include "net/url.h"

#define PAGE           1000
#define RETRY_SECONDS  1
#define RETRIES        120
#define EVENT_TEXT_MAX ((size_t) 64 * 1024)

static const struct verb_option options[] = {
    {"follow", 'f', NULL, "go on with what happens, until interrupted", false},
    {"type", 0, "TYPE", "only this type, or all that begin so when it ends in '.'", false},
    {"after", 0, "CURSOR", "only what came behind it; -1: only what comes now", false},
    {NULL, 0, NULL, NULL, false},
};

struct watching {
    const struct verb_call *call;
    const char *type; /* NULL: all */
    int64_t cursor;   /* of the last one that was printed */
    unsigned int failures;
};

/* "key=value" of the details that are plain. */
static void write_details(json_t *data, struct text *out)
{
    const char *key;
    json_t *value;

    json_object_foreach (data, key, value) {
        if (json_is_string(value))
            text_format(out, " %s=%s", key, json_string_value(value));
        else if (json_is_integer(value))
            text_format(out, " %s=%lld", key, (long long) json_integer_value(value));
        else if (json_is_boolean(value))
            text_format(out, " %s=%s", key, json_is_true(value) ? "true" : "false");
    }
}

static void print_event(struct watching *watching, json_t *event)
{
    AUTO(text) struct text line = TEXT_INIT(EVENT_TEXT_MAX);
    const char *time = verb_field(event, "time"), *type = verb_field(event, "type");

    if (json_is_integer(json_object_get(event, "cursor")))
        watching->cursor = json_integer_value(json_object_get(event, "cursor"));
    if (verb_flag(watching->call, "json")) {
        (void) json_dumpf(event, stdout, JSON_COMPACT); /* one line each, also at a terminal */
        (void) fputc('\n', stdout);
    } else {
        text_format(&line, "%s  %-22s", time ? time : "", type ? type : "");
        write_details(json_object_get(event, "data"), &line);
        text_append_char(&line, '\n');
        verb_print(&line);
    }
    (void) fflush(stdout);
}

static const char *path_of(struct client *client, const struct watching *watching, bool follows)
{
    const struct verb_call *call = watching->call;
    const char *type = watching->type;
    AUTO(text) struct text query = TEXT_INIT(URL_LENGTH_MAX);

    text_format(&query, "/events?after=%lld%s", (long long) watching->cursor,
                follows ? "&stream=1" : "");
    if (!follows)
        text_format(&query, "&limit=%d", PAGE);
    if (type) {
        text_append(&query, "&type=");
        url_encode(&query, type, strlen(type));
    }
    if (call->word_count)
        return client_sandbox_path(client, call->words[0], text_string(&query));
    return pool_format(&client->pool, CLIENT_PREFIX "%s", text_string(&query));
}

static int print_pages(struct watching *watching, struct client *client, struct error *err)
{
    AUTO(client_reply) struct client_reply reply = CLIENT_REPLY_INIT;
    json_t *one, *next;
    int64_t before;
    size_t i;

    do {
        before = watching->cursor;
        if (client_call(client, "GET", path_of(client, watching, false), NULL, &reply, err) < 0)
            return -1;
        json_array_foreach (json_object_get(reply.json, "events"), i, one) {
            print_event(watching, one);
        }
        next = json_object_get(reply.json, "next"); /* a page of other types is empty */
        if (json_is_integer(next))
            watching->cursor = json_integer_value(next);
    } while (watching->cursor != before);
    return 0;
}

static int event_arrived(void *context, const struct sse_event *event, json_t *json,
                         struct error *err)
{
    struct watching *watching = context;

    watching->failures = 0;
    if (strcmp(event->type, "error") == 0)
        return error_set(err, ERR_UPSTREAM, 0, "%s",
                         verb_field(json, "message") ? verb_field(json, "message")
                                                     : "the events broke off");
    if (json)
        print_event(watching, json);
    return 0;
}

/* A daemon that is restarted is found again, and nothing is missed: it is asked from the last event
 * on. */
static int events_follow(struct watching *watching, struct client *client, struct error *err)
{
    bool was_there = false;

    for (;;) {
        int r =
            client_events(client, path_of(client, watching, true), event_arrived, watching, err);
        bool is_lost = r == 0 || err->code == ERR_UPSTREAM || err->code == ERR_UNAVAILABLE;

        was_there |= r == 0 || err->code == ERR_UPSTREAM;
        if (!is_lost || !was_there || ++watching->failures > RETRIES)
            return r;
        (void) sleep(RETRY_SECONDS);
    }
}

int verb_print_events(struct verb_call *call, struct client *client, const char *type,
                      struct error *err)
{
    const char *after = verb_value(call, "after");
    struct watching watching = {.call = call, .type = type};
    int r;

    if (after && number_parse(after, -1, INT64_MAX, &watching.cursor) < 0)
        return error_set(err, ERR_INVALID, 0, "--after %s: the cursor of an event", after);
    r = verb_flag(call, "follow") ? events_follow(&watching, client, err)
                                  : print_pages(&watching, client, err);
    if (r < 0 && call->word_count)
        client_sandbox_explain(client, call->words[0], err);
    return r;
}

static int events(struct verb_call *call, struct client *client, struct error *err)
{
    return verb_print_events(call, client, verb_value(call, "type"), err);
}

const struct verb verb_events = {
    .name = "events",
    .summary = "Print what happened, to all or to one sandbox",
    .arguments = "[NAME]",
    .options = options,
    .details = "With --json every event is one line. The log of a sandbox that was destroyed is "
               "found by its id.",
    .examples = "  burrow events -f --type sandbox.\n  burrow events demo --json",
    .words_max = 1,
    .takes_sandboxes = true,
    .work = events,
};
