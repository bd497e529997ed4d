/* The thread that owns the connection, and the way to it and back. */
#include "store/store_sqlite.h"

#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/memory.h"
#include "store/store_engine.h"
#include "store/store_sqlite_connection.h"

/* The most that is synced at once, so that nobody waits for a batch without end. */
#define BATCH_MAX 512

/* After this many pages in the log they are moved into the file: the log stays at some megabytes,
 * and a start after a crash is short. */
#define CHECKPOINT_FRAMES 1000

struct store_sqlite {
    struct store store;
    char *path; /* owned */
    char *wal_path;
    pthread_t thread;
    uv_async_t answers;
    struct store_job *closing; /* owned, once it came back */

    pthread_mutex_t lock; /* over the two lists */
    pthread_cond_t more;  /* in the queue */
    struct list queue;    /* for the thread */
    struct list done;     /* for the loop */

    /* The thread's own. */
    struct sqlite_connection connection;
    struct list care_queue; /* backups and resealing, one after the other */
    struct sqlite_care *care;
    struct store_job *close_job;
    bool must_shrink;
};

static struct store_sqlite *sqlite_of(struct store *store)
{
    return CONTAINER_OF(store, struct store_sqlite, store);
}

static void move_all(struct list *from, struct list *to)
{
    struct list *link;

    while ((link = list_first(from))) {
        list_remove(link);
        list_append(to, link);
    }
}

/* --- on the thread ---------------------------------------------------------------------------- */

/* Wait for jobs, unless there is care to take or room to give back meanwhile, and sort them: commits and queries into
 * `batch`, the rest where it belongs. */
static void take_jobs(struct store_sqlite *sqlite, struct list *batch)
{
    struct list *link;

    (void) pthread_mutex_lock(&sqlite->lock);
    while (list_is_empty(&sqlite->queue) && !sqlite->care && !sqlite->close_job &&
           !sqlite->must_shrink)
        (void) pthread_cond_wait(&sqlite->more, &sqlite->lock);
    for (int i = 0; i < BATCH_MAX && (link = list_first(&sqlite->queue)); i++) {
        struct store_job *job = CONTAINER_OF(link, struct store_job, link);

        list_remove(link);
        if (job->type == STORE_JOB_CLOSE)
            sqlite->close_job = job;
        else if (job->type == STORE_JOB_BACKUP || job->type == STORE_JOB_RESEAL)
            list_append(&sqlite->care_queue, link);
        else
            list_append(batch, link);
    }
    (void) pthread_mutex_unlock(&sqlite->lock);
}

static void give_back(struct store_sqlite *sqlite, struct list *finished)
{
    if (list_is_empty(finished))
        return;
    (void) pthread_mutex_lock(&sqlite->lock);
    move_all(finished, &sqlite->done);
    (void) pthread_mutex_unlock(&sqlite->lock);
    (void) uv_async_send(&sqlite->answers);
}

static void store_sqlite_measure(struct store_sqlite *sqlite)
{
    struct stat file, log;
    uint64_t size = stat(sqlite->path, &file) == 0 ? (uint64_t) file.st_size : 0;

    size += stat(sqlite->wal_path, &log) == 0 ? (uint64_t) log.st_size : 0;
    atomic_store(&sqlite->store.size_bytes, size);
}

/* Behind the answers: nobody waits for it but who comes next. A failure is tried again with the
 * next batch, and shows as a log that grows. */
static void checkpoint(struct store_sqlite *sqlite)
{
    struct sqlite_connection *connection = &sqlite->connection;

    if (connection->wal_frames < CHECKPOINT_FRAMES)
        return;
    if (sqlite3_wal_checkpoint_v2(connection->db, NULL, SQLITE_CHECKPOINT_PASSIVE, NULL, NULL) ==
        SQLITE_OK)
        connection->wal_frames = 0;
}

static void begin_care(struct store_sqlite *sqlite)
{
    struct list *link = list_first(&sqlite->care_queue);

    if (sqlite->care || !link)
        return;
    list_remove(link);
    sqlite->care = sqlite_care_new(&sqlite->connection, CONTAINER_OF(link, struct store_job, link));
}

/* One step. Afterwards there is care exactly while there is more to do. */
static void take_care(struct store_sqlite *sqlite, struct list *finished)
{
    struct store_job *job;

    begin_care(sqlite);
    job = sqlite->care ? sqlite_care_step(sqlite->care) : NULL;
    if (!job)
        return;
    list_append(finished, &job->link);
    sqlite->care = NULL;
    begin_care(sqlite);
}

static void *run_thread(void *data)
{
    struct store_sqlite *sqlite = data;
    struct list batch, finished;

    list_init(&batch);
    list_init(&finished);
    do {
        take_jobs(sqlite, &batch);
        atomic_fetch_add(&sqlite->store.batches,
                         sqlite_batch_run(&sqlite->connection, &batch, &finished));
        give_back(sqlite, &finished);
        take_care(sqlite, &finished);
        give_back(sqlite, &finished);
        /* A copy that is being made would begin anew. */
        sqlite->must_shrink = !sqlite->care && sqlite_connection_shrink(&sqlite->connection);
        checkpoint(sqlite);
        store_sqlite_measure(sqlite);
    } while (!sqlite->close_job || sqlite->care);
    sqlite_connection_close(&sqlite->connection);
    list_append(&finished, &sqlite->close_job->link);
    give_back(sqlite, &finished);
    return NULL;
}

/* --- on the loop ------------------------------------------------------------------------------ */

static void on_closed(uv_handle_t *handle)
{
    struct store_sqlite *sqlite = handle->data;

    store_gone(&sqlite->store, sqlite->closing);
    (void) pthread_cond_destroy(&sqlite->more);
    (void) pthread_mutex_destroy(&sqlite->lock);
    free(sqlite->wal_path);
    free(sqlite->path);
    free(sqlite);
}

static void on_answers(uv_async_t *handle)
{
    struct store_sqlite *sqlite = handle->data;
    struct list finished;
    struct list *link;

    list_init(&finished);
    (void) pthread_mutex_lock(&sqlite->lock);
    move_all(&sqlite->done, &finished);
    (void) pthread_mutex_unlock(&sqlite->lock);
    while ((link = list_first(&finished))) {
        struct store_job *job = CONTAINER_OF(link, struct store_job, link);

        list_remove(link);
        if (job->type != STORE_JOB_CLOSE) {
            store_answer(job);
            continue;
        }
        sqlite->closing = job; /* the last there is */
        (void) pthread_join(sqlite->thread, NULL);
        uv_close((uv_handle_t *) handle, on_closed);
    }
    /* A store that has nothing to do keeps no loop running. */
    if (!sqlite->closing && sqlite->store.counters.queued == 0)
        uv_unref((uv_handle_t *) handle);
}

static void store_sqlite_ask(struct store *store, struct list *jobs)
{
    struct store_sqlite *sqlite = sqlite_of(store);

    (void) pthread_mutex_lock(&sqlite->lock);
    move_all(jobs, &sqlite->queue);
    (void) pthread_mutex_unlock(&sqlite->lock);
    (void) pthread_cond_signal(&sqlite->more);
    uv_ref((uv_handle_t *) &sqlite->answers);
}

static const struct store_engine engine = {.ask = store_sqlite_ask};

/* Signals are for the loop's thread. */
static int start_thread(struct store_sqlite *sqlite)
{
    sigset_t all, before;
    int r;

    (void) sigfillset(&all);
    (void) pthread_sigmask(SIG_SETMASK, &all, &before);
    r = pthread_create(&sqlite->thread, NULL, run_thread, sqlite);
    (void) pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (r == 0)
        (void) pthread_setname_np(sqlite->thread, "store"); /* for ps; nothing depends on it */
    return -r;
}

static char *wal_path_of(const char *path)
{
    AUTO(text) struct text text = TEXT_INIT(strlen(path) + 8);

    text_format(&text, "%s-wal", path);
    return text_take(&text);
}

struct store *store_sqlite_new(const struct store_sqlite_options *options, struct error *err)
{
    unsigned int flags = options->skip_integrity_check ? SQLITE_CONNECTION_UNCHECKED : 0;
    struct store_sqlite *sqlite = mem_alloc(sizeof(*sqlite));
    int r;

    if (sqlite_connection_open(&sqlite->connection, options->path, flags, err) < 0) {
        free(sqlite);
        return NULL;
    }
    store_init(&sqlite->store, &engine, options->loop, options->log, options->keyring);
    sqlite->path = mem_copy_text(options->path);
    sqlite->wal_path = wal_path_of(options->path);
    list_init(&sqlite->queue);
    list_init(&sqlite->done);
    list_init(&sqlite->care_queue);
    (void) pthread_mutex_init(&sqlite->lock, NULL);
    (void) pthread_cond_init(&sqlite->more, NULL);
    store_sqlite_measure(sqlite);
    r = uv_async_init(&options->loop->uv, &sqlite->answers, on_answers);
    sqlite->answers.data = sqlite;
    uv_unref((uv_handle_t *) &sqlite->answers);
    if (r == 0)
        r = start_thread(sqlite);
    if (r < 0) /* no descriptor or no thread at the start of a program: nothing to go on with */
        abort();
    return &sqlite->store;
}
