#include <string.h>

#include "launcher/image/bind.h"
#include "sys/sys_test.h"

#define TEST_PATH_SIZE (SCRATCH_SIZE + 32)

/* A data folder, a run folder and a folder to bind, side by side. */
struct place {
    char scratch[SCRATCH_SIZE];
    char data[TEST_PATH_SIZE];
    char run[TEST_PATH_SIZE];
    char folder[TEST_PATH_SIZE];
    struct bind_registry *registry; /* owned */
};

static struct error err;

static void make_folder(const struct place *place, const char *name,
                        char ret_path[static TEST_PATH_SIZE])
{
    (void) snprintf(ret_path, TEST_PATH_SIZE, "%s/%s", place->scratch, name);
    assert_int_equal(mkdir(ret_path, 0755), 0);
    assert_int_equal(chmod(ret_path, 0755), 0);
}

static void make_place(struct place *place)
{
    make_scratch_in(SCRATCH_USUAL, place->scratch); /* nothing in /dev is taken */
    make_folder(place, "data", place->data);
    make_folder(place, "run", place->run);
    make_folder(place, "folder", place->folder);
    if (bind_registry_open(place->data, place->run, &place->registry, &err) < 0)
        fail_msg("%s", err.message);
}

static void end_place(struct place *place)
{
    bind_registry_free(place->registry);
    remove_scratch(place->scratch);
}

static void expect_same(int fd, const char *path)
{
    struct stat left, right;

    assert_int_equal(fstat(fd, &left), 0);
    assert_int_equal(stat(path, &right), 0);
    assert_int_equal(left.st_ino, right.st_ino);
    assert_int_equal(left.st_dev, right.st_dev);
    assert_true(is_close_on_exec(fd));
}

static void a_registered_bind_is_opened_listed_and_removed(void **state)
{
    AUTO(free) struct folder_entry *entries = NULL;
    struct place place;
    size_t count;
    int fd;

    (void) state;
    make_place(&place);
    if (bind_add(place.registry, "data-set", place.folder, &err) < 0)
        fail_msg("%s", err.message);
    assert_int_equal(bind_open(place.registry, "data-set", &fd, &err), 0);
    expect_same(fd, place.folder);
    (void) fd_close(fd);
    assert_int_equal(bind_list(place.registry, &entries, &count, &err), 0);
    assert_int_equal(count, 1);
    assert_string_equal(entries[0].name, "data-set");
    assert_string_equal(entries[0].folder, place.folder);
    assert_int_equal(bind_remove(place.registry, "data-set", &err), 0);
    assert_int_equal(bind_remove(place.registry, "data-set", &err), -1);
    assert_int_equal(err.code, ERR_NOT_FOUND);
    assert_int_equal(bind_open(place.registry, "data-set", &fd, &err), -1);
    assert_int_equal(err.code, ERR_NOT_FOUND);
    end_place(&place);
}

static void a_bind_by_hand_lasts_as_long_as_the_registry(void **state)
{
    char word[TEST_PATH_SIZE + 8];
    struct place place;
    int fd;

    (void) state;
    make_place(&place);
    /* Others may change it: root's word is enough. */
    assert_int_equal(chmod(place.folder, 0777), 0);
    (void) snprintf(word, sizeof(word), "mine=%s", place.folder);
    assert_int_equal(bind_registry_add_word(place.registry, word, &err), 0);
    assert_int_equal(bind_registry_add_word(place.registry, word, &err), -1);
    assert_int_equal(err.code, ERR_CONFLICT);
    assert_int_equal(bind_open(place.registry, "mine", &fd, &err), 0);
    expect_same(fd, place.folder);
    (void) fd_close(fd);
    bind_registry_free(place.registry);
    assert_int_equal(bind_registry_open(place.data, place.run, &place.registry, &err), 0);
    assert_int_equal(bind_open(place.registry, "mine", &fd, &err), -1);
    assert_int_equal(err.code, ERR_NOT_FOUND);
    end_place(&place);
}

static void a_bind_by_hand_keeps_its_folder_and_comes_before_a_registered_one(void **state)
{
    char other[TEST_PATH_SIZE], moved[TEST_PATH_SIZE];
    struct place place;
    int fd;

    (void) state;
    make_place(&place);
    make_folder(&place, "other", other);
    (void) snprintf(moved, sizeof(moved), "%s/moved", place.scratch);
    assert_int_equal(bind_add(place.registry, "x", other, &err), 0);
    assert_int_equal(bind_registry_add_now(place.registry, "x", place.folder, &err), 0);
    /* Exchanged behind our back: the descriptor goes on meaning the first. */
    assert_int_equal(rename(place.folder, moved), 0);
    assert_int_equal(symlink("/etc", place.folder), 0);
    assert_int_equal(bind_open(place.registry, "x", &fd, &err), 0);
    expect_same(fd, moved);
    (void) fd_close(fd);
    end_place(&place);
}

static void expect_refused(int result, const char *folder)
{
    if (result == 0 || (err.code != ERR_INVALID && err.code != ERR_NOT_FOUND))
        fail_msg("'%s' was not refused as it should: %s", folder, result ? err.message : "taken");
}

static void what_is_not_roots_to_show_is_refused_both_ways(void **state)
{
    static const char *const paths[] = {"/",           "/proc", "/proc/self", "/sys",
                                        "/sys/kernel", "/dev",  "/dev/shm",   "/no/such/folder"};
    struct place place;
    const char *own[4];
    char inner[TEST_PATH_SIZE], link[TEST_PATH_SIZE];

    (void) state;
    make_place(&place);
    make_folder(&place, "data/pool", inner);
    (void) snprintf(link, sizeof(link), "%s/link", place.scratch);
    assert_int_equal(symlink(place.data, link), 0);
    for (size_t i = 0; i < ARRAY_COUNT(paths); i++) {
        expect_refused(bind_add(place.registry, "x", paths[i], &err), paths[i]);
        expect_refused(bind_registry_add_now(place.registry, "x", paths[i], &err), paths[i]);
    }
    own[0] = place.data, own[1] = place.run, own[2] = inner, own[3] = link;
    for (size_t i = 0; i < ARRAY_COUNT(own); i++) {
        expect_refused(bind_add(place.registry, "x", own[i], &err), own[i]);
        expect_refused(bind_registry_add_now(place.registry, "x", own[i], &err), own[i]);
    }
    /* What contains them. */
    expect_refused(bind_registry_add_now(place.registry, "x", place.scratch, &err), place.scratch);
    end_place(&place);
}

static void the_strict_rules_are_for_registered_ones_only(void **state)
{
    struct place place;
    int fd;

    (void) state;
    make_place(&place);
    expect_refused(bind_add(place.registry, "x", "/etc", &err), "/etc");
    assert_int_equal(bind_registry_add_now(place.registry, "x", "/etc", &err), 0);
    assert_int_equal(chmod(place.folder, 0777), 0);
    expect_refused(bind_add(place.registry, "y", place.folder, &err), place.folder);
    /* What was fine once is checked again when it is used. */
    assert_int_equal(chmod(place.folder, 0755), 0);
    assert_int_equal(bind_add(place.registry, "y", place.folder, &err), 0);
    assert_int_equal(chmod(place.folder, 0777), 0);
    expect_refused(bind_open(place.registry, "y", &fd, &err), place.folder);
    end_place(&place);
}

static void words_and_names_follow_the_rule(void **state)
{
    static const char *const words[] = {"", "=", "a", "a=", "=/srv", "A=/etc", "../x=/etc"};
    char name[32];
    struct place place;

    (void) state;
    make_place(&place);
    for (size_t i = 0; i < ARRAY_COUNT(words); i++)
        expect_refused(bind_registry_add_word(place.registry, words[i], &err), words[i]);
    for (int i = 0; i < BIND_NOW_MAX; i++) {
        (void) snprintf(name, sizeof(name), "bind-%d", i);
        assert_int_equal(bind_registry_add_now(place.registry, name, place.folder, &err), 0);
    }
    assert_int_equal(bind_registry_add_now(place.registry, "more", place.folder, &err), -1);
    assert_int_equal(err.code, ERR_TOO_LARGE);
    end_place(&place);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_registered_bind_is_opened_listed_and_removed),
        cmocka_unit_test(a_bind_by_hand_lasts_as_long_as_the_registry),
        cmocka_unit_test(a_bind_by_hand_keeps_its_folder_and_comes_before_a_registered_one),
        cmocka_unit_test(what_is_not_roots_to_show_is_refused_both_ways),
        cmocka_unit_test(the_strict_rules_are_for_registered_ones_only),
        cmocka_unit_test(words_and_names_follow_the_rule),
    };

    return cmocka_run_group_tests_name("bind", tests, NULL, NULL);
}
