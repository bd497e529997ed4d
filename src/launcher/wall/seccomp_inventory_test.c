/* Every system call number from 0 to 600 through every interface, against a committed table: a
 * change of the profile shows up here as a changed row. */
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>

#include "launcher/wall/seccomp_test_kit.h"

#define NUMBERS_END 601
#define X32_BIT     0x40000000u

struct inventory_row {
    const char *name;
    long answer; /* of a call with all arguments 0 */
};

#define PASSES PROBE_PASSED
/* Taken by the kernel before any filter looks (uprobes of the host): not probed, since such a call
 * from elsewhere ends the process. Without uprobes it is as unknown as any other. */
#define UNFILTERED 1

static const struct inventory_row inventory[NUMBERS_END] = {
#define ROW(number, call, expected) [number] = {#call, expected},
#include "launcher/wall/seccomp_inventory.def"
#undef ROW
};

static long expected_answer(unsigned int number)
{
    return inventory[number].name ? inventory[number].answer : -ENOSYS;
}

static size_t list_probes(struct probe probes[static NUMBERS_END], uint64_t interface_bit)
{
    size_t count = 0;

    for (unsigned int number = 0; number < NUMBERS_END; number++)
        if (expected_answer(number) != UNFILTERED)
            probes[count++] = (struct probe){.number = number | interface_bit};
    return count;
}

static void every_call_is_answered_as_in_the_table(void **state)
{
    static struct probe probes[NUMBERS_END];
    size_t count = list_probes(probes, 0);
    int wrong = 0;

    (void) state;
    probe_all(SECCOMP_WALLS_ALL, probes, count);
    for (size_t i = 0; i < count; i++) {
        long expected = expected_answer((unsigned int) probes[i].number);

        if (probes[i].answer == expected)
            continue;
        wrong++;
        print_message("%llu (%s): %ld and not %ld\n", (unsigned long long) probes[i].number,
                      inventory[probes[i].number].name ? inventory[probes[i].number].name : "-",
                      probes[i].answer, expected);
    }
    assert_int_equal(wrong, 0);
}

static void the_table_knows_the_names_of_this_libc(void **state)
{
    (void) state;
    assert_string_equal(inventory[SYS_read].name, "read");
    assert_string_equal(inventory[SYS_clone3].name, "clone3");
    assert_string_equal(inventory[SYS_set_mempolicy_home_node].name, "set_mempolicy_home_node");
}

static void every_x32_call_is_missing(void **state)
{
    static struct probe probes[NUMBERS_END];
    size_t count = list_probes(probes, X32_BIT);

    (void) state;
    probe_all(SECCOMP_WALLS_ALL, probes, count);
    for (size_t i = 0; i < count; i++)
        assert_int_equal(probes[i].answer, -ENOSYS);
    probe_all(SECCOMP_WALLS_ALL & ~SECCOMP_WALL_BIT(ABI), probes, count);
    for (size_t i = 0; i < count; i++)
        assert_int_equal(probes[i].answer, PROBE_PASSED);
}

/* int 0x80: the i386 table, also from a 64-bit program. */
static long call_i386(long number)
{
    long answer;

    __asm__ volatile("int $0x80"
                     : "=a"(answer)
                     : "a"(number), "b"(-1L), "c"(-1L), "d"(-1L), "S"(-1L), "D"(-1L)
                     : "memory", "r8", "r9", "r10", "r11");
    return answer;
}

static int status_of_i386_call(const struct seccomp_filter *filter, long number)
{
    int status;
    pid_t pid = fork();

    assert_true(pid >= 0);
    if (pid == 0) {
        if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 || seccomp_filter_load(filter) < 0)
            _exit(1);
        (void) call_i386(number);
        _exit(0);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    return status;
}

static void every_i386_call_ends_the_process(void **state)
{
    static struct seccomp_filter filter;

    (void) state;
    assert_int_equal(seccomp_filter_init(&filter, SECCOMP_WALLS_ALL), 0);
    for (long number = 0; number < NUMBERS_END; number++) {
        int status = status_of_i386_call(&filter, number);

        assert_true(WIFSIGNALED(status));
        assert_int_equal(WTERMSIG(status), SIGSYS);
    }
}

static void i386_calls_pass_without_the_wall(void **state)
{
    static struct seccomp_filter filter;
    int status;

    (void) state;
    assert_int_equal(seccomp_filter_init(&filter, SECCOMP_WALLS_ALL & ~SECCOMP_WALL_BIT(ABI)), 0);
    status = status_of_i386_call(&filter, 20 /* getpid */);
    if (WIFSIGNALED(status) && WTERMSIG(status) == SIGSEGV) {
        (void) printf("# skip: i386 emulation in the kernel\n");
        skip();
    }
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_call_is_answered_as_in_the_table),
        cmocka_unit_test(the_table_knows_the_names_of_this_libc),
        cmocka_unit_test(every_x32_call_is_missing),
        cmocka_unit_test(every_i386_call_ends_the_process),
        cmocka_unit_test(i386_calls_pass_without_the_wall),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
