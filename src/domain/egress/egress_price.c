#include "domain/egress/egress_price.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/auto.h"
#include "base/memory.h"
#include "model/egress_policy.h"

#define MILLION     1000000
#define PRICE_TEXTS 4
#define PRICE_MAX   UINT64_C(1000000000000) /* a million a million tokens */

#define PRICE_ROW(pattern_, input_, output_, read_, write_)                                        \
    {.pattern = (pattern_),                                                                        \
     .input = (input_),                                                                            \
     .output = (output_),                                                                          \
     .cache_read = (read_),                                                                        \
     .cache_write = (write_)},

static const struct egress_price table[] = {EGRESS_PRICES(PRICE_ROW)};

/* --- patterns -------------------------------------------------------------------------------- */

/* Goes back to the last star only, so that it takes at most the product of both lengths. */
bool egress_pattern_fits(const char *pattern, const char *text)
{
    const char *star = NULL, *again = NULL;

    while (*text) {
        if (*pattern == '*') {
            star = pattern++;
            again = text;
        } else if (*pattern == *text) {
            pattern++;
            text++;
        } else if (star) {
            pattern = star + 1;
            text = ++again;
        } else {
            return false;
        }
    }
    while (*pattern == '*')
        pattern++;
    return !*pattern;
}

static const struct egress_price *price_in(const struct egress_price *prices, size_t count,
                                           const char *model)
{
    for (size_t i = 0; i < count; i++)
        if (egress_pattern_fits(prices[i].pattern, model))
            return &prices[i];
    return NULL;
}

/* Routers put the maker before the name: "anthropic/claude-sonnet-4". */
const struct egress_price *egress_price_find(const struct egress_prices *prices, const char *model)
{
    const struct egress_price *found = price_in(prices->own, prices->count, model);
    const char *slash = strrchr(model, '/');

    if (!found)
        found = price_in(table, ARRAY_COUNT(table), slash ? slash + 1 : model);
    return found;
}

/* --- sums ------------------------------------------------------------------------------------ */

uint64_t egress_tokens_sum(const struct egress_tokens *tokens)
{
    return tokens->input + tokens->output + tokens->reasoning + tokens->cache_read +
           tokens->cache_write;
}

/* Up to the next millionth. Tokens and prices are bounded: it does not overflow 128 bits. */
static uint64_t price_times(const struct egress_price *price, const struct egress_tokens *tokens)
{
    unsigned __int128 sum =
        (unsigned __int128) tokens->input * price->input +
        (unsigned __int128) (tokens->output + tokens->reasoning) * price->output +
        (unsigned __int128) tokens->cache_read * price->cache_read +
        (unsigned __int128) tokens->cache_write * price->cache_write;

    return (uint64_t) ((sum + MILLION - 1) / MILLION);
}

static void price_raise(struct egress_price *most, const struct egress_price *price)
{
    most->input = price->input > most->input ? price->input : most->input;
    most->output = price->output > most->output ? price->output : most->output;
    most->cache_read = price->cache_read > most->cache_read ? price->cache_read : most->cache_read;
    most->cache_write =
        price->cache_write > most->cache_write ? price->cache_write : most->cache_write;
}

static struct egress_price price_dearest(const struct egress_prices *prices)
{
    struct egress_price most = {.input = 0};

    for (size_t i = 0; i < ARRAY_COUNT(table); i++)
        price_raise(&most, &table[i]);
    for (size_t i = 0; i < prices->count; i++)
        price_raise(&most, &prices->own[i]);
    return most;
}

struct egress_cost egress_cost_of(const struct egress_prices *prices, const char *model,
                                  const struct egress_tokens *tokens)
{
    const struct egress_price *price = egress_price_find(prices, model);
    struct egress_price dearest;
    uint64_t micros;

    if (price) {
        micros = price_times(price, tokens);
        return (struct egress_cost){.micros = micros, .counted = micros, .is_known = true};
    }
    dearest = price_dearest(prices);
    return (struct egress_cost){.counted = price_times(&dearest, tokens)};
}

/* --- an operator's own ----------------------------------------------------------------------- */

/* "1.00/5.00/0.10": what is not said costs as input does, but for output. */
static int price_read_amounts(char *text, struct egress_price *price)
{
    uint64_t *const amounts[PRICE_TEXTS] = {&price->input, &price->output, &price->cache_read,
                                            &price->cache_write};
    size_t count = 0;
    int64_t micros;
    char *rest = text, *part;

    while ((part = strsep(&rest, "/"))) {
        if (count == PRICE_TEXTS || egress_money_parse(part, &micros) < 0 ||
            (uint64_t) micros > PRICE_MAX)
            return -1;
        *amounts[count++] = (uint64_t) micros;
    }
    if (count < 3)
        price->cache_read = price->input;
    if (count < 4)
        price->cache_write = price->input;
    return count >= 2 ? 0 : -1;
}

static int price_read(char *text, struct egress_price *price)
{
    char *equals = strchr(text, '=');
    size_t length = equals ? (size_t) (equals - text) : 0;

    if (length == 0 || length > EGRESS_PATTERN_MAX)
        return -1;
    memcpy(price->pattern, text, length);
    return price_read_amounts(equals + 1, price);
}

int egress_prices_read(const char *text, struct egress_prices *ret_prices, struct error *err)
{
    AUTO(free) char *copy = mem_copy_text(text ? text : "");
    struct egress_prices prices = {.own = mem_alloc_array(EGRESS_PRICES_MAX, sizeof(*prices.own))};
    char *rest = copy, *part;

    while ((part = strsep(&rest, ","))) {
        if (!*part)
            continue;
        if (prices.count == EGRESS_PRICES_MAX || price_read(part, &prices.own[prices.count]) < 0) {
            egress_prices_done(&prices);
            return error_set(err, ERR_INVALID, 0,
                             "prices: '%.64s' must be MODEL=INPUT/OUTPUT or "
                             "MODEL=INPUT/OUTPUT/CACHED/WRITTEN, for a million tokens, at most %d "
                             "of them with commas between",
                             part, EGRESS_PRICES_MAX);
        }
        prices.count++;
    }
    *ret_prices = prices;
    return 0;
}

void egress_prices_done(struct egress_prices *prices)
{
    free(prices->own);
    *prices = (struct egress_prices){.own = NULL};
}
