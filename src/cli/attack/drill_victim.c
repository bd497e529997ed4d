#include "cli/attack/drill_victim.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/auto.h"
#include "base/clock.h"
#include "json/json_read.h"

#define ROUNDS_MAX  9
#define PATIENCE_MS 5000
#define BODY_SIZE   128
#define NS_PER_MS   1e6

const char *const drill_work_names[DRILL_WORKS] = {"create", "exec", "backup", "event"};

static const size_t rounds[DRILL_WORKS] = {3, 9, 3, 5};

int drill_victim_make(struct drill *drill, struct drill_victim *ret_victim, struct error *err)
{
    struct drill_victim *victim = ret_victim;

    *victim = (struct drill_victim){0};
    if (drill_user_make(drill, "other", &victim->user, err) < 0 ||
        drill_box_make(drill, &victim->user, "work", victim->box, err) < 0)
        return -1;
    victim->call =
        (struct drill_call){.path = CLIENT_PREFIX "/events?stream=1", .key = victim->user.key};
    victim->stream.call = &victim->call;
    drill_talk_start(&victim->stream, &drill->client);
    return drill_talk_wait(&victim->stream, PATIENCE_MS, true) && !victim->stream.is_over
               ? 0
               : error_set(err, ERR_UPSTREAM, 0, "the other's event stream was not opened");
}

void drill_victim_done(struct drill_victim *victim)
{
    drill_talk_end(&victim->stream);
}

/* --- work ------------------------------------------------------------------------------------ */

static void figures_complain(struct drill_figures *figures, const char *what, int status)
{
    if (*figures->problem)
        return;
    if (status)
        (void) snprintf(figures->problem, sizeof(figures->problem), "the other's %s is refused: %d",
                        what, status);
    else
        (void) snprintf(figures->problem, sizeof(figures->problem),
                        "the other's %s has no answer in time", what);
}

/* One request of his; how long it took. What it made goes to `ret_id`, if that is not NULL. */
static double victim_ask(struct drill *drill, struct drill_victim *victim, enum drill_work work,
                         const struct drill_call *call, char *ret_id, struct drill_figures *figures)
{
    AUTO(drill_talk) struct drill_talk talk = {0};
    AUTO(json) json_t *json = NULL;
    struct drill_call whole = *call;

    whole.key = victim->user.key;
    talk.call = &whole;
    drill_talk_start(&talk, &drill->client);
    if (!drill_talk_wait(&talk, PATIENCE_MS, false) || !drill_talk_is_good(&talk)) {
        figures_complain(figures, drill_work_names[work], talk.is_over ? talk.status : 0);
        return talk.is_over ? drill_talk_ms(&talk) : PATIENCE_MS;
    }
    json = ret_id ? drill_talk_json(&talk) : NULL;
    if (ret_id)
        (void) drill_copy_field(json, "id", ret_id, DRILL_NAME_SIZE, NULL);
    return drill_talk_ms(&talk);
}

static void victim_delete(struct drill *drill, const struct drill_victim *victim, const char *kind,
                          const char *id)
{
    AUTO(drill_talk) struct drill_talk talk = {0};
    const struct drill_call call = {.method = "DELETE",
                                    .path = client_path(&drill->client, kind, id, ""),
                                    .key = victim->user.key};

    if (*id)
        (void) drill_ask(&drill->client, &call, &talk);
}

static double victim_create(struct drill *drill, struct drill_victim *victim,
                            struct drill_figures *figures)
{
    char id[DRILL_NAME_SIZE] = "";
    const struct drill_call call = {
        .method = "POST",
        .path = CLIENT_PREFIX "/sandboxes",
        .body = "{\"limits\":{\"memory\":\"256M\"},\"network\":\"none\"}",
    };
    double took = victim_ask(drill, victim, DRILL_CREATE, &call, id, figures);

    victim_delete(drill, victim, "sandboxes", id);
    return took;
}

static double victim_exec(struct drill *drill, struct drill_victim *victim,
                          struct drill_figures *figures)
{
    const struct drill_call call = {
        .method = "POST",
        .path = client_sandbox_path(&drill->client, victim->box, "/exec"),
        .body = "{\"command\":\"true\"}",
    };

    return victim_ask(drill, victim, DRILL_EXEC, &call, NULL, figures);
}

static double victim_backup(struct drill *drill, struct drill_victim *victim,
                            struct drill_figures *figures)
{
    char id[DRILL_NAME_SIZE] = "";
    const struct drill_call call = {
        .method = "POST",
        .path = client_sandbox_path(&drill->client, victim->box, "/backups"),
        .body = "{}",
    };
    double took = victim_ask(drill, victim, DRILL_BACKUP, &call, id, figures);

    victim_delete(drill, victim, "backups", id);
    return took;
}

/* From the moment something is asked for to that when his stream tells of it. */
static double victim_event(struct drill *drill, struct drill_victim *victim,
                           struct drill_figures *figures)
{
    AUTO(drill_talk) struct drill_talk talk = {0};
    char body[BODY_SIZE];
    struct drill_call call = {
        .method = "PATCH",
        .path = client_sandbox_path(&drill->client, victim->box, ""),
        .key = victim->user.key,
        .body = body,
    };
    uint64_t began = clock_monotonic_ns(clock_system());

    (void) snprintf(body, sizeof(body), "{\"labels\":{\"n\":\"%u\"}}", victim->serial++);
    text_clear(&victim->stream.body);
    talk.call = &call;
    drill_talk_start(&talk, &drill->client);
    victim->stream.stops = true;
    while (!strstr(text_string(&victim->stream.body), "sandbox.updated")) {
        if (victim->stream.is_over || (talk.is_over && !drill_talk_is_good(&talk)) ||
            (double) (clock_monotonic_ns(clock_system()) - began) / NS_PER_MS > PATIENCE_MS) {
            figures_complain(figures, "event", talk.is_over ? talk.status : 0);
            break;
        }
        drill_turn(&drill->client, PATIENCE_MS / 10);
    }
    victim->stream.stops = false;
    began = clock_monotonic_ns(clock_system()) - began;
    (void) drill_talk_wait(&talk, PATIENCE_MS, false);
    return (double) began / NS_PER_MS;
}

/* --- figures --------------------------------------------------------------------------------- */

static int double_compare(const void *left, const void *right)
{
    double a = *(const double *) left, b = *(const double *) right;

    return (a > b) - (a < b);
}

void drill_victim_measure(struct drill *drill, struct drill_victim *victim,
                          struct drill_figures *ret_figures)
{
    static double (*const works[DRILL_WORKS])(struct drill *, struct drill_victim *,
                                              struct drill_figures *) = {
        victim_create, victim_exec, victim_backup, victim_event};

    *ret_figures = (struct drill_figures){0};
    for (size_t work = 0; work < DRILL_WORKS; work++) {
        double took[ROUNDS_MAX];

        for (size_t i = 0; i < rounds[work]; i++)
            took[i] = works[work](drill, victim, ret_figures);
        qsort(took, rounds[work], sizeof(took[0]), double_compare);
        ret_figures->median[work] = took[rounds[work] / 2];
        ret_figures->worst[work] = took[rounds[work] - 1];
    }
}
