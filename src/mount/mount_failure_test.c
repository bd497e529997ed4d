/* A store that fails behind a real mount, and the ends of mounts. */
#include "mount/mount_testing.h"

/* --- a line between a test and its process --------------------------------------------------- */

/* As fork_user; each side has its end of a line, to tell the other how far it is. */
static pid_t fork_user_with_line(int *ret_line)
{
    const int kept = STDERR_FILENO + 1;
    int ends[2];
    pid_t pid;

    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
    pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        *ret_line = dup2(ends[1], kept);
        (void) close_range(kept + 1, ~0u, 0);
        return 0;
    }
    (void) close(ends[1]);
    *ret_line = ends[0];
    return pid;
}

static bool tell(int line)
{
    return send(line, "!", 1, MSG_NOSIGNAL) == 1;
}

static bool is_told(int line)
{
    char byte;

    return recv(line, &byte, 1, MSG_DONTWAIT) == 1;
}

/* For the process only: a test turns its loop meanwhile. False: the test is gone. */
static bool wait_until_told(int line)
{
    char byte;

    return recv(line, &byte, 1, 0) == 1;
}

/* --- a store that fails ---------------------------------------------------------------------- */

static void what_the_store_refuses_close_tells(void **state)
{
    static const struct {
        enum err_code code;
        const char *words;
    } rows[] = {{ERR_FORBIDDEN, "Permission denied"},
                {ERR_NO_SPACE, "No space left"},
                {ERR_UNAVAILABLE, "Input/output error"},
                {ERR_UPSTREAM_TIMEOUT, "timed out"}};
    struct fixture *fixture = *state;

    for (size_t i = 0; i < ARRAY_COUNT(rows); i++) {
        char script[256];

        atomic_store(&fixture->store.refuses_puts, (int) rows[i].code);
        (void) snprintf(script, sizeof(script),
                        "dd if=/dev/zero of=f%zu bs=10 count=1 2>&1 | grep -q '%s'", i,
                        rows[i].words);
        assert_int_equal(run_script(fixture, script), 0);
        (void) snprintf(script, sizeof(script), "sleep 1.1; ! test -e f%zu", i);
        assert_int_equal(run_script(fixture, script), 0);
    }
    atomic_store(&fixture->store.refuses_puts, ERR_NONE);
    atomic_store(&fixture->store.refuses, ERR_FORBIDDEN);
    EXPECT(fixture,
           "ls 2>&1 | grep -q 'Permission denied'; cat x 2>&1 | grep -q 'Permission denied'");
    assert_int_equal(fixture->store.count, 0);
}

static void lies_do_not_become_bytes(void **state)
{
    struct fixture *fixture = *state;

    (void) put_text(fixture, "home/a", "0123456789");
    atomic_store(&fixture->store.lies, true);
    EXPECT(fixture, "cat a 2>&1 | grep -q 'Input/output error'");
}

static void a_store_that_hangs_fails_in_time(void **state)
{
    struct fixture *fixture = *state;
    struct mount_counters counters;

    (void) put_text(fixture, "home/a", "x");
    atomic_store(&fixture->store.hangs, true);
    atomic_store(&fixture->store.ignores_cancel, true);
    EXPECT(fixture, "SECONDS=0; ls 2>&1 | grep -q 'timed out'; cat a 2>&1 | grep -q 'timed out'; "
                    "test $SECONDS -le 6");
    atomic_store(&fixture->store.hangs, false);
    EXPECT(fixture, "test $(cat a) = x");
    mount_session_counters(fixture->session, &counters);
    assert_true(counters.timeouts >= 2);
    assert_int_equal(counters.open_requests, 0);
}

static void who_waits_can_be_killed(void **state)
{
    struct fixture *fixture = *state;

    fixture->options.patience_ms = 60000;
    end_session(fixture, 1000);
    begin_session(fixture);
    (void) put_text(fixture, "home/a", "x");
    (void) put_text(fixture, "home/b", "x");
    EXPECT(fixture, "stat a > /dev/null");
    atomic_store(&fixture->store.hangs, true);
    EXPECT(fixture, "cat a & reader=$!; stat b & looker=$!; ls . & lister=$!; sleep 0.3; "
                    "start=$(date +%s%N); kill -9 $reader $looker $lister; "
                    "wait $reader || true; wait $looker || true; wait $lister || true; "
                    "test $(( ($(date +%s%N) - start) / 1000000 )) -lt 1500");
    EXPECT(fixture,
           "/usr/bin/python3 -Ic 'import os, signal\n"
           "class Tick(Exception): pass\n"
           "def tick(*a): raise Tick()\n"
           "signal.signal(signal.SIGALRM, tick); signal.setitimer(signal.ITIMER_REAL, 0.2)\n"
           "try: os.stat(\"c\")\n"
           "except Tick: pass'");
}

/* --- freezing -------------------------------------------------------------------------------- */

/* A group that can be frozen, of either kind of cgroup. */
struct freezer {
    char path[96];
    const char *file, *frozen, *thawed;
};

static bool make_freezer(struct freezer *freezer)
{
    static const struct {
        const char *root, *file, *frozen, *thawed;
    } kinds[] = {
        {"/sys/fs/cgroup/freezer", "freezer.state", "FROZEN", "THAWED"},
        {"/sys/fs/cgroup/unified", "cgroup.freeze", "1", "0"},
        {"/sys/fs/cgroup", "cgroup.freeze", "1", "0"},
    };

    for (size_t i = 0; i < ARRAY_COUNT(kinds); i++) {
        (void) snprintf(freezer->path, sizeof(freezer->path), "%s/burrow-mount-test-%d",
                        kinds[i].root, (int) getpid());
        freezer->file = kinds[i].file;
        freezer->frozen = kinds[i].frozen;
        freezer->thawed = kinds[i].thawed;
        if (mkdir(freezer->path, 0755) == 0)
            return true;
    }
    return false;
}

static void write_freezer(const struct freezer *freezer, const char *file, const char *text)
{
    AUTO(free) char *path = NULL;
    AUTO(close) int fd = -EBADF;

    assert_true(asprintf(&path, "%s/%s", freezer->path, file) > 0);
    fd = open(path, O_WRONLY | O_CLOEXEC);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, text, strlen(text)), strlen(text));
}

static bool is_frozen(const struct freezer *freezer)
{
    bool is_older = freezer->file[0] == 'f';
    AUTO(free) char *path = NULL;
    AUTO(close) int fd = -EBADF;
    char text[128] = "";

    assert_true(
        asprintf(&path, "%s/%s", freezer->path, is_older ? freezer->file : "cgroup.events") > 0);
    fd = open(path, O_RDONLY | O_CLOEXEC);
    assert_true(fd >= 0 && read(fd, text, sizeof(text) - 1) > 0);
    return strstr(text, is_older ? "FROZEN" : "frozen 1");
}

/* Freezing interrupts who waits, as a signal does, and waits for the answer. */
static void who_waits_can_be_frozen(void **state)
{
    struct fixture *fixture = *state;
    struct freezer freezer;
    char path[100], text[16];
    int status, turns = 0;
    uint64_t began;
    pid_t pid;

    if (!make_freezer(&freezer)) {
        (void) printf("# skip: a cgroup that can be frozen\n");
        return;
    }
    fixture->options.patience_ms = 60000;
    end_session(fixture, 1000);
    begin_session(fixture);
    EXPECT(fixture, "ls");
    atomic_store(&fixture->store.hangs, true);
    pid = fork_user();
    if (pid == 0) {
        struct stat about;

        (void) snprintf(path, sizeof(path), "%s/x", fixture->place);
        _exit(stat(path, &about) < 0 ? errno : 0);
    }
    (void) snprintf(text, sizeof(text), "%d", (int) pid);
    write_freezer(&freezer, "cgroup.procs", text);
    TURN_UNTIL(&fixture->loop, atomic_load(&fixture->store.calls_caught));
    began = loop_now(&fixture->loop);
    write_freezer(&freezer, freezer.file, freezer.frozen);
    while (!is_frozen(&freezer) && ++turns < 1000)
        testing_turn(&fixture->loop);
    assert_true(turns < 1000);
    assert_true(loop_now(&fixture->loop) - began < fixture->options.patience_ms / 2);
    write_freezer(&freezer, freezer.file, freezer.thawed);
    while (waitpid(pid, &status, WNOHANG) == 0)
        testing_turn(&fixture->loop);
    assert_int_equal(rmdir(freezer.path), 0);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), EINTR);
}

static void open_files_of_an_older_object_are_stale(void **state)
{
    struct fixture *fixture = *state;
    AUTO(free) char *bytes = mem_alloc(6 << 20);
    AUTO(close) int line = -EBADF;
    pid_t pid;
    int status;

    (void) memory_add(&fixture->store, "home/a", bytes, 6 << 20);
    pid = fork_user_with_line(&line);
    if (pid == 0) {
        char path[100], byte;
        int fd;

        (void) snprintf(path, sizeof(path), "%s/a", fixture->place);
        fd = open(path, O_RDONLY);
        if (fd < 0 || pread(fd, &byte, 1, 0) != 1 || !tell(line) || !wait_until_told(line))
            _exit(1);
        _exit(pread(fd, &byte, 1, 5 << 20) == -1 && errno == ESTALE ? 0 : 2);
    }
    TURN_UNTIL(&fixture->loop, is_told(line));
    (void) pthread_mutex_lock(&fixture->store.lock);
    (void) memory_add(&fixture->store, "home/a", bytes, 6 << 20);
    (void) pthread_mutex_unlock(&fixture->store.lock);
    assert_true(tell(line));
    while (waitpid(pid, &status, WNOHANG) == 0)
        testing_turn(&fixture->loop);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
}

static void a_full_spool_says_so(void **state)
{
    struct fixture *fixture = *state;
    struct mount_counters counters;

    fixture->options.spool_limit = 1 << 20;
    end_session(fixture, 1000);
    begin_session(fixture);
    EXPECT(fixture, "head -c 2000000 /dev/zero 2>&1 > big | cat; "
                    "dd if=/dev/zero of=big2 bs=64k count=40 2>&1 | grep -q 'No space left'; "
                    "echo ok > small; rm -f big big2");
    mount_session_counters(fixture->session, &counters);
    assert_int_equal(counters.spool_bytes, 0);
    assert_string_equal(text_of(fixture, "home/small"), "ok\n");
}

/* --- the end --------------------------------------------------------------------------------- */

/* A process with an open, written file, that ends when the mount does. */
static pid_t hold_open(struct fixture *fixture)
{
    AUTO(close) int line = -EBADF;
    pid_t pid = fork_user_with_line(&line);
    char path[100];
    int fd;

    if (pid) {
        TURN_UNTIL(&fixture->loop, is_told(line));
        return pid;
    }
    (void) snprintf(path, sizeof(path), "%s/open", fixture->place);
    fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0644);
    if (fd < 0 || write(fd, "written", 7) != 7 || !tell(line))
        _exit(1);
    for (int i = 0; i < 500; i++) {
        if (pwrite(fd, "again", 5, 0) < 0 || fsync(fd) < 0)
            _exit(errno == ENOTCONN || errno == ECONNABORTED ? 0 : 2);
        (void) usleep(20000);
    }
    _exit(3);
}

static void closing_puts_what_was_written(void **state)
{
    struct fixture *fixture = *state;
    AUTO(close) int line = -EBADF;
    pid_t pid = fork_user_with_line(&line);
    char path[100];
    int status;

    if (pid == 0) {
        int fd;

        (void) snprintf(path, sizeof(path), "%s/open", fixture->place);
        fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0644);
        if (fd >= 0 && write(fd, "written", 7) == 7 && tell(line))
            (void) wait_until_told(line); /* never: it has the file open until it is killed */
        _exit(1);
    }
    TURN_UNTIL(&fixture->loop, is_told(line));
    for (int i = 0; i < 20; i++) /* in which nothing is put */
        testing_turn(&fixture->loop);
    assert_null(text_of(fixture, "home/open"));
    end_session(fixture, 2000);
    assert_int_equal(fixture->lost_files, 0);
    assert_string_equal(text_of(fixture, "home/open"), "written");
    (void) kill(pid, SIGKILL);
    assert_int_equal(waitpid(pid, &status, 0), pid);
}

static void closing_does_not_wait_for_ever(void **state)
{
    struct fixture *fixture = *state;
    uint64_t before;
    pid_t pid;
    int status;

    fixture->options.patience_ms = 60000;
    end_session(fixture, 1000);
    begin_session(fixture);
    pid = hold_open(fixture);
    atomic_store(&fixture->store.hangs, true);
    TURN_UNTIL(&fixture->loop, atomic_load(&fixture->store.puts_caught));
    before = loop_now(&fixture->loop);
    end_session(fixture, 500);
    assert_true(loop_now(&fixture->loop) - before < fixture->options.patience_ms / 2);
    assert_int_equal(fixture->lost_files, 1);
    assert_int_equal(waitpid(pid, &status, 0), pid); /* it got its errors */
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
}

static void the_kernels_end_is_told_once(void **state)
{
    struct fixture *fixture = *state;

    EXPECT(fixture, "echo x > a");
    assert_int_equal(sys_mount_unmount(fixture->place, 0), 0);
    TURN_UNTIL(&fixture->loop, fixture->lost);
    mount_session_close(TAKE_PTR(fixture->session), 1000, on_session_closed, fixture);
    TURN_UNTIL(&fixture->loop, fixture->closed);
    assert_int_equal(fixture->lost, 1);
    assert_int_equal(fixture->lost_files, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup_teardown(name, begin_test, finish_test)
        TEST(what_the_store_refuses_close_tells),
        TEST(lies_do_not_become_bytes),
        TEST(a_store_that_hangs_fails_in_time),
        TEST(who_waits_can_be_killed),
        TEST(who_waits_can_be_frozen),
        TEST(open_files_of_an_older_object_are_stale),
        TEST(a_full_spool_says_so),
        TEST(closing_puts_what_was_written),
        TEST(closing_does_not_wait_for_ever),
        TEST(the_kernels_end_is_told_once),
#undef TEST
    };

    return MOUNT_RUN(tests);
}
