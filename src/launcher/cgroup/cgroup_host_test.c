/* Hosts made of plain files: what is decided per controller, and what is said about the rest. */
#include "launcher/cgroup/cgroup_host.h"
#include "launcher/cgroup/cgroup_test_kit.h"

static const char *const v2_mounts[] = {"35 25 0:30 / %s/v2 rw,nosuid - cgroup2 cgroup2 rw", NULL};

static const char *const v1_mounts[] = {
    "32 31 0:29 / %s/cpu,cpuacct rw - cgroup cgroup rw,cpu,cpuacct",
    "33 31 0:30 / %s/memory rw - cgroup cgroup rw,memory",
    "34 31 0:31 / %s/pids rw - cgroup cgroup rw,pids",
    "35 31 0:32 / %s/freezer rw - cgroup cgroup rw,freezer",
    "36 31 0:33 / %s/blkio rw - cgroup cgroup rw,blkio",
    NULL,
};

static const char *const hybrid_mounts[] = {
    "33 31 0:30 / %s/memory rw - cgroup cgroup rw,memory",
    "34 31 0:31 / %s/pids rw - cgroup cgroup rw,pids",
    "35 31 0:32 / %s/freezer rw - cgroup cgroup rw,freezer",
    "36 31 0:33 / %s/v2 rw - cgroup2 cgroup2 rw",
    NULL,
};

/* A v2 group as the kernel shows it, with these controllers passed on to its children. */
static void v2_group(const struct fake *fake, const char *group, const char *available,
                     const char *passed_on)
{
    char passed_on_below[64];
    const struct {
        const char *name;
        const char *content;
    } files[] = {
        {"cgroup.controllers", available},
        {"cgroup.subtree_control", passed_on_below},
        {"cgroup.procs", ""},
        {"cgroup.freeze", "0\n"},
        {"cpu.stat", "usage_usec 0\n"},
    };

    /* Room for what is written, which the kernel would add to what is there. */
    (void) snprintf(passed_on_below, sizeof(passed_on_below), "        %s", passed_on);
    for (size_t i = 0; i < ARRAY_COUNT(files); i++) {
        char path[256];

        (void) snprintf(path, sizeof(path), "%s/%s", group, files[i].name);
        fake_file(fake, path, files[i].content);
    }
}

static void assert_place(const struct cgroup_host *host, const struct fake *fake,
                         enum cgroup_controller controller, enum cgroup_version version,
                         const char *place)
{
    char path[PATH_MAX];

    fake_path(fake, place, path);
    assert_int_equal(cgroup_host_version(host, controller), version);
    assert_null(cgroup_host_missing(host, controller));
    assert_string_equal(cgroup_host_place(host, controller), path);
}

static void assert_missing(const struct cgroup_host *host, enum cgroup_controller controller,
                           const char *lost, const char *why)
{
    const char *missing = cgroup_host_missing(host, controller);

    assert_int_equal(cgroup_host_version(host, controller), CGROUP_NONE);
    assert_null(cgroup_host_place(host, controller));
    assert_non_null(missing);
    assert_non_null(strstr(missing, lost));
    assert_non_null(strstr(missing, why));
}

static void a_delegated_v2_host_serves_everything(void **state)
{
    struct fake fake;
    AUTO(cgroup_host) struct cgroup_host *host = NULL;

    (void) state;
    fake_init(&fake, "0::/unit\n", v2_mounts);
    v2_group(&fake, "v2", "cpu io memory pids\n", "cpu io memory pids\n");
    v2_group(&fake, "v2/unit", "cpu io memory pids\n", "cpu io memory pids\n");
    v2_group(&fake, "v2/unit/burrow", "cpu io memory pids\n", "cpu io memory pids\n");
    fake_file(&fake, "v2/unit/burrow/memory.swap.max", "max\n");
    host = fake_open(&fake);
    for (unsigned int i = 0; i < CGROUP_CONTROLLER_COUNT; i++)
        assert_place(host, &fake, i, CGROUP_V2, "v2/unit/burrow");
    remove_scratch(fake.root);
}

static void one_has_a_base_for_himself(void **state)
{
    struct fake fake;
    AUTO(cgroup_host) struct cgroup_host *host = NULL, *other = NULL;
    struct error err = ERROR_INIT;

    (void) state;
    fake_init(&fake, "0::/unit\n", v2_mounts);
    v2_group(&fake, "v2", "cpu memory pids\n", "cpu memory pids\n");
    v2_group(&fake, "v2/unit", "cpu memory pids\n", "cpu memory pids\n");
    v2_group(&fake, "v2/unit/burrow", "cpu memory pids\n", "cpu memory pids\n");
    host = fake_open(&fake);
    other = fake_open(&fake);
    assert_int_equal(cgroup_host_claim(host, 0, &err), 0);
    assert_int_equal(cgroup_host_claim(host, 0, &err), 0);
    assert_int_equal(cgroup_host_claim(other, 0, &err), -1);
    assert_int_equal(err.code, ERR_CONFLICT);
    assert_non_null(strstr(err.message, "v2/unit/burrow"));
    assert_non_null(strstr(err.message, "--cgroup"));
    cgroup_host_free(host);
    host = NULL;
    assert_int_equal(cgroup_host_claim(other, 0, &err), 0);
    remove_scratch(fake.root);
}

static void controllers_are_enabled_on_the_way_down(void **state)
{
    struct fake fake;
    AUTO(cgroup_host) struct cgroup_host *host = NULL;

    (void) state;
    fake_init(&fake, "0::/unit\n", v2_mounts);
    v2_group(&fake, "v2", "cpu memory pids\n", "cpu memory pids\n");
    v2_group(&fake, "v2/unit", "cpu memory pids\n", "cpu memory\n");
    v2_group(&fake, "v2/unit/burrow", "cpu memory pids\n", "memory pids\n");
    host = fake_open(&fake);
    assert_file_holds(&fake, "v2/unit/cgroup.subtree_control", "+pids   cpu memory\n");
    assert_file_holds(&fake, "v2/unit/burrow/cgroup.subtree_control", "+cpu    memory pids\n");
    assert_place(host, &fake, CGROUP_PIDS, CGROUP_V2, "v2/unit/burrow");
    assert_missing(host, CGROUP_IO, "disk traffic is not counted", "no mounted hierarchy");
    assert_missing(host, CGROUP_SWAP, "swap is not limited", "swapaccount=1");
    remove_scratch(fake.root);
}

/* A login shell's scope gets no cpu controller from above: the nearest group that has all serves.
 */
static void the_base_climbs_to_where_controllers_are(void **state)
{
    struct fake fake;
    AUTO(cgroup_host) struct cgroup_host *host = NULL;
    char path[PATH_MAX];

    (void) state;
    fake_init(&fake, "0::/user.slice/session.scope\n", v2_mounts);
    v2_group(&fake, "v2", "cpu memory pids\n", "cpu memory pids\n");
    v2_group(&fake, "v2/user.slice", "cpu memory pids\n", "memory pids cpu\n");
    v2_group(&fake, "v2/user.slice/session.scope", "memory pids\n", "memory pids\n");
    v2_group(&fake, "v2/user.slice/burrow", "cpu memory pids\n", "cpu memory pids\n");
    host = fake_open(&fake);
    assert_place(host, &fake, CGROUP_CPU, CGROUP_V2, "v2/user.slice/burrow");
    fake_path(&fake, "v2/user.slice/session.scope/burrow", path);
    assert_int_equal(access(path, F_OK), -1);
    remove_scratch(fake.root);
}

static void after_an_exec_the_leaf_is_not_taken_for_our_place(void **state)
{
    struct fake fake;
    AUTO(cgroup_host) struct cgroup_host *host = NULL;

    (void) state;
    fake_init(&fake, "0::/unit/burrow-launcher\n", v2_mounts);
    v2_group(&fake, "v2", "pids\n", "pids\n");
    v2_group(&fake, "v2/unit", "pids\n", "pids\n");
    v2_group(&fake, "v2/unit/burrow-launcher", "pids\n", "");
    v2_group(&fake, "v2/unit/burrow", "pids\n", "pids\n");
    host = fake_open(&fake);
    assert_place(host, &fake, CGROUP_PIDS, CGROUP_V2, "v2/unit/burrow");
    remove_scratch(fake.root);
}

static void a_v1_host_serves_each_from_its_hierarchy(void **state)
{
    struct fake fake;
    AUTO(cgroup_host) struct cgroup_host *host = NULL;

    (void) state;
    fake_init(&fake, "5:cpu,cpuacct:/\n4:memory:/box\n3:pids:/\n2:freezer:/\n1:blkio:/\n0::/\n",
              v1_mounts);
    fake_file(&fake, "cpu,cpuacct/burrow/cgroup.procs", "");
    fake_file(&fake, "memory/box/burrow/cgroup.procs", "");
    fake_file(&fake, "memory/box/burrow/memory.memsw.limit_in_bytes", "");
    fake_file(&fake, "pids/burrow/cgroup.procs", "");
    fake_file(&fake, "freezer/burrow/cgroup.procs", "");
    fake_file(&fake, "blkio/burrow/cgroup.procs", "");
    host = fake_open(&fake);
    assert_place(host, &fake, CGROUP_CPU, CGROUP_V1, "cpu,cpuacct/burrow");
    assert_place(host, &fake, CGROUP_CPU_TIME, CGROUP_V1, "cpu,cpuacct/burrow");
    assert_place(host, &fake, CGROUP_MEMORY, CGROUP_V1, "memory/box/burrow");
    assert_place(host, &fake, CGROUP_SWAP, CGROUP_V1, "memory/box/burrow");
    assert_place(host, &fake, CGROUP_PIDS, CGROUP_V1, "pids/burrow");
    assert_place(host, &fake, CGROUP_FREEZER, CGROUP_V1, "freezer/burrow");
    assert_place(host, &fake, CGROUP_IO, CGROUP_V1, "blkio/burrow");
    remove_scratch(fake.root);
}

/* Where v2 has no controllers it still freezes, kills and counts; its freezer is preferred. */
static void a_hybrid_host_mixes_by_controller(void **state)
{
    struct fake fake;
    AUTO(cgroup_host) struct cgroup_host *host = NULL;
    char path[PATH_MAX];

    (void) state;
    fake_init(&fake, "4:memory:/\n3:pids:/\n2:freezer:/\n1:cpu:/\n0::/\n", hybrid_mounts);
    v2_group(&fake, "v2", "hugetlb\n", "");
    v2_group(&fake, "v2/burrow", "", "");
    fake_file(&fake, "memory/burrow/cgroup.procs", "");
    fake_directory(&fake, "pids");
    fake_file(&fake, "freezer/cgroup.procs", "");
    host = fake_open(&fake);
    assert_place(host, &fake, CGROUP_MEMORY, CGROUP_V1, "memory/burrow");
    assert_place(host, &fake, CGROUP_FREEZER, CGROUP_V2, "v2/burrow");
    assert_place(host, &fake, CGROUP_CPU_TIME, CGROUP_V2, "v2/burrow");
    fake_path(&fake, "freezer/burrow", path);
    assert_int_equal(access(path, F_OK), -1);
    assert_missing(host, CGROUP_CPU, "CPU use is not limited", "not mounted here");
    assert_missing(host, CGROUP_PIDS, "processes is not limited", "pids/burrow: No such file");
    remove_scratch(fake.root);
}

static void a_host_without_cgroups_works_without_limits(void **state)
{
    static const char *const none[] = {NULL};
    struct fake fake;
    struct id id = id_new();
    AUTO(cgroup_host) struct cgroup_host *host = NULL;
    AUTO(cgroup_entry) struct cgroup_entry entry = CGROUP_ENTRY_INIT;
    struct cgroup cgroup;
    struct error err = ERROR_INIT;

    (void) state;
    fake_init(&fake, "", none);
    host = fake_open(&fake);
    assert_missing(host, CGROUP_MEMORY, "memory is not limited", "no cgroup hierarchy is mounted");
    assert_missing(host, CGROUP_SWAP, "swap", "needs the memory controller");
    assert_int_equal(cgroup_create(host, &id, &(struct limits){.pids = 64}, &cgroup, NULL), 0);
    assert_int_equal(cgroup_entry_open(&cgroup, true, &entry, NULL), 0);
    assert_int_equal(entry.agent_count + entry.work_count, 0);
    assert_int_equal(cgroup_kill(&cgroup, 0, &err), -1);
    assert_int_equal(err.code, ERR_NOT_IMPLEMENTED);
    assert_int_equal(cgroup_freeze(&cgroup, CGROUP_WHOLE, &err), -1);
    assert_int_equal(err.code, ERR_NOT_IMPLEMENTED);
    assert_int_equal(cgroup_remove(&cgroup, 0, NULL), 0);
    remove_scratch(fake.root);
}

static void versions_can_be_left_out_and_the_place_named(void **state)
{
    struct fake fake;
    AUTO(cgroup_host) struct cgroup_host *host = NULL;
    struct cgroup_host_options options = {.name = "burrow", .parent = "/", .without_v2 = true};

    (void) state;
    fake_init(&fake, "4:memory:/deep/down\n0::/\n", hybrid_mounts);
    v2_group(&fake, "v2", "", "");
    v2_group(&fake, "v2/burrow", "", "");
    fake_file(&fake, "memory/burrow/cgroup.procs", "");
    options.self_cgroup = fake.self;
    options.mountinfo = fake.mounts;
    assert_int_equal(cgroup_host_open(&options, &host, NULL), 0);
    assert_place(host, &fake, CGROUP_MEMORY, CGROUP_V1, "memory/burrow");
    assert_int_equal(cgroup_host_version(host, CGROUP_FREEZER), CGROUP_NONE);
    remove_scratch(fake.root);
}

static void odd_names_and_missing_files_are_errors(void **state)
{
    static const char *const names[] = {NULL, "", "a/b", "..", "new\nline"};
    struct cgroup_host_options options = {.name = "burrow", .self_cgroup = "/nonexistent"};
    struct cgroup_host *host = NULL;
    struct error err = ERROR_INIT;

    (void) state;
    assert_int_equal(cgroup_host_open(&options, &host, &err), -1);
    assert_int_equal(err.code, ERR_UNAVAILABLE);
    for (size_t i = 0; i < ARRAY_COUNT(names); i++) {
        options.name = names[i];
        assert_int_equal(cgroup_host_open(&options, &host, &err), -1);
        assert_int_equal(err.code, ERR_INVALID);
    }
    assert_null(host);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_delegated_v2_host_serves_everything),
        cmocka_unit_test(one_has_a_base_for_himself),
        cmocka_unit_test(controllers_are_enabled_on_the_way_down),
        cmocka_unit_test(the_base_climbs_to_where_controllers_are),
        cmocka_unit_test(after_an_exec_the_leaf_is_not_taken_for_our_place),
        cmocka_unit_test(a_v1_host_serves_each_from_its_hierarchy),
        cmocka_unit_test(a_hybrid_host_mixes_by_controller),
        cmocka_unit_test(a_host_without_cgroups_works_without_limits),
        cmocka_unit_test(versions_can_be_left_out_and_the_place_named),
        cmocka_unit_test(odd_names_and_missing_files_are_errors),
    };

    return cmocka_run_group_tests_name("cgroup_host", tests, NULL, NULL);
}
