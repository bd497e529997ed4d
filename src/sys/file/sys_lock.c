#include "sys/file/sys_lock.h"

#include <stdint.h>
#include <sys/file.h>
#include <time.h>

#include "sys/sys_call.h"

/* Waiting: the first steps are short because most owners hold a lock for microseconds. */
#define FIRST_STEP_NS 50000
#define LAST_STEP_NS  5000000

static int try_lock(int fd, int operation)
{
    int result;

    do {
        result = sys_call_fault();
        if (result == 0)
            result = sys_call_result(flock(fd, operation));
    } while (result == -EINTR);
    return result;
}

int sys_lock_take(int fd, enum sys_lock_kind kind, int timeout_ms)
{
    int operation = kind == SYS_LOCK_EXCLUSIVE ? LOCK_EX : LOCK_SH;
    int64_t left_ns = (int64_t) timeout_ms * 1000000;
    int64_t step_ns = FIRST_STEP_NS;
    int result;

    if (timeout_ms < 0)
        return try_lock(fd, operation);
    while ((result = try_lock(fd, operation | LOCK_NB)) == -EWOULDBLOCK) {
        struct timespec pause = {.tv_nsec = step_ns};

        if (left_ns <= 0)
            return -ETIMEDOUT;
        /* A signal shortens one step; the sum of the steps is only a bound. */
        (void) nanosleep(&pause, NULL);
        left_ns -= step_ns;
        step_ns = step_ns * 2 > LAST_STEP_NS ? LAST_STEP_NS : step_ns * 2;
    }
    return result;
}

void sys_lock_release(int fd)
{
    (void) flock(fd, LOCK_UN);
}
