/* Every system call number from 0 to 600 through every interface, in a real sandbox, against the
 * table of the unit test (launcher/wall/seccomp_inventory.def). For tests of isolation only.
 *
 * Calls that the profile lets through are not made: what is refused is refused before anything
 * happens, so that trying it does no harm. Prints one line for each answer that is not the table's,
 * then the counts. Exit status 1 when there was any. */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define NUMBERS_END 601
#define X32_BIT     0x40000000L
#define PASSES      (-EXFULL) /* no call is answered with that */
#define UNFILTERED  1

struct row {
    const char *name;
    long answer;
};

static const struct row table[NUMBERS_END] = {
#define ROW(number, call, expected) [number] = {#call, expected},
#include "launcher/wall/seccomp_inventory.def"
#undef ROW
};

static long expected(int number)
{
    return table[number].name ? table[number].answer : -ENOSYS;
}

static long call(long number)
{
    long answer = syscall(number, 0, 0, 0, 0, 0, 0);

    return answer < 0 ? -errno : answer;
}

/* In a process of its own: were it not refused, it might not come back. */
static int status_of(long number, long (*make)(long number), long expect)
{
    int status = -1;
    pid_t pid = fork();

    if (pid == 0) {
        (void) alarm(5);
        _exit(make(number) == expect ? 0 : 1);
    }
    if (pid > 0)
        (void) waitpid(pid, &status, 0);
    return status;
}

static int complain(const char *interface, int number)
{
    (void) printf("%s %d (%s): another answer than in the table\n", interface, number,
                  table[number].name ? table[number].name : "-");
    return 1;
}

static int try_native(int *count)
{
    int wrong = 0;

    for (int number = 0; number < NUMBERS_END; number++) {
        long expect = expected(number);

        if (expect == PASSES || expect == UNFILTERED)
            continue;
        ++*count;
        if (status_of(number, call, expect) != 0)
            wrong += complain("x86-64", number);
    }
    return wrong;
}

static int try_x32(int *count)
{
    int wrong = 0;

    for (int number = 0; number < NUMBERS_END; number++, ++*count) {
        if (expected(number) != UNFILTERED && status_of(number | X32_BIT, call, -ENOSYS) != 0)
            wrong += complain("x32", number);
    }
    return wrong;
}

static long call_i386(long number)
{
    long answer;

    __asm__ volatile("int $0x80"
                     : "=a"(answer)
                     : "a"(number), "b"(-1L), "c"(-1L), "d"(-1L), "S"(-1L), "D"(-1L)
                     : "memory", "r8", "r9", "r10", "r11");
    return answer;
}

/* SIGSYS by the filter; SIGSEGV where the kernel has no such interface. */
static int try_i386(int *count)
{
    int wrong = 0;

    for (int number = 0; number < NUMBERS_END; number++, ++*count) {
        int status = status_of(number, call_i386, 0);

        if (!WIFSIGNALED(status) || (WTERMSIG(status) != SIGSYS && WTERMSIG(status) != SIGSEGV))
            wrong += complain("i386", number);
    }
    return wrong;
}

int main(void)
{
    int counts[3] = {0};
    int wrong = try_native(&counts[0]) + try_x32(&counts[1]) + try_i386(&counts[2]);

    (void) printf("refused as in the table: x86-64 %d, x32 %d, i386 %d\n", counts[0], counts[1],
                  counts[2]);
    return wrong ? 1 : 0;
}
