#include "sys/sys_probe.h"
#include "sys/sys_test.h"

static int reset(void **state)
{
    (void) state;
    sys_feature_pretend(0);
    return 0;
}

static void a_pretended_feature_is_probed_as_missing(void **state)
{
    (void) state;
    for (int feature = 0; feature < SYS_FEATURE_COUNT; feature++) {
        sys_feature_pretend(SYS_FEATURE_BIT(feature));
        assert_int_equal(sys_probe(feature), 0);
    }
}

static void probing_leaves_nothing_behind(void **state)
{
    int before = count_descriptors();

    (void) state;
    for (int feature = 0; feature < SYS_FEATURE_COUNT; feature++) {
        int result = sys_probe(feature);

        /* No terminals in a bare chroot: -errno is an answer too. */
        assert_true(result == 0 || result == 1 || feature == SYS_FEATURE_PTY_PEER);
    }
    assert_int_equal(count_descriptors(), before);
    assert_int_equal(waitpid(-1, NULL, WNOHANG), -1);
}

static void the_kernel_we_demand_has_these(void **state)
{
    static const enum sys_feature always[] = {
        SYS_FEATURE_OPENAT2,     SYS_FEATURE_CLONE3,    SYS_FEATURE_CLOSE_RANGE,
        SYS_FEATURE_PIDFD_GETFD, SYS_FEATURE_MOUNT_API, SYS_FEATURE_MOUNT_SETATTR,
    };

    (void) state;
    for (size_t i = 0; i < ARRAY_COUNT(always); i++) {
        if (sys_probe(always[i]) != 1)
            skip_without("a kernel call hidden by seccomp");
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(a_pretended_feature_is_probed_as_missing, reset),
        cmocka_unit_test_teardown(probing_leaves_nothing_behind, reset),
        cmocka_unit_test_teardown(the_kernel_we_demand_has_these, reset),
    };

    return cmocka_run_group_tests_name("sys_probe", tests, NULL, NULL);
}
