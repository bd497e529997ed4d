#include "objects/s3/sigv4.h"

#include <string.h>

#include "base/clock.h"
#include "base/encoding/encode.h"
#include "base/encoding/hash.h"
#include "net/url.h"

#define ALGORITHM  "AWS4-HMAC-SHA256"
#define DAY_LENGTH 8
#define TEXT_MAX   ((size_t) 64 * 1024) /* of one canonical request */

static const char digits[] = "0123456789";

void sigv4_date(int64_t wall_ms, char ret_date[static SIGV4_DATE_SIZE])
{
    char text[CLOCK_TEXT_SIZE];
    size_t used = 0;

    /* "2013-05-24T00:00:00.000Z" without its marks and milliseconds */
    clock_format(wall_ms, text);
    for (const char *at = text; *at && *at != '.'; at++) {
        if ((*at == 'T' || strchr(digits, *at)) && used < SIGV4_DATE_SIZE - 2)
            ret_date[used++] = *at;
    }
    ret_date[used++] = 'Z';
    ret_date[used] = '\0';
}

/* Few and mostly sorted already: insertion. Equal names are ordered by value, as the rules say. */
static void sort_pairs(struct sigv4_pair *pairs, size_t count)
{
    for (size_t i = 1; i < count; i++) {
        struct sigv4_pair moved = pairs[i];
        size_t at = i;

        for (; at > 0; at--) {
            int order = strcmp(pairs[at - 1].name, moved.name);

            if (order < 0 || (order == 0 && strcmp(pairs[at - 1].value, moved.value) <= 0))
                break;
            pairs[at] = pairs[at - 1];
        }
        pairs[at] = moved;
    }
}

/* Sorted by what the escaped names are: U+00E4 ("%C3%A4") comes before "a". */
void sigv4_query(const struct sigv4_pair *pairs, size_t count, struct text *out)
{
    AUTO(text) struct text escaped = TEXT_INIT(TEXT_MAX);
    struct sigv4_pair sorted[SIGV4_PAIRS_MAX];
    size_t starts[SIGV4_PAIRS_MAX][2];

    if (count > SIGV4_PAIRS_MAX) {
        out->overflowed = true;
        return;
    }
    for (size_t i = 0; i < count; i++) {
        starts[i][0] = escaped.length;
        url_encode(&escaped, pairs[i].name, strlen(pairs[i].name));
        text_append_char(&escaped, '\0');
        starts[i][1] = escaped.length;
        url_encode(&escaped, pairs[i].value, strlen(pairs[i].value));
        text_append_char(&escaped, '\0');
    }
    if (escaped.overflowed) {
        out->overflowed = true;
        return;
    }
    for (size_t i = 0; i < count; i++)
        sorted[i] = (struct sigv4_pair){escaped.data + starts[i][0], escaped.data + starts[i][1]};
    sort_pairs(sorted, count);
    for (size_t i = 0; i < count; i++)
        text_format(out, "%s%s=%s", i ? "&" : "", sorted[i].name, sorted[i].value);
}

/* Blanks at both ends are dropped, runs of them inside become one space. */
static void append_trimmed(struct text *out, const char *value)
{
    bool blank = false, begun = false;

    for (; *value; value++) {
        if (*value == ' ' || *value == '\t') {
            blank = begun;
            continue;
        }
        if (blank)
            text_append_char(out, ' ');
        text_append_char(out, *value);
        blank = false;
        begun = true;
    }
}

static void append_names(struct text *out, const struct sigv4_pair *headers, size_t count)
{
    for (size_t i = 0; i < count; i++)
        text_format(out, "%s%s", i ? ";" : "", headers[i].name);
}

/* The request as both sides write it. `headers` are sorted. */
static void append_canonical(struct text *out, const struct sigv4_request *request,
                             const struct sigv4_pair *headers, const char *query)
{
    text_format(out, "%s\n%s\n%s\n", request->method, request->path, query);
    for (size_t i = 0; i < request->header_count; i++) {
        text_format(out, "%s:", headers[i].name);
        append_trimmed(out, headers[i].value);
        text_append_char(out, '\n');
    }
    text_append_char(out, '\n');
    append_names(out, headers, request->header_count);
    text_format(out, "\n%s", request->payload);
}

static void append_scope(struct text *out, const struct sigv4_key *key, const char *date)
{
    text_format(out, "%.*s/%s/%s/aws4_request", DAY_LENGTH, date, key->region, key->service);
}

static void next_key(uint8_t key[SHA256_SIZE], const char *text)
{
    uint8_t made[SHA256_SIZE];

    hash_hmac(key, SHA256_SIZE, text, strlen(text), made);
    memcpy(key, made, sizeof(made));
    explicit_bzero(made, sizeof(made));
}

/* The key of one day, region and service. */
static void derive_key(const struct sigv4_key *key, const char *date, uint8_t ret_key[SHA256_SIZE])
{
    AUTO(text) struct text first = TEXT_INIT(TEXT_MAX);

    text_format(&first, "AWS4%s", key->secret);
    hash_hmac(text_string(&first), first.length, date, DAY_LENGTH, ret_key);
    next_key(ret_key, key->region);
    next_key(ret_key, key->service);
    next_key(ret_key, "aws4_request");
    if (first.data)
        explicit_bzero(first.data, first.length);
}

/* Append the signature in hex. `headers` are sorted, `query` is canonical. */
static void append_signature(struct text *out, const struct sigv4_key *key,
                             const struct sigv4_request *request, const struct sigv4_pair *headers,
                             const char *query, const char *date)
{
    AUTO(text) struct text canonical = TEXT_INIT(TEXT_MAX);
    AUTO(text) struct text to_sign = TEXT_INIT(TEXT_MAX);
    uint8_t digest[SHA256_SIZE], signing[SHA256_SIZE];
    char hex[HEX_TEXT_SIZE(SHA256_SIZE)];

    append_canonical(&canonical, request, headers, query);
    sha256_bytes(text_string(&canonical), canonical.length, digest);
    (void) hex_encode(digest, SHA256_SIZE, hex);
    text_format(&to_sign, ALGORITHM "\n%s\n", date);
    append_scope(&to_sign, key, date);
    text_format(&to_sign, "\n%s", hex);
    derive_key(key, date, signing);
    hash_hmac(signing, SHA256_SIZE, text_string(&to_sign), to_sign.length, digest);
    explicit_bzero(signing, sizeof(signing));
    (void) hex_encode(digest, SHA256_SIZE, hex);
    text_append(out, hex);
    out->overflowed |= canonical.overflowed | to_sign.overflowed;
}

void sigv4_authorize(const struct sigv4_key *key, const struct sigv4_request *request,
                     const char *date, struct text *out)
{
    AUTO(text) struct text query = TEXT_INIT(TEXT_MAX);
    struct sigv4_pair headers[SIGV4_PAIRS_MAX];

    sigv4_query(request->query, request->query_count, &query);
    if (query.overflowed || request->header_count > SIGV4_PAIRS_MAX) {
        out->overflowed = true;
        return;
    }
    memcpy(headers, request->headers, request->header_count * sizeof(*headers));
    sort_pairs(headers, request->header_count);
    text_format(out, ALGORITHM " Credential=%s/", key->id);
    append_scope(out, key, date);
    text_append(out, ", SignedHeaders=");
    append_names(out, headers, request->header_count);
    text_append(out, ", Signature=");
    append_signature(out, key, request, headers, text_string(&query), date);
}
