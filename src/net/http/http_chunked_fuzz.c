/* Chunked bodies from arbitrary bytes behind a fixed valid head, beside a small decoder written
 * straight from RFC 9112 7.1 at its strictest. What the parser accepts the strict one accepts too,
 * with the same body and the same end; where the body ends is what smuggling is about. */
#include <ctype.h>

#include "net/http/http_parser_testing.h"

#define HOLDS(condition) ((condition) ? (void) 0 : abort())

static const char head[] = "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n";

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct input {
    const char *at;
    const char *end;
};

static bool take(struct input *input, char c)
{
    if (input->at == input->end || *input->at != c)
        return false;
    input->at++;
    return true;
}

static bool take_line_end(struct input *input)
{
    return take(input, '\r') && take(input, '\n');
}

static int hex_value(char c)
{
    return !isxdigit((unsigned char) c) ? -1
           : isdigit((unsigned char) c) ? c - '0'
                                        : tolower((unsigned char) c) - 'a' + 10;
}

static bool take_size(struct input *input, uint64_t *ret_size)
{
    const char *start = input->at;

    for (*ret_size = 0; input->at < input->end && hex_value(*input->at) >= 0; input->at++) {
        if (*ret_size >> 60)
            return false;
        *ret_size = *ret_size << 4 | (uint64_t) hex_value(*input->at);
    }
    return input->at > start;
}

/* Blank, tab, and what can be seen: what extensions and trailer values are made of. */
static void take_text(struct input *input)
{
    while (input->at < input->end && *input->at != 0x7f &&
           ((unsigned char) *input->at >= ' ' || *input->at == '\t'))
        input->at++;
}

static bool take_trailer(struct input *input)
{
    const char *start = input->at;

    while (input->at < input->end && (isalnum((unsigned char) *input->at) ||
                                      (*input->at && strchr("!#$%&'*+-.^_`|~", *input->at))))
        input->at++;
    if (input->at == start || !take(input, ':'))
        return false;
    take_text(input);
    return take_line_end(input);
}

/* The strict decoder. It need not tell a wrong body from one that is cut off: neither is accepted.
 */
static bool decode(struct input *input, struct text *out)
{
    uint64_t size;

    do {
        if (!take_size(input, &size))
            return false;
        if (input->at < input->end && *input->at == ';')
            take_text(input);
        if (!take_line_end(input) || size > (uint64_t) (input->end - input->at))
            return false;
        text_append_bytes(out, input->at, size);
        input->at += size;
        if (size && !take_line_end(input))
            return false;
    } while (size);
    while (input->at < input->end && *input->at != '\r') {
        if (!take_trailer(input))
            return false;
    }
    return take_line_end(input);
}

static void run(struct transcript *transcript, const char *bytes, size_t length, size_t step)
{
    transcript_init(transcript, HTTP_KIND_REQUEST, NULL);
    transcript_feed(transcript, head, sizeof(head) - 1);
    HOLDS(transcript->last == HTTP_HEAD_READY);
    transcript->consumed = 0;
    for (size_t at = 0; at < length && !transcript->messages && !transcript->over; at += step)
        transcript_feed(transcript, bytes + at, length - at < step ? length - at : step);
}

/* The same bytes after the end of the body must not change it. */
static void check(const char *bytes, size_t length, size_t step, const struct text *expected,
                  bool accepted, size_t used)
{
    AUTO(transcript) struct transcript transcript;

    run(&transcript, bytes, accepted && used < length ? used : length, step);
    HOLDS(transcript.messages <= accepted);
    if (!transcript.messages) {
        /* Where it stopped, it had said nothing but the beginning of the truth. */
        HOLDS(transcript.body.length <= expected->length || !accepted);
        return;
    }
    HOLDS(transcript.first_end == used && transcript.body.length == expected->length);
    HOLDS(memcmp(text_string(&transcript.body), text_string(expected), expected->length) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    AUTO(text) struct text expected = TEXT_INIT(TRANSCRIPT_MAX);
    const char *bytes = (const char *) data;
    struct input input = {.at = bytes, .end = bytes + size};
    bool accepted;
    size_t used;

    if (size > 16384)
        return 0;
    accepted = decode(&input, &expected);
    used = (size_t) (input.at - bytes);
    check(bytes, size, size + 1, &expected, accepted, used);
    check(bytes, size, 1, &expected, accepted, used);
    check(bytes, size, 1 + size / 3, &expected, accepted, used);
    return 0;
}
