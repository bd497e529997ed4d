/* Sessions of the mounter from their beginning to their end, on real mounts. */
#include "mount/bucket_mounter.h"
#include "mount/mount_testing.h"

struct told {
    struct bucket_mounter *mounter; /* freed by the answer */
    int count;
    bool is_stopped;
};

static struct bucket_mounter *new_mounter(struct fixture *fixture)
{
    const struct bucket_mounter_options options = {
        .loop = &fixture->loop, .host = fixture->host, .buckets = fixture->objects};

    return bucket_mounter_new(&options);
}

static struct mounter_session *serve(struct fixture *fixture, struct bucket_mounter *mounter)
{
    const struct mounter *interface = bucket_mounter_interface(mounter);
    const struct mounter_bucket bucket = {.owner = id_new(), .bucket = "things"};
    struct error err = ERROR_INIT;
    struct mounter_session *session =
        interface->serve(interface->self, &bucket, open_mount(fixture), &err);

    if (!session)
        fail_msg("%s", err.message);
    return session;
}

static void on_stopped(void *context)
{
    ((struct told *) context)->is_stopped = true;
}

static void on_end(void *context, const struct error *failure)
{
    struct told *told = context;

    assert_null(failure);
    told->count++;
}

static void on_last_end(void *context, const struct error *failure)
{
    struct told *told = context;

    on_end(context, failure);
    bucket_mounter_free(TAKE_PTR(told->mounter));
}

static void whoever_is_told_of_the_last_end_may_free_the_mounter(void **state)
{
    struct fixture *fixture = *state;
    struct bucket_mounter *mounter = new_mounter(fixture);
    const struct mounter *interface = bucket_mounter_interface(mounter);
    struct mounter_session *session = serve(fixture, mounter);
    struct told told = {.mounter = mounter};

    bucket_mounter_stop(mounter, on_stopped, &told);
    TURN_UNTIL(&fixture->loop, told.is_stopped);
    assert_int_equal(told.count, 0);
    interface->end(interface->self, session, on_last_end, &told);
    TURN_UNTIL(&fixture->loop, told.count);
    assert_null(told.mounter);
    assert_int_equal(sys_mount_unmount(fixture->place, SYS_UNMOUNT_DETACH), 0);
}

static void an_end_that_was_asked_for_is_told_before_the_stop_is(void **state)
{
    struct fixture *fixture = *state;
    struct bucket_mounter *mounter = new_mounter(fixture);
    const struct mounter *interface = bucket_mounter_interface(mounter);
    struct mounter_session *session = serve(fixture, mounter);
    struct told told = {.count = 0};

    interface->end(interface->self, session, on_end, &told);
    bucket_mounter_stop(mounter, on_stopped, &told);
    TURN_UNTIL(&fixture->loop, told.is_stopped);
    assert_int_equal(told.count, 1);
    bucket_mounter_free(mounter);
    assert_int_equal(sys_mount_unmount(fixture->place, SYS_UNMOUNT_DETACH), 0);
}

static void what_nobody_let_go_of_goes_with_the_mounter(void **state)
{
    struct fixture *fixture = *state;
    struct bucket_mounter *mounter = new_mounter(fixture);
    struct told told = {.count = 0};

    (void) serve(fixture, mounter);
    bucket_mounter_stop(mounter, on_stopped, &told);
    TURN_UNTIL(&fixture->loop, told.is_stopped);
    bucket_mounter_free(mounter);
    assert_int_equal(sys_mount_unmount(fixture->place, SYS_UNMOUNT_DETACH), 0);
}

static int begin_without_session(void **state)
{
    *state = new_fixture();
    return 0;
}

#define MOUNTER_TEST(name) cmocka_unit_test_setup_teardown(name, begin_without_session, finish_test)

int main(void)
{
    const struct CMUnitTest tests[] = {
        MOUNTER_TEST(whoever_is_told_of_the_last_end_may_free_the_mounter),
        MOUNTER_TEST(an_end_that_was_asked_for_is_told_before_the_stop_is),
        MOUNTER_TEST(what_nobody_let_go_of_goes_with_the_mounter),
    };

    return MOUNT_RUN(tests);
}
