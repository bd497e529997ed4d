#include "keeper/layer/layer_records.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "base/memory.h"
#include "sys/file/sys_file.h"

void layer_records_init(struct layer_records *records, int data, bool is_delta)
{
    *records = (struct layer_records){.writer = layer_writer_new(data, is_delta),
                                      .buffer = mem_alloc(LAYER_WINDOW)};
    attributes_init(&records->attributes);
}

void layer_records_done(struct layer_records *records)
{
    layer_writer_free(records->writer);
    attributes_done(&records->attributes);
    free(records->buffer);
    *records = (struct layer_records){.told = 0};
}

bool layer_records_take(const struct stat *status)
{
    mode_t mode = status->st_mode;
    bool is_whiteout = S_ISCHR(mode) && status->st_rdev == makedev(0, 0);

    return S_ISREG(mode) || S_ISDIR(mode) || S_ISLNK(mode) || S_ISFIFO(mode) || is_whiteout;
}

/* --- fields --------------------------------------------------------------------------------- */

static void write_attribute(struct layer_records *records, const char *name, const void *value,
                            size_t length)
{
    layer_write_number(records->writer, 1, strlen(name));
    layer_write_bytes(records->writer, name, strlen(name));
    layer_write_number(records->writer, 4, (uint64_t) length);
    layer_write_bytes(records->writer, value, length);
}

/* The mark that a layer beneath has comes where it would come if this one had it. */
static void write_mark(struct layer_records *records, const char *next, bool *is_missing)
{
    if (!*is_missing || (next && strcmp(next, TREE_OPAQUE) < 0))
        return;
    *is_missing = false;
    if (!next || strcmp(next, TREE_OPAQUE) != 0)
        write_attribute(records, TREE_OPAQUE, "y", 1);
}

static int write_attributes(struct layer_records *records, const struct tree_step *step)
{
    int result = attributes_list(&records->attributes, step->folder, step->at);
    bool is_missing = step->is_opaque;

    for (size_t i = 0; result == 0 && i < records->attributes.count; i++) {
        const char *name = records->attributes.names[i];
        ssize_t length;

        write_mark(records, name, &is_missing);
        if (!attributes_is_copied(name)) {
            records->attributes_left_out++;
            continue;
        }
        length = attributes_read(&records->attributes, step->folder, step->at, name);
        if (length < 0)
            return (int) length;
        write_attribute(records, name, records->attributes.value, (size_t) length);
    }
    if (result == 0)
        write_mark(records, NULL, &is_missing);
    layer_write_number(records->writer, 1, 0);
    return result;
}

static bool is_zero(const uint8_t *bytes, size_t length)
{
    return bytes[0] == 0 && memcmp(bytes, bytes + 1, length - 1) == 0;
}

/* Where the run of blocks ends that begins at `at` and is like its first: zero, or not. */
static size_t run_end(const uint8_t *bytes, size_t at, size_t length, bool *ret_is_zero)
{
    bool first = true;

    while (at < length) {
        size_t block = length - at < LAYER_BLOCK ? length - at : LAYER_BLOCK;
        bool zero = is_zero(bytes + at, block);

        if (!first && zero != *ret_is_zero)
            return at;
        *ret_is_zero = zero;
        first = false;
        at += block;
    }
    return at;
}

static void write_window(struct layer_records *records, uint64_t offset, size_t length)
{
    for (size_t at = 0; at < length;) {
        bool zero = false;
        size_t end = run_end(records->buffer, at, length, &zero);

        if (!zero) {
            layer_write_number(records->writer, 4, end - at);
            layer_write_number(records->writer, 8, offset + at);
            layer_write_bytes(records->writer, records->buffer + at, end - at);
        }
        at = end;
    }
}

/* The window in which the next content lies, from `at` on; `size` when there is none. */
static int64_t next_window(int fd, int64_t at, int64_t size)
{
    int64_t data;

    if (size <= (int64_t) LAYER_WINDOW)
        return at; /* reading it takes no longer than asking */
    data = lseek(fd, at, SEEK_DATA);
    if (data < 0)
        return errno == ENXIO ? size : errno == EINVAL ? at : -errno;
    return data - data % (int64_t) LAYER_WINDOW;
}

static int write_content(struct layer_records *records, int fd, int64_t size)
{
    int64_t at = 0;

    while (at < size && !layer_writer_error(records->writer)) {
        size_t length;
        ssize_t got;

        at = next_window(fd, at, size);
        if (at < 0)
            return (int) at;
        if (at >= size)
            break;
        length = size - at < (int64_t) LAYER_WINDOW ? (size_t) (size - at) : LAYER_WINDOW;
        got = sys_file_pread_full(fd, records->buffer, length, at);
        if (got < 0)
            return (int) got;
        if (got != (ssize_t) length)
            return -EIO; /* it became shorter: somebody writes to it */
        write_window(records, (uint64_t) at, length);
        at += (int64_t) length;
    }
    layer_write_number(records->writer, 4, 0);
    return 0;
}

static int write_file(struct layer_records *records, const struct tree_step *step)
{
    AUTO(close)
    int fd = sys_file_open(step->folder, step->at, O_RDONLY | O_NOFOLLOW | O_NONBLOCK, 0);
    struct stat status;

    if (fd < 0)
        return fd;
    if (fstat(fd, &status) < 0)
        return -errno;
    if (!S_ISREG(status.st_mode) || status.st_ino != step->status.st_ino)
        return -ESTALE;
    records->files++;
    layer_write_number(records->writer, 8, (uint64_t) status.st_size);
    return write_content(records, fd, status.st_size);
}

static int write_target(struct layer_records *records, const struct tree_step *step)
{
    char target[LAYER_TARGET_MAX + 1];
    ssize_t length = readlinkat(step->folder, step->at, target, sizeof(target));

    if (length < 0)
        return -errno;
    if (length == (ssize_t) sizeof(target))
        return -ENAMETOOLONG;
    layer_write_number(records->writer, 2, (uint64_t) length);
    layer_write_bytes(records->writer, target, (size_t) length);
    return 0;
}

static const struct {
    mode_t format;
    enum layer_kind kind;
    bool has_linked;
    int (*write)(struct layer_records *records, const struct tree_step *step); /* may be NULL */
} kinds[] = {
    {S_IFREG, LAYER_FILE, true, write_file},
    {S_IFLNK, LAYER_LINK, true, write_target},
    {S_IFIFO, LAYER_FIFO, true, NULL},
    {S_IFCHR, LAYER_WHITEOUT, false, NULL},
};

/* --- records -------------------------------------------------------------------------------- */

/* Tell the folders on the way to `path` that were not told yet, itself included. */
static void tell_folders(struct layer_records *records, const char *path, size_t length)
{
    if (records->told == 0) {
        layer_write_record(records->writer, LAYER_ENTER, "");
        records->told = 1;
        records->told_length = 0;
        records->entries++;
    }
    while (records->told_length < length) {
        size_t start = records->told_length + (records->told_length > 0);
        const char *slash = memchr(path + start, '/', length - start);
        size_t end = slash ? (size_t) (slash - path) : length;
        char name[NAME_MAX + 1] = "";

        memcpy(name, path + start, end - start);
        layer_write_record(records->writer, LAYER_ENTER, name);
        records->told++;
        records->told_length = end;
        records->entries++;
    }
}

/* The length of the path of the folder that an entry lies in. */
static size_t length_above(const struct tree_step *step)
{
    size_t name = strlen(step->name);

    return step->path_length - name - (step->path_length > name);
}

static void begin_record(struct layer_records *records, const struct tree_step *step,
                         enum layer_kind kind)
{
    tell_folders(records, step->path, length_above(step));
    layer_write_record(records->writer, kind, step->name);
    records->entries++;
}

int layer_records_leave(struct layer_records *records, const struct tree_step *step)
{
    layer_write_record(records->writer, LAYER_LEAVE, NULL);
    layer_write_status(records->writer, &step->status);
    records->told--;
    records->told_length = step->depth > 0 ? length_above(step) : 0;
    return write_attributes(records, step);
}

int layer_records_add(struct layer_records *records, const struct tree_step *step,
                      struct linked_file *file)
{
    size_t kind = 0;
    int result = 0;

    if (file && file->number) {
        begin_record(records, step, LAYER_HARD_LINK);
        layer_write_number(records->writer, 8, file->number);
        return 0;
    }
    while ((step->status.st_mode & S_IFMT) != kinds[kind].format)
        kind++;
    begin_record(records, step, kinds[kind].kind);
    layer_write_status(records->writer, &step->status);
    if (kinds[kind].has_linked)
        layer_write_number(records->writer, 1, file != NULL);
    if (file)
        file->number = ++records->linked;
    if (kinds[kind].write)
        result = kinds[kind].write(records, step);
    return result < 0 ? result : write_attributes(records, step);
}

int layer_records_change(struct layer_records *records, const struct tree_step *step)
{
    begin_record(records, step, LAYER_CHANGED);
    layer_write_status(records->writer, &step->status);
    return write_attributes(records, step);
}

void layer_records_remove(struct layer_records *records, const struct tree_step *step)
{
    begin_record(records, step, LAYER_REMOVED);
    records->removed++;
}

bool layer_records_has(const struct layer_records *records, const struct tree_step *step)
{
    return records->told > step->depth;
}

void layer_records_enter(struct layer_records *records, const struct tree_step *step)
{
    tell_folders(records, step->path, step->path_length);
}
