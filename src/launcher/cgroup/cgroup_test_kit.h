/* For the tests of the cgroup modules only: hosts made of plain files, and real groups with
 * processes in them that are gone after every test, whatever happened in it. */
#pragma once

#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#include "base/fault.h"
#include "base/memory.h"
#include "launcher/cgroup/cgroup.h"
#include "launcher/cgroup/cgroup_freeze.h"
#include "launcher/cgroup/cgroup_host.h"
#include "sys/file/sys_file.h"
#include "sys/sys_test.h"

#define MEGABYTE (1ULL << 20)

/* Long enough for a machine that does a hundred other things; nobody waits that long otherwise. */
#define PATIENCE_MS 10000

static inline void sleep_ms(long milliseconds)
{
    (void) nanosleep(
        &(struct timespec){.tv_sec = milliseconds / 1000, .tv_nsec = milliseconds % 1000 * 1000000},
        NULL);
}

/* ---- a host of plain files ---- */

struct fake {
    char root[SCRATCH_SIZE];
    char self[PATH_MAX];
    char mounts[PATH_MAX];
};

static inline void fake_path(const struct fake *fake, const char *path, char ret_path[PATH_MAX])
{
    (void) snprintf(ret_path, PATH_MAX, "%s/%s", fake->root, path);
}

/* A file with this content, and the directories it needs. */
static inline void fake_file(const struct fake *fake, const char *path, const char *content)
{
    char full[PATH_MAX], parent[PATH_MAX];
    const char *name;

    fake_path(fake, path, full);
    assert_int_equal(sys_file_split(full, parent, sizeof(parent), &name), 0);
    assert_int_equal(sys_file_make_directories(AT_FDCWD, parent, 0755), 0);
    assert_int_equal(sys_file_replace(AT_FDCWD, full, content, strlen(content), 0644), 0);
}

static inline void fake_directory(const struct fake *fake, const char *path)
{
    char full[PATH_MAX];

    fake_path(fake, path, full);
    assert_int_equal(sys_file_make_directories(AT_FDCWD, full, 0755), 0);
}

static inline void assert_file_holds(const struct fake *fake, const char *path, const char *content)
{
    char full[PATH_MAX];
    AUTO(free) char *data = NULL;
    size_t length;

    fake_path(fake, path, full);
    assert_int_equal(sys_file_read_all(AT_FDCWD, full, 4096, &data, &length), 0);
    assert_string_equal(data, content);
}

/* `mounts` has "%s" where the root goes, one line with at most one of them per mount. */
static inline void fake_init(struct fake *fake, const char *self, const char *const *mounts)
{
    char text[8192];
    size_t used = 0;

    make_scratch(fake->root);
    for (; *mounts; mounts++) {
        const char *at = strstr(*mounts, "%s");

        used += (size_t) snprintf(text + used, sizeof(text) - used, "%.*s%s%s\n",
                                  (int) (at - *mounts), *mounts, fake->root, at + 2);
    }
    fake_file(fake, "self", self);
    fake_file(fake, "mountinfo", text);
    fake_path(fake, "self", fake->self);
    fake_path(fake, "mountinfo", fake->mounts);
}

static inline struct cgroup_host *fake_open(const struct fake *fake)
{
    struct cgroup_host_options options = {
        .name = "burrow", .self_cgroup = fake->self, .mountinfo = fake->mounts};
    struct cgroup_host *host;
    struct error err = ERROR_INIT;

    if (cgroup_host_open(&options, &host, &err) < 0)
        fail_msg("%s", err.message);
    return host;
}

/* ---- real groups ---- */

struct variant {
    bool without_v2;
};

/* Who names the groups and removes them at the end, set before any test runs. */
static pid_t guardian;

struct real {
    const struct variant *variant;
    char name[48];
    struct cgroup_host *host;
    struct limits limits;
    pid_t children[8]; /* started by the test and not yet waited for */
    size_t child_count;
    volatile uint64_t *shared; /* eight numbers that children write */
};

static inline struct cgroup_host *real_open(const struct real *real)
{
    struct cgroup_host_options options = {.name = real->name,
                                          .without_v2 = real->variant->without_v2};
    struct cgroup_host *host;
    struct error err = ERROR_INIT;

    if (cgroup_host_open(&options, &host, &err) < 0)
        fail_msg("%s", err.message);
    return host;
}

static inline int real_setup(void **state)
{
    struct real *real = calloc(1, sizeof(*real));

    assert_non_null(real);
    real->variant = *state;
    (void) snprintf(real->name, sizeof(real->name), "burrow-test-%d", (int) guardian);
    real->host = real_open(real);
    real->shared = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    assert_true((void *) real->shared != MAP_FAILED);
    *state = real;
    return 0;
}

/* Kill and remove all that is left under a base, and the base, and insist that nothing stays. */
static inline int remove_everything(const struct cgroup_host *host)
{
    AUTO(free) struct id *ids = NULL;
    struct error err = ERROR_INIT;
    size_t count = 0;
    int result = cgroup_list(host, &ids, &count, &err);

    for (size_t i = 0; i < count; i++) {
        struct cgroup cgroup = {.host = host, .id = ids[i]};

        if (cgroup_kill(&cgroup, PATIENCE_MS, &err) < 0 ||
            cgroup_remove(&cgroup, PATIENCE_MS, &err) < 0)
            result = -1;
    }
    cgroup_host_remove_base(host);
    for (unsigned int i = 0; i < CGROUP_CONTROLLER_COUNT; i++) {
        const char *place = cgroup_host_place(host, i);

        if (place && access(place, F_OK) == 0)
            result = error_set(&err, ERR_INTERNAL, 0, "%s is left over", place);
    }
    if (result < 0)
        print_error("%s\n", err.message);
    return result;
}

static inline int real_teardown(void **state)
{
    struct real *real = *state;
    int result = remove_everything(real->host);

    for (size_t i = 0; i < real->child_count; i++) {
        (void) kill(real->children[i], SIGKILL);
        (void) waitpid(real->children[i], NULL, 0);
    }
    (void) munmap((void *) real->shared, 4096);
    cgroup_host_free(real->host);
    free(real);
    return result;
}

static inline struct cgroup real_create(struct real *real, const struct limits *limits)
{
    struct id id = id_new();
    struct error err = ERROR_INIT;
    struct cgroup cgroup;

    if (cgroup_create(real->host, &id, limits, &cgroup, &err) < 0)
        fail_msg("%s", err.message);
    return cgroup;
}

/* fork for tests: a child that crashes dies, and does not jump back into the runner as cmocka's
 * handlers would make it, to go on with the next test there. */
static inline pid_t fork_child(void)
{
    static const int crashes[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT};
    pid_t pid = fork();

    assert_true(pid >= 0);
    for (size_t i = 0; pid == 0 && i < ARRAY_COUNT(crashes); i++)
        (void) signal(crashes[i], SIG_DFL);
    return pid;
}

/* Run `body` in a child inside `agent` or `work`, the way a sandbox gets there. */
static inline pid_t real_start(struct real *real, const struct cgroup *cgroup,
                               enum cgroup_part part, void (*body)(struct real *))
{
    AUTO(cgroup_entry) struct cgroup_entry entry = CGROUP_ENTRY_INIT;
    struct error err = ERROR_INIT;
    pid_t pid;

    if (cgroup_entry_open(cgroup, false, &entry, &err) < 0)
        fail_msg("%s", err.message);
    assert_true(real->child_count < ARRAY_COUNT(real->children));
    pid = fork_child();
    if (pid == 0) {
        CHECK_EQUAL(cgroup_enter(entry.agent, entry.agent_count), 0);
        if (part == CGROUP_WORK)
            CHECK_EQUAL(cgroup_enter(entry.work, entry.work_count), 0);
        body(real);
        _exit(0);
    }
    real->children[real->child_count++] = pid;
    return pid;
}

/* How that child ended, as waitpid says. */
static inline int real_wait(struct real *real, pid_t pid)
{
    int status = 0;

    while (waitpid(pid, &status, 0) < 0)
        assert_int_equal(errno, EINTR);
    for (size_t i = 0; i < real->child_count; i++) {
        if (real->children[i] == pid)
            real->children[i] = real->children[--real->child_count];
    }
    return status;
}

static inline void assert_ended_well(int status)
{
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
}

static inline void assert_killed(int status)
{
    assert_true(WIFSIGNALED(status));
    assert_int_equal(WTERMSIG(status), SIGKILL);
}

/* Wait until a shared number is more than `than`. */
static inline bool grows_beyond(const struct real *real, size_t index, uint64_t than)
{
    for (int i = 0; i < PATIENCE_MS && real->shared[index] <= than; i++)
        sleep_ms(1);
    return real->shared[index] > than;
}

/* Whether a shared number does not change for a while. */
static inline bool stands_still(const struct real *real, size_t index)
{
    uint64_t before = real->shared[index];

    sleep_ms(40);
    return real->shared[index] == before;
}

/* Leave the test when this host cannot do it at all. */
static inline void needs(const struct real *real, enum cgroup_controller controller)
{
    const char *missing = cgroup_host_missing(real->host, controller);

    if (missing)
        skip_without(missing);
}

static const struct variant variant_v1 = {.without_v2 = true};
static const struct variant variant_best = {.without_v2 = false};

/* One row of the table, to be run with both variants. */
#define REAL_TEST(test, kind)                                                                      \
    {                                                                                              \
        kind ": " #test, test, real_setup, real_teardown,                                          \
            (void *) (strcmp(kind, "v1") == 0 ? &variant_v1 : &variant_best)                       \
    }
#define REAL_TESTS(test) REAL_TEST(test, "v1"), REAL_TEST(test, "v2 first")

/* Which versions this host shows us; bits of enum cgroup_version. */
static inline unsigned int versions_here(void)
{
    AUTO(free) struct cgroup_layout *layout = mem_alloc(sizeof(*layout));
    AUTO(free) char *self = NULL;
    AUTO(free) char *mounts = NULL;
    unsigned int versions = 0;
    size_t length;

    CHECK_EQUAL(sys_file_read_all(AT_FDCWD, "/proc/self/cgroup", 1 << 20, &self, &length), 0);
    CHECK_EQUAL(sys_file_read_all(AT_FDCWD, "/proc/self/mountinfo", 16 << 20, &mounts, &length), 0);
    cgroup_layout_parse(self, mounts, layout);
    for (size_t i = 0; i < layout->count; i++)
        versions |= 1U << layout->hierarchies[i].version;
    return versions;
}

/* In a bare tree nothing is mounted under /sys/fs: mount the kernel's hierarchies for ourselves. */
static inline void mount_cgroups(void)
{
    static const char *const names[] = {"memory", "pids", "cpu", "cpuacct", "freezer", "blkio"};

    CHECK_EQUAL(mkdir("/tmp/unified", 0755), 0);
    (void) syscall(SYS_mount, "cgroup2", "/tmp/unified", "cgroup2", 0, NULL);
    for (size_t i = 0; i < ARRAY_COUNT(names); i++) {
        char place[64];

        (void) snprintf(place, sizeof(place), "/tmp/%s", names[i]);
        CHECK_EQUAL(mkdir(place, 0755), 0);
        /* Fails where v2 has the controller or v1 has it together with another. */
        (void) syscall(SYS_mount, "cgroup", place, "cgroup", 0, names[i]);
    }
}

static inline void cgroups_can_be_used(void **state)
{
    (void) state;
    skip_without("root with a mounted cgroup hierarchy");
}

static inline int run_chosen_tests(const char *name, const struct CMUnitTest *tests, size_t count)
{
    const struct CMUnitTest unable[] = {cmocka_unit_test(cgroups_can_be_used)};
    AUTO(free) struct CMUnitTest *chosen = mem_alloc_array(count, sizeof(*chosen));
    unsigned int versions = geteuid() == 0 ? versions_here() : 0;
    size_t chosen_count = 0;

    if (!versions)
        return cmocka_run_group_tests_name(name, unable, NULL, NULL);
    for (size_t i = 0; i < count; i++) {
        if (tests[i].initial_state != &variant_v1 || versions & 1U << CGROUP_V1)
            chosen[chosen_count++] = tests[i];
    }
    return _cmocka_run_group_tests(name, chosen, chosen_count, NULL, NULL);
}

/* After tests that may have crashed or been interrupted. */
static inline void sweep(void)
{
    static const struct variant *const variants[] = {&variant_v1, &variant_best};

    for (size_t i = 0; geteuid() == 0 && i < ARRAY_COUNT(variants); i++) {
        struct real real = {.variant = variants[i]};

        (void) snprintf(real.name, sizeof(real.name), "burrow-test-%d", (int) guardian);
        real.host = real_open(&real);
        CHECK_EQUAL(remove_everything(real.host), 0);
        cgroup_host_free(real.host);
    }
}

/* Run the table: its v1 rows only where there is v1. The tests run in a child, so that their groups
 * go away also when they crash or somebody presses Ctrl-C. */
static inline int run_real_tests(const char *name, const struct CMUnitTest *tests, size_t count)
{
    int status = 0;
    pid_t pid;

    if (geteuid() == 0 && !versions_here()) {
        enter_private_mounts();
        if (!versions_here())
            mount_cgroups();
    }
    guardian = getpid();
    pid = fork();
    CHECK(pid >= 0);
    if (pid == 0)
        exit(run_chosen_tests(name, tests, count));
    (void) signal(SIGINT, SIG_IGN);
    (void) signal(SIGTERM, SIG_IGN);
    while (waitpid(pid, &status, 0) < 0)
        CHECK_EQUAL(errno, EINTR);
    sweep();
    return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}
