/* One object or row of the inspection: is it there, and is it what it was? */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "domain/sandbox/sandbox_set.h"
#include "domain/tiers/inspection_internal.h"

#define PIECE ((uint64_t) 1024 * 1024) /* hashed in one turn of the loop */

static void pump(struct inspection *inspection);

/* --- a page of them -------------------------------------------------------------------------- */

struct probe *inspection_add(struct inspection *inspection, enum probe_aim aim, const char *what,
                             const char *name, const char *key)
{
    struct probe *probe = &inspection->probes[inspection->probe_count++];

    *probe = (struct probe){.inspection = inspection,
                            .aim = aim,
                            .what = what,
                            .name = mem_copy_text(name),
                            .key = key ? mem_copy_text(key) : NULL};
    return probe;
}

static void page_over(struct domain_task *task)
{
    struct inspection *inspection = CONTAINER_OF(task, struct inspection, task);

    while (inspection->probe_count) {
        struct probe *probe = &inspection->probes[--inspection->probe_count];

        free(probe->name);
        free(probe->key);
    }
    if (inspection->has_failed)
        inspection_fail(inspection, &inspection->failure);
    else if (inspection_goes_on(inspection, NULL))
        inspection->page_done(inspection);
}

static void probe_end(struct probe *probe)
{
    probe->inspection->probing--;
    pump(probe->inspection);
}

/* It could not be looked at: then nothing can be said about the whole. */
static void probe_fail(struct probe *probe, const struct error *failure)
{
    probe->inspection->has_failed = true;
    probe->inspection->failure = *failure;
    probe_end(probe);
}

/* --- rows ------------------------------------------------------------------------------------ */

/* Still as it was when the probe was made of it. */
static bool is_same(const struct probe *probe, const struct store_value *row)
{
    if (probe->row.kind == STORE_LAYER)
        return (uint64_t) row[STORE_LAYER_SIZE].integer == probe->size;
    if (probe->row.kind == STORE_BACKUP)
        return strcmp(row[STORE_BACKUP_STATE].bytes, "ready") == 0;
    /* The mirror of a sandbox that is gone goes behind it, objects before the row. */
    return sandbox_set_by_id(probe->inspection->domain, probe->row.id) != NULL;
}

/* It may have been named only when the marks were read. */
static bool is_still_named(const struct probe *probe)
{
    AUTO(layer_marks) struct layer_marks marks = LAYER_MARKS_INIT;
    struct error err = ERROR_INIT;

    (void) layer_marks_read(probe->inspection->domain, &marks, &err);
    return layer_marks_have(&marks, probe->name);
}

static bool is_orphan(const struct probe *probe)
{
    const struct inspection *inspection = probe->inspection;

    return probe->row.kind != STORE_LAYER ||
           (inspection->has_all_marks && !layer_marks_have(&inspection->marks, probe->name));
}

static void judge_row(struct probe *probe, const struct store_value *row)
{
    struct inspection *inspection = probe->inspection;

    if (probe->aim == PROBE_ORPHAN && !row && is_orphan(probe))
        inspection_tell(inspection, FINDING_GARBAGE, "object", probe->key,
                        "it belongs to nothing, %llu bytes; `burrow gc` takes it away when it is "
                        "older than an hour",
                        (unsigned long long) probe->size);
    if (probe->aim == PROBE_NAMED && !row && is_still_named(probe))
        inspection_tell(inspection, FINDING_LOST, probe->what, probe->name,
                        "a sandbox or snapshot names it, and it has no row");
    if ((probe->aim == PROBE_OBJECT || probe->aim == PROBE_CONTENT) && row && is_same(probe, row))
        inspection_tell(inspection, probe->weight, probe->what, probe->name, "%s", probe->problem);
}

static void on_row(void *context, const struct error *failure, const struct store_rows *rows)
{
    struct probe *probe = context;

    if (failure) {
        probe_fail(probe, failure);
        return;
    }
    judge_row(probe, rows->count ? rows->rows[0] : NULL);
    probe_end(probe);
}

static void ask_row(struct probe *probe)
{
    static const struct {
        unsigned int id, owner;
    } columns[STORE_KIND_COUNT] = {
        [STORE_LAYER] = {STORE_LAYER_ID, STORE_LAYER_OWNER},
        [STORE_BACKUP] = {STORE_BACKUP_ID, 0},
        [STORE_WORKSPACE] = {STORE_WORKSPACE_SANDBOX, 0},
    };
    const struct store_condition conditions[] = {
        {.column = columns[probe->row.kind].id,
         .comparison = STORE_EQUAL,
         .value = store_text(probe->row.id)},
        {.column = columns[probe->row.kind].owner,
         .comparison = STORE_EQUAL,
         .value = store_text(probe->row.owner)},
    };
    const struct store_query query = {.kind = probe->row.kind,
                                      .conditions = conditions,
                                      .condition_count = probe->row.kind == STORE_LAYER ? 2 : 1,
                                      .order = columns[probe->row.kind].id,
                                      .limit = 1};

    domain_find(probe->inspection->domain, &query, on_row, probe);
}

/* --- objects --------------------------------------------------------------------------------- */

/* Told only when the row is still there. */
__attribute__((format(printf, 2, 3))) static void complain(struct probe *probe, const char *format,
                                                           ...)
{
    va_list arguments;

    va_start(arguments, format);
    (void) vsnprintf(probe->problem, sizeof(probe->problem), format, arguments);
    va_end(arguments);
    ask_row(probe);
}

static void complain_of_bytes(struct probe *probe)
{
    probe->weight = FINDING_LOST;
    complain(probe, "its object %s is not what was put", probe->key);
}

static void read_on(struct probe *probe);

/* Of reading it. What was replaced meanwhile is there; and one that was only listed may go. */
static void failed(struct probe *probe, const struct error *failure)
{
    bool is_gone = failure->code == ERR_NOT_FOUND;

    if (failure->code == ERR_CONFLICT || (is_gone && probe->aim == PROBE_CONTENT)) {
        probe_end(probe);
    } else if (is_gone) {
        complain(probe, "its object %s is not there", probe->key);
    } else if (failure->code == ERR_UPSTREAM || failure->code == ERR_RANGE) {
        LOG_WARNING(probe->inspection->domain->options.log, "an object cannot be read",
                    log_text("key", probe->key), log_text("error", failure->message));
        complain_of_bytes(probe);
    } else {
        probe_fail(probe, failure);
    }
}

static void finish_reading(struct probe *probe)
{
    uint8_t sum[SHA256_SIZE];

    sha256_finish(&probe->hash, sum);
    if (!probe->has_sum || memcmp(sum, probe->sum, sizeof(sum)) == 0) {
        probe_end(probe);
        return;
    }
    complain_of_bytes(probe);
}

static void on_piece(void *context, const struct error *failure, const void *bytes, size_t length,
                     const struct object_info *info)
{
    struct probe *probe = context;

    (void) info;
    if (failure) {
        failed(probe, failure);
        return;
    }
    sha256_add(&probe->hash, bytes, length);
    probe->offset += length;
    probe->inspection->inspected.bytes += length;
    if (length == 0)
        probe->offset = probe->size; /* less than was told: its sum says so */
    read_on(probe);
}

static void read_on(struct probe *probe)
{
    struct domain *domain = probe->inspection->domain;
    const struct object_range range = {.offset = probe->offset, .length = PIECE};
    struct error err = ERROR_INIT;

    if (!domain_is_open(domain, &err))
        probe_fail(probe, &err);
    else if (probe->offset >= probe->size)
        finish_reading(probe);
    else
        (void) objects_get_bytes(domain->options.objects, probe->key, &range,
                                 probe->tag[0] ? probe->tag : NULL, on_piece, probe);
}

static void begin_reading(struct probe *probe, const struct object_info *info)
{
    probe->size = info->size;
    if (!probe->has_sum && info->has_sum) {
        probe->has_sum = true;
        memcpy(probe->sum, info->sum, sizeof(probe->sum));
    }
    memcpy(probe->tag, info->tag, sizeof(probe->tag));
    sha256_init(&probe->hash);
    read_on(probe);
}

static void on_head(void *context, const struct error *failure, const struct object_info *info)
{
    struct probe *probe = context;

    if (failure) {
        failed(probe, failure);
    } else if (probe->has_size && info->size != probe->size) {
        probe->weight = FINDING_LOST;
        complain(probe, "its object %s has %llu bytes instead of %llu", probe->key,
                 (unsigned long long) info->size, (unsigned long long) probe->size);
    } else if (probe->has_sum && info->has_sum &&
               memcmp(info->sum, probe->sum, sizeof(probe->sum)) != 0) {
        probe->weight = FINDING_LOST;
        complain(probe, "its object %s has another sum than its row", probe->key);
    } else if (probe->inspection->is_deep) {
        begin_reading(probe, info);
    } else {
        probe_end(probe);
    }
}

/* --- the beginning --------------------------------------------------------------------------- */

static void start(struct probe *probe)
{
    if (probe->aim == PROBE_ORPHAN || probe->aim == PROBE_NAMED)
        ask_row(probe);
    else
        (void) objects_head(probe->inspection->domain->options.objects, probe->key, on_head, probe);
}

static void pump(struct inspection *inspection)
{
    bool is_open = domain_is_open(inspection->domain, &(struct error) ERROR_INIT);

    while (is_open && !inspection->has_failed && inspection->probing < INSPECTION_AT_ONCE &&
           inspection->probe_next < inspection->probe_count) {
        inspection->probing++;
        start(&inspection->probes[inspection->probe_next++]);
    }
    if (inspection->probing == 0)
        domain_defer(inspection->domain, &inspection->task, page_over);
}

void inspection_probe_all(struct inspection *inspection,
                          void (*page_done)(struct inspection *inspection))
{
    inspection->page_done = page_done;
    inspection->probe_next = 0;
    pump(inspection);
}
