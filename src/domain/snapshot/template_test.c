/* Templates: put, found, kept, deleted; and the snapshots they hold on to. */
#include "domain/snapshot/snapshot_testing.h"
#include "domain/snapshot/template.h"

struct told_template {
    struct told told;
    const struct template *template;
};

static void on_template(void *context, const struct error *failure, const struct template *template)
{
    struct told_template *told = context;

    note_told(&told->told, failure, NULL);
    told->template = template;
}

static struct told_template put(struct world *world, const char *name,
                                const struct sandbox_spec *spec, struct snapshot *snapshot)
{
    struct told_template told = {.template = NULL};

    template_put(world->domain, &world->caller, name, spec, snapshot, on_template, &told);
    assert_int_equal(told.told.times, 0);
    TURN_UNTIL(&world->loop, told.told.times);
    return told;
}

static struct told drop(struct world *world, const char *name)
{
    struct told_template told = {.template = NULL};

    template_delete(world->domain, &world->caller, name, on_template, &told);
    TURN_UNTIL(&world->loop, told.told.times);
    return told.told;
}

static void a_template_is_kept_and_replaced(void **state)
{
    struct world *world = *state;
    struct sandbox_spec spec = SANDBOX_SPEC_INIT;
    AUTO(sandbox_spec) struct sandbox_spec read = SANDBOX_SPEC_INIT;
    struct told_template told;
    struct error err = ERROR_INIT;
    int64_t created;

    spec.image = (char *) "debian";
    spec.limits.memory_bytes = 1 << 20;
    told = put(world, "blue", &spec, NULL);
    expect_ok(&told.told);
    created = told.template->created_ms;
    clock_manual_advance(&world->clock, 1000);
    spec.limits.memory_bytes = 1 << 21;
    told = put(world, "blue", &spec, NULL);
    expect_ok(&told.told);
    assert_int_equal(told.template->created_ms, created);
    assert_int_equal(told.template->updated_ms, created + 1000);
    world_close(world);
    world_open(world);
    told.template = template_find(world->domain, &world->caller, "blue", &err);
    assert_non_null(told.template);
    assert_int_equal(template_spec(told.template, &read, &err), 0);
    assert_string_equal(read.image, "debian");
    assert_int_equal(read.limits.memory_bytes, 1 << 21);
    told.told = drop(world, "blue");
    expect_ok(&told.told);
    assert_null(template_find(world->domain, &world->caller, "blue", &err));
    told.told = drop(world, "blue");
    expect_code(&told.told, ERR_NOT_FOUND);
}

static void others_have_their_own_and_nonsense_is_refused(void **state)
{
    struct world *world = *state;
    struct sandbox_spec spec = SANDBOX_SPEC_INIT;
    struct caller other = {.scope = CALLER_WRITE, .owner = id_new()};
    struct told_template told = put(world, "blue", &spec, NULL);
    struct error err = ERROR_INIT;

    expect_ok(&told.told);
    assert_null(template_find(world->domain, &other, "blue", &err));
    told = put(world, "a/b", &spec, NULL);
    expect_code(&told.told, ERR_INVALID);
    told = put(world, "", &spec, NULL);
    expect_code(&told.told, ERR_INVALID);
    world->refuse_commit = 1;
    told = put(world, "red", &spec, NULL);
    expect_code(&told.told, ERR_NO_SPACE);
    assert_null(template_find(world->domain, &world->caller, "red", &err));
    world->caller.scope = CALLER_READ;
    told = put(world, "red", &spec, NULL);
    expect_code(&told.told, ERR_FORBIDDEN);
}

static void a_snapshot_of_a_template_is_not_deleted_under_it(void **state)
{
    struct world *world = *state;
    struct sandbox_spec spec = SANDBOX_SPEC_INIT;
    struct sandbox *sandbox = world_create(world, "demo");
    struct snapshot *snapshot = world_snapshot(world, sandbox, "first");
    struct told_snapshot passing = ask_snapshot(
        world, sandbox, &(struct snapshot_options){.expires_ms = world->clock.wall_ms + 60 * 1000});
    struct told_template told = put(world, "ready", &spec, passing.snapshot);
    struct told gone, created = {.times = 0};

    expect_code(&told.told, ERR_CONFLICT);
    told = put(world, "ready", &spec, snapshot);
    expect_ok(&told.told);
    gone = ask_delete(world, snapshot);
    expect_code(&gone, ERR_CONFLICT);
    assert_non_null(strstr(gone.failure.message, "ready"));
    sandbox_create_from_snapshot(world->domain, &world->caller, snapshot, &spec, on_created,
                                 &created);
    TURN_UNTIL(&world->loop, created.times);
    expect_ok(&created);
    expect_events(world, &created.sandbox->id, "sandbox.created sandbox.forked");
    gone = drop(world, "ready");
    expect_ok(&gone);
    gone = ask_delete(world, snapshot);
    expect_ok(&gone);
}

/* --- pages ----------------------------------------------------------------------------------- */

struct told_names {
    struct text names;
    size_t full_after; /* 0: never */
    size_t count;
};

static void note_name(void *context, const struct template *template)
{
    struct told_names *told = context;

    text_format(&told->names, "%s ", template->name);
    told->count++;
}

static bool is_enough(void *context)
{
    const struct told_names *told = context;

    return told->full_after && told->count >= told->full_after;
}

/* The names of a page; the cursor of the next, or NULL. */
static const char *page(struct world *world, struct pool *pool, const char *after, size_t limit,
                        size_t full_after, const char *expected)
{
    struct told_names told = {.names = TEXT_INIT(4096), .full_after = full_after};
    const struct template_filter filter = {
        .after = after, .limit = limit, .is_full = is_enough, .full_context = &told};
    struct error err = ERROR_INIT;
    const char *next = NULL;

    assert_int_equal(
        template_list(world->domain, &world->caller, &filter, pool, note_name, &told, &next, &err),
        0);
    assert_string_equal(text_string(&told.names), expected);
    text_done(&told.names);
    return next;
}

static void put_good(struct world *world, const char *name)
{
    struct sandbox_spec spec = SANDBOX_SPEC_INIT;
    struct told_template told = put(world, name, &spec, NULL);

    expect_ok(&told.told);
}

static void pages_go_on_whatever_comes_and_goes(void **state)
{
    struct world *world = *state;
    AUTO(pool) struct pool pool = POOL_INIT;
    const char *next;
    struct told told;

    put_good(world, "c");
    put_good(world, "b"); /* in the same millisecond */
    clock_manual_advance(&world->clock, 1);
    put_good(world, "a");
    clock_manual_advance(&world->clock, 1);
    put_good(world, "d \xc3\xa9");
    assert_null(page(world, &pool, NULL, 4, 0, "b c a d \xc3\xa9 "));
    next = page(world, &pool, NULL, 1000, 2, "b c ");
    assert_non_null(next);
    assert_null(page(world, &pool, next, 2, 0, "a d \xc3\xa9 "));
    /* One that is replaced stays where it was, one that goes is no gap, also over a restart. */
    put_good(world, "b");
    told = drop(world, "c");
    expect_ok(&told);
    world_close(world);
    world_open(world);
    next = page(world, &pool, next, 1, 0, "a ");
    assert_null(page(world, &pool, next, 1, 0, "d \xc3\xa9 "));
    (void) page(world, &pool, NULL, 2, 0, "b a ");
}

static void a_cursor_that_no_page_gave_is_refused(void **state)
{
    static const char *const wrong[] = {"", "1", "x.61", "1.6", "1.zz", "99999999999999999999.61"};
    struct world *world = *state;
    AUTO(pool) struct pool pool = POOL_INIT;

    for (size_t i = 0; i < ARRAY_COUNT(wrong); i++) {
        const struct template_filter filter = {.after = wrong[i], .limit = 1};
        struct error err = ERROR_INIT;
        const char *next = NULL;

        assert_int_equal(template_list(world->domain, &world->caller, &filter, &pool, note_name,
                                       NULL, &next, &err),
                         -1);
        assert_int_equal(err.code, ERR_INVALID);
    }
}

static void a_long_one_is_brief_in_lists_alone(void **state)
{
    struct world *world = *state;
    AUTO(sandbox_spec) struct sandbox_spec spec = SANDBOX_SPEC_INIT;
    AUTO(sandbox_spec) struct sandbox_spec brief = SANDBOX_SPEC_INIT;
    AUTO(sandbox_spec) struct sandbox_spec whole = SANDBOX_SPEC_INIT;
    AUTO(free) char *value = mem_alloc(20001);
    struct told_template told;
    bool is_brief = false;

    memset(value, 'v', 20000);
    sandbox_pairs_set(&spec.environment, "LONG", value);
    sandbox_pairs_set(&spec.labels, "team", "x");
    told = put(world, "long", &spec, NULL);
    expect_ok(&told.told);
    assert_int_equal(template_spec_brief(told.template, &brief, &is_brief, NULL), 0);
    assert_true(is_brief);
    assert_string_equal(sandbox_pairs_get(&brief.environment, "LONG"), "");
    assert_string_equal(sandbox_pairs_get(&brief.labels, "team"), "x");
    assert_int_equal(template_spec(told.template, &whole, NULL), 0);
    assert_string_equal(sandbox_pairs_get(&whole.environment, "LONG"), value);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        WORLD_TEST(a_template_is_kept_and_replaced),
        WORLD_TEST(others_have_their_own_and_nonsense_is_refused),
        WORLD_TEST(a_snapshot_of_a_template_is_not_deleted_under_it),
        WORLD_TEST(pages_go_on_whatever_comes_and_goes),
        WORLD_TEST(a_cursor_that_no_page_gave_is_refused),
        WORLD_TEST(a_long_one_is_brief_in_lists_alone),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
