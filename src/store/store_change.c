/* Transactions while they are put together: every value checked and copied, secrets sealed, so that
 * engines see only what they can keep. */
#include <string.h>

#include "base/encoding/utf8.h"
#include "base/memory.h"
#include "store/store_engine.h"

struct store_transaction {
    struct store_job job;
    size_t capacity; /* of job.changes */
};

/* --- values ----------------------------------------------------------------------------------- */

struct store_value store_text(const char *text)
{
    if (!text)
        return store_null();
    return (struct store_value){.bytes = text, .length = strlen(text)};
}

struct store_value store_bytes(const void *bytes, size_t length)
{
    return (struct store_value){.bytes = bytes ? bytes : "", .length = length};
}

struct store_value store_integer(int64_t integer)
{
    return (struct store_value){.integer = integer};
}

struct store_value store_null(void)
{
    return (struct store_value){.is_null = true};
}

static int check_value(const struct store_table *table, const struct store_column *column,
                       const struct store_value *value, struct error *err)
{
    if (column->type == STORE_INTEGER)
        return 0;
    if (!value->bytes && value->length)
        return error_set(err, ERR_INVALID, 0, "%s.%s has no bytes", table->name, column->name);
    if (value->length > STORE_VALUE_MAX)
        return error_set(err, ERR_TOO_LARGE, 0, "%s.%s has %zu bytes, and may have %zu",
                         table->name, column->name, value->length, STORE_VALUE_MAX);
    /* PostgreSQL keeps neither, so no engine does. */
    if (column->type == STORE_TEXT && value->length &&
        (memchr(value->bytes, '\0', value->length) || !utf8_is_valid(value->bytes, value->length)))
        return error_set(err, ERR_INVALID, 0, "%s.%s is no valid UTF-8 text", table->name,
                         column->name);
    return 0;
}

static void copy_value(struct store_job *job, const struct store_column *column,
                       const struct store_value *from, struct store_value *to)
{
    *to = *from;
    if (from->is_null) {
        *to = store_null();
    } else if (column->type != STORE_INTEGER) {
        to->bytes = pool_copy_bytes(&job->pool, from->length ? from->bytes : "", from->length);
        job->bytes += from->length;
    }
}

/* --- sealed columns --------------------------------------------------------------------------- */

void store_seal_context(enum store_kind kind, unsigned int column, const struct store_value *values,
                        struct text *out)
{
    const struct store_table *table = store_table(kind);

    text_format(out, "%s.%s", table->name, table->columns[column].name);
    for (size_t i = 0; i < table->column_count; i++) {
        const struct store_value *value = &values[i];

        if (!(table->columns[i].flags & STORE_KEY))
            continue;
        text_append_char(out, '/');
        if (table->columns[i].type == STORE_INTEGER)
            text_format(out, "%lld", (long long) value->integer);
        for (size_t j = 0; table->columns[i].type != STORE_INTEGER && j < value->length; j++)
            text_format(out, table->columns[i].type == STORE_TEXT ? "%c" : "%02x",
                        (unsigned char) value->bytes[j]);
    }
}

static void seal(struct store_job *job, enum store_kind kind, unsigned int column,
                 const struct store_value *values, struct store_value *to)
{
    AUTO(text) struct text context = TEXT_INIT(STORE_SEAL_CONTEXT_MAX);
    AUTO(text) struct text sealed = TEXT_INIT(STORE_VALUE_MAX + KEYRING_SEAL_EXTRA);

    store_seal_context(kind, column, values, &context);
    keyring_seal(job->store->keyring, text_string(&context), values[column].bytes,
                 values[column].length, &sealed);
    *to = store_bytes(pool_copy_bytes(&job->pool, text_string(&sealed), sealed.length),
                      sealed.length);
    job->bytes += sealed.length;
}

int store_unseal_row(struct store_job *job, struct store_value *row)
{
    const struct store_table *table = store_table(job->query.kind);

    for (unsigned int i = 0; i < table->column_count; i++) {
        AUTO(text) struct text context = TEXT_INIT(STORE_SEAL_CONTEXT_MAX);
        AUTO(text) struct text plain = TEXT_INIT(STORE_VALUE_MAX + 1);

        if (!(table->columns[i].flags & STORE_SEALED) || row[i].is_null)
            continue;
        store_seal_context(job->query.kind, i, row, &context);
        if (keyring_unseal(job->store->keyring, text_string(&context), row[i].bytes, row[i].length,
                           &plain, &job->failure) < 0) {
            job->failure.code = ERR_INTERNAL; /* it is not the asker's fault */
            return error_wrap(&job->failure, "%s", text_string(&context));
        }
        row[i] = store_bytes(pool_copy_bytes(&job->pool, text_string(&plain), plain.length),
                             plain.length);
        explicit_bzero(plain.data, plain.capacity);
    }
    return 0;
}

/* --- rows ------------------------------------------------------------------------------------- */

static int check_row(enum store_kind kind, const struct store_value *values, struct error *err)
{
    const struct store_table *table = store_table(kind);

    for (size_t i = 0; i < table->column_count; i++) {
        const struct store_column *column = &table->columns[i];

        if (column->flags & STORE_ASSIGNED)
            continue;
        if (values[i].is_null && !(column->flags & STORE_NULL))
            return error_set(err, ERR_INVALID, 0, "%s.%s needs a value", table->name, column->name);
        if (!values[i].is_null && check_value(table, column, &values[i], err) < 0)
            return -1;
    }
    return 0;
}

static struct store_value *copy_row(struct store_job *job, enum store_kind kind,
                                    const struct store_value *values)
{
    const struct store_table *table = store_table(kind);
    struct store_value *row = pool_alloc(&job->pool, table->column_count * sizeof(*row));

    for (unsigned int i = 0; i < table->column_count; i++) {
        const struct store_column *column = &table->columns[i];

        if (column->flags & STORE_SEALED && !values[i].is_null)
            seal(job, kind, i, values, &row[i]);
        else if (column->flags & STORE_ASSIGNED)
            row[i] = store_null();
        else
            copy_value(job, column, &values[i], &row[i]);
    }
    return row;
}

int store_copy_conditions(struct store_job *job, enum store_kind kind,
                          const struct store_condition *conditions, size_t count,
                          const struct store_condition **ret_copy)
{
    const struct store_table *table = store_table(kind);
    struct store_condition *copy;

    if (count > STORE_CONDITIONS_MAX)
        return error_set(&job->failure, ERR_INVALID, 0, "%zu conditions on %s, at most %d", count,
                         table->name, STORE_CONDITIONS_MAX);
    copy = pool_alloc(&job->pool, count * sizeof(*copy));
    for (size_t i = 0; i < count; i++) {
        const struct store_condition *condition = &conditions[i];
        const struct store_column *column;

        if (condition->column >= table->column_count ||
            table->columns[condition->column].flags & STORE_SEALED)
            return error_set(&job->failure, ERR_INVALID, 0, "no condition on column %u of %s",
                             condition->column, table->name);
        column = &table->columns[condition->column];
        copy[i] = *condition;
        if (condition->comparison == STORE_IS_NULL)
            continue;
        if (condition->value.is_null)
            return error_set(&job->failure, ERR_INVALID, 0, "%s.%s is compared with nothing",
                             table->name, column->name);
        if (check_value(table, column, &condition->value, &job->failure) < 0)
            return -1;
        copy_value(job, column, &condition->value, &copy[i].value);
    }
    *ret_copy = copy;
    return 0;
}

/* --- a transaction ---------------------------------------------------------------------------- */

struct store_job *store_job_new(struct store *store, enum store_job_type type, size_t size)
{
    struct store_job *job = mem_alloc(size);

    list_init(&job->link);
    job->store = store;
    job->type = type;
    return job;
}

struct store_transaction *store_begin(struct store *store)
{
    struct store_job *job =
        store_job_new(store, STORE_JOB_COMMIT, sizeof(struct store_transaction));

    return CONTAINER_OF(job, struct store_transaction, job);
}

/* The place for one more change; NULL when the transaction has failed already. */
static struct store_change *add_change(struct store_transaction *change,
                                       enum store_change_type type, enum store_kind kind)
{
    struct store_job *job = &change->job;

    if (job->failure.code)
        return NULL;
    if (job->change_count == STORE_CHANGES_MAX || job->bytes > STORE_TRANSACTION_BYTES_MAX) {
        (void) error_set(&job->failure, ERR_TOO_LARGE, 0,
                         "more than %d changes or %zu bytes in one transaction", STORE_CHANGES_MAX,
                         STORE_TRANSACTION_BYTES_MAX);
        return NULL;
    }
    if (job->change_count == change->capacity) {
        struct store_change *old = job->changes;

        change->capacity = change->capacity ? change->capacity * 2 : 4;
        job->changes = pool_alloc(&job->pool, change->capacity * sizeof(*job->changes));
        if (old)
            memcpy(job->changes, old, job->change_count * sizeof(*old));
    }
    job->changes[job->change_count] = (struct store_change){.type = type, .kind = kind};
    return &job->changes[job->change_count++];
}

/* Rows of a kind whose key the store gives out are a log: added and deleted, never changed. And
 * events come with a sequence that only store_add_event knows how to ask for. */
static int check_type(enum store_kind kind, enum store_change_type type, struct error *err)
{
    const struct store_table *table = store_table(kind);

    if (kind == STORE_EVENT && type == STORE_CHANGE_INSERT)
        return error_set(err, ERR_INVALID, 0, "events are added by store_add_event");
    for (size_t i = 0; i < table->column_count && type != STORE_CHANGE_INSERT; i++)
        if (table->columns[i].flags & STORE_ASSIGNED)
            return error_set(err, ERR_INVALID, 0, "rows of %s are never changed", table->name);
    return 0;
}

static void add_row(struct store_transaction *transaction, enum store_change_type type,
                    enum store_kind kind, const struct store_value *values)
{
    struct store_change *change = add_change(transaction, type, kind);
    struct error *err = &transaction->job.failure;

    if (change && check_type(kind, type, err) == 0 && check_row(kind, values, err) == 0)
        change->values = copy_row(&transaction->job, kind, values);
}

void store_insert(struct store_transaction *change, enum store_kind kind,
                  const struct store_value *values)
{
    add_row(change, STORE_CHANGE_INSERT, kind, values);
}

void store_update(struct store_transaction *change, enum store_kind kind,
                  const struct store_value *values)
{
    add_row(change, STORE_CHANGE_UPDATE, kind, values);
}

void store_put(struct store_transaction *change, enum store_kind kind,
               const struct store_value *values)
{
    add_row(change, STORE_CHANGE_PUT, kind, values);
}

void store_delete(struct store_transaction *transaction, enum store_kind kind,
                  const struct store_condition *conditions, size_t count)
{
    struct store_change *change = add_change(transaction, STORE_CHANGE_DELETE, kind);

    if (!change)
        return;
    if (!count)
        (void) error_set(&transaction->job.failure, ERR_INVALID, 0,
                         "a delete of all rows of %s: it needs a condition",
                         store_table(kind)->name);
    else if (store_copy_conditions(&transaction->job, kind, conditions, count,
                                   &change->conditions) == 0)
        change->condition_count = count;
}

void store_add_event(struct store_transaction *transaction, const struct store_event *event)
{
    struct store_change *change = add_change(transaction, STORE_CHANGE_EVENT, STORE_EVENT);
    struct error *err = &transaction->job.failure;
    const struct store_value values[STORE_EVENT_COLUMN_COUNT] = {
        [STORE_EVENT_STREAM] = store_text(event->stream),
        [STORE_EVENT_OWNER] = store_text(event->owner),
        [STORE_EVENT_TIME] = store_integer(event->time_ms),
        [STORE_EVENT_ACTOR] = store_text(event->actor),
        [STORE_EVENT_REQUEST] = store_text(event->request_id),
        [STORE_EVENT_TYPE] = store_text(event->type),
        [STORE_EVENT_VERSION] = store_integer(event->version),
        [STORE_EVENT_DATA] = store_text(event->data),
    };

    if (!change)
        return;
    if (values[STORE_EVENT_DATA].length > STORE_EVENT_DATA_MAX)
        (void) error_set(err, ERR_TOO_LARGE, 0,
                         "the data of an event has %zu bytes, and may have %zu",
                         values[STORE_EVENT_DATA].length, STORE_EVENT_DATA_MAX);
    else if (check_row(STORE_EVENT, values, err) == 0) {
        change->values = copy_row(&transaction->job, STORE_EVENT, values);
        transaction->job.event_count++;
    }
}

void store_commit(struct store_transaction *change, store_done *done, void *context)
{
    struct store_job *job = &change->job;

    job->done = done;
    job->context = context;
    job->cursors = pool_alloc(&job->pool, job->event_count * sizeof(*job->cursors));
    job->sequences = pool_alloc(&job->pool, job->event_count * sizeof(*job->sequences));
    store_ask(job);
}

void store_abandon(struct store_transaction *change)
{
    if (change)
        store_job_free(&change->job);
}
