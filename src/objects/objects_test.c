/* The handle itself, over a backend that does what a test wants. */
#include <stdatomic.h>

#include "objects/objects_backend.h"
#include "objects/objects_testing.h"

/* A store whose calls wait at a gate. */
struct gate {
    atomic_bool is_open;
    atomic_int inside, most, ended;
    bool is_deaf; /* does not look at `cancelled` */
    bool fails;
};

static int wait_at_gate(struct gate *gate, struct objects_work *work, struct error *err)
{
    int inside = atomic_fetch_add(&gate->inside, 1) + 1;

    if (inside > atomic_load(&gate->most))
        atomic_store(&gate->most, inside);
    while (!atomic_load(&gate->is_open)) {
        if (!gate->is_deaf && atomic_load(work->cancelled)) {
            atomic_fetch_sub(&gate->inside, 1);
            return error_set(err, ERR_INTERNAL, 0, "something else, on the way out");
        }
        (void) usleep(1000);
    }
    atomic_fetch_sub(&gate->inside, 1);
    return gate->fails ? error_set(err, ERR_UPSTREAM, 0, "as told") : 0;
}

static int gate_head(void *self, struct objects_work *work, const char *key,
                     struct object_info *ret_info, struct error *err)
{
    (void) key;
    ret_info->size = 1;
    return wait_at_gate(self, work, err);
}

static int gate_put(void *self, struct objects_work *work, const char *key,
                    const struct objects_source *source, const struct object_put_options *options,
                    struct object_info *ret_info, struct error *err)
{
    (void) key;
    (void) options;
    atomic_fetch_add(work->done_bytes, 10);
    atomic_fetch_add(work->retries, 2);
    ret_info->size = source->length;
    if (wait_at_gate(self, work, err) < 0)
        return -1;
    atomic_fetch_add(work->done_bytes, 5);
    return 0;
}

static void gate_end(void *self)
{
    struct gate *gate = self;

    assert_int_equal(atomic_load(&gate->inside), 0); /* no thread is left */
    atomic_fetch_add(&gate->ended, 1);
}

static struct objects *open_gate(struct contract *contract)
{
    struct gate *gate = mem_alloc(sizeof(*gate));
    const struct objects_backend backend = {
        .self = gate, .head = gate_head, .put = gate_put, .end = gate_end, .text = "a gate"};

    free(contract->more);
    contract->more = gate;
    return objects_new(&contract->loop, &backend, 2);
}

static void end_gate(struct contract *contract)
{
    struct gate *gate = contract->more;

    assert_int_equal(atomic_load(&gate->ended), 1);
    free(gate);
}

static int setup(void **state)
{
    static const struct contract_backend backend = {.open = open_gate, .end = end_gate};

    *state = contract_new(&backend);
    return 0;
}

static int teardown(void **state)
{
    struct contract *contract = *state;

    atomic_store(&((struct gate *) contract->more)->is_open, true);
    contract_free(contract);
    return 0;
}

static void wait_inside(struct contract *contract, int count)
{
    struct gate *gate = contract->more;

    OBJECTS_WAIT(contract, atomic_load(&gate->inside) == count);
}

static void no_more_than_its_threads_work_at_once(void **state)
{
    struct contract *contract = *state;
    struct gate *gate = contract->more;
    struct reply *replies[20];
    struct objects_counters counters;

    for (size_t i = 0; i < ARRAY_COUNT(replies); i++) {
        replies[i] = reply_new();
        (void) objects_head(contract->objects, "key", on_info, replies[i]);
    }
    wait_inside(contract, 2);
    objects_counters(contract->objects, &counters);
    assert_int_equal(counters.queued, 18);
    assert_int_equal(counters.running, 2);
    atomic_store(&gate->is_open, true);
    for (size_t i = 0; i < ARRAY_COUNT(replies); i++) {
        OBJECTS_WAIT(contract, replies[i]->times);
        expect_ok(replies[i]);
        reply_free(replies[i]);
    }
    assert_int_equal(atomic_load(&gate->most), 2);
}

static void a_full_queue_refuses_and_recovers(void **state)
{
    struct contract *contract = *state;
    struct gate *gate = contract->more;
    size_t total = OBJECTS_QUEUE_MAX + 2 + 5, refused = 0;
    struct reply **replies = mem_alloc_array(total, sizeof(struct reply *));

    for (size_t i = 0; i < total; i++) {
        replies[i] = reply_new();
        (void) objects_head(contract->objects, "key", on_info, replies[i]);
        if (i < 2)
            wait_inside(contract, (int) i + 1);
    }
    assert_int_equal(replies[total - 1]->times, 0);
    OBJECTS_WAIT(contract, replies[total - 1]->times);
    expect_code(replies[total - 1], ERR_UNAVAILABLE);
    atomic_store(&gate->is_open, true);
    for (size_t i = 0; i < total; i++) {
        OBJECTS_WAIT(contract, replies[i]->times);
        refused += replies[i]->failed;
        reply_free(replies[i]);
    }
    assert_int_equal(refused, 5);
    free(replies);
    {
        AUTO(reply) struct reply *after = head(contract, "key");

        expect_ok(after);
    }
}

/* What waits is bounded in bytes, too. */
static void too_many_bytes_in_memory_are_refused(void **state)
{
    struct contract *contract = *state;
    struct gate *gate = contract->more;
    AUTO(free) char *bytes = mem_alloc(OBJECTS_BYTES_MAX);
    struct reply *replies[24];
    size_t refused = 0;

    for (size_t i = 0; i < ARRAY_COUNT(replies); i++) {
        replies[i] = reply_new();
        (void) objects_put_bytes(contract->objects, "key", bytes, OBJECTS_BYTES_MAX, NULL, on_info,
                                 replies[i]);
    }
    atomic_store(&gate->is_open, true);
    for (size_t i = 0; i < ARRAY_COUNT(replies); i++) {
        OBJECTS_WAIT(contract, replies[i]->times);
        if (replies[i]->failed) {
            expect_code(replies[i], ERR_UNAVAILABLE);
            refused++;
        }
        reply_free(replies[i]);
    }
    assert_int_equal(refused, ARRAY_COUNT(replies) - 16);
}

static void a_cancelled_call_is_told_so_whatever_its_failure(void **state)
{
    struct contract *contract = *state;
    AUTO(reply) struct reply *running = reply_new();
    struct reply *queued[5];
    struct objects_call *call, *calls[5];

    call = objects_head(contract->objects, "key", on_info, running);
    wait_inside(contract, 1);
    for (size_t i = 0; i < 5; i++) {
        queued[i] = reply_new();
        calls[i] = objects_head(contract->objects, "key", on_info, queued[i]);
    }
    wait_inside(contract, 2);
    objects_cancel(calls[4]); /* waits behind others and needs no thread */
    OBJECTS_WAIT(contract, queued[4]->times);
    expect_code(queued[4], ERR_CANCELLED);
    objects_cancel(call);
    objects_cancel(call); /* once more is the same */
    OBJECTS_WAIT(contract, running->times);
    expect_code(running, ERR_CANCELLED);
    atomic_store(&((struct gate *) contract->more)->is_open, true);
    for (size_t i = 0; i < 4; i++) {
        OBJECTS_WAIT(contract, queued[i]->times);
        expect_ok(queued[i]);
    }
    for (size_t i = 0; i < 5; i++)
        reply_free(queued[i]);
}

static void what_succeeds_in_spite_of_a_cancel_is_told(void **state)
{
    struct contract *contract = *state;
    struct gate *gate = contract->more;
    AUTO(reply) struct reply *reply = reply_new();
    struct objects_call *call;

    gate->is_deaf = true;
    call = objects_head(contract->objects, "key", on_info, reply);
    wait_inside(contract, 1);
    objects_cancel(call);
    atomic_store(&gate->is_open, true);
    OBJECTS_WAIT(contract, reply->times);
    expect_ok(reply);
}

static void a_close_waits_for_its_threads(void **state)
{
    struct contract *contract = *state;
    struct gate *gate = contract->more;
    AUTO(reply) struct reply *running = reply_new();
    AUTO(reply) struct reply *closed = reply_new();

    gate->is_deaf = true;
    (void) objects_head(contract->objects, "key", on_info, running);
    wait_inside(contract, 1);
    objects_close(contract->objects, on_done, closed);
    contract->objects = NULL;
    for (int i = 0; i < 10; i++)
        testing_turn(&contract->loop);
    assert_int_equal(running->times + closed->times, 0);
    atomic_store(&gate->is_open, true);
    OBJECTS_WAIT(contract, closed->times);
    expect_code(running, ERR_UNAVAILABLE);
    assert_int_equal(atomic_load(&gate->ended), 1);
}

static void close_it(struct reply *reply)
{
    struct contract *contract = reply->more;

    objects_close(contract->objects, NULL, NULL);
    contract->objects = NULL;
}

static void an_answer_may_close(void **state)
{
    struct contract *contract = *state;
    struct gate *gate = contract->more;
    struct reply *replies[6];

    for (size_t i = 0; i < ARRAY_COUNT(replies); i++) {
        replies[i] = reply_new();
        (void) objects_head(contract->objects, i == 2 ? "" : "key", on_info, replies[i]);
    }
    replies[2]->then = close_it;
    replies[2]->more = contract;
    OBJECTS_WAIT(contract, atomic_load(&gate->ended));
    expect_code(replies[2], ERR_INVALID);
    for (size_t i = 0; i < ARRAY_COUNT(replies); i++) {
        assert_int_equal(replies[i]->times, 1);
        if (i != 2)
            expect_code(replies[i], ERR_UNAVAILABLE);
        reply_free(replies[i]);
    }
}

static void progress_is_told_while_it_goes_on(void **state)
{
    struct contract *contract = *state;
    struct gate *gate = contract->more;
    struct object_put_options options = {.progress = on_progress};
    AUTO(reply) struct reply *reply = reply_new();
    struct objects_counters counters;

    (void) objects_put_bytes(contract->objects, "key", "x", 1, &options, on_info, reply);
    OBJECTS_WAIT(contract, reply->progress_times);
    assert_int_equal(reply->progress_bytes, 10);
    atomic_store(&gate->is_open, true);
    OBJECTS_WAIT(contract, reply->times);
    expect_ok(reply);
    assert_int_equal(reply->progress_bytes, 15);
    assert_int_equal(reply->progress_times, 2);
    objects_counters(contract->objects, &counters);
    assert_int_equal(counters.retries, 2);
    assert_int_equal(counters.bytes_in, 15);
}

static void failures_are_passed_on_and_counted(void **state)
{
    struct contract *contract = *state;
    struct gate *gate = contract->more;
    struct objects_counters counters;

    gate->fails = true;
    atomic_store(&gate->is_open, true);
    {
        AUTO(reply) struct reply *reply = head(contract, "key");

        expect_code(reply, ERR_UPSTREAM);
        assert_string_equal(reply->failure.message, "as told");
    }
    objects_counters(contract->objects, &counters);
    assert_int_equal(counters.calls, 1);
    assert_int_equal(counters.failures, 1);
}

/* Nobody has to listen. */
static void answers_may_be_thrown_away(void **state)
{
    struct contract *contract = *state;

    atomic_store(&((struct gate *) contract->more)->is_open, true);
    (void) objects_head(contract->objects, "key", NULL, NULL);
    (void) objects_put_bytes(contract->objects, "", "x", 1, NULL, NULL, NULL);
    loop_run(&contract->loop);
}

#define OBJECTS_TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

static void expect_plain(const struct contract *contract, enum err_code code, const char *message,
                         const char *expected)
{
    struct error err = ERROR_INIT;

    (void) error_set(&err, code, 0, "%s", message);
    err.system = ENOSPC;
    assert_int_equal(objects_make_plain(contract->objects, &err), strcmp(message, expected) != 0);
    assert_string_equal(err.message, expected);
    assert_int_equal(err.code, code);
    assert_int_equal(err.system, ENOSPC);
}

static void clients_are_not_told_where_the_store_is(void **state)
{
    const struct contract *contract = *state;

    expect_plain(contract, ERR_UNAVAILABLE, "a gate: connect to host:1: refused",
                 "the object store is not available; the daemon's log says more");
    expect_plain(
        contract, ERR_FORBIDDEN, "store the layer: a gate: the signature is wrong",
        "store the layer: the object store refuses the daemon; the daemon's log says more");
    expect_plain(contract, ERR_NO_SPACE, "write 'key' in a gate: No space left on device",
                 "write 'key': the object store is full; the daemon's log says more");
    expect_plain(contract, ERR_INTERNAL, "the keeper died", "the keeper died");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        OBJECTS_TEST(no_more_than_its_threads_work_at_once),
        OBJECTS_TEST(a_full_queue_refuses_and_recovers),
        OBJECTS_TEST(too_many_bytes_in_memory_are_refused),
        OBJECTS_TEST(a_cancelled_call_is_told_so_whatever_its_failure),
        OBJECTS_TEST(what_succeeds_in_spite_of_a_cancel_is_told),
        OBJECTS_TEST(a_close_waits_for_its_threads),
        OBJECTS_TEST(an_answer_may_close),
        OBJECTS_TEST(progress_is_told_while_it_goes_on),
        OBJECTS_TEST(failures_are_passed_on_and_counted),
        OBJECTS_TEST(clients_are_not_told_where_the_store_is),
        OBJECTS_TEST(answers_may_be_thrown_away),
    };

    return cmocka_run_group_tests_name("objects", tests, NULL, NULL);
}
