#include "agent/exec/worker_link.h"

#include <errno.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "agent/watch.h"
#include "base/memory.h"
#include "sys/file/sys_file.h"
#include "sys/network/sys_socket.h"
#include "sys/process/sys_process.h"

/* Workers that ended before WORKER_REST_MS are replaced at once, but every so many make a rest. */
#define FAILURES_FREE 4
/* So many in a row, and the reason is not a passing one. */
#define FAILURES_MAX 40

struct worker_link {
    struct loop *loop;
    struct worker_settings settings;
    struct watch watch;    /* the socket */
    struct deadline rest;  /* until the next attempt */
    struct deadline stall; /* until the last launch must have been received */
    struct list waiting;   /* of worker_errand */
    size_t waiting_count;
    uint64_t started; /* loop_now() of the last fork */
    uint64_t last_serial;
    uint64_t last_sent;       /* serial that a worker will see */
    uint64_t received_before; /* what had been received when the stall deadline was set */
    unsigned int failures;    /* in a row */
    bool socket_in_use;       /* its handle is open or closing */
    int deadlines;            /* open or closing */
    bool closing;
};

/* --- errands -------------------------------------------------------------------------------- */

static struct worker_errand *first_errand(struct worker_link *worker)
{
    struct list *link = list_first(&worker->waiting);

    return link ? CONTAINER_OF(link, struct worker_errand, link) : NULL;
}

static void finish_errand(struct worker_errand *errand, int error)
{
    worker_link_forget(errand);
    errand->on_sent(errand, error);
}

static void fail_waiting(struct worker_link *worker, int error)
{
    struct worker_errand *errand;

    while ((errand = first_errand(worker)))
        finish_errand(errand, error);
}

/* Errors that say something about the worker, not about the errand. */
static bool is_worker_gone(int error)
{
    return error == -EPIPE || error == -ECONNRESET || error == -ENOTCONN;
}

static uint64_t last_received(const struct worker_link *worker)
{
    return atomic_load(&worker->settings.notes->received);
}

/* Within WORKER_STALL_MS a worker must have received something. */
static void expect_progress(struct worker_link *worker)
{
    worker->received_before = last_received(worker);
    deadline_set(&worker->stall, WORKER_STALL_MS);
}

static int try_send(struct worker_link *worker, const struct worker_errand *errand)
{
    int r;

    if (!worker->watch.open)
        return -EAGAIN; /* until there is a worker again */
    /* Rising in the order of sending. */
    launch_set_serial(errand->bytes, ++worker->last_serial);
    r = launch_send(worker->watch.fd, errand->bytes, errand->length, errand->fds);
    if (r == 0) {
        worker->last_sent = worker->last_serial;
        if (!worker->stall.due)
            expect_progress(worker);
    }
    return r;
}

static void send_waiting(struct worker_link *worker)
{
    struct worker_errand *errand;

    while ((errand = first_errand(worker))) {
        int r = try_send(worker, errand);

        if (is_worker_gone(r) || r == -EAGAIN)
            break; /* its end is noticed by the watch, its room too */
        finish_errand(errand, r);
    }
    watch_for(&worker->watch, errand ? UV_READABLE | UV_WRITABLE : UV_READABLE);
}

int worker_link_send(struct worker_link *worker, struct worker_errand *errand)
{
    int r = -EAGAIN;

    list_init(&errand->link);
    errand->waiting_for = NULL;
    if (list_is_empty(&worker->waiting))
        r = try_send(worker, errand);
    if (r == 0)
        return 1;
    if (r != -EAGAIN && !is_worker_gone(r))
        return r;
    if (worker->waiting_count == WORKER_WAITING_MAX)
        return -EAGAIN;
    list_append(&worker->waiting, &errand->link);
    errand->waiting_for = worker;
    worker->waiting_count++;
    watch_for(&worker->watch, UV_READABLE | UV_WRITABLE);
    return 0;
}

bool worker_link_was_received(const struct worker_link *worker, const struct worker_errand *errand)
{
    return last_received(worker) >= launch_serial(errand->bytes);
}

pid_t worker_link_command(const struct worker_link *worker, const struct worker_errand *errand)
{
    uint64_t serial = launch_serial(errand->bytes);
    const struct worker_note *note = &worker->settings.notes->commands[serial % WORKER_NOTES];

    return atomic_load(&note->serial) == serial ? atomic_load(&note->pid) : 0;
}

void worker_link_forget(struct worker_errand *errand)
{
    if (!errand->waiting_for)
        return;
    TAKE_PTR(errand->waiting_for)->waiting_count--;
    list_remove(&errand->link);
}

/* --- the worker ----------------------------------------------------------------------------- */

static void socket_ready(struct watch *watch)
{
    struct worker_link *worker = CONTAINER_OF(watch, struct worker_link, watch);
    char byte;

    if (recv(watch->fd, &byte, 1, MSG_DONTWAIT) < 0 && (errno == EAGAIN || errno == EINTR))
        send_waiting(worker);
    else
        watch_close(watch); /* it never speaks: this is its end */
}

static void socket_closed(struct watch *watch);

/* Takes `*fd` over when it succeeds. */
static int watch_socket(struct worker_link *worker, int *fd)
{
    int r = sys_file_set_nonblocking(*fd, true);

    if (r == 0)
        r = watch_init(&worker->watch, worker->loop, *fd, socket_ready, socket_closed);
    if (r < 0)
        return r;
    (void) TAKE_FD(*fd);
    worker->socket_in_use = true;
    return 0;
}

static int start_worker(struct worker_link *worker)
{
    AUTO(close) int ours = -EBADF, theirs = -EBADF;
    int pair[2];
    pid_t pid;
    int r = sys_socket_pair(SOCK_SEQPACKET, pair);

    if (r < 0)
        return r;
    ours = pair[0];
    theirs = pair[1];
    worker->settings.socket = theirs;
    worker->started = loop_now(worker->loop);
    r = watch_socket(worker, &ours);
    if (r < 0)
        return r;
    /* Not fork: that runs a handler of libuv in the child, which closes two descriptors by their
     * numbers, whatever they are by then. We have one thread, so nothing else is lost. */
    pid = _Fork();
    if (pid == 0)
        worker_run(&worker->settings);
    if (pid < 0) {
        r = -errno;
        watch_close(&worker->watch);
        return r;
    }
    atomic_store(&worker->settings.notes->worker, pid);
    watch_for(&worker->watch, UV_READABLE);
    return 0;
}

/* Once the old one's handle is closed. A worker that ended soon after its start is not replaced at
 * once, or a program that kills in a loop would keep us forking. */
static void restart(struct worker_link *worker)
{
    uint64_t age = loop_now(worker->loop) - worker->started;
    int r;

    if (worker->closing || worker->socket_in_use || worker->rest.due)
        return;
    if (age < WORKER_REST_MS && worker->failures++ % FAILURES_FREE == FAILURES_FREE - 1) {
        deadline_set(&worker->rest, WORKER_REST_MS);
        return;
    }
    if (age >= WORKER_REST_MS)
        worker->failures = 0;
    r = start_worker(worker);
    if (r == 0)
        send_waiting(worker);
    else if (!worker->socket_in_use)
        deadline_set(&worker->rest, WORKER_REST_MS);
    if (r < 0 || worker->failures > FAILURES_MAX)
        fail_waiting(worker, r < 0 ? r : -EAGAIN);
}

static void rest_is_over(struct deadline *deadline)
{
    restart(CONTAINER_OF(deadline, struct worker_link, rest));
}

/* Somebody inside may stop the worker as well as kill it; then we do the latter. What it had not
 * received is sent again by its owners. */
static void stall_is_over(struct deadline *deadline)
{
    struct worker_link *worker = CONTAINER_OF(deadline, struct worker_link, stall);
    pid_t pid = atomic_load(&worker->settings.notes->worker);

    if (last_received(worker) >= worker->last_sent || !worker->watch.open)
        return;
    /* What is under way may have been sent a moment ago: only one that received nothing stalls. */
    if (last_received(worker) == worker->received_before && pid && sys_process_is_child(pid) > 0)
        (void) kill(pid, SIGKILL); /* our child: the number is nobody else's */
    expect_progress(worker);
}

static void free_when_closed(struct worker_link *worker)
{
    if (!worker->closing || worker->socket_in_use || worker->deadlines)
        return;
    if (worker->settings.notes)
        (void) munmap(worker->settings.notes, sizeof(*worker->settings.notes));
    free(worker);
}

static void socket_closed(struct watch *watch)
{
    struct worker_link *worker = CONTAINER_OF(watch, struct worker_link, watch);

    worker->socket_in_use = false;
    if (!worker->closing)
        LOG_WARNING(worker->loop->log, "the worker ended, starting another");
    restart(worker);
    free_when_closed(worker);
}

static void rest_closed(struct deadline *deadline)
{
    struct worker_link *worker = CONTAINER_OF(deadline, struct worker_link, rest);

    worker->deadlines--;
    free_when_closed(worker);
}

static void stall_closed(struct deadline *deadline)
{
    struct worker_link *worker = CONTAINER_OF(deadline, struct worker_link, stall);

    worker->deadlines--;
    free_when_closed(worker);
}

/* Seen by us and by all workers; freed with the link. */
static struct worker_notes *share_notes(void)
{
    void *memory = mmap(NULL, sizeof(struct worker_notes), PROT_READ | PROT_WRITE,
                        MAP_SHARED | MAP_ANONYMOUS, -1, 0);

    return memory == MAP_FAILED ? NULL : memory;
}

struct worker_link *worker_link_new(struct loop *loop, const struct worker_settings *settings,
                                    int *ret_error)
{
    struct worker_link *worker = mem_alloc(sizeof(*worker));
    int r;

    worker->loop = loop;
    worker->settings = *settings;
    list_init(&worker->waiting);
    worker->settings.notes = share_notes();
    deadline_init(loop, &worker->rest, rest_is_over);
    deadline_init(loop, &worker->stall, stall_is_over);
    worker->deadlines = 2;
    r = worker->settings.notes ? start_worker(worker) : -ENOMEM;
    if (r < 0) {
        worker_link_close(worker);
        *ret_error = r;
        return NULL;
    }
    return worker;
}

void worker_link_close(struct worker_link *worker)
{
    worker->closing = true;
    while (first_errand(worker))
        worker_link_forget(first_errand(worker));
    deadline_close(&worker->rest, rest_closed);
    deadline_close(&worker->stall, stall_closed);
    watch_close(&worker->watch);
}
