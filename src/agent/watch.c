#include "agent/watch.h"

#include <errno.h>

#include "base/auto.h"

static void ready(uv_poll_t *poll, int status, int events)
{
    struct watch *watch = poll->data;

    (void) events;
    if (status < 0)
        watch->wanted = 0; /* libuv has stopped the handle: POLLERR without anything to read */
    watch->on_ready(watch);
}

int watch_init(struct watch *watch, struct loop *loop, int fd,
               void (*on_ready)(struct watch *watch), void (*on_closed)(struct watch *watch))
{
    int r = uv_poll_init(&loop->uv, &watch->poll, fd);

    if (r < 0)
        return r;
    watch->poll.data = watch;
    watch->fd = fd;
    watch->wanted = 0;
    watch->open = true;
    watch->on_ready = on_ready;
    watch->on_closed = on_closed;
    return 0;
}

void watch_for(struct watch *watch, int events)
{
    if (!watch->open || watch->wanted == events)
        return;
    watch->wanted = events;
    if (events)
        (void) uv_poll_start(&watch->poll, events, ready); /* fails only on closing handles */
    else
        (void) uv_poll_stop(&watch->poll);
}

static void handle_closed(uv_handle_t *handle)
{
    struct watch *watch = handle->data;

    if (watch->on_closed)
        watch->on_closed(watch);
}

int watch_release(struct watch *watch)
{
    if (!watch->open)
        return -EBADF;
    watch->open = false;
    watch->wanted = 0;
    (void) uv_poll_stop(&watch->poll);
    uv_close((uv_handle_t *) &watch->poll, handle_closed);
    return TAKE_FD(watch->fd);
}

void watch_close(struct watch *watch)
{
    (void) fd_close(watch_release(watch));
}
