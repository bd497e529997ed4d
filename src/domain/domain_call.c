/* What the modules of the domain share: tasks for later, and calls of the store that are counted.
 */
#include <stdlib.h>
#include <string.h>

#include "base/auto.h"
#include "base/memory.h"
#include "domain/domain_internal.h"

/* --- later ----------------------------------------------------------------------------------- */

void domain_defer(struct domain *domain, struct domain_task *task,
                  void (*run)(struct domain_task *task))
{
    bool is_first = list_is_empty(&domain->tasks);

    task->run = run;
    task->trace = trace_context;
    list_append(&domain->tasks, &task->link);
    if (is_first)
        domain->options.defer(domain->options.context);
}

static void run_task(struct domain_task *task)
{
    TRACE_AS(&task->trace);

    task->run(task);
}

void domain_turn(struct domain *domain)
{
    struct list mine;
    struct list *link;

    /* Those that come meanwhile ask for a turn of their own. */
    list_init(&mine);
    while ((link = list_first(&domain->tasks))) {
        list_remove(link);
        list_append(&mine, link);
    }
    domain->turns++; /* a task may close the domain: it must outlive this loop */
    while ((link = list_first(&mine))) {
        list_remove(link);
        run_task(CONTAINER_OF(link, struct domain_task, link));
    }
    domain->turns--;
    domain_check_gone(domain);
}

/* --- calls of the store ---------------------------------------------------------------------- */

struct store_call {
    struct domain *domain;
    store_done *done;
    store_rows_done *rows_done;
    void *context;
};

static struct store_call *call_new(struct domain *domain, void *context)
{
    struct store_call *call = mem_alloc(sizeof(*call));

    call->domain = domain;
    call->context = context;
    domain->outstanding++;
    return call;
}

static void call_end(struct store_call *call)
{
    struct domain *domain = call->domain;

    free(call);
    domain->outstanding--;
    domain_check_gone(domain);
}

static void on_kept(void *context, const struct error *failure, const struct store_receipt *receipt)
{
    struct store_call *call = context;

    if (call->done)
        call->done(call->context, failure, receipt);
    call_end(call);
}

void domain_commit(struct domain *domain, struct store_transaction *change, store_done *done,
                   void *context)
{
    struct store_call *call = call_new(domain, context);

    call->done = done;
    store_commit(change, on_kept, call);
}

static void on_rows(void *context, const struct error *failure, const struct store_rows *rows)
{
    struct store_call *call = context;

    call->rows_done(call->context, failure, rows);
    call_end(call);
}

void domain_find(struct domain *domain, const struct store_query *query, store_rows_done *done,
                 void *context)
{
    struct store_call *call = call_new(domain, context);

    call->rows_done = done;
    store_find(domain->options.store, query, on_rows, call);
}

/* --- all rows of a kind ---------------------------------------------------------------------- */

struct load {
    struct domain *domain;
    enum store_kind kind;
    unsigned int key;
    enum store_type type; /* of the key */
    domain_row *each;
    domain_done *done;
    void *context;
    bool has_last;
    int64_t last_integer; /* key of the last row that was read */
    char *last;           /* the same for texts; owned */
};

static void load_end(struct load *load, const struct error *failure)
{
    domain_done *done = load->done;
    void *context = load->context;

    free(load->last);
    free(load);
    done(context, failure);
}

static bool is_same_key(const struct load *load, const struct store_value *a,
                        const struct store_value *b)
{
    if (load->type == STORE_INTEGER)
        return a->integer == b->integer;
    return a->length == b->length && memcmp(a->bytes, b->bytes, a->length) == 0;
}

/* How many rows of a full page to take: the next page begins behind a key, so that all rows with
 * the last key, of which there may be more, are left to it. */
static size_t whole_keys(const struct load *load, const struct store_rows *rows)
{
    size_t count = rows->count;
    const struct store_value *last = &rows->rows[count - 1][load->key];

    while (count > 0 && is_same_key(load, &rows->rows[count - 1][load->key], last))
        count--;
    return count;
}

static void load_page(struct load *load);

static int load_rows(struct load *load, const struct store_rows *rows, size_t count,
                     struct error *err)
{
    for (size_t i = 0; i < count; i++)
        if (load->each(load->domain, rows->rows[i], err) < 0)
            return -1;
    if (count == 0)
        return 0;
    free(load->last);
    load->has_last = true;
    load->last_integer = rows->rows[count - 1][load->key].integer;
    load->last = load->type == STORE_INTEGER
                     ? NULL
                     : mem_copy_bytes(rows->rows[count - 1][load->key].bytes,
                                      rows->rows[count - 1][load->key].length);
    return 0;
}

static void on_page(void *context, const struct error *failure, const struct store_rows *rows)
{
    struct load *load = context;
    struct error err = ERROR_INIT;
    bool is_full = !failure && rows->count == STORE_ROWS_MAX;
    size_t count = failure ? 0 : is_full ? whole_keys(load, rows) : rows->count;

    if (is_full && count == 0) {
        (void) error_set(&err, ERR_INTERNAL, 0, "too many rows of '%s' have one key",
                         store_table(load->kind)->name);
        failure = &err;
    } else if (!failure && load_rows(load, rows, count, &err) < 0) {
        failure = &err;
    }
    if (failure || !is_full)
        load_end(load, failure);
    else
        load_page(load);
}

static void load_page(struct load *load)
{
    struct store_condition behind = {.column = load->key, .comparison = STORE_GREATER};
    struct store_query query = {.kind = load->kind,
                                .conditions = &behind,
                                .condition_count = load->has_last ? 1 : 0,
                                .order = load->key,
                                .limit = STORE_ROWS_MAX};

    behind.value =
        load->type == STORE_INTEGER ? store_integer(load->last_integer) : store_text(load->last);
    domain_find(load->domain, &query, on_page, load);
}

void domain_load(struct domain *domain, enum store_kind kind, unsigned int key, domain_row *each,
                 domain_done *done, void *context)
{
    struct load *load = mem_alloc(sizeof(*load));

    *load = (struct load){.domain = domain,
                          .kind = kind,
                          .key = key,
                          .type = store_table(kind)->columns[key].type,
                          .each = each,
                          .done = done,
                          .context = context};
    load_page(load);
}

struct sandbox *domain_find_sandbox(struct domain *domain, const struct caller *caller,
                                    const char *name_or_id, struct error *err)
{
    for (size_t i = 0; domain_modules[i]; i++)
        if (domain_modules[i]->find_sandbox)
            return domain_modules[i]->find_sandbox(domain, caller, name_or_id, err);
    (void) error_set(err, ERR_NOT_FOUND, 0, "there are no sandboxes");
    return NULL;
}

void domain_delete_rows(struct store_transaction *change, enum store_kind kind, unsigned int column,
                        const struct id *id)
{
    const struct store_condition has_it = {
        .column = column, .comparison = STORE_EQUAL, .value = store_text(id->text)};

    store_delete(change, kind, &has_it, 1);
}

struct id domain_row_id(const struct store_value *value)
{
    struct id id = {.text = ""};

    if (!value->is_null)
        memcpy(id.text, value->bytes,
               value->length < ID_LENGTH ? value->length : (size_t) ID_LENGTH);
    return id;
}
