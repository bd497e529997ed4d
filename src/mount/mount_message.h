/* The kernel's side of a mount: requests as they come out of /dev/fuse, and the parts of answers.
 *
 * The layouts are the kernel's (<linux/fuse.h>, protocol 7.38 and what newer kernels add at the
 * ends of messages). Reading takes any bytes and gives an error or a message whose lengths hold:
 * fixed parts are copied and zero where the kernel sent less, names end inside the message, data is
 * as long as it says. Pure, thread-safe. */
#pragma once

#include <linux/fuse.h>
#include <stdbool.h>
#include <stddef.h>

#define MOUNT_NAME_MAX    255
#define MOUNT_TARGET_MAX  4095         /* of a symbolic link */
#define MOUNT_TRANSFER    (128 * 1024) /* bytes of one read or write: what kernels ask for at most */
#define MOUNT_MESSAGE_MAX (MOUNT_TRANSFER + 4096)

struct mount_message {
    uint32_t opcode;
    uint64_t unique;
    uint64_t node;
    uint32_t uid, gid; /* of who creates something; otherwise without meaning */
    union {
        struct fuse_init_in init;
        struct fuse_forget_in forget;
        struct fuse_batch_forget_in batch_forget;
        struct fuse_getattr_in getattr;
        struct fuse_setattr_in setattr;
        struct fuse_mknod_in mknod;
        struct fuse_mkdir_in mkdir;
        struct fuse_rename2_in rename; /* flags are 0 for the older form */
        struct fuse_open_in open;
        struct fuse_create_in create;
        struct fuse_read_in read;
        struct fuse_write_in write;
        struct fuse_release_in release;
        struct fuse_flush_in flush;
        struct fuse_fsync_in fsync;
        struct fuse_interrupt_in interrupt;
    } in;
    const char *name;   /* NULL where the request has none; borrowed from the bytes */
    const char *second; /* rename: the new name; symlink: its target */
    const void *data;   /* write: the bytes; batch_forget: struct fuse_forget_one */
    size_t data_length;
};

/* Returns 0; -ENOSYS: a request that we have no use for (the head is filled: answer it so);
 * -ENAMETOOLONG: the same for a name; -EINVAL: not a message at all. */
int mount_message_read(const void *bytes, size_t length, struct mount_message *ret_message);

/* "lookup"; "unknown". For people. */
const char *mount_message_name(uint32_t opcode);

/* The `index`th node of a batch_forget. */
struct fuse_forget_one mount_message_forget(const struct mount_message *message, size_t index);

/* The answer to init: what we want of what the kernel offers. False: this kernel is too old to show
 * ids as the sandbox has them, or speaks another protocol. */
bool mount_message_init(const struct fuse_init_in *in, struct fuse_init_out *ret_out);

/* Entries of a folder, put one behind the other as the kernel wants them. */
struct mount_entries {
    char *bytes; /* the caller's */
    size_t limit, length;
};

/* False: it does not fit, ask again from here. `type` is DT_..., `next` the offset behind it. */
bool mount_entries_add(struct mount_entries *entries, uint64_t node, uint64_t next,
                       unsigned int type, const char *name);
