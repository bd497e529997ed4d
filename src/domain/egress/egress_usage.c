/* What was used, added up from rows: day by day, in pages, so that no question holds the loop or the
 * store for long. */
#include <stdlib.h>
#include <string.h>

#include "base/auto.h"
#include "base/memory.h"
#include "domain/egress/egress_internal.h"

#define DAY_MS      INT64_C(86400000)
#define GROUPS_MAX  20000 /* that one question adds up */
#define DATE_LENGTH 10

struct usage_group {
    struct table_link by_key;
    struct egress_usage usage;
};

struct usage_question {
    struct domain_task task;
    struct domain *domain;
    struct caller caller;
    enum egress_group by;
    struct id owner; /* "": of all */
    char *after;     /* owned; NULL: from the start */
    size_t limit;
    int64_t day_ms, to_ms; /* the day that is read, and where it ends */
    struct id last;        /* of that day: the last sandbox that was read as a whole */
    struct table groups;
    size_t group_count;
    struct error failure;
    egress_usage_done *done;
    void *context;
};

/* --- the end --------------------------------------------------------------------------------- */

static int usage_compare(const void *a, const void *b)
{
    return strcmp(((const struct egress_usage *) a)->key, ((const struct egress_usage *) b)->key);
}

static void question_free(struct usage_question *question)
{
    struct domain *domain = question->domain;

    for (size_t i = 0; i < question->groups.bucket_count; i++)
        for (struct table_link *at = question->groups.buckets[i], *next; at; at = next) {
            struct usage_group *group = CONTAINER_OF(at, struct usage_group, by_key);

            next = at->next;
            free(group->usage.key);
            free(group);
        }
    table_done(&question->groups);
    free(question->after);
    free(question);
    domain->works--;
    domain_check_gone(domain);
}

/* Those behind the last page, in order. The keys are the groups'. */
static size_t question_sort(const struct usage_question *question, struct egress_usage *usage)
{
    size_t count = 0;

    for (size_t i = 0; i < question->groups.bucket_count; i++)
        for (struct table_link *at = question->groups.buckets[i]; at; at = at->next) {
            const struct usage_group *group = CONTAINER_OF(at, struct usage_group, by_key);

            if (!question->after || strcmp(group->usage.key, question->after) > 0)
                usage[count++] = group->usage;
        }
    qsort(usage, count, sizeof(*usage), usage_compare);
    return count;
}

static void question_answer(struct usage_question *question, const struct error *failure)
{
    AUTO(free)
    struct egress_usage *usage = mem_alloc_array(question->group_count + 1, sizeof(*usage));
    size_t count = failure ? 0 : question_sort(question, usage);
    const char *next = NULL;

    if (count > question->limit) {
        count = question->limit;
        next = usage[count - 1].key;
    }
    question->done(question->context, failure, usage, count, next);
    question_free(question);
}

static void question_refused(struct domain_task *task)
{
    struct usage_question *question = CONTAINER_OF(task, struct usage_question, task);

    question_answer(question, &question->failure);
}

/* --- adding up ------------------------------------------------------------------------------- */

static struct egress_usage *question_group(struct usage_question *question, const char *key)
{
    uint64_t hash = table_hash(question->domain->seed, key, strlen(key));
    struct usage_group *group;

    for (struct table_link *at = table_find(&question->groups, hash); at; at = table_next(at)) {
        group = CONTAINER_OF(at, struct usage_group, by_key);
        if (strcmp(group->usage.key, key) == 0)
            return &group->usage;
    }
    if (question->group_count == GROUPS_MAX)
        return NULL;
    group = mem_alloc(sizeof(*group));
    group->usage.key = mem_copy_text(key);
    group->by_key.hash = hash;
    table_add(&question->groups, &group->by_key);
    question->group_count++;
    return &group->usage;
}

static void row_key(const struct usage_question *question, const struct store_value *row,
                    char *ret_key, size_t size)
{
    static const unsigned int columns[EGRESS_GROUP_COUNT] = {
        [EGRESS_BY_OWNER] = STORE_EGRESS_TOTAL_OWNER,
        [EGRESS_BY_MODEL] = STORE_EGRESS_TOTAL_MODEL,
        [EGRESS_BY_SANDBOX] = STORE_EGRESS_TOTAL_SANDBOX,
        [EGRESS_BY_ROUTE] = STORE_EGRESS_TOTAL_ROUTE,
        [EGRESS_BY_TASK] = STORE_EGRESS_TOTAL_TASK,
    };
    char date[CLOCK_TEXT_SIZE];

    if (question->by == EGRESS_BY_DAY) {
        clock_format(row[STORE_EGRESS_TOTAL_DAY].integer, date);
        (void) snprintf(ret_key, size, "%.*s", DATE_LENGTH, date);
    } else {
        (void) snprintf(ret_key, size, "%s", row[columns[question->by]].bytes);
    }
}

static uint64_t number_of(const struct store_value *row, unsigned int column)
{
    return row[column].integer > 0 ? (uint64_t) row[column].integer : 0;
}

static int question_add(struct usage_question *question, const struct store_value *row)
{
    const struct id owner = domain_row_id(&row[STORE_EGRESS_TOTAL_OWNER]);
    const struct id sandbox = domain_row_id(&row[STORE_EGRESS_TOTAL_SANDBOX]);
    struct egress_usage *usage;
    char key[SANDBOX_LABEL_MAX + 1];

    /* Rows that were all moved to another model say nothing. */
    if (!caller_sees_sandbox(&question->caller, &owner, &sandbox) ||
        (*question->owner.text && !id_equal(&question->owner, &owner)) ||
        !number_of(row, STORE_EGRESS_TOTAL_REQUESTS))
        return 0;
    row_key(question, row, key, sizeof(key));
    usage = question_group(question, key);
    if (!usage)
        return error_set(&question->failure, ERR_TOO_LARGE, 0,
                         "there is more than can be added up at once: ask for fewer days");
    usage->requests += number_of(row, STORE_EGRESS_TOTAL_REQUESTS);
    usage->partial += number_of(row, STORE_EGRESS_TOTAL_PARTIAL);
    usage->unpriced += number_of(row, STORE_EGRESS_TOTAL_UNPRICED);
    usage->tokens.input += number_of(row, STORE_EGRESS_TOTAL_INPUT);
    usage->tokens.output += number_of(row, STORE_EGRESS_TOTAL_OUTPUT);
    usage->tokens.reasoning += number_of(row, STORE_EGRESS_TOTAL_REASONING);
    usage->tokens.cache_read += number_of(row, STORE_EGRESS_TOTAL_CACHE_READ);
    usage->tokens.cache_write += number_of(row, STORE_EGRESS_TOTAL_CACHE_WRITE);
    usage->micros += number_of(row, STORE_EGRESS_TOTAL_COST);
    return 0;
}

/* --- reading --------------------------------------------------------------------------------- */

static void question_find_day(struct usage_question *question);
static void question_read_day(struct usage_question *question);

static void question_read(void *context, const struct error *failure, const struct store_rows *rows)
{
    struct usage_question *question = context;
    size_t count = failure ? 0 : rows->count;
    bool is_full = count == STORE_ROWS_MAX;

    if (failure || question->domain->stage != DOMAIN_OPEN) {
        (void) error_set(&question->failure, ERR_UNAVAILABLE, 0, "the daemon is ending");
        question_answer(question, failure ? failure : &question->failure);
        return;
    }
    /* The last sandbox of a full page may have more rows: it is left to the next one. */
    if (is_full) {
        const char *last = rows->rows[count - 1][STORE_EGRESS_TOTAL_SANDBOX].bytes;

        while (count && strcmp(rows->rows[count - 1][STORE_EGRESS_TOTAL_SANDBOX].bytes, last) == 0)
            count--;
    }
    for (size_t i = 0; i < count; i++)
        if (question_add(question, rows->rows[i]) < 0) {
            question_answer(question, &question->failure);
            return;
        }
    if (is_full && count) {
        question->last = domain_row_id(&rows->rows[count - 1][STORE_EGRESS_TOTAL_SANDBOX]);
        question_read_day(question);
        return;
    }
    question->last = (struct id){.text = ""};
    question->day_ms++;
    question_find_day(question);
}

static void question_read_day(struct usage_question *question)
{
    const struct store_condition conditions[] = {
        {STORE_EGRESS_TOTAL_DAY, STORE_EQUAL, store_integer(question->day_ms)},
        {STORE_EGRESS_TOTAL_SANDBOX, STORE_GREATER, store_text(question->last.text)},
    };
    const struct store_query query = {.kind = STORE_EGRESS_TOTAL,
                                      .conditions = conditions,
                                      .condition_count = ARRAY_COUNT(conditions),
                                      .order = STORE_EGRESS_TOTAL_SANDBOX,
                                      .limit = STORE_ROWS_MAX};

    domain_find(question->domain, &query, question_read, question);
}

static void question_found_day(void *context, const struct error *failure,
                               const struct store_rows *rows)
{
    struct usage_question *question = context;

    if (failure || !rows->count) {
        question_answer(question, failure);
        return;
    }
    question->day_ms = rows->rows[0][STORE_EGRESS_TOTAL_DAY].integer;
    question_read_day(question);
}

/* The first day from there on that has a row. */
static void question_find_day(struct usage_question *question)
{
    const struct store_condition conditions[] = {
        {STORE_EGRESS_TOTAL_DAY, STORE_GREATER, store_integer(question->day_ms - 1)},
        {STORE_EGRESS_TOTAL_DAY, STORE_LESS, store_integer(question->to_ms)},
    };
    const struct store_query query = {.kind = STORE_EGRESS_TOTAL,
                                      .conditions = conditions,
                                      .condition_count = ARRAY_COUNT(conditions),
                                      .order = STORE_EGRESS_TOTAL_DAY,
                                      .limit = 1};

    domain_find(question->domain, &query, question_found_day, question);
}

static int question_check(const struct domain *domain, const struct caller *caller,
                          const struct egress_usage_filter *filter, struct error *err)
{
    if (!domain_is_open(domain, err))
        return -1;
    if (caller->scope == CALLER_NOBODY || caller->scope == CALLER_PORT)
        return error_set(err, ERR_FORBIDDEN, 0, "this key does not see what was used");
    if (filter->limit < 1 || filter->limit > EGRESS_USAGE_MAX)
        return error_set(err, ERR_INVALID, 0, "a page has 1 to %d groups", EGRESS_USAGE_MAX);
    if (filter->to_ms <= filter->from_ms ||
        filter->to_ms - filter->from_ms > (EGRESS_KEPT_DAYS + 1) * DAY_MS)
        return error_set(err, ERR_INVALID, 0, "from 1 to %d days, the first before the last",
                         EGRESS_KEPT_DAYS + 1);
    return 0;
}

void egress_usage(struct domain *domain, const struct caller *caller,
                  const struct egress_usage_filter *filter, egress_usage_done *done, void *context)
{
    struct usage_question *question = mem_alloc(sizeof(*question));

    *question =
        (struct usage_question){.domain = domain,
                                .caller = *caller,
                                .by = filter->by,
                                .after = filter->after ? mem_copy_text(filter->after) : NULL,
                                .limit = filter->limit,
                                .day_ms = filter->from_ms,
                                .to_ms = filter->to_ms,
                                .done = done,
                                .context = context};
    if (filter->owner)
        question->owner = *filter->owner;
    domain->works++;
    if (question_check(domain, caller, filter, &question->failure) < 0)
        domain_defer(domain, &question->task, question_refused);
    else
        question_find_day(question);
}
