#include "launcher/cgroup_place.c"
#include "launcher/cgroup_test_kit.h"

static const char *const mounts[] = {"35 25 0:30 / %s/v2 rw - cgroup2 cgroup2 rw", NULL};

/* A unit of our own, with `procs` in it, that does not pass on its controller yet. */
static void make_unit(struct fake *fake, const char *procs)
{
    fake_init(fake, "", mounts);
    fake_file(fake, "v2/cgroup.controllers", "pids\n");
    fake_file(fake, "v2/cgroup.subtree_control", "pids\n");
    fake_file(fake, "v2/unit/cgroup.controllers", "pids\n");
    fake_file(fake, "v2/unit/cgroup.subtree_control", "");
    fake_file(fake, "v2/unit/cgroup.procs", procs);
    fake_file(fake, "v2/unit/burrow/cgroup.procs", "");
    fake_file(fake, "v2/unit/burrow/cgroup.controllers", "pids\n");
    fake_file(fake, "v2/unit/burrow/cgroup.subtree_control", "pids\n");
    fake_file(fake, "v2/unit/burrow-launcher/cgroup.procs", "");
    fake_file(fake, "v2/burrow/cgroup.procs", "");
    fake_file(fake, "v2/burrow/cgroup.controllers", "pids\n");
    fake_file(fake, "v2/burrow/cgroup.subtree_control", "pids\n");
}

/* Find a place in there while the nth system call says that the group is busy, as the kernel does
 * to a write into cgroup.subtree_control. */
static bool find_busy_place(const struct fake *fake, unsigned int nth, struct cgroup_place *place)
{
    struct cgroup_layout_hierarchy hierarchy = {.version = CGROUP_V2, .own = "/unit"};
    int result;

    (void) snprintf(hierarchy.top, sizeof(hierarchy.top), "%s/v2", fake->root);
    fault_arm(FAULT_SYSTEM_CALL, nth, EBUSY);
    result = cgroup_place_find(&hierarchy, "burrow", place);
    place->base = fd_close(place->base);
    return fault_disarm(FAULT_SYSTEM_CALL) && result == 0;
}

static bool moved_into_leaf(const struct fake *fake)
{
    char path[PATH_MAX], text[8];

    fake_path(fake, "v2/unit/burrow-launcher/cgroup.procs", path);
    return cgroup_file_read(AT_FDCWD, path, text, sizeof(text)) == 1 && text[0] == '0';
}

/* Try every call; returns in how many cases we moved, and leaves the last such place. */
static unsigned int count_moves(const char *procs, unsigned int *ret_climbs)
{
    unsigned int moves = 0;

    *ret_climbs = 0;
    for (unsigned int nth = 1; nth < 40; nth++) {
        struct cgroup_place place;
        struct fake fake;
        bool found;

        make_unit(&fake, procs);
        found = find_busy_place(&fake, nth, &place);
        if (moved_into_leaf(&fake)) {
            moves++;
            assert_true(found);
            assert_non_null(strstr(place.path, "v2/unit/burrow"));
            assert_int_equal(place.controllers, CGROUP_BIT(CGROUP_PIDS));
            assert_file_holds(&fake, "v2/unit/cgroup.subtree_control", "+pids");
        } else if (found && !strstr(place.path, "/unit/")) {
            ++*ret_climbs;
            assert_int_equal(place.controllers, CGROUP_BIT(CGROUP_PIDS));
        }
        remove_scratch(fake.root);
    }
    return moves;
}

static void alone_in_our_group_we_move_into_a_leaf(void **state)
{
    char procs[32];
    unsigned int climbs;

    (void) state;
    (void) snprintf(procs, sizeof(procs), "%d\n", (int) getpid());
    /* Opening the file and writing to it can both say so. */
    assert_int_equal(count_moves(procs, &climbs), 2);
}

static void with_others_in_our_group_nobody_is_moved(void **state)
{
    char procs[64];
    unsigned int climbs;

    (void) state;
    (void) snprintf(procs, sizeof(procs), "0\n%d\n", (int) getpid());
    assert_int_equal(count_moves(procs, &climbs), 0);
    assert_true(climbs >= 2);
    (void) snprintf(procs, sizeof(procs), "%d0\n", (int) getpid());
    assert_int_equal(count_moves(procs, &climbs), 0);
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
        cmocka_unit_test(the_reason_says_what_to_do),
        REAL_TEST(the_kernel_lets_us_move_into_a_leaf, "v2 first"),
    };

    return run_real_tests("cgroup_place", tests, ARRAY_COUNT(tests));
}
