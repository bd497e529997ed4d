#include "domain/domain_testing.h"
#include "domain/retention.h"

#define ROWS    (2 * RETENTION_SLICE + 10)
#define KEPT_MS ((int64_t) 1000 * 1000)

static struct retention old_entries(void)
{
    return (struct retention){
        .kind = STORE_AUDIT, .time = STORE_AUDIT_TIME, .kept_ms = KEPT_MS, .every_ns = 1};
}

static void add_rows(struct world *world, size_t count, int64_t first_ms, int64_t step_ms)
{
    struct store_transaction *change = store_begin(world->store);

    for (size_t i = 0; i < count; i++) {
        const struct store_value row[STORE_AUDIT_COLUMN_COUNT] = {
            [STORE_AUDIT_OWNER] = store_text(""),
            [STORE_AUDIT_CREDENTIAL] = store_text(""),
            [STORE_AUDIT_ADDRESS] = store_text(""),
            [STORE_AUDIT_REQUEST] = store_text(""),
            [STORE_AUDIT_ACTION] = store_text(""),
            [STORE_AUDIT_OBJECT] = store_text(""),
            [STORE_AUDIT_OUTCOME] = store_text(""),
            [STORE_AUDIT_DETAIL] = store_text(""),
            [STORE_AUDIT_TIME] = store_integer(first_ms + (int64_t) i * step_ms),
        };

        if (i && i % STORE_CHANGES_MAX == 0) {
            store_commit(change, NULL, NULL);
            change = store_begin(world->store);
        }
        store_insert(change, STORE_AUDIT, row);
    }
    store_commit(change, NULL, NULL);
}

struct left {
    int times;
    size_t count;
    int64_t oldest_ms;
};

static void on_left(void *context, const struct error *failure, const struct store_rows *rows)
{
    struct left *left = context;

    assert_null(failure);
    left->times++;
    left->count = rows->count;
    left->oldest_ms = rows->count ? rows->rows[0][STORE_AUDIT_TIME].integer : 0;
}

static struct left rows_left(struct world *world)
{
    struct left left = {.times = 0};
    const struct store_query query = {
        .kind = STORE_AUDIT, .order = STORE_AUDIT_TIME, .limit = STORE_ROWS_MAX};

    store_find(world->store, &query, on_left, &left);
    TURN_UNTIL(&world->loop, left.times);
    return left;
}

static void old_rows_go_in_slices_and_new_ones_stay(void **state)
{
    struct world *world = *state;
    struct retention old = old_entries();
    int64_t limit = WORLD_START_MS - KEPT_MS;
    int commits;

    add_rows(world, ROWS, limit - ROWS, 1); /* the last of them is just old */
    add_rows(world, 3, limit, 1);
    assert_int_equal(rows_left(world).count, STORE_ROWS_MAX);
    commits = world->commits;
    retention_tick(world->domain, &old);
    retention_tick(world->domain, &old); /* one at a time */
    TURN_UNTIL(&world->loop, !old.is_busy);
    assert_int_equal(world->commits - commits, 3);
    assert_int_equal(rows_left(world).count, 3);
    assert_int_equal(rows_left(world).oldest_ms, limit);
}

static void rows_of_one_moment_go_together(void **state)
{
    struct world *world = *state;
    struct retention old = old_entries();

    add_rows(world, ROWS, WORLD_START_MS - KEPT_MS - 5, 0);
    retention_tick(world->domain, &old);
    TURN_UNTIL(&world->loop, !old.is_busy);
    assert_int_equal(rows_left(world).count, 0);
}

static void a_condition_holds_rows_back(void **state)
{
    struct world *world = *state;
    struct retention old = old_entries();

    old.has_condition = true;
    old.condition = (struct store_condition){.column = STORE_AUDIT_TIME,
                                             .comparison = STORE_GREATER,
                                             .value = store_integer(WORLD_START_MS - KEPT_MS - 4)};
    add_rows(world, 10, WORLD_START_MS - KEPT_MS - 10, 1);
    retention_tick(world->domain, &old);
    TURN_UNTIL(&world->loop, !old.is_busy);
    assert_int_equal(rows_left(world).count, 7);
}

static void a_store_that_refuses_is_asked_again_later(void **state)
{
    struct world *world = *state;
    struct retention old = old_entries();

    old.every_ns = UINT64_C(10) * 1000 * 1000 * 1000;
    add_rows(world, 10, 0, 1);
    assert_int_equal(rows_left(world).count, 10);
    world->refuse_commit = 1;
    retention_tick(world->domain, &old);
    TURN_UNTIL(&world->loop, !old.is_busy);
    assert_int_equal(rows_left(world).count, 10);
    retention_tick(world->domain, &old);
    assert_false(old.is_busy);
    clock_manual_advance(&world->clock, 10 * 1000);
    retention_tick(world->domain, &old);
    TURN_UNTIL(&world->loop, !old.is_busy);
    assert_int_equal(rows_left(world).count, 0);
}

/* Nothing new is begun: the domain ends with the slice that is under way. */
static void closing_does_not_wait_for_all_of_them(void **state)
{
    struct world *world = *state;
    struct retention old = old_entries();

    add_rows(world, ROWS, 0, 1);
    retention_tick(world->domain, &old);
    world_close(world);
    assert_false(old.is_busy);
    assert_true(rows_left(world).count > 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        WORLD_TEST(old_rows_go_in_slices_and_new_ones_stay),
        WORLD_TEST(rows_of_one_moment_go_together),
        WORLD_TEST(a_condition_holds_rows_back),
        WORLD_TEST(a_store_that_refuses_is_asked_again_later),
        WORLD_TEST(closing_does_not_wait_for_all_of_them),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
