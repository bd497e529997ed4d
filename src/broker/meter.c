#include "broker/meter.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/auto.h"
#include "base/number.h"

/* No reply has more tokens: what a peer says beyond is nonsense. */
#define METER_TOKENS_MAX UINT64_C(1000000000000)

struct meter_row {
    const char *path;
    enum meter_number number;
};

struct meter_format {
    const struct meter_row *rows;
    size_t count;
    const char *models[2];
    bool input_has_cache;      /* take it out */
    bool output_has_reasoning; /* likewise */
};

static const struct meter_row anthropic_rows[] = {
    {"message.usage.input_tokens", METER_INPUT},
    {"message.usage.cache_read_input_tokens", METER_CACHE_READ},
    {"message.usage.cache_creation_input_tokens", METER_CACHE_WRITE},
    {"usage.input_tokens", METER_INPUT},
    {"usage.cache_read_input_tokens", METER_CACHE_READ},
    {"usage.cache_creation_input_tokens", METER_CACHE_WRITE},
    {"usage.output_tokens", METER_OUTPUT},
};

static const struct meter_row responses_rows[] = {
    {"response.usage.input_tokens", METER_INPUT},
    {"response.usage.input_tokens_details.cached_tokens", METER_CACHE_READ},
    {"response.usage.output_tokens", METER_OUTPUT},
    {"response.usage.output_tokens_details.reasoning_tokens", METER_REASONING},
    {"usage.input_tokens", METER_INPUT},
    {"usage.input_tokens_details.cached_tokens", METER_CACHE_READ},
    {"usage.output_tokens", METER_OUTPUT},
    {"usage.output_tokens_details.reasoning_tokens", METER_REASONING},
};

static const struct meter_row chat_rows[] = {
    {"usage.prompt_tokens", METER_INPUT},
    {"usage.prompt_tokens_details.cached_tokens", METER_CACHE_READ},
    {"usage.completion_tokens", METER_OUTPUT},
    {"usage.completion_tokens_details.reasoning_tokens", METER_REASONING},
};

static const struct meter_row google_rows[] = {
    {"usageMetadata.promptTokenCount", METER_INPUT},
    {"usageMetadata.toolUsePromptTokenCount", METER_INPUT_MORE},
    {"usageMetadata.cachedContentTokenCount", METER_CACHE_READ},
    {"usageMetadata.candidatesTokenCount", METER_OUTPUT},
    {"usageMetadata.thoughtsTokenCount", METER_REASONING},
};

#define ROWS(table) .rows = (table), .count = ARRAY_COUNT(table)

static const struct meter_format formats[] = {
    [BROKER_UNMETERED] = {.count = 0},
    [BROKER_ANTHROPIC] = {ROWS(anthropic_rows), .models = {"message.model", "model"}},
    [BROKER_OPENAI_RESPONSES] = {ROWS(responses_rows), .models = {"response.model", "model"},
                                 .input_has_cache = true, .output_has_reasoning = true},
    [BROKER_OPENAI_CHAT] = {ROWS(chat_rows), .models = {"model", "model"}, .input_has_cache = true,
                            .output_has_reasoning = true},
    [BROKER_GOOGLE] = {ROWS(google_rows), .models = {"modelVersion", "modelVersion"},
                       .input_has_cache = true},
    [BROKER_OPENAI_OTHER] = {ROWS(chat_rows), .models = {"model", "model"}, .input_has_cache = true,
                             .output_has_reasoning = true},
};

/* --- what the JSON says ----------------------------------------------------------------------- */

static void meter_note_number(struct meter *meter, const char *path, const char *text)
{
    const struct meter_format *format = &formats[meter->format];
    uint64_t number;

    for (size_t i = 0; i < format->count; i++) {
        const struct meter_row *row = &format->rows[i];

        if (strcmp(path, row->path) != 0 ||
            number_parse_digits(text, strlen(text), METER_TOKENS_MAX, &number) < 0)
            continue;
        meter->has_changed |= !meter->known[row->number] || meter->numbers[row->number] != number;
        meter->known[row->number] = true;
        meter->numbers[row->number] = number;
    }
}

static void meter_note_text(struct meter *meter, const char *path, const char *text)
{
    const struct meter_format *format = &formats[meter->format];

    if (format->count &&
        (strcmp(path, format->models[0]) == 0 || strcmp(path, format->models[1]) == 0))
        (void) snprintf(meter->model, sizeof(meter->model), "%s", text);
}

static void meter_found(void *context, const struct json_scan *scan, enum json_scan_kind kind,
                        const char *path, const char *text)
{
    (void) scan;
    if (kind == JSON_SCAN_NUMBER)
        meter_note_number(context, path, text);
    else if (kind == JSON_SCAN_TEXT)
        meter_note_text(context, path, text);
}

/* --- events ----------------------------------------------------------------------------------- */

void meter_init(struct meter *meter, enum broker_format format, const char *content_type)
{
    static const char events[] = "text/event-stream";

    memset(meter, 0, sizeof(*meter));
    meter->format = format;
    meter->is_stream = content_type && strncasecmp(content_type, events, strlen(events)) == 0;
    json_scan_init(&meter->scan, meter_found, meter);
}

/* An empty line: the event is over. Returns whether somebody should look. */
static bool meter_event_ended(struct meter *meter)
{
    json_scan_finish(&meter->scan);
    json_scan_reset(&meter->scan);
    meter->events += meter->has_data;
    meter->has_data = false;
    return meter->has_changed || meter->events - meter->told_at >= METER_EVENTS_PER_LOOK;
}

/* Returns whether an event ended that somebody should look at. */
static bool meter_line_ended(struct meter *meter)
{
    bool was_empty = meter->line_length == 0;

    if (meter->line == METER_LINE_DATA)
        json_scan_feed(&meter->scan, "\n", 1);
    meter->line = METER_LINE_NAME;
    meter->line_length = 0;
    return was_empty && meter_event_ended(meter);
}

static bool is_line_end(char c)
{
    return c == '\n' || c == '\r';
}

/* The bytes of one line, as far as they are here. */
static size_t meter_line_bytes(struct meter *meter, const char *bytes, size_t length)
{
    static const char name[] = "data:";
    size_t used = 0;

    while (meter->line == METER_LINE_NAME && used < length && !is_line_end(bytes[used])) {
        if (bytes[used] != name[meter->line_length])
            meter->line = METER_LINE_OTHER;
        else if (meter->line_length == sizeof(name) - 2)
            meter->line = METER_LINE_DATA;
        meter->line_length++;
        used++;
    }
    if (meter->line == METER_LINE_NAME)
        return used;
    length -= used;
    bytes += used;
    for (size_t i = 0; i < length; i++) {
        if (is_line_end(bytes[i]))
            length = i;
    }
    if (meter->line == METER_LINE_DATA) {
        json_scan_feed(&meter->scan, bytes, length);
        meter->has_data = true;
    }
    return used + length;
}

static size_t meter_feed_stream(struct meter *meter, const char *bytes, size_t length,
                                bool *ret_is_news)
{
    size_t at = 0;

    while (at < length && !*ret_is_news) {
        bool is_second_half = bytes[at] == '\n' && meter->after_cr;

        meter->after_cr = bytes[at] == '\r';
        if (is_second_half)
            at++;
        else if (is_line_end(bytes[at])) {
            at++;
            *ret_is_news = meter_line_ended(meter);
        } else {
            at += meter_line_bytes(meter, bytes + at, length - at);
        }
    }
    /* The other half of a CRLF belongs to the event, too. */
    if (*ret_is_news && at < length && meter->after_cr && bytes[at] == '\n') {
        meter->after_cr = false;
        at++;
    }
    return at;
}

size_t meter_feed(struct meter *meter, const char *bytes, size_t length, bool *ret_is_news)
{
    *ret_is_news = false;
    if (!meter->is_stream) {
        json_scan_feed(&meter->scan, bytes, length);
        return length;
    }
    length = meter_feed_stream(meter, bytes, length, ret_is_news);
    if (*ret_is_news) {
        meter->has_changed = false;
        meter->told_at = meter->events;
    }
    return length;
}

void meter_finish(struct meter *meter)
{
    json_scan_finish(&meter->scan);
    meter->events += meter->has_data;
    meter->has_data = false;
}

/* --- what it comes to ------------------------------------------------------------------------- */

static uint64_t meter_without(uint64_t number, uint64_t part)
{
    return number > part ? number - part : 0;
}

bool meter_is_complete(const struct meter *meter)
{
    return meter->known[METER_OUTPUT] || (!meter->is_stream && meter->known[METER_INPUT]);
}

void meter_usage(const struct meter *meter, struct broker_usage *ret_usage)
{
    const struct meter_format *format = &formats[meter->format];
    const uint64_t *numbers = meter->numbers;
    struct broker_usage usage = {
        .input = numbers[METER_INPUT] + numbers[METER_INPUT_MORE],
        .output = numbers[METER_OUTPUT],
        .reasoning = numbers[METER_REASONING],
        .cache_read = numbers[METER_CACHE_READ],
        .cache_write = numbers[METER_CACHE_WRITE],
    };

    if (format->input_has_cache)
        usage.input = meter_without(usage.input, usage.cache_read);
    if (format->output_has_reasoning)
        usage.output = meter_without(usage.output, usage.reasoning);
    if (meter->is_stream && !meter->known[METER_OUTPUT])
        usage.output = meter->events;
    for (size_t i = 0; i < METER_NUMBERS; i++)
        usage.is_known |= meter->known[i];
    usage.is_known |= meter->is_stream && meter->events > 0;
    memcpy(usage.model, meter->model, sizeof(usage.model));
    *ret_usage = usage;
}
