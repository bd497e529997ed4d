#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <time.h>

#include "base/fault.h"
#include "sys/file/sys_file.h"
#include "sys/sys_test.h"

struct fixture {
    char path[SCRATCH_SIZE];
    int directory;
};

static int set_up(void **state)
{
    struct fixture *fixture = calloc(1, sizeof(*fixture));

    make_scratch(fixture->path);
    fixture->directory = open(fixture->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    *state = fixture;
    return fixture->directory < 0;
}

static int tear_down(void **state)
{
    struct fixture *fixture = *state;

    fault_disarm(FAULT_SYSTEM_CALL);
    fd_close(fixture->directory);
    remove_scratch(fixture->path);
    free(fixture);
    return 0;
}

static void read_back(int directory, const char *path, const char *expected)
{
    AUTO(free) char *data = NULL;
    size_t length;

    assert_int_equal(sys_file_read_all(directory, path, 1 << 20, &data, &length), 0);
    assert_int_equal(length, strlen(expected));
    assert_string_equal(data, expected);
}

static int count_entries(int directory)
{
    AUTO(close) int copy = openat(directory, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *list = fdopendir(copy);
    int count = 0;

    assert_non_null(list);
    copy = -EBADF;
    while (readdir(list))
        count++;
    closedir(list);
    return count - 2;
}

static void opened_files_close_on_exec(void **state)
{
    struct fixture *fixture = *state;
    AUTO(close)
    int fd = sys_file_open(fixture->directory, "f", O_RDWR | O_CREAT | O_EXCL, 0600);

    assert_true(fd >= 0);
    assert_true(is_close_on_exec(fd));
    assert_int_equal(sys_file_open(fixture->directory, "f", O_CREAT | O_EXCL, 0600), -EEXIST);
    assert_int_equal(sys_file_open(fixture->directory, "none", O_RDONLY, 0), -ENOENT);
}

static void interrupted_calls_are_made_again(void **state)
{
    struct fixture *fixture = *state;
    AUTO(close) int fd = -EBADF;
    char buffer[8];

    fault_arm(FAULT_SYSTEM_CALL, 1, EINTR);
    fd = sys_file_open(fixture->directory, "f", O_RDWR | O_CREAT, 0600);
    assert_true(fault_disarm(FAULT_SYSTEM_CALL));
    assert_true(fd >= 0);
    fault_arm(FAULT_SYSTEM_CALL, 1, EINTR);
    assert_int_equal(sys_file_write_full(fd, "abc", 3), 0);
    assert_true(fault_disarm(FAULT_SYSTEM_CALL));
    fault_arm(FAULT_SYSTEM_CALL, 1, EINTR);
    assert_int_equal(sys_file_pread_full(fd, buffer, sizeof(buffer), 0), 3);
    assert_true(fault_disarm(FAULT_SYSTEM_CALL));
    fault_arm(FAULT_SYSTEM_CALL, 1, EINTR);
    assert_int_equal(sys_file_sync(fd), 0);
    assert_true(fault_disarm(FAULT_SYSTEM_CALL));
}

/* A writer that sends `total` counted bytes through a pipe in pieces of changing size. */
static pid_t start_dribbling(int fd, size_t total, unsigned int seed)
{
    pid_t pid = fork();
    unsigned char byte = 0;

    if (pid != 0)
        return pid;
    while (total > 0) {
        unsigned char piece[97];
        size_t size;

        seed = seed * 1103515245u + 12345u;
        size = (seed >> 16) % sizeof(piece) + 1;
        size = size < total ? size : total;
        for (size_t i = 0; i < size; i++)
            piece[i] = byte++;
        CHECK_EQUAL(write(fd, piece, size), (ssize_t) size);
        total -= size;
    }
    _exit(0);
}

static void reads_are_complete_however_the_bytes_arrive(void **state)
{
    (void) state;
    for (unsigned int seed = 1; seed <= 20; seed++) {
        size_t total = seed * 531;
        AUTO(free) unsigned char *data = malloc(total + 10);
        int ends[2], status;
        pid_t pid;

        assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
        pid = start_dribbling(ends[1], total, seed);
        close(ends[1]);
        assert_int_equal(sys_file_read_full(ends[0], data, total / 2), total / 2);
        assert_int_equal(sys_file_read_full(ends[0], data + total / 2, total), total - total / 2);
        for (size_t i = 0; i < total; i++)
            assert_int_equal(data[i], (unsigned char) i);
        assert_int_equal(sys_file_read_full(ends[0], data, 1), 0);
        close(ends[0]);
        assert_int_equal(waitpid(pid, &status, 0), pid);
        assert_int_equal(status, 0);
    }
}

static void sum_from_pipe(int fd, size_t *ret_count, uint64_t *ret_sum)
{
    unsigned char piece[113];
    ssize_t count;

    *ret_count = 0;
    *ret_sum = 0;
    while ((count = read(fd, piece, sizeof(piece))) > 0) {
        for (ssize_t i = 0; i < count; i++)
            *ret_sum += (uint64_t) piece[i] * (++*ret_count);
    }
}

static void writes_are_complete_however_slowly_they_are_read(void **state)
{
    static unsigned char data[300000];
    uint64_t expected = 0, sum;
    size_t count;
    int ends[2], status;
    pid_t pid;

    (void) state;
    for (size_t i = 0; i < sizeof(data); i++) {
        data[i] = (unsigned char) (i * 7);
        expected += (uint64_t) data[i] * (i + 1);
    }
    assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
    (void) fcntl(ends[1], F_SETPIPE_SZ, 4096);
    pid = fork();
    if (pid == 0) {
        close(ends[0]);
        _exit(sys_file_write_full(ends[1], data, sizeof(data)) != 0);
    }
    close(ends[1]);
    sum_from_pipe(ends[0], &count, &sum);
    close(ends[0]);
    assert_int_equal(count, sizeof(data));
    assert_true(sum == expected);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
}

static void positioned_transfers_do_not_move_the_file(void **state)
{
    struct fixture *fixture = *state;
    AUTO(close) int fd = sys_file_open(fixture->directory, "f", O_RDWR | O_CREAT, 0600);
    char buffer[8] = "";

    assert_int_equal(sys_file_pwrite_full(fd, "later", 5, 10), 0);
    assert_int_equal(sys_file_pread_full(fd, buffer, 3, 11), 3);
    assert_memory_equal(buffer, "ate", 3);
    assert_int_equal(sys_file_pread_full(fd, buffer, sizeof(buffer), 13), 2);
    assert_int_equal(lseek(fd, 0, SEEK_CUR), 0);
    assert_int_equal(sys_file_pread_full(fd, buffer, 1, -1), -EINVAL);
    assert_int_equal(sys_file_pwrite_full(fd, buffer, 1, -1), -EINVAL);
}

static void errors_of_transfers_are_told(void **state)
{
    AUTO(close) int full = open("/dev/full", O_WRONLY | O_CLOEXEC);
    char byte = 0;

    (void) state;
    assert_int_equal(sys_file_read_full(-1, &byte, 1), -EBADF);
    assert_int_equal(sys_file_write_full(-1, &byte, 1), -EBADF);
    assert_int_equal(sys_file_sync(-1), -EBADF);
    if (full >= 0)
        assert_int_equal(sys_file_write_full(full, &byte, 1), -ENOSPC);
}

static void replacing_gives_exactly_the_new_file(void **state)
{
    struct fixture *fixture = *state;
    struct stat status;

    assert_int_equal(sys_file_replace(fixture->directory, "f", "one", 3, 0644), 0);
    read_back(fixture->directory, "f", "one");
    assert_int_equal(sys_file_replace(fixture->directory, "./f", "", 0, 0640), 0);
    read_back(fixture->directory, "f", "");
    assert_int_equal(fstatat(fixture->directory, "f", &status, 0), 0);
    assert_int_equal(status.st_mode & 07777, 0640);
    assert_int_equal(count_entries(fixture->directory), 1);
    assert_int_equal(sys_file_sync_parent(fixture->directory, "f"), 0);
}

static void replacing_a_link_leaves_its_target_alone(void **state)
{
    struct fixture *fixture = *state;
    struct stat status;

    assert_int_equal(sys_file_replace(fixture->directory, "target", "old", 3, 0600), 0);
    assert_int_equal(symlinkat("target", fixture->directory, "link"), 0);
    assert_int_equal(sys_file_replace(fixture->directory, "link", "new", 3, 0600), 0);
    read_back(fixture->directory, "target", "old");
    read_back(fixture->directory, "link", "new");
    assert_int_equal(fstatat(fixture->directory, "link", &status, AT_SYMLINK_NOFOLLOW), 0);
    assert_true(S_ISREG(status.st_mode));
}

/* Every system call on the way fails once; the old content survives unless the rename was done,
 * and no temporary file is left. */
static void a_failed_replacement_leaves_the_old_file(void **state)
{
    struct fixture *fixture = *state;
    bool finished = false;
    int calls;

    assert_int_equal(sys_file_replace(fixture->directory, "f", "old", 3, 0600), 0);
    for (calls = 1; !finished; calls++) {
        AUTO(free) char *data = NULL;
        size_t length;
        int result;

        fault_arm(FAULT_SYSTEM_CALL, (unsigned int) calls, EIO);
        result = sys_file_replace(fixture->directory, "f", "new", 3, 0600);
        finished = !fault_disarm(FAULT_SYSTEM_CALL);
        assert_int_equal(result, finished ? 0 : -EIO);
        assert_int_equal(count_entries(fixture->directory), 1);
        assert_int_equal(sys_file_read_all(fixture->directory, "f", 10, &data, &length), 0);
        assert_true(finished || strcmp(data, "old") == 0 || calls >= 7);
    }
    assert_int_equal(calls - 1, 8);
}

static void paths_without_a_last_component_are_refused(void **state)
{
    static const char *const bad[] = {"", "/", "a/", ".", "..", "a/.", "a/.."};
    static const struct {
        const char *path, *parent, *name;
    } good[] = {{"a", ".", "a"}, {"/a", "/", "a"}, {"a/b", "a", "b"}, {"/a/b/c", "/a/b", "c"}};
    char parent[5];
    const char *name;

    (void) state;
    for (size_t i = 0; i < ARRAY_COUNT(bad); i++)
        assert_int_equal(sys_file_split(bad[i], parent, sizeof(parent), &name), -EINVAL);
    for (size_t i = 0; i < ARRAY_COUNT(good); i++) {
        assert_int_equal(sys_file_split(good[i].path, parent, sizeof(parent), &name), 0);
        assert_string_equal(parent, good[i].parent);
        assert_string_equal(name, good[i].name);
    }
    assert_int_equal(sys_file_split("12345/x", parent, sizeof(parent), &name), -ENAMETOOLONG);
}

static void reading_all_stops_at_the_limit(void **state)
{
    static char bytes[20000];
    static const size_t limits[] = {0, 1, 4095, 4096, 4097, 8192, 8193, 19999};
    struct fixture *fixture = *state;

    memset(bytes, 'x', sizeof(bytes));
    for (size_t i = 0; i < ARRAY_COUNT(limits); i++) {
        for (size_t extra = 0; extra <= 1; extra++) {
            AUTO(free) char *data = NULL;
            size_t length = 0;
            int result;

            assert_int_equal(
                sys_file_replace(fixture->directory, "f", bytes, limits[i] + extra, 0600), 0);
            result = sys_file_read_all(fixture->directory, "f", limits[i], &data, &length);
            assert_int_equal(result, extra ? -EFBIG : 0);
            assert_int_equal(length, extra ? 0 : limits[i]);
            assert_true(extra || data[length] == '\0');
        }
    }
}

static void reading_all_refuses_what_is_no_file(void **state)
{
    struct fixture *fixture = *state;
    AUTO(free) char *data = NULL;
    size_t length;

    assert_int_equal(mkfifoat(fixture->directory, "fifo", 0600), 0);
    assert_int_equal(sys_file_read_all(fixture->directory, "fifo", 10, &data, &length), -EINVAL);
    assert_int_equal(sys_file_read_all(fixture->directory, ".", 10, &data, &length), -EINVAL);
    assert_int_equal(sys_file_read_all(AT_FDCWD, "/dev/zero", 10, &data, &length), -EINVAL);
    assert_int_equal(sys_file_read_all(fixture->directory, "none", 10, &data, &length), -ENOENT);
    assert_null(data);
}

static void files_of_proc_are_read_though_they_have_no_size(void **state)
{
    AUTO(free) char *data = NULL;
    size_t length;

    (void) state;
    if (access("/proc/self/status", R_OK) < 0)
        skip_without("/proc");
    assert_int_equal(sys_file_read_all(AT_FDCWD, "/proc/self/status", 65536, &data, &length), 0);
    assert_true(length > 100);
}

static void directories_are_made_with_their_parents(void **state)
{
    struct fixture *fixture = *state;
    char absolute[SCRATCH_SIZE + 16];
    struct stat status;

    assert_int_equal(sys_file_make_directories(fixture->directory, "a//b/c/", 0700), 0);
    assert_int_equal(sys_file_make_directories(fixture->directory, "a/b/c", 0755), 0);
    assert_int_equal(fstatat(fixture->directory, "a/b/c", &status, 0), 0);
    assert_int_equal(status.st_mode & 07777, 0700);
    (void) snprintf(absolute, sizeof(absolute), "%s/x/y", fixture->path);
    assert_int_equal(sys_file_make_directories(AT_FDCWD, absolute, 0700), 0);
    assert_int_equal(fstatat(fixture->directory, "x/y", &status, 0), 0);
    assert_int_equal(sys_file_replace(fixture->directory, "f", "", 0, 0600), 0);
    assert_int_equal(sys_file_make_directories(fixture->directory, "f", 0700), -ENOTDIR);
    assert_int_equal(sys_file_make_directories(fixture->directory, "f/g", 0700), -ENOTDIR);
    assert_int_equal(sys_file_make_directories(fixture->directory, "", 0700), -ENOENT);
    assert_int_equal(sys_file_make_directories(AT_FDCWD, "/", 0700), 0);
}

static void polling_tells_events_timeouts_and_errors_apart(void **state)
{
    int ends[2];

    (void) state;
    assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
    assert_int_equal(sys_file_poll(ends[0], POLLIN, 0), 0);
    assert_int_equal(sys_file_poll(ends[1], POLLOUT, -1), POLLOUT);
    assert_int_equal(write(ends[1], "x", 1), 1);
    assert_int_equal(sys_file_poll(ends[0], POLLIN, -1), POLLIN);
    close(ends[1]);
    assert_int_equal(sys_file_poll(ends[0], POLLIN, -1), POLLIN | POLLHUP);
    close(ends[0]);
    assert_int_equal(sys_file_poll(ends[0], POLLIN, 0), -EBADF);
    assert_int_equal(sys_file_poll(-EBADF, POLLIN, 0), -EBADF);
}

static void do_nothing(int number)
{
    (void) number;
}

static int64_t now_ms(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

static void signals_do_not_lengthen_a_poll(void **state)
{
    struct sigaction action = {.sa_handler = do_nothing}, before;
    struct itimerval often = {.it_interval = {.tv_usec = 5000}, .it_value = {.tv_usec = 5000}};
    struct itimerval never = {0};
    int64_t start;
    int ends[2];

    (void) state;
    assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
    assert_int_equal(sigaction(SIGALRM, &action, &before), 0);
    start = now_ms();
    assert_int_equal(setitimer(ITIMER_REAL, &often, NULL), 0);
    assert_int_equal(sys_file_poll(ends[0], POLLIN, 60), 0);
    assert_int_equal(setitimer(ITIMER_REAL, &never, NULL), 0);
    assert_in_range(now_ms() - start, 58, 5000);
    assert_int_equal(sigaction(SIGALRM, &before, NULL), 0);
    close(ends[0]);
    close(ends[1]);
}

static void nonblocking_is_set_and_cleared(void **state)
{
    int ends[2];
    char byte;

    (void) state;
    assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
    assert_int_equal(sys_file_set_nonblocking(ends[0], true), 0);
    assert_int_equal(read(ends[0], &byte, 1), -1);
    assert_int_equal(errno, EAGAIN);
    assert_int_equal(sys_file_set_nonblocking(ends[0], false), 0);
    assert_false(fcntl(ends[0], F_GETFL) & O_NONBLOCK);
    assert_int_equal(sys_file_set_nonblocking(-1, true), -EBADF);
    close(ends[0]);
    close(ends[1]);
}

#define SCRATCH_TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

static void temporary_names_are_recognised(void **state)
{
    static const char *const others[] = {"",
                                         ".burrow-",
                                         ".burrow-0123456789abcde.tmp",
                                         ".burrow-0123456789abcdef0.tmp",
                                         ".burrow-0123456789ABCDEF.tmp",
                                         ".burrow-0123456789abcdef.tmpx",
                                         "x.burrow-0123456789abcdef.tmp"};
    char name[SYS_FILE_NAME_SIZE];

    (void) state;
    assert_int_equal(sys_file_temporary_name(name), 0);
    assert_true(sys_file_is_temporary_name(name));
    for (size_t i = 0; i < ARRAY_COUNT(others); i++)
        assert_false(sys_file_is_temporary_name(others[i]));
}

static void room_is_what_the_filesystem_has(void **state)
{
    AUTO(close) int folder = sys_file_open(AT_FDCWD, "/tmp", O_RDONLY | O_DIRECTORY, 0);

    (void) state;
    assert_true(sys_file_has_room(folder, 1));
    assert_false(sys_file_has_room(folder, UINT64_MAX));
    assert_true(sys_file_has_room(-EBADF, UINT64_MAX)); /* it does not say */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        SCRATCH_TEST(opened_files_close_on_exec),
        SCRATCH_TEST(interrupted_calls_are_made_again),
        cmocka_unit_test(temporary_names_are_recognised),
        cmocka_unit_test(reads_are_complete_however_the_bytes_arrive),
        cmocka_unit_test(writes_are_complete_however_slowly_they_are_read),
        SCRATCH_TEST(positioned_transfers_do_not_move_the_file),
        cmocka_unit_test(errors_of_transfers_are_told),
        SCRATCH_TEST(replacing_gives_exactly_the_new_file),
        SCRATCH_TEST(replacing_a_link_leaves_its_target_alone),
        SCRATCH_TEST(a_failed_replacement_leaves_the_old_file),
        cmocka_unit_test(paths_without_a_last_component_are_refused),
        SCRATCH_TEST(reading_all_stops_at_the_limit),
        SCRATCH_TEST(reading_all_refuses_what_is_no_file),
        cmocka_unit_test(files_of_proc_are_read_though_they_have_no_size),
        SCRATCH_TEST(directories_are_made_with_their_parents),
        cmocka_unit_test(polling_tells_events_timeouts_and_errors_apart),
        cmocka_unit_test(signals_do_not_lengthen_a_poll),
        cmocka_unit_test(nonblocking_is_set_and_cleared),
        cmocka_unit_test(room_is_what_the_filesystem_has),
    };

    return cmocka_run_group_tests_name("sys_file", tests, NULL, NULL);
}
