/* Headers, the reader and the extractor, together: what is written is read again, in any pieces. */
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "agent/agent_test.h"
#include "agent/archive/tar_export.h"
#include "agent/archive/tar_extract.h"
#include "base/format/tar_header.h"
#include "base/format/tar_reader.h"
#include "base/memory.h"
#include "sys/file/sys_file.h"
#include "sys/file/sys_tree.h"

/* --- headers and reader --------------------------------------------------------------------- */

struct seen {
    const struct tar_entry *expected;
    size_t begun, ended;
    uint64_t bytes;
};

static int entry_began(void *owner, const struct tar_entry *entry, struct error *err)
{
    struct seen *seen = owner;
    const struct tar_entry *expected = &seen->expected[seen->begun++];
    size_t length = strlen(expected->path);

    (void) err;
    assert_int_equal(entry->type, expected->type);
    assert_memory_equal(entry->path, expected->path, length);
    assert_string_equal(entry->path + length, entry->type == TAR_FOLDER ? "/" : "");
    assert_string_equal(entry->link, expected->link);
    assert_int_equal(entry->size, expected->size);
    assert_int_equal(entry->mode, expected->mode);
    assert_int_equal(entry->uid, expected->uid);
    assert_int_equal(entry->gid, expected->gid);
    assert_int_equal(entry->mtime.tv_sec, expected->mtime.tv_sec);
    assert_int_equal(entry->mtime.tv_nsec, expected->mtime.tv_nsec);
    seen->bytes = 0;
    return 0;
}

static int bytes_came(void *owner, const char *bytes, size_t length, struct error *err)
{
    struct seen *seen = owner;

    (void) err;
    for (size_t i = 0; i < length; i++)
        assert_int_equal((unsigned char) bytes[i], (unsigned char) (seen->bytes + i));
    seen->bytes += length;
    return 0;
}

static int entry_ended(void *owner, struct error *err)
{
    struct seen *seen = owner;

    (void) err;
    assert_int_equal(seen->bytes, seen->expected[seen->ended].size);
    seen->ended++;
    return 0;
}

static const struct tar_reader_events events = {entry_began, bytes_came, entry_ended};

static char *repeated(char c, size_t count)
{
    char *text = mem_alloc(count + 1);

    memset(text, c, count);
    return text;
}

static void write_all(const struct tar_entry *entries, size_t count, struct text *out)
{
    static const char zeros[TAR_END_SIZE];

    for (size_t i = 0; i < count; i++) {
        tar_header_append(out, &entries[i]);
        for (uint64_t at = 0; at < entries[i].size; at++)
            text_append_char(out, (char) at);
        text_append_bytes(out, zeros, tar_padding(entries[i].size));
    }
    text_append_bytes(out, zeros, sizeof(zeros));
}

static void what_is_written_is_read_again_in_any_pieces(void **state)
{
    AUTO(free) char *long_path = repeated('p', 100);
    AUTO(free) char *longer = repeated('q', 101);
    AUTO(free) char *longest = repeated('r', TAR_PATH_MAX - 1);
    AUTO(free) char *link = repeated('s', TAR_PATH_MAX);
    const struct tar_entry entries[] = {
        {TAR_FILE, "a", "", 0, 0644, 0, 0, {0, 0}, NULL},
        {TAR_FILE, "b/c", "", 513, 07777, 1000, 1000, {1794767245, 211450424}, NULL},
        {TAR_FILE, long_path, "", 512, 0, 07777777, 010000000, {077777777777, 0}, NULL},
        {TAR_FILE, longer, "", 1, 0, 4294967294, 0, {0100000000000, 1}, NULL},
        {TAR_FOLDER, longest, "", 0, 0755, 0, 0, {-1, 750000000}, NULL},
        {TAR_LINK, "d", link, 0, 0777, 0, 0, {-5, 0}, NULL},
        {TAR_HARD_LINK, "e", longer, 0, 0644, 0, 0, {1, 999999999}, NULL},
        {TAR_PIPE, "f", "", 0, 0600, 0, 0, {9, 0}, NULL},
    };
    static const size_t steps[] = {1, 2, 7, 100, 511, 512, 513, 1000, 4096, 1 << 20};
    AUTO(text) struct text archive = TEXT_INIT(1 << 20);

    (void) state;
    write_all(entries, ARRAY_COUNT(entries), &archive);
    assert_int_equal(archive.length % TAR_BLOCK, 0);
    for (size_t i = 0; i < ARRAY_COUNT(steps); i++) {
        struct seen seen = {.expected = entries};
        struct tar_reader reader;
        struct error err = ERROR_INIT;

        tar_reader_init(&reader, &events, &seen);
        for (size_t at = 0; at < archive.length; at += steps[i]) {
            size_t left = archive.length - at;

            assert_int_equal(tar_reader_feed(&reader, archive.data + at,
                                             left < steps[i] ? left : steps[i], &err),
                             0);
        }
        assert_int_equal(tar_reader_finish(&reader, &err), 0);
        assert_int_equal(seen.begun, ARRAY_COUNT(entries));
        assert_int_equal(seen.ended, ARRAY_COUNT(entries));
        tar_reader_done(&reader);
    }
}

static void an_archive_that_is_cut_anywhere_is_refused(void **state)
{
    static const struct tar_entry entries[] = {
        {TAR_FILE, "a", "", 600, 0644, 0, 0, {5, 5}, NULL},
        {TAR_FOLDER, "b", "", 0, 0755, 0, 0, {0, 0}, NULL},
    };
    AUTO(text) struct text archive = TEXT_INIT(1 << 20);

    (void) state;
    write_all(entries, ARRAY_COUNT(entries), &archive);
    for (size_t length = 0; length < archive.length - TAR_BLOCK; length++) {
        struct seen seen = {.expected = entries};
        struct tar_reader reader;
        struct error err = ERROR_INIT;

        tar_reader_init(&reader, &events, &seen);
        assert_int_equal(tar_reader_feed(&reader, archive.data, length, &err), 0);
        assert_int_equal(tar_reader_finish(&reader, &err), -1);
        assert_non_null(strstr(err.message, "cut short"));
        tar_reader_done(&reader);
    }
}

static void a_header_with_any_bit_wrong_is_no_header(void **state)
{
    static const struct tar_entry entry = {TAR_FILE, "a", "", 0, 0644, 0, 0, {0, 0}, NULL};
    AUTO(text) struct text archive = TEXT_INIT(1 << 20);
    struct tar_header header;

    (void) state;
    tar_header_append(&archive, &entry);
    assert_int_equal(archive.length, TAR_BLOCK);
    assert_int_equal(tar_header_decode((unsigned char *) archive.data, &header), 0);
    for (size_t bit = 0; bit < TAR_BLOCK * 8; bit++) {
        size_t at = bit / 8;

        if (at >= 148 && at < 156)
            continue; /* the checksum may be written in several ways */
        archive.data[at] = (char) (archive.data[at] ^ (1 << bit % 8));
        assert_int_equal(tar_header_decode((unsigned char *) archive.data, &header), -EINVAL);
        archive.data[at] = (char) (archive.data[at] ^ (1 << bit % 8));
    }
}

/* --- paths and links ------------------------------------------------------------------------ */

static void paths_become_plain_or_are_refused(void **state)
{
    static const struct {
        const char *path;
        int result;
        const char *plain;
    } cases[] = {
        {"a", 0, "a"},
        {"./a//b/./c/", 0, "a/b/c"},
        {".", 0, ""},
        {"", 0, ""},
        {"./", 0, ""},
        {"/a", -EINVAL, NULL},
        {"..", -EXDEV, NULL},
        {"a/..", -EXDEV, NULL},
        {"a/../b", -EXDEV, NULL},
        {"...", 0, "..."},
        {"..a", 0, "..a"},
    };
    char plain[64];

    (void) state;
    for (size_t i = 0; i < ARRAY_COUNT(cases); i++) {
        assert_int_equal(tar_extract_plain_path(cases[i].path, plain), cases[i].result);
        if (cases[i].plain)
            assert_string_equal(plain, cases[i].plain);
    }
}

static void links_stay_when_they_go_up_first_and_not_too_far(void **state)
{
    static const struct {
        const char *path, *target;
        bool stays;
    } cases[] = {
        {"a", "b", true},      {"a", "..", false},          {"a/b", "..", true},
        {"a/b", "../c", true}, {"a/b", "../../c", false},   {"a/b/c", "../../d", true},
        {"a", "/b", false},    {"a/b/c", "d/..", false},    {"a/b", "./../c", true},
        {"a", "b/c/d", true},  {"a/b", "x/../../y", false},
    };

    (void) state;
    for (size_t i = 0; i < ARRAY_COUNT(cases); i++)
        assert_int_equal(tar_extract_link_stays(cases[i].path, cases[i].target), cases[i].stays);
}

/* --- out and in again ----------------------------------------------------------------------- */

static int make_folder(int parent, const char *name)
{
    int fd;

    assert_int_equal(mkdirat(parent, name, 0755), 0);
    fd = sys_file_open(parent, name, O_RDONLY | O_DIRECTORY, 0);
    assert_true(fd >= 0);
    return fd;
}

static void export_all(int folder, struct text *archive)
{
    int r = 0;
    AUTO(tar_export)
    struct tar_export *export =
        tar_export_new(sys_file_open(folder, ".", O_RDONLY | O_DIRECTORY, 0), NULL, &r);

    assert_non_null(export);
    while ((r = tar_export_next(export, archive)) == 1)
        ;
    assert_int_equal(r, 0);
    assert_false(archive->overflowed);
}

static void a_folder_comes_back_through_any_pieces(void **state)
{
    static const size_t steps[] = {1, 511, 4097, 1 << 20};
    char base[] = "/tmp/burrow-tar-test-XXXXXX";
    AUTO(close) int root = -EBADF, source = -EBADF;
    AUTO(text) struct text archive = TEXT_INIT(1 << 20);
    AUTO(free) char *content = repeated('c', 70000);

    (void) state;
    assert_non_null(mkdtemp(base));
    root = sys_file_open(AT_FDCWD, base, O_RDONLY | O_DIRECTORY, 0);
    source = make_folder(root, "source");
    assert_int_equal(sys_file_replace(source, "file", content, 70000, 0751), 0);
    assert_int_equal(linkat(source, "file", source, "twin", 0), 0);
    assert_int_equal(symlinkat("file", source, "link"), 0);
    export_all(source, &archive);
    for (size_t i = 0; i < ARRAY_COUNT(steps); i++) {
        AUTO(close) int copy = make_folder(root, "copy");
        AUTO(tar_extract) struct tar_extract *extract = tar_extract_new(copy, false);
        AUTO(text) struct text again = TEXT_INIT(1 << 20);
        struct error err = ERROR_INIT;

        for (size_t at = 0; at < archive.length; at += steps[i]) {
            size_t left = archive.length - at;

            assert_int_equal(tar_extract_feed(extract, archive.data + at,
                                              left < steps[i] ? left : steps[i], &err),
                             0);
        }
        assert_int_equal(tar_extract_finish(extract, &err), 0);
        assert_int_equal(tar_extract_entries(extract), 4);
        export_all(copy, &again);
        /* The order of a folder is its own; the sizes are not. */
        assert_int_equal(again.length, archive.length);
        assert_int_equal(sys_tree_delete(root, "copy"), 0);
    }
    assert_int_equal(sys_tree_empty(root), 0);
    assert_int_equal(rmdir(base), 0);
}

static void append_padded(struct text *archive, const struct tar_entry *entry, const char *bytes)
{
    static const char zeros[TAR_BLOCK];

    tar_header_append(archive, entry);
    text_append_bytes(archive, bytes, entry->size);
    text_append_bytes(archive, zeros, tar_padding(entry->size));
}

static void attributes_and_holes_come_back(void **state)
{
    enum { SIZE = 1 << 20 };
    static const char records[] = "32 SCHILY.xattr.user.note=a\0b=c\n"
                                  "38 SCHILY.xattr.user.overlay.opaque=y\n"
                                  "37 SCHILY.xattr.trusted.secret=value\n";
    const struct tar_entry extended = {
        .type = 'x', .path = "pax", .link = "", .size = sizeof(records) - 1};
    const struct tar_entry file = {
        .type = TAR_FILE, .path = "file", .link = "", .size = SIZE, .mode = 0644};
    char base[] = "/tmp/burrow-tar-test-XXXXXX", value[8], names[64] = "";
    AUTO(text) struct text archive = TEXT_INIT(2 * SIZE);
    AUTO(free) char *content = repeated('\0', SIZE);
    AUTO(close) int root = -EBADF, copy = -EBADF;
    AUTO(tar_extract) struct tar_extract *extract = NULL;
    struct error err = ERROR_INIT;
    struct stat status;

    (void) state;
    content[0] = 'A';
    append_padded(&archive, &extended, records);
    append_padded(&archive, &file, content);
    content[0] = '\0';
    text_append_bytes(&archive, content, TAR_END_SIZE);
    assert_non_null(mkdtemp(base));
    root = sys_file_open(AT_FDCWD, base, O_RDONLY | O_DIRECTORY, 0);
    extract = tar_extract_new(root, false);
    for (size_t at = 0; at < archive.length; at += TAR_BLOCK * 8) {
        size_t left = archive.length - at, step = TAR_BLOCK * 8;

        assert_int_equal(
            tar_extract_feed(extract, archive.data + at, left < step ? left : step, &err), 0);
    }
    assert_int_equal(tar_extract_finish(extract, &err), 0);
    copy = sys_file_open(root, "file", O_RDONLY, 0);
    assert_int_equal(fstat(copy, &status), 0);
    assert_int_equal(status.st_size, SIZE);
    assert_true(status.st_blocks * 512 < SIZE / 2);
    assert_int_equal(read(copy, value, 2), 2);
    assert_memory_equal(value, "A\0", 2);
    /* Not every file system has attributes of users. */
    if (fsetxattr(copy, "user.test", "", 0, 0) == 0 && fremovexattr(copy, "user.test") == 0) {
        assert_int_equal(fgetxattr(copy, "user.note", value, sizeof(value)), 5);
        assert_memory_equal(value, "a\0b=c", 5);
        assert_int_equal(flistxattr(copy, names, sizeof(names)), sizeof("user.note"));
    }
    assert_int_equal(sys_tree_empty(root), 0);
    assert_int_equal(rmdir(base), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_written_is_read_again_in_any_pieces),
        cmocka_unit_test(an_archive_that_is_cut_anywhere_is_refused),
        cmocka_unit_test(a_header_with_any_bit_wrong_is_no_header),
        cmocka_unit_test(paths_become_plain_or_are_refused),
        cmocka_unit_test(links_stay_when_they_go_up_first_and_not_too_far),
        cmocka_unit_test(a_folder_comes_back_through_any_pieces),
        cmocka_unit_test(attributes_and_holes_come_back),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
