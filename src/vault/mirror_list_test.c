#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/format/tar_header.h"
#include "vault/mirror_list.h"

#define SUM "\"sha256\":\"e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855\""

static int read_path(struct mirror_entry *entry, const char *path)
{
    AUTO(text) struct text line = TEXT_INIT(16384);

    text_format(&line, "{\"path\":\"%s\",\"type\":\"file\",\"mode\":\"0644\",\"size\":3," SUM "}",
                path);
    return mirror_entry_read(entry, line.data, line.length, NULL);
}

static void lines_are_read(void **state)
{
    static const char link[] =
        "{\"path\":\"a/\\\\xff\\\\\\\\\",\"type\":\"link\",\"mode\":\"0777\","
        "\"mtime\":-2,\"mtime_ns\":5,\"target\":\"../b\"}";
    AUTO(mirror_entry) struct mirror_entry entry = MIRROR_ENTRY_INIT;
    struct error err = ERROR_INIT;

    (void) state;
    assert_int_equal(mirror_entry_read(&entry, link, strlen(link), &err), 0);
    assert_string_equal(text_string(&entry.name), "a/\xff\\");
    assert_string_equal(text_string(&entry.target), "../b");
    assert_int_equal(entry.type, MIRROR_LINK);
    assert_int_equal(entry.mode, 0777);
    assert_int_equal(entry.mtime, -2);
    assert_int_equal(entry.mtime_ns, 5);
    assert_int_equal(read_path(&entry, "x"), 0);
    assert_int_equal(entry.size, 3);
    assert_int_equal(entry.sum[0], 0xe3);
}

static void what_leads_elsewhere_or_makes_no_sense_is_refused(void **state)
{
    static const char *const paths[] = {
        "",
        "/",
        "/a",
        "..",
        "../a",
        "a/..",
        "a/../b",
        "a//b",
        "a/",
        "./a",
        "a/./b",
        "a\\\\x2",
        "a\\\\xZZ",
        "a\\\\y",
        "a\\\\",
        "\\\\x00",
        "\\\\x2e\\\\x2e/a",
    };
    static const char *const lines[] = {
        "",
        "{}",
        "[]",
        "{\"path\":\"a\"}",
        "{\"path\":\"a\",\"type\":\"file\"}",
        ("{\"path\":\"a\",\"type\":\"file\",\"size\":-1," SUM "}"),
        "{\"path\":\"a\",\"type\":\"file\",\"size\":1,\"sha256\":\"00\"}",
        "{\"path\":\"a\",\"type\":\"link\"}",
        "{\"path\":\"a\",\"type\":\"folder\",\"mode\":\"9\"}",
        "{\"path\":\"a\",\"type\":\"folder\",\"mode\":\"77777\"}",
    };
    AUTO(mirror_entry) struct mirror_entry entry = MIRROR_ENTRY_INIT;

    (void) state;
    for (size_t i = 0; i < ARRAY_COUNT(paths); i++) {
        if (read_path(&entry, paths[i]) == 0)
            fail_msg("'%s' was taken", paths[i]);
    }
    for (size_t i = 0; i < ARRAY_COUNT(lines); i++) {
        if (mirror_entry_read(&entry, lines[i], strlen(lines[i]), NULL) == 0)
            fail_msg("'%s' was taken", lines[i]);
    }
}

static void lists_have_the_order_of_a_walk(void **state)
{
    static const char *const paths[] = {".",   "A",  "a",  "a/b",       "a/b/c", "a/b.c",   "a-b",
                                        "a.b", "a0", "aa", "b\\\\\\\\", "ba",    "b\\\\xff"};
    struct mirror_entry entries[ARRAY_COUNT(paths)];

    (void) state;
    for (size_t i = 0; i < ARRAY_COUNT(paths); i++) {
        entries[i] = (struct mirror_entry) MIRROR_ENTRY_INIT;
        assert_int_equal(read_path(&entries[i], paths[i]), 0);
    }
    for (size_t i = 0; i < ARRAY_COUNT(paths); i++) {
        for (size_t j = 0; j < ARRAY_COUNT(paths); j++) {
            int order = mirror_compare(&entries[i], &entries[j]);

            if ((order > 0) - (order < 0) != (i > j) - (i < j))
                fail_msg("%s and %s: %d", paths[i], paths[j], order);
        }
    }
    for (size_t i = 0; i < ARRAY_COUNT(paths); i++)
        mirror_entry_done(&entries[i]);
}

static void keys_are_paths_where_they_can_be(void **state)
{
    AUTO(mirror_entry) struct mirror_entry entry = MIRROR_ENTRY_INIT;
    char key[OBJECTS_KEY_MAX + 1], other[OBJECTS_KEY_MAX + 1], path[2000];

    (void) state;
    assert_int_equal(read_path(&entry, "sub/a b"), 0);
    mirror_key(key, "w/1/", "w/1/list", &entry);
    assert_string_equal(key, "w/1/sub/a b");
    assert_int_equal(read_path(&entry, "list"), 0);
    mirror_key(key, "w/1/", "w/1/list", &entry); /* the list is not overwritten */
    assert_int_equal(strncmp(key, "w/1/.burrow-long-path/", 22), 0);
    memset(path, 'x', sizeof(path));
    path[1500] = '\0';
    assert_int_equal(read_path(&entry, path), 0);
    mirror_key(key, "w/1/", "list", &entry);
    path[1499] = '\0';
    assert_int_equal(read_path(&entry, path), 0);
    mirror_key(other, "w/1/", "list", &entry);
    assert_true(strlen(key) < 100 && strcmp(key, other) != 0);
}

static void headers_are_what_tar_expects(void **state)
{
    static const char folder[] =
        "{\"path\":\"d\",\"type\":\"folder\",\"mode\":\"1755\",\"mtime\":1}";
    static const char fifo[] = "{\"path\":\"p\",\"type\":\"fifo\",\"mode\":\"0600\"}";
    AUTO(mirror_entry) struct mirror_entry entry = MIRROR_ENTRY_INIT;
    AUTO(text) struct text stream = TEXT_INIT(1 << 20);
    unsigned int sum = 0;

    (void) state;
    assert_int_equal(mirror_entry_read(&entry, folder, strlen(folder), NULL), 0);
    assert_true(mirror_entry_append_tar(&stream, &entry, 77));
    assert_int_equal(stream.length, TAR_BLOCK);
    assert_memory_equal(stream.data, "d/\0", 3);
    assert_memory_equal(stream.data + 100, "0001755\0", 8);
    assert_memory_equal(stream.data + 124, "00000000000\0", 12); /* a folder has no content */
    assert_int_equal(stream.data[156], '5');
    for (size_t i = 0; i < TAR_BLOCK; i++)
        sum += i >= 148 && i < 156 ? ' ' : (unsigned char) stream.data[i];
    assert_int_equal(strtoul(stream.data + 148, NULL, 8), sum);
    assert_int_equal(mirror_entry_read(&entry, fifo, strlen(fifo), NULL), 0);
    assert_false(mirror_entry_append_tar(&stream, &entry, 0));
    assert_int_equal(stream.length, TAR_BLOCK);
    tar_padding_append(&stream, 512);
    assert_int_equal(stream.length, TAR_BLOCK);
    tar_padding_append(&stream, 1);
    assert_int_equal(stream.length, 2 * TAR_BLOCK - 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lines_are_read),
        cmocka_unit_test(what_leads_elsewhere_or_makes_no_sense_is_refused),
        cmocka_unit_test(lists_have_the_order_of_a_walk),
        cmocka_unit_test(keys_are_paths_where_they_can_be),
        cmocka_unit_test(headers_are_what_tar_expects),
    };

    return cmocka_run_group_tests_name("mirror_list", tests, NULL, NULL);
}
