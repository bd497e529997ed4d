#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* After the headers it needs. */
#include <cmocka.h>

#include "net/http/http_parser_testing.h"

/* What must be accepted: each row is fed whole, in two pieces cut at every place, and byte by
 * byte, and must give the same transcript every time. */
struct good {
    const char *name;
    const char *bytes;
    const char *told;
};

#define GET  "GET / HTTP/1.1\r\nHost: a\r\n"
#define POST "POST / HTTP/1.1\r\nHost: a\r\n"
#define OK   "HTTP/1.1 200 OK\r\n"

#define TOLD_GET  "GET[/] 0[] HTTP/1.1 length=-1 keep\nHost: a\n"
#define TOLD_POST "POST[/] 0[] HTTP/1.1 "
#define TOLD_OK   "[] 200[OK] HTTP/1.1 "

struct way {
    enum http_kind kind;
    bool answers_head;
    bool take_upgrades;
    bool finish;
};

static void expect_told(const struct transcript *transcript, const struct good *good, size_t cut)
{
    if (transcript->last != HTTP_FAILED && strcmp(text_string(&transcript->told), good->told) == 0)
        return;
    fail_msg("%s, cut at %zu: progress %d, %s\n%s\ninstead of\n%s", good->name, cut,
             (int) transcript->last, transcript->error.message, text_string(&transcript->told),
             good->told);
}

static void feed_good(const struct good *good, const struct way *way, size_t cut, size_t step)
{
    AUTO(transcript) struct transcript transcript;

    transcript_init(&transcript, way->kind, NULL);
    transcript.answers_head = way->answers_head;
    transcript.take_upgrades = way->take_upgrades;
    transcript_feed(&transcript, good->bytes, cut);
    transcript_feed_steps(&transcript, good->bytes + cut, strlen(good->bytes) - cut, step);
    if (way->finish)
        transcript_finish(&transcript);
    expect_told(&transcript, good, cut);
}

static void all_accepted(const struct good *rows, size_t count, struct way way)
{
    for (size_t i = 0; i < count; i++) {
        size_t length = strlen(rows[i].bytes);

        for (size_t cut = 0; cut < length; cut++)
            feed_good(&rows[i], &way, cut, length);
        feed_good(&rows[i], &way, 0, 1);
    }
}

static void sound_requests_are_taken_apart(void **state)
{
    static const struct good rows[] = {
        {"no body", GET "\r\n", TOLD_GET "{}\n"},
        {"query and port", "GET /x?y=%20z HTTP/1.1\r\nHost: a.test:80\r\n\r\n",
         "GET[/x?y=%20z] 0[] HTTP/1.1 length=-1 keep\nHost: a.test:80\n{}\n"},
        {"blanks around values go", GET "A:b\r\nC:\t d e \t \r\nF:\r\nG: \r\n\r\n",
         TOLD_GET "A: b\nC: d e\nF: \nG: \n{}\n"},
        {"names keep case and order", GET "x-B: 1\r\nX-a: 2\r\nX-B: 3\r\n\r\n",
         TOLD_GET "x-B: 1\nX-a: 2\nX-B: 3\n{}\n"},
        {"high bytes in values pass", GET "N: \xc3\xa9\r\n\r\n", TOLD_GET "N: \xc3\xa9\n{}\n"},
        {"length", POST "Content-Length: 5\r\n\r\nhello",
         TOLD_POST "length=5 keep\nHost: a\nContent-Length: 5\n{hello}\n"},
        {"length with zeros", POST "Content-Length: 0005\r\n\r\nhello",
         TOLD_POST "length=5 keep\nHost: a\nContent-Length: 0005\n{hello}\n"},
        {"length zero", POST "Content-Length: 0\r\n\r\n",
         TOLD_POST "length=0 keep\nHost: a\nContent-Length: 0\n{}\n"},
        {"body that looks like a head", POST "Content-Length: 12\r\n\r\n\r\nA: b\r\n c\r\n",
         TOLD_POST "length=12 keep\nHost: a\nContent-Length: 12\n{\r\nA: b\r\n c\r\n}\n"},
        {"chunks", POST "transfer-encoding: CHUNKED\r\n\r\n5\r\nhello\r\n06\r\n world\r\n0\r\n\r\n",
         TOLD_POST "length=-1 chunked keep\nHost: a\ntransfer-encoding: CHUNKED\n{hello world}\n"},
        {"no chunks", POST "Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
         TOLD_POST "length=-1 chunked keep\nHost: a\nTransfer-Encoding: chunked\n{}\n"},
        {"extensions and trailers",
         POST "Transfer-Encoding: chunked\r\n\r\n5;a=b\r\nhello\r\n0;c\r\nX: y\r\n\r\n",
         TOLD_POST "length=-1 chunked keep\nHost: a\nTransfer-Encoding: chunked\n{hello}\n"},
        {"chunk that looks like lines",
         POST "Transfer-Encoding: chunked\r\n\r\n4\r\n\n \r\n\r\n0\r\n\r\n",
         TOLD_POST "length=-1 chunked keep\nHost: a\nTransfer-Encoding: chunked\n{\n \r\n}\n"},
        {"close", GET "Connection: close\r\n\r\n",
         "GET[/] 0[] HTTP/1.1 length=-1\nHost: a\nConnection: close\n{}\n"},
        {"HTTP/1.0", "GET / HTTP/1.0\r\n\r\n", "GET[/] 0[] HTTP/1.0 length=-1\n{}\n"},
        {"HTTP/1.0 that stays", "GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n",
         "GET[/] 0[] HTTP/1.0 length=-1 keep\nConnection: keep-alive\n{}\n"},
        {"empty Host", "GET / HTTP/1.1\r\nHost:\r\n\r\n",
         "GET[/] 0[] HTTP/1.1 length=-1 keep\nHost: \n{}\n"},
        {"line ends before", "\r\n\r\n" GET "\r\n", TOLD_GET "{}\n"},
        {"asterisk", "OPTIONS * HTTP/1.1\r\nHost: a\r\n\r\n",
         "OPTIONS[*] 0[] HTTP/1.1 length=-1 keep\nHost: a\n{}\n"},
        {"pipelined", GET "\r\n" POST "Content-Length: 2\r\n\r\nhi" GET "\r\n",
         TOLD_GET "{}\n" TOLD_POST "length=2 keep\nHost: a\nContent-Length: 2\n{hi}\n" TOLD_GET
                  "{}\n"},
        {"pipelined behind chunks",
         POST "Transfer-Encoding: chunked\r\n\r\n1\r\nx\r\n0\r\n\r\n" GET "\r\n",
         TOLD_POST "length=-1 chunked keep\nHost: a\nTransfer-Encoding: chunked\n{x}\n" TOLD_GET
                   "{}\n"},
        {"a refused upgrade goes on with HTTP",
         GET "Connection: keep-alive, Upgrade\r\nUpgrade: x\r\n\r\n" GET "\r\n",
         "GET[/] 0[] HTTP/1.1 length=-1 keep upgrade\nHost: a\nConnection: keep-alive, Upgrade\n"
         "Upgrade: x\n{}\n" TOLD_GET "{}\n"},
        {"an upgrade behind a body",
         POST "Connection: upgrade\r\nUpgrade: x\r\nContent-Length: 2\r\n\r\nhi" GET "\r\n",
         TOLD_POST "length=2 keep upgrade\nHost: a\nConnection: upgrade\nUpgrade: x\n"
                   "Content-Length: 2\n{hi}\n" TOLD_GET "{}\n"},
    };

    (void) state;
    all_accepted(rows, ARRAY_COUNT(rows), (struct way){.kind = HTTP_KIND_REQUEST, .finish = true});
}

static void sound_responses_are_taken_apart(void **state)
{
    static const struct good rows[] = {
        {"length", OK "Content-Length: 5\r\n\r\nhello",
         TOLD_OK "length=5 keep\nContent-Length: 5\n{hello}\n"},
        {"chunks", OK "Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n",
         TOLD_OK "length=-1 chunked keep\nTransfer-Encoding: chunked\n{hello}\n"},
        {"until the end", OK "A: b\r\n\r\nall\r\n of it",
         TOLD_OK "length=-1\nA: b\n{all\r\n of it}\n"},
        {"HTTP/1.0 until the end", "HTTP/1.0 200 OK\r\n\r\nall",
         "[] 200[OK] HTTP/1.0 length=-1\n{all}\n"},
        {"no reason", "HTTP/1.1 200\r\nContent-Length: 0\r\n\r\n",
         "[] 200[] HTTP/1.1 length=0 keep\nContent-Length: 0\n{}\n"},
        {"long reason", "HTTP/1.1 404 Not Found At All\r\nContent-Length: 0\r\n\r\n",
         "[] 404[Not Found At All] HTTP/1.1 length=0 keep\nContent-Length: 0\n{}\n"},
        {"interim ones first",
         "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early\r\nLink: x\r\n\r\n" OK
         "Content-Length: 2\r\n\r\nok",
         "[] 100[Continue] HTTP/1.1 length=-1 keep\n{}\n"
         "[] 103[Early] HTTP/1.1 length=-1 keep\nLink: x\n{}\n" TOLD_OK
         "length=2 keep\nContent-Length: 2\n{ok}\n"},
        {"204 has no body",
         "HTTP/1.1 204 x\r\nContent-Length: 3\r\n\r\n" OK "Content-Length: 0\r\n\r\n",
         "[] 204[x] HTTP/1.1 length=3 keep\nContent-Length: 3\n{}\n" TOLD_OK
         "length=0 keep\nContent-Length: 0\n{}\n"},
        {"304 has no body",
         "HTTP/1.1 304 x\r\nContent-Length: 3\r\n\r\n" OK "Content-Length: 0\r\n\r\n",
         "[] 304[x] HTTP/1.1 length=3 keep\nContent-Length: 3\n{}\n" TOLD_OK
         "length=0 keep\nContent-Length: 0\n{}\n"},
        {"304 is not chunked",
         "HTTP/1.1 304 x\r\nTransfer-Encoding: chunked\r\n\r\n" OK "Content-Length: 0\r\n\r\n",
         "[] 304[x] HTTP/1.1 length=-1 chunked keep\nTransfer-Encoding: chunked\n{}\n" TOLD_OK
         "length=0 keep\nContent-Length: 0\n{}\n"},
    };

    (void) state;
    all_accepted(rows, ARRAY_COUNT(rows), (struct way){.kind = HTTP_KIND_RESPONSE, .finish = true});
}

static void answers_to_head_have_no_body(void **state)
{
    static const struct good rows[] = {
        {"length", OK "Content-Length: 5\r\n\r\n" OK "Content-Length: 7\r\n\r\n",
         TOLD_OK "length=5 keep\nContent-Length: 5\n{}\n" TOLD_OK
                 "length=7 keep\nContent-Length: 7\n{}\n"},
        {"chunks", OK "Transfer-Encoding: chunked\r\n\r\n" OK "Content-Length: 7\r\n\r\n",
         TOLD_OK "length=-1 chunked keep\nTransfer-Encoding: chunked\n{}\n" TOLD_OK
                 "length=7 keep\nContent-Length: 7\n{}\n"},
        {"neither", OK "A: b\r\n\r\n", TOLD_OK "length=-1\nA: b\n{}\n"},
    };

    (void) state;
    all_accepted(rows, ARRAY_COUNT(rows),
                 (struct way){.kind = HTTP_KIND_RESPONSE, .answers_head = true});
}

static void what_follows_an_upgrade_is_left_alone(void **state)
{
    static const char request[] =
        GET "Connection: upgrade\r\nUpgrade: x\r\n\r\n\x81\x02 not \r\n HTTP";
    static const char response[] = "HTTP/1.1 101 Switching\r\nConnection: upgrade\r\n"
                                   "Upgrade: x\r\n\r\n\x81\x02 not \r\n HTTP";

    (void) state;
    for (int kind = HTTP_KIND_REQUEST; kind <= HTTP_KIND_RESPONSE; kind++) {
        const char *bytes = kind == HTTP_KIND_REQUEST ? request : response;
        size_t length = strlen(bytes);

        for (size_t cut = 0; cut <= length; cut++) {
            AUTO(transcript) struct transcript transcript;

            transcript_init(&transcript, (enum http_kind) kind, NULL);
            transcript.take_upgrades = true;
            transcript_feed(&transcript, bytes, cut);
            transcript_feed(&transcript, bytes + cut, length - cut);
            assert_int_equal(transcript.last, HTTP_UPGRADE_READY);
            assert_int_equal(transcript.messages, 1);
            assert_string_equal(text_string(&transcript.after), "\x81\x02 not \r\n HTTP");
        }
    }
}

static void a_request_with_a_body_stops_behind_its_head(void **state)
{
    static const char bytes[] = POST "Content-Length: 2\r\n\r\nhi";
    struct transcript transcript;
    size_t used = 0;

    (void) state;
    transcript_init(&transcript, HTTP_KIND_REQUEST, NULL);
    assert_int_equal(
        http_parser_feed(&transcript.parser, bytes, strlen(bytes), &used, &transcript.error),
        HTTP_HEAD_READY);
    assert_int_equal(used, strlen(bytes) - 2);
    assert_int_equal(transcript.body.length, 0);
    assert_true(http_parser_in_message(&transcript.parser));
    assert_int_equal(http_parser_feed(&transcript.parser, "hi", 2, &used, &transcript.error),
                     HTTP_MESSAGE_READY);
    assert_int_equal(used, 2);
    assert_string_equal(text_string(&transcript.body), "hi");
    assert_false(http_parser_in_message(&transcript.parser));
    transcript_done(&transcript);
}

static void an_end_in_the_middle_is_a_failure(void **state)
{
    static const struct {
        enum http_kind kind;
        const char *bytes;
    } rows[] = {
        {HTTP_KIND_REQUEST, POST "Content-Length: 5\r\n\r\nhello"},
        {HTTP_KIND_REQUEST, POST "Transfer-Encoding: chunked\r\n\r\n1\r\nx\r\n0\r\nA: b\r\n\r\n"},
        {HTTP_KIND_RESPONSE, OK "Content-Length: 5\r\n\r\nhello"},
        {HTTP_KIND_RESPONSE, OK "Transfer-Encoding: chunked\r\n\r\n1\r\nx\r\n0\r\n\r\n"},
    };

    (void) state;
    for (size_t i = 0; i < ARRAY_COUNT(rows); i++) {
        for (size_t cut = 0; cut <= strlen(rows[i].bytes); cut++) {
            AUTO(transcript) struct transcript transcript;
            bool whole = cut == strlen(rows[i].bytes);

            transcript_init(&transcript, rows[i].kind, NULL);
            transcript_feed(&transcript, rows[i].bytes, cut);
            transcript_finish(&transcript);
            assert_int_equal(transcript.messages, whole);
            assert_int_equal(transcript.last, cut && !whole ? HTTP_FAILED : HTTP_NEEDS_MORE);
        }
    }
}

/* --- limits --------------------------------------------------------------------------------- */

static const struct http_limits small = {.target_bytes = 64, .head_bytes = 512, .header_count = 8};

static void fail_with(enum http_kind kind, const struct text *bytes, enum err_code code)
{
    for (size_t step = 1; step <= bytes->length; step += step < 8 ? 1 : bytes->length / 3) {
        AUTO(transcript) struct transcript transcript;

        transcript_init(&transcript, kind, &small);
        transcript_feed_steps(&transcript, text_string(bytes), bytes->length, step);
        assert_int_equal(transcript.last, HTTP_FAILED);
        assert_int_equal(transcript.error.code, code);
        assert_int_equal(transcript.messages, 0);
    }
}

static void pass(enum http_kind kind, const struct text *bytes)
{
    for (size_t step = 1; step <= bytes->length; step += step < 8 ? 1 : bytes->length / 3) {
        AUTO(transcript) struct transcript transcript;

        transcript_init(&transcript, kind, &small);
        transcript_feed_steps(&transcript, text_string(bytes), bytes->length, step);
        assert_int_equal(transcript.last, HTTP_MESSAGE_READY);
        assert_int_equal(transcript.messages, 1);
    }
}

static void repeat(struct text *text, const char *piece, size_t count)
{
    while (count--)
        text_append(text, piece);
}

static void a_target_up_to_the_limit_passes(void **state)
{
    (void) state;
    for (size_t length = 60; length < 70; length++) {
        AUTO(text) struct text bytes = TEXT_INIT(TRANSCRIPT_MAX);

        text_append(&bytes, "GET /");
        repeat(&bytes, "x", length - 1);
        text_append(&bytes, " HTTP/1.1\r\nHost: a\r\n\r\n");
        if (length <= small.target_bytes)
            pass(HTTP_KIND_REQUEST, &bytes);
        else
            fail_with(HTTP_KIND_REQUEST, &bytes, ERR_URL_TOO_LONG);
    }
}

static void headers_up_to_the_count_pass(void **state)
{
    (void) state;
    for (size_t count = 6; count < 11; count++) {
        AUTO(text) struct text bytes = TEXT_INIT(TRANSCRIPT_MAX);

        text_append(&bytes, GET);
        repeat(&bytes, "A: b\r\n", count - 1);
        text_append(&bytes, "\r\n");
        if (count <= small.header_count)
            pass(HTTP_KIND_REQUEST, &bytes);
        else
            fail_with(HTTP_KIND_REQUEST, &bytes, ERR_HEADERS_TOO_LARGE);
    }
}

static void a_head_over_the_limit_is_refused(void **state)
{
    static const char *const pieces[] = {"name", "value"};

    (void) state;
    for (size_t i = 0; i < ARRAY_COUNT(pieces); i++) {
        AUTO(text) struct text bytes = TEXT_INIT(TRANSCRIPT_MAX);

        text_append(&bytes, GET "X");
        text_append(&bytes, i ? ": " : "");
        repeat(&bytes, pieces[i], 200); /* never ends */
        fail_with(HTTP_KIND_REQUEST, &bytes, ERR_HEADERS_TOO_LARGE);
    }
}

static void a_response_head_over_the_limit_is_refused(void **state)
{
    AUTO(text) struct text bytes = TEXT_INIT(TRANSCRIPT_MAX);

    (void) state;
    text_append(&bytes, OK);
    repeat(&bytes, "Set-Cookie: 0123456789012345678901234567890123456789\r\n", 1000);
    fail_with(HTTP_KIND_RESPONSE, &bytes, ERR_HEADERS_TOO_LARGE);
}

/* CVE-2024-22019: framing without data must end somewhere. */
static void framing_without_end_is_refused(void **state)
{
    static const char *const endless[] = {
        "1;" /* one extension */,
        "0\r\nX: " /* one trailer */,
    };

    (void) state;
    for (size_t i = 0; i < ARRAY_COUNT(endless); i++) {
        AUTO(text) struct text bytes = TEXT_INIT(TRANSCRIPT_MAX);

        text_append(&bytes, POST "Transfer-Encoding: chunked\r\n\r\n");
        text_append(&bytes, endless[i]);
        repeat(&bytes, "0123456789abcdef", 8192);
        fail_with(HTTP_KIND_REQUEST, &bytes, ERR_INVALID);
    }
}

static void many_trailers_are_refused(void **state)
{
    AUTO(text) struct text bytes = TEXT_INIT(TRANSCRIPT_MAX);

    (void) state;
    text_append(&bytes, POST "Transfer-Encoding: chunked\r\n\r\n0\r\n");
    repeat(&bytes, "X-Trailer: 0123456789\r\n", 8192);
    fail_with(HTTP_KIND_REQUEST, &bytes, ERR_INVALID);
}

static void extensions_on_every_small_chunk_are_refused(void **state)
{
    AUTO(text) struct text bytes = TEXT_INIT(TRANSCRIPT_MAX);

    (void) state;
    text_append(&bytes, POST "Transfer-Encoding: chunked\r\n\r\n");
    repeat(&bytes, "1;0123456789012345678901234567890123456789\r\nx\r\n", 8192);
    fail_with(HTTP_KIND_REQUEST, &bytes, ERR_INVALID);
}

static void one_byte_chunks_pass(void **state)
{
    AUTO(text) struct text bytes = TEXT_INIT(TRANSCRIPT_MAX);

    (void) state;
    text_append(&bytes, POST "Transfer-Encoding: chunked\r\n\r\n");
    repeat(&bytes, "1\r\nx\r\n", 50000);
    text_append(&bytes, "0\r\n\r\n");
    pass(HTTP_KIND_REQUEST, &bytes);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sound_requests_are_taken_apart),
        cmocka_unit_test(sound_responses_are_taken_apart),
        cmocka_unit_test(answers_to_head_have_no_body),
        cmocka_unit_test(what_follows_an_upgrade_is_left_alone),
        cmocka_unit_test(a_request_with_a_body_stops_behind_its_head),
        cmocka_unit_test(an_end_in_the_middle_is_a_failure),
        cmocka_unit_test(a_target_up_to_the_limit_passes),
        cmocka_unit_test(headers_up_to_the_count_pass),
        cmocka_unit_test(a_head_over_the_limit_is_refused),
        cmocka_unit_test(a_response_head_over_the_limit_is_refused),
        cmocka_unit_test(framing_without_end_is_refused),
        cmocka_unit_test(many_trailers_are_refused),
        cmocka_unit_test(extensions_on_every_small_chunk_are_refused),
        cmocka_unit_test(one_byte_chunks_pass),
    };

    return cmocka_run_group_tests_name("http_parser_message", tests, NULL, NULL);
}
