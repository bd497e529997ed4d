#include <poll.h>
#include <sys/socket.h>

#include "sys/network/sys_socket.h"
#include "sys/sys_test.h"
#include "wire/wire_conversation.h"
#include "wire/wire_testing.h"

static const struct id id_a = {.text = "aaaaaaaaaaaaaaaaaaaaaaaaaa"};

/* What the daemon was told about one request. */
struct told {
    int times;
    enum wire_number reply; /* NONE: a failure */
    struct error failure;
    size_t fds;
    struct wire_conversation *ask_again;
    int asked_again; /* result */
};

struct talk {
    int before;
    struct wire_conversation launcher, daemon;
    struct told told;
};

static void answered(void *context, struct wire_incoming *reply, const struct error *failure)
{
    struct told *told = context;

    assert_true((reply == NULL) != (failure == NULL));
    told->times++;
    told->reply = reply ? reply->message.number : WIRE_MESSAGE_NONE;
    told->fds = reply ? reply->fd_count : 0;
    if (failure)
        told->failure = *failure;
    if (told->ask_again) {
        struct wire_message list = {.number = WIRE_MESSAGE_LIST};
        struct wire_answer answer = {.call = answered, .context = told};
        struct wire_conversation *conversation = told->ask_again;

        told->ask_again = NULL;
        told->asked_again = wire_conversation_ask(conversation, &list, NULL, 0, answer, NULL);
    }
}

static void start(struct talk *talk)
{
    struct error err = ERROR_INIT;
    int ends[2];

    memset(talk, 0, sizeof(*talk));
    talk->before = count_descriptors();
    assert_int_equal(sys_socket_pair(SOCK_SEQPACKET, ends), 0);
    assert_ok(wire_conversation_init(&talk->launcher, WIRE_LAUNCHER, ends[0], &err), &err);
    assert_ok(wire_conversation_init(&talk->daemon, WIRE_DAEMON, ends[1], &err), &err);
}

static void finish(struct talk *talk)
{
    wire_conversation_end(&talk->launcher, NULL);
    wire_conversation_end(&talk->daemon, NULL);
    assert_int_equal(talk->daemon.requests.count, 0);
    assert_int_equal(count_descriptors(), talk->before);
}

static int ask(struct talk *talk, struct wire_message message, const int *fds, size_t count,
               struct error *err)
{
    struct wire_answer answer = {.call = answered, .context = &talk->told};

    talk->told = (struct told){.times = 0};
    return wire_conversation_ask(&talk->daemon, &message, fds, count, answer, err);
}

/* The launcher receives a request of that number. */
static struct wire_incoming expect(struct talk *talk, enum wire_number number)
{
    struct wire_incoming incoming;
    struct error err = ERROR_INIT;
    enum wire_received received = wire_conversation_receive(&talk->launcher, &incoming, &err);

    if (received != WIRE_MESSAGE)
        fail_msg("%d: %s", received, err.message);
    assert_int_equal(incoming.message.number, number);
    return incoming;
}

/* The daemon receives the answer to its request. */
static void hear(struct talk *talk)
{
    struct wire_incoming incoming;
    struct error err = ERROR_INIT;

    assert_int_equal(wire_conversation_receive(&talk->daemon, &incoming, &err), WIRE_SETTLED);
    assert_int_equal(talk->told.times, 1);
}

static void greet(struct talk *talk)
{
    struct wire_answer answer = {.call = answered, .context = &talk->told};
    struct wire_welcome welcome = {.program = "0.1.0", .features = WIRE_BIT(WIRE_FEATURE_NAT)};
    struct wire_incoming hello;
    struct error err = ERROR_INIT;

    talk->told = (struct told){.times = 0};
    assert_ok(wire_conversation_hello(&talk->daemon, "0.1.0", answer, &err), &err);
    hello = expect(talk, WIRE_MESSAGE_HELLO);
    assert_string_equal(hello.message.hello.program, "0.1.0");
    assert_ok(wire_conversation_welcome(&talk->launcher, &hello.message, &welcome, &err), &err);
    assert_int_equal(talk->launcher.state, WIRE_GREETED);
    hear(talk);
    assert_int_equal(talk->told.reply, WIRE_MESSAGE_WELCOME);
    assert_int_equal(talk->daemon.state, WIRE_GREETED);
    assert_int_equal(talk->daemon.channel.version, WIRE_VERSION_MAX);
}

static void serve(struct talk *talk)
{
    struct wire_message reply = {.number = WIRE_MESSAGE_SUBSCRIBED};
    struct error err = ERROR_INIT;

    greet(talk);
    assert_ok(
        ask(talk, (struct wire_message){.number = WIRE_MESSAGE_SUBSCRIBE_EXIT}, NULL, 0, &err),
        &err);
    assert_ok(wire_conversation_answer(&talk->launcher,
                                       expect(talk, WIRE_MESSAGE_SUBSCRIBE_EXIT).message.request,
                                       &reply, NULL, 0, &err),
              &err);
    hear(talk);
    assert_int_equal(talk->launcher.state, WIRE_SERVING);
    assert_int_equal(talk->daemon.state, WIRE_SERVING);
}

static void drain(struct talk *talk)
{
    struct wire_message stopping = {.number = WIRE_MESSAGE_STOPPING,
                                    .stopping = {.reason = "upgrade"}};
    struct error err = ERROR_INIT;

    serve(talk);
    assert_ok(wire_conversation_tell(&talk->launcher, &stopping, &err), &err);
    assert_int_equal(talk->launcher.state, WIRE_DRAINING);
}

static struct wire_message kill_message(void)
{
    return (struct wire_message){.number = WIRE_MESSAGE_KILL,
                                 .kill = {.id = id_a, .scope = WIRE_KILL_EVERYTHING}};
}

static void a_conversation_goes_its_way(void **state)
{
    struct wire_message exited = {.number = WIRE_MESSAGE_EXITED, .exited = {.id = id_a}};
    struct wire_message sandbox = {.number = WIRE_MESSAGE_SANDBOX,
                                   .sandbox = {.entry = {.id = id_a, .pid = 7}}};
    struct wire_incoming incoming;
    struct error err = ERROR_INIT;
    struct talk talk;
    const int fd = 2;

    (void) state;
    start(&talk);
    serve(&talk);
    assert_ok(ask(&talk, (struct wire_message){.number = WIRE_MESSAGE_CREATE}, &fd, 1, &err), &err);
    incoming = expect(&talk, WIRE_MESSAGE_CREATE);
    assert_int_equal(incoming.fd_count, 1);
    wire_incoming_done(&incoming);
    assert_ok(
        wire_conversation_answer(&talk.launcher, incoming.message.request, &sandbox, NULL, 0, &err),
        &err);
    assert_ok(wire_conversation_tell(&talk.launcher, &exited, &err), &err);
    hear(&talk);
    assert_int_equal(talk.told.reply, WIRE_MESSAGE_SANDBOX);
    assert_int_equal(wire_conversation_receive(&talk.daemon, &incoming, &err), WIRE_MESSAGE);
    assert_int_equal(incoming.message.number, WIRE_MESSAGE_EXITED);
    assert_int_equal(wire_conversation_receive(&talk.daemon, &incoming, &err), WIRE_NOTHING);
    assert_int_equal(wire_conversation_receive(&talk.launcher, &incoming, &err), WIRE_NOTHING);
    finish(&talk);
}

static void note_context(void *context, struct wire_incoming *reply, const struct error *failure)
{
    (void) reply, (void) failure;
    *(struct trace_context *) context = trace_context;
}

static void for_whom_it_is_goes_along_and_comes_back(void **state)
{
    static const struct id request = {.text = "aaaaaaaaaaaaaaaaaaaaaaaaaa"};
    struct wire_message message = kill_message();
    struct trace_context told = {.request = {""}};
    struct wire_incoming incoming;
    struct error err = ERROR_INIT;
    struct talk talk;

    (void) state;
    start(&talk);
    serve(&talk);
    {
        struct wire_answer answer = {.call = note_context, .context = &told};
        TRACE_FOR(&request, &id_a);

        assert_ok(wire_conversation_ask(&talk.daemon, &message, NULL, 0, answer, &err), &err);
    }
    incoming = expect(&talk, WIRE_MESSAGE_KILL);
    assert_string_equal(incoming.message.trace.text, request.text);
    assert_ok(wire_conversation_answer_done(&talk.launcher, incoming.message.request, NULL, &err),
              &err);
    assert_int_equal(wire_conversation_receive(&talk.daemon, &incoming, &err), WIRE_SETTLED);
    assert_string_equal(told.request.text, request.text);
    assert_string_equal(told.sandbox.text, id_a.text);
    assert_string_equal(trace_context.request.text, "");
    finish(&talk);
}

static void answers_come_in_any_order_and_with_descriptors(void **state)
{
    struct wire_message made = {.number = WIRE_MESSAGE_SOCKETS_MADE, .sockets_made = {.count = 2}};
    const struct wire_message sockets = {.number = WIRE_MESSAGE_SOCKETS,
                                         .sockets = {.id = id_a, .count = 2}};
    const int fds[2] = {2, 2};
    struct error err = ERROR_INIT;
    uint64_t first, second;
    struct talk talk;

    (void) state;
    start(&talk);
    serve(&talk);
    assert_ok(ask(&talk, kill_message(), NULL, 0, &err), &err);
    assert_ok(ask(&talk, sockets, NULL, 0, &err), &err);
    first = expect(&talk, WIRE_MESSAGE_KILL).message.request;
    second = expect(&talk, WIRE_MESSAGE_SOCKETS).message.request;
    assert_ok(wire_conversation_answer(&talk.launcher, second, &made, fds, 2, &err), &err);
    hear(&talk);
    assert_int_equal(talk.told.reply, WIRE_MESSAGE_SOCKETS_MADE);
    assert_int_equal(talk.told.fds, 2);
    talk.told.times = 0;
    assert_ok(wire_conversation_answer_done(&talk.launcher, first, NULL, &err), &err);
    hear(&talk);
    assert_int_equal(talk.told.reply, WIRE_MESSAGE_DONE);
    finish(&talk);
}

static void a_failure_arrives_as_it_was(void **state)
{
    struct error failure = ERROR_INIT, err = ERROR_INIT;
    struct talk talk;

    (void) state;
    start(&talk);
    serve(&talk);
    (void) error_set(&failure, ERR_NOT_FOUND, ESRCH, "no sandbox %s", id_a.text);
    assert_ok(ask(&talk, kill_message(), NULL, 0, &err), &err);
    assert_ok(wire_conversation_answer_done(
                  &talk.launcher, expect(&talk, WIRE_MESSAGE_KILL).message.request, &failure, &err),
              &err);
    hear(&talk);
    assert_int_equal(talk.told.reply, WIRE_MESSAGE_NONE);
    assert_int_equal(talk.told.failure.code, ERR_NOT_FOUND);
    assert_int_equal(talk.told.failure.system, ESRCH);
    assert_string_equal(talk.told.failure.message, failure.message);
    finish(&talk);
}

static void a_request_is_answered_exactly_once(void **state)
{
    struct wire_message wrong = {.number = WIRE_MESSAGE_SUBSCRIBED};
    struct error err = ERROR_INIT;
    struct talk talk;
    uint64_t request;

    (void) state;
    start(&talk);
    serve(&talk);
    assert_int_equal(wire_conversation_answer_done(&talk.launcher, 99, NULL, &err), -1);
    assert_int_equal(err.code, ERR_INVALID);
    assert_ok(ask(&talk, kill_message(), NULL, 0, &err), &err);
    request = expect(&talk, WIRE_MESSAGE_KILL).message.request;
    assert_int_equal(wire_conversation_answer(&talk.launcher, request, &wrong, NULL, 0, &err), -1);
    assert_int_equal(err.code, ERR_INVALID);
    assert_ok(wire_conversation_answer_done(&talk.launcher, request, NULL, &err), &err);
    assert_int_equal(wire_conversation_answer_done(&talk.launcher, request, NULL, &err), -1);
    finish(&talk);
}

/* As a daemon that was taken over would: without asking our own permit table. */
static void send_anyway(struct talk *talk, struct wire_message message, const int *fds,
                        size_t count)
{
    struct error err = ERROR_INIT;

    assert_ok(wire_channel_send(&talk->daemon.channel, &message, fds, count, &err), &err);
}

static void assert_cut_off(struct talk *talk, enum err_code code)
{
    struct wire_incoming incoming;
    struct error err = ERROR_INIT;
    int open = count_descriptors();

    assert_int_equal(wire_conversation_receive(&talk->launcher, &incoming, &err), WIRE_FAILED);
    assert_int_equal(err.code, code);
    assert_int_equal(incoming.fd_count, 0);
    assert_int_equal(count_descriptors(), open);
}

static void what_is_not_permitted_ends_the_conversation(void **state)
{
    const struct wire_message create = {.number = WIRE_MESSAGE_CREATE, .request = 50};
    const int fd = 2;
    struct error err = ERROR_INIT;
    struct talk talk;

    (void) state;
    start(&talk);
    greet(&talk);
    assert_int_equal(ask(&talk, create, &fd, 1, &err), -1);
    assert_int_equal(err.code, ERR_FORBIDDEN);
    send_anyway(&talk, create, &fd, 1);
    assert_cut_off(&talk, ERR_FORBIDDEN);
    finish(&talk);
    start(&talk);
    talk.daemon.channel.version = 1;
    send_anyway(&talk, (struct wire_message){.number = WIRE_MESSAGE_LIST, .request = 1}, NULL, 0);
    assert_cut_off(&talk, ERR_UPGRADE_REQUIRED);
    finish(&talk);
}

static void a_second_hello_ends_the_conversation(void **state)
{
    struct talk talk;

    (void) state;
    start(&talk);
    serve(&talk);
    send_anyway(&talk,
                (struct wire_message){.number = WIRE_MESSAGE_HELLO,
                                      .request = 50,
                                      .hello = {.version_min = 1, .version_max = 1}},
                NULL, 0);
    assert_cut_off(&talk, ERR_FORBIDDEN);
    finish(&talk);
}

static void replies_of_the_daemon_end_the_conversation(void **state)
{
    struct talk talk;

    (void) state;
    start(&talk);
    serve(&talk);
    send_anyway(
        &talk,
        (struct wire_message){.number = WIRE_MESSAGE_DONE, .request = 50, .done = {.code = "ok"}},
        NULL, 0);
    assert_cut_off(&talk, ERR_FORBIDDEN);
    finish(&talk);
}

static void numbers_used_again_end_the_conversation(void **state)
{
    struct wire_message kill = kill_message();
    struct talk talk;

    (void) state;
    start(&talk);
    serve(&talk);
    kill.request = talk.launcher.requests.last;
    send_anyway(&talk, kill, NULL, 0);
    assert_cut_off(&talk, ERR_FORBIDDEN);
    finish(&talk);
}

static void too_many_requests_end_the_conversation(void **state)
{
    struct wire_message kill = kill_message();
    struct error err = ERROR_INIT;
    struct talk talk;

    (void) state;
    start(&talk);
    serve(&talk);
    for (int i = 0; i < WIRE_REQUESTS_MAX; i++) {
        assert_ok(ask(&talk, kill, NULL, 0, &err), &err);
        (void) expect(&talk, WIRE_MESSAGE_KILL);
    }
    /* Ours does not: it knows the bound. */
    assert_int_equal(ask(&talk, kill, NULL, 0, &err), -1);
    assert_int_equal(err.code, ERR_UNAVAILABLE);
    kill.request = 1000;
    send_anyway(&talk, kill, NULL, 0);
    assert_cut_off(&talk, ERR_FORBIDDEN);
    finish(&talk);
    assert_int_equal(talk.told.times, WIRE_REQUESTS_MAX);
}

static void a_draining_launcher_refuses_what_it_cannot_finish(void **state)
{
    const int fd = 2;
    struct wire_incoming incoming;
    struct error err = ERROR_INIT;
    struct talk talk;

    (void) state;
    start(&talk);
    drain(&talk);
    /* The daemon has not read of it yet: not its fault. */
    assert_ok(ask(&talk, (struct wire_message){.number = WIRE_MESSAGE_CREATE}, &fd, 1, &err), &err);
    assert_int_equal(wire_conversation_receive(&talk.launcher, &incoming, &err), WIRE_SETTLED);
    assert_int_equal(wire_conversation_receive(&talk.daemon, &incoming, &err), WIRE_MESSAGE);
    assert_string_equal(incoming.message.stopping.reason, "upgrade");
    hear(&talk);
    assert_int_equal(talk.told.failure.code, ERR_UNAVAILABLE);
    /* Now it has. */
    assert_int_equal(ask(&talk, (struct wire_message){.number = WIRE_MESSAGE_CREATE}, &fd, 1, &err),
                     -1);
    assert_int_equal(err.code, ERR_UNAVAILABLE);
    assert_ok(ask(&talk, kill_message(), NULL, 0, &err), &err);
    (void) expect(&talk, WIRE_MESSAGE_KILL);
    finish(&talk);
}

static void events_wait_for_their_state(void **state)
{
    struct wire_message exited = {.number = WIRE_MESSAGE_EXITED, .exited = {.id = id_a}};
    struct error err = ERROR_INIT;
    struct talk talk;

    (void) state;
    start(&talk);
    greet(&talk);
    assert_int_equal(wire_conversation_tell(&talk.launcher, &exited, &err), -1);
    assert_int_equal(err.code, ERR_FORBIDDEN);
    finish(&talk);
}

static void without_a_common_version_both_know_why(void **state)
{
    struct wire_answer answer = {.call = answered};
    const struct wire_welcome welcome = {.program = "0.1.0"};
    struct wire_incoming hello;
    struct error err = ERROR_INIT;
    struct talk talk;

    (void) state;
    start(&talk);
    answer.context = &talk.told;
    assert_ok(wire_conversation_hello(&talk.daemon, "9.0.0", answer, &err), &err);
    hello = expect(&talk, WIRE_MESSAGE_HELLO);
    hello.message.hello.version_min = hello.message.hello.version_max = WIRE_VERSION_MAX + 1;
    assert_int_equal(wire_conversation_welcome(&talk.launcher, &hello.message, &welcome, &err), -1);
    assert_int_equal(err.code, ERR_UPGRADE_REQUIRED);
    hear(&talk);
    assert_int_equal(talk.told.failure.code, ERR_UPGRADE_REQUIRED);
    assert_string_equal(talk.told.failure.message, err.message);
    assert_int_equal(talk.daemon.state, WIRE_FRESH);
    finish(&talk);
}

static void a_version_that_was_not_offered_is_refused(void **state)
{
    struct wire_message welcome = {
        .number = WIRE_MESSAGE_WELCOME, .request = 1, .welcome = {.version = WIRE_VERSION_MAX + 1}};
    struct wire_answer answer = {.call = answered};
    struct wire_incoming incoming;
    struct error err = ERROR_INIT;
    struct talk talk;

    (void) state;
    start(&talk);
    answer.context = &talk.told;
    assert_ok(wire_conversation_hello(&talk.daemon, "0.1.0", answer, &err), &err);
    assert_ok(wire_channel_send(&talk.launcher.channel, &welcome, NULL, 0, &err), &err);
    assert_int_equal(wire_conversation_receive(&talk.daemon, &incoming, &err), WIRE_FAILED);
    assert_int_equal(err.code, ERR_UPGRADE_REQUIRED);
    finish(&talk);
    assert_int_equal(talk.told.times, 1);
}

static void the_daemon_takes_no_answer_to_nothing(void **state)
{
    struct wire_message done = {.number = WIRE_MESSAGE_DONE, .request = 77, .done = {.code = "ok"}};
    struct wire_incoming incoming;
    struct error err = ERROR_INIT;
    struct talk talk;

    (void) state;
    start(&talk);
    serve(&talk);
    assert_ok(wire_channel_send(&talk.launcher.channel, &done, NULL, 0, &err), &err);
    assert_int_equal(wire_conversation_receive(&talk.daemon, &incoming, &err), WIRE_FAILED);
    assert_int_equal(err.code, ERR_INVALID);
    finish(&talk);
}

static void the_end_answers_everything_that_is_open(void **state)
{
    struct error reason = ERROR_INIT, err = ERROR_INIT;
    struct wire_incoming incoming;
    struct talk talk;

    (void) state;
    start(&talk);
    serve(&talk);
    assert_ok(ask(&talk, kill_message(), NULL, 0, &err), &err);
    wire_conversation_end(&talk.launcher, NULL);
    assert_int_equal(wire_conversation_receive(&talk.daemon, &incoming, &reason), WIRE_FAILED);
    assert_int_equal(reason.code, ERR_GONE);
    talk.told.ask_again = &talk.daemon;
    wire_conversation_end(&talk.daemon, &reason);
    assert_int_equal(talk.told.times, 1);
    assert_int_equal(talk.told.failure.code, ERR_GONE);
    assert_int_equal(talk.told.asked_again, -1);
    assert_int_equal(wire_conversation_receive(&talk.daemon, &incoming, &err), WIRE_FAILED);
    assert_int_equal(ask(&talk, kill_message(), NULL, 0, &err), -1);
    assert_int_equal(err.code, ERR_UNAVAILABLE);
    assert_int_equal(wire_conversation_answer_done(&talk.launcher, 1, NULL, &err), -1);
    assert_int_equal(err.code, ERR_GONE);
    finish(&talk);
    assert_int_equal(talk.told.times, 0);
}

static void a_callback_may_ask_again(void **state)
{
    struct error err = ERROR_INIT;
    struct talk talk;

    (void) state;
    start(&talk);
    serve(&talk);
    assert_ok(ask(&talk, kill_message(), NULL, 0, &err), &err);
    talk.told.ask_again = &talk.daemon;
    assert_ok(wire_conversation_answer_done(
                  &talk.launcher, expect(&talk, WIRE_MESSAGE_KILL).message.request, NULL, &err),
              &err);
    hear(&talk);
    assert_int_equal(talk.told.asked_again, 0);
    (void) expect(&talk, WIRE_MESSAGE_LIST);
    finish(&talk);
}

/* A daemon that does not read its events gets no work done, and there is still room for the answers
 * that it is owed. */
static void a_daemon_that_does_not_read_is_not_served(void **state)
{
    struct wire_message exited = {.number = WIRE_MESSAGE_EXITED, .exited = {.id = id_a}};
    struct wire_incoming incoming;
    struct error err = ERROR_INIT;
    struct talk talk;
    uint64_t request;
    int told = 0, heard = 0;

    (void) state;
    start(&talk);
    serve(&talk);
    assert_ok(ask(&talk, kill_message(), NULL, 0, &err), &err);
    request = expect(&talk, WIRE_MESSAGE_KILL).message.request;
    assert_int_equal(wire_conversation_events(&talk.launcher), POLLIN);
    while (wire_conversation_tell(&talk.launcher, &exited, &err) == 0)
        told++;
    assert_int_equal(err.code, ERR_UNAVAILABLE);
    assert_int_equal(wire_conversation_events(&talk.launcher), POLLOUT);
    assert_int_equal(talk.launcher.channel.waiting_count, WIRE_WAITING_MAX - WIRE_REQUESTS_MAX);
    assert_ok(wire_conversation_answer_done(&talk.launcher, request, NULL, &err), &err);
    talk.told.times = 0;
    send_anyway(&talk, (struct wire_message){.number = WIRE_MESSAGE_LIST, .request = 99}, NULL, 0);
    assert_int_equal(wire_conversation_receive(&talk.launcher, &incoming, &err), WIRE_NOTHING);
    for (;;) {
        enum wire_received received = wire_conversation_receive(&talk.daemon, &incoming, &err);

        heard += received == WIRE_MESSAGE;
        if (received == WIRE_SETTLED)
            break;
        assert_ok(wire_conversation_flush(&talk.launcher, &err), &err);
    }
    assert_int_equal(heard, told);
    assert_int_equal(talk.told.times, 1);
    assert_int_equal(wire_conversation_receive(&talk.launcher, &incoming, &err), WIRE_MESSAGE);
    finish(&talk);
}

static void a_request_that_cannot_be_sent_is_not_open(void **state)
{
    struct error err = ERROR_INIT;
    struct talk talk;

    (void) state;
    start(&talk);
    serve(&talk);
    assert_int_equal(ask(&talk, (struct wire_message){.number = WIRE_MESSAGE_KILL}, NULL, 0, &err),
                     -1);
    assert_int_equal(err.code, ERR_INVALID);
    assert_int_equal(talk.daemon.requests.count, 0);
    assert_int_equal(ask(&talk, (struct wire_message){.number = WIRE_MESSAGE_DONE}, NULL, 0, &err),
                     -1);
    assert_int_equal(err.code, ERR_FORBIDDEN);
    finish(&talk);
    assert_int_equal(talk.told.times, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_conversation_goes_its_way),
        cmocka_unit_test(for_whom_it_is_goes_along_and_comes_back),
        cmocka_unit_test(answers_come_in_any_order_and_with_descriptors),
        cmocka_unit_test(a_failure_arrives_as_it_was),
        cmocka_unit_test(a_request_is_answered_exactly_once),
        cmocka_unit_test(what_is_not_permitted_ends_the_conversation),
        cmocka_unit_test(a_second_hello_ends_the_conversation),
        cmocka_unit_test(replies_of_the_daemon_end_the_conversation),
        cmocka_unit_test(numbers_used_again_end_the_conversation),
        cmocka_unit_test(too_many_requests_end_the_conversation),
        cmocka_unit_test(a_draining_launcher_refuses_what_it_cannot_finish),
        cmocka_unit_test(events_wait_for_their_state),
        cmocka_unit_test(without_a_common_version_both_know_why),
        cmocka_unit_test(a_version_that_was_not_offered_is_refused),
        cmocka_unit_test(the_daemon_takes_no_answer_to_nothing),
        cmocka_unit_test(the_end_answers_everything_that_is_open),
        cmocka_unit_test(a_callback_may_ask_again),
        cmocka_unit_test(a_daemon_that_does_not_read_is_not_served),
        cmocka_unit_test(a_request_that_cannot_be_sent_is_not_open),
    };

    return cmocka_run_group_tests_name("wire_conversation", tests, NULL, NULL);
}
