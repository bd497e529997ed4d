#include "keeper/layer/layer_unpack.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "base/memory.h"
#include "keeper/layer/layer_reader.h"
#include "keeper/tree/attributes.h"
#include "keeper/tree/first_copies.h"
#include "keeper/tree/folder_descent.h"
#include "keeper/tree/folder_names.h"
#include "sys/file/sys_file.h"
#include "sys/file/sys_tree.h"

#define KEY_SIZE 24

/* How often it is looked whether there is room: in bytes, to which an entry adds some. */
#define LOOK_EVERY   ((uint64_t) 64 << 20)
#define ENTRY_WEIGHT ((uint64_t) 4096)

struct unpack {
    struct layer_reader *reader; /* owned */
    bool is_delta;
    uid_t uid; /* whom new files belong to */
    gid_t gid;
    int top;                     /* borrowed */
    struct folder_descent where; /* in it */
    struct first_copies firsts;
    struct attributes attributes;
    uint64_t files, entries, removed;
    const struct image_limits *limits; /* borrowed; NULL: none but the disk's */
    uint64_t bytes, look;
};

static int fail(const struct unpack *unpack, int system, struct error *err)
{
    return layer_reader_error(unpack->reader, error_code_from_errno(system), system, "unpack", err);
}

/* The layer was made against something else than what is there. */
static int misfit(const struct unpack *unpack, const char *why, struct error *err)
{
    return layer_reader_error(unpack->reader, ERR_INVALID, 0, why, err);
}

/* More is about to come: another entry, or bytes of a file. */
static int check_limits(struct unpack *unpack, uint64_t bytes, struct error *err)
{
    const struct image_limits *limits = unpack->limits;
    uint64_t weight;

    if (!limits)
        return 0;
    unpack->bytes += bytes;
    if (unpack->bytes > limits->bytes || unpack->entries > limits->entries)
        return layer_reader_error(unpack->reader, ERR_TOO_LARGE, 0, "the layer is too large, at",
                                  err);
    weight = unpack->bytes + unpack->entries * ENTRY_WEIGHT;
    if (weight < unpack->look)
        return 0;
    unpack->look = weight + LOOK_EVERY;
    if (!sys_file_has_room(unpack->top, limits->free))
        return layer_reader_error(unpack->reader, ERR_NO_SPACE, ENOSPC,
                                  "the disk would become too full, at", err);
    return 0;
}

/* --- status --------------------------------------------------------------------------------- */

static int write_attributes(struct unpack *unpack, int folder, const char *at, bool is_new,
                            struct error *err)
{
    struct layer_attribute attribute;
    int result;

    /* A folder that was there before may have given some to what is made in it. */
    if (unpack->is_delta || !is_new) {
        result = attributes_clear(&unpack->attributes, folder, at);
        if (result < 0)
            return fail(unpack, result, err);
    }
    while ((result = layer_reader_attribute(unpack->reader, &attribute, err)) == 1) {
        if (!attributes_is_copied(attribute.name))
            return misfit(unpack, "not a layer: an attribute that none may set, at", err);
        result = attributes_write(folder, at, attribute.name, attribute.value, attribute.length);
        if (result < 0)
            return fail(unpack, result, err);
    }
    return result;
}

/* New files have the right mode and often the right owner already. */
static bool is_ours(const struct unpack *unpack, const struct layer_status *status)
{
    return !unpack->is_delta && status->uid == unpack->uid && status->gid == unpack->gid;
}

static int set_time(int folder, const char *name, const struct layer_status *status)
{
    struct timespec times[] = {{.tv_nsec = UTIME_OMIT},
                               {status->seconds, (long) status->nanoseconds}};

    return utimensat(folder, name, times, AT_SYMLINK_NOFOLLOW) < 0 ? -errno : 0;
}

/* Owner first, which takes set-id bits away; then access lists, which the mode is a part of; times
 * last, since everything else changes them. `is_new`: it was made with this mode. */
static int finish_open(struct unpack *unpack, int fd, int folder, const char *at,
                       const struct layer_status *status, bool is_new, struct error *err)
{
    bool keeps = is_new && is_ours(unpack, status);
    struct timespec times[] = {{.tv_nsec = UTIME_OMIT},
                               {status->seconds, (long) status->nanoseconds}};

    if (!keeps && fchown(fd, status->uid, status->gid) < 0)
        return fail(unpack, -errno, err);
    if (write_attributes(unpack, folder, at, is_new, err) < 0)
        return -1;
    if (!keeps && fchmod(fd, status->mode) < 0)
        return fail(unpack, -errno, err);
    return futimens(fd, times) < 0 ? fail(unpack, -errno, err) : 0;
}

/* What has no descriptor to change it by: its mode is the one it was made with. */
static int finish_by_name(struct unpack *unpack, const struct layer_record *record,
                          struct error *err)
{
    const struct layer_status *status = &record->status;
    int result;

    if (!is_ours(unpack, status) && fchownat(unpack->where.folder, record->name, status->uid,
                                             status->gid, AT_SYMLINK_NOFOLLOW) < 0)
        return fail(unpack, -errno, err);
    if (write_attributes(unpack, unpack->where.folder, record->name, true, err) < 0)
        return -1;
    result = set_time(unpack->where.folder, record->name, status);
    return result < 0 ? fail(unpack, result, err) : 0;
}

/* --- folders -------------------------------------------------------------------------------- */

/* Make room for a name. */
static int clear_name(struct unpack *unpack, const char *name)
{
    return unpack->is_delta ? sys_tree_delete(unpack->where.folder, name) : 0;
}

static int make_folder(struct unpack *unpack, const char *name)
{
    struct stat status;
    int result;

    if (unpack->is_delta &&
        fstatat(unpack->where.folder, name, &status, AT_SYMLINK_NOFOLLOW) == 0 &&
        S_ISDIR(status.st_mode))
        return 0;
    result = clear_name(unpack, name);
    if (result < 0)
        return result;
    return mkdirat(unpack->where.folder, name, 0700) < 0 ? -errno : 0;
}

static int enter_folder(struct unpack *unpack, const struct layer_record *record)
{
    int result;

    if (record->depth == 0)
        return folder_descent_begin(&unpack->where, unpack->top);
    result = make_folder(unpack, record->name);
    return result < 0 ? result : folder_descent_enter(&unpack->where, record->name);
}

static int unpack_enter(struct unpack *unpack, const struct layer_record *record, struct error *err)
{
    int result = enter_folder(unpack, record);

    return result < 0 ? fail(unpack, result, err) : 0;
}

static int unpack_leave(struct unpack *unpack, const struct layer_record *record, struct error *err)
{
    AUTO(close) int above = -EBADF;
    int result = 0;

    if (record->depth == 0)
        result = first_copies_close(&unpack->firsts); /* it lies in the top and changes its time */
    else
        result = above = folder_descent_open_above(&unpack->where);
    if (result < 0)
        return fail(unpack, result, err);
    if (finish_open(unpack, unpack->where.folder, unpack->where.folder, ".", &record->status, false,
                    err) < 0)
        return -1;
    if (record->depth > 0)
        folder_descent_leave(&unpack->where, TAKE_FD(above));
    return 0;
}

/* --- several names of one file -------------------------------------------------------------- */

static void make_key(uint64_t number, char ret_key[static KEY_SIZE])
{
    (void) snprintf(ret_key, KEY_SIZE, "%" PRIx64, number);
}

static int keep_first(struct unpack *unpack, const struct layer_record *record, struct error *err)
{
    char key[KEY_SIZE];
    int result;

    if (!record->linked)
        return 0;
    make_key(record->number, key);
    result = first_copies_open(&unpack->firsts);
    if (result == 0 &&
        linkat(unpack->where.folder, record->name, unpack->firsts.folder, key, 0) < 0)
        result = -errno;
    return result < 0 ? fail(unpack, result, err) : 0;
}

static int unpack_hard_link(struct unpack *unpack, const struct layer_record *record,
                            struct error *err)
{
    char key[KEY_SIZE];
    int result = clear_name(unpack, record->name);

    if (result < 0)
        return fail(unpack, result, err);
    make_key(record->number, key);
    if (linkat(unpack->firsts.folder, key, unpack->where.folder, record->name, 0) == 0)
        return 0;
    /* As many names as there may be, with the one that we hold: then this is the last of them. */
    if (errno == EMLINK &&
        renameat(unpack->firsts.folder, key, unpack->where.folder, record->name) == 0)
        return 0;
    return fail(unpack, -errno, err);
}

/* --- everything else ------------------------------------------------------------------------ */

static int write_pieces(struct unpack *unpack, int fd, uint64_t size, struct error *err)
{
    struct layer_piece piece;
    uint64_t end = 0;
    int result;

    while ((result = layer_reader_piece(unpack->reader, &piece, err)) == 1) {
        if (check_limits(unpack, piece.length, err) < 0)
            return -1;
        result = sys_file_pwrite_full(fd, piece.bytes, piece.length, (off_t) piece.offset);
        if (result < 0)
            return fail(unpack, result, err);
        end = piece.offset + piece.length;
    }
    if (result == 0 && end < size && ftruncate(fd, (off_t) size) < 0)
        return fail(unpack, -errno, err);
    return result;
}

static int unpack_file(struct unpack *unpack, const struct layer_record *record, struct error *err)
{
    AUTO(close) int fd = clear_name(unpack, record->name);

    if (fd == 0)
        fd = sys_file_open(unpack->where.folder, record->name,
                           O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, record->status.mode);
    if (fd < 0)
        return fail(unpack, fd, err);
    unpack->files++;
    if (write_pieces(unpack, fd, record->size, err) < 0 ||
        finish_open(unpack, fd, unpack->where.folder, record->name, &record->status, true, err) < 0)
        return -1;
    return keep_first(unpack, record, err);
}

static int unpack_link(struct unpack *unpack, const struct layer_record *record, struct error *err)
{
    int result = clear_name(unpack, record->name);

    if (result == 0 && symlinkat(record->target, unpack->where.folder, record->name) < 0)
        result = -errno;
    if (result < 0)
        return fail(unpack, result, err);
    if (finish_by_name(unpack, record, err) < 0)
        return -1;
    return keep_first(unpack, record, err);
}

static int unpack_fifo(struct unpack *unpack, const struct layer_record *record, struct error *err)
{
    AUTO(close) int fd = -EBADF;
    int result = clear_name(unpack, record->name);

    if (result == 0 && mknodat(unpack->where.folder, record->name, S_IFIFO | 0600, 0) < 0)
        result = -errno;
    if (result == 0)
        result = fd = sys_file_open(unpack->where.folder, record->name,
                                    O_RDONLY | O_NOFOLLOW | O_NONBLOCK, 0);
    if (result < 0)
        return fail(unpack, result, err);
    if (finish_open(unpack, fd, unpack->where.folder, record->name, &record->status, false, err) <
        0)
        return -1;
    return keep_first(unpack, record, err);
}

/* Overlay's mark for a deleted name; making one needs no privilege. */
static int unpack_whiteout(struct unpack *unpack, const struct layer_record *record,
                           struct error *err)
{
    int result = clear_name(unpack, record->name);

    if (result == 0 && mknodat(unpack->where.folder, record->name, S_IFCHR | record->status.mode,
                               makedev(0, 0)) < 0)
        result = -errno;
    if (result < 0)
        return fail(unpack, result, err);
    return finish_by_name(unpack, record, err);
}

static int unpack_removed(struct unpack *unpack, const struct layer_record *record,
                          struct error *err)
{
    int result;

    if (faccessat(unpack->where.folder, record->name, F_OK, AT_SYMLINK_NOFOLLOW) < 0)
        return misfit(unpack, "the layer does not fit: it removes what is not there:", err);
    unpack->removed++;
    result = sys_tree_delete(unpack->where.folder, record->name);
    return result < 0 ? fail(unpack, result, err) : 0;
}

static int unpack_changed(struct unpack *unpack, const struct layer_record *record,
                          struct error *err)
{
    AUTO(close)
    int fd =
        sys_file_open(unpack->where.folder, record->name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK, 0);
    struct stat status;

    if (fd < 0 || fstat(fd, &status) < 0 || !S_ISREG(status.st_mode))
        return misfit(unpack, "the layer does not fit: it changes what is no file:", err);
    return finish_open(unpack, fd, unpack->where.folder, record->name, &record->status, false, err);
}

static const struct {
    enum layer_kind kind;
    int (*unpack)(struct unpack *unpack, const struct layer_record *record, struct error *err);
} kinds[] = {
    {LAYER_ENTER, unpack_enter},         {LAYER_LEAVE, unpack_leave},
    {LAYER_FILE, unpack_file},           {LAYER_LINK, unpack_link},
    {LAYER_FIFO, unpack_fifo},           {LAYER_WHITEOUT, unpack_whiteout},
    {LAYER_HARD_LINK, unpack_hard_link}, {LAYER_REMOVED, unpack_removed},
    {LAYER_CHANGED, unpack_changed},
};

/* --- the whole ------------------------------------------------------------------------------ */

static int check_target(const struct unpack *unpack, struct error *err)
{
    AUTO(folder_names) struct folder_names names = FOLDER_NAMES_INIT;
    int result;

    if (unpack->is_delta)
        return 0;
    result = folder_names_read(&names, unpack->top, "", FOLDER_NAMES_MIN);
    if (result < 0)
        return error_set(err, error_code_from_errno(result), result, "read the target");
    if (names.count > 0)
        return error_set(err, ERR_CONFLICT, 0, "the target is not empty");
    return 0;
}

static int unpack_records(struct unpack *unpack, struct error *err)
{
    struct layer_record record;

    for (;;) {
        size_t kind = 0;

        if (layer_reader_next(unpack->reader, &record, err) < 0)
            return -1;
        if (record.kind == LAYER_END)
            return 0;
        while (kinds[kind].kind != record.kind)
            kind++;
        if (kinds[kind].unpack(unpack, &record, err) < 0)
            return -1;
        unpack->entries += record.kind != LAYER_LEAVE;
        if (check_limits(unpack, 0, err) < 0)
            return -1;
    }
}

static void report(const struct unpack *unpack, struct output *output)
{
    struct layer_sums sums;
    struct json_writer json;

    layer_reader_sums(unpack->reader, &sums);
    output_begin(output, &json);
    json_key(&json, "layer");
    json_begin_object(&json);
    layer_sums_tell(&sums, &json);
    output_add_count(&json, "files", unpack->files);
    output_add_count(&json, "entries", unpack->entries);
    output_add_count(&json, "removed", unpack->removed);
    json_end_object(&json);
    output_end(output, &json);
}

static int unpack_one(struct unpack *unpack, struct error *err)
{
    int result = 0;

    unpack->where = (struct folder_descent) FOLDER_DESCENT_INIT;
    unpack->firsts = (struct first_copies) FIRST_COPIES_INIT(unpack->top);
    unpack->files = unpack->entries = unpack->removed = 0;
    if (layer_reader_begin(unpack->reader, &unpack->is_delta, err) < 0 ||
        check_target(unpack, err) < 0 || unpack_records(unpack, err) < 0)
        result = -1;
    (void) first_copies_close(&unpack->firsts); /* after a failure, which is the one to tell */
    folder_descent_done(&unpack->where);
    return result;
}

static int unpack_all(struct unpack *unpack, struct output *output, struct error *err)
{
    int more;

    while (unpack_one(unpack, err) == 0) {
        more = layer_reader_again(unpack->reader, err);
        if (more < 0)
            return -1;
        if (more && unpack->limits)
            return error_set(err, ERR_INVALID, 0, "something follows the end of the layer");
        /* A filesystem may say only now that there is no room, or that the disk failed. */
        if (!more && syncfs(unpack->top) < 0)
            return error_set(err, error_code_from_errno(errno), errno, "write the target");
        report(unpack, output);
        if (!more)
            return 0;
    }
    return -1;
}

int layer_unpack(int target, int input, struct output *output, struct error *err)
{
    return layer_unpack_within(target, input, NULL, output, err);
}

int layer_unpack_within(int target, int input, const struct image_limits *limits,
                        struct output *output, struct error *err)
{
    struct unpack unpack = {
        .top = target,
        .uid = geteuid(),
        .gid = getegid(),
        .limits = limits,
    };
    int result;

    (void) umask(0);
    unpack.reader = layer_reader_new(input);
    attributes_init(&unpack.attributes);
    result = unpack_all(&unpack, output, err);
    layer_reader_free(unpack.reader);
    attributes_done(&unpack.attributes);
    return result;
}
