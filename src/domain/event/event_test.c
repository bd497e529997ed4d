#include "domain/domain_testing.h"

#define NOTES_MAX 2000

/* A follower and what it was told. */
struct watcher {
    struct event_follower *follower;
    int64_t cursors[NOTES_MAX];
    char types[NOTES_MAX][32];
    size_t count;
    size_t pause_at; /* says no when it has seen so many; 0: never */
    bool close_at_first;
    int ended;
    struct error reason;
    char last_data[512], last_stream[64], last_actor[64], last_request[64];
};

static bool on_event(void *context, const struct event *event)
{
    struct watcher *watcher = context;

    assert_true(watcher->count < NOTES_MAX);
    if (watcher->pause_at && watcher->count >= watcher->pause_at)
        return false;
    assert_true(watcher->count == 0 || event->cursor > watcher->cursors[watcher->count - 1]);
    watcher->cursors[watcher->count] = event->cursor;
    (void) snprintf(watcher->types[watcher->count], sizeof(watcher->types[0]), "%s", event->type);
    (void) snprintf(watcher->last_data, sizeof(watcher->last_data), "%s", event->data);
    (void) snprintf(watcher->last_stream, sizeof(watcher->last_stream), "%s", event->stream);
    (void) snprintf(watcher->last_actor, sizeof(watcher->last_actor), "%s", event->actor);
    (void) snprintf(watcher->last_request, sizeof(watcher->last_request), "%s", event->request);
    watcher->count++;
    if (watcher->close_at_first)
        event_follower_close(TAKE_PTR(watcher->follower));
    return true;
}

static void on_ended(void *context, const struct error *reason)
{
    struct watcher *watcher = context;

    watcher->ended++;
    watcher->reason = *reason;
    watcher->follower = NULL;
}

static struct watcher *watch(struct world *world, const struct caller *caller,
                             const struct event_filter *filter)
{
    struct watcher *watcher = mem_alloc(sizeof(*watcher));
    struct error err = ERROR_INIT;

    watcher->follower =
        event_follow(world->domain, caller, filter, on_event, on_ended, watcher, &err);
    if (!watcher->follower)
        fail_msg("%s", err.message);
    assert_int_equal(watcher->count, 0);
    return watcher;
}

static void unwatch(struct watcher *watcher)
{
    if (watcher->follower)
        event_follower_close(watcher->follower);
    free(watcher);
}

static const struct event_filter from_start = {.after = 0};
static const struct event_filter from_now = {.after = -1};

/* --- following -------------------------------------------------------------------------------- */

static void a_follower_gets_what_was_and_what_comes(void **state)
{
    struct world *world = *state;
    struct sandbox *sandbox = world_create(world, "demo");
    struct watcher *watcher;

    do_ask(world, sandbox_sleep, sandbox);
    watcher = watch(world, &world->caller, &from_start);
    TURN_UNTIL(&world->loop, watcher->count == 2);
    do_ask(world, sandbox_wake, sandbox);
    TURN_UNTIL(&world->loop, watcher->count == 3);
    assert_string_equal(watcher->types[0], "sandbox.created");
    assert_string_equal(watcher->types[1], "sandbox.hibernated");
    assert_string_equal(watcher->types[2], "sandbox.woken");
    unwatch(watcher);
}

static void a_follower_from_now_on_gets_only_what_comes(void **state)
{
    struct world *world = *state;
    struct sandbox *sandbox = world_create(world, "demo");
    struct watcher *watcher = watch(world, &world->caller, &from_now);

    do_ask(world, sandbox_stop, sandbox);
    TURN_UNTIL(&world->loop, watcher->count == 1);
    assert_string_equal(watcher->types[0], "sandbox.stopped");
    unwatch(watcher);
}

static void events_say_what_happened_to_whom_and_by_whom(void **state)
{
    struct world *world = *state;
    struct watcher *watcher = watch(world, &world->caller, &from_now);
    struct ending ending = {.kind = ENDED_OOM};
    struct sandbox *sandbox;

    world->caller.request = id_new();
    sandbox = world_create(world, "de\"mo");
    TURN_UNTIL(&world->loop, watcher->count == 1);
    assert_string_equal(watcher->last_stream, sandbox->id.text);
    assert_string_equal(watcher->last_actor, world->caller.owner.text);
    assert_string_equal(watcher->last_request, world->caller.request.text);
    assert_non_null(strstr(watcher->last_data, sandbox->id.text));
    assert_non_null(strstr(watcher->last_data, "\"name\":\"de\\\"mo\""));
    assert_non_null(strstr(watcher->last_data, "\"status\":\"running\""));
    do_ask(world, sandbox_sleep, sandbox);
    TURN_UNTIL(&world->loop, watcher->count == 2);
    assert_non_null(strstr(watcher->last_data, "\"memory\":true"));
    use_once(world, sandbox);
    TURN_UNTIL(&world->loop, watcher->count == 3);
    assert_string_equal(watcher->last_actor, "system");
    provider_fake_exit(world->provider, &sandbox->id, &ending);
    TURN_UNTIL(&world->loop, watcher->count == 4);
    assert_non_null(strstr(watcher->last_data, "\"reason\":\"ended: out of memory\""));
    do_ask(world, sandbox_destroy, sandbox);
    TURN_UNTIL(&world->loop, watcher->count == 5);
    assert_non_null(strstr(watcher->last_data, "\"status\":\"destroyed\""));
    unwatch(watcher);
}

static void others_events_are_not_seen(void **state)
{
    struct world *world = *state;
    struct caller other = {.scope = CALLER_WRITE, .owner = id_new()};
    struct caller admin = {.scope = CALLER_ADMIN, .owner = id_new()};
    struct watcher *strangers = watch(world, &other, &from_start),
                   *admins = watch(world, &admin, &from_start);
    struct sandbox *sandbox = world_create(world, "demo");
    struct caller narrow = {
        .scope = CALLER_SANDBOX, .owner = world->caller.owner, .sandbox = sandbox->id};
    struct watcher *narrows = watch(world, &narrow, &from_start);

    (void) world_create(world, "two");
    TURN_UNTIL(&world->loop, admins->count == 2 && narrows->count == 1);
    world_wait(world);
    assert_int_equal(strangers->count, 0);
    assert_int_equal(narrows->count, 1);
    assert_string_equal(narrows->last_stream, sandbox->id.text);
    unwatch(strangers);
    unwatch(admins);
    unwatch(narrows);
}

static void streams_and_types_are_filtered(void **state)
{
    struct world *world = *state;
    struct sandbox *one = world_create(world, "one"), *two = world_create(world, "two");
    struct event_filter of_one = {.stream = "one"}, stops = {.type = "sandbox.stopped"},
                        ports = {.type = "port."}, all = {.type = "sandbox."};
    struct watcher *by_stream = watch(world, &world->caller, &of_one),
                   *by_type = watch(world, &world->caller, &stops),
                   *by_other = watch(world, &world->caller, &ports),
                   *by_prefix = watch(world, &world->caller, &all);

    do_ask(world, sandbox_stop, one);
    do_ask(world, sandbox_sleep, two);
    TURN_UNTIL(&world->loop, by_stream->count == 2 && by_type->count == 1 && by_prefix->count == 4);
    world_wait(world);
    assert_int_equal(by_stream->count, 2);
    assert_int_equal(by_type->count, 1);
    assert_int_equal(by_other->count, 0);
    unwatch(by_stream);
    unwatch(by_type);
    unwatch(by_other);
    unwatch(by_prefix);
}

static void a_stream_that_is_not_seen_cannot_be_followed(void **state)
{
    struct world *world = *state;
    struct caller other = {.scope = CALLER_WRITE, .owner = id_new()};
    struct sandbox *sandbox = world_create(world, "demo");
    struct event_filter filter = {.stream = sandbox->id.text};
    struct watcher watcher = {.count = 0};
    struct error err = ERROR_INIT;

    assert_null(event_follow(world->domain, &other, &filter, on_event, on_ended, &watcher, &err));
    assert_int_equal(err.code, ERR_NOT_FOUND);
    filter.stream = "nosuch";
    assert_null(
        event_follow(world->domain, &world->caller, &filter, on_event, on_ended, &watcher, &err));
    assert_int_equal(err.code, ERR_NOT_FOUND);
}

static void a_slow_one_pauses_and_goes_on_without_a_gap(void **state)
{
    struct world *world = *state;
    struct watcher *watcher = watch(world, &world->caller, &from_start);
    struct sandbox *sandbox = world_create(world, "demo");

    watcher->pause_at = 2;
    for (int i = 0; i < 5; i++) {
        do_ask(world, sandbox_sleep, sandbox);
        do_ask(world, sandbox_wake, sandbox);
    }
    TURN_UNTIL(&world->loop, watcher->count == 2);
    world_wait(world);
    assert_int_equal(watcher->count, 2);
    watcher->pause_at = 4;
    event_follower_resume(watcher->follower);
    TURN_UNTIL(&world->loop, watcher->count == 4);
    watcher->pause_at = 0;
    event_follower_resume(watcher->follower);
    TURN_UNTIL(&world->loop, watcher->count == 11);
    for (size_t i = 1; i < watcher->count; i++)
        assert_int_equal(watcher->cursors[i], watcher->cursors[i - 1] + 1);
    do_ask(world, sandbox_stop, sandbox);
    TURN_UNTIL(&world->loop, watcher->count == 12);
    unwatch(watcher);
}

static void one_may_close_itself_while_it_is_told(void **state)
{
    struct world *world = *state;
    struct watcher *early = watch(world, &world->caller, &from_start),
                   *live = watch(world, &world->caller, &from_now),
                   *other = watch(world, &world->caller, &from_now);
    struct sandbox *sandbox;

    early->close_at_first = live->close_at_first = true;
    sandbox = world_create(world, "demo");
    do_ask(world, sandbox_stop, sandbox);
    TURN_UNTIL(&world->loop, other->count == 2);
    assert_int_equal(early->count, 1);
    assert_int_equal(live->count, 1);
    assert_int_equal(live->ended, 0);
    unwatch(early);
    unwatch(live);
    unwatch(other);
}

/* Random followers that come, pause, resume and go while events are made: each sees all of its
 * part of the log, in order, once. */
#define CHANGES_AT_ONCE 8

struct changes {
    int asked, answered;
};

static void change_answered(void *context, const struct error *failure, struct sandbox *sandbox)
{
    (void) failure;
    (void) sandbox;
    ((struct changes *) context)->answered++;
}

/* A few at once, however slow the store is: each may become an event. */
static void change_one(struct world *world, struct sandbox *sandbox, struct changes *changes)
{
    if (changes->asked - changes->answered >= CHANGES_AT_ONCE || changes->asked >= NOTES_MAX / 2)
        return;
    changes->asked++;
    if (sandbox->status == SANDBOX_RUNNING)
        sandbox_sleep(world->domain, &world->caller, sandbox, change_answered, changes);
    else
        sandbox_wake(world->domain, &world->caller, sandbox, change_answered, changes);
}

static void toggle_pause(struct watcher *watcher, uint64_t *seed)
{
    watcher->pause_at = watcher->pause_at ? 0 : watcher->count + testing_number(seed) % 5 + 1;
    event_follower_resume(watcher->follower);
}

static void nobody_misses_or_doubles_anything(void **state)
{
    struct world *world = *state;
    struct watcher *watchers[20] = {NULL};
    struct sandbox *sandboxes[4];
    struct watcher *whole;
    struct changes changes = {0};
    uint64_t seed = 5;

    whole = watch(world, &world->caller, &from_start);
    for (size_t i = 0; i < ARRAY_COUNT(sandboxes); i++)
        sandboxes[i] = world_create(world, NULL);
    /* The store answers in its own time: go on until there is something to compare. */
    for (int step = 0; step < 600 || (whole->count <= 50 && step < 1000000); step++) {
        struct watcher **watcher = &watchers[testing_number(&seed) % ARRAY_COUNT(watchers)];
        struct sandbox *sandbox = sandboxes[testing_number(&seed) % ARRAY_COUNT(sandboxes)];
        struct event_filter filter = {.after = whole->count && testing_number(&seed) % 2
                                                   ? whole->cursors[whole->count / 2]
                                                   : 0};

        switch (testing_number(&seed) % 4) {
        case 0:
            change_one(world, sandbox, &changes);
            break;
        case 1:
            if (!*watcher)
                *watcher = watch(world, &world->caller, &filter);
            break;
        case 2:
            if (*watcher)
                toggle_pause(*watcher, &seed);
            break;
        default:
            (void) uv_run(&world->loop.uv, UV_RUN_NOWAIT);
        }
    }
    for (size_t i = 0; i < ARRAY_COUNT(watchers); i++)
        if (watchers[i]) {
            watchers[i]->pause_at = 0;
            event_follower_resume(watchers[i]->follower);
        }
    TURN_UNTIL(&world->loop, changes.answered == changes.asked);
    world_pass(world, 3);
    assert_true(whole->count > 50);
    for (size_t i = 0; i < ARRAY_COUNT(watchers); i++) {
        struct watcher *watcher = watchers[i];

        if (!watcher)
            continue;
        /* Page by page, as fast as the store is. */
        TURN_UNTIL(&world->loop, watcher->count && watcher->cursors[watcher->count - 1] ==
                                                       whole->cursors[whole->count - 1]);
        for (size_t nth = 1; nth < watcher->count; nth++)
            assert_int_equal(watcher->cursors[nth], watcher->cursors[nth - 1] + 1);
        unwatch(watcher);
    }
    unwatch(whole);
}

static void closing_the_domain_ends_followers(void **state)
{
    struct world *world = *state;
    struct watcher *watcher = watch(world, &world->caller, &from_start),
                   *paused = watch(world, &world->caller, &from_start);

    paused->pause_at = 1;
    (void) world_create(world, "one");
    (void) world_create(world, "two");
    TURN_UNTIL(&world->loop, watcher->count == 2);
    world_close(world);
    assert_int_equal(watcher->ended, 1);
    assert_int_equal(watcher->reason.code, ERR_UNAVAILABLE);
    assert_int_equal(paused->ended, 1);
    unwatch(watcher);
    unwatch(paused);
}

static void on_noted(void *context, const struct error *failure,
                     const struct store_receipt *receipt)
{
    assert_null(failure);
    event_kept(context, receipt);
}

/* Events, without a turn of the loop. */
static void note_events(struct world *world, int count)
{
    struct store_transaction *change = store_begin(world->store);

    for (int i = 0; i < count; i++)
        event_add(world->domain, change, &world->caller, &world->caller.owner, "system",
                  "test.noted", "{}");
    domain_commit(world->domain, change, on_noted, world->domain);
}

static size_t told_to(struct watcher *const *crowd, size_t count)
{
    size_t told = 0;

    for (size_t i = 0; i < count; i++)
        told += crowd[i]->count;
    return told;
}

static void news_for_many_is_told_over_several_turns(void **state)
{
    enum { CROWD = 300, EVENTS = 3 };
    struct world *world = *state;
    struct watcher *crowd[CROWD];
    size_t told = 0, most = 0;

    for (size_t i = 0; i < CROWD; i++)
        crowd[i] = watch(world, &world->caller, &from_now);
    crowd[3]->close_at_first = true;
    world_wait(world);
    note_events(world, EVENTS);
    for (int turns = 0; turns < 2000 && told < EVENTS * (CROWD - 3) + 1; turns++) {
        size_t before = told;

        testing_turn(&world->loop);
        told = told_to(crowd, CROWD);
        most = told - before > most ? told - before : most;
        if (before == 0 && told > 0) {
            /* Who is next, and somebody later, leave while others are told. */
            event_follower_close(TAKE_PTR(crowd[told]->follower));
            event_follower_close(TAKE_PTR(crowd[CROWD - 1]->follower));
        }
    }
    for (size_t i = 0; i < CROWD; i++)
        unwatch(crowd[i]);
    assert_int_equal(told, EVENTS * (CROWD - 3) + 1);
    assert_in_range(most, 1, 128); /* testing_turn goes round twice */
}

/* --- pages ------------------------------------------------------------------------------------ */

struct page_told {
    int times;
    bool failed;
    struct error failure;
    size_t count;
    int64_t first, next;
    char types[1024];
};

static void on_page(void *context, const struct error *failure, const struct event *events,
                    size_t count, int64_t next)
{
    struct page_told *told = context;
    AUTO(text) struct text types = TEXT_INIT(1000);

    told->times++;
    told->failed = failure != NULL;
    if (failure)
        told->failure = *failure;
    told->count = count;
    told->first = count ? events[0].cursor : 0;
    told->next = next;
    for (size_t i = 0; i < count; i++)
        text_format(&types, "%s%s", i ? " " : "", events[i].type);
    (void) snprintf(told->types, sizeof(told->types), "%s", text_string(&types));
}

static struct page_told ask_page(struct world *world, const struct caller *caller,
                                 const struct event_filter *filter, size_t limit)
{
    struct page_told told = {.times = 0};

    event_page(world->domain, caller, filter, limit, on_page, &told);
    assert_int_equal(told.times, 0);
    TURN_UNTIL(&world->loop, told.times);
    return told;
}

static void pages_go_through_the_log(void **state)
{
    struct world *world = *state;
    struct sandbox *sandbox = world_create(world, "demo");
    struct event_filter filter = {.after = 0};
    struct caller other = {.scope = CALLER_READ, .owner = id_new()};
    struct page_told told;

    do_ask(world, sandbox_sleep, sandbox);
    do_ask(world, sandbox_wake, sandbox);
    told = ask_page(world, &world->caller, &filter, 2);
    assert_string_equal(told.types, "sandbox.created sandbox.hibernated");
    filter.after = told.next;
    told = ask_page(world, &world->caller, &filter, 2);
    assert_string_equal(told.types, "sandbox.woken");
    filter.after = told.next;
    told = ask_page(world, &world->caller, &filter, 2);
    assert_int_equal(told.count, 0);
    assert_int_equal(told.next, filter.after);
    filter = (struct event_filter){.type = "sandbox.woken"};
    told = ask_page(world, &world->caller, &filter, 10);
    assert_int_equal(told.count, 1);
    filter = (struct event_filter){.stream = sandbox->id.text};
    told = ask_page(world, &other, &filter, 10);
    assert_false(told.failed);
    assert_int_equal(told.count, 0);
    told = ask_page(world, &world->caller, &filter, 0);
    assert_int_equal(told.failure.code, ERR_INVALID);
}

static void a_page_that_is_not_seen_does_not_even_move_the_cursor(void **state)
{
    struct world *world = *state;
    struct sandbox *one = world_create(world, "one"), *two = world_create(world, "two");
    struct caller narrow = {
        .scope = CALLER_SANDBOX, .owner = world->caller.owner, .sandbox = one->id};
    struct event_filter filter = {.stream = two->id.text};
    struct page_told told = ask_page(world, &narrow, &filter, 10);

    assert_int_equal(told.count, 0);
    assert_int_equal(told.next, 0);
    filter.stream = one->id.text;
    told = ask_page(world, &narrow, &filter, 10);
    assert_int_equal(told.count, 1);
    assert_int_equal(told.next, told.first);
}

static void the_log_of_one_that_is_gone_can_be_read(void **state)
{
    struct world *world = *state;
    struct sandbox *sandbox = world_create(world, "demo");
    struct id id = sandbox->id;
    struct event_filter filter = {.stream = id.text};
    struct page_told told;

    do_ask(world, sandbox_destroy, sandbox);
    told = ask_page(world, &world->caller, &filter, 10);
    assert_string_equal(told.types, "sandbox.created sandbox.deleted");
}

/* --- retention -------------------------------------------------------------------------------- */

static void old_events_go_and_their_cursors_are_gone(void **state)
{
    struct world *world = world_new(NULL);
    struct sandbox_spec spec = SANDBOX_SPEC_INIT;
    struct event_filter filter = {.after = 0};
    struct page_told told;
    struct watcher *watcher;
    struct sandbox *sandbox;

    (void) state;
    world->options.event_retention_ms = 3600000;
    world_open(world);
    spec.keep_alive = true;
    sandbox = ask_create(world, &world->caller, &spec).sandbox;
    do_ask(world, sandbox_stop, sandbox);
    clock_manual_advance(&world->clock, 3000000);
    do_ask(world, sandbox_start, sandbox);
    clock_manual_advance(&world->clock, 700000);
    world_pass(world, 1);
    told = ask_page(world, &world->caller, &filter, 10);
    assert_string_equal(told.types, "sandbox.started");
    filter.after = told.first - 2; /* behind this one there is one missing */
    told = ask_page(world, &world->caller, &filter, 10);
    assert_int_equal(told.failure.code, ERR_GONE);
    watcher = watch(world, &world->caller, &filter);
    TURN_UNTIL(&world->loop, watcher->ended);
    assert_int_equal(watcher->reason.code, ERR_GONE);
    unwatch(watcher);
    filter.after += 1;
    told = ask_page(world, &world->caller, &filter, 10);
    assert_false(told.failed);
    assert_int_equal(told.count, 1);
    world_free(world);
}

static bool is_room;

static bool retention_room(void *context)
{
    (void) context;
    return is_room;
}

/* Somebody who makes events without end fills no disk: they go earlier, the youngest hour stays. */
static void on_a_full_disk_old_events_go_earlier(void **state)
{
    struct world *world = world_new(NULL);
    struct sandbox_spec spec = SANDBOX_SPEC_INIT;
    struct event_filter filter = {.after = 0};
    struct sandbox *sandbox;

    (void) state;
    is_room = true;
    world->options.event_retention_ms = UINT64_C(30) * 24 * 3600 * 1000;
    world->options.disk_has_room = retention_room;
    world_open(world);
    spec.keep_alive = true;
    sandbox = ask_create(world, &world->caller, &spec).sandbox;
    clock_manual_advance(&world->clock, UINT64_C(20) * 24 * 3600 * 1000);
    do_ask(world, sandbox_stop, sandbox);
    world_pass(world, 70);
    assert_int_equal(ask_page(world, &world->caller, &filter, 10).count, 2);

    is_room = false;
    for (int i = 0; i < 60 && ask_page(world, &world->caller, &filter, 10).count == 2; i++)
        world_pass(world, 11);
    assert_string_equal(ask_page(world, &world->caller, &filter, 10).types, "sandbox.stopped");
    for (int i = 0; i < 40; i++) /* however long it lasts */
        world_pass(world, 11);
    assert_int_equal(ask_page(world, &world->caller, &filter, 10).count, 1);
    is_room = true;
    world_pass(world, 11);
    world_free(world);
}

static void without_retention_everything_stays(void **state)
{
    struct world *world = *state;
    struct event_filter filter = {.after = 0};

    (void) world_create(world, "demo");
    clock_manual_advance(&world->clock, UINT64_C(86400000) * 3650);
    world_pass(world, 2);
    assert_true(ask_page(world, &world->caller, &filter, 10).count >= 1);
}

static void cursors_go_on_after_a_restart(void **state)
{
    struct world *world = *state;
    struct event_filter filter = {.after = 0};
    struct page_told told;
    struct watcher *watcher;

    (void) world_create(world, "one");
    told = ask_page(world, &world->caller, &filter, 10);
    world_close(world);
    world_open(world);
    filter.after = told.next;
    watcher = watch(world, &world->caller, &filter);
    (void) world_create(world, "two");
    TURN_UNTIL(&world->loop, watcher->count == 2); /* the lost one, and the new one */
    assert_true(watcher->cursors[0] > told.next);
    unwatch(watcher);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        WORLD_TEST(a_follower_gets_what_was_and_what_comes),
        WORLD_TEST(a_follower_from_now_on_gets_only_what_comes),
        WORLD_TEST(events_say_what_happened_to_whom_and_by_whom),
        WORLD_TEST(others_events_are_not_seen),
        WORLD_TEST(streams_and_types_are_filtered),
        WORLD_TEST(a_stream_that_is_not_seen_cannot_be_followed),
        WORLD_TEST(a_slow_one_pauses_and_goes_on_without_a_gap),
        WORLD_TEST(one_may_close_itself_while_it_is_told),
        WORLD_TEST(nobody_misses_or_doubles_anything),
        WORLD_TEST(closing_the_domain_ends_followers),
        WORLD_TEST(news_for_many_is_told_over_several_turns),
        WORLD_TEST(pages_go_through_the_log),
        WORLD_TEST(a_page_that_is_not_seen_does_not_even_move_the_cursor),
        WORLD_TEST(the_log_of_one_that_is_gone_can_be_read),
        cmocka_unit_test(old_events_go_and_their_cursors_are_gone),
        cmocka_unit_test(on_a_full_disk_old_events_go_earlier),
        WORLD_TEST(without_retention_everything_stays),
        WORLD_TEST(cursors_go_on_after_a_restart),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
