#include "harness/server_life.h"

#include <stddef.h>

#include "base/auto.h"

struct life_row {
    enum life_state state;
    enum life_event event;
    enum life_state next;
    enum life_action action;
};

/* What is in no row changes nothing. */
static const struct life_row rows[] = {
    {LIFE_ABSENT, LIFE_WANTED, LIFE_LOOKING, LIFE_LOOK},
    {LIFE_FAILED, LIFE_WANTED, LIFE_LOOKING, LIFE_LOOK},

    {LIFE_LOOKING, LIFE_RUNS, LIFE_PROBING, LIFE_PROBE},
    {LIFE_LOOKING, LIFE_RUNS_NOT, LIFE_SPAWNING, LIFE_SPAWN},
    {LIFE_LOOKING, LIFE_MISSING, LIFE_SPAWNING,
     LIFE_SPAWN}, /* of the last try: it may be there now */
    {LIFE_LOOKING, LIFE_REFUSED, LIFE_FAILED, LIFE_TELL_FAILED},

    {LIFE_SPAWNING, LIFE_RUNS, LIFE_PROBING, LIFE_PROBE},
    {LIFE_SPAWNING, LIFE_UNWANTED, LIFE_ABSENT, LIFE_NOTHING},
    {LIFE_SPAWNING, LIFE_REFUSED, LIFE_FAILED, LIFE_TELL_FAILED},

    {LIFE_PROBING, LIFE_HEALTHY, LIFE_LOADING, LIFE_LOAD},
    {LIFE_PROBING, LIFE_UNWELL, LIFE_PROBING, LIFE_PROBE_LATER},
    {LIFE_PROBING, LIFE_TIMER, LIFE_PROBING, LIFE_PROBE},
    {LIFE_PROBING, LIFE_RUNS, LIFE_PROBING, LIFE_PROBE},
    {LIFE_PROBING, LIFE_RUNS_NOT, LIFE_RESTING, LIFE_REST},
    {LIFE_PROBING, LIFE_MISSING, LIFE_FAILING, LIFE_READ_LOG},
    {LIFE_PROBING, LIFE_REFUSED, LIFE_FAILED, LIFE_TELL_FAILED},
    {LIFE_PROBING, LIFE_LATE, LIFE_KILLING, LIFE_KILL},

    {LIFE_LOADING, LIFE_LOADED, LIFE_WATCHING, LIFE_WATCH},
    {LIFE_LOADING, LIFE_UNWELL, LIFE_PROBING, LIFE_PROBE_LATER},
    {LIFE_LOADING, LIFE_LATE, LIFE_KILLING, LIFE_KILL},

    {LIFE_WATCHING, LIFE_CONNECTED, LIFE_READY, LIFE_TELL_READY},
    {LIFE_WATCHING, LIFE_BROKE_OFF, LIFE_CUT, LIFE_LOOK_LATER},

    {LIFE_READY, LIFE_WANTED, LIFE_READY, LIFE_TELL_LATER},
    {LIFE_READY, LIFE_BROKE_OFF, LIFE_CUT, LIFE_LOOK_LATER},

    {LIFE_CUT, LIFE_TIMER, LIFE_CUT, LIFE_LOOK},
    {LIFE_CUT, LIFE_RUNS, LIFE_PROBING, LIFE_PROBE},
    {LIFE_CUT, LIFE_RUNS_NOT, LIFE_RESTING, LIFE_REST},
    {LIFE_CUT, LIFE_MISSING, LIFE_RESTING, LIFE_REST},
    {LIFE_CUT, LIFE_REFUSED, LIFE_FAILED, LIFE_TELL_FAILED},

    {LIFE_RESTING, LIFE_TIMER, LIFE_SPAWNING, LIFE_SPAWN},
    {LIFE_RESTING, LIFE_UNWANTED, LIFE_ABSENT, LIFE_NOTHING},

    {LIFE_KILLING, LIFE_KILLED, LIFE_FAILING, LIFE_READ_LOG},
    {LIFE_FAILING, LIFE_LOGGED, LIFE_FAILED, LIFE_TELL_FAILED},
};

/* Waits of its events, and of itself. */
static const uint16_t look_ms[] = {500, 1000, 2000, 5000};
#define REST_FIRST_MS UINT64_C(2000)

enum life_action life_next(struct life *life, enum life_event event)
{
    const struct life_row *row = NULL;

    for (size_t i = 0; i < ARRAY_COUNT(rows) && !row; i++) {
        if (rows[i].state == life->state && rows[i].event == event)
            row = &rows[i];
    }
    if (!row)
        return LIFE_NOTHING;
    if (life->state == LIFE_FAILED)
        life_forgive(life);
    life->state = row->next;
    if (row->action == LIFE_LOOK_LATER)
        life->cuts++;
    if (row->action != LIFE_REST)
        return row->action;
    if (life->restarts < LIFE_RESTARTS_MAX) {
        life->restarts++;
        return LIFE_REST;
    }
    life->state = LIFE_FAILING;
    return LIFE_READ_LOG;
}

void life_forgive(struct life *life)
{
    life->restarts = 0;
    life->cuts = 0;
}

uint64_t life_rest_ms(const struct life *life)
{
    return life->restarts ? REST_FIRST_MS << (life->restarts - 1) : 0;
}

uint64_t life_look_ms(const struct life *life)
{
    size_t nth = life->cuts ? life->cuts - 1 : 0;

    return look_ms[nth < ARRAY_COUNT(look_ms) ? nth : ARRAY_COUNT(look_ms) - 1];
}

const char *life_state_text(enum life_state state)
{
    static const char *const texts[LIFE_STATES] = {
        [LIFE_ABSENT] = "absent",   [LIFE_LOOKING] = "looking", [LIFE_SPAWNING] = "spawning",
        [LIFE_PROBING] = "probing", [LIFE_LOADING] = "loading", [LIFE_WATCHING] = "watching",
        [LIFE_READY] = "ready",     [LIFE_CUT] = "cut",         [LIFE_RESTING] = "resting",
        [LIFE_KILLING] = "killing", [LIFE_FAILING] = "failing", [LIFE_FAILED] = "failed",
    };

    return texts[state];
}
