/* The log of a conversation: items that wait, go to the store in batches, and are told to those who
 * follow once they are kept. One batch of its own is under way at a time; changes of turns take what
 * waits along in their transactions, so that the order of items is the order of what happened. */
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "domain/conversation/conversation_internal.h"
#include "json/json_write.h"

#define BATCH_ITEMS       24 /* of the 64 changes in one transaction, with those of a turn */
#define BATCH_BYTES       ((size_t) 4 * 1024 * 1024)
#define PENDING_MAX       512
#define PENDING_BYTES_MAX ((size_t) 8 * 1024 * 1024)

struct log_batch {
    struct conversation *conversation;
    struct list items;
    bool is_own; /* a transaction of nothing but items */
};

/* --- items ------------------------------------------------------------------------------------ */

static void log_item_free(struct conversation_work *work, struct log_item *item)
{
    list_remove(&item->link);
    (void) work;
    free((char *) item->item.kind);
    free((char *) item->item.part);
    free((char *) item->item.json);
    free(item);
}

static void log_append(struct conversation *conversation, const struct live_turn *live,
                       const char *kind, const char *part, const char *json)
{
    struct conversation_work *work = conversation->work;
    struct log_item *item = mem_alloc(sizeof(*item));

    item->item = (struct turn_item){
        .time_ms = domain_wall_ms(work->domain),
        .turn = live ? live->turn.id : (struct id){.text = ""},
        .kind = mem_copy_text(kind),
        .part = mem_copy_text(part ? part : ""),
        .json = mem_copy_text(json),
    };
    list_append(&work->pending, &item->link);
    work->pending_count++;
    work->pending_bytes += strlen(json);
}

/* Nothing more of this turn is kept, but its end. */
static void log_truncate(struct conversation *conversation, struct live_turn *live,
                         const char *reason)
{
    char json[128];

    live->is_truncated = true;
    (void) snprintf(json, sizeof(json), "{\"turn\":\"%s\",\"reason\":\"%s\"}", live->turn.id.text,
                    reason);
    log_append(conversation, live, "truncated", NULL, json);
}

/* Whether there is room for what an agent says; its own items always have. */
static bool log_has_room(struct conversation *conversation, struct live_turn *live, size_t size)
{
    const struct conversation_work *work = conversation->work;

    if (live->is_truncated)
        return false;
    if (live->items >= TURN_ITEMS_MAX)
        log_truncate(conversation, live, "a turn has at most 10000 parts");
    else if (live->item_bytes + size > TURN_ITEMS_BYTES_MAX)
        log_truncate(conversation, live, "the parts of a turn have at most 32 MB");
    else if (work->pending_count >= PENDING_MAX || work->pending_bytes + size > PENDING_BYTES_MAX)
        log_truncate(conversation, live, "the agent tells more than can be kept at once");
    return !live->is_truncated;
}

void turn_log_add(struct conversation *conversation, struct live_turn *live, const char *kind,
                  const char *part, const char *json)
{
    size_t size = strlen(json);

    if (live && part && !log_has_room(conversation, live, size))
        return;
    if (live && part) {
        live->items++;
        live->item_bytes += size;
    }
    log_append(conversation, live, kind, part, json);
}

void turn_log_task(struct domain *domain, struct conversation *conversation, const char *json)
{
    (void) domain;
    turn_log_add(conversation, NULL, "task", NULL, json);
    turn_log_flush(conversation);
}

/* --- to the store ----------------------------------------------------------------------------- */

static void log_insert(struct store_transaction *rows, const struct conversation *conversation,
                       const struct turn_item *item)
{
    const struct store_value values[STORE_TURN_PART_COLUMN_COUNT] = {
        [STORE_TURN_PART_CONVERSATION] = store_text(conversation->id.text),
        [STORE_TURN_PART_SEQUENCE] = store_integer(item->sequence),
        [STORE_TURN_PART_OWNER] = store_text(conversation->owner.text),
        [STORE_TURN_PART_TURN] = store_text(item->turn.text),
        [STORE_TURN_PART_KIND] = store_text(item->kind),
        [STORE_TURN_PART_PART] = store_text(item->part),
        [STORE_TURN_PART_JSON] = store_text(item->json),
        [STORE_TURN_PART_TIME] = store_integer(item->time_ms),
    };

    store_insert(rows, STORE_TURN_PART, values);
}

struct log_batch *turn_log_take(struct conversation *conversation, struct store_transaction *rows)
{
    struct conversation_work *work = conversation->work;
    struct log_batch *batch = mem_alloc(sizeof(*batch));
    size_t count = 0, bytes = 0;
    struct list *link;

    batch->conversation = conversation;
    list_init(&batch->items);
    conversation_ref(conversation);
    while (work->has_sequence && (link = list_first(&work->pending)) && count++ < BATCH_ITEMS &&
           bytes < BATCH_BYTES) {
        struct log_item *item = CONTAINER_OF(link, struct log_item, link);
        size_t size = strlen(item->item.json);

        item->item.sequence = ++work->sequence;
        log_insert(rows, conversation, &item->item);
        list_remove(link);
        list_append(&batch->items, link);
        work->pending_count--;
        work->pending_bytes -= size;
        bytes += size;
    }
    return batch;
}

/* They wait again, before what came since. */
static void log_put_back(struct conversation_work *work, struct log_batch *batch)
{
    struct list *link;

    while ((link = batch->items.previous) != &batch->items) {
        struct log_item *item = CONTAINER_OF(link, struct log_item, link);

        list_remove(link);
        link->next = work->pending.next;
        link->previous = &work->pending;
        work->pending.next->previous = link;
        work->pending.next = link;
        work->pending_count++;
        work->pending_bytes += strlen(item->item.json);
    }
}

void turn_log_kept(struct log_batch *batch, const struct error *failure)
{
    struct conversation *conversation = batch->conversation;
    struct conversation_work *work = conversation->work;
    struct list *link;

    if (failure)
        log_put_back(work, batch);
    while ((link = list_first(&batch->items))) {
        struct log_item *item = CONTAINER_OF(link, struct log_item, link);

        work->kept = item->item.sequence;
        turn_followers_tell(conversation, &item->item);
        log_item_free(work, item);
    }
    if (batch->is_own)
        work->is_flushing = false;
    if (!failure)
        turn_log_flush(conversation);
    free(batch);
    conversation_unref(work->domain, conversation);
}

static void log_batch_kept(void *context, const struct error *failure,
                           const struct store_receipt *receipt)
{
    (void) receipt;
    turn_log_kept(context, failure);
}

void turn_log_flush(struct conversation *conversation)
{
    struct conversation_work *work = conversation->work;
    struct store_transaction *rows;
    struct log_batch *batch;

    if (!work->has_sequence) {
        turn_log_begin(conversation);
        return;
    }
    if (work->is_flushing || !work->is_kept || list_is_empty(&work->pending) ||
        work->domain->stage != DOMAIN_OPEN)
        return;
    rows = store_begin(work->domain->options.store);
    batch = turn_log_take(conversation, rows);
    batch->is_own = true;
    work->is_flushing = true;
    domain_commit(work->domain, rows, log_batch_kept, batch);
}

/* --- where it goes on after a restart --------------------------------------------------------- */

static void log_begun(void *context, const struct error *failure, const struct store_rows *rows)
{
    struct conversation *conversation = context;
    struct conversation_work *work = conversation->work;

    work->is_asking = false;
    if (!failure) {
        work->has_sequence = true;
        work->sequence = work->kept =
            rows->count ? rows->rows[0][STORE_TURN_PART_SEQUENCE].integer : 0;
        if (work->domain->stage == DOMAIN_OPEN)
            turn_log_flush(conversation);
    }
    conversation_unref(work->domain, conversation);
}

void turn_log_begin(struct conversation *conversation)
{
    struct conversation_work *work = conversation->work;
    const struct store_condition mine = {.column = STORE_TURN_PART_CONVERSATION,
                                         .comparison = STORE_EQUAL,
                                         .value = store_text(conversation->id.text)};
    const struct store_query query = {.kind = STORE_TURN_PART,
                                      .conditions = &mine,
                                      .condition_count = 1,
                                      .order = STORE_TURN_PART_SEQUENCE,
                                      .is_descending = true,
                                      .limit = 1};

    if (work->is_asking || work->has_sequence)
        return;
    work->is_asking = true;
    conversation_ref(conversation);
    domain_find(work->domain, &query, log_begun, conversation);
}

void turn_log_done(struct conversation *conversation)
{
    struct list *link;

    while ((link = list_first(&conversation->work->pending)))
        log_item_free(conversation->work, CONTAINER_OF(link, struct log_item, link));
}
