/* Tasks as others see them: begun, read, listed, undone, deleted; and the module. */
#include "domain/task/task.h"

#include <stdlib.h>
#include <string.h>

#include "base/crash_point.h"
#include "base/memory.h"
#include "domain/domain_change.h"
#include "domain/domain_modules.h"
#include "domain/domain_share.h"
#include "domain/event/event.h"
#include "domain/identity/owner.h"
#include "domain/list_cursor.h"
#include "domain/sandbox/sandbox_set.h"
#include "domain/snapshot/snapshot.h"
#include "domain/task/task_internal.h"

#define SWEEP_EVERY_NS UINT64_C(60000000000)
#define SWEEP_PAGE     16 /* of rows that may have a megabyte */

/* --- memory ------------------------------------------------------------------------------------ */

struct live_task *task_live(const struct domain *domain, const char *id)
{
    struct table_link *at =
        table_find(&domain->tasks_kept->live, table_hash(domain->seed, id, strlen(id)));

    for (; at; at = table_next(at)) {
        struct live_task *live = CONTAINER_OF(at, struct live_task, by_id);

        if (strcmp(live->task.id.text, id) == 0)
            return live;
    }
    return NULL;
}

struct live_task *live_task_new(struct domain *domain, const struct caller *caller)
{
    struct live_task *live = mem_alloc(sizeof(*live));

    live->domain = domain;
    live->caller = *caller;
    live->references = 1; /* of the tables */
    live->lines = (struct text) TEXT_INIT(TASK_CHANGES_MAX);
    list_init(&live->waits);
    list_init(&live->link);
    return live;
}

static void live_task_add(struct live_task *live)
{
    struct tasks *tasks = live->domain->tasks_kept;

    live->by_id.hash = domain_id_hash(live->domain, &live->task.id);
    table_add(&tasks->live, &live->by_id);
    list_append(&tasks->all, &live->link);
    domain_claim_anyway(live->domain, &live->task.owner, SHARE_LIVE_TASKS, 1, &live->claim);
}

void live_task_ref(struct live_task *live)
{
    live->references++;
}

void live_task_unref(struct live_task *live)
{
    if (--live->references)
        return;
    task_call_leave(live);
    if (live->conversation)
        conversation_unref(live->domain, live->conversation);
    task_spec_done(&live->spec);
    task_disown(&live->task);
    text_done(&live->lines);
    json_decref(live->totals);
    free(live->patch);
    free(live);
}

void task_dropped(struct live_task *live)
{
    table_remove(&live->domain->tasks_kept->live, &live->by_id);
    list_remove(&live->link);
    share_release(&live->claim);
    live_task_unref(live);
}

/* --- begun ------------------------------------------------------------------------------------- */

static int task_check(struct domain *domain, const struct caller *caller,
                      const struct task_spec *spec, struct error *err)
{
    if (!domain_is_open(domain, err) || conversation_check_harness(domain, err) < 0)
        return -1;
    if (!caller_may_write(caller))
        return error_set(err, ERR_FORBIDDEN, 0, "this key may not begin tasks");
    if (!spec->text == !spec->parts)
        return error_set(err, ERR_INVALID, 0, "a task needs either 'text' or 'parts'");
    if (spec->sandbox &&
        (spec->image || spec->template || spec->sandbox_name || spec->env || spec->egress))
        return error_set(err, ERR_INVALID, 0,
                         "'image', 'template', 'sandboxName', 'env' and 'egress' are of a new "
                         "sandbox, and 'sandbox' names one that is there");
    return 0;
}

/* The prompt as people read it. */
static char *task_prompt(const struct task_spec *spec)
{
    const struct turn turn = {.input = spec->parts};
    AUTO(text) struct text text = TEXT_INIT(TURN_INPUT_MAX);

    if (spec->text)
        return mem_copy_text(spec->text);
    turn_write_input_text(&turn, &text);
    return text_take(&text);
}

static struct conversation *task_prepare_conversation(struct live_task *live,
                                                      const struct id *sandbox, struct error *err)
{
    const struct task_spec *spec = &live->spec;
    AUTO(text) struct text folder = TEXT_INIT(16384);
    const struct conversation_spec conversation = {
        .title = spec->title,
        .provider = spec->provider,
        .model = spec->model,
        .agent = spec->agent,
        .kind = spec->kind,
        .folder = task_folder(spec, &folder),
        .config = spec->config,
        .command = spec->command,
        .permission = spec->permission,
        .ask_ms = spec->ask_ms ? spec->ask_ms : TASK_ASK_MS,
    };

    return conversation_prepare(live->domain, &live->task.owner, sandbox, &live->task.id,
                                &conversation, err);
}

/* What was wished for, in memory of its own. */
int task_copy_spec(const struct task_spec *spec, struct task_spec *ret_spec, struct error *err)
{
    AUTO(text) struct text text = TEXT_INIT(TASK_SPEC_MAX);
    AUTO(json) json_t *document = NULL;
    struct json_place root;

    if (task_spec_write(spec, &text, err) < 0)
        return -1;
    document = json_read(text_string(&text), text.length, NULL, err);
    if (!document || json_root_object(document, &root, err) < 0)
        return -1;
    return task_spec_read(&root, NULL, ret_spec, err);
}

static void task_fill(struct live_task *live, const struct task_order *order)
{
    const struct task_spec *spec = &live->spec;
    AUTO(text) struct text shown = TEXT_INIT(16384);
    AUTO(free) char *prompt = task_prompt(spec);
    struct task *task = &live->task;

    if (spec->git_url)
        task_git_shown(spec->git_url, &shown);
    task->state = TASK_QUEUED;
    task->cleanup = spec->cleanup;
    task->team = order->team;
    task->schedule = order->schedule;
    task->role = order->role;
    task->title = spec->title ? spec->title : "";
    task->text = prompt;
    task->git_url = spec->git_url ? text_string(&shown) : NULL;
    task->key = spec->key;
    task->answer = "";
    task->provider = spec->provider;
    task->model = spec->model;
    task->error_code = task->error_message = "";
    task->created_ms = domain_wall_ms(live->domain);
    task->deadline_ms = spec->timeout_ms ? task->created_ms + (int64_t) spec->timeout_ms : 0;
    task_own(task);
}

struct live_task *task_prepare(struct domain *domain, const struct caller *caller,
                               const struct task_spec *spec, const struct task_order *order,
                               struct store_transaction *rows, struct error *err)
{
    struct sandbox *sandbox = NULL;
    struct live_task *live;

    if (task_check(domain, caller, spec, err) < 0 ||
        domain_check_share(domain, &caller->owner, SHARE_LIVE_TASKS, 1, err) < 0)
        return NULL;
    if (spec->sandbox && !(sandbox = sandbox_find(domain, caller, spec->sandbox, err)))
        return NULL;
    live = live_task_new(domain, caller);
    live->task.id = id_new();
    live->task.owner = sandbox ? sandbox->owner : caller->owner;
    live->place = order->place;
    live->is_held = order->is_held;
    if (sandbox)
        live->task.sandbox = sandbox->id;
    if (task_copy_spec(spec, &live->spec, err) == 0)
        live->conversation = task_prepare_conversation(live, sandbox ? &sandbox->id : NULL, err);
    if (!live->conversation) {
        live_task_unref(live);
        return NULL;
    }
    conversation_ref(live->conversation);
    live->task.conversation = live->conversation->id;
    task_fill(live, order);
    live_task_add(live);
    task_put_row(rows, live, true);
    conversation_put_row(rows, live->conversation);
    if (!*order->team.text) /* a team says it for all */
        task_add_event(live, rows, "task.created");
    return live;
}

void task_prepared(struct live_task *live)
{
    live->is_kept = true;
    conversation_kept(live->conversation);
    if (live->is_cancelled)
        task_stop(live, live->cancel_code, live->cancel_message);
    else
        task_go(live);
}

struct task_creation {
    struct domain_change base;
    struct live_task *live; /* a reference; NULL: refused */
    char *key;              /* owned, may be NULL */
    task_created *done;
    void *context;
};

static void task_creation_end(struct task_creation *creation, const struct error *failure,
                              const struct task *task, bool is_new)
{
    creation->done(creation->context, failure, task, is_new);
    free(creation->key);
    free(creation);
}

static void task_found_by_key(void *context, const struct error *failure, const struct task *task)
{
    task_creation_end(context, failure, task, false);
}

static void task_is_made(struct domain_change *base, const struct error *failure,
                         const struct store_receipt *receipt)
{
    struct task_creation *creation = CONTAINER_OF(base, struct task_creation, base);
    struct live_task *live = creation->live;

    (void) receipt;
    if (failure && live) {
        conversation_dropped(base->domain, live->conversation);
        task_dropped(live);
    }
    if (failure && live && creation->key && failure->code == ERR_CONFLICT) {
        live_task_unref(live);
        task_read(base->domain, &base->caller, creation->key, true, task_found_by_key, creation);
        return;
    }
    if (!failure) {
        CRASH_POINT("task.kept");
        task_prepared(live);
    }
    task_creation_end(creation, failure, failure ? NULL : &live->task, true);
    if (live)
        live_task_unref(live);
}

void task_create(struct domain *domain, const struct caller *caller, const struct task_spec *spec,
                 task_created *done, void *context)
{
    task_create_scheduled(domain, caller, spec, NULL, done, context);
}

void task_create_scheduled(struct domain *domain, const struct caller *caller,
                           const struct task_spec *spec, const struct id *schedule,
                           task_created *done, void *context)
{
    struct task_creation *creation =
        domain_change_new(sizeof(*creation), domain, caller, task_is_made);
    const struct task_order order = {.schedule = schedule ? *schedule : (struct id){.text = ""}};
    struct store_transaction *rows = store_begin(domain->options.store);

    creation->done = done;
    creation->context = context;
    creation->key = spec->key ? mem_copy_text(spec->key) : NULL;
    creation->live = task_prepare(domain, caller, spec, &order, rows, &creation->base.failure);
    if (!creation->live) {
        store_abandon(rows);
        domain_change_refuse(&creation->base);
        return;
    }
    live_task_ref(creation->live);
    domain_change_commit(&creation->base, rows);
}

/* --- read -------------------------------------------------------------------------------------- */

struct task_reading {
    struct domain *domain;
    struct domain_task task;
    struct caller caller;
    char *id; /* owned */
    bool by_key;
    task_done *done;
    void *context;
};

static void task_reading_end(struct task_reading *reading, const struct error *failure,
                             const struct task *task)
{
    struct error err = ERROR_INIT;

    if (!failure &&
        (!task || !caller_sees_sandbox(&reading->caller, &task->owner, &task->sandbox))) {
        (void) error_set(&err, ERR_NOT_FOUND, 0, "there is no task '%.64s'", reading->id);
        failure = &err;
    }
    reading->done(reading->context, failure, failure ? NULL : task);
    free(reading->id);
    free(reading);
}

static void task_got_row(void *context, const struct error *failure, const struct store_rows *rows)
{
    struct task_reading *reading = context;
    AUTO(pool) struct pool pool = POOL_INIT;
    struct task task;

    if (!failure && rows->count)
        task_from_row(rows->rows[0], &pool, &task);
    task_reading_end(reading, failure, !failure && rows->count ? &task : NULL);
}

static void task_read_now(struct domain_task *deferred)
{
    struct task_reading *reading = CONTAINER_OF(deferred, struct task_reading, task);
    struct live_task *live = reading->by_key ? NULL : task_live(reading->domain, reading->id);
    const struct store_condition by_id[] = {{STORE_TASK_ID, STORE_EQUAL, store_text(reading->id)}};
    const struct store_condition by_key[] = {
        {STORE_TASK_OWNER, STORE_EQUAL, store_text(reading->caller.owner.text)},
        {STORE_TASK_KEY, STORE_EQUAL, store_text(reading->id)}};
    const struct store_query query = {.kind = STORE_TASK,
                                      .conditions = reading->by_key ? by_key : by_id,
                                      .condition_count = reading->by_key ? 2 : 1,
                                      .order = STORE_TASK_ID,
                                      .limit = 1};
    struct task task;

    if (live && live->is_kept && !live->is_ended) {
        task = live->task;
        task.state = task_state_now(live);
        task_reading_end(reading, NULL, &task);
    } else if (!reading->by_key && !id_is_valid(reading->id)) {
        task_reading_end(reading, NULL, NULL);
    } else {
        domain_find(reading->domain, &query, task_got_row, reading);
    }
}

void task_read(struct domain *domain, const struct caller *caller, const char *id, bool by_key,
               task_done *done, void *context)
{
    struct task_reading *reading = mem_alloc(sizeof(*reading));

    *reading = (struct task_reading){.domain = domain,
                                     .caller = *caller,
                                     .id = mem_copy_text(id),
                                     .by_key = by_key,
                                     .done = done,
                                     .context = context};
    list_init(&reading->task.link);
    domain_defer(domain, &reading->task, task_read_now);
}

/* --- listed ------------------------------------------------------------------------------------ */

struct task_listing {
    struct domain *domain;
    struct domain_task task;
    struct caller caller;
    struct list_cursor cursor;
    bool has_cursor;
    size_t limit;
    struct error failure;
    task_list_done *done;
    void *context;
};

static void task_refuse_list(struct domain_task *task)
{
    AUTO(free) struct task_listing *listing = CONTAINER_OF(task, struct task_listing, task);

    listing->done(listing->context, &listing->failure, NULL, 0, NULL);
}

static void task_got_list(void *context, const struct error *failure, const struct store_rows *rows)
{
    AUTO(free) struct task_listing *listing = context;
    AUTO(free) struct task *tasks = NULL;
    AUTO(pool) struct pool pool = POOL_INIT;
    size_t count = 0;
    bool has_more = false;

    tasks = mem_alloc_array((failure ? 0 : rows->count) + 1, sizeof(*tasks));
    for (size_t i = 0; !failure && i < rows->count; i++) {
        struct task *task = &tasks[count];
        const struct live_task *live;

        task_from_row(rows->rows[i], &pool, task);
        live = task_live(listing->domain, task->id.text);
        if (live && !live->is_ended)
            task->state = task_state_now(live);
        if ((listing->has_cursor &&
             !list_cursor_precedes(&listing->cursor, task->created_ms, &task->id)) ||
            !caller_sees_sandbox(&listing->caller, &task->owner, &task->sandbox))
            continue;
        has_more = count == listing->limit;
        if (has_more)
            break;
        count++;
    }
    listing->done(listing->context, failure, tasks, count,
                  has_more
                      ? list_cursor_write(tasks[count - 1].created_ms, &tasks[count - 1].id, &pool)
                      : NULL);
}

#define LIST_MORE 8 /* that may have been made in the same millisecond as the last */

void task_list(struct domain *domain, const struct caller *caller, const struct task_filter *filter,
               task_list_done *done, void *context)
{
    struct task_listing *listing = mem_alloc(sizeof(*listing));
    const struct id *owner = filter->owner ? filter->owner : &caller->owner;
    struct store_condition conditions[STORE_CONDITIONS_MAX];
    struct store_query query = {.kind = STORE_TASK,
                                .conditions = conditions,
                                .order = STORE_TASK_CREATED,
                                .is_descending = true,
                                .limit = filter->limit + LIST_MORE};

    *listing = (struct task_listing){.domain = domain,
                                     .caller = *caller,
                                     .has_cursor = filter->after != NULL,
                                     .limit = filter->limit,
                                     .done = done,
                                     .context = context};
    list_init(&listing->task.link);
    if (filter->after && list_cursor_read(&listing->cursor, filter->after, &listing->failure) < 0) {
        domain_defer(domain, &listing->task, task_refuse_list);
        return;
    }
    if (caller->scope < CALLER_ADMIN || filter->owner)
        conditions[query.condition_count++] =
            (struct store_condition){STORE_TASK_OWNER, STORE_EQUAL, store_text(owner->text)};
    if (filter->team)
        conditions[query.condition_count++] =
            (struct store_condition){STORE_TASK_TEAM, STORE_EQUAL, store_text(filter->team->text)};
    if (filter->schedule)
        conditions[query.condition_count++] = (struct store_condition){
            STORE_TASK_SCHEDULE, STORE_EQUAL, store_text(filter->schedule->text)};
    if (filter->after)
        conditions[query.condition_count++] = (struct store_condition){
            STORE_TASK_CREATED, STORE_LESS, store_integer(listing->cursor.created_ms + 1)};
    domain_find(domain, &query, task_got_list, listing);
}

/* --- undone ------------------------------------------------------------------------------------ */

struct task_undoing {
    struct domain *domain;
    struct caller caller;
    char id[ID_SIZE];
    task_done *done;
    void *context;
};

static void task_undo_end(struct task_undoing *undoing, const struct error *failure,
                          const struct task *task)
{
    undoing->done(undoing->context, failure, task);
    free(undoing);
}

static void task_undo_read(void *context, const struct error *failure, const struct task *task)
{
    task_undo_end(context, failure, task);
}

static void task_rolled_back(void *context, const struct error *failure, struct sandbox *sandbox,
                             struct snapshot *saved)
{
    struct task_undoing *undoing = context;

    (void) sandbox, (void) saved;
    if (failure)
        task_undo_end(undoing, failure, NULL);
    else
        task_read(undoing->domain, &undoing->caller, undoing->id, false, task_undo_read, undoing);
}

static void task_undo_found(void *context, const struct error *failure, const struct task *task)
{
    struct task_undoing *undoing = context;
    struct sandbox *sandbox =
        failure ? NULL : sandbox_set_by_id(undoing->domain, task->sandbox.text);
    struct error err = ERROR_INIT;
    struct snapshot *snapshot = NULL;

    if (failure) {
        task_undo_end(undoing, failure, NULL);
        return;
    }
    memcpy(undoing->id, task->id.text, ID_SIZE);
    if (!task_state_is_over(task->state))
        (void) error_set(&err, ERR_CONFLICT, 0, "the task is not over; cancel it first");
    else if (!sandbox)
        (void) error_set(&err, ERR_CONFLICT, 0, "the sandbox of the task is gone");
    else if (!*task->snapshot.text)
        (void) error_set(&err, ERR_CONFLICT, 0, "there is no snapshot from before the task");
    else
        snapshot = snapshot_find(undoing->domain, &undoing->caller, task->snapshot.text, &err);
    if (snapshot)
        sandbox_roll_back(undoing->domain, &undoing->caller, sandbox, snapshot, task_rolled_back,
                          undoing);
    else
        task_undo_end(undoing, &err, NULL);
}

void task_undo(struct domain *domain, const struct caller *caller, const char *id, task_done *done,
               void *context)
{
    struct task_undoing *undoing = mem_alloc(sizeof(*undoing));

    *undoing = (struct task_undoing){
        .domain = domain, .caller = *caller, .done = done, .context = context};
    task_read(domain, caller, id, false, task_undo_found, undoing);
}

/* --- deleted ----------------------------------------------------------------------------------- */

struct task_deletion {
    struct domain_change base;
    char id[ID_SIZE];
    struct conversation *conversation; /* a reference, or NULL */
    task_done *done;
    void *context;
};

static void task_delete_rows(struct domain *domain, struct store_transaction *rows,
                             const struct id *task, struct conversation *conversation)
{
    domain_delete_rows(rows, STORE_TASK, STORE_TASK_ID, task);
    if (conversation)
        conversation_leave(domain, conversation, rows);
}

static void task_is_deleted(struct domain_change *base, const struct error *failure,
                            const struct store_receipt *receipt)
{
    struct task_deletion *deletion = CONTAINER_OF(base, struct task_deletion, base);

    (void) receipt;
    deletion->done(deletion->context, failure, NULL);
    if (deletion->conversation)
        conversation_unref(base->domain, deletion->conversation);
    free(deletion);
}

static void task_delete_found(void *context, const struct error *failure, const struct task *task)
{
    struct task_deletion *deletion = context;
    struct domain *domain = deletion->base.domain;
    struct error *err = &deletion->base.failure;
    struct store_transaction *rows;
    char data[128];

    if (failure)
        *err = *failure;
    else if (!caller_may_write(&deletion->base.caller))
        (void) error_set(err, ERR_FORBIDDEN, 0, "this key may not delete tasks");
    else if (!task_state_is_over(task->state))
        (void) error_set(err, ERR_CONFLICT, 0, "the task is not over; cancel it first");
    if (err->code) {
        domain_change_refuse(&deletion->base);
        return;
    }
    rows = store_begin(domain->options.store);
    deletion->conversation = conversation_by_id(domain, &task->conversation);
    if (deletion->conversation)
        conversation_ref(deletion->conversation);
    task_delete_rows(domain, rows, &task->id, deletion->conversation);
    (void) snprintf(data, sizeof(data), "{\"taskId\":\"%s\"}", task->id.text);
    event_add(domain, rows, &deletion->base.caller, &task->owner, "system", "task.deleted", data);
    domain_change_commit(&deletion->base, rows);
}

void task_delete(struct domain *domain, const struct caller *caller, const char *id,
                 task_done *done, void *context)
{
    struct task_deletion *deletion =
        domain_change_new(sizeof(*deletion), domain, caller, task_is_deleted);

    deletion->done = done;
    deletion->context = context;
    task_read(domain, caller, id, false, task_delete_found, deletion);
}

/* --- old ones ---------------------------------------------------------------------------------- */

static void tasks_swept(void *context, const struct error *failure,
                        const struct store_receipt *receipt)
{
    struct domain *domain = context;

    (void) failure, (void) receipt;
    domain->tasks_kept->is_sweeping = false;
}

static void tasks_found_old(void *context, const struct error *failure,
                            const struct store_rows *rows)
{
    struct domain *domain = context;
    struct store_transaction *change;

    if (failure || !rows->count || domain->stage != DOMAIN_OPEN) {
        domain->tasks_kept->is_sweeping = false;
        return;
    }
    if (rows->count == SWEEP_PAGE) /* there may be more */
        domain->tasks_kept->sweep_ns = 0;
    change = store_begin(domain->options.store);
    for (size_t i = 0; i < rows->count; i++) {
        const struct id id = domain_row_id(&rows->rows[i][STORE_TASK_ID]);
        const struct id conversation = domain_row_id(&rows->rows[i][STORE_TASK_CONVERSATION]);

        task_delete_rows(domain, change, &id, conversation_by_id(domain, &conversation));
    }
    domain_commit(domain, change, tasks_swept, domain);
}

static void tasks_sweep(struct domain *domain)
{
    struct tasks *tasks = domain->tasks_kept;
    uint64_t now = domain_now_ns(domain);
    const struct store_condition old = {STORE_TASK_ENDED, STORE_LESS,
                                        store_integer(domain_wall_ms(domain) - TASK_KEPT_MS)};
    const struct store_query query = {.kind = STORE_TASK,
                                      .conditions = &old,
                                      .condition_count = 1,
                                      .order = STORE_TASK_ENDED,
                                      .limit = SWEEP_PAGE};

    if (tasks->is_sweeping || now < tasks->sweep_ns)
        return;
    tasks->is_sweeping = true;
    tasks->sweep_ns = now + SWEEP_EVERY_NS;
    domain_find(domain, &query, tasks_found_old, domain);
}

/* --- the module -------------------------------------------------------------------------------- */

static void tasks_begin(struct domain *domain)
{
    domain->tasks_kept = mem_alloc(sizeof(*domain->tasks_kept));
    list_init(&domain->tasks_kept->all);
}

struct caller task_caller_of(const struct id *owner)
{
    return (struct caller){.scope = CALLER_WRITE, .owner = *owner};
}

struct live_task *task_load_row(struct domain *domain, const struct store_value *row)
{
    AUTO(pool) struct pool pool = POOL_INIT;
    AUTO(json) json_t *document = NULL;
    struct conversation *conversation;
    struct json_place root;
    struct live_task *live;
    struct caller caller;
    struct task task;

    task_from_row(row, &pool, &task);
    conversation = conversation_by_id(domain, &task.conversation);
    document = json_read(row[STORE_TASK_SPEC].bytes, row[STORE_TASK_SPEC].length, NULL, NULL);
    if (!conversation || !document || json_root_object(document, &root, NULL) < 0)
        return NULL;
    caller = task_caller_of(&task.owner);
    live = live_task_new(domain, &caller);
    (void) task_spec_read(&root, NULL, &live->spec, NULL);
    live->task = task;
    task_own(&live->task);
    live->place = (unsigned int) row[STORE_TASK_PLACE].integer;
    live->conversation = conversation;
    conversation_ref(conversation);
    live->is_kept = live->is_recovered = true;
    live->is_held = *task.team.text && task.state == TASK_QUEUED;
    live_task_add(live);
    return live;
}

struct tasks_loading {
    struct domain *domain;
    unsigned int at;
    struct id after;
    domain_done *done;
    void *context;
};

static const char *const tasks_loaded[] = {"queued", "preparing", "running"};

static void tasks_load_page(struct tasks_loading *loading);

static void tasks_got_page(void *context, const struct error *failure,
                           const struct store_rows *rows)
{
    struct tasks_loading *loading = context;

    for (size_t i = 0; !failure && i < rows->count; i++) {
        (void) task_load_row(loading->domain, rows->rows[i]);
        loading->after = domain_row_id(&rows->rows[i][STORE_TASK_ID]);
    }
    if (!failure && rows->count < SWEEP_PAGE) {
        loading->at++;
        loading->after = (struct id){.text = ""};
    }
    if (!failure && loading->at < ARRAY_COUNT(tasks_loaded)) {
        tasks_load_page(loading);
        return;
    }
    LIST_EACH (&loading->domain->conversations->all, at) {
        struct conversation *conversation = CONTAINER_OF(at, struct conversation, link);

        conversation->work->is_task_over =
            *conversation->task.text && !task_live(loading->domain, conversation->task.text);
    }
    loading->done(loading->context, failure);
    free(loading);
}

static void tasks_load_page(struct tasks_loading *loading)
{
    const struct store_condition conditions[] = {
        {STORE_TASK_STATE, STORE_EQUAL, store_text(tasks_loaded[loading->at])},
        {STORE_TASK_ID, STORE_GREATER, store_text(loading->after.text)},
    };
    const struct store_query query = {.kind = STORE_TASK,
                                      .conditions = conditions,
                                      .condition_count = ARRAY_COUNT(conditions),
                                      .order = STORE_TASK_ID,
                                      .limit = SWEEP_PAGE};

    domain_find(loading->domain, &query, tasks_got_page, loading);
}

static void tasks_load(struct domain *domain, domain_done *done, void *context)
{
    struct tasks_loading *loading = mem_alloc(sizeof(*loading));

    *loading = (struct tasks_loading){.domain = domain, .done = done, .context = context};
    tasks_load_page(loading);
}

static void tasks_tick(struct domain *domain)
{
    LIST_EACH (&domain->tasks_kept->all, at)
        task_tick_one(CONTAINER_OF(at, struct live_task, link));
    tasks_sweep(domain);
}

/* Its tasks go with it: the sandboxes are gone already. */
static void tasks_owner_deleting(struct domain *domain, struct store_transaction *change,
                                 const struct id *owner)
{
    (void) domain;
    domain_delete_rows(change, STORE_TASK, STORE_TASK_OWNER, owner);
    domain_delete_rows(change, STORE_TEAM, STORE_TEAM_OWNER, owner);
    domain_delete_rows(change, STORE_SCHEDULE, STORE_SCHEDULE_OWNER, owner);
}

static int tasks_owner_check(const struct domain *domain, const struct id *owner, struct error *err)
{
    LIST_EACH (&domain->tasks_kept->all, at)
        if (id_equal(&CONTAINER_OF(at, struct live_task, link)->task.owner, owner))
            return error_set(err, ERR_CONFLICT, 0, "the user has tasks that are not over");
    return 0;
}

static void tasks_end(struct domain *domain)
{
    struct tasks *tasks = domain->tasks_kept;

    if (!tasks)
        return;
    LIST_EACH (&tasks->all, at) {
        struct live_task *live = CONTAINER_OF(at, struct live_task, link);

        live->conversation = NULL; /* they are gone already */
        task_dropped(live);
    }
    table_done(&tasks->live);
    domain->tasks_kept = NULL;
    free(tasks);
}

const struct domain_module domain_tasks = {
    .name = "tasks",
    .begin = tasks_begin,
    .load = tasks_load,
    .recovered = tasks_recovered,
    .owner_check = tasks_owner_check,
    .owner_deleting = tasks_owner_deleting,
    .tick = tasks_tick,
    .closing = tasks_run_closing,
    .end = tasks_end,
};

void task_count(const struct domain *domain, struct task_counters *ret_counters)
{
    *ret_counters = domain->tasks_kept->counters;
    ret_counters->live = domain->tasks_kept->live.count;
}
