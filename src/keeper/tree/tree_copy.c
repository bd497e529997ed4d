#include "keeper/tree/tree_copy.h"

#include <errno.h>
#include <linux/magic.h>
#include <sys/statfs.h>
#include <unistd.h>

#include "base/number.h"
#include "keeper/tree/folder_names.h"
#include "keeper/tree/folder_twins.h"
#include "keeper/tree/tree_copier.h"
#include "sys/file/sys_file.h"

#define SINCE_SIZE 24

static int check_empty(int target, struct error *err)
{
    AUTO(folder_names) struct folder_names names = FOLDER_NAMES_INIT;
    int result = folder_names_read(&names, target, "", FOLDER_NAMES_MIN);

    if (result < 0)
        return error_set(err, error_code_from_errno(result), result, "read the target");
    if (names.count > 0)
        return error_set(err, ERR_CONFLICT, 0, "the target is not empty");
    return 0;
}

/* A filesystem may say only now that there is no room, or that the disk failed. */
static int sync_target(const struct tree_copier *copier, struct error *err)
{
    int result = syncfs(copier->top) < 0 ? -errno : 0;

    return result < 0 ? error_set(err, error_code_from_errno(result), result, "sync the target")
                      : 0;
}

static int copy_steps(struct tree_copier *copier, const struct tree *tree, struct error *err)
{
    AUTO(tree_walk) struct tree_walk *walk = tree_walk_new_tree(tree);
    struct tree_step step = {.event = TREE_LEAVE};

    if (copier->is_live)
        tree_walk_forgive(walk);
    while (step.event != TREE_END) {
        if (tree_walk_next(walk, &step, err) < 0 ||
            (step.event != TREE_END && tree_copier_step(copier, &step, err) < 0))
            return -1;
    }
    return 0;
}

/* Once through the tree. */
static int copy_pass(struct tree_copier *copier, const struct tree *tree, struct error *err)
{
    struct error own = ERROR_INIT;
    int result = copy_steps(copier, tree, &own);
    int closed = tree_copier_end(copier);

    if (result < 0 && !tree_copier_is_passing(copier, -own.system)) {
        *err = own;
        return -1;
    }
    if (closed < 0)
        return error_set(err, error_code_from_errno(closed), closed, "tidy up the target");
    return copier->is_live ? 0 : tree_copier_finish_top(copier, tree->layers[0], err);
}

int tree_copy(const struct tree *tree, int target, struct output *output, struct error *err)
{
    AUTO(tree_copier) struct tree_copier copier;

    tree_copier_init(&copier, target);
    if (check_empty(target, err) < 0 || copy_pass(&copier, tree, err) < 0 ||
        sync_target(&copier, err) < 0)
        return -1;
    tree_copier_report(&copier, output);
    return 0;
}

/* --- while somebody works in it -------------------------------------------------------------- */

/* The times of files in memory do not change when they are written through a mapping. */
static bool tells_changes(int folder)
{
    struct statfs filesystem;

    return fstatfs(folder, &filesystem) == 0 && filesystem.f_type != TMPFS_MAGIC;
}

static int read_since(int input, struct timespec *ret_since, struct error *err)
{
    char line[SINCE_SIZE];
    size_t length = 0;
    uint64_t since;

    while (length < sizeof(line) && sys_file_read_full(input, line + length, 1) == 1 &&
           line[length] != '\n')
        length++;
    if (length == sizeof(line) ||
        number_parse_digits(line, length, INT64_MAX / 1000000, &since) < 0)
        return error_set(err, ERR_INVALID, 0, "the input does not begin with a time");
    *ret_since = (struct timespec){.tv_sec = (time_t) (since / 1000),
                                   .tv_nsec = (long) (since % 1000) * 1000000};
    return 0;
}

static int say_ready(struct output *output, struct error *err)
{
    struct json_writer json;
    int result;

    output_begin(output, &json);
    json_add_boolean(&json, "ready", true);
    output_end(output, &json);
    result = output_flush(output);
    return result < 0 ? error_set(err, ERR_CANCELLED, result, "write the report") : 0;
}

/* Until the input ends. */
static int wait_for_end(int input, struct error *err)
{
    char byte;
    ssize_t got = sys_file_read_full(input, &byte, 1);

    if (got == 0)
        return 0;
    return error_set(err, ERR_INVALID, got < 0 ? (int) got : 0, "wait for the end of the input");
}

int tree_copy_live(int folder, int target, int input, struct output *output, struct error *err)
{
    AUTO(folder_twins) struct folder_twins twins = FOLDER_TWINS_INIT;
    AUTO(tree_copier) struct tree_copier copier;
    struct timespec since;

    tree_copier_init(&copier, target);
    copier.twins = &twins;
    if (read_since(input, &since, err) < 0 || check_empty(target, err) < 0)
        return -1;
    /* From here on a write through a mapping is a fault, which changes the time. */
    if (tells_changes(folder)) {
        copier.is_live = true;
        if (sync_target(&copier, err) < 0 || copy_pass(&copier, TREE_OF(folder), err) < 0)
            return -1;
        copier.is_live = false;
    }
    if (say_ready(output, err) < 0 || wait_for_end(input, err) < 0)
        return -1;
    copier.since = &since;
    if (copy_pass(&copier, TREE_OF(folder), err) < 0)
        return -1;
    tree_copier_report(&copier, output);
    return 0;
}
