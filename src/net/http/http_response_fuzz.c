/* Responses from arbitrary bytes; the first byte says whether they answer HEAD ('H'). Beyond not
 * crashing: every way to cut the input into pieces gives the same result, an accepted head obeys
 * the rules of http_parser.h, statuses without a body have none, and what was parsed and written
 * again parses to the same. */
#include "net/http/http_parser_testing.h"

#define HOLDS(condition) ((condition) ? (void) 0 : abort())

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_head(struct transcript *transcript)
{
    const struct http_head *head = &transcript->parser.head;
    const char *encoding = http_head_get(head, "transfer-encoding");
    const char *length = http_head_get(head, "content-length");

    HOLDS(head->minor == 0 || head->minor == 1);
    HOLDS(head->status >= 100 && head->status <= 999);
    HOLDS(!strpbrk(head->reason, "\r\n"));
    HOLDS(head->header_count <= transcript_limits.header_count);
    for (size_t i = 0; i < head->header_count; i++) {
        const struct http_header *header = &head->headers[i];

        HOLDS(strlen(header->name) == header->name_length && http_name_is_valid(header->name));
        HOLDS(strlen(header->value) == header->value_length && http_value_is_valid(header->value));
    }
    HOLDS(!(encoding && length) && http_head_count(head, "content-length") <= 1);
    HOLDS(!encoding || (head->minor == 1 && strcasecmp(encoding, "chunked") == 0));
    HOLDS((head->content_length == HTTP_LENGTH_UNKNOWN) == (length == NULL));
    HOLDS(!head->upgrade || head->status == 101);
}

static void feed(struct transcript *transcript, const char *bytes, size_t length, bool answers_head,
                 size_t step)
{
    transcript_init(transcript, HTTP_KIND_RESPONSE, NULL);
    transcript->check = check_head;
    transcript->answers_head = answers_head;
    transcript->take_upgrades = true;
    transcript_feed_steps(transcript, bytes, length, step);
    if (transcript->messages && !http_parser_in_message(&transcript->parser) &&
        transcript_has_no_body(transcript))
        HOLDS(transcript->body.length == 0);
    transcript_finish(transcript);
    if (transcript->last == HTTP_FAILED)
        HOLDS(transcript->error.code != ERR_NONE && transcript->error.message[0]);
}

static void check_cut(const char *bytes, size_t length, size_t step,
                      const struct transcript *expected)
{
    AUTO(transcript) struct transcript transcript;

    feed(&transcript, bytes, length, expected->answers_head, step);
    HOLDS(transcript_same(&transcript, expected));
}

static void check_rewritten(const struct transcript *expected)
{
    AUTO(transcript) struct transcript transcript;

    feed(&transcript, text_string(&expected->rewritten), expected->rewritten.length,
         expected->answers_head, TRANSCRIPT_MAX);
    HOLDS(transcript.messages == expected->messages && transcript.last != HTTP_FAILED);
    HOLDS(transcript.told.length == expected->told.length);
    HOLDS(memcmp(text_string(&transcript.told), text_string(&expected->told),
                 expected->told.length) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    AUTO(transcript) struct transcript whole = {.messages = 0};
    const char *bytes = (const char *) data + 1;
    size_t length = size - 1, odd = 2;

    if (!size || size > 16384)
        return 0;
    feed(&whole, bytes, length, data[0] == 'H', length + 1);
    for (size_t i = 0; i < size; i++)
        odd = odd * 31 + data[i];
    check_cut(bytes, length, 1, &whole);
    check_cut(bytes, length, 2 + odd % 29, &whole);
    check_cut(bytes, length, 1 + length / 2, &whole);
    check_rewritten(&whole);
    return 0;
}
