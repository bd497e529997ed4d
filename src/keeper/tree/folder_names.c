#include "keeper/tree/folder_names.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>

#include "base/memory.h"
#include "sys/file/sys_file.h"

/* What a name costs beside its bytes. */
#define NAME_COST (sizeof(uint32_t) + 1)

static size_t cost_of(const char *name)
{
    return strlen(name) + NAME_COST;
}

static size_t cost(const struct folder_names *names)
{
    return names->used + names->count * sizeof(*names->starts);
}

size_t folder_names_size(const struct folder_names *names)
{
    return names->room + names->capacity * sizeof(*names->starts);
}

void folder_names_done(struct folder_names *names)
{
    free(names->bytes);
    free(names->starts);
    *names = (struct folder_names) FOLDER_NAMES_INIT;
}

static const char *name_at(const struct folder_names *names, size_t index)
{
    return names->bytes + names->starts[index];
}

static void add(struct folder_names *names, const char *name)
{
    size_t size = strlen(name) + 1;

    if (!names->bytes || names->used + size > names->room) {
        names->room = (names->used + size) * 2;
        names->bytes = mem_resize(names->bytes, names->room);
    }
    if (!names->starts || names->count == names->capacity) {
        names->capacity = names->capacity ? names->capacity * 2 : 16;
        names->starts = mem_resize(names->starts, names->capacity * sizeof(*names->starts));
    }
    memcpy(names->bytes + names->used, name, size);
    names->starts[names->count++] = (uint32_t) names->used;
    names->used += size;
}

static int compare(const void *left, const void *right, void *bytes)
{
    return strcmp((const char *) bytes + *(const uint32_t *) left,
                  (const char *) bytes + *(const uint32_t *) right);
}

/* What several folders have is kept once; the bytes of the others stay until the next settling. */
static void sort(struct folder_names *names)
{
    size_t kept = 0;

    if (names->count > 1)
        qsort_r(names->starts, names->count, sizeof(*names->starts), compare, names->bytes);
    for (size_t i = 0; i < names->count; i++) {
        if (kept == 0 || strcmp(name_at(names, kept - 1), name_at(names, i)) != 0)
            names->starts[kept++] = names->starts[i];
    }
    names->count = kept;
}

/* Sort, and keep the smallest that fit in `limit`. */
static void settle(struct folder_names *names, size_t limit)
{
    struct folder_names kept = FOLDER_NAMES_INIT;

    sort(names);
    if (cost(names) <= limit)
        return;
    for (size_t i = 0; i < names->count; i++) {
        const char *name = name_at(names, i);

        if (kept.count > 0 && cost(&kept) + cost_of(name) > limit)
            break;
        add(&kept, name);
    }
    folder_names_done(names);
    *names = kept;
    names->more = true;
}

/* They may be kept for long, the room for growing was for reading. */
static void shrink(struct folder_names *names)
{
    if (names->count == 0)
        return; /* there is no room yet either */
    names->room = names->used;
    names->bytes = mem_resize(names->bytes, names->room);
    names->capacity = names->count;
    names->starts = mem_resize(names->starts, names->capacity * sizeof(*names->starts));
}

static bool is_dots(const char *name)
{
    return strcmp(name, ".") == 0 || strcmp(name, "..") == 0;
}

/* `last`: once there were too many, those behind it are left for later. */
static int read_all(struct folder_names *names, DIR *entries, const char *after, size_t limit,
                    char last[static NAME_MAX + 1])
{
    for (;;) {
        const struct dirent *entry;

        errno = 0;
        entry = readdir(entries);
        if (!entry)
            return -errno;
        if (is_dots(entry->d_name) || strcmp(entry->d_name, after) <= 0)
            continue;
        if (*last && strcmp(entry->d_name, last) > 0)
            continue;
        add(names, entry->d_name);
        if (cost(names) <= limit * 2)
            continue;
        settle(names, limit);
        if (names->more)
            (void) snprintf(last, NAME_MAX + 1, "%s", name_at(names, names->count - 1));
    }
}

AUTO_DEFINE_PTR(closedir, DIR, (void) closedir);

static int read_folder(struct folder_names *names, int folder, const char *after, size_t limit,
                       char last[static NAME_MAX + 1])
{
    int fd = sys_file_open(folder, ".", O_RDONLY | O_DIRECTORY, 0), result;
    AUTO(closedir) DIR *entries = fd < 0 ? NULL : fdopendir(fd);

    if (!entries) {
        result = fd < 0 ? fd : -errno;
        (void) fd_close(fd);
        return result;
    }
    return read_all(names, entries, after, limit, last);
}

int folder_names_read(struct folder_names *names, int folder, const char *after, size_t limit)
{
    return folder_names_read_all(names, &folder, 1, after, limit);
}

int folder_names_read_all(struct folder_names *names, const int *folders, size_t count,
                          const char *after, size_t limit)
{
    struct folder_names fresh = FOLDER_NAMES_INIT;
    char last[NAME_MAX + 1] = "";
    int result = limit < FOLDER_NAMES_MIN ? -EINVAL : 0;

    folder_names_done(names); /* first: there is to be room for one list, not two */
    for (size_t i = 0; result == 0 && i < count; i++)
        result = read_folder(&fresh, folders[i], after, limit, last);
    if (result < 0) {
        folder_names_done(&fresh);
        return result;
    }
    settle(&fresh, limit);
    shrink(&fresh);
    *names = fresh;
    return 0;
}

const char *folder_names_next(struct folder_names *names)
{
    return names->next < names->count ? name_at(names, names->next++) : NULL;
}
