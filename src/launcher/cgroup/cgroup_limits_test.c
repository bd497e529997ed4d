/* What is written where, on hosts made of plain files. Whether the kernel keeps to it is tested in
 * cgroup_enforcement_test.c. */
#include "launcher/cgroup/cgroup_limits.h"
#include "launcher/cgroup/cgroup_test_kit.h"
#include "launcher/cgroup/cgroup_weight.h"

static const char *const v2_mounts[] = {"35 25 0:30 / %s/v2 rw - cgroup2 cgroup2 rw", NULL};

static const char *const v1_mounts[] = {
    "32 31 0:29 / %s/cpu rw - cgroup cgroup rw,cpu",
    "33 31 0:30 / %s/memory rw - cgroup cgroup rw,memory",
    "34 31 0:31 / %s/pids rw - cgroup cgroup rw,pids",
    NULL,
};

#define SANDBOX "aaaaaaaaaaaaaaaaaaaaaaaaaa"

static const char *const v2_files[] = {
    "v2/cgroup.procs",
    "v2/burrow/cgroup.procs",
    "v2/burrow/memory.swap.max",
    "v2/burrow/" SANDBOX "/memory.max",
    "v2/burrow/" SANDBOX "/memory.swap.max",
    "v2/burrow/" SANDBOX "/pids.max",
    "v2/burrow/" SANDBOX "/cpu.weight",
    "v2/burrow/" SANDBOX "/cpu.max",
    "v2/burrow/" SANDBOX "/agent/cpu.weight",
    "v2/burrow/" SANDBOX "/work/cpu.weight",
    "v2/burrow/" SANDBOX "/work/cpu.max",
    "v2/burrow/" SANDBOX "/work/memory.max",
    "v2/burrow/" SANDBOX "/work/pids.max",
};

static const char *const v1_files[] = {
    "cpu/burrow/cgroup.procs",
    "cpu/burrow/" SANDBOX "/cpu.shares",
    "cpu/burrow/" SANDBOX "/cpu.cfs_quota_us",
    "cpu/burrow/" SANDBOX "/agent/cpu.shares",
    "cpu/burrow/" SANDBOX "/work/cpu.shares",
    "cpu/burrow/" SANDBOX "/work/cpu.cfs_quota_us",
    "memory/burrow/cgroup.procs",
    "memory/burrow/memory.memsw.limit_in_bytes",
    "memory/burrow/" SANDBOX "/memory.limit_in_bytes",
    "memory/burrow/" SANDBOX "/memory.kmem.tcp.limit_in_bytes",
    "memory/burrow/" SANDBOX "/work/memory.kmem.tcp.limit_in_bytes",
    "memory/burrow/" SANDBOX "/memory.memsw.limit_in_bytes",
    "memory/burrow/" SANDBOX "/work/memory.limit_in_bytes",
    "memory/burrow/" SANDBOX "/work/memory.memsw.limit_in_bytes",
    "pids/burrow/cgroup.procs",
    "pids/burrow/" SANDBOX "/pids.max",
    "pids/burrow/" SANDBOX "/work/pids.max",
};

struct expected {
    const char *path;
    const char *content;
};

static void v2_host(struct fake *fake)
{
    fake_init(fake, "0::/\n", v2_mounts);
    for (size_t i = 0; i < ARRAY_COUNT(v2_files); i++)
        fake_file(fake, v2_files[i], "");
    fake_file(fake, "v2/cgroup.controllers", "cpu memory pids");
    fake_file(fake, "v2/cgroup.subtree_control", "cpu memory pids");
    fake_file(fake, "v2/burrow/cgroup.controllers", "cpu memory pids");
    fake_file(fake, "v2/burrow/cgroup.subtree_control", "cpu memory pids");
}

static void v1_host(struct fake *fake)
{
    fake_init(fake, "3:cpu:/\n2:memory:/\n1:pids:/\n", v1_mounts);
    for (size_t i = 0; i < ARRAY_COUNT(v1_files); i++)
        fake_file(fake, v1_files[i], "");
}

static void assert_limits_write(void (*make_host)(struct fake *fake), const struct limits *limits,
                                const struct expected *expected, size_t count)
{
    struct fake fake;
    AUTO(cgroup_host) struct cgroup_host *host = NULL;
    struct cgroup cgroup;
    struct error err = ERROR_INIT;
    bool complete;

    make_host(&fake);
    host = fake_open(&fake);
    assert_int_equal(cgroup_adopt(host, &(struct id){SANDBOX}, &cgroup, &complete, &err), 0);
    assert_true(complete);
    if (cgroup_set_limits(&cgroup, NULL, limits, &err) < 0)
        fail_msg("%s", err.message);
    for (size_t i = 0; i < count; i++)
        assert_file_holds(&fake, expected[i].path, expected[i].content);
    remove_scratch(fake.root);
}

static const struct limits usual = {
    .memory_bytes = 512 * MEGABYTE, .swap_bytes = 64 * MEGABYTE, .pids = 256, .cpu_millis = 1500};

static void v2_gets_limits_reserves_and_weights(void **state)
{
    static const struct expected expected[] = {
        {"v2/burrow/" SANDBOX "/memory.max", "536870912"},
        {"v2/burrow/" SANDBOX "/memory.swap.max", "67108864"},
        {"v2/burrow/" SANDBOX "/pids.max", "256"},
        {"v2/burrow/" SANDBOX "/cpu.max", "180000 100000"},
        {"v2/burrow/" SANDBOX "/agent/cpu.weight", "800"},
        {"v2/burrow/" SANDBOX "/work/cpu.weight", "25"},
        {"v2/burrow/" SANDBOX "/work/cpu.max", "150000 100000"},
        {"v2/burrow/" SANDBOX "/work/memory.max", "520093696"},
        {"v2/burrow/" SANDBOX "/work/pids.max", "240"},
    };

    (void) state;
    assert_limits_write(v2_host, &usual, expected, ARRAY_COUNT(expected));
}

static void v1_gets_the_same_in_its_words(void **state)
{
    static const struct expected expected[] = {
        {"cpu/burrow/" SANDBOX "/cpu.cfs_quota_us", "180000"},
        {"cpu/burrow/" SANDBOX "/work/cpu.shares", "32"},
        {"cpu/burrow/" SANDBOX "/work/cpu.cfs_quota_us", "150000"},
        {"memory/burrow/" SANDBOX "/memory.limit_in_bytes", "536870912"},
        {"memory/burrow/" SANDBOX "/memory.memsw.limit_in_bytes", "603979776"},
        {"memory/burrow/" SANDBOX "/work/memory.limit_in_bytes", "520093696"},
        {"memory/burrow/" SANDBOX "/memory.kmem.tcp.limit_in_bytes", "268435456"},
        {"memory/burrow/" SANDBOX "/work/memory.kmem.tcp.limit_in_bytes", "268435456"},
        {"memory/burrow/" SANDBOX "/work/memory.memsw.limit_in_bytes", "587202560"},
        {"pids/burrow/" SANDBOX "/pids.max", "256"},
        {"pids/burrow/" SANDBOX "/work/pids.max", "240"},
    };

    (void) state;
    assert_limits_write(v1_host, &usual, expected, ARRAY_COUNT(expected));
}

static void no_limit_is_said_so(void **state)
{
    static const struct limits none = {0};
    static const struct expected v2[] = {
        {"v2/burrow/" SANDBOX "/memory.max", "max"},
        {"v2/burrow/" SANDBOX "/memory.swap.max", "max"},
        {"v2/burrow/" SANDBOX "/work/pids.max", "max"},
        {"v2/burrow/" SANDBOX "/cpu.max", "max 100000"},
    };
    static const struct expected v1[] = {
        {"memory/burrow/" SANDBOX "/memory.limit_in_bytes", "-1"},
        {"memory/burrow/" SANDBOX "/work/memory.memsw.limit_in_bytes", "-1"},
        {"memory/burrow/" SANDBOX "/memory.kmem.tcp.limit_in_bytes", "268435456"},
        {"pids/burrow/" SANDBOX "/pids.max", "max"},
        {"cpu/burrow/" SANDBOX "/work/cpu.cfs_quota_us", "-1"},
    };

    (void) state;
    assert_limits_write(v2_host, &none, v2, ARRAY_COUNT(v2));
    assert_limits_write(v1_host, &none, v1, ARRAY_COUNT(v1));
}

static void what_is_so_already_is_not_written(void **state)
{
    struct limits more = usual;
    struct fake fake;
    AUTO(cgroup_host) struct cgroup_host *host = NULL;
    struct cgroup cgroup;
    struct error err = ERROR_INIT;

    (void) state;
    more.pids = 512;
    v2_host(&fake);
    host = fake_open(&fake);
    assert_int_equal(cgroup_adopt(host, &(struct id){SANDBOX}, &cgroup, NULL, &err), 0);
    assert_int_equal(cgroup_set_limits(&cgroup, &usual, &more, &err), 0);
    assert_file_holds(&fake, "v2/burrow/" SANDBOX "/pids.max", "512");
    assert_file_holds(&fake, "v2/burrow/" SANDBOX "/memory.max", "");
    assert_file_holds(&fake, "v2/burrow/" SANDBOX "/cpu.max", "");
    assert_int_equal(cgroup_set_limits(&cgroup, NULL, &more, &err), 0);
    assert_file_holds(&fake, "v2/burrow/" SANDBOX "/memory.max", "536870912");
    remove_scratch(fake.root);
}

static void assert_weight(void (*make_host)(struct fake *fake), const char *file, const char *text)
{
    struct fake fake;
    AUTO(cgroup_host) struct cgroup_host *host = NULL;
    struct cgroup cgroup;
    struct error err = ERROR_INIT;
    uint32_t weight = 0;

    make_host(&fake);
    host = fake_open(&fake);
    assert_int_equal(cgroup_adopt(host, &(struct id){SANDBOX}, &cgroup, NULL, &err), 0);
    assert_int_equal(cgroup_set_weight(&cgroup, 7, &err), 0);
    assert_file_holds(&fake, file, text);
    assert_int_equal(cgroup_weight(&cgroup, &weight, &err), 0);
    assert_int_equal(weight, 7);
    remove_scratch(fake.root);
}

static void a_weight_is_the_same_in_both_versions(void **state)
{
    (void) state;
    assert_weight(v2_host, "v2/burrow/" SANDBOX "/cpu.weight", "7");
    assert_weight(v1_host, "cpu/burrow/" SANDBOX "/cpu.shares", "70");
}

static void small_limits_keep_half_for_work(void **state)
{
    static const struct limits small = {
        .memory_bytes = 8 * MEGABYTE, .pids = 10, .cpu_millis = 100};
    static const struct expected expected[] = {
        {"v2/burrow/" SANDBOX "/work/memory.max", "4194304"},
        {"v2/burrow/" SANDBOX "/memory.swap.max", "0"},
        {"v2/burrow/" SANDBOX "/work/pids.max", "5"},
        {"v2/burrow/" SANDBOX "/work/cpu.max", "10000 100000"},
        {"v2/burrow/" SANDBOX "/cpu.max", "15000 100000"},
    };

    (void) state;
    assert_limits_write(v2_host, &small, expected, ARRAY_COUNT(expected));
}

static void swap_may_be_unlimited(void **state)
{
    static const struct limits limits = {.memory_bytes = 64 * MEGABYTE,
                                         .swap_bytes = LIMITS_SWAP_UNLIMITED};
    static const struct expected v2[] = {{"v2/burrow/" SANDBOX "/memory.swap.max", "max"}};
    static const struct expected v1[] = {
        {"memory/burrow/" SANDBOX "/memory.memsw.limit_in_bytes", "-1"}};

    (void) state;
    assert_limits_write(v2_host, &limits, v2, ARRAY_COUNT(v2));
    assert_limits_write(v1_host, &limits, v1, ARRAY_COUNT(v1));
}

static void limits_out_of_range_are_refused(void **state)
{
    static const struct limits wrong[] = {
        {.memory_bytes = CGROUP_MEMORY_MIN - 1}, {.memory_bytes = CGROUP_MEMORY_MAX + 1},
        {.swap_bytes = CGROUP_MEMORY_MAX + 1},   {.pids = CGROUP_PIDS_MIN - 1},
        {.pids = CGROUP_PIDS_MAX + 1},           {.cpu_millis = CGROUP_CPU_MIN - 1},
        {.cpu_millis = CGROUP_CPU_MAX + 1},
    };
    static const struct limits right[] = {
        {.memory_bytes = 0},
        {.memory_bytes = CGROUP_MEMORY_MIN, .pids = CGROUP_PIDS_MIN, .cpu_millis = CGROUP_CPU_MIN},
        {.memory_bytes = CGROUP_MEMORY_MAX,
         .swap_bytes = LIMITS_SWAP_UNLIMITED,
         .pids = CGROUP_PIDS_MAX,
         .cpu_millis = CGROUP_CPU_MAX},
    };

    (void) state;
    for (size_t i = 0; i < ARRAY_COUNT(wrong); i++) {
        struct error err = ERROR_INIT;

        assert_int_equal(cgroup_limits_check(&wrong[i], &err), -1);
        assert_int_equal(err.code, ERR_INVALID);
    }
    for (size_t i = 0; i < ARRAY_COUNT(right); i++)
        assert_int_equal(cgroup_limits_check(&right[i], NULL), 0);
}

static void a_file_that_is_missing_is_named(void **state)
{
    struct fake fake;
    AUTO(cgroup_host) struct cgroup_host *host = NULL;
    struct cgroup cgroup;
    struct error err = ERROR_INIT;
    char path[PATH_MAX];

    (void) state;
    v2_host(&fake);
    fake_path(&fake, "v2/burrow/" SANDBOX "/work/pids.max", path);
    assert_int_equal(unlink(path), 0);
    host = fake_open(&fake);
    assert_int_equal(cgroup_adopt(host, &(struct id){SANDBOX}, &cgroup, NULL, NULL), 0);
    assert_int_equal(cgroup_set_limits(&cgroup, NULL, &usual, &err), -1);
    assert_int_equal(err.code, ERR_NOT_FOUND);
    assert_non_null(strstr(err.message, "pids.max"));
    remove_scratch(fake.root);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(v2_gets_limits_reserves_and_weights),
        cmocka_unit_test(v1_gets_the_same_in_its_words),
        cmocka_unit_test(no_limit_is_said_so),
        cmocka_unit_test(what_is_so_already_is_not_written),
        cmocka_unit_test(a_weight_is_the_same_in_both_versions),
        cmocka_unit_test(small_limits_keep_half_for_work),
        cmocka_unit_test(swap_may_be_unlimited),
        cmocka_unit_test(limits_out_of_range_are_refused),
        cmocka_unit_test(a_file_that_is_missing_is_named),
    };

    return cmocka_run_group_tests_name("cgroup_limits", tests, NULL, NULL);
}
