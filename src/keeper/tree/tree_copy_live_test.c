#include <poll.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "base/rounds_testing.h"
#include "keeper/tree/tree_copy.h"
#include "keeper/tree/tree_copy_test_kit.h"

/* A copy of a tree that somebody works in: tree_copy_live in a process of its own. */
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

/* In memory, where writing through a mapping changes no time, every file is copied twice. */
static void pair_init_on_disk(struct pair *pair)
{
    pair_init_in(SCRATCH_USUAL, pair);
}

/* As the launcher does: by the clock of filesystems. */
static void since_now(char *line, size_t size)
{
    struct timespec now;

    assert_int_equal(clock_gettime(CLOCK_REALTIME_COARSE, &now), 0);
    (void) snprintf(line, size, "%lld\n", (long long) now.tv_sec * 1000 + now.tv_nsec / 1000000);
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
    uint64_t first = rounds_seed(1);

    (void) state;
    for (uint64_t seed = first; seed < first + rounds_of(4, 12); seed++) {
        struct numbers numbers = {seed * 7919};
        struct pair pair;
        struct live live;
        char since[32];

        pair_init_on_disk(&pair);
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
    uint64_t first = rounds_seed(1);

    (void) state;
    for (uint64_t seed = first; seed < first + rounds_of(2, 4); seed++) {
        struct numbers numbers = {seed * 104729};
        struct pair pair;
        struct live live;
        char since[32];

        pair_init_on_disk(&pair);
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
    pair_init_on_disk(&pair);
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
    pair_init_on_disk(&pair);
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

        pair_init_on_disk(&pair);
        live_start(&live, &pair, inputs[i]);
        assert_int_equal(live_finish(&live), 1);
        pair_done(&pair);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(whatever_changes_after_the_first_pass_is_in_the_copy),
        cmocka_unit_test(changes_during_the_first_pass_do_no_harm),
        cmocka_unit_test(writes_through_mappings_are_seen),
        cmocka_unit_test(what_did_not_change_is_copied_once),
        cmocka_unit_test(an_input_without_a_time_is_refused),
    };

    return cmocka_run_group_tests_name("tree_copy_live", tests, NULL, NULL);
}
