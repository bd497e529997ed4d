#include "launcher/cgroup/cgroup_file.h"
#include "launcher/cgroup/cgroup_test_kit.h"

static void numbers_and_max_are_read(void **state)
{
    uint64_t number = 7;

    (void) state;
    assert_int_equal(cgroup_file_parse_number("1048576\n", &number), 0);
    assert_int_equal(number, 1048576);
    assert_int_equal(cgroup_file_parse_number("max\n", &number), 0);
    assert_true(number == UINT64_MAX);
    number = 7;
    assert_int_equal(cgroup_file_parse_number("", &number), -EINVAL);
    assert_int_equal(cgroup_file_parse_number("-1\n", &number), -EINVAL);
    assert_int_equal(cgroup_file_parse_number("12 100000\n", &number), -EINVAL);
    assert_int_equal(cgroup_file_parse_number("maximum\n", &number), -EINVAL);
    assert_int_equal(number, 7);
}

static void fields_are_found_by_their_whole_name(void **state)
{
    static const char events[] = "low 0\nhigh 0\noom 3\noom_kill 21\noom_group_kill 1\n";
    uint64_t number = 7;

    (void) state;
    assert_int_equal(cgroup_file_find_field(events, "oom_kill", &number), 0);
    assert_int_equal(number, 21);
    assert_int_equal(cgroup_file_find_field(events, "oom", &number), 0);
    assert_int_equal(number, 3);
    assert_int_equal(cgroup_file_find_field(events, "kill", &number), -ENODATA);
    assert_int_equal(cgroup_file_find_field("", "oom", &number), -ENODATA);
    assert_int_equal(cgroup_file_find_field("oom x\n", "oom", &number), -EINVAL);
    assert_int_equal(number, 3);
}

static void traffic_is_added_up_over_disks(void **state)
{
    static const char v2[] = "8:0 rbytes=100 wbytes=20 rios=1 wios=1 dbytes=0 dios=0\n"
                             "254:16 rbytes=5 wbytes=1000 rios=1 wios=1 dbytes=9 dios=0\n7:0 \n";
    static const char v1[] = "8:0 Read 4096\n8:0 Write 1\n8:0 Sync 2\n8:0 Total 4097\n"
                             "9:0 Read 4\n9:0 Write 8192\nTotal 12293\n";

    (void) state;
    assert_int_equal(cgroup_file_sum(v2, " rbytes="), 105);
    assert_int_equal(cgroup_file_sum(v2, " wbytes="), 1020);
    assert_int_equal(cgroup_file_sum(v1, " Read "), 4100);
    assert_int_equal(cgroup_file_sum(v1, " Write "), 8193);
    assert_int_equal(cgroup_file_sum("", " Read "), 0);
    assert_int_equal(cgroup_file_sum(" Read  Read x Read ", " Read "), 0);
}

static void files_are_written_and_read_whole(void **state)
{
    static const char *const no_mounts[] = {NULL};
    struct fake fake;
    char path[PATH_MAX], text[8];
    uint64_t number;

    (void) state;
    fake_init(&fake, "", no_mounts);
    fake_file(&fake, "value", "");
    fake_path(&fake, "value", path);
    assert_int_equal(cgroup_file_write(AT_FDCWD, path, "123456\n"), 0);
    assert_int_equal(cgroup_file_number(AT_FDCWD, path, &number), 0);
    assert_int_equal(number, 123456);
    assert_int_equal(cgroup_file_read(AT_FDCWD, path, text, sizeof(text)), 7);
    assert_int_equal(cgroup_file_read(AT_FDCWD, path, text, 7), -EFBIG);
    fake_path(&fake, "none", path);
    assert_int_equal(cgroup_file_write(AT_FDCWD, path, "1"), -ENOENT);
    assert_int_equal(cgroup_file_number(AT_FDCWD, path, &number), -ENOENT);
    remove_scratch(fake.root);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(numbers_and_max_are_read),
        cmocka_unit_test(fields_are_found_by_their_whole_name),
        cmocka_unit_test(traffic_is_added_up_over_disks),
        cmocka_unit_test(files_are_written_and_read_whole),
    };

    return cmocka_run_group_tests_name("cgroup_file", tests, NULL, NULL);
}
