#include <unistd.h>

#include "domain/bucket/bucket_mount_internal.h"
#include "domain/domain_testing.h"
#include "domain/domain_testing_look.h"
#include "domain/snapshot/snapshot_testing.h"

/* --- a mounter that only remembers ------------------------------------------------------------ */

struct mounter_session {
    struct list link;
    int fuse;
};

struct memory {
    struct world *world;
    struct mounter mounter;
    enum err_code fail_check, fail_serve, fail_end;
    int served, ended;    /* so far */
    struct list sessions; /* that nobody ended: the mounter's, as in real life */
    char last[256];
};

struct later {
    struct loop_task task;
    mounter_done *done;
    void *context;
    enum err_code failure;
};

static void tell(struct loop_task *task)
{
    AUTO(free) struct later *later = CONTAINER_OF(task, struct later, task);
    struct error err = ERROR_INIT;

    (void) error_set(&err, later->failure, 0, "the store is not well");
    if (later->done)
        later->done(later->context, later->failure ? &err : NULL);
}

static void answer(struct memory *memory, enum err_code failure, mounter_done *done, void *context)
{
    struct later *later = mem_alloc(sizeof(*later));

    *later = (struct later){.done = done, .context = context, .failure = failure};
    loop_task_init(&later->task, tell);
    loop_defer(&memory->world->loop, &later->task);
}

static void fake_check(void *self, const struct mounter_bucket *bucket, mounter_done *done,
                       void *context)
{
    struct memory *memory = self;

    (void) bucket;
    answer(memory, memory->fail_check, done, context);
}

static struct mounter_session *fake_serve(void *self, const struct mounter_bucket *bucket, int fuse,
                                          struct error *err)
{
    struct memory *memory = self;
    struct mounter_session *session;

    if (memory->fail_serve) {
        (void) close(fuse);
        (void) error_set(err, memory->fail_serve, 0, "it cannot be served");
        return NULL;
    }
    memory->served++;
    (void) snprintf(memory->last, sizeof(memory->last), "%s %s %s %s",
                    bucket->is_foreign ? "foreign" : "ours", bucket->bucket, bucket->prefix,
                    bucket->secret_key ? bucket->secret_key : "-");
    session = mem_alloc(sizeof(*session));
    session->fuse = fuse;
    list_append(&memory->sessions, &session->link);
    return session;
}

static void free_session(struct mounter_session *session)
{
    list_remove(&session->link);
    (void) close(session->fuse);
    free(session);
}

static void fake_end(void *self, struct mounter_session *session, mounter_done *done, void *context)
{
    struct memory *memory = self;

    memory->ended++;
    free_session(session);
    answer(memory, memory->fail_end, done, context);
}

/* --- the world -------------------------------------------------------------------------------- */

static int setup(void **state)
{
    struct memory *memory = mem_alloc(sizeof(*memory));

    *memory = (struct memory){.world = world_new(NULL)};
    memory->mounter =
        (struct mounter){.self = memory, .check = fake_check, .serve = fake_serve, .end = fake_end};
    memory->world->options.mounter = &memory->mounter;
    list_init(&memory->sessions);
    world_open(memory->world);
    *state = memory;
    return 0;
}

static int teardown(void **state)
{
    struct memory *memory = *state;

    world_free(memory->world);
    LIST_EACH (&memory->sessions, at)
        free_session(CONTAINER_OF(at, struct mounter_session, link));
    free(memory);
    return 0;
}

struct heard {
    int times;
    bool failed;
    struct error failure;
};

static void on_mount(void *context, const struct error *failure, const struct bucket_mount *mount)
{
    struct heard *heard = context;

    heard->times++;
    heard->failed = failure != NULL;
    if (failure)
        heard->failure = *failure;
    assert_true(!failure || !mount);
}

static struct heard add(struct memory *memory, struct sandbox *sandbox, const char *place,
                        const char *bucket)
{
    const struct bucket_mount_spec spec = {.place = place,
                                           .bucket = {.bucket = bucket, .prefix = "/a/b"}};
    struct heard heard = {.times = 0};

    bucket_mount_add(memory->world->domain, &memory->world->caller, sandbox, &spec, on_mount,
                     &heard);
    assert_int_equal(heard.times, 0);
    TURN_UNTIL(&memory->world->loop, heard.times);
    return heard;
}

static struct heard take_away(struct memory *memory, struct sandbox *sandbox, const char *place)
{
    struct heard heard = {.times = 0};

    bucket_mount_remove(memory->world->domain, &memory->world->caller, sandbox, place, on_mount,
                        &heard);
    assert_int_equal(heard.times, 0);
    TURN_UNTIL(&memory->world->loop, heard.times);
    return heard;
}

static void expect(const struct heard *heard, enum err_code code)
{
    enum err_code found = heard->failed ? heard->failure.code : ERR_NONE;

    if (found != code)
        fail_msg("%s: %s", error_code_text(found), heard->failed ? heard->failure.message : "good");
}

static void describe(void *context, const struct bucket_mount *mount)
{
    text_format(context, "%s %s%s;", mount->place, bucket_mount_state_text(mount->state),
                mount->state == BUCKET_MOUNT_FAILED ? "!" : "");
}

static void expect_mounts(struct memory *memory, struct sandbox *sandbox, const char *expected)
{
    AUTO(text) struct text seen = TEXT_INIT(4096);

    bucket_mount_each(memory->world->domain, &sandbox->id, describe, &seen);
    assert_string_equal(text_string(&seen), expected);
}

/* --- tests ------------------------------------------------------------------------------------ */

static void a_bucket_is_mounted_and_taken_away(void **state)
{
    struct memory *memory = *state;
    struct sandbox *sandbox = world_create(memory->world, "demo");
    struct heard heard = add(memory, sandbox, "/persist", "data");

    expect(&heard, ERR_NONE);
    assert_string_equal(memory->last, "ours data a/b/ -");
    expect_mounts(memory, sandbox, "/persist there;");
    heard = add(memory, sandbox, "/persist", "data");
    expect(&heard, ERR_NONE);
    assert_int_equal(memory->served, 1);
    heard = add(memory, sandbox, "/persist", "other");
    expect(&heard, ERR_CONFLICT);
    heard = add(memory, sandbox, "/persist/inside", "other");
    expect(&heard, ERR_CONFLICT);
    heard = take_away(memory, sandbox, "/nothing");
    expect(&heard, ERR_NOT_FOUND);
    heard = take_away(memory, sandbox, "/persist");
    expect(&heard, ERR_NONE);
    assert_int_equal(memory->ended, 1);
    expect_mounts(memory, sandbox, "");
}

static void places_and_names_have_rules(void **state)
{
    static const char *const places[] = {"x", "/", "/a/../b", "/a//b", "/a/", "/proc/x", "/usr/x"};
    struct memory *memory = *state;
    struct sandbox *sandbox = world_create(memory->world, "demo");
    struct heard heard;

    for (size_t i = 0; i < ARRAY_COUNT(places); i++) {
        heard = add(memory, sandbox, places[i], "data");
        expect(&heard, ERR_INVALID);
    }
    heard = add(memory, sandbox, "/x", "../data");
    expect(&heard, ERR_INVALID);
    heard = add(memory, sandbox, "/x", "");
    expect(&heard, ERR_INVALID);
}

static void a_failure_leaves_nothing(void **state)
{
    struct memory *memory = *state;
    struct world *world = memory->world;
    struct sandbox *sandbox = world_create(world, "demo");
    struct heard heard;

    memory->fail_check = ERR_FORBIDDEN;
    heard = add(memory, sandbox, "/x", "data");
    expect(&heard, ERR_FORBIDDEN);
    memory->fail_check = ERR_NONE;
    memory->fail_serve = ERR_INTERNAL;
    heard = add(memory, sandbox, "/x", "data");
    expect(&heard, ERR_INTERNAL);
    memory->fail_serve = ERR_NONE;
    provider_fake_fail_next(world->provider, PROVIDER_CALL_OPEN_MOUNT, ERR_UNAVAILABLE);
    heard = add(memory, sandbox, "/x", "data");
    expect(&heard, ERR_UNAVAILABLE);
    provider_fake_fail_next(world->provider, PROVIDER_CALL_ATTACH_MOUNT, ERR_CONFLICT);
    heard = add(memory, sandbox, "/x", "data");
    expect(&heard, ERR_CONFLICT);
    world->refuse_commit = 1;
    heard = add(memory, sandbox, "/x", "data");
    assert_true(heard.failed);
    world_wait(world);
    expect_mounts(memory, sandbox, "");
    assert_int_equal(memory->served, memory->ended);
    heard = add(memory, sandbox, "/x", "data");
    expect(&heard, ERR_NONE);
}

static void it_is_there_again_after_a_stop(void **state)
{
    struct memory *memory = *state;
    struct world *world = memory->world;
    struct sandbox *sandbox = world_create(world, "demo");
    struct heard heard = add(memory, sandbox, "/x", "data");

    expect(&heard, ERR_NONE);
    do_ask(world, sandbox_stop, sandbox);
    assert_int_equal(memory->ended, 1);
    expect_mounts(memory, sandbox, "/x away;");
    do_ask(world, sandbox_start, sandbox);
    assert_int_equal(memory->served, 2);
    expect_mounts(memory, sandbox, "/x there;");
    memory->fail_serve = ERR_FORBIDDEN;
    do_ask(world, sandbox_stop, sandbox);
    do_ask(world, sandbox_start, sandbox);
    assert_int_equal(sandbox->status, SANDBOX_RUNNING);
    expect_mounts(memory, sandbox, "/x failed!;");
    memory->fail_serve = ERR_NONE;
    do_ask(world, sandbox_sleep, sandbox);
    do_ask(world, sandbox_wake, sandbox);
    expect_mounts(memory, sandbox, "/x there;");
}

static void it_is_there_again_after_a_rollback(void **state)
{
    struct memory *memory = *state;
    struct world *world = memory->world;
    struct sandbox *sandbox = world_create(world, "demo");
    struct snapshot *snapshot = world_snapshot(world, sandbox, NULL);
    struct heard heard = add(memory, sandbox, "/x", "data");
    struct told_snapshot told;

    expect(&heard, ERR_NONE);
    told = ask_roll_back(world, sandbox, snapshot);
    expect_ok(&told.told);
    assert_int_equal(memory->ended, 1); /* what waited was written back */
    assert_int_equal(memory->served, 2);
    expect_mounts(memory, sandbox, "/x there;");
    do_ask(world, sandbox_stop, sandbox);
    told = ask_roll_back(world, sandbox, snapshot);
    expect_ok(&told.told);
    expect_mounts(memory, sandbox, "/x away;");
}

static void it_is_there_again_when_a_stop_fails(void **state)
{
    struct memory *memory = *state;
    struct world *world = memory->world;
    struct sandbox *sandbox = world_create(world, "demo");
    struct snapshot *snapshot = world_snapshot(world, sandbox, NULL);
    struct heard heard = add(memory, sandbox, "/x", "data");
    struct told_snapshot told;

    expect(&heard, ERR_NONE);
    provider_fake_fail_next(world->provider, PROVIDER_CALL_STOP, ERR_INTERNAL);
    told = ask_roll_back(world, sandbox, snapshot);
    expect_code(&told.told, ERR_INTERNAL);
    world_wait(world);
    assert_int_equal(sandbox->status, SANDBOX_RUNNING);
    expect_mounts(memory, sandbox, "/x there;");
    assert_int_equal(memory->served, 2);
}

static void a_restarted_daemon_brings_it_back(void **state)
{
    struct memory *memory = *state;
    struct world *world = memory->world;
    struct sandbox *sandbox = world_create(world, "demo");
    const struct bucket_mount_spec spec = {.place = "/x",
                                           .bucket = {.is_foreign = true,
                                                      .bucket = "theirs",
                                                      .endpoint = "https://s3.test",
                                                      .access_key = "key",
                                                      .secret_key = "secret"}};
    struct heard heard = {.times = 0};
    struct id id = sandbox->id;

    bucket_mount_add(world->domain, &world->caller, sandbox, &spec, on_mount, &heard);
    TURN_UNTIL(&world->loop, heard.times);
    expect(&heard, ERR_NONE);
    world_close(world);
    memory->served = 0;
    memory->last[0] = '\0';
    world_make_provider(world);
    provider_fake_add(world->provider, &id, RUN_STATE_RUNNING, NULL);
    world_open(world);
    world_pass(world, 1);
    TURN_UNTIL(&world->loop, memory->served);
    assert_string_equal(memory->last, "foreign theirs  secret");
}

static void it_goes_with_its_sandbox(void **state)
{
    struct memory *memory = *state;
    struct world *world = memory->world;
    struct sandbox *sandbox = world_create(world, "demo");
    struct heard heard = add(memory, sandbox, "/x", "data");

    expect(&heard, ERR_NONE);
    do_ask(world, sandbox_destroy, sandbox);
    TURN_UNTIL(&world->loop, memory->ended);
    sandbox = world_create(world, "demo");
    expect_mounts(memory, sandbox, "");
    world_close(world);
    world_open(world);
}

/* Each round lets the mount come a turn further before its sandbox goes. */
static void a_sandbox_that_is_destroyed_meanwhile_takes_it_along(void **state)
{
    struct memory *memory = *state;
    struct world *world = memory->world;
    const struct bucket_mount_spec spec = {.place = "/x", .bucket = {.bucket = "data"}};
    bool is_done = false;

    for (int turns = 0; !is_done; turns++) {
        struct sandbox *sandbox = world_create(world, "demo");
        struct heard heard = {.times = 0};

        bucket_mount_add(world->domain, &world->caller, sandbox, &spec, on_mount, &heard);
        for (int i = 0; i < turns && !heard.times; i++)
            (void) uv_run(&world->loop.uv, UV_RUN_NOWAIT);
        is_done = heard.times != 0;
        do_ask(world, sandbox_destroy, sandbox);
        TURN_UNTIL(&world->loop, heard.times);
        world_wait(world);
        assert_int_equal(heard.times, 1);
        assert_int_equal(memory->served, memory->ended);
    }
    world_close(world);
    world_open(world);
    assert_true(list_is_empty(&world->domain->bucket_mounts->all));
}

static void the_same_again_may_be_gone_before_the_answer(void **state)
{
    struct memory *memory = *state;
    struct world *world = memory->world;
    struct sandbox *sandbox = world_create(world, "demo");
    const struct bucket_mount_spec spec = {.place = "/x",
                                           .bucket = {.bucket = "data", .prefix = "/a/b"}};
    struct heard heard = add(memory, sandbox, "/x", "data"), removed = {.times = 0};

    expect(&heard, ERR_NONE);
    heard = (struct heard){.times = 0};
    bucket_mount_add(world->domain, &world->caller, sandbox, &spec, on_mount, &heard);
    bucket_mount_remove(world->domain, &world->caller, sandbox, "/x", on_mount, &removed);
    TURN_UNTIL(&world->loop, heard.times && removed.times);
    expect(&heard, ERR_CONFLICT);
    expect(&removed, ERR_NONE);
    expect_mounts(memory, sandbox, "");
}

static void what_is_not_written_back_is_told(void **state)
{
    struct memory *memory = *state;
    struct sandbox *sandbox = world_create(memory->world, "demo");
    struct heard heard = add(memory, sandbox, "/x", "data");

    expect(&heard, ERR_NONE);
    memory->fail_end = ERR_UPSTREAM;
    heard = take_away(memory, sandbox, "/x");
    expect(&heard, ERR_UPSTREAM);
    assert_non_null(strstr(heard.failure.message, "not everything was written back"));
    expect_mounts(memory, sandbox, "");
}

#define MEMORY_TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        MEMORY_TEST(a_bucket_is_mounted_and_taken_away),
        MEMORY_TEST(places_and_names_have_rules),
        MEMORY_TEST(a_failure_leaves_nothing),
        MEMORY_TEST(it_is_there_again_after_a_stop),
        MEMORY_TEST(it_is_there_again_after_a_rollback),
        MEMORY_TEST(it_is_there_again_when_a_stop_fails),
        MEMORY_TEST(a_restarted_daemon_brings_it_back),
        MEMORY_TEST(it_goes_with_its_sandbox),
        MEMORY_TEST(a_sandbox_that_is_destroyed_meanwhile_takes_it_along),
        MEMORY_TEST(the_same_again_may_be_gone_before_the_answer),
        MEMORY_TEST(what_is_not_written_back_is_told),
    };

    return cmocka_run_group_tests_name("bucket_mount", tests, NULL, NULL);
}
