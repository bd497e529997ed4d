#include <string.h>

#include "launcher/image/image.h"
#include "launcher/image/image_layers.h"
#include "sys/sys_test.h"

/* A registry, and a folder that can be an image, both in a scratch folder. */
struct place {
    char folder[SCRATCH_SIZE];
    char registry_path[SCRATCH_SIZE + 16];
    char image[SCRATCH_SIZE + 16];
    struct image_registry *registry; /* owned */
};

static struct error err;

static void make_place_in(const char *parent, struct place *place)
{
    make_scratch_in(parent, place->folder);
    (void) snprintf(place->registry_path, sizeof(place->registry_path), "%s/images", place->folder);
    (void) snprintf(place->image, sizeof(place->image), "%s/root", place->folder);
    assert_int_equal(mkdir(place->image, 0755), 0);
    assert_int_equal(chmod(place->image, 0755), 0);
    if (image_registry_open(place->registry_path, &place->registry, &err) < 0)
        fail_msg("%s", err.message);
}

static void make_place(struct place *place)
{
    make_place_in(SCRATCH_USUAL, place); /* nothing in /dev can be an image */
}

static void end_place(struct place *place)
{
    image_registry_free(place->registry);
    remove_scratch(place->folder);
}

static void names_follow_the_rule(void **state)
{
    static const char *const good[] = {"a", "0", "debian-12", "a.b_c-d", "host"};
    static const char *const bad[] = {"",   ".", "..",  ".host", "-a",
                                      "_a", "A", "a/b", "a b",   "\xc3"};
    char longest[IMAGE_NAME_MAX + 2];

    (void) state;
    for (size_t i = 0; i < ARRAY_COUNT(good); i++)
        assert_true(image_name_is_valid(good[i]));
    for (size_t i = 0; i < ARRAY_COUNT(bad); i++)
        assert_false(image_name_is_valid(bad[i]));
    memset(longest, 'a', sizeof(longest));
    longest[IMAGE_NAME_MAX] = '\0';
    assert_true(image_name_is_valid(longest));
    longest[IMAGE_NAME_MAX] = 'a';
    longest[IMAGE_NAME_MAX + 1] = '\0';
    assert_false(image_name_is_valid(longest));
}

static void an_image_is_added_opened_listed_and_removed(void **state)
{
    struct place place;
    AUTO(image_view) struct image_view view = IMAGE_VIEW_INIT;
    AUTO(free) struct folder_entry *entries = NULL;
    struct stat folder, lower;
    size_t count;

    (void) state;
    make_place(&place);
    assert_int_equal(image_open(place.registry, "mine", &view, &err), -1);
    assert_int_equal(err.code, ERR_NOT_FOUND);
    if (image_add(place.registry, "mine", place.image, &err) < 0)
        fail_msg("%s", err.message);
    assert_int_equal(image_add(place.registry, "also", place.image, &err), 0);
    /* Again is fine: the name leads to the new folder. */
    assert_int_equal(image_add(place.registry, "mine", place.image, &err), 0);
    assert_int_equal(image_open(place.registry, "mine", &view, &err), 0);
    assert_int_equal(view.mount_count, 0);
    assert_int_equal(fstat(view.lowers[0], &lower), 0);
    assert_int_equal(stat(place.image, &folder), 0);
    assert_int_equal(lower.st_ino, folder.st_ino);
    assert_true(is_close_on_exec(view.lowers[0]));
    assert_int_equal(image_list(place.registry, &entries, &count, &err), 0);
    assert_int_equal(count, 3);
    assert_string_equal(entries[0].name, "host");
    assert_string_equal(entries[1].name, "also");
    assert_string_equal(entries[2].name, "mine");
    assert_string_equal(entries[2].folder, place.image);
    assert_int_equal(image_remove(place.registry, "mine", &err), 0);
    assert_int_equal(image_remove(place.registry, "mine", &err), -1);
    assert_int_equal(err.code, ERR_NOT_FOUND);
    assert_int_equal(image_open(place.registry, "host", &view, &err), -1);
    assert_int_equal(err.code, ERR_UNAVAILABLE);
    end_place(&place);
}

static void expect_refused(const struct place *place, const char *folder)
{
    int r = image_add(place->registry, "x", folder, &err);

    if (r == 0 || (err.code != ERR_INVALID && err.code != ERR_NOT_FOUND))
        fail_msg("'%s' was not refused as it should: %s", folder, r ? err.message : "accepted");
}

static void places_of_the_host_are_refused(void **state)
{
    static const char *const paths[] = {
        "/",          "//",          "/etc",     "/root",   "/home",       "/proc",          "/sys",
        "/dev",       "/etc/ssl",    "/proc/1",  "/.",      "/etc/../",    "relative",       "",
        "/proc/self", "/sys/kernel", "/dev/shm", "/tmp/..", "/etc/passwd", "/no/such/folder"};
    struct place place;
    char path[SCRATCH_SIZE + 32];

    (void) state;
    make_place(&place);
    for (size_t i = 0; i < ARRAY_COUNT(paths); i++)
        expect_refused(&place, paths[i]);
    /* The registry itself, in it, and around it. */
    expect_refused(&place, place.registry_path);
    expect_refused(&place, place.folder);
    (void) snprintf(path, sizeof(path), "%s/inner", place.registry_path);
    assert_int_equal(mkdir(path, 0755), 0);
    expect_refused(&place, path);
    /* By a link, and something that is no folder. */
    (void) snprintf(path, sizeof(path), "%s/link", place.folder);
    assert_int_equal(symlink("/etc", path), 0);
    expect_refused(&place, path);
    assert_int_equal(unlink(path), 0);
    (void) snprintf(path, sizeof(path), "%s/fifo", place.folder);
    assert_int_equal(mkfifo(path, 0644), 0);
    expect_refused(&place, path);
    assert_int_equal(image_add(place.registry, "host", place.image, &err), -1);
    assert_int_equal(err.code, ERR_INVALID);
    assert_int_equal(image_add(place.registry, "../x", place.image, &err), -1);
    assert_int_equal(err.code, ERR_INVALID);
    end_place(&place);
}

static void folders_that_others_can_change_are_refused(void **state)
{
    struct place place;
    AUTO(image_view) struct image_view view = IMAGE_VIEW_INIT;
    char inner[SCRATCH_SIZE + 32];

    (void) state;
    if (geteuid() != 0)
        skip_without("root, to give files away");
    make_place(&place);
    assert_int_equal(chmod(place.image, 0775), 0);
    expect_refused(&place, place.image);
    assert_int_equal(chmod(place.image, 0757), 0);
    expect_refused(&place, place.image);
    assert_int_equal(chmod(place.image, 0755), 0);
    assert_int_equal(chown(place.image, 1000, 0), 0);
    expect_refused(&place, place.image);
    /* A folder above that somebody could put another in. */
    (void) snprintf(inner, sizeof(inner), "%s/inner", place.image);
    assert_int_equal(mkdir(inner, 0755), 0);
    expect_refused(&place, inner);
    assert_int_equal(chown(place.image, 0, 0), 0);
    assert_int_equal(image_add(place.registry, "x", inner, &err), 0);
    /* What was fine once is checked again when it is used. */
    assert_int_equal(chmod(place.image, 0777), 0);
    assert_int_equal(image_open(place.registry, "x", &view, &err), -1);
    assert_int_equal(err.code, ERR_INVALID);
    assert_int_equal(chmod(place.image, 0755), 0);
    assert_int_equal(image_open(place.registry, "x", &view, &err), 0);
    image_view_done(&view);
    assert_int_equal(rmdir(inner), 0);
    assert_int_equal(image_open(place.registry, "x", &view, &err), -1);
    assert_int_equal(err.code, ERR_NOT_FOUND);
    assert_int_equal(symlink("/etc", inner), 0);
    assert_int_equal(image_open(place.registry, "x", &view, &err), -1);
    assert_int_equal(err.code, ERR_INVALID);
    end_place(&place);
}

static void write_entry(const struct place *place, const char *name, const char *text)
{
    char path[SCRATCH_SIZE + 32];
    FILE *file;

    (void) snprintf(path, sizeof(path), "%s/%s", place->registry_path, name);
    file = fopen(path, "we");
    assert_non_null(file);
    assert_true(fputs(text, file) >= 0);
    assert_int_equal(fclose(file), 0);
    assert_int_equal(chmod(path, 0600), 0);
}

static void entries_are_not_trusted_blindly(void **state)
{
    static const char *const texts[] = {"", "\n", "/etc", "relative\n", "/a\n/b\n", "/etc\n"};
    struct place place;
    AUTO(image_view) struct image_view view = IMAGE_VIEW_INIT;
    AUTO(free) struct folder_entry *entries = NULL;
    char path[SCRATCH_SIZE + 32];
    size_t count;

    (void) state;
    make_place(&place);
    for (size_t i = 0; i < ARRAY_COUNT(texts); i++) {
        write_entry(&place, "x", texts[i]);
        assert_int_equal(image_open(place.registry, "x", &view, &err), -1);
        assert_int_equal(err.code, ERR_INVALID);
    }
    (void) snprintf(path, sizeof(path), "%s/x", place.registry_path);
    assert_int_equal(chmod(path, 0666), 0);
    assert_int_equal(image_open(place.registry, "x", &view, &err), -1);
    assert_int_equal(err.code, ERR_FORBIDDEN);
    assert_int_equal(unlink(path), 0);
    assert_int_equal(symlink("/etc/hostname", path), 0);
    assert_int_equal(image_open(place.registry, "x", &view, &err), -1);
    assert_int_equal(image_list(place.registry, &entries, &count, &err), 0);
    assert_int_equal(count, 1);
    image_registry_free(place.registry);
    assert_int_equal(chmod(place.registry_path, 0777), 0);
    assert_int_equal(image_registry_open(place.registry_path, &place.registry, &err), -1);
    assert_int_equal(err.code, ERR_FORBIDDEN);
    place.registry = NULL;
    end_place(&place);
}

#define LOWER "1111111111111111111111111111111111111111111111111111111111111111"
#define UPPER "2222222222222222222222222222222222222222222222222222222222222222"

static void put_image(const struct place *place, const char *name, const char *first,
                      const char *second)
{
    AUTO(wire_image) struct wire_image image = WIRE_IMAGE_INIT;

    assert_int_equal(wire_image_add(&image, WIRE_IMAGE_LAYER, first, &err), 0);
    if (second)
        assert_int_equal(wire_image_add(&image, WIRE_IMAGE_LAYER, second, &err), 0);
    assert_int_equal(wire_image_add(&image, WIRE_IMAGE_ENV, "A=b", &err), 0);
    assert_int_equal(wire_image_add(&image, WIRE_IMAGE_ENV, "BURROW_DIRECTORY=/x", &err), 0);
    assert_int_equal(wire_image_add(&image, WIRE_IMAGE_WORKDIR, "/srv", &err), 0);
    if (image_put(place->registry, name, &image, &err) < 0)
        fail_msg("%s", err.message);
}

static void an_imported_image_is_its_layers_the_upper_first(void **state)
{
    AUTO(image_view) struct image_view view = IMAGE_VIEW_INIT;
    AUTO(wire_image) struct wire_image image = WIRE_IMAGE_INIT;
    AUTO(free) struct folder_entry *entries = NULL;
    AUTO(close) int layers = -EBADF;
    struct stat expected, found;
    struct place place;
    size_t count;

    (void) state;
    make_place(&place);
    layers = image_layers_open(place.registry, &err);
    assert_true(layers >= 0);
    put_image(&place, "mine", LOWER, UPPER);
    assert_int_equal(image_open(place.registry, "mine", &view, &err), -1);
    assert_int_equal(err.code, ERR_NOT_FOUND);
    assert_int_equal(mkdirat(layers, LOWER, 0755), 0);
    assert_int_equal(mkdirat(layers, UPPER, 0755), 0);
    assert_int_equal(image_open(place.registry, "mine", &view, &err), 0);
    assert_int_equal(view.lower_count, 2);
    assert_int_equal(fstatat(layers, UPPER, &expected, 0), 0);
    assert_int_equal(fstat(view.lowers[0], &found), 0);
    assert_int_equal(expected.st_ino, found.st_ino);
    assert_string_equal(view.environment[0], "A=b");
    assert_string_equal(view.environment[1], "BURROW_DIRECTORY=/srv");
    assert_null(view.environment[2]);
    assert_int_equal(image_add(place.registry, "folder", place.image, &err), 0);
    assert_int_equal(image_list(place.registry, &entries, &count, &err), 0);
    assert_int_equal(count, 3);
    assert_string_equal(entries[1].name, "folder");
    assert_string_equal(entries[2].name, "mine");
    assert_string_equal(entries[2].folder, "");
    assert_int_equal(image_read(place.registry, "mine", &image, &err), 0);
    assert_int_equal(image.by_key[WIRE_IMAGE_LAYER].count, 2);
    assert_int_equal(image_read(place.registry, "folder", &image, &err), -1);
    assert_int_equal(err.code, ERR_INVALID);
    end_place(&place);
}

#define STEP IMAGE_STEP_PREFIX "00000000000000000000000000000000000000000000000000000000"

/* What a build has made so far: opened by its name, not listed, gone with prune. */
static void a_step_lies_on_its_base_and_is_not_listed(void **state)
{
    AUTO(image_view) struct image_view view = IMAGE_VIEW_INIT;
    AUTO(wire_image) struct wire_image image = WIRE_IMAGE_INIT;
    AUTO(free) struct folder_entry *entries = NULL;
    AUTO(close) int layers = -EBADF;
    struct stat expected, found;
    struct place place;
    size_t count;

    (void) state;
    make_place(&place);
    layers = image_layers_open(place.registry, &err);
    assert_int_equal(mkdirat(layers, UPPER, 0755), 0);
    assert_int_equal(wire_image_add(&image, WIRE_IMAGE_BASE, "folder", &err), 0);
    assert_int_equal(wire_image_add(&image, WIRE_IMAGE_LAYER, UPPER, &err), 0);
    assert_int_equal(image_put(place.registry, STEP, &image, &err), 0);
    assert_int_equal(image_open(place.registry, STEP, &view, &err), -1);
    assert_int_equal(err.code, ERR_NOT_FOUND);
    assert_int_equal(image_add(place.registry, "folder", place.image, &err), 0);
    assert_int_equal(image_open(place.registry, STEP, &view, &err), 0);
    assert_int_equal(view.lower_count, 3);
    assert_int_equal(stat(place.image, &expected), 0);
    assert_int_equal(fstat(view.lowers[1], &found), 0);
    assert_int_equal(expected.st_ino, found.st_ino);
    assert_int_equal(fstatat(view.lowers[2], "workspace", &found, 0), 0);
    assert_int_equal(found.st_mode, S_IFDIR | 0777);
    assert_int_equal(fstatat(view.lowers[2], "etc/resolv.conf", &found, 0), 0);
    assert_int_not_equal(found.st_size, 0);
    assert_int_equal(image_list(place.registry, &entries, &count, &err), 0);
    assert_int_equal(count, 2);
    assert_int_equal(image_add(place.registry, STEP, place.image, &err), -1);
    assert_int_equal(err.code, ERR_INVALID);
    assert_int_equal(image_check_name(place.registry, STEP, &err), -1);
    assert_int_equal(image_check_name(place.registry, IMAGE_HOST, &err), -1);
    assert_int_equal(image_check_name(place.registry, "A", &err), -1);
    assert_int_equal(image_check_name(place.registry, "step-1", &err), 0);
    assert_int_equal(image_layers_prune(place.registry, &count, &err), 0);
    assert_int_equal(count, 1);
    wire_image_done(&image);
    assert_int_equal(image_read(place.registry, STEP, &image, &err), -1);
    assert_int_equal(err.code, ERR_NOT_FOUND);
    end_place(&place);
}

/* What can be registered can be opened. */
static void as_many_layers_as_an_image_may_have_fit_on_a_base(void **state)
{
    AUTO(image_view) struct image_view view = IMAGE_VIEW_INIT, step = IMAGE_VIEW_INIT;
    AUTO(wire_image) struct wire_image image = WIRE_IMAGE_INIT;
    AUTO(close) int layers = -EBADF;
    struct place place;

    (void) state;
    make_place(&place);
    layers = image_layers_open(place.registry, &err);
    assert_int_equal(mkdirat(layers, UPPER, 0755), 0);
    assert_int_equal(image_add(place.registry, "folder", place.image, &err), 0);
    assert_int_equal(wire_image_add(&image, WIRE_IMAGE_BASE, "folder", &err), 0);
    for (int i = 0; i < WIRE_IMAGE_LAYERS_MAX; i++)
        assert_int_equal(wire_image_add(&image, WIRE_IMAGE_LAYER, UPPER, &err), 0);
    assert_int_equal(image_put(place.registry, "full", &image, &err), 0);
    assert_int_equal(image_put(place.registry, STEP, &image, &err), 0);
    if (image_open(place.registry, "full", &view, &err) < 0)
        fail_msg("%s", err.message);
    assert_int_equal(view.lower_count, WIRE_IMAGE_LAYERS_MAX + 1);
    if (image_open(place.registry, STEP, &step, &err) < 0)
        fail_msg("%s", err.message);
    assert_int_equal(step.lower_count, WIRE_IMAGE_LAYERS_MAX + 2);
    end_place(&place);
}

static void layers_that_no_image_has_are_pruned(void **state)
{
    AUTO(close) int layers = -EBADF;
    struct place place;
    struct stat status;
    size_t count;

    (void) state;
    make_place(&place);
    layers = image_layers_open(place.registry, &err);
    assert_int_equal(mkdirat(layers, LOWER, 0755), 0);
    assert_int_equal(mkdirat(layers, UPPER, 0755), 0);
    assert_int_equal(mkdirat(layers, ".new-x", 0755), 0);
    put_image(&place, "mine", LOWER, NULL);
    assert_int_equal(image_layers_prune(place.registry, &count, &err), 0);
    assert_int_equal(count, 2);
    assert_int_equal(fstatat(layers, LOWER, &status, 0), 0);
    assert_int_equal(fstatat(layers, UPPER, &status, 0), -1);
    end_place(&place);
}

/* Whose layers they are cannot be told then. */
static void nothing_is_pruned_while_an_entry_is_damaged(void **state)
{
    static const char *const damaged[] = {"", "burrow-image 1\nlayer x\n", "burrow-im",
                                          "/srv/a\n/srv/b\n"};
    AUTO(close) int layers = -EBADF;
    struct place place;
    struct stat status;
    size_t count;

    (void) state;
    make_place(&place);
    layers = image_layers_open(place.registry, &err);
    assert_int_equal(mkdirat(layers, UPPER, 0755), 0);
    assert_int_equal(image_add(place.registry, "folder", place.image, &err), 0);
    for (size_t i = 0; i < ARRAY_COUNT(damaged); i++) {
        write_entry(&place, "mine", damaged[i]);
        assert_int_equal(image_layers_prune(place.registry, &count, &err), -1);
        assert_int_equal(err.code, ERR_CONFLICT);
        assert_non_null(strstr(err.message, "'mine'"));
        assert_int_equal(fstatat(layers, UPPER, &status, 0), 0);
    }
    assert_int_equal(image_remove(place.registry, "mine", &err), 0);
    assert_int_equal(image_layers_prune(place.registry, &count, &err), 0);
    assert_int_equal(count, 1);
    end_place(&place);
}

static void prune_and_those_who_make_images_exclude_each_other(void **state)
{
    AUTO(close) int first = -EBADF, second = -EBADF, alone = -EBADF;
    struct place place;

    (void) state;
    make_place(&place);
    first = image_layers_hold(place.registry, &err);
    assert_true(first >= 0);
    second = image_layers_hold(place.registry, &err);
    assert_true(second >= 0);
    first = fd_close(first);
    assert_int_equal(image_layers_hold_alone(place.registry, &err), -1);
    assert_int_equal(err.code, ERR_CONFLICT);
    second = fd_close(second);
    alone = image_layers_hold_alone(place.registry, &err);
    assert_true(alone >= 0);
    end_place(&place);
}

/* Also of those that are too many to be listed. */
static void the_layers_of_every_image_stay(void **state)
{
    AUTO(close) int layers = -EBADF;
    struct place place;
    size_t count;

    (void) state;
    make_place_in(scratch_parent(), &place);
    layers = image_layers_open(place.registry, &err);
    for (int i = 0; i < FOLDERS_MAX + 16; i++) {
        char name[16], digest[WIRE_IMAGE_DIGEST_LENGTH + 1], entry[128];

        (void) snprintf(name, sizeof(name), "i%d", i);
        (void) snprintf(digest, sizeof(digest), "%064d", i);
        (void) snprintf(entry, sizeof(entry), "burrow-image 1\nlayer %s\n", digest);
        assert_int_equal(mkdirat(layers, digest, 0755), 0);
        write_entry(&place, name, entry);
    }
    assert_int_equal(image_layers_prune(place.registry, &count, &err), 0);
    assert_int_equal(count, 0);
    end_place(&place);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_follow_the_rule),
        cmocka_unit_test(an_image_is_added_opened_listed_and_removed),
        cmocka_unit_test(places_of_the_host_are_refused),
        cmocka_unit_test(folders_that_others_can_change_are_refused),
        cmocka_unit_test(entries_are_not_trusted_blindly),
        cmocka_unit_test(an_imported_image_is_its_layers_the_upper_first),
        cmocka_unit_test(a_step_lies_on_its_base_and_is_not_listed),
        cmocka_unit_test(as_many_layers_as_an_image_may_have_fit_on_a_base),
        cmocka_unit_test(layers_that_no_image_has_are_pruned),
        cmocka_unit_test(nothing_is_pruned_while_an_entry_is_damaged),
        cmocka_unit_test(prune_and_those_who_make_images_exclude_each_other),
        cmocka_unit_test(the_layers_of_every_image_stay),
    };

    return cmocka_run_group_tests_name("image", tests, NULL, NULL);
}
