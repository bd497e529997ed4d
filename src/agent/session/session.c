#include "agent/session/session.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "agent/agent.h"
#include "agent/call.h"
#include "agent/session/session_internal.h"
#include "base/memory.h"

/* --- questions to the shell ------------------------------------------------------------------ */

void session_question_forget(struct session *session)
{
    if (session->answer)
        pool_done(session->answer);
    free(TAKE_PTR(session->answer));
    session->exports = (struct session_exports){.items = NULL};
    session->asking = false;
}

/* Queries that come while they are answered wait for the next time. */
void session_question_tell(struct session *session, const struct session_context *context,
                           struct api_error *failure)
{
    struct list asked;
    struct list *link;

    list_init(&asked);
    while ((link = list_first(&session->queries))) {
        list_remove(link);
        list_append(&asked, link);
    }
    while ((link = list_first(&asked))) {
        struct session_query *query = CONTAINER_OF(link, struct session_query, link);

        list_remove(link);
        query->on_context(query, context, failure);
    }
}

void session_question_ask(struct session *session)
{
    AUTO(text) struct text script = TEXT_INIT(SESSION_SCRIPT_MAX);

    session->busy = session->asking = true;
    session_script_ask(session_shell_dialect(session->shell), ++session->serial, &script);
    session_shell_run(session->shell, &script, session->serial, SESSION_SECTIONS);
}

static void finish_question(struct session *session)
{
    struct session_context context = {
        .directory = session->where,
        .environment = session_exports_environment(&session->exports, session->answer),
    };

    session_question_tell(session, &context, NULL);
    session_question_forget(session);
}

static void fail_question(struct session *session)
{
    AUTO(api_error) struct api_error error = API_ERROR_INIT;

    api_error_fill(&error, API_INTERNAL_ERROR, "Session '%s' exports more than can be read",
                   session->id);
    session_question_tell(session, NULL, &error);
    session_question_forget(session);
}

/* Sections end with a NUL each. */
static const char *next_section(const char **at, const char *end, size_t *ret_length)
{
    const char *section = *at;
    const char *nul = section < end ? memchr(section, '\0', (size_t) (end - section)) : NULL;

    *ret_length = nul ? (size_t) (nul - section) : 0;
    *at = nul ? nul + 1 : end;
    return section;
}

static void ask_for_functions(struct session *session)
{
    AUTO(text) struct text script = TEXT_INIT(SESSION_SCRIPT_MAX);

    session->busy = true;
    session_script_functions(++session->serial, session->functions, session->function_count,
                             &script);
    session_shell_run(session->shell, &script, session->serial,
                      (unsigned int) session->function_count);
}

static void take_context(struct session *session, const struct text *sections)
{
    const char *at = text_string(sections), *end = at + sections->length, *section;
    size_t length;

    session->answer = mem_alloc(sizeof(*session->answer));
    section = next_section(&at, end, &length);
    session->where = pool_copy_bytes(session->answer, section, length);
    section = next_section(&at, end, &length);
    session_exports_read(&session->exports, session->answer, section, length);
    section = next_section(&at, end, &length);
    session->function_count =
        session_exports_functions(session->answer, section, length, &session->functions);
    if (session->function_count)
        ask_for_functions(session);
    else
        finish_question(session);
}

static void take_functions(struct session *session, const struct text *sections)
{
    const char *at = text_string(sections), *end = at + sections->length;

    for (size_t i = 0; i < session->function_count; i++) {
        size_t length;
        const char *section = next_section(&at, end, &length);

        session_exports_add_function(&session->exports, session->answer, session->functions[i],
                                     section, length);
    }
    finish_question(session);
}

void session_question_take(struct session *session, const struct text *sections)
{
    if (!sections)
        fail_question(session);
    else if (session->answer)
        take_functions(session, sections);
    else
        take_context(session, sections);
}

/* --- what others ask ------------------------------------------------------------------------- */

static void answer_without_session(struct loop_task *task)
{
    struct session_query *query = CONTAINER_OF(task, struct session_query, task);
    struct session_context context = {.directory = query->agent->directory,
                                      .environment = query->agent->environment};

    query->on_context(query, &context, NULL);
}

static void refuse_query(struct loop_task *task)
{
    AUTO(api_error) struct api_error error = API_ERROR_INIT;
    struct session_query *query = CONTAINER_OF(task, struct session_query, task);

    api_error_fill(&error, API_RESOURCE_BUSY, "There are %d sessions already: delete one",
                   SESSIONS_MAX);
    query->on_context(query, NULL, &error);
}

void session_ask(struct agent *agent, const char *id, struct session_query *query)
{
    AUTO(api_error) struct api_error error = API_ERROR_INIT;
    bool sessionless = strcmp(id, CALL_NO_SESSION) == 0;
    struct session *session = sessionless ? NULL : session_obtain(agent, id, &error);

    query->agent = agent;
    list_init(&query->link);
    loop_task_init(&query->task, sessionless ? answer_without_session : refuse_query);
    if (!session) {
        loop_defer(&agent->loop, &query->task);
        return;
    }
    list_append(&session->queries, &query->link);
    session_advance_soon(session);
}

void session_forget(struct session_query *query)
{
    loop_task_cancel(&query->task);
    list_remove(&query->link);
}

static bool read_directory(const struct session *session, char ret_path[static PATH_MAX])
{
    char link[64];
    ssize_t length;

    if (!session || !session->shell || !session_shell_pid(session->shell))
        return false;
    (void) snprintf(link, sizeof(link), "/proc/%d/cwd", (int) session_shell_pid(session->shell));
    length = readlink(link, ret_path, PATH_MAX - 1);
    if (length < 0)
        return false;
    ret_path[length] = '\0';
    return true;
}

void session_directory(const struct agent *agent, const char *id, char ret_path[static PATH_MAX])
{
    const struct session *session = session_find(agent, id);
    const char *path = session ? session->settings.directory : NULL;
    const char *home = environment_get(agent->environment, "HOME");

    if (read_directory(session, ret_path))
        return;
    if (!path || access(path, X_OK) < 0)
        path = agent->directory;
    if (access(path, X_OK) < 0)
        path = home && access(home, X_OK) == 0 ? home : "/";
    (void) snprintf(ret_path, PATH_MAX, "%s", path);
}
