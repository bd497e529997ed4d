#include "domain/egress/egress_meter.h"

#include <string.h>

const char *egress_limit_text(enum egress_limit limit)
{
    static const char *const texts[] = {
        [EGRESS_WITHIN] = "",
        [EGRESS_MINUTE] = "the requests of this minute are used up; try again in a few seconds",
        [EGRESS_DAY_TOKENS] = "the tokens of today are used up; the day ends at midnight, UTC",
        [EGRESS_DAY_COST] = "the money of today is used up; the day ends at midnight, UTC",
        [EGRESS_HELD_TOKENS] = "what is left of today's tokens is held by requests under way; try "
                               "again when they have ended",
        [EGRESS_HELD_COST] = "what is left of today's money is held by requests under way; try "
                             "again when they have ended",
    };

    return texts[limit];
}

const char *egress_limit_word(enum egress_limit limit)
{
    static const char *const words[] = {
        [EGRESS_WITHIN] = "",
        [EGRESS_MINUTE] = "requests_per_minute",
        [EGRESS_DAY_TOKENS] = "tokens_per_day",
        [EGRESS_DAY_COST] = "cost_per_day",
        [EGRESS_HELD_TOKENS] = "tokens_held",
        [EGRESS_HELD_COST] = "cost_held",
    };

    return words[limit];
}

/* What is held goes on: it is of requests that are under way. */
static void meter_day(struct egress_meter *meter, int64_t day_ms)
{
    if (meter->day_ms == day_ms)
        return;
    meter->day_ms = day_ms;
    meter->tokens = meter->micros = 0;
}

static void meter_second(struct egress_meter *meter, uint64_t now_s)
{
    if (now_s >= meter->second + EGRESS_SECONDS)
        memset(meter->seconds, 0, sizeof(meter->seconds));
    else
        for (uint64_t second = meter->second + 1; second <= now_s; second++)
            meter->seconds[second % EGRESS_SECONDS] = 0;
    if (now_s > meter->second)
        meter->second = now_s;
}

static uint64_t meter_minute(const struct egress_meter *meter)
{
    uint64_t sum = 0;

    for (size_t i = 0; i < EGRESS_SECONDS; i++)
        sum += meter->seconds[i];
    return sum;
}

/* Whether `wanted` more does not fit into what is left. */
static bool is_full(const struct egress_meter *meter, uint64_t limit, uint64_t used, uint64_t held,
                    uint64_t wanted)
{
    return limit && meter->under_way && (used + held >= limit || wanted > limit - used - held);
}

enum egress_limit egress_meter_check(struct egress_meter *meter, const struct egress_budget *budget,
                                     int64_t day_ms, uint64_t now_s, uint64_t tokens,
                                     uint64_t micros)
{
    meter_day(meter, day_ms);
    meter_second(meter, now_s);
    if (budget->requests_per_minute && meter_minute(meter) >= budget->requests_per_minute)
        return EGRESS_MINUTE;
    if (!tokens)
        return EGRESS_WITHIN;
    if (budget->tokens_per_day && meter->tokens >= budget->tokens_per_day)
        return EGRESS_DAY_TOKENS;
    if (budget->micros_per_day && meter->micros >= budget->micros_per_day)
        return EGRESS_DAY_COST;
    if (is_full(meter, budget->tokens_per_day, meter->tokens, meter->held_tokens, tokens))
        return EGRESS_HELD_TOKENS;
    if (is_full(meter, budget->micros_per_day, meter->micros, meter->held_micros, micros))
        return EGRESS_HELD_COST;
    return EGRESS_WITHIN;
}

void egress_meter_begin(struct egress_meter *meter, int64_t day_ms, uint64_t now_s, uint64_t tokens,
                        uint64_t micros, struct egress_hold *ret_hold)
{
    meter_day(meter, day_ms);
    meter_second(meter, now_s);
    meter->seconds[meter->second % EGRESS_SECONDS]++;
    *ret_hold = (struct egress_hold){.tokens = tokens, .micros = micros, .is_held = tokens > 0};
    if (!tokens)
        return;
    meter->under_way++;
    meter->held_tokens += tokens;
    meter->held_micros += micros;
}

/* Takes at most what is there. */
static void hold_shrink(uint64_t *hold, uint64_t *held, uint64_t amount)
{
    if (amount > *hold)
        amount = *hold;
    *hold -= amount;
    *held -= amount;
}

bool egress_meter_use(struct egress_meter *meter, const struct egress_budget *budget,
                      int64_t day_ms, uint64_t tokens, uint64_t micros, struct egress_hold *hold)
{
    meter_day(meter, day_ms);
    meter->tokens += tokens;
    meter->micros += micros;
    hold_shrink(&hold->tokens, &meter->held_tokens, tokens);
    hold_shrink(&hold->micros, &meter->held_micros, micros);
    return !(budget->tokens_per_day && meter->tokens >= budget->tokens_per_day) &&
           !(budget->micros_per_day && meter->micros >= budget->micros_per_day);
}

void egress_meter_end(struct egress_meter *meter, struct egress_hold *hold)
{
    if (!hold->is_held)
        return;
    hold_shrink(&hold->tokens, &meter->held_tokens, hold->tokens);
    hold_shrink(&hold->micros, &meter->held_micros, hold->micros);
    hold->is_held = false;
    meter->under_way--;
}

void egress_meter_add(struct egress_meter *meter, int64_t day_ms, uint64_t tokens, uint64_t micros)
{
    meter_day(meter, day_ms);
    meter->tokens += tokens;
    meter->micros += micros;
}
