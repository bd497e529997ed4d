/* For tests of keeper jobs only: a pool with disks as sandboxes leave them, and the real
 * burrow-keeper, run to its end. */
#pragma once

#include <poll.h>
#include <signal.h>
#include <sys/xattr.h>

#include "launcher/disk/disk_pool_test_kit.h"
#include "launcher/keeper/keeper_job.h"
#include "launcher/wall/seccomp.h"
#include "sys/file/sys_file.h"
#include "sys/file/sys_memfd.h"

#define NEEDS_KEEPER "a keeper job (root, user namespaces, idmapped mounts, btrfs on a loop device)"
#define PATIENCE_MS  10000
#define PROGRAM_MAX  ((size_t) 64 << 20)
#define SAID_MAX     ((size_t) 8 << 20)

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define IS_SANITIZED 1
#else
#define IS_SANITIZED 0
#endif

static char base_name[64];
static int program = -EBADF; /* a sealed copy: the build may lie where tests mount over */

struct stage {
    struct keeper_host host;
    struct cgroup_host *cgroups;
    struct seccomp_filter filter;
    struct process_limits limits;
};

static const struct disk_pool_options plain_pool = {.kind = DISK_POOL_PLAIN, .reserve = MEGABYTE};

static inline void set_stage(struct stage *stage, const struct disk_pool_options *pool)
{
    struct cgroup_host_options groups = {.name = base_name};
    struct id_range_options ids = {.folder = "/tmp/big/run"};

    enter_pool_place();
    *stage = (struct stage){.host = {.program = program}};
    stage->host.pool = open_pool(pool);
    CHECK_OK(cgroup_host_open(&groups, &stage->cgroups, &test_error));
    CHECK_OK(id_range_table_open(&ids, &stage->host.ids, &test_error));
    CHECK_EQUAL(seccomp_filter_init_keeper(&stage->filter), 0);
    CHECK_EQUAL(process_limits_plan(&stage->limits, 0), 0);
    stage->host.cgroups = stage->cgroups;
    stage->host.filter = &stage->filter;
    stage->host.limits = &stage->limits;
}

/* No job left anything: no range is taken, no group is there. */
static inline void strike_stage(struct stage *stage)
{
    AUTO(free) struct id_range_entry *entries = NULL;
    AUTO(free) struct id *groups = NULL;
    size_t count = 1;

    CHECK_OK(id_range_list(stage->host.ids, &entries, &count, &test_error));
    CHECK_EQUAL(count, 0);
    CHECK_OK(cgroup_list(stage->cgroups, &groups, &count, &test_error));
    CHECK_EQUAL(count, 0);
    cgroup_host_remove_base(stage->cgroups);
    cgroup_host_free(stage->cgroups);
    image_registry_free(stage->host.images);
    id_range_table_free(stage->host.ids);
    CHECK_OK(disk_pool_unmount(stage->host.pool, &test_error));
}

/* --- disks ---------------------------------------------------------------------------------- */

static inline int open_part(struct stage *stage, const struct id *id, const char *part)
{
    AUTO(disk) struct disk disk = DISK_INIT;
    int fd;

    CHECK_OK(disk_pool_open_disk(stage->host.pool, id, &disk, &test_error));
    fd = openat(disk.folder, part, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    CHECK(fd >= 0);
    return fd;
}

static inline void put(int folder, const char *name, uid_t owner, mode_t mode)
{
    AUTO(close) int fd = openat(folder, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);

    CHECK(fd >= 0);
    CHECK_EQUAL(sys_file_write_full(fd, name, strlen(name)), 0);
    CHECK_EQUAL(fchown(fd, owner, owner), 0);
    CHECK_EQUAL(fchmod(fd, mode), 0);
}

/* What sandboxes leave: users of their own, modes that keep us out, whiteouts, odd names. */
static inline void fill_disk(int upper)
{
    AUTO(close) int secret = -EBADF;

    CHECK_EQUAL(mkdirat(upper, "secret", 0700), 0);
    secret = openat(upper, "secret", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    put(secret, "of nobody", 65534, 0);
    put(secret, "set-id", 1000, 06755);
    CHECK_EQUAL(fsetxattr(secret, "user.overlay.opaque", "y", 1, 0), 0);
    CHECK_EQUAL(fchown(secret, 1000, 1000), 0);
    CHECK_EQUAL(fchmod(secret, 0), 0);
    CHECK_EQUAL(mkdirat(upper, "sticky", 0700), 0);
    CHECK_EQUAL(fchownat(upper, "sticky", 7, 7, 0), 0);
    CHECK_EQUAL(fchmodat(upper, "sticky", 01777, 0), 0);
    put(upper, "sticky/of another", 8, 0600);
    put(upper, "new\nline\xff", 0, 0644);
    CHECK_EQUAL(mknodat(upper, "gone", S_IFCHR, 0), 0);
    CHECK_EQUAL(linkat(upper, "gone", upper, "gone too", 0), 0);
    CHECK_EQUAL(symlinkat("/etc/passwd", upper, "link"), 0);
    CHECK_EQUAL(mknodat(upper, "pipe", S_IFIFO | 0640, 0), 0);
    CHECK_EQUAL(fchownat(upper, "pipe", 5, 5, 0), 0);
}

/* An image `test` with a folder /workspace, and on the disk what a sandbox made of it: one file
 * gone, one changed, one new, a folder that hides the image's. */
static inline void make_view(struct stage *stage, int upper)
{
    AUTO(close) int image = -EBADF, folder = -EBADF, above = -EBADF;

    CHECK_EQUAL(mkdir("/tmp/big/image", 0755), 0);
    image = open("/tmp/big/image", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    CHECK_EQUAL(mkdirat(image, "workspace", 0755), 0);
    folder = openat(image, "workspace", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    put(folder, "of the image", 0, 0600);
    put(folder, "changed", 0, 0644);
    put(folder, "deleted", 0, 0644);
    CHECK_EQUAL(mkdirat(folder, "hidden", 0755), 0);
    put(folder, "hidden/by the disk", 0, 0644);
    CHECK_OK(image_registry_open("/tmp/big/images", &stage->host.images, &test_error));
    CHECK_OK(image_add(stage->host.images, "test", "/tmp/big/image", &test_error));

    CHECK_EQUAL(mkdirat(upper, "workspace", 0755), 0);
    above = openat(upper, "workspace", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    put(above, "new", 1000, 0400);
    put(above, "changed", 0, 0600);
    CHECK_EQUAL(mknodat(above, "deleted", S_IFCHR, 0), 0);
    CHECK_EQUAL(mkdirat(above, "hidden", 0755), 0);
    folder = (fd_close(folder), openat(above, "hidden", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    CHECK_EQUAL(fsetxattr(folder, "user.overlay.opaque", "y", 1, 0), 0);
}

/* So many that the list of them does not fit in a pipe: the keeper has to wait for us. */
static inline void fill_much(int upper)
{
    for (int i = 0; i < 2000; i++) {
        char name[32];

        (void) snprintf(name, sizeof(name), "file number %d", i);
        put(upper, name, 0, 0600);
    }
}

/* --- jobs ----------------------------------------------------------------------------------- */

static inline void start_job(struct stage *stage, const struct keeper_spec *spec,
                             struct keeper_job *job, int *ret_reader)
{
    int ends[2];

    CHECK_EQUAL(pipe2(ends, O_CLOEXEC), 0);
    if (keeper_job_start(&stage->host, spec, &(struct keeper_streams){-EBADF, ends[1], -EBADF}, job,
                         &test_error) < 0 &&
        abs(test_error.system) == EINVAL)
        _exit(CHILD_UNABLE); /* a filesystem without id maps: tmpfs before Linux 6.3 */
    CHECK(job->pidfd >= 0);
    (void) close(ends[1]);
    *ret_reader = ends[0];
}

/* Start one that has input (these bytes, unless NULL) and data. */
static inline void start_whole_job(struct stage *stage, const struct keeper_spec *spec,
                                   const char *input, int data, struct keeper_job *job,
                                   int *ret_reader)
{
    AUTO(close) int bytes = -EBADF;
    struct keeper_streams streams = {.data = data};
    int ends[2];

    bytes = sys_memfd_from_bytes("input", SYS_MEMFD_DATA, input, input ? strlen(input) : 0);
    CHECK_EQUAL(pipe2(ends, O_CLOEXEC), 0);
    streams.input = bytes;
    streams.output = ends[1];
    CHECK_OK(keeper_job_start(&stage->host, spec, &streams, job, &test_error));
    (void) close(ends[1]);
    *ret_reader = ends[0];
}

static inline struct sys_exit finish_job(struct stage *stage, struct keeper_job *job)
{
    struct sys_exit ended = {0};

    CHECK(sys_file_poll(job->pidfd, POLLIN, PATIENCE_MS) > 0);
    CHECK_OK(keeper_job_finish(&stage->host, job, &ended, &test_error));
    return ended;
}

/* A disk of a sandbox, for a spec. */
static inline struct keeper_disk make_keeper_disk(struct stage *stage, uint64_t limit)
{
    return (struct keeper_disk){.set = DISK_POOL_DISKS, .id = make_disk(stage->host.pool, limit)};
}

static const struct keeper_streams no_streams = {-EBADF, -EBADF, -EBADF};

/* Everything it writes, up to its end. The caller frees it. */
static inline char *read_said(int reader)
{
    char *said = calloc(1, SAID_MAX + 1);

    CHECK(said != NULL);
    CHECK(sys_file_read_full(reader, said, SAID_MAX) >= 0);
    (void) close(reader);
    return said;
}

static inline char *run_job(struct stage *stage, const struct keeper_spec *spec, int status)
{
    struct keeper_job job = KEEPER_JOB_INIT;
    struct sys_exit ended;
    char *said;
    int reader;

    start_job(stage, spec, &job, &reader);
    said = read_said(reader);
    ended = finish_job(stage, &job);
    if (ended.kind != SYS_EXIT_STATUS || ended.value != status)
        (void) fprintf(stderr, "kind %d value %d, it said: %s\n", (int) ended.kind, ended.value,
                       said);
    CHECK_EQUAL(ended.kind, SYS_EXIT_STATUS);
    CHECK_EQUAL(ended.value, status);
    return said;
}

static inline char *run_whole_job(struct stage *stage, const struct keeper_spec *spec,
                                  const char *input, int data, int status)
{
    struct keeper_job job = KEEPER_JOB_INIT;
    struct sys_exit ended;
    char *said;
    int reader;

    start_whole_job(stage, spec, input, data, &job, &reader);
    said = read_said(reader);
    ended = finish_job(stage, &job);
    if (ended.kind != SYS_EXIT_STATUS || ended.value != status)
        (void) fprintf(stderr, "kind %d value %d, it said: %s\n", (int) ended.kind, ended.value,
                       said);
    CHECK_EQUAL(ended.kind, SYS_EXIT_STATUS);
    CHECK_EQUAL(ended.value, status);
    return said;
}

static inline void check_says(const char *text, const char *words)
{
    if (strstr(text, words))
        return;
    (void) fprintf(stderr, "'%s' is not in:\n%s\n", words, text);
    _exit(1);
}

static inline int count_lines(const char *text)
{
    int lines = 0;

    for (; *text; text++)
        lines += *text == '\n';
    return lines;
}

/* --- the tests ------------------------------------------------------------------------------ */

/* Whatever became of the child: its groups go. */
static inline int remove_groups(void **state)
{
    struct cgroup_host_options options = {.name = base_name};
    AUTO(cgroup_host) struct cgroup_host *host = NULL;
    AUTO(free) struct id *ids = NULL;
    size_t count = 0;

    (void) state;
    if (cgroup_host_open(&options, &host, NULL) < 0)
        return -1;
    (void) cgroup_list(host, &ids, &count, NULL);
    for (size_t i = 0; i < count; i++) {
        struct cgroup cgroup;

        /* Its process died with the child that had started it. */
        if (cgroup_adopt(host, &ids[i], &cgroup, NULL, NULL) == 0)
            (void) cgroup_remove(&cgroup, PATIENCE_MS, NULL);
    }
    cgroup_host_remove_base(host);
    return 0;
}

static inline void run_with_keeper(void (*body)(void))
{
    if (IS_SANITIZED)
        skip_without("a program without sanitizers, which the walls do not let run");
    assert_true(program >= 0);
    run_in_child(body, NEEDS_KEEPER);
}

/* First of all: take the keeper, which the build puts beside us, and choose names. */
static inline void load_program(void)
{
    AUTO(free) char *bytes = NULL;
    char path[PATH_MAX];
    ssize_t length = readlink("/proc/self/exe", path, sizeof(path) - 64);
    size_t size = 0;
    char *slash;

    (void) snprintf(base_name, sizeof(base_name), "burrow-test-%d", (int) getpid());
    if (length < 0)
        return;
    path[length] = '\0';
    slash = strrchr(path, '/');
    (void) snprintf(slash, 64, "/programs/burrow-keeper");
    if (sys_file_read_all(AT_FDCWD, path, PROGRAM_MAX, &bytes, &size) < 0) {
        (void) fprintf(stderr, "there is no %s\n", path);
        return;
    }
    program = sys_memfd_from_bytes("keeper", SYS_MEMFD_PROGRAM, bytes, size);
    if (program >= 0 && process_limit_hide_image(program) < 0)
        program = fd_close(program);
}
