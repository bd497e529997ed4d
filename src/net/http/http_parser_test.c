#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* After the headers it needs. */
#include <cmocka.h>

#include "net/http/http_parser_testing.h"

/* What must be refused: each row is fed whole, in two pieces cut at every place, and byte by byte.
 * A lost LLHTTP_STRICT_MODE fails here. */
struct bad {
    const char *name;
    const char *bytes;
    size_t length;
    enum err_code code;
};

#define BYTES(literal) (literal), sizeof(literal) - 1
#define GET            "GET / HTTP/1.1\r\nHost: a\r\n"
#define POST           "POST / HTTP/1.1\r\nHost: a\r\n"
#define OK             "HTTP/1.1 200 OK\r\n"
#define CHUNKED        POST "Transfer-Encoding: chunked\r\n\r\n"
#define REST           "\r\n"
#define NEXT           "GET /smuggled HTTP/1.1\r\nHost: b\r\n\r\n"

static void expect_failure(const struct transcript *transcript, const struct bad *bad,
                           const char *how, size_t where)
{
    if (transcript->last == HTTP_FAILED && transcript->error.code == bad->code &&
        !strstr(text_string(&transcript->told), "smuggled") && transcript->error.message[0])
        return;
    fail_msg("%s, %s %zu: progress %d, code %s (%s), %zu messages: %s", bad->name, how, where,
             (int) transcript->last, error_code_text(transcript->error.code),
             transcript->error.message, transcript->messages, text_string(&transcript->told));
}

static void feed_bad(const struct bad *bad, enum http_kind kind, const struct http_limits *limits,
                     size_t first, size_t step)
{
    AUTO(transcript) struct transcript transcript;

    transcript_init(&transcript, kind, limits);
    if (first)
        transcript_feed(&transcript, bad->bytes, first);
    transcript_feed_steps(&transcript, bad->bytes + first, bad->length - first, step);
    expect_failure(&transcript, bad, step == 1 ? "byte by byte" : "cut at", first);
}

static void all_refused(const struct bad *rows, size_t count, enum http_kind kind,
                        const struct http_limits *limits)
{
    for (size_t i = 0; i < count; i++) {
        for (size_t cut = 0; cut < rows[i].length; cut++)
            feed_bad(&rows[i], kind, limits, cut, rows[i].length);
        feed_bad(&rows[i], kind, limits, 0, 1);
    }
}

#define REQUESTS_REFUSED(rows)  all_refused(rows, ARRAY_COUNT(rows), HTTP_KIND_REQUEST, NULL)
#define RESPONSES_REFUSED(rows) all_refused(rows, ARRAY_COUNT(rows), HTTP_KIND_RESPONSE, NULL)

static void two_answers_to_where_the_body_ends_are_refused(void **state)
{
    static const struct bad rows[] = {
        {"CL then TE",
         BYTES(POST "Content-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n" NEXT),
         ERR_INVALID},
        {"TE then CL",
         BYTES(POST "Transfer-Encoding: chunked\r\nContent-Length: 4\r\n\r\n0\r\n\r\n" NEXT),
         ERR_INVALID},
        {"CL 0 and TE",
         BYTES(POST "Content-Length: 0\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n" NEXT),
         ERR_INVALID},
        {"two different CL", BYTES(POST "Content-Length: 4\r\nContent-Length: 5\r\n\r\naaaaa"),
         ERR_INVALID},
        {"twice the same CL", BYTES(POST "Content-Length: 4\r\nContent-Length: 4\r\n\r\naaaa"),
         ERR_INVALID},
        {"CL list", BYTES(POST "Content-Length: 4, 4\r\n\r\naaaa"), ERR_INVALID},
        {"two TE",
         BYTES(POST "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"),
         ERR_INVALID},
        {"two TE, identity first",
         BYTES(POST "Transfer-Encoding: identity\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"),
         ERR_INVALID},
        {"two TE, identity last",
         BYTES(POST "Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n\r\n" NEXT),
         ERR_INVALID},
    };

    (void) state;
    REQUESTS_REFUSED(rows);
}

static void transfer_encodings_but_chunked_are_refused(void **state)
{
    static const struct bad rows[] = {
        {"chunked, identity", BYTES(POST "Transfer-Encoding: chunked, identity\r\n\r\n" NEXT),
         ERR_INVALID},
        {"identity, chunked", BYTES(POST "Transfer-Encoding: identity, chunked\r\n\r\n0\r\n\r\n"),
         ERR_INVALID},
        {"gzip, chunked", BYTES(POST "Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n"),
         ERR_INVALID},
        {"xchunked", BYTES(POST "Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\n" NEXT), ERR_INVALID},
        {"chunkedx", BYTES(POST "Transfer-Encoding: chunkedx\r\n\r\n0\r\n\r\n" NEXT), ERR_INVALID},
        {"chunked twice in one", BYTES(POST "Transfer-Encoding: chunked,chunked\r\n\r\n0\r\n\r\n"),
         ERR_INVALID},
        {"chunked and a parameter",
         BYTES(POST "Transfer-Encoding: chunked;q=1\r\n\r\n0\r\n\r\n" NEXT), ERR_INVALID},
        {"quoted", BYTES(POST "Transfer-Encoding: \"chunked\"\r\n\r\n0\r\n\r\n" NEXT), ERR_INVALID},
        {"trailing comma", BYTES(POST "Transfer-Encoding: chunked,\r\n\r\n0\r\n\r\n" NEXT),
         ERR_INVALID},
        {"leading comma", BYTES(POST "Transfer-Encoding: ,chunked\r\n\r\n0\r\n\r\n" NEXT),
         ERR_INVALID},
        {"empty", BYTES(POST "Transfer-Encoding:\r\n\r\n" NEXT), ERR_INVALID},
        {"tab behind", BYTES(POST "Transfer-Encoding: chunked\t\r\n\r\n0\r\n\r\n" NEXT),
         ERR_INVALID},
        {"vertical tab before",
         BYTES(POST "Transfer-Encoding: \x0b"
                    "chunked\r\n\r\n0\r\n\r\n" NEXT),
         ERR_INVALID},
        {"on HTTP/1.0",
         BYTES("POST / HTTP/1.0\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n" NEXT),
         ERR_INVALID},
        {"on HTTP/1.0 with keep-alive",
         BYTES("POST / HTTP/1.0\r\nConnection: keep-alive\r\nTransfer-Encoding: chunked\r\n\r\n"
               "0\r\n\r\n" NEXT),
         ERR_INVALID},
    };

    (void) state;
    REQUESTS_REFUSED(rows);
}

/* Refusing the body afterwards would be late: the owner has seen a head without a body by then. */
static void a_refused_transfer_encoding_is_never_announced(void **state)
{
    static const char request[] = POST "Transfer-Encoding: chunked \t \t\r\n\r\n0\r\n\r\n";
    AUTO(transcript) struct transcript transcript;

    (void) state;
    transcript_init(&transcript, HTTP_KIND_REQUEST, NULL);
    transcript_feed(&transcript, request, sizeof(request) - 1);
    assert_int_equal(transcript.last, HTTP_FAILED);
    assert_int_equal(transcript.head.length, 0);
}

static void numbers_that_are_no_content_length_are_refused(void **state)
{
    static const struct bad rows[] = {
        {"negative", BYTES(POST "Content-Length: -1\r\n\r\n" NEXT), ERR_INVALID},
        {"plus", BYTES(POST "Content-Length: +4\r\n\r\naaaa" NEXT), ERR_INVALID},
        {"hex", BYTES(POST "Content-Length: 0x4\r\n\r\naaaa" NEXT), ERR_INVALID},
        {"letters", BYTES(POST "Content-Length: four\r\n\r\naaaa" NEXT), ERR_INVALID},
        {"empty", BYTES(POST "Content-Length:\r\n\r\n" NEXT), ERR_INVALID},
        {"blank", BYTES(POST "Content-Length: \t \r\n\r\n" NEXT), ERR_INVALID},
        {"blank inside", BYTES(POST "Content-Length: 1 0\r\n\r\naaaaaaaaaa"), ERR_INVALID},
        {"fraction", BYTES(POST "Content-Length: 4.0\r\n\r\naaaa" NEXT), ERR_INVALID},
        {"2^64", BYTES(POST "Content-Length: 18446744073709551616\r\n\r\n" NEXT), ERR_INVALID},
        {"2^64 + 4", BYTES(POST "Content-Length: 18446744073709551620\r\n\r\naaaa" NEXT),
         ERR_INVALID},
        {"2^64 - 1", BYTES(POST "Content-Length: 18446744073709551615\r\n\r\n" NEXT), ERR_INVALID},
        {"2^63", BYTES(POST "Content-Length: 9223372036854775808\r\n\r\n" NEXT), ERR_INVALID},
        {"30 digits", BYTES(POST "Content-Length: 999999999999999999999999999999\r\n\r\n"),
         ERR_INVALID},
    };

    (void) state;
    REQUESTS_REFUSED(rows);
}

static void folded_headers_are_refused(void **state)
{
    static const struct bad rows[] = {
        {"blank", BYTES(GET "X: a\r\n b\r\n\r\n"), ERR_INVALID},
        {"tab", BYTES(GET "X: a\r\n\tb\r\n\r\n"), ERR_INVALID},
        {"trailing blanks before", BYTES(GET "X: a  \r\n b\r\n\r\n"), ERR_INVALID},
        {"empty first line", BYTES(GET "X:\r\n b\r\n\r\n"), ERR_INVALID},
        {"blank first line", BYTES(GET "X: \r\n b\r\n\r\n"), ERR_INVALID},
        {"tab first line", BYTES(GET "X:\t\r\n\tb\r\n\r\n"), ERR_INVALID},
        {"empty second line", BYTES(GET "X: a\r\n \r\n\r\n"), ERR_INVALID},
        {"both empty", BYTES(GET "X:\r\n \r\n\r\n"), ERR_INVALID},
        {"two folds", BYTES(GET "X: a\r\n b\r\n c\r\n\r\n"), ERR_INVALID},
        {"two folds of nothing", BYTES(GET "X:\r\n \r\n \r\n\r\n"), ERR_INVALID},
        {"in Host", BYTES("GET / HTTP/1.1\r\nHost:\r\n a\r\n\r\n"), ERR_INVALID},
        {"behind Host", BYTES("GET / HTTP/1.1\r\nHost: a\r\n b\r\n\r\n"), ERR_INVALID},
        {"hides TE", BYTES(POST "Transfer-Encoding:\r\n chunked\r\n\r\n0\r\n\r\n" NEXT),
         ERR_INVALID},
        {"behind TE", BYTES(POST "Transfer-Encoding: chunked\r\n \r\n\r\n0\r\n\r\n" NEXT),
         ERR_INVALID},
        {"TE in two", BYTES(POST "Transfer-Encoding: chun\r\n ked\r\n\r\n0\r\n\r\n" NEXT),
         ERR_INVALID},
        {"hides CL", BYTES(POST "Content-Length:\r\n 4\r\n\r\naaaa" NEXT), ERR_INVALID},
        {"CL in two", BYTES(POST "Content-Length: 1\r\n 0\r\n\r\naaaaaaaaaa" NEXT), ERR_INVALID},
        {"behind CL", BYTES(POST "Content-Length: 4\r\n \r\n\r\naaaa" NEXT), ERR_INVALID},
        {"hides Connection", BYTES(GET "Connection:\r\n close\r\n\r\n"), ERR_INVALID},
        {"behind Connection", BYTES(GET "Connection: close\r\n , x\r\n\r\n"), ERR_INVALID},
        {"in Upgrade", BYTES(GET "Connection: upgrade\r\nUpgrade:\r\n x\r\n\r\n"), ERR_INVALID},
        {"last header", BYTES("GET / HTTP/1.1\r\nHost: a\r\nX: y\r\n \r\n\r\n"), ERR_INVALID},
        {"before the first header", BYTES("GET / HTTP/1.1\r\n Host: a\r\n\r\n"), ERR_INVALID},
        {"tab before the first header", BYTES("GET / HTTP/1.1\r\n\tHost: a\r\n\r\n"), ERR_INVALID},
        {"in a trailer", BYTES(CHUNKED "0\r\nX: a\r\n b\r\n\r\n" NEXT), ERR_INVALID},
        {"hidden in a trailer", BYTES(CHUNKED "0\r\nX:\r\n b\r\n\r\n" NEXT), ERR_INVALID},
    };

    (void) state;
    REQUESTS_REFUSED(rows);
}

static void a_host_that_is_not_exactly_one_is_refused(void **state)
{
    static const struct bad rows[] = {
        {"missing", BYTES("GET / HTTP/1.1\r\n\r\n"), ERR_INVALID},
        {"missing among others", BYTES("GET / HTTP/1.1\r\nAccept: */*\r\n\r\n"), ERR_INVALID},
        {"missing with an absolute target", BYTES("GET http://a/ HTTP/1.1\r\nX: y\r\n\r\n"),
         ERR_INVALID},
        {"two", BYTES("GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n"), ERR_INVALID},
        {"twice the same", BYTES("GET / HTTP/1.1\r\nHost: a\r\nhOST: a\r\n\r\n"), ERR_INVALID},
        {"two on HTTP/1.0", BYTES("GET / HTTP/1.0\r\nHost: a\r\nHost: b\r\n\r\n"), ERR_INVALID},
        {"two names", BYTES("GET / HTTP/1.1\r\nHost: a, b\r\n\r\n"), ERR_INVALID},
        {"blank inside", BYTES("GET / HTTP/1.1\r\nHost: a b\r\n\r\n"), ERR_INVALID},
        {"user", BYTES("GET / HTTP/1.1\r\nHost: me@a\r\n\r\n"), ERR_INVALID},
        {"path", BYTES("GET / HTTP/1.1\r\nHost: a/b\r\n\r\n"), ERR_INVALID},
        {"port that is none", BYTES("GET / HTTP/1.1\r\nHost: a:b\r\n\r\n"), ERR_INVALID},
        {"port too high", BYTES("GET / HTTP/1.1\r\nHost: a:65536\r\n\r\n"), ERR_INVALID},
        {"open bracket", BYTES("GET / HTTP/1.1\r\nHost: [::1\r\n\r\n"), ERR_INVALID},
    };

    (void) state;
    REQUESTS_REFUSED(rows);
}

static void names_and_colons_are_strict(void **state)
{
    static const struct bad rows[] = {
        {"blank before colon", BYTES(GET "X : y\r\n\r\n"), ERR_INVALID},
        {"tab before colon", BYTES(GET "X\t: y\r\n\r\n"), ERR_INVALID},
        {"TE with blank before colon",
         BYTES(POST "Transfer-Encoding : chunked\r\n\r\n0\r\n\r\n" NEXT), ERR_INVALID},
        {"CL with blank before colon", BYTES(POST "Content-Length : 4\r\n\r\naaaa" NEXT),
         ERR_INVALID},
        {"Host with blank before colon", BYTES("GET / HTTP/1.1\r\nHost : a\r\n\r\n"), ERR_INVALID},
        {"no colon", BYTES(GET "Nothing\r\n\r\n"), ERR_INVALID},
        {"empty name", BYTES(GET ": y\r\n\r\n"), ERR_INVALID},
        {"blank in name", BYTES(GET "X Y: z\r\n\r\n"), ERR_INVALID},
        {"NUL in name", BYTES(GET "X\0Y: z\r\n\r\n"), ERR_INVALID},
        {"control in name", BYTES(GET "X\x01Y: z\r\n\r\n"), ERR_INVALID},
        {"DEL in name", BYTES(GET "X\x7fY: z\r\n\r\n"), ERR_INVALID},
        {"high byte in name", BYTES(GET "X\xc3\xa9: z\r\n\r\n"), ERR_INVALID},
        {"quotes in name", BYTES(GET "\"X\": z\r\n\r\n"), ERR_INVALID},
        {"parenthesis in name", BYTES(GET "X(1): z\r\n\r\n"), ERR_INVALID},
    };

    (void) state;
    REQUESTS_REFUSED(rows);
}

static void control_characters_in_values_are_refused(void **state)
{
    static const struct bad rows[] = {
        {"NUL", BYTES(GET "X: a\0b\r\n\r\n"), ERR_INVALID},
        {"NUL alone", BYTES(GET "X: \0\r\n\r\n"), ERR_INVALID},
        {"NUL at the end", BYTES(GET "X: a\0\r\n\r\n"), ERR_INVALID},
        {"0x01", BYTES(GET "X: a\x01\r\n\r\n"), ERR_INVALID},
        {"vertical tab", BYTES(GET "X: a\x0b\r\n\r\n"), ERR_INVALID},
        {"form feed", BYTES(GET "X: a\x0c\r\n\r\n"), ERR_INVALID},
        {"escape", BYTES(GET "X: a\x1b[0m\r\n\r\n"), ERR_INVALID},
        {"DEL", BYTES(GET "X: a\x7f\r\n\r\n"), ERR_INVALID},
        {"NUL in Connection", BYTES(GET "Connection: close\0\r\n\r\n"), ERR_INVALID},
        {"NUL in CL", BYTES(POST "Content-Length: 4\0\r\n\r\naaaa"), ERR_INVALID},
        {"NUL in TE", BYTES(POST "Transfer-Encoding: chunked\0\r\n\r\n0\r\n\r\n"), ERR_INVALID},
        {"NUL in Host", BYTES("GET / HTTP/1.1\r\nHost: a\0b\r\n\r\n"), ERR_INVALID},
    };

    (void) state;
    REQUESTS_REFUSED(rows);
}

static void line_ends_but_crlf_are_refused(void **state)
{
    static const struct bad rows[] = {
        {"CVE-2023-30589",
         BYTES(POST "X:\rxTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n0\r\n\r\n" NEXT),
         ERR_INVALID},
        {"bare CR before a header", BYTES(GET "X: y\rTransfer-Encoding: chunked\r\n\r\n"),
         ERR_INVALID},
        {"bare CR in a value", BYTES(GET "X: a\rb\r\n\r\n"), ERR_INVALID},
        {"bare CR at a value's end", BYTES(GET "X: a\r\r\n\r\n"), ERR_INVALID},
        {"bare CR in a name", BYTES(GET "X\rY: z\r\n\r\n"), ERR_INVALID},
        {"bare CR ends the request line", BYTES("GET / HTTP/1.1\rHost: a\r\n\r\n"),
         ERR_HTTP_VERSION},
        {"LF ends the request line", BYTES("GET / HTTP/1.1\nHost: a\r\n\r\n"), ERR_INVALID},
        {"LF ends a header", BYTES("GET / HTTP/1.1\r\nHost: a\nX: y\r\n\r\n"), ERR_INVALID},
        {"LF ends the head", BYTES("GET / HTTP/1.1\r\nHost: a\r\n\n"), ERR_INVALID},
        {"CR LF CR and more", BYTES("GET / HTTP/1.1\r\nHost: a\r\n\rX: y\r\n\r\n"), ERR_INVALID},
        {"LF only", BYTES("GET / HTTP/1.1\nHost: a\n\n"), ERR_INVALID},
        {"LF in a value", BYTES(GET "X: a\nb: c\r\n\r\n"), ERR_INVALID},
    };

    (void) state;
    REQUESTS_REFUSED(rows);
}

static void request_lines_are_strict(void **state)
{
    static const struct bad rows[] = {
        {"HTTP/0.9", BYTES("GET /\r\n\r\n"), ERR_HTTP_VERSION},
        {"version 0.9", BYTES("GET / HTTP/0.9\r\nHost: a\r\n\r\n"), ERR_HTTP_VERSION},
        {"version 1.2", BYTES("GET / HTTP/1.2\r\nHost: a\r\n\r\n"), ERR_HTTP_VERSION},
        {"version 2.0", BYTES("GET / HTTP/2.0\r\nHost: a\r\n\r\n"), ERR_HTTP_VERSION},
        {"version 3.1", BYTES("GET / HTTP/3.1\r\nHost: a\r\n\r\n"), ERR_HTTP_VERSION},
        {"version 11.1", BYTES("GET / HTTP/11.1\r\nHost: a\r\n\r\n"), ERR_HTTP_VERSION},
        {"version 1.10", BYTES("GET / HTTP/1.10\r\nHost: a\r\n\r\n"), ERR_HTTP_VERSION},
        {"version x", BYTES("GET / HTTP/x.1\r\nHost: a\r\n\r\n"), ERR_HTTP_VERSION},
        {"lower-case protocol", BYTES("GET / http/1.1\r\nHost: a\r\n\r\n"), ERR_INVALID},
        {"lower-case method", BYTES("get / HTTP/1.1\r\nHost: a\r\n\r\n"), ERR_INVALID},
        {"unknown method", BYTES("GETS / HTTP/1.1\r\nHost: a\r\n\r\n"), ERR_INVALID},
        {"no target", BYTES("GET  HTTP/1.1\r\nHost: a\r\n\r\n"), ERR_INVALID},
        {"two blanks", BYTES("GET / extra HTTP/1.1\r\nHost: a\r\n\r\n"), ERR_INVALID},
        {"NUL in target", BYTES("GET /\0 HTTP/1.1\r\nHost: a\r\n\r\n"), ERR_INVALID},
        {"control in target", BYTES("GET /\x01 HTTP/1.1\r\nHost: a\r\n\r\n"), ERR_INVALID},
        {"tab in target", BYTES("GET /\ta HTTP/1.1\r\nHost: a\r\n\r\n"), ERR_INVALID},
        {"DEL in target", BYTES("GET /\x7f HTTP/1.1\r\nHost: a\r\n\r\n"), ERR_INVALID},
        {"high byte in target", BYTES("GET /\xff HTTP/1.1\r\nHost: a\r\n\r\n"), ERR_INVALID},
        {"a TLS hello", BYTES("\x16\x03\x01\x02\x00\x01\x00"), ERR_INVALID},
        {"the HTTP/2 preface", BYTES("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"), ERR_INVALID},
    };

    (void) state;
    REQUESTS_REFUSED(rows);
}

static void chunk_framing_is_strict(void **state)
{
    static const struct bad rows[] = {
        {"size overflows", BYTES(CHUNKED "10000000000000000\r\na\r\n0\r\n\r\n" NEXT), ERR_INVALID},
        {"size wraps to 4", BYTES(CHUNKED "10000000000000004\r\naaaa\r\n0\r\n\r\n" NEXT),
         ERR_INVALID},
        {"blank behind size", BYTES(CHUNKED "1 \r\na\r\n0\r\n\r\n" NEXT), ERR_INVALID},
        {"blank before size", BYTES(CHUNKED " 1\r\na\r\n0\r\n\r\n" NEXT), ERR_INVALID},
        {"tab behind size", BYTES(CHUNKED "1\t\r\na\r\n0\r\n\r\n" NEXT), ERR_INVALID},
        {"0x", BYTES(CHUNKED "0x1\r\na\r\n0\r\n\r\n" NEXT), ERR_INVALID},
        {"negative", BYTES(CHUNKED "-1\r\na\r\n0\r\n\r\n" NEXT), ERR_INVALID},
        {"plus", BYTES(CHUNKED "+1\r\na\r\n0\r\n\r\n" NEXT), ERR_INVALID},
        {"no size", BYTES(CHUNKED "\r\na\r\n0\r\n\r\n" NEXT), ERR_INVALID},
        {"only an extension", BYTES(CHUNKED ";a\r\n0\r\n\r\n" NEXT), ERR_INVALID},
        {"LF behind size", BYTES(CHUNKED "1\na\r\n0\r\n\r\n" NEXT), ERR_INVALID},
        {"CR behind size", BYTES(CHUNKED "1\ra\r\n0\r\n\r\n" NEXT), ERR_INVALID},
        {"LF in extension", BYTES(CHUNKED "1;a\nb\r\na\r\n0\r\n\r\n" NEXT), ERR_INVALID},
        {"LF ends extension", BYTES(CHUNKED "1;a\na\r\n0\r\n\r\n" NEXT), ERR_INVALID},
        {"CR in extension", BYTES(CHUNKED "1;a\rb\r\na\r\n0\r\n\r\n" NEXT), ERR_INVALID},
        {"NUL in extension", BYTES(CHUNKED "1;a\0\r\na\r\n0\r\n\r\n" NEXT), ERR_INVALID},
        {"LF behind data", BYTES(CHUNKED "1\r\na\n0\r\n\r\n" NEXT), ERR_INVALID},
        {"nothing behind data", BYTES(CHUNKED "1\r\na0\r\n\r\n" NEXT), ERR_INVALID},
        {"too much data", BYTES(CHUNKED "1\r\nab\r\n0\r\n\r\n" NEXT), ERR_INVALID},
        {"LF ends the trailers", BYTES(CHUNKED "0\r\n\n" NEXT), ERR_INVALID},
        {"LF behind the last size", BYTES(CHUNKED "0\n\r\n" NEXT), ERR_INVALID},
        {"trailer without colon", BYTES(CHUNKED "0\r\nabc\r\n\r\n" NEXT), ERR_INVALID},
        {"blank before a trailer's colon", BYTES(CHUNKED "0\r\nX : y\r\n\r\n" NEXT), ERR_INVALID},
        {"trailer without name", BYTES(CHUNKED "0\r\n: y\r\n\r\n" NEXT), ERR_INVALID},
        {"second trailer without name", BYTES(CHUNKED "0\r\nA: b\r\n: y\r\n\r\n" NEXT),
         ERR_INVALID},
        {"blank before the first trailer", BYTES(CHUNKED "0\r\n A: b\r\n\r\n" NEXT), ERR_INVALID},
        {"CL in a trailer", BYTES(CHUNKED "0\r\nContent-Length: 4\r\n\r\naaaa" NEXT), ERR_INVALID},
    };

    (void) state;
    REQUESTS_REFUSED(rows);
}

static void ambiguous_responses_are_refused(void **state)
{
    static const struct bad rows[] = {
        {"CL and TE",
         BYTES(OK "Content-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n" OK REST),
         ERR_INVALID},
        {"TE and CL",
         BYTES(OK "Transfer-Encoding: chunked\r\nContent-Length: 4\r\n\r\n0\r\n\r\n" OK REST),
         ERR_INVALID},
        {"two CL", BYTES(OK "Content-Length: 4\r\nContent-Length: 5\r\n\r\naaaaa"), ERR_INVALID},
        {"TE of another kind", BYTES(OK "Transfer-Encoding: gzip\r\n\r\naaaaa"), ERR_INVALID},
        {"gzip, chunked", BYTES(OK "Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n"),
         ERR_INVALID},
        {"tab behind chunked", BYTES(OK "Transfer-Encoding: chunked\t\r\n\r\n0\r\n\r\n" OK REST),
         ERR_INVALID},
        {"TE on HTTP/1.0", BYTES("HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"),
         ERR_INVALID},
        {"fold", BYTES(OK "X: a\r\n b\r\n\r\n"), ERR_INVALID},
        {"hidden fold", BYTES(OK "Content-Length:\r\n 4\r\n\r\naaaa"), ERR_INVALID},
        {"blank before colon", BYTES(OK "Content-Length : 4\r\n\r\naaaa"), ERR_INVALID},
        {"negative CL", BYTES(OK "Content-Length: -4\r\n\r\n"), ERR_INVALID},
        {"bare CR", BYTES(OK "X: a\rb\r\n\r\n"), ERR_INVALID},
        {"LF only", BYTES("HTTP/1.1 200 OK\nContent-Length: 0\n\n"), ERR_INVALID},
        {"NUL in a value", BYTES(OK "X: \0\r\n\r\n"), ERR_INVALID},
        {"version 2.0", BYTES("HTTP/2.0 200 OK\r\n\r\n"), ERR_HTTP_VERSION},
        {"version 1.2", BYTES("HTTP/1.2 200 OK\r\n\r\n"), ERR_HTTP_VERSION},
        {"version 0.9", BYTES("HTTP/0.9 200 OK\r\n\r\n"), ERR_HTTP_VERSION},
        {"two digits of status", BYTES("HTTP/1.1 20 OK\r\n\r\n"), ERR_INVALID},
        {"four digits of status", BYTES("HTTP/1.1 2000 OK\r\n\r\n"), ERR_INVALID},
        {"status with letters", BYTES("HTTP/1.1 2x0 OK\r\n\r\n"), ERR_INVALID},
        {"garbage", BYTES("SSH-2.0-OpenSSH_9.2\r\n"), ERR_INVALID},
        {"a request", BYTES("GET / HTTP/1.1\r\nHost: a\r\n\r\n"), ERR_INVALID},
    };

    (void) state;
    RESPONSES_REFUSED(rows);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(two_answers_to_where_the_body_ends_are_refused),
        cmocka_unit_test(transfer_encodings_but_chunked_are_refused),
        cmocka_unit_test(a_refused_transfer_encoding_is_never_announced),
        cmocka_unit_test(numbers_that_are_no_content_length_are_refused),
        cmocka_unit_test(folded_headers_are_refused),
        cmocka_unit_test(a_host_that_is_not_exactly_one_is_refused),
        cmocka_unit_test(names_and_colons_are_strict),
        cmocka_unit_test(control_characters_in_values_are_refused),
        cmocka_unit_test(line_ends_but_crlf_are_refused),
        cmocka_unit_test(request_lines_are_strict),
        cmocka_unit_test(chunk_framing_is_strict),
        cmocka_unit_test(ambiguous_responses_are_refused),
    };

    return cmocka_run_group_tests_name("http_parser", tests, NULL, NULL);
}
