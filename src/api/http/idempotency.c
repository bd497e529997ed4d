#include "api/http/idempotency.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/http/api.h"
#include "base/auto.h"
#include "base/encoding/sha256.h"
#include "base/list.h"
#include "base/memory.h"
#include "base/table.h"
#include "domain/domain_share.h"
#include "domain/identity/api_key.h"

#define SWEEP_EVERY_MS ((int64_t) 3600 * 1000)
#define LOAD_PAGE      100 /* of the longest replies: less than one answer may have */

struct idempotency {
    struct store *store;       /* borrowed */
    const struct clock *clock; /* borrowed */
    struct table entries;      /* under way, by owner and key */
    struct list all;
    uint64_t seed;
    int64_t swept_ms;                    /* wall time */
    struct shares *shares;               /* borrowed; may be NULL */
    struct list kept;                    /* of idempotency_kept, oldest first */
    struct idempotency_loading *loading; /* NULL: it is over */
};

/* A row, as its owner's part of what all share. */
struct idempotency_kept {
    struct list link;
    int64_t created_ms;
    struct share_claim reply, bytes;
};

/*      check ──► asking ──► open ──► keeping ──► (gone)
 *                  │ known    │ failed, or in pieces
 *                  ▼          ▼
 *               replayed    freed                                                               */
enum entry_state { ENTRY_ASKING, ENTRY_OPEN, ENTRY_KEEPING, ENTRY_OVER };

struct idempotency_entry {
    struct http_watch watch;
    struct table_link by_key;
    struct list link;
    struct idempotency *idempotency; /* NULL: freed */
    struct http_request *request;    /* NULL: gone */
    void (*go)(struct http_request *request);
    enum entry_state state;
    struct id owner;
    struct share_asker asker;
    uint8_t digest[SHA256_SIZE]; /* of the request */
    char *reply;                 /* owned: held back until it is kept */
    size_t reply_length;
    int status;
    bool is_adopted;
    char key[];
};

/* --- what is kept ---------------------------------------------------------------------------- */

/* It is there: counted, and refused to nobody. Who may have one more was asked before. */
static void idempotency_note_kept(struct idempotency *idempotency, const struct share_asker *asker,
                                  int64_t created_ms, size_t length)
{
    struct idempotency_kept *kept;

    if (!idempotency->shares)
        return;
    kept = mem_alloc(sizeof(*kept));
    kept->created_ms = created_ms;
    share_claim_anyway(idempotency->shares, asker, SHARE_IDEMPOTENT_REPLIES, 1, &kept->reply);
    share_claim_anyway(idempotency->shares, asker, SHARE_IDEMPOTENT_BYTES, length, &kept->bytes);
    list_append(&idempotency->kept, &kept->link);
}

static void idempotency_kept_free(struct idempotency_kept *kept)
{
    list_remove(&kept->link);
    share_release(&kept->reply);
    share_release(&kept->bytes);
    free(kept);
}

static int idempotency_check_share(const struct idempotency *idempotency,
                                   const struct share_asker *asker, struct error *err)
{
    static const enum share rows[] = {SHARE_IDEMPOTENT_REPLIES, SHARE_IDEMPOTENT_BYTES};

    for (size_t i = 0; i < ARRAY_COUNT(rows); i++) {
        struct share_claim probe = SHARE_CLAIM_NONE;
        int r = share_claim(idempotency->shares, asker, rows[i], 1, &probe, err);

        share_release(&probe);
        if (r < 0)
            return -1;
    }
    return 0;
}

/* After a restart: pages in the order of time, in which several may have the same. */
struct idempotency_loading {
    struct idempotency *idempotency; /* NULL: it is gone */
    int64_t from_ms;
};

static void idempotency_load_page(struct idempotency_loading *loading);

/* Those of the page's last moment may go on in the next page, which begins with that moment; when
 * all of a page are of one moment, what is left of it is not counted. */
static void idempotency_loaded_page(void *context, const struct error *failure,
                                    const struct store_rows *rows)
{
    struct idempotency_loading *loading = context;
    bool is_last = failure || rows->count < LOAD_PAGE;
    int64_t last_ms = INT64_MAX;

    if (!is_last) {
        last_ms = rows->rows[rows->count - 1][STORE_IDEMPOTENCY_CREATED].integer;
        if (last_ms == rows->rows[0][STORE_IDEMPOTENCY_CREATED].integer)
            loading->from_ms = ++last_ms;
        else
            loading->from_ms = last_ms;
    }
    for (size_t i = 0; loading->idempotency && !failure && i < rows->count; i++) {
        const struct store_value *row = rows->rows[i];
        struct share_asker asker = {.is_bare = true};

        (void) snprintf(asker.owner.text, sizeof(asker.owner.text), "%s",
                        row[STORE_IDEMPOTENCY_OWNER].bytes);
        if (row[STORE_IDEMPOTENCY_CREATED].integer < last_ms)
            idempotency_note_kept(loading->idempotency, &asker,
                                  row[STORE_IDEMPOTENCY_CREATED].integer,
                                  row[STORE_IDEMPOTENCY_REPLY].length);
    }
    if (loading->idempotency && !is_last) {
        idempotency_load_page(loading);
        return;
    }
    if (loading->idempotency)
        loading->idempotency->loading = NULL;
    free(loading);
}

static void idempotency_load_page(struct idempotency_loading *loading)
{
    const struct store_condition later = {STORE_IDEMPOTENCY_CREATED, STORE_GREATER,
                                          store_integer(loading->from_ms - 1)};
    const struct store_query query = {.kind = STORE_IDEMPOTENCY,
                                      .conditions = &later,
                                      .condition_count = 1,
                                      .order = STORE_IDEMPOTENCY_CREATED,
                                      .limit = LOAD_PAGE};

    store_find(loading->idempotency->store, &query, idempotency_loaded_page, loading);
}

/* --- entries --------------------------------------------------------------------------------- */

static uint64_t idempotency_hash_of(const struct idempotency *idempotency, const struct id *owner,
                                    const char *key)
{
    return table_hash(table_hash(idempotency->seed, owner->text, strlen(owner->text)), key,
                      strlen(key));
}

static bool is_under_way(const struct idempotency *idempotency, const struct id *owner,
                         const char *key)
{
    for (struct table_link *at =
             table_find(&idempotency->entries, idempotency_hash_of(idempotency, owner, key));
         at; at = table_next(at)) {
        const struct idempotency_entry *entry = CONTAINER_OF(at, struct idempotency_entry, by_key);

        if (strcmp(entry->key, key) == 0 && strcmp(entry->owner.text, owner->text) == 0)
            return true;
    }
    return false;
}

/* Its key is free again. The memory stays as long as somebody may call back. */
static void idempotency_leave(struct idempotency_entry *entry)
{
    struct idempotency *idempotency = TAKE_PTR(entry->idempotency);

    if (!idempotency)
        return;
    table_remove(&idempotency->entries, &entry->by_key);
    list_remove(&entry->link);
}

static void free_when_unused(struct idempotency_entry *entry)
{
    if (entry->request || entry->state == ENTRY_ASKING || entry->state == ENTRY_KEEPING ||
        (entry->is_adopted && entry->state == ENTRY_OPEN))
        return;
    idempotency_leave(entry);
    free(entry->reply);
    free(entry);
}

static void over(struct idempotency_entry *entry)
{
    entry->state = ENTRY_OVER;
    idempotency_leave(entry);
    free_when_unused(entry);
}

/* --- keeping --------------------------------------------------------------------------------- */

static void nobody_waits(struct http_request *request)
{
    (void) request; /* on_over follows */
}

static void reply_kept(void *context, const struct error *failure,
                       const struct store_receipt *receipt)
{
    struct idempotency_entry *entry = context;
    struct http_request *request = entry->request;

    (void) receipt;
    /* What was asked for is done, also after a failure: the answer is the truth. */
    if (!failure && entry->idempotency)
        idempotency_note_kept(entry->idempotency, &entry->asker,
                              clock_wall_ms(entry->idempotency->clock), entry->reply_length);
    entry->state = ENTRY_OVER;
    if (request) /* ends in on_over, which frees the entry */
        http_reply(request, entry->status, "application/json", entry->reply, entry->reply_length);
    else
        over(entry);
}

static void idempotency_keep_row(struct idempotency_entry *entry, int status, const char *body,
                                 size_t length)
{
    struct idempotency *idempotency = entry->idempotency;
    struct store_transaction *change = store_begin(idempotency->store);
    struct store_value values[STORE_IDEMPOTENCY_COLUMN_COUNT] = {
        [STORE_IDEMPOTENCY_OWNER] = store_text(entry->owner.text),
        [STORE_IDEMPOTENCY_KEY] = store_text(entry->key),
        [STORE_IDEMPOTENCY_REQUEST] = store_bytes(entry->digest, SHA256_SIZE),
        [STORE_IDEMPOTENCY_STATUS] = store_integer(status),
        [STORE_IDEMPOTENCY_REPLY] = store_bytes(body, length),
        [STORE_IDEMPOTENCY_CREATED] = store_integer(clock_wall_ms(idempotency->clock)),
    };

    entry->state = ENTRY_KEEPING;
    entry->status = status;
    entry->reply = mem_copy_bytes(body, length);
    entry->reply_length = length;
    store_put(change, STORE_IDEMPOTENCY, values);
    store_commit(change, reply_kept, entry);
}

static bool is_worth_keeping(int status, const char *content_type, const void *body, size_t length)
{
    bool is_made = status == 201 || status == 202;

    return status >= 200 && status < 300 && body &&
           length <= (is_made ? IDEMPOTENCY_REPLY_MAX : IDEMPOTENCY_OUTPUT_MAX) && content_type &&
           strcmp(content_type, "application/json") == 0;
}

static bool reply_coming(struct http_watch *watch, struct http_request *request, int status,
                         const char *content_type, const void *body, size_t length)
{
    struct idempotency_entry *entry = CONTAINER_OF(watch, struct idempotency_entry, watch);

    if (entry->state != ENTRY_OPEN || !entry->idempotency)
        return false;
    if (!is_worth_keeping(status, content_type, body, length)) {
        entry->state = ENTRY_OVER;
        idempotency_leave(entry);
        return false;
    }
    request->on_gone = nobody_waits;
    idempotency_keep_row(entry, status, body, length);
    return true;
}

static void request_over(struct http_watch *watch)
{
    struct idempotency_entry *entry = CONTAINER_OF(watch, struct idempotency_entry, watch);

    entry->request = NULL;
    if (entry->state == ENTRY_OPEN && !entry->is_adopted)
        entry->state = ENTRY_OVER;
    free_when_unused(entry);
}

/* --- asking ---------------------------------------------------------------------------------- */

static void replay(struct idempotency_entry *entry, const struct store_value *row)
{
    struct http_request *request = entry->request;
    const struct store_value *digest = &row[STORE_IDEMPOTENCY_REQUEST];
    struct error error;

    entry->state = ENTRY_OVER;
    idempotency_leave(entry);
    if (digest->length == SHA256_SIZE && memcmp(digest->bytes, entry->digest, SHA256_SIZE) == 0) {
        (void) http_reply_header(request, "Idempotency-Replayed", "true");
        http_reply(request, (int) row[STORE_IDEMPOTENCY_STATUS].integer, "application/json",
                   row[STORE_IDEMPOTENCY_REPLY].bytes, row[STORE_IDEMPOTENCY_REPLY].length);
        return;
    }
    (void) error_set(&error, ERR_CONFLICT, 0, "this Idempotency-Key was used for another request");
    http_reply_error(request, &error);
}

static void idempotency_found(void *context, const struct error *failure,
                              const struct store_rows *rows)
{
    struct idempotency_entry *entry = context;
    struct http_request *request = entry->request;
    struct error full = ERROR_INIT;
    int64_t now;

    entry->state = ENTRY_OPEN;
    if (!request || !entry->idempotency) {
        over(entry);
        return;
    }
    if (failure) {
        over(entry);
        http_reply_error(request, failure);
        return;
    }
    now = clock_wall_ms(entry->idempotency->clock);
    if (rows->count &&
        now - rows->rows[0][STORE_IDEMPOTENCY_CREATED].integer < IDEMPOTENCY_KEPT_MS) {
        replay(entry, rows->rows[0]);
        return;
    }
    request->on_gone = NULL;
    if (idempotency_check_share(entry->idempotency, &entry->asker, &full) < 0) {
        over(entry);
        http_reply_error(request, &full);
        return;
    }
    entry->go(request);
}

static void idempotency_ask(struct idempotency_entry *entry)
{
    struct store_condition conditions[] = {
        {STORE_IDEMPOTENCY_OWNER, STORE_EQUAL, store_text(entry->owner.text)},
        {STORE_IDEMPOTENCY_KEY, STORE_EQUAL, store_text(entry->key)},
    };
    struct store_query query = {.kind = STORE_IDEMPOTENCY,
                                .conditions = conditions,
                                .condition_count = ARRAY_COUNT(conditions),
                                .order = STORE_IDEMPOTENCY_CREATED,
                                .limit = 1};

    store_find(entry->idempotency->store, &query, idempotency_found, entry);
}

static void idempotency_sweep(struct idempotency *idempotency)
{
    int64_t now = clock_wall_ms(idempotency->clock);
    struct store_condition old = {STORE_IDEMPOTENCY_CREATED, STORE_LESS,
                                  store_integer(now - IDEMPOTENCY_KEPT_MS)};
    struct store_transaction *change;

    if (now - idempotency->swept_ms < SWEEP_EVERY_MS && now >= idempotency->swept_ms)
        return;
    idempotency->swept_ms = now;
    change = store_begin(idempotency->store);
    store_delete(change, STORE_IDEMPOTENCY, &old, 1);
    store_commit(change, NULL, NULL);
    LIST_EACH (&idempotency->kept, at) {
        struct idempotency_kept *kept = CONTAINER_OF(at, struct idempotency_kept, link);

        if (kept->created_ms < now - IDEMPOTENCY_KEPT_MS)
            idempotency_kept_free(kept);
    }
}

static void digest_request(struct idempotency_entry *entry, const struct http_request *request,
                           const char *body, size_t length)
{
    AUTO(text) struct text all = TEXT_INIT(SIZE_MAX / 2);

    text_format(&all, "%s %.*s\n", request->head->method, (int) request->target.path.length,
                request->target.path.text);
    text_append_bytes(&all, body, length);
    sha256_bytes(text_string(&all), all.length, entry->digest);
}

static struct idempotency_entry *entry_new(struct idempotency *idempotency, const char *key,
                                           struct http_request *request, const struct id *owner)
{
    struct idempotency_entry *entry = mem_alloc(sizeof(*entry) + strlen(key) + 1);

    memcpy(entry->key, key, strlen(key) + 1);
    entry->watch = (struct http_watch){.on_reply = reply_coming, .on_over = request_over};
    entry->idempotency = idempotency;
    entry->request = request;
    entry->owner = *owner;
    entry->by_key.hash = idempotency_hash_of(idempotency, owner, key);
    table_add(&idempotency->entries, &entry->by_key);
    list_init(&entry->link);
    list_append(&idempotency->all, &entry->link);
    return entry;
}

/* Whoever holds a narrower credential of the same owner is another client: a reply to a wide one
 * may tell what it must not see, and that the key was used does, too. */
static const char *idempotency_scoped_key(struct http_request *request, const struct caller *caller,
                                          const char *key)
{
    return pool_format(&request->pool, "%s:%s:%u:%s", api_key_scope_text(caller->scope),
                       caller->sandbox.text, caller->port, key);
}

void idempotency_check(struct idempotency *idempotency, struct http_request *request,
                       const struct caller *caller, const char *body, size_t length,
                       void (*go)(struct http_request *request))
{
    const char *key = http_request_header(request, "idempotency-key");
    struct idempotency_entry *entry;
    struct error error = ERROR_INIT;
    struct share_asker asker;

    if (!key || !idempotency || !caller) {
        go(request);
        return;
    }
    if (!*key || strlen(key) > IDEMPOTENCY_KEY_MAX)
        (void) error_set(&error, ERR_INVALID, 0, "Idempotency-Key must have 1 to %d characters",
                         IDEMPOTENCY_KEY_MAX);
    else
        key = idempotency_scoped_key(request, caller, key);
    if (!error.code && is_under_way(idempotency, &caller->owner, key))
        (void) error_set(&error, ERR_CONFLICT, 0,
                         "a request with this Idempotency-Key is under way");
    if (error.code) {
        http_reply_error(request, &error);
        return;
    }
    asker = domain_asker(api_of(request)->domain, caller);
    idempotency_sweep(idempotency);
    entry = entry_new(idempotency, key, request, &caller->owner);
    entry->go = go;
    entry->asker = asker;
    digest_request(entry, request, body, length);
    request->watch = &entry->watch;
    request->on_gone = nobody_waits;
    idempotency_ask(entry);
}

/* --- what goes on by itself ------------------------------------------------------------------ */

struct idempotency_entry *idempotency_adopt(struct http_request *request)
{
    struct idempotency_entry *entry;

    if (!request->watch || request->watch->on_reply != reply_coming)
        return NULL;
    entry = CONTAINER_OF(request->watch, struct idempotency_entry, watch);
    entry->is_adopted = true;
    return entry;
}

void idempotency_keep(struct idempotency_entry *entry, int status, const char *body, size_t length)
{
    if (!entry)
        return;
    if (entry->idempotency && is_worth_keeping(status, "application/json", body, length))
        idempotency_keep_row(entry, status, body, length);
    else
        over(entry);
}

void idempotency_drop(struct idempotency_entry *entry)
{
    if (entry)
        over(entry);
}

/* --- life ------------------------------------------------------------------------------------ */

struct idempotency *idempotency_new(struct store *store, const struct clock *clock,
                                    struct shares *shares)
{
    struct idempotency *idempotency = mem_alloc(sizeof(*idempotency));

    idempotency->store = store;
    idempotency->clock = clock;
    idempotency->shares = shares;
    list_init(&idempotency->all);
    list_init(&idempotency->kept);
    random_bytes(&idempotency->seed, sizeof(idempotency->seed));
    if (shares) {
        idempotency->loading = mem_alloc(sizeof(*idempotency->loading));
        idempotency->loading->idempotency = idempotency;
        idempotency_load_page(idempotency->loading);
    }
    return idempotency;
}

void idempotency_free(struct idempotency *idempotency)
{
    struct list *first;

    if (!idempotency)
        return;
    if (idempotency->loading)
        idempotency->loading->idempotency = NULL;
    LIST_EACH (&idempotency->kept, at)
        idempotency_kept_free(CONTAINER_OF(at, struct idempotency_kept, link));
    while ((first = list_first(&idempotency->all)))
        idempotency_leave(CONTAINER_OF(first, struct idempotency_entry, link));
    table_done(&idempotency->entries);
    free(idempotency);
}
