#include <stdlib.h>
#include <string.h>

#include "sys/sys_test.h"

static int reset(void **state)
{
    (void) state;
    sys_feature_pretend(0);
    return 0;
}

static void nothing_is_pretended_by_default(void **state)
{
    char unknown[SYS_FEATURE_NAME_MAX];

    (void) state;
    for (int feature = 0; feature < SYS_FEATURE_COUNT; feature++)
        assert_false(sys_feature_missing(feature));
    assert_int_equal(sys_feature_init(NULL, unknown), 0);
    assert_int_equal(sys_feature_init("", unknown), 0);
    assert_int_equal(sys_feature_pretend(0), 0);
}

static void named_features_are_missing_and_others_not(void **state)
{
    char unknown[SYS_FEATURE_NAME_MAX];

    (void) state;
    assert_int_equal(sys_feature_init("clone3,openat2,", unknown), 0);
    assert_true(sys_feature_missing(SYS_FEATURE_CLONE3));
    assert_true(sys_feature_missing(SYS_FEATURE_OPENAT2));
    assert_false(sys_feature_missing(SYS_FEATURE_CLOSE_RANGE));
}

static void every_feature_is_known_by_its_name(void **state)
{
    char unknown[SYS_FEATURE_NAME_MAX];

    (void) state;
    for (int feature = 0; feature < SYS_FEATURE_COUNT; feature++) {
        assert_true(strlen(sys_feature_name(feature)) < SYS_FEATURE_NAME_MAX);
        assert_true(strlen(sys_feature_consequence(feature)) > 0);
        assert_int_equal(sys_feature_init(sys_feature_name(feature), unknown), 0);
        assert_int_equal(sys_feature_pretend(0), SYS_FEATURE_BIT(feature));
    }
}

static void unknown_names_are_reported_and_change_nothing(void **state)
{
    static const struct {
        const char *list, *unknown;
    } cases[] = {
        {"openat3", "openat3"},
        {"clone3,open", "open"},
        {"clone3,,openat2", ""},
        {" clone3", " clone3"},
        {"Clone3", "Clone3"},
        {"aaaaaaaaaabbbbbbbbbbccccccccccddddd", "aaaaaaaaaabbbbbbbbbbccccccccccd"},
    };
    char unknown[SYS_FEATURE_NAME_MAX];

    (void) state;
    for (size_t i = 0; i < ARRAY_COUNT(cases); i++) {
        sys_feature_pretend(SYS_FEATURE_BIT(SYS_FEATURE_CLOSE_RANGE));
        assert_int_equal(sys_feature_init(cases[i].list, unknown), -EINVAL);
        assert_string_equal(unknown, cases[i].unknown);
        assert_int_equal(sys_feature_pretend(0), SYS_FEATURE_BIT(SYS_FEATURE_CLOSE_RANGE));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(nothing_is_pretended_by_default, reset),
        cmocka_unit_test_teardown(named_features_are_missing_and_others_not, reset),
        cmocka_unit_test_teardown(every_feature_is_known_by_its_name, reset),
        cmocka_unit_test_teardown(unknown_names_are_reported_and_change_nothing, reset),
    };

    return cmocka_run_group_tests_name("sys_feature", tests, NULL, NULL);
}
