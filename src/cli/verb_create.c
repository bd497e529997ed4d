/* burrow create: make a sandbox. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/number.h"
#include "cli/verb_client.h"
#include "cli/verbs.h"
#include "json/json_read.h"

#define CPU_MAX ((uint64_t) 1000 * 1000) /* thousandths */

static const struct verb_option options[] = {
    {"image", 0, "NAME", "root filesystem: host, or one of `burrow image ls`", false},
    {"memory", 'm', "SIZE", "memory of all processes together: 512M, 2G", false},
    {"cpus", 0, "NUMBER", "CPU time, 0.5 is half of one", false},
    {"pids", 0, "NUMBER", "processes and threads", false},
    {"disk", 0, "SIZE", "what may be written", false},
    {"net", 0, "none|nat", "loopback only, or out through the machine", false},
    {"env", 'e', "NAME=TEXT", "a variable for everything in it; NAME alone takes ours", true},
    {"label", 'l', "NAME=TEXT", "a label, for `burrow ls --label`", true},
    {"bind-ro", 0, "NAME:PLACE", "show a folder of `burrow bind ls` there, read-only", true},
    {"sleep-after", 0, "TIME", "sleep after so long without work: 30s, 10m", false},
    {"keep-alive", 0, NULL, "never sleep by itself", false},
    {"max-runtime", 0, "TIME", "stop it after running so long at a stretch", false},
    {"lifetime", 0, "TIME", "destroy it after so long", false},
    {NULL, 0, NULL, NULL, false},
};

/* Options that go into the body under another name. */
static const struct {
    const char *option, *field;
} texts[] = {
    {"image", "image"},
    {"net", "network"},
    {"sleep-after", "sleepAfter"},
    {"max-runtime", "maxRuntime"},
    {"lifetime", "lifetime"},
};

static void add_texts(const struct verb_call *call, json_t *body)
{
    for (size_t i = 0; i < ARRAY_COUNT(texts); i++) {
        const char *value = verb_value(call, texts[i].option);

        if (value)
            (void) json_object_set_new(body, texts[i].field, json_string(value));
    }
    if (verb_flag(call, "keep-alive"))
        (void) json_object_set_new(body, "keepAlive", json_true());
    if (call->word_count)
        (void) json_object_set_new(body, "name", json_string(call->words[0]));
}

static int add_limits(const struct verb_call *call, json_t *body, struct error *err)
{
    const char *memory = verb_value(call, "memory"), *disk = verb_value(call, "disk");
    const char *cpus = verb_value(call, "cpus"), *pids = verb_value(call, "pids");
    json_t *limits = json_object();
    uint64_t thousandths = 0;
    int64_t count = 0;

    (void) json_object_set_new(body, "limits", limits);
    if (cpus && number_parse_thousandths(cpus, CPU_MAX, &thousandths) < 0)
        return error_set(err, ERR_INVALID, 0, "--cpus %s: a number such as 2 or 0.5", cpus);
    if (pids && number_parse(pids, 1, INT32_MAX, &count) < 0)
        return error_set(err, ERR_INVALID, 0, "--pids %s: a number", pids);
    if (cpus)
        (void) json_object_set_new(limits, "cpu", json_real((double) thousandths / 1000));
    if (pids)
        (void) json_object_set_new(limits, "pids", json_integer(count));
    if (memory)
        (void) json_object_set_new(limits, "memory", json_string(memory));
    if (disk)
        (void) json_object_set_new(limits, "disk", json_string(disk));
    return 0;
}

/* "NAME=TEXT" pairs of an option as an object; `from_us`: NAME alone takes our variable. */
static int add_pairs(const struct verb_call *call, const char *option, const char *field, char mark,
                     bool from_us, json_t *body, struct error *err)
{
    json_t *pairs = json_object();
    size_t count;
    const char *const *values = verb_values(call, option, &count);

    (void) json_object_set_new(body, field, pairs);
    for (size_t i = 0; i < count; i++) {
        const char *at = strchr(values[i], mark), *value = at ? at + 1 : NULL;
        size_t length = at ? (size_t) (at - values[i]) : strlen(values[i]);

        if (!at && from_us)
            value = getenv(values[i]);
        if (!value || !length)
            return error_set(err, ERR_INVALID, 0, "--%s %s: write NAME%cTEXT", option, values[i],
                             mark);
        if (json_object_setn_new(pairs, values[i], length, json_string(value)) < 0)
            return error_set(err, ERR_INVALID, 0, "--%s: it is not UTF-8", option);
    }
    return 0;
}

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

static int create(struct verb_call *call, struct client *client, struct error *err)
{
    AUTO(json) json_t *body = json_object();
    AUTO(client_reply) struct client_reply reply = CLIENT_REPLY_INIT;
    AUTO(free) char *text = NULL;
    const char *name;

    add_texts(call, body);
    if (add_limits(call, body, err) < 0 ||
        add_pairs(call, "env", "env", '=', true, body, err) < 0 ||
        add_pairs(call, "label", "labels", '=', false, body, err) < 0 ||
        add_pairs(call, "bind-ro", "binds", ':', false, body, err) < 0)
        return -1;
    text = json_dumps(body, JSON_COMPACT);
    if (!text)
        return error_set(err, ERR_INVALID, 0, "what was asked for is not UTF-8");
    if (client_call(client, "POST", CLIENT_PREFIX "/sandboxes", text, &reply, err) < 0)
        return -1;
    if (reply.status == 200)
        (void) fprintf(stderr, "burrow: '%s' was there already\n", call->words[0]);
    warn_of_limits(reply.json);
    name = json_string_value(json_object_get(reply.json, "name"));
    if (verb_flag(call, "json"))
        verb_print_json(reply.json);
    else
        (void) puts(name ? name : json_string_value(json_object_get(reply.json, "id")));
    return 0;
}

static int run(struct verb_call *call)
{
    return verb_with_client(call, create, VERB_STATUS_FAILURE);
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
    .run = run,
};
