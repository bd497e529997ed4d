/* Requests from arbitrary bytes. Beyond not crashing: every way to cut the input into pieces gives
 * the same result; an accepted head obeys the rules of http_parser.h, checked on the raw bytes too;
 * and written again from what the parser said it parses to the same. */
#include "net/http/http_parser_testing.h"

#define HOLDS(condition) ((condition) ? (void) 0 : abort())

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_header(const struct http_header *header)
{
    size_t length = header->value_length;

    HOLDS(strlen(header->name) == header->name_length && strlen(header->value) == length);
    HOLDS(http_name_is_valid(header->name) && http_value_is_valid(header->value));
    HOLDS(!length || (header->value[0] != ' ' && header->value[0] != '\t'));
    HOLDS(!length || (header->value[length - 1] != ' ' && header->value[length - 1] != '\t'));
}

static void check_head(struct transcript *transcript)
{
    const struct http_head *head = &transcript->parser.head;
    const char *encoding = http_head_get(head, "transfer-encoding");
    const char *length = http_head_get(head, "content-length");
    size_t bytes = head->target_length;

    HOLDS(head->minor == 0 || head->minor == 1);
    HOLDS(head->header_count <= transcript_limits.header_count);
    HOLDS(head->target_length <= transcript_limits.target_bytes);
    HOLDS(head->target_length && strlen(head->target) == head->target_length);
    for (const char *at = head->target; *at; at++)
        HOLDS(*at > ' ' && *at < 0x7f);
    for (size_t i = 0; i < head->header_count; i++) {
        check_header(&head->headers[i]);
        bytes += head->headers[i].name_length + head->headers[i].value_length;
    }
    HOLDS(bytes <= transcript_limits.head_bytes);
    HOLDS(!(encoding && length) && http_head_count(head, "content-length") <= 1);
    HOLDS(!encoding || (head->minor == 1 && strcasecmp(encoding, "chunked") == 0));
    HOLDS(http_head_count(head, "transfer-encoding") <= 1);
    HOLDS(head->chunked == (encoding != NULL));
    HOLDS((head->content_length == HTTP_LENGTH_UNKNOWN) == (length == NULL));
    HOLDS(http_head_count(head, "host") == 1 ||
          (head->minor == 0 && http_head_count(head, "host") == 0));
}

/* The raw head between `at` and `end`: only CRLF ends lines, none is folded, and there are as many
 * as headers were reported, so that none was swallowed or made up. */
static void check_raw_head(const char *at, const char *end, const struct http_head *head)
{
    size_t lines = 0;
    bool over = false;

    while (at < end && (*at == '\r' || *at == '\n'))
        at++;
    for (; at < end && !over; at++) {
        HOLDS(*at != '\0');
        if (*at == '\r')
            HOLDS(at + 1 < end && at[1] == '\n');
        if (*at != '\n')
            continue;
        HOLDS(at[-1] == '\r');
        over = at[-2] == '\n';
        HOLDS(over || at + 1 == end || (at[1] != ' ' && at[1] != '\t'));
        lines++;
    }
    HOLDS(over && lines == head->header_count + 2); /* the request line and the empty one */
}

/* The messages one after the other, with an eye on the bytes each was made of. */
static void check_whole(const char *bytes, size_t length, struct transcript *transcript)
{
    size_t start = 0;

    transcript_init(transcript, HTTP_KIND_REQUEST, NULL);
    transcript->check = check_head;
    for (size_t at = 0; at < length && !transcript->over;) {
        size_t used = 0;

        transcript->last = http_parser_feed(&transcript->parser, bytes + at, length - at, &used,
                                            &transcript->error);
        HOLDS(used <= length - at);
        at += used;
        transcript_step(transcript, bytes + at, length - at);
        if (transcript->last == HTTP_FAILED)
            HOLDS(transcript->error.code != ERR_NONE && transcript->error.message[0]);
        if (transcript->last == HTTP_MESSAGE_READY || transcript->last == HTTP_UPGRADE_READY) {
            check_raw_head(bytes + start, bytes + at, &transcript->parser.head);
            start = at;
        }
    }
    transcript_finish(transcript);
}

static void check_cut(const char *bytes, size_t length, size_t step,
                      const struct transcript *expected)
{
    AUTO(transcript) struct transcript transcript;

    transcript_init(&transcript, HTTP_KIND_REQUEST, NULL);
    transcript_feed_steps(&transcript, bytes, length, step);
    transcript_finish(&transcript);
    HOLDS(transcript_same(&transcript, expected));
}

static void check_rewritten(const struct transcript *expected)
{
    AUTO(transcript) struct transcript transcript;

    transcript_init(&transcript, HTTP_KIND_REQUEST, NULL);
    transcript_feed(&transcript, text_string(&expected->rewritten), expected->rewritten.length);
    HOLDS(transcript.messages == expected->messages && transcript.last != HTTP_FAILED);
    HOLDS(transcript.told.length == expected->told.length);
    HOLDS(memcmp(text_string(&transcript.told), text_string(&expected->told),
                 expected->told.length) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    AUTO(transcript) struct transcript whole = {.messages = 0};
    const char *bytes = (const char *) data;
    size_t odd = 2;

    if (size > 16384)
        return 0;
    check_whole(bytes, size, &whole);
    for (size_t i = 0; i < size; i++)
        odd = odd * 31 + data[i];
    check_cut(bytes, size, 1, &whole);
    check_cut(bytes, size, 2 + odd % 29, &whole);
    check_cut(bytes, size, 1 + size / 2, &whole);
    check_rewritten(&whole);
    return 0;
}
