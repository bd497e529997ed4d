#include "keeper/layer/layer_pack.h"

#include <errno.h>
#include <limits.h>
#include <string.h>
#include <unistd.h>

#include "keeper/layer/layer_records.h"
#include "keeper/tree/attributes.h"
#include "keeper/tree/file_compare.h"
#include "keeper/tree/linked_files.h"
#include "keeper/tree/tree_pair.h"

struct pack {
    const struct tree *tree, *base; /* borrowed; base: NULL for none */
    struct layer_records records;
    struct linked_files newer_links, older_links;
    struct attributes newer, older; /* owned */
    struct file_compare compare;
    uint64_t skipped;
};

static int fail(const struct tree_step *step, int system, struct error *err)
{
    return tree_step_error(step, system, "pack", err);
}

static int tell_added(struct pack *pack, const struct tree_step *step, struct error *err)
{
    struct linked_file *file;
    int result;

    if (linked_files_find(&pack->newer_links, pack->tree, &step->status, &file, err) < 0)
        return -1;
    result = layer_records_add(&pack->records, step, file);
    return result < 0 ? fail(step, result, err) : 0;
}

/* --- comparing ------------------------------------------------------------------------------ */

static bool is_same_time(const struct timespec *left, const struct timespec *right)
{
    return left->tv_sec == right->tv_sec && left->tv_nsec == right->tv_nsec;
}

/* Whether nothing shows through a folder is told apart: the mark may be in a layer beneath. */
static bool is_plain_attribute(const char *attribute)
{
    return attributes_is_copied(attribute) && strcmp(attribute, TREE_OPAQUE) != 0;
}

/* Status and attributes. 1 same, 0 different, -errno. */
static int compare_about(struct pack *pack, const struct tree_step *newer,
                         const struct tree_step *older)
{
    const struct stat *left = &newer->status, *right = &older->status;

    if (left->st_mode != right->st_mode || left->st_uid != right->st_uid ||
        left->st_gid != right->st_gid || !is_same_time(&left->st_mtim, &right->st_mtim))
        return 0;
    if (S_ISDIR(left->st_mode) && tree_step_is_opaque(newer) != tree_step_is_opaque(older))
        return 0;
    return attributes_compare(&pack->newer, newer->folder, newer->at, &pack->older, older->folder,
                              older->at,
                              S_ISDIR(left->st_mode) ? is_plain_attribute : attributes_is_copied);
}

static int compare_targets(const struct tree_step *newer, const struct tree_step *older)
{
    char left[PATH_MAX], right[PATH_MAX];
    ssize_t left_length = readlinkat(newer->folder, newer->at, left, sizeof(left));
    ssize_t right_length = readlinkat(older->folder, older->at, right, sizeof(right));

    if (left_length < 0 || right_length < 0)
        return -errno;
    return left_length == right_length && memcmp(left, right, (size_t) left_length) == 0;
}

/* What an entry holds: content or target. 1 same, 0 different, -errno. */
static int compare_held(struct pack *pack, const struct tree_step *newer,
                        const struct tree_step *older)
{
    const struct stat *left = &newer->status, *right = &older->status;

    if ((left->st_mode & S_IFMT) != (right->st_mode & S_IFMT))
        return 0;
    if (S_ISLNK(left->st_mode))
        return compare_targets(newer, older);
    if (!S_ISREG(left->st_mode))
        return 1;
    if (left->st_size != right->st_size)
        return 0;
    return file_compare(&pack->compare, newer->folder, newer->at, older->folder, older->at,
                        (uint64_t) left->st_size);
}

/* Whether the same paths are one file in both trees. */
static bool has_same_names(const struct linked_file *newer, const struct linked_file *older)
{
    if (!newer || !older)
        return newer == older;
    return memcmp(newer->names, older->names, sizeof(newer->names)) == 0;
}

/* An entry that is no folder in either tree, and whose names are the same in both. */
static int tell_difference(struct pack *pack, const struct tree_step *newer,
                           const struct tree_step *older, struct linked_file *file)
{
    int held, about;

    /* What its first name was told is true of all of them. */
    if (file && file->is_kept)
        return 0;
    if (file && file->number)
        return layer_records_add(&pack->records, newer, file);
    held = compare_held(pack, newer, older);
    if (held < 0)
        return held;
    about = held ? compare_about(pack, newer, older) : 0;
    if (about < 0)
        return about;
    if (!held || (!about && !S_ISREG(newer->status.st_mode)))
        return layer_records_add(&pack->records, newer, file);
    if (file)
        file->is_kept = true;
    return about ? 0 : layer_records_change(&pack->records, newer);
}

static int compare_entries(struct pack *pack, const struct tree_step *newer,
                           const struct tree_step *older, struct error *err)
{
    struct linked_file *file, *before;
    int result;

    if (linked_files_find(&pack->newer_links, pack->tree, &newer->status, &file, err) < 0 ||
        linked_files_find(&pack->older_links, pack->base, &older->status, &before, err) < 0)
        return -1;
    if (has_same_names(file, before))
        result = tell_difference(pack, newer, older, file);
    else
        result = layer_records_add(&pack->records, newer, file);
    return result < 0 ? fail(newer, result, err) : 0;
}

/* Folders in both: at the end it is known whether something in it was told. */
static int compare_folders(struct pack *pack, const struct tree_step *newer,
                           const struct tree_step *older, struct error *err)
{
    int same;

    if (newer->event == TREE_ENTER)
        return 0;
    if (!layer_records_has(&pack->records, newer)) {
        same = newer->depth > 0 ? compare_about(pack, newer, older) : 0;
        if (same != 0)
            return same < 0 ? fail(newer, same, err) : 0;
        layer_records_enter(&pack->records, newer);
    }
    same = layer_records_leave(&pack->records, newer);
    return same < 0 ? fail(newer, same, err) : 0;
}

/* --- the whole ------------------------------------------------------------------------------ */

static int tell_newer(struct pack *pack, const struct tree_step *step, struct error *err)
{
    int result = 0;

    if (step->event == TREE_ENTRY)
        return tell_added(pack, step, err);
    if (step->event == TREE_ENTER)
        layer_records_enter(&pack->records, step);
    else
        result = layer_records_leave(&pack->records, step);
    return result < 0 ? fail(step, result, err) : 0;
}

static int tell_pair(struct pack *pack, struct tree_pair *pair, const struct tree_pair_step *step,
                     struct error *err)
{
    const struct tree_step *newer = step->newer, *older = step->older;

    /* What is in a folder that is gone goes with it. */
    if (older && older->event == TREE_ENTER && (!newer || newer->event != TREE_ENTER))
        tree_pair_skip_older(pair);
    if (!newer) {
        if (!step->is_inside)
            layer_records_remove(&pack->records, older);
        return 0;
    }
    if (!older || (newer->event == TREE_ENTRY) != (older->event == TREE_ENTRY))
        return tell_newer(pack, newer, err);
    return newer->event == TREE_ENTRY ? compare_entries(pack, newer, older, err)
                                      : compare_folders(pack, newer, older, err);
}

static int pack_delta(struct pack *pack, struct error *err)
{
    AUTO(tree_pair)
    struct tree_pair *pair = tree_pair_new(pack->tree, pack->base, layer_records_take);
    struct tree_pair_step step;

    while (!layer_writer_error(pack->records.writer)) {
        if (tree_pair_next(pair, &step, err) < 0)
            return -1;
        if (!step.newer && !step.older)
            break;
        if (tell_pair(pack, pair, &step, err) < 0)
            return -1;
    }
    return 0;
}

static int pack_all(struct pack *pack, struct error *err)
{
    AUTO(tree_walk) struct tree_walk *walk = tree_walk_new_tree(pack->tree);
    struct tree_step step;

    while (!layer_writer_error(pack->records.writer)) {
        if (tree_walk_next(walk, &step, err) < 0)
            return -1;
        if (step.event == TREE_END)
            break;
        if (!layer_records_take(&step.status))
            pack->skipped++;
        else if (tell_newer(pack, &step, err) < 0)
            return -1;
    }
    return 0;
}

static void report(const struct pack *pack, const struct layer_sums *sums, struct output *output)
{
    struct json_writer json;

    output_begin(output, &json);
    json_key(&json, "layer");
    json_begin_object(&json);
    layer_sums_tell(sums, &json);
    output_add_count(&json, "files", pack->records.files);
    output_add_count(&json, "entries", pack->records.entries);
    output_add_count(&json, "removed", pack->records.removed);
    output_add_count(&json, "skipped", pack->skipped);
    output_add_count(&json, "attributes_left_out", pack->records.attributes_left_out);
    json_end_object(&json);
    output_end(output, &json);
}

static int finish(struct pack *pack, struct output *output, struct error *err)
{
    struct layer_sums sums;
    int result = layer_writer_finish(pack->records.writer, &sums);

    if (result == -EPIPE)
        return error_set(err, ERR_CANCELLED, result, "write the layer");
    if (result < 0)
        return error_set(err, error_code_from_errno(result), result, "write the layer");
    report(pack, &sums, output);
    return 0;
}

static void pack_done(struct pack *pack)
{
    layer_records_done(&pack->records);
    linked_files_done(&pack->newer_links);
    linked_files_done(&pack->older_links);
    attributes_done(&pack->newer);
    attributes_done(&pack->older);
    file_compare_done(&pack->compare);
}

int layer_pack(const struct tree *tree, const struct tree *base, int data, struct output *output,
               struct error *err)
{
    bool is_delta = base != NULL;
    struct pack pack = {.tree = tree, .base = base};
    int result;

    layer_records_init(&pack.records, data, is_delta);
    attributes_init(&pack.newer);
    attributes_init(&pack.older);
    if (is_delta)
        file_compare_init(&pack.compare, tree->layers[0], base->layers[0]);
    result = is_delta ? pack_delta(&pack, err) : pack_all(&pack, err);
    if (result == 0)
        result = finish(&pack, output, err);
    pack_done(&pack);
    return result;
}
