#include "keeper/tree/linked_files.h"

#include <string.h>
#include <sys/sysmacros.h>

#include "base/encoding/sha256.h"
#include "base/memory.h"
#include "keeper/tree/tree_walk.h"

#define FIRST_CAPACITY 1024

/* The way to a folder, as a digest: a deep path would cost as much as it is long, each time. */
struct place {
    uint8_t digest[SHA256_SIZE];
};

struct scan {
    struct linked_files *files;
    struct place *places; /* owned: of the folders on the way */
    size_t capacity;
};

void linked_files_done(struct linked_files *files)
{
    free(files->places);
    *files = (struct linked_files) LINKED_FILES_INIT;
}

static bool may_have_several(const struct stat *status)
{
    bool is_whiteout = S_ISCHR(status->st_mode) && status->st_rdev == makedev(0, 0);

    return status->st_nlink > 1 && !S_ISDIR(status->st_mode) && !is_whiteout;
}

/* --- the table ------------------------------------------------------------------------------ */

/* The place of this inode, or the empty one where it belongs. */
static struct linked_file *find_place(const struct linked_files *files, uint64_t inode)
{
    size_t at = (size_t) (inode * UINT64_C(0x9e3779b97f4a7c15) >> 20) & (files->capacity - 1);

    while (files->places[at].inode && files->places[at].inode != inode)
        at = (at + 1) & (files->capacity - 1);
    return &files->places[at];
}

static void grow(struct linked_files *files)
{
    struct linked_files larger = {.capacity = files->capacity * 2, .used = files->used};

    if (larger.capacity == 0)
        larger.capacity = FIRST_CAPACITY;
    larger.places = mem_alloc_array(larger.capacity, sizeof(*larger.places));
    for (size_t i = 0; i < files->capacity; i++)
        if (files->places[i].inode)
            *find_place(&larger, files->places[i].inode) = files->places[i];
    free(files->places);
    *files = larger;
}

/* NULL when there are too many. */
static struct linked_file *add(struct linked_files *files, uint64_t inode)
{
    struct linked_file *file;

    if (files->capacity == 0 || files->used * 2 >= files->capacity)
        grow(files);
    file = find_place(files, inode);
    if (file->inode)
        return file;
    if (files->used == LINKED_FILES_MAX)
        return NULL;
    files->used++;
    file->inode = inode;
    return file;
}

/* --- the walk ------------------------------------------------------------------------------- */

static void add_name(struct sha256 *sha, const char *name)
{
    sha256_add(sha, name, strlen(name) + 1);
}

static void enter(struct scan *scan, const struct tree_step *step)
{
    struct sha256 sha;

    if (step->depth == scan->capacity) {
        scan->capacity = scan->capacity ? scan->capacity * 2 : 64;
        scan->places = mem_resize(scan->places, scan->capacity * sizeof(*scan->places));
    }
    sha256_init(&sha);
    if (step->depth > 0)
        sha256_add(&sha, scan->places[step->depth - 1].digest, SHA256_SIZE);
    add_name(&sha, step->name);
    sha256_finish(&sha, scan->places[step->depth].digest);
}

/* The names come in the order of the walk, so each is chained to those before. */
static int see(struct scan *scan, const struct tree_step *step, struct error *err)
{
    struct linked_file *file = add(scan->files, step->status.st_ino);
    uint8_t digest[SHA256_SIZE];
    struct sha256 sha;

    if (!file)
        return error_set(err, ERR_TOO_LARGE, 0, "more than %zu files have several names",
                         LINKED_FILES_MAX);
    sha256_init(&sha);
    sha256_add(&sha, file->names, sizeof(file->names));
    sha256_add(&sha, scan->places[step->depth - 1].digest, SHA256_SIZE);
    add_name(&sha, step->name);
    sha256_finish(&sha, digest);
    memcpy(file->names, digest, sizeof(file->names));
    file->count++;
    return 0;
}

static int walk(struct scan *scan, const struct tree *tree, struct error *err)
{
    AUTO(tree_walk) struct tree_walk *tree_walk = tree_walk_new_tree(tree);
    struct tree_step step;

    for (;;) {
        if (tree_walk_next(tree_walk, &step, err) < 0)
            return -1;
        if (step.event == TREE_END)
            return 0;
        if (step.event == TREE_ENTER)
            enter(scan, &step);
        else if (may_have_several(&step.status) && see(scan, &step, err) < 0)
            return -1;
    }
}

int linked_files_find(struct linked_files *files, const struct tree *tree,
                      const struct stat *status, struct linked_file **ret_file, struct error *err)
{
    struct scan scan = {.files = files};
    struct linked_file *file;
    int result = 0;

    *ret_file = NULL;
    if (!may_have_several(status))
        return 0;
    if (!files->is_scanned)
        result = walk(&scan, tree, err);
    free(scan.places);
    if (result < 0)
        return -1;
    files->is_scanned = true;
    if (files->capacity == 0)
        return 0;
    file = find_place(files, status->st_ino);
    /* Its other names may lie outside of the tree. */
    if (file->inode && file->count > 1)
        *ret_file = file;
    return 0;
}
