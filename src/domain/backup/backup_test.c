#include "domain/backup/backup.h"
#include "domain/domain_testing.h"
#include "domain/domain_testing_look.h"
#include "domain/vault.h"
#include "objects/objects_backend.h"

/* --- a vault that only remembers -------------------------------------------------------------- */

struct memory {
    struct world *world;
    struct vault vault;
    struct objects *objects;
    enum err_code fail_archive, fail_restore, fail_remove, fail_meta;
    char archived[512], restored[512], removed[256], meta_key[256], meta[1024];
    int removals;
};

struct later {
    struct loop_task task;
    struct memory *memory;
    vault_archive_done *archive;
    vault_done *done;
    void *context;
    enum err_code failure;
};

static void tell(struct loop_task *task)
{
    AUTO(free) struct later *later = CONTAINER_OF(task, struct later, task);
    const struct vault_archived archived = {.files = 3, .bytes = 30, .size = 20, .sum = {1, 2, 3}};
    struct error err = ERROR_INIT;
    const struct error *failure = later->failure ? &err : NULL;

    (void) error_set(&err, later->failure, 0, "the store is not well");
    if (later->archive)
        later->archive(later->context, failure, failure ? NULL : &archived);
    else
        later->done(later->context, failure);
}

static struct later *answer(struct memory *memory, enum err_code failure, void *context)
{
    struct later *later = mem_alloc(sizeof(*later));

    *later = (struct later){.memory = memory, .failure = failure, .context = context};
    loop_task_init(&later->task, tell);
    loop_defer(&memory->world->loop, &later->task);
    return later;
}

static void fake_archive(void *self, const struct vault_archive *what, vault_progressed *progressed,
                         vault_archive_done *done, void *context)
{
    struct memory *memory = self;

    (void) snprintf(memory->archived, sizeof(memory->archived), "%s %s %zu %s %s", what->folder,
                    what->gitignore ? "gitignore" : "all", what->exclude_count,
                    what->compression ? what->compression : "-", what->key);
    assert_int_equal(what->disk.set, DISK_OF_SNAPSHOT);
    progressed(context, &(struct vault_progress){.files = 1});
    answer(memory, memory->fail_archive, context)->archive = done;
}

static void fake_restore(void *self, const struct vault_restore *what, vault_progressed *progressed,
                         vault_done *done, void *context)
{
    struct memory *memory = self;

    (void) progressed;
    assert_int_equal(what->sum[0], 1);
    assert_int_equal(what->sum[2], 3);
    (void) snprintf(memory->restored, sizeof(memory->restored), "%s %s", what->key, what->folder);
    answer(memory, memory->fail_restore, context)->done = done;
}

static void fake_remove(void *self, const char *prefix, vault_done *done, void *context)
{
    struct memory *memory = self;

    memory->removals++;
    (void) snprintf(memory->removed, sizeof(memory->removed), "%s", prefix);
    answer(memory, memory->fail_remove, context)->done = done;
}

static int put(void *self, struct objects_work *work, const char *key,
               const struct objects_source *source, const struct object_put_options *options,
               struct object_info *ret_info, struct error *err)
{
    struct memory *memory = self;

    (void) work, (void) options;
    if (memory->fail_meta)
        return error_set(err, memory->fail_meta, 0, "no puts today");
    (void) snprintf(memory->meta_key, sizeof(memory->meta_key), "%s", key);
    (void) snprintf(memory->meta, sizeof(memory->meta), "%.*s", (int) source->length,
                    (const char *) source->bytes);
    *ret_info = (struct object_info){.size = source->length};
    return 0;
}

static void end_backend(void *self)
{
    (void) self;
}

/* --- the world -------------------------------------------------------------------------------- */

static int setup(void **state)
{
    struct memory *memory = mem_alloc(sizeof(*memory));
    const struct objects_backend backend = {
        .self = memory, .put = put, .end = end_backend, .text = "memory"};

    *memory = (struct memory){.world = world_new(NULL)};
    memory->vault = (struct vault){.self = memory,
                                   .archive = fake_archive,
                                   .restore = fake_restore,
                                   .remove_prefix = fake_remove};
    memory->objects = objects_new(&memory->world->loop, &backend, 1);
    memory->world->options.vault = &memory->vault;
    memory->world->options.objects = memory->objects;
    world_open(memory->world);
    *state = memory;
    return 0;
}

static void objects_closed(void *context, const struct error *failure)
{
    (void) failure;
    *(bool *) context = true;
}

static int teardown(void **state)
{
    struct memory *memory = *state;
    struct world *world = memory->world;
    bool is_closed = false;

    if (world->domain)
        world_close(world);
    objects_close(memory->objects, objects_closed, &is_closed);
    TURN_UNTIL(&world->loop, is_closed);
    world_free(world);
    free(memory);
    return 0;
}

struct heard {
    int times;
    bool failed;
    struct error failure;
    struct backup backup;
    char dir[256], name[256];
    size_t count;
};

static void on_backup(void *context, const struct error *failure, const struct backup *backup)
{
    struct heard *heard = context;

    heard->times++;
    heard->failed = failure != NULL;
    if (failure)
        heard->failure = *failure;
    if (backup) {
        heard->backup = *backup;
        (void) snprintf(heard->dir, sizeof(heard->dir), "%s", backup->dir);
        (void) snprintf(heard->name, sizeof(heard->name), "%s", backup->name ? backup->name : "-");
    }
}

static struct heard make(struct memory *memory, struct sandbox *sandbox,
                         const struct backup_spec *spec)
{
    struct world *world = memory->world;
    struct heard heard = {.times = 0};

    backup_make(world->domain, &world->caller, sandbox, spec, on_backup, &heard);
    assert_int_equal(heard.times, 0);
    TURN_UNTIL(&world->loop, heard.times);
    world_wait(world);
    assert_int_equal(heard.times, 1);
    return heard;
}

static struct heard restore(struct memory *memory, struct sandbox *sandbox, const char *id,
                            const char *dir)
{
    struct world *world = memory->world;
    struct heard heard = {.times = 0};

    backup_restore(world->domain, &world->caller, sandbox, id, dir, on_backup, &heard);
    assert_int_equal(heard.times, 0);
    TURN_UNTIL(&world->loop, heard.times);
    return heard;
}

static struct heard find(struct memory *memory, const char *id)
{
    struct world *world = memory->world;
    struct heard heard = {.times = 0};

    backup_find(world->domain, &world->caller, id, on_backup, &heard);
    TURN_UNTIL(&world->loop, heard.times);
    return heard;
}

static void expect(const struct heard *heard, enum err_code code)
{
    if (!heard->failed)
        fail_msg("it succeeded");
    if (heard->failure.code != code)
        fail_msg("%s: %s", error_code_text(heard->failure.code), heard->failure.message);
}

static void expect_good(const struct heard *heard)
{
    if (heard->failed)
        fail_msg("%s", heard->failure.message);
}

static void on_snapshots(void *context, const struct error *failure, const struct id *ids,
                         size_t count)
{
    (void) ids;
    assert_null(failure);
    *(int *) context = (int) count;
}

static int snapshots(struct memory *memory)
{
    int count = -1;

    provider_list_snapshots(memory->world->provider, on_snapshots, &count);
    TURN_UNTIL(&memory->world->loop, count >= 0);
    return count;
}

/* --- tests ------------------------------------------------------------------------------------ */

static void a_backup_is_made_kept_and_restored(void **state)
{
    struct memory *memory = *state;
    struct sandbox *sandbox = world_create(memory->world, "demo");
    const char *const excludes[] = {"a", "b"};
    const struct backup_spec spec = {.dir = "/home/x",
                                     .name = "nightly",
                                     .ttl = 100,
                                     .gitignore = true,
                                     .excludes = excludes,
                                     .exclude_count = 2,
                                     .compression = "zstd"};
    struct heard made = make(memory, sandbox, &spec), again;
    char expected[512];

    expect_good(&made);
    assert_true(uuid_is_valid(made.backup.id));
    assert_string_equal(made.dir, "/home/x");
    assert_int_equal(made.backup.size, 20);
    assert_int_equal(made.backup.pause_us, 1); /* it stood still for it */
    (void) snprintf(expected, sizeof(expected), "/home/x gitignore 2 zstd backups/%s/data.sqsh",
                    made.backup.id);
    assert_string_equal(memory->archived, expected);
    (void) snprintf(expected, sizeof(expected), "backups/%s/meta.json", made.backup.id);
    assert_string_equal(memory->meta_key, expected);
    assert_non_null(strstr(memory->meta, "\"name\":\"nightly\",\"sizeBytes\":20,\"ttl\":100"));
    assert_int_equal(snapshots(memory), 0);

    again = find(memory, made.backup.id);
    expect_good(&again);
    assert_string_equal(again.name, "nightly");
    again = restore(memory, sandbox, made.backup.id, NULL);
    expect_good(&again);
    (void) snprintf(expected, sizeof(expected), "backups/%s/data.sqsh /home/x", made.backup.id);
    assert_string_equal(memory->restored, expected);
    again = restore(memory, world_create(memory->world, "other"), made.backup.id, "/app");
    expect_good(&again);
    assert_non_null(strstr(memory->restored, " /app"));
    again = make(memory, sandbox, &(struct backup_spec){.no_freeze = true});
    expect_good(&again);
    assert_int_equal(again.backup.pause_us, 0);
}

static void what_will_not_do_is_refused_before_anything_happens(void **state)
{
    struct memory *memory = *state;
    struct sandbox *sandbox = world_create(memory->world, "demo");
    const char *const empty[] = {""};
    const struct backup_spec specs[] = {
        {.dir = "workspace"},
        {.dir = "/etc"},
        {.dir = "/workspaces"},
        {.dir = "/workspace/../etc"},
        {.name = "a\nb"},
        {.ttl = -1},
        {.ttl = BACKUP_TTL_MAX + 1},
        {.compression = "rar"},
        {.excludes = empty, .exclude_count = 1},
    };
    struct heard heard;

    for (size_t i = 0; i < ARRAY_COUNT(specs); i++) {
        heard = make(memory, sandbox, &specs[i]);
        expect(&heard, ERR_BACKUP_INVALID);
    }
    assert_string_equal(memory->archived, "");
    heard = restore(memory, sandbox, "../../etc/passwd", NULL);
    expect(&heard, ERR_BACKUP_INVALID);
    heard = restore(memory, sandbox, uuid_new().text, "/etc");
    expect(&heard, ERR_BACKUP_INVALID);
    heard = restore(memory, sandbox, uuid_new().text, NULL);
    expect(&heard, ERR_BACKUP_NOT_FOUND);
}

static void a_failure_at_any_step_leaves_nothing(void **state)
{
    struct memory *memory = *state;
    struct world *world = memory->world;
    struct sandbox *sandbox = world_create(world, "demo");
    const struct backup_spec spec = {.ttl = 0};
    struct heard heard;

    memory->fail_archive = ERR_UNAVAILABLE;
    heard = make(memory, sandbox, &spec);
    expect(&heard, ERR_UNAVAILABLE);
    assert_int_equal(memory->removals, 1);
    memory->fail_archive = ERR_NONE;
    memory->fail_meta = ERR_NO_SPACE;
    heard = make(memory, sandbox, &spec);
    expect(&heard, ERR_NO_SPACE);
    assert_int_equal(memory->removals, 2);
    memory->fail_meta = ERR_NONE;
    provider_fake_fail_next(world->provider, PROVIDER_CALL_SNAPSHOT, ERR_NO_SPACE);
    heard = make(memory, sandbox, &spec);
    expect(&heard, ERR_NO_SPACE);
    assert_int_equal(memory->removals, 3);
    assert_int_equal(snapshots(memory), 0);
    heard = make(memory, sandbox, &spec);
    expect_good(&heard);
}

static void an_expired_backup_is_refused_and_collected(void **state)
{
    struct memory *memory = *state;
    struct world *world = memory->world;
    struct sandbox *sandbox = world_create(world, "demo");
    struct heard made = make(memory, sandbox, &(struct backup_spec){.ttl = 120}), heard;

    expect_good(&made);
    clock_manual_advance(&world->clock, 61 * 1000);
    heard = restore(memory, sandbox, made.backup.id, NULL);
    expect(&heard, ERR_BACKUP_EXPIRED);
    for (int i = 0; i < 2; i++) /* the store needs its time, too, between two looks */
        world_pass(world, 60);
    TURN_UNTIL(&world->loop, memory->removals);
    assert_non_null(strstr(memory->removed, made.backup.id));
    world_wait(world);
    heard = find(memory, made.backup.id);
    expect(&heard, ERR_BACKUP_NOT_FOUND);
}

static void one_that_expires_while_it_is_made_is_made_all_the_same(void **state)
{
    struct memory *memory = *state;
    struct world *world = memory->world;
    struct sandbox *sandbox = world_create(world, "demo");
    struct heard heard = {.times = 0};

    provider_fake_hold(world->provider, PROVIDER_CALL_SNAPSHOT, true);
    backup_make(world->domain, &world->caller, sandbox, &(struct backup_spec){.ttl = 1}, on_backup,
                &heard);
    world_wait(world);
    world_pass(world, 100);
    world_wait(world);
    assert_int_equal(memory->removals, 0);
    provider_fake_hold(world->provider, PROVIDER_CALL_SNAPSHOT, false);
    TURN_UNTIL(&world->loop, heard.times);
    expect_good(&heard);
    world_pass(world, 100);
    TURN_UNTIL(&world->loop, memory->removals);
}

static void on_list(void *context, const struct error *failure, const struct backup *backups,
                    size_t count, const char *next)
{
    struct heard *heard = context;

    assert_null(failure);
    heard->times++;
    heard->count = count;
    (void) snprintf(heard->name, sizeof(heard->name), "%s", next ? next : "-");
    if (count)
        heard->backup = backups[count - 1];
}

static struct heard list(struct memory *memory, const char *after, size_t limit)
{
    struct heard heard = {.times = 0};

    backup_list(memory->world->domain, &memory->world->caller, NULL, after, limit, on_list, &heard);
    TURN_UNTIL(&memory->world->loop, heard.times);
    return heard;
}

static void lists_have_pages(void **state)
{
    struct memory *memory = *state;
    struct world *world = memory->world;
    struct sandbox *sandbox = world_create(world, "demo");
    struct heard heard;

    for (int i = 0; i < 3; i++) {
        heard = make(memory, sandbox, &(struct backup_spec){.ttl = 0});
        expect_good(&heard);
    }
    heard = list(memory, NULL, 2);
    assert_int_equal(heard.count, 2);
    assert_string_equal(heard.name, heard.backup.id);
    heard = list(memory, heard.name, 2);
    assert_int_equal(heard.count, 1);
    assert_string_equal(heard.name, "-");
    /* A narrow key of another sandbox of the owner: pages without anything to see, to the end. */
    world->caller.scope = CALLER_SANDBOX;
    world->caller.sandbox = id_new();
    heard = list(memory, NULL, 2);
    assert_int_equal(heard.count, 0);
    assert_string_not_equal(heard.name, "-");
}

static void others_do_not_see_it(void **state)
{
    struct memory *memory = *state;
    struct world *world = memory->world;
    struct sandbox *sandbox = world_create(world, "demo");
    struct heard made = make(memory, sandbox, &(struct backup_spec){.ttl = 0}), heard;
    struct caller mine = world->caller;

    expect_good(&made);
    world->caller.owner = id_new();
    heard = find(memory, made.backup.id);
    expect(&heard, ERR_BACKUP_NOT_FOUND);
    heard = restore(memory, sandbox, made.backup.id, NULL);
    expect(&heard, ERR_BACKUP_NOT_FOUND);
    world->caller = mine;
    world->caller.scope = CALLER_READ;
    heard = make(memory, sandbox, &(struct backup_spec){.ttl = 0});
    expect(&heard, ERR_FORBIDDEN);
    world->caller = mine;
}

static void a_restart_collects_what_was_never_finished(void **state)
{
    struct memory *memory = *state;
    struct world *world = memory->world;
    struct sandbox *sandbox = world_create(world, "demo");
    struct heard heard = {.times = 0};

    provider_fake_hold(world->provider, PROVIDER_CALL_SNAPSHOT, true);
    backup_make(world->domain, &world->caller, sandbox, &(struct backup_spec){.ttl = 0}, on_backup,
                &heard);
    world_wait(world);
    world_close(world);
    expect(&heard, ERR_UNAVAILABLE);
    memory->removals = 0;
    clock_manual_advance(&world->clock, 1000);
    world_open(world);
    world_pass(world, 2);
    TURN_UNTIL(&world->loop, memory->removals);
    assert_int_equal(memory->removals, 1);
}

static struct heard away_with(struct memory *memory, const char *id)
{
    struct heard heard = {0};

    backup_delete(memory->world->domain, &memory->world->caller, id, on_backup, &heard);
    TURN_UNTIL(&memory->world->loop, heard.times);
    return heard;
}

static void it_is_deleted_with_its_objects(void **state)
{
    struct memory *memory = *state;
    struct sandbox *sandbox = world_create(memory->world, "demo");
    struct heard made = make(memory, sandbox, &(struct backup_spec){.ttl = 0}), heard;

    expect_good(&made);
    heard = away_with(memory, made.backup.id);
    expect_good(&heard);
    assert_int_equal(memory->removals, 1);
    heard = find(memory, made.backup.id);
    expect(&heard, ERR_BACKUP_NOT_FOUND);
    heard = away_with(memory, made.backup.id);
    expect(&heard, ERR_BACKUP_NOT_FOUND);
    world_pass(memory->world, 100);
    assert_int_equal(memory->removals, 1); /* nothing is left to do */
    expect_events(memory->world, &sandbox->id, "sandbox.created backup.created backup.deleted");
}

static void a_store_that_is_away_does_not_keep_it_from_being_deleted(void **state)
{
    struct memory *memory = *state;
    struct world *world = memory->world;
    struct sandbox *sandbox = world_create(world, "demo");
    struct heard made = make(memory, sandbox, &(struct backup_spec){.ttl = 0}), heard;
    struct id id = sandbox->id;

    expect_good(&made);
    memory->fail_remove = ERR_UNAVAILABLE;
    heard = away_with(memory, made.backup.id);
    expect_good(&heard);
    heard = find(memory, made.backup.id);
    expect(&heard, ERR_BACKUP_NOT_FOUND);
    world_pass(world, 40);
    assert_true(memory->removals > 1); /* tried again */
    world_close(world);
    memory->fail_remove = ERR_NONE;
    memory->removals = 0;
    world_open(world); /* also by the next daemon */
    world_pass(world, 100);
    assert_int_equal(memory->removals, 1);
    expect_events(world, &id, "sandbox.created backup.created backup.deleted sandbox.error");
}

static void a_row_that_cannot_be_kept_leaves_it_as_it_was(void **state)
{
    struct memory *memory = *state;
    struct sandbox *sandbox = world_create(memory->world, "demo");
    struct heard made = make(memory, sandbox, &(struct backup_spec){.ttl = 0}), heard;

    expect_good(&made);
    world_wait(memory->world);
    memory->world->refuse_commit = 1;
    heard = away_with(memory, made.backup.id);
    expect(&heard, ERR_NO_SPACE);
    assert_int_equal(memory->removals, 0);
    heard = find(memory, made.backup.id);
    expect_good(&heard);
}

#define MEMORY_TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        MEMORY_TEST(a_backup_is_made_kept_and_restored),
        MEMORY_TEST(what_will_not_do_is_refused_before_anything_happens),
        MEMORY_TEST(a_failure_at_any_step_leaves_nothing),
        MEMORY_TEST(an_expired_backup_is_refused_and_collected),
        MEMORY_TEST(one_that_expires_while_it_is_made_is_made_all_the_same),
        MEMORY_TEST(lists_have_pages),
        MEMORY_TEST(others_do_not_see_it),
        MEMORY_TEST(a_restart_collects_what_was_never_finished),
        MEMORY_TEST(it_is_deleted_with_its_objects),
        MEMORY_TEST(a_store_that_is_away_does_not_keep_it_from_being_deleted),
        MEMORY_TEST(a_row_that_cannot_be_kept_leaves_it_as_it_was),
    };

    return cmocka_run_group_tests_name("backup", tests, NULL, NULL);
}
