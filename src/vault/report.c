#include "vault/report.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "base/encoding/encode.h"
#include "sys/file/sys_file.h"
#include "vault/mover.h"

/* So many bytes in one turn: others want theirs. */
#define READ_SIZE 65536

/* --- its end --------------------------------------------------------------------------------- */

/* The error that a last line tells; what makes no sense is told as that. */
static void take_error(struct report *report)
{
    struct json_limits limits = {.size = MOVER_LINE_MAX, .depth = 4, .values = 64};
    const char *text = text_string(&report->last), *code = NULL, *message = NULL;
    AUTO(json) json_t *root = json_read(text, report->last.length, &limits, NULL);
    struct json_place top, inner = {.value = NULL};
    enum err_code known;

    if (!root || json_root_object(root, &top, NULL) < 0 ||
        json_field_object(&top, "error", JSON_REQUIRED, &inner, NULL) < 0 ||
        json_field_text(&inner, "code", JSON_REQUIRED, 64, &code, NULL) < 0 ||
        json_field_text(&inner, "message", JSON_REQUIRED, MOVER_LINE_MAX, &message, NULL) < 0) {
        (void) error_set(&report->failure, ERR_INTERNAL, 0,
                         "the keeper failed and did not say why");
        return;
    }
    known = error_code_from_text(code);
    (void) error_set(&report->failure,
                     known == ERR_CODE_COUNT || known == ERR_NONE ? ERR_INTERNAL : known, 0, "%s",
                     message);
}

static void judge(struct report *report)
{
    const struct ending *ending = &report->ending;

    if (report->failed)
        return;
    report->failed = true;
    if (report->is_cancelled)
        (void) error_set(&report->failure, ERR_CANCELLED, 0, "the job was cancelled");
    else if (ending->kind == ENDED_STATUS && ending->value == 0 && report->has_last)
        report->failed = false;
    else if (ending->kind == ENDED_STATUS && ending->value != 0 && report->has_last)
        take_error(report);
    else
        (void) error_set(&report->failure, ERR_INTERNAL, 0, "the keeper ended by %s %d",
                         ending->kind == ENDED_SIGNAL ? "signal" : "status", ending->value);
}

static void end(struct report *report)
{
    struct text last = report->last;
    bool failed;
    TRACE_AS(&report->trace);

    if (!report->is_answered || !report->is_drained)
        return;
    judge(report);
    report->is_running = false;
    text_done(&report->line);
    report->last = (struct text) TEXT_INIT(0);
    failed = report->failed;
    report->on_done(report->context, failed ? &report->failure : NULL,
                    failed ? NULL : text_string(&last), last.length);
    text_done(&last);
}

static void closed(uv_handle_t *handle)
{
    struct report *report = handle->data;

    report->pipe = fd_close(report->pipe);
    report->is_drained = true;
    end(report);
}

static void drain(struct report *report)
{
    if (!uv_is_closing((uv_handle_t *) &report->poll))
        uv_close((uv_handle_t *) &report->poll, closed);
}

static void answered(void *context, const struct error *failure, const struct ending *ending)
{
    struct report *report = context;

    report->is_answered = true;
    if (failure && !report->failed) {
        report->failed = true;
        report->failure = *failure;
    }
    if (ending)
        report->ending = *ending;
    end(report);
}

void report_cancel(struct report *report)
{
    if (!report->is_running || report->is_cancelled)
        return;
    report->is_cancelled = true;
    drain(report);
}

/* --- lines ----------------------------------------------------------------------------------- */

static void take_line(struct report *report)
{
    struct text line = report->line;

    if (report->has_last && report->on_line)
        report->on_line(report->context, text_string(&report->last), report->last.length);
    /* The older one's memory serves for the next. */
    report->line = report->last;
    report->last = line;
    report->has_last = true;
    text_clear(&report->line);
}

static void take_bytes(struct report *report, const char *bytes, size_t length)
{
    while (length && !report->is_cancelled) {
        const char *newline = memchr(bytes, '\n', length);
        size_t part = newline ? (size_t) (newline - bytes) : length;

        text_append_bytes(&report->line, bytes, part);
        if (report->line.overflowed) {
            report->failed = true;
            (void) error_set(&report->failure, ERR_UPSTREAM, 0, "the keeper told an endless line");
            drain(report);
            return;
        }
        if (newline)
            take_line(report);
        part += newline != NULL;
        bytes += part;
        length -= part;
    }
}

static void readable(uv_poll_t *poll, int status, int events)
{
    struct report *report = poll->data;
    char buffer[READ_SIZE];
    ssize_t got = read(report->pipe, buffer, sizeof(buffer));
    TRACE_AS(&report->trace);

    (void) status, (void) events;
    if (got > 0)
        take_bytes(report, buffer, (size_t) got);
    else if (got == 0 || (errno != EAGAIN && errno != EINTR))
        drain(report);
}

/* --- its beginning --------------------------------------------------------------------------- */

static int open_pipe(struct report *report, int *ret_writer)
{
    int ends[2], r;

    if (pipe2(ends, O_CLOEXEC) < 0)
        return -errno;
    report->pipe = ends[0];
    *ret_writer = ends[1];
    r = sys_file_set_nonblocking(ends[0], true);
    return r < 0 ? r : uv_poll_init(&report->loop->uv, &report->poll, ends[0]);
}

static void never_began(struct loop_task *task)
{
    struct report *report = CONTAINER_OF(task, struct report, late);

    report->pipe = fd_close(report->pipe);
    report->is_answered = report->is_drained = true;
    end(report);
}

void report_run(struct report *report, struct loop *loop, struct provider *provider,
                const struct provider_disk_job *job, report_line *on_line, report_done *on_done,
                void *context)
{
    struct provider_disk_job with_output = *job;
    AUTO(close) int writer = -EBADF;
    int r;

    *report = (struct report){
        .loop = loop,
        .pipe = -EBADF,
        .line = TEXT_INIT(MOVER_LINE_MAX),
        .last = TEXT_INIT(MOVER_LINE_MAX),
        .is_running = true,
        .trace = trace_context,
        .on_line = on_line,
        .on_done = on_done,
        .context = context,
    };
    r = open_pipe(report, &writer);
    if (r < 0) {
        report->failed = true;
        (void) error_set(&report->failure, error_code_from_errno(r), r, "make a pipe for a job");
        report->is_running = false; /* there is nothing to cancel */
        loop_task_init(&report->late, never_began);
        loop_defer(loop, &report->late);
        return;
    }
    report->poll.data = report;
    (void) uv_poll_start(&report->poll, UV_READABLE, readable);
    with_output.output = writer;
    provider_run_disk_job(provider, &with_output, answered, report);
}

/* --- outcomes -------------------------------------------------------------------------------- */

void outcome_done(struct outcome *outcome)
{
    json_decref(outcome->root);
    outcome->root = NULL;
}

int outcome_read(struct outcome *outcome, const char *line, size_t length, const char *member,
                 struct error *err)
{
    struct json_limits limits = {.size = MOVER_LINE_MAX, .depth = 4, .values = 256};

    outcome->root = json_read(line, length, &limits, NULL);
    if (!outcome->root || json_root_object(outcome->root, &outcome->top, NULL) < 0 ||
        json_field_object(&outcome->top, member, JSON_REQUIRED, &outcome->inner, NULL) < 0)
        return error_set(err, ERR_UPSTREAM, 0, "the keeper did not tell what it has '%s'", member);
    return 0;
}

int outcome_count(const struct outcome *outcome, const char *key, uint64_t *ret_count,
                  struct error *err)
{
    int64_t count = 0;

    if (json_field_integer(&outcome->inner, key, JSON_OPTIONAL, 0, INT64_MAX, &count, NULL) < 0)
        return error_set(err, ERR_UPSTREAM, 0, "the keeper told no number of '%s'", key);
    *ret_count = (uint64_t) count;
    return 0;
}

int outcome_sum(const struct outcome *outcome, const char *key, uint8_t ret_sum[static 32],
                struct error *err)
{
    const char *hex = NULL;
    size_t count = 0;

    if (json_field_text(&outcome->inner, key, JSON_REQUIRED, 64, &hex, NULL) < 0 ||
        hex_decode(hex, strlen(hex), ret_sum, 32, &count) < 0 || count != 32)
        return error_set(err, ERR_UPSTREAM, 0, "the keeper told no sum '%s'", key);
    return 0;
}
