/* Attacks on what all share: drill_attacks.def has them. Another user works meanwhile, and what he feels
 * is the verdict. */
#include <stdio.h>
#include <string.h>

#include "base/auto.h"
#include "base/clock.h"
#include "cli/attack/drill_assault.h"
#include "cli/attack/drill_victim.h"
#include "json/json_read.h"

#define MEDIANS   3     /* so many times the quiet median is fair */
#define FLOOR_MS  100.0 /* and what is below that nobody feels: machines vary by more at times */
#define TRIES     2
#define READY_MS  25000
#define WARM_MS   400
#define LIMIT_MS  12000
#define LOOK_MS   50
#define TOLD_SIZE 512

#define DRILL_MANY_FILES                                                                           \
    "{\"command\":\"mkdir -p /workspace/d; cd /workspace/d; for i in $(seq 20000); do :> $i; "     \
    "done\"}"
#define DRILL_LONG_ENV                                                                             \
    "{\"env\":{\"A\":\"{fill}\",\"B\":\"{fill}\",\"C\":\"{fill}\",\"D\":\"{fill}\",\"E\":\"{fill}" \
    "\","                                                                                          \
    "\"F\":\"{fill}\"}}"
#define DRILL_MOUNT                                                                                \
    {                                                                                              \
        "POST", "{box}/mounts", "{\"path\":\"/m\",\"bucket\":\"b{n}\"}", .width = 2, .count = 2    \
    }

#include "cli/attack/drill_attacks.def"

static const struct drill_assault assaults[] = {
#define ASSAULT(assault_name, assault_what, ...)                                                   \
    {.name = assault_name, .what = assault_what, __VA_ARGS__},
    DRILL_ATTACKS(ASSAULT)
#undef ASSAULT
};

static int shares_make_one(struct drill *drill, const struct drill_row *row, struct error *err);

static const struct drill_row rows[] = {
#define ROW(row_name, row_what, ...) {row_name, row_what, shares_make_one},
    DRILL_ATTACKS(ROW)
#undef ROW
        {NULL, NULL, NULL},
};

_Static_assert(ARRAY_COUNT(assaults) >= 40, "the list that is promised");

/* What came of one try. */
struct share_try {
    struct drill_figures quiet, attacked;
    unsigned long good, refused, lost, limit_met;
};

/* --- one try --------------------------------------------------------------------------------- */

/* Until everything that the attack needs is under way, and where a limit must end it, until it has. */
static void share_wait(struct drill *drill, const struct drill_assault *assault,
                       const struct drill_counts *counts)
{
    for (uint64_t waited = 0; !counts->is_ready && waited < READY_MS; waited += LOOK_MS)
        drill_pump(&drill->client, LOOK_MS);
    for (uint64_t waited = 0;
         assault->limit && !counts->limit_met && !counts->is_spent && waited < LIMIT_MS;
         waited += LOOK_MS)
        drill_pump(&drill->client, LOOK_MS);
    drill_pump(&drill->client, WARM_MS);
}

static int share_try_make(struct drill *drill, const struct drill_assault *assault,
                          struct share_try *ret_try, struct error *err)
{
    struct drill_victim *victim = drill->world;
    struct error other = ERROR_INIT;
    struct drill_load load;
    int r;

    drill_victim_measure(drill, victim, &ret_try->quiet);
    r = drill_load_start(drill, assault, &load, err);
    if (r == 0) {
        share_wait(drill, assault, load.counts);
        drill_victim_measure(drill, victim, &ret_try->attacked);
        ret_try->good = load.counts->good;
        ret_try->refused = load.counts->refused;
        ret_try->lost = load.counts->lost;
        ret_try->limit_met = load.counts->limit_met;
    }
    if (drill_load_stop(drill, &load, r < 0 ? &other : err) < 0)
        r = -1;
    return r;
}

static double fair_limit(double quiet)
{
    return quiet * MEDIANS > FLOOR_MS ? quiet * MEDIANS : FLOOR_MS;
}

/* The work that took too long, or DRILL_WORKS. */
static size_t share_worst(const struct share_try *tried)
{
    for (size_t work = 0; work < DRILL_WORKS; work++) {
        if (tried->attacked.median[work] > fair_limit(tried->quiet.median[work]))
            return work;
    }
    return DRILL_WORKS;
}

static bool share_is_held(const struct share_try *tried)
{
    return share_worst(tried) == DRILL_WORKS && !*tried->attacked.problem;
}

/* --- telling --------------------------------------------------------------------------------- */

static json_t *share_figures(const struct share_try *tried)
{
    json_t *figures = json_object();

    for (size_t work = 0; work < DRILL_WORKS; work++)
        (void) json_object_set_new(figures, drill_work_names[work],
                                   json_pack("{s:f,s:f,s:f}", "quietMs", tried->quiet.median[work],
                                             "attackedMs", tried->attacked.median[work], "worstMs",
                                             tried->attacked.worst[work]));
    (void) json_object_set_new(figures, "requests",
                               json_pack("{s:I,s:I,s:I}", "answered", (json_int_t) tried->good,
                                         "refused", (json_int_t) tried->refused, "broken",
                                         (json_int_t) tried->lost));
    return figures;
}

/* "create 50>62 exec 4>9 backup 30>44 event 5>8 ms; 120 answered, 60 refused" */
static void share_tell(struct drill *drill, const struct drill_assault *assault,
                       const struct share_try *tried)
{
    AUTO(text) struct text told = TEXT_INIT(TOLD_SIZE);
    size_t worst = share_worst(tried);
    enum drill_verdict verdict = share_is_held(tried) ? DRILL_HELD : DRILL_BROKEN;

    for (size_t work = 0; work < DRILL_WORKS; work++)
        text_format(&told, "%s %.0f>%.0f%s ", drill_work_names[work], tried->quiet.median[work],
                    tried->attacked.median[work], work == worst ? "(!)" : "");
    text_format(&told, "ms; %lu done, %lu refused", tried->good, tried->refused);
    if (*tried->attacked.problem)
        text_format(&told, "; %s", tried->attacked.problem);
    if (assault->raw && !tried->good) {
        verdict = DRILL_UNTRIED;
        text_append(&told, "; no connection could be made");
    }
    if (assault->limit && !tried->limit_met) {
        verdict = DRILL_BROKEN;
        text_format(&told, "; nothing ended it: no refusal named '%s'", assault->limit);
    }
    drill_tell_figures(drill, "shares", assault->name, verdict, share_figures(tried),
                       text_string(&told));
}

static int shares_make_one(struct drill *drill, const struct drill_row *row, struct error *err)
{
    const struct drill_assault *assault = &assaults[row - rows];
    struct share_try tried = {0};

    for (int i = 0; i < TRIES; i++) {
        if (share_try_make(drill, assault, &tried, err) < 0)
            return -1;
        if (share_is_held(&tried))
            break;
    }
    share_tell(drill, assault, &tried);
    return 0;
}

static int shares_make(struct drill *drill, const struct drill_group *group, struct error *err)
{
    struct drill_victim victim;
    struct drill_figures warm;
    bool is_wanted = false;
    int r;

    for (const struct drill_row *row = rows; row->name; row++)
        is_wanted |= drill_wants(drill, row->name);
    if (!is_wanted)
        return 0;
    if (drill_victim_make(drill, &victim, err) < 0)
        return -1;
    drill_victim_measure(drill, &victim, &warm); /* the first of everything takes longer */
    drill->world = &victim;
    r = drill_make_rows(drill, group, err);
    drill->world = NULL;
    drill_victim_done(&victim);
    return r;
}

const struct drill_group drill_shares = {
    .name = "shares",
    .summary = "one user takes what all share, and another is measured: quiet > attacked, in ms",
    .rows = rows,
    .make = shares_make,
};
