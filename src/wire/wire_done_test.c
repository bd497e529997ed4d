#include <errno.h>

#include "wire/wire_done.h"
#include "wire/wire_testing.h"

static void every_code_comes_back(void **state)
{
    (void) state;
    for (enum err_code code = ERR_NONE + 1; code < ERR_CODE_COUNT; code++) {
        struct error sent = ERROR_INIT, received = ERROR_INIT;
        struct wire_message message, decoded;
        struct wire_packet packet;

        (void) error_set(&sent, code, ENOSPC, "make the disk of %s", "demo");
        wire_done_set(&message, &sent);
        message.request = 1;
        assert_ok(wire_message_encode(&message, 1, &packet, &received), &received);
        assert_ok(wire_message_decode(packet.bytes, packet.length, 1, &decoded, &received),
                  &received);
        assert_int_equal(wire_done_get(&decoded.done, &received), -1);
        assert_int_equal(received.code, code);
        assert_int_equal(received.system, ENOSPC);
        assert_string_equal(received.message, sent.message);
        assert_int_equal(wire_done_get(&decoded.done, NULL), -1);
    }
}

static void success_has_no_reason(void **state)
{
    struct error none = ERROR_INIT, err = ERROR_INIT;
    struct wire_message message;

    (void) state;
    wire_done_set(&message, NULL);
    assert_int_equal(message.number, WIRE_MESSAGE_DONE);
    assert_string_equal(message.done.code, "ok");
    assert_int_equal(wire_done_get(&message.done, &err), 0);
    wire_done_set(&message, &none);
    assert_int_equal(wire_done_get(&message.done, &err), 0);
    assert_int_equal(err.code, ERR_NONE);
}

static void codes_of_another_release_are_internal_errors(void **state)
{
    const struct wire_done done = {.code = "too_cold", .system = 5, .message = "the host freezes"};
    struct error err = ERROR_INIT;

    (void) state;
    assert_int_equal(wire_done_get(&done, &err), -1);
    assert_int_equal(err.code, ERR_INTERNAL);
    assert_int_equal(err.system, 5);
    assert_string_equal(err.message, "the host freezes (too_cold)");
}

static void any_message_can_be_sent(void **state)
{
    struct error sent = {.code = ERR_INVALID}, err = ERROR_INIT;
    struct wire_message message;
    struct wire_packet packet;

    (void) state;
    memset(sent.message, '\x9b', sizeof(sent.message) - 1);
    wire_done_set(&message, &sent);
    message.request = 1;
    assert_ok(wire_message_encode(&message, 1, &packet, &err), &err);
    assert_int_equal(strspn(message.done.message, "?"), sizeof(sent.message) - 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_code_comes_back),
        cmocka_unit_test(success_has_no_reason),
        cmocka_unit_test(codes_of_another_release_are_internal_errors),
        cmocka_unit_test(any_message_can_be_sent),
    };

    return cmocka_run_group_tests_name("wire_done", tests, NULL, NULL);
}
