/* For tests of the collector and the inspection: a world with objects in a folder, and rows and
 * objects put there by hand. Included by test programs only. */
#pragma once

#include <ftw.h>
#include <unistd.h>

#include "base/encoding/sha256.h"
#include "domain/snapshot/snapshot_testing.h"
#include "domain/stored_disk.h"
#include "domain/tiers/collector.h"
#include "domain/tiers/inspection.h"
#include "objects/folder/objects_folder.h"

#define CARE_LAYER  "00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff"
#define CARE_BACKUP "11111111-2222-4333-8444-555555555555"

struct care {
    struct world *world;
    char folder[64];
    struct objects *objects;

    /* What was told. */
    int times;
    struct error failure;
    struct collected collected;
    struct inspected inspected;
    struct text findings; /* "lost sandbox NAME: detail\n" ... */
};

static inline struct care *care_new(void)
{
    struct care *care = mem_alloc(sizeof(*care));
    struct error err = ERROR_INIT;

    care->world = world_new(NULL);
    (void) snprintf(care->folder, sizeof(care->folder), "/tmp/burrow-care-XXXXXX");
    assert_non_null(mkdtemp(care->folder));
    care->objects = objects_folder_new(&care->world->loop, care->folder, 0, &err);
    if (!care->objects)
        fail_msg("%s", err.message);
    care->world->options.objects = care->objects;
    care->findings = (struct text) TEXT_INIT(64 * 1024);
    world_open(care->world);
    return care;
}

static inline int care_remove(const char *path, const struct stat *status, int type,
                              struct FTW *place)
{
    (void) status, (void) type, (void) place;
    return remove(path);
}

static inline void care_closed(void *context, const struct error *failure)
{
    (void) failure;
    *(bool *) context = true;
}

static inline void care_free(struct care *care)
{
    bool is_closed = false;

    if (care->world->domain)
        world_close(care->world);
    objects_close(care->objects, care_closed, &is_closed);
    TURN_UNTIL(&care->world->loop, is_closed);
    world_free(care->world);
    (void) nftw(care->folder, care_remove, 16, FTW_DEPTH | FTW_PHYS);
    text_done(&care->findings);
    free(care);
}

static inline int care_setup(void **state)
{
    *state = care_new();
    return 0;
}

static inline int care_teardown(void **state)
{
    care_free(*state);
    return 0;
}

#define CARE_TEST(name) cmocka_unit_test_setup_teardown(name, care_setup, care_teardown)

/* --- objects ---------------------------------------------------------------------------------- */

static inline void care_put_done(void *context, const struct error *failure,
                                 const struct object_info *info)
{
    (void) info;
    if (failure)
        fail_msg("%s", failure->message);
    ++*(int *) context;
}

static inline void care_put(struct care *care, const char *key, const char *bytes)
{
    int times = 0;

    (void) objects_put_bytes(care->objects, key, bytes, strlen(bytes), NULL, care_put_done, &times);
    TURN_UNTIL(&care->world->loop, times);
}

static inline char *care_path(const struct care *care, const char *key)
{
    struct text path = TEXT_INIT(4096);

    text_format(&path, "%s/%s", care->folder, key);
    return text_take(&path);
}

static inline bool care_has(const struct care *care, const char *key)
{
    AUTO(free) char *path = care_path(care, key);

    return access(path, F_OK) == 0;
}

static inline void care_lose(const struct care *care, const char *key)
{
    AUTO(free) char *path = care_path(care, key);

    assert_int_equal(unlink(path), 0);
}

/* Other bytes, behind everybody's back; the attributes stay. */
static inline void care_damage(const struct care *care, const char *key, const char *bytes)
{
    AUTO(free) char *path = care_path(care, key);
    FILE *file = fopen(path, "r+");

    assert_non_null(file);
    assert_int_equal(fwrite(bytes, 1, strlen(bytes), file), strlen(bytes));
    assert_int_equal(fclose(file), 0);
}

/* --- rows ------------------------------------------------------------------------------------- */

static inline void care_kept(void *context, const struct error *failure,
                             const struct store_receipt *receipt)
{
    (void) receipt;
    if (failure)
        fail_msg("%s", failure->message);
    ++*(int *) context;
}

static inline void care_insert(struct care *care, enum store_kind kind,
                               const struct store_value *values)
{
    struct store_transaction *change = store_begin(care->world->store);
    int times = 0;

    store_insert(change, kind, values);
    store_commit(change, care_kept, &times);
    TURN_UNTIL(&care->world->loop, times);
}

/* The row of a layer with these bytes. */
static inline void care_add_layer(struct care *care, const char *owner, const char *bytes)
{
    struct store_value values[STORE_LAYER_COLUMN_COUNT];
    uint8_t sum[SHA256_SIZE];

    sha256_bytes(bytes, strlen(bytes), sum);
    values[STORE_LAYER_OWNER] = store_text(owner);
    values[STORE_LAYER_ID] = store_text(CARE_LAYER);
    values[STORE_LAYER_SIZE] = store_integer((int64_t) strlen(bytes));
    values[STORE_LAYER_BYTES] = store_integer(1);
    values[STORE_LAYER_SHA256] = store_bytes(sum, sizeof(sum));
    values[STORE_LAYER_CREATED] = values[STORE_LAYER_USED] = store_integer(1);
    care_insert(care, STORE_LAYER, values);
}

static inline const char *care_layer_key(const char *owner, char *key, size_t size)
{
    (void) snprintf(key, size, "layers/%s/%s", owner, CARE_LAYER);
    return key;
}

/* As after an offload: its disk is this layer. */
static inline void care_store(struct care *care, struct sandbox *sandbox, const char *bytes)
{
    AUTO(text) struct text text = TEXT_INIT(4096);
    struct vault_layer layer = {.id = CARE_LAYER, .size = strlen(bytes)};

    (void) care;
    sha256_bytes(bytes, strlen(bytes), layer.sum);
    stored_disk_write(&(struct stored_disk){.layers = &layer, .count = 1}, &text);
    sandbox->stored = mem_copy_text(text_string(&text));
}

static inline void care_add_backup(struct care *care, const char *id, const char *state,
                                   const char *bytes)
{
    struct store_value values[STORE_BACKUP_COLUMN_COUNT];
    uint8_t sum[SHA256_SIZE];

    sha256_bytes(bytes, strlen(bytes), sum);
    values[STORE_BACKUP_ID] = store_text(id);
    values[STORE_BACKUP_OWNER] = values[STORE_BACKUP_SANDBOX] =
        store_text(care->world->caller.owner.text);
    values[STORE_BACKUP_DIR] = store_text("/workspace");
    values[STORE_BACKUP_NAME] = store_null();
    values[STORE_BACKUP_SIZE] = store_integer((int64_t) strlen(bytes));
    values[STORE_BACKUP_SHA256] = store_bytes(sum, sizeof(sum));
    values[STORE_BACKUP_TTL] = store_integer(1000);
    values[STORE_BACKUP_STATE] = store_text(state);
    values[STORE_BACKUP_DETAIL] = store_text("");
    values[STORE_BACKUP_CREATED] = values[STORE_BACKUP_EXPIRES] = store_integer(WORLD_START_MS * 2);
    care_insert(care, STORE_BACKUP, values);
}

static inline void care_add_workspace(struct care *care, const struct id *sandbox)
{
    struct store_value values[STORE_WORKSPACE_COLUMN_COUNT];

    values[STORE_WORKSPACE_SANDBOX] = store_text(sandbox->text);
    values[STORE_WORKSPACE_OWNER] = store_text(care->world->caller.owner.text);
    values[STORE_WORKSPACE_PREFIX] = store_text("workspaces/x/");
    values[STORE_WORKSPACE_FILES] = values[STORE_WORKSPACE_BYTES] = store_integer(1);
    values[STORE_WORKSPACE_MANIFEST] = store_text(CARE_LAYER);
    values[STORE_WORKSPACE_SYNCED] = store_integer(1);
    care_insert(care, STORE_WORKSPACE, values);
}

/* --- calls ------------------------------------------------------------------------------------ */

static inline void care_found(void *context, const struct finding *finding)
{
    struct care *care = context;

    assert_int_equal(care->times, 0);
    text_format(&care->findings, "%s %s %s: %s\n",
                finding->kind == FINDING_LOST ? "lost" : "garbage", finding->what, finding->name,
                finding->detail);
}

static inline void care_inspected(void *context, const struct error *failure,
                                  const struct inspected *inspected)
{
    struct care *care = context;

    care->times++;
    if (failure)
        care->failure = *failure;
    else
        care->inspected = *inspected;
}

static inline void care_begin(struct care *care)
{
    care->times = 0;
    care->failure = (struct error) ERROR_INIT;
    text_done(&care->findings);
    care->findings = (struct text) TEXT_INIT(64 * 1024);
}

static inline void care_inspect(struct care *care, bool is_deep)
{
    care_begin(care);
    inspection_run(care->world->domain, is_deep, care_found, care_inspected, care);
    assert_int_equal(care->times, 0);
    TURN_UNTIL(&care->world->loop, care->times);
}

/* The findings of an inspection that does not fail; `expected` has %s for `name`. */
static inline void expect_findings(struct care *care, bool is_deep, const char *expected)
{
    care_inspect(care, is_deep);
    if (care->failure.code != ERR_NONE)
        fail_msg("%s", care->failure.message);
    assert_string_equal(text_string(&care->findings), expected);
}

static inline void care_collected(void *context, const struct error *failure,
                                  const struct collected *collected)
{
    struct care *care = context;

    care->times++;
    if (failure)
        care->failure = *failure;
    else
        care->collected = *collected;
}

static inline void care_collect(struct care *care)
{
    care_begin(care);
    collector_run(care->world->domain, COLLECTOR_GRACE_MS, care_collected, care);
    assert_int_equal(care->times, 0);
    TURN_UNTIL(&care->world->loop, care->times);
    if (care->failure.code != ERR_NONE)
        fail_msg("%s", care->failure.message);
}
