#include "json/name_escape.h"
#include "keeper/layer/layer_format.h"
#include "keeper/layer/layer_test_kit.h"
#include "keeper/tree/tree_read.h"

/* Read what `lines` name; the contents stand in `ret_data`, at its beginning. */
static char *say_read(int view, const char *lines, int *ret_data, struct error *err)
{
    AUTO(close) int input = make_memory();
    int data = make_memory();
    char *said;

    assert_int_equal(sys_file_write_full(input, lines, strlen(lines)), 0);
    assert_int_equal(lseek(input, 0, SEEK_SET), 0);
    said = SAID(tree_read(view, input, data, output, err));
    assert_int_equal(lseek(data, 0, SEEK_SET), 0);
    *ret_data = data;
    return said;
}

/* The next frame must be this; NULL: missing. */
static void check_frame(int data, const char *expected)
{
    uint8_t length[8];
    char content[100] = "";

    assert_int_equal(sys_file_read_full(data, length, sizeof(length)), sizeof(length));
    assert_true(layer_get_number(length, 8) == (expected ? strlen(expected) : TREE_READ_MISSING));
    if (!expected)
        return;
    assert_int_equal(sys_file_read_full(data, content, strlen(expected)), strlen(expected));
    assert_string_equal(content, expected);
}

static void check_end(int data)
{
    char byte;

    assert_int_equal(read(data, &byte, 1), 0);
}

static void contents_come_in_the_order_of_the_paths(void **state)
{
    struct error err = ERROR_INIT;
    AUTO(free) char *said = NULL;
    AUTO(close) int folder = -EBADF, data = -EBADF;
    struct place_set set;

    (void) state;
    place_set_init(&set);
    folder = make_place(set.newer, "work");
    make_content(folder, "a", "first");
    make_content(folder, "b\xff\n", "second");
    make_content(folder, "empty", "");
    make_content(set.newer, "secret", "secret");
    assert_int_equal(symlinkat("a", folder, "link"), 0);
    assert_int_equal(symlinkat("..", folder, "up"), 0);
    assert_int_equal(mknodat(folder, "fifo", S_IFIFO | 0600, 0), 0);
    assert_int_equal(mknodat(folder, "socket", S_IFSOCK | 0600, 0), 0);
    said = say_read(set.newer,
                    "{\"folder\":\"/work\"}\n{\"path\":\"b\\\\xff\\n\"}\n{\"path\":\"a\"}\n"
                    "{\"path\":\"empty\"}\n{\"path\":\"absent\"}\n{\"path\":\"link\"}\n"
                    "{\"path\":\"fifo\"}\n{\"path\":\"socket\"}\n{\"path\":\".\"}\n"
                    "{\"path\":\"../secret\"}\n{\"path\":\"up/secret\"}\n{\"path\":\"/work/a\"}\n"
                    "{\"path\":\"a\"}",
                    &data, &err);
    assert_int_equal(said_result, 0);
    check_frame(data, "second");
    check_frame(data, "first");
    check_frame(data, "");
    for (int i = 0; i < 8; i++)
        check_frame(data, NULL);
    check_frame(data, "first");
    check_end(data);
    assert_string_equal(said, "{\"read\":{\"files\":4,\"missing\":8,\"bytes\":16}}\n");
    place_set_done(&set);
}

static void large_files_come_whole(void **state)
{
    struct error err = ERROR_INIT;
    AUTO(free) char *said = NULL, *bytes = calloc(1, 3000000), *back = calloc(1, 3000000);
    AUTO(close) int data = -EBADF;
    uint8_t length[8];
    struct place_set set;

    (void) state;
    place_set_init(&set);
    for (size_t i = 0; i < 3000000; i++)
        bytes[i] = (char) (i * 2654435761u >> 13);
    assert_int_equal(sys_file_replace(set.newer, "a", bytes, 3000000, 0600), 0);
    make_content(set.newer, "b", "small");
    said = say_read(set.newer,
                    "{\"folder\":\"/\"}\n{\"path\":\"b\"}\n{\"path\":\"a\"}\n{\"path\":\"b\"}\n",
                    &data, &err);
    assert_int_equal(said_result, 0);
    check_frame(data, "small");
    assert_int_equal(sys_file_read_full(data, length, sizeof(length)), sizeof(length));
    assert_true(layer_get_number(length, 8) == 3000000);
    assert_int_equal(sys_file_read_full(data, back, 3000000), 3000000);
    assert_memory_equal(bytes, back, 3000000);
    check_frame(data, "small");
    check_end(data);
    place_set_done(&set);
}

static void check_refused(int view, const char *lines, enum err_code code)
{
    struct error err = ERROR_INIT;
    AUTO(close) int data = -EBADF;
    AUTO(free) char *said = say_read(view, lines, &data, &err);

    assert_string_equal(said, "");
    assert_int_equal(said_result, -1);
    assert_int_equal(err.code, code);
}

static void bad_lines_are_refused(void **state)
{
    AUTO(free) char *line = calloc(1, 3 * TREE_READ_LINE_MAX);
    struct place_set set;

    (void) state;
    place_set_init(&set);
    memset(line, ' ', 2 * TREE_READ_LINE_MAX);
    check_refused(set.newer, "", ERR_INVALID);
    check_refused(set.newer, "\n", ERR_INVALID);
    check_refused(set.newer, "{\"path\":\"a\"}\n", ERR_INVALID);
    check_refused(set.newer, "{\"folder\":\"/absent\"}\n", ERR_NOT_FOUND);
    check_refused(set.newer, "{\"folder\":\"/\"}\n{\"folder\":\"/\"}\n", ERR_INVALID);
    check_refused(set.newer, "{\"folder\":\"/\"}\n{\"path\":1}\n", ERR_INVALID);
    check_refused(set.newer, "{\"folder\":\"/\"}\n{\"path\":\"\"}\n", ERR_INVALID);
    check_refused(set.newer, "{\"folder\":\"/\"}\n{\"path\":\"a\\u0000\"}\n", ERR_INVALID);
    check_refused(set.newer, "{\"folder\":\"/\"}\n{\"path\":\"\\\\x00\"}\n", ERR_INVALID);
    check_refused(set.newer, line, ERR_INVALID);
    place_set_done(&set);
}

static void a_reader_that_is_gone_is_told(void **state)
{
    static const char lines[] = "{\"folder\":\"/\"}\n{\"path\":\"a\"}\n";
    struct error err = ERROR_INIT;
    AUTO(free) char *said = NULL;
    AUTO(close) int input = make_memory();
    struct place_set set;
    int ends[2];

    (void) state;
    place_set_init(&set);
    (void) signal(SIGPIPE, SIG_IGN);
    assert_int_equal(sys_file_write_full(input, lines, strlen(lines)), 0);
    assert_int_equal(lseek(input, 0, SEEK_SET), 0);
    assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
    (void) close(ends[0]);
    said = SAID(tree_read(set.newer, input, ends[1], output, &err));
    assert_int_equal(said_result, -1);
    assert_int_equal(err.code, ERR_CANCELLED);
    (void) close(ends[1]);
    place_set_done(&set);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(contents_come_in_the_order_of_the_paths),
        cmocka_unit_test(large_files_come_whole),
        cmocka_unit_test(bad_lines_are_refused),
        cmocka_unit_test(a_reader_that_is_gone_is_told),
    };

    return cmocka_run_group_tests_name("tree_read", tests, NULL, NULL);
}
