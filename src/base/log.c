#include "base/log.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/uio.h>

#include "base/log_line.h"
#include "base/memory.h"
#include "base/trace.h"

/* Twice what may wait: the bytes are moved to the front only when at least half the buffer was
 * written out before them, so moving costs a constant per byte. Untouched pages cost nothing. */
#define BUFFER_SIZE (2 * LOG_BUFFER_MAX)

/* Of one line, with the two that come from the trace: no call has half as many. */
#define FIELDS_MAX 32

/* A line and the line about dropped ones before it. */
#define ROOM_PER_LINE (2 * LOG_LINE_MAX)

/* How log_free waits for a slow reader: a second in all. */
#define LAST_FLUSH_ATTEMPTS 100
#define LAST_FLUSH_PAUSE_MS 10

/* How to write without blocking. The descriptor is shared with other processes (our stderr is
 * theirs too), so O_NONBLOCK must not be set on it. */
enum sink { SINK_FILE, SINK_SOCKET, SINK_POLLED, SINK_NONBLOCKING };

struct log {
    int fd;          /* borrowed: outlives us */
    int terminal_fd; /* owned: the terminal behind fd, opened again without blocking */
    enum sink sink;
    enum log_format format;
    enum log_level minimum;
    const struct clock *clock; /* borrowed: outlives us */

    char *buffer; /* owned; waiting bytes are [start, end) */
    size_t start, end;
    bool stalled;          /* the reader took less than we had; until the next log_flush */
    bool no_nowait;        /* the kernel knows no RWF_NOWAIT for this descriptor */
    uint64_t dropped;      /* lines lost in all */
    uint64_t dropped_said; /* of these, reported in a line */

    uint64_t traced; /* the last entry of the trace that became a line */

    void (*on_line)(void *data, const char *message, const char *line, size_t length);
    void *listener; /* borrowed: outlives us */

    int64_t second_ms; /* the second that `time` shows, or INT64_MIN */
    char time[CLOCK_TEXT_SIZE];
};

static enum sink choose_sink(struct log *log)
{
    struct stat status;
    char path[32];

    if (fstat(log->fd, &status) < 0 || S_ISREG(status.st_mode))
        return SINK_FILE;
    if (S_ISSOCK(status.st_mode))
        return SINK_SOCKET;
    if (!isatty(log->fd))
        return SINK_POLLED;
    /* poll(2) calls a terminal writable when one byte fits, and write(2) then blocks for the rest
     * (the user pressed ^S). An open file description of our own may be non-blocking. */
    (void) snprintf(path, sizeof(path), "/proc/self/fd/%d", log->fd);
    log->terminal_fd = open(path, O_WRONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    return log->terminal_fd >= 0 ? SINK_NONBLOCKING : SINK_POLLED;
}

struct log *log_new(int fd, enum log_format format, enum log_level minimum,
                    const struct clock *clock)
{
    struct log *log = mem_alloc(sizeof(*log));
    int saved = errno;

    *log = (struct log){
        .fd = fd,
        .terminal_fd = -EBADF,
        .format = format,
        .minimum = minimum,
        .clock = clock,
        .buffer = mem_alloc(BUFFER_SIZE),
        .second_ms = INT64_MIN,
    };
    if (format == LOG_FORMAT_AUTO)
        log->format = isatty(fd) ? LOG_FORMAT_TEXT : LOG_FORMAT_JSON;
    log->sink = choose_sink(log);
    errno = saved; /* isatty sets it */
    return log;
}

/* One write to a pipe, or to a terminal that could not be opened again. A pipe that polls writable
 * takes PIPE_BUF bytes at once; RWF_NOWAIT covers another writer filling it in between. */
static ssize_t write_polled(struct log *log, const char *bytes, size_t length)
{
    struct pollfd poll_fd = {.fd = log->fd, .events = POLLOUT};
    struct iovec piece = {.iov_base = (char *) bytes, .iov_len = length};
    ssize_t written;

    if (poll(&poll_fd, 1, 0) < 0)
        return -1;
    if (poll_fd.revents & (POLLERR | POLLNVAL)) {
        errno = EPIPE; /* nobody reads any more; a write would raise SIGPIPE */
        return -1;
    }
    if (!(poll_fd.revents & POLLOUT)) {
        errno = EAGAIN;
        return -1;
    }
    if (!log->no_nowait) {
        written = pwritev2(log->fd, &piece, 1, -1, RWF_NOWAIT);
        /* Linux before 6.4 has it for files only. */
        if (written >= 0 || (errno != EOPNOTSUPP && errno != ENOSYS && errno != EINVAL))
            return written;
        log->no_nowait = true;
    }
    return write(log->fd, bytes, length);
}

static ssize_t write_piece(struct log *log, const char *bytes, size_t length)
{
    switch (log->sink) {
    case SINK_FILE:
        return write(log->fd, bytes, length);
    case SINK_SOCKET:
        return send(log->fd, bytes, length, MSG_DONTWAIT | MSG_NOSIGNAL);
    case SINK_NONBLOCKING:
        return write(log->terminal_fd, bytes, length);
    case SINK_POLLED:
        break;
    }
    return write_polled(log, bytes, length);
}

/* How much to write at once: everything to a file; elsewhere as many whole lines as fit in
 * PIPE_BUF, so that lines of several writers to one pipe do not mix. */
static size_t piece_length(const struct log *log)
{
    size_t waiting = log->end - log->start;
    const char *newline;

    if (log->sink == SINK_FILE || waiting <= PIPE_BUF)
        return waiting;
    newline = memrchr(log->buffer + log->start, '\n', PIPE_BUF);
    return newline ? (size_t) (newline + 1 - (log->buffer + log->start)) : PIPE_BUF;
}

static void drop_waiting(struct log *log)
{
    for (size_t i = log->start; i < log->end; i++)
        log->dropped += log->buffer[i] == '\n';
    log->start = log->end;
}

static bool is_passing(int system)
{
    return system == EAGAIN || system == ENOSPC || system == EDQUOT || system == ENOBUFS;
}

static void write_waiting(struct log *log)
{
    int saved = errno;

    while (log->start < log->end) {
        ssize_t written = write_piece(log, log->buffer + log->start, piece_length(log));

        if (written > 0)
            log->start += (size_t) written;
        else if (written == 0 || is_passing(errno))
            break;
        else if (errno != EINTR)
            drop_waiting(log); /* the reader is gone for good */
    }
    log->stalled = log->start < log->end;
    if (!log->stalled)
        log->start = log->end = 0;
    errno = saved;
}

static bool is_full(const struct log *log)
{
    return log->end - log->start > LOG_BUFFER_MAX - ROOM_PER_LINE;
}

static bool make_room(struct log *log)
{
    if (is_full(log) && !log->stalled)
        write_waiting(log);
    if (is_full(log))
        return false;
    if (log->end > BUFFER_SIZE - ROOM_PER_LINE) {
        memmove(log->buffer, log->buffer + log->start, log->end - log->start);
        log->end -= log->start;
        log->start = 0;
    }
    return true;
}

static void update_time(struct log *log)
{
    int64_t now = clock_wall_ms(log->clock);
    int64_t ms = now - log->second_ms;

    /* Formatting the date anew is needed once a second only. */
    if (log->second_ms == INT64_MIN || ms < 0 || ms > 999) {
        ms = (now % 1000 + 1000) % 1000;
        log->second_ms = now - ms;
        clock_format(now, log->time);
        return;
    }
    log->time[20] = (char) ('0' + ms / 100);
    log->time[21] = (char) ('0' + ms / 10 % 10);
    log->time[22] = (char) ('0' + ms % 10);
}

static void add_line(struct log *log, enum log_level level, const char *message,
                     const struct log_field *fields, size_t count)
{
    const char *line = log->buffer + log->end;
    size_t length = log_line_format(log->format, log->buffer + log->end, log->time, level, message,
                                    fields, count);

    log->end += length;
    if (log->on_line)
        log->on_line(log->listener, message, line, length);
}

static void say_dropped(struct log *log)
{
    const struct log_field lines =
        log_number("lines", (int64_t) (log->dropped - log->dropped_said));

    add_line(log, LOG_LEVEL_WARNING, "log lines were dropped: the reader of the log stalled",
             &lines, 1);
    log->dropped_said = log->dropped;
}

static bool has_field(const struct log_field *fields, size_t count, const char *name)
{
    for (size_t i = 0; i < count; i++)
        if (fields[i].type != LOG_FIELD_NONE && strcmp(fields[i].name, name) == 0)
            return true;
    return false;
}

/* The fields of a line, and for whom it is said unless they tell that themselves. */
static size_t add_context(const struct log_field *fields, size_t count,
                          struct log_field all[static FIELDS_MAX])
{
    size_t used = count < FIELDS_MAX - 2 ? count : FIELDS_MAX - 2;

    memcpy(all, fields, used * sizeof(*all));
    if (trace_context.request.text[0] && !has_field(fields, count, "request"))
        all[used++] = log_text("request", trace_context.request.text);
    if (trace_context.sandbox.text[0] && !has_field(fields, count, "sandbox"))
        all[used++] = log_text("sandbox", trace_context.sandbox.text);
    return used;
}

void log_write(struct log *log, enum log_level level, const char *message,
               const struct log_field *fields, size_t count)
{
    struct log_field all[FIELDS_MAX];

    if (!log_enabled(log, level))
        return;
    if (!make_room(log)) {
        log->dropped++;
        return;
    }
    update_time(log);
    if (log->dropped != log->dropped_said)
        say_dropped(log);
    count = add_context(fields, count, all);
    add_line(log, level, message, all, count);
    if (level >= LOG_LEVEL_WARNING)
        write_waiting(log);
}

bool log_enabled(const struct log *log, enum log_level level)
{
    return log && level >= log->minimum;
}

/* What was traced since the last time, also by other threads and by processes that share the ring.
 */
static void say_trace(struct log *log)
{
    struct trace_entry entry;

    while (trace_read_new(&log->traced, &entry, 1)) {
        TRACE_AS(&entry.context);

        LOG_DEBUG(log, entry.point, log_text("process", entry.process));
    }
}

void log_flush(struct log *log)
{
    if (log_enabled(log, LOG_LEVEL_DEBUG))
        say_trace(log);
    if (log)
        write_waiting(log);
}

void log_listen(struct log *log,
                void (*on_line)(void *data, const char *message, const char *line, size_t length),
                void *data)
{
    log->on_line = on_line;
    log->listener = data;
}

uint64_t log_dropped(const struct log *log)
{
    return log ? log->dropped : 0;
}

void log_free(struct log *log)
{
    if (!log)
        return;
    log_flush(log);
    if (log->dropped != log->dropped_said && make_room(log)) {
        update_time(log);
        say_dropped(log);
        write_waiting(log);
    }
    for (int i = 0; log->stalled && i < LAST_FLUSH_ATTEMPTS; i++) {
        (void) poll(NULL, 0, LAST_FLUSH_PAUSE_MS);
        write_waiting(log);
    }
    (void) fd_close(log->terminal_fd);
    free(log->buffer);
    free(log);
}

int log_level_from_text(const char *text, enum log_level *ret_level)
{
    static const char *const names[] = {"debug", "info", "warning", "error"};

    for (size_t i = 0; i < ARRAY_COUNT(names); i++) {
        if (strcmp(text, names[i]) == 0) {
            *ret_level = (enum log_level) i;
            return 0;
        }
    }
    return -EINVAL;
}

struct log_field log_text(const char *name, const char *text)
{
    return log_bytes(name, text, text ? strlen(text) : 0);
}

struct log_field log_bytes(const char *name, const char *bytes, size_t length)
{
    return (struct log_field){
        .name = name,
        .type = LOG_FIELD_TEXT,
        .text = bytes,
        .length = length,
    };
}

struct log_field log_number(const char *name, int64_t number)
{
    return (struct log_field){.name = name, .type = LOG_FIELD_NUMBER, .number = number};
}

struct log_field log_boolean(const char *name, bool value)
{
    return (struct log_field){.name = name, .type = LOG_FIELD_BOOLEAN, .number = value};
}
