#include "keeper/layer/layer_test_kit.h"
#include "keeper/layer/layer_writer.h"

/* The content of a file, from its beginning. */
static uint8_t *read_file(int file, size_t *ret_size)
{
    struct stat status;
    uint8_t *bytes;

    CHECK_EQUAL(fstat(file, &status), 0);
    bytes = malloc((size_t) status.st_size + 1);
    CHECK_EQUAL(sys_file_pread_full(file, bytes, (size_t) status.st_size, 0), status.st_size);
    *ret_size = (size_t) status.st_size;
    return bytes;
}

/* Unpack bytes into a fresh folder, which is removed again. Returns the result. */
static int try_bytes(int top, const uint8_t *bytes, size_t size, struct error *err)
{
    AUTO(close) int target = make_place(top, "try"), file = make_memory();
    AUTO(free) char *said = NULL;
    int result;

    CHECK_EQUAL(sys_file_write_full(file, bytes, size), 0);
    CHECK_EQUAL(lseek(file, 0, SEEK_SET), 0);
    said = SAID(layer_unpack(target, file, output, err));
    result = said_result;
    CHECK_EQUAL(fchdir(top), 0);
    CHECK_EQUAL(sys_tree_delete(top, "try"), 0);
    return result;
}

static void make_small_tree(int folder)
{
    AUTO(close) int inner = make_place(folder, "folder");

    make_content(folder, "a", "some content that is not too short to be compressed, compressed");
    CHECK_EQUAL(linkat(folder, "a", inner, "b", 0), 0);
    CHECK_EQUAL(symlinkat("a", folder, "link"), 0);
    CHECK_EQUAL(mknodat(inner, "white", S_IFCHR, 0), 0);
}

static void damage_everything(void)
{
    char id[LAYER_ID_SIZE];
    AUTO(close) int layer = -EBADF;
    AUTO(free) uint8_t *bytes = NULL;
    struct place_set set;
    size_t size;

    enter_memory();
    place_set_init(&set);
    make_small_tree(set.newer);
    layer = pack_layer(set.newer, -EBADF, id);
    bytes = read_file(layer, &size);
    CHECK(size > 200 && size < 2000);
    for (size_t i = 0; i < size * 8; i++) {
        struct error err = ERROR_INIT;

        bytes[i / 8] ^= (uint8_t) (1 << i % 8);
        if (try_bytes(set.top, bytes, size, &err) == 0)
            print_error("bit %d of byte %d of %d\n", (int) (i % 8), (int) (i / 8), (int) size);
        CHECK_EQUAL(err.code, ERR_INVALID);
        bytes[i / 8] ^= (uint8_t) (1 << i % 8);
    }
    for (size_t length = 0; length < size; length++) {
        struct error err = ERROR_INIT;

        CHECK_EQUAL(try_bytes(set.top, bytes, length, &err), -1);
        CHECK_EQUAL(err.code, ERR_INVALID);
    }
    for (int i = 0; i < 256; i++) {
        struct error err = ERROR_INIT;

        bytes = realloc(bytes, size + 1);
        bytes[size] = (uint8_t) i;
        CHECK_EQUAL(try_bytes(set.top, bytes, size + 1, &err), -1);
    }
    place_set_done(&set);
}

static void a_wrong_bit_anywhere_or_a_wrong_length_is_an_error(void **state)
{
    (void) state;
    run_in_child(damage_everything, NEEDS_MOUNTS);
}

/* --- streams that no packer writes ---------------------------------------------------------- */

static const struct stat plain = {.st_mode = S_IFREG | 0600};

static void write_file(struct layer_writer *writer, const char *name, bool linked)
{
    layer_write_record(writer, LAYER_FILE, name);
    layer_write_status(writer, &plain);
    layer_write_number(writer, 1, linked);
    layer_write_number(writer, 8, 0);
    layer_write_number(writer, 4, 0);
    layer_write_number(writer, 1, 0);
}

static void write_leave(struct layer_writer *writer)
{
    layer_write_record(writer, LAYER_LEAVE, NULL);
    layer_write_status(writer, &plain);
    layer_write_number(writer, 1, 0);
}

static void write_simple(struct layer_writer *writer, enum layer_kind kind, const char *name)
{
    layer_write_record(writer, kind, name);
    layer_write_status(writer, &plain);
    layer_write_number(writer, 1, 0);
}

/* Finish what `write` puts between the top's records, and unpack it onto `target`. */
static int try_stream(int target, bool is_delta, void (*write)(struct layer_writer *writer),
                      struct error *err)
{
    AUTO(close) int file = make_memory();
    AUTO(layer_writer) struct layer_writer *writer = layer_writer_new(file, is_delta);
    AUTO(free) char *said = NULL;
    struct layer_sums sums;

    layer_write_record(writer, LAYER_ENTER, "");
    write(writer);
    write_leave(writer);
    assert_int_equal(layer_writer_finish(writer, &sums), 0);
    assert_int_equal(lseek(file, 0, SEEK_SET), 0);
    said = SAID(layer_unpack(target, file, output, err));
    return said_result;
}

static void nothing_bad(struct layer_writer *writer)
{
    write_file(writer, "a", true);
    layer_write_record(writer, LAYER_HARD_LINK, "b");
    layer_write_number(writer, 8, 1);
}

static void name_with_slash(struct layer_writer *writer)
{
    write_file(writer, "a/b", false);
}

static void name_of_above(struct layer_writer *writer)
{
    write_file(writer, "..", false);
}

static void name_of_self(struct layer_writer *writer)
{
    layer_write_record(writer, LAYER_ENTER, ".");
}

static void name_of_nothing(struct layer_writer *writer)
{
    write_file(writer, "", false);
}

static void name_with_nul(struct layer_writer *writer)
{
    layer_write_number(writer, 1, LAYER_WHITEOUT);
    layer_write_number(writer, 1, 3);
    layer_write_bytes(writer, "a\0b", 3);
}

static void names_out_of_order(struct layer_writer *writer)
{
    write_file(writer, "b", false);
    write_file(writer, "a", false);
}

static void name_twice(struct layer_writer *writer)
{
    layer_write_record(writer, LAYER_LINK, "a");
    layer_write_status(writer, &plain);
    layer_write_number(writer, 1, 0);
    layer_write_number(writer, 2, 4);
    layer_write_bytes(writer, "/tmp", 4);
    layer_write_number(writer, 1, 0);
    layer_write_record(writer, LAYER_ENTER, "a");
    write_leave(writer);
}

static void name_twice_after_folder(struct layer_writer *writer)
{
    layer_write_record(writer, LAYER_ENTER, "b");
    write_file(writer, "z", false);
    write_leave(writer);
    write_file(writer, "b", false);
}

static void left_too_often(struct layer_writer *writer)
{
    write_leave(writer);
}

static void left_too_seldom(struct layer_writer *writer)
{
    layer_write_record(writer, LAYER_ENTER, "a");
}

static void hard_link_to_nothing(struct layer_writer *writer)
{
    write_file(writer, "a", true);
    layer_write_record(writer, LAYER_HARD_LINK, "b");
    layer_write_number(writer, 8, 2);
}

static void removal_in_a_whole_layer(struct layer_writer *writer)
{
    layer_write_record(writer, LAYER_REMOVED, "a");
}

static void unknown_kind(struct layer_writer *writer)
{
    layer_write_record(writer, (enum layer_kind) 'X', "a");
}

static void attribute_of_rights(struct layer_writer *writer)
{
    layer_write_record(writer, LAYER_WHITEOUT, "a");
    layer_write_status(writer, &plain);
    layer_write_number(writer, 1, strlen("security.capability"));
    layer_write_bytes(writer, "security.capability", strlen("security.capability"));
    layer_write_number(writer, 4, 0);
    layer_write_number(writer, 1, 0);
}

static void piece_behind_the_end(struct layer_writer *writer)
{
    layer_write_record(writer, LAYER_FILE, "a");
    layer_write_status(writer, &plain);
    layer_write_number(writer, 1, 0);
    layer_write_number(writer, 8, 100);
    layer_write_number(writer, 4, 101);
    layer_write_number(writer, 8, 0);
}

static void piece_that_wraps(struct layer_writer *writer)
{
    layer_write_record(writer, LAYER_FILE, "a");
    layer_write_status(writer, &plain);
    layer_write_number(writer, 1, 0);
    layer_write_number(writer, 8, INT64_MAX);
    layer_write_number(writer, 4, LAYER_BLOCK);
    layer_write_number(writer, 8, UINT64_MAX - LAYER_BLOCK + 1);
}

static void file_that_is_too_long(struct layer_writer *writer)
{
    layer_write_record(writer, LAYER_FILE, "a");
    layer_write_status(writer, &plain);
    layer_write_number(writer, 1, 0);
    layer_write_number(writer, 8, UINT64_MAX);
}

static void hostile_streams_are_refused(void **state)
{
    static void (*const streams[])(struct layer_writer *) = {
        name_with_slash,      name_of_above,       name_of_self,         name_of_nothing,
        name_with_nul,        names_out_of_order,  name_twice,           name_twice_after_folder,
        left_too_often,       left_too_seldom,     hard_link_to_nothing, removal_in_a_whole_layer,
        unknown_kind,         attribute_of_rights, piece_behind_the_end, piece_that_wraps,
        file_that_is_too_long};
    struct place_set set;

    (void) state;
    place_set_init(&set);
    for (size_t i = 0; i < ARRAY_COUNT(streams); i++) {
        AUTO(close) int target = make_place(set.top, "try");
        struct error err = ERROR_INIT;

        if (try_stream(target, false, streams[i], &err) != -1 || err.code != ERR_INVALID)
            print_error("stream %d: %s\n", (int) i, err.message);
        assert_int_equal(err.code, ERR_INVALID);
        assert_int_equal(sys_tree_delete(set.top, "try"), 0);
    }
    /* And it is not the frame around them that is wrong. */
    assert_int_equal(try_stream(set.target, false, nothing_bad, &(struct error) ERROR_INIT), 0);
    place_set_done(&set);
}

/* --- deltas onto what is there -------------------------------------------------------------- */

static void folder_at_a(struct layer_writer *writer)
{
    layer_write_record(writer, LAYER_ENTER, "a");
    write_file(writer, "inside", false);
    write_leave(writer);
}

static void links_that_are_there_are_replaced_not_followed(void **state)
{
    struct error err = ERROR_INIT;
    struct place_set set;
    struct stat status;

    (void) state;
    place_set_init(&set);
    assert_int_equal(symlinkat("../further", set.target, "a"), 0);
    assert_int_equal(try_stream(set.target, true, folder_at_a, &err), 0);
    assert_int_equal(faccessat(set.further, "inside", F_OK, 0), -1);
    assert_int_equal(fstatat(set.target, "a", &status, AT_SYMLINK_NOFOLLOW), 0);
    assert_true(S_ISDIR(status.st_mode));
    assert_int_equal(faccessat(set.target, "a/inside", F_OK, 0), 0);
    place_set_done(&set);
}

static void change_of_a(struct layer_writer *writer)
{
    write_simple(writer, LAYER_CHANGED, "a");
}

static void removal_of_a(struct layer_writer *writer)
{
    layer_write_record(writer, LAYER_REMOVED, "a");
}

static void deltas_that_do_not_fit_are_refused(void **state)
{
    struct error err = ERROR_INIT;
    struct place_set set;
    struct stat status;

    (void) state;
    place_set_init(&set);
    make_content(set.further, "b", "");
    assert_int_equal(fchmodat(set.further, "b", 0755, 0), 0);
    assert_int_equal(try_stream(set.target, true, removal_of_a, &err), -1);
    assert_int_equal(err.code, ERR_INVALID);
    assert_int_equal(try_stream(set.target, true, change_of_a, &err), -1);
    assert_int_equal(err.code, ERR_INVALID);
    assert_int_equal(symlinkat("../further/b", set.target, "a"), 0);
    assert_int_equal(try_stream(set.target, true, change_of_a, &err), -1);
    assert_int_equal(err.code, ERR_INVALID);
    assert_int_equal(fstatat(set.further, "b", &status, 0), 0);
    assert_int_equal(status.st_mode & 07777, 0755);
    place_set_done(&set);
}

static void a_target_with_something_in_it_is_refused(void **state)
{
    struct error err = ERROR_INIT;
    struct place_set set;

    (void) state;
    place_set_init(&set);
    make_content(set.target, "precious", "");
    assert_int_equal(try_stream(set.target, false, nothing_bad, &err), -1);
    assert_int_equal(err.code, ERR_CONFLICT);
    assert_int_equal(faccessat(set.target, "precious", F_OK, 0), 0);
    place_set_done(&set);
}

/* A default access list of a folder would be given to all that is made in it. */
static void what_folders_hand_down_is_taken_away(void **state)
{
    char base[LAYER_ID_SIZE], delta[LAYER_ID_SIZE];
    AUTO(close) int first = -EBADF, second = -EBADF;
    /* Version 2; entries of tag, permissions and id: owner, user 5, group, mask, others. */
    static const uint8_t list[] = {2, 0, 0,   0,   1,   0,   7,  0, 255, 255, 255, 255, 2,   0,  4,
                                   0, 5, 0,   0,   0,   4,   0,  5, 0,   255, 255, 255, 255, 16, 0,
                                   7, 0, 255, 255, 255, 255, 32, 0, 0,   0,   255, 255, 255, 255};
    struct place_set set;

    (void) state;
    place_set_init(&set);
    assert_int_equal(fchdir(set.older), 0);
    if (lsetxattr(".", "system.posix_acl_default", list, sizeof(list), 0) < 0) {
        place_set_done(&set);
        skip_without("access lists of files");
    }
    copy_tree(set.older, set.newer);
    /* Made before the folder had its list. */
    make_content(set.copied, "a", "1");
    assert_int_equal(renameat(set.copied, "a", set.newer, "a"), 0);
    first = pack_layer(set.older, -EBADF, base);
    second = pack_layer(set.newer, set.older, delta);
    unpack_layer(set.target, first, base);
    unpack_layer(set.target, second, delta);
    check_same_tree(set.newer, set.target);
    assert_int_equal(fchdir(set.target), 0);
    assert_int_equal(lgetxattr("a", "system.posix_acl_access", NULL, 0), -1);
    assert_int_equal(lgetxattr(".", "system.posix_acl_default", NULL, 0), sizeof(list));
    place_set_done(&set);
}

/* The target fills up in the middle: an error that says so, and the helper folder is gone. */
static void unpack_too_much(void)
{
    char id[LAYER_ID_SIZE];
    AUTO(free) char *said = NULL, *block = malloc(900000);
    AUTO(close) int source = -EBADF, target = -EBADF, layer = -EBADF;
    struct error err = ERROR_INIT;

    enter_memory();
    CHECK_EQUAL(mkdir("source", 0700) + mkdir("target", 0700), 0);
    CHECK_EQUAL(syscall(SYS_mount, "tmpfs", "target", "tmpfs", 0, "size=512k"), 0);
    source = open_place(AT_FDCWD, "source");
    target = open_place(AT_FDCWD, "target");
    memset(block, 'x', 900000);
    make_content(source, "a", "1");
    CHECK_EQUAL(linkat(source, "a", source, "b", 0), 0);
    CHECK_EQUAL(sys_file_replace(source, "c", block, 900000, 0600), 0);
    layer = pack_layer(source, -EBADF, id);
    said = SAID(layer_unpack(target, layer, output, &err));
    CHECK_EQUAL(said_result, -1);
    CHECK_EQUAL(err.code, ERR_NO_SPACE);
    CHECK(strstr(err.message, "unpack 'c'") != NULL);
    CHECK_EQUAL(unlinkat(target, "a", 0) + unlinkat(target, "b", 0) + unlinkat(target, "c", 0), 0);
    {
        AUTO(text) struct text left = TEXT_INIT(4096);

        list_kept(target, &left);
        CHECK(strchr(left.data, '\n') == left.data + left.length - 1); /* the top alone */
    }
}

static void unpack_within(int top, int layer, struct image_limits limits, enum err_code wanted)
{
    AUTO(close) int target = make_place(top, "within");
    AUTO(free) char *said = NULL;
    struct error err = ERROR_INIT;

    CHECK_EQUAL(lseek(layer, 0, SEEK_SET), 0);
    said = SAID(layer_unpack_within(target, layer, &limits, output, &err));
    CHECK_EQUAL(said_result, wanted ? -1 : 0);
    CHECK_EQUAL(err.code, wanted);
    CHECK_EQUAL(sys_tree_delete(top, "within"), 0);
}

static void unpack_within_limits(void)
{
    char id[LAYER_ID_SIZE];
    AUTO(close) int source = -EBADF, layer = -EBADF, top = -EBADF;

    enter_memory();
    top = open_place(AT_FDCWD, ".");
    source = make_place(top, "source");
    make_content(source, "a", "12345");
    make_content(source, "b", "12345");
    layer = pack_layer(source, -EBADF, id);
    unpack_within(top, layer, (struct image_limits){10, 3, 1}, 0); /* with the top */
    unpack_within(top, layer, (struct image_limits){9, 3, 1}, ERR_TOO_LARGE);
    unpack_within(top, layer, (struct image_limits){10, 2, 1}, ERR_TOO_LARGE);
    unpack_within(top, layer, (struct image_limits){10, 3, UINT64_MAX}, ERR_NO_SPACE);
}

static void a_layer_of_an_image_has_limits(void **state)
{
    (void) state;
    run_in_child(unpack_within_limits, NEEDS_MOUNTS);
}

static void a_full_target_is_told(void **state)
{
    (void) state;
    run_in_child(unpack_too_much, NEEDS_MOUNTS);
}

/* As many names as the filesystem allows (ext4: 65,000): the name that we hold is one too many. */
static void as_many_names_as_there_may_be_come_back(void **state)
{
    char id[LAYER_ID_SIZE];
    AUTO(close) int folder = -EBADF, layer = -EBADF;
    struct stat source, target;
    struct place_set set;

    (void) state;
    place_set_init(&set);
    folder = make_place(set.newer, "names");
    make_content(folder, "first", "1");
    for (int i = 0; i < 66000; i++) {
        char name[TREE_NAME_MAX];

        (void) snprintf(name, sizeof(name), "%d", i);
        if (linkat(folder, "first", folder, name, 0) < 0) {
            assert_int_equal(errno, EMLINK);
            break;
        }
    }
    layer = pack_layer(set.newer, -EBADF, id);
    unpack_layer(set.target, layer, id);
    assert_int_equal(fstatat(set.newer, "names/first", &source, 0), 0);
    assert_int_equal(fstatat(set.target, "names/first", &target, 0), 0);
    assert_int_equal(source.st_nlink, target.st_nlink);
    place_set_done(&set);
}

/* All of the second file behind the first. */
static void append_file(int file, int other)
{
    AUTO(free) uint8_t *bytes = NULL;
    size_t size;

    bytes = read_file(other, &size);
    CHECK(lseek(file, 0, SEEK_END) > 0);
    CHECK_EQUAL(sys_file_write_full(file, bytes, size), 0);
    CHECK_EQUAL(lseek(file, 0, SEEK_SET), 0);
}

/* Unpack layers that follow each other; the error's code, and how many were told. */
static enum err_code unpack_all_of(int target, int file, size_t *ret_told)
{
    AUTO(free) char *said = NULL;
    struct error err = ERROR_INIT;

    CHECK_EQUAL(lseek(file, 0, SEEK_SET), 0);
    said = SAID(layer_unpack(target, file, output, &err));
    *ret_told = 0;
    for (const char *at = said; (at = strstr(at, "{\"layer\"")); at++)
        ++*ret_told;
    return said_result == 0 ? ERR_NONE : err.code;
}

static void layers_follow_each_other_in_one_stream(void **state)
{
    char base[LAYER_ID_SIZE], delta[LAYER_ID_SIZE];
    AUTO(close) int first = -EBADF, second = -EBADF;
    struct place_set set;
    size_t told;
    off_t size;

    (void) state;
    place_set_init(&set);
    make_small_tree(set.older);
    copy_tree(set.older, set.newer);
    make_content(set.newer, "more", "1");
    CHECK_EQUAL(unlinkat(set.newer, "link", 0), 0);
    first = pack_layer(set.older, -EBADF, base);
    second = pack_layer(set.newer, set.older, delta);
    size = lseek(first, 0, SEEK_END);
    append_file(first, second);
    assert_int_equal(unpack_all_of(set.target, first, &told), ERR_NONE);
    assert_int_equal(told, 2);
    check_same_tree(set.newer, set.target);
    /* One that was cut in the second has still told of the first. */
    CHECK_EQUAL(sys_tree_empty(set.target), 0);
    CHECK_EQUAL(ftruncate(first, lseek(first, 0, SEEK_END) - 1), 0);
    assert_int_equal(unpack_all_of(set.target, first, &told), ERR_INVALID);
    assert_int_equal(told, 1);
    /* A whole layer on top of another is a mistake. */
    CHECK_EQUAL(sys_tree_empty(set.target), 0);
    CHECK_EQUAL(ftruncate(first, size), 0);
    append_file(first, first);
    assert_int_equal(unpack_all_of(set.target, first, &told), ERR_CONFLICT);
    place_set_done(&set);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(layers_follow_each_other_in_one_stream),
        cmocka_unit_test(a_wrong_bit_anywhere_or_a_wrong_length_is_an_error),
        cmocka_unit_test(hostile_streams_are_refused),
        cmocka_unit_test(links_that_are_there_are_replaced_not_followed),
        cmocka_unit_test(deltas_that_do_not_fit_are_refused),
        cmocka_unit_test(a_target_with_something_in_it_is_refused),
        cmocka_unit_test(what_folders_hand_down_is_taken_away),
        cmocka_unit_test(a_layer_of_an_image_has_limits),
        cmocka_unit_test(a_full_target_is_told),
        cmocka_unit_test(as_many_names_as_there_may_be_come_back),
    };

    return cmocka_run_group_tests_name("layer_unpack", tests, NULL, NULL);
}
