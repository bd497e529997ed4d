/* Whatever a model replies, the numbers are the same in whatever pieces it comes, and never absurd. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "broker/meter.h"

#define SUM_MAX (UINT64_C(4) * 1000000000000)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(bool holds)
{
    if (!holds)
        abort();
}

static struct broker_usage measure(enum broker_format format, bool is_stream, const char *bytes,
                                   size_t length, size_t step)
{
    struct meter meter;
    struct broker_usage usage;

    meter_init(&meter, format, is_stream ? "text/event-stream" : "application/json");
    for (size_t at = 0; at < length;) {
        size_t piece = length - at < step ? length - at : step;
        bool is_news;
        size_t used = meter_feed(&meter, bytes + at, piece, &is_news);

        must(used > 0 && used <= piece && (is_news || used == piece));
        at += used;
    }
    meter_finish(&meter);
    meter_usage(&meter, &usage);
    must(usage.input <= SUM_MAX && usage.output <= SUM_MAX && usage.reasoning <= SUM_MAX);
    must(memchr(usage.model, '\0', sizeof(usage.model)) != NULL);
    return usage;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    enum broker_format format;
    struct broker_usage whole, pieces;

    if (size < 1 || size > 8192)
        return 0;
    format = (enum broker_format)(data[0] % (BROKER_OPENAI_OTHER + 1));
    whole = measure(format, data[0] & 0x80, (const char *) data + 1, size - 1, size);
    pieces = measure(format, data[0] & 0x80, (const char *) data + 1, size - 1, 1);
    must(whole.input == pieces.input && whole.output == pieces.output &&
         whole.reasoning == pieces.reasoning && whole.cache_read == pieces.cache_read &&
         whole.cache_write == pieces.cache_write && whole.is_known == pieces.is_known &&
         strcmp(whole.model, pieces.model) == 0);
    return 0;
}
