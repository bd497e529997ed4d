/* Sudden ends and full disks: what was acknowledged stays, what failed is not there. */
#include <poll.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include "base/crash_point.h"
#include "store/store_sqlite_testing.h"

#define ROUNDS 12
#define SEED   20261116

/* Numbers of transactions that were acknowledged, in the order of the child's pipe. */
struct child {
    pid_t pid;
    int acknowledged; /* reading end */
};

struct writer {
    struct contract *contract;
    int acknowledged; /* writing end */
    int next;
    int waiting;
};

struct asked {
    struct writer *writer;
    int number;
};

static void on_kept(void *context, const struct error *failure, const struct store_receipt *receipt)
{
    struct asked *asked = context;

    if (failure || receipt->event_count != 1 ||
        write(asked->writer->acknowledged, &asked->number, sizeof(asked->number)) !=
            sizeof(asked->number))
        _exit(1);
    asked->writer->waiting--;
    free(asked);
}

static void write_one(struct writer *writer)
{
    struct store_transaction *change = store_begin(writer->contract->store);
    struct asked *asked = mem_alloc(sizeof(*asked));
    char id[32];
    struct row row;
    struct store_event event = event_of("system", 1);

    *asked = (struct asked){writer, writer->next++};
    (void) snprintf(id, sizeof(id), "%08d", asked->number);
    row = sandbox_row(id, "ada", id);
    store_insert(change, STORE_SANDBOX, row.values);
    store_add_event(change, &event);
    store_commit(change, on_kept, asked);
    writer->waiting++;
}

/* Never returns. */
static void write_until_killed(struct contract *contract, int fd, int first, uint64_t seed,
                               const char *crash_point)
{
    struct writer writer = {.contract = contract, .acknowledged = fd, .next = first};

    die_with_parent();
    crash_point_arm(crash_point);
    contract->store = open_file(contract);
    if (!contract->store)
        _exit(2);
    for (;;) {
        int burst = (int) (testing_number(&seed) % 20) + 1;

        while (burst-- && writer.waiting < 100)
            write_one(&writer);
        testing_turn(&contract->loop);
    }
}

static struct child start_writer(struct contract *contract, int first, uint64_t seed,
                                 const char *crash_point)
{
    struct child child;
    int pipes[2];

    assert_null(contract->store); /* no thread while forking */
    assert_int_equal(pipe2(pipes, O_CLOEXEC), 0);
    child.pid = fork();
    assert_true(child.pid >= 0);
    if (child.pid == 0)
        write_until_killed(contract, pipes[1], first, seed, crash_point);
    (void) close(pipes[1]);
    child.acknowledged = pipes[0];
    return child;
}

/* Wait until it has acknowledged `count` more. Returns one behind the last. */
static int wait_for(struct child *child, int first, uint32_t count)
{
    int number;

    while (count--) {
        assert_int_equal(read(child->acknowledged, &number, sizeof(number)), sizeof(number));
        assert_int_equal(number, first); /* in order */
        first++;
    }
    return first;
}

/* Wait for its end by SIGKILL. Returns one behind the last number it acknowledged, or `first`. */
static int end_of(struct child *child, int first)
{
    int status, number;

    assert_int_equal(waitpid(child->pid, &status, 0), child->pid);
    assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
    while (read(child->acknowledged, &number, sizeof(number)) == sizeof(number)) {
        assert_int_equal(number, first); /* in order */
        first++;
    }
    (void) close(child->acknowledged);
    return first;
}

static size_t count_rows(struct contract *contract, enum store_kind kind)
{
    struct store_sqlite_report report;
    struct error err = ERROR_INIT;

    if (store_sqlite_check(contract->path, contract->keyring, NULL, NULL, &report, &err) < 0)
        fail_msg("%s", err.message);
    assert_int_equal(report.problems, 0);
    assert_int_equal(report.rows[STORE_SANDBOX], report.rows[STORE_EVENT]); /* both or none */
    return (size_t) report.rows[kind];
}

static void nothing_acknowledged_is_lost_by_a_kill(void **state)
{
    struct contract *contract = *state;
    const struct store_query newest = {
        .kind = STORE_EVENT, .order = STORE_EVENT_CURSOR, .is_descending = true, .limit = 1};
    uint64_t seed = SEED;
    int kept = 0;

    close_store(contract);
    for (int round = 0; round < ROUNDS; round++) {
        struct child child = start_writer(contract, kept, seed, NULL);
        /* In the middle of things: some acknowledged, and a moment later. */
        int acknowledged = wait_for(&child, kept, testing_number(&seed) % 60 + 1);

        (void) usleep(testing_number(&seed) % 3000);
        assert_int_equal(kill(child.pid, SIGKILL), 0);
        acknowledged = end_of(&child, acknowledged);
        kept = (int) count_rows(contract, STORE_SANDBOX); /* numbers have no gap */
        assert_true(kept >= acknowledged);
        reopen(contract);
        {
            AUTO(reply) struct reply *last = find_now(contract, &newest);

            assert_int_equal(last->row_count ? last->rows[0][STORE_EVENT_SEQUENCE].integer : 0,
                             kept);
        }
        close_store(contract);
    }
}

static void dying_before_the_commit_keeps_nothing(void **state)
{
    struct contract *contract = *state;
    struct child child;

    close_store(contract);
    child = start_writer(contract, 0, 1, "store.commit.before");
    assert_int_equal(end_of(&child, 0), 0);
    assert_int_equal(count_rows(contract, STORE_SANDBOX), 0);
}

static void dying_after_the_commit_keeps_what_nobody_heard_of(void **state)
{
    struct contract *contract = *state;
    struct child child;

    close_store(contract);
    child = start_writer(contract, 0, 1, "store.commit.after");
    assert_int_equal(end_of(&child, 0), 0);
    assert_true(count_rows(contract, STORE_SANDBOX) > 0);
}

/* --- a full disk ------------------------------------------------------------------------------ */

static void limit_files(off_t size)
{
    struct rlimit limit;

    assert_int_equal(getrlimit(RLIMIT_FSIZE, &limit), 0);
    limit.rlim_cur = size ? (rlim_t) size : limit.rlim_max;
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
}

static struct reply *put_large(struct contract *contract, int number)
{
    struct store_transaction *change = store_begin(contract->store);
    AUTO(free) char *spec = mem_alloc(300001);
    char id[32];
    struct row row;

    (void) snprintf(id, sizeof(id), "large-%d", number);
    memset(spec, 'x', 300000);
    row = sandbox_row(id, "ada", id);
    row.values[STORE_SANDBOX_SPEC] = store_text(spec);
    store_insert(change, STORE_SANDBOX, row.values);
    return commit_now(contract, change);
}

static void a_full_disk_is_an_error_until_there_is_room(void **state)
{
    struct contract *contract = *state;
    int kept = 0, refused = 0;

    (void) signal(SIGXFSZ, SIG_IGN);
    limit_files(3 << 20);
    for (int i = 0; i < 30; i++) {
        AUTO(reply) struct reply *reply = put_large(contract, i);

        if (reply->failed) {
            expect_code(reply, ERR_NO_SPACE);
            refused++;
        } else {
            kept++;
        }
    }
    assert_true(kept > 0 && refused > 0);
    limit_files(0);
    for (int i = 100; i < 103; i++) {
        AUTO(reply) struct reply *reply = put_large(contract, i);

        expect_ok(reply);
        kept++;
    }
    reopen(contract);
    {
        AUTO(reply) struct reply *all = find_all(contract, STORE_SANDBOX, STORE_SANDBOX_ID);

        assert_int_equal(all->row_count, kept);
    }
}

/* Of a batch that did not fit nothing is there, and queries in it do not see what never was. */
static void a_batch_that_does_not_fit_is_lost_as_a_whole(void **state)
{
    struct contract *contract = *state;
    struct reply *commits[40], *finds[40];
    AUTO(free) char *spec = mem_alloc(300001);
    int kept = 0;

    memset(spec, 'x', 300000);
    (void) signal(SIGXFSZ, SIG_IGN);
    limit_files(1 << 20);
    for (int i = 0; i < 40; i++) {
        struct store_query query = {.kind = STORE_SANDBOX, .limit = STORE_ROWS_MAX};
        struct store_transaction *change = store_begin(contract->store);
        char id[32];
        struct row row;

        (void) snprintf(id, sizeof(id), "%d", i);
        row = sandbox_row(id, "ada", NULL);
        row.values[STORE_SANDBOX_SPEC] = store_text(spec);
        commits[i] = reply_new();
        finds[i] = reply_new();
        finds[i]->kind = STORE_SANDBOX;
        store_insert(change, STORE_SANDBOX, row.values);
        store_commit(change, on_done, commits[i]);
        store_find(contract->store, &query, on_rows, finds[i]);
    }
    TURN_UNTIL(&contract->loop, finds[39]->times);
    limit_files(0);
    for (int i = 0; i < 40; i++) {
        if (commits[i]->failed)
            expect_code(commits[i], ERR_NO_SPACE);
        else
            kept++;
        expect_ok(finds[i]);
        assert_int_equal(finds[i]->row_count, kept);
        reply_free(commits[i]);
        reply_free(finds[i]);
    }
    assert_true(kept < 40);
    {
        AUTO(reply) struct reply *all = find_all(contract, STORE_SANDBOX, STORE_SANDBOX_ID);

        assert_int_equal(all->row_count, kept);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        STORE_TEST(nothing_acknowledged_is_lost_by_a_kill),
        STORE_TEST(dying_before_the_commit_keeps_nothing),
        STORE_TEST(dying_after_the_commit_keeps_what_nobody_heard_of),
        STORE_TEST(a_full_disk_is_an_error_until_there_is_room),
        STORE_TEST(a_batch_that_does_not_fit_is_lost_as_a_whole),
    };

    return cmocka_run_group_tests_name("store_sqlite_crash", tests, NULL, NULL);
}
