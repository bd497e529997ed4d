#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <string.h>
#include <sys/stat.h>

#include "agent/agent.h"
#include "agent/file/file_error.h"
#include "agent/file/file_operations.h"
#include "agent/file/file_request.h"
#include "agent/file/mime.h"
#include "agent/file_open.h"
#include "agent/output_text.h"
#include "base/encoding/encode.h"
#include "json/json_write.h"
#include "sys/file/sys_file.h"

/* Slices in one turn of the loop. */
#define SLICES_PER_TURN 4

#define EVENT_MAX ((size_t) 16 * 1024)

/* Beside -errno: the call was failed already. */
#define ANSWERED 1

struct file_read;

/* One of the forms of an answer. After end and fail the call is gone. */
struct form {
    void (*begin)(struct file_read *read);
    void (*slice)(struct file_read *read, size_t length);
    void (*end)(struct file_read *read);
    void (*fail)(struct file_read *read, int error);
};

/* In the call's pool. */
struct file_read {
    struct call *call;
    const struct form *form;
    const char *path; /* as the client gave it */
    const char *type;
    int fd;
    uint64_t size; /* when it was opened */
    uint64_t end;  /* where to stop, though it may grow */
    uint64_t done;
    struct output_text encoder;
    struct file_reply reply; /* of the JSON form */
    struct loop_task task;
    char *buffer;
};

static const char *encoding_of(const struct file_read *read)
{
    return read->encoder.base64 ? "base64" : "utf-8";
}

/* --- as one object -------------------------------------------------------------------------- */

static void json_begin(struct file_read *read)
{
    struct text *body = &read->reply.pending;
    struct json_writer json;

    file_reply_init(&read->reply, read->call);
    call_begin_success(&json, body);
    json_add_text(&json, "path", read->path);
    json_add_text(&json, "encoding", encoding_of(read));
    json_add_boolean(&json, "isBinary", read->encoder.base64);
    json_add_text(&json, "mimeType", read->type);
    call_add_timestamp(read->call, &json);
    (void) json_document_end(&json); /* an empty text has room for it */
    body->length--;                  /* more follows before the brace */
    text_append(body, ",\"content\":\"");
}

static void json_slice(struct file_read *read, size_t length)
{
    output_text_feed(&read->encoder, &read->reply.pending, read->buffer, length);
    file_reply_flush(&read->reply);
}

static void json_end(struct file_read *read)
{
    struct text *body = &read->reply.pending;

    output_text_flush(&read->encoder, body);
    text_format(body, "\",\"size\":%" PRIu64 "}", read->done);
    file_reply_end(&read->reply, read->path);
}

static void json_fail(struct file_read *read, int error)
{
    file_reply_fail(&read->reply, read->path, error);
}

static const struct form json_form = {json_begin, json_slice, json_end, json_fail};

/* --- as events ------------------------------------------------------------------------------ */

static void send_event(struct file_read *read, const char *type, struct json_writer *json,
                       struct text *event)
{
    (void) json_document_end(json); /* every event has room enough */
    call_event(read->call, type, text_string(event), event->length);
}

static void begin_event(const char *type, struct json_writer *json, struct text *event)
{
    json_document_begin(json, event);
    json_add_text(json, "type", type);
}

static void events_begin(struct file_read *read)
{
    AUTO(text) struct text event = TEXT_INIT(EVENT_MAX);
    struct json_writer json;

    call_begin_events(read->call);
    begin_event("metadata", &json, &event);
    json_add_text(&json, "mimeType", read->type);
    json_add_integer(&json, "size", (int64_t) read->size);
    json_add_boolean(&json, "isBinary", read->encoder.base64);
    json_add_text(&json, "encoding", encoding_of(read));
    send_event(read, "metadata", &json, &event);
}

static void send_chunk(struct file_read *read, size_t length, bool last)
{
    struct text *event = &read->call->agent->scratch;
    size_t before;

    text_clear(event);
    text_append(event, "{\"type\":\"chunk\",\"data\":\"");
    before = event->length;
    output_text_feed(&read->encoder, event, read->buffer, length);
    if (last || read->encoder.base64) /* every event is base64 by itself */
        output_text_flush(&read->encoder, event);
    if (event->length == before)
        return; /* nothing, or the beginning of a character only */
    text_append(event, "\"}");
    call_event(read->call, "chunk", text_string(event), event->length);
}

static void events_slice(struct file_read *read, size_t length)
{
    send_chunk(read, length, false);
}

static void events_end(struct file_read *read)
{
    AUTO(text) struct text event = TEXT_INIT(EVENT_MAX);
    struct json_writer json;

    send_chunk(read, 0, true);
    begin_event("complete", &json, &event);
    json_add_integer(&json, "bytesRead", (int64_t) read->done);
    send_event(read, "complete", &json, &event);
    call_end(read->call);
}

/* Also the answer when there is no such file: clients read the events. */
static void fail_in_event(struct call *call, const char *path, int error)
{
    AUTO(api_error) struct api_error api = API_ERROR_INIT;
    AUTO(text) struct text event = TEXT_INIT(EVENT_MAX);
    struct json_writer json;

    file_error_fill(&api, call->operation->name, path, error);
    begin_event("error", &json, &event);
    json_add_text(&json, "error", api.message);
    (void) json_document_end(&json); /* a message is short */
    call_event(call, "error", text_string(&event), event.length);
    call_end(call);
}

static void events_fail(struct file_read *read, int error)
{
    fail_in_event(read->call, read->path, error);
}

static const struct form events_form = {events_begin, events_slice, events_end, events_fail};

/* --- as bytes ------------------------------------------------------------------------------- */

static void bytes_begin(struct file_read *read)
{
    AUTO(text) struct text head = TEXT_INIT(EVENT_MAX + 6 * FILE_PATH_MAX);
    struct json_writer json;

    call_begin_success(&json, &head);
    json_add_text(&json, "path", read->path);
    json_add_integer(&json, "size", (int64_t) read->size);
    json_add_text(&json, "mimeType", read->type);
    call_add_timestamp(read->call, &json);
    (void) json_document_end(&json); /* there is room for the longest path */
    call_begin_bytes(read->call, &head);
}

static void bytes_slice(struct file_read *read, size_t length)
{
    call_write(read->call, read->buffer, length);
}

static void bytes_end(struct file_read *read)
{
    call_end(read->call);
}

static void bytes_fail(struct file_read *read, int error)
{
    (void) error;
    call_break(read->call);
}

static const struct form bytes_form = {bytes_begin, bytes_slice, bytes_end, bytes_fail};

/* --- reading -------------------------------------------------------------------------------- */

static void close_file(struct file_read *read)
{
    loop_task_cancel(&read->task);
    read->fd = fd_close(read->fd);
}

/* One slice. Returns true when there is more to come; else the call is gone. */
static bool read_slice(struct file_read *read)
{
    uint64_t left = read->end - read->done;
    size_t wanted = left < FILE_READ_SLICE ? (size_t) left : FILE_READ_SLICE;
    ssize_t got = sys_file_read_full(read->fd, read->buffer, wanted);

    if (got >= 0)
        read->done += (size_t) got;
    if (got >= 0 && read->form == &json_form && read->done > FILE_READ_MAX)
        got = -EFBIG;
    if (got < 0) {
        close_file(read);
        read->form->fail(read, (int) got);
        return false;
    }
    read->form->slice(read, (size_t) got);
    if ((size_t) got == wanted && read->done < read->end)
        return true;
    close_file(read);
    read->form->end(read);
    return false;
}

/* Until the client is slow, or others must have their turn. */
static void read_on(struct file_read *read)
{
    struct loop *loop = &read->call->agent->loop;

    for (int i = 0; i < SLICES_PER_TURN; i++) {
        if (call_is_full(read->call))
            return; /* on_drain goes on */
        if (!read_slice(read))
            return;
    }
    loop_defer(loop, &read->task);
}

static void run_task(struct loop_task *task)
{
    read_on(CONTAINER_OF(task, struct file_read, task));
}

static void client_took(struct call *call)
{
    struct file_read *read = call->data;

    loop_defer(&call->agent->loop, &read->task);
}

static void client_left(struct call *call)
{
    struct file_read *read = call->data;

    close_file(read);
    file_reply_done(&read->reply);
}

/* --- beginning ------------------------------------------------------------------------------ */

static int open_file(struct call *call, struct file_read *read)
{
    AUTO(file_place) struct file_place place = FILE_PLACE_INIT;
    AUTO(close) int fd = -EBADF;
    struct stat status;

    if (file_request_place(call, "path", &place) < 0)
        return ANSWERED;
    read->path = place.path;
    read->type = mime_of_name(file_path_name(place.absolute));
    fd = file_open(place.base, place.path, O_RDONLY | O_NONBLOCK | O_NOCTTY, 0);
    if (fd < 0)
        return fd == -ENXIO ? -FILE_ERROR_NOT_REGULAR : fd; /* a socket */
    if (fstat(fd, &status) < 0)
        return -errno;
    if (S_ISDIR(status.st_mode))
        return -EISDIR;
    if (!S_ISREG(status.st_mode))
        return -FILE_ERROR_NOT_REGULAR;
    read->size = (uint64_t) status.st_size;
    /* Files of /proc say that they are empty. */
    read->end = read->size ? read->size : UINT64_MAX;
    read->fd = TAKE_FD(fd);
    return 0;
}

/* The type by content, when the name says nothing. */
static void find_type(struct file_read *read)
{
    ssize_t got = 0;

    if (!read->type)
        got = sys_file_pread_full(
            read->fd, read->buffer,
            read->end < MIME_SNIFF_SIZE ? (size_t) read->end : MIME_SNIFF_SIZE, 0);
    if (!read->type)
        read->type = got < 0 ? MIME_UNKNOWN : mime_of_bytes(read->buffer, (size_t) got);
}

/* NULL: the call was failed. With *ret_error: it must be. */
static struct file_read *open_read(struct call *call, int *ret_error)
{
    struct file_read *read = pool_alloc(call->pool, sizeof(*read));

    *read = (struct file_read){.call = call, .fd = -EBADF};
    *ret_error = open_file(call, read);
    if (*ret_error)
        return *ret_error == ANSWERED ? NULL : read;
    read->buffer = pool_alloc_raw(call->pool, read->end < FILE_READ_SLICE ? (size_t) read->end
                                                                          : FILE_READ_SLICE);
    find_type(read);
    read->encoder.base64 = !mime_is_text(read->type);
    loop_task_init(&read->task, run_task);
    call->data = read;
    call->on_gone = client_left;
    call->on_drain = client_took;
    return read;
}

static void start(struct file_read *read, const struct form *form)
{
    read->form = form;
    form->begin(read);
    read_on(read);
}

/* What the client asked for: the encodings' names are those of JavaScript. */
static int choose_encoding(struct call *call, const char **ret_encoding)
{
    static const char *const known[] = {"utf-8", "utf8", "base64", "none"};

    if (file_request_text(call, "encoding", ret_encoding) < 0)
        return -1;
    for (size_t i = 0; *ret_encoding && i < ARRAY_COUNT(known); i++) {
        if (strcmp(known[i], *ret_encoding) == 0)
            return 0;
    }
    if (!*ret_encoding)
        return 0;
    call_fail_field(call, "encoding", "must be utf-8, utf8, base64 or none");
    return -1;
}

static void start_as_asked(struct file_read *read, const char *encoding)
{
    struct call *call = read->call;

    if (encoding && strcmp(encoding, "none") == 0) {
        start(read, &bytes_form);
        return;
    }
    if (read->size > FILE_READ_MAX) {
        close_file(read);
        file_error_fail_size(call, read->path, FILE_READ_MAX, read->size);
        return;
    }
    if (encoding)
        read->encoder.base64 = strcmp(encoding, "base64") == 0;
    start(read, &json_form);
}

void file_read(struct call *call)
{
    const char *encoding;
    struct file_read *read;
    int r;

    if (choose_encoding(call, &encoding) < 0)
        return;
    read = open_read(call, &r);
    if (read && r < 0)
        file_error_fail(call, read->path, r);
    else if (read)
        start_as_asked(read, encoding);
}

void file_read_stream(struct call *call)
{
    int r;
    struct file_read *read = open_read(call, &r);

    if (read && r < 0) {
        call_begin_events(call);
        fail_in_event(call, read->path, r);
    } else if (read) {
        start(read, &events_form);
    }
}
