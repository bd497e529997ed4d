#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "programs/burrow/settings.h"

/* Words as main gets them: literals are never written to. */
#define WORDS(...) ((char *const *) (uintptr_t) (const char *const[]){__VA_ARGS__, NULL})

static int count_words(char *const *words)
{
    int count = 0;

    while (words[count])
        count++;
    return count;
}

static int load(struct settings *settings, char *const *words, char *const *environment,
                struct error *err)
{
    return settings_load(settings, count_words(words), words, environment, err);
}

/* A file with this content; its name is in `ret_path`. */
static void write_file(const char *content, char ret_path[static 32])
{
    int fd;

    (void) snprintf(ret_path, 32, "/tmp/settings_test.XXXXXX");
    fd = mkstemp(ret_path);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, content, strlen(content)), strlen(content));
    (void) close(fd);
}

static void defaults_are_complete_and_sound(void **state)
{
    AUTO(settings) struct settings settings = {0};
    struct error err = ERROR_INIT;

    (void) state;
    assert_int_equal(load(&settings, WORDS(NULL), NULL, &err), 0);
    assert_string_equal(settings.listen, "127.0.0.1:8787");
    assert_false(settings.no_auth);
    assert_int_equal(settings.head_timeout_ms, 10000);
    assert_int_equal(settings_check(&settings, &err), 0);
}

static void a_flag_wins_over_environment_and_environment_over_file(void **state)
{
    AUTO(settings) struct settings settings = {0};
    struct error err = ERROR_INIT;
    char path[32];

    (void) state;
    write_file("[burrow]\nhead-timeout = 1s\nbody_timeout = 2s\nidle-timeout = 3s\n", path);
    assert_int_equal(load(&settings, WORDS("--config", path, "--head-timeout", "7s"),
                          WORDS("BURROW_HEAD_TIMEOUT=5s", "BURROW_BODY_TIMEOUT=6s", "OTHER=1"),
                          &err),
                     0);
    assert_int_equal(settings.head_timeout_ms, 7000);
    assert_int_equal(settings.body_timeout_ms, 6000);
    assert_int_equal(settings.idle_timeout_ms, 3000);
    (void) unlink(path);
}

static void errors_name_their_source(void **state)
{
    const struct {
        char *const *words;
        char *const *environment;
        const char *expected;
    } cases[] = {
        {WORDS("--head-timeout", "x"), NULL, "--head-timeout: 'x' is not a time"},
        {WORDS("--head-timeout=0"), NULL, "--head-timeout: '0' is not a time"},
        {WORDS(NULL), WORDS("BURROW_CONNECTIONS_MAX=-1"), "BURROW_CONNECTIONS_MAX: '-1' is not"},
        {WORDS("--log-level", "loud"), NULL, "--log-level: 'loud' is not one of debug|info"},
        {WORDS("--no-auth=maybe"), NULL, "--no-auth: 'maybe' is not true or false"},
        {WORDS("--pool-size", "big"), NULL, "--pool-size: 'big' is not a size"},
        {WORDS("--stock", "257"), NULL, "--stock: '257' is not a number from 0 to 256"},
        {WORDS("--default-network=host"), NULL, "--default-network: 'host' is not one of none|nat"},
        {WORDS("--lisen", "x"), NULL, "unknown setting 'lisen'; did you mean 'listen'?"},
        {WORDS("--frobnicate"), NULL, "unknown setting 'frobnicate'"},
        {WORDS("--listen"), NULL, "--listen needs a value: ADDRESS"},
        {WORDS("--config"), NULL, "--config needs a value: FILE"},
        {WORDS("stray"), NULL, "unexpected word 'stray'"},
        {WORDS("--config", "/nonexistent/x.ini"), NULL, "read settings from '/nonexistent/x.ini'"},
    };

    (void) state;
    for (size_t i = 0; i < ARRAY_COUNT(cases); i++) {
        AUTO(settings) struct settings settings = {0};
        struct error err = ERROR_INIT;

        assert_int_equal(load(&settings, cases[i].words, cases[i].environment, &err), -1);
        assert_int_equal(err.code, ERR_INVALID);
        if (!strstr(err.message, cases[i].expected))
            fail_msg("'%s' does not say '%s'", err.message, cases[i].expected);
    }
}

static void a_wrong_line_of_the_file_is_named(void **state)
{
    static const char *const cases[][2] = {
        {"listen = 127.0.0.1:1\nhead-timeot = 1s\n", "line 2: unknown setting 'head-timeot'"},
        {"[other]\nlisten = 127.0.0.1:1\n", "line 2: unknown section [other]"},
        {"\n\njust words\n", "line 3: expected 'name = value'"},
        {"drain-timeout = soon\n", "line 1: drain-timeout: 'soon' is not a time"},
    };

    (void) state;
    for (size_t i = 0; i < ARRAY_COUNT(cases); i++) {
        AUTO(settings) struct settings settings = {0};
        struct error err = ERROR_INIT;
        char path[32];

        write_file(cases[i][0], path);
        assert_int_equal(load(&settings, WORDS("--config", path), NULL, &err), -1);
        if (!strstr(err.message, cases[i][1]))
            fail_msg("'%s' does not say '%s'", err.message, cases[i][1]);
        (void) unlink(path);
    }
}

static int check_listen(const char *listen, bool no_auth)
{
    AUTO(settings) struct settings settings = {0};

    assert_int_equal(load(&settings,
                          WORDS("--listen", listen, no_auth ? "--no-auth" : "--no-auth=false"),
                          NULL, NULL),
                     0);
    return settings_check(&settings, NULL);
}

static void without_keys_only_local_listeners_are_accepted(void **state)
{
    (void) state;
    assert_int_equal(check_listen("127.0.0.1:1", true), 0);
    assert_int_equal(check_listen("[::1]:1,unix:/tmp/x,127.9.9.9:2", true), 0);
    assert_int_equal(check_listen("0.0.0.0:1", true), -1);
    assert_int_equal(check_listen("[::]:1", true), -1);
    assert_int_equal(check_listen("127.0.0.1:1,192.0.2.1:1", true), -1);
    assert_int_equal(check_listen("0.0.0.0:1", false), 0);
    assert_int_equal(check_listen("localhost:1", false), -1);
    assert_int_equal(check_listen("", false), -1);
}

static void certificate_and_key_belong_together(void **state)
{
    AUTO(settings) struct settings settings = {0};

    (void) state;
    assert_int_equal(load(&settings, WORDS("--tls-certificate", "/x"), NULL, NULL), 0);
    assert_int_equal(settings_check(&settings, NULL), -1);
}

static void words_carry_all_settings_to_another_process(void **state)
{
    AUTO(settings) struct settings settings = {0};
    AUTO(settings) struct settings again = {0};
    AUTO(pool) struct pool pool = POOL_INIT;
    AUTO(pool) struct pool second = POOL_INIT;
    const char *const *words;
    const char *const *same;
    size_t count = 0;

    (void) state;
    assert_int_equal(load(&settings,
                          WORDS("--listen", "unix:/tmp/a b,127.0.0.1:1", "--no-auth", "--stock",
                                "0", "--pool-size", "10G", "--idle-timeout", "1500ms", "--user",
                                "somebody", "--connections-max", "7"),
                          NULL, NULL),
                     0);
    words = settings_words(&settings, &pool);
    while (words[count])
        count++;
    /* Flags win, whatever the other process finds in its environment. */
    assert_int_equal(settings_load(&again, (int) count, (char *const *) (uintptr_t) words,
                                   WORDS("BURROW_STOCK=3", "BURROW_POOL_SIZE=1G"), NULL),
                     0);
    assert_int_equal(again.stock, 0);
    assert_int_equal(again.pool_size, 10ULL << 30);
    assert_int_equal(again.idle_timeout_ms, 1500);
    assert_string_equal(again.user, "somebody");
    assert_true(again.no_auth);
    same = settings_words(&again, &second);
    for (size_t i = 0; i < count; i++)
        assert_string_equal(words[i], same[i]);
}

static void help_is_asked_for_in_two_ways(void **state)
{
    AUTO(settings) struct settings settings = {0};
    AUTO(text) struct text help = TEXT_INIT(1 << 16);

    (void) state;
    assert_int_equal(load(&settings, WORDS("--listen", "x", "--help"), NULL, NULL), 1);
    settings_done(&settings);
    assert_int_equal(load(&settings, WORDS("-h"), NULL, NULL), 1);
    settings_help(&help);
    assert_non_null(strstr(text_string(&help), "--listen ADDRESS"));
}

static void an_s3_store_needs_all_of_its_settings(void **state)
{
    static const char *const words[] = {"--s3-endpoint=http://127.0.0.1:1", "--s3-bucket=b",
                                        "--s3-access-key=id"};

    (void) state;
    for (size_t missing = 0; missing <= ARRAY_COUNT(words); missing++) {
        AUTO(settings) struct settings settings = {0};
        struct error err = ERROR_INIT;
        const char *given[ARRAY_COUNT(words) + 2] = {"--objects=s3"};
        size_t count = 1;

        for (size_t i = 0; i < ARRAY_COUNT(words); i++) {
            if (i != missing)
                given[count++] = words[i];
        }
        assert_int_equal(load(&settings, (char *const *) (uintptr_t) given, NULL, &err), 0);
        if (missing == ARRAY_COUNT(words)) {
            assert_int_equal(settings_check(&settings, &err), 0);
            continue;
        }
        assert_int_equal(settings_check(&settings, &err), -1);
        /* The word without its dashes and its value. */
        assert_non_null(memmem(err.message, strlen(err.message), words[missing] + 2,
                               strcspn(words[missing], "=") - 2));
    }
}

static void share_limits_name_shares(void **state)
{
    AUTO(settings) struct settings good = {0}, bad = {0};
    struct error err = ERROR_INIT;

    (void) state;
    assert_int_equal(load(&good, WORDS("--share-limits", "templates=3,spool_bytes=2G"), NULL, NULL),
                     0);
    assert_int_equal(settings_check(&good, NULL), 0);
    assert_int_equal(load(&bad, WORDS("--share-limits=template=3"), NULL, NULL), 0);
    assert_int_equal(settings_check(&bad, &err), -1);
    assert_non_null(strstr(err.message, "share-limits: there is no share 'template'; there are: "));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(defaults_are_complete_and_sound),
        cmocka_unit_test(a_flag_wins_over_environment_and_environment_over_file),
        cmocka_unit_test(errors_name_their_source),
        cmocka_unit_test(a_wrong_line_of_the_file_is_named),
        cmocka_unit_test(without_keys_only_local_listeners_are_accepted),
        cmocka_unit_test(an_s3_store_needs_all_of_its_settings),
        cmocka_unit_test(share_limits_name_shares),
        cmocka_unit_test(certificate_and_key_belong_together),
        cmocka_unit_test(words_carry_all_settings_to_another_process),
        cmocka_unit_test(help_is_asked_for_in_two_ways),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
