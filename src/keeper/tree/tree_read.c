#include "keeper/tree/tree_read.h"

#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/memory.h"
#include "keeper/tree/tree_list.h"
#include "keeper/view_folder.h"
#include "sys/file/sys_file.h"
#include "sys/file/sys_open_beneath.h"

#define BUFFER_SIZE ((size_t) 256 << 10)

struct reading {
    int view, data; /* borrowed */
    int folder;     /* owned; -EBADF before the first line */
    struct text path;
    size_t used;     /* of the buffer: what gathers for `data` */
    uint8_t *buffer; /* owned */
    uint64_t files, missing, bytes;
};

/* --- writing -------------------------------------------------------------------------------- */

static int flush(struct reading *reading, struct error *err)
{
    int result = sys_file_write_full(reading->data, reading->buffer, reading->used);

    reading->used = 0;
    if (result == -EPIPE)
        return error_set(err, ERR_CANCELLED, result, "write the contents");
    if (result < 0)
        return error_set(err, error_code_from_errno(result), result, "write the contents");
    return 0;
}

static int put_length(struct reading *reading, uint64_t length, struct error *err)
{
    if (BUFFER_SIZE - reading->used < sizeof(length) && flush(reading, err) < 0)
        return -1;
    length = htole64(length);
    memcpy(reading->buffer + reading->used, &length, sizeof(length));
    reading->used += sizeof(length);
    return 0;
}

static int put_content(struct reading *reading, int fd, uint64_t left, struct error *err)
{
    while (left) {
        size_t room = BUFFER_SIZE - reading->used;
        size_t wanted = left < room ? (size_t) left : room;
        ssize_t got = sys_file_read_full(fd, reading->buffer + reading->used, wanted);

        if (got < 0)
            return error_set(err, error_code_from_errno((int) got), (int) got, "read a file");
        if ((size_t) got != wanted)
            return error_set(err, ERR_CONFLICT, ESTALE, "read a file");
        reading->used += wanted;
        left -= wanted;
        if (reading->used == BUFFER_SIZE && flush(reading, err) < 0)
            return -1;
    }
    return 0;
}

/* --- lines ---------------------------------------------------------------------------------- */

static bool is_regular(int fd, struct stat *ret_status)
{
    return fstat(fd, ret_status) == 0 && S_ISREG(ret_status->st_mode);
}

/* The file, -EBADF when there is none of that name, or why it cannot be opened. What is no regular
 * file may fail in any way: then its type is looked at by a descriptor that opens nothing. */
static int open_file(const struct reading *reading, struct stat *ret_status)
{
    const char *path = text_string(&reading->path);
    AUTO(close)
    int fd = sys_open_beneath(reading->folder, path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK, 0);
    AUTO(close) int place = -EBADF;

    if (fd >= 0)
        return is_regular(fd, ret_status) ? TAKE_FD(fd) : -EBADF;
    place = sys_open_beneath(reading->folder, path, O_PATH | O_NOFOLLOW, 0);
    return place >= 0 && is_regular(place, ret_status) ? fd : -EBADF;
}

static int answer(struct reading *reading, const struct json_place *line, struct error *err)
{
    AUTO(close) int fd = -EBADF;
    struct stat status;

    if (view_folder_name(line, "path", TREE_LIST_PATH_MAX, &reading->path, err) < 0)
        return -1;
    fd = open_file(reading, &status);
    if (fd < 0 && fd != -EBADF)
        return error_set(err, error_code_from_errno(fd), fd, "open a file");
    if (fd < 0) {
        reading->missing++;
        return put_length(reading, TREE_READ_MISSING, err);
    }
    reading->files++;
    reading->bytes += (uint64_t) status.st_size;
    if (put_length(reading, (uint64_t) status.st_size, err) < 0)
        return -1;
    return put_content(reading, fd, (uint64_t) status.st_size, err);
}

static int take_line(struct reading *reading, const char *bytes, size_t length, struct error *err)
{
    static const char *const first[] = {"folder"}, *const further[] = {"path"};
    const struct json_limits limits = {.size = TREE_READ_LINE_MAX, .depth = 2, .values = 8};
    AUTO(json) json_t *value = json_read(bytes, length, &limits, err);
    bool is_first = reading->folder < 0;
    struct json_place line;

    if (!value || json_root_object(value, &line, err) < 0 ||
        json_known_fields(&line, is_first ? first : further, 1, err) < 0)
        return -1;
    if (!is_first)
        return answer(reading, &line, err);
    reading->folder = view_folder_open(reading->view, &line, err);
    return reading->folder < 0 ? -1 : 0;
}

/* Everything up to the last newline in `lines`. */
static int take_lines(struct reading *reading, struct text *lines, struct error *err)
{
    const char *newline;
    size_t at = 0;

    while (lines->length > at &&
           (newline = memchr(lines->data + at, '\n', lines->length - at)) != NULL) {
        size_t length = (size_t) (newline - lines->data) - at;

        if (take_line(reading, lines->data + at, length, err) < 0)
            return -1;
        at += length + 1;
    }
    text_consume(lines, at);
    if (lines->length > TREE_READ_LINE_MAX)
        return error_set(err, ERR_INVALID, 0, "a line is longer than %zu bytes",
                         TREE_READ_LINE_MAX);
    return 0;
}

/* The end of the lines, which may lack its newline. */
static int finish(struct reading *reading, struct text *lines, struct error *err)
{
    if (lines->length && take_line(reading, lines->data, lines->length, err) < 0)
        return -1;
    if (reading->folder < 0)
        return error_set(err, ERR_INVALID, 0, "the folder is missing");
    return flush(reading, err);
}

static int take_all(struct reading *reading, int paths, struct error *err)
{
    AUTO(text) struct text lines = TEXT_INIT(2 * TREE_READ_LINE_MAX);

    for (;;) {
        char *room = text_reserve(&lines, TREE_READ_LINE_MAX);
        ssize_t got = read(paths, room, TREE_READ_LINE_MAX);

        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return error_set(err, error_code_from_errno(errno), errno, "read the paths");
        if (got == 0)
            return finish(reading, &lines, err);
        text_commit(&lines, (size_t) got);
        /* What these lines ask for is on its way before more of them is waited for. */
        if (take_lines(reading, &lines, err) < 0 || flush(reading, err) < 0)
            return -1;
    }
}

static void report(const struct reading *reading, struct output *output)
{
    struct json_writer json;

    output_begin(output, &json);
    json_key(&json, "read");
    json_begin_object(&json);
    output_add_count(&json, "files", reading->files);
    output_add_count(&json, "missing", reading->missing);
    output_add_count(&json, "bytes", reading->bytes);
    json_end_object(&json);
    output_end(output, &json);
}

int tree_read(int view, int paths, int data, struct output *output, struct error *err)
{
    struct reading reading = {
        .view = view, .data = data, .folder = -EBADF, .path = TEXT_INIT(TREE_LIST_PATH_MAX)};
    int result;

    reading.buffer = mem_alloc(BUFFER_SIZE);
    result = take_all(&reading, paths, err);
    if (result == 0)
        report(&reading, output);
    (void) fd_close(reading.folder);
    text_done(&reading.path);
    free(reading.buffer);
    return result;
}
