/* Sudden ends: what was acknowledged is there, every object is whole, nothing else is. */
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#include "base/crash_point.h"
#include "objects/folder/objects_folder_testing.h"

#define ROUNDS 10
#define KEYS   12
#define SEED   20261116
#define SPREAD 300000 /* of sizes */

/* What one put says of itself, so that the parent knows what it must find. */
struct told {
    uint32_t key, number;
};

struct writer {
    struct contract *contract;
    int acknowledged; /* writing end */
    uint32_t next;
    int waiting;
    uint64_t seed;
};

struct asked {
    struct writer *writer;
    struct told told;
};

static void key_of(uint32_t key, char ret_key[static 32])
{
    (void) snprintf(ret_key, 32, "w/%u/deep/%u", key % 3, key);
}

/* The content of the nth put: its number, and bytes that go with it, as many as it says. */
static char *content_of(uint32_t number, size_t *ret_length)
{
    uint64_t seed = number;
    size_t length = sizeof(number) + testing_number(&seed) % SPREAD;
    char *bytes = mem_alloc(length);

    memcpy(bytes, &number, sizeof(number));
    testing_fill(bytes + sizeof(number), length - sizeof(number), number);
    *ret_length = length;
    return bytes;
}

static void on_kept(void *context, const struct error *failure, const struct object_info *info)
{
    struct asked *asked = context;

    (void) info;
    if (failure || write(asked->writer->acknowledged, &asked->told, sizeof(asked->told)) !=
                       sizeof(asked->told))
        _exit(1);
    asked->writer->waiting--;
    free(asked);
}

static void write_one(struct writer *writer)
{
    struct asked *asked = mem_alloc(sizeof(*asked));
    AUTO(free) char *bytes = NULL;
    size_t length;
    char key[32];

    *asked = (struct asked){writer, {testing_number(&writer->seed) % KEYS, writer->next++}};
    bytes = content_of(asked->told.number, &length);
    key_of(asked->told.key, key);
    (void) objects_put_bytes(writer->contract->objects, key, bytes, length, NULL, on_kept, asked);
    writer->waiting++;
}

/* Never returns. One put of a key at a time: which of two at once is the last nobody knows. */
static void write_until_killed(struct contract *contract, int fd, uint32_t first, uint64_t seed,
                               const char *crash_point)
{
    struct writer writer = {.contract = contract, .acknowledged = fd, .next = first, .seed = seed};

    (void) prctl(PR_SET_PDEATHSIG, SIGKILL);
    crash_point_arm(crash_point);
    contract->objects = open_folder(contract);
    if (!contract->objects)
        _exit(2);
    for (;;) {
        write_one(&writer);
        while (writer.waiting > 0)
            testing_turn(&contract->loop);
    }
}

static pid_t start_writer(struct contract *contract, uint32_t first, uint64_t seed,
                          const char *crash_point, int *ret_acknowledged)
{
    int pipes[2];
    pid_t pid;

    assert_null(contract->objects); /* no thread while forking */
    assert_int_equal(pipe2(pipes, O_CLOEXEC), 0);
    pid = fork();
    assert_true(pid >= 0);
    if (pid == 0)
        write_until_killed(contract, pipes[1], first, seed, crash_point);
    (void) close(pipes[1]);
    *ret_acknowledged = pipes[0];
    return pid;
}

/* Its last number of every key; 0: none. */
struct known {
    uint32_t numbers[KEYS];
    uint32_t highest;
};

static bool hear(struct known *known, int acknowledged)
{
    struct told told;

    if (read(acknowledged, &told, sizeof(told)) != sizeof(told))
        return false;
    known->numbers[told.key] = told.number;
    known->highest = told.number;
    return true;
}

static void end_of(pid_t pid, struct known *known, int acknowledged)
{
    int status;

    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
    while (hear(known, acknowledged))
        continue;
    (void) close(acknowledged);
}

/* Whole, and the last that was acknowledged or the one that was under way. Returns its number. */
static uint32_t check_key(struct contract *contract, const struct known *known, uint32_t key)
{
    char name[32];
    AUTO(reply) struct reply *got = NULL;
    AUTO(free) char *expected = NULL;
    uint32_t number;
    size_t length;

    key_of(key, name);
    got = get_bytes(contract, name);
    if (got->failed) {
        expect_code(got, ERR_NOT_FOUND);
        assert_int_equal(known->numbers[key], 0);
        return 0;
    }
    assert_true(got->length >= sizeof(number));
    memcpy(&number, got->bytes, sizeof(number));
    assert_true(number == known->numbers[key] || number == known->highest + 1);
    expected = content_of(number, &length);
    assert_int_equal(got->length, length);
    assert_memory_equal(got->bytes, expected, length);
    return number;
}

static void check_all(struct contract *contract, struct known *known)
{
    reopen(contract);
    assert_int_equal(count_names(contract, ".tmp"), 0);
    for (uint32_t key = 0; key < KEYS; key++)
        known->numbers[key] = check_key(contract, known, key);
    close_objects(contract);
}

static void every_object_is_whole_after_a_kill(void **state)
{
    struct contract *contract = *state;
    struct known known = {.highest = 0};
    uint64_t seed = SEED;

    close_objects(contract);
    for (int round = 0; round < ROUNDS; round++) {
        int acknowledged;
        pid_t pid = start_writer(contract, known.highest + 2, seed, NULL, &acknowledged);
        uint32_t count = testing_number(&seed) % 10 + 1;

        known.highest++; /* numbers that nobody heard of are not used again */
        while (count--)
            assert_true(hear(&known, acknowledged));
        (void) usleep(testing_number(&seed) % 5000);
        assert_int_equal(kill(pid, SIGKILL), 0);
        end_of(pid, &known, acknowledged);
        check_all(contract, &known);
    }
}

static void dying_before_its_place_keeps_the_old(void **state)
{
    struct contract *contract = *state;
    struct known known = {.highest = 0};
    int acknowledged;
    pid_t pid;

    close_objects(contract);
    pid = start_writer(contract, 1, 1, "objects.put.before:4", &acknowledged);
    end_of(pid, &known, acknowledged);
    assert_int_equal(known.highest, 3);
    assert_int_equal(count_names(contract, ".tmp"), 1); /* the draft, until the next start */
    check_all(contract, &known);
    for (uint32_t key = 0; key < KEYS; key++)
        assert_int_not_equal(known.numbers[key], 4);
}

static void dying_behind_its_place_keeps_what_nobody_heard_of(void **state)
{
    struct contract *contract = *state;
    struct known known = {.highest = 0};
    size_t found = 0;
    int acknowledged;
    pid_t pid;

    close_objects(contract);
    pid = start_writer(contract, 1, 1, "objects.put.moved:4", &acknowledged);
    end_of(pid, &known, acknowledged);
    assert_int_equal(known.highest, 3);
    check_all(contract, &known);
    for (uint32_t key = 0; key < KEYS; key++)
        found += known.numbers[key] == 4;
    assert_int_equal(found, 1);
}

#define CRASH_TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        CRASH_TEST(every_object_is_whole_after_a_kill),
        CRASH_TEST(dying_before_its_place_keeps_the_old),
        CRASH_TEST(dying_behind_its_place_keeps_what_nobody_heard_of),
    };

    return cmocka_run_group_tests_name("objects_folder_crash", tests, NULL, NULL);
}
