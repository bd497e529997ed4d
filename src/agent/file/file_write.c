#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "agent/agent.h"
#include "agent/file/file_error.h"
#include "agent/file/file_operations.h"
#include "agent/file/file_request.h"
#include "agent/file/file_writer.h"
#include "base/encoding/encode.h"
#include "base/number.h"
#include "json/json_write.h"

#define BODY_MAX (1024 + 6 * FILE_PATH_MAX)

/* Characters that are written in one turn of the loop; a multiple of four. */
#define SLICE_SIZE ((size_t) 512 * 1024)
/* Of base64, decoded at a time. */
#define DECODE_SIZE ((size_t) 4096)

#define MODE_MAX 07777

/* In the call's pool. */
struct file_write {
    struct call *call;
    const char *path; /* as the client gave it */
    struct file_writer writer;
    const char *content; /* borrowed from the arguments */
    size_t length;
    size_t done;
    bool base64;
    struct loop_task task;
};

/* --- base64 --------------------------------------------------------------------------------- */

/* Characters before the padding. */
static size_t without_padding(const char *text, size_t length)
{
    while (length && text[length - 1] == '=')
        length--;
    return length;
}

static bool is_digit(unsigned char c)
{
    return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '+' ||
           c == '/';
}

ssize_t file_write_base64_size(const char *text, size_t length)
{
    length = without_padding(text, length);
    for (size_t i = 0; i < length; i++) {
        if (!is_digit((unsigned char) text[i]))
            return -EINVAL;
    }
    if (length % 4 == 1)
        return -EINVAL;
    return (ssize_t) (length / 4 * 3 + (length % 4 ? length % 4 - 1 : 0));
}

size_t file_write_base64(const char *text, size_t length, char *ret_bytes)
{
    char last[4] = "AAAA";
    size_t rest, count = 0, more = 0;

    length = without_padding(text, length);
    rest = length % 4;
    length -= rest;
    (void) base64_decode(BASE64_STANDARD, text, length, ret_bytes, length / 4 * 3, &count);
    if (!rest)
        return count;
    /* Bits that carry nothing are ignored, as they are by clients' own decoders. */
    memcpy(last, text + length, rest);
    (void) base64_decode(BASE64_STANDARD, last, 4, last, sizeof(last), &more);
    memcpy(ret_bytes + count, last, rest - 1);
    return count + rest - 1;
}

/* --- ending --------------------------------------------------------------------------------- */

static void close_write(struct file_write *write)
{
    loop_task_cancel(&write->task);
    file_writer_done(&write->writer);
}

static void fail(struct file_write *write, int error)
{
    close_write(write);
    file_error_fail(write->call, write->path, error);
}

static void finish(struct file_write *write)
{
    AUTO(text) struct text body = TEXT_INIT(BODY_MAX);
    uint64_t written = write->writer.written;
    struct json_writer json;
    int r = file_writer_commit(&write->writer);

    if (r < 0) {
        fail(write, r);
        return;
    }
    close_write(write);
    call_begin_success(&json, &body);
    json_add_text(&json, "path", write->path);
    json_add_integer(&json, "bytesWritten", (int64_t) written);
    call_finish_success(write->call, &json, &body);
}

static void client_left(struct call *call)
{
    close_write(call->data);
}

/* --- content in the call -------------------------------------------------------------------- */

static int write_decoded(struct file_write *write, const char *text, size_t length)
{
    char bytes[BASE64_BYTES_MAX(DECODE_SIZE)];
    int r = 0;

    for (size_t at = 0; at < length && r == 0; at += DECODE_SIZE) {
        size_t step = length - at < DECODE_SIZE ? length - at : DECODE_SIZE;

        r = file_writer_write(&write->writer, bytes, file_write_base64(text + at, step, bytes));
    }
    return r;
}

static void write_on(struct loop_task *task)
{
    struct file_write *write = CONTAINER_OF(task, struct file_write, task);
    size_t left = write->length - write->done;
    size_t step = left < SLICE_SIZE ? left : SLICE_SIZE;
    const char *text = write->content + write->done;
    int r = write->base64 ? write_decoded(write, text, step)
                          : file_writer_write(&write->writer, text, step);

    write->done += step;
    if (r < 0)
        fail(write, r);
    else if (write->done == write->length)
        finish(write);
    else
        loop_defer(&write->call->agent->loop, &write->task);
}

/* "755", "0755" or the number itself. Absent: what the file has. */
static int read_permissions(struct call *call, int *ret_mode)
{
    json_t *value = json_object_get(call->arguments, "permissions");
    const char *text = json_string_value(value);
    json_int_t number = json_integer_value(value);

    *ret_mode = FILE_WRITER_KEEP_MODE;
    if (!value || json_is_null(value))
        return 0;
    if (text && text[0] && strlen(text) <= 5 && !text[strspn(text, "01234567")])
        number = (json_int_t) strtol(text, NULL, 8);
    else if (!json_is_integer(value))
        number = -1;
    if (number < 0 || number > MODE_MAX) {
        call_fail_field(call, "permissions", "must be an octal mode such as \"0644\"");
        return -1;
    }
    *ret_mode = (int) number;
    return 0;
}

static int read_content(struct call *call, struct file_write *write)
{
    json_t *content = json_object_get(call->arguments, "content");
    const char *encoding;
    ssize_t size;

    if (file_request_text(call, "encoding", &encoding) < 0)
        return -1;
    if (!json_is_string(content)) {
        call_fail_field(call, "content", content ? "must be a string" : "is required");
        return -1;
    }
    write->content = json_string_value(content);
    write->length = json_string_length(content);
    write->base64 = encoding && strcmp(encoding, "base64") == 0;
    if (encoding && !write->base64 && strcmp(encoding, "utf-8") != 0 &&
        strcmp(encoding, "utf8") != 0) {
        call_fail_field(call, "encoding", "must be utf-8, utf8 or base64");
        return -1;
    }
    size = write->base64 ? file_write_base64_size(write->content, write->length)
                         : (ssize_t) write->length;
    if (size < 0) {
        call_fail_field(call, "content", "is not base64");
        return -1;
    }
    if ((size_t) size > FILE_WRITE_MAX) {
        file_error_fail_size(call, write->path, FILE_WRITE_MAX, (uint64_t) size);
        return -1;
    }
    return 0;
}

static struct file_write *new_write(struct call *call)
{
    struct file_write *write = pool_alloc(call->pool, sizeof(*write));

    *write = (struct file_write){.call = call, .writer = FILE_WRITER_INIT};
    loop_task_init(&write->task, write_on);
    return write;
}

/* Returns -1 when the call was failed and is gone. */
static int open_write(struct file_write *write, const struct file_place *place, int permissions)
{
    int r;

    write->writer.owner = file_owner_find(write->call->agent);
    r = file_writer_open(&write->writer, place->base, place->path, permissions);
    if (r < 0) {
        fail(write, r);
        return -1;
    }
    write->call->data = write;
    write->call->on_gone = client_left;
    return 0;
}

void file_write(struct call *call)
{
    AUTO(file_place) struct file_place place = FILE_PLACE_INIT;
    struct file_write *write = new_write(call);
    int permissions;

    if (file_request_place(call, "path", &place) < 0)
        return;
    write->path = place.path;
    if (read_content(call, write) == 0 && read_permissions(call, &permissions) == 0 &&
        open_write(write, &place, permissions) == 0)
        write_on(&write->task);
}

/* --- a stream of content -------------------------------------------------------------------- */

static void take_input(struct call *call, const char *bytes, size_t length)
{
    struct file_write *write = call->data;
    int r = file_writer_write(&write->writer, bytes, length);

    if (r < 0)
        fail(write, r);
}

static void input_ended(struct call *call, bool complete)
{
    struct file_write *write = call->data;

    if (complete) {
        finish(write);
        return;
    }
    close_write(write);
    call_fail_text(call, API_OPERATION_INTERRUPTED,
                   "The stream was broken off: %.256s is unchanged", write->path);
}

void file_write_stream(struct call *call)
{
    AUTO(file_place) struct file_place place = FILE_PLACE_INIT;
    struct file_write *write = new_write(call);

    if (!call->has_input) {
        call_fail_field(call, "content", "must be a stream of bytes");
        return;
    }
    if (file_request_place(call, "path", &place) < 0)
        return;
    write->path = place.path;
    if (open_write(write, &place, FILE_WRITER_KEEP_MODE) < 0)
        return;
    call->on_input = take_input;
    call->on_input_end = input_ended;
    call_take_input(call);
}
