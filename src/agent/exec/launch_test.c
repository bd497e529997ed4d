#include <fcntl.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "agent/agent_test.h"
#include "agent/exec/launch.h"
#include "base/memory.h"

static const char *const arguments[] = {"sh", "-c", "", "echo \xff", NULL};
static const char *const environment[] = {"A=1", "B=", NULL};

static void encode(const struct launch *launch, struct text *bytes)
{
    assert_int_equal(launch_encode(launch, bytes), 0);
}

static void assert_same_strings(const char *const *left, const char *const *right)
{
    for (; *right; left++, right++)
        assert_string_equal(*left, *right);
    assert_null(*left);
}

static void what_was_encoded_is_read_back(void **state)
{
    const struct launch launch = {.arguments = arguments,
                                  .shell_command = "echo $X",
                                  .environment = environment,
                                  .directory = "/somewhere",
                                  .user = "nobody",
                                  .own_home = true,
                                  .any_directory = true};
    AUTO(text) struct text bytes = TEXT_INIT(LAUNCH_SIZE_MAX);
    AUTO(launch) struct launch read = {.arguments = NULL};

    (void) state;
    encode(&launch, &bytes);
    assert_int_equal(launch_decode(bytes.data, bytes.length, &read), 0);
    assert_same_strings(read.arguments, arguments);
    assert_same_strings(read.environment, environment);
    assert_string_equal(read.shell_command, "echo $X");
    assert_string_equal(read.directory, "/somewhere");
    assert_string_equal(read.user, "nobody");
    assert_true(read.any_directory);
    assert_true(read.own_home);
}

static void what_is_absent_stays_absent(void **state)
{
    const struct launch launch = {.shell_command = ""};
    AUTO(text) struct text bytes = TEXT_INIT(LAUNCH_SIZE_MAX);
    AUTO(launch) struct launch read = {.arguments = arguments};

    (void) state;
    read.arguments = NULL;
    encode(&launch, &bytes);
    assert_int_equal(launch_decode(bytes.data, bytes.length, &read), 0);
    assert_null(read.arguments);
    assert_null(read.directory);
    assert_null(read.user);
    assert_string_equal(read.shell_command, "");
    assert_null(read.environment[0]);
    assert_false(read.any_directory);
    assert_false(read.own_home);
}

static void a_message_cut_anywhere_is_refused(void **state)
{
    const struct launch launch = {
        .arguments = arguments, .environment = environment, .directory = "/"};
    AUTO(text) struct text bytes = TEXT_INIT(LAUNCH_SIZE_MAX);

    (void) state;
    encode(&launch, &bytes);
    for (size_t length = 0; length < bytes.length; length++) {
        struct launch read;

        assert_int_equal(launch_decode(bytes.data, length, &read), -EBADMSG);
    }
    text_append_char(&bytes, '\0');
    assert_int_equal(launch_decode(bytes.data, bytes.length, &(struct launch){0}), -EBADMSG);
}

static void a_launch_over_the_limit_is_refused(void **state)
{
    const struct launch launch = {.shell_command = "0123456789"};
    AUTO(text) struct text bytes = TEXT_INIT(16);

    (void) state;
    assert_int_equal(launch_encode(&launch, &bytes), -E2BIG);
}

static void a_serial_is_carried_without_harm(void **state)
{
    const struct launch launch = {.shell_command = "true"};
    AUTO(text) struct text bytes = TEXT_INIT(LAUNCH_SIZE_MAX);
    AUTO(launch) struct launch read = {.arguments = NULL};

    (void) state;
    encode(&launch, &bytes);
    assert_int_equal(launch_serial(bytes.data), 0);
    launch_set_serial(bytes.data, UINT64_MAX - 5);
    assert_int_equal(launch_serial(bytes.data), UINT64_MAX - 5);
    assert_int_equal(launch_decode(bytes.data, bytes.length, &read), 0);
    assert_string_equal(read.shell_command, "true");
}

/* Send a launch with a shell command of that many bytes through a socket and compare. */
static void travel(size_t size, bool has_channel)
{
    AUTO(free) char *command = mem_alloc(size + 1), *owned = NULL;
    AUTO(free) char *buffer = mem_alloc(LAUNCH_INLINE_MAX);
    AUTO(text) struct text bytes = TEXT_INIT(LAUNCH_SIZE_MAX);
    AUTO(launch) struct launch read = {.arguments = NULL};
    int sockets[2], given[LAUNCH_DESCRIPTORS], got[LAUNCH_DESCRIPTORS];
    const char *message;
    ssize_t length;

    memset(command, 'x', size);
    encode(&(struct launch){.shell_command = command}, &bytes);
    assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, sockets), 0);
    for (size_t i = 0; i < LAUNCH_DESCRIPTORS; i++)
        given[i] = open("/dev/null", O_RDONLY | O_CLOEXEC);
    if (!has_channel)
        given[LAUNCH_CHANNEL] = fd_close(given[LAUNCH_CHANNEL]);
    assert_int_equal(launch_send(sockets[0], bytes.data, bytes.length, given), 0);
    length = launch_receive(sockets[1], buffer, &message, &owned, got);
    assert_int_equal(length, bytes.length);
    assert_true((owned != NULL) == (bytes.length > LAUNCH_INLINE_MAX));
    assert_int_equal(launch_decode(message, (size_t) length, &read), 0);
    assert_string_equal(read.shell_command, command);
    for (size_t i = 0; i < LAUNCH_DESCRIPTORS; i++) {
        if (i == LAUNCH_CHANNEL && !has_channel) {
            assert_true(got[i] < 0);
            continue;
        }
        assert_int_equal(close(given[i]), 0);
        assert_int_equal(close(got[i]), 0);
    }
    assert_int_equal(close(sockets[0]), 0);
    assert_int_equal(launch_receive(sockets[1], buffer, &message, &owned, got), 0);
    assert_int_equal(close(sockets[1]), 0);
}

static void launches_of_any_size_travel(void **state)
{
    static const size_t sizes[] = {
        0, 1, 1000, LAUNCH_INLINE_MAX - 40, LAUNCH_INLINE_MAX, (size_t) 2 * 1024 * 1024};

    (void) state;
    for (size_t i = 0; i < ARRAY_COUNT(sizes); i++) {
        travel(sizes[i], false);
        travel(sizes[i], true);
    }
}

static void a_message_with_too_few_descriptors_is_refused(void **state)
{
    AUTO(free) char *buffer = mem_alloc(LAUNCH_INLINE_MAX), *owned = NULL;
    int sockets[2], got[LAUNCH_DESCRIPTORS];
    const char *message;

    (void) state;
    assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, sockets), 0);
    assert_int_equal(send(sockets[0], "hello", 5, 0), 5);
    assert_int_equal(launch_receive(sockets[1], buffer, &message, &owned, got), -EBADMSG);
    (void) close(sockets[0]);
    (void) close(sockets[1]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_was_encoded_is_read_back),
        cmocka_unit_test(what_is_absent_stays_absent),
        cmocka_unit_test(a_message_cut_anywhere_is_refused),
        cmocka_unit_test(a_launch_over_the_limit_is_refused),
        cmocka_unit_test(a_serial_is_carried_without_harm),
        cmocka_unit_test(launches_of_any_size_travel),
        cmocka_unit_test(a_message_with_too_few_descriptors_is_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
