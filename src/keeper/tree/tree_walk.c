#include "keeper/tree/tree_walk.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "base/memory.h"
#include "json/name_escape.h"
#include "keeper/tree/folder_names.h"
#include "sys/file/sys_file.h"

/* Bytes of a path that a message shows. */
#define SHOWN_MAX 60

#define FOLDER_FLAGS (O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_NONBLOCK)

/* Which layers have part in a folder: bit 0 is the topmost of the stack. */
typedef uint32_t layer_set;
_Static_assert(TREE_LAYERS_MAX <= 32, "a bit for each");

/* A folder on the way from the top to where we are. */
struct level {
    layer_set layers; /* never empty */
    bool is_opaque;
    size_t path_length;
    struct folder_names names;
    bool has_names; /* false: still to be read, or forgotten and to be read again */
};

/* What a folder of one layer is. */
struct identity {
    dev_t device;
    ino_t inode;
};

struct tree_walk {
    /* Owned: of each layer the deepest folder that it has on the way to the last level. */
    int folders[TREE_LAYERS_MAX];
    size_t count; /* of layers */
    struct level *levels;
    struct identity *identities; /* owned: `count` for each level */
    size_t depth;                /* levels in use */
    size_t capacity;
    struct text path;        /* to the entry of the last step */
    char last[NAME_MAX + 1]; /* the name in the last level that was handed out last */
    size_t names_read, names_kept;
    size_t kept;           /* bytes of names that the levels hold */
    size_t first_kept;     /* no level before this one holds any */
    enum tree_event event; /* the last one; TREE_END before the first */
    bool started;
    bool forgives; /* what vanishes */
    struct tree tree;
};

static struct tree_walk *new_walk(const struct tree *tree, size_t names_read, size_t names_kept)
{
    struct tree_walk *walk = mem_alloc(sizeof(*walk));

    walk->count = tree->count;
    for (size_t i = 0; i < walk->count; i++)
        walk->folders[i] = -EBADF;
    walk->path = (struct text) TEXT_INIT(TREE_WALK_PATH_MAX);
    walk->names_read = names_read;
    walk->names_kept = names_kept;
    walk->tree = *tree;
    return walk;
}

struct tree_walk *tree_walk_new_with(int folder, size_t names_read, size_t names_kept)
{
    return new_walk(TREE_OF(folder), names_read, names_kept);
}

struct tree_walk *tree_walk_new(int folder)
{
    return tree_walk_new_tree(TREE_OF(folder));
}

struct tree_walk *tree_walk_new_tree(const struct tree *tree)
{
    return new_walk(tree, TREE_WALK_NAMES_READ, TREE_WALK_NAMES_KEPT);
}

void tree_walk_free(struct tree_walk *walk)
{
    if (!walk)
        return;
    for (size_t i = 0; i < walk->depth; i++)
        folder_names_done(&walk->levels[i].names);
    free(walk->levels);
    free(walk->identities);
    text_done(&walk->path);
    for (size_t i = 0; i < walk->count; i++)
        (void) fd_close(walk->folders[i]);
    free(walk);
}

static struct level *last_level(struct tree_walk *walk)
{
    return &walk->levels[walk->depth - 1];
}

static bool has_layer(layer_set layers, size_t layer)
{
    return layers >> layer & 1;
}

static size_t topmost(layer_set layers)
{
    return (size_t) __builtin_ctz(layers);
}

static size_t lowest(layer_set layers)
{
    return 31 - (size_t) __builtin_clz(layers);
}

/* --- names ---------------------------------------------------------------------------------- */

static void forget_names(struct tree_walk *walk, struct level *level)
{
    walk->kept -= folder_names_size(&level->names);
    folder_names_done(&level->names);
}

/* The folders nearest to the top are the last we come back to. */
static void stay_within_bound(struct tree_walk *walk)
{
    while (walk->kept > walk->names_kept && walk->first_kept + 1 < walk->depth) {
        struct level *level = &walk->levels[walk->first_kept++];

        /* Those that are through need not be read again. */
        if (level->names.next < level->names.count || level->names.more)
            level->has_names = false;
        forget_names(walk, level);
    }
}

static int read_names(struct tree_walk *walk, struct level *level)
{
    int folders[TREE_LAYERS_MAX], result;
    size_t count = 0;

    for (size_t i = 0; i < walk->count; i++) {
        if (has_layer(level->layers, i))
            folders[count++] = walk->folders[i];
    }
    forget_names(walk, level);
    result = folder_names_read_all(&level->names, folders, count, walk->last, walk->names_read);
    if (result < 0)
        return result;
    level->has_names = true;
    walk->kept += folder_names_size(&level->names);
    if (walk->first_kept > walk->depth - 1)
        walk->first_kept = walk->depth - 1;
    stay_within_bound(walk);
    return 0;
}

/* The next name of the last level, NULL at its end. */
static int next_name(struct tree_walk *walk, const char **ret_name)
{
    struct level *level = last_level(walk);
    const char *name = level->has_names ? folder_names_next(&level->names) : NULL;

    if (!name && (!level->has_names || level->names.more)) {
        int result = read_names(walk, level);

        if (result < 0)
            return result;
        name = folder_names_next(&level->names);
    }
    if (name)
        (void) snprintf(walk->last, sizeof(walk->last), "%s", name);
    *ret_name = name ? walk->last : NULL;
    return 0;
}

/* --- where we are --------------------------------------------------------------------------- */

static void cut_path(struct tree_walk *walk, size_t length)
{
    walk->path.length = length;
    if (walk->path.data)
        walk->path.data[length] = '\0';
}

static int extend_path(struct tree_walk *walk, const char *name)
{
    if (walk->path.length)
        text_append_char(&walk->path, '/');
    text_append(&walk->path, name);
    return walk->path.overflowed ? -ENAMETOOLONG : 0;
}

static int push_level(struct tree_walk *walk, layer_set layers, bool is_opaque)
{
    if (walk->depth == TREE_WALK_DEPTH_MAX)
        return -ENAMETOOLONG;
    if (walk->depth == walk->capacity) {
        walk->capacity = walk->capacity ? walk->capacity * 2 : 64;
        walk->levels = mem_resize(walk->levels, walk->capacity * sizeof(*walk->levels));
        walk->identities =
            mem_resize(walk->identities, walk->capacity * walk->count * sizeof(*walk->identities));
    }
    walk->levels[walk->depth++] = (struct level){
        .layers = layers,
        .is_opaque = is_opaque,
        .path_length = walk->path.length,
    };
    return 0;
}

/* In one layer: `parent` is what lies above there. */
static int enter_layer(struct tree_walk *walk, size_t layer, int parent, const char *name)
{
    AUTO(close) int folder = sys_file_open(parent, name, FOLDER_FLAGS, 0);
    struct stat status;

    if (folder < 0)
        return folder;
    if (fstat(folder, &status) < 0)
        return -errno;
    walk->identities[(walk->depth - 1) * walk->count + layer] =
        (struct identity){status.st_dev, status.st_ino};
    (void) fd_close(walk->folders[layer]);
    walk->folders[layer] = TAKE_FD(folder);
    return 0;
}

static int rise_layer(struct tree_walk *walk, size_t layer)
{
    const struct identity *above = &walk->identities[(walk->depth - 2) * walk->count + layer];
    AUTO(close) int folder = sys_file_open(walk->folders[layer], "..", FOLDER_FLAGS, 0);
    struct stat status;

    if (folder < 0)
        return folder;
    if (fstat(folder, &status) < 0)
        return -errno;
    if (status.st_dev != above->device || status.st_ino != above->inode)
        return -ESTALE;
    (void) fd_close(walk->folders[layer]);
    walk->folders[layer] = TAKE_FD(folder);
    return 0;
}

/* Back to the folder above, which must be the one we came from. */
static int go_up(struct tree_walk *walk)
{
    layer_set layers = last_level(walk)->layers;
    int result = 0;

    for (size_t i = 0; result == 0 && i < walk->count; i++) {
        if (has_layer(layers, i))
            result = rise_layer(walk, i);
    }
    return result;
}

/* One that cannot be entered in all its layers was not entered at all. */
static int enter(struct tree_walk *walk, layer_set layers, bool is_opaque, const char *name,
                 struct stat *ret_status)
{
    int result = push_level(walk, layers, is_opaque);
    size_t at = 0;

    if (result < 0)
        return result;
    for (; result == 0 && at < walk->count; at++) {
        if (has_layer(layers, at))
            result = enter_layer(walk, at, name ? walk->folders[at] : walk->tree.layers[at],
                                 name ? name : ".");
    }
    if (result == 0 && fstat(walk->folders[topmost(layers)], ret_status) < 0)
        result = -errno;
    if (result == 0) {
        walk->last[0] = '\0';
        return 0;
    }
    for (size_t i = 0; i + 1 < at && walk->depth > 1; i++) {
        if (has_layer(layers, i) && rise_layer(walk, i) < 0)
            result = -ESTALE;
    }
    walk->depth--;
    return result;
}

static int pop_level(struct tree_walk *walk)
{
    int result = walk->depth > 1 ? go_up(walk) : 0;
    size_t start;

    if (result < 0)
        return result;
    forget_names(walk, last_level(walk));
    walk->depth--;
    if (walk->depth == 0)
        return 0;
    start = last_level(walk)->path_length;
    start += start > 0; /* the slash */
    (void) snprintf(walk->last, sizeof(walk->last), "%s", walk->path.data + start);
    cut_path(walk, last_level(walk)->path_length);
    return 0;
}

/* --- steps ---------------------------------------------------------------------------------- */

static void fill_step(struct tree_walk *walk, enum tree_event event, layer_set layers,
                      struct tree_step *step)
{
    const char *path = text_string(&walk->path);
    bool is_folder = event != TREE_ENTRY;
    size_t levels = walk->depth - is_folder; /* above it */
    size_t start = levels ? walk->levels[levels - 1].path_length : 0;

    walk->event = event;
    step->event = event;
    step->folder = walk->folders[topmost(layers)];
    step->lowest = walk->folders[lowest(layers)];
    step->is_opaque = is_folder && last_level(walk)->is_opaque;
    step->path = path;
    step->path_length = walk->path.length;
    step->depth = levels;
    step->name = path + start + (start > 0);
    step->at = step->lowest_at = is_folder ? "." : step->name;
}

static bool is_marked_opaque(int folder, const char *name)
{
    char value;

    return fchdir(folder) == 0 && lgetxattr(name, TREE_OPAQUE, &value, 1) == 1 && value == 'y';
}

/* What a name of the last level stands for: the layers that have part in it, and the status in the
 * topmost of them. Nothing shows through a file, an opaque folder, or a file beneath a folder. */
static int look_through(struct tree_walk *walk, const char *name, layer_set *ret_layers,
                        bool *ret_is_opaque, struct stat *ret_status)
{
    layer_set above = last_level(walk)->layers, layers = 0;
    bool is_opaque = false, is_folder = true;

    for (size_t i = 0; !is_opaque && i < walk->count; i++) {
        struct stat status;

        if (!has_layer(above, i))
            continue;
        if (fstatat(walk->folders[i], name, &status, AT_SYMLINK_NOFOLLOW) < 0) {
            if (errno == ENOENT)
                continue;
            return -errno;
        }
        if (layers == 0) {
            *ret_status = status;
            is_folder = S_ISDIR(status.st_mode);
        } else if (is_folder != S_ISDIR(status.st_mode) || S_ISCHR(status.st_mode)) {
            is_opaque = true;
            break;
        }
        layers |= (layer_set) 1 << i;
        if (S_ISCHR(status.st_mode))
            break; /* what a whiteout hides is not a part of it */
        if (is_folder && walk->count > 1)
            is_opaque = is_marked_opaque(walk->folders[i], name);
    }
    *ret_layers = layers;
    *ret_is_opaque = is_folder && is_opaque;
    return layers ? 0 : -ENOENT;
}

static int visit(struct tree_walk *walk, const char *name, struct tree_step *step)
{
    layer_set layers = 0;
    bool is_opaque = false;
    int result = extend_path(walk, name);

    if (result == 0)
        result = look_through(walk, name, &layers, &is_opaque, &step->status);
    if (result < 0)
        return result;
    if (!S_ISDIR(step->status.st_mode)) {
        fill_step(walk, TREE_ENTRY, layers, step);
        return 0;
    }
    result = enter(walk, layers, is_opaque, name, &step->status);
    if (result == 0)
        fill_step(walk, TREE_ENTER, layers, step);
    return result;
}

static int leave(struct tree_walk *walk, struct tree_step *step)
{
    layer_set layers = last_level(walk)->layers;

    if (fstat(walk->folders[topmost(layers)], &step->status) < 0)
        return -errno;
    fill_step(walk, TREE_LEAVE, layers, step);
    return 0;
}

static int start(struct tree_walk *walk, struct tree_step *step)
{
    layer_set all = (layer_set) ((UINT64_C(1) << walk->count) - 1);
    int result = enter(walk, all, false, NULL, &step->status);

    walk->started = true;
    if (result == 0)
        fill_step(walk, TREE_ENTER, all, step);
    return result;
}

static bool has_vanished(int result)
{
    return result == -ENOENT || result == -ENOTDIR || result == -ELOOP;
}

/* The next name of the last level that is still there, or the end of that level. */
static int go_on(struct tree_walk *walk, struct tree_step *step)
{
    const char *name;
    int result;

    do {
        cut_path(walk, last_level(walk)->path_length);
        result = next_name(walk, &name);
        if (result < 0)
            return result;
        result = name ? visit(walk, name, step) : leave(walk, step);
    } while (name && walk->forgives && has_vanished(result));
    return result;
}

static int take_step(struct tree_walk *walk, struct tree_step *step)
{
    int result = 0;

    if (!walk->started)
        return start(walk, step);
    if (walk->event == TREE_LEAVE && walk->depth > 0)
        result = pop_level(walk);
    if (result < 0)
        return result;
    if (walk->depth == 0) {
        step->event = TREE_END;
        return 0;
    }
    return go_on(walk, step);
}

int tree_walk_next(struct tree_walk *walk, struct tree_step *ret_step, struct error *err)
{
    struct tree_step step = {.event = TREE_END};
    int result = take_step(walk, &step);

    if (result < 0) {
        step.event = TREE_END;
        step.path = text_string(&walk->path);
        step.path_length = walk->path.length;
        return tree_step_error(&step, result, "read", err);
    }
    *ret_step = step;
    return 0;
}

void tree_walk_forgive(struct tree_walk *walk)
{
    walk->forgives = true;
}

void tree_walk_skip(struct tree_walk *walk)
{
    if (walk->event == TREE_ENTER)
        last_level(walk)->has_names = true; /* none of them */
}

bool tree_step_is_opaque(const struct tree_step *step)
{
    return step->is_opaque || is_marked_opaque(step->folder, step->at);
}

int tree_step_error(const struct tree_step *step, int system, const char *what, struct error *err)
{
    AUTO(text) struct text shown = TEXT_INIT(SHOWN_MAX * NAME_ESCAPE_FACTOR);
    size_t hidden = step->path_length > SHOWN_MAX ? step->path_length - SHOWN_MAX : 0;

    name_escape(&shown, step->path + hidden, step->path_length - hidden);
    return error_set(err, error_code_from_errno(system), system, "%s '%s%s'", what,
                     hidden ? "..." : "", step->path_length ? text_string(&shown) : ".");
}
