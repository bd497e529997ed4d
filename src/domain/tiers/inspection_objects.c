/* The last stage of the inspection: objects against rows. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/encoding/uuid.h"
#include "base/memory.h"
#include "domain/tiers/inspection_internal.h"

static const struct {
    const char *prefix;
    enum store_kind kind;
} prefixes[] = {
    {"layers/", STORE_LAYER},
    {"backups/", STORE_BACKUP},
    {"workspaces/", STORE_WORKSPACE},
    {"manifests/", STORE_WORKSPACE},
};

static void next_keys(struct inspection *inspection);

/* "<owner>/<id>" of a layer, "<id>/..." of a backup or a file, "<id>.json" of a list. Returns false
 * for a key that none of ours can be. */
static bool read_name(const char *name, enum store_kind kind, struct probe_row *row)
{
    size_t length = strcspn(name, "/."), rest;

    *row = (struct probe_row){.kind = kind};
    if (kind == STORE_LAYER) {
        rest = length < strlen(name) ? strlen(name + length + 1) : 0;
        if (name[length] != '/' || length >= sizeof(row->owner) || rest != sizeof(row->id) - 1)
            return false;
        memcpy(row->owner, name, length);
        memcpy(row->id, name + length + 1, rest);
        return true;
    }
    if (length == 0 || length >= sizeof(row->id) || name[length] == '\0')
        return false;
    memcpy(row->id, name, length);
    return true;
}

static void add_key(struct inspection *inspection, const struct object_entry *entry)
{
    enum store_kind kind = prefixes[inspection->prefix].kind;
    const char *name = entry->key + strlen(prefixes[inspection->prefix].prefix);
    struct probe_row row;
    struct probe *probe;

    inspection->inspected.objects++;
    if (!read_name(name, kind, &row)) {
        inspection_tell(inspection, FINDING_GARBAGE, "object", entry->key,
                        "it is none of ours, %llu bytes", (unsigned long long) entry->size);
        return;
    }
    probe = inspection_add(inspection, PROBE_ORPHAN, "object", name, entry->key);
    probe->row = row;
    probe->size = entry->size;
    if (!inspection->is_deep || kind != STORE_WORKSPACE)
        return; /* the bytes of others were read for their rows */
    probe = inspection_add(inspection, PROBE_CONTENT, "workspace", row.id, entry->key);
    probe->row = row;
}

static void on_keys(void *context, const struct error *failure, const struct object_list *list)
{
    struct inspection *inspection = context;

    if (!inspection_goes_on(inspection, failure))
        return;
    free(inspection->after_key);
    inspection->after_key = list->next ? mem_copy_text(list->next) : NULL;
    for (size_t i = 0; i < list->count; i++)
        add_key(inspection, &list->entries[i]);
    if (!inspection->after_key)
        inspection->prefix++;
    inspection_probe_all(inspection, next_keys);
}

static void next_keys(struct inspection *inspection)
{
    struct object_query query = {.after = inspection->after_key, .limit = INSPECTION_PAGE};

    if (inspection->prefix == ARRAY_COUNT(prefixes)) {
        inspection_next(inspection);
        return;
    }
    query.prefix = prefixes[inspection->prefix].prefix;
    (void) objects_list(inspection->domain->options.objects, &query, on_keys, inspection);
}

void inspection_look_at_objects(struct inspection *inspection)
{
    if (inspection->domain->options.objects)
        next_keys(inspection);
    else
        inspection_next(inspection);
}
