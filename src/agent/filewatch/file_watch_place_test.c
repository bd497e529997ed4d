#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "agent/filewatch/file_watch_place.h"
#include "base/memory.h"
#include "base/path.h"
#include "sys/file/sys_file.h"
#include "sys/file/sys_tree.h"

/* --- a real folder --------------------------------------------------------------------------- */

struct scene {
    char folder[64];
    char root[96];
};

static int set_up(void **state)
{
    struct scene *scene = mem_alloc(sizeof(*scene));
    const char *folder;
    int fd;

    (void) snprintf(scene->folder, sizeof(scene->folder), "/tmp/burrow-place-XXXXXX");
    folder = mkdtemp(scene->folder);
    if (!folder)
        return -1;
    (void) snprintf(scene->root, sizeof(scene->root), "%s/root", folder);
    fd = open(scene->folder, O_PATH | O_CLOEXEC);
    assert_int_equal(mkdirat(fd, "root", 0700) | mkdirat(fd, "root/a", 0700) |
                         mkdirat(fd, "root/a/b", 0700) | mkdirat(fd, "out", 0700),
                     0);
    assert_int_equal(sys_file_replace(fd, "root/a/file", "x", 1, 0600), 0);
    assert_int_equal(
        symlinkat("a/b", fd, "root/inside") | symlinkat("../out", fd, "root/outside") |
            symlinkat("a/file", fd, "root/to-file") | symlinkat("nowhere", fd, "root/dangling") |
            symlinkat("loop", fd, "root/loop") | mknodat(fd, "root/pipe", S_IFIFO | 0600, 0),
        0);
    (void) close(fd);
    *state = scene;
    return 0;
}

static int tear_down(void **state)
{
    struct scene *scene = *state;
    int tmp = open("/tmp", O_PATH | O_CLOEXEC);

    (void) sys_tree_delete(tmp, strrchr(scene->folder, '/') + 1);
    (void) close(tmp);
    free(scene);
    return 0;
}

static int find(const struct scene *scene, const char *path, struct watch_place *ret_place)
{
    AUTO(pool) struct pool pool = POOL_INIT;

    return watch_place_find(scene->root, path_resolve(&pool, scene->root, path), ret_place);
}

static void expect(const struct scene *scene, const char *path, const char *relative,
                   const char *only)
{
    struct watch_place place;

    assert_int_equal(find(scene, path, &place), 0);
    assert_string_equal(place.relative, relative);
    if (only)
        assert_string_equal(place.only, only);
    else
        assert_null(place.only);
    watch_place_done(&place);
}

static void folders_and_files_are_found_without_links(void **state)
{
    const struct scene *scene = *state;

    expect(scene, ".", "", NULL);
    expect(scene, "a/b", "a/b", NULL);
    expect(scene, "inside", "a/b", NULL);
    expect(scene, "a/file", "a", "file");
    expect(scene, "to-file", "a", "file");
    expect(scene, "pipe", "", "pipe");
}

static void what_leads_out_or_nowhere_is_refused(void **state)
{
    const struct scene *scene = *state;
    struct watch_place place;

    assert_int_equal(find(scene, "outside", &place), -EXDEV);
    assert_int_equal(find(scene, "..", &place), -EXDEV);
    assert_int_equal(find(scene, "missing", &place), -ENOENT);
    assert_int_equal(find(scene, "dangling", &place), -ENOENT);
    assert_int_equal(find(scene, "loop", &place), -ELOOP);
    assert_int_equal(find(scene, "a/file/x", &place), -ENOTDIR);
    assert_int_equal(watch_place_find("/no/such/root", "/no/such/root", &place), -ENOENT);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(folders_and_files_are_found_without_links, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(what_leads_out_or_nowhere_is_refused, set_up, tear_down),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
