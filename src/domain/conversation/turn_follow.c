/* Those who follow a conversation: each reads what is kept from where it is, page by page, and is
 * live from then on: told what is kept as it is kept, and text while it is written. Whoever pauses is
 * not live any more, and reads on when it resumes; what is being written it then gets whole. */
#include "domain/conversation/turn_follow.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "domain/conversation/conversation_internal.h"

#define FOLLOW_PAGE 64

struct turn_follower {
    struct list link;
    struct domain_task task;
    struct domain *domain;
    struct conversation *conversation; /* a reference */
    struct id turn, task_id;           /* empty: all */
    int64_t after;
    bool is_live, is_paused, is_asking;
    bool is_over;   /* closed or ended: no more calls */
    bool is_ending; /* `ended` is to be called */
    bool has_reason;
    struct error reason;
    bool (*each)(void *context, const struct turn_item *item);
    void (*ended)(void *context, const struct error *reason);
    void *context;
};

static void turn_follower_read(struct turn_follower *follower);

/* --- the end ---------------------------------------------------------------------------------- */

static void turn_follower_free_when_over(struct turn_follower *follower)
{
    struct conversation *conversation = follower->conversation;
    struct domain *domain = follower->domain;

    if (!follower->is_over || follower->is_ending || follower->is_asking ||
        conversation->work->telling)
        return;
    list_remove(&follower->link);
    free(follower);
    conversation_unref(domain, conversation);
}

static void turn_follower_tell_end(struct domain_task *task)
{
    struct turn_follower *follower = CONTAINER_OF(task, struct turn_follower, task);

    follower->is_ending = false;
    if (!follower->is_over) {
        follower->is_over = true;
        follower->ended(follower->context, follower->has_reason ? &follower->reason : NULL);
    }
    turn_follower_free_when_over(follower);
}

static void turn_follower_end(struct turn_follower *follower, const struct error *reason)
{
    if (follower->is_over || follower->is_ending)
        return;
    follower->is_live = false;
    follower->is_ending = true;
    follower->has_reason = reason != NULL;
    if (reason)
        follower->reason = *reason;
    domain_defer(follower->domain, &follower->task, turn_follower_tell_end);
}

void turn_follower_close(struct turn_follower *follower)
{
    follower->is_over = true;
    follower->is_live = false;
    turn_follower_free_when_over(follower);
}

void turn_followers_end(struct conversation *conversation, const struct error *reason)
{
    LIST_EACH (&conversation->work->followers, at)
        turn_follower_end(CONTAINER_OF(at, struct turn_follower, link), reason);
}

/* --- telling ---------------------------------------------------------------------------------- */

static bool turn_follower_wants(const struct turn_follower *follower, const struct turn_item *item)
{
    return !*follower->turn.text || id_equal(&follower->turn, &item->turn);
}

/* Whoever has no more room is not live from here on, and keeps its place. */
static void turn_follower_tell(struct turn_follower *follower, const struct turn_item *item)
{
    if (item->sequence && item->sequence <= follower->after)
        return;
    if (turn_follower_wants(follower, item) && !follower->each(follower->context, item)) {
        follower->is_live = false;
        follower->is_paused = true;
        return;
    }
    if (item->sequence)
        follower->after = item->sequence;
}

/* Nothing more comes for it. */
static bool turn_follower_has_all(const struct turn_follower *follower)
{
    const struct conversation_work *work = follower->conversation->work;

    if (!list_is_empty(&work->pending) || work->is_flushing)
        return false;
    if (*follower->turn.text)
        return !turn_live(follower->domain, follower->turn.text);
    return *follower->task_id.text && work->is_task_over;
}

bool turn_has_live_followers(const struct conversation *conversation)
{
    LIST_EACH (&conversation->work->followers, at)
        if (CONTAINER_OF(at, struct turn_follower, link)->is_live)
            return true;
    return false;
}

void turn_followers_check(struct conversation *conversation)
{
    LIST_EACH (&conversation->work->followers, at) {
        struct turn_follower *follower = CONTAINER_OF(at, struct turn_follower, link);

        if (follower->is_live && turn_follower_has_all(follower))
            turn_follower_end(follower, NULL);
    }
}

static void turn_followers_sweep(struct conversation *conversation)
{
    struct domain *domain = conversation->work->domain;

    conversation_ref(conversation);
    LIST_EACH (&conversation->work->followers, at)
        turn_follower_free_when_over(CONTAINER_OF(at, struct turn_follower, link));
    conversation_unref(domain, conversation);
}

void turn_followers_tell(struct conversation *conversation, const struct turn_item *item)
{
    conversation->work->telling++;
    LIST_EACH (&conversation->work->followers, at) {
        struct turn_follower *follower = CONTAINER_OF(at, struct turn_follower, link);

        if (follower->is_live)
            turn_follower_tell(follower, item);
    }
    conversation->work->telling--;
    turn_followers_sweep(conversation);
}

/* --- reading ---------------------------------------------------------------------------------- */

static struct turn_item turn_item_from_row(const struct store_value *row)
{
    return (struct turn_item){
        .sequence = row[STORE_TURN_PART_SEQUENCE].integer,
        .time_ms = row[STORE_TURN_PART_TIME].integer,
        .turn = domain_row_id(&row[STORE_TURN_PART_TURN]),
        .kind = row[STORE_TURN_PART_KIND].bytes,
        .part = row[STORE_TURN_PART_PART].bytes,
        .json = row[STORE_TURN_PART_JSON].bytes,
    };
}

static bool turn_follower_takes_more(const struct turn_follower *follower)
{
    return !follower->is_over && !follower->is_ending && !follower->is_paused;
}

/* What is written now, whole. */
static bool turn_follower_tell_open(void *context, const struct turn_item *item)
{
    struct turn_follower *follower = context;

    if (!turn_follower_wants(follower, item))
        return true;
    if (follower->each(follower->context, item))
        return true;
    follower->is_paused = true;
    return false;
}

static void turn_follower_go_live(struct turn_follower *follower)
{
    turn_parts_each(follower->conversation, turn_follower_tell_open, follower);
    if (follower->is_paused || follower->is_over)
        return;
    follower->is_live = true;
    if (turn_follower_has_all(follower))
        turn_follower_end(follower, NULL);
}

static void turn_follower_got_page(void *context, const struct error *failure,
                                   const struct store_rows *rows)
{
    struct turn_follower *follower = context;
    struct conversation *conversation = follower->conversation;

    conversation_ref(conversation);
    conversation->work->telling++;
    follower->is_asking = false;
    for (size_t i = 0; !failure && i < rows->count && turn_follower_takes_more(follower); i++) {
        const struct turn_item item = turn_item_from_row(rows->rows[i]);

        turn_follower_tell(follower, &item);
    }
    if (failure)
        turn_follower_end(follower, failure);
    else if (turn_follower_takes_more(follower) && rows->count == FOLLOW_PAGE)
        turn_follower_read(follower);
    else if (turn_follower_takes_more(follower))
        turn_follower_go_live(follower);
    conversation->work->telling--;
    turn_followers_sweep(conversation);
    conversation_unref(conversation->work->domain, conversation);
}

static size_t turn_part_conditions(const struct conversation *conversation, const struct id *turn,
                                   int64_t after, struct store_condition ret_conditions[static 3])
{
    size_t count = 0;

    ret_conditions[count++] = (struct store_condition){STORE_TURN_PART_CONVERSATION, STORE_EQUAL,
                                                       store_text(conversation->id.text)};
    ret_conditions[count++] =
        (struct store_condition){STORE_TURN_PART_SEQUENCE, STORE_GREATER, store_integer(after)};
    if (turn && *turn->text)
        ret_conditions[count++] =
            (struct store_condition){STORE_TURN_PART_TURN, STORE_EQUAL, store_text(turn->text)};
    return count;
}

static void turn_part_find(struct domain *domain, const struct conversation *conversation,
                           const struct id *turn, int64_t after, size_t limit,
                           store_rows_done *done, void *context)
{
    struct store_condition conditions[3];
    struct store_query query = {.kind = STORE_TURN_PART,
                                .conditions = conditions,
                                .order = STORE_TURN_PART_SEQUENCE,
                                .limit = limit};

    query.condition_count = turn_part_conditions(conversation, turn, after, conditions);
    domain_find(domain, &query, done, context);
}

static void turn_follower_read(struct turn_follower *follower)
{
    if (follower->is_asking || !turn_follower_takes_more(follower))
        return;
    follower->is_asking = true;
    turn_part_find(follower->domain, follower->conversation, &follower->turn, follower->after,
                   FOLLOW_PAGE, turn_follower_got_page, follower);
}

static void turn_follower_begin(struct domain_task *task)
{
    struct turn_follower *follower = CONTAINER_OF(task, struct turn_follower, task);
    struct conversation *conversation = follower->conversation;
    struct error reason = ERROR_INIT;

    follower->is_ending = false;
    conversation_ref(conversation);
    conversation->work->telling++;
    if (!domain_is_open(follower->domain, &reason))
        turn_follower_end(follower, &reason);
    else if (follower->after >= 0)
        turn_follower_read(follower);
    else if (!follower->is_over) {
        follower->after = conversation->work->kept;
        turn_follower_go_live(follower);
    }
    conversation->work->telling--;
    turn_followers_sweep(conversation);
    conversation_unref(conversation->work->domain, conversation);
}

struct turn_follower *turn_follow(struct domain *domain, struct conversation *conversation,
                                  const struct turn_filter *filter,
                                  bool (*each)(void *context, const struct turn_item *item),
                                  void (*ended)(void *context, const struct error *reason),
                                  void *context, struct error *err)
{
    struct turn_follower *follower;

    if (!domain_is_open(domain, err))
        return NULL;
    follower = mem_alloc(sizeof(*follower));
    follower->domain = domain;
    follower->conversation = conversation;
    if (filter->turn)
        follower->turn = *filter->turn;
    if (filter->task)
        follower->task_id = *filter->task;
    follower->after = filter->after < 0 ? -1 : filter->after;
    follower->each = each;
    follower->ended = ended;
    follower->context = context;
    conversation_ref(conversation);
    list_append(&conversation->work->followers, &follower->link);
    turn_log_begin(conversation);
    follower->is_ending = true; /* the task is taken: freed when it has run */
    domain_defer(domain, &follower->task, turn_follower_begin);
    return follower;
}

void turn_follower_resume(struct turn_follower *follower)
{
    if (!follower->is_paused)
        return;
    follower->is_paused = false;
    turn_follower_read(follower);
}

/* --- a page ----------------------------------------------------------------------------------- */

struct turn_page {
    turn_items_done *done;
    size_t limit;
    void *context;
};

static void turn_page_read(void *context, const struct error *failure,
                           const struct store_rows *rows)
{
    AUTO(free) struct turn_page *page = context;
    AUTO(free) struct turn_item *items = NULL;
    size_t count = failure ? 0 : rows->count;

    items = mem_alloc_array(count + 1, sizeof(*items));
    for (size_t i = 0; i < count; i++)
        items[i] = turn_item_from_row(rows->rows[i]);
    page->done(page->context, failure, items, count < page->limit ? count : page->limit,
               count > page->limit);
}

void turn_items(struct domain *domain, const struct conversation *conversation,
                const struct id *turn, int64_t after, size_t limit, turn_items_done *done,
                void *context)
{
    struct turn_page *page = mem_alloc(sizeof(*page));

    *page = (struct turn_page){.done = done, .limit = limit, .context = context};
    turn_part_find(domain, conversation, turn, after, limit + 1, turn_page_read, page);
}
