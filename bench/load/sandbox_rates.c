/* Commands that do many things side by side. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/auto.h"
#include "base/memory.h"
#include "load/fail.h"
#include "load/samples.h"
#include "load/sandbox_life.h"
#include "load/sandbox_runs.h"
#include "provider/provider_local.h"

#define SECOND_NS     UINT64_C(1000000000)
#define STOCK_LOOK_MS 5
#define STOCK_WAIT_NS (30 * SECOND_NS)
#define WORKERS_MAX   16
#define SECONDS_MAX   600

/* --- pooled: at a steady rate, whether the last one is done or not ---------------------------- */

struct pooled {
    struct sandbox_session *session;
    struct sandbox_life *lives; /* owned */
    uint64_t count, begun, over, ready;
    uint64_t begin, period_ns;
    struct samples total;
    uv_timer_t timer;
};

static void pooled_over(struct sandbox_life *life)
{
    struct pooled *pooled = life->owner;

    if (++pooled->over == pooled->count)
        loop_stop(&pooled->session->loop);
}

static void pooled_answered(struct sandbox_life *life)
{
    struct pooled *pooled = life->owner;

    samples_add(&pooled->total, life->exec_end - life->create_begin);
    pooled->ready += life->was_ready;
    sandbox_life_destroy(life, pooled_over);
}

static void pooled_created(struct sandbox_life *life)
{
    sandbox_life_exec(life, pooled_answered);
}

static void pooled_begin(uv_timer_t *timer)
{
    struct pooled *pooled = CONTAINER_OF(timer, struct pooled, timer);

    /* By the clock and not by ticks: ticks that come late would lower the rate. */
    while (pooled->begun < pooled->count &&
           samples_now() >= pooled->begin + pooled->begun * pooled->period_ns) {
        struct sandbox_life *life = &pooled->lives[pooled->begun++];

        life->owner = pooled;
        sandbox_life_create(life, pooled->session, true, pooled_created);
    }
    if (pooled->begun == pooled->count)
        (void) uv_timer_stop(timer);
}

static void look_at_stock(uv_timer_t *timer)
{
    struct pooled *pooled = CONTAINER_OF(timer, struct pooled, timer);

    if (provider_local_ready(pooled->session->provider) >= PROVIDER_LOCAL_STOCK_DEFAULT)
        loop_stop(&pooled->session->loop);
    else if (samples_now() - pooled->begin > STOCK_WAIT_NS)
        fail("the stock does not fill; was sandbox-load started with --stock %d?",
             PROVIDER_LOCAL_STOCK_DEFAULT);
}

static void timer_closed(uv_handle_t *handle)
{
    struct pooled *pooled = CONTAINER_OF((uv_timer_t *) handle, struct pooled, timer);

    loop_stop(&pooled->session->loop);
}

static void run_with_timer(struct pooled *pooled, uv_timer_cb call, uint64_t period_ms)
{
    pooled->begin = samples_now();
    (void) uv_timer_start(&pooled->timer, call, 0, period_ms);
    sandbox_session_run(pooled->session);
    (void) uv_timer_stop(&pooled->timer);
}

void sandbox_run_pooled(struct sandbox_session *session, struct sandbox_crowd *crowd,
                        const uint64_t *numbers)
{
    struct pooled pooled = {.session = session, .count = numbers[0]};

    (void) crowd;
    if (numbers[0] == 0 || numbers[1] == 0)
        fail("pooled wants a count and a rate");
    pooled.period_ns = SECOND_NS / numbers[1];
    pooled.lives = mem_alloc_array(pooled.count, sizeof(*pooled.lives));
    (void) uv_timer_init(&session->loop.uv, &pooled.timer);
    run_with_timer(&pooled, look_at_stock, STOCK_LOOK_MS);
    run_with_timer(&pooled, pooled_begin, 1);
    uv_close((uv_handle_t *) &pooled.timer, timer_closed);
    sandbox_session_run(session);
    printf("{\"from_stock\":%" PRIu64 ",", pooled.ready);
    samples_print(&pooled.total, "total_us");
    printf("}\n");
    samples_done(&pooled.total);
    free(pooled.lives);
}

/* --- sustained: some workers, as fast as they can --------------------------------------------- */

struct sustained {
    struct sandbox_session *session;
    struct sandbox_life lives[WORKERS_MAX];
    uint64_t begin, end, working;
    uint64_t per_second[SECONDS_MAX];
};

static void sustained_next(struct sustained *sustained, struct sandbox_life *life);

static void sustained_over(struct sandbox_life *life)
{
    struct sustained *sustained = life->owner;
    uint64_t second = (life->destroy_end - sustained->begin) / SECOND_NS;

    if (life->destroy_end < sustained->end)
        sustained->per_second[second]++;
    sustained_next(sustained, life);
}

static void sustained_destroy(struct sandbox_life *life)
{
    sandbox_life_destroy(life, sustained_over);
}

static void sustained_exec(struct sandbox_life *life)
{
    sandbox_life_exec(life, sustained_destroy);
}

static void sustained_next(struct sustained *sustained, struct sandbox_life *life)
{
    if (samples_now() < sustained->end)
        sandbox_life_create(life, sustained->session, false, sustained_exec);
    else if (--sustained->working == 0)
        loop_stop(&sustained->session->loop);
}

void sandbox_run_sustained(struct sandbox_session *session, struct sandbox_crowd *crowd,
                           const uint64_t *numbers)
{
    struct sustained sustained = {.session = session, .working = numbers[1]};

    (void) crowd;
    if (numbers[0] == 0 || numbers[0] > SECONDS_MAX || numbers[1] == 0 || numbers[1] > WORKERS_MAX)
        fail("sustained wants 1 to %d seconds and 1 to %d workers", SECONDS_MAX, WORKERS_MAX);
    sustained.begin = samples_now();
    sustained.end = sustained.begin + numbers[0] * SECOND_NS;
    for (uint64_t i = 0; i < numbers[1]; i++) {
        sustained.lives[i].owner = &sustained;
        sustained_next(&sustained, &sustained.lives[i]);
    }
    sandbox_session_run(session);
    printf("{\"per_second\":[");
    for (uint64_t i = 0; i < numbers[0]; i++)
        printf("%s%" PRIu64, i ? "," : "", sustained.per_second[i]);
    printf("]}\n");
}
