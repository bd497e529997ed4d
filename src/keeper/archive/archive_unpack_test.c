/* Broken images, and the shape of the stream. That what comes out is what went in, with images of
 * mksquashfs too, is tests/integration/keeper_archive_test.py's. */
#include <endian.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>

#include "keeper/archive/archive_unpack.h"
#include "keeper/squash/squash_format.h"
#include "keeper/squash/squash_writer.h"
#include "keeper/tree/tree_test_kit.h"

#define IMAGE_MAX ((size_t) 1 << 20)
#define BLOCK     512

static int new_file(void)
{
    int fd = memfd_create("file", MFD_CLOEXEC);

    CHECK(fd >= 0);
    return fd;
}

/* Write an image of `tree` and read it back. */
static size_t image_of(int tree, enum squash_compression compression, uint8_t *ret_image)
{
    const struct squash_writer_options options = {
        .compression = compression, .level = 1, .threads = 1, .file_max = IMAGE_MAX};
    AUTO(close) int file = new_file();
    AUTO(squash_writer) struct squash_writer *writer = NULL;
    AUTO(tree_walk) struct tree_walk *walk = tree_walk_new(tree);
    struct error err = ERROR_INIT;
    struct tree_step step;
    uint64_t size;

    CHECK_EQUAL(squash_writer_new(file, &options, &writer, &err), 0);
    for (;;) {
        CHECK_EQUAL(tree_walk_next(walk, &step, &err), 0);
        if (step.event == TREE_END)
            break;
        if (step.event == TREE_ENTER)
            CHECK_EQUAL(squash_writer_enter(writer, &step, &err), 0);
        else if (step.event == TREE_ENTRY)
            CHECK_EQUAL(squash_writer_add(writer, &step, &err), 0);
        else
            CHECK_EQUAL(squash_writer_leave(writer, &err), 0);
    }
    CHECK_EQUAL(squash_writer_finish(writer, &size, &err), 0);
    CHECK(size <= IMAGE_MAX);
    CHECK_EQUAL(sys_file_pread_full(file, ret_image, (size_t) size, 0), (ssize_t) size);
    return (size_t) size;
}

/* A tree with one of everything. */
static size_t make_image(enum squash_compression compression, uint8_t *ret_image)
{
    char path[SCRATCH_SIZE];
    int top, below;
    size_t size;

    make_scratch(path);
    top = open_place(AT_FDCWD, path);
    below = make_place(top, "below");
    make_content(below, "b", "content of b");
    make_content(top, "a", "content of a");
    {
        AUTO(close) int fd = openat(top, "big", O_WRONLY | O_CREAT | O_CLOEXEC, 0600);

        for (int i = 0; i < 20000; i++)
            CHECK_EQUAL(sys_file_write_full(fd, "0123456789", 10), 0);
    }
    CHECK_EQUAL(linkat(top, "a", below, "again", 0), 0);
    CHECK_EQUAL(symlinkat("a", top, "link"), 0);
    CHECK_EQUAL(mkfifoat(top, "pipe", 0600), 0);
    CHECK_EQUAL(mknodat(top, "socket", S_IFSOCK | 0600, 0), 0);
    CHECK_EQUAL(fchdir(top), 0);
    (void) lsetxattr("a", "user.name", "value", 5, 0);
    CHECK_EQUAL(chdir("/"), 0);
    size = image_of(top, compression, ret_image);
    (void) close(below);
    CHECK_EQUAL(sys_tree_empty(top), 0);
    (void) close(top);
    CHECK_EQUAL(rmdir(path), 0);
    return size;
}

/* Unpack into `tar`, a file whose size stays within bounds. What was said is the caller's. */
static int unpack(const uint8_t *image, size_t size, int tar, char **ret_said, struct error *err)
{
    AUTO(close) int file = new_file();
    AUTO(free) char *said = NULL;
    int result;

    CHECK_EQUAL(sys_file_pwrite_full(file, image, size, 0), 0);
    error_clear(err);
    said = SAID(archive_unpack(file, tar, output, err));
    result = said_result;
    if (ret_said)
        *ret_said = TAKE_PTR(said);
    return result;
}

static void check_refusal(const uint8_t *image, size_t size, const char *word)
{
    AUTO(close) int tar = new_file();
    struct error err = ERROR_INIT;

    assert_int_equal(unpack(image, size, tar, NULL, &err), -1);
    assert_int_equal(err.code, ERR_INVALID);
    if (!strstr(err.message, word))
        fail_msg("'%s' is not in: %s", word, err.message);
}

static void the_stream_has_folders_first_and_an_end(void **state)
{
    static const struct {
        const char *name;
        char type;
    } expected[] = {{"./", '5'},
                    {"x", 'x'},
                    {"./a", '0'},
                    {"./below/", '5'},
                    {"./below/again", '1'},
                    {"./below/b", '0'},
                    {"./big", '0'},
                    {"./link", '2'},
                    {"./pipe", '6'}};
    static uint8_t image[IMAGE_MAX];
    size_t size = make_image(SQUASH_ZSTD, image);
    AUTO(close) int tar = new_file();
    AUTO(free) char *said = NULL;
    struct error err = ERROR_INIT;
    off_t at = 0;
    char block[BLOCK];

    (void) state;
    assert_int_equal(unpack(image, size, tar, &said, &err), 0);
    assert_non_null(strstr(said, "{\"unpacked\":{\"files\":6,\"folders\":2,\"bytes\":200024,"
                                 "\"sockets_left_out\":1,"));
    for (size_t i = 0; i < ARRAY_COUNT(expected); i++) {
        CHECK_EQUAL(sys_file_pread_full(tar, block, BLOCK, at), BLOCK);
        if (expected[i].type == 'x' && block[156] != 'x')
            continue; /* a filesystem without attributes */
        assert_int_equal(block[156], expected[i].type);
        if (expected[i].type != 'x')
            assert_string_equal(block, expected[i].name);
        at += BLOCK + (strtol(block + 124, NULL, 8) + BLOCK - 1) / BLOCK * BLOCK;
    }
    CHECK_EQUAL(sys_file_pread_full(tar, block, BLOCK, at), BLOCK);
    assert_int_equal(block[0], 0);
    assert_int_equal(lseek(tar, 0, SEEK_END), at + 2 * BLOCK);
}

static void what_is_no_image_is_refused(void **state)
{
    static uint8_t image[IMAGE_MAX];
    size_t size = make_image(SQUASH_LZ4, image);

    (void) state;
    check_refusal((const uint8_t *) "", 0, "no squashfs");
    check_refusal((const uint8_t *) "hsqs", 4, "no squashfs");
    image[0] = 'x';
    check_refusal(image, size, "no squashfs");
    image[0] = 'h';
    image[28] = 3;
    check_refusal(image, size, "version");
    image[28] = 4;
    image[13] = 1;
    check_refusal(image, size, "block size");
    image[13] = 0;
    image[20] = 3;
    check_refusal(image, size, "compressed");
    image[20] = SQUASH_LZ4;
    check_refusal(image, (size_t) squash_get64(image + 40) - 1, "cut short");
}

/* The superblock is right, something behind it is not. */
static void places_that_do_not_exist_are_refused(void **state)
{
    static const struct {
        size_t at;
        uint64_t number;
        const char *word;
    } changes[] = {
        {32, UINT64_C(1) << 40, "outside"},
        {32, 8191, "does not exist"},
        {40, UINT64_C(1) << 50, "cut short"},
        {48, UINT64_C(1) << 40, "behind"},
        {56, UINT64_MAX - 8, "behind"},
        {64, UINT64_C(1) << 40, "order"},
        {72, UINT64_C(1) << 40, "order"},
        {80, SQUASH_NO_TABLE, "behind"},
        {80, 0, ""},
    };
    static uint8_t image[IMAGE_MAX], changed[IMAGE_MAX];
    size_t size = make_image(SQUASH_GZIP, image);

    (void) state;
    for (size_t i = 0; i < ARRAY_COUNT(changes); i++) {
        uint64_t number = htole64(changes[i].number);

        memcpy(changed, image, size);
        memcpy(changed + changes[i].at, &number, sizeof(number));
        check_refusal(changed, size, changes[i].word);
    }
}

/* Anything may happen but a crash, a hang, or an error without a reason. */
static void a_flipped_byte_is_survived_wherever_it_is(void **state)
{
    static const enum squash_compression kinds[] = {SQUASH_LZ4, SQUASH_ZSTD, SQUASH_GZIP,
                                                    SQUASH_XZ};
    static uint8_t image[IMAGE_MAX];
    struct numbers numbers = {12345};
    int refused = 0;

    (void) state;
    for (size_t k = 0; k < ARRAY_COUNT(kinds); k++) {
        size_t size = make_image(kinds[k], image);
        size_t used = (size_t) squash_get64(image + 40);

        for (int i = 0; i < 300; i++) {
            /* Most of what can break is at the beginning and at the end. */
            size_t at = i % 3 ? used - 1 - number_below(&numbers, used < 1000 ? used : 1000)
                              : number_below(&numbers, used < 2000 ? used : 2000);
            uint8_t before = image[at];
            AUTO(close) int tar = new_file();
            struct error err = ERROR_INIT;

            image[at] ^= (uint8_t) (1 + number_below(&numbers, 255));
            if (unpack(image, size, tar, NULL, &err) < 0) {
                assert_int_not_equal(err.code, ERR_NONE);
                refused++;
            }
            image[at] = before;
        }
    }
    assert_true(refused > 400);
}

static void a_reader_who_leaves_ends_it(void **state)
{
    static uint8_t image[IMAGE_MAX];
    size_t size = make_image(SQUASH_LZ4, image);
    struct error err = ERROR_INIT;
    int ends[2];

    (void) state;
    assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
    (void) close(ends[0]);
    (void) signal(SIGPIPE, SIG_IGN);
    assert_int_equal(unpack(image, size, ends[1], NULL, &err), -1);
    assert_int_equal(err.code, ERR_CANCELLED);
    (void) close(ends[1]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_stream_has_folders_first_and_an_end),
        cmocka_unit_test(what_is_no_image_is_refused),
        cmocka_unit_test(places_that_do_not_exist_are_refused),
        cmocka_unit_test(a_flipped_byte_is_survived_wherever_it_is),
        cmocka_unit_test(a_reader_who_leaves_ends_it),
    };

    return cmocka_run_group_tests_name("archive_unpack", tests, NULL, NULL);
}
