#include "domain/care_testing.h"
#include "objects/objects_backend.h"

#define GONE_OBJECT                                                                                \
    "it belongs to nothing, 5 bytes; `burrow gc` takes it away when it is older than an hour"

static void on_done(void *context, const struct error *failure)
{
    assert_null(failure);
    ++*(int *) context;
}

static void on_made(void *context, const struct error *failure,
                    const struct provider_sandbox *sandbox)
{
    assert_null(failure);
    assert_non_null(sandbox);
    ++*(int *) context;
}

static void lose_disk(struct care *care, const struct id *id)
{
    int times = 0;

    provider_destroy(care->world->provider, id, on_done, &times);
    TURN_UNTIL(&care->world->loop, times);
}

static void lose_snapshot(struct care *care, const struct id *id)
{
    int times = 0;

    provider_delete_snapshot(care->world->provider, id, on_done, &times);
    TURN_UNTIL(&care->world->loop, times);
}

/* "%s" of `format` is `name`. */
static void expect(struct care *care, bool is_deep, const char *format, const char *name)
{
    AUTO(text) struct text expected = TEXT_INIT(4096);
    const char *mark = strstr(format, "%s");

    assert_non_null(mark);
    text_append_bytes(&expected, format, (size_t) (mark - format));
    text_format(&expected, "%s%s", name, mark + 2);
    expect_findings(care, is_deep, text_string(&expected));
}

/* --- disks and snapshots ---------------------------------------------------------------------- */

static void nothing_is_wrong_with_what_is_there(void **state)
{
    struct care *care = *state;
    struct sandbox *sandbox = world_create(care->world, "demo");
    char key[256];

    world_snapshot(care->world, sandbox, "one");
    care_add_backup(care, CARE_BACKUP, "ready", "bytes");
    care_put(care, "backups/" CARE_BACKUP "/data.sqsh", "bytes");
    care_put(care, "backups/" CARE_BACKUP "/meta.json", "{}");
    care_add_layer(care, "owner", "layer");
    care_put(care, care_layer_key("owner", key, sizeof(key)), "layer");
    care_add_workspace(care, &sandbox->id);
    (void) snprintf(key, sizeof(key), "manifests/%s.json", sandbox->id.text);
    care_put(care, key, "{}");
    (void) snprintf(key, sizeof(key), "workspaces/%s/a/b.c", sandbox->id.text);
    care_put(care, key, "file");
    expect_findings(care, false, "");
    assert_int_equal(care->inspected.bytes, 0);
    expect_findings(care, true, "");
    assert_int_equal(care->inspected.sandboxes, 1);
    assert_int_equal(care->inspected.snapshots, 1);
    assert_int_equal(care->inspected.layers, 1);
    assert_int_equal(care->inspected.backups, 1);
    assert_int_equal(care->inspected.workspaces, 1);
    assert_int_equal(care->inspected.objects, 5);
    /* The archive, its meta.json, the layer, the list twice, the file. */
    assert_int_equal(care->inspected.bytes, 5 + 2 + 5 + 2 * 2 + 4);
}

static void a_disk_that_is_gone_is_lost(void **state)
{
    struct care *care = *state;
    struct sandbox *sandbox = world_create(care->world, "demo");

    world_create(care->world, "other");
    lose_disk(care, &sandbox->id);
    expect(care, false, "lost sandbox %s: its disk is not there\n", sandbox->id.text);
    assert_int_equal(care->inspected.lost, 1);
    expect_row(care->world, &sandbox->id, "running"); /* nothing was changed */
    sandbox->is_disk_lost = true;                     /* it comes back from its mirror */
    expect_findings(care, false, "");
    sandbox->is_disk_lost = false;
    sandbox->is_held = true; /* it is being changed */
    expect_findings(care, false, "");
    sandbox->is_held = false;
}

static void one_that_is_broken_is_lost(void **state)
{
    struct care *care = *state;
    struct id id = world_create(care->world, "demo")->id;

    world_close(care->world);
    world_make_provider(care->world);
    provider_fake_add(care->world->provider, &id, RUN_STATE_BROKEN, NULL);
    world_open(care->world);
    expect(care, false, "lost sandbox %s: parts of it are missing\n", id.text);
}

static void a_disk_of_nobody_is_garbage(void **state)
{
    struct care *care = *state;
    struct id id = id_new();
    struct provider_spec spec = {.id = id, .hostname = "stranger", .keep_id = true};
    int times = 0;

    provider_create(care->world->provider, &spec, on_made, &times);
    TURN_UNTIL(&care->world->loop, times);
    expect(care, false,
           "garbage disk %s: no sandbox has it; it is taken away at the next start at the latest\n",
           id.text);
    assert_int_equal(care->inspected.lost, 0);
}

static void a_snapshot_that_is_gone_is_lost(void **state)
{
    struct care *care = *state;
    struct sandbox *sandbox = world_create(care->world, "demo");
    struct snapshot *snapshot = world_snapshot(care->world, sandbox, "one");

    lose_snapshot(care, &snapshot->id);
    expect(care, false, "lost snapshot %s: its disk is not there\n", snapshot->id.text);
}

static void a_snapshot_without_a_row_is_garbage_when_nothing_is_under_way(void **state)
{
    struct care *care = *state;
    struct id id = id_new();

    provider_fake_add_snapshot(care->world->provider, &id);
    expect(care, false, "garbage snapshot %s: it has no row; `burrow gc` takes it away\n", id.text);
    care->world->domain->works++; /* somebody may have made it in passing */
    expect_findings(care, false, "");
    care->world->domain->works--;
}

static void one_that_is_there_at_the_second_look_is_not_lost(void **state)
{
    struct care *care = *state;
    struct sandbox *sandbox = world_create(care->world, "demo");
    struct snapshot *snapshot = world_snapshot(care->world, sandbox, "one");

    lose_snapshot(care, &snapshot->id);
    provider_fake_hold(care->world->provider, PROVIDER_CALL_LIST_SNAPSHOTS, true);
    care_begin(care);
    inspection_run(care->world->domain, false, care_found, care_inspected, care);
    world_wait(care->world); /* the first look: it is not there */
    provider_fake_add_snapshot(care->world->provider, &snapshot->id);
    provider_fake_hold(care->world->provider, PROVIDER_CALL_LIST_SNAPSHOTS, false);
    TURN_UNTIL(&care->world->loop, care->times);
    assert_string_equal(text_string(&care->findings), "");
}

/* --- layers ----------------------------------------------------------------------------------- */

static void a_layer_without_its_object_is_lost_when_it_is_named(void **state)
{
    struct care *care = *state;
    struct sandbox *sandbox = world_create(care->world, "demo");
    char name[256];

    (void) snprintf(name, sizeof(name), "%s/" CARE_LAYER, sandbox->owner.text);
    care_add_layer(care, sandbox->owner.text, "layer");
    care_inspect(care, false);
    assert_int_equal(care->inspected.lost, 0);
    assert_int_equal(care->inspected.garbage, 1); /* nobody needs it */
    care_store(care, sandbox, "layer");
    care_inspect(care, false);
    assert_int_equal(care->inspected.lost, 1);
    assert_int_equal(care->inspected.garbage, 0);
    assert_non_null(strstr(text_string(&care->findings), "is not there"));
    assert_non_null(strstr(text_string(&care->findings), name));
}

static void a_layer_of_another_size_or_sum_is_lost(void **state)
{
    struct care *care = *state;
    char key[256];

    care_add_layer(care, "owner", "layer");
    care_put(care, care_layer_key("owner", key, sizeof(key)), "layers");
    expect(care, false, "lost layer owner/%s has 6 bytes instead of 5\n",
           CARE_LAYER ": its object layers/owner/" CARE_LAYER);
    care_put(care, key, "lAyer");
    expect(care, false, "lost layer owner/%s has another sum than its row\n",
           CARE_LAYER ": its object layers/owner/" CARE_LAYER);
}

static void damage_is_seen_when_everything_is_read(void **state)
{
    struct care *care = *state;
    char key[256];

    care_add_layer(care, "owner", "layer");
    care_put(care, care_layer_key("owner", key, sizeof(key)), "layer");
    care_damage(care, key, "lAyer");
    expect_findings(care, false, "");
    expect(care, true, "lost layer owner/%s is not what was put\n",
           CARE_LAYER ": its object layers/owner/" CARE_LAYER);
}

static void a_name_without_a_row_is_lost(void **state)
{
    struct care *care = *state;
    struct sandbox *sandbox = world_create(care->world, "demo");
    char key[256];

    care_store(care, sandbox, "layer");
    care_put(care, care_layer_key(sandbox->owner.text, key, sizeof(key)), "layer");
    expect(care, false, "lost layer %s: a sandbox or snapshot names it, and it has no row\n",
           key + strlen("layers/"));
}

static void layers_of_many_owners_are_all_looked_at(void **state)
{
    struct care *care = *state;
    char owner[16];

    for (int i = 0; i < 70; i++) {
        (void) snprintf(owner, sizeof(owner), "owner%02d", i);
        care_add_layer(care, owner, "layer");
    }
    care_inspect(care, false);
    assert_int_equal(care->inspected.layers, 70);
    assert_int_equal(care->inspected.garbage, 70);
}

/* --- backups and workspaces ------------------------------------------------------------------- */

static void a_backup_without_one_of_its_objects_is_lost(void **state)
{
    struct care *care = *state;

    care_add_backup(care, CARE_BACKUP, "ready", "bytes");
    care_put(care, "backups/" CARE_BACKUP "/data.sqsh", "bytes");
    expect(care, false, "lost backup " CARE_BACKUP ": its object %s is not there\n",
           "backups/" CARE_BACKUP "/meta.json");
    care_put(care, "backups/" CARE_BACKUP "/meta.json", "{}");
    expect_findings(care, false, "");
    care_lose(care, "backups/" CARE_BACKUP "/data.sqsh");
    expect(care, false, "lost backup " CARE_BACKUP ": its object %s is not there\n",
           "backups/" CARE_BACKUP "/data.sqsh");
}

static void one_that_is_being_made_promises_nothing(void **state)
{
    struct care *care = *state;

    care_add_backup(care, CARE_BACKUP, "making", "bytes");
    care_put(care, "backups/" CARE_BACKUP "/data.sqsh", "half");
    expect_findings(care, false, "");
}

static void a_workspace_without_its_list_is_lost(void **state)
{
    struct care *care = *state;
    struct id id = world_create(care->world, "demo")->id, gone = id_new();
    char key[128], expected[256];

    care_add_workspace(care, &id);
    care_add_workspace(care, &gone); /* with its sandbox: it promises nothing */
    (void) snprintf(key, sizeof(key), "manifests/%s.json", id.text);
    (void) snprintf(expected, sizeof(expected), "lost workspace %s: its object %s is not there\n",
                    id.text, key);
    expect_findings(care, false, expected);
    care_put(care, key, "{}");
    (void) snprintf(key, sizeof(key), "workspaces/%s/file", id.text);
    care_put(care, key, "file");
    care_damage(care, key, "fIle");
    expect_findings(care, false, "");
    (void) snprintf(expected, sizeof(expected),
                    "lost workspace %s: its object %s is not what was put\n", id.text, key);
    expect_findings(care, true, expected);
}

/* --- objects ---------------------------------------------------------------------------------- */

static void objects_of_nobody_are_garbage(void **state)
{
    struct care *care = *state;

    care_put(care, "backups/" CARE_BACKUP "/data.sqsh", "bytes");
    care_put(care, "layers/owner/" CARE_LAYER, "layer");
    care_put(care, "layers/readme", "hello");
    care_put(care, "manifests/nobody.json", "lists");
    care_put(care, "workspaces/nobody/file", "files");
    care_put(care, "elsewhere/file", "files");
    expect_findings(care, false,
                    "garbage object layers/readme: it is none of ours, 5 bytes\n"
                    "garbage object layers/owner/" CARE_LAYER ": " GONE_OBJECT "\n"
                    "garbage object backups/" CARE_BACKUP "/data.sqsh: " GONE_OBJECT "\n"
                    "garbage object workspaces/nobody/file: " GONE_OBJECT "\n"
                    "garbage object manifests/nobody.json: " GONE_OBJECT "\n");
    assert_int_equal(care->inspected.lost, 0);
    assert_true(care_has(care, "workspaces/nobody/file")); /* nothing was changed */
}

static void many_objects_come_page_by_page(void **state)
{
    struct care *care = *state;
    char key[64];

    for (int i = 0; i < 100; i++) {
        (void) snprintf(key, sizeof(key), "workspaces/nobody/%d", i);
        care_put(care, key, "x");
    }
    care_inspect(care, true);
    assert_int_equal(care->inspected.objects, 100);
    assert_int_equal(care->inspected.garbage, 100);
}

/* --- the whole -------------------------------------------------------------------------------- */

static void one_at_a_time(void **state)
{
    struct care *care = *state;
    struct care other = {.findings = TEXT_INIT(64)};

    care_begin(care);
    inspection_run(care->world->domain, false, care_found, care_inspected, care);
    inspection_run(care->world->domain, false, care_found, care_inspected, &other);
    TURN_UNTIL(&care->world->loop, care->times && other.times);
    assert_int_equal(care->failure.code, ERR_NONE);
    assert_int_equal(other.failure.code, ERR_UNAVAILABLE);
    text_done(&other.findings);
    expect_findings(care, false, "");
}

static int refuse_head(void *self, struct objects_work *work, const char *key,
                       struct object_info *ret_info, struct error *err)
{
    (void) self, (void) work, (void) key, (void) ret_info;
    return error_set(err, ERR_UNAVAILABLE, 0, "the store is away");
}

static void end_backend(void *self)
{
    (void) self;
}

static int give_head(void *self, struct objects_work *work, const char *key,
                     struct object_info *ret_info, struct error *err)
{
    (void) self, (void) work, (void) key, (void) err;
    *ret_info = (struct object_info){.size = 5, .tag = "old"};
    return 0;
}

static int refuse_get(void *self, struct objects_work *work, const char *key,
                      const struct object_range *range, const char *only_tag,
                      struct objects_sink *sink, struct object_info *ret_info, struct error *err)
{
    (void) self, (void) work, (void) key, (void) range, (void) sink, (void) ret_info;
    return error_set(err, strcmp(only_tag, "old") == 0 ? ERR_CONFLICT : ERR_INTERNAL, 0,
                     "replaced");
}

static int give_no_list(void *self, struct objects_work *work, const struct object_query *query,
                        struct object_list *ret_list, struct error *err)
{
    (void) self, (void) work, (void) query, (void) err;
    *ret_list = (struct object_list){.count = 0};
    return 0;
}

static void one_that_is_replaced_while_it_is_read_is_not_lost(void **state)
{
    const struct objects_backend backend = {.head = give_head,
                                            .get = refuse_get,
                                            .list = give_no_list,
                                            .end = end_backend,
                                            .text = "busy"};
    struct care *care = *state;
    struct objects *busy = objects_new(&care->world->loop, &backend, 1);
    bool is_closed = false;

    care_add_backup(care, CARE_BACKUP, "ready", "bytes");
    care->world->domain->options.objects = busy;
    expect_findings(care, true, "");
    assert_int_equal(care->inspected.backups, 1);
    care->world->domain->options.objects = care->objects;
    objects_close(busy, care_closed, &is_closed);
    TURN_UNTIL(&care->world->loop, is_closed);
}

/* What cannot be looked at is not lost. */
static void a_store_that_is_away_ends_it(void **state)
{
    const struct objects_backend backend = {.head = refuse_head, .end = end_backend, .text = "no"};
    struct care *care = *state;
    struct objects *away = objects_new(&care->world->loop, &backend, 1);
    bool is_closed = false;

    care_add_backup(care, CARE_BACKUP, "ready", "bytes");
    care->world->domain->options.objects = away;
    care_inspect(care, false);
    assert_int_equal(care->failure.code, ERR_UNAVAILABLE);
    assert_string_equal(text_string(&care->findings), "");
    care->world->domain->options.objects = care->objects;
    objects_close(away, care_closed, &is_closed);
    TURN_UNTIL(&care->world->loop, is_closed);
    care_inspect(care, false); /* and the next one may begin */
    assert_int_equal(care->inspected.lost, 2);
}

static void a_domain_that_closes_ends_it(void **state)
{
    struct care *care = *state;

    care_add_backup(care, CARE_BACKUP, "ready", "bytes");
    care_begin(care);
    inspection_run(care->world->domain, true, care_found, care_inspected, care);
    world_close(care->world);
    assert_int_equal(care->times, 1);
    assert_int_equal(care->failure.code, ERR_UNAVAILABLE);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        CARE_TEST(nothing_is_wrong_with_what_is_there),
        CARE_TEST(a_disk_that_is_gone_is_lost),
        CARE_TEST(one_that_is_broken_is_lost),
        CARE_TEST(a_disk_of_nobody_is_garbage),
        CARE_TEST(a_snapshot_that_is_gone_is_lost),
        CARE_TEST(a_snapshot_without_a_row_is_garbage_when_nothing_is_under_way),
        CARE_TEST(one_that_is_there_at_the_second_look_is_not_lost),
        CARE_TEST(a_layer_without_its_object_is_lost_when_it_is_named),
        CARE_TEST(a_layer_of_another_size_or_sum_is_lost),
        CARE_TEST(damage_is_seen_when_everything_is_read),
        CARE_TEST(a_name_without_a_row_is_lost),
        CARE_TEST(layers_of_many_owners_are_all_looked_at),
        CARE_TEST(a_backup_without_one_of_its_objects_is_lost),
        CARE_TEST(one_that_is_being_made_promises_nothing),
        CARE_TEST(a_workspace_without_its_list_is_lost),
        CARE_TEST(objects_of_nobody_are_garbage),
        CARE_TEST(many_objects_come_page_by_page),
        CARE_TEST(one_at_a_time),
        CARE_TEST(one_that_is_replaced_while_it_is_read_is_not_lost),
        CARE_TEST(a_store_that_is_away_ends_it),
        CARE_TEST(a_domain_that_closes_ends_it),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
