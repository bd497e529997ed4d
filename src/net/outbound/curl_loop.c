#include "net/outbound/curl_loop.h"

#include <stdlib.h>

#include "base/auto.h"
#include "base/memory.h"

/* One socket that curl wants watched. */
struct watched_socket {
    struct curl_loop *curl; /* borrowed: outlives us */
    uv_poll_t poll;
    curl_socket_t fd; /* curl's */
};

static void report_finished(struct curl_loop *curl)
{
    CURLMsg *message;
    int left;

    while (!curl->closing && (message = curl_multi_info_read(curl->multi, &left))) {
        if (message->msg == CURLMSG_DONE)
            curl->on_finished(curl, message->easy_handle, message->data.result);
    }
}

static void act(struct curl_loop *curl, curl_socket_t fd, int what)
{
    int running;

    (void) curl_multi_socket_action(curl->multi, fd, what, &running);
    report_finished(curl);
}

static void socket_ready(uv_poll_t *poll, int status, int events)
{
    struct watched_socket *watched = poll->data;
    int what = 0;

    if (status < 0)
        what = CURL_CSELECT_ERR;
    if (events & UV_READABLE)
        what |= CURL_CSELECT_IN;
    if (events & UV_WRITABLE)
        what |= CURL_CSELECT_OUT;
    act(watched->curl, watched->fd, what); /* may end `watched` */
}

static void handle_closed(struct curl_loop *curl)
{
    if (--curl->handles == 0)
        curl->on_closed(curl);
}

static void socket_closed(uv_handle_t *handle)
{
    struct watched_socket *watched = handle->data;
    struct curl_loop *curl = watched->curl;

    free(watched);
    handle_closed(curl);
}

static void timer_closed(uv_handle_t *handle)
{
    handle_closed(handle->data);
}

static struct watched_socket *watch(struct curl_loop *curl, curl_socket_t fd)
{
    struct watched_socket *watched = mem_alloc(sizeof(*watched));

    if (uv_poll_init_socket(&curl->loop->uv, &watched->poll, fd) < 0) {
        free(watched);
        return NULL;
    }
    watched->curl = curl;
    watched->fd = fd;
    watched->poll.data = watched;
    curl->handles++;
    (void) curl_multi_assign(curl->multi, fd, watched);
    return watched;
}

static int socket_wanted(CURL *easy, curl_socket_t fd, int what, void *context, void *socket)
{
    struct curl_loop *curl = context;
    struct watched_socket *watched = socket;
    int events = 0;

    (void) easy;
    if (what == CURL_POLL_REMOVE) {
        /* curl closes the descriptor next; uv_close stops polling it at once. */
        if (watched) {
            (void) curl_multi_assign(curl->multi, fd, NULL);
            uv_close((uv_handle_t *) &watched->poll, socket_closed);
        }
        return 0;
    }
    if (!watched)
        watched = watch(curl, fd);
    if (!watched)
        return -1;
    if (what & CURL_POLL_IN)
        events |= UV_READABLE;
    if (what & CURL_POLL_OUT)
        events |= UV_WRITABLE;
    return uv_poll_start(&watched->poll, events, socket_ready);
}

static void timer_fired(uv_timer_t *timer)
{
    act(timer->data, CURL_SOCKET_TIMEOUT, 0);
}

static void curl_loop_act_soon(struct loop_task *task)
{
    act(CONTAINER_OF(task, struct curl_loop, soon), CURL_SOCKET_TIMEOUT, 0);
}

static int timer_wanted(CURLM *multi, long milliseconds, void *context)
{
    struct curl_loop *curl = context;

    (void) multi;
    if (curl->closing)
        return 0;
    loop_task_cancel(&curl->soon);
    if (milliseconds < 0)
        return uv_timer_stop(&curl->timer);
    if (milliseconds == 0) {
        /* A timer of no time would run in the turn that set it, and again, for as long as
         * transfers that end at once begin others. */
        loop_defer(curl->loop, &curl->soon);
        return uv_timer_stop(&curl->timer);
    }
    return uv_timer_start(&curl->timer, timer_fired, (uint64_t) milliseconds, 0);
}

void curl_loop_init(struct curl_loop *curl, struct loop *loop, unsigned int connections,
                    void (*on_finished)(struct curl_loop *curl, CURL *easy, CURLcode result))
{
    *curl = (struct curl_loop){.loop = loop, .on_finished = on_finished, .handles = 1};
    curl->multi = curl_multi_init();
    if (!curl->multi)
        abort(); /* out of memory, or outbound_global_init was not called */
    (void) uv_timer_init(&loop->uv, &curl->timer);
    loop_task_init(&curl->soon, curl_loop_act_soon);
    curl->timer.data = curl;
    (void) curl_multi_setopt(curl->multi, CURLMOPT_SOCKETFUNCTION, socket_wanted);
    (void) curl_multi_setopt(curl->multi, CURLMOPT_SOCKETDATA, curl);
    (void) curl_multi_setopt(curl->multi, CURLMOPT_TIMERFUNCTION, timer_wanted);
    (void) curl_multi_setopt(curl->multi, CURLMOPT_TIMERDATA, curl);
    (void) curl_multi_setopt(curl->multi, CURLMOPT_PIPELINING, CURLPIPE_NOTHING);
    (void) curl_multi_setopt(curl->multi, CURLMOPT_MAX_TOTAL_CONNECTIONS, (long) connections);
    (void) curl_multi_setopt(curl->multi, CURLMOPT_MAXCONNECTS, (long) connections);
}

void curl_loop_close(struct curl_loop *curl, void (*on_closed)(struct curl_loop *curl))
{
    curl->closing = true;
    curl->on_closed = on_closed;
    (void) curl_multi_cleanup(curl->multi); /* unwatches its sockets */
    curl->multi = NULL;
    loop_task_cancel(&curl->soon);
    uv_close((uv_handle_t *) &curl->timer, timer_closed);
}
