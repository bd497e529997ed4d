/* Commands that do one thing after the other. */
#include <stdio.h>

#include "base/auto.h"
#include "load/samples.h"
#include "load/sandbox_life.h"
#include "load/sandbox_runs.h"

#define WARM_UP_EXECS 5

/* --- cold: one after the other --------------------------------------------------------------- */

struct cold {
    struct sandbox_life life;
    uint64_t left;
    struct samples create, exec, destroy, total;
};

static void cold_next(struct cold *cold);

static void cold_over(struct sandbox_life *life)
{
    struct cold *cold = life->owner;

    samples_add(&cold->create, life->create_end - life->create_begin);
    samples_add(&cold->exec, life->exec_end - life->exec_begin);
    samples_add(&cold->destroy, life->destroy_end - life->destroy_begin);
    samples_add(&cold->total, life->destroy_end - life->create_begin);
    cold_next(cold);
}

static void destroy_then_cold_over(struct sandbox_life *life)
{
    sandbox_life_destroy(life, cold_over);
}

static void exec_then_destroy(struct sandbox_life *life)
{
    sandbox_life_exec(life, destroy_then_cold_over);
}

static void cold_next(struct cold *cold)
{
    if (cold->left-- == 0)
        loop_stop(&cold->life.session->loop);
    else
        sandbox_life_create(&cold->life, cold->life.session, false, exec_then_destroy);
}

void sandbox_run_cold(struct sandbox_session *session, struct sandbox_crowd *crowd,
                      const uint64_t *numbers)
{
    struct cold cold = {.life = {.session = session, .owner = &cold}, .left = numbers[0]};
    struct {
        const char *name;
        struct samples *samples;
    } all[] = {{"create_us", &cold.create},
               {"exec_us", &cold.exec},
               {"destroy_us", &cold.destroy},
               {"total_us", &cold.total}};

    (void) crowd;
    cold_next(&cold);
    sandbox_session_run(session);
    for (size_t i = 0; i < ARRAY_COUNT(all); i++) {
        printf(i ? "," : "{");
        samples_print(all[i].samples, all[i].name);
        samples_done(all[i].samples);
    }
    printf("}\n");
}

/* --- exec: many in one ----------------------------------------------------------------------- */

struct execs {
    struct sandbox_life life;
    uint64_t left, warm_up;
    struct samples total;
};

static void execs_over(struct sandbox_life *life)
{
    loop_stop(&life->session->loop);
}

static void execs_next(struct sandbox_life *life);

static void exec_done(struct sandbox_life *life)
{
    struct execs *execs = life->owner;

    if (execs->warm_up > 0) {
        execs->warm_up--;
    } else {
        samples_add(&execs->total, life->exec_end - life->exec_begin);
        execs->left--;
    }
    execs_next(life);
}

static void execs_next(struct sandbox_life *life)
{
    const struct execs *execs = life->owner;

    if (execs->left == 0)
        sandbox_life_destroy(life, execs_over);
    else
        sandbox_life_exec(life, exec_done);
}

void sandbox_run_exec(struct sandbox_session *session, struct sandbox_crowd *crowd,
                      const uint64_t *numbers)
{
    struct execs execs = {
        .life.owner = &execs, .left = numbers[0], .warm_up = numbers[0] ? WARM_UP_EXECS : 0};

    (void) crowd;
    sandbox_life_create(&execs.life, session, false, execs_next);
    sandbox_session_run(session);
    printf("{");
    samples_print(&execs.total, "total_us");
    printf("}\n");
    samples_done(&execs.total);
}
