#include <poll.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "keeper/tree_copy.h"
#include "keeper/tree_list.h"
#include "keeper/tree_test_kit.h"
#include "keeper/tree_walk.h"
#include "sys/sys_open_beneath.h"

#define CONTENT_MAX ((size_t) 4 << 20)

struct pair {
    char path[SCRATCH_SIZE];
    int source, target; /* owned */
};

static void pair_init(struct pair *pair)
{
    AUTO(close) int top = -EBADF;

    make_scratch(pair->path);
    top = open_place(AT_FDCWD, pair->path);
    pair->source = make_place(top, "source");
    pair->target = make_place(top, "target");
}

static void pair_done(struct pair *pair)
{
    AUTO(close) int top = open_place(AT_FDCWD, pair->path);

    (void) close(pair->source);
    (void) close(pair->target);
    assert_int_equal(chdir("/"), 0);
    assert_int_equal(sys_tree_empty(top), 0);
    assert_int_equal(rmdir(pair->path), 0);
}

/* The lines of a list that a copy is to have as well: no sockets, no devices, no counts. */
static void keep_copied(const char *said, struct text *kept)
{
    while (*said) {
        const char *end = strchr(said, '\n');
        size_t length = (size_t) (end - said) + 1;
        AUTO(free) char *line = strndup(said, length);

        if (!strstr(line, "\"type\":\"socket\"") && !strstr(line, "\"type\":\"block\"") &&
            strncmp(line, "{\"entries\"", strlen("{\"entries\"")) != 0)
            text_append(kept, line);
        said = end + 1;
    }
}

static void list_copied(int folder, struct text *kept)
{
    struct error err = ERROR_INIT;
    AUTO(free) char *said = SAID(tree_list(folder, output, &err));

    assert_int_equal(said_result, 0);
    keep_copied(said, kept);
}

static void check_same_file(int source, int target, const char *path)
{
    AUTO(free) char *left = NULL, *right = NULL;
    size_t left_length, right_length;
    struct stat left_status, right_status;

    assert_int_equal(sys_file_read_all(source, path, CONTENT_MAX, &left, &left_length), 0);
    assert_int_equal(sys_file_read_all(target, path, CONTENT_MAX, &right, &right_length), 0);
    assert_int_equal(left_length, right_length);
    assert_memory_equal(left, right, left_length);
    assert_int_equal(fstatat(source, path, &left_status, 0), 0);
    assert_int_equal(fstatat(target, path, &right_status, 0), 0);
    /* Holes stayed holes, give or take the filesystem's own pages. */
    assert_true(right_status.st_blocks <= left_status.st_blocks + 64);
}

static void check_same_attributes(int source, int target, const char *path)
{
    char names[4096], left[1024], right[1024];
    ssize_t length;

    assert_int_equal(fchdir(source), 0);
    length = llistxattr(path, names, sizeof(names));
    for (ssize_t at = 0; at < length; at += (ssize_t) strlen(names + at) + 1) {
        ssize_t size;

        assert_int_equal(fchdir(source), 0);
        size = lgetxattr(path, names + at, left, sizeof(left));
        assert_true(size >= 0);
        assert_int_equal(fchdir(target), 0);
        assert_int_equal(lgetxattr(path, names + at, right, sizeof(right)), size);
        assert_memory_equal(left, right, (size_t) size);
    }
}

static void check_same_content(const struct pair *pair)
{
    AUTO(tree_walk) struct tree_walk *walk = tree_walk_new(pair->source);
    struct error err = ERROR_INIT;
    struct tree_step step;

    for (;;) {
        assert_int_equal(tree_walk_next(walk, &step, &err), 0);
        if (step.event == TREE_END)
            return;
        if (S_ISREG(step.status.st_mode))
            check_same_file(pair->source, pair->target, step.path);
        if (S_ISREG(step.status.st_mode) || (step.event == TREE_ENTER && step.depth > 0))
            check_same_attributes(pair->source, pair->target, step.path);
    }
}

static void copies_of_hostile_trees_are_the_same(void **state)
{
    (void) state;
    for (uint64_t seed = 1; seed <= 12; seed++) {
        AUTO(text) struct text source = TEXT_INIT(SAID_MAX), target = TEXT_INIT(SAID_MAX);
        AUTO(free) char *said = NULL;
        struct error err = ERROR_INIT;
        struct pair pair;

        pair_init(&pair);
        grow_tree(pair.source, seed, 250);
        said = SAID(tree_copy(TREE_OF(pair.source), pair.target, output, &err));
        if (said_result < 0)
            print_error("seed %d: %s\n", (int) seed, err.message);
        assert_int_equal(said_result, 0);
        list_copied(pair.source, &source);
        list_copied(pair.target, &target);
        assert_true(source.length > 10000);
        assert_string_equal(text_string(&source), text_string(&target));
        check_same_content(&pair);
        pair_done(&pair);
    }
}

static void the_report_counts_exactly(void **state)
{
    AUTO(free) char *said = NULL;
    AUTO(close) int folder = -EBADF;
    struct error err = ERROR_INIT;
    struct pair pair;

    (void) state;
    pair_init(&pair);
    folder = make_place(pair.source, "folder");
    make_content(pair.source, "several", "12345");
    assert_int_equal(linkat(pair.source, "several", folder, "a", 0), 0);
    assert_int_equal(linkat(pair.source, "several", folder, "b", 0), 0);
    make_content(pair.source, "one", "1");
    assert_int_equal(symlinkat("x", folder, "link"), 0);
    assert_int_equal(mknodat(folder, "fifo", S_IFIFO | 0600, 0), 0);
    assert_int_equal(mknodat(folder, "socket", S_IFSOCK | 0600, 0), 0);
    assert_int_equal(mknodat(folder, "white", S_IFCHR, 0), 0);
    said = SAID(tree_copy(TREE_OF(pair.source), pair.target, output, &err));
    assert_int_equal(said_result, 0);
    assert_string_equal(said, "{\"folders\":2,\"files\":2,\"links\":1,\"fifos\":1,\"whiteouts\":1,"
                              "\"hard_links\":2,\"bytes\":6,\"sockets_skipped\":1,"
                              "\"devices_refused\":0,\"attributes_left_out\":0,"
                              "\"hard_links_split\":0}\n");
    pair_done(&pair);
}

static void devices_are_refused_and_counted(void **state)
{
    AUTO(free) char *said = NULL;
    struct error err = ERROR_INIT;
    struct pair pair;

    (void) state;
    pair_init(&pair);
    if (mknodat(pair.source, "null", S_IFCHR | 0666, makedev(1, 3)) < 0) {
        pair_done(&pair);
        skip_without("making device nodes (root)");
    }
    assert_int_equal(mknodat(pair.source, "disk", S_IFBLK | 0600, makedev(7, 999)), 0);
    said = SAID(tree_copy(TREE_OF(pair.source), pair.target, output, &err));
    assert_int_equal(said_result, 0);
    assert_non_null(strstr(said, "\"whiteouts\":0,"));
    assert_non_null(strstr(said, "\"devices_refused\":2,"));
    assert_int_equal(faccessat(pair.target, "null", F_OK, AT_SYMLINK_NOFOLLOW), -1);
    assert_int_equal(faccessat(pair.target, "disk", F_OK, AT_SYMLINK_NOFOLLOW), -1);
    pair_done(&pair);
}

static void a_target_with_something_in_it_is_refused(void **state)
{
    AUTO(free) char *said = NULL;
    struct error err = ERROR_INIT;
    struct pair pair;

    (void) state;
    pair_init(&pair);
    make_content(pair.target, "precious", "");
    said = SAID(tree_copy(TREE_OF(pair.source), pair.target, output, &err));
    assert_int_equal(said_result, -1);
    assert_int_equal(err.code, ERR_CONFLICT);
    assert_string_equal(said, "");
    assert_int_equal(faccessat(pair.target, "precious", F_OK, 0), 0);
    pair_done(&pair);
}

/* Enormous and empty: copied in an instant, without a block. */
static void copy_a_giant(void)
{
    AUTO(free) char *said = NULL;
    AUTO(close) int source = -EBADF, target = -EBADF, fd = -EBADF;
    struct error err = ERROR_INIT;
    struct stat status;

    enter_private_mounts();
    CHECK_EQUAL(mkdir("source", 0700) + mkdir("target", 0700), 0);
    source = open_place(AT_FDCWD, "source");
    target = open_place(AT_FDCWD, "target");
    fd = openat(source, "giant", O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    CHECK_EQUAL(ftruncate(fd, INT64_C(1) << 62), 0);
    CHECK_EQUAL(sys_file_pwrite_full(fd, "middle", 6, INT64_C(1) << 61), 0);
    said = SAID(tree_copy(TREE_OF(source), target, output, &err));
    CHECK_EQUAL(said_result, 0);
    CHECK_EQUAL(fstatat(target, "giant", &status, 0), 0);
    CHECK_EQUAL(status.st_size, INT64_C(1) << 62);
    CHECK(status.st_blocks <= 16);
}

static void holes_of_any_size_are_no_work(void **state)
{
    (void) state;
    run_in_child(copy_a_giant, NEEDS_MOUNTS);
}

/* The target fills up in the middle: an error that says so, and the helper folder is gone. */
static void copy_too_much(void)
{
    AUTO(free) char *said = NULL, *block = calloc(1, 600000);
    AUTO(close) int source = -EBADF, target = -EBADF;
    struct error err = ERROR_INIT;

    enter_private_mounts();
    CHECK_EQUAL(mkdir("source", 0700) + mkdir("target", 0700), 0);
    source = open_place(AT_FDCWD, "source");
    target = open_place(AT_FDCWD, "target");
    make_content(source, "a", "1");
    CHECK_EQUAL(linkat(source, "a", source, "b", 0), 0);
    CHECK_EQUAL(sys_file_replace(source, "c", block, 600000, 0600), 0);
    said = SAID(tree_copy(TREE_OF(source), target, output, &err));
    CHECK_EQUAL(said_result, -1);
    CHECK_EQUAL(err.code, ERR_NO_SPACE);
    CHECK(strstr(err.message, "copy 'c'") != NULL);
    CHECK_EQUAL(unlinkat(target, "a", 0) + unlinkat(target, "b", 0) + unlinkat(target, "c", 0), 0);
    CHECK_EQUAL(rmdir("/tmp/target"), 0); /* copying changes the working directory */
}

static void a_full_target_is_told(void **state)
{
    (void) state;
    run_in_child(copy_too_much, NEEDS_MOUNTS);
}

/* Rights in files and the like: not ours to write, so they are counted. */
static void other_attributes_are_left_out_and_counted(void **state)
{
    /* vfs_cap_data of version 2: one capability, cap_net_raw. */
    static const unsigned char capability[20] = {1, 0, 0, 2, 0, 0x20};
    AUTO(free) char *said = NULL;
    struct error err = ERROR_INIT;
    struct pair pair;

    (void) state;
    pair_init(&pair);
    make_content(pair.source, "ping", "");
    assert_int_equal(fchdir(pair.source), 0);
    if (lsetxattr("ping", "security.capability", capability, sizeof(capability), 0) < 0) {
        pair_done(&pair);
        skip_without("file capabilities (root, a filesystem that has them)");
    }
    said = SAID(tree_copy(TREE_OF(pair.source), pair.target, output, &err));
    assert_int_equal(said_result, 0);
    assert_non_null(strstr(said, "\"attributes_left_out\":1,"));
    assert_int_equal(fchdir(pair.target), 0);
    assert_int_equal(lgetxattr("ping", "security.capability", NULL, 0), -1);
    pair_done(&pair);
}

/* As many names as the filesystem allows (ext4: 65,000): our helper name is one too many. */
static void more_names_than_fit_become_a_second_file(void **state)
{
    AUTO(free) char *said = NULL;
    AUTO(close) int folder = -EBADF;
    struct error err = ERROR_INIT;
    struct pair pair;
    bool is_full = false;

    (void) state;
    pair_init(&pair);
    folder = make_place(pair.source, "names");
    make_content(folder, "first", "1");
    for (int i = 0; i < 66000 && !is_full; i++) {
        char name[TREE_NAME_MAX];

        (void) snprintf(name, sizeof(name), "%d", i);
        is_full = linkat(folder, "first", folder, name, 0) < 0;
        if (is_full)
            assert_int_equal(errno, EMLINK);
    }
    said = SAID(tree_copy(TREE_OF(pair.source), pair.target, output, &err));
    assert_int_equal(said_result, 0);
    assert_non_null(strstr(said, is_full ? "\"files\":2," : "\"files\":1,"));
    assert_non_null(strstr(said, is_full ? "\"hard_links_split\":1}" : "\"hard_links_split\":0}"));
    pair_done(&pair);
}

static void copy_a_deep_chain(void)
{
    AUTO(free) char *said = NULL;
    AUTO(close) int source = -EBADF, target = -EBADF;
    struct error err = ERROR_INIT;
    int before;

    enter_private_mounts();
    CHECK_EQUAL(mkdir("source", 0700) + mkdir("target", 0700), 0);
    source = open_place(AT_FDCWD, "source");
    target = open_place(AT_FDCWD, "target");
    grow_chain(source, 30000);
    before = count_descriptors();
    said = SAID(tree_copy(TREE_OF(source), target, output, &err));
    CHECK_EQUAL(said_result, 0);
    CHECK(strstr(said, "{\"folders\":30001,") != NULL);
    CHECK_EQUAL(count_descriptors(), before);
}

static void deep_chains_are_copied(void **state)
{
    (void) state;
    run_in_child(copy_a_deep_chain, NEEDS_MOUNTS);
}

/* --- while somebody works in it -------------------------------------------------------------- */

struct live {
    pid_t pid;
    int input, report; /* owned: our ends */
};

static void live_start(struct live *live, const struct pair *pair, const char *since)
{
    int input[2], report[2];

    assert_int_equal(pipe2(input, O_CLOEXEC), 0);
    assert_int_equal(pipe2(report, O_CLOEXEC), 0);
    assert_int_equal(sys_file_write_full(input[1], since, strlen(since)), 0);
    live->pid = fork();
    assert_true(live->pid >= 0);
    if (live->pid == 0) {
        struct output *output = calloc(1, sizeof(*output));
        struct error err = ERROR_INIT;
        int result;

        (void) close(input[1]);
        output_init(output, report[1]);
        result = tree_copy_live(pair->source, pair->target, input[0], output, &err);
        if (result < 0)
            (void) dprintf(STDERR_FILENO, "copy: %s\n", err.message);
        _exit(result < 0 || output_flush(output) < 0);
    }
    (void) close(input[0]);
    (void) close(report[1]);
    live->input = input[1];
    live->report = report[0];
}

static void live_wait(struct live *live)
{
    static const char said[] = "{\"ready\":true}\n";
    char line[sizeof(said)] = "";

    assert_int_equal(sys_file_read_full(live->report, line, sizeof(said) - 1), sizeof(said) - 1);
    assert_string_equal(line, said);
}

static int live_finish(struct live *live)
{
    int status;

    (void) close(live->input);
    assert_int_equal(waitpid(live->pid, &status, 0), live->pid);
    (void) close(live->report);
    assert_true(WIFEXITED(status));
    return WEXITSTATUS(status);
}

/* As the launcher does: by the clock of filesystems. */
static void since_now(char *line, size_t size)
{
    struct timespec now;

    assert_int_equal(clock_gettime(CLOCK_REALTIME_COARSE, &now), 0);
    (void) snprintf(line, size, "%lld\n", (long long) now.tv_sec * 1000 + now.tv_nsec / 1000000);
}

/* Neither has more than the other. */
static void check_same(const struct pair *pair)
{
    AUTO(text) struct text source = TEXT_INIT(SAID_MAX), target = TEXT_INIT(SAID_MAX);
    const struct pair swapped = {.source = pair->target, .target = pair->source};

    list_copied(pair->source, &source);
    list_copied(pair->target, &target);
    assert_string_equal(text_string(&source), text_string(&target));
    check_same_content(pair);
    check_same_content(&swapped);
}

#define PLACES 6

/* The nasty kind of change: same size, same time of modification. */
static void write_quietly(int folder, const char *name, int what)
{
    const struct timespec times[] = {{.tv_sec = 1}, {.tv_sec = 1}};
    AUTO(close) int fd = openat(folder, name, O_WRONLY | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
    char text[8];

    if (fd < 0)
        return;
    (void) snprintf(text, sizeof(text), "%06d", what);
    assert_int_equal(sys_file_pwrite_full(fd, text, 6, 0), 0);
    assert_int_equal(futimens(fd, times), 0);
}

static void pick(struct numbers *numbers, char *path, size_t size)
{
    (void) snprintf(path, size, "d%d/e%d/f%d", (int) number_below(numbers, PLACES),
                    (int) number_below(numbers, 2), (int) number_below(numbers, PLACES));
    if (number_below(numbers, 3) == 0)
        path[number_below(numbers, 2) ? strlen("d0") : strlen("d0/e0")] = '\0';
}

/* One change of any kind; those that are not possible just now fail. */
static void change(int top, struct numbers *numbers)
{
    char one[64], other[64];
    int what = (int) number_below(numbers, 1000000), result = 0;

    pick(numbers, one, sizeof(one));
    pick(numbers, other, sizeof(other));
    switch (number_below(numbers, 10)) {
    case 0:
    case 1:
        write_quietly(top, one, what);
        break;
    case 2:
        result |= (int) syscall(SYS_renameat2, top, one, top, other, RENAME_EXCHANGE);
        break;
    case 3:
        result |= renameat(top, one, top, other);
        break;
    case 4:
        result |= sys_tree_delete(top, one);
        break;
    case 5:
        result |= linkat(top, one, top, other, 0);
        break;
    case 6:
        result |= mkdirat(top, one, 0700);
        break;
    case 7:
        result |= fchmodat(top, one, (mode_t) (0700 | what % 0100), 0);
        break;
    case 8:
        assert_int_equal(fchdir(top), 0);
        result |= setxattr(one, what % 2 ? "user.a" : "user.b", &what, sizeof(what), 0);
        result |= removexattr(one, what % 2 ? "user.b" : "user.a");
        break;
    default:
        result |= symlinkat(other, top, one);
    }
    (void) result; /* what failed did not change anything */
}

static void fill(int top, struct numbers *numbers)
{
    char path[64];

    for (int i = 0; i < PLACES * 2 * PLACES; i++) {
        (void) snprintf(path, sizeof(path), "d%d", i / PLACES / 2);
        (void) mkdirat(top, path, 0700);
        (void) snprintf(path, sizeof(path), "d%d/e%d", i / PLACES / 2, i / PLACES % 2);
        (void) mkdirat(top, path, 0700);
        (void) snprintf(path, sizeof(path), "d%d/e%d/f%d", i / PLACES / 2, i / PLACES % 2,
                        i % PLACES);
        write_quietly(top, path, (int) number_below(numbers, 1000000));
    }
}

static void whatever_changes_after_the_first_pass_is_in_the_copy(void **state)
{
    (void) state;
    for (uint64_t seed = 1; seed <= 12; seed++) {
        struct numbers numbers = {seed * 7919};
        struct pair pair;
        struct live live;
        char since[32];

        pair_init(&pair);
        fill(pair.source, &numbers);
        (void) usleep(30000); /* so that those files are old */
        since_now(since, sizeof(since));
        live_start(&live, &pair, since);
        live_wait(&live);
        for (int i = 0; i < 60; i++)
            change(pair.source, &numbers);
        assert_int_equal(live_finish(&live), 0);
        check_same(&pair);
        pair_done(&pair);
    }
}

static void changes_during_the_first_pass_do_no_harm(void **state)
{
    (void) state;
    for (uint64_t seed = 1; seed <= 4; seed++) {
        struct numbers numbers = {seed * 104729};
        struct pair pair;
        struct live live;
        char since[32];

        pair_init(&pair);
        grow_tree(pair.source, seed, 200);
        fill(pair.source, &numbers);
        since_now(since, sizeof(since));
        live_start(&live, &pair, since);
        while (sys_file_poll(live.report, POLLIN, 0) == -ETIMEDOUT)
            change(pair.source, &numbers);
        for (int i = 0; i < 20; i++)
            change(pair.source, &numbers);
        live_wait(&live);
        assert_int_equal(live_finish(&live), 0);
        check_same(&pair);
        pair_done(&pair);
    }
}

/* A page that is dirty already is written without any call, and no time would tell. */
static void writes_through_mappings_are_seen(void **state)
{
    const struct timespec old[] = {{.tv_sec = 1}, {.tv_sec = 1}};
    struct pair pair;
    struct live live;
    char since[32], *page;
    int fd;

    (void) state;
    pair_init(&pair);
    make_content(pair.source, "mapped", "before");
    fd = openat(pair.source, "mapped", O_RDWR | O_CLOEXEC);
    page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    assert_true(page != MAP_FAILED);
    page[0] = 'B';
    assert_int_equal(futimens(fd, old), 0);
    (void) usleep(30000);
    since_now(since, sizeof(since));
    live_start(&live, &pair, since);
    live_wait(&live);
    page[1] = 'E';
    assert_int_equal(live_finish(&live), 0);
    check_same(&pair);
    assert_int_equal(munmap(page, 4096), 0);
    (void) close(fd);
    pair_done(&pair);
}

static void what_did_not_change_is_copied_once(void **state)
{
    struct pair pair;
    struct live live;
    char since[32], report[512] = "";

    (void) state;
    pair_init(&pair);
    make_content(pair.source, "old", "12345");
    make_content(pair.source, "gone", "1");
    (void) usleep(30000);
    since_now(since, sizeof(since));
    live_start(&live, &pair, since);
    live_wait(&live);
    make_content(pair.source, "new", "123");
    assert_int_equal(unlinkat(pair.source, "gone", 0), 0);
    (void) close(live.input);
    live.input = -1;
    assert_true(sys_file_read_full(live.report, report, sizeof(report) - 1) > 0);
    assert_int_equal(live_finish(&live), 0);
    assert_non_null(strstr(report, "\"files\":3,"));
    assert_non_null(strstr(report, "\"bytes\":9,"));
    check_same(&pair);
    pair_done(&pair);
}

static void an_input_without_a_time_is_refused(void **state)
{
    static const char *const inputs[] = {"", "\n", "12x\n", "-1\n",
                                         "999999999999999999999999999999\n"};

    (void) state;
    for (size_t i = 0; i < ARRAY_COUNT(inputs); i++) {
        struct pair pair;
        struct live live;

        pair_init(&pair);
        live_start(&live, &pair, inputs[i]);
        assert_int_equal(live_finish(&live), 1);
        pair_done(&pair);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(copies_of_hostile_trees_are_the_same),
        cmocka_unit_test(the_report_counts_exactly),
        cmocka_unit_test(devices_are_refused_and_counted),
        cmocka_unit_test(a_target_with_something_in_it_is_refused),
        cmocka_unit_test(holes_of_any_size_are_no_work),
        cmocka_unit_test(a_full_target_is_told),
        cmocka_unit_test(other_attributes_are_left_out_and_counted),
        cmocka_unit_test(more_names_than_fit_become_a_second_file),
        cmocka_unit_test(deep_chains_are_copied),
        cmocka_unit_test(whatever_changes_after_the_first_pass_is_in_the_copy),
        cmocka_unit_test(changes_during_the_first_pass_do_no_harm),
        cmocka_unit_test(writes_through_mappings_are_seen),
        cmocka_unit_test(what_did_not_change_is_copied_once),
        cmocka_unit_test(an_input_without_a_time_is_refused),
    };

    return cmocka_run_group_tests_name("tree_copy", tests, NULL, NULL);
}
