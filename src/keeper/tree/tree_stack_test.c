/* Trees of several layers: the kernel's overlay says what they mean. */
#include <sys/mount.h>
#include <sys/sysmacros.h>

#include "keeper/layer/layer_pack.h"
#include "keeper/tree/tree_copy.h"
#include "keeper/tree/tree_diff.h"
#include "keeper/tree/tree_test_kit.h"
#include "sys/mount/sys_mount_path.h"

#define LAYERS 4
#define PLACE  "/tmp/stack"

/* Few names, so that layers have the same ones. */
static void grow(struct numbers *numbers, int folder, int depth)
{
    for (int letter = 'a'; letter <= 'e'; letter++) {
        const char name[] = {(char) letter, '\0'};
        const char content[] = {(char) ('0' + number_below(numbers, 10)), '\0'};

        switch (number_below(numbers, 7)) {
        case 0:
        case 1:
            break;
        case 2:
            make_content(folder, name, content);
            CHECK_EQUAL(fchmodat(folder, name, (mode_t) (0600 | number_below(numbers, 0100)), 0),
                        0);
            break;
        case 3:
            CHECK_EQUAL(symlinkat(content, folder, name), 0);
            break;
        case 4:
            CHECK_EQUAL(mknodat(folder, name, S_IFCHR, makedev(0, 0)), 0);
            break;
        default: {
            AUTO(close) int inside = make_place(folder, name);

            if (depth < 3)
                grow(numbers, inside, depth + 1);
            if (number_below(numbers, 4) == 0)
                CHECK_EQUAL(fsetxattr(inside, TREE_OPAQUE, "y", 1, 0), 0);
            if (number_below(numbers, 3) == 0)
                CHECK_EQUAL(fsetxattr(inside, "user.own", content, 1, 0), 0);
        }
        }
    }
}

/* The image has no whiteouts and no marks that mean something. */
static void grow_image(struct numbers *numbers, int folder, int depth)
{
    for (int letter = 'a'; letter <= 'e'; letter++) {
        const char name[] = {(char) letter, '\0'};

        if (number_below(numbers, 2) == 0) {
            make_content(folder, name, "image");
        } else {
            AUTO(close) int inside = make_place(folder, name);

            if (depth < 3)
                grow_image(numbers, inside, depth + 1);
        }
    }
}

static void add_line(const struct tree_step *step, struct text *lines)
{
    char value[PATH_MAX] = "", own = '-';
    AUTO(close) int fd = -EBADF;

    CHECK_EQUAL(fchdir(step->folder), 0);
    (void) lgetxattr(step->at, "user.own", &own, 1);
    if (S_ISREG(step->status.st_mode)) {
        fd = openat(step->folder, step->at, O_RDONLY | O_CLOEXEC);
        CHECK(fd >= 0 && read(fd, value, sizeof(value) - 1) >= 0);
    } else if (S_ISLNK(step->status.st_mode)) {
        CHECK(readlinkat(step->folder, step->at, value, sizeof(value) - 1) > 0);
    }
    text_format(lines, "%s %o %lld.%09ld %c %s\n", step->path, step->status.st_mode,
                (long long) step->status.st_mtim.tv_sec, step->status.st_mtim.tv_nsec, own, value);
}

/* What shows. Names of whiteouts in folders that nothing lies under show, too, but not they
 * themselves: those are forgiven. */
static char *list_overlay(const char *lowers)
{
    AUTO(text) struct text lines = TEXT_INIT(SAID_MAX);
    AUTO(close) int merged = -EBADF;
    struct tree_step step = {.event = TREE_ENTER};
    struct error err = ERROR_INIT;
    struct tree_walk *walk;
    char options[512];

    (void) snprintf(options, sizeof(options), "lowerdir=%s,userxattr", lowers);
    CHECK_EQUAL(sys_mount_path_plain("overlay", PLACE "/merged", "overlay", MS_RDONLY, options), 0);
    merged = open_place(AT_FDCWD, PLACE "/merged");
    walk = tree_walk_new(merged);
    tree_walk_forgive(walk);
    while (step.event != TREE_END) {
        CHECK_EQUAL(tree_walk_next(walk, &step, &err), 0);
        if (step.event == TREE_ENTER || step.event == TREE_ENTRY)
            add_line(&step, &lines);
    }
    tree_walk_free(walk);
    merged = fd_close(merged);
    CHECK_EQUAL(chdir("/"), 0);
    CHECK_EQUAL(umount2(PLACE "/merged", 0), 0);
    return strdup(text_string(&lines));
}

static void make_stack(struct numbers *numbers, struct tree *tree)
{
    *tree = (struct tree){.count = 0};
    for (int i = 0; i < LAYERS; i++) {
        char path[64];

        (void) snprintf(path, sizeof(path), PLACE "/%d", i);
        CHECK_EQUAL(mkdir(path, 0755), 0);
        tree->layers[tree->count++] = open_place(AT_FDCWD, path);
        grow(numbers, tree->layers[i], 0);
    }
}

static int flatten(const struct tree *tree, const char *path)
{
    AUTO(free) char *said = NULL;
    struct error err = ERROR_INIT;
    int target;

    CHECK_EQUAL(mkdir(path, 0755), 0);
    target = open_place(AT_FDCWD, path);
    said = SAID(tree_copy(tree, target, output, &err));
    CHECK_EQUAL(said_result, 0);
    return target;
}

static void check_diffs(const struct tree *newer, const struct tree *older, int flat_newer,
                        int flat_older)
{
    struct error err = ERROR_INIT;
    AUTO(free) char *stacked = NULL, *flat = NULL;

    stacked = SAID(tree_diff(newer, older, output, &err));
    CHECK_EQUAL(said_result, 0);
    flat = SAID(tree_diff(TREE_OF(flat_newer), TREE_OF(flat_older), output, &err));
    CHECK_EQUAL(strcmp(stacked, flat), 0);
    CHECK(strlen(stacked) > 100);
}

static void check_packs(const struct tree *tree, const struct tree *base, int flat, int flat_base)
{
    AUTO(close) int null = open("/dev/null", O_WRONLY | O_CLOEXEC);
    struct error err = ERROR_INIT;
    AUTO(free) char *stacked = NULL, *single = NULL;

    stacked = SAID(layer_pack(tree, base, null, output, &err));
    CHECK_EQUAL(said_result, 0);
    single = SAID(layer_pack(TREE_OF(flat), base ? TREE_OF(flat_base) : NULL, null, output, &err));
    CHECK_EQUAL(strcmp(stacked, single), 0);
}

static void compare_with_kernel(uint64_t seed)
{
    struct numbers numbers = {seed * 40503};
    AUTO(close) int top = -EBADF, image = -EBADF, flat = -EBADF, flat_older = -EBADF;
    AUTO(free) char *stacked = NULL, *single = NULL;
    struct tree tree, older;

    CHECK_EQUAL(mkdir(PLACE, 0755), 0);
    CHECK_EQUAL(mkdir(PLACE "/merged", 0755), 0);
    CHECK_EQUAL(mkdir(PLACE "/image", 0755), 0);
    image = open_place(AT_FDCWD, PLACE "/image");
    grow_image(&numbers, image, 0);
    make_stack(&numbers, &tree);
    older = tree;
    for (older.count = 0; older.count + 1 < tree.count; older.count++)
        older.layers[older.count] = tree.layers[older.count + 1];
    flat = flatten(&tree, PLACE "/flat");
    flat_older = flatten(&older, PLACE "/older");
    stacked = list_overlay(PLACE "/0:" PLACE "/1:" PLACE "/2:" PLACE "/3:" PLACE "/image");
    single = list_overlay(PLACE "/flat:" PLACE "/image");
    if (strcmp(stacked, single) != 0)
        (void) fprintf(stderr, "seed %d:\n%s\n---\n%s\n", (int) seed, stacked, single);
    CHECK_EQUAL(strcmp(stacked, single), 0);
    check_diffs(&tree, &older, flat, flat_older);
    check_packs(&tree, NULL, flat, -EBADF);
    check_packs(&tree, &older, flat, flat_older);
    for (size_t i = 0; i < tree.count; i++)
        (void) close(tree.layers[i]);
    top = open_place(AT_FDCWD, "/tmp");
    CHECK_EQUAL(chdir("/"), 0);
    CHECK_EQUAL(sys_tree_delete(top, "stack"), 0);
}

static void compare_all(void)
{
    enter_private_mounts();
    if (sys_mount_path_new("tmpfs", "tmpfs", "/tmp", 0, NULL) < 0)
        _exit(CHILD_UNABLE);
    (void) umask(0);
    for (uint64_t seed = 1; seed <= 60; seed++)
        compare_with_kernel(seed);
}

static void stacks_mean_what_overlay_makes_of_them(void **state)
{
    (void) state;
    run_in_child(compare_all, NEEDS_MOUNTS);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(stacks_mean_what_overlay_makes_of_them),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
