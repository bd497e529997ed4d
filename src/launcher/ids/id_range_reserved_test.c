#include <string.h>

#include "launcher/ids/id_range_reserved.h"
#include "sys/sys_test.h"

static void accounts_are_reserved_one_by_one(void **state)
{
    AUTO(id_range_reserved) struct id_range_reserved reserved = ID_RANGE_RESERVED_INIT;

    (void) state;
    id_range_reserved_add_accounts(&reserved, "root:x:0:0:root:/root:/bin/sh\n"
                                              "# a comment\n"
                                              "+::::::\n"
                                              "odd:x:12a:0\n"
                                              "short:x\n"
                                              "\n"
                                              "big:x:4294967295:0\n"
                                              "too-big:x:4294967296:0\n"
                                              "last:x:70000:70000::/:");
    id_range_reserved_finish(&reserved);
    assert_int_equal(reserved.count, 3);
    assert_true(id_range_reserved_has(&reserved, 0, 1));
    assert_false(id_range_reserved_has(&reserved, 1, 65535));
    assert_true(id_range_reserved_has(&reserved, 65536, 65536));
    assert_true(id_range_reserved_has(&reserved, 70000, 1));
    assert_false(id_range_reserved_has(&reserved, 70001, 1000));
    assert_true(id_range_reserved_has(&reserved, UINT32_MAX, 1));
    assert_true(id_range_reserved_has(&reserved, UINT32_MAX, 2));
}

static void promised_ranges_are_joined(void **state)
{
    AUTO(id_range_reserved) struct id_range_reserved reserved = ID_RANGE_RESERVED_INIT;

    (void) state;
    id_range_reserved_add_promised(&reserved, "b:165536:65536\n"
                                              "a:100000:65536\n"
                                              "1000:500000:10\n"
                                              "inside:500003:2\n"
                                              "none:600000:0\n"
                                              "wraps:4294967000:18446744073709551615\n"
                                              "bad:x:5\nbad\n:7000000:1");
    id_range_reserved_finish(&reserved);
    assert_int_equal(reserved.count, 4);
    assert_int_equal(reserved.intervals[0].first, 100000);
    assert_int_equal(reserved.intervals[0].last, 231071);
    assert_int_equal(reserved.intervals[1].last, 500009);
    assert_int_equal(reserved.intervals[2].first, 7000000);
    assert_int_equal(reserved.intervals[3].last, UINT32_MAX);
    assert_false(id_range_reserved_has(&reserved, 600000, 1));
}

static void ids_outside_our_own_map_are_reserved(void **state)
{
    AUTO(id_range_reserved) struct id_range_reserved all = ID_RANGE_RESERVED_INIT;
    AUTO(id_range_reserved) struct id_range_reserved some = ID_RANGE_RESERVED_INIT;
    AUTO(id_range_reserved) struct id_range_reserved none = ID_RANGE_RESERVED_INIT;

    (void) state;
    id_range_reserved_add_unmapped(&all, "         0          0 4294967295\n");
    id_range_reserved_finish(&all);
    assert_int_equal(all.count, 1);
    assert_int_equal(all.intervals[0].first, UINT32_MAX);
    id_range_reserved_add_unmapped(&some, "0 1000 1\n1 100000 65536\n");
    id_range_reserved_finish(&some);
    assert_false(id_range_reserved_has(&some, 0, 65537));
    assert_true(id_range_reserved_has(&some, 65537, 1));
    assert_true(id_range_reserved_has(&some, 0x10000000, 65536));
    id_range_reserved_add_unmapped(&none, "");
    id_range_reserved_finish(&none);
    assert_true(id_range_reserved_has(&none, 0, 1));
}

static void too_many_entries_reserve_everything(void **state)
{
    AUTO(id_range_reserved) struct id_range_reserved reserved = ID_RANGE_RESERVED_INIT;

    (void) state;
    for (uint32_t i = 0; i <= ID_RANGE_RESERVED_MAX; i++)
        id_range_reserved_add(&reserved, i * 4, i * 4);
    id_range_reserved_finish(&reserved);
    assert_true(reserved.overflowed);
    assert_true(id_range_reserved_has(&reserved, 3, 1));
}

static void write_text(const char *folder, const char *name, const char *text)
{
    char path[SCRATCH_SIZE + 32];
    FILE *file;

    (void) snprintf(path, sizeof(path), "%s/%s", folder, name);
    file = fopen(path, "we");
    assert_non_null(file);
    assert_true(fputs(text, file) >= 0);
    assert_int_equal(fclose(file), 0);
}

static void files_may_miss_but_not_be_unreadable(void **state)
{
    AUTO(id_range_reserved) struct id_range_reserved reserved = ID_RANGE_RESERVED_INIT;
    char folder[SCRATCH_SIZE], path[SCRATCH_SIZE + 32];
    struct error err = ERROR_INIT;

    (void) state;
    make_scratch(folder);
    write_text(folder, "passwd", "a:x:5000:1\n");
    write_text(folder, "subgid", "a:100000:10\n");
    assert_int_equal(id_range_reserved_read(&reserved, folder, "/proc/self", &err), 0);
    assert_true(id_range_reserved_has(&reserved, 5000, 1));
    assert_true(id_range_reserved_has(&reserved, 100009, 1));
    assert_int_equal(id_range_reserved_read(&reserved, folder, folder, &err), -1);
    (void) snprintf(path, sizeof(path), "%s/subuid", folder);
    assert_int_equal(mkdir(path, 0700), 0);
    assert_int_equal(id_range_reserved_read(&reserved, folder, "/proc/self", &err), -1);
    assert_non_null(strstr(err.message, "subuid"));
    remove_scratch(folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(accounts_are_reserved_one_by_one),
        cmocka_unit_test(promised_ranges_are_joined),
        cmocka_unit_test(ids_outside_our_own_map_are_reserved),
        cmocka_unit_test(too_many_entries_reserve_everything),
        cmocka_unit_test(files_may_miss_but_not_be_unreadable),
    };

    return cmocka_run_group_tests_name("id_range_reserved", tests, NULL, NULL);
}
