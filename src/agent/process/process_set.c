#include "agent/process/process_set.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "agent/agent.h"
#include "agent/call.h"
#include "agent/command/execute_form.h"
#include "agent/exec/image_command.h"
#include "agent/exec/shell_command.h"
#include "base/id.h"
#include "base/memory.h"
#include "json/json_write.h"

#define EXIT_SIGNAL_BASE 128
#define ID_RANDOM_DIGITS 6

static const char *const status_texts[PROCESS_STATUSES] = {
    [PROCESS_STARTING] = "starting",   [PROCESS_RUNNING] = "running",
    [PROCESS_COMPLETED] = "completed", [PROCESS_FAILED] = "failed",
    [PROCESS_KILLED] = "killed",       [PROCESS_ERROR] = "error",
};

const char *process_status_text(enum process_status status)
{
    return status_texts[status];
}

bool process_has_ended(const struct process *process)
{
    return process->status >= PROCESS_COMPLETED;
}

bool process_is_ending(const struct process *process)
{
    return !process_has_ended(process) && process->exec && !process->set->agent->stopping &&
           exec_is_ending(process->exec);
}

bool process_is_alive(const struct process *process)
{
    return process->exec || process->asking;
}

int process_exit_code(const struct process *process)
{
    return process->result.error ? -1 : execute_exit_code(&process->result);
}

/* --- memory ---------------------------------------------------------------------------------- */

static void process_set_deadline_gone(struct deadline *deadline)
{
    struct process *process = CONTAINER_OF(deadline, struct process, deadline);

    process_log_done(&process->log);
    pool_done(&process->launch);
    free((char *) (uintptr_t) process->id);
    free((char *) (uintptr_t) process->command);
    free((char *) (uintptr_t) process->session);
    free(process);
}

static void unreference(struct process *process)
{
    if (--process->references == 0)
        deadline_close(&process->deadline, process_set_deadline_gone);
}

static void process_set_forget(struct process *process)
{
    struct process_set *set = process->set;

    if (process->forgotten)
        return;
    process->forgotten = true;
    list_remove(&process->link);
    set->command_bytes -= strlen(process->command);
    if (process_has_ended(process))
        set->finished_count--;
    unreference(process);
}

/* The oldest that has ended and left nothing alive; with `any`, the oldest that has ended: what it
 * left then belongs to nobody but the sandbox. */
static struct process *oldest_finished(const struct process_set *set, bool any)
{
    LIST_EACH (&set->processes, at) {
        struct process *process = CONTAINER_OF(at, struct process, link);

        if (process_has_ended(process) && (any || !process_is_alive(process)))
            return process;
    }
    return any ? NULL : oldest_finished(set, true);
}

static void forget_surplus(struct process_set *set, size_t needed)
{
    while (set->finished_count > PROCESS_FINISHED_MAX ||
           (set->finished_count && set->command_bytes + needed > PROCESS_COMMANDS_MAX))
        process_set_forget(oldest_finished(set, false));
}

/* --- watchers -------------------------------------------------------------------------------- */

void process_watch(struct process *process, struct process_watcher *watcher)
{
    watcher->process = process;
    process->references++;
    list_append(&process->watchers, &watcher->link);
}

void process_unwatch(struct process_watcher *watcher)
{
    list_remove(&watcher->link);
    unreference(watcher->process);
}

static void process_set_tell(struct process *process, enum process_event event)
{
    process->references++; /* the last watcher may leave meanwhile */
    LIST_EACH (&process->watchers, at) {
        struct process_watcher *watcher = CONTAINER_OF(at, struct process_watcher, link);

        watcher->on_event(watcher, event);
    }
    unreference(process);
}

/* --- the end --------------------------------------------------------------------------------- */

static enum process_status process_set_judge(const struct process *process)
{
    const struct exec_result *result = &process->result;
    int code = process_exit_code(process);

    if (result->error)
        return PROCESS_ERROR;
    if (process->killed || result->timed_out || code == EXIT_SIGNAL_BASE + SIGKILL ||
        code == EXIT_SIGNAL_BASE + SIGTERM)
        return PROCESS_KILLED;
    if (code < 0)
        return PROCESS_ERROR;
    return code ? PROCESS_FAILED : PROCESS_COMPLETED;
}

static void process_set_end(struct process *process)
{
    struct process_set *set = process->set;

    process->status = process_set_judge(process);
    process->ended_ms = clock_wall_ms(set->agent->clock);
    set->live_count--;
    if (!process->forgotten)
        set->finished_count++;
    agent_note_work(set->agent);
    if (process->cleans_up && !process->killing)
        deadline_set(&process->deadline, PROCESS_CLEANUP_MS);
    process_set_tell(process, PROCESS_ENDED);
    forget_surplus(set, 0);
}

/* Nothing is left that could be killed. */
static void disappear(struct process *process)
{
    process->exec = NULL;
    deadline_clear(&process->deadline);
    if (process->cleans_up)
        deadline_set(&process->deadline, PROCESS_CLEANUP_MS);
    process_set_tell(process, PROCESS_GONE);
    unreference(process); /* the command's own reference */
}

static void write_stderr(struct process *process, const char *text)
{
    process_log_append(&process->log, EXEC_STDERR, text, strlen(text));
}

/* As far as it is the command's own failure, its log says so. */
static void process_set_note_failure(struct process *process, const struct exec_result *result)
{
    char note[API_MESSAGE_MAX];

    if (process->failure)
        (void) snprintf(note, sizeof(note), "%.500s\n", process->failure->message);
    else if (result->timed_out)
        (void) snprintf(note, sizeof(note), "Command timed out after %llums\n",
                        (unsigned long long) process->timeout_ms);
    else if (result->error)
        (void) snprintf(note, sizeof(note), "%s: %s\n",
                        result->stage == LAUNCH_STAGE_DIRECTORY
                            ? "Failed to change to the working directory"
                            : "The command could not be run",
                        strerrordesc_np(-result->error));
    else
        return;
    write_stderr(process, note);
}

static void process_set_exec_started(struct exec *exec, void *owner)
{
    struct process *process = owner;

    process->pid = exec_pid(exec);
    process->status = PROCESS_RUNNING;
    process_set_tell(process, PROCESS_STARTED);
}

static void process_set_exec_wrote(struct exec *exec, void *owner, enum exec_output which,
                                   const char *bytes, size_t length)
{
    struct process *process = owner;

    (void) exec;
    process_log_append(&process->log, which, bytes, length);
    process_set_tell(process, PROCESS_OUTPUT);
}

static void process_set_exec_ended(struct exec *exec, void *owner, const struct exec_result *result)
{
    struct process *process = owner;

    (void) exec;
    process->result = *result;
    process_set_note_failure(process, result);
    process_set_end(process);
}

static void exec_gone(struct exec *exec, void *owner)
{
    (void) exec;
    disappear(owner);
}

static const struct exec_events exec_events = {
    .on_start = process_set_exec_started,
    .on_output = process_set_exec_wrote,
    .on_end = process_set_exec_ended,
    .on_gone = exec_gone,
};

/* It never came so far as to be executed. */
static void end_unrun(struct process *process, int error, enum launch_stage stage)
{
    process->result = (struct exec_result){.error = error, .stage = stage};
    process_set_note_failure(process, &process->result);
    process_set_end(process);
    disappear(process);
}

/* --- the start ------------------------------------------------------------------------------- */

/* A relative directory is meant from where the session is. */
static const char *find_directory(struct process *process, const struct session_context *context)
{
    if (!process->directory)
        return context->directory;
    if (process->directory[0] == '/')
        return process->directory;
    return pool_format(&process->launch, "%s/%s", context->directory, process->directory);
}

static struct exec *process_set_launch(struct process *process,
                                       const struct session_context *context, int *ret_error)
{
    const char **environment = environment_merge(context->environment, process->variables.changes,
                                                 process->variables.count);
    bool is_image = strcmp(process->command, IMAGE_COMMAND_NAME) == 0;
    const struct exec_options options = {
        .launch =
            {
                .arguments =
                    is_image ? process->set->agent->image_command
                             : shell_command_split(process->command, environment, &process->launch),
                .shell_command = is_image ? NULL : process->command,
                .environment = environment,
                .directory = find_directory(process, context),
                .any_directory = !process->directory,
            },
        .timeout_ms = process->timeout_ms,
    };
    struct exec *exec =
        exec_start(&process->set->agent->execs, &options, &exec_events, process, ret_error);

    environment_free(environment);
    return exec;
}

static void context_known(struct session_query *query, const struct session_context *context,
                          struct api_error *failure)
{
    struct process *process = CONTAINER_OF(query, struct process, query);
    int error = 0;

    process->asking = false;
    if (failure) {
        process->failure = failure;
        end_unrun(process, -ECANCELED, LAUNCH_STAGE_MESSAGE);
        process->failure = NULL;
        return;
    }
    process->exec = process_set_launch(process, context, &error);
    pool_done(&process->launch);
    if (!process->exec)
        end_unrun(process, error, LAUNCH_STAGE_PROGRAM);
}

static void keep_variables(struct process *process, const struct variables *variables)
{
    struct environment_change *changes =
        pool_alloc(&process->launch, (variables->count + 1) * sizeof(*changes));

    for (size_t i = 0; i < variables->count; i++) {
        const struct environment_change *change = &variables->changes[i];

        changes[i].name = pool_copy_text(&process->launch, change->name);
        changes[i].text = change->text ? pool_copy_text(&process->launch, change->text) : NULL;
    }
    process->variables = (struct variables){.changes = changes, .count = variables->count};
}

static void process_set_deadline_due(struct deadline *deadline);

/* "proc_<milliseconds>_<6 of base 36>" */
static char *new_id(const struct process_set *set)
{
    static const char digits[] = "0123456789abcdefghijklmnopqrstuvwxyz";
    AUTO(text) struct text id = TEXT_INIT(PROCESS_ID_MAX);
    unsigned char random[ID_RANDOM_DIGITS];

    do {
        text_clear(&id);
        text_format(&id, "proc_%lld_", (long long) clock_wall_ms(set->agent->clock));
        random_bytes(random, sizeof(random));
        for (size_t i = 0; i < sizeof(random); i++)
            text_append_char(&id, digits[random[i] % (sizeof(digits) - 1)]);
    } while (process_find(set, text_string(&id)));
    return text_take(&id);
}

static struct process *process_new(struct process_set *set, const struct process_request *request)
{
    struct process *process = mem_alloc(sizeof(*process));

    process->set = set;
    process->id = request->id ? mem_copy_text(request->id) : new_id(set);
    process->command = mem_copy_text(request->command);
    process->session = mem_copy_text(request->session);
    process->started_ms = clock_wall_ms(set->agent->clock);
    process->timeout_ms = request->timeout_ms;
    process->cleans_up = request->cleans_up;
    process->references = 2; /* of the set, and of the command until it is gone */
    process->query.on_context = context_known;
    list_init(&process->watchers);
    process_log_init(&process->log, &set->logs);
    deadline_init(&set->agent->loop, &process->deadline, process_set_deadline_due);
    keep_variables(process, &request->variables);
    if (request->directory)
        process->directory = pool_copy_text(&process->launch, request->directory);
    return process;
}

/* Ids are part of paths, and clients do not escape them. */
static bool is_good_id(const char *id)
{
    size_t length = strnlen(id, PROCESS_ID_MAX + 1);

    if (!length || length > PROCESS_ID_MAX || strcmp(id, "list") == 0 ||
        strcmp(id, "kill-all") == 0 || strcmp(id, ".") == 0 || strcmp(id, "..") == 0)
        return false;
    for (const char *at = id; *at; at++) {
        if ((unsigned char) *at < ' ' || *at == 0x7f || strchr("/?#%\\", *at))
            return false;
    }
    return true;
}

static int refuse_taken(struct api_error *error, const char *id)
{
    struct json_writer json;

    json_document_begin(&json, &error->context);
    json_add_text(&json, "processId", id);
    (void) json_document_end(&json); /* an id is short */
    return api_error_set(error, API_RESOURCE_BUSY, "Process '%.128s' is running already", id);
}

/* Make room for the id and the command. */
static int admit(struct process_set *set, const struct process_request *request,
                 struct api_error *error)
{
    size_t length = strlen(request->command);
    struct process *former;

    if (request->id && !is_good_id(request->id))
        return api_error_field(error, "processId",
                               "must be 1 to 256 characters without any of / ? # % \\ and not a "
                               "word of the API");
    former = request->id ? process_find(set, request->id) : NULL;
    if (former && !process_has_ended(former))
        return refuse_taken(error, request->id);
    if (former)
        process_set_forget(former);
    forget_surplus(set, length);
    if (set->live_count >= PROCESS_LIVE_MAX || set->command_bytes + length > PROCESS_COMMANDS_MAX)
        return api_error_set(error, API_PROCESS_ERROR, "There are too many background processes");
    return 0;
}

struct process *process_start(struct process_set *set, const struct process_request *request,
                              struct api_error *error)
{
    struct process *process;

    if (admit(set, request, error) < 0)
        return NULL;
    process = process_new(set, request);
    list_append(&set->processes, &process->link);
    set->command_bytes += strlen(process->command);
    set->live_count++;
    agent_note_work(set->agent);
    process->asking = true;
    session_ask(set->agent, process->session, &process->query);
    return process;
}

/* --- killing --------------------------------------------------------------------------------- */

static void force(struct process *process)
{
    process->forced = true;
    exec_kill(process->exec);
    deadline_set(&process->deadline, PROCESS_KILL_WAIT_MS);
}

static void process_set_deadline_due(struct deadline *deadline)
{
    struct process *process = CONTAINER_OF(deadline, struct process, deadline);

    if (process->set->agent->stopping)
        return; /* everything was killed, our execs are gone */
    if (!process->killing || !process_is_alive(process)) {
        process_set_forget(process);
    } else if (process->asking) {
        process->asking = false;
        end_unrun(process, 0, LAUNCH_STAGE_MESSAGE);
    } else if (!process->forced) {
        force(process);
    } else { /* its supervisor hangs: there is nothing more to do, but one may try again */
        process->killing = process->forced = false;
        process_set_tell(process, PROCESS_GONE);
    }
}

void process_kill(struct process *process)
{
    if (!process_is_alive(process) || process->killing || process->set->agent->stopping)
        return;
    process->killing = true;
    process->killed = !process_has_ended(process);
    if (process->asking) {
        session_forget(&process->query);
        deadline_set(&process->deadline, 0);
    } else if (!process->pid) {
        force(process); /* nobody is there to heed a signal */
    } else {
        exec_signal_tree(process->exec, SIGTERM);
        deadline_set(&process->deadline, PROCESS_TERM_WAIT_MS);
    }
}

void process_session_deleted(struct agent *agent, const char *session)
{
    LIST_EACH (&agent->processes->processes, at) {
        struct process *process = CONTAINER_OF(at, struct process, link);

        if (strcmp(process->session, session) == 0)
            process_kill(process);
    }
}

/* --- the set --------------------------------------------------------------------------------- */

struct process_set *process_set_new(struct agent *agent)
{
    struct process_set *set = mem_alloc(sizeof(*set));

    set->agent = agent;
    list_init(&set->processes);
    process_log_store_init(&set->logs);
    return set;
}

struct process *process_find(const struct process_set *set, const char *id)
{
    LIST_EACH (&set->processes, at) {
        struct process *process = CONTAINER_OF(at, struct process, link);

        if (strcmp(process->id, id) == 0)
            return process;
    }
    return NULL;
}
