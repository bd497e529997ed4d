#include "api/access/password.h"
#include "net/net_testing.h"

/* As cheap as Argon2 lets it be. */
static const struct password_cost cheap = {.memory_kib = 8, .passes = 1};

struct bench {
    struct loop loop;
    struct passwords *passwords;
    size_t answers, refusals;
    bool is_right, is_closed;
    char encoded[256];
};

static void bench_begin(struct bench *bench)
{
    *bench = (struct bench){.answers = 0};
    assert_int_equal(loop_init(&bench->loop, NULL), 0);
    bench->passwords = passwords_new(&bench->loop, cheap);
}

static void closed(void *context)
{
    ((struct bench *) context)->is_closed = true;
}

static void bench_end(struct bench *bench)
{
    passwords_close(bench->passwords, closed, bench);
    loop_run(&bench->loop);
    assert_true(bench->is_closed);
    loop_done(&bench->loop);
}

static void made(void *context, const struct error *failure, const char *encoded)
{
    struct bench *bench = context;

    bench->answers++;
    bench->refusals += failure && failure->code == ERR_UNAVAILABLE;
    if (!failure)
        (void) snprintf(bench->encoded, sizeof(bench->encoded), "%s", encoded);
}

static void verified(void *context, const struct error *failure, bool is_right)
{
    struct bench *bench = context;

    bench->answers++;
    bench->refusals += failure && failure->code == ERR_UNAVAILABLE;
    bench->is_right = is_right;
}

static bool is_right(struct bench *bench, const char *password, const char *encoded)
{
    bench->is_right = false;
    password_verify(bench->passwords, password, encoded, verified, bench);
    loop_run(&bench->loop);
    return bench->is_right;
}

static void a_password_is_known_again_and_no_other_is(void **state)
{
    struct bench bench;

    (void) state;
    bench_begin(&bench);
    password_make(bench.passwords, "correct horse", made, &bench);
    assert_int_equal(bench.answers, 0);
    loop_run(&bench.loop);
    assert_int_equal(bench.answers, 1);
    assert_true(strncmp(bench.encoded, "$argon2id$v=19$m=8,t=1,p=1$", 27) == 0);
    assert_true(is_right(&bench, "correct horse", bench.encoded));
    assert_false(is_right(&bench, "correct horsf", bench.encoded));
    assert_false(is_right(&bench, "", bench.encoded));
    bench_end(&bench);
}

static void the_same_password_looks_different_each_time(void **state)
{
    struct bench bench;
    char first[256];

    (void) state;
    bench_begin(&bench);
    password_make(bench.passwords, "correct horse", made, &bench);
    loop_run(&bench.loop);
    memcpy(first, bench.encoded, sizeof(first));
    password_make(bench.passwords, "correct horse", made, &bench);
    loop_run(&bench.loop);
    assert_string_not_equal(first, bench.encoded);
    bench_end(&bench);
}

static void nobodys_password_is_computed_and_never_right(void **state)
{
    struct bench bench;

    (void) state;
    bench_begin(&bench);
    assert_false(is_right(&bench, "correct horse", NULL));
    assert_int_equal(bench.answers, 1);
    assert_int_equal(bench.refusals, 0);
    assert_false(is_right(&bench, "correct horse", "not a hash"));
    bench_end(&bench);
}

static void more_than_can_wait_are_refused(void **state)
{
    const size_t fit = PASSWORDS_AT_ONCE + PASSWORDS_WAITING_MAX;
    struct bench bench;

    (void) state;
    bench_begin(&bench);
    for (size_t i = 0; i < fit + 5; i++)
        password_make(bench.passwords, "correct horse", made, &bench);
    assert_int_equal(bench.answers, 0);
    loop_run(&bench.loop);
    assert_int_equal(bench.answers, fit + 5);
    assert_int_equal(bench.refusals, 5);
    bench_end(&bench);
}

static void closing_answers_everybody(void **state)
{
    struct bench bench;

    (void) state;
    bench_begin(&bench);
    for (size_t i = 0; i < 10; i++)
        password_verify(bench.passwords, "correct horse", NULL, verified, &bench);
    bench_end(&bench);
    assert_int_equal(bench.answers, 10);
    assert_int_equal(bench.refusals, 10 - PASSWORDS_AT_ONCE);
}

static void the_form_is_checked(void **state)
{
    char text[PASSWORD_MAX + 2];

    (void) state;
    memset(text, 'x', sizeof(text));
    text[PASSWORD_MAX + 1] = '\0';
    assert_int_equal(password_check_form(text, NULL), -1);
    text[PASSWORD_MAX] = '\0';
    assert_int_equal(password_check_form(text, NULL), 0);
    text[PASSWORD_MIN] = '\0';
    assert_int_equal(password_check_form(text, NULL), 0);
    text[PASSWORD_MIN - 1] = '\0';
    assert_int_equal(password_check_form(text, NULL), -1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_password_is_known_again_and_no_other_is),
        cmocka_unit_test(the_same_password_looks_different_each_time),
        cmocka_unit_test(nobodys_password_is_computed_and_never_right),
        cmocka_unit_test(more_than_can_wait_are_refused),
        cmocka_unit_test(closing_answers_everybody),
        cmocka_unit_test(the_form_is_checked),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
