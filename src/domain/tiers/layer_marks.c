#include "domain/tiers/layer_marks.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "domain/sandbox/sandbox_set.h"
#include "domain/snapshot/snapshot_set.h"
#include "domain/stored_disk.h"

void layer_marks_done(struct layer_marks *marks)
{
    free(marks->items);
    *marks = (struct layer_marks) LAYER_MARKS_INIT;
}

static int compare(const void *a, const void *b)
{
    return strcmp(((const struct layer_mark *) a)->text, ((const struct layer_mark *) b)->text);
}

static void add(struct layer_marks *marks, const struct id *owner, const struct stored_disk *disk)
{
    marks->items = mem_resize(marks->items, (marks->count + disk->count) * sizeof(*marks->items));
    for (size_t i = 0; i < disk->count; i++)
        (void) snprintf(marks->items[marks->count + i].text, LAYER_MARK_SIZE, "%s/%s", owner->text,
                        disk->layers[i].id);
    marks->count += disk->count;
}

static int read_sandboxes(const struct domain *domain, struct layer_marks *marks, struct error *err)
{
    LIST_EACH (&domain->sandboxes->all, at) {
        const struct sandbox *sandbox = CONTAINER_OF(at, struct sandbox, link);
        AUTO(stored_disk) struct stored_disk disk = {.layers = NULL};

        if (!sandbox->stored)
            continue;
        if (stored_disk_read(sandbox->stored, &disk, err) < 0)
            return error_wrap(err, "sandbox %s", sandbox->id.text);
        add(marks, &sandbox->owner, &disk);
    }
    return 0;
}

static int read_snapshots(const struct domain *domain, struct layer_marks *marks, struct error *err)
{
    LIST_EACH (&domain->snapshots->all, at) {
        const struct snapshot *snapshot = CONTAINER_OF(at, struct snapshot, link);
        AUTO(stored_disk) struct stored_disk disk = {.layers = NULL};

        if (!snapshot->layers)
            continue;
        if (stored_disk_read(snapshot->layers, &disk, err) < 0)
            return error_wrap(err, "snapshot %s", snapshot->id.text);
        add(marks, &snapshot->owner, &disk);
    }
    return 0;
}

int layer_marks_read(const struct domain *domain, struct layer_marks *ret_marks, struct error *err)
{
    int result;

    *ret_marks = (struct layer_marks) LAYER_MARKS_INIT;
    result =
        read_sandboxes(domain, ret_marks, err) < 0 ? -1 : read_snapshots(domain, ret_marks, err);
    if (ret_marks->count)
        qsort(ret_marks->items, ret_marks->count, sizeof(*ret_marks->items), compare);
    return result;
}

bool layer_marks_have(const struct layer_marks *marks, const char *name)
{
    struct layer_mark wanted;

    (void) snprintf(wanted.text, sizeof(wanted.text), "%s", name);
    return marks->count &&
           bsearch(&wanted, marks->items, marks->count, sizeof(*marks->items), compare);
}
