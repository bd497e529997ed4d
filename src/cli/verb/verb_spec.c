#include "cli/verb/verb_spec.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/auto.h"
#include "base/number.h"
#include "cli/verb/verb_client.h"

#define CPU_MAX  ((uint64_t) 1000 * 1000) /* thousandths */
#define KEEP_MAX 10000

struct text_option {
    const char *option, *field;
};

static void add_texts(const struct verb_call *call, const struct text_option *texts, size_t count,
                      json_t *body)
{
    for (size_t i = 0; i < count; i++)
        verb_set_text(body, texts[i].field, verb_value(call, texts[i].option));
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

static int add_startup(const struct verb_call *call, json_t *body, struct error *err)
{
    size_t count = 0;
    const char *const *commands = verb_values(call, "startup", &count);
    json_t *array;

    if (count == 0)
        return 0;
    array = json_array();
    (void) json_object_set_new(body, "startup", array);
    for (size_t i = 0; i < count; i++)
        if (json_array_append_new(array, json_string(commands[i])) < 0)
            return error_set(err, ERR_INVALID, 0, "--startup: it is not UTF-8");
    return 0;
}

int verb_add_changes(const struct verb_call *call, json_t *body, struct error *err)
{
    static const struct text_option texts[] = {
        {"sleep-after", "sleepAfter"},
        {"max-runtime", "maxRuntime"},
        {"lifetime", "lifetime"},
        {"freeze-for", "freezeFor"},
        {"hibernate-after", "hibernateAfter"},
        {"offload-after", "offloadAfter"},
        {"snapshot-every", "snapshotEvery"},
        {"snapshot-keep-for", "snapshotKeepFor"},
    };
    const char *keep = verb_value(call, "snapshot-keep");
    int64_t count = 0;

    add_texts(call, texts, ARRAY_COUNT(texts), body);
    if (verb_flag(call, "keep-alive"))
        (void) json_object_set_new(body, "keepAlive", json_true());
    if (verb_flag(call, "sync"))
        (void) json_object_set_new(body, "sync", json_true());
    if (keep && number_parse(keep, 1, KEEP_MAX, &count) < 0)
        return error_set(err, ERR_INVALID, 0, "--snapshot-keep %s: a number from 1 to %d", keep,
                         KEEP_MAX);
    if (keep)
        (void) json_object_set_new(body, "snapshotKeep", json_integer(count));
    if (add_startup(call, body, err) < 0 || add_limits(call, body, err) < 0 ||
        add_pairs(call, "env", "env", '=', true, body, err) < 0)
        return -1;
    return add_pairs(call, "label", "labels", '=', false, body, err);
}

int verb_add_spec(const struct verb_call *call, json_t *body, struct error *err)
{
    static const struct text_option texts[] = {{"image", "image"}, {"net", "network"}};

    add_texts(call, texts, ARRAY_COUNT(texts), body);
    if (verb_add_changes(call, body, err) < 0)
        return -1;
    return add_pairs(call, "bind-ro", "binds", ':', false, body, err);
}
