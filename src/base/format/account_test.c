#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/auto.h"
#include "base/format/account.h"
/* After the headers it needs. */
#include <cmocka.h>

static const char passwd[] = "root:x:0:0:root:/root:/bin/bash\n"
                             "broken:x:1:1\n"
                             "too:x:2:2:a:b:c:d\n"
                             "text:x:two:2::/:/bin/sh\n"
                             "empty:x:3:4:::\n"
                             "again:x:0:9::/other:/bin/sh\n"
                             "last:x:4294967294:5::/last:/bin/false";

static void the_first_line_of_a_uid_counts(void **state)
{
    struct account account;

    (void) state;
    assert_int_equal(account_find(passwd, 0, &account), 0);
    assert_string_equal(account.name, "root");
    assert_string_equal(account.home, "/root");
    assert_string_equal(account.shell, "/bin/bash");
    assert_int_equal(account_find(passwd, 3, &account), 0);
    assert_int_equal(account.gid, 4);
    assert_string_equal(account.home, "");
}

static void names_and_numbers_find_the_same(void **state)
{
    struct account account;

    (void) state;
    assert_int_equal(account_find_name(passwd, "last", &account), 0);
    assert_int_equal(account.gid, 5);
    assert_int_equal(account_find_name(passwd, "4294967294", &account), 0);
    assert_string_equal(account.name, "last");
    assert_int_equal(account_find_name(passwd, "broken", &account), -ENOENT);
    assert_int_equal(account_find_name(passwd, "las", &account), -ENOENT);
    assert_int_equal(account_find_name(passwd, "99", &account), -ENOENT);
    assert_int_equal(account_find_name(passwd, "", &account), -ENOENT);
}

static void a_last_line_without_newline_counts(void **state)
{
    struct account account;

    (void) state;
    assert_int_equal(account_find(passwd, 4294967294u, &account), 0);
    assert_string_equal(account.home, "/last");
}

static void malformed_lines_are_passed_over(void **state)
{
    struct account account;

    (void) state;
    assert_int_equal(account_find(passwd, 1, &account), -ENOENT);
    assert_int_equal(account_find(passwd, 2, &account), -ENOENT);
    assert_int_equal(account_find("", 0, &account), -ENOENT);
}

static void fields_that_are_too_long_are_passed_over(void **state)
{
    char line[2 * ACCOUNT_FIELD_MAX], home[ACCOUNT_FIELD_MAX + 1];
    struct account account;

    (void) state;
    memset(home, 'h', sizeof(home));
    home[ACCOUNT_FIELD_MAX] = '\0';
    (void) snprintf(line, sizeof(line), "a:x:7:7::%s:/bin/sh\n", home);
    assert_int_equal(account_find(line, 7, &account), -ENOENT);
    (void) snprintf(line, sizeof(line), "a:x:7:7::%s:/bin/sh\n", home + 1);
    assert_int_equal(account_find(line, 7, &account), 0);
}

static void owners_are_names_or_numbers_with_or_without_a_group(void **state)
{
    static const char group[] = "root:x:0:\nstaff:x:50:last\nodd:x\n";
    struct account account;

    (void) state;
    assert_int_equal(account_find_owner(passwd, group, "last:staff", &account), 0);
    assert_int_equal(account.uid, 4294967294u);
    assert_int_equal(account.gid, 50);
    assert_string_equal(account.home, "/last");
    assert_int_equal(account_find_owner(passwd, group, "last", &account), 0);
    assert_int_equal(account.gid, 5);
    assert_int_equal(account_find_owner("", "", "1000", &account), 0);
    assert_int_equal(account.uid, 1000);
    assert_int_equal(account.gid, 0);
    assert_string_equal(account.home, "/");
    assert_string_equal(account.name, "1000");
    assert_int_equal(account_find_owner("", "", "1000:1001", &account), 0);
    assert_int_equal(account.gid, 1001);
    assert_int_equal(account_find_owner(passwd, group, "none", &account), -ENOENT);
    assert_int_equal(account_find_owner(passwd, group, "last:none", &account), -ENOENT);
    assert_int_equal(account_find_owner(passwd, group, "last:odd", &account), -ENOENT);
    assert_int_equal(account_find_owner(passwd, group, "last:", &account), -EINVAL);
    assert_int_equal(account_find_owner(passwd, group, ":5", &account), -EINVAL);
}

static void an_owner_without_a_group_is_in_all_that_name_it(void **state)
{
    static const char accounts[] = "app:x:1000:1001::/home/app:/bin/sh\n";
    static const char groups[] = "a:x:1:app\nb:x:2:other,app\nc:x:3:app,other\nd:x:4:apps,ap\n"
                                 "e:x:5:\nf:x:6\ng:x:odd:app\nh:x:1001:app\n:x:7:x,app,y\napp";
    static const gid_t expected[] = {1001, 1, 2, 3, 7};
    struct account account;

    (void) state;
    assert_int_equal(account_find_owner(accounts, groups, "app", &account), 0);
    assert_int_equal(account.group_count, ARRAY_COUNT(expected));
    assert_memory_equal(account.groups, expected, sizeof(expected));
    assert_int_equal(account_find_owner(accounts, groups, "1000", &account), 0);
    assert_int_equal(account.group_count, ARRAY_COUNT(expected));
    assert_int_equal(account_find_owner(accounts, groups, "app:b", &account), 0);
    assert_int_equal(account.group_count, 1);
    assert_int_equal(account.groups[0], 2);
    assert_int_equal(account_find_owner("", groups, "42", &account), 0);
    assert_int_equal(account.group_count, 1);
    assert_int_equal(account.groups[0], 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_first_line_of_a_uid_counts),
        cmocka_unit_test(names_and_numbers_find_the_same),
        cmocka_unit_test(owners_are_names_or_numbers_with_or_without_a_group),
        cmocka_unit_test(an_owner_without_a_group_is_in_all_that_name_it),
        cmocka_unit_test(a_last_line_without_newline_counts),
        cmocka_unit_test(malformed_lines_are_passed_over),
        cmocka_unit_test(fields_that_are_too_long_are_passed_over),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
