#include "programs/burrow/sandbox_reach.h"

#include "domain/sandbox/sandboxes.h"

static struct http_origin *sandbox_reach_agent(void *self, const struct id *sandbox,
                                               struct error *err)
{
    struct sandbox_reach *reach = self;

    return agents_origin(reach->agents, sandbox, err);
}

static void sandbox_reach_sockets(void *self, const struct id *sandbox, size_t count,
                                  reach_sockets_done *done, void *context)
{
    struct sandbox_reach *reach = self;
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

struct reach sandbox_reach_of(struct sandbox_reach *reach)
{
    return (struct reach){
        .self = reach, .agent = sandbox_reach_agent, .sockets = sandbox_reach_sockets};
}
