#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "cli/run/run_stdio.h"
/* After the headers it needs. */
#include <cmocka.h>

#include "base/auto.h"
#include "base/memory.h"
#include "sys/file/sys_file.h"

#define TURNS_MAX 100000

struct fixture {
    struct loop loop;
    struct run_source source;
    struct run_sink sink;
    char *bytes; /* owned: what the source gave */
    size_t length, size;
    ssize_t end; /* what the last read said */
    size_t step; /* bytes per read */
    int drains, empties, failures, closed;
};

static int setup(void **state)
{
    struct fixture *fixture = mem_alloc(sizeof(*fixture));

    (void) signal(SIGPIPE, SIG_IGN);
    fixture->size = (size_t) 4 * 1024 * 1024;
    fixture->bytes = mem_alloc(fixture->size);
    fixture->step = 65536;
    fixture->end = 1;
    assert_int_equal(loop_init(&fixture->loop, NULL), 0);
    *state = fixture;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *fixture = *state;

    loop_done(&fixture->loop);
    free(fixture->bytes);
    free(fixture);
    return 0;
}

static void source_ready(struct run_source *source)
{
    struct fixture *fixture = CONTAINER_OF(source, struct fixture, source);
    size_t room = fixture->size - fixture->length;

    fixture->end = run_source_read(source, fixture->bytes + fixture->length,
                                   room < fixture->step ? room : fixture->step);
    if (fixture->end > 0)
        fixture->length += (size_t) fixture->end;
    if (fixture->end == 0)
        run_source_want(source, false);
}

static void source_closed(struct run_source *source)
{
    CONTAINER_OF(source, struct fixture, source)->closed++;
}

static void sink_drained(struct run_sink *sink)
{
    CONTAINER_OF(sink, struct fixture, sink)->drains++;
}

static void sink_empty(struct run_sink *sink)
{
    CONTAINER_OF(sink, struct fixture, sink)->empties++;
}

static void sink_failed(struct run_sink *sink)
{
    CONTAINER_OF(sink, struct fixture, sink)->failures++;
}

static void sink_closed(struct run_sink *sink)
{
    CONTAINER_OF(sink, struct fixture, sink)->closed++;
}

static void turn(struct fixture *fixture)
{
    (void) uv_run(&fixture->loop.uv, UV_RUN_NOWAIT);
}

static void read_to_end(struct fixture *fixture)
{
    run_source_want(&fixture->source, true);
    for (int i = 0; fixture->end != 0 && i < TURNS_MAX; i++)
        turn(fixture);
    assert_int_equal(fixture->end, 0);
}

static void close_source(struct fixture *fixture)
{
    run_source_close(&fixture->source, source_closed);
    for (int i = 0; !fixture->closed && i < TURNS_MAX; i++)
        turn(fixture);
    assert_int_equal(fixture->closed, 1);
}

static void open_sink(struct fixture *fixture, int fd)
{
    assert_int_equal(run_sink_init(&fixture->sink, &fixture->loop, fd), 0);
    fixture->sink.on_drain = sink_drained;
    fixture->sink.on_empty = sink_empty;
    fixture->sink.on_failure = sink_failed;
}

static void close_sink(struct fixture *fixture)
{
    run_sink_close(&fixture->sink, sink_closed);
    for (int i = 0; !fixture->closed && i < TURNS_MAX; i++)
        turn(fixture);
    assert_int_equal(fixture->closed, 1);
}

static bool is_nonblocking(int fd)
{
    return fcntl(fd, F_GETFL) & O_NONBLOCK;
}

static void a_pipe_is_read_and_stays_blocking_for_others(void **state)
{
    struct fixture *fixture = *state;
    int ends[2];

    assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
    assert_int_equal(run_source_init(&fixture->source, &fixture->loop, ends[0], source_ready), 0);
    assert_false(is_nonblocking(ends[0]));
    run_source_want(&fixture->source, true);
    turn(fixture);
    assert_int_equal(fixture->length, 0);
    assert_int_equal(write(ends[1], "hello", 5), 5);
    (void) close(ends[1]);
    read_to_end(fixture);
    assert_int_equal(fixture->length, 5);
    assert_memory_equal(fixture->bytes, "hello", 5);
    close_source(fixture);
    assert_false(is_nonblocking(ends[0]));
    (void) close(ends[0]);
}

/* epoll refuses files: they must be read all the same, from where they stand. */
static void a_file_is_read_from_its_place_in_any_steps(void **state)
{
    struct fixture *fixture = *state;
    char path[] = "/tmp/burrow-run-stdio-XXXXXX";
    AUTO(close) int fd = mkostemp(path, O_CLOEXEC);
    AUTO(free) char *bytes = mem_alloc(300000);

    assert_true(fd >= 0);
    (void) unlink(path);
    for (size_t i = 0; i < 300000; i++)
        bytes[i] = (char) (i * 31 >> 3);
    assert_int_equal(sys_file_write_full(fd, bytes, 300000), 0);
    assert_int_equal(lseek(fd, 1000, SEEK_SET), 1000);
    fixture->step = 777;
    assert_int_equal(run_source_init(&fixture->source, &fixture->loop, fd, source_ready), 0);
    read_to_end(fixture);
    assert_int_equal(fixture->length, 299000);
    assert_memory_equal(fixture->bytes, bytes + 1000, 299000);
    close_source(fixture);
}

static void nothing_is_an_end(void **state)
{
    struct fixture *fixture = *state;
    AUTO(close) int fd = open("/dev/null", O_RDWR | O_CLOEXEC);

    assert_int_equal(run_source_init(&fixture->source, &fixture->loop, fd, source_ready), 0);
    read_to_end(fixture);
    close_source(fixture);
    assert_int_equal(run_source_init(&fixture->source, &fixture->loop, 999, source_ready), -EBADF);
}

static void a_socket_gets_its_flags_back(void **state)
{
    struct fixture *fixture = *state;
    int ends[2];

    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
    assert_int_equal(run_source_init(&fixture->source, &fixture->loop, ends[0], source_ready), 0);
    run_source_want(&fixture->source, true);
    turn(fixture);
    (void) close(ends[1]);
    read_to_end(fixture);
    close_source(fixture);
    assert_false(is_nonblocking(ends[0]));
    (void) close(ends[0]);
}

static void a_source_that_is_shut_breaks_the_pipe(void **state)
{
    struct fixture *fixture = *state;
    int ends[2];

    assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
    assert_int_equal(run_source_init(&fixture->source, &fixture->loop, ends[0], source_ready), 0);
    run_source_want(&fixture->source, true);
    turn(fixture);
    run_source_shut(&fixture->source);
    assert_int_equal(write(ends[1], "x", 1), -1);
    assert_int_equal(errno, EPIPE);
    close_source(fixture);
    (void) close(ends[0]);
    (void) close(ends[1]);
}

/* Property: whatever the sizes of writes and reads, the same bytes come out, in order, and the
 * producer is told to rest and to go on. */
static void a_sink_passes_all_bytes_through_a_slow_pipe(void **state)
{
    struct fixture *fixture = *state;
    unsigned int random = 12345;
    size_t written = 0, received = 0;
    int ends[2];

    assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
    (void) fcntl(ends[0], F_SETFL, O_NONBLOCK);
    open_sink(fixture, ends[1]);
    assert_false(is_nonblocking(ends[1]));
    while (received < (size_t) 3000000) {
        char piece[8192];
        ssize_t got;

        random = random * 1103515245 + 12345;
        for (size_t i = 0; i < sizeof(piece); i++)
            piece[i] = (char) ((written + i) * 7 >> 2);
        if (!run_sink_is_full(&fixture->sink) && written < 3000000) {
            size_t length = random % sizeof(piece);

            if (length > 3000000 - written)
                length = 3000000 - written;
            run_sink_write(&fixture->sink, piece, length);
            written += length;
        }
        if (run_sink_is_full(&fixture->sink) || written == 3000000) {
            got = read(ends[0], piece, 1 + random % 5000);
            for (ssize_t i = 0; i < got; i++)
                assert_int_equal(piece[i], (char) ((received + (size_t) i) * 7 >> 2));
            received += got > 0 ? (size_t) got : 0;
        }
        turn(fixture);
    }
    assert_true(fixture->drains > 0);
    assert_true(fixture->empties > 0);
    assert_true(run_sink_is_empty(&fixture->sink));
    close_sink(fixture);
    (void) close(ends[0]);
    (void) close(ends[1]);
}

static void a_file_as_sink_is_appended_to_where_it_stands(void **state)
{
    struct fixture *fixture = *state;
    char path[] = "/tmp/burrow-run-stdio-XXXXXX", text[16] = "";
    AUTO(close) int fd = mkostemp(path, O_CLOEXEC);

    assert_true(fd >= 0);
    (void) unlink(path);
    assert_int_equal(sys_file_write_full(fd, "one ", 4), 0);
    open_sink(fixture, fd);
    run_sink_write(&fixture->sink, "two ", 4);
    run_sink_write(&fixture->sink, "three", 5);
    assert_true(run_sink_is_empty(&fixture->sink));
    close_sink(fixture);
    assert_int_equal(pread(fd, text, sizeof(text), 0), 13);
    assert_memory_equal(text, "one two three", 13);
}

static void a_sink_that_nobody_reads_fails_once(void **state)
{
    struct fixture *fixture = *state;
    int ends[2];

    assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
    open_sink(fixture, ends[1]);
    (void) close(ends[0]);
    run_sink_write(&fixture->sink, "x", 1);
    assert_int_equal(fixture->failures, 0);
    turn(fixture);
    turn(fixture);
    run_sink_write(&fixture->sink, "y", 1);
    turn(fixture);
    assert_int_equal(fixture->failures, 1);
    assert_int_equal(fixture->sink.error, -EPIPE);
    assert_true(run_sink_is_empty(&fixture->sink));
    close_sink(fixture);
    (void) close(ends[1]);
}

#define WITH_LOOP(test) cmocka_unit_test_setup_teardown(test, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        WITH_LOOP(a_pipe_is_read_and_stays_blocking_for_others),
        WITH_LOOP(a_file_is_read_from_its_place_in_any_steps),
        WITH_LOOP(nothing_is_an_end),
        WITH_LOOP(a_socket_gets_its_flags_back),
        WITH_LOOP(a_source_that_is_shut_breaks_the_pipe),
        WITH_LOOP(a_sink_passes_all_bytes_through_a_slow_pipe),
        WITH_LOOP(a_file_as_sink_is_appended_to_where_it_stands),
        WITH_LOOP(a_sink_that_nobody_reads_fails_once),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
