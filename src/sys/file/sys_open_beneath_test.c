#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>

#include "sys/sys_probe.h"
#include "sys/sys_test.h"
/* The last step is tested by itself, because no test can time that race. */
#include "sys/file/sys_open_beneath.c"

/* The tree of every test. `outside` lies beside the root and must never be reached.
 *
 *     SCRATCH/outside                      "outside"
 *     SCRATCH/root/file                    "file"
 *     SCRATCH/root/dir/inner               "inner"
 *     SCRATCH/root/dir/deep/               empty
 *     SCRATCH/root/outside                 "decoy": where an escape lands when it is clamped
 *     SCRATCH/root/<links of the table> */
struct fixture {
    char path[SCRATCH_SIZE];
    int scratch;
    int root;
};

static const struct {
    const char *name, *target;
} links[] = {
    {"to-file", "file"},
    {"to-dir", "dir"},
    {"to-dir-slash", "dir/"},
    {"to-inner", "to-dir/inner"},
    {"to-absolute", "/file"},
    {"to-root", "/"},
    {"to-outside", "../outside"},
    {"dir/up-once", "../file"},
    {"dir/up-twice", "../../outside"},
    {"dangling", "nothing"},
    {"dangling-out", "../created"},
    {"dangling-absolute", "/created"},
    {"loop-a", "loop-b"},
    {"loop-b", "loop-a"},
    {"self", "self"},
    {"self-dir", "self-dir/x"},
    {"to-etc", "/etc/passwd"},
};

static void write_file(int directory, const char *name, const char *text)
{
    AUTO(close) int fd = openat(directory, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);

    assert_true(fd >= 0);
    assert_int_equal(write(fd, text, strlen(text)), strlen(text));
}

static int set_up(void **state)
{
    struct fixture *fixture = calloc(1, sizeof(*fixture));

    make_scratch(fixture->path);
    fixture->scratch = open(fixture->path, O_PATH | O_DIRECTORY | O_CLOEXEC);
    assert_int_equal(mkdirat(fixture->scratch, "root", 0700), 0);
    fixture->root = openat(fixture->scratch, "root", O_PATH | O_DIRECTORY | O_CLOEXEC);
    assert_true(fixture->root >= 0);
    write_file(fixture->scratch, "outside", "outside");
    write_file(fixture->root, "file", "file");
    write_file(fixture->root, "outside", "decoy");
    assert_int_equal(mkdirat(fixture->root, "dir", 0700), 0);
    assert_int_equal(mkdirat(fixture->root, "dir/deep", 0700), 0);
    write_file(fixture->root, "dir/inner", "inner");
    for (size_t i = 0; i < ARRAY_COUNT(links); i++)
        assert_int_equal(symlinkat(links[i].target, fixture->root, links[i].name), 0);
    *state = fixture;
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *fixture = *state;

    sys_feature_pretend(0);
    fd_close(fixture->root);
    fd_close(fixture->scratch);
    remove_scratch(fixture->path);
    free(fixture);
    return 0;
}

/* What an open should give: an error, a directory, or a file's content. */
#define A_DIRECTORY "<directory>"

struct expectation {
    const char *path;
    int flags;
    int beneath; /* 0 or -errno */
    int in_root;
    const char *beneath_content, *in_root_content;
};

#define BOTH(path, flags, result, content)                                                         \
    {                                                                                              \
        path, flags, result, result, content, content                                              \
    }

static const struct expectation expectations[] = {
    BOTH("file", O_RDONLY, 0, "file"),
    BOTH("./file", O_RDONLY, 0, "file"),
    BOTH("dir//inner", O_RDONLY, 0, "inner"),
    BOTH("dir/./inner", O_RDONLY, 0, "inner"),
    BOTH("dir/../file", O_RDONLY, 0, "file"),
    BOTH("dir/deep/../inner", O_RDONLY, 0, "inner"),
    BOTH("dir/deep/../../file", O_RDONLY, 0, "file"),
    BOTH(".", O_RDONLY, 0, A_DIRECTORY),
    BOTH("./", O_RDONLY, 0, A_DIRECTORY),
    BOTH("dir", O_RDONLY, 0, A_DIRECTORY),
    BOTH("dir/", O_RDONLY, 0, A_DIRECTORY),
    BOTH("dir/..", O_RDONLY, 0, A_DIRECTORY),
    BOTH("dir/.", O_RDONLY | O_NOFOLLOW, 0, A_DIRECTORY),
    BOTH("dir", O_RDONLY | O_DIRECTORY, 0, A_DIRECTORY),
    BOTH("", O_RDONLY, -ENOENT, NULL),
    BOTH("none", O_RDONLY, -ENOENT, NULL),
    BOTH("none/x", O_RDONLY, -ENOENT, NULL),
    BOTH("dir/none", O_RDONLY, -ENOENT, NULL),
    BOTH("file/", O_RDONLY, -ENOTDIR, NULL),
    BOTH("file/.", O_RDONLY, -ENOTDIR, NULL),
    BOTH("file/..", O_RDONLY, -ENOTDIR, NULL),
    BOTH("file/x", O_RDONLY, -ENOTDIR, NULL),
    BOTH("file", O_RDONLY | O_DIRECTORY, -ENOTDIR, NULL),
    BOTH("dir", O_WRONLY, -EISDIR, NULL),
    /* links that stay inside */
    BOTH("to-file", O_RDONLY, 0, "file"),
    BOTH("to-dir/inner", O_RDONLY, 0, "inner"),
    BOTH("to-dir-slash/inner", O_RDONLY, 0, "inner"),
    BOTH("to-dir-slash", O_RDONLY, 0, A_DIRECTORY),
    BOTH("to-inner", O_RDONLY, 0, "inner"),
    BOTH("dir/up-once", O_RDONLY, 0, "file"),
    BOTH("to-dir/up-once", O_RDONLY, 0, "file"),
    BOTH("to-dir/../file", O_RDONLY, 0, "file"),
    BOTH("to-dir", O_RDONLY | O_NOFOLLOW, -ELOOP, NULL),
    BOTH("to-dir/", O_RDONLY | O_NOFOLLOW, 0, A_DIRECTORY),
    BOTH("to-dir/inner", O_RDONLY | O_NOFOLLOW, 0, "inner"),
    BOTH("to-file/", O_RDONLY, -ENOTDIR, NULL),
    BOTH("to-file", O_RDONLY | O_NOFOLLOW, -ELOOP, NULL),
    BOTH("to-file", O_RDONLY | O_DIRECTORY, -ENOTDIR, NULL),
    BOTH("to-dir", O_RDONLY | O_DIRECTORY | O_NOFOLLOW, -ENOTDIR, NULL),
    /* links that lead nowhere */
    BOTH("dangling", O_RDONLY, -ENOENT, NULL),
    BOTH("dangling/x", O_RDONLY, -ENOENT, NULL),
    BOTH("loop-a", O_RDONLY, -ELOOP, NULL),
    BOTH("loop-a/x", O_RDONLY, -ELOOP, NULL),
    BOTH("self", O_RDONLY, -ELOOP, NULL),
    BOTH("self-dir", O_RDONLY, -ELOOP, NULL),
    /* attempts to get out */
    {"..", O_RDONLY, -EXDEV, 0, NULL, A_DIRECTORY},
    {"../outside", O_RDONLY, -EXDEV, 0, NULL, "decoy"},
    {"../../../../outside", O_RDONLY, -EXDEV, 0, NULL, "decoy"},
    {"dir/../../outside", O_RDONLY, -EXDEV, 0, NULL, "decoy"},
    {"../root/file", O_RDONLY, -EXDEV, -ENOENT, NULL, NULL},
    {"/file", O_RDONLY, -EXDEV, 0, NULL, "file"},
    {"//file", O_RDONLY, -EXDEV, 0, NULL, "file"},
    {"/", O_RDONLY, -EXDEV, 0, NULL, A_DIRECTORY},
    {"/../outside", O_RDONLY, -EXDEV, 0, NULL, "decoy"},
    {"to-absolute", O_RDONLY, -EXDEV, 0, NULL, "file"},
    {"to-root/dir/inner", O_RDONLY, -EXDEV, 0, NULL, "inner"},
    {"dir/../to-root/file", O_RDONLY, -EXDEV, 0, NULL, "file"},
    {"to-outside", O_RDONLY, -EXDEV, 0, NULL, "decoy"},
    {"dir/up-twice", O_RDONLY, -EXDEV, 0, NULL, "decoy"},
    {"to-etc", O_RDONLY, -EXDEV, -ENOENT, NULL, NULL},
    {"dangling-out", O_RDONLY, -EXDEV, -ENOENT, NULL, NULL},
    /* creation */
    BOTH("file", O_RDWR | O_CREAT, 0, "file"),
    BOTH("file", O_RDWR | O_CREAT | O_EXCL, -EEXIST, NULL),
    BOTH("dangling", O_RDWR | O_CREAT | O_EXCL, -EEXIST, NULL),
    BOTH("to-file", O_RDWR | O_CREAT | O_NOFOLLOW, -ELOOP, NULL),
    BOTH("dir", O_RDONLY | O_CREAT, -EISDIR, NULL),
    BOTH("new/", O_RDWR | O_CREAT, -EISDIR, NULL),
    BOTH(".", O_RDONLY | O_CREAT, -EISDIR, NULL),
    BOTH("dir/..", O_RDONLY | O_CREAT, -EISDIR, NULL),
    BOTH("none/new", O_RDWR | O_CREAT, -ENOENT, NULL),
    BOTH("new", O_RDWR | O_CREAT | O_DIRECTORY, -EINVAL, NULL),
    BOTH("dir", O_RDWR | O_TMPFILE, 0, ""),
};

static void check_opened(int fd, const struct expectation *expected, int result,
                         const char *content)
{
    char data[32] = "";
    struct stat status;

    if (fd != result && (fd < 0 || result < 0))
        fail_msg("'%s' flags %x: %d, not %d", expected->path, (unsigned int) expected->flags, fd,
                 result);
    if (fd < 0)
        return;
    assert_true(is_close_on_exec(fd));
    assert_int_equal(fstat(fd, &status), 0);
    if (strcmp(content, A_DIRECTORY) == 0) {
        assert_true(S_ISDIR(status.st_mode));
    } else {
        assert_true(read(fd, data, sizeof(data) - 1) >= 0);
        assert_string_equal(data, content);
    }
}

static void check_table(struct fixture *fixture)
{
    int before = count_descriptors();

    for (size_t i = 0; i < ARRAY_COUNT(expectations); i++) {
        const struct expectation *expected = &expectations[i];
        int fd = sys_open_beneath(fixture->root, expected->path, expected->flags, 0600);

        check_opened(fd, expected, expected->beneath, expected->beneath_content);
        fd_close(fd);
        fd = sys_open_in_root(fixture->root, expected->path, expected->flags, 0600);
        check_opened(fd, expected, expected->in_root, expected->in_root_content);
        fd_close(fd);
        assert_int_equal(count_descriptors(), before);
    }
}

static void the_kernel_opens_only_beneath(void **state)
{
    if (sys_probe(SYS_FEATURE_OPENAT2) != 1)
        skip_without("openat2");
    check_table(*state);
}

static void the_fallback_opens_only_beneath(void **state)
{
    sys_feature_pretend(SYS_FEATURE_BIT(SYS_FEATURE_OPENAT2));
    check_table(*state);
}

static const unsigned int modes[] = {0, SYS_FEATURE_BIT(SYS_FEATURE_OPENAT2)};

static void creation_through_links_stays_inside(void **state)
{
    struct fixture *fixture = *state;

    for (size_t i = 0; i < ARRAY_COUNT(modes); i++) {
        AUTO(close) int inside = -EBADF, clamped = -EBADF, absolute = -EBADF;

        sys_feature_pretend(modes[i]);
        inside = sys_open_beneath(fixture->root, "dangling", O_RDWR | O_CREAT, 0600);
        assert_true(inside >= 0);
        assert_int_equal(unlinkat(fixture->root, "nothing", 0), 0);
        assert_int_equal(sys_open_beneath(fixture->root, "dangling-out", O_RDWR | O_CREAT, 0600),
                         -EXDEV);
        clamped = sys_open_in_root(fixture->root, "dangling-out", O_RDWR | O_CREAT, 0600);
        assert_true(clamped >= 0);
        assert_int_equal(unlinkat(fixture->root, "created", 0), 0);
        absolute = sys_open_in_root(fixture->root, "dangling-absolute", O_RDWR | O_CREAT, 0600);
        assert_true(absolute >= 0);
        assert_int_equal(unlinkat(fixture->root, "created", 0), 0);
        assert_int_equal(faccessat(fixture->scratch, "created", F_OK, 0), -1);
        assert_int_equal(access("/created", F_OK), -1);
    }
}

static void the_mode_is_used_for_new_files_only(void **state)
{
    struct fixture *fixture = *state;
    mode_t before = umask(022);

    for (size_t i = 0; i < ARRAY_COUNT(modes); i++) {
        AUTO(close) int made = -EBADF, opened = -EBADF;
        struct stat status;

        sys_feature_pretend(modes[i]);
        made = sys_open_beneath(fixture->root, "dir/new", O_RDWR | O_CREAT | O_EXCL, 0666);
        assert_true(made >= 0);
        assert_int_equal(fstat(made, &status), 0);
        assert_int_equal(status.st_mode & 07777, 0644);
        opened = sys_open_beneath(fixture->root, "dir/new", O_RDWR, 0777);
        assert_true(opened >= 0);
        assert_int_equal(unlinkat(fixture->root, "dir/new", 0), 0);
    }
    umask(before);
}

static void a_link_itself_can_be_opened(void **state)
{
    struct fixture *fixture = *state;

    for (size_t i = 0; i < ARRAY_COUNT(modes); i++) {
        AUTO(close) int fd = -EBADF;
        char target[32] = "";

        sys_feature_pretend(modes[i]);
        fd = sys_open_beneath(fixture->root, "to-outside", O_PATH | O_NOFOLLOW, 0);
        assert_true(fd >= 0);
        assert_true(readlinkat(fd, "", target, sizeof(target) - 1) > 0);
        assert_string_equal(target, "../outside");
    }
}

static void magic_links_are_refused(void **state)
{
    AUTO(close) int proc = open("/proc", O_PATH | O_DIRECTORY | O_CLOEXEC);
    AUTO(close) int marker = open("/dev/null", O_RDONLY | O_CLOEXEC);
    char by_fd[64], by_cwd[64], by_exe[64];

    (void) state;
    if (access("/proc/self/exe", F_OK) < 0 || marker < 0)
        skip_without("/proc");
    (void) snprintf(by_fd, sizeof(by_fd), "%d/fd/%d", getpid(), marker);
    (void) snprintf(by_cwd, sizeof(by_cwd), "%d/cwd/x", getpid());
    (void) snprintf(by_exe, sizeof(by_exe), "%d/exe", getpid());
    for (size_t i = 0; i < ARRAY_COUNT(modes); i++) {
        sys_feature_pretend(modes[i]);
        assert_int_equal(sys_open_beneath(proc, by_fd, O_RDONLY, 0), -ELOOP);
        assert_int_equal(sys_open_in_root(proc, by_fd, O_RDONLY, 0), -ELOOP);
        assert_int_equal(sys_open_beneath(proc, by_cwd, O_RDONLY, 0), -ELOOP);
        assert_int_equal(sys_open_in_root(proc, by_exe, O_RDONLY, 0), -ELOOP);
    }
    assert_int_equal(sys_open_without_magic(proc, by_fd, O_RDONLY, 0), -ENOSYS);
    sys_feature_pretend(0);
    assert_int_equal(sys_open_without_magic(proc, by_fd, O_RDONLY, 0), -ELOOP);
    assert_int_equal(sys_open_without_magic(proc, by_cwd, O_RDONLY, 0), -ELOOP);
}

/* root/chain0 -> chain1 -> ... -> file, one link more than is allowed or just enough. */
static void exactly_forty_links_are_followed(void **state)
{
    struct fixture *fixture = *state;

    for (int i = 0; i <= 40; i++) {
        char name[16], target[16];

        (void) snprintf(name, sizeof(name), "chain%d", i);
        (void) snprintf(target, sizeof(target), "chain%d", i + 1);
        assert_int_equal(symlinkat(i == 40 ? "file" : target, fixture->root, name), 0);
    }
    for (size_t i = 0; i < ARRAY_COUNT(modes); i++) {
        AUTO(close) int fd = -EBADF;

        sys_feature_pretend(modes[i]);
        assert_int_equal(sys_open_beneath(fixture->root, "chain0", O_RDONLY, 0), -ELOOP);
        fd = sys_open_beneath(fixture->root, "chain1", O_RDONLY, 0);
        assert_true(fd >= 0);
    }
}

static void long_names_and_paths_are_refused(void **state)
{
    struct fixture *fixture = *state;
    static char name[300], path[5000];

    memset(name, 'n', sizeof(name) - 1);
    for (size_t i = 0; i + 1 < sizeof(path); i++)
        path[i] = i % 2 ? '/' : '.';
    for (size_t i = 0; i < ARRAY_COUNT(modes); i++) {
        sys_feature_pretend(modes[i]);
        assert_int_equal(sys_open_beneath(fixture->root, name, O_RDONLY, 0), -ENAMETOOLONG);
        assert_int_equal(sys_open_beneath(fixture->root, path, O_RDONLY, 0), -ENAMETOOLONG);
    }
}

static void a_wrong_root_is_never_the_working_directory(void **state)
{
    struct fixture *fixture = *state;
    AUTO(close) int file = openat(fixture->root, "file", O_RDONLY | O_CLOEXEC);

    for (size_t i = 0; i < ARRAY_COUNT(modes); i++) {
        sys_feature_pretend(modes[i]);
        assert_int_equal(sys_open_beneath(AT_FDCWD, "x", O_RDONLY, 0), -EBADF);
        assert_int_equal(sys_open_beneath(-1, "x", O_RDONLY, 0), -EBADF);
        assert_int_equal(sys_open_in_root(1023, "x", O_RDONLY, 0), -EBADF);
        assert_int_equal(sys_open_beneath(file, "x", O_RDONLY, 0), -ENOTDIR);
    }
}

static void the_fallback_has_a_depth_limit_and_leaks_nothing(void **state)
{
    struct fixture *fixture = *state;
    static char path[2 * SYS_OPEN_BENEATH_DEPTH_MAX + 16];
    AUTO(close) int at = openat(fixture->root, "dir", O_PATH | O_CLOEXEC), fd = -EBADF;
    int before;

    (void) snprintf(path, sizeof(path), "dir");
    for (int depth = 1; depth <= SYS_OPEN_BENEATH_DEPTH_MAX; depth++) {
        int next;

        assert_int_equal(mkdirat(at, "d", 0700), 0);
        next = openat(at, "d", O_PATH | O_CLOEXEC);
        assert_true(next >= 0);
        fd_close(at);
        at = next;
        path[1 + 2 * depth] = '/';
        path[2 + 2 * depth] = 'd';
    }
    sys_feature_pretend(SYS_FEATURE_BIT(SYS_FEATURE_OPENAT2));
    before = count_descriptors();
    assert_int_equal(sys_open_beneath(fixture->root, path, O_PATH, 0), -ENAMETOOLONG);
    assert_int_equal(count_descriptors(), before);
    path[1 + 2 * (SYS_OPEN_BENEATH_DEPTH_MAX - 1) + 2] = '\0';
    fd = sys_open_beneath(fixture->root, path, O_PATH, 0);
    assert_true(fd >= 0);
}

/* Somebody exchanges `name` with a link that leads out, as fast as he can. */
static pid_t start_swapper(struct fixture *fixture, const char *name)
{
    pid_t pid = fork();

    if (pid != 0)
        return pid;
    (void) prctl(PR_SET_PDEATHSIG, SIGKILL); /* not left behind by a failed assertion */
    while (syscall(SYS_renameat2, fixture->root, name, fixture->root, "swap", RENAME_EXCHANGE) == 0)
        continue;
    _exit(1);
}

static void open_while_swapped(struct fixture *fixture, const char *path, const char *content)
{
    for (int i = 0; i < 6000; i++) {
        char data[16] = "";
        int fd;

        sys_feature_pretend(modes[i % 2]);
        fd = sys_open_beneath(fixture->root, path, O_RDONLY, 0);
        if (fd >= 0) {
            assert_true(read(fd, data, sizeof(data) - 1) > 0);
            assert_string_equal(data, content);
            close(fd);
        } else {
            assert_true(fd == -EXDEV || fd == -EAGAIN || fd == -ENOTDIR || fd == -ELOOP);
        }
    }
}

static void stop_swapper(pid_t pid)
{
    assert_int_equal(kill(pid, SIGKILL), 0);
    assert_int_equal(waitpid(pid, NULL, 0), pid);
}

/* The moment between the look at the last component, when it was a file, and its opening. */
static void a_component_that_became_a_link_is_looked_at_again(void **state)
{
    struct fixture *fixture = *state;
    struct open_beneath_walk walk = {.stack = {fixture->root}, .flags = O_RDONLY};

    walk.pending = walk.buffer;
    assert_int_equal(walk_open_last(&walk, "to-outside"), WALK_AGAIN);
    walk.links = LINKS_MAX;
    assert_int_equal(walk_open_last(&walk, "to-outside"), -ELOOP);
    walk.flags = O_RDWR | O_CREAT;
    walk.links = 0;
    assert_int_equal(walk_open_last(&walk, "dangling-out"), WALK_AGAIN);
    assert_int_equal(faccessat(fixture->scratch, "created", F_OK, 0), -1);
}

static void a_swapped_directory_never_leads_outside(void **state)
{
    struct fixture *fixture = *state;
    pid_t swapper;

    write_file(fixture->scratch, "inner", "outside");
    assert_int_equal(symlinkat("..", fixture->root, "swap"), 0);
    swapper = start_swapper(fixture, "dir");
    open_while_swapped(fixture, "dir/inner", "inner");
    stop_swapper(swapper);
}

static void a_swapped_file_never_leads_outside(void **state)
{
    struct fixture *fixture = *state;
    pid_t swapper;

    assert_int_equal(symlinkat("../outside", fixture->root, "swap"), 0);
    swapper = start_swapper(fixture, "file");
    open_while_swapped(fixture, "file", "file");
    stop_swapper(swapper);
}

#define TREE_TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TREE_TEST(the_kernel_opens_only_beneath),
        TREE_TEST(the_fallback_opens_only_beneath),
        TREE_TEST(creation_through_links_stays_inside),
        TREE_TEST(the_mode_is_used_for_new_files_only),
        TREE_TEST(a_link_itself_can_be_opened),
        TREE_TEST(magic_links_are_refused),
        TREE_TEST(exactly_forty_links_are_followed),
        TREE_TEST(long_names_and_paths_are_refused),
        TREE_TEST(a_wrong_root_is_never_the_working_directory),
        TREE_TEST(the_fallback_has_a_depth_limit_and_leaks_nothing),
        TREE_TEST(a_component_that_became_a_link_is_looked_at_again),
        TREE_TEST(a_swapped_directory_never_leads_outside),
        TREE_TEST(a_swapped_file_never_leads_outside),
    };

    return cmocka_run_group_tests_name("sys_open_beneath", tests, NULL, NULL);
}
