/* Stores that are down, slow, in trouble or hostile: what is tried again, and what is said. */
#include "objects/s3/s3_testing.h"

static void refuse_always(struct testing_store *store, unsigned int number, struct text *answer)
{
    (void) store;
    (void) number;
    answer_error(answer, "503 Slow Down", "SlowDown");
}

static void trouble_that_stays_is_unavailable(void **state)
{
    AUTO(testing_store) struct testing_store store;

    (void) state;
    testing_start(&store, NULL, refuse_always);
    testing_expect(&store, testing_put(&store, "x", NULL), ERR_UNAVAILABLE);
    assert_int_equal(store.requests, 3);
    assert_int_equal(store.retries, 2);
}

static const char *const troubles[] = {"500 Internal", "502 Bad", "503 Away", "504 Late",
                                       "429 Many"};

static void be_in_trouble(struct testing_store *store, unsigned int number, struct text *answer)
{
    (void) store;
    if (number < ARRAY_COUNT(troubles))
        answer_status(answer, troubles[number], "", "<html>not xml");
    else
        answer_ok(answer);
}

static void trouble_that_passes_is_not_seen(void **state)
{
    struct s3_settings settings = {.allow_private = true, .limits = {.attempts_max = 6}};
    AUTO(testing_store) struct testing_store store;

    (void) state;
    testing_start(&store, &settings, be_in_trouble);
    testing_expect(&store, testing_put(&store, "x", NULL), ERR_NONE);
    assert_int_equal(store.retries, ARRAY_COUNT(troubles));
    assert_int_equal(store.connections, 1); /* kept */
}

static void time_out_first(struct testing_store *store, unsigned int number, struct text *answer)
{
    (void) store;
    if (number == 0)
        answer_error(answer, "400 Bad Request", "RequestTimeout");
    else if (number == 2)
        answer_ok(answer); /* number 1: closes without an answer */
}

static void a_timeout_of_theirs_and_a_lost_connection_are_tried_again(void **state)
{
    AUTO(testing_store) struct testing_store store;

    (void) state;
    testing_start(&store, NULL, time_out_first);
    testing_expect(&store, testing_put(&store, "x", NULL), ERR_NONE);
    assert_int_equal(store.requests, 3);
}

static void hang(struct testing_store *store, unsigned int number, struct text *answer)
{
    (void) number;
    (void) answer;
    store->then = THEN_HANG;
}

static void a_store_that_hangs_is_given_up(void **state)
{
    struct s3_settings settings = {.allow_private = true,
                                   .limits = {TESTING_IMPATIENT, .attempts_max = 1}};
    AUTO(testing_store) struct testing_store store;

    (void) state;
    testing_start(&store, &settings, hang);
    testing_expect(&store, testing_put(&store, "x", NULL), ERR_UPSTREAM_TIMEOUT);
}

static void a_store_that_hangs_is_not_asked_for_ever(void **state)
{
    struct s3_settings settings = {.allow_private = true,
                                   .limits = {TESTING_IMPATIENT, .attempts_max = 5}};
    AUTO(testing_store) struct testing_store store;

    (void) state;
    testing_start(&store, &settings, hang);
    testing_expect(&store, testing_put(&store, "x", NULL), ERR_UPSTREAM_TIMEOUT);
    assert_int_equal(store.retries, S3_STALLS_MAX - 1);
}

static void *cancel_soon(void *data)
{
    struct testing_store *store = data;

    (void) poll(NULL, 0, 100);
    atomic_store(&store->cancelled, true);
    return NULL;
}

static void a_call_that_hangs_is_cancelled(void **state)
{
    struct s3_settings settings = {.allow_private = true, .limits = {.stall_ms = 60000}};
    AUTO(testing_store) struct testing_store store;
    uint64_t start = clock_monotonic_ns(clock_system());
    pthread_t thread;

    (void) state;
    testing_start(&store, &settings, hang);
    assert_int_equal(pthread_create(&thread, NULL, cancel_soon, &store), 0);
    testing_expect(&store, testing_put(&store, "x", NULL), ERR_CANCELLED);
    assert_true(clock_monotonic_ns(clock_system()) - start < UINT64_C(10000000000));
    (void) pthread_join(thread, NULL);
}

static void nobody_at_the_address_is_unavailable(void **state)
{
    struct s3_settings settings = {.endpoint = "http://127.0.0.1:1",
                                   .bucket = "bucket",
                                   .access_key = "key",
                                   .secret_key = TESTING_SECRET,
                                   .allow_private = true,
                                   .limits = {.attempts_max = 2, .backoff_ms = 1}};
    struct testing_store store = {.listener = -1};

    (void) state;
    store.work =
        (struct objects_work){&store.pool, &store.cancelled, &store.done_bytes, &store.retries};
    store.client = s3_client_new(&settings, &store.err);
    testing_expect(&store, testing_put(&store, "x", NULL), ERR_UNAVAILABLE);
    assert_int_equal(store.retries, 1);
    s3_client_free(store.client);
    pool_done(&store.pool);
}

static void endless_head(struct testing_store *store, unsigned int number, struct text *answer)
{
    (void) number;
    text_append(answer, number == 0 ? "HTTP/1.1 200 OK\r\n" : "");
    text_append(answer, "X-More: and more and more and more\r\n");
    store->then = THEN_REPEAT;
}

static void a_head_without_end_is_refused(void **state)
{
    AUTO(testing_store) struct testing_store store;

    (void) state;
    testing_start(&store, NULL, endless_head);
    assert_int_equal(testing_put(&store, "x", NULL), -1);
    assert_true(store.err.code == ERR_UPSTREAM);
}

static void endless_body(struct testing_store *store, unsigned int number, struct text *answer)
{
    (void) number;
    text_append(answer, "HTTP/1.1 400 Bad\r\n\r\n");
    for (int i = 0; i < 100000; i++)
        text_append(answer, "<more>");
    store->then = THEN_REPEAT;
}

static void a_document_without_end_is_refused(void **state)
{
    AUTO(testing_store) struct testing_store store;

    (void) state;
    testing_start(&store, NULL, endless_body);
    testing_expect(&store, testing_put(&store, "x", NULL), ERR_UPSTREAM);
    assert_int_equal(store.requests, 1); /* and not tried again */
}

static void send_elsewhere(struct testing_store *store, unsigned int number, struct text *answer)
{
    (void) store;
    (void) number;
    answer_status(answer, "301 Moved",
                  "Location: http://127.0.0.1:1/\r\nx-amz-bucket-region: eu-south-2\r\n",
                  "<Error><Code>PermanentRedirect</Code><Message>m</Message></Error>");
}

static void a_redirect_is_told_and_not_followed(void **state)
{
    AUTO(testing_store) struct testing_store store;

    (void) state;
    testing_start(&store, NULL, send_elsewhere);
    testing_expect(&store, testing_put(&store, "x", NULL), ERR_FORBIDDEN);
    assert_non_null(strstr(store.err.message, "it wants region 'eu-south-2'"));
    assert_int_equal(store.requests, 1);
}

static void say_odd_things(struct testing_store *store, unsigned int number, struct text *answer)
{
    (void) store;
    (void) number;
    answer_status(answer, "418 Teapot", "",
                  "<Error><Code>Odd&#10;Code</Code><Message>a\xc3\xa4&#13;b</Message></Error>");
}

static void words_of_the_store_are_made_safe(void **state)
{
    AUTO(testing_store) struct testing_store store;

    (void) state;
    testing_start(&store, NULL, say_odd_things);
    testing_expect(&store, testing_put(&store, "x", NULL), ERR_UPSTREAM);
    for (const char *at = store.err.message; *at; at++)
        assert_true(*at >= ' ' && *at <= '~');
    assert_non_null(strstr(store.err.message, "418 Odd?Code"));
}

static void an_address_that_is_not_public_is_not_dialled(void **state)
{
    struct s3_settings settings = {.allow_private = false};
    AUTO(testing_store) struct testing_store store;

    (void) state;
    testing_start(&store, &settings, refuse_always);
    testing_expect(&store, testing_put(&store, "x", NULL), ERR_FORBIDDEN);
    assert_non_null(strstr(store.err.message, "loopback"));
    assert_int_equal(store.connections, 0);
}

static void an_address_that_the_operator_allows_is_dialled(void **state)
{
    struct address_rules rules = {.count = 0};
    struct s3_settings settings = {.rules = &rules};
    AUTO(testing_store) struct testing_store store;

    (void) state;
    assert_int_equal(address_rules_allow(&rules, "127.0.0.0/8", NULL), 0);
    testing_start(&store, &settings, be_in_trouble);
    assert_int_equal(testing_put(&store, "x", NULL), -1);
    assert_true(store.connections > 0);
}

static void what_is_sent_is_signed(void **state)
{
    struct s3_settings settings = {.allow_private = true, .session_token = "a-token"};
    AUTO(testing_store) struct testing_store store;
    const char *heads;

    (void) state;
    testing_start(&store, &settings, be_in_trouble);
    (void) testing_put(&store, "x", NULL);
    testing_stop(&store);
    heads = text_string(&store.heads);
    assert_non_null(strstr(heads, "PUT /bucket/some/key HTTP/1.1\r\n"));
    assert_non_null(strstr(heads, "SignedHeaders=content-type;host;x-amz-content-sha256;x-amz-date;"
                                  "x-amz-meta-burrow-sha256;x-amz-security-token,"));
    assert_non_null(strstr(heads, "x-amz-security-token: a-token\r\n"));
    assert_null(strstr(heads, "Expect:"));
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
        cmocka_unit_test(trouble_that_stays_is_unavailable),
        cmocka_unit_test(trouble_that_passes_is_not_seen),
        cmocka_unit_test(a_timeout_of_theirs_and_a_lost_connection_are_tried_again),
        cmocka_unit_test(a_store_that_hangs_is_given_up),
        cmocka_unit_test(a_store_that_hangs_is_not_asked_for_ever),
        cmocka_unit_test(a_call_that_hangs_is_cancelled),
        cmocka_unit_test(nobody_at_the_address_is_unavailable),
        cmocka_unit_test(a_head_without_end_is_refused),
        cmocka_unit_test(a_document_without_end_is_refused),
        cmocka_unit_test(a_redirect_is_told_and_not_followed),
        cmocka_unit_test(words_of_the_store_are_made_safe),
        cmocka_unit_test(an_address_that_is_not_public_is_not_dialled),
        cmocka_unit_test(an_address_that_the_operator_allows_is_dialled),
        cmocka_unit_test(what_is_sent_is_signed),
    };

    return cmocka_run_group_tests_name("s3_exchange", tests, set_up, NULL);
}
