#include "agent/exec/reaper.h"

#include <errno.h>
#include <signal.h>
#include <unistd.h>

#include "agent/watch.h"
#include "base/auto.h"
#include "base/memory.h"
#include "sys/process/sys_signal.h"

/* Children per turn: a flood of zombies must not keep requests waiting. */
#define REAP_PER_TURN 512

static const int signals[] = {SIGCHLD, SIGTERM, SIGINT,  SIGHUP,
                              SIGQUIT, SIGUSR1, SIGUSR2, SIGWINCH};

struct reaper {
    struct loop *loop;
    const struct reaper_events *events;
    void *owner;
    struct watch watch;
    struct loop_task reap;
    bool is_init;
    bool closing;
};

static void reap(struct loop_task *task)
{
    struct reaper *reaper = CONTAINER_OF(task, struct reaper, reap);

    for (int i = 0; i < REAP_PER_TURN; i++) {
        struct sys_exit exit;
        pid_t pid;

        if (sys_process_reap(&pid, &exit) < 0)
            return; /* none has ended, or there are none */
        reaper->events->on_child(reaper->owner, pid, &exit);
        if (reaper->closing)
            return;
    }
    loop_defer(reaper->loop, &reaper->reap);
}

/* A sender inside may forge its pid, but only with a code below 0 (sigqueue). */
static bool may_send(const struct reaper *reaper, const struct sys_signal *signal)
{
    return !reaper->is_init || (signal->sender == 0 && signal->code >= 0);
}

static void signals_ready(struct watch *watch)
{
    struct reaper *reaper = CONTAINER_OF(watch, struct reaper, watch);
    struct sys_signal signal;

    while (watch->open && sys_signal_read(watch->fd, &signal) == 0) {
        if (signal.number == SIGCHLD)
            loop_defer(reaper->loop, &reaper->reap);
        else if (may_send(reaper, &signal))
            reaper->events->on_signal(reaper->owner, signal.number);
    }
}

static void watch_closed(struct watch *watch)
{
    free(CONTAINER_OF(watch, struct reaper, watch));
}

static int open_signals(struct reaper *reaper)
{
    AUTO(close) int fd = sys_signal_open(signals, ARRAY_COUNT(signals));
    int r = fd;

    if (r < 0)
        return r;
    if (!reaper->is_init)
        r = sys_process_set_subreaper(true);
    if (r >= 0)
        r = watch_init(&reaper->watch, reaper->loop, fd, signals_ready, watch_closed);
    if (r < 0)
        return r;
    (void) TAKE_FD(fd);
    return 0;
}

struct reaper *reaper_new(struct loop *loop, const struct reaper_events *events, void *owner,
                          int *ret_error)
{
    struct reaper *reaper = mem_alloc(sizeof(*reaper));
    int r;

    reaper->loop = loop;
    reaper->events = events;
    reaper->owner = owner;
    reaper->is_init = getpid() == 1;
    loop_task_init(&reaper->reap, reap);
    r = open_signals(reaper);
    if (r < 0) {
        free(reaper);
        *ret_error = r;
        return NULL;
    }
    watch_for(&reaper->watch, UV_READABLE);
    loop_defer(loop, &reaper->reap); /* some may have ended before */
    return reaper;
}

void reaper_close(struct reaper *reaper)
{
    reaper->closing = true;
    loop_task_cancel(&reaper->reap);
    watch_close(&reaper->watch);
}
