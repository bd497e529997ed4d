#include "agent/code/code_context.h"

#include <stdio.h>
#include <string.h>

#include "agent/environment.h"
#include "base/encoding/uuid.h"
#include "base/memory.h"
#include "json/json_write.h"

/* A line with code, should every byte need six. */
#define CODE_LINE_MAX ((size_t) 16 * 1024 * 1024)

#define REPLACED                                                                                   \
    "; it did not react to the interrupt, so its process was killed and replaced: variables are "  \
    "gone"

static void pump(struct code_context *context);

struct code_set *code_set_of(struct agent *agent)
{
    struct code_set *set = agent->code;

    if (set)
        return set;
    set = mem_alloc(sizeof(*set));
    set->agent = agent;
    set->server = code_server_new(agent);
    list_init(&set->contexts);
    agent->code = set;
    return set;
}

void code_count(const struct agent *agent, size_t *ret_execs, size_t *ret_running)
{
    struct code_set *set = agent->code;

    *ret_execs = set && code_server_has_exec(set->server) ? 1 : 0;
    *ret_running = 0;
    if (!set)
        return;
    LIST_EACH (&set->contexts, at) {
        const struct code_context *context = CONTAINER_OF(at, struct code_context, link);

        *ret_execs += context->process && code_process_has_exec(context->process);
        *ret_running += context->running != NULL;
    }
}

static void make_id(char ret_id[static CODE_ID_SIZE])
{
    struct uuid uuid = uuid_new();

    _Static_assert(sizeof(uuid.text) == CODE_ID_SIZE, "an id is a UUID");
    memcpy(ret_id, uuid.text, CODE_ID_SIZE);
}

/* --- the end of a context -------------------------------------------------------------------- */

static void deadline_gone(struct deadline *deadline)
{
    struct code_context *context = CONTAINER_OF(deadline, struct code_context, deadline);

    free((void *) (uintptr_t) context->place.directory);
    environment_free((const char **) (uintptr_t) context->place.environment);
    free(context);
}

static void end_run(struct code_context *context, const char *ename, const char *evalue)
{
    struct code_run *run = context->running;

    if (!run)
        return;
    context->running = NULL;
    run->context = NULL;
    agent_note_work(context->set->agent);
    deadline_clear(&context->deadline);
    run->events->on_end(run, ename, evalue);
}

static void refuse_waiting(struct code_context *context, enum api_code code, const char *message)
{
    struct list *link;

    while ((link = list_first(&context->waiting))) {
        struct code_run *run = CONTAINER_OF(link, struct code_run, link);

        list_remove(link);
        context->waiting_count--;
        run->context = NULL;
        run->events->on_refused(run, code, message);
    }
}

static void tell_made(struct code_context *context, enum api_code code, const char *failure)
{
    if (context->on_made)
        context->on_made(context, context->owner, code, failure);
    context->on_made = NULL;
}

/* Its process is none of ours any more. */
static void forget(struct code_context *context, const char *ename, enum api_code code,
                   const char *message)
{
    list_remove(&context->link); /* first: who is told may ask for another */
    context->set->count--;
    tell_made(context, code, message);
    end_run(context, ename, message);
    refuse_waiting(context, code, message);
    deadline_close(&context->deadline, deadline_gone);
}

static void kill_process(struct code_context *context)
{
    if (context->process)
        code_process_kill(context->process);
    context->process = NULL;
    context->is_ready = false;
}

void code_context_delete(struct code_context *context)
{
    kill_process(context);
    forget(context, "ContextDeleted", API_CONTEXT_NOT_FOUND, "The context was deleted");
}

/* --- its process ----------------------------------------------------------------------------- */

static void process_ready(struct code_process *process, void *owner)
{
    struct code_context *context = owner;

    (void) process;
    context->is_ready = true;
    deadline_clear(&context->deadline);
    tell_made(context, API_INTERNAL_ERROR, NULL);
    pump(context);
}

/* What was left behind by earlier code has no listener. */
static void process_wrote(struct code_process *process, void *owner, enum exec_output which,
                          const char *bytes, size_t length)
{
    struct code_context *context = owner;

    (void) process;
    if (context->running && context->running->owner)
        context->running->events->on_output(context->running, which, bytes, length);
}

static void process_said(struct code_process *process, void *owner, const struct code_frame *frame)
{
    struct code_context *context = owner;
    struct code_run *run = context->running;

    (void) process;
    if (!run)
        return;
    if (frame->type != CODE_FRAME_END) {
        if (run->owner)
            run->events->on_frame(run, frame);
        return;
    }
    end_run(context, run->interrupted ? "TimeoutError" : NULL, run->reason);
    pump(context);
}

static void process_ended(struct code_process *process, void *owner, int error)
{
    struct code_context *context = owner;
    bool was_ready = context->is_ready;
    char message[API_MESSAGE_MAX];

    (void) process;
    context->process = NULL;
    context->is_ready = false;
    if (was_ready) {
        forget(context, "ContextTerminated", API_CONTEXT_NOT_FOUND,
               "The context's process has ended, and the context with it");
    } else if (error == -ENOENT || error == -ENOTDIR || error == -EACCES || error == -ELOOP) {
        (void) snprintf(message, sizeof(message), "The context's directory '%.256s': %s",
                        context->place.directory, strerrordesc_np(-error));
        forget(context, NULL, error == -EACCES ? API_PERMISSION_DENIED : API_FILE_NOT_FOUND,
               message);
    } else {
        (void) snprintf(message, sizeof(message), "The %s interpreter did not start%s%s",
                        context->language->name, error ? ": " : "",
                        error ? strerrordesc_np(-error) : "");
        forget(context, NULL, API_INTERPRETER_NOT_READY, message);
    }
}

static const struct code_process_events process_events = {
    .on_ready = process_ready,
    .on_output = process_wrote,
    .on_frame = process_said,
    .on_end = process_ended,
};

static int start_process(struct code_context *context)
{
    struct code_set *set = context->set;
    int r = 0;

    context->process = code_process_start(set->agent, set->server, context->language->interpreter,
                                          &context->place, &process_events, context, &r);
    if (!context->process)
        return r;
    deadline_set(&context->deadline, CODE_START_MS);
    return 0;
}

/* --- time ------------------------------------------------------------------------------------ */

static void interrupt(struct code_context *context)
{
    context->running->interrupted = true;
    code_process_resume(context->process); /* what it says now is short, and must be heard */
    code_process_interrupt(context->process);
    deadline_set(&context->deadline, CODE_INTERRUPT_MS);
}

static void replace_process(struct code_context *context)
{
    struct code_run *run = context->running;
    char reason[sizeof(run->reason) + sizeof(REPLACED)];

    (void) snprintf(reason, sizeof(reason), "%s%s", run->reason, REPLACED);
    kill_process(context);
    end_run(context, "TimeoutError", reason);
    pump(context);
}

static void deadline_due(struct deadline *deadline)
{
    struct code_context *context = CONTAINER_OF(deadline, struct code_context, deadline);
    struct code_run *run = context->running;

    if (!context->is_ready) {
        kill_process(context);
        forget(context, NULL, API_INTERPRETER_NOT_READY, "The interpreter takes too long to start");
    } else if (run && run->interrupted) {
        replace_process(context);
    } else if (run) {
        (void) snprintf(run->reason, sizeof(run->reason), "Execution timed out after %llums",
                        (unsigned long long) run->timeout_ms);
        interrupt(context);
    }
}

/* --- its beginning --------------------------------------------------------------------------- */

static const char **copy_environment(const char *const *environment)
{
    return environment_merge(environment, NULL, 0);
}

struct code_context *code_context_new(struct code_set *set, const struct code_language *language,
                                      const struct code_place *place, struct api_error *error)
{
    const struct code_program *program = code_program_of(language->interpreter);
    struct code_context *context;
    int r;

    if (!code_program_is_installed(program, place->environment)) {
        (void) api_error_set(error, program->missing, "%s", program->missing_text);
        return NULL;
    }
    if (set->count >= CODE_CONTEXTS_MAX) {
        (void) api_error_set(error, API_RESOURCE_BUSY,
                             "There are %d code contexts, which is the limit: delete some",
                             CODE_CONTEXTS_MAX);
        return NULL;
    }
    context = mem_alloc(sizeof(*context));
    make_id(context->id);
    context->set = set;
    context->language = language;
    context->place = (struct code_place){.directory = mem_copy_text(place->directory),
                                         .any_directory = place->any_directory,
                                         .environment = copy_environment(place->environment)};
    context->created_ms = context->used_ms = clock_wall_ms(set->agent->clock);
    list_init(&context->waiting);
    deadline_init(&set->agent->loop, &context->deadline, deadline_due);
    r = start_process(context);
    if (r < 0) {
        deadline_close(&context->deadline, deadline_gone);
        (void) api_error_set(error, API_INTERPRETER_NOT_READY,
                             "The %s interpreter cannot be started: %s", language->name,
                             strerrordesc_np(-r));
        return NULL;
    }
    list_append(&set->contexts, &context->link);
    set->count++;
    return context;
}

struct code_context *code_context_find(const struct code_set *set, const char *id)
{
    LIST_EACH ((struct list *) (uintptr_t) &set->contexts, at) {
        struct code_context *context = CONTAINER_OF(at, struct code_context, link);

        if (strcmp(context->id, id) == 0)
            return context;
    }
    return NULL;
}

struct code_context *code_context_default(struct code_set *set,
                                          const struct code_language *language,
                                          struct api_error *error)
{
    const struct code_place place = {.directory = AGENT_DIRECTORY,
                                     .any_directory = true,
                                     .environment = (const char *const *) set->agent->environment};
    struct code_context *made;

    LIST_EACH (&set->contexts, at) {
        struct code_context *context = CONTAINER_OF(at, struct code_context, link);

        if (context->is_default && context->language == language)
            return context;
    }
    made = code_context_new(set, language, &place, error);
    if (made)
        made->is_default = true;
    return made;
}

/* --- runs ------------------------------------------------------------------------------------ */

static int send_code(struct code_context *context, const struct code_run *run)
{
    AUTO(text) struct text line = TEXT_INIT(CODE_LINE_MAX);
    struct json_writer json;
    int r;

    json_document_begin(&json, &line);
    json_add_text(&json, "code", run->code);
    json_add_text(&json, "language", run->language->name);
    json_end_object(&json);
    r = json_writer_finish(&json);
    if (r == 0)
        code_process_send(context->process, text_string(&line), line.length);
    return r;
}

static void start_run(struct code_context *context, struct code_run *run)
{
    context->running = run;
    context->used_ms = clock_wall_ms(context->set->agent->clock);
    agent_note_work(context->set->agent);
    if (run->timeout_ms)
        deadline_set(&context->deadline, run->timeout_ms);
    if (send_code(context, run) < 0) {
        context->running = NULL;
        run->context = NULL;
        run->events->on_refused(run, API_VALIDATION_FAILED, "The code is too large");
        return;
    }
    run->events->on_start(run);
}

/* Go on with what waits, if it can. */
static void pump(struct code_context *context)
{
    struct list *link;
    int r;

    while (!context->running && (link = list_first(&context->waiting))) {
        if (!context->process) {
            r = start_process(context);
            if (r < 0)
                refuse_waiting(context, API_INTERPRETER_NOT_READY,
                               "The interpreter cannot be started");
            return;
        }
        if (!context->is_ready)
            return;
        list_remove(link);
        context->waiting_count--;
        start_run(context, CONTAINER_OF(link, struct code_run, link));
    }
}

int code_context_run(struct code_context *context, struct code_run *run)
{
    if (context->waiting_count >= CODE_WAITING_MAX)
        return -EBUSY;
    run->context = context;
    run->interrupted = false;
    run->reason[0] = '\0';
    list_append(&context->waiting, &run->link);
    context->waiting_count++;
    pump(context);
    return 0;
}

bool code_run_leave(struct code_run *run)
{
    struct code_context *context = run->context;

    run->owner = NULL;
    if (!context)
        return true;
    if (context->running != run) {
        list_remove(&run->link);
        context->waiting_count--;
        return true;
    }
    if (!run->interrupted) {
        (void) snprintf(run->reason, sizeof(run->reason), "The client has left");
        interrupt(context);
    }
    code_process_resume(context->process);
    return false;
}

void code_run_pause(struct code_run *run)
{
    if (run->context && !run->interrupted)
        code_process_pause(run->context->process);
}

void code_run_resume(struct code_run *run)
{
    if (run->context && run->context->process)
        code_process_resume(run->context->process);
}
