#include "net/net_testing.h"
#include "net/tls.h"

static const char *const files[] = {"certificate.pem", "key.pem", "other.pem", "other-key.pem",
                                    "garbage.pem"};
enum { CERTIFICATE, KEY, OTHER, OTHER_KEY, GARBAGE, MISSING };

struct bench {
    struct testing_folder folder;
    char *paths[6];
};

static int setup(void **state)
{
    struct bench *bench = test_calloc(1, sizeof(*bench));
    FILE *file;

    testing_folder_make(&bench->folder);
    for (size_t i = 0; i < ARRAY_COUNT(files); i++)
        bench->paths[i] = testing_path(&bench->folder, files[i]);
    bench->paths[MISSING] = testing_path(&bench->folder, "missing.pem");
    testing_certificate(bench->paths[CERTIFICATE], bench->paths[KEY], "one.test");
    testing_certificate(bench->paths[OTHER], bench->paths[OTHER_KEY], "other.test");
    file = fopen(bench->paths[GARBAGE], "we");
    assert_true(fputs("not PEM at all\n", file) >= 0);
    assert_int_equal(fclose(file), 0);
    *state = bench;
    return 0;
}

static int teardown(void **state)
{
    struct bench *bench = *state;

    testing_folder_remove(&bench->folder, files, ARRAY_COUNT(files));
    for (size_t i = 0; i < ARRAY_COUNT(bench->paths); i++)
        free(bench->paths[i]);
    test_free(bench);
    return 0;
}

static void files_that_cannot_be_used_are_named(void **state)
{
    static const struct {
        int certificate, key, named;
    } rows[] = {
        {MISSING, KEY, MISSING},
        {CERTIFICATE, MISSING, MISSING},
        {GARBAGE, KEY, GARBAGE},
        {CERTIFICATE, GARBAGE, GARBAGE},
        {CERTIFICATE, OTHER_KEY, OTHER_KEY},
        {KEY, KEY, KEY},
    };
    struct bench *bench = *state;

    for (size_t i = 0; i < ARRAY_COUNT(rows); i++) {
        struct error error = ERROR_INIT;

        assert_null(tls_context_server(bench->paths[rows[i].certificate], bench->paths[rows[i].key],
                                       &error));
        assert_int_equal(error.code, ERR_INVALID);
        assert_non_null(strstr(error.message, bench->paths[rows[i].named]));
        assert_null(strstr(error.message, "unknown TLS error"));
    }
}

static void authorities_that_cannot_be_read_are_named(void **state)
{
    static const int rows[] = {MISSING, GARBAGE};
    struct bench *bench = *state;

    for (size_t i = 0; i < ARRAY_COUNT(rows); i++) {
        struct error error = ERROR_INIT;

        assert_null(tls_context_client(bench->paths[rows[i]], &error));
        assert_int_equal(error.code, ERR_INVALID);
        assert_non_null(strstr(error.message, bench->paths[rows[i]]));
    }
}

/* Both sides of a handshake in turns. Returns what the client says in the end. */
static int shake(struct bench *bench, int authority, const char *host)
{
    AUTO(tls_context)
    struct tls_context *server =
        tls_context_server(bench->paths[CERTIFICATE], bench->paths[KEY], NULL);
    AUTO(tls_context)
    struct tls_context *client =
        tls_context_client(authority < 0 ? NULL : bench->paths[authority], NULL);
    struct tls *ends[2] = {tls_accept(server), tls_connect(client, host)};
    int results[2] = {-EAGAIN, -EAGAIN}, fds[2];

    testing_pair(fds, false);
    for (int i = 0; i < 2; i++)
        assert_int_equal(tls_attach(ends[i], fds[i]), 0);
    for (int turn = 0; turn < 20; turn++) {
        for (int i = 0; i < 2; i++) {
            bool wants_write;

            if (results[i] == -EAGAIN)
                results[i] = tls_handshake(ends[i], &wants_write);
        }
    }
    for (int i = 0; i < 2; i++) {
        tls_free(ends[i]);
        (void) close(fds[i]);
    }
    return results[1];
}

static void a_known_authority_and_the_right_host_are_trusted(void **state)
{
    assert_int_equal(shake(*state, CERTIFICATE, "one.test"), 0);
    assert_int_equal(shake(*state, CERTIFICATE, "ONE.test"), 0);
}

static void an_unknown_authority_is_refused(void **state)
{
    assert_int_equal(shake(*state, OTHER, "one.test"), -EPROTO);
    assert_int_equal(shake(*state, -1, "one.test"), -EPROTO);
}

static void a_wrong_host_is_refused(void **state)
{
    assert_int_equal(shake(*state, CERTIFICATE, "other.test"), -EPROTO);
    assert_int_equal(shake(*state, CERTIFICATE, "sub.one.test"), -EPROTO);
    assert_int_equal(shake(*state, CERTIFICATE, "127.0.0.1"), -EPROTO);
}

#define TLS_TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TLS_TEST(files_that_cannot_be_used_are_named),
        TLS_TEST(authorities_that_cannot_be_read_are_named),
        TLS_TEST(a_known_authority_and_the_right_host_are_trusted),
        TLS_TEST(an_unknown_authority_is_refused),
        TLS_TEST(a_wrong_host_is_refused),
    };

    return cmocka_run_group_tests_name("tls", tests, NULL, NULL);
}
