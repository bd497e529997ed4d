#include "mount/bucket_mounter.h"

#include <stdlib.h>
#include <string.h>

#include "base/auto.h"
#include "base/list.h"
#include "base/memory.h"
#include "base/text.h"
#include "mount/bucket_ledger.h"
#include "objects/s3/objects_s3.h"

/* One mount's reads and writes side by side; the kernel's own read-ahead asks for no more. */
#define FOREIGN_THREADS 4
/* Whole files have as many again. There are threads for streams, too, which mounts never use: a
 * thread is made when it is needed. */
#define FOREIGN_THREADS_ALL ((uint64_t) 2 * FOREIGN_THREADS)
#define KEY_MAX             (2 * OBJECTS_KEY_MAX)

struct bucket_mounter {
    struct bucket_mounter_options options;
    struct mounter interface;
    struct bucket_ledger *ledger; /* owned; NULL: there are no buckets of ours */
    struct list sessions;         /* of mounter_session, until whoever began them lets go */
    size_t closing;               /* of them, under way */
    bool is_stopped, is_ledger_stopped, is_ledger_closed;
    void (*stopped)(void *context);
    void *context;
};

/* --- stores of others ------------------------------------------------------------------------ */

/* Nothing is tried again for a check: how long that takes would tell why it failed. */
static struct objects *open_foreign(const struct bucket_mounter *mounter,
                                    const struct mounter_bucket *bucket, bool is_check,
                                    struct error *err)
{
    const struct s3_settings settings = {
        .endpoint = bucket->endpoint,
        .region = bucket->region,
        .bucket = bucket->bucket,
        .access_key = bucket->access_key ? bucket->access_key : "",
        .secret_key = bucket->secret_key ? bucket->secret_key : "",
        .session_token = bucket->session_token,
        .style = bucket->is_virtual_host ? S3_STYLE_VIRTUAL : S3_STYLE_PATH,
        .rules = mounter->options.rules,
        .limits.attempts_max = is_check ? 1 : 0,
    };
    struct objects_backend backend;

    if (objects_s3_backend(&settings, &backend, err) < 0)
        return NULL;
    return objects_new(mounter->options.loop, &backend, FOREIGN_THREADS);
}

/* --- checks ---------------------------------------------------------------------------------- */

struct bucket_mounter_check {
    struct loop_task task;
    struct objects *objects; /* owned; NULL: there was nothing to ask */
    mounter_done *done;
    void *context;
    bool has_failed;
    struct error failure;
};

static void check_end(void *context, const struct error *ignored)
{
    AUTO(free) struct bucket_mounter_check *check = context;

    (void) ignored;
    check->done(check->context, check->has_failed ? &check->failure : NULL);
}

static void check_now(struct loop_task *task)
{
    check_end(CONTAINER_OF(task, struct bucket_mounter_check, task), NULL);
}

static void bucket_mounter_on_listed(void *context, const struct error *failure,
                                     const struct object_list *list)
{
    struct bucket_mounter_check *check = context;

    (void) list;
    if (failure) {
        check->has_failed = true;
        check->failure = *failure;
    }
    objects_close(TAKE_PTR(check->objects), check_end, check);
}

/* A page of one: says whether address, bucket, key and secret are right, and writes nothing. */
static void mounter_check(void *self, const struct mounter_bucket *bucket, mounter_done *done,
                          void *context)
{
    struct bucket_mounter *mounter = self;
    struct bucket_mounter_check *check = mem_alloc(sizeof(*check));
    const struct object_query query = {
        .prefix = bucket->prefix ? bucket->prefix : "", .folders = true, .limit = 1};

    *check = (struct bucket_mounter_check){.done = done, .context = context};
    if (bucket->is_foreign) {
        check->objects = open_foreign(mounter, bucket, true, &check->failure);
        check->has_failed = !check->objects;
    }
    if (check->objects) {
        (void) objects_list(check->objects, &query, bucket_mounter_on_listed, check);
        return;
    }
    loop_task_init(&check->task, check_now);
    loop_defer(mounter->options.loop, &check->task);
}

/* --- sessions -------------------------------------------------------------------------------- */

enum session_state { SESSION_SERVES, SESSION_CLOSES, SESSION_CLOSED };

struct mounter_session {
    struct list link;
    struct bucket_mounter *mounter;
    enum session_state state;
    struct mount_session *session; /* while it serves */
    struct objects *foreign;       /* owned; NULL: the bucket is ours */
    struct bucket_book *book;      /* of one of ours, while it is mounted */
    struct share_claim mount, threads;
    bool is_released; /* whoever began it has asked for its end */
    mounter_done *done;
    void *context;
    struct loop_task task;
    size_t lost;
};

/* Whoever is told may free the mounter, and with it every session that is in its list. */
static void bucket_mounter_tell_end(struct loop_task *task)
{
    AUTO(free)
    struct mounter_session *session = CONTAINER_OF(task, struct mounter_session, task);
    struct error err = ERROR_INIT;

    list_remove(&session->link);
    if (session->lost)
        (void) error_set(&err, ERR_UPSTREAM, 0, "%zu files were not written back", session->lost);
    if (session->done)
        session->done(session->context, session->lost ? &err : NULL);
}

static void check_stopped(struct bucket_mounter *mounter);

static void bucket_mounter_on_counted_out(void *context)
{
    struct bucket_mounter *mounter = context;

    mounter->is_ledger_closed = true;
    check_stopped(mounter);
}

static void check_stopped(struct bucket_mounter *mounter)
{
    void (*stopped)(void *context) = mounter->stopped;

    if (!stopped || mounter->closing)
        return;
    if (mounter->ledger && !mounter->is_ledger_stopped) {
        mounter->is_ledger_stopped = true;
        bucket_ledger_stop(mounter->ledger, bucket_mounter_on_counted_out, mounter);
        return;
    }
    if (mounter->ledger && !mounter->is_ledger_closed)
        return;
    mounter->stopped = NULL;
    stopped(mounter->context);
}

/* What all share: when nothing of it is used any more. */
static void mounter_session_give_back(struct mounter_session *session)
{
    struct bucket_book *book = TAKE_PTR(session->book);

    if (book)
        bucket_book_close(book);
    share_release(&session->threads);
    share_release(&session->mount);
}

static int mounter_session_claim(struct mounter_session *session,
                                 const struct mounter_bucket *bucket, struct error *err)
{
    struct bucket_mounter *mounter = session->mounter;
    struct shares *shares = mounter->options.shares;

    if (share_claim(shares, &bucket->asker, SHARE_MOUNTS, 1, &session->mount, err) < 0)
        return -1;
    if (bucket->is_foreign)
        return share_claim(shares, &bucket->asker, SHARE_MOUNT_THREADS, FOREIGN_THREADS_ALL,
                           &session->threads, err);
    if (!mounter->ledger)
        return error_set(err, ERR_NOT_IMPLEMENTED, 0, "there are no buckets here");
    session->book = bucket_book_open(mounter->ledger, &bucket->asker, bucket->bucket, err);
    return session->book ? 0 : -1;
}

static void store_closed(void *context, const struct error *ignored)
{
    struct mounter_session *session = context;
    struct bucket_mounter *mounter = session->mounter;

    (void) ignored;
    session->state = SESSION_CLOSED;
    mounter_session_give_back(session);
    mounter->closing--;
    if (session->is_released)
        bucket_mounter_tell_end(&session->task);
    check_stopped(mounter);
}

static void bucket_mounter_session_closed(void *context, size_t lost)
{
    struct mounter_session *session = context;

    session->lost = lost;
    if (session->foreign)
        objects_close(TAKE_PTR(session->foreign), store_closed, session);
    else
        store_closed(session, NULL);
}

static void close_session(struct mounter_session *session)
{
    session->state = SESSION_CLOSES;
    session->mounter->closing++;
    mount_session_close(TAKE_PTR(session->session), BUCKET_MOUNTER_PATIENCE_MS,
                        bucket_mounter_session_closed, session);
}

static void mounter_end(void *self, struct mounter_session *session, mounter_done *done,
                        void *context)
{
    struct bucket_mounter *mounter = self;

    session->is_released = true;
    session->done = done;
    session->context = context;
    if (session->state == SESSION_SERVES)
        close_session(session);
    else if (session->state == SESSION_CLOSED)
        loop_defer(mounter->options.loop, &session->task);
}

/* What it is served from, and its keys' beginning. */
static struct objects *mounter_session_open(struct mounter_session *session,
                                            const struct mounter_bucket *bucket,
                                            struct text *prefix, struct error *err)
{
    struct bucket_mounter *mounter = session->mounter;
    const char *folder = bucket->prefix ? bucket->prefix : "";

    if (mounter->is_stopped) {
        (void) error_set(err, ERR_UNAVAILABLE, 0, "the daemon is closing");
        return NULL;
    }
    if (mounter_session_claim(session, bucket, err) < 0)
        return NULL;
    if (!bucket->is_foreign) {
        text_format(prefix, "%s/%s/%s", bucket->owner.text, bucket->bucket, folder);
        return mounter->options.buckets;
    }
    text_append(prefix, folder);
    return session->foreign = open_foreign(mounter, bucket, false, err);
}

static struct mounter_session *mounter_serve(void *self, const struct mounter_bucket *bucket,
                                             int fuse, struct error *err)
{
    struct bucket_mounter *mounter = self;
    AUTO(text) struct text prefix = TEXT_INIT(KEY_MAX);
    AUTO(close) int fd = fuse;
    AUTO(free) struct mounter_session *session = mem_alloc(sizeof(*session));
    struct mount_options options = {
        .read_only = bucket->read_only, .text = bucket->bucket, .asker = bucket->asker};
    struct objects *objects;

    *session = (struct mounter_session){.mounter = mounter};
    loop_task_init(&session->task, bucket_mounter_tell_end);
    objects = mounter_session_open(session, bucket, &prefix, err);
    options.prefix = text_string(&prefix);
    options.book = session->book;
    if (objects)
        session->session =
            mount_session_new(mounter->options.host, objects, &options, TAKE_FD(fd), err);
    if (session->session) {
        list_append(&mounter->sessions, &session->link);
        return TAKE_PTR(session);
    }
    if (session->foreign)
        objects_close(session->foreign, NULL, NULL);
    mounter_session_give_back(session);
    return NULL;
}

/* --- buckets of ours ------------------------------------------------------------------------- */

static void mounter_each_bucket(void *self, mounter_bucket_seen *seen, void *context)
{
    const struct bucket_mounter *mounter = self;

    bucket_ledger_each(mounter->ledger, seen, context);
}

static void mounter_remove_buckets(void *self, const struct id *owner, mounter_done *done,
                                   void *context)
{
    const struct bucket_mounter *mounter = self;

    bucket_ledger_remove(mounter->ledger, owner, done, context);
}

/* --- the mounter ----------------------------------------------------------------------------- */

struct bucket_mounter *bucket_mounter_new(const struct bucket_mounter_options *options)
{
    struct bucket_mounter *mounter = mem_alloc(sizeof(*mounter));

    *mounter = (struct bucket_mounter){
        .options = *options,
        .interface = {.self = mounter,
                      .check = mounter_check,
                      .serve = mounter_serve,
                      .end = mounter_end,
                      .each_bucket = options->buckets ? mounter_each_bucket : NULL,
                      .remove_buckets = options->buckets ? mounter_remove_buckets : NULL},
    };
    list_init(&mounter->sessions);
    if (options->buckets)
        mounter->ledger =
            bucket_ledger_new(options->loop, options->buckets, options->shares, options->log);
    return mounter;
}

void bucket_mounter_stop(struct bucket_mounter *mounter, void (*done)(void *context), void *context)
{
    mounter->is_stopped = true;
    LIST_EACH (&mounter->sessions, at) {
        struct mounter_session *session = CONTAINER_OF(at, struct mounter_session, link);

        if (session->state == SESSION_SERVES)
            close_session(session);
    }
    mounter->stopped = done;
    mounter->context = context;
    check_stopped(mounter);
}

void bucket_mounter_free(struct bucket_mounter *mounter)
{
    if (!mounter)
        return;
    LIST_EACH (&mounter->sessions, at) {
        struct mounter_session *session = CONTAINER_OF(at, struct mounter_session, link);

        loop_task_cancel(&session->task);
        list_remove(&session->link);
        free(session);
    }
    bucket_ledger_free(mounter->ledger);
    free(mounter);
}

const struct mounter *bucket_mounter_interface(const struct bucket_mounter *mounter)
{
    return &mounter->interface;
}
