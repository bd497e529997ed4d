/* Reads from stores that break off, lie, or have other bytes than were put. */
#include "base/encoding/encode.h"
#include "base/encoding/sha256.h"
#include "objects/s3/s3_testing.h"

#define CONTENT "0123456789"

/* The head of an object of ten bytes, with the sum of `of`. */
static void answer_object(struct text *answer, const char *tag, const char *of, const char *body)
{
    char hex[HEX_TEXT_SIZE(SHA256_SIZE)];
    uint8_t sum[SHA256_SIZE];

    sha256_bytes(of, strlen(of), sum);
    (void) hex_encode(sum, sizeof(sum), hex);
    text_format(answer,
                "HTTP/1.1 200 OK\r\nETag: \"%s\"\r\nx-amz-meta-burrow-sha256: %s\r\n"
                "Last-Modified: Mon, 16 Nov 2026 10:00:00 GMT\r\nContent-Length: 10\r\n\r\n%s",
                tag, hex, body);
}

static void answer_rest(struct text *answer, const char *tag, const char *range, const char *body)
{
    text_format(answer,
                "HTTP/1.1 206 Partial\r\nETag: \"%s\"\r\nContent-Range: bytes %s\r\n"
                "Content-Length: %zu\r\n\r\n%s",
                tag, range, strlen(body), body);
}

static void break_off(struct testing_store *store, unsigned int number, struct text *answer)
{
    if (number == 0) {
        answer_object(answer, "t1", CONTENT, "0123");
        store->then = THEN_CLOSE;
    } else {
        answer_error(answer, "500 Internal", "InternalError");
    }
}

static void finish_after(struct testing_store *store, unsigned int number, struct text *answer)
{
    if (number < 2) {
        break_off(store, number, answer);
        return;
    }
    if (number == 2) { /* says six bytes, sends two */
        text_append(answer, "HTTP/1.1 206 Partial\r\nETag: \"t1\"\r\n"
                            "Content-Range: bytes 4-9/10\r\nContent-Length: 6\r\n\r\n45");
        store->then = THEN_CLOSE;
        return;
    }
    answer_rest(answer, "t1", "6-9/10", "6789");
}

static void a_read_that_breaks_off_goes_on(void **state)
{
    struct s3_settings settings = {.allow_private = true, .limits = {.attempts_max = 5}};
    AUTO(testing_store) struct testing_store store;
    struct objects_sink sink;

    (void) state;
    testing_start(&store, &settings, finish_after);
    testing_expect(&store, testing_get(&store, &sink), ERR_NONE);
    assert_int_equal(sink.length, 10);
    assert_memory_equal(sink.bytes, CONTENT, 10);
    assert_int_equal(store.retries, 3);
    testing_stop(&store);
    assert_non_null(strstr(text_string(&store.heads), "range: bytes=4-9\r\n"));
    assert_non_null(strstr(text_string(&store.heads), "range: bytes=6-9\r\n"));
    assert_non_null(strstr(text_string(&store.heads), "if-match: \"t1\"\r\n"));
}

static void replace_meanwhile(struct testing_store *store, unsigned int number, struct text *answer)
{
    if (number == 0)
        break_off(store, number, answer);
    else
        answer_error(answer, "412 Precondition Failed", "PreconditionFailed");
}

static void what_was_replaced_meanwhile_is_not_mixed(void **state)
{
    AUTO(testing_store) struct testing_store store;
    struct objects_sink sink;

    (void) state;
    testing_start(&store, NULL, replace_meanwhile);
    testing_expect(&store, testing_get(&store, &sink), ERR_UNAVAILABLE);
    assert_non_null(strstr(store.err.message, "replaced while it was read"));
}

/* What a store may answer to "bytes=4-9" that is wrong. */
static const struct lie {
    const char *tag, *range, *body;
} lies[] = {
    {"t2", "4-9/10", "456789"}, {"t1", "4-9/11", "456789"}, {"t1", "0-5/10", "012345"},
    {"t1", "4-8/10", "45678"},  {"t1", "4-9/10", "45678"},  {"t1", "4-9/9", "456789"},
    {"t1", "4-9", "456789"},    {"t1", "x-9/10", "456789"}, {"t1", "4-9/*", "456789"},
    {"", "4-9/10", "456789"},
};

static atomic_uint lie_number;

static void tell_lie(struct testing_store *store, unsigned int number, struct text *answer)
{
    const struct lie *lie = &lies[atomic_load(&lie_number)];

    if (number == 0)
        break_off(store, number, answer);
    else
        answer_rest(answer, lie->tag, lie->range, lie->body);
}

static void a_lie_about_the_rest_is_found(void **state)
{
    (void) state;
    for (unsigned int i = 0; i < ARRAY_COUNT(lies); i++) {
        AUTO(testing_store) struct testing_store store;
        struct objects_sink sink;

        atomic_store(&lie_number, i);
        testing_start(&store, NULL, tell_lie);
        testing_expect(&store, testing_get(&store, &sink), ERR_UPSTREAM);
    }
}

static void ignore_the_range(struct testing_store *store, unsigned int number, struct text *answer)
{
    if (number == 0)
        break_off(store, number, answer);
    else
        answer_object(answer, "t1", CONTENT, CONTENT);
}

static void a_store_without_ranges_is_told(void **state)
{
    AUTO(testing_store) struct testing_store store;
    struct objects_sink sink;

    (void) state;
    testing_start(&store, NULL, ignore_the_range);
    testing_expect(&store, testing_get(&store, &sink), ERR_UPSTREAM);
}

static void corrupt(struct testing_store *store, unsigned int number, struct text *answer)
{
    (void) store;
    (void) number;
    answer_object(answer, "t1", CONTENT, "0123456788");
}

static void other_bytes_than_were_put_are_found(void **state)
{
    AUTO(testing_store) struct testing_store store;
    struct objects_sink sink;

    (void) state;
    testing_start(&store, NULL, corrupt);
    testing_expect(&store, testing_get(&store, &sink), ERR_UPSTREAM);
    assert_non_null(strstr(store.err.message, "sum differs"));
}

static void break_off_always(struct testing_store *store, unsigned int number, struct text *answer)
{
    (void) number;
    text_append(answer, "HTTP/1.1 200 OK\r\nETag: \"t\"\r\nContent-Length: 100\r\n\r\n");
    store->then = THEN_CLOSE;
}

static void what_never_comes_whole_is_unavailable(void **state)
{
    AUTO(testing_store) struct testing_store store;
    struct objects_sink sink;

    (void) state;
    testing_start(&store, NULL, break_off_always);
    testing_expect(&store, testing_get(&store, &sink), ERR_UNAVAILABLE);
    assert_int_equal(store.requests, 3);
}

static void claim_much(struct testing_store *store, unsigned int number, struct text *answer)
{
    (void) store;
    (void) number;
    text_append(answer, "HTTP/1.1 200 OK\r\nETag: \"t\"\r\nContent-Length: 9000000000000\r\n\r\nx");
}

static void a_length_beyond_memory_is_refused_before_any_byte(void **state)
{
    AUTO(testing_store) struct testing_store store;
    struct objects_sink sink;

    (void) state;
    testing_start(&store, NULL, claim_much);
    testing_expect(&store, testing_get(&store, &sink), ERR_TOO_LARGE);
}

static void say_no_length(struct testing_store *store, unsigned int number, struct text *answer)
{
    (void) number;
    text_append(answer, "HTTP/1.1 200 OK\r\nETag: \"t\"\r\n\r\n");
    for (int i = 0; i < 1000; i++)
        text_append(answer, "bytes without end ");
    store->then = THEN_REPEAT;
}

static void an_object_without_end_is_refused(void **state)
{
    AUTO(testing_store) struct testing_store store;
    struct objects_sink sink;

    (void) state;
    testing_start(&store, NULL, say_no_length);
    testing_expect(&store, testing_get(&store, &sink), ERR_UPSTREAM);
}

static void trickle(struct testing_store *store, unsigned int number, struct text *answer)
{
    (void) number;
    text_append(answer, "HTTP/1.1 200 OK\r\nETag: \"t\"\r\nContent-Length: 100\r\n\r\nabc");
    store->then = THEN_HANG;
}

static void a_read_that_stands_still_is_given_up(void **state)
{
    struct s3_settings settings = {.allow_private = true,
                                   .limits = {TESTING_IMPATIENT, .attempts_max = 1}};
    AUTO(testing_store) struct testing_store store;
    struct objects_sink sink;

    (void) state;
    testing_start(&store, &settings, trickle);
    testing_expect(&store, testing_get(&store, &sink), ERR_UPSTREAM_TIMEOUT);
}

static int set_up(void **state)
{
    (void) state;
    (void) signal(SIGPIPE, SIG_IGN);
    return outbound_global_init(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_read_that_breaks_off_goes_on),
        cmocka_unit_test(what_was_replaced_meanwhile_is_not_mixed),
        cmocka_unit_test(a_lie_about_the_rest_is_found),
        cmocka_unit_test(a_store_without_ranges_is_told),
        cmocka_unit_test(other_bytes_than_were_put_are_found),
        cmocka_unit_test(what_never_comes_whole_is_unavailable),
        cmocka_unit_test(a_length_beyond_memory_is_refused_before_any_byte),
        cmocka_unit_test(an_object_without_end_is_refused),
        cmocka_unit_test(a_read_that_stands_still_is_given_up),
    };

    return cmocka_run_group_tests_name("s3_get", tests, set_up, NULL);
}
