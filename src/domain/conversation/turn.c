/* Turns as others see them: begun, read, listed, waited for, cancelled. turn_run.c is how they go. */
#include "domain/conversation/turn.h"

#include <stdlib.h>
#include <string.h>

#include "base/crash_point.h"
#include "base/encoding/utf8.h"
#include "base/memory.h"
#include "domain/conversation/conversation_internal.h"
#include "domain/domain_change.h"
#include "domain/domain_share.h"
#include "domain/event/event.h"
#include "json/json_read.h"
#include "json/json_write.h"

/* --- in memory -------------------------------------------------------------------------------- */

struct live_turn *turn_live(const struct domain *domain, const char *id)
{
    uint64_t hash = table_hash(domain->seed, id, strlen(id));
    struct table_link *at = table_find(&domain->conversations->live, hash);

    for (; at; at = table_next(at)) {
        struct live_turn *live = CONTAINER_OF(at, struct live_turn, by_id);

        if (strcmp(live->turn.id.text, id) == 0)
            return live;
    }
    return NULL;
}

struct live_turn *live_turn_new(struct domain *domain, struct conversation *conversation,
                                const struct caller *caller)
{
    struct live_turn *live = mem_alloc(sizeof(*live));

    live->domain = domain;
    live->conversation = conversation;
    live->caller = *caller;
    list_init(&live->asks);
    list_init(&live->waits);
    list_init(&live->parts);
    list_init(&live->task.link);
    list_append(&conversation->work->turns, &live->link);
    list_append(&domain->conversations->live_all, &live->all);
    live->references = 1; /* of the lists */
    return live;
}

static void live_turn_free(struct live_turn *live)
{
    asks_done(live);
    turn_parts_done(live);
    turn_disown(&live->turn);
    free(live->key);
    free(live);
}

void live_turn_ref(struct live_turn *live)
{
    live->references++;
}

void live_turn_unref(struct live_turn *live)
{
    if (--live->references == 0)
        live_turn_free(live);
}

void live_turn_gone(struct live_turn *live)
{
    struct conversation *conversation = live->conversation;

    if (live->by_id.hash)
        table_remove(&live->domain->conversations->live, &live->by_id);
    list_remove(&live->link);
    list_remove(&live->all);
    share_release(&live->claim);
    conversation_ref(conversation);
    live_turn_unref(live);
    conversation_unref(conversation->work->domain, conversation);
}

/* --- begun ------------------------------------------------------------------------------------- */

struct turn_creation {
    struct domain_change base;
    struct live_turn *live;            /* a reference; NULL: refused, or there is one of that key */
    struct conversation *conversation; /* a reference */
    struct log_batch *batch;
    char *key; /* owned, may be NULL */
    turn_created *done;
    void *context;
};

static void turn_creation_end(struct turn_creation *creation, const struct error *failure,
                              const struct turn *turn, bool is_new)
{
    creation->done(creation->context, failure, turn, is_new);
    conversation_unref(creation->base.domain, creation->conversation);
    free(creation->key);
    free(creation);
}

/* One of that key is there already. */
static void turn_found_by_key(void *context, const struct error *failure,
                              const struct store_rows *rows)
{
    struct turn_creation *creation = context;
    struct error err = ERROR_INIT;
    struct turn turn;

    if (!failure && rows->count) {
        turn_from_row(rows->rows[0], &turn);
        turn_creation_end(creation, NULL, &turn, false);
        return;
    }
    (void) error_set(&err, ERR_CONFLICT, 0, "a turn of this key was there, and is gone; try again");
    turn_creation_end(creation, failure ? failure : &err, NULL, false);
}

static void turn_find_by_key(struct turn_creation *creation)
{
    const struct store_condition conditions[] = {
        {STORE_TURN_CONVERSATION, STORE_EQUAL, store_text(creation->conversation->id.text)},
        {STORE_TURN_KEY, STORE_EQUAL, store_text(creation->key)},
    };
    const struct store_query query = {.kind = STORE_TURN,
                                      .conditions = conditions,
                                      .condition_count = ARRAY_COUNT(conditions),
                                      .order = STORE_TURN_CREATED,
                                      .limit = 1};

    domain_find(creation->base.domain, &query, turn_found_by_key, creation);
}

static void turn_is_made(struct domain_change *base, const struct error *failure,
                         const struct store_receipt *receipt)
{
    struct turn_creation *creation = CONTAINER_OF(base, struct turn_creation, base);
    struct live_turn *live = creation->live;

    (void) receipt;
    if (creation->batch)
        turn_log_kept(creation->batch, failure);
    if (failure) {
        bool is_taken = live && creation->key && failure->code == ERR_CONFLICT;

        if (live)
            live_turn_gone(live);
        if (is_taken)
            turn_find_by_key(creation);
        else
            turn_creation_end(creation, failure, NULL, false);
        return;
    }
    CRASH_POINT("turn.queued");
    live->is_kept = true;
    live_turn_ref(live);
    if (live->is_cancelled)
        turn_stop(live, live->cancel_code, live->cancel_message);
    turn_go_on(live->conversation);
    turn_creation_end(creation, NULL, &live->turn, true);
    live_turn_unref(live);
}

/* The prompt as a JSON array of parts; NULL with ERR_INVALID. The caller's. */
static char *turn_read_input(const struct turn_spec *spec, struct error *err)
{
    AUTO(text) struct text text = TEXT_INIT(TURN_INPUT_MAX);
    AUTO(json) json_t *parts = NULL;
    struct json_writer json;

    if (!spec->text == !spec->parts) {
        (void) error_set(err, ERR_INVALID, 0, "a turn needs either 'text' or 'parts'");
        return NULL;
    }
    if (spec->parts) {
        parts = json_read(spec->parts, strlen(spec->parts), NULL, err);
        if (!parts)
            return NULL;
        if (!json_is_array(parts) || json_array_size(parts) == 0 ||
            !json_is_object(json_array_get(parts, 0))) {
            (void) error_set(err, ERR_INVALID, 0, "field 'parts' must be an array of objects");
            return NULL;
        }
        text_append(&text, spec->parts);
    } else {
        json_writer_init_text(&json, &text);
        json_begin_array(&json);
        json_begin_object(&json);
        json_add_text(&json, "type", "text");
        json_add_text(&json, "text", spec->text);
        json_end_object(&json);
        json_end_array(&json);
        if (json_writer_finish(&json) < 0)
            text.overflowed = true;
    }
    if (text.overflowed ||
        (spec->text && (!*spec->text || !utf8_is_valid(spec->text, strlen(spec->text))))) {
        (void) error_set(err, ERR_INVALID, 0, "a prompt must have 1 to %zu bytes of UTF-8 as JSON",
                         TURN_INPUT_MAX);
        return NULL;
    }
    return text_take(&text);
}

static int turn_check(struct domain *domain, const struct caller *caller,
                      const struct conversation *conversation, const struct turn_spec *spec,
                      struct error *err)
{
    size_t waiting = 0;

    if (!domain_is_open(domain, err) || conversation_check_harness(domain, err) < 0)
        return -1;
    if (!caller_may_enter(caller))
        return error_set(err, ERR_FORBIDDEN, 0, "this key may not speak with agents");
    if (conversation->work->is_going)
        return error_set(err, ERR_NOT_FOUND, 0, "the conversation was deleted");
    if (!*conversation->sandbox.text)
        return error_set(err, ERR_CONFLICT, 0, "the sandbox of the task is not ready yet");
    if (spec->key && (!*spec->key || strlen(spec->key) > TURN_KEY_MAX))
        return error_set(err, ERR_INVALID, 0, "'idempotencyKey' must have 1 to %d bytes",
                         TURN_KEY_MAX);
    if (!spec->provider != !spec->model)
        return error_set(err, ERR_INVALID, 0, "a model needs a provider: 'provider/model'");
    if (spec->timeout_ms > TURN_TIMEOUT_MAX_MS)
        return error_set(err, ERR_INVALID, 0, "'timeout' may be 24h at most");
    LIST_EACH (&conversation->work->turns, at)
        waiting++;
    if (waiting > TURN_QUEUE_MAX)
        return error_set(err, ERR_QUEUE_FULL, 0,
                         "%d turns of this conversation wait already; wait for one to end",
                         TURN_QUEUE_MAX);
    return 0;
}

static void turn_fill(struct live_turn *live, const struct turn_spec *spec, const char *input)
{
    const struct conversation *conversation = live->conversation;
    int64_t now = domain_wall_ms(live->domain);

    if (now <= conversation->work->created_ms) /* lists are sorted by it */
        now = conversation->work->created_ms + 1;
    conversation->work->created_ms = now;
    live->turn = (struct turn){
        .id = id_new(),
        .owner = conversation->owner,
        .conversation = conversation->id,
        .sandbox = conversation->sandbox,
        .task = conversation->task,
        .state = TURN_QUEUED,
        .input = input,
        .answer = "",
        .parts = "[]",
        .info = "{}",
        .provider = spec->provider ? spec->provider : conversation->provider,
        .model = spec->model ? spec->model : conversation->model,
        .agent = spec->agent ? spec->agent : conversation->agent,
        .error_code = "",
        .error_message = "",
        .created_ms = now,
        .deadline_ms = spec->timeout_ms ? now + (int64_t) spec->timeout_ms : 0,
    };
    turn_own(&live->turn);
    live->key = spec->key ? mem_copy_text(spec->key) : NULL;
    live->by_id.hash = domain_id_hash(live->domain, &live->turn.id);
    table_add(&live->domain->conversations->live, &live->by_id);
}

static void turn_log_queued(struct live_turn *live)
{
    AUTO(text) struct text prompt = TEXT_INIT(TURN_INPUT_MAX);
    AUTO(text) struct text item = TEXT_INIT(STORE_VALUE_MAX);
    struct json_writer json;

    turn_write_input_text(&live->turn, &prompt);
    json_document_begin(&json, &item);
    json_add_text(&json, "turn", live->turn.id.text);
    json_add_text(&json, "text", text_string(&prompt));
    if (json_document_end(&json) == 0)
        turn_log_add(live->conversation, live, "turn.queued", NULL, text_string(&item));
}

static void turn_make(struct turn_creation *creation, const struct turn_spec *spec,
                      const char *input)
{
    struct domain *domain = creation->base.domain;
    struct store_transaction *rows = store_begin(domain->options.store);
    struct live_turn *live = live_turn_new(domain, creation->conversation, &creation->base.caller);

    creation->live = live;
    domain_claim_anyway(domain, &creation->conversation->owner, SHARE_LIVE_TURNS, 1, &live->claim);
    turn_fill(live, spec, input);
    turn_put_row(rows, &live->turn, live->key, true);
    turn_add_event(live, rows, "turn.queued");
    turn_log_queued(live);
    creation->batch = turn_log_take(creation->conversation, rows);
    domain_change_commit(&creation->base, rows);
}

/* Of the same key, not over yet: known without asking. */
static bool turn_is_taken(const struct conversation *conversation, const char *key)
{
    LIST_EACH (&conversation->work->turns, at) {
        const struct live_turn *live = CONTAINER_OF(at, struct live_turn, link);

        if (key && live->key && live->is_kept && strcmp(live->key, key) == 0)
            return true;
    }
    return false;
}

void turn_create(struct domain *domain, const struct caller *caller,
                 struct conversation *conversation, const struct turn_spec *spec,
                 turn_created *done, void *context)
{
    struct turn_creation *creation =
        domain_change_new(sizeof(*creation), domain, caller, turn_is_made);
    struct error *err = &creation->base.failure;
    AUTO(free) char *input = NULL;

    creation->conversation = conversation;
    creation->done = done;
    creation->context = context;
    creation->key = spec->key ? mem_copy_text(spec->key) : NULL;
    conversation_ref(conversation);
    if (turn_is_taken(conversation, spec->key)) {
        turn_find_by_key(creation);
        return;
    }
    if (turn_check(domain, caller, conversation, spec, err) == 0 &&
        domain_check_share(domain, &conversation->owner, SHARE_LIVE_TURNS, 1, err) == 0)
        input = turn_read_input(spec, err);
    if (input)
        turn_make(creation, spec, input);
    else
        domain_change_refuse(&creation->base);
}

/* --- read -------------------------------------------------------------------------------------- */

struct turn_reading {
    struct domain *domain;
    struct domain_task task;
    struct caller caller;
    struct id conversation; /* empty: any */
    char id[ID_SIZE];
    turn_done *done;
    void *context;
};

static int turn_refuse(const char *id, struct error *err)
{
    return error_set(err, ERR_NOT_FOUND, 0, "there is no turn '%.40s'", id);
}

static int turn_check_seen(const struct turn_reading *reading, const struct turn *turn,
                           struct error *err)
{
    if (caller_sees_sandbox(&reading->caller, &turn->owner, &turn->sandbox) &&
        (!*reading->conversation.text || id_equal(&reading->conversation, &turn->conversation)))
        return 0;
    return turn_refuse(reading->id, err);
}

static void turn_reading_end(struct turn_reading *reading, const struct turn *turn)
{
    struct error err = ERROR_INIT;

    if (!turn)
        (void) turn_refuse(reading->id, &err);
    else if (turn_check_seen(reading, turn, &err) < 0)
        turn = NULL;
    reading->done(reading->context, turn ? NULL : &err, turn);
    free(reading);
}

static void turn_got_row(void *context, const struct error *failure, const struct store_rows *rows)
{
    struct turn_reading *reading = context;
    struct turn turn;

    if (failure) {
        reading->done(reading->context, failure, NULL);
        free(reading);
        return;
    }
    if (rows->count)
        turn_from_row(rows->rows[0], &turn);
    turn_reading_end(reading, rows->count ? &turn : NULL);
}

/* The row is what is known; what is in memory is never behind it. */
static void turn_read_now(struct domain_task *task)
{
    struct turn_reading *reading = CONTAINER_OF(task, struct turn_reading, task);
    struct live_turn *live = turn_live(reading->domain, reading->id);
    const struct store_condition mine = {STORE_TURN_ID, STORE_EQUAL, store_text(reading->id)};
    const struct store_query query = {.kind = STORE_TURN,
                                      .conditions = &mine,
                                      .condition_count = 1,
                                      .order = STORE_TURN_ID,
                                      .limit = 1};

    if (live && live->is_kept && live->stage != TURN_STAGE_ENDED)
        turn_reading_end(reading, &live->turn);
    else if (!*reading->id)
        turn_reading_end(reading, NULL);
    else
        domain_find(reading->domain, &query, turn_got_row, reading);
}

void turn_read(struct domain *domain, const struct caller *caller,
               const struct conversation *conversation, const char *id, turn_done *done,
               void *context)
{
    struct turn_reading *reading = mem_alloc(sizeof(*reading));

    *reading = (struct turn_reading){
        .domain = domain, .caller = *caller, .done = done, .context = context};
    list_init(&reading->task.link);
    if (conversation)
        reading->conversation = conversation->id;
    if (id_is_valid(id))
        memcpy(reading->id, id, ID_SIZE);
    domain_defer(domain, &reading->task, turn_read_now);
}

/* --- listed ------------------------------------------------------------------------------------ */

struct turn_listing {
    turn_list_done *done;
    void *context;
    struct domain *domain;
    struct id conversation;
    size_t limit;
};

static void turn_got_list(void *context, const struct error *failure, const struct store_rows *rows)
{
    AUTO(free) struct turn_listing *listing = context;
    AUTO(free) struct turn *turns = NULL;
    size_t count = failure ? 0 : rows->count;

    turns = mem_alloc_array(count + 1, sizeof(*turns));
    for (size_t i = 0; i < count; i++)
        turn_from_row(rows->rows[i], &turns[i]);
    listing->done(listing->context, failure, turns, count < listing->limit ? count : listing->limit,
                  count > listing->limit);
}

static void turn_find_list(struct turn_listing *listing, int64_t before_ms)
{
    const struct store_condition conditions[] = {
        {STORE_TURN_CONVERSATION, STORE_EQUAL, store_text(listing->conversation.text)},
        {STORE_TURN_CREATED, STORE_LESS, store_integer(before_ms)},
    };
    const struct store_query query = {.kind = STORE_TURN,
                                      .conditions = conditions,
                                      .condition_count = ARRAY_COUNT(conditions),
                                      .order = STORE_TURN_CREATED,
                                      .is_descending = true,
                                      .limit = listing->limit + 1};

    domain_find(listing->domain, &query, turn_got_list, listing);
}

static void turn_list_behind(void *context, const struct error *failure, const struct turn *turn)
{
    struct turn_listing *listing = context;

    if (!failure) {
        turn_find_list(listing, turn->created_ms);
        return;
    }
    listing->done(listing->context, failure, NULL, 0, false);
    free(listing);
}

void turn_list(struct domain *domain, const struct caller *caller,
               const struct conversation *conversation, const char *before, size_t limit,
               turn_list_done *done, void *context)
{
    struct turn_listing *listing = mem_alloc(sizeof(*listing));

    *listing = (struct turn_listing){.done = done,
                                     .context = context,
                                     .domain = domain,
                                     .conversation = conversation->id,
                                     .limit = limit};
    if (before)
        turn_read(domain, caller, conversation, before, turn_list_behind, listing);
    else
        turn_find_list(listing, INT64_MAX);
}

/* --- waited for -------------------------------------------------------------------------------- */

struct turn_wait {
    struct list link; /* of live_turn.waits; in none while it reads */
    struct domain *domain;
    struct caller caller;
    bool is_busy; /* a read of it is under way */
    bool is_over; /* nobody waits any more: freed when that comes back */
    turn_done *done;
    void *context;
};

static void turn_wait_tell(struct turn_wait *wait, const struct error *failure,
                           const struct turn *turn)
{
    list_remove(&wait->link);
    if (!wait->is_over)
        wait->done(wait->context, failure, turn);
    free(wait);
}

static void turn_wait_read(void *context, const struct error *failure, const struct turn *turn)
{
    struct turn_wait *wait = context;
    struct live_turn *live = failure ? NULL : turn_live(wait->domain, turn->id.text);

    wait->is_busy = false;
    if (live && !wait->is_over)
        list_append(&live->waits, &wait->link);
    else
        turn_wait_tell(wait, failure, turn);
}

void turn_tell_waits(struct live_turn *live, const struct error *failure)
{
    struct list *link;

    while ((link = list_first(&live->waits)))
        turn_wait_tell(CONTAINER_OF(link, struct turn_wait, link), failure,
                       failure ? NULL : &live->turn);
}

static struct turn_wait *turn_wait_new(struct domain *domain, const struct caller *caller,
                                       turn_done *done, void *context)
{
    struct turn_wait *wait = mem_alloc(sizeof(*wait));

    *wait = (struct turn_wait){
        .domain = domain, .caller = *caller, .is_busy = true, .done = done, .context = context};
    list_init(&wait->link);
    return wait;
}

struct turn_wait *turn_wait_begin(struct domain *domain, const struct caller *caller,
                                  const char *id, turn_done *done, void *context)
{
    struct turn_wait *wait = turn_wait_new(domain, caller, done, context);

    turn_read(domain, caller, NULL, id, turn_wait_read, wait);
    return wait;
}

void turn_wait_end(struct turn_wait *wait)
{
    wait->is_over = true;
    if (wait->is_busy)
        return;
    list_remove(&wait->link);
    free(wait);
}

/* --- cancelled --------------------------------------------------------------------------------- */

static void turn_cancel_read(void *context, const struct error *failure, const struct turn *turn)
{
    struct turn_wait *wait = context;
    struct live_turn *live = failure ? NULL : turn_live(wait->domain, turn->id.text);
    struct error err = ERROR_INIT;

    if (!failure && !caller_may_enter(&wait->caller)) {
        (void) error_set(&err, ERR_FORBIDDEN, 0, "this key may not cancel turns");
        turn_wait_tell(wait, &err, NULL);
        return;
    }
    if (!live) {
        turn_wait_tell(wait, failure, turn);
        return;
    }
    wait->is_busy = false;
    list_append(&live->waits, &wait->link);
    turn_stop(live, "cancelled", "it was cancelled");
}

void turn_cancel(struct domain *domain, const struct caller *caller,
                 const struct conversation *conversation, const char *id, turn_done *done,
                 void *context)
{
    struct turn_wait *wait = turn_wait_new(domain, caller, done, context);

    turn_read(domain, caller, conversation, id, turn_cancel_read, wait);
}

void turn_count(const struct domain *domain, struct turn_counters *ret_counters)
{
    *ret_counters = domain->conversations->counters;
    ret_counters->live = ret_counters->running = ret_counters->waiting = 0;
    ret_counters->queued = 0;
    LIST_EACH (&domain->conversations->live_all, at) {
        const struct live_turn *live = CONTAINER_OF(at, struct live_turn, all);

        ret_counters->live++;
        ret_counters->queued += live->turn.state == TURN_QUEUED;
        ret_counters->running += live->turn.state == TURN_RUNNING;
        ret_counters->waiting += live->turn.state == TURN_WAITING;
    }
}
