#include "agent/session/session_set.h"

#include <string.h>

#include "agent/agent.h"
#include "agent/call.h"
#include "agent/session/session_internal.h"
#include "base/memory.h"
#include "base/number.h"
#include "json/json_write.h"

/* A command that no shell has read yet when its shell ends is given to so many shells in all; and
 * so many in a row are asked a question. */
#define ATTEMPTS_MAX 3
/* Longest timeout that COMMAND_TIMEOUT_MS may set. */
#define TIMEOUT_MAX (INT64_C(365) * 24 * 3600 * 1000)

static void session_set_advance(struct loop_task *task);

/* --- the set -------------------------------------------------------------------------------- */

struct session_set *session_set_new(void)
{
    struct session_set *set = mem_alloc(sizeof(*set));

    list_init(&set->sessions);
    return set;
}

struct session *session_find(const struct agent *agent, const char *id)
{
    LIST_EACH (&agent->sessions->sessions, at) {
        struct session *session = CONTAINER_OF(at, struct session, link);

        if (strcmp(session->id, id) == 0)
            return session;
    }
    return NULL;
}

void session_advance_soon(struct session *session)
{
    loop_defer(&session->agent->loop, &session->advance);
}

static struct environment_change *copy_changes(const struct environment_change *changes,
                                               size_t count)
{
    struct environment_change *copy = mem_alloc_array(count + 1, sizeof(*copy));

    for (size_t i = 0; i < count; i++) {
        copy[i].name = mem_copy_text(changes[i].name);
        copy[i].text = changes[i].text ? mem_copy_text(changes[i].text) : NULL;
    }
    return copy;
}

static void settings_done(struct session_settings *settings)
{
    for (size_t i = 0; i < settings->change_count; i++) {
        free((void *) (uintptr_t) settings->changes[i].name);
        free((void *) (uintptr_t) settings->changes[i].text);
    }
    free((void *) (uintptr_t) settings->changes);
    free((void *) (uintptr_t) settings->directory);
}

static void session_set_deadline_due(struct deadline *deadline);

static struct session *session_new(struct agent *agent, const char *id,
                                   const struct session_settings *settings)
{
    struct session *session = mem_alloc(sizeof(*session));

    session->agent = agent;
    session->id = mem_copy_text(id);
    session->settings = *settings;
    session->settings.directory = settings->directory ? mem_copy_text(settings->directory) : NULL;
    session->settings.changes = copy_changes(settings->changes, settings->change_count);
    list_init(&session->waiting);
    list_init(&session->queries);
    list_init(&session->farewells);
    deadline_init(&agent->loop, &session->deadline, session_set_deadline_due);
    loop_task_init(&session->advance, session_set_advance);
    list_append(&agent->sessions->sessions, &session->link);
    agent->sessions->count++;
    return session;
}

static void session_set_deadline_closed(struct deadline *deadline)
{
    struct session *session = CONTAINER_OF(deadline, struct session, deadline);

    settings_done(&session->settings);
    free(session->id);
    free(session);
}

/* Nothing is left of a deleted session. */
static void session_gone(struct session *session)
{
    struct list *link;

    loop_task_cancel(&session->advance);
    session_question_forget(session);
    while ((link = list_first(&session->farewells))) {
        struct session_farewell *farewell = CONTAINER_OF(link, struct session_farewell, link);

        list_remove(link);
        farewell->on_gone(farewell);
    }
    deadline_close(&session->deadline, session_set_deadline_closed);
}

/* --- ends ----------------------------------------------------------------------------------- */

static void end_command(struct session_command *command, const struct session_result *result)
{
    command->session = NULL;
    command->events->on_end(command, result);
}

static void end_running(struct session *session, const struct session_result *result)
{
    struct session_command *command = TAKE_PTR(session->running);

    deadline_clear(&session->deadline);
    if (session->shell)
        session_shell_resume(session->shell);
    if (command)
        end_command(command, result);
}

static struct session_command *take_waiting(struct session *session)
{
    struct list *link = list_first(&session->waiting);

    if (!link)
        return NULL;
    list_remove(link);
    session->waiting_count--;
    return CONTAINER_OF(link, struct session_command, link);
}

static void end_waiting(struct session *session, const struct session_result *result)
{
    struct session_command *command;

    while ((command = take_waiting(session)))
        end_command(command, result);
}

static void fill_destroyed(const struct session *session, struct api_error *error)
{
    api_error_fill(error, API_SESSION_DESTROYED, "Session '%s' was destroyed", session->id);
}

/* There is no shell to be had: nobody who waits gets one. */
static void fail_all(struct session *session, const struct exec_result *result)
{
    AUTO(api_error) struct api_error error = API_ERROR_INIT;
    const struct session_result failed = {.outcome = SESSION_FAILED, .exec = *result};

    api_error_fill(&error, API_COMMAND_EXECUTION_ERROR,
                   "Session '%s' has no shell: it could not be started: %s", session->id,
                   result->stage == LAUNCH_STAGE_USER ? "there is no such user in the sandbox"
                                                      : strerrordesc_np(-result->error));
    session->dead = true;
    end_running(session, &failed);
    end_waiting(session, &failed);
    session_question_tell(session, NULL, &error);
}

/* --- the running command -------------------------------------------------------------------- */

static uint64_t find_timeout(const struct session *session, const struct session_command *command)
{
    const char *text = environment_get(session->agent->environment, "COMMAND_TIMEOUT_MS");
    int64_t number = 0;

    if (command->timeout_ms)
        return command->timeout_ms;
    if (session->settings.timeout_ms)
        return session->settings.timeout_ms;
    if (text && number_parse(text, 1, TIMEOUT_MAX, &number) < 0)
        number = 0; /* no number means no timeout */
    return (uint64_t) number;
}

static void session_set_deadline_due(struct deadline *deadline)
{
    struct session *session = CONTAINER_OF(deadline, struct session, deadline);
    const struct session_result result = {
        .outcome = SESSION_TIMED_OUT,
        .timeout_ms = session->running ? find_timeout(session, session->running) : 0};

    end_running(session, &result);
}

static void start_command(struct session *session, struct session_command *command)
{
    AUTO(text) struct text script = TEXT_INIT(SESSION_SCRIPT_MAX);
    const struct session_request request = {
        .serial = ++session->serial,
        .command = command->text,
        .directory = command->directory,
        .changes = command->changes,
        .change_count = command->change_count,
    };
    uint64_t timeout_ms = find_timeout(session, command);

    session_script_command(session_shell_dialect(session->shell), &request, &script);
    if (script.overflowed) {
        const struct session_result failed = {
            .outcome = SESSION_FAILED,
            .exec = {.error = -E2BIG, .stage = LAUNCH_STAGE_MESSAGE},
        };

        end_command(command, &failed);
        session_advance_soon(session);
        return;
    }
    session->busy = true;
    session->running = command;
    session->agent->execs.started++;
    session_shell_run(session->shell, &script, request.serial, 0);
    if (timeout_ms)
        deadline_set(&session->deadline, timeout_ms);
    if (!command->attempts++)
        command->events->on_start(command);
}

static void tell_no_directory(struct session *session)
{
    AUTO(text) struct text note = TEXT_INIT(PATH_MAX + 64);
    struct session_command *command = session->running;

    text_append(&note, "Failed to change directory to ");
    text_append(&note, command->directory);
    text_append_char(&note, '\n');
    command->events->on_output(command, EXEC_STDERR, text_string(&note), note.length);
}

static void finish_command(struct session *session, int status)
{
    const struct session_result result = {.outcome = SESSION_ENDED,
                                          .status = status == SESSION_NO_DIRECTORY ? 1 : status};

    if (session->running && status == SESSION_NO_DIRECTORY)
        tell_no_directory(session);
    end_running(session, &result);
}

/* --- the shell ------------------------------------------------------------------------------ */

static void shell_started(struct session_shell *shell, void *owner)
{
    struct session *session = owner;

    (void) shell;
    session->ready = true;
    if (!session->deleted)
        session_advance_soon(session);
}

static void shell_wrote(struct session_shell *shell, void *owner, enum exec_output which,
                        const char *bytes, size_t length)
{
    struct session *session = owner;

    (void) shell;
    if (session->running) /* else it is a background job's, or nobody listens */
        session->running->events->on_output(session->running, which, bytes, length);
}

static void shell_reported(struct session_shell *shell, void *owner, int status,
                           const struct text *sections)
{
    struct session *session = owner;

    (void) shell;
    session->busy = false;
    session->lost_shells = 0;
    if (session->deleted)
        return;
    agent_note_work(session->agent);
    if (session->asking)
        session_question_take(session, sections);
    else
        finish_command(session, status);
    if (!session->busy)
        session_advance_soon(session);
}

/* What no shell has read goes to the front of the queue. */
static bool session_set_try_again(struct session *session)
{
    struct session_command *command = session->running;

    if (!command || command->attempts >= ATTEMPTS_MAX)
        return false;
    session->running = NULL;
    deadline_clear(&session->deadline);
    list_append(session->waiting.next, &command->link); /* before the first */
    session->waiting_count++;
    return true;
}

/* Shells that end before they answer (BASH_ENV says `exit`, bash is none) would follow each other
 * for ever. A command that ended its shell is no reason to give up. */
static void count_lost(struct session *session, bool had_command)
{
    AUTO(api_error) struct api_error error = API_ERROR_INIT;

    if (had_command || list_is_empty(&session->queries) || ++session->lost_shells < ATTEMPTS_MAX)
        return;
    session->lost_shells = 0;
    api_error_fill(&error, API_SESSION_TERMINATED,
                   "Session '%s' has no shell: it ends before it can be used", session->id);
    session_question_tell(session, NULL, &error);
}

static void shell_ended(struct session_shell *shell, void *owner, const struct exec_result *result,
                        bool untouched)
{
    struct session *session = owner;
    const struct session_result terminated = {.outcome = SESSION_TERMINATED, .exec = *result};
    bool had_command = session->busy && !session->asking;

    (void) shell;
    session->shell = NULL;
    session->ready = session->busy = false;
    session->dead = true;
    session_question_forget(session);
    if (session->deleted) {
        session_gone(session);
        return;
    }
    if (result->error) {
        fail_all(session, result);
        return;
    }
    if (!untouched || !session_set_try_again(session))
        end_running(session, &terminated);
    count_lost(session, had_command);
    if (!list_is_empty(&session->waiting) || !list_is_empty(&session->queries))
        session_advance_soon(session); /* with a fresh shell */
}

static const struct session_shell_events shell_events = {
    .on_start = shell_started,
    .on_output = shell_wrote,
    .on_report = shell_reported,
    .on_end = shell_ended,
};

static void start_shell(struct session *session)
{
    const struct session_settings *settings = &session->settings;
    const char **environment =
        environment_merge(session->agent->environment, settings->changes, settings->change_count);
    const struct session_shell_options options = {
        .environment = environment,
        .directory = settings->directory ? settings->directory : session->agent->directory,
    };
    struct exec_result failed = {.stage = LAUNCH_STAGE_FORK};

    session->shell =
        session_shell_start(session->agent, &options, &shell_events, session, &failed.error);
    environment_free(environment);
    if (session->shell)
        session->dead = false;
    else
        fail_all(session, &failed);
}

/* Give the shell something to do, if there is anything and it is free. */
static void session_set_advance(struct loop_task *task)
{
    struct session *session = CONTAINER_OF(task, struct session, advance);
    bool has_queries = !list_is_empty(&session->queries);

    if (session->deleted) {
        if (!session->shell)
            session_gone(session);
        return;
    }
    if (session->busy || (!has_queries && list_is_empty(&session->waiting)))
        return;
    if (!session->shell)
        start_shell(session);
    else if (session->ready && has_queries)
        session_question_ask(session);
    else if (session->ready)
        start_command(session, take_waiting(session));
}

/* --- commands ------------------------------------------------------------------------------- */

struct session *session_obtain(struct agent *agent, const char *id, struct api_error *error)
{
    static const struct session_settings usual = {.directory = NULL};
    struct session *session = session_find(agent, id);

    if (session)
        return session;
    if (agent->sessions->count < SESSIONS_MAX)
        return session_new(agent, id, &usual);
    api_error_fill(error, API_RESOURCE_BUSY, "There are %d sessions already: delete one",
                   SESSIONS_MAX);
    return NULL;
}

int session_run(struct agent *agent, const char *id, struct session_command *command,
                struct api_error *error)
{
    struct session *session = session_obtain(agent, id, error);

    if (!session)
        return -1;
    if (session->waiting_count == SESSION_WAITING_MAX)
        return api_error_set(error, API_RESOURCE_BUSY, "%d commands wait in session '%s' already",
                             SESSION_WAITING_MAX, id);
    agent_note_work(agent);
    command->session = session;
    command->attempts = 0;
    list_append(&session->waiting, &command->link);
    session->waiting_count++;
    session_advance_soon(session);
    return 0;
}

void session_abandon(struct session_command *command)
{
    struct session *session = TAKE_PTR(command->session);

    if (!session)
        return;
    if (session->running == command) {
        session->running = NULL;
        deadline_clear(&session->deadline);
        session_shell_resume(session->shell);
    } else {
        list_remove(&command->link);
        session->waiting_count--;
    }
}

void session_pause(struct session_command *command)
{
    if (command->session && command->session->running == command)
        session_shell_pause(command->session->shell);
}

void session_resume(struct session_command *command)
{
    if (command->session && command->session->running == command)
        session_shell_resume(command->session->shell);
}

pid_t session_command_pid(const struct session_command *command)
{
    const struct session *session = command->session;

    return session && session->shell ? session_shell_pid(session->shell) : 0;
}

/* --- sessions by themselves ------------------------------------------------------------------ */

static int refuse_duplicate(const char *id, struct api_error *error)
{
    struct json_writer json;

    json_document_begin(&json, &error->context);
    json_add_text(&json, "sessionId", id);
    json_add_null(&json, "containerPlacementId");
    (void) json_document_end(&json); /* an id is short */
    return api_error_set(error, API_SESSION_ALREADY_EXISTS, "Session '%s' already exists", id);
}

int session_create(struct agent *agent, const char *id, const struct session_settings *settings,
                   struct api_error *error)
{
    struct session *session = session_find(agent, id);

    if (session && !(session->dead && list_is_empty(&session->waiting)))
        return refuse_duplicate(id, error);
    if (session)
        (void) session_delete(agent, id, NULL);
    if (agent->sessions->count >= SESSIONS_MAX)
        return api_error_set(error, API_RESOURCE_BUSY, "There are %d sessions already: delete one",
                             SESSIONS_MAX);
    (void) session_new(agent, id, settings);
    return 0;
}

/* At the end of the turn, so that nobody is told from inside. */
static void session_set_destroy(struct loop_task *task)
{
    AUTO(api_error) struct api_error error = API_ERROR_INIT;
    struct session *session = CONTAINER_OF(task, struct session, advance);
    const struct session_result destroyed = {.outcome = SESSION_DESTROYED};

    fill_destroyed(session, &error);
    end_running(session, &destroyed);
    end_waiting(session, &destroyed);
    session_question_tell(session, NULL, &error);
    if (session->shell)
        session_shell_kill(session->shell);
    else
        session_gone(session);
}

bool session_delete(struct agent *agent, const char *id, struct session_farewell *farewell)
{
    struct session *session = session_find(agent, id);

    if (farewell)
        list_init(&farewell->link);
    if (!session)
        return false;
    session->deleted = true;
    list_remove(&session->link);
    agent->sessions->count--;
    if (farewell)
        list_append(&session->farewells, &farewell->link);
    loop_task_cancel(&session->advance);
    loop_task_init(&session->advance, session_set_destroy);
    session_advance_soon(session);
    return true;
}

void session_farewell_forget(struct session_farewell *farewell)
{
    list_remove(&farewell->link);
}

const char *session_next(const struct agent *agent, const char *id)
{
    const struct session *session = id ? session_find(agent, id) : NULL;
    const struct list *next = session ? session->link.next : agent->sessions->sessions.next;

    if (next == &agent->sessions->sessions || (id && !session))
        return NULL;
    return CONTAINER_OF((struct list *) (uintptr_t) next, struct session, link)->id;
}

const struct session_settings *session_settings(const struct agent *agent, const char *id)
{
    const struct session *session = session_find(agent, id);

    return session ? &session->settings : NULL;
}

enum session_state session_state(const struct agent *agent, const char *id)
{
    const struct session *session = session_find(agent, id);

    if (!session || !session->shell)
        return SESSION_ASLEEP;
    return session->busy || !session->ready ? SESSION_BUSY : SESSION_FREE;
}

size_t session_idle_count(const struct agent *agent)
{
    size_t count = 0;

    LIST_EACH (&agent->sessions->sessions, at) {
        const struct session *session = CONTAINER_OF(at, struct session, link);

        count += session->shell && session->ready && !session->busy;
    }
    return count;
}
