#include "launcher/cgroup/cgroup_place.c"
#include "launcher/cgroup/cgroup_test_kit.h"

static const char *const mounts[] = {"35 25 0:30 / %s/v2 rw - cgroup2 cgroup2 rw", NULL};

/* A unit of our own, with `procs` in it, that does not pass on its controller yet. */
static void make_unit(struct fake *fake, const char *procs, const char *type)
{
    fake_init(fake, "", mounts);
    fake_file(fake, "v2/cgroup.controllers", "pids\n");
    fake_file(fake, "v2/cgroup.subtree_control", "pids\n");
    fake_file(fake, "v2/unit/cgroup.controllers", "pids\n");
    fake_file(fake, "v2/unit/cgroup.subtree_control", "");
    fake_file(fake, "v2/unit/cgroup.procs", procs);
    fake_file(fake, "v2/unit/cgroup.type", type);
    fake_file(fake, "v2/unit/burrow/cgroup.procs", "");
    fake_file(fake, "v2/unit/burrow/cgroup.controllers", "pids\n");
    fake_file(fake, "v2/unit/burrow/cgroup.subtree_control", "pids\n");
    fake_file(fake, "v2/unit/burrow-launcher/cgroup.procs", "");
    fake_file(fake, "v2/burrow/cgroup.procs", "");
    fake_file(fake, "v2/burrow/cgroup.controllers", "pids\n");
    fake_file(fake, "v2/burrow/cgroup.subtree_control", "pids\n");
}

/* A place in there, for somebody who sits in the unit. */
static struct cgroup_place find_place(const struct fake *fake)
{
    struct cgroup_layout_hierarchy hierarchy = {.version = CGROUP_V2, .own = "/unit"};
    struct cgroup_place place;

    (void) snprintf(hierarchy.top, sizeof(hierarchy.top), "%s/v2", fake->root);
    assert_int_equal(cgroup_place_find(&hierarchy, "burrow", &place), 0);
    place.base = fd_close(place.base);
    assert_int_equal(place.controllers, CGROUP_BIT(CGROUP_PIDS));
    return place;
}

static void alone_in_our_group_we_move_into_a_leaf(void **state)
{
    struct cgroup_place place;
    struct fake fake;
    char procs[32];

    (void) state;
    (void) snprintf(procs, sizeof(procs), "%d\n", (int) getpid());
    make_unit(&fake, procs, "domain\n");
    place = find_place(&fake);
    assert_non_null(strstr(place.path, "v2/unit/burrow"));
    assert_file_holds(&fake, "v2/unit/burrow-launcher/cgroup.procs", "0");
    assert_file_holds(&fake, "v2/unit/cgroup.subtree_control", "+pids");
    remove_scratch(fake.root);
}

/* The group of others is not touched either: to pass on one controller would make it threaded. */
static void expect_above(const char *procs, const char *type)
{
    struct cgroup_place place;
    struct fake fake;

    make_unit(&fake, procs, type);
    place = find_place(&fake);
    assert_null(strstr(place.path, "/unit/"));
    assert_file_holds(&fake, "v2/unit/burrow-launcher/cgroup.procs", "");
    assert_file_holds(&fake, "v2/unit/cgroup.subtree_control", "");
    remove_scratch(fake.root);
}

static void with_others_in_our_group_nobody_is_moved(void **state)
{
    char procs[64];

    (void) state;
    (void) snprintf(procs, sizeof(procs), "0\n%d\n", (int) getpid());
    expect_above(procs, "domain\n");
    (void) snprintf(procs, sizeof(procs), "%d0\n", (int) getpid());
    expect_above(procs, "domain\n");
    expect_above("100001\n100002\n100003\n100004\n100005\n100006\n100007\n", "domain\n");
}

static void a_threaded_group_is_left_alone(void **state)
{
    (void) state;
    expect_above("", "domain threaded\n");
    expect_above("", "threaded\n");
}

static void an_empty_group_is_used_as_it_is(void **state)
{
    struct cgroup_place place;
    struct fake fake;

    (void) state;
    make_unit(&fake, "", "domain\n");
    place = find_place(&fake);
    assert_non_null(strstr(place.path, "v2/unit/burrow"));
    assert_file_holds(&fake, "v2/unit/burrow-launcher/cgroup.procs", "");
    remove_scratch(fake.root);
}

static void the_reason_says_what_to_do(void **state)
{
    struct cgroup_place place;

    (void) state;
    describe(&place, "/sys/fs/cgroup/x", -EBUSY);
    assert_non_null(strstr(place.trouble, "/sys/fs/cgroup/x: Device or resource busy"));
    assert_non_null(strstr(place.trouble, "Delegate=yes"));
    describe(&place, "/sys/fs/cgroup/x", -EROFS);
    assert_string_equal(place.trouble, "/sys/fs/cgroup/x: Read-only file system");
}

/* In a child that sits alone in the group at `unit`. */
static void move_for_real(const char *unit)
{
    AUTO(close) int group = sys_file_open(AT_FDCWD, unit, O_RDONLY | O_DIRECTORY, 0);
    struct cgroup_layout_hierarchy hierarchy = {.version = CGROUP_V2};
    struct cgroup_place place;
    unsigned int needed = needed_of(controllers_in(group, "cgroup.controllers"));

    CHECK(group >= 0);
    CHECK(!are_alone(group));
    CHECK_EQUAL(cgroup_file_write(group, "cgroup.procs", "0"), 0);
    CHECK(are_alone(group));
    (void) snprintf(hierarchy.top, sizeof(hierarchy.top), "%s", unit);
    CHECK_EQUAL(cgroup_place_find(&hierarchy, "test", &place), 0);
    place.base = fd_close(place.base);
    CHECK_EQUAL(needed_of(place.controllers), needed);
    CHECK_EQUAL(are_alone(group), needed == 0);
    /* Where there are no controllers nothing made us move; so do it now. */
    if (needed == 0)
        CHECK_EQUAL(move_into_leaf(group, "test"), 0);
    CHECK(!are_alone(group));
    CHECK_EQUAL(controllers_in(group, "cgroup.subtree_control") & needed, needed);
}

static void the_kernel_lets_us_move_into_a_leaf(void **state)
{
    static const char *const made[] = {"/test-launcher", "/test", ""};
    struct real *real = *state;
    char unit[CGROUP_PATH_SIZE], path[PATH_MAX];
    int status = 0;
    pid_t pid;

    if (cgroup_host_version(real->host, CGROUP_FREEZER) != CGROUP_V2)
        skip_without("a cgroup2 hierarchy");
    (void) snprintf(unit, sizeof(unit), "%.900s/unit",
                    cgroup_host_place(real->host, CGROUP_FREEZER));
    assert_int_equal(mkdir(unit, 0755), 0);
    pid = fork_child();
    if (pid == 0) {
        move_for_real(unit);
        _exit(0);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    for (size_t i = 0; i < ARRAY_COUNT(made); i++) {
        (void) snprintf(path, sizeof(path), "%s%s", unit, made[i]);
        (void) rmdir(path);
    }
    assert_ended_well(status);
    assert_int_equal(access(unit, F_OK), -1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(alone_in_our_group_we_move_into_a_leaf),
        cmocka_unit_test(with_others_in_our_group_nobody_is_moved),
        cmocka_unit_test(a_threaded_group_is_left_alone),
        cmocka_unit_test(an_empty_group_is_used_as_it_is),
        cmocka_unit_test(the_reason_says_what_to_do),
        REAL_TEST(the_kernel_lets_us_move_into_a_leaf, "v2 first"),
    };

    return run_real_tests("cgroup_place", tests, ARRAY_COUNT(tests));
}
