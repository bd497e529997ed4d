#include "wire/wire_permit.h"
#include "wire/wire_testing.h"

/* The table once more, written by hand as it was meant: fresh, greeted, serving, draining;
 * A allowed, r refused, - forbidden. */
static const struct {
    unsigned int number;
    const char *permissions;
} intended[] = {
    {WIRE_MESSAGE_HELLO, "A---"},          {WIRE_MESSAGE_SUBSCRIBE_EXIT, "-A-r"},
    {WIRE_MESSAGE_LIST, "-AAA"},           {WIRE_MESSAGE_ADOPT, "-AAr"},
    {WIRE_MESSAGE_CREATE, "--Ar"},         {WIRE_MESSAGE_ASSIGN, "--Ar"},
    {WIRE_MESSAGE_SOCKETS, "--Ar"},        {WIRE_MESSAGE_FREEZE, "--Ar"},
    {WIRE_MESSAGE_THAW, "--AA"},           {WIRE_MESSAGE_KILL, "--AA"},
    {WIRE_MESSAGE_LIMITS, "--Ar"},         {WIRE_MESSAGE_STATS, "--AA"},
    {WIRE_MESSAGE_OPEN_MOUNT, "--Ar"},     {WIRE_MESSAGE_ATTACH_MOUNT, "--Ar"},
    {WIRE_MESSAGE_DETACH_MOUNT, "--AA"},   {WIRE_MESSAGE_KEEPER_JOB, "--Ar"},
    {WIRE_MESSAGE_WELCOME, "A---"},        {WIRE_MESSAGE_REFUSED, "A---"},
    {WIRE_MESSAGE_DONE, "-AAA"},           {WIRE_MESSAGE_SUBSCRIBED, "-A--"},
    {WIRE_MESSAGE_LISTED, "-AAA"},         {WIRE_MESSAGE_SANDBOX, "-AAA"},
    {WIRE_MESSAGE_SOCKETS_MADE, "--AA"},   {WIRE_MESSAGE_STATS_READ, "--AA"},
    {WIRE_MESSAGE_MOUNT_OPENED, "--AA"},   {WIRE_MESSAGE_JOB_ENDED, "--AA"},
    {WIRE_MESSAGE_SNAPSHOT, "--Ar"},       {WIRE_MESSAGE_DELETE_SNAPSHOT, "--AA"},
    {WIRE_MESSAGE_LIST_SNAPSHOTS, "-AAA"}, {WIRE_MESSAGE_ROLL_BACK, "--Ar"},
    {WIRE_MESSAGE_DISK_USAGE, "--AA"},     {WIRE_MESSAGE_RECLAIM, "--Ar"},
    {WIRE_MESSAGE_SNAPSHOT_MADE, "--AA"},  {WIRE_MESSAGE_SNAPSHOTS_LISTED, "-AAA"},
    {WIRE_MESSAGE_BYTES_COUNTED, "--AA"},  {WIRE_MESSAGE_EXITED, "--AA"},
    {WIRE_MESSAGE_STOPPING, "-AA-"},       {WIRE_MESSAGE_SYNC, "--AA"},
    {WIRE_MESSAGE_INSPECT, "--AA"},        {WIRE_MESSAGE_INSPECTED, "--AA"},
};

static void every_message_in_every_state_is_as_intended(void **state)
{
    static const char letters[] = {[WIRE_FORBID] = '-', [WIRE_REFUSE] = 'r', [WIRE_ALLOW] = 'A'};
    size_t listed = 0;

    (void) state;
    for (unsigned int number = 0; number < 1000; number++)
        listed += wire_message_row(number) != NULL;
    assert_int_equal(listed, ARRAY_COUNT(intended));
    for (size_t i = 0; i < ARRAY_COUNT(intended); i++) {
        char found[WIRE_STATE_COUNT + 1] = "";

        for (enum wire_state at = WIRE_FRESH; at < WIRE_STATE_COUNT; at++)
            found[at] = letters[wire_permit(at, intended[i].number)];
        if (strcmp(found, intended[i].permissions) != 0)
            fail_msg("%s: %s instead of %s", wire_message_name(intended[i].number), found,
                     intended[i].permissions);
    }
}

static void unknown_messages_are_forbidden(void **state)
{
    (void) state;
    for (enum wire_state at = WIRE_FRESH; at < WIRE_STATE_COUNT; at++) {
        assert_int_equal(wire_permit(at, 0), WIRE_FORBID);
        assert_int_equal(wire_permit(at, 50), WIRE_FORBID);
        assert_int_equal(wire_permit(at, UINT32_MAX), WIRE_FORBID);
    }
}

/* The launcher's state may be ahead of what the daemon knew when it sent. Only the two requests
 * that move the state are sent once and awaited. */
static void what_was_right_when_sent_never_ends_the_conversation(void **state)
{
    (void) state;
    for (size_t i = 0; i < ARRAY_COUNT(intended); i++) {
        unsigned int number = intended[i].number;

        if (wire_message_row(number)->type != WIRE_REQUEST || number == WIRE_MESSAGE_HELLO)
            continue;
        for (enum wire_state sent = WIRE_GREETED; sent < WIRE_STATE_COUNT; sent++) {
            if (wire_permit(sent, number) != WIRE_ALLOW)
                continue;
            assert_true(wire_permit(WIRE_DRAINING, number) != WIRE_FORBID);
            if (number != WIRE_MESSAGE_SUBSCRIBE_EXIT && sent == WIRE_GREETED)
                assert_true(wire_permit(WIRE_SERVING, number) == WIRE_ALLOW);
        }
    }
}

static void refusing_is_for_requests_only(void **state)
{
    (void) state;
    for (size_t i = 0; i < ARRAY_COUNT(intended); i++)
        assert_true(wire_message_row(intended[i].number)->type == WIRE_REQUEST ||
                    !strchr(intended[i].permissions, 'r'));
}

/* A request may be answered in the state it is allowed in. */
static void answers_are_permitted_where_their_requests_are(void **state)
{
    (void) state;
    for (size_t i = 0; i < ARRAY_COUNT(intended); i++) {
        const struct wire_row *row = wire_message_row(intended[i].number);

        for (enum wire_state at = WIRE_FRESH; at < WIRE_STATE_COUNT; at++)
            if (row->type == WIRE_REQUEST && wire_permit(at, intended[i].number) == WIRE_ALLOW)
                assert_int_equal(wire_permit(at, row->answer), WIRE_ALLOW);
    }
}

static void each_end_takes_its_own_direction_only(void **state)
{
    (void) state;
    for (size_t i = 0; i < ARRAY_COUNT(intended); i++) {
        unsigned int number = intended[i].number;
        bool request = wire_message_row(number)->type == WIRE_REQUEST;

        for (enum wire_state at = WIRE_FRESH; at < WIRE_STATE_COUNT; at++) {
            struct error err = ERROR_INIT;
            bool allowed = wire_permit(at, number) != WIRE_FORBID;

            assert_int_equal(wire_permit_receive(WIRE_LAUNCHER, at, number, &err),
                             request && allowed ? 0 : -1);
            assert_int_equal(wire_permit_receive(WIRE_DAEMON, at, number, &err),
                             !request && allowed ? 0 : -1);
            assert_int_equal(err.code, ERR_FORBIDDEN);
        }
    }
}

static void the_reason_names_message_and_state(void **state)
{
    struct error err = ERROR_INIT;

    (void) state;
    assert_int_equal(wire_permit_receive(WIRE_LAUNCHER, WIRE_GREETED, WIRE_MESSAGE_CREATE, &err),
                     -1);
    assert_string_equal(err.message, "'create' is not permitted while the conversation is greeted");
    assert_int_equal(wire_permit_receive(WIRE_LAUNCHER, WIRE_GREETED, WIRE_MESSAGE_EXITED, &err),
                     -1);
    assert_string_equal(err.message, "the launcher does not take 'exited'");
}

static void three_messages_change_the_state(void **state)
{
    (void) state;
    for (size_t i = 0; i < ARRAY_COUNT(intended); i++) {
        unsigned int number = intended[i].number;
        enum wire_state after = wire_permit_after(WIRE_FRESH, number);

        assert_int_equal(after, number == WIRE_MESSAGE_WELCOME      ? WIRE_GREETED
                                : number == WIRE_MESSAGE_SUBSCRIBED ? WIRE_SERVING
                                : number == WIRE_MESSAGE_STOPPING   ? WIRE_DRAINING
                                                                    : WIRE_FRESH);
        /* They only ever go forward. */
        for (enum wire_state at = WIRE_FRESH; at < WIRE_STATE_COUNT; at++)
            if (wire_permit(at, number) == WIRE_ALLOW)
                assert_true(wire_permit_after(at, number) >= at);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_message_in_every_state_is_as_intended),
        cmocka_unit_test(unknown_messages_are_forbidden),
        cmocka_unit_test(what_was_right_when_sent_never_ends_the_conversation),
        cmocka_unit_test(refusing_is_for_requests_only),
        cmocka_unit_test(answers_are_permitted_where_their_requests_are),
        cmocka_unit_test(each_end_takes_its_own_direction_only),
        cmocka_unit_test(the_reason_names_message_and_state),
        cmocka_unit_test(three_messages_change_the_state),
    };

    return cmocka_run_group_tests_name("wire_permit", tests, NULL, NULL);
}
