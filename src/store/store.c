/* The life of a job on the loop's thread: asked, handed over at the end of the turn, answered. */
#include "store/store.h"

#include <stdlib.h>

#include "base/clock.h"
#include "base/memory.h"
#include "store/store_engine.h"

void store_job_free(struct store_job *job)
{
    pool_done(&job->pool);
    free(job);
}

static const char *const job_names[] = {
    [STORE_JOB_COMMIT] = "commit", [STORE_JOB_FIND] = "find",   [STORE_JOB_BACKUP] = "backup",
    [STORE_JOB_RESEAL] = "reseal", [STORE_JOB_CLOSE] = "close",
};

static void store_report(const struct store_job *job)
{
    LOG_WARNING(job->store->log, "store failed", log_text("action", job_names[job->type]),
                log_text("code", error_code_text(job->failure.code)),
                log_text("error", job->failure.message));
}

static void call_back(struct store_job *job)
{
    const struct error *failure = job->failure.code ? &job->failure : NULL;
    TRACE_AS(&job->trace);

    TRACE_WITH(failure ? "store.failed" : "store.done", job_names[job->type]);
    if (job->type == STORE_JOB_FIND) {
        struct store_rows rows = {job->row_count, (const struct store_value *const *) job->rows};

        job->rows_done(job->context, failure, failure ? NULL : &rows);
    } else if (job->done) {
        struct store_receipt receipt = {job->event_count, job->cursors, job->sequences};

        job->done(job->context, failure, failure ? NULL : &receipt);
    } else if (failure) {
        store_report(job);
    }
}

static void store_count(struct store *store, const struct store_job *job)
{
    if (job->failure.code)
        store->counters.failures++;
    if (job->type == STORE_JOB_FIND)
        store->counters.queries++;
    if (job->type == STORE_JOB_COMMIT && !job->failure.code) {
        store->counters.commits++;
        store->counters.commit_us_total +=
            (clock_monotonic_ns(clock_system()) - job->asked_ns) / 1000;
    }
}

void store_answer(struct store_job *job)
{
    struct store *store = job->store;

    store->counters.queued--;
    store->queued_bytes -= job->bytes;
    for (size_t i = 0; i < job->row_count && !job->failure.code; i++)
        (void) store_unseal_row(job, job->rows[i]);
    store_count(store, job);
    call_back(job);
    store_job_free(job);
}

/* Those that a callback adds wait for the next turn. */
static void answer_refused(struct store *store)
{
    struct list batch;
    struct list *link;

    list_init(&batch);
    while ((link = list_first(&store->refused))) {
        list_remove(link);
        list_append(&batch, link);
    }
    while ((link = list_first(&batch))) {
        struct store_job *job = CONTAINER_OF(link, struct store_job, link);

        list_remove(link);
        store->counters.failures++;
        call_back(job);
        store_job_free(job);
    }
}

void store_gone(struct store *store, struct store_job *closing)
{
    while (!list_is_empty(&store->refused))
        answer_refused(store);
    loop_task_cancel(&store->turn);
    call_back(closing);
    store_job_free(closing);
}

/* At the end of a turn: what was asked for together goes together, and costs one sync. */
static void end_turn(struct loop_task *task)
{
    struct store *store = CONTAINER_OF(task, struct store, turn);

    if (!list_is_empty(&store->asked))
        store->engine->ask(store, &store->asked);
    answer_refused(store);
}

static void store_refuse(struct store_job *job, const char *why)
{
    (void) error_set(&job->failure, ERR_UNAVAILABLE, 0, "the store %s", why);
    list_append(&job->store->refused, &job->link);
}

void store_ask(struct store_job *job)
{
    struct store *store = job->store;

    job->trace = trace_context;
    TRACE_WITH("store.ask", job_names[job->type]);
    if (store->is_closing) {
        store_refuse(job, "is closing");
    } else if (job->type != STORE_JOB_CLOSE && (store->counters.queued >= STORE_QUEUE_MAX ||
                                                store->queued_bytes > STORE_QUEUE_BYTES_MAX)) {
        store_refuse(job, "has too much to do: try again");
    } else {
        store->counters.queued++;
        store->queued_bytes += job->bytes;
        job->asked_ns = clock_monotonic_ns(clock_system());
        list_append(&store->asked, &job->link);
    }
    loop_defer(store->loop, &store->turn);
}

void store_init(struct store *store, const struct store_engine *engine, struct loop *loop,
                struct log *log, const struct keyring *keyring)
{
    *store = (struct store){.engine = engine, .loop = loop, .log = log, .keyring = keyring};
    list_init(&store->asked);
    list_init(&store->refused);
    loop_task_init(&store->turn, end_turn);
}

static int check_query(struct store_job *job, const struct store_query *query)
{
    const struct store_table *table = store_table(query->kind);

    if (query->limit < 1 || query->limit > STORE_ROWS_MAX)
        return error_set(&job->failure, ERR_INVALID, 0, "a limit of %zu rows is not in 1 to %d",
                         query->limit, STORE_ROWS_MAX);
    if (query->order >= table->column_count || table->columns[query->order].flags & STORE_SEALED)
        return error_set(&job->failure, ERR_INVALID, 0, "%s cannot be sorted by column %u",
                         table->name, query->order);
    return store_copy_conditions(job, query->kind, query->conditions, query->condition_count,
                                 &job->query.conditions);
}

void store_find(struct store *store, const struct store_query *query, store_rows_done *done,
                void *context)
{
    struct store_job *job = store_job_new(store, STORE_JOB_FIND, sizeof(*job));

    job->rows_done = done;
    job->context = context;
    job->query = *query;
    (void) check_query(job, query); /* a failure is answered in its turn */
    store_ask(job);
}

static void ask_plain(struct store *store, enum store_job_type type, const char *path,
                      store_done *done, void *context)
{
    struct store_job *job = store_job_new(store, type, sizeof(*job));

    job->done = done;
    job->context = context;
    if (path)
        job->path = pool_copy_text(&job->pool, path);
    store_ask(job);
}

void store_backup(struct store *store, const char *path, store_done *done, void *context)
{
    ask_plain(store, STORE_JOB_BACKUP, path, done, context);
}

void store_reseal(struct store *store, store_done *done, void *context)
{
    ask_plain(store, STORE_JOB_RESEAL, NULL, done, context);
}

void store_close(struct store *store, store_done *done, void *context)
{
    ask_plain(store, STORE_JOB_CLOSE, NULL, done, context);
    store->is_closing = true;
}

void store_counters(const struct store *store, struct store_counters *ret_counters)
{
    *ret_counters = store->counters;
    ret_counters->batches = atomic_load(&store->batches);
    ret_counters->size_bytes = atomic_load(&store->size_bytes);
}
