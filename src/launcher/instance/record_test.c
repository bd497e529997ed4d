#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/auto.h"
#include "launcher/instance/record.h"
#include "sys/file/sys_file.h"

#define BOOT "01234567-89ab-cdef-0123-456789abcdef"

static char folder_path[64];

static int make_folder(void **state)
{
    (void) snprintf(folder_path, sizeof(folder_path), "/tmp/burrow-record-XXXXXX");
    if (!mkdtemp(folder_path))
        return -1;
    *state = (void *) (intptr_t) open(folder_path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    return 0;
}

static int remove_folder(void **state)
{
    int folder = (int) (intptr_t) *state;
    struct id *ids = NULL;
    size_t count = 0;

    assert_int_equal(record_list(folder, &ids, &count), 0);
    for (size_t i = 0; i < count; i++)
        assert_int_equal(record_remove(folder, &ids[i]), 0);
    free(ids);
    (void) close(folder);
    return rmdir(folder_path);
}

static struct record sample(void)
{
    return (struct record){
        .id = id_new(), .pid = 4711, .start_time = UINT64_MAX, .nat = true, .image = "debian-12"};
}

static void assert_same(const struct record *one, const struct record *other)
{
    assert_string_equal(one->id.text, other->id.text);
    assert_int_equal(one->pid, other->pid);
    assert_int_equal(one->start_time, other->start_time);
    assert_int_equal(one->pooled, other->pooled);
    assert_int_equal(one->nat, other->nat);
    assert_int_equal(one->fresh, other->fresh);
    assert_int_equal(one->ready, other->ready);
    assert_int_equal(one->was_killed, other->was_killed);
    assert_string_equal(one->image, other->image);
    assert_int_equal(one->has_ended, other->has_ended);
    assert_int_equal(one->ending.kind, other->ending.kind);
    assert_int_equal(one->ending.value, other->ending.value);
    assert_int_equal(one->keep_disk, other->keep_disk);
    assert_int_equal(one->was_told, other->was_told);
    assert_int_equal(one->is_held, other->is_held);
    assert_int_equal(one->is_snapshot, other->is_snapshot);
    assert_string_equal(one->owner.text, other->owner.text);
}

static void a_record_is_read_as_it_was_written(void **state)
{
    int folder = (int) (intptr_t) *state;
    struct record record = sample(), read = {0};

    assert_int_equal(record_write(folder, BOOT, &record), 0);
    assert_int_equal(record_read(folder, BOOT, &record.id, &read), 0);
    assert_same(&read, &record);
    record.fresh = record.pooled = record.has_ended = record.keep_disk = record.was_told = true;
    record.owner = id_new();
    record.ready = record.was_killed = record.is_held = record.is_snapshot = true;
    record.nat = false;
    record.ending = (struct ending){.kind = ENDED_SIGNAL, .value = 9};
    assert_int_equal(record_write(folder, BOOT, &record), 0);
    assert_int_equal(record_read(folder, BOOT, &record.id, &read), 0);
    assert_same(&read, &record);
}

static void a_record_of_another_boot_counts_for_nothing(void **state)
{
    int folder = (int) (intptr_t) *state;
    struct record record = sample(), read;

    assert_int_equal(record_write(folder, BOOT, &record), 0);
    assert_int_equal(record_read(folder, "another", &record.id, &read), -EINVAL);
}

static void what_is_no_record_is_refused(void **state)
{
    static const char *const texts[] = {
        "",
        "burrow-record 2\nimage host\n",
        "burrow-record 1\nboot " BOOT "\npid 1\n",
        "burrow-record 1\nboot " BOOT "\nimage ../host\n",
        "burrow-record 1\nboot " BOOT "\nimage host\npid -1\n",
        "burrow-record 1\nboot " BOOT "\nimage host\npid 99999999\n",
        "burrow-record 1\nboot " BOOT "\nimage host\npooled 2\n",
        "burrow-record 1\nboot " BOOT "\nimage host\nended 4\n",
        "burrow-record 1\nboot " BOOT "\nimage host\nwhatever 1\n",
        "burrow-record 1\nboot " BOOT "\nimage host\nword\n",
    };
    int folder = (int) (intptr_t) *state;

    for (size_t i = 0; i < ARRAY_COUNT(texts); i++) {
        struct id id = id_new();
        struct record read;

        assert_int_equal(sys_file_replace(folder, id.text, texts[i], strlen(texts[i]), 0600), 0);
        assert_int_equal(record_read(folder, BOOT, &id, &read), -EINVAL);
    }
}

static void what_a_crash_left_unfinished_is_in_nobodys_way(void **state)
{
    int folder = (int) (intptr_t) *state;
    struct record record = sample(), read;
    struct id *ids = NULL;
    size_t count = 0;

    assert_int_equal(sys_file_replace(folder, RECORD_UNFINISHED, "burrow-rec", 10, 0600), 0);
    assert_int_equal(record_list(folder, &ids, &count), 0);
    for (size_t i = 0; i < count; i++)
        assert_string_not_equal(ids[i].text, RECORD_UNFINISHED);
    free(ids);
    assert_int_equal(faccessat(folder, RECORD_UNFINISHED, F_OK, 0), -1);
    assert_int_equal(sys_file_replace(folder, RECORD_UNFINISHED, "burrow-rec", 10, 0600), 0);
    assert_int_equal(record_write(folder, BOOT, &record), 0);
    assert_int_equal(record_read(folder, BOOT, &record.id, &read), 0);
    assert_int_equal(faccessat(folder, RECORD_UNFINISHED, F_OK, 0), -1);
}

static void only_ids_are_listed(void **state)
{
    int folder = (int) (intptr_t) *state;
    struct record record = sample(), read;
    struct id *ids = NULL;
    size_t count = 0;

    assert_int_equal(record_list(folder, &ids, &count), 0);
    free(ids);
    assert_int_equal(record_write(folder, BOOT, &record), 0);
    assert_int_equal(sys_file_replace(folder, "note", "x", 1, 0600), 0);
    ids = NULL;
    size_t before = count;
    assert_int_equal(record_list(folder, &ids, &count), 0);
    assert_int_equal(count, before + 1);
    free(ids);
    assert_int_equal(unlinkat(folder, "note", 0), 0);
    assert_int_equal(record_remove(folder, &record.id), 0);
    assert_int_equal(record_read(folder, BOOT, &record.id, &read), -ENOENT);
}

static void the_boot_has_an_id(void **state)
{
    char boot[RECORD_BOOT_SIZE];

    (void) state;
    assert_int_equal(record_read_boot(boot), 0);
    assert_int_equal(strlen(boot), RECORD_BOOT_SIZE - 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_record_is_read_as_it_was_written),
        cmocka_unit_test(a_record_of_another_boot_counts_for_nothing),
        cmocka_unit_test(what_is_no_record_is_refused),
        cmocka_unit_test(what_a_crash_left_unfinished_is_in_nobodys_way),
        cmocka_unit_test(only_ids_are_listed),
        cmocka_unit_test(the_boot_has_an_id),
    };

    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
