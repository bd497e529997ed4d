#include "mount/mount_message.h"

#include <errno.h>
#include <string.h>

#include "base/auto.h"

#define MAX_BACKGROUND 64
#define CONGESTION     48
/* The oldest protocol with everything we answer; kernels that map ids are far beyond. */
#define MINOR_MIN 31

enum tail { NO_TAIL, WRITE_DATA, FORGET_LIST };

struct mount_message_row {
    const char *name;
    uint16_t least; /* bytes of the fixed part that must be there */
    uint16_t size;  /* bytes of it that we know */
    uint8_t names;
    enum tail tail;
};

#define FIXED(type) sizeof(struct type), sizeof(struct type)

static const struct mount_message_row rows[] = {
    [FUSE_LOOKUP] = {"lookup", 0, 0, 1, NO_TAIL},
    [FUSE_FORGET] = {"forget", FIXED(fuse_forget_in), 0, NO_TAIL},
    [FUSE_GETATTR] = {"getattr", FIXED(fuse_getattr_in), 0, NO_TAIL},
    [FUSE_SETATTR] = {"setattr", FIXED(fuse_setattr_in), 0, NO_TAIL},
    [FUSE_READLINK] = {"readlink", 0, 0, 0, NO_TAIL},
    [FUSE_SYMLINK] = {"symlink", 0, 0, 2, NO_TAIL},
    [FUSE_MKNOD] = {"mknod", FIXED(fuse_mknod_in), 1, NO_TAIL},
    [FUSE_MKDIR] = {"mkdir", FIXED(fuse_mkdir_in), 1, NO_TAIL},
    [FUSE_UNLINK] = {"unlink", 0, 0, 1, NO_TAIL},
    [FUSE_RMDIR] = {"rmdir", 0, 0, 1, NO_TAIL},
    [FUSE_RENAME] = {"rename", FIXED(fuse_rename_in), 2, NO_TAIL},
    [FUSE_OPEN] = {"open", FIXED(fuse_open_in), 0, NO_TAIL},
    [FUSE_READ] = {"read", FIXED(fuse_read_in), 0, NO_TAIL},
    [FUSE_WRITE] = {"write", FIXED(fuse_write_in), 0, WRITE_DATA},
    [FUSE_STATFS] = {"statfs", 0, 0, 0, NO_TAIL},
    [FUSE_RELEASE] = {"release", FIXED(fuse_release_in), 0, NO_TAIL},
    [FUSE_FSYNC] = {"fsync", FIXED(fuse_fsync_in), 0, NO_TAIL},
    [FUSE_FLUSH] = {"flush", FIXED(fuse_flush_in), 0, NO_TAIL},
    /* It was shorter once, and has grown since. */
    [FUSE_INIT] = {"init", 16, sizeof(struct fuse_init_in), 0, NO_TAIL},
    [FUSE_OPENDIR] = {"opendir", FIXED(fuse_open_in), 0, NO_TAIL},
    [FUSE_READDIR] = {"readdir", FIXED(fuse_read_in), 0, NO_TAIL},
    [FUSE_RELEASEDIR] = {"releasedir", FIXED(fuse_release_in), 0, NO_TAIL},
    [FUSE_FSYNCDIR] = {"fsyncdir", FIXED(fuse_fsync_in), 0, NO_TAIL},
    [FUSE_CREATE] = {"create", FIXED(fuse_create_in), 1, NO_TAIL},
    [FUSE_INTERRUPT] = {"interrupt", FIXED(fuse_interrupt_in), 0, NO_TAIL},
    [FUSE_DESTROY] = {"destroy", 0, 0, 0, NO_TAIL},
    [FUSE_BATCH_FORGET] = {"batch_forget", FIXED(fuse_batch_forget_in), 0, FORGET_LIST},
    [FUSE_RENAME2] = {"rename2", FIXED(fuse_rename2_in), 2, NO_TAIL},
};

static const struct mount_message_row *row_of(uint32_t opcode)
{
    return opcode < ARRAY_COUNT(rows) && rows[opcode].name ? &rows[opcode] : NULL;
}

const char *mount_message_name(uint32_t opcode)
{
    const struct mount_message_row *row = row_of(opcode);

    return row ? row->name : "unknown";
}

/* What is left of the message. */
struct rest {
    const char *at;
    size_t length;
};

static int mount_message_read_name(struct rest *rest, size_t limit, const char **ret_name)
{
    size_t length = strnlen(rest->at, rest->length);

    if (length == rest->length || length == 0)
        return -EINVAL;
    *ret_name = rest->at;
    rest->at += length + 1;
    rest->length -= length + 1;
    return length > limit ? -ENAMETOOLONG : 0;
}

static int read_names(const struct mount_message_row *row, struct rest *rest,
                      struct mount_message *message)
{
    size_t second = message->opcode == FUSE_SYMLINK ? MOUNT_TARGET_MAX : MOUNT_NAME_MAX;
    int first_result = 0, second_result = 0;

    if (row->names > 0)
        first_result = mount_message_read_name(rest, MOUNT_NAME_MAX, &message->name);
    if (row->names > 1 && first_result != -EINVAL)
        second_result = mount_message_read_name(rest, second, &message->second);
    return first_result < 0 ? first_result : second_result;
}

static int read_tail(const struct mount_message_row *row, const struct rest *rest,
                     struct mount_message *message)
{
    uint64_t wanted = 0;

    if (row->tail == WRITE_DATA)
        wanted = message->in.write.size;
    else if (row->tail == FORGET_LIST)
        wanted = (uint64_t) message->in.batch_forget.count * sizeof(struct fuse_forget_one);
    if (wanted > rest->length)
        return -EINVAL;
    message->data = wanted ? rest->at : NULL;
    message->data_length = (size_t) wanted;
    return 0;
}

int mount_message_read(const void *bytes, size_t length, struct mount_message *ret_message)
{
    struct fuse_in_header head;
    const struct mount_message_row *row;
    struct rest rest;
    size_t known;
    int r;

    *ret_message = (struct mount_message){.opcode = 0};
    if (length < sizeof(head))
        return -EINVAL;
    memcpy(&head, bytes, sizeof(head));
    if (head.len != length)
        return -EINVAL;
    ret_message->opcode = head.opcode;
    ret_message->unique = head.unique;
    ret_message->node = head.nodeid;
    ret_message->uid = head.uid;
    ret_message->gid = head.gid;
    row = row_of(head.opcode);
    if (!row)
        return -ENOSYS;
    rest = (struct rest){(const char *) bytes + sizeof(head), length - sizeof(head)};
    if (rest.length < row->least)
        return -EINVAL;
    known = rest.length < row->size ? rest.length : row->size;
    memcpy(&ret_message->in, rest.at, known);
    rest.at += known;
    rest.length -= known;
    r = read_names(row, &rest, ret_message);
    return r < 0 ? r : read_tail(row, &rest, ret_message);
}

struct fuse_forget_one mount_message_forget(const struct mount_message *message, size_t index)
{
    struct fuse_forget_one one = {0};

    if (index < message->data_length / sizeof(one))
        memcpy(&one, (const char *) message->data + index * sizeof(one), sizeof(one));
    return one;
}

bool mount_message_init(const struct fuse_init_in *in, struct fuse_init_out *ret_out)
{
    const uint64_t wanted = FUSE_ASYNC_READ | FUSE_ATOMIC_O_TRUNC | FUSE_BIG_WRITES |
                            FUSE_PARALLEL_DIROPS | FUSE_ABORT_ERROR | FUSE_INIT_EXT;
    uint64_t offered = in->flags | (uint64_t) in->flags2 << 32;
    uint64_t taken = offered & wanted;

    if (in->major != FUSE_KERNEL_VERSION || in->minor < MINOR_MIN || !(offered & FUSE_INIT_EXT))
        return false;
    *ret_out = (struct fuse_init_out){
        .major = FUSE_KERNEL_VERSION,
        .minor = FUSE_KERNEL_MINOR_VERSION,
        .max_readahead = in->max_readahead,
        .flags = (uint32_t) taken,
        .flags2 = (uint32_t) (taken >> 32),
        .max_background = MAX_BACKGROUND,
        .congestion_threshold = CONGESTION,
        .max_write = MOUNT_TRANSFER,
        .time_gran = 1,
    };
    return true;
}

bool mount_entries_add(struct mount_entries *entries, uint64_t node, uint64_t next,
                       unsigned int type, const char *name)
{
    size_t length = strlen(name);
    struct fuse_dirent entry = {
        .ino = node, .off = next, .namelen = (uint32_t) length, .type = type};
    size_t size = FUSE_DIRENT_ALIGN(FUSE_NAME_OFFSET + length);
    char *at = entries->bytes + entries->length;

    if (size > entries->limit - entries->length)
        return false;
    memcpy(at, &entry, FUSE_NAME_OFFSET);
    memcpy(at + FUSE_NAME_OFFSET, name, length); /* NOLINT: names here have a length */
    memset(at + FUSE_NAME_OFFSET + length, 0, size - FUSE_NAME_OFFSET - length);
    entries->length += size;
    return true;
}
