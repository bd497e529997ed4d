/* Any bytes are no message, or one whose parts all lie inside of them. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "mount/mount_message.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(bool holds)
{
    if (!holds)
        abort();
}

static void check_inside(const uint8_t *data, size_t size, const void *part, size_t length)
{
    const uint8_t *at = part;

    must(at >= data && at <= data + size && length <= (size_t) (data + size - at));
}

static void check_name(const uint8_t *data, size_t size, const char *name, size_t limit)
{
    if (!name)
        return;
    check_inside(data, size, name, 1);
    check_inside(data, size, name, strnlen(name, (size_t) ((const char *) data + size - name)) + 1);
    must(*name && strlen(name) <= limit);
}

static void check_message(const uint8_t *data, size_t size, const struct mount_message *message)
{
    struct fuse_init_out out;

    check_name(data, size, message->name, MOUNT_NAME_MAX);
    check_name(data, size, message->second, MOUNT_TARGET_MAX);
    if (message->data)
        check_inside(data, size, message->data, message->data_length);
    else
        must(message->data_length == 0);
    if (message->opcode == FUSE_WRITE)
        must(message->data_length == message->in.write.size);
    if (message->opcode == FUSE_BATCH_FORGET) {
        size_t count = message->in.batch_forget.count;

        must(message->data_length == count * sizeof(struct fuse_forget_one));
        must(mount_message_forget(message, count).nodeid == 0);
        for (size_t i = 0; i < count; i++)
            (void) mount_message_forget(message, i);
    }
    if (message->opcode == FUSE_INIT && mount_message_init(&message->in.init, &out)) {
        must(out.major == 7 && out.flags & FUSE_INIT_EXT);
        must(!(out.flags & ~message->in.init.flags) && !(out.flags2 & ~message->in.init.flags2));
    }
    must(strcmp(mount_message_name(message->opcode), "unknown") != 0);
}

/* Names of any length into a buffer of any size. */
static void check_entries(const uint8_t *data, size_t size)
{
    struct mount_entries entries = {.limit = data[0]};
    char *name = malloc(size);

    must(name != NULL);
    memcpy(name, data + 1, size - 1);
    name[size - 1] = '\0';
    entries.bytes = malloc(entries.limit + 1);
    must(entries.bytes != NULL);
    for (uint64_t i = 0; i < 4 && mount_entries_add(&entries, i, i + 1, 0, name); i++)
        must(entries.length <= entries.limit && entries.length % 8 == 0);
    free(entries.bytes);
    free(name);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct mount_message message;
    int r = mount_message_read(data, size, &message);

    must(r == 0 || r == -EINVAL || r == -ENOSYS || r == -ENAMETOOLONG);
    if (r == 0)
        check_message(data, size, &message);
    if (r == -ENAMETOOLONG)
        must(size >= MOUNT_NAME_MAX);
    if (size)
        check_entries(data, size);
    return 0;
}
