#include "api/agent/visit_walk.h"

static void visit_walk_go_on(struct visit_walk *walk);

static const struct visit_step *step_of(const struct visit_walk *walk)
{
    return walk->at < walk->plan->count ? &walk->plan->steps[walk->at] : NULL;
}

static void visit_walk_drop(struct visit_walk *walk)
{
    if (walk->plan->dropped)
        walk->plan->dropped(walk);
}

static void visit_walk_client_left(struct visit *visit)
{
    visit_walk_drop(visit->data);
}

static void look_at(struct visit_walk *walk, const struct agent_reply *reply, struct error *err)
{
    const struct visit_step *step = step_of(walk);

    (void) (step->take ? step->take(walk, reply, err) : agent_reply_error(reply, err));
}

static void visit_walk_answered(struct visit *visit, const struct agent_reply *reply,
                                const struct error *failure)
{
    struct visit_walk *walk = visit->data;
    const struct visit_step *step = step_of(walk);
    struct error err = ERROR_INIT;

    if (failure)
        err = *failure;
    else
        look_at(walk, reply, &err);
    if (err.code) {
        (void) error_wrap(&err, "%s", step->name);
        visit_walk_drop(walk);
        http_reply_error(visit->request, &err);
        return;
    }
    if (!step->repeats)
        walk->at++;
    visit_walk_go_on(walk);
}

static void visit_walk_go_on(struct visit_walk *walk)
{
    const struct visit_step *step;

    for (; (step = step_of(walk)); walk->at++) {
        struct agent_request request = {.method = NULL};

        if (step->ask(walk, &request)) {
            agent_call(walk->visit, &request, visit_walk_answered);
            return;
        }
    }
    walk->plan->finished(walk);
}

void visit_walk_begin(struct visit_walk *walk, struct visit *visit, const struct visit_plan *plan)
{
    *walk = (struct visit_walk){.visit = visit, .plan = plan};
    visit->data = walk;
    visit->gone = visit_walk_client_left;
    visit_walk_go_on(walk);
}
