/* The walls around a keeper job, looked at from outside while it runs. */
#include "launcher/keeper/keeper_job_test_kit.h"

static char *read_of(pid_t pid, const char *file)
{
    char path[64], *text = NULL;
    size_t length;

    (void) snprintf(path, sizeof(path), "/proc/%d/%s", (int) pid, file);
    CHECK_EQUAL(sys_file_read_all(AT_FDCWD, path, SAID_MAX, &text, &length), 0);
    return text;
}

static void check_mounts(pid_t pid)
{
    AUTO(free) char *mounts = read_of(pid, "mountinfo");

    CHECK_EQUAL(count_lines(mounts), 2);
    check_says(mounts, " / / ro,nosuid,nodev,noexec");
    check_says(mounts, " /disk ro,nosuid,nodev,noexec,noatime");
}

static void check_rights(pid_t pid, enum keeper_task task)
{
    static const char *const sets[] = {"CapPrm", "CapEff", "CapBnd"};
    AUTO(free) char *status = read_of(pid, "status");

    for (size_t i = 0; i < ARRAY_COUNT(sets); i++) {
        char line[64];

        (void) snprintf(line, sizeof(line), "%s:\t%016llx\n", sets[i],
                        (unsigned long long) keeper_job_capabilities(task));
        check_says(status, line);
    }
    check_says(status, "NoNewPrivs:\t1\n");
    check_says(status, "Seccomp:\t2\n");
    CHECK(strstr(status, "Uid:\t0\t") == NULL);
}

static void check_network(pid_t pid)
{
    AUTO(free) char *devices = read_of(pid, "net/dev");

    CHECK_EQUAL(count_lines(devices), 3); /* two of heading, and loopback */
    check_says(devices, " lo:");
}

/* What a descriptor of the job is, or "". */
static void read_descriptor(pid_t pid, int fd, char *ret_target, size_t size)
{
    char path[64];
    ssize_t length;

    (void) snprintf(path, sizeof(path), "/proc/%d/fd/%d", (int) pid, fd);
    length = readlink(path, ret_target, size - 1);
    ret_target[length < 0 ? 0 : length] = '\0';
}

/* 0, 1, 2, perhaps the data, and the folders it is in. */
static void check_descriptors(pid_t pid, bool has_data)
{
    char data[64];
    char path[64];
    DIR *folder;
    const struct dirent *entry;
    int count = 0;

    (void) snprintf(path, sizeof(path), "/proc/%d/fd", (int) pid);
    folder = opendir(path);
    CHECK(folder != NULL);
    while ((entry = readdir(folder))) {
        char target[256] = "";

        if (entry->d_name[0] == '.')
            continue;
        count++;
        CHECK(readlinkat(dirfd(folder), entry->d_name, target, sizeof(target) - 1) > 0);
        CHECK(strcmp(target, "/dev/null") == 0 || strncmp(target, "pipe:", 5) == 0 ||
              strncmp(target, "/memfd:input", 12) == 0 ||
              strncmp(target, "/memfd:trace", 12) == 0 || strncmp(target, "/disk", 5) == 0 ||
              strstr(target, "/disks/") != NULL);
    }
    (void) closedir(folder);
    CHECK(count >= 4 && count <= 7);
    read_descriptor(pid, 3, data, sizeof(data));
    CHECK_EQUAL(strncmp(data, "pipe:", 5) == 0, has_data);
}

static void check_root(pid_t pid)
{
    char path[64];
    DIR *folder;
    const struct dirent *entry;

    (void) snprintf(path, sizeof(path), "/proc/%d/root", (int) pid);
    folder = opendir(path);
    CHECK(folder != NULL);
    while ((entry = readdir(folder)))
        CHECK(entry->d_name[0] == '.' || strcmp(entry->d_name, "disk") == 0);
    (void) closedir(folder);
}

static bool is_same_namespace(pid_t pid, const char *type)
{
    char path[64];
    struct stat ours, its;

    (void) snprintf(path, sizeof(path), "/proc/self/ns/%s", type);
    CHECK_EQUAL(stat(path, &ours), 0);
    (void) snprintf(path, sizeof(path), "/proc/%d/ns/%s", (int) pid, type);
    CHECK_EQUAL(stat(path, &its), 0);
    return ours.st_ino == its.st_ino;
}

static void check_namespaces(pid_t pid)
{
    static const char *const types[] = {"user", "mnt", "pid", "net", "ipc", "uts", "cgroup"};

    for (size_t i = 0; i < ARRAY_COUNT(types); i++)
        CHECK(!is_same_namespace(pid, types[i]));
}

static void look_at_a_running_job(void)
{
    struct stage stage;
    struct keeper_spec spec = {.task = KEEPER_LIST,
                               .limits = {.memory_bytes = 128 * MEGABYTE, .pids = 8}};
    struct keeper_job job = KEEPER_JOB_INIT;
    AUTO(close) int upper = -EBADF;
    AUTO(free) char *said = NULL;
    struct sys_exit ended;
    int reader, leak;

    set_stage(&stage, &small_pool);
    leak = open("/", O_RDONLY | O_DIRECTORY); /* somebody forgot to have it closed by exec */
    CHECK(leak >= 0);
    spec.disk = make_keeper_disk(&stage, 0);
    upper = open_part(&stage, &spec.disk.id, DISK_UPPER);
    fill_much(upper);
    start_job(&stage, &spec, &job, &reader);
    CHECK(sys_file_poll(reader, POLLIN, PATIENCE_MS) > 0); /* it is at work, and soon has to wait */
    CHECK_EQUAL(keeper_job_finish(&stage.host, &job, &ended, &test_error), -1);
    CHECK_EQUAL(test_error.code, ERR_CONFLICT);
    check_mounts(job.pid);
    check_rights(job.pid, KEEPER_LIST);
    check_network(job.pid);
    check_descriptors(job.pid, false);
    check_root(job.pid);
    check_namespaces(job.pid);
    said = read_of(job.pid, "cgroup");
    check_says(said, job.id.text);
    free(said);
    said = read_said(reader);
    check_says(said, "{\"path\":\"u/file number 1999\",");
    check_says(said, "\n{\"entries\":2003}\n");
    ended = finish_job(&stage, &job);
    CHECK_EQUAL(ended.kind, SYS_EXIT_STATUS);
    CHECK_EQUAL(ended.value, 0);
    (void) close(leak);
    strike_stage(&stage);
}

/* A job that waits for somebody to take its data. */
static void look_at_a_view_with_data(void)
{
    struct stage stage;
    struct keeper_spec spec = {.task = KEEPER_READ, .image = "test"};
    struct keeper_job job = KEEPER_JOB_INIT;
    AUTO(close) int upper = -EBADF;
    AUTO(free) char *mounts = NULL, *said = NULL;
    char path[128];
    int reader, error, data[2];

    set_stage(&stage, &small_pool);
    spec.disk = make_keeper_disk(&stage, 0);
    upper = open_part(&stage, &spec.disk.id, DISK_UPPER);
    make_view(&stage, upper);
    CHECK_EQUAL(write_file(upper, "workspace/large", MEGABYTE, &error), MEGABYTE);
    CHECK_EQUAL(pipe2(data, O_CLOEXEC), 0);
    start_whole_job(&stage, &spec, "{\"folder\":\"/workspace\"}\n{\"path\":\"large\"}\n", data[1],
                    &job, &reader);
    (void) close(data[1]);
    CHECK(sys_file_poll(data[0], POLLIN, PATIENCE_MS) > 0);
    mounts = read_of(job.pid, "mountinfo");
    CHECK_EQUAL(count_lines(mounts), 2); /* the layers under the view are not seen */
    check_says(mounts, " / / ro,nosuid,nodev,noexec");
    check_says(mounts, " /disk ro,nosuid,nodev,noexec,noatime - overlay overlay ro,");
    check_rights(job.pid, KEEPER_READ);
    check_descriptors(job.pid, true);
    check_root(job.pid);
    check_namespaces(job.pid);
    (void) snprintf(path, sizeof(path), "/proc/%d/root/disk/workspace/made", (int) job.pid);
    CHECK(open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600) < 0 && errno == EROFS);
    (void) snprintf(path, sizeof(path), "/proc/%d/root/disk/workspace/of the image", (int) job.pid);
    CHECK(unlink(path) < 0 && errno == EROFS);
    (void) close(data[0]); /* nobody takes it any more */
    said = read_said(reader);
    check_says(said, "{\"error\":{\"code\":\"cancelled\"");
    CHECK_EQUAL(finish_job(&stage, &job).value, 1);
    strike_stage(&stage);
}

static void a_view_is_read_only_and_data_gives_nothing_else_away(void **state)
{
    (void) state;
    run_with_keeper(look_at_a_view_with_data);
}

static void a_job_sees_its_disk_and_nothing_else(void **state)
{
    (void) state;
    run_with_keeper(look_at_a_running_job);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(a_job_sees_its_disk_and_nothing_else, remove_groups),
        cmocka_unit_test_teardown(a_view_is_read_only_and_data_gives_nothing_else_away,
                                  remove_groups),
    };

    load_program();
    return cmocka_run_group_tests_name("keeper_job_walls", tests, NULL, NULL);
}
