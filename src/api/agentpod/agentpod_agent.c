#include "api/agentpod/agentpod_agent.h"

#include "api/http/pending.h"
#include "base/auto.h"
#include "base/memory.h"
#include "domain/conversation/conversation.h"

struct agentpod_waiting {
    struct pending *pending;
    struct agentpod_start start; /* what it calls */
};

void agentpod_agent_translate(const struct error *failure, struct error *ret_error)
{
    *ret_error = *failure;
    if (failure->code != ERR_UPSTREAM_TIMEOUT)
        return;
    ret_error->code = ERR_AGENT_NOT_READY;
    (void) error_wrap(ret_error, "the agent of this sandbox was not ready in time; it goes on "
                                 "starting, so ask again");
}

static void agentpod_agent_refuse(struct visit *visit, const struct agentpod_start *start,
                                  const struct error *error)
{
    if (start->without && (error->code == ERR_UPSTREAM || error->code == ERR_UNAVAILABLE))
        start->without(visit, error);
    else
        http_reply_error(visit->request, error);
}

static void agentpod_agent_started(void *context, const struct error *failure,
                                   const struct harness_status *status)
{
    AUTO(free) struct agentpod_waiting *waiting = context;
    struct http_request *request = pending_take(waiting->pending);
    struct error error;

    (void) status;
    if (!request)
        return;
    if (!failure) {
        waiting->start.ready(visit_of(request));
        return;
    }
    agentpod_agent_translate(failure, &error);
    agentpod_agent_refuse(visit_of(request), &waiting->start, &error);
}

void agentpod_agent_start(struct visit *visit, const struct agentpod_start *start)
{
    const struct harness *harness = domain_harness(visit->api->domain);
    const struct conversation_spec spec = {
        .folder = start->folder ? start->folder : visit->sandbox->spec.folder,
        .config = start->config,
    };
    AUTO(text) struct text models = TEXT_INIT(CONVERSATION_MODELS_MAX);
    struct harness_place place;
    struct agentpod_waiting *waiting;
    struct error error = ERROR_INIT;

    if (conversation_check_harness(visit->api->domain, &error) < 0) {
        agentpod_agent_refuse(visit, start, &error);
        return;
    }
    place = conversation_place_of(visit->sandbox, &spec, &models);
    waiting = mem_alloc(sizeof(*waiting));
    waiting->start = *start;
    waiting->pending = pending_new(visit->request);
    harness->ensure(harness->self, &place, agentpod_agent_started, waiting);
}

bool agentpod_agent_is_ready(const struct api *api, const struct id *sandbox)
{
    const struct harness *harness = domain_harness(api->domain);
    struct harness_status status = {.state = HARNESS_ABSENT};

    if (harness)
        harness->look(harness->self, sandbox, "opencode", &status);
    return status.state == HARNESS_READY;
}
