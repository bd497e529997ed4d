/* For the tests of the system call profile only: ask the kernel what the loaded filter answers,
 * without ever making the call.
 *
 * A second filter, loaded before ours, hands every call whose sixth argument has a magic upper half to
 * the test itself. The kernel takes the stricter answer of two filters, and an errno is stricter
 * than that: so what ours refuses comes back as its errno, and what ours lets through ends up with
 * the test, which answers PROBE_PASSED in place of the kernel. Nothing is executed, so all numbers
 * can be tried with any arguments. The filters bind one thread of the test and end with it. */
#pragma once

#include <errno.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/auto.h"
#include "launcher/wall/seccomp.h"

#define PROBE_MAGIC  0x5ec0ffeeu
#define PROBE_PASSED (-EXFULL) /* no call of the profile is answered with that */

struct probe {
    uint64_t number;
    uint64_t arguments[6]; /* of the last, the lower half */
    long answer;           /* PROBE_PASSED, -errno, or 0 for a pretended success */
};

struct prober {
    const struct seccomp_filter *filter;
    struct probe *probes;
    size_t count;
    int ready; /* eventfd: the listener exists, or never will */
    int done;  /* eventfd */
    atomic_int listener;
};

/* The call itself, past libc: with all six registers and no errno. */
static inline long probe_call(const struct probe *probe)
{
    /* A sanitizer calls a function for each read, which the registers would not survive. */
    const struct probe from = *probe;
    register uint64_t r10 __asm__("r10") = from.arguments[3];
    register uint64_t r8 __asm__("r8") = from.arguments[4];
    register uint64_t r9 __asm__("r9") =
        (uint64_t) PROBE_MAGIC << 32 | (uint32_t) from.arguments[5];
    long answer;

    /* The magic number must not stay in its register: later calls of libc leave it as it is. */
    __asm__ volatile("syscall\n\txorl %%r9d, %%r9d"
                     : "=a"(answer), "+r"(r9)
                     : "a"(from.number), "D"(from.arguments[0]), "S"(from.arguments[1]),
                       "d"(from.arguments[2]), "r"(r10), "r"(r8)
                     : "rcx", "r11", "memory", "cc");
    return answer;
}

static inline int probe_install_listener(void)
{
    struct sock_filter code[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args) + 5 * 8 + 4),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, PROBE_MAGIC, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_USER_NOTIF),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = {.len = ARRAY_COUNT(code), .filter = code};

    return (int) syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_NEW_LISTENER,
                         &program);
}

static inline void *probe_thread(void *argument)
{
    struct prober *prober = argument;
    int listener = -1;

    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0)
        listener = probe_install_listener();
    if (listener >= 0 && seccomp_filter_load(prober->filter) < 0)
        listener = -1;
    atomic_store(&prober->listener, listener);
    (void) eventfd_write(prober->ready, 1);
    for (size_t i = 0; listener >= 0 && i < prober->count; i++)
        prober->probes[i].answer = probe_call(&prober->probes[i]);
    (void) eventfd_write(prober->done, 1);
    return NULL;
}

static inline void probe_answer(int listener)
{
    struct seccomp_notif request = {0};
    struct seccomp_notif_resp response = {0};

    assert_int_equal(ioctl(listener, SECCOMP_IOCTL_NOTIF_RECV, &request), 0);
    response.id = request.id;
    response.error = PROBE_PASSED;
    assert_int_equal(ioctl(listener, SECCOMP_IOCTL_NOTIF_SEND, &response), 0);
}

static inline void probe_serve(struct prober *prober, int listener)
{
    for (;;) {
        struct pollfd fds[] = {{prober->done, POLLIN, 0}, {listener, POLLIN, 0}};

        assert_true(poll(fds, 2, 10000) > 0);
        if (fds[1].revents & POLLIN)
            probe_answer(listener);
        else if (fds[0].revents)
            return;
    }
}

/* Fill in the answers of a filter with these walls. */
static inline void probe_all(uint32_t walls, struct probe *probes, size_t count)
{
    static struct seccomp_filter filter;
    struct prober prober = {.filter = &filter, .probes = probes, .count = count};
    pthread_t thread;
    eventfd_t value;
    int listener;

    assert_int_equal(seccomp_filter_init(&filter, walls), 0);
    prober.ready = eventfd(0, EFD_CLOEXEC);
    prober.done = eventfd(0, EFD_CLOEXEC);
    atomic_init(&prober.listener, -1);
    assert_int_equal(pthread_create(&thread, NULL, probe_thread, &prober), 0);
    assert_int_equal(eventfd_read(prober.ready, &value), 0);
    listener = atomic_load(&prober.listener);
    assert_true(listener >= 0);
    probe_serve(&prober, listener);
    assert_int_equal(pthread_join(thread, NULL), 0);
    (void) close(listener);
    (void) close(prober.ready);
    (void) close(prober.done);
}
