/* The contract of objects.h against a real S3 server, which checks signatures and sums. Its address
 * and keys come by environment (tests/integration/objects_s3_test.py has one):
 *
 *     S3_ENDPOINT=http://127.0.0.1:9000 S3_ACCESS_KEY=... S3_SECRET_KEY=... [S3_REGION=...]
 *     [S3_TLS_PORT=... S3_CA_FILE=...]     the same server behind TLS, as "localhost"
 *
 * Every test has a new bucket. */
#include <signal.h>
#include <stdlib.h>

#include "base/id.h"
#include "net/outbound/curl_exchange.h"
#include "objects/objects_contract.h"
#include "objects/s3/s3_operations.h"

#define BUCKET_SIZE 48

static void read_settings(struct s3_settings *ret_settings, const char *bucket)
{
    *ret_settings = (struct s3_settings){
        .endpoint = getenv("S3_ENDPOINT"),
        .access_key = getenv("S3_ACCESS_KEY"),
        .secret_key = getenv("S3_SECRET_KEY"),
        .region = getenv("S3_REGION"),
        .bucket = bucket,
        .allow_private = true,
        .owns_uploads = true,
        /* Small, so that 16 MiB are an upload in parts, and a copy of them is one, too. */
        .limits = {.part_size = S3_PART_MIN, .copy_max = (uint64_t) 6 * 1024 * 1024},
    };
}

/* --- a thread's work without threads -----------------------------------------------------------
 */

struct bench {
    struct pool pool;
    atomic_bool cancelled;
    atomic_uint_least64_t done_bytes, retries;
    struct objects_work work;
    struct s3_client *client; /* owned */
};

static void bench_open(struct bench *bench, const struct s3_settings *settings)
{
    struct error err = ERROR_INIT;

    *bench = (struct bench){.work = {.pool = &bench->pool,
                                     .cancelled = &bench->cancelled,
                                     .done_bytes = &bench->done_bytes,
                                     .retries = &bench->retries}};
    bench->client = s3_client_new(settings, &err);
    if (!bench->client)
        fail_msg("%s", err.message);
}

static void bench_close(struct bench *bench)
{
    s3_client_free(bench->client);
    pool_done(&bench->pool);
}

static void make_bucket(const char *name)
{
    struct s3_request request = {.method = "PUT", .has_body = true};
    AUTO(s3_answer) struct s3_answer answer = S3_ANSWER_INIT;
    struct error err = ERROR_INIT;
    struct s3_settings settings;
    struct bench bench;

    read_settings(&settings, name);
    bench_open(&bench, &settings);
    if (s3_call(bench.client, &bench.work, &request, &answer, &err) < 0)
        fail_msg("%s", err.message);
    bench_close(&bench);
}

/* --- the contract ------------------------------------------------------------------------------
 */

static struct objects *open_s3(struct contract *contract)
{
    struct error err = ERROR_INIT;
    struct s3_settings settings;
    struct objects *objects;

    if (!contract->more) {
        char *name = test_calloc(1, BUCKET_SIZE);

        (void) snprintf(name, BUCKET_SIZE, "burrow-%s", id_new().text);
        make_bucket(name);
        contract->more = name;
    }
    read_settings(&settings, contract->more);
    objects = objects_s3_new(&contract->loop, &settings, &err);
    if (!objects)
        print_error("%s\n", err.message);
    return objects;
}

static void end_s3(struct contract *contract)
{
    test_free(contract->more);
}

static int setup(void **state)
{
    static struct contract_backend s3 = {
        .open = open_s3,
        .end = end_s3,
        .large_bytes = (size_t) 13 * 1024 * 1024 + 1,
        .many_keys = 110,
    };
    const char *full = getenv("BURROW_FULL");

    if (full && strcmp(full, "1") == 0)
        s3.many_keys = 1010; /* more than a server lists at once, and a while for one in Python */

    *state = contract_new(&s3);
    return 0;
}

static int teardown(void **state)
{
    contract_free(*state);
    return 0;
}

/* --- what only S3 has --------------------------------------------------------------------------
 */

static size_t count_uploads(struct bench *bench)
{
    struct s3_request request = {.method = "GET"};
    AUTO(s3_answer) struct s3_answer answer = S3_ANSWER_INIT;
    struct error err = ERROR_INIT;
    struct s3_uploads uploads;

    s3_request_query(&request, "uploads", "");
    if (s3_call(bench->client, &bench->work, &request, &answer, &err) < 0 ||
        s3_document_uploads(text_string(&answer.http.body), answer.http.body.length, &bench->pool,
                            &uploads, &err) < 0)
        fail_msg("%s", err.message);
    return uploads.count;
}

static void an_upload_that_is_cancelled_leaves_no_part(void **state)
{
    struct contract *contract = *state;
    AUTO(reply) struct reply *reply = reply_new();
    struct objects_call *call;
    struct s3_settings settings;
    struct bench bench;
    struct peer peer;
    int pipes[2];

    read_settings(&settings, contract->more);
    bench_open(&bench, &settings);
    assert_int_equal(pipe2(pipes, O_CLOEXEC), 0);
    peer_start(&peer, peer_write, dup(pipes[1]), (size_t) 7 * 1024 * 1024, 0);
    call = objects_put_stream(contract->objects, "half", pipes[0], NULL, on_info, reply);
    for (int i = 0; i < 5000 && count_uploads(&bench) == 0; i++)
        testing_turn(&contract->loop);
    assert_int_equal(count_uploads(&bench), 1);
    peer_join(&peer);
    objects_cancel(call);
    OBJECTS_WAIT(contract, reply->times);
    expect_code(reply, ERR_CANCELLED);
    close_objects(contract); /* and with it the threads, whose last act is the abort */
    assert_int_equal(count_uploads(&bench), 0);
    (void) close(pipes[0]);
    (void) close(pipes[1]);
    bench_close(&bench);
}

static void old_uploads_are_swept(void **state)
{
    struct contract *contract = *state;
    int64_t tomorrow_ms = clock_wall_ms(clock_system()) + (int64_t) 25 * 3600 * 1000;
    struct error err = ERROR_INIT;
    struct s3_upload_parts upload;
    struct s3_settings settings;
    struct bench bench;

    read_settings(&settings, contract->more);
    bench_open(&bench, &settings);
    upload =
        (struct s3_upload_parts){.client = bench.client, .work = &bench.work, .key = "forgotten"};
    assert_int_equal(s3_upload_begin(&upload, NULL, 0, &err), 0);
    assert_int_equal(s3_check(bench.client, &bench.work, &err), 0);
    assert_int_equal(count_uploads(&bench), 1); /* young: somebody's */
    s3_sweep_uploads(bench.client, &bench.work, tomorrow_ms);
    assert_int_equal(count_uploads(&bench), 0);
    bench_close(&bench);
}

static void a_prefix_is_a_room_of_its_own(void **state)
{
    struct contract *contract = *state;
    struct s3_settings settings;
    struct error err = ERROR_INIT;
    static const char *const all[] = {"room/a/b"}, *const seen[] = {"a/b"};
    struct objects *whole = contract->objects;

    read_settings(&settings, contract->more);
    settings.prefix = "room/";
    contract->objects = objects_s3_new(&contract->loop, &settings, &err);
    put_ok(contract, "a/b", "x");
    expect_listed(contract, "", false, 10, seen, 1);
    expect_content(contract, "a/b", "x");
    {
        struct objects *room = contract->objects;

        contract->objects = whole;
        expect_listed(contract, "", false, 10, all, 1);
        put_ok(contract, "elsewhere", "y");
        contract->objects = room;
    }
    expect_listed(contract, "", false, 10, seen, 1);
    close_objects(contract);
    contract->objects = whole;
}

/* What a check says to people whose settings are wrong. */
static void expect_refusal(const struct contract *contract, struct s3_settings settings,
                           enum err_code code, const char *words)
{
    struct error err = ERROR_INIT;
    struct bench bench;

    (void) contract;
    bench_open(&bench, &settings);
    assert_int_equal(s3_check(bench.client, &bench.work, &err), -1);
    if (err.code != code || !strstr(err.message, words))
        fail_msg("%s: %s", error_code_text(err.code), err.message);
    assert_null(strstr(err.message, getenv("S3_SECRET_KEY")));
    bench_close(&bench);
}

static int64_t long_ago_ms(const struct clock *clock)
{
    (void) clock;
    return 1000;
}

static void wrong_settings_are_told_apart(void **state)
{
    struct contract *contract = *state;
    struct clock wrong_clock = *clock_system();
    struct s3_settings right, wrong;

    read_settings(&right, contract->more);
    wrong = right;
    wrong.secret_key = "another-secret";
    expect_refusal(contract, wrong, ERR_FORBIDDEN, "secret key");
    wrong = right;
    wrong.bucket = "burrow-not-there";
    expect_refusal(contract, wrong, ERR_UNAVAILABLE, "bucket does not exist");
    wrong = right;
    wrong.region = "mars-north-1";
    expect_refusal(contract, wrong, ERR_FORBIDDEN, "it wants region 'us-east-1'");
    wrong = right;
    wrong_clock.wall_ms = long_ago_ms;
    wrong.clock = &wrong_clock;
    expect_refusal(contract, wrong, ERR_FORBIDDEN, "here it is 1970-01-01");
    wrong = right;
    wrong.allow_private = false;
    expect_refusal(contract, wrong, ERR_FORBIDDEN, "loopback");
}

/* HEAD says nothing about why: it is asked for. And a missing bucket is not a missing object. */
static void a_head_says_why(void **state)
{
    struct contract *contract = *state;
    struct error err = ERROR_INIT;
    struct s3_settings settings;
    struct object_info info;
    struct bench bench;

    read_settings(&settings, contract->more);
    settings.secret_key = "another-secret";
    bench_open(&bench, &settings);
    assert_int_equal(s3_head(bench.client, &bench.work, "key", &info, &err), -1);
    assert_int_equal(err.code, ERR_FORBIDDEN);
    assert_non_null(strstr(err.message, "secret key"));
    bench_close(&bench);
    read_settings(&settings, "burrow-not-there");
    bench_open(&bench, &settings);
    assert_int_equal(s3_head(bench.client, &bench.work, "key", &info, &err), -1);
    assert_int_equal(err.code, ERR_UNAVAILABLE);
    bench_close(&bench);
}

/* --- TLS ---------------------------------------------------------------------------------------
 */

static void tls_is_verified(void **state)
{
    struct contract *contract = *state;
    const char *port = getenv("S3_TLS_PORT");
    struct error err = ERROR_INIT;
    struct s3_settings settings;
    char named[64], numbered[64];
    struct bench bench;

    if (!port) {
        print_message("# skip: S3_TLS_PORT and S3_CA_FILE\n");
        skip();
    }
    (void) snprintf(named, sizeof(named), "https://localhost:%s", port);
    (void) snprintf(numbered, sizeof(numbered), "https://127.0.0.1:%s", port);
    read_settings(&settings, contract->more);
    settings.endpoint = named;
    expect_refusal(contract, settings, ERR_UPSTREAM, "certificate is not trusted");
    settings.ca_file = "/dev/null";
    expect_refusal(contract, settings, ERR_INVALID, "trusted certificates");
    settings.ca_file = getenv("S3_CA_FILE");
    bench_open(&bench, &settings);
    if (s3_check(bench.client, &bench.work, &err) < 0)
        fail_msg("%s", err.message);
    bench_close(&bench);
    settings.endpoint = numbered; /* trusted, but somebody else */
    expect_refusal(contract, settings, ERR_UPSTREAM, "certificate is not trusted");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        CONTRACT_TESTS,
        CONTRACT_TEST(an_upload_that_is_cancelled_leaves_no_part),
        CONTRACT_TEST(old_uploads_are_swept),
        CONTRACT_TEST(a_prefix_is_a_room_of_its_own),
        CONTRACT_TEST(wrong_settings_are_told_apart),
        CONTRACT_TEST(a_head_says_why),
        CONTRACT_TEST(tls_is_verified),
    };
    int failed;

    if (!getenv("S3_ENDPOINT") || !getenv("S3_ACCESS_KEY") || !getenv("S3_SECRET_KEY")) {
        (void) printf("1..1\n# skip: S3_ENDPOINT, S3_ACCESS_KEY and S3_SECRET_KEY\n"
                      "ok 1 - objects_s3_contract # SKIP a server\n");
        return 0;
    }
    (void) signal(SIGPIPE, SIG_IGN);
    if (outbound_global_init(NULL) < 0)
        return 1;
    failed = cmocka_run_group_tests_name("objects_s3_contract", tests, NULL, NULL);
    outbound_global_done();
    return failed;
}
