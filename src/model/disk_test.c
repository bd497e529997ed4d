#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "model/disk.h"
/* After the headers it needs. */
#include <cmocka.h>

/* Letters by part: on, base, target, image, input, data. A: always, M: it does not matter, -:
 * never. Written down a second time, as the documents say it. */
static const char *const expected[DISK_JOB_COUNT] = {
    [DISK_JOB_DELETE] = "A---MM", [DISK_JOB_MEASURE] = "A---MM", [DISK_JOB_LIST] = "A---MM",
    [DISK_JOB_COPY] = "A-A-MM",   [DISK_JOB_DIFF] = "AA--MM",    [DISK_JOB_PACK] = "AM--MA",
    [DISK_JOB_UNPACK] = "--A-AM", [DISK_JOB_ARCHIVE] = "A--AAA", [DISK_JOB_UNARCHIVE] = "----AA",
    [DISK_JOB_SCAN] = "A--AAM",   [DISK_JOB_READ] = "A--AAA",
};

static bool fits(const char *letters, unsigned int given)
{
    for (unsigned int part = 0; part < DISK_JOB_PART_COUNT; part++) {
        bool is_given = given >> part & 1;

        if ((letters[part] == 'A' && !is_given) || (letters[part] == '-' && is_given))
            return false;
    }
    return true;
}

static void a_job_is_given_what_it_needs_and_nothing_else(void **state)
{
    (void) state;
    for (int kind = 0; kind < DISK_JOB_COUNT; kind++) {
        for (unsigned int given = 0; given < 1U << DISK_JOB_PART_COUNT; given++) {
            struct error err = ERROR_INIT;
            int result = disk_job_check((enum disk_job_kind) kind, given, ~0U, &err);

            assert_int_equal(result, fits(expected[kind], given) ? 0 : -1);
            if (result < 0) {
                assert_int_equal(err.code, ERR_INVALID);
                assert_non_null(strstr(err.message, disk_job_text((enum disk_job_kind) kind)));
            }
        }
    }
}

static void parts_that_are_not_looked_at_do_not_matter(void **state)
{
    struct error err = ERROR_INIT;

    (void) state;
    assert_int_equal(disk_job_check(DISK_JOB_PACK, 1U << DISK_JOB_ON, 1U << DISK_JOB_ON, &err), 0);
    assert_int_equal(disk_job_check(DISK_JOB_PACK, 0, 1U << DISK_JOB_ON, &err), -1);
    assert_int_equal(disk_job_check((enum disk_job_kind) DISK_JOB_COUNT, 0, 0, &err), -1);
}

static void views_are_the_jobs_with_an_image(void **state)
{
    (void) state;
    for (int kind = 0; kind < DISK_JOB_COUNT; kind++)
        assert_int_equal(disk_job_is_view((enum disk_job_kind) kind),
                         expected[kind][DISK_JOB_IMAGE] == 'A');
    assert_false(disk_job_is_view((enum disk_job_kind) DISK_JOB_COUNT));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_job_is_given_what_it_needs_and_nothing_else),
        cmocka_unit_test(parts_that_are_not_looked_at_do_not_matter),
        cmocka_unit_test(views_are_the_jobs_with_an_image),
    };

    return cmocka_run_group_tests_name("disk", tests, NULL, NULL);
}
