#include "domain/care_testing.h"

static void layers_that_nobody_names_go(void **state)
{
    struct care *care = *state;
    struct sandbox *sandbox = world_create(care->world, "demo");
    char mine[256];

    care_layer_key(sandbox->owner.text, mine, sizeof(mine));
    care_store(care, sandbox, "layer");
    care_add_layer(care, sandbox->owner.text, "layer");
    care_put(care, mine, "layer");
    care_add_layer(care, "nobody", "layer");
    care_put(care, "layers/nobody/" CARE_LAYER, "layer");
    care_put(care, "layers/without/" CARE_LAYER, "layer"); /* a row */
    care_collect(care);
    assert_int_equal(care->collected.layers, 2);
    assert_int_equal(care->collected.kept, 1);
    assert_int_equal(care->collected.bytes, 10);
    assert_true(care_has(care, mine));
    assert_false(care_has(care, "layers/nobody/" CARE_LAYER));
    assert_false(care_has(care, "layers/without/" CARE_LAYER));
    expect_findings(care, true, "");
}

static void objects_of_backups_without_a_row_go(void **state)
{
    static const char other[] = "backups/22222222-2222-4333-8444-555555555555/data.sqsh";
    struct care *care = *state;

    care_add_backup(care, CARE_BACKUP, "making", "bytes");
    care_put(care, "backups/" CARE_BACKUP "/data.sqsh", "bytes");
    care_put(care, "backups/readme", "hello");
    care_put(care, other, "bytes");
    care_collect(care);
    assert_int_equal(care->collected.objects, 1);
    assert_int_equal(care->collected.bytes, 5);
    assert_true(care_has(care, "backups/" CARE_BACKUP "/data.sqsh"));
    assert_true(care_has(care, "backups/readme")); /* none of ours */
    assert_false(care_has(care, other));
}

static void many_of_them_go_page_by_page(void **state)
{
    struct care *care = *state;
    char key[64];

    for (int i = 0; i < 80; i++) {
        (void) snprintf(key, sizeof(key), "backups/%08d-2222-4333-8444-555555555555/data", i);
        care_put(care, key, "x");
    }
    care_add_backup(care, "00000040-2222-4333-8444-555555555555", "ready", "x");
    care_collect(care);
    assert_int_equal(care->collected.objects, 79);
    assert_true(care_has(care, "backups/00000040-2222-4333-8444-555555555555/data"));
}

static void what_is_young_stays(void **state)
{
    struct care *care = *state;

    care_put(care, "backups/" CARE_BACKUP "/data.sqsh", "bytes");
    care_put(care, "layers/nobody/" CARE_LAYER, "layer");
    /* The world's clock stands where these are from the future. */
    care->world->clock.wall_ms = 1000;
    care_collect(care);
    assert_int_equal(care->collected.objects + care->collected.layers, 0);
    assert_true(care_has(care, "backups/" CARE_BACKUP "/data.sqsh"));
}

static void snapshots_without_a_row_go_when_nothing_is_under_way(void **state)
{
    struct care *care = *state;
    struct sandbox *sandbox = world_create(care->world, "demo");
    struct snapshot *kept = world_snapshot(care->world, sandbox, "one");
    struct id id = id_new();

    provider_fake_add_snapshot(care->world->provider, &id);
    care->world->domain->works++; /* somebody may have made it in passing */
    care_collect(care);
    care->world->domain->works--;
    assert_int_equal(care->collected.snapshots, 0);
    world_wait(care->world);
    assert_true(provider_fake_has_snapshot(care->world->provider, &id));
    care_collect(care);
    assert_int_equal(care->collected.snapshots, 1);
    world_settle(care->world);
    assert_false(provider_fake_has_snapshot(care->world->provider, &id));
    assert_true(provider_fake_has_snapshot(care->world->provider, &kept->id));
}

static void a_row_that_cannot_be_read_keeps_everything(void **state)
{
    struct care *care = *state;
    struct sandbox *sandbox = world_create(care->world, "demo");

    sandbox->stored = mem_copy_text("{\"layers\":7}");
    care_put(care, "layers/nobody/" CARE_LAYER, "layer");
    care_begin(care);
    collector_run(care->world->domain, 0, care_collected, care);
    TURN_UNTIL(&care->world->loop, care->times);
    assert_int_equal(care->failure.code, ERR_INTERNAL);
    assert_true(care_has(care, "layers/nobody/" CARE_LAYER));
    care_inspect(care, false);
    assert_int_equal(care->inspected.lost, 1);
    assert_int_equal(care->inspected.garbage, 0); /* who knows whose it is */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        CARE_TEST(layers_that_nobody_names_go),
        CARE_TEST(objects_of_backups_without_a_row_go),
        CARE_TEST(many_of_them_go_page_by_page),
        CARE_TEST(what_is_young_stays),
        CARE_TEST(snapshots_without_a_row_go_when_nothing_is_under_way),
        CARE_TEST(a_row_that_cannot_be_read_keeps_everything),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
