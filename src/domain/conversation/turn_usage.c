#include "domain/conversation/turn_usage.h"

#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "json/json_read.h"

void turn_usage_write(struct json_writer *json, const struct harness_usage *usage)
{
    json_begin_object(json);
    json_add_integer(json, "input", (int64_t) usage->input);
    json_add_integer(json, "output", (int64_t) usage->output);
    json_add_integer(json, "reasoning", (int64_t) usage->reasoning);
    json_add_integer(json, "cacheRead", (int64_t) usage->cache_read);
    json_add_integer(json, "cacheWrite", (int64_t) usage->cache_write);
    json_add_integer(json, "costMicros", (int64_t) usage->cost_micros);
    json_add_boolean(json, "costKnown", usage->is_cost_known);
    json_end_object(json);
}

void turn_usage_text(const struct harness_usage *usage, char ret_text[static TURN_USAGE_MAX])
{
    AUTO(text) struct text text = TEXT_INIT(TURN_USAGE_MAX - 1);
    struct json_writer json;

    json_writer_init_text(&json, &text);
    turn_usage_write(&json, usage);
    (void) json_writer_finish(&json); /* seven numbers fit */
    (void) snprintf(ret_text, TURN_USAGE_MAX, "%s", text_string(&text));
}

static uint64_t usage_number(json_t *object, const char *key)
{
    json_int_t number = json_integer_value(json_object_get(object, key));

    return number > 0 ? (uint64_t) number : 0;
}

void turn_usage_read(const char *text, struct harness_usage *ret_usage)
{
    AUTO(json) json_t *object = json_read(text, strlen(text), NULL, NULL);

    *ret_usage = (struct harness_usage){
        .input = usage_number(object, "input"),
        .output = usage_number(object, "output"),
        .reasoning = usage_number(object, "reasoning"),
        .cache_read = usage_number(object, "cacheRead"),
        .cache_write = usage_number(object, "cacheWrite"),
        .cost_micros = usage_number(object, "costMicros"),
        .is_cost_known = json_is_true(json_object_get(object, "costKnown")),
    };
}

/* What agents tell is only a claim: sums of it stay numbers. */
static uint64_t usage_sum(uint64_t a, uint64_t b)
{
    uint64_t sum;

    return __builtin_add_overflow(a, b, &sum) || sum > INT64_MAX ? INT64_MAX : sum;
}

void turn_usage_add(struct harness_usage *sum, const struct harness_usage *usage)
{
    sum->input = usage_sum(sum->input, usage->input);
    sum->output = usage_sum(sum->output, usage->output);
    sum->reasoning = usage_sum(sum->reasoning, usage->reasoning);
    sum->cache_read = usage_sum(sum->cache_read, usage->cache_read);
    sum->cache_write = usage_sum(sum->cache_write, usage->cache_write);
    sum->cost_micros = usage_sum(sum->cost_micros, usage->cost_micros);
    sum->is_cost_known = sum->is_cost_known && usage->is_cost_known;
}
