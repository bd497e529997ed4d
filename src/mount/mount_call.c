#include "mount/mount_call.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/auto.h"
#include "base/memory.h"
#include "base/pool.h"

#define LOG_EVERY_MS 1000

struct mount_call {
    struct list link;
    struct mount_calls *calls; /* NULL: given up, only the store's answer is missing */
    struct objects_call *asked;
    struct mount_ask ask;
    struct pool pool; /* of the ask's texts */
    uint64_t moved;   /* loop_now() when something did */
    uint64_t bytes;   /* of a get_file, as far as it was seen */
    struct bucket_put put;
    mount_call_done *done;
    void *context;
};

static void start_waiting(struct loop_task *task);

void mount_calls_init(struct mount_calls *calls, struct loop *loop, struct objects *objects,
                      struct log *log)
{
    *calls = (struct mount_calls){
        .loop = loop, .objects = objects, .log = log, .patience_ms = MOUNT_PATIENCE_MS};
    list_init(&calls->running);
    list_init(&calls->waiting);
    list_init(&calls->asking);
    loop_task_init(&calls->next, start_waiting);
}

/* --- answers --------------------------------------------------------------------------------- */

static int errno_of(enum err_code code)
{
    static const struct {
        enum err_code code;
        int system;
    } rows[] = {
        {ERR_NOT_FOUND, ENOENT},
        {ERR_GONE, ENOENT},
        {ERR_FORBIDDEN, EACCES},
        {ERR_UNAUTHENTICATED, EACCES},
        {ERR_CONFLICT, ESTALE},
        {ERR_RANGE, ERANGE},
        {ERR_INVALID, EINVAL},
        {ERR_TOO_LARGE, EFBIG},
        {ERR_NO_SPACE, ENOSPC},
        {ERR_QUOTA, EDQUOT},
        {ERR_UPSTREAM_TIMEOUT, ETIMEDOUT},
    };

    for (size_t i = 0; i < ARRAY_COUNT(rows); i++) {
        if (rows[i].code == code)
            return -rows[i].system;
    }
    return -EIO;
}

/* Not every answer is news: that something is not there, or not any more, is an ordinary one. */
static void mount_call_note_failure(struct mount_calls *calls, const struct mount_call *call,
                                    const char *why)
{
    uint64_t now = loop_now(calls->loop);

    calls->failures++;
    if (calls->logged && now - calls->logged < LOG_EVERY_MS) {
        calls->unlogged++;
        return;
    }
    LOG_WARNING(calls->log, "the store failed a mount", log_text("object", call->ask.key),
                log_text("reason", why), log_number("unlogged", (int64_t) calls->unlogged));
    calls->unlogged = 0;
    calls->logged = now;
}

static void free_call(struct mount_call *call)
{
    pool_done(&call->pool);
    free(call);
}

/* Out of the lists; it is no longer the mount's. */
static void detach(struct mount_call *call)
{
    struct mount_calls *calls = call->calls;

    list_remove(&call->link);
    if (call->asked)
        calls->running_count--;
    call->calls = NULL;
    if (!list_is_empty(&calls->waiting))
        loop_defer(calls->loop, &calls->next);
}

static void mount_call_finish(struct mount_call *call, const struct error *failure,
                              const struct mount_answer *answer)
{
    struct mount_calls *calls = call->calls;
    int result = failure ? errno_of(failure->code) : 0;

    bucket_put_end(&call->put, !failure);
    if (calls) {
        if (calls->book && !failure && call->ask.kind == MOUNT_CALL_DELETE)
            bucket_book_freed(calls->book, call->ask.replaces);
        if (calls->book && !failure && call->ask.kind == MOUNT_CALL_COPY)
            bucket_book_freed(calls->book, 0);
        if (failure && result != -ENOENT && result != -ESTALE && result != -ERANGE)
            mount_call_note_failure(calls, call, failure->message);
        detach(call);
        call->done(call->context, result, failure ? NULL : answer);
    }
    free_call(call);
}

static void mount_call_on_done(void *context, const struct error *failure)
{
    mount_call_finish(context, failure, &(struct mount_answer){.info = NULL});
}

static void on_info(void *context, const struct error *failure, const struct object_info *info)
{
    mount_call_finish(context, failure, &(struct mount_answer){.info = info});
}

static void mount_call_on_bytes(void *context, const struct error *failure, const void *bytes,
                                size_t length, const struct object_info *info)
{
    mount_call_finish(context, failure,
                      &(struct mount_answer){.info = info, .bytes = bytes, .length = length});
}

static void on_list(void *context, const struct error *failure, const struct object_list *list)
{
    mount_call_finish(context, failure, &(struct mount_answer){.list = list});
}

static void on_progress(void *context, uint64_t done_bytes)
{
    struct mount_call *call = context;

    (void) done_bytes;
    if (call->calls)
        call->moved = loop_now(call->calls->loop);
}

/* --- asking ---------------------------------------------------------------------------------- */

static struct objects_call *ask_put(struct mount_call *call, struct objects *objects)
{
    const struct mount_ask *ask = &call->ask;
    struct object_put_options options = {
        .only_new = ask->only_new, .media_type = ask->media_type, .progress = on_progress};
    struct mount_marks_text text;

    if (ask->marks) {
        mount_marks_write(ask->marks, &text);
        options.metadata = text.pairs;
        options.metadata_count = MOUNT_MARKS_COUNT;
    }
    if (ask->kind == MOUNT_CALL_PUT_FILE)
        return objects_put_file(objects, ask->key, ask->file, &options, on_info, call);
    return objects_put_bytes(objects, ask->key, ask->bytes, ask->length, &options, on_info, call);
}

static struct objects_call *ask_store(struct mount_call *call, struct objects *objects)
{
    const struct mount_ask *ask = &call->ask;
    struct object_query query = {
        .prefix = ask->key, .folders = ask->folders, .after = ask->after, .limit = ask->limit};

    switch (ask->kind) {
    case MOUNT_CALL_HEAD:
        return objects_head(objects, ask->key, on_info, call);
    case MOUNT_CALL_GET:
        return objects_get_bytes(objects, ask->key, &ask->range, ask->tag, mount_call_on_bytes,
                                 call);
    case MOUNT_CALL_GET_FILE:
        return objects_get_file(objects, ask->key, ask->file, NULL, on_info, call);
    case MOUNT_CALL_COPY:
        return objects_copy(objects, ask->key, ask->to, on_info, call);
    case MOUNT_CALL_DELETE:
        return objects_delete(objects, ask->keys, ask->key_count, mount_call_on_done, call);
    case MOUNT_CALL_LIST:
        return objects_list(objects, &query, on_list, call);
    default:
        return ask_put(call, objects);
    }
}

static void mount_call_begin(struct mount_call *call)
{
    struct mount_calls *calls = call->calls;

    list_remove(&call->link);
    list_append(&calls->running, &call->link);
    calls->running_count++;
    calls->calls++;
    call->asked = ask_store(call, calls->objects);
}

static void start_waiting(struct loop_task *task)
{
    struct mount_calls *calls = CONTAINER_OF(task, struct mount_calls, next);
    struct list *first;

    if (calls->is_over) {
        mount_calls_end(calls);
        return;
    }
    while (calls->running_count < MOUNT_CALLS_MAX && (first = list_first(&calls->waiting)))
        mount_call_begin(CONTAINER_OF(first, struct mount_call, link));
}

static const char *mount_call_copy_text(struct pool *pool, const char *text)
{
    return text ? pool_copy_text(pool, text) : NULL;
}

static void copy_ask(struct mount_call *call, const struct mount_ask *ask)
{
    struct mount_ask *own = &call->ask;

    *own = *ask;
    own->key = mount_call_copy_text(&call->pool, ask->key);
    own->to = mount_call_copy_text(&call->pool, ask->to);
    own->tag = mount_call_copy_text(&call->pool, ask->tag);
    own->after = mount_call_copy_text(&call->pool, ask->after);
    if (ask->length)
        own->bytes = pool_copy_bytes(&call->pool, ask->bytes, ask->length);
    if (ask->marks) {
        struct mount_marks *marks = pool_alloc(&call->pool, sizeof(*marks));

        *marks = *ask->marks;
        own->marks = marks;
    }
    if (ask->key_count) {
        const char **keys = pool_alloc(&call->pool, ask->key_count * sizeof(*keys));

        for (size_t i = 0; i < ask->key_count; i++)
            keys[i] = pool_copy_text(&call->pool, ask->keys[i]);
        own->keys = keys;
        own->key = keys[0]; /* for the log */
    }
}

static bool mount_call_is_put(const struct mount_call *call)
{
    return call->ask.kind == MOUNT_CALL_PUT || call->ask.kind == MOUNT_CALL_PUT_FILE;
}

static void mount_call_queue(struct mount_call *call)
{
    list_remove(&call->link);
    list_append(&call->calls->waiting, &call->link);
    loop_defer(call->calls->loop, &call->calls->next);
}

static void mount_call_told(struct bucket_put *put, const struct error *refused)
{
    struct mount_call *call = CONTAINER_OF(put, struct mount_call, put);

    if (refused)
        mount_call_finish(call, refused, NULL);
    else
        mount_call_queue(call);
}

/* Whether it may go on now. */
static bool mount_call_may_put(struct mount_call *call)
{
    uint64_t length = call->ask.length;
    struct stat stat;

    if (!call->calls->book || !mount_call_is_put(call))
        return true;
    if (call->ask.kind == MOUNT_CALL_PUT_FILE && fstat(call->ask.file, &stat) == 0)
        length = (uint64_t) stat.st_size;
    call->put.told = mount_call_told;
    return bucket_put_begin(&call->put, call->calls->book, length, call->ask.replaces);
}

void mount_call_start(struct mount_calls *calls, const struct mount_ask *ask, mount_call_done *done,
                      void *context)
{
    struct mount_call *call = mem_alloc(sizeof(*call));

    *call = (struct mount_call){.calls = calls,
                                .pool = POOL_INIT,
                                .moved = loop_now(calls->loop),
                                .done = done,
                                .context = context};
    copy_ask(call, ask);
    list_init(&call->link);
    if (mount_call_may_put(call))
        mount_call_queue(call);
    else
        list_append(&calls->asking, &call->link);
}

/* --- giving up ------------------------------------------------------------------------------- */

/* The mount goes on without the answer; `call` is gone, or is when the store answers after all. */
static void mount_call_give_up(struct mount_call *call, int result)
{
    struct objects_call *asked = call->asked;
    mount_call_done *done = call->done;
    void *context = call->context;

    detach(call);
    if (asked) { /* it may be there all the same: its answer says so */
        objects_cancel(asked);
    } else {
        bucket_put_end(&call->put, false);
        free_call(call);
    }
    done(context, result, NULL);
}

/* The store tells of its puts; of what it fetches the file tells. */
static bool has_moved(struct mount_call *call, uint64_t now)
{
    struct stat stat;

    if (call->ask.kind == MOUNT_CALL_GET_FILE && call->asked && fstat(call->ask.file, &stat) == 0 &&
        (uint64_t) stat.st_size != call->bytes) {
        call->bytes = (uint64_t) stat.st_size;
        call->moved = now;
    }
    return now - call->moved < call->calls->patience_ms;
}

static struct mount_call *find_stuck(struct list *list, uint64_t now)
{
    LIST_EACH (list, at) {
        struct mount_call *call = CONTAINER_OF(at, struct mount_call, link);

        if (!has_moved(call, now))
            return call;
    }
    return NULL;
}

void mount_calls_look(struct mount_calls *calls)
{
    uint64_t now = loop_now(calls->loop);
    struct mount_call *call;

    while ((call = find_stuck(&calls->running, now)) || (call = find_stuck(&calls->waiting, now)) ||
           (call = find_stuck(&calls->asking, now))) {
        calls->timeouts++;
        mount_call_note_failure(calls, call, "it does not answer");
        mount_call_give_up(call, -ETIMEDOUT);
    }
}

void mount_calls_end(struct mount_calls *calls)
{
    struct list *first;

    calls->is_over = true;
    while ((first = list_first(&calls->running)) || (first = list_first(&calls->waiting)) ||
           (first = list_first(&calls->asking)))
        mount_call_give_up(CONTAINER_OF(first, struct mount_call, link), -ESHUTDOWN);
}

void mount_calls_done(struct mount_calls *calls)
{
    loop_task_cancel(&calls->next);
}
