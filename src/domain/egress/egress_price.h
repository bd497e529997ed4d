/* What tokens cost. A model that no pattern fits has no known cost, which is never 0: budgets count
 * it as the dearest there is. Pure. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "domain/egress/egress_price.def"

#define EGRESS_MODEL_MAX  96
#define EGRESS_PRICES_MAX 256 /* of an operator's own */
#define EGRESS_TOKENS_MAX                                                                          \
    UINT64_C(1000000000000) /* of one request: what tells more is not believed */
#define EGRESS_PATTERN_MAX 96

struct egress_tokens {
    uint64_t input, output, reasoning, cache_read, cache_write;
};

/* For a million tokens, in millionths. */
struct egress_price {
    char pattern[EGRESS_PATTERN_MAX + 1];
    uint64_t input, output, cache_read, cache_write;
};

/* An operator's own, before those of the table. */
struct egress_prices {
    struct egress_price *own; /* owned */
    size_t count;
};

struct egress_cost {
    uint64_t micros;  /* when it is known, else 0 */
    uint64_t counted; /* what budgets count: micros, or at the dearest price */
    bool is_known;
};

/* "my-model*=1.00/5.00/0.10/1.25,other=2/8": input, output, and cached input and writing to the cache,
 * which cost as much as input when nothing is said. NULL: none. 0, or -1 with ERR_INVALID. */
int egress_prices_read(const char *text, struct egress_prices *ret_prices, struct error *err);
void egress_prices_done(struct egress_prices *prices);

/* NULL: not known. */
const struct egress_price *egress_price_find(const struct egress_prices *prices, const char *model);

struct egress_cost egress_cost_of(const struct egress_prices *prices, const char *model,
                                  const struct egress_tokens *tokens);

uint64_t egress_tokens_sum(const struct egress_tokens *tokens);

/* A model's name against a pattern: '*' is any characters. */
bool egress_pattern_fits(const char *pattern, const char *text);
