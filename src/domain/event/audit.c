#include "domain/event/audit.h"

#include <stdio.h>
#include <string.h>

#include "base/memory.h"
#include "domain/domain_internal.h"
#include "domain/domain_modules.h"
#include "domain/retention.h"

#define BATCH_MAX   32 /* rows of one transaction */
#define REPEATS_MAX 64 /* different denials that are counted at a time */
#define DETAIL_MAX  300
#define OBJECT_MAX  128
#define ACTION_MAX  128
#define SWEEP_NS    (UINT64_C(3600) * 1000 * 1000 * 1000)

_Static_assert(BATCH_MAX <= STORE_CHANGES_MAX, "a batch is one transaction");

struct audit_line {
    struct list link;
    int64_t time_ms;
    struct caller caller;
    enum err_code outcome;
    char action[ACTION_MAX];
    char object[OBJECT_MAX];
    char detail[DETAIL_MAX];
};

/* A denial that was written, and how often the same came since. */
struct repeat {
    struct audit_line *entry; /* owned; NULL: free */
    uint64_t hash;
    uint64_t count;
};

struct audit {
    struct list waiting; /* of entry, oldest first */
    size_t waiting_count;
    bool is_busy; /* a batch is on its way */
    struct repeat repeats[REPEATS_MAX];
    double tokens; /* denials that may be written */
    uint64_t filled_ns;
    uint64_t uncounted; /* denials that were not written */
    struct retention old;
};

/* --- writing --------------------------------------------------------------------------------- */

static void add_row(struct store_transaction *change, const struct audit_line *entry)
{
    const struct caller *caller = &entry->caller;
    const struct store_value row[STORE_AUDIT_COLUMN_COUNT] = {
        [STORE_AUDIT_OWNER] = store_text(caller->owner.text),
        [STORE_AUDIT_TIME] = store_integer(entry->time_ms),
        [STORE_AUDIT_CREDENTIAL] = store_text(caller->credential.text),
        [STORE_AUDIT_ADDRESS] = store_text(caller->address),
        [STORE_AUDIT_REQUEST] = store_text(caller->request.text),
        [STORE_AUDIT_ACTION] = store_text(entry->action),
        [STORE_AUDIT_OBJECT] = store_text(entry->object),
        [STORE_AUDIT_OUTCOME] = store_text(error_code_text(entry->outcome)),
        [STORE_AUDIT_DETAIL] = store_text(entry->detail),
    };

    store_insert(change, STORE_AUDIT, row);
}

static void write_waiting(struct domain *domain);

static void written(void *context, const struct error *failure, const struct store_receipt *receipt)
{
    struct domain *domain = context;

    (void) receipt;
    if (failure)
        LOG_ERROR(domain->options.log, "part of the audit log could not be written",
                  log_text("reason", failure->message));
    domain->audit->is_busy = false;
    if (domain->stage == DOMAIN_OPEN)
        write_waiting(domain);
}

static struct store_transaction *take_batch(struct domain *domain)
{
    struct store_transaction *change = store_begin(domain->options.store);
    struct audit *audit = domain->audit;

    for (size_t i = 0; i < BATCH_MAX && audit->waiting_count; i++) {
        struct audit_line *entry =
            CONTAINER_OF(list_first(&audit->waiting), struct audit_line, link);

        add_row(change, entry);
        list_remove(&entry->link);
        audit->waiting_count--;
        free(entry);
    }
    return change;
}

/* One batch at a time: what comes meanwhile shares the next one. */
static void write_waiting(struct domain *domain)
{
    if (domain->audit->is_busy || !domain->audit->waiting_count)
        return;
    domain->audit->is_busy = true;
    domain_commit(domain, take_batch(domain), written, domain);
}

static struct audit_line *entry_new(const struct domain *domain, const struct caller *caller,
                                    const char *action, const char *object, enum err_code outcome,
                                    const char *detail)
{
    struct audit_line *entry = mem_alloc(sizeof(*entry));

    entry->time_ms = domain_wall_ms(domain);
    entry->caller = *caller;
    entry->outcome = outcome;
    (void) snprintf(entry->action, sizeof(entry->action), "%s", action);
    (void) snprintf(entry->object, sizeof(entry->object), "%s", object ? object : "");
    (void) snprintf(entry->detail, sizeof(entry->detail), "%s", detail);
    return entry;
}

static void audit_add_entry(struct domain *domain, struct audit_line *entry)
{
    if (domain->audit->waiting_count >= AUDIT_WAITING_MAX) {
        domain->audit->uncounted++;
        free(entry);
        return;
    }
    list_append(&domain->audit->waiting, &entry->link);
    domain->audit->waiting_count++;
    write_waiting(domain);
}

/* --- denials --------------------------------------------------------------------------------- */

static bool take_token(struct domain *domain)
{
    struct audit *audit = domain->audit;
    uint64_t now = domain_now_ns(domain);

    audit->tokens += (double) (now - audit->filled_ns) / 1e9 * AUDIT_DENIALS_A_SECOND;
    audit->filled_ns = now;
    if (audit->tokens > AUDIT_DENIALS_BURST)
        audit->tokens = AUDIT_DENIALS_BURST;
    if (audit->tokens < 1)
        return false;
    audit->tokens -= 1;
    return true;
}

static uint64_t audit_hash_of(const struct domain *domain, const struct audit_line *entry)
{
    char text[ACTION_MAX + 256];
    int length = snprintf(text, sizeof(text), "%s %d %s %s", entry->action, (int) entry->outcome,
                          entry->caller.owner.text, entry->caller.address);

    return table_hash(domain->seed, text, (size_t) length);
}

/* Where this denial is counted: its own place, or a free one, or NULL. */
static struct repeat *repeat_of(struct audit *audit, uint64_t hash)
{
    struct repeat *free_one = NULL;

    for (size_t i = 0; i < REPEATS_MAX; i++) {
        struct repeat *at = &audit->repeats[i];

        if (at->entry && at->hash == hash)
            return at;
        if (!at->entry && !free_one)
            free_one = at;
    }
    return free_one;
}

static void add_denial(struct domain *domain, struct audit_line *entry)
{
    uint64_t hash = audit_hash_of(domain, entry);
    struct repeat *repeat = repeat_of(domain->audit, hash);

    if (repeat && repeat->entry) {
        repeat->count++;
        free(repeat->entry);
        repeat->entry = entry; /* the last of them is the one that is written */
        return;
    }
    if (!repeat || !take_token(domain)) {
        domain->audit->uncounted++;
        free(entry);
        return;
    }
    repeat->entry = mem_alloc(sizeof(*repeat->entry));
    *repeat->entry = *entry;
    repeat->hash = hash;
    repeat->count = 0;
    audit_add_entry(domain, entry);
}

/* Whatever came again within its second is written now; what did not is free. */
static void write_repeats(struct domain *domain)
{
    for (size_t i = 0; i < REPEATS_MAX; i++) {
        struct repeat *at = &domain->audit->repeats[i];
        struct audit_line *entry = at->entry;
        size_t length;

        if (!entry || (at->count && !take_token(domain)))
            continue;
        at->entry = NULL;
        if (!at->count) {
            free(entry);
            continue;
        }
        length = strlen(entry->detail);
        if (length > DETAIL_MAX - 40)
            length = DETAIL_MAX - 40;
        (void) snprintf(entry->detail + length, DETAIL_MAX - length, " (%llu times)",
                        (unsigned long long) at->count);
        audit_add_entry(domain, entry);
    }
}

static void write_uncounted(struct domain *domain)
{
    const struct caller system = caller_system();
    char detail[DETAIL_MAX];

    if (!domain->audit->uncounted || domain->audit->waiting_count >= AUDIT_WAITING_MAX ||
        !take_token(domain))
        return;
    (void) snprintf(detail, sizeof(detail), "%llu more were not written one by one",
                    (unsigned long long) domain->audit->uncounted);
    domain->audit->uncounted = 0;
    audit_add_entry(domain,
                    entry_new(domain, &system, "audit.flood", "", ERR_RATE_LIMITED, detail));
}

/* --- interface ------------------------------------------------------------------------------- */

void audit_add(struct domain *domain, const struct caller *caller, const char *action,
               const char *object, const struct error *failure)
{
    struct audit_line *entry;

    if (domain->stage != DOMAIN_OPEN)
        return;
    entry = entry_new(domain, caller, action, object, failure ? failure->code : ERR_NONE,
                      failure ? failure->message : "");
    if (failure)
        add_denial(domain, entry);
    else
        audit_add_entry(domain, entry);
}

void audit_add_change(struct domain *domain, struct store_transaction *change,
                      const struct caller *caller, const char *action, const char *object,
                      const char *detail)
{
    struct audit_line *entry;

    if (caller->scope == CALLER_SYSTEM)
        return;
    entry = entry_new(domain, caller, action, object, ERR_NONE, detail);
    add_row(change, entry);
    free(entry);
}

/* --- reading --------------------------------------------------------------------------------- */

struct audit_page_call {
    struct domain_task task;
    audit_page_done *done;
    void *context;
    struct error failure;
};

static void page_refused(struct domain_task *task)
{
    struct audit_page_call *page = CONTAINER_OF(task, struct audit_page_call, task);

    page->done(page->context, &page->failure, NULL, 0);
    free(page);
}

static void page_found(void *context, const struct error *failure, const struct store_rows *rows)
{
    struct audit_page_call *page = context;
    size_t count = failure ? 0 : rows->count;
    AUTO(free) struct audit_entry *entries = mem_alloc_array(count + 1, sizeof(*entries));

    for (size_t i = 0; i < count; i++) {
        const struct store_value *row = rows->rows[i];

        entries[i] = (struct audit_entry){
            .number = row[STORE_AUDIT_NUMBER].integer,
            .time_ms = row[STORE_AUDIT_TIME].integer,
            .owner = row[STORE_AUDIT_OWNER].bytes,
            .credential = row[STORE_AUDIT_CREDENTIAL].bytes,
            .address = row[STORE_AUDIT_ADDRESS].bytes,
            .request = row[STORE_AUDIT_REQUEST].bytes,
            .action = row[STORE_AUDIT_ACTION].bytes,
            .object = row[STORE_AUDIT_OBJECT].bytes,
            .outcome = row[STORE_AUDIT_OUTCOME].bytes,
            .detail = row[STORE_AUDIT_DETAIL].bytes,
        };
    }
    page->done(page->context, failure, entries, count);
    free(page);
}

void audit_page(struct domain *domain, const struct caller *caller, int64_t before, size_t limit,
                audit_page_done *done, void *context)
{
    const struct store_condition older = {.column = STORE_AUDIT_NUMBER,
                                          .comparison = STORE_LESS,
                                          .value = store_integer(before ? before : INT64_MAX)};
    const struct store_query query = {
        .kind = STORE_AUDIT,
        .conditions = &older,
        .condition_count = 1,
        .order = STORE_AUDIT_NUMBER,
        .is_descending = true,
        .limit = limit < 1                ? 1
                 : limit > AUDIT_PAGE_MAX ? AUDIT_PAGE_MAX
                                          : limit,
    };
    struct audit_page_call *page = mem_alloc(sizeof(*page));

    page->done = done;
    page->context = context;
    if (domain_is_open(domain, &page->failure) && caller->scope < CALLER_ADMIN)
        (void) error_set(&page->failure, ERR_FORBIDDEN, 0, "the audit log is for administrators");
    if (page->failure.code != ERR_NONE)
        domain_defer(domain, &page->task, page_refused);
    else
        domain_find(domain, &query, page_found, page);
}

/* --- the module ------------------------------------------------------------------------------ */

static void audit_begin(struct domain *domain)
{
    domain->audit = mem_alloc(sizeof(*domain->audit));
    list_init(&domain->audit->waiting);
    domain->audit->tokens = AUDIT_DENIALS_BURST;
    domain->audit->filled_ns = domain_now_ns(domain);
    domain->audit->old = (struct retention){.kind = STORE_AUDIT,
                                            .time = STORE_AUDIT_TIME,
                                            .kept_ms = AUDIT_KEPT_MS,
                                            .least_ms = AUDIT_LEAST_MS,
                                            .every_ns = SWEEP_NS};
}

static void audit_tick(struct domain *domain)
{
    write_repeats(domain);
    write_uncounted(domain);
    retention_tick(domain, &domain->audit->old);
}

static void audit_end(struct domain *domain)
{
    struct audit *audit = domain->audit;

    if (!audit)
        return;
    /* The store outlives the domain and finishes what it was given. */
    while (audit->waiting_count)
        store_commit(take_batch(domain), NULL, NULL);
    for (size_t i = 0; i < REPEATS_MAX; i++)
        free(audit->repeats[i].entry);
    free(audit);
    domain->audit = NULL;
}

const struct domain_module domain_audit = {
    .name = "audit", .begin = audit_begin, .tick = audit_tick, .end = audit_end};
