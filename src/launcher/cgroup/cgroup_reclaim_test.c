#include <sys/mman.h>
#include <sys/sysinfo.h>

#include "launcher/cgroup/cgroup_reclaim.h"
#include "launcher/cgroup/cgroup_test_kit.h"

#define CACHED (16 * MEGABYTE)
#define HELD   (32 * MEGABYTE)

static const struct limits some_limits = {.memory_bytes = 128 * MEGABYTE, .pids = 64};

/* Memory that goes without swap, too: of a file that was written back. */
static void fill_the_cache(struct real *real)
{
    char path[] = "/tmp/burrow-reclaim-XXXXXX";
    static char block[1 << 16];
    int fd = mkstemp(path);

    (void) unlink(path);
    for (uint64_t i = 0; fd >= 0 && i < CACHED / sizeof(block); i++)
        CHECK_EQUAL(write(fd, block, sizeof(block)), (ssize_t) sizeof(block));
    CHECK_EQUAL(fsync(fd), 0);
    real->shared[0] = 1;
    for (;;)
        sleep_ms(10);
}

static void what_can_go_goes_and_is_counted(void **state)
{
    struct real *real = *state;
    struct cgroup cgroup = real_create(real, &some_limits);
    struct error err = ERROR_INIT;
    uint64_t bytes = 0;

    needs(real, CGROUP_MEMORY);
    (void) real_start(real, &cgroup, CGROUP_WORK, fill_the_cache);
    assert_true(grows_beyond(real, 0, 0));
    if (cgroup_reclaim(&cgroup, &bytes, &err) < 0)
        fail_msg("%s", err.message);
    assert_true(bytes >= CACHED / 2);
}

static void hold_memory(struct real *real)
{
    char *memory = mmap(NULL, HELD, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    CHECK(memory != MAP_FAILED);
    memset(memory, 7, HELD);
    real->shared[0] = 1;
    for (;;)
        sleep_ms(10);
}

/* The limit of swap is 0, as it is by default: what runs does not use it, what sleeps goes there.
 */
static void memory_of_its_own_goes_to_swap(void **state)
{
    struct real *real = *state;
    struct error err = ERROR_INIT;
    struct cgroup cgroup;
    uint64_t bytes = 0;

    needs(real, CGROUP_MEMORY);
    if (!cgroup_can_reclaim(real->host))
        skip_without("swap");
    cgroup = real_create(real, &some_limits);
    (void) real_start(real, &cgroup, CGROUP_WORK, hold_memory);
    assert_true(grows_beyond(real, 0, 0));
    if (cgroup_reclaim(&cgroup, &bytes, &err) < 0)
        fail_msg("%s", err.message);
    assert_true(bytes >= HELD / 2);
}

static void groups_that_are_not_there_are_not_found(void **state)
{
    struct real *real = *state;
    struct cgroup cgroup = {.host = real->host, .id = id_new()};
    struct error err = ERROR_INIT;
    uint64_t bytes;

    needs(real, CGROUP_MEMORY);
    assert_int_equal(cgroup_reclaim(&cgroup, &bytes, &err), -1);
    assert_int_equal(err.code, ERR_NOT_FOUND);
}

static void a_host_without_swap_says_so(void **state)
{
    struct real *real = *state;
    struct sysinfo system;

    needs(real, CGROUP_MEMORY);
    assert_int_equal(sysinfo(&system), 0);
    assert_int_equal(cgroup_can_reclaim(real->host), system.totalswap > 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        REAL_TESTS(what_can_go_goes_and_is_counted),
        REAL_TESTS(memory_of_its_own_goes_to_swap),
        REAL_TESTS(groups_that_are_not_there_are_not_found),
        REAL_TESTS(a_host_without_swap_says_so),
    };

    return run_real_tests("cgroup_reclaim", tests, ARRAY_COUNT(tests));
}
