#include <string.h>

#include "launcher/network/network_slot.h"
#include "sys/file/sys_file.h"
#include "sys/sys_test.h"

struct fixture {
    char path[SCRATCH_SIZE];
    int folder;
};

static int set_up(void **state)
{
    static struct fixture fixture;

    make_scratch(fixture.path);
    fixture.folder = sys_file_open(AT_FDCWD, fixture.path, O_RDONLY | O_DIRECTORY, 0);
    assert_true(fixture.folder >= 0);
    *state = &fixture;
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *fixture = *state;

    (void) close(fixture->folder);
    remove_scratch(fixture->path);
    return 0;
}

static void count_slot(void *context, const struct network_slot *slot)
{
    (void) slot;
    ++*(int *) context;
}

static int count_slots(int folder)
{
    int count = 0;

    assert_int_equal(network_slot_each(folder, count_slot, &count), 0);
    return count;
}

static void a_slot_is_found_by_its_sandbox_until_it_is_released(void **state)
{
    const struct fixture *fixture = *state;
    struct id id = id_new();
    struct network_slot slot, found;

    assert_int_equal(network_slot_find(fixture->folder, &id, &found), -ENOENT);
    assert_int_equal(network_slot_take(fixture->folder, 100, &id, &slot), 0);
    assert_in_range(slot.number, 1, 100);
    assert_in_range(slot.mark, NETWORK_MARK_MIN, INT32_MAX);
    assert_int_equal(network_slot_find(fixture->folder, &id, &found), 0);
    assert_int_equal(found.number, slot.number);
    assert_int_equal(found.mark, slot.mark);
    assert_string_equal(found.id.text, id.text);
    assert_int_equal(network_slot_is_taken(fixture->folder, &slot), 1);
    assert_int_equal(network_slot_take(fixture->folder, 100, &id, &found), -EEXIST);
    assert_int_equal(count_slots(fixture->folder), 1);
    assert_int_equal(network_slot_release(fixture->folder, &slot), 0);
    assert_int_equal(network_slot_is_taken(fixture->folder, &slot), 0);
    assert_int_equal(network_slot_release(fixture->folder, &slot), -ENOENT);
    assert_int_equal(network_slot_find(fixture->folder, &id, &found), -ENOENT);
    assert_int_equal(count_slots(fixture->folder), 0);
}

static void all_slots_are_given_out_once(void **state)
{
    const struct fixture *fixture = *state;
    struct network_slot slots[50];
    bool seen[51] = {false};
    struct id id;

    for (size_t i = 0; i < 50; i++) {
        id = id_new();
        assert_int_equal(network_slot_take(fixture->folder, 50, &id, &slots[i]), 0);
        assert_in_range(slots[i].number, 1, 50);
        assert_false(seen[slots[i].number]);
        seen[slots[i].number] = true;
    }
    id = id_new();
    assert_int_equal(network_slot_take(fixture->folder, 50, &id, &slots[0]), -ENOSPC);
    assert_int_equal(network_slot_take(fixture->folder, 0, &id, &slots[0]), -ENOSPC);
    assert_int_equal(count_slots(fixture->folder), 50);
}

static void only_its_owner_releases_a_slot(void **state)
{
    const struct fixture *fixture = *state;
    struct id first = id_new(), second = id_new();
    struct network_slot old, now;

    assert_int_equal(network_slot_take(fixture->folder, 1, &first, &old), 0);
    assert_int_equal(network_slot_release(fixture->folder, &old), 0);
    assert_int_equal(network_slot_take(fixture->folder, 1, &second, &now), 0);
    assert_int_equal(network_slot_release(fixture->folder, &old), -ENOENT);
    old.id = now.id; /* the same sandbox, another time */
    assert_int_equal(network_slot_is_taken(fixture->folder, &old), 0);
    assert_int_equal(network_slot_release(fixture->folder, &old), -ENOENT);
    assert_int_equal(network_slot_is_taken(fixture->folder, &now), 1);
}

/* Programs that were killed between the two links. */
static void half_made_records_are_harmless(void **state)
{
    const struct fixture *fixture = *state;
    struct id first = id_new(), second = id_new();
    struct network_slot slot, found;

    assert_int_equal(network_slot_take(fixture->folder, 1, &first, &slot), 0);
    assert_int_equal(unlinkat(fixture->folder, first.text, 0), 0);
    assert_int_equal(network_slot_find(fixture->folder, &first, &found), 0);
    assert_int_equal(found.number, slot.number);
    assert_int_equal(found.mark, slot.mark);
    assert_int_equal(count_slots(fixture->folder), 1);
    assert_int_equal(network_slot_release(fixture->folder, &found), 0);
    assert_int_equal(network_slot_find(fixture->folder, &first, &found), -ENOENT);
    assert_int_equal(symlinkat("1", fixture->folder, first.text), 0);
    assert_int_equal(network_slot_find(fixture->folder, &first, &found), -ENOENT);
    assert_int_equal(network_slot_take(fixture->folder, 1, &second, &slot), 0);
    assert_int_equal(network_slot_find(fixture->folder, &first, &found), -ENOENT);
}

static void strange_files_are_not_slots(void **state)
{
    static const char *const contents[] = {"x",
                                           "aaaaaaaaaaaaaaaaaaaaaaaaaa",
                                           ".5",
                                           "aaaaaaaaaaaaaaaaaaaaaaaaaa.5",
                                           "aaaaaaaaaaaaaaaaaaaaaaaaaa.99999999999999999999",
                                           "AAAAAAAAAAAAAAAAAAAAAAAAAA.2000000"};
    const struct fixture *fixture = *state;

    for (size_t i = 0; i < ARRAY_COUNT(contents); i++) {
        char name[8];

        (void) snprintf(name, sizeof(name), "%zu", i + 1);
        assert_int_equal(symlinkat(contents[i], fixture->folder, name), 0);
    }
    assert_int_equal(mkdirat(fixture->folder, "77", 0700), 0);
    assert_int_equal(symlinkat("aaaaaaaaaaaaaaaaaaaaaaaaaa.2000000", fixture->folder, "0"), 0);
    assert_int_equal(count_slots(fixture->folder), 0);
}

/* Two programs at once: together they get every slot exactly once. */
static void programs_share_the_slots(void **state)
{
    const struct fixture *fixture = *state;
    struct network_slot slot;
    pid_t pid = fork();
    int status;

    assert_true(pid >= 0);
    for (int i = 0; i < 200; i++) {
        struct id id = id_new();

        int result = network_slot_take(fixture->folder, 400, &id, &slot);

        if (pid == 0 && result < 0)
            _exit(1);
        assert_int_equal(result, 0);
    }
    if (pid == 0)
        _exit(0);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
    assert_int_equal(count_slots(fixture->folder), 400);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_slot_is_found_by_its_sandbox_until_it_is_released, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(all_slots_are_given_out_once, set_up, tear_down),
        cmocka_unit_test_setup_teardown(only_its_owner_releases_a_slot, set_up, tear_down),
        cmocka_unit_test_setup_teardown(half_made_records_are_harmless, set_up, tear_down),
        cmocka_unit_test_setup_teardown(strange_files_are_not_slots, set_up, tear_down),
        cmocka_unit_test_setup_teardown(programs_share_the_slots, set_up, tear_down),
    };

    return cmocka_run_group_tests_name("network_slot", tests, NULL, NULL);
}
