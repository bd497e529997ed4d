#include "programs/burrow/agent_reach.h"

#include "domain/sandbox/sandboxes.h"

static struct http_origin *agent_reach_agent(void *self, const struct id *sandbox,
                                             struct error *err)
{
    struct agent_reach *reach = self;

    return agents_origin(reach->agents, sandbox, err);
}

static void agent_reach_sockets(void *self, const struct id *sandbox, size_t count,
                                reach_sockets_done *done, void *context)
{
    struct agent_reach *reach = self;
    struct caller system = caller_system();
    struct error err = ERROR_INIT;
    struct sandbox *found =
        reach->domain ? sandbox_find(reach->domain, &system, sandbox->text, &err) : NULL;

    if (found) {
        sandbox_sockets(reach->domain, found, count, done, context);
        return;
    }
    if (!reach->domain)
        (void) error_set(&err, ERR_UNAVAILABLE, 0, "sandboxes are not known yet");
    done(context, &err, NULL, 0);
}

struct reach agent_reach_of(struct agent_reach *reach)
{
    return (struct reach){
        .self = reach, .agent = agent_reach_agent, .sockets = agent_reach_sockets};
}
