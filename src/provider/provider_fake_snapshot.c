#include "provider/provider_fake_snapshot.h"

#include <stdlib.h>
#include <string.h>

#include "base/auto.h"
#include "base/memory.h"

struct fake_snapshot {
    struct list link;
    struct id id;
};

struct fake_origin {
    struct list link;
    struct id sandbox;
    struct disk_ref disk;
};

void fake_snapshots_init(struct fake_snapshots *snapshots)
{
    list_init(&snapshots->known);
    list_init(&snapshots->origins);
}

void fake_snapshots_done(struct fake_snapshots *snapshots)
{
    LIST_EACH (&snapshots->known, at)
        free(CONTAINER_OF(at, struct fake_snapshot, link));
    LIST_EACH (&snapshots->origins, at)
        free(CONTAINER_OF(at, struct fake_origin, link));
}

static struct fake_snapshot *find(const struct fake_snapshots *snapshots, const struct id *id)
{
    LIST_EACH (&snapshots->known, at) {
        struct fake_snapshot *snapshot = CONTAINER_OF(at, struct fake_snapshot, link);

        if (strcmp(snapshot->id.text, id->text) == 0)
            return snapshot;
    }
    return NULL;
}

bool fake_snapshots_has(const struct fake_snapshots *snapshots, const struct id *id)
{
    return find(snapshots, id) != NULL;
}

void fake_snapshots_add(struct fake_snapshots *snapshots, const struct id *id)
{
    struct fake_snapshot *snapshot = mem_alloc(sizeof(*snapshot));

    snapshot->id = *id;
    list_append(&snapshots->known, &snapshot->link);
}

void fake_snapshots_remove(struct fake_snapshots *snapshots, const struct id *id)
{
    struct fake_snapshot *snapshot = find(snapshots, id);

    if (!snapshot)
        return;
    list_remove(&snapshot->link);
    free(snapshot);
}

static int compare(const void *one, const void *other)
{
    return strcmp(((const struct id *) one)->text, ((const struct id *) other)->text);
}

void fake_snapshots_list(const struct fake_snapshots *snapshots, struct provider_call *call)
{
    size_t count = 0;

    LIST_EACH (&snapshots->known, at) {
        call->result.ids.ids = mem_resize(call->result.ids.ids, (count + 1) * sizeof(struct id));
        call->result.ids.ids[count++] = CONTAINER_OF(at, struct fake_snapshot, link)->id;
    }
    call->result.ids.count = count;
    if (count)
        qsort(call->result.ids.ids, count, sizeof(struct id), compare);
}

static struct fake_origin *find_origin(const struct fake_snapshots *snapshots,
                                       const struct id *sandbox)
{
    LIST_EACH (&snapshots->origins, at) {
        struct fake_origin *origin = CONTAINER_OF(at, struct fake_origin, link);

        if (strcmp(origin->sandbox.text, sandbox->text) == 0)
            return origin;
    }
    return NULL;
}

void fake_snapshots_set_origin(struct fake_snapshots *snapshots, const struct id *sandbox,
                               const struct disk_ref *disk)
{
    struct fake_origin *origin = find_origin(snapshots, sandbox);

    if (!origin) {
        origin = mem_alloc(sizeof(*origin));
        origin->sandbox = *sandbox;
        list_append(&snapshots->origins, &origin->link);
    }
    origin->disk = *disk;
}

const struct disk_ref *fake_snapshots_origin(const struct fake_snapshots *snapshots,
                                             const struct id *sandbox)
{
    const struct fake_origin *origin = find_origin(snapshots, sandbox);

    return origin ? &origin->disk : NULL;
}
