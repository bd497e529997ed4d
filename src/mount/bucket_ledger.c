#include "mount/bucket_ledger.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/auto.h"
#include "base/memory.h"
#include "base/text.h"

#define LOOK_EVERY_MS 1000
#define PREFIX_SIZE   (sizeof(struct id) + BUCKET_LEDGER_NAME + 2)

struct bucket_ledger {
    struct loop *loop; /* borrowed, as the next three */
    struct objects *objects;
    struct shares *shares;
    struct log *log;
    struct list books;
    struct bucket_count *count; /* under way; NULL: none */
    struct loop_task resolve;   /* who waits in a book that was counted is told */
    uv_timer_t timer;
    bool is_counted; /* all of it, once */
    bool is_stopped;
    void (*stopped)(void *context);
    void *context;
};

struct bucket_book {
    struct list link;
    struct bucket_ledger *ledger;
    struct share_asker asker;
    size_t mounts;
    uint64_t used;
    uint64_t seen;       /* by the count that is under way */
    uint64_t added;      /* by puts that ended while it was */
    struct list putting; /* of bucket_put: they may */
    struct list waiting; /* of bucket_put: until it is counted, and they are told */
    bool is_changed;     /* since the last count */
    bool is_being_counted;
    uint64_t counts_begun, counts_done;
    uint64_t changed_ms; /* loop_now() */
    uint64_t counted_ms, took_ms;
    struct share_claim bucket, bytes;
    char name[];
};

static bool bucket_ledger_is_owner(const struct id *a, const struct id *b)
{
    return strcmp(a->text, b->text) == 0;
}

static uint64_t bucket_ledger_charge(uint64_t length)
{
    if (length == 0)
        return BUCKET_LEDGER_STEP;
    return (length + BUCKET_LEDGER_STEP - 1) / BUCKET_LEDGER_STEP * BUCKET_LEDGER_STEP;
}

/* --- books ----------------------------------------------------------------------------------- */

static struct bucket_book *bucket_book_find(const struct bucket_ledger *ledger,
                                            const struct id *owner, const char *name)
{
    LIST_EACH (&ledger->books, at) {
        struct bucket_book *book = CONTAINER_OF(at, struct bucket_book, link);

        if (bucket_ledger_is_owner(&book->asker.owner, owner) && strcmp(book->name, name) == 0)
            return book;
    }
    return NULL;
}

static struct bucket_book *bucket_book_new(struct bucket_ledger *ledger,
                                           const struct share_asker *asker, const char *name)
{
    struct bucket_book *book = mem_alloc(sizeof(*book) + strlen(name) + 1);

    *book = (struct bucket_book){.ledger = ledger, .asker = *asker};
    memcpy(book->name, name, strlen(name) + 1);
    list_init(&book->putting);
    list_init(&book->waiting);
    list_append(&ledger->books, &book->link);
    share_claim_anyway(ledger->shares, asker, SHARE_STORAGE, 0, &book->bytes);
    return book;
}

static void bucket_book_free(struct bucket_book *book)
{
    list_remove(&book->link);
    share_release(&book->bucket);
    share_release(&book->bytes);
    free(book);
}

static void bucket_book_set(struct bucket_book *book, uint64_t used)
{
    book->used = used;
    share_claim_set(&book->bytes, used);
}

/* A bucket that has nothing, and that nobody has mounted, is none. */
static void bucket_book_drop_unused(struct bucket_book *book)
{
    if (book->mounts == 0 && book->used == 0 && !book->is_being_counted &&
        list_is_empty(&book->putting) && list_is_empty(&book->waiting))
        bucket_book_free(book);
}

static void bucket_book_changed(struct bucket_book *book)
{
    if (!book->is_changed)
        book->changed_ms = loop_now(book->ledger->loop);
    book->is_changed = true;
}

struct bucket_book *bucket_book_open(struct bucket_ledger *ledger, const struct share_asker *asker,
                                     const char *name, struct error *err)
{
    struct bucket_book *book = bucket_book_find(ledger, &asker->owner, name);

    if (!book) {
        struct share_claim bucket = SHARE_CLAIM_NONE;

        if (share_claim(ledger->shares, asker, SHARE_BUCKETS, 1, &bucket, err) < 0)
            return NULL;
        book = bucket_book_new(ledger, asker, name);
        book->bucket = bucket;
        bucket_book_changed(book); /* it may have objects all the same */
    }
    book->asker = *asker;
    share_note(ledger->shares, asker);
    book->mounts++;
    return book;
}

void bucket_book_close(struct bucket_book *book)
{
    book->mounts--;
    bucket_book_drop_unused(book);
}

void bucket_book_freed(struct bucket_book *book, uint64_t length)
{
    uint64_t less = length ? bucket_ledger_charge(length) : 0;

    bucket_book_set(book, book->used > less ? book->used - less : 0);
    bucket_book_changed(book);
}

/* --- counting -------------------------------------------------------------------------------- */

/* A walk over all keys with a prefix: the whole store, or one bucket. */
struct bucket_count {
    struct bucket_ledger *ledger; /* NULL: it was stopped */
    struct objects_call *call;
    bool is_whole;
    uint64_t begun_ms;
    char prefix[PREFIX_SIZE];
};

static void bucket_count_page(struct bucket_count *count, const char *after);

/* "<owner>/<name>/...". What is not so is no bucket's. */
static struct bucket_book *bucket_book_of_key(struct bucket_ledger *ledger, const char *key)
{
    const char *name = strchr(key, '/'), *end = name ? strchr(name + 1, '/') : NULL;
    struct share_asker asker = {.is_bare = true};
    char text[BUCKET_LEDGER_NAME];
    struct bucket_book *book;

    if (!end || (size_t) (name - key) >= sizeof(asker.owner.text) ||
        (size_t) (end - name) > sizeof(text))
        return NULL;
    (void) snprintf(asker.owner.text, sizeof(asker.owner.text), "%.*s", (int) (name - key), key);
    (void) snprintf(text, sizeof(text), "%.*s", (int) (end - name - 1), name + 1);
    book = bucket_book_find(ledger, &asker.owner, text);
    if (book)
        return book;
    book = bucket_book_new(ledger, &asker, text);
    share_claim_anyway(ledger->shares, &asker, SHARE_BUCKETS, 1, &book->bucket);
    book->is_being_counted = true;
    return book;
}

static bool bucket_count_is_of(const struct bucket_count *count, const struct bucket_book *book)
{
    char prefix[PREFIX_SIZE];

    (void) snprintf(prefix, sizeof(prefix), "%s/%s/", book->asker.owner.text, book->name);
    return count->is_whole || strcmp(prefix, count->prefix) == 0;
}

/* What is on its way, and what came while it was counted, may or may not have been seen. */
static void bucket_book_counted(struct bucket_book *book, const struct bucket_count *count)
{
    struct bucket_ledger *ledger = book->ledger;
    uint64_t used = book->seen + book->added;

    LIST_EACH (&book->putting, at)
        used += CONTAINER_OF(at, struct bucket_put, link)->grows;
    book->is_being_counted = false;
    book->counts_done = book->counts_begun;
    book->counted_ms = loop_now(ledger->loop);
    book->took_ms = book->counted_ms - count->begun_ms;
    bucket_book_set(book, used);
    if (book->added || !list_is_empty(&book->putting))
        bucket_book_changed(book); /* counted twice, perhaps: once more, when it is calm */
    bucket_book_drop_unused(book);
}

/* All that it was of are known anew, or shall be counted again. */
static void bucket_count_settle(struct bucket_count *count, const struct error *failure)
{
    struct bucket_ledger *ledger = count->ledger;

    ledger->count = NULL;
    LIST_EACH (&ledger->books, at) {
        struct bucket_book *book = CONTAINER_OF(at, struct bucket_book, link);

        if (!bucket_count_is_of(count, book) || !book->is_being_counted)
            continue;
        if (failure) {
            book->is_being_counted = false;
            bucket_book_changed(book);
        } else {
            bucket_book_counted(book, count);
        }
    }
    ledger->is_counted |= count->is_whole && !failure;
    if (failure)
        LOG_WARNING(ledger->log, "buckets could not be counted, and are counted again later",
                    log_text("error", failure->message));
    loop_defer(ledger->loop, &ledger->resolve);
}

static void bucket_count_end(struct bucket_count *count, const struct error *failure)
{
    if (count->ledger)
        bucket_count_settle(count, failure);
    free(count);
}

static void bucket_count_on_page(void *context, const struct error *failure,
                                 const struct object_list *list)
{
    struct bucket_count *count = context;

    count->call = NULL;
    for (size_t i = 0; count->ledger && !failure && i < list->count; i++) {
        struct bucket_book *book = bucket_book_of_key(count->ledger, list->entries[i].key);

        if (book && book->is_being_counted)
            book->seen += bucket_ledger_charge(list->entries[i].size);
    }
    if (count->ledger && !failure && list->next)
        bucket_count_page(count, list->next);
    else
        bucket_count_end(count, failure);
}

static void bucket_count_page(struct bucket_count *count, const char *after)
{
    const struct object_query query = {
        .prefix = count->prefix, .after = after, .limit = OBJECTS_PAGE_MAX};

    count->call = objects_list(count->ledger->objects, &query, bucket_count_on_page, count);
}

/* `only` NULL: all. */
static void bucket_count_begin(struct bucket_ledger *ledger, struct bucket_book *only)
{
    struct bucket_count *count = mem_alloc(sizeof(*count));

    *count = (struct bucket_count){
        .ledger = ledger, .is_whole = !only, .begun_ms = loop_now(ledger->loop)};
    if (only)
        (void) snprintf(count->prefix, sizeof(count->prefix), "%s/%s/", only->asker.owner.text,
                        only->name);
    ledger->count = count;
    LIST_EACH (&ledger->books, at) {
        struct bucket_book *book = CONTAINER_OF(at, struct bucket_book, link);

        if (only && book != only)
            continue;
        book->is_being_counted = true;
        book->is_changed = false;
        book->counts_begun++;
        book->seen = book->added = 0;
    }
    bucket_count_page(count, NULL);
}

/* Its last count is old enough to be taken again, by what it cost. */
static bool bucket_book_may_be_counted(const struct bucket_book *book)
{
    uint64_t now = loop_now(book->ledger->loop);
    uint64_t ease = BUCKET_LEDGER_EASE * book->took_ms;

    if (ease > BUCKET_LEDGER_EASE_MAX)
        ease = BUCKET_LEDGER_EASE_MAX;
    return book->is_changed && (!book->counted_ms || now - book->counted_ms >= ease);
}

static void bucket_ledger_look(uv_timer_t *timer)
{
    struct bucket_ledger *ledger = CONTAINER_OF(timer, struct bucket_ledger, timer);
    uint64_t now = loop_now(ledger->loop);

    if (ledger->count || ledger->is_stopped)
        return;
    if (!ledger->is_counted) {
        bucket_count_begin(ledger, NULL);
        return;
    }
    LIST_EACH (&ledger->books, at) {
        struct bucket_book *book = CONTAINER_OF(at, struct bucket_book, link);

        bool is_due =
            !list_is_empty(&book->waiting) || now - book->changed_ms >= BUCKET_LEDGER_CALM;

        if (is_due && bucket_book_may_be_counted(book)) {
            list_remove(&book->link); /* the others come before it is counted again */
            list_append(&ledger->books, &book->link);
            bucket_count_begin(ledger, book);
            return;
        }
    }
}

/* --- puts ------------------------------------------------------------------------------------ */

static int bucket_put_claim(struct bucket_put *put, struct error *err)
{
    struct bucket_book *book = put->book;

    if (share_claim_resize(&book->bytes, book->used + put->grows, err) < 0)
        return -1;
    book->used += put->grows;
    list_remove(&put->link);
    list_append(&book->putting, &put->link);
    bucket_book_changed(book);
    return 0;
}

/* Who waits in a book that was counted since he asked. */
static struct bucket_put *bucket_book_ready(const struct bucket_book *book)
{
    LIST_EACH (&book->waiting, at) {
        struct bucket_put *put = CONTAINER_OF(at, struct bucket_put, link);

        if (put->wants <= book->counts_done || book->ledger->is_stopped)
            return put;
    }
    return NULL;
}

/* Whoever is told may give up others: the list is looked at anew. True: none is left. */
static bool bucket_book_resolve(struct bucket_book *book)
{
    struct bucket_put *put;

    while ((put = bucket_book_ready(book))) {
        struct error err = ERROR_INIT;

        if (bucket_put_claim(put, &err) == 0) {
            put->told(put, NULL);
            continue;
        }
        list_remove(&put->link);
        put->book = NULL;
        put->told(put, &err);
    }
    return list_is_empty(&book->waiting);
}

static void bucket_ledger_resolve(struct loop_task *task)
{
    struct bucket_ledger *ledger = CONTAINER_OF(task, struct bucket_ledger, resolve);

    LIST_EACH (&ledger->books, at) {
        struct bucket_book *book = CONTAINER_OF(at, struct bucket_book, link);

        if (!bucket_book_resolve(book) && !ledger->count && bucket_book_may_be_counted(book))
            bucket_count_begin(ledger, book); /* its end comes back here; else the timer does it */
    }
}

bool bucket_put_begin(struct bucket_put *put, struct bucket_book *book, uint64_t length,
                      uint64_t replaces)
{
    uint64_t now = bucket_ledger_charge(length);
    uint64_t before = replaces ? bucket_ledger_charge(replaces) : 0;

    list_init(&put->link);
    put->book = book;
    put->grows = now > before ? now - before : 0;
    if (bucket_put_claim(put, NULL) == 0)
        return true;
    put->wants = book->counts_begun + 1;
    list_append(&book->waiting, &put->link);
    bucket_book_changed(book); /* something may have gone */
    loop_defer(book->ledger->loop, &book->ledger->resolve);
    return false;
}

void bucket_put_end(struct bucket_put *put, bool is_there)
{
    struct bucket_book *book = TAKE_PTR(put->book);
    bool was_waiting = false;

    if (!book)
        return;
    LIST_EACH (&book->waiting, at)
        was_waiting |= at == &put->link;
    list_remove(&put->link);
    if (was_waiting)
        return;
    if (is_there && book->is_being_counted)
        book->added += put->grows;
    /* A count may have been without it: never below nothing. */
    if (!is_there)
        bucket_book_set(book, book->used > put->grows ? book->used - put->grows : 0);
    bucket_book_changed(book);
}

/* --- what is there --------------------------------------------------------------------------- */

void bucket_ledger_each(const struct bucket_ledger *ledger,
                        void (*each)(void *context, const struct id *owner, const char *name,
                                     uint64_t bytes),
                        void *context)
{
    LIST_EACH (&ledger->books, at) {
        const struct bucket_book *book = CONTAINER_OF(at, struct bucket_book, link);

        each(context, &book->asker.owner, book->name, book->used);
    }
}

bool bucket_ledger_is_counted(const struct bucket_ledger *ledger)
{
    return ledger->is_counted;
}

/* --- away with it ---------------------------------------------------------------------------- */

struct bucket_removal {
    struct bucket_ledger *ledger;
    struct objects *objects;
    struct id owner;
    objects_done *done;
    void *context;
    char prefix[PREFIX_SIZE];
};

static void bucket_removal_page(struct bucket_removal *removal);

/* Gone is gone: nobody has it mounted, and it need not be counted to know that. */
static void bucket_removal_end(struct bucket_removal *removal, const struct error *failure)
{
    LIST_EACH (&removal->ledger->books, at) {
        struct bucket_book *book = CONTAINER_OF(at, struct bucket_book, link);

        if (failure || !bucket_ledger_is_owner(&book->asker.owner, &removal->owner) ||
            book->is_being_counted)
            continue;
        bucket_book_set(book, 0);
        bucket_book_drop_unused(book);
    }
    if (removal->done)
        removal->done(removal->context, failure);
    free(removal);
}

static void bucket_removal_on_removed(void *context, const struct error *failure)
{
    if (failure)
        bucket_removal_end(context, failure);
    else
        bucket_removal_page(context);
}

static void bucket_removal_on_page(void *context, const struct error *failure,
                                   const struct object_list *list)
{
    struct bucket_removal *removal = context;
    AUTO(free) const char **keys = NULL;

    if (failure || list->count == 0) {
        bucket_removal_end(removal, failure);
        return;
    }
    keys = mem_alloc_array(list->count, sizeof(*keys));
    for (size_t i = 0; i < list->count; i++)
        keys[i] = list->entries[i].key;
    (void) objects_delete(removal->objects, keys, list->count, bucket_removal_on_removed, removal);
}

static void bucket_removal_page(struct bucket_removal *removal)
{
    const struct object_query query = {.prefix = removal->prefix, .limit = OBJECTS_DELETE_MAX};

    (void) objects_list(removal->objects, &query, bucket_removal_on_page, removal);
}

void bucket_ledger_remove(struct bucket_ledger *ledger, const struct id *owner, objects_done *done,
                          void *context)
{
    struct bucket_removal *removal = mem_alloc(sizeof(*removal));

    *removal = (struct bucket_removal){.ledger = ledger,
                                       .objects = ledger->objects,
                                       .owner = *owner,
                                       .done = done,
                                       .context = context};
    (void) snprintf(removal->prefix, sizeof(removal->prefix), "%s/", owner->text);
    LIST_EACH (&ledger->books, at) {
        struct bucket_book *book = CONTAINER_OF(at, struct bucket_book, link);

        if (bucket_ledger_is_owner(&book->asker.owner, owner))
            bucket_book_changed(book); /* it is counted, and found to be none */
    }
    bucket_removal_page(removal);
}

/* --- life ------------------------------------------------------------------------------------ */

struct bucket_ledger *bucket_ledger_new(struct loop *loop, struct objects *objects,
                                        struct shares *shares, struct log *log)
{
    struct bucket_ledger *ledger = mem_alloc(sizeof(*ledger));

    *ledger =
        (struct bucket_ledger){.loop = loop, .objects = objects, .shares = shares, .log = log};
    list_init(&ledger->books);
    loop_task_init(&ledger->resolve, bucket_ledger_resolve);
    (void) uv_timer_init(&loop->uv, &ledger->timer);
    (void) uv_timer_start(&ledger->timer, bucket_ledger_look, 0, LOOK_EVERY_MS);
    uv_unref((uv_handle_t *) &ledger->timer);
    return ledger;
}

static void bucket_ledger_closed(uv_handle_t *handle)
{
    struct bucket_ledger *ledger = CONTAINER_OF((uv_timer_t *) handle, struct bucket_ledger, timer);

    ledger->stopped(ledger->context);
}

void bucket_ledger_stop(struct bucket_ledger *ledger, void (*done)(void *context), void *context)
{
    ledger->is_stopped = true;
    ledger->stopped = done;
    ledger->context = context;
    if (ledger->count) { /* its answer finds nobody */
        ledger->count->ledger = NULL;
        objects_cancel(ledger->count->call);
        ledger->count = NULL;
    }
    LIST_EACH (&ledger->books, at)
        CONTAINER_OF(at, struct bucket_book, link)->is_being_counted = false;
    loop_defer(ledger->loop, &ledger->resolve); /* who waits is told what is known */
    uv_close((uv_handle_t *) &ledger->timer, bucket_ledger_closed);
}

void bucket_ledger_free(struct bucket_ledger *ledger)
{
    if (!ledger)
        return;
    loop_task_cancel(&ledger->resolve);
    LIST_EACH (&ledger->books, at)
        bucket_book_free(CONTAINER_OF(at, struct bucket_book, link));
    free(ledger);
}
