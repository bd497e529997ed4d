#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <limits.h>
#include <poll.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>
/* After the headers it needs. */
#include <cmocka.h>

#include "base/log.h"
#include "base/memory.h"
#include "base/trace.h"

/* 2026-11-15T20:18:28.123Z */
#define NOW INT64_C(1794773908123)

/* A log and the other end of it. */
struct setup {
    int reader;
    int writer;
    struct clock_manual clock;
    struct log *log;
    char got[4 * LOG_BUFFER_MAX];
    size_t length;
};

static struct setup *setup_new(int reader, int writer, enum log_format format)
{
    struct setup *setup = mem_alloc(sizeof(*setup));

    setup->reader = reader;
    setup->writer = writer;
    clock_manual_init(&setup->clock, NOW);
    setup->log = log_new(writer, format, LOG_LEVEL_DEBUG, &setup->clock.clock);
    return setup;
}

static struct setup *setup_pipe(void)
{
    int fds[2];

    assert_int_equal(pipe2(fds, O_CLOEXEC), 0);
    return setup_new(fds[0], fds[1], LOG_FORMAT_AUTO);
}

static void setup_free(struct setup *setup)
{
    log_free(setup->log);
    (void) fd_close(setup->reader);
    (void) fd_close(setup->writer);
    free(setup);
}

AUTO_DEFINE_PTR(setup, struct setup, setup_free);

static void setup_restart(struct setup *setup)
{
    setup->length = 0;
    setup->got[0] = '\0';
}

/* Add what can be read now to `got`. */
static const char *drain(struct setup *setup)
{
    struct pollfd poll_fd = {.fd = setup->reader, .events = POLLIN};

    while (poll(&poll_fd, 1, 0) > 0 && poll_fd.revents & POLLIN) {
        ssize_t count =
            read(setup->reader, setup->got + setup->length, sizeof(setup->got) - 1 - setup->length);

        if (count <= 0)
            break;
        setup->length += (size_t) count;
    }
    setup->got[setup->length] = '\0';
    return setup->got;
}

/* The only line there is, parsed. */
static json_t *read_line(struct setup *setup)
{
    json_error_t failure;
    json_t *line;

    setup_restart(setup);
    log_flush(setup->log);
    (void) drain(setup);
    assert_true(setup->length > 0);
    assert_ptr_equal(strchr(setup->got, '\n'), setup->got + setup->length - 1);
    line = json_loadb(setup->got, setup->length, JSON_REJECT_DUPLICATES, &failure);
    if (!line)
        fail_msg("%s in %s", failure.text, setup->got);
    return line;
}

AUTO_DEFINE_PTR(json, json_t, json_decref);

static const char *text_of(const json_t *line, const char *name)
{
    const char *text = json_string_value(json_object_get(line, name));

    assert_non_null(text);
    return text;
}

static void the_time_of_each_line_is_right(void **state)
{
    static const int64_t moments[] = {NOW, NOW + 1, NOW + 876, NOW + 877, NOW - 5000, -1, -1000, 0};
    AUTO(setup) struct setup *setup = setup_pipe();

    (void) state;
    for (size_t i = 0; i < ARRAY_COUNT(moments); i++) {
        AUTO(json) json_t *line = NULL;
        char expected[CLOCK_TEXT_SIZE];

        setup->clock.wall_ms = moments[i];
        LOG_INFO(setup->log, "tick");
        line = read_line(setup);
        clock_format(moments[i], expected);
        assert_string_equal(text_of(line, "time"), expected);
    }
}

static void levels_below_the_minimum_are_left_out(void **state)
{
    AUTO(setup) struct setup *setup = setup_pipe();

    (void) state;
    log_free(setup->log);
    setup->log = log_new(setup->writer, LOG_FORMAT_JSON, LOG_LEVEL_WARNING, &setup->clock.clock);
    LOG_DEBUG(setup->log, "one");
    LOG_INFO(setup->log, "two");
    LOG_WARNING(setup->log, "three");
    LOG_ERROR(setup->log, "four");
    log_flush(setup->log);
    (void) drain(setup);
    assert_null(strstr(setup->got, "one"));
    assert_null(strstr(setup->got, "two"));
    assert_non_null(strstr(setup->got, "\"level\":\"warning\",\"message\":\"three\""));
    assert_non_null(strstr(setup->got, "\"level\":\"error\",\"message\":\"four\""));
    assert_false(log_enabled(setup->log, LOG_LEVEL_INFO));
    assert_true(log_enabled(setup->log, LOG_LEVEL_WARNING));
}

static void no_log_is_a_log_that_writes_nothing(void **state)
{
    (void) state;
    LOG_ERROR(NULL, "nowhere", log_number("n", 1));
    log_flush(NULL);
    log_free(NULL);
    assert_false(log_enabled(NULL, LOG_LEVEL_ERROR));
    assert_int_equal(log_dropped(NULL), 0);
}

static void level_names_parse(void **state)
{
    enum log_level level = LOG_LEVEL_INFO;

    (void) state;
    assert_int_equal(log_level_from_text("debug", &level), 0);
    assert_int_equal(level, LOG_LEVEL_DEBUG);
    assert_int_equal(log_level_from_text("error", &level), 0);
    assert_int_equal(level, LOG_LEVEL_ERROR);
    assert_int_equal(log_level_from_text("Error", &level), -EINVAL);
    assert_int_equal(log_level_from_text("", &level), -EINVAL);
    assert_int_equal(level, LOG_LEVEL_ERROR);
}

static void information_waits_for_the_flush_and_warnings_do_not(void **state)
{
    AUTO(setup) struct setup *setup = setup_pipe();

    (void) state;
    LOG_INFO(setup->log, "waits");
    assert_string_equal(drain(setup), "");
    LOG_WARNING(setup->log, "goes at once");
    (void) drain(setup);
    assert_non_null(strstr(setup->got, "waits"));
    assert_non_null(strstr(setup->got, "goes at once"));
}

static void freeing_writes_what_waits(void **state)
{
    AUTO(setup) struct setup *setup = setup_pipe();

    (void) state;
    LOG_INFO(setup->log, "last words");
    log_free(TAKE_PTR(setup->log));
    assert_non_null(strstr(drain(setup), "last words"));
}

static void stop_if_blocked(int signal_number)
{
    static const char said[] = "Bail out! the log blocked\n";

    (void) signal_number;
    (void) !write(STDOUT_FILENO, said, sizeof(said) - 1);
    _exit(1);
}

/* Write until lines are dropped; blocking would end the test by alarm. Lines of nearly PIPE_BUF are
 * the hardest: a terminal polls writable when it takes less. */
static void overfill(struct setup *setup)
{
    char value[3900];

    memset(value, 'x', sizeof(value));
    (void) signal(SIGALRM, stop_if_blocked);
    (void) alarm(20);
    for (int i = 0; i < 5000; i++) {
        LOG_INFO(setup->log, "fill", log_number("i", i), log_bytes("value", value, sizeof(value)));
        if (i % 100 == 0)
            LOG_WARNING(setup->log, "warn", log_number("i", i));
        log_flush(setup->log);
    }
    (void) alarm(0);
}

/* Read everything, check each line, and return how many there are; `ret_said` is the sum of what
 * the lines about dropped ones say. */
static uint64_t count_lines(struct setup *setup, uint64_t *ret_said)
{
    uint64_t lines = 0, said = 0;
    char *at = setup->got, *last = at + strlen(at);

    while (at < last) {
        char *end = memchr(at, '\n', (size_t) (last - at));
        AUTO(json) json_t *line = json_loadb(at, (size_t) (end - at), 0, NULL);

        assert_non_null(line);
        if (strncmp(text_of(line, "message"), "log lines were dropped", 22) == 0)
            said += (uint64_t) json_integer_value(json_object_get(line, "lines"));
        else
            lines++;
        at = end + 1;
    }
    *ret_said = said;
    return lines;
}

static void check_stalled_reader(struct setup *setup)
{
    uint64_t dropped, said;

    overfill(setup);
    dropped = log_dropped(setup->log);
    assert_true(dropped > 0 && dropped < 5050);
    /* the reader comes back: nothing that waited is lost, and the gap is told */
    for (int i = 0; i < 2000; i++) {
        (void) drain(setup);
        log_flush(setup->log);
    }
    LOG_INFO(setup->log, "after");
    log_flush(setup->log);
    (void) drain(setup);
    assert_int_equal(count_lines(setup, &said), 5050 + 1 - dropped);
    assert_int_equal(said, dropped);
    assert_int_equal(log_dropped(setup->log), dropped);
}

static void a_full_pipe_does_not_block_and_drops_are_told(void **state)
{
    AUTO(setup) struct setup *setup = setup_pipe();

    (void) state;
    check_stalled_reader(setup);
}

static void a_full_socket_does_not_block_and_drops_are_told(void **state)
{
    AUTO(setup) struct setup *setup = NULL;
    int fds[2];

    (void) state;
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds), 0);
    setup = setup_new(fds[0], fds[1], LOG_FORMAT_AUTO);
    check_stalled_reader(setup);
}

static void write_numbered(struct setup *setup, int *number, int count)
{
    for (int i = 0; i < count; i++)
        LOG_INFO(setup->log, "a line of about two hundred bytes", log_number("i", (*number)++),
                 log_text("path", "/burrow/v1/sandboxes/abcdefghijklmnopqrstuvwxy4/files/read"));
}

/* Parse the whole lines in `got`, whose numbers go on from `next`, and keep the rest. */
static void read_numbered(struct setup *setup, int *next)
{
    char *at = setup->got;

    for (char *end; (end = strchr(at, '\n')); at = end + 1) {
        AUTO(json) json_t *line = json_loadb(at, (size_t) (end - at), 0, NULL);

        assert_non_null(line);
        assert_int_equal(json_integer_value(json_object_get(line, "i")), (*next)++);
    }
    setup->length -= (size_t) (at - setup->got);
    memmove(setup->got, at, setup->length + 1);
}

/* Several times the buffer passes while some of it always waits, so that the rest is moved to the
 * front on the way. */
static void a_reader_that_lags_gets_every_line_in_order(void **state)
{
    AUTO(setup) struct setup *setup = setup_pipe();
    int written = 0, next = 0;

    (void) state;
    write_numbered(setup, &written, 3000);
    for (int i = 0; i < 60; i++) {
        /* a little less than the 64 KiB that a pipe passes each time */
        write_numbered(setup, &written, 320);
        log_flush(setup->log);
        (void) drain(setup);
        read_numbered(setup, &next);
    }
    assert_true(next < written);
    while (next < written) {
        log_flush(setup->log);
        (void) drain(setup);
        read_numbered(setup, &next);
    }
    assert_int_equal(log_dropped(setup->log), 0);
}

static void the_shared_descriptor_stays_blocking(void **state)
{
    AUTO(setup) struct setup *setup = setup_pipe();

    (void) state;
    overfill(setup);
    assert_int_equal(fcntl(setup->writer, F_GETFL) & O_NONBLOCK, 0);
}

static void a_slow_reader_sees_the_last_lines(void **state)
{
    AUTO(setup) struct setup *setup = setup_pipe();
    const uint64_t lines = 300; /* more than the 64 KiB of a pipe */
    int status;
    pid_t child;

    (void) state;
    for (uint64_t i = 0; i < lines; i++) {
        char value[1000];

        memset(value, 'x', sizeof(value));
        LOG_INFO(setup->log, "line", log_bytes("value", value, sizeof(value)));
    }
    child = fork();
    if (child == 0) {
        uint64_t seen = 0;
        char bytes[4096];
        ssize_t length;

        (void) close(setup->writer);
        (void) poll(NULL, 0, 50);
        while ((length = read(setup->reader, bytes, sizeof(bytes))) > 0)
            for (ssize_t i = 0; i < length; i++)
                seen += bytes[i] == '\n';
        _exit(seen == lines ? 0 : 1);
    }
    assert_true(child > 0);
    log_free(TAKE_PTR(setup->log));
    setup->writer = fd_close(setup->writer);
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
}

static void a_reader_that_left_raises_no_signal(void **state)
{
    AUTO(setup) struct setup *setup = setup_pipe();

    (void) state;
    (void) signal(SIGPIPE, SIG_DFL);
    setup->reader = fd_close(setup->reader);
    errno = ENOTTY;
    LOG_ERROR(setup->log, "nobody hears");
    LOG_ERROR(setup->log, "nobody hears");
    assert_int_equal(errno, ENOTTY);
    assert_true(log_dropped(setup->log) >= 2);
}

static void a_burst_between_flushes_loses_nothing_on_a_file(void **state)
{
    AUTO(setup) struct setup *setup = NULL;
    int writer = memfd_create("log", MFD_CLOEXEC);
    int reader = dup(writer);
    uint64_t said;

    (void) state;
    assert_true(writer >= 0 && reader >= 0);
    setup = setup_new(reader, writer, LOG_FORMAT_AUTO);
    for (int i = 0; i < 30000; i++)
        LOG_INFO(setup->log, "burst", log_number("i", i), log_text("path", "/somewhere/else"));
    log_flush(setup->log);
    assert_int_equal(log_dropped(setup->log), 0);
    assert_int_equal(lseek(reader, 0, SEEK_SET), 0);
    (void) drain(setup);
    assert_int_equal(count_lines(setup, &said), 30000);
    assert_int_equal(said, 0);
}

static void a_full_disk_is_waited_for(void **state)
{
    AUTO(close) int full = open("/dev/full", O_WRONLY | O_CLOEXEC);
    struct clock_manual clock;
    struct log *log;

    (void) state;
    assert_true(full >= 0);
    clock_manual_init(&clock, NOW);
    log = log_new(full, LOG_FORMAT_AUTO, LOG_LEVEL_INFO, &clock.clock);
    LOG_ERROR(log, "kept until there is space");
    log_flush(log);
    assert_int_equal(log_dropped(log), 0);
    log_free(log);
}

static struct setup *setup_terminal(void)
{
    int main_fd = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);
    int terminal;
    struct termios settings;

    assert_true(main_fd >= 0 && grantpt(main_fd) == 0 && unlockpt(main_fd) == 0);
    terminal = open(ptsname(main_fd), O_RDWR | O_NOCTTY | O_CLOEXEC);
    assert_true(terminal >= 0 && tcgetattr(terminal, &settings) == 0);
    settings.c_oflag &= ~(tcflag_t) OPOST; /* keep newlines as they are */
    assert_int_equal(tcsetattr(terminal, TCSANOW, &settings), 0);
    return setup_new(main_fd, terminal, LOG_FORMAT_AUTO);
}

static void a_terminal_gets_readable_lines(void **state)
{
    AUTO(setup) struct setup *setup = setup_terminal();

    (void) state;
    LOG_INFO(setup->log, "sandbox created", log_text("sandbox", "abc"), log_number("ms", 3));
    LOG_WARNING(setup->log, "say \"hi\"\n\x1b[2J", log_text("empty", ""), log_text("two", "a b"),
                log_text("quote", "\"\\"), log_text("control", "\x1b[31m"),
                log_text("equal", "a=b"), log_text("token", "t"), log_boolean("yes", true));
    LOG_ERROR(setup->log, "bare");
    assert_string_equal(drain(setup),
                        "20:18:28.123 info  sandbox created  sandbox=abc ms=3\n"
                        "20:18:28.123 warn  say \"hi\"\\n\\u001b[2J  empty=\"\" two=\"a b\" "
                        "quote=\"\\\"\\\\\" control=\"\\u001b[31m\" equal=\"a=b\" "
                        "token=\"[hidden]\" yes=true\n"
                        "20:18:28.123 error bare\n");
}

static void a_stopped_terminal_does_not_block(void **state)
{
    AUTO(setup) struct setup *setup = setup_terminal();
    uint64_t dropped;

    (void) state;
    overfill(setup);
    dropped = log_dropped(setup->log);
    assert_true(dropped > 0);
    assert_int_equal(fcntl(setup->writer, F_GETFL) & O_NONBLOCK, 0);
    for (int i = 0; i < 2000; i++) {
        (void) drain(setup);
        log_flush(setup->log);
    }
    LOG_INFO(setup->log, "after");
    log_flush(setup->log);
    assert_non_null(strstr(drain(setup), "info  after\n"));
    assert_int_equal(log_dropped(setup->log), dropped);
}

struct heard {
    char message[64];
    char line[LOG_LINE_MAX];
    size_t length;
    int count;
};

static void hear(void *data, const char *message, const char *line, size_t length)
{
    struct heard *heard = data;

    (void) snprintf(heard->message, sizeof(heard->message), "%s", message);
    memcpy(heard->line, line, length);
    heard->length = length;
    heard->count++;
}

static void a_listener_hears_what_is_written(void **state)
{
    AUTO(setup) struct setup *setup = setup_pipe();
    struct heard heard = {.count = 0};

    (void) state;
    LOG_INFO(setup->log, "before");
    log_listen(setup->log, hear, &heard);
    assert_int_equal(heard.count, 0);
    setup_restart(setup);
    log_flush(setup->log);
    (void) drain(setup);
    setup_restart(setup);
    LOG_WARNING(setup->log, "the roof burns", log_number("floors", 3));
    assert_int_equal(heard.count, 1);
    assert_string_equal(heard.message, "the roof burns");
    (void) drain(setup);
    assert_int_equal(heard.length, setup->length);
    assert_memory_equal(heard.line, setup->got, heard.length);
}

static void a_line_says_for_whom(void **state)
{
    static const struct id request = {.text = "aaaaaaaaaaaaaaaaaaaaaaaaaa"};
    static const struct id sandbox = {.text = "bbbbbbbbbbbbbbbbbbbbbbbbba"};
    AUTO(setup) struct setup *setup = setup_pipe();
    AUTO(json) json_t *line = NULL;
    TRACE_FOR(&request, &sandbox);

    (void) state;
    LOG_INFO(setup->log, "begun", log_text("sandbox", "another"));
    line = read_line(setup);
    assert_string_equal(text_of(line, "request"), request.text);
    assert_string_equal(text_of(line, "sandbox"), "another");
}

static void the_trace_is_in_the_log_at_level_debug(void **state)
{
    static const struct id request = {.text = "aaaaaaaaaaaaaaaaaaaaaaaaaa"};
    AUTO(setup) struct setup *setup = setup_pipe();
    AUTO(json) json_t *line = NULL;

    (void) state;
    log_flush(setup->log);
    (void) drain(setup);
    {
        TRACE_FOR(&request, NULL);
        TRACE_WITH("test.traced", "once");
    }
    line = read_line(setup);
    assert_string_equal(text_of(line, "message"), "test.traced once");
    assert_string_equal(text_of(line, "level"), "debug");
    assert_string_equal(text_of(line, "request"), request.text);
    assert_null(json_object_get(line, "sandbox"));
}

static void the_trace_is_not_in_the_log_at_other_levels(void **state)
{
    int fds[2];
    char text[64];
    struct log *log;

    (void) state;
    assert_int_equal(pipe2(fds, O_CLOEXEC | O_NONBLOCK), 0);
    log = log_new(fds[1], LOG_FORMAT_JSON, LOG_LEVEL_INFO, clock_system());
    TRACE("test.traced");
    log_flush(log);
    assert_int_equal(read(fds[0], text, sizeof(text)), -1);
    log_free(log);
    (void) close(fds[0]);
    (void) close(fds[1]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_time_of_each_line_is_right),
        cmocka_unit_test(levels_below_the_minimum_are_left_out),
        cmocka_unit_test(no_log_is_a_log_that_writes_nothing),
        cmocka_unit_test(level_names_parse),
        cmocka_unit_test(information_waits_for_the_flush_and_warnings_do_not),
        cmocka_unit_test(freeing_writes_what_waits),
        cmocka_unit_test(a_full_pipe_does_not_block_and_drops_are_told),
        cmocka_unit_test(a_full_socket_does_not_block_and_drops_are_told),
        cmocka_unit_test(a_reader_that_lags_gets_every_line_in_order),
        cmocka_unit_test(the_shared_descriptor_stays_blocking),
        cmocka_unit_test(a_slow_reader_sees_the_last_lines),
        cmocka_unit_test(a_reader_that_left_raises_no_signal),
        cmocka_unit_test(a_burst_between_flushes_loses_nothing_on_a_file),
        cmocka_unit_test(a_full_disk_is_waited_for),
        cmocka_unit_test(a_terminal_gets_readable_lines),
        cmocka_unit_test(a_stopped_terminal_does_not_block),
        cmocka_unit_test(a_listener_hears_what_is_written),
        cmocka_unit_test(a_line_says_for_whom),
        cmocka_unit_test(the_trace_is_in_the_log_at_level_debug),
        cmocka_unit_test(the_trace_is_not_in_the_log_at_other_levels),
    };

    return cmocka_run_group_tests_name("log", tests, NULL, NULL);
}
