#include <dirent.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent/agent_test.h"
#include "agent/file/file_error.h"
#include "agent/file/file_operations.h"
#include "agent/file/file_writer.h"
#include "base/encoding/encode.h"
#include "base/id.h"
#include "sys/file/sys_tree.h"

struct place {
    char path[32];
    int folder;
};

static int make_place(void **state)
{
    static struct place place;

    (void) snprintf(place.path, sizeof(place.path), "/tmp/burrow-writer-XXXXXX");
    assert_non_null(mkdtemp(place.path));
    place.folder = sys_file_open(AT_FDCWD, place.path, O_RDONLY | O_DIRECTORY, 0);
    *state = &place;
    return 0;
}

static int remove_place(void **state)
{
    struct place *place = *state;

    assert_int_equal(sys_tree_empty(place->folder), 0);
    (void) close(place->folder);
    assert_int_equal(rmdir(place->path), 0);
    return 0;
}

static void assert_content(int folder, const char *name, const char *expected)
{
    AUTO(free) char *data = NULL;
    size_t length;

    assert_int_equal(sys_file_read_all(folder, name, 4096, &data, &length), 0);
    assert_string_equal(data, expected);
}

static size_t count_entries(const char *path)
{
    DIR *stream = opendir(path);
    size_t count = 0;

    while (readdir(stream))
        count++;
    (void) closedir(stream);
    return count - 2;
}

static void a_file_appears_when_it_is_complete(void **state)
{
    struct place *place = *state;
    AUTO(file_writer) struct file_writer writer = FILE_WRITER_INIT;

    assert_int_equal(file_writer_open(&writer, place->folder, "a/b/file", -1), 0);
    assert_int_equal(file_writer_write(&writer, "new", 3), 0);
    assert_int_equal(faccessat(place->folder, "a/b/file", F_OK, 0), -1);
    assert_int_equal(file_writer_commit(&writer), 0);
    assert_content(place->folder, "a/b/file", "new");
}

static void what_is_abandoned_leaves_the_old_file_and_nothing_else(void **state)
{
    struct place *place = *state;
    struct file_writer writer = FILE_WRITER_INIT;

    assert_int_equal(sys_file_replace(place->folder, "file", "old", 3, 0640), 0);
    assert_int_equal(file_writer_open(&writer, place->folder, "file", -1), 0);
    assert_int_equal(file_writer_write(&writer, "new", 3), 0);
    assert_int_equal(count_entries(place->path), 2);
    file_writer_done(&writer);
    file_writer_done(&writer); /* once more is no matter */
    assert_int_equal(count_entries(place->path), 1);
    assert_content(place->folder, "file", "old");
}

static void what_is_no_file_is_refused(void **state)
{
    struct place *place = *state;
    static const struct {
        const char *path;
        int error;
    } cases[] = {
        {"pipe", -FILE_ERROR_NOT_REGULAR},
        {"folder", -EISDIR},
        {"folder/", -EISDIR},
        {"folder/..", -EISDIR},
        {"circle", -ELOOP},
        {"file/below", -ENOTDIR},
    };

    assert_int_equal(mkfifoat(place->folder, "pipe", 0600), 0);
    assert_int_equal(mkdirat(place->folder, "folder", 0700), 0);
    assert_int_equal(symlinkat("circle", place->folder, "circle"), 0);
    assert_int_equal(sys_file_replace(place->folder, "file", "old", 3, 0640), 0);
    for (size_t i = 0; i < ARRAY_COUNT(cases); i++) {
        AUTO(file_writer) struct file_writer writer = FILE_WRITER_INIT;

        assert_int_equal(file_writer_open(&writer, place->folder, cases[i].path, -1),
                         cases[i].error);
    }
    assert_int_equal(count_entries(place->path), 4);
}

static void base64_is_taken_with_and_without_padding(void **state)
{
    char text[BASE64_TEXT_SIZE(64)], bytes[BASE64_BYTES_MAX(BASE64_TEXT_SIZE(64))], data[64];

    (void) state;
    random_bytes(data, sizeof(data));
    for (size_t count = 0; count <= sizeof(data); count++) {
        size_t length = base64_encode(BASE64_STANDARD, data, count, text);

        for (;; length--) { /* with all of its padding, then with less and less */
            assert_int_equal(file_write_base64_size(text, length), count);
            assert_int_equal(file_write_base64(text, length, bytes), count);
            assert_memory_equal(bytes, data, count);
            if (!length || text[length - 1] != '=')
                break;
        }
    }
    assert_int_equal(file_write_base64_size("a", 1), -EINVAL);
    assert_int_equal(file_write_base64_size("ab c", 4), -EINVAL);
    assert_int_equal(file_write_base64_size("ab-_", 4), -EINVAL);
    assert_int_equal(file_write_base64_size("ab=c", 4), -EINVAL);
}

static void times_and_modes_are_as_find_prints_them(void **state)
{
    static const struct {
        struct timespec time;
        const char *text;
    } times[] = {
        {{1794767245, 211450424}, "2026-11-15T18:27:25.2114504240"},
        {{0, 0}, "1970-01-01T00:00:00.0000000000"},
        {{-1, 999999999}, "1969-12-31T23:59:59.9999999990"},
    };
    static const struct {
        mode_t mode;
        const char *text;
    } modes[] = {
        {0644, "rw-r--r--"},
        {0, "---------"},
        {07777, "rwsrwsrwt"},
        {07000, "--S--S--T"},
    };
    char text[FILE_LIST_TIME_SIZE], mode[FILE_LIST_MODE_SIZE];

    (void) state;
    for (size_t i = 0; i < ARRAY_COUNT(times); i++) {
        file_list_time(&times[i].time, text);
        assert_string_equal(text, times[i].text);
    }
    for (size_t i = 0; i < ARRAY_COUNT(modes); i++) {
        file_list_mode(modes[i].mode, mode);
        assert_string_equal(mode, modes[i].text);
    }
    file_list_time(&(struct timespec){.tv_sec = INT64_MAX}, text);
    assert_string_equal(text, "1970-01-01T00:00:00.0000000000");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_file_appears_when_it_is_complete, make_place,
                                        remove_place),
        cmocka_unit_test_setup_teardown(what_is_abandoned_leaves_the_old_file_and_nothing_else,
                                        make_place, remove_place),
        cmocka_unit_test_setup_teardown(what_is_no_file_is_refused, make_place, remove_place),
        cmocka_unit_test(base64_is_taken_with_and_without_padding),
        cmocka_unit_test(times_and_modes_are_as_find_prints_them),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
