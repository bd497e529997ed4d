/* The command that lets sandboxes be. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/memory.h"
#include "load/fail.h"
#include "load/samples.h"
#include "load/sandbox_life.h"
#include "load/sandbox_runs.h"

#define MILLISECOND_NS UINT64_C(1000000)
#define CROWD_MAX      16000

struct sandbox_crowd {
    struct sandbox_life *lives; /* owned: CROWD_MAX of them */
    uint64_t count, wanted;
};

struct sandbox_crowd *sandbox_crowd_new(void)
{
    struct sandbox_crowd *crowd = mem_alloc(sizeof(*crowd));

    crowd->lives = mem_alloc_array(CROWD_MAX, sizeof(*crowd->lives));
    return crowd;
}

void sandbox_crowd_free(struct sandbox_crowd *crowd)
{
    free(crowd->lives);
    free(crowd);
}

static void crowd_step(struct sandbox_session *session, struct sandbox_crowd *crowd);

static void crowd_grew(struct sandbox_life *life)
{
    struct sandbox_crowd *crowd = life->owner;

    crowd->count++;
    crowd_step(life->session, crowd);
}

static void crowd_shrank(struct sandbox_life *life)
{
    struct sandbox_crowd *crowd = life->owner;

    crowd->count--;
    crowd_step(life->session, crowd);
}

static void crowd_step(struct sandbox_session *session, struct sandbox_crowd *crowd)
{
    struct sandbox_life *next = &crowd->lives[crowd->count];

    if (crowd->count == crowd->wanted) {
        loop_stop(&session->loop);
    } else if (crowd->count > crowd->wanted) {
        sandbox_life_destroy(next - 1, crowd_shrank);
    } else {
        next->owner = crowd;
        sandbox_life_create(next, session, false, crowd_grew);
    }
}

void sandbox_run_idle(struct sandbox_session *session, struct sandbox_crowd *crowd,
                      const uint64_t *numbers)
{
    uint64_t begin = samples_now();

    if (numbers[0] > CROWD_MAX)
        fail("idle wants at most %d", CROWD_MAX);
    crowd->wanted = numbers[0];
    if (crowd->count != crowd->wanted) {
        crowd_step(session, crowd);
        sandbox_session_run(session);
    }
    printf("{\"idle\":%" PRIu64 ",\"ms\":%" PRIu64 "}\n", crowd->count,
           (samples_now() - begin) / MILLISECOND_NS);
}
