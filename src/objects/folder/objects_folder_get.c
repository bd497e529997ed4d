/* Getting: an open file does not change, whatever happens to its name. */
#include <errno.h>
#include <string.h>

#include "base/auto.h"
#include "base/encoding/sha256.h"
#include "base/memory.h"
#include "objects/folder/objects_folder_internal.h"
#include "objects/objects_transfer.h"

int folder_look(struct folder *folder, struct objects_work *work, const char *key, int *ret_file,
                struct stat *ret_status, struct folder_label *ret_label, struct error *err)
{
    AUTO(close) int file = folder_open_key(folder, key);
    int r = file;

    if (file == -ENOENT)
        return error_set(err, ERR_NOT_FOUND, 0, "there is no object '%.200s'", key);
    if (r >= 0)
        r = fstat(file, ret_status) < 0 ? -errno : 0;
    if (r == 0)
        r = folder_label_read(file, ret_status, work->pool, ret_label);
    if (r != 0) {
        (void) folder_failure(folder, "look at", key, r, err);
        return -1;
    }
    *ret_file = TAKE_FD(file);
    return 0;
}

/* Which bytes are meant: `range` made to fit. */
static int fit(const struct object_range *range, uint64_t size, struct object_range *ret_range,
               struct error *err)
{
    *ret_range = (struct object_range){.offset = 0, .length = size};
    if (!range)
        return 0;
    if (range->offset >= size)
        return error_set(err, ERR_RANGE, 0, "the range begins behind the end, %llu bytes",
                         (unsigned long long) size);
    ret_range->offset = range->offset;
    ret_range->length = size - range->offset;
    if (range->length && range->length < ret_range->length)
        ret_range->length = range->length;
    return 0;
}

struct delivery {
    const struct folder *folder;
    const struct objects_work *work;
    const char *key;
    int file;
    struct object_range range;
    struct objects_sink *sink;
    struct sha256 *hash; /* borrowed; NULL: no sum is wanted */
    char *buffer;        /* all of it, or a block */
};

static int deliver_block(const struct delivery *delivery, uint64_t done, char *buffer, size_t size,
                         struct error *err)
{
    off_t from = (off_t) (delivery->range.offset + done);
    ssize_t count;

    if (objects_work_go_on(delivery->work, err) < 0)
        return -1;
    count = sys_file_pread_full(delivery->file, buffer, size, from);
    if (count >= 0 && (size_t) count < size)
        count = -EBADMSG; /* shorter than it was: no doing of ours */
    if (count < 0)
        return folder_failure(delivery->folder, "read", delivery->key, (int) count, err);
    if (delivery->hash)
        sha256_add(delivery->hash, buffer, size);
    if (delivery->sink->fd < 0)
        return 0;
    return objects_sink_write(delivery->work, delivery->sink, buffer, size, done, err);
}

static int deliver(const struct delivery *delivery, struct error *err)
{
    bool in_memory = delivery->sink->fd < 0;
    uint64_t done = 0;

    while (done < delivery->range.length) {
        uint64_t left = delivery->range.length - done;
        size_t size = left < OBJECTS_BLOCK ? (size_t) left : OBJECTS_BLOCK;

        if (deliver_block(delivery, done, delivery->buffer + (in_memory ? done : 0), size, err) < 0)
            return -1;
        done += size;
    }
    return 0;
}

static int check_sum(const struct delivery *delivery, const struct folder_label *label,
                     struct error *err)
{
    uint8_t sum[OBJECTS_SUM_SIZE];

    if (!delivery->hash)
        return 0;
    sha256_finish(delivery->hash, sum);
    if (label->has_sum && memcmp(sum, label->sum, sizeof(sum)) != 0)
        return error_set(err, ERR_UPSTREAM, 0,
                         "'%.100s' in %.120s is damaged: it is not what was put", delivery->key,
                         delivery->folder->text);
    if (delivery->sink->sum && memcmp(sum, delivery->sink->sum, sizeof(sum)) != 0)
        return error_set(err, ERR_UPSTREAM, 0, "'%.100s' is not what was expected there",
                         delivery->key);
    return 0;
}

/* Into memory of the pool, all at once; or block by block. */
static int get_room(struct delivery *delivery, struct pool *pool, struct error *err)
{
    uint64_t length = delivery->range.length;

    if (delivery->sink->fd >= 0) {
        delivery->buffer = pool_alloc_raw(pool, OBJECTS_BLOCK);
        return 0;
    }
    if (length > OBJECTS_BYTES_MAX)
        return error_set(err, ERR_TOO_LARGE, 0, "'%.100s' is too large for memory: more than %zu",
                         delivery->key, OBJECTS_BYTES_MAX);
    delivery->buffer = pool_alloc_raw(pool, (size_t) length + 1);
    delivery->sink->bytes = delivery->buffer;
    delivery->sink->length = (size_t) length;
    return 0;
}

int folder_get(void *self, struct objects_work *work, const char *key,
               const struct object_range *range, const char *only_tag, struct objects_sink *sink,
               struct object_info *ret_info, struct error *err)
{
    struct folder *folder = self;
    AUTO(close) int file = -EBADF;
    struct sha256 hash;
    struct folder_label label;
    struct stat status;
    struct delivery delivery = {.folder = folder, .work = work, .key = key, .sink = sink};

    if (folder_look(folder, work, key, &file, &status, &label, err) < 0)
        return -1;
    if (only_tag && strcmp(only_tag, label.tag) != 0)
        return error_set(err, ERR_CONFLICT, 0, "'%.100s' is not the one with the tag %s", key,
                         only_tag);
    if (fit(range, (uint64_t) status.st_size, &delivery.range, err) < 0)
        return -1;
    if (delivery.range.length == (uint64_t) status.st_size && (label.has_sum || sink->sum))
        delivery.hash = &hash;
    sha256_init(&hash);
    delivery.file = file;
    if (get_room(&delivery, work->pool, err) < 0 || deliver(&delivery, err) < 0 ||
        check_sum(&delivery, &label, err) < 0)
        return -1;
    folder_label_info(&label, &status, ret_info);
    return 0;
}
