#include "objects/folder/objects_folder_level.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "base/encoding/utf8.h"
#include "base/memory.h"

struct reader {
    struct level *level; /* room for twice LEVEL_MAX */
    level_wants *wants;
    void *context;
    bool is_for_one;                                /* the first object is enough */
    char name[OBJECTS_KEY_MAX + OBJECTS_PART_SIZE]; /* of the segment so far */
};

static int by_bytes(const void *a, const void *b)
{
    return strcmp(*(char *const *) a, *(char *const *) b);
}

/* Sort what was found, and keep the first ones. */
static void cut(struct level *level)
{
    qsort(level->names, level->count, sizeof(*level->names), by_bytes);
    level->is_cut = level->is_cut || level->count > LEVEL_MAX;
    while (level->count > LEVEL_MAX)
        free(level->names[--level->count]);
}

static void add(struct reader *reader, const char *name, bool is_folder)
{
    struct level *level = reader->level;

    /* Behind the last of those that are kept anyway. */
    if (level->is_cut && strcmp(name, level->names[LEVEL_MAX - 1]) > 0)
        return;
    if (reader->wants && !reader->wants(reader->context, name))
        return;
    level->names[level->count++] = mem_copy_text(name);
    level->has_object = level->has_object || !is_folder;
    if (level->count == (size_t) 2 * LEVEL_MAX)
        cut(level);
}

static int type_of(int parent, const struct dirent *entry)
{
    struct stat status;

    if (entry->d_type != DT_UNKNOWN)
        return entry->d_type;
    if (fstatat(parent, entry->d_name, &status, AT_SYMLINK_NOFOLLOW) < 0)
        return DT_UNKNOWN;
    return S_ISDIR(status.st_mode) ? DT_DIR : S_ISREG(status.st_mode) ? DT_REG : DT_UNKNOWN;
}

static int read_folder(struct reader *reader, int fd, size_t length);

/* What is no name of ours is passed over. */
static int read_entry(struct reader *reader, int parent, const struct dirent *entry, size_t length)
{
    int type = type_of(parent, entry);
    char part[OBJECTS_PART_SIZE];
    bool goes_on = false;
    int count = objects_key_part(entry->d_name, part, &goes_on);

    if (count < 0 || (type != DT_DIR && type != DT_REG) ||
        length + (size_t) count > OBJECTS_KEY_MAX)
        return 0;
    memcpy(reader->name + length, part, (size_t) count + 1);
    length += (size_t) count;
    if (goes_on && type == DT_DIR)
        return read_folder(reader, sys_file_open(parent, entry->d_name, FOLDER_FLAGS, 0), length);
    if (goes_on || !utf8_is_valid(reader->name, length))
        return 0;
    if (type == DT_DIR)
        memcpy(reader->name + length, "/", 2);
    add(reader, reader->name, type == DT_DIR);
    return 0;
}

/* Takes `fd`, which may be an error. The first `length` bytes of the name are known. */
static int read_folder(struct reader *reader, int fd, size_t length)
{
    DIR *entries = fd < 0 ? NULL : fdopendir(fd);
    struct dirent *entry;
    int r = 0;

    if (fd == -ENOENT || fd == -ENOTDIR)
        return 0;
    if (!entries) {
        r = fd < 0 ? fd : -errno;
        (void) fd_close(fd);
        return r;
    }
    do {
        errno = 0;
        entry = readdir(entries);
        r = entry ? read_entry(reader, fd, entry, length) : -errno;
    } while (entry && r == 0 && !(reader->is_for_one && reader->level->has_object));
    (void) closedir(entries);
    return r;
}

int level_read(struct folder *folder, const char *prefix, level_wants *wants, void *context,
               struct level *ret_level)
{
    AUTO(level)
    struct level level = {.names = mem_alloc_array((size_t) 2 * LEVEL_MAX, sizeof(char *))};
    struct reader reader = {
        .level = &level, .wants = wants, .context = context, .is_for_one = !wants};
    char path[OBJECTS_PATH_SIZE];
    size_t length = strlen(prefix);
    int r;

    if (length > 0) {
        AUTO(free) char *key = mem_copy_bytes(prefix, length - 1);

        objects_key_path(key, path);
    }
    r = read_folder(&reader, folder_open(folder, length ? path : NULL, false), 0);
    if (r < 0)
        return r;
    cut(&level);
    *ret_level = level;
    level = (struct level){.names = NULL};
    return 0;
}

void level_done(struct level *level)
{
    while (level->count > 0)
        free(level->names[--level->count]);
    free(level->names);
}
