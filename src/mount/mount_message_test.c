#include <dirent.h>
#include <errno.h>

#include "mount/mount_message.h"
#include "net/net_testing.h"

/* A message as the kernel makes it: head, then the parts one behind the other. */
struct message {
    char bytes[1024];
    size_t length;
};

static struct message begin(uint32_t opcode)
{
    struct fuse_in_header head = {
        .opcode = opcode, .unique = 7, .nodeid = 3, .uid = 1000, .gid = 100};
    struct message message = {.length = sizeof(head)};

    memcpy(message.bytes, &head, sizeof(head));
    return message;
}

static void add(struct message *message, const void *bytes, size_t length)
{
    memcpy(message->bytes + message->length, bytes, length);
    message->length += length;
}

static int finish(struct message *message, struct mount_message *ret_message)
{
    uint32_t length = (uint32_t) message->length;

    memcpy(message->bytes, &length, sizeof(length));
    return mount_message_read(message->bytes, message->length, ret_message);
}

static void names_are_found(void **state)
{
    struct message lookup = begin(FUSE_LOOKUP), rename = begin(FUSE_RENAME2);
    struct fuse_rename2_in in = {.newdir = 9, .flags = 1};
    struct mount_message message;

    (void) state;
    add(&lookup, "name", 5);
    assert_int_equal(finish(&lookup, &message), 0);
    assert_int_equal(message.opcode, FUSE_LOOKUP);
    assert_int_equal(message.unique, 7);
    assert_int_equal(message.node, 3);
    assert_int_equal(message.uid, 1000);
    assert_string_equal(message.name, "name");
    assert_null(message.second);
    add(&rename, &in, sizeof(in));
    add(&rename, "old\0new", 8);
    assert_int_equal(finish(&rename, &message), 0);
    assert_string_equal(message.name, "old");
    assert_string_equal(message.second, "new");
    assert_int_equal(message.in.rename.newdir, 9);
    assert_int_equal(message.in.rename.flags, 1);
}

/* The older form has no flags; a name must not be taken for them. */
static void the_older_rename_has_no_flags(void **state)
{
    struct message rename = begin(FUSE_RENAME);
    struct fuse_rename_in in = {.newdir = 9};
    struct mount_message message;

    (void) state;
    add(&rename, &in, sizeof(in));
    add(&rename, "oldoldold\0new", 14);
    assert_int_equal(finish(&rename, &message), 0);
    assert_int_equal(message.in.rename.flags, 0);
    assert_string_equal(message.second, "new");
}

static void names_that_do_not_end_are_refused(void **state)
{
    struct message open_end = begin(FUSE_LOOKUP), empty = begin(FUSE_LOOKUP);
    struct message one = begin(FUSE_SYMLINK), none = begin(FUSE_UNLINK),
                   longer = begin(FUSE_LOOKUP);
    struct mount_message message;
    char name[MOUNT_NAME_MAX + 2];

    (void) state;
    add(&open_end, "name", 4);
    assert_int_equal(finish(&open_end, &message), -EINVAL);
    add(&empty, "", 1);
    assert_int_equal(finish(&empty, &message), -EINVAL);
    add(&one, "only", 5);
    assert_int_equal(finish(&one, &message), -EINVAL);
    assert_int_equal(finish(&none, &message), -EINVAL);
    memset(name, 'x', sizeof(name));
    name[MOUNT_NAME_MAX + 1] = '\0';
    add(&longer, name, sizeof(name));
    assert_int_equal(finish(&longer, &message), -ENAMETOOLONG);
    assert_int_equal(message.unique, 7); /* it can be answered */
}

static void data_is_as_long_as_it_says(void **state)
{
    struct fuse_write_in in = {.fh = 5, .offset = 100, .size = 3};
    struct message good = begin(FUSE_WRITE), bad;
    struct mount_message message;

    (void) state;
    add(&good, &in, sizeof(in));
    add(&good, "abc", 3);
    assert_int_equal(finish(&good, &message), 0);
    assert_int_equal(message.data_length, 3);
    assert_memory_equal(message.data, "abc", 3);
    in.size = 4;
    bad = begin(FUSE_WRITE);
    add(&bad, &in, sizeof(in));
    add(&bad, "abc", 3);
    assert_int_equal(finish(&bad, &message), -EINVAL);
    in.size = UINT32_MAX;
    bad = begin(FUSE_WRITE);
    add(&bad, &in, sizeof(in));
    assert_int_equal(finish(&bad, &message), -EINVAL);
}

static void lists_of_the_forgotten_are_counted(void **state)
{
    struct fuse_batch_forget_in in = {.count = 2};
    struct fuse_forget_one ones[] = {{.nodeid = 5, .nlookup = 1}, {.nodeid = 6, .nlookup = 2}};
    struct message good = begin(FUSE_BATCH_FORGET), bad = begin(FUSE_BATCH_FORGET);
    struct mount_message message;

    (void) state;
    add(&good, &in, sizeof(in));
    add(&good, ones, sizeof(ones));
    assert_int_equal(finish(&good, &message), 0);
    assert_int_equal(mount_message_forget(&message, 1).nodeid, 6);
    assert_int_equal(mount_message_forget(&message, 2).nodeid, 0);
    in.count = 3;
    add(&bad, &in, sizeof(in));
    add(&bad, ones, sizeof(ones));
    assert_int_equal(finish(&bad, &message), -EINVAL);
}

static void what_is_not_known_can_be_answered(void **state)
{
    struct message message = begin(FUSE_POLL);
    struct mount_message read;

    (void) state;
    assert_int_equal(finish(&message, &read), -ENOSYS);
    assert_int_equal(read.unique, 7);
    message = begin(4096);
    assert_int_equal(finish(&message, &read), -ENOSYS);
    message = begin(FUSE_GETATTR);
    assert_int_equal(finish(&message, &read), -EINVAL);
    message.length = 10;
    assert_int_equal(mount_message_read(message.bytes, 10, &read), -EINVAL);
    assert_int_equal(read.unique, 0);
    message = begin(FUSE_STATFS);
    assert_int_equal(finish(&message, &read), 0);
    assert_int_equal(mount_message_read(message.bytes, message.length - 1, &read), -EINVAL);
}

static void only_kernels_with_what_is_needed_are_greeted(void **state)
{
    struct fuse_init_in in = {.major = 7,
                              .minor = 41,
                              .max_readahead = 131072,
                              .flags = UINT32_MAX,
                              .flags2 = UINT32_MAX};
    struct fuse_init_out out;

    (void) state;
    assert_true(mount_message_init(&in, &out));
    assert_int_equal(out.flags2, 0);
    assert_int_equal(out.flags & FUSE_INIT_EXT, FUSE_INIT_EXT);
    assert_int_equal(out.flags & FUSE_WRITEBACK_CACHE, 0);
    assert_int_equal(out.max_write, MOUNT_TRANSFER);
    in.flags2 = 0;
    assert_true(mount_message_init(&in, &out));
    in.flags = UINT32_MAX & ~FUSE_INIT_EXT;
    assert_false(mount_message_init(&in, &out));
    in.flags = UINT32_MAX;
    in.major = 8;
    assert_false(mount_message_init(&in, &out));
}

static void entries_fill_what_there_is_and_no_more(void **state)
{
    char bytes[64];
    struct mount_entries entries = {bytes, 64, 0};
    struct fuse_dirent first;

    (void) state;
    assert_true(mount_entries_add(&entries, 5, 1, DT_REG, "abc"));
    memcpy(&first, bytes, FUSE_NAME_OFFSET);
    assert_int_equal(first.ino, 5);
    assert_int_equal(first.namelen, 3);
    assert_int_equal(entries.length, 32);
    assert_true(mount_entries_add(&entries, 6, 2, DT_DIR, "12345678"));
    assert_int_equal(entries.length, 64);
    assert_false(mount_entries_add(&entries, 7, 3, DT_REG, "d"));
    assert_int_equal(entries.length, 64);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_are_found),
        cmocka_unit_test(the_older_rename_has_no_flags),
        cmocka_unit_test(names_that_do_not_end_are_refused),
        cmocka_unit_test(data_is_as_long_as_it_says),
        cmocka_unit_test(lists_of_the_forgotten_are_counted),
        cmocka_unit_test(what_is_not_known_can_be_answered),
        cmocka_unit_test(only_kernels_with_what_is_needed_are_greeted),
        cmocka_unit_test(entries_fill_what_there_is_and_no_more),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
