#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>

#include "launcher/cgroup/cgroup_layout.h"
/* After the headers it needs. */
#include <cmocka.h>

#include "base/auto.h"

#define ALL_V1                                                                                     \
    (CGROUP_BIT(CGROUP_CPU) | CGROUP_BIT(CGROUP_MEMORY) | CGROUP_BIT(CGROUP_PIDS) |                \
     CGROUP_BIT(CGROUP_IO) | CGROUP_BIT(CGROUP_FREEZER) | CGROUP_BIT(CGROUP_CPU_TIME))

static struct cgroup_layout layout;

static void assert_hierarchy(size_t index, enum cgroup_version version, unsigned int controllers,
                             const char *top, const char *own)
{
    assert_true(index < layout.count);
    assert_int_equal(layout.hierarchies[index].version, version);
    assert_int_equal(layout.hierarchies[index].controllers, controllers);
    assert_string_equal(layout.hierarchies[index].top, top);
    assert_string_equal(layout.hierarchies[index].own, own);
}

static void a_v2_host_has_one_hierarchy(void **state)
{
    (void) state;
    cgroup_layout_parse("0::/system.slice/burrow.service\n",
                        "25 30 0:22 / /sys rw,nosuid shared:7 - sysfs sysfs rw\n"
                        "35 25 0:30 / /sys/fs/cgroup rw,nosuid,nodev,noexec,relatime shared:9 - "
                        "cgroup2 cgroup2 rw,nsdelegate,memory_recursiveprot\n",
                        &layout);
    assert_int_equal(layout.count, 1);
    assert_int_equal(layout.hidden, 0);
    assert_hierarchy(0, CGROUP_V2, 0, "/sys/fs/cgroup", "/system.slice/burrow.service");
}

static void a_hybrid_host_has_v2_first_and_v1_by_controller(void **state)
{
    (void) state;
    cgroup_layout_parse("9:name=systemd:/\n8:pids:/\n7:blkio:/\n6:freezer:/\n5:devices:/\n"
                        "4:memory:/jail/x\n1:cpu:/\n0::/\n",
                        "32 31 0:29 / /c/cpu rw - cgroup cgroup rw,cpu\n"
                        "35 31 0:32 / /c/memory rw,relatime - cgroup cgroup rw,memory\n"
                        "36 31 0:33 / /c/devices rw,relatime - cgroup cgroup rw,devices\n"
                        "37 31 0:34 / /c/freezer rw - cgroup cgroup rw,freezer\n"
                        "38 31 0:35 / /c/blkio rw - cgroup cgroup rw,blkio\n"
                        "40 31 0:37 / /c/systemd rw - cgroup cgroup rw,name=systemd\n"
                        "41 31 0:38 / /c/unified rw,relatime - cgroup2 cgroup2 rw\n",
                        &layout);
    assert_int_equal(layout.count, 5);
    assert_hierarchy(0, CGROUP_V2, 0, "/c/unified", "");
    assert_hierarchy(1, CGROUP_V1, CGROUP_BIT(CGROUP_IO), "/c/blkio", "");
    assert_hierarchy(2, CGROUP_V1, CGROUP_BIT(CGROUP_FREEZER), "/c/freezer", "");
    assert_hierarchy(3, CGROUP_V1, CGROUP_BIT(CGROUP_MEMORY), "/c/memory", "/jail/x");
    assert_hierarchy(4, CGROUP_V1, CGROUP_BIT(CGROUP_CPU), "/c/cpu", "");
    assert_int_equal(layout.hidden, CGROUP_BIT(CGROUP_PIDS));
}

static void controllers_mounted_together_are_one_hierarchy(void **state)
{
    (void) state;
    cgroup_layout_parse("2:cpu,cpuacct:/a\n",
                        "32 31 0:29 / /c/cpuset rw - cgroup cgroup rw,cpuset\n"
                        "33 31 0:30 / /c/cpu,cpuacct rw shared:1 master:2 - cgroup cgroup "
                        "rw,cpu,cpuacct\n",
                        &layout);
    assert_int_equal(layout.count, 1);
    assert_hierarchy(0, CGROUP_V1, CGROUP_BIT(CGROUP_CPU) | CGROUP_BIT(CGROUP_CPU_TIME),
                     "/c/cpu,cpuacct", "/a");
}

/* A container that sees only its own part, without a cgroup namespace. */
static void a_mount_of_a_part_shows_our_place_in_it(void **state)
{
    (void) state;
    cgroup_layout_parse(
        "4:memory:/docker/abc/inner\n3:pids:/docker/abcdef\n2:freezer:/docker/abc\n",
        "35 31 0:32 /docker/abc /c/memory rw - cgroup cgroup rw,memory\n"
        "36 31 0:33 /docker/abc /c/pids rw - cgroup cgroup rw,pids\n"
        "37 31 0:34 /docker/abc /c/freezer rw - cgroup cgroup rw,freezer\n",
        &layout);
    assert_int_equal(layout.count, 2);
    assert_hierarchy(0, CGROUP_V1, CGROUP_BIT(CGROUP_MEMORY), "/c/memory", "/inner");
    assert_hierarchy(1, CGROUP_V1, CGROUP_BIT(CGROUP_FREEZER), "/c/freezer", "");
    assert_int_equal(layout.hidden, CGROUP_BIT(CGROUP_PIDS));
}

static void a_writable_mount_is_preferred(void **state)
{
    (void) state;
    cgroup_layout_parse("0::/a\n",
                        "35 31 0:32 / /first ro,nosuid - cgroup2 cgroup2 rw\n"
                        "36 31 0:32 /other /second rw - cgroup2 cgroup2 rw\n"
                        "37 31 0:32 / /third rw - cgroup2 cgroup2 rw\n"
                        "38 31 0:32 / /fourth rw - cgroup2 cgroup2 rw\n",
                        &layout);
    assert_int_equal(layout.count, 1);
    assert_hierarchy(0, CGROUP_V2, 0, "/third", "/a");
    cgroup_layout_parse("0::/a\n", "35 31 0:32 / /first ro - cgroup2 cgroup2 rw\n", &layout);
    assert_hierarchy(0, CGROUP_V2, 0, "/first", "/a");
}

static void escaped_places_are_read(void **state)
{
    (void) state;
    cgroup_layout_parse("0::/with space\n",
                        "35 31 0:32 / /odd\\040place\\134 rw - cgroup2 none rw\n", &layout);
    assert_int_equal(layout.count, 1);
    assert_hierarchy(0, CGROUP_V2, 0, "/odd place\\", "/with space");
}

static void a_place_outside_our_namespace_is_no_place(void **state)
{
    (void) state;
    cgroup_layout_parse("0::/../../elsewhere\n4:memory:/../x\n",
                        "35 31 0:32 / /c rw - cgroup2 cgroup2 rw\n"
                        "36 31 0:33 /.. /m rw - cgroup cgroup rw,memory\n",
                        &layout);
    assert_int_equal(layout.count, 0);
    assert_int_equal(layout.hidden, CGROUP_BIT(CGROUP_MEMORY));
}

static void nonsense_gives_no_hierarchies(void **state)
{
    static const char *const texts[] = {
        "",    "\n\n\n",   ":::",   "0::",           "0:",
        "::/", "4:memory", "- - -", "0::relative\n", "1 2 3 / /x rw - cgroup2"};

    (void) state;
    for (size_t i = 0; i < ARRAY_COUNT(texts); i++) {
        for (size_t k = 0; k < ARRAY_COUNT(texts); k++) {
            cgroup_layout_parse(texts[i], texts[k], &layout);
            assert_int_equal(layout.count, 0);
        }
    }
}

static void places_that_are_too_long_are_left_out(void **state)
{
    char self[CGROUP_PATH_SIZE + 16];

    (void) state;
    memset(self, 'x', sizeof(self));
    memcpy(self, "0::/", 4);
    self[sizeof(self) - 1] = '\0';
    cgroup_layout_parse(self, "35 31 0:32 / /c rw - cgroup2 cgroup2 rw\n", &layout);
    assert_int_equal(layout.count, 0);
    self[4 + CGROUP_PATH_SIZE - 2] = '\0';
    cgroup_layout_parse(self, "35 31 0:32 / /c rw - cgroup2 cgroup2 rw\n", &layout);
    assert_int_equal(layout.count, 1);
}

static void names_are_those_of_the_version(void **state)
{
    static const char v1[] = "cpu,cpuacct,memory,pids,blkio,freezer,io,cpuset";
    static const char v2[] = "cpuset cpu io memory hugetlb pids blkio freezer\n";

    (void) state;
    assert_int_equal(cgroup_layout_controllers(CGROUP_V1, v1, strlen(v1)), ALL_V1);
    assert_int_equal(cgroup_layout_controllers(CGROUP_V2, v2, strlen(v2)),
                     CGROUP_BIT(CGROUP_CPU) | CGROUP_BIT(CGROUP_IO) | CGROUP_BIT(CGROUP_MEMORY) |
                         CGROUP_BIT(CGROUP_PIDS));
    assert_int_equal(cgroup_layout_controllers(CGROUP_V2, v2, 0), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_v2_host_has_one_hierarchy),
        cmocka_unit_test(a_hybrid_host_has_v2_first_and_v1_by_controller),
        cmocka_unit_test(controllers_mounted_together_are_one_hierarchy),
        cmocka_unit_test(a_mount_of_a_part_shows_our_place_in_it),
        cmocka_unit_test(a_writable_mount_is_preferred),
        cmocka_unit_test(escaped_places_are_read),
        cmocka_unit_test(a_place_outside_our_namespace_is_no_place),
        cmocka_unit_test(nonsense_gives_no_hierarchies),
        cmocka_unit_test(places_that_are_too_long_are_left_out),
        cmocka_unit_test(names_are_those_of_the_version),
    };

    return cmocka_run_group_tests_name("cgroup_layout", tests, NULL, NULL);
}
