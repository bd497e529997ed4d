#include "domain/domain_testing.h"

#define PAGE_MAX 64

struct page {
    size_t count;
    struct sandbox *items[PAGE_MAX];
    const char *next;
    struct pool pool;
};

static void on_item(void *context, struct sandbox *sandbox)
{
    struct page *page = context;

    assert_true(page->count < PAGE_MAX);
    page->items[page->count++] = sandbox;
}

static void ask_list(struct world *world, const struct caller *caller,
                     const struct sandbox_filter *filter, struct page *page)
{
    struct error err = ERROR_INIT;

    page->count = 0;
    page->next = NULL;
    if (sandbox_list(world->domain, caller, filter, &page->pool, on_item, page, &page->next, &err) <
        0)
        fail_msg("%s", err.message);
}

static struct sandbox_filter all(size_t limit)
{
    return (struct sandbox_filter){.status = SANDBOX_STATUS_COUNT, .limit = limit};
}

static struct sandbox *create_at(struct world *world, int64_t wall_ms)
{
    world->clock.wall_ms = wall_ms;
    return world_create(world, NULL);
}

static void the_newest_come_first_page_by_page(void **state)
{
    struct world *world = *state;
    struct sandbox *made[7];
    struct sandbox_filter filter = all(3);
    struct page page = {.pool = POOL_INIT};
    size_t seen = 0;

    for (size_t i = 0; i < ARRAY_COUNT(made); i++)
        made[i] = create_at(world, WORLD_START_MS + (int64_t) i);
    do {
        ask_list(world, &world->caller, &filter, &page);
        for (size_t i = 0; i < page.count; i++)
            assert_ptr_equal(page.items[i], made[ARRAY_COUNT(made) - 1 - seen++]);
        assert_int_equal(page.count == 3, page.next != NULL);
        filter.after = page.next;
    } while (page.next);
    assert_int_equal(seen, ARRAY_COUNT(made));
    pool_done(&page.pool);
}

static void a_last_page_that_is_full_has_no_next(void **state)
{
    struct world *world = *state;
    struct sandbox_filter filter = all(2);
    struct page page = {.pool = POOL_INIT};

    (void) world_create(world, "one");
    (void) world_create(world, "two");
    ask_list(world, &world->caller, &filter, &page);
    assert_int_equal(page.count, 2);
    assert_null(page.next);
    pool_done(&page.pool);
}

static void cursors_stay_good_while_sandboxes_come_and_go(void **state)
{
    struct world *world = *state;
    struct sandbox *made[9];
    struct sandbox_filter filter = all(3);
    struct page page = {.pool = POOL_INIT};

    for (size_t i = 0; i < ARRAY_COUNT(made); i++)
        made[i] = create_at(world, WORLD_START_MS + (int64_t) (i / 2)); /* some at once */
    ask_list(world, &world->caller, &filter, &page);
    filter.after = page.next;
    /* The one of the cursor goes, and one on the next page; newer ones come. */
    do_ask(world, sandbox_destroy, page.items[2]);
    (void) create_at(world, WORLD_START_MS + 100);
    ask_list(world, &world->caller, &filter, &page);
    assert_int_equal(page.count, 3);
    filter.after = page.next;
    for (size_t i = 0; i < 3; i++)
        assert_true(page.items[i]->created_ms <= WORLD_START_MS + 3);
    do_ask(world, sandbox_destroy, made[0]);
    ask_list(world, &world->caller, &filter, &page);
    assert_int_equal(page.count, 2);
    assert_null(page.next);
    pool_done(&page.pool);
}

static void every_sandbox_is_on_exactly_one_page(void **state)
{
    struct world *world = *state;
    struct sandbox_filter filter = all(4);
    struct page page = {.pool = POOL_INIT};
    struct sandbox *seen[40];
    size_t count = 0;

    for (size_t i = 0; i < ARRAY_COUNT(seen); i++)
        (void) create_at(world, WORLD_START_MS + (int64_t) (i * 7 % 5)); /* the clock jumps */
    do {
        ask_list(world, &world->caller, &filter, &page);
        for (size_t i = 0; i < page.count; i++) {
            for (size_t other = 0; other < count; other++)
                assert_ptr_not_equal(seen[other], page.items[i]);
            assert_true(count == 0 || seen[count - 1]->created_ms >= page.items[i]->created_ms);
            seen[count++] = page.items[i];
        }
        filter.after = page.next;
    } while (page.next);
    assert_int_equal(count, ARRAY_COUNT(seen));
    pool_done(&page.pool);
}

static void the_order_is_the_same_after_a_restart(void **state)
{
    struct world *world = *state;
    struct sandbox_filter filter = all(3);
    struct page page = {.pool = POOL_INIT};
    struct id ids[6];

    for (size_t i = 0; i < ARRAY_COUNT(ids); i++)
        ids[i] = create_at(world, WORLD_START_MS + (int64_t) i)->id;
    ask_list(world, &world->caller, &filter, &page);
    filter.after = page.next;
    world_close(world);
    world_open(world);
    ask_list(world, &world->caller, &filter, &page);
    assert_int_equal(page.count, 3);
    for (size_t i = 0; i < 3; i++)
        assert_string_equal(page.items[i]->id.text, ids[2 - i].text);
    pool_done(&page.pool);
}

static void only_what_is_seen_is_listed(void **state)
{
    struct world *world = *state;
    struct caller other = {.scope = CALLER_READ, .owner = id_new()};
    struct caller admin = {.scope = CALLER_ADMIN, .owner = id_new()};
    struct caller narrow = {.scope = CALLER_SANDBOX, .owner = world->caller.owner};
    struct sandbox_filter filter = all(10);
    struct page page = {.pool = POOL_INIT};

    narrow.sandbox = world_create(world, "one")->id;
    (void) world_create(world, "two");
    ask_list(world, &other, &filter, &page);
    assert_int_equal(page.count, 0);
    ask_list(world, &narrow, &filter, &page);
    assert_int_equal(page.count, 1);
    ask_list(world, &admin, &filter, &page);
    assert_int_equal(page.count, 2);
    filter.owner = &other.owner;
    ask_list(world, &admin, &filter, &page);
    assert_int_equal(page.count, 0);
    filter.owner = &world->caller.owner;
    ask_list(world, &admin, &filter, &page);
    assert_int_equal(page.count, 2);
    ask_list(world, &other, &filter, &page); /* asking for others' shows nothing */
    assert_int_equal(page.count, 0);
    pool_done(&page.pool);
}

static void status_labels_and_names_filter(void **state)
{
    struct world *world = *state;
    struct sandbox_spec spec = SANDBOX_SPEC_INIT;
    struct sandbox_pair pair = {(char *) "team", (char *) "blue"};
    struct sandbox_filter filter;
    struct page page = {.pool = POOL_INIT};
    struct told told;

    spec.name = (char *) "web-1";
    spec.labels = (struct sandbox_pairs){.items = &pair, .count = 1};
    told = ask_create(world, &world->caller, &spec);
    expect_ok(&told);
    do_ask(world, sandbox_sleep, told.sandbox);
    do_ask(world, sandbox_stop, world_create(world, "web-2"));
    (void) world_create(world, "db");
    filter = all(10);
    filter.status = SANDBOX_STOPPED;
    ask_list(world, &world->caller, &filter, &page);
    assert_int_equal(page.count, 1);
    filter.is_asleep = true;
    ask_list(world, &world->caller, &filter, &page);
    assert_int_equal(page.count, 1);
    assert_ptr_equal(page.items[0], told.sandbox);
    filter = all(10);
    filter.name_prefix = "web-";
    ask_list(world, &world->caller, &filter, &page);
    assert_int_equal(page.count, 2);
    filter = all(10);
    filter.label = "team";
    ask_list(world, &world->caller, &filter, &page);
    assert_int_equal(page.count, 1);
    filter.value = "red";
    ask_list(world, &world->caller, &filter, &page);
    assert_int_equal(page.count, 0);
    pool_done(&page.pool);
}

static void wrong_cursors_and_limits_are_refused(void **state)
{
    static const char *const wrong[] = {"",
                                        "x",
                                        ".",
                                        "1.",
                                        "1.short",
                                        "-1.aaaaaaaaaaaaaaaaaaaaaaaaaa",
                                        "1x.aaaaaaaaaaaaaaaaaaaaaaaaaa",
                                        "99999999999999999999.aaaaaaaaaaaaaaaaaaaaaaaaaa"};
    struct world *world = *state;
    struct page page = {.pool = POOL_INIT};

    for (size_t i = 0; i < ARRAY_COUNT(wrong) + 2; i++) {
        struct sandbox_filter filter = all(10);
        struct error err = ERROR_INIT;

        if (i < ARRAY_COUNT(wrong))
            filter.after = wrong[i];
        else
            filter.limit = i == ARRAY_COUNT(wrong) ? 0 : SANDBOX_LIST_MAX + 1;
        assert_int_equal(sandbox_list(world->domain, &world->caller, &filter, &page.pool, on_item,
                                      &page, &page.next, &err),
                         -1);
        assert_int_equal(err.code, ERR_INVALID);
    }
    pool_done(&page.pool);
}

static void statuses_are_counted_by_owner(void **state)
{
    struct world *world = *state;
    struct caller other = {.scope = CALLER_WRITE, .owner = id_new()};
    struct sandbox_spec spec = SANDBOX_SPEC_INIT;
    size_t counts[SANDBOX_STATUS_COUNT];
    struct told told = ask_create(world, &other, &spec);

    expect_ok(&told);
    do_ask(world, sandbox_sleep, world_create(world, "one"));
    (void) world_create(world, "two");
    sandbox_count(world->domain, NULL, counts);
    assert_int_equal(counts[SANDBOX_RUNNING], 2);
    assert_int_equal(counts[SANDBOX_FROZEN], 1);
    sandbox_count(world->domain, &world->caller.owner, counts);
    assert_int_equal(counts[SANDBOX_RUNNING], 1);
    assert_int_equal(counts[SANDBOX_FROZEN], 1);
    sandbox_count(world->domain, &(struct id){.text = "nobody"}, counts);
    assert_int_equal(counts[SANDBOX_RUNNING], 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        WORLD_TEST(the_newest_come_first_page_by_page),
        WORLD_TEST(a_last_page_that_is_full_has_no_next),
        WORLD_TEST(cursors_stay_good_while_sandboxes_come_and_go),
        WORLD_TEST(every_sandbox_is_on_exactly_one_page),
        WORLD_TEST(the_order_is_the_same_after_a_restart),
        WORLD_TEST(only_what_is_seen_is_listed),
        WORLD_TEST(status_labels_and_names_filter),
        WORLD_TEST(wrong_cursors_and_limits_are_refused),
        WORLD_TEST(statuses_are_counted_by_owner),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
