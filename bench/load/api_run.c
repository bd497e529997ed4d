#include "load/api_run.h"

#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/auto.h"
#include "base/memory.h"
#include "load/fail.h"
#include "load/samples.h"

#define SECOND_NS UINT64_C(1000000000)
#define ANSWER_NS (120 * SECOND_NS)
#define NS_PER_US 1000
#define NOT_FOUND SIZE_MAX
#define POLL_IDLE (-1)

/* What one connection is at. */
struct slot {
    bool is_busy;
    uint64_t life;
    size_t step;
    uint64_t begun; /* the step */
};

struct work {
    const struct api_run *run;
    struct api_pool *pool;
    uint64_t *times[API_STEPS_MAX]; /* owned: one per life */
    struct slot slots[API_CONNECTIONS_MAX];
    struct pollfd polls[API_CONNECTIONS_MAX];
    uint64_t begun, over, begin;
};

/* --- lives ----------------------------------------------------------------------------------- */

static void begin_step(struct work *work, size_t at, uint64_t begun)
{
    const struct api_run *run = work->run;
    struct slot *slot = &work->slots[at];

    slot->begun = begun;
    api_step_begin(run->steps[slot->step], run->first + run->stride * slot->life,
                   &work->pool->connections[at], work->pool->server);
}

/* The answer is there: note its time, and go on to the next step. */
static void end_step(struct work *work, size_t at, uint64_t now)
{
    const struct api_run *run = work->run;
    struct slot *slot = &work->slots[at];

    api_step_check(run->steps[slot->step], &work->pool->connections[at]);
    work->times[slot->step][slot->life] = now - slot->begun;
    if (++slot->step < run->step_count) {
        begin_step(work, at, now);
        return;
    }
    slot->is_busy = false;
    work->polls[at].fd = POLL_IDLE;
    work->over++;
}

/* --- connections ----------------------------------------------------------------------------- */

static size_t find_idle(const struct work *work)
{
    for (size_t i = 0; i < work->pool->count && i < work->run->at_once; i++) {
        if (!work->slots[i].is_busy)
            return i;
    }
    return NOT_FOUND;
}

static void add_connection(struct api_pool *pool)
{
    api_connection_open(&pool->connections[pool->count], pool->server, (unsigned) pool->count);
    pool->count++;
}

/* A connection for the next life; NOT_FOUND: all that there may be are busy. */
static size_t take_connection(struct work *work)
{
    size_t at = find_idle(work);

    if (at == NOT_FOUND && work->pool->count < work->run->at_once) {
        add_connection(work->pool);
        at = work->pool->count - 1;
    }
    return at;
}

/* --- time ------------------------------------------------------------------------------------ */

static uint64_t due_at(const struct work *work)
{
    const struct api_run *run = work->run;

    return work->begin + (run->rate ? work->begun * SECOND_NS / run->rate : 0);
}

static void begin_lives(struct work *work)
{
    const struct api_run *run = work->run;

    while (work->begun < run->count) {
        uint64_t now = samples_now(), due = due_at(work);
        size_t at;

        if (due > now || (at = take_connection(work)) == NOT_FOUND)
            return;
        work->slots[at] = (struct slot){.is_busy = true, .life = work->begun++};
        work->polls[at] = (struct pollfd){.fd = work->pool->connections[at].fd, .events = POLLIN};
        begin_step(work, at, run->rate ? due : now);
    }
}

/* How long to sleep at most. */
static struct timespec patience(const struct work *work)
{
    uint64_t now = samples_now(), due = due_at(work), wait = ANSWER_NS;

    if (work->begun < work->run->count && due > now)
        wait = due - now;
    return (struct timespec){.tv_sec = (time_t) (wait / SECOND_NS),
                             .tv_nsec = (long) (wait % SECOND_NS)};
}

static void look(struct work *work)
{
    struct timespec wait = patience(work);
    int ready = ppoll(work->polls, work->pool->count, &wait, NULL);

    if (ready < 0 && errno != EINTR)
        fail("poll: %s", strerror(errno));
    if (ready == 0 && (uint64_t) wait.tv_sec * SECOND_NS >= ANSWER_NS)
        fail("no answer for %d seconds", (int) (ANSWER_NS / SECOND_NS));
    for (size_t i = 0; i < work->pool->count; i++) {
        if (work->slots[i].is_busy && work->polls[i].revents &&
            api_connection_take(&work->pool->connections[i]))
            end_step(work, i, samples_now());
    }
}

/* --- a run ----------------------------------------------------------------------------------- */

static void print(const struct work *work, uint64_t wall, FILE *out)
{
    const struct api_run *run = work->run;

    (void) fprintf(out, "{\"wall_us\":%" PRIu64, wall / NS_PER_US);
    for (size_t step = 0; step < run->step_count; step++) {
        (void) fprintf(out, ",\"%s_us\":[", run->steps[step]->name);
        for (uint64_t life = 0; life < run->count; life++)
            (void) fprintf(out, "%s%" PRIu64, life ? "," : "", work->times[step][life] / NS_PER_US);
        (void) fprintf(out, "]");
    }
    (void) fprintf(out, "}\n");
}

void api_run(const struct api_run *run, struct api_pool *pool, FILE *out)
{
    AUTO(free) struct work *work = mem_alloc(sizeof(*work));

    work->run = run;
    work->pool = pool;
    for (size_t i = 0; i < run->step_count; i++)
        work->times[i] = mem_alloc_array(run->count, sizeof(*work->times[i]));
    for (size_t i = 0; i < API_CONNECTIONS_MAX; i++)
        work->polls[i].fd = POLL_IDLE;
    if (!run->rate) /* connecting is not what is measured */
        while (pool->count < run->at_once && pool->count < run->count)
            add_connection(pool);
    work->begin = samples_now();
    while (work->over < run->count) {
        begin_lives(work);
        look(work);
    }
    print(work, samples_now() - work->begin, out);
    for (size_t i = 0; i < run->step_count; i++)
        free(work->times[i]);
}

void api_pool_close(struct api_pool *pool)
{
    while (pool->count)
        api_connection_close(&pool->connections[--pool->count]);
}
