/* What the files of domain/inspection share. */
#pragma once

#include "base/encoding/sha256.h"
#include "domain/domain_internal.h"
#include "domain/tiers/inspection.h"
#include "domain/tiers/layer_marks.h"
#include "objects/objects.h"
#include "store/store.h"

#define INSPECTION_PAGE    32 /* rows or keys */
#define INSPECTION_PROBES  (2 * INSPECTION_PAGE)
#define INSPECTION_AT_ONCE 4

struct inspection;

/* --- one object, or one row ------------------------------------------------------------------ */

/* The row that a probe is about. */
struct probe_row {
    enum store_kind kind;
    char owner[ID_LENGTH + 1]; /* of a layer */
    char id[VAULT_LAYER_SIZE]; /* of a layer, backup or sandbox (of a workspace) */
};

enum probe_aim {
    PROBE_OBJECT,  /* the row promises this object */
    PROBE_CONTENT, /* the object is there: are its bytes what was put? */
    PROBE_ORPHAN,  /* the object is there: is the row? */
    PROBE_NAMED,   /* something names the row: is it there? */
};

struct probe {
    struct inspection *inspection;
    enum probe_aim aim;
    struct probe_row row;
    const char *what;
    char *name; /* owned */
    char *key;  /* owned, may be NULL: none */
    bool has_size, has_sum;
    uint64_t size;
    uint8_t sum[SHA256_SIZE];
    enum finding_kind weight; /* of a missing object */

    struct sha256 hash; /* while its bytes are read */
    uint64_t offset;
    char tag[OBJECTS_TAG_SIZE];
    char problem[FINDING_DETAIL_MAX];
};

/* --- all of it ------------------------------------------------------------------------------- */

struct suspect {
    struct id id;
    enum finding_kind kind;
};

struct inspection {
    struct domain_task task;
    struct domain *domain;
    bool is_deep;
    inspection_found *found;
    inspection_done *done;
    void *context;
    struct inspected inspected;
    bool is_counted; /* domain->is_inspecting is ours */
    bool has_failed;
    struct error failure;
    size_t stage;

    struct suspect *suspects; /* owned: of the first look at disks or snapshots */
    size_t suspect_count, next_suspect;
    bool is_second_look, was_busy;

    struct layer_marks marks;
    bool has_all_marks;
    size_t next_mark;

    char owner[ID_LENGTH + 1]; /* cursors of rows; owner: of layers */
    char after[VAULT_LAYER_SIZE];
    char *after_key; /* owned: cursor of keys */
    size_t prefix;

    struct probe probes[INSPECTION_PROBES];
    size_t probe_count, probe_next, probing;
    void (*page_done)(struct inspection *inspection);
};

/* A stage ends with inspection_next, once. */
void inspection_look_at_disks(struct inspection *inspection);
void inspection_look_at_snapshots(struct inspection *inspection);
void inspection_look_at_marks(struct inspection *inspection);
void inspection_look_at_layers(struct inspection *inspection);
void inspection_look_at_backups(struct inspection *inspection);
void inspection_look_at_workspaces(struct inspection *inspection);
void inspection_look_at_objects(struct inspection *inspection);
void inspection_look_at_buckets(struct inspection *inspection);

void inspection_next(struct inspection *inspection);

/* The end, with a failure. */
void inspection_fail(struct inspection *inspection, const struct error *failure);

/* Whether an answer is to be gone on with: else the inspection has ended. */
bool inspection_goes_on(struct inspection *inspection, const struct error *failure);

__attribute__((format(printf, 5, 6))) void inspection_tell(struct inspection *inspection,
                                                           enum finding_kind kind, const char *what,
                                                           const char *name, const char *format,
                                                           ...);

/* A new probe of this page. `key` may be NULL. */
struct probe *inspection_add(struct inspection *inspection, enum probe_aim aim, const char *what,
                             const char *name, const char *key);

/* All probes of this page, a few at once; then `page_done`, never from inside the call. */
void inspection_probe_all(struct inspection *inspection,
                          void (*page_done)(struct inspection *inspection));
