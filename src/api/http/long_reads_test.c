#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>

#include "api/http/api.h"
#include "api/http/long_reads.h"
#include "base/auto.h"
/* After the headers it needs. */
#include <cmocka.h>

#define REQUESTS 4

/* Requests 0 to 2 are of one owner, 3 of another. */
struct reading_room {
    struct loop loop;
    struct api api;
    struct caller callers[2];
    struct http_request requests[REQUESTS];
    size_t begun;                       /* by a call of the handler */
    struct http_request *who[REQUESTS]; /* in that order */
};

static void reading_handler(struct http_request *request)
{
    struct reading_room *hall = CONTAINER_OF(api_of(request), struct reading_room, api);

    assert_true(long_read_begin(request, reading_handler));
    hall->who[hall->begun++] = request;
    loop_stop(&hall->loop);
}

/* As the server does when a request is over. */
static void reading_end(struct http_request *request)
{
    void (*on_ended)(struct http_request *) = TAKE_PTR(request->on_ended);

    on_ended(request);
}

static int reading_open(void **state)
{
    struct reading_room *hall = calloc(1, sizeof(*hall));

    assert_int_equal(loop_init(&hall->loop, NULL), 0);
    hall->api.long_reads = long_reads_new(&hall->loop);
    for (size_t i = 0; i < REQUESTS; i++)
        hall->requests[i] = (struct http_request){.context = &hall->api,
                                                  .caller = &hall->callers[i == REQUESTS - 1]};
    hall->callers[0].owner = id_new();
    hall->callers[1].owner = id_new();
    *state = hall;
    return 0;
}

static int reading_close(void **state)
{
    struct reading_room *hall = *state;

    long_reads_free(hall->api.long_reads);
    loop_done(&hall->loop);
    free(hall);
    return 0;
}

static void those_of_one_owner_go_one_after_another(void **state)
{
    struct reading_room *hall = *state;
    struct http_request *requests = hall->requests;

    assert_true(long_read_begin(&requests[0], reading_handler));
    assert_false(long_read_begin(&requests[1], reading_handler));
    assert_false(long_read_begin(&requests[2], reading_handler));
    assert_non_null(requests[1].on_gone);
    assert_true(long_read_begin(&requests[3], reading_handler)); /* somebody else's */
    reading_end(&requests[0]);
    loop_run(&hall->loop);
    assert_int_equal(hall->begun, 1);
    assert_ptr_equal(hall->who[0], &requests[1]);
    assert_null(requests[1].on_gone);
    reading_end(&requests[1]);
    loop_run(&hall->loop);
    assert_ptr_equal(hall->who[1], &requests[2]);
    reading_end(&requests[2]);
    reading_end(&requests[3]);
}

static void who_leaves_while_he_waits_is_not_called(void **state)
{
    struct reading_room *hall = *state;
    struct http_request *requests = hall->requests;

    assert_true(long_read_begin(&requests[0], reading_handler));
    assert_false(long_read_begin(&requests[1], reading_handler));
    assert_false(long_read_begin(&requests[2], reading_handler));
    requests[1].on_gone(&requests[1]);
    reading_end(&requests[1]);
    reading_end(&requests[0]);
    loop_run(&hall->loop);
    assert_ptr_equal(hall->who[0], &requests[2]);
    reading_end(&requests[2]);
}

static void where_nothing_takes_turns_all_go(void **state)
{
    struct api api = {.long_reads = NULL};
    struct http_request request = {.context = &api};

    (void) state;
    assert_true(long_read_begin(&request, reading_handler));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(those_of_one_owner_go_one_after_another, reading_open,
                                        reading_close),
        cmocka_unit_test_setup_teardown(who_leaves_while_he_waits_is_not_called, reading_open,
                                        reading_close),
        cmocka_unit_test(where_nothing_takes_turns_all_go),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
