#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/text.h"
#include "cli/copy/tar_pipe.h"
#include "sys/file/sys_file.h"
#include "sys/file/sys_tree.h"
/* After the headers it needs. */
#include <cmocka.h>

#define BLOCK   512
#define TAR_MAX ((size_t) 1024 * 1024)

/* ustar: name, mode, type, link */
struct entry {
    const char *name;
    unsigned int mode;
    char type;
    const char *link;
    const char *content;
};

static void add_entry(struct text *tar, const struct entry *entry)
{
    static const char magic[] = {'u', 's', 't', 'a', 'r', '\0', '0', '0'};
    char block[BLOCK] = {0};
    size_t length = entry->content ? strlen(entry->content) : 0;
    unsigned int sum = 0;

    (void) snprintf(block, 100, "%s", entry->name);
    (void) snprintf(block + 100, 8, "%07o", entry->mode & 07777);
    (void) snprintf(block + 108, 8, "%07o", 0u);
    (void) snprintf(block + 116, 8, "%07o", 0u);
    (void) snprintf(block + 124, 12, "%011o", (unsigned int) length & 0777);
    (void) snprintf(block + 136, 12, "%011o", 0u);
    memset(block + 148, ' ', 8);
    block[156] = entry->type;
    if (entry->link)
        (void) snprintf(block + 157, 100, "%s", entry->link);
    memcpy(block + 257, magic, sizeof(magic));
    (void) snprintf(block + 329, 8, "%07o", 1u); /* of /dev/mem, should it be a device */
    (void) snprintf(block + 337, 8, "%07o", 1u);
    for (size_t i = 0; i < BLOCK; i++)
        sum += (unsigned char) block[i];
    (void) snprintf(block + 148, 8, "%06o", sum & 0777777);
    text_append_bytes(tar, block, BLOCK);
    if (length) {
        memset(block, 0, BLOCK);
        memcpy(block, entry->content, length);
        text_append_bytes(tar, block, BLOCK);
    }
}

struct place {
    char outer[64], inner[80];
    struct error err;
};

static int set_up(void **state)
{
    struct place *place = calloc(1, sizeof(*place));

    (void) snprintf(place->outer, sizeof(place->outer), "/tmp/burrow-tar-pipe-XXXXXX");
    assert_non_null(mkdtemp(place->outer));
    (void) snprintf(place->inner, sizeof(place->inner), "%s/inner", place->outer);
    assert_int_equal(mkdir(place->inner, 0755), 0);
    *state = place;
    return 0;
}

static int tear_down(void **state)
{
    struct place *place = *state;
    AUTO(close) int parent = sys_file_open(AT_FDCWD, "/tmp", O_RDONLY | O_DIRECTORY, 0);

    assert_int_equal(sys_tree_delete(parent, place->outer + strlen("/tmp/")), 0);
    free(place);
    return 0;
}

/* Returns what tar_pipe_finish did. */
static int unpack(struct place *place, const struct entry *entries, size_t count)
{
    static const char end[2 * BLOCK];
    AUTO(tar_pipe) struct tar_pipe pipe = TAR_PIPE_INIT;
    AUTO(text) struct text tar = TEXT_INIT(TAR_MAX);

    for (size_t i = 0; i < count; i++)
        add_entry(&tar, &entries[i]);
    text_append_bytes(&tar, end, sizeof(end));
    assert_int_equal(tar_pipe_unpack(&pipe, place->inner, &place->err), 0);
    assert_int_equal(sys_file_write_full(pipe.fd, tar.data, tar.length), 0);
    return tar_pipe_finish(&pipe, &place->err);
}

/* Its mode, or 0 when it is not there. */
static mode_t mode_of(const struct place *place, const char *name)
{
    struct stat status;
    char path[256];

    (void) snprintf(path, sizeof(path), "%s/%s", place->outer, name);
    return lstat(path, &status) == 0 ? status.st_mode : 0;
}

static void what_was_packed_comes_out_again(void **state)
{
    AUTO(tar_pipe) struct tar_pipe from = TAR_PIPE_INIT, to = TAR_PIPE_INIT;
    struct place *place = *state;
    char path[256], buffer[65536];
    ssize_t got;

    assert_int_equal(
        unpack(place,
               (struct entry[]){{"a/", 0755, '5', NULL, NULL}, {"a/run", 0755, '0', NULL, "x"}}, 2),
        0);
    (void) snprintf(path, sizeof(path), "%s/copy", place->outer);
    assert_int_equal(mkdir(path, 0755), 0);
    assert_int_equal(tar_pipe_pack(&from, place->inner, &place->err), 0);
    assert_int_equal(tar_pipe_unpack(&to, path, &place->err), 0);
    while ((got = sys_file_read_full(from.fd, buffer, sizeof(buffer))) > 0)
        assert_int_equal(sys_file_write_full(to.fd, buffer, (size_t) got), 0);
    assert_int_equal(tar_pipe_finish(&from, &place->err), 0);
    assert_int_equal(tar_pipe_finish(&to, &place->err), 0);
    assert_int_equal(mode_of(place, "copy/a/run"), S_IFREG | 0755);
}

static void devices_are_not_made(void **state)
{
    struct place *place = *state;

    assert_int_equal(
        unpack(place,
               (struct entry[]){{"memory", 0666, '3', NULL, NULL}, {"disk", 0666, '4', NULL, NULL}},
               2),
        -1);
    assert_int_equal(mode_of(place, "inner/memory"), 0);
    assert_int_equal(mode_of(place, "inner/disk"), 0);
}

static void programs_do_not_run_as_somebody_else(void **state)
{
    struct place *place = *state;

    assert_int_equal(unpack(place, (struct entry[]){{"sudo", 06755, '0', NULL, "x"}}, 1), 0);
    assert_int_equal(mode_of(place, "inner/sudo") & 07000, 0);
}

static void nothing_is_written_outside_of_the_folder(void **state)
{
    struct place *place = *state;
    char absolute[128];

    (void) snprintf(absolute, sizeof(absolute), "%s/absolute", place->outer);
    (void) unpack(place, (struct entry[]){{"../above", 0644, '0', NULL, "x"}}, 1);
    (void) unpack(place, (struct entry[]){{absolute, 0644, '0', NULL, "x"}}, 1);
    (void) unpack(
        place,
        (struct entry[]){{"way", 0777, '2', "..", NULL}, {"way/through", 0644, '0', NULL, "x"}}, 2);
    (void) unpack(place, (struct entry[]){{"name", 0644, '1', "../inner", NULL}}, 1);
    assert_int_equal(mode_of(place, "above"), 0);
    assert_int_equal(mode_of(place, "absolute"), 0);
    assert_int_equal(mode_of(place, "through"), 0);
}

static void a_folder_that_is_not_there_is_a_failure(void **state)
{
    AUTO(tar_pipe) struct tar_pipe pipe = TAR_PIPE_INIT;
    struct place *place = *state;

    assert_int_equal(tar_pipe_pack(&pipe, "/nonexistent", &place->err), 0);
    assert_int_equal(tar_pipe_finish(&pipe, &place->err), -1);
    assert_string_equal(place->err.message, "tar did not copy everything");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
        TEST(what_was_packed_comes_out_again),
        TEST(devices_are_not_made),
        TEST(programs_do_not_run_as_somebody_else),
        TEST(nothing_is_written_outside_of_the_folder),
        TEST(a_folder_that_is_not_there_is_a_failure),
#undef TEST
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
