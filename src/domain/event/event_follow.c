/* Followers of the log.
 *
 *     reading ──► it has seen all there is ──► live ──► `each` says no ──► paused
 *        ▲                                                                   │
 *        └──────────────────────────── resume ◄──────────────────────────────┘
 *
 * Those that read ask for their own part of the log, page by page. Those that are live share one
 * query, behind log->tail. The store answers in order: when a follower's last page comes, every
 * event that live followers were given was kept before that page was asked for, so it has seen
 * them; what it has seen beyond is known by its cursor, and skipped.
 *
 * A page for live followers is told in slices, each in a turn of its own: who has many followers, or
 * makes many events, must not hold the loop. */
#include <stdlib.h>
#include <string.h>

#include "base/auto.h"
#include "base/memory.h"
#include "base/pool.h"
#include "domain/event/event_log.h"

#define PAGE_ROWS 200
/* In one turn: to look whether an event is for a follower costs 1, to tell it WORK_OF_TELLING. That
 * is 64 events told, some milliseconds. */
#define WORK_PER_TURN   4096
#define WORK_OF_TELLING 64

/* A page that live followers are told. */
struct event_news {
    struct domain_task task; /* the next slice */
    struct domain *domain;
    struct pool pool; /* of all texts */
    struct event *events;
    size_t count, at;
    struct event_follower *next; /* who is told events[at] next; NULL: all were */
    bool is_whole;               /* the page was full: there may be more */
};

struct event_follower {
    struct domain_task task; /* `ended`, from the loop */
    struct list link;
    struct domain *domain;
    struct caller caller;
    char *stream, *type; /* owned; may be NULL */
    int64_t after;       /* cursor of the last event it has seen; -1: not known yet */
    bool is_live;
    bool is_paused;
    bool is_asking; /* a query of its own is under way */
    bool is_over;   /* closed or ended: no more calls */
    bool is_ending; /* `ended` is to be called */
    struct error reason;
    bool (*each)(void *context, const struct event *event);
    void (*ended)(void *context, const struct error *reason);
    void *context;
};

/* --- the end --------------------------------------------------------------------------------- */

static struct event_follower *follower_behind(const struct event_log *log, const struct list *link)
{
    return link->next == &log->followers ? NULL
                                         : CONTAINER_OF(link->next, struct event_follower, link);
}

static void follower_free(struct event_follower *follower)
{
    struct event_news *news = follower->domain->events->news;

    if (news && news->next == follower)
        news->next = follower_behind(follower->domain->events, &follower->link);
    list_remove(&follower->link);
    free(follower->stream);
    free(follower->type);
    free(follower);
}

/* Free it as soon as nothing refers to it any more. */
static void free_when_over(struct event_follower *follower)
{
    if (follower->is_over && !follower->is_ending && !follower->is_asking &&
        follower->domain->events->telling == 0)
        follower_free(follower);
}

static void event_follow_sweep(struct domain *domain)
{
    LIST_EACH (&domain->events->followers, at)
        free_when_over(CONTAINER_OF(at, struct event_follower, link));
}

static void event_follow_tell_end(struct domain_task *task)
{
    struct event_follower *follower = CONTAINER_OF(task, struct event_follower, task);
    bool is_closed = follower->is_over;

    follower->is_ending = false;
    follower->is_over = true;
    if (!is_closed)
        follower->ended(follower->context, &follower->reason);
    free_when_over(follower);
}

static void end_follower(struct event_follower *follower, const struct error *reason)
{
    if (follower->is_over || follower->is_ending)
        return;
    follower->is_live = false;
    follower->is_ending = true;
    follower->reason = *reason;
    domain_defer(follower->domain, &follower->task, event_follow_tell_end);
}

void event_follower_close(struct event_follower *follower)
{
    follower->is_over = true;
    follower->is_live = false;
    free_when_over(follower);
}

void event_followers_end(struct domain *domain)
{
    struct error reason = ERROR_INIT;

    (void) error_set(&reason, ERR_UNAVAILABLE, 0, "the daemon is ending");
    LIST_EACH (&domain->events->followers, at)
        end_follower(CONTAINER_OF(at, struct event_follower, link), &reason);
}

/* --- telling --------------------------------------------------------------------------------- */

static bool is_wanted(const struct event_follower *follower, const struct event *event)
{
    return event_is_seen(&follower->caller, event) &&
           (!follower->stream || strcmp(follower->stream, event->stream) == 0) &&
           event_type_matches(follower->type, event->type);
}

/* One that says no keeps its cursor where it is. Returns what it cost. */
static unsigned int event_follow_tell(struct event_follower *follower, const struct event *event)
{
    bool wants;

    if (event->cursor <= follower->after)
        return 1;
    wants = is_wanted(follower, event);
    if (wants && !follower->each(follower->context, event)) {
        follower->is_live = false;
        follower->is_paused = true;
    } else {
        follower->after = event->cursor;
    }
    return wants ? WORK_OF_TELLING : 1;
}

static bool takes_more(const struct event_follower *follower)
{
    return !follower->is_over && !follower->is_ending && !follower->is_paused;
}

/* --- a part of its own ----------------------------------------------------------------------- */

static void event_follow_read_on(struct event_follower *follower);

static bool has_live_followers(const struct domain *domain)
{
    LIST_EACH (&domain->events->followers, at)
        if (CONTAINER_OF(at, struct event_follower, link)->is_live)
            return true;
    return false;
}

static void go_live(struct event_follower *follower)
{
    struct event_log *log = follower->domain->events;

    /* Nobody was live: everything that is known to be kept is what this one has seen. */
    if (!has_live_followers(follower->domain))
        log->tail = log->head;
    follower->is_live = true;
}

static void on_part(void *context, const struct error *failure, const struct store_rows *rows)
{
    struct event_follower *follower = context;
    struct event_log *log = follower->domain->events;

    follower->is_asking = false;
    log->telling++;
    for (size_t i = 0; !failure && i < rows->count && takes_more(follower); i++) {
        struct event event = event_from_row(rows->rows[i]);

        (void) event_follow_tell(follower, &event);
    }
    log->telling--;
    if (!failure && takes_more(follower)) {
        if (rows->count == PAGE_ROWS)
            event_follow_read_on(follower);
        else
            go_live(follower);
    }
    event_follow_sweep(
        follower->domain); /* it may be gone now; a failed one is tried again by the tick */
}

static void event_follow_on_head(void *context, const struct error *failure,
                                 const struct store_rows *rows)
{
    struct event_follower *follower = context;
    struct domain *domain = follower->domain;

    follower->is_asking = false;
    if (!failure) {
        follower->after = rows->count ? rows->rows[0][STORE_EVENT_CURSOR].integer : 0;
        if (takes_more(follower))
            go_live(follower);
    }
    event_follow_sweep(domain);
}

static void ask_head(struct event_follower *follower)
{
    const struct store_query query = {
        .kind = STORE_EVENT, .order = STORE_EVENT_CURSOR, .is_descending = true, .limit = 1};

    domain_find(follower->domain, &query, event_follow_on_head, follower);
}

static void ask_part(struct event_follower *follower)
{
    struct store_condition conditions[STORE_CONDITIONS_MAX];
    struct store_query query = {.kind = STORE_EVENT,
                                .conditions = conditions,
                                .order = STORE_EVENT_CURSOR,
                                .limit = PAGE_ROWS};

    query.condition_count =
        event_conditions(&follower->caller, follower->stream, follower->after, conditions);
    domain_find(follower->domain, &query, on_part, follower);
}

static void event_follow_read_on(struct event_follower *follower)
{
    struct error reason = ERROR_INIT;

    if (follower->is_asking || !takes_more(follower))
        return;
    if (event_is_gone(follower->domain, follower->after, &reason)) {
        end_follower(follower, &reason);
        return;
    }
    follower->is_asking = true;
    if (follower->after < 0)
        ask_head(follower);
    else
        ask_part(follower);
}

/* --- live ------------------------------------------------------------------------------------ */

static struct event event_copy(struct pool *pool, const struct event *event)
{
    struct event copy = *event;

    copy.stream = pool_copy_text(pool, event->stream);
    copy.actor = pool_copy_text(pool, event->actor);
    copy.request = pool_copy_text(pool, event->request);
    copy.type = pool_copy_text(pool, event->type);
    copy.data = pool_copy_text(pool, event->data);
    return copy;
}

/* Copied: the rows are the store's, and gone after its answer. */
static struct event_news *event_news_new(struct domain *domain, const struct store_rows *rows)
{
    struct event_news *news = mem_alloc(sizeof(*news));

    *news = (struct event_news){
        .domain = domain, .count = rows->count, .is_whole = rows->count == PAGE_ROWS};
    news->events = pool_alloc(&news->pool, rows->count * sizeof(*news->events));
    for (size_t i = 0; i < rows->count; i++) {
        const struct event event = event_from_row(rows->rows[i]);

        news->events[i] = event_copy(&news->pool, &event);
    }
    news->next = follower_behind(domain->events, &domain->events->followers);
    return news;
}

static void event_news_end(struct event_news *news)
{
    struct domain *domain = news->domain;
    bool is_whole = news->is_whole;

    domain->events->news = NULL;
    domain->events->is_reading = false;
    pool_done(&news->pool);
    free(news);
    if (domain->events->is_stale || is_whole)
        event_followers_read(domain);
}

/* As many as one turn may tell. */
static void event_news_slice(struct event_news *news)
{
    struct event_log *log = news->domain->events;
    unsigned int work = 0;

    log->telling++;
    for (; news->at < news->count; news->at++) {
        while (news->next && work < WORK_PER_TURN) {
            struct event_follower *follower = news->next;

            news->next = follower_behind(log, &follower->link);
            work += follower->is_live ? event_follow_tell(follower, &news->events[news->at]) : 1;
        }
        if (work >= WORK_PER_TURN)
            break;
        news->next = follower_behind(log, &log->followers);
    }
    log->telling--;
    event_follow_sweep(news->domain);
}

static void event_news_go_on(struct domain_task *task)
{
    struct event_news *news = CONTAINER_OF(task, struct event_news, task);

    event_news_slice(news);
    if (news->at < news->count)
        domain_defer(news->domain, &news->task, event_news_go_on);
    else
        event_news_end(news);
}

static void on_news(void *context, const struct error *failure, const struct store_rows *rows)
{
    struct domain *domain = context;
    struct event_log *log = domain->events;

    if (failure || rows->count == 0) {
        log->is_reading = false;
        log->is_stale = log->is_stale || failure; /* the tick tries again */
        if (!failure && log->is_stale)
            event_followers_read(domain);
        return;
    }
    /* Whoever becomes live from here on has asked for its own last page behind this one. */
    log->tail = rows->rows[rows->count - 1][STORE_EVENT_CURSOR].integer;
    log->news = event_news_new(domain, rows);
    domain_defer(domain, &log->news->task, event_news_go_on);
}

void event_followers_read(struct domain *domain)
{
    struct event_log *log = domain->events;
    struct store_condition behind = {.column = STORE_EVENT_CURSOR,
                                     .comparison = STORE_GREATER,
                                     .value = store_integer(log->tail)};
    const struct store_query query = {.kind = STORE_EVENT,
                                      .conditions = &behind,
                                      .condition_count = 1,
                                      .order = STORE_EVENT_CURSOR,
                                      .limit = PAGE_ROWS};

    log->is_stale = log->is_reading;
    if (log->is_reading || domain->stage != DOMAIN_OPEN)
        return;
    if (!has_live_followers(domain)) {
        log->tail = log->head;
        return;
    }
    log->is_reading = true;
    domain_find(domain, &query, on_news, domain);
}

void event_followers_tick(struct domain *domain)
{
    LIST_EACH (&domain->events->followers, at) {
        struct event_follower *follower = CONTAINER_OF(at, struct event_follower, link);

        if (!follower->is_live)
            event_follow_read_on(follower);
    }
    if (domain->events->is_stale)
        event_followers_read(domain);
}

/* --- the beginning --------------------------------------------------------------------------- */

static int event_follow_check(struct domain *domain, const struct caller *caller,
                              const struct event_filter *filter, struct error *err)
{
    bool is_system = filter->stream && strcmp(filter->stream, "system") == 0;

    if (!domain_is_open(domain, err))
        return -1;
    if (caller->scope == CALLER_NOBODY)
        return error_set(err, ERR_NOT_FOUND, 0, "there is nothing to follow");
    if (filter->stream && !is_system && !domain_find_sandbox(domain, caller, filter->stream, err))
        return -1;
    return 0;
}

static char *event_follow_copy_text(const char *text)
{
    return text ? mem_copy_text(text) : NULL;
}

struct event_follower *event_follow(struct domain *domain, const struct caller *caller,
                                    const struct event_filter *filter,
                                    bool (*each)(void *context, const struct event *event),
                                    void (*ended)(void *context, const struct error *reason),
                                    void *context, struct error *err)
{
    struct event_follower *follower;
    const struct sandbox *sandbox;

    if (event_follow_check(domain, caller, filter, err) < 0)
        return NULL;
    follower = mem_alloc(sizeof(*follower));
    follower->domain = domain;
    follower->caller = *caller;
    sandbox = filter->stream ? domain_find_sandbox(domain, caller, filter->stream, NULL) : NULL;
    follower->stream = event_follow_copy_text(sandbox ? sandbox->id.text : filter->stream);
    follower->type = event_follow_copy_text(filter->type);
    follower->after = filter->after < 0 ? -1 : filter->after;
    follower->each = each;
    follower->ended = ended;
    follower->context = context;
    list_append(&domain->events->followers, &follower->link);
    event_follow_read_on(follower);
    return follower;
}

void event_follower_resume(struct event_follower *follower)
{
    follower->is_paused = false;
    if (!follower->is_live)
        event_follow_read_on(follower);
}
