/* Usage, read from a model's reply while it passes: server-sent events and JSON, of any length and
 * in pieces of any size, without holding any of it. Pure.
 *
 * Formats differ in what their numbers contain; here `input` is without what came from a cache and
 * `output` without reasoning, for all of them. As long as a stream has not told how much it wrote,
 * each of its events counts as one token of output: a reply that is cut was not for free. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "domain/broker.h"
#include "json/json_scan.h"

enum meter_number {
    METER_INPUT,
    METER_INPUT_MORE, /* beside it */
    METER_CACHE_READ,
    METER_CACHE_WRITE,
    METER_OUTPUT,
    METER_REASONING,
    METER_NUMBERS
};

enum meter_line { METER_LINE_NAME, METER_LINE_DATA, METER_LINE_OTHER };

struct meter {
    enum broker_format format;
    struct json_scan scan;
    uint64_t numbers[METER_NUMBERS];
    bool known[METER_NUMBERS];
    char model[sizeof(((struct broker_usage *) 0)->model)];
    uint64_t events;  /* with data */
    uint64_t told_at; /* events when meter_feed stopped last */
    bool is_stream;
    bool has_changed; /* since meter_feed stopped last */
    /* Of a stream. */
    enum meter_line line;
    size_t line_length;
    bool has_data; /* the event under way */
    bool after_cr;
};

/* Events of a stream after which somebody looks even if no number changed. */
#define METER_EVENTS_PER_LOOK 16

/* `content_type` of the reply, may be NULL. */
void meter_init(struct meter *meter, enum broker_format format, const char *content_type);

/* Look at the next bytes of the reply. Stops behind the end of an event when there is something new
 * (`ret_is_news`). Returns how many bytes were looked at: call again with the rest. */
size_t meter_feed(struct meter *meter, const char *bytes, size_t length, bool *ret_is_news);

/* The whole reply came. */
void meter_finish(struct meter *meter);

/* As far as known. */
void meter_usage(const struct meter *meter, struct broker_usage *ret_usage);

/* Whether the reply said how much it wrote; else what is known of it is a guess. */
bool meter_is_complete(const struct meter *meter);
