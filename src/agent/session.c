#include "agent/session.h"

#include <stdio.h>

#include "agent/agent.h"

static void answer(struct loop_task *task)
{
    struct session_query *query = CONTAINER_OF(task, struct session_query, task);
    struct session_context context = {.directory = AGENT_DIRECTORY,
                                      .environment = query->agent->environment};

    query->on_context(query, &context, NULL);
}

void session_ask(struct agent *agent, const char *session, struct session_query *query)
{
    (void) session;
    query->agent = agent;
    loop_task_init(&query->task, answer);
    loop_defer(&agent->loop, &query->task);
}

void session_forget(struct session_query *query)
{
    loop_task_cancel(&query->task);
}

void session_directory(const struct agent *agent, const char *session,
                       char ret_path[static PATH_MAX])
{
    (void) agent;
    (void) session;
    (void) snprintf(ret_path, PATH_MAX, "%s", AGENT_DIRECTORY);
}
