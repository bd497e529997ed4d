#include "launcher/loop/event_loop.h"

#include <errno.h>
#include <limits.h>
#include <unistd.h>

#include "base/auto.h"

#define NANOSECONDS_PER_MS UINT64_C(1000000)

int event_loop_init(struct event_loop *loop, const struct clock *clock)
{
    *loop = (struct event_loop){.clock = clock};
    list_init(&loop->timers);
    loop->epoll = epoll_create1(EPOLL_CLOEXEC);
    return loop->epoll < 0 ? -errno : 0;
}

void event_loop_done(struct event_loop *loop)
{
    loop->epoll = fd_close(loop->epoll);
}

/* --- timers ---------------------------------------------------------------------------------- */

void event_timer_clear(struct event_timer *timer)
{
    if (timer->is_set)
        list_remove(&timer->link);
    timer->is_set = false;
}

void event_timer_set(struct event_loop *loop, struct event_timer *timer, uint64_t milliseconds)
{
    struct list *before;

    event_timer_clear(timer);
    timer->trace = trace_context;
    timer->due_ns = clock_monotonic_ns(loop->clock) + milliseconds * NANOSECONDS_PER_MS;
    /* From the end: most timers are set for later than those that wait. */
    before = loop->timers.previous;
    while (before != &loop->timers &&
           CONTAINER_OF(before, struct event_timer, link)->due_ns > timer->due_ns)
        before = before->previous;
    list_append(before->next, &timer->link);
    timer->is_set = true;
}

static struct event_timer *soonest(const struct event_loop *loop)
{
    struct list *first = list_first(&loop->timers);

    return first ? CONTAINER_OF(first, struct event_timer, link) : NULL;
}

static void fire_due(struct event_loop *loop)
{
    uint64_t now = clock_monotonic_ns(loop->clock);
    struct event_timer *timer;

    while ((timer = soonest(loop)) && timer->due_ns <= now && !loop->stopped) {
        TRACE_AS(&timer->trace);

        event_timer_clear(timer);
        timer->fire(timer);
    }
}

/* Milliseconds for epoll, rounded up so that it does not wake too early. */
static int wait_time(const struct event_loop *loop)
{
    const struct event_timer *timer = soonest(loop);
    uint64_t now = clock_monotonic_ns(loop->clock);
    uint64_t wait;

    if (!timer)
        return -1;
    if (timer->due_ns <= now)
        return 0;
    wait = (timer->due_ns - now + NANOSECONDS_PER_MS - 1) / NANOSECONDS_PER_MS;
    return wait > INT_MAX ? INT_MAX : (int) wait;
}

/* --- sources --------------------------------------------------------------------------------- */

int event_loop_add(struct event_loop *loop, struct event_source *source)
{
    struct epoll_event event = {.events = source->events, .data.ptr = source};
    int how = source->is_added ? EPOLL_CTL_MOD : EPOLL_CTL_ADD;

    if (epoll_ctl(loop->epoll, how, source->fd, &event) < 0)
        return -errno;
    source->is_added = true;
    return 0;
}

void event_loop_remove(struct event_loop *loop, struct event_source *source)
{
    if (source->is_added)
        (void) epoll_ctl(loop->epoll, EPOLL_CTL_DEL, source->fd, NULL);
    source->is_added = false;
}

/* --- running --------------------------------------------------------------------------------- */

int event_loop_run(struct event_loop *loop)
{
    loop->stopped = false;
    while (!loop->stopped) {
        struct epoll_event event;
        int count;

        log_flush(loop->log);
        count = epoll_wait(loop->epoll, &event, 1, wait_time(loop));

        if (count < 0 && errno != EINTR)
            return -errno;
        if (count == 1) {
            struct event_source *source = event.data.ptr;
            TRACE_AS(&source->trace);

            source->ready(source, event.events);
        }
        if (!loop->stopped)
            fire_due(loop);
    }
    return 0;
}

void event_loop_stop(struct event_loop *loop)
{
    loop->stopped = true;
}
