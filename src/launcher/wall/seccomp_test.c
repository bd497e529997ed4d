/* The compiler: its program against a plain reading of the table, for every number and for the
 * arguments that the table mentions; and what loading costs. */
#include <errno.h>
#include <linux/audit.h>
#include <linux/seccomp.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/auto.h"
#include "launcher/wall/seccomp.h"
#include "launcher/wall/seccomp_profile.h"

/* As the kernel runs it, for the instructions that we use. */
static uint32_t run_program(const struct seccomp_filter *filter, const struct seccomp_data *data)
{
    uint32_t accumulator = 0;

    for (size_t at = 0; at < filter->count; at++) {
        const struct sock_filter *step = &filter->instructions[at];
        bool holds = false;

        switch (step->code) {
        case BPF_LD | BPF_W | BPF_ABS:
            assert_true(step->k + 4 <= sizeof(*data) && step->k % 4 == 0);
            (void) memcpy(&accumulator, (const char *) data + step->k, 4);
            continue;
        case BPF_ALU | BPF_AND | BPF_K:
            accumulator &= step->k;
            continue;
        case BPF_RET | BPF_K:
            return step->k;
        case BPF_JMP | BPF_JA:
            at += step->k;
            continue;
        case BPF_JMP | BPF_JEQ | BPF_K:
            holds = accumulator == step->k;
            break;
        case BPF_JMP | BPF_JGE | BPF_K:
            holds = accumulator >= step->k;
            break;
        case BPF_JMP | BPF_JSET | BPF_K:
            holds = accumulator & step->k;
            break;
        default:
            fail_msg("instruction %zu has code %u", at, step->code);
        }
        at += holds ? step->jt : step->jf;
    }
    fail_msg("the program has no end");
    return 0;
}

static bool test_holds(const struct seccomp_test *test, uint64_t argument)
{
    switch (test->compare) {
    case SECCOMP_EQUAL:
        return ((uint32_t) argument & test->mask) == test->value;
    case SECCOMP_ANY_BIT:
        return (uint32_t) argument & test->mask;
    case SECCOMP_NULL:
        return argument == 0;
    case SECCOMP_NOT_NULL:
        return argument != 0;
    }
    return false;
}

/* The table read from top to bottom. */
static uint32_t read_table(uint32_t walls, const struct seccomp_data *data)
{
    size_t count;
    const struct seccomp_rule *rules = seccomp_profile_rules(&count);

    for (size_t i = 0; i < count; i++) {
        bool holds = rules[i].number == (uint32_t) data->nr;

        for (size_t k = 0; holds && k < rules[i].test_count; k++)
            holds = test_holds(&rules[i].tests[k], data->args[rules[i].tests[k].argument]);
        if (holds)
            return seccomp_rule_action(&rules[i], walls);
    }
    return walls & SECCOMP_WALL_BIT(UNKNOWN) ? SECCOMP_RET_ERRNO | ENOSYS : SECCOMP_RET_ALLOW;
}

/* Small and repeatable. */
static uint64_t next_random(uint64_t *state)
{
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return *state;
}

/* A value that some row of this call looks for, often with a bit changed. */
static uint64_t interesting_argument(uint32_t number, unsigned int argument, uint64_t *random)
{
    static const uint64_t others[] = {0, 1, UINT32_MAX, UINT64_MAX, UINT64_C(1) << 32};
    size_t count;
    const struct seccomp_rule *rules = seccomp_profile_rules(&count);
    uint64_t value = others[next_random(random) % ARRAY_COUNT(others)];

    for (size_t i = 0; i < count; i++)
        for (size_t k = 0; rules[i].number == number && k < rules[i].test_count; k++)
            if (rules[i].tests[k].argument == argument && next_random(random) % 4 == 0)
                value = rules[i].tests[k].compare == SECCOMP_EQUAL ? rules[i].tests[k].value
                                                                   : rules[i].tests[k].mask;
    if (next_random(random) % 3 == 0)
        value ^= UINT64_C(1) << next_random(random) % 64;
    return value;
}

static void compare_number(const struct seccomp_filter *filter, uint32_t walls, uint32_t number,
                           unsigned int rounds, uint64_t *random)
{
    for (unsigned int round = 0; round < rounds; round++) {
        struct seccomp_data data = {.nr = (int) number, .arch = AUDIT_ARCH_X86_64};

        for (unsigned int i = 0; i < 6; i++)
            data.args[i] = interesting_argument(number, i, random);
        assert_int_equal(run_program(filter, &data), read_table(walls, &data));
    }
}

static void compare_all(uint32_t walls, uint64_t *random)
{
    static struct seccomp_filter filter;
    static const uint32_t far[] = {600, 4096, 0x3fffffff};
    size_t count;
    const struct seccomp_rule *rules = seccomp_profile_rules(&count);

    assert_int_equal(seccomp_filter_init(&filter, walls), 0);
    for (uint32_t number = 0; number < 520; number++)
        compare_number(&filter, walls, number, 1, random);
    for (size_t i = 0; i < ARRAY_COUNT(far); i++)
        compare_number(&filter, walls, far[i], 1, random);
    for (size_t i = 0; i < count; i++)
        if (rules[i].test_count > 0)
            compare_number(&filter, walls, rules[i].number, 16, random);
}

static void the_program_answers_as_the_table_reads(void **state)
{
    uint64_t random = 0x9e3779b97f4a7c15;

    (void) state;
    compare_all(SECCOMP_WALLS_ALL, &random);
    compare_all(0, &random);
    for (int wall = 0; wall < SECCOMP_WALL_COUNT; wall++)
        compare_all(SECCOMP_WALLS_ALL & ~(UINT32_C(1) << wall), &random);
}

static void other_interfaces_never_reach_the_table(void **state)
{
    static struct seccomp_filter filter;
    struct seccomp_data i386 = {.nr = SYS_read, .arch = AUDIT_ARCH_I386};
    struct seccomp_data arm = {.nr = SYS_read, .arch = AUDIT_ARCH_AARCH64};
    struct seccomp_data x32 = {.nr = SYS_read | 0x40000000, .arch = AUDIT_ARCH_X86_64};
    struct seccomp_data skipped = {.nr = -1, .arch = AUDIT_ARCH_X86_64};

    (void) state;
    assert_int_equal(seccomp_filter_init(&filter, SECCOMP_WALLS_ALL), 0);
    assert_int_equal(run_program(&filter, &i386), SECCOMP_RET_KILL_PROCESS);
    assert_int_equal(run_program(&filter, &arm), SECCOMP_RET_KILL_PROCESS);
    assert_int_equal(run_program(&filter, &x32), SECCOMP_RET_ERRNO | ENOSYS);
    /* A tracer that skips a call sets its number to -1. */
    assert_int_equal(run_program(&filter, &skipped), SECCOMP_RET_ERRNO | ENOSYS);
}

static void every_row_says_why(void **state)
{
    size_t count;
    const struct seccomp_rule *rules = seccomp_profile_rules(&count);

    (void) state;
    assert_true(count > 350);
    for (size_t i = 0; i < count; i++) {
        assert_true(strlen(rules[i].name) > 0 && strlen(rules[i].reason) > 2);
        assert_true(rules[i].wall <= SECCOMP_WALL_UNKNOWN || rules[i].wall == SECCOMP_WALL_COUNT);
        assert_true(rules[i].wall < SECCOMP_WALL_COUNT || rules[i].system == 0);
    }
}

/* A row behind one that always answers would be dead: written by mistake. */
static void no_row_is_out_of_reach(void **state)
{
    size_t count;
    const struct seccomp_rule *rules = seccomp_profile_rules(&count);

    (void) state;
    for (size_t i = 0; i < count; i++)
        for (size_t k = i + 1; rules[i].test_count == 0 && k < count; k++)
            if (rules[i].number == rules[k].number)
                fail_msg("%s has a row behind its last", rules[i].name);
}

static void walls_are_found_by_their_text(void **state)
{
    (void) state;
    for (int wall = 0; wall < SECCOMP_WALL_COUNT; wall++) {
        const char *text = seccomp_wall_text((enum seccomp_wall) wall);

        assert_int_equal(seccomp_wall_from_text(text), wall);
        assert_true(strlen(seccomp_wall_keeps_out((enum seccomp_wall) wall)) > 0);
    }
    assert_int_equal(seccomp_wall_from_text("moat"), SECCOMP_WALL_COUNT);
}

static uint64_t now_ns(void)
{
    struct timespec now;

    (void) clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t) now.tv_sec * 1000000000u + (uint64_t) now.tv_nsec;
}

/* Load in a fresh child; it exits with the time in units of 4 us, or 255. */
static unsigned int load_in_child(const struct seccomp_filter *filter)
{
    int status;
    pid_t pid = fork();

    assert_true(pid >= 0);
    if (pid == 0) {
        uint64_t start = now_ns(), units;

        if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
            _exit(255);
        if (seccomp_filter_load(filter) < 0)
            _exit(255);
        units = (now_ns() - start) / 4000;
        _exit(units < 254 ? (int) units : 254);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status));
    return (unsigned int) WEXITSTATUS(status);
}

static void loading_is_quick(void **state)
{
    static struct seccomp_filter filter;
    unsigned int histogram[256] = {0}, seen = 0, median = 0;
    uint64_t start = now_ns(), built;

    (void) state;
    assert_int_equal(seccomp_filter_init(&filter, SECCOMP_WALLS_ALL), 0);
    built = now_ns() - start;
    for (int i = 0; i < 101; i++)
        histogram[load_in_child(&filter)]++;
    assert_int_equal(histogram[255], 0);
    while (seen <= 50)
        seen += histogram[median++];
    (void) printf("# seccomp: %u instructions, compiled in %llu us, loaded in %u us (median)\n",
                  filter.count, (unsigned long long) built / 1000, (median - 1) * 4);
    assert_true(filter.count < SECCOMP_FILTER_MAX / 4 * 3);
}

static void give_up_admin_and_load(const struct seccomp_filter *filter)
{
    if (setresuid(65534, 65534, 65534) < 0)
        _exit(2);
    _exit(seccomp_filter_load(filter) == -EACCES ? 0 : 1);
}

static void loading_needs_no_new_privs(void **state)
{
    static struct seccomp_filter filter;
    int status;
    pid_t pid;

    (void) state;
    assert_int_equal(seccomp_filter_init(&filter, SECCOMP_WALLS_ALL), 0);
    pid = fork();
    assert_true(pid >= 0);
    if (pid == 0)
        give_up_admin_and_load(&filter);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_program_answers_as_the_table_reads),
        cmocka_unit_test(other_interfaces_never_reach_the_table),
        cmocka_unit_test(every_row_says_why),
        cmocka_unit_test(no_row_is_out_of_reach),
        cmocka_unit_test(walls_are_found_by_their_text),
        cmocka_unit_test(loading_is_quick),
        cmocka_unit_test(loading_needs_no_new_privs),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
