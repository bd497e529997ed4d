#include "sys/process/sys_signal.h"

#include <pthread.h>
#include <sys/signalfd.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "sys/sys_call.h"

int sys_signal_open(const int *signals, size_t count)
{
    sigset_t set, before;
    int result;

    sigemptyset(&set);
    for (size_t i = 0; i < count; i++) {
        if (sigaddset(&set, signals[i]) < 0)
            return -errno;
    }
    result = -pthread_sigmask(SIG_BLOCK, &set, &before);
    if (result == 0)
        result = sys_call_fault();
    else
        return result;
    if (result == 0)
        result = sys_call_result(signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK));
    if (result < 0)
        (void) sys_signal_restore(&before); /* cannot fail with a mask the kernel gave us */
    return result;
}

int sys_signal_read(int fd, struct sys_signal *ret_signal)
{
    struct signalfd_siginfo information;
    ssize_t count;

    do {
        count = sys_call_fault();
        if (count == 0)
            count = sys_call_size(read(fd, &information, sizeof(information)));
    } while (count == -EINTR);
    if (count < 0)
        return (int) count;
    if (count != sizeof(information))
        return -EIO;
    *ret_signal = (struct sys_signal){
        .number = (int) information.ssi_signo,
        .sender = (pid_t) information.ssi_pid,
        .uid = information.ssi_uid,
        .code = information.ssi_code,
    };
    return 0;
}

int sys_signal_ignore(int number)
{
    struct sigaction action = {.sa_handler = SIG_IGN};

    return sys_call_result(sigaction(number, &action, NULL));
}

int sys_signal_block_all(sigset_t *ret_before)
{
    sigset_t all;

    sigfillset(&all);
    return -pthread_sigmask(SIG_SETMASK, &all, ret_before);
}

int sys_signal_restore(const sigset_t *before)
{
    return -pthread_sigmask(SIG_SETMASK, before, NULL);
}

static int reset_action(int number)
{
    /* As the kernel wants it. Not sigaction(3): libc keeps signals 32 and 33 for itself and refuses
     * to touch them, but a parent may well have left them ignored. All zero means SIG_DFL. */
    static const struct {
        unsigned long handler, flags, restorer, mask;
    } by_default = {0};

    return syscall(SYS_rt_sigaction, number, &by_default, NULL, sizeof(by_default.mask)) < 0
               ? -errno
               : 0;
}

static int unblock_all(void)
{
    sigset_t none;

    sigemptyset(&none);
    return sys_call_result(sigprocmask(SIG_SETMASK, &none, NULL));
}

int sys_signal_reset(void)
{
    int r = 0;

    for (int number = 1; r == 0 && number < _NSIG; number++) {
        if (number != SIGKILL && number != SIGSTOP)
            r = reset_action(number);
    }
    return r < 0 ? r : unblock_all();
}

int sys_signal_reset_some(const int *numbers, size_t count)
{
    int r = 0;

    for (size_t i = 0; r == 0 && i < count; i++)
        r = reset_action(numbers[i]);
    return r < 0 ? r : unblock_all();
}
