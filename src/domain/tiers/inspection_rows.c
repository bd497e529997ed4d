/* The stages of the inspection that go through rows and keys, page by page. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/auto.h"
#include "base/encoding/uuid.h"
#include "base/memory.h"
#include "base/text.h"
#include "domain/backup/backup_internal.h"
#include "domain/identity/owner.h"
#include "domain/tiers/inspection_internal.h"
#include "domain/workspace/workspace_internal.h"

static void copy(char *to, size_t size, const char *from)
{
    (void) snprintf(to, size, "%s", from);
}

static void set_row(struct probe *probe, enum store_kind kind, const char *owner, const char *id)
{
    probe->row.kind = kind;
    copy(probe->row.owner, sizeof(probe->row.owner), owner);
    copy(probe->row.id, sizeof(probe->row.id), id);
}

static void set_sum(struct probe *probe, const struct store_value *value)
{
    probe->has_sum = value->length == sizeof(probe->sum);
    if (probe->has_sum)
        memcpy(probe->sum, value->bytes, sizeof(probe->sum));
}

/* Begin with the first page, where there is a store to look into. */
static void begin(struct inspection *inspection, void (*next)(struct inspection *inspection))
{
    if (inspection->domain->options.objects)
        next(inspection);
    else
        inspection_next(inspection);
}

/* A page of rows that are in the order of the column `key`: each is added, what they promise is
 * probed, and then comes the next one. */
static void take_page(struct inspection *inspection, const struct store_rows *rows, size_t key,
                      void (*add)(struct inspection *inspection, const struct store_value *row),
                      void (*next)(struct inspection *inspection))
{
    if (rows->count == 0) {
        inspection_next(inspection);
        return;
    }
    for (size_t i = 0; i < rows->count; i++)
        add(inspection, rows->rows[i]);
    copy(inspection->after, sizeof(inspection->after), rows->rows[rows->count - 1][key].bytes);
    inspection_probe_all(inspection, next);
}

/* --- what is named --------------------------------------------------------------------------- */

static void go_on_with_marks(struct inspection *inspection)
{
    const struct layer_marks *marks = &inspection->marks;

    for (size_t i = 0; i < INSPECTION_PAGE && inspection->next_mark < marks->count; i++) {
        const char *name = marks->items[inspection->next_mark++].text;
        const char *slash = strchr(name, '/');
        char owner[ID_LENGTH + 1];

        if (i > 0 && strcmp(name, marks->items[inspection->next_mark - 2].text) == 0)
            continue;
        (void) snprintf(owner, sizeof(owner), "%.*s", (int) (slash - name), name);
        set_row(inspection_add(inspection, PROBE_NAMED, "layer", name, NULL), STORE_LAYER, owner,
                slash + 1);
    }
    if (inspection->probe_count)
        inspection_probe_all(inspection, go_on_with_marks);
    else
        inspection_next(inspection);
}

void inspection_look_at_marks(struct inspection *inspection)
{
    struct error err = ERROR_INIT;

    inspection->has_all_marks = layer_marks_read(inspection->domain, &inspection->marks, &err) == 0;
    if (!inspection->has_all_marks)
        inspection_tell(inspection, FINDING_LOST, "layer", "?", "%s", err.message);
    go_on_with_marks(inspection);
}

/* --- layers ---------------------------------------------------------------------------------- */

static void next_layers(struct inspection *inspection);

static void add_layer(struct inspection *inspection, const struct store_value *row)
{
    char name[LAYER_MARK_SIZE], key[sizeof("layers/") + LAYER_MARK_SIZE];
    struct probe *probe;

    (void) snprintf(name, sizeof(name), "%s/%s", inspection->owner, row[STORE_LAYER_ID].bytes);
    (void) snprintf(key, sizeof(key), "layers/%s", name);
    probe = inspection_add(inspection, PROBE_OBJECT, "layer", name, key);
    set_row(probe, STORE_LAYER, inspection->owner, row[STORE_LAYER_ID].bytes);
    probe->has_size = true;
    probe->size = (uint64_t) row[STORE_LAYER_SIZE].integer;
    set_sum(probe, &row[STORE_LAYER_SHA256]);
    /* A row that nobody names is replaced by the next offload of the same contents. */
    probe->weight = inspection->has_all_marks && !layer_marks_have(&inspection->marks, name)
                        ? FINDING_GARBAGE
                        : FINDING_LOST;
    inspection->inspected.layers++;
}

static void on_layers(void *context, const struct error *failure, const struct store_rows *rows)
{
    struct inspection *inspection = context;

    if (!inspection_goes_on(inspection, failure))
        return;
    for (size_t i = 0; i < rows->count; i++)
        add_layer(inspection, rows->rows[i]);
    if (rows->count)
        copy(inspection->after, sizeof(inspection->after),
             rows->rows[rows->count - 1][STORE_LAYER_ID].bytes);
    else
        inspection->after[0] = '\0'; /* that was all of this owner */
    inspection_probe_all(inspection, next_layers);
}

static void on_owner(void *context, const struct error *failure, const struct store_rows *rows)
{
    struct inspection *inspection = context;

    if (!inspection_goes_on(inspection, failure))
        return;
    if (rows->count == 0) {
        inspection_next(inspection);
        return;
    }
    copy(inspection->owner, sizeof(inspection->owner), rows->rows[0][STORE_LAYER_OWNER].bytes);
    on_layers(inspection, NULL, rows);
}

/* The key of a layer has two columns: first the next owner with their first layer, then, while
 * there are any, the others of that owner. */
static void next_layers(struct inspection *inspection)
{
    bool is_within = inspection->after[0] != '\0';
    const struct store_condition conditions[] = {
        {.column = STORE_LAYER_OWNER,
         .comparison = is_within ? STORE_EQUAL : STORE_GREATER,
         .value = store_text(inspection->owner)},
        {.column = STORE_LAYER_ID,
         .comparison = STORE_GREATER,
         .value = store_text(inspection->after)},
    };
    const struct store_query query = {.kind = STORE_LAYER,
                                      .conditions = conditions,
                                      .condition_count = is_within ? 2 : 1,
                                      .order = STORE_LAYER_OWNER,
                                      .limit = is_within ? INSPECTION_PAGE : 1};

    domain_find(inspection->domain, &query, is_within ? on_layers : on_owner, inspection);
}

void inspection_look_at_layers(struct inspection *inspection)
{
    begin(inspection, next_layers);
}

/* --- backups --------------------------------------------------------------------------------- */

static void next_backups(struct inspection *inspection);

static void add_backup(struct inspection *inspection, const struct store_value *row)
{
    const char *id = row[STORE_BACKUP_ID].bytes;
    char key[BACKUP_KEY_SIZE];
    struct probe *probe;

    backup_key(key, id, "data.sqsh");
    probe = inspection_add(inspection, PROBE_OBJECT, "backup", id, key);
    set_row(probe, STORE_BACKUP, "", id);
    probe->has_size = true;
    probe->size = (uint64_t) row[STORE_BACKUP_SIZE].integer;
    set_sum(probe, &row[STORE_BACKUP_SHA256]);
    backup_key(key, id, "meta.json");
    set_row(inspection_add(inspection, PROBE_OBJECT, "backup", id, key), STORE_BACKUP, "", id);
    inspection->inspected.backups++;
    if (owner_is_gone(inspection->domain, row[STORE_BACKUP_OWNER].bytes))
        inspection_tell(inspection, FINDING_GARBAGE, "backup", id,
                        "its user was deleted; `burrow gc` takes it away");
}

static void on_backups(void *context, const struct error *failure, const struct store_rows *rows)
{
    struct inspection *inspection = context;

    if (inspection_goes_on(inspection, failure))
        take_page(inspection, rows, STORE_BACKUP_ID, add_backup, next_backups);
}

/* Those that are being made promise nothing yet. */
static void next_backups(struct inspection *inspection)
{
    const struct store_condition conditions[] = {
        {.column = STORE_BACKUP_STATE, .comparison = STORE_EQUAL, .value = store_text("ready")},
        {.column = STORE_BACKUP_ID,
         .comparison = STORE_GREATER,
         .value = store_text(inspection->after)},
    };
    const struct store_query query = {.kind = STORE_BACKUP,
                                      .conditions = conditions,
                                      .condition_count = ARRAY_COUNT(conditions),
                                      .order = STORE_BACKUP_ID,
                                      .limit = INSPECTION_PAGE};

    domain_find(inspection->domain, &query, on_backups, inspection);
}

void inspection_look_at_backups(struct inspection *inspection)
{
    begin(inspection, next_backups);
}

/* --- workspaces ------------------------------------------------------------------------------ */

static void next_workspaces(struct inspection *inspection);

/* A sync puts its list before its row: the list may be younger than the row, and is as good. */
static void add_workspace(struct inspection *inspection, const struct store_value *row)
{
    struct id sandbox = domain_row_id(&row[STORE_WORKSPACE_SANDBOX]);
    char key[WORKSPACE_KEY_SIZE];

    if (row[STORE_WORKSPACE_MANIFEST].length == 0)
        return; /* its first sync is not over */
    workspace_manifest(key, &sandbox);
    set_row(inspection_add(inspection, PROBE_OBJECT, "workspace", sandbox.text, key),
            STORE_WORKSPACE, "", sandbox.text);
    inspection->inspected.workspaces++;
}

static void on_workspaces(void *context, const struct error *failure, const struct store_rows *rows)
{
    struct inspection *inspection = context;

    if (inspection_goes_on(inspection, failure))
        take_page(inspection, rows, STORE_WORKSPACE_SANDBOX, add_workspace, next_workspaces);
}

static void next_workspaces(struct inspection *inspection)
{
    const struct store_condition behind = {.column = STORE_WORKSPACE_SANDBOX,
                                           .comparison = STORE_GREATER,
                                           .value = store_text(inspection->after)};
    const struct store_query query = {.kind = STORE_WORKSPACE,
                                      .conditions = &behind,
                                      .condition_count = 1,
                                      .order = STORE_WORKSPACE_SANDBOX,
                                      .limit = INSPECTION_PAGE};

    domain_find(inspection->domain, &query, on_workspaces, inspection);
}

void inspection_look_at_workspaces(struct inspection *inspection)
{
    begin(inspection, next_workspaces);
}

/* --- buckets --------------------------------------------------------------------------------- */

static void see_bucket(void *context, const struct id *owner, const char *name, uint64_t bytes)
{
    struct inspection *inspection = context;
    AUTO(text) struct text whole = TEXT_INIT(1024);

    if (!owner_is_gone(inspection->domain, owner->text))
        return;
    text_format(&whole, "%s/%s", owner->text, name);
    inspection_tell(inspection, FINDING_GARBAGE, "bucket", text_string(&whole),
                    "its user was deleted, %llu bytes; `burrow gc` takes it away",
                    (unsigned long long) bytes);
}

/* As far as they were counted since the start. */
void inspection_look_at_buckets(struct inspection *inspection)
{
    const struct mounter *mounter = inspection->domain->options.mounter;

    if (mounter && mounter->each_bucket)
        mounter->each_bucket(mounter->self, see_bucket, inspection);
    inspection_next(inspection);
}
