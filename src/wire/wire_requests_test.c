#include "wire/wire_requests.h"
#include "wire/wire_testing.h"

static const struct wire_answer nobody;

static struct wire_message reply_to(uint64_t request, enum wire_number number)
{
    return (struct wire_message){.number = number, .request = request};
}

static void each_request_is_settled_once(void **state)
{
    struct wire_requests requests;
    struct error err = ERROR_INIT;
    struct wire_message reply;
    struct wire_request *open, removed;

    (void) state;
    wire_requests_init(&requests);
    open = wire_requests_add(&requests, WIRE_MESSAGE_LIST, nobody, &err);
    assert_non_null(open);
    assert_true(open->number == 1);
    assert_int_equal(requests.count, 1);
    reply = reply_to(1, WIRE_MESSAGE_LISTED);
    open = wire_requests_find(&requests, &reply, &err);
    assert_non_null(open);
    removed = wire_requests_remove(&requests, open);
    assert_int_equal(removed.message, WIRE_MESSAGE_LIST);
    assert_int_equal(requests.count, 0);
    assert_null(wire_requests_find(&requests, &reply, &err));
    assert_int_equal(err.code, ERR_INVALID);
}

static void answers_must_fit(void **state)
{
    struct wire_requests requests;
    struct error err = ERROR_INIT;
    struct wire_message reply;

    (void) state;
    wire_requests_init(&requests);
    assert_non_null(wire_requests_add(&requests, WIRE_MESSAGE_LIST, nobody, &err));
    reply = reply_to(1, WIRE_MESSAGE_SANDBOX);
    assert_null(wire_requests_find(&requests, &reply, &err));
    assert_string_equal(err.message, "'sandbox' is no answer to 'list'");
    reply = reply_to(2, WIRE_MESSAGE_LISTED);
    assert_null(wire_requests_find(&requests, &reply, &err));
    reply = reply_to(0, WIRE_MESSAGE_LISTED);
    assert_null(wire_requests_find(&requests, &reply, &err));
    assert_int_equal(requests.count, 1);
}

static void there_is_room_for_so_many(void **state)
{
    struct wire_requests requests;
    struct error err = ERROR_INIT;
    struct wire_message reply = reply_to(100, WIRE_MESSAGE_LISTED);

    (void) state;
    wire_requests_init(&requests);
    for (int i = 0; i < WIRE_REQUESTS_MAX; i++)
        assert_non_null(wire_requests_add(&requests, WIRE_MESSAGE_LIST, nobody, &err));
    assert_null(wire_requests_add(&requests, WIRE_MESSAGE_LIST, nobody, &err));
    assert_int_equal(err.code, ERR_UNAVAILABLE);
    assert_int_equal(wire_requests_note(&requests, 1000, WIRE_MESSAGE_LIST, &err), -1);
    assert_int_equal(err.code, ERR_FORBIDDEN);
    wire_requests_remove(&requests, wire_requests_find(&requests, &reply, &err));
    assert_non_null(wire_requests_add(&requests, WIRE_MESSAGE_LIST, nobody, &err));
}

static void numbers_of_the_peer_rise(void **state)
{
    struct wire_requests requests;
    struct error err = ERROR_INIT;

    (void) state;
    wire_requests_init(&requests);
    assert_int_equal(wire_requests_note(&requests, 0, WIRE_MESSAGE_LIST, &err), -1);
    assert_int_equal(wire_requests_note(&requests, 7, WIRE_MESSAGE_LIST, &err), 0);
    assert_int_equal(wire_requests_note(&requests, 7, WIRE_MESSAGE_LIST, &err), -1);
    assert_int_equal(wire_requests_note(&requests, 3, WIRE_MESSAGE_LIST, &err), -1);
    assert_int_equal(err.code, ERR_FORBIDDEN);
    assert_int_equal(wire_requests_note(&requests, UINT64_MAX, WIRE_MESSAGE_LIST, &err), 0);
    assert_int_equal(requests.count, 2);
}

static void the_oldest_is_found_in_any_order_of_places(void **state)
{
    struct wire_requests requests;
    struct error err = ERROR_INIT;
    struct wire_message reply = reply_to(1, WIRE_MESSAGE_LISTED);

    (void) state;
    wire_requests_init(&requests);
    assert_null(wire_requests_oldest(&requests));
    for (int i = 0; i < 3; i++)
        assert_non_null(wire_requests_add(&requests, WIRE_MESSAGE_LIST, nobody, &err));
    wire_requests_remove(&requests, wire_requests_find(&requests, &reply, &err));
    /* Number 4 takes the place of number 1. */
    assert_non_null(wire_requests_add(&requests, WIRE_MESSAGE_LIST, nobody, &err));
    for (uint64_t number = 2; number <= 4; number++)
        assert_true(wire_requests_remove(&requests, wire_requests_oldest(&requests)).number ==
                    number);
    assert_null(wire_requests_oldest(&requests));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_request_is_settled_once),
        cmocka_unit_test(answers_must_fit),
        cmocka_unit_test(there_is_room_for_so_many),
        cmocka_unit_test(numbers_of_the_peer_rise),
        cmocka_unit_test(the_oldest_is_found_in_any_order_of_places),
    };

    return cmocka_run_group_tests_name("wire_requests", tests, NULL, NULL);
}
