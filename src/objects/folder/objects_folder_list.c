/* Listing: a walk through folders in the order of whole keys, which is that of their levels. */
#include <errno.h>
#include <string.h>

#include "base/auto.h"
#include "base/memory.h"
#include "objects/folder/objects_folder_internal.h"
#include "objects/folder/objects_folder_level.h"
#include "objects/objects_transfer.h"

struct listing {
    struct folder *folder;
    struct objects_work *work;
    const struct object_query *query;
    size_t prefix_length;
    const char *after;             /* "": from the start */
    bool after_folder;             /* and that was a folder: nothing in it is wanted */
    char key[OBJECTS_KEY_MAX + 2]; /* where we are */
    size_t length;                 /* of the folder we are in, "/" included */
    const char *mark;              /* behind which names of this level are wanted; NULL: all */
    struct object_entry *entries;
    size_t count;
    bool is_full; /* and there would have been one more */
};

static bool is_folder(const char *key)
{
    size_t length = strlen(key);

    return length > 0 && key[length - 1] == '/';
}

static bool starts_with(const char *text, const char *start)
{
    return strncmp(text, start, strlen(start)) == 0;
}

/* Whether some key behind `after` can begin like this folder. */
static bool has_more_behind(const struct listing *listing, const char *folder)
{
    if (listing->after_folder && starts_with(folder, listing->after))
        return false;
    return strcmp(folder, listing->after) > 0 || starts_with(listing->after, folder);
}

static bool is_wanted(const struct listing *listing, const char *key)
{
    const char *prefix = listing->query->prefix;
    bool is_dir = is_folder(key);

    if (!starts_with(key, prefix) && !(is_dir && starts_with(prefix, key)))
        return false;
    if (is_dir)
        return has_more_behind(listing, key);
    return strcmp(key, listing->after) > 0 &&
           !(listing->after_folder && starts_with(key, listing->after));
}

/* A level's name as it is: an object whose last segment is empty has the key of its folder. */
static bool wants_name(void *context, const char *name)
{
    struct listing *listing = context;
    size_t length = strlen(name);

    if (listing->mark && strcmp(name, listing->mark) <= 0)
        return false;
    if (listing->length + length > OBJECTS_KEY_MAX)
        return false;
    memcpy(listing->key + listing->length, name, length + 1);
    if (length == 0) /* the object "a/", in the folder "a/" */
        return listing->length > 0 && starts_with(listing->key, listing->query->prefix) &&
               strcmp(listing->key, listing->after) > 0;
    return is_wanted(listing, listing->key);
}

static struct object_entry *next_entry(struct listing *listing)
{
    struct object_entry *entry;

    if (listing->count == listing->query->limit) {
        listing->is_full = true;
        return NULL;
    }
    entry = &listing->entries[listing->count++];
    entry->key = pool_copy_text(listing->work->pool, listing->key);
    return entry;
}

/* What is gone meanwhile, or damaged, is not there or has no tag. */
static int add_object(struct listing *listing)
{
    struct folder_label label = {.has_sum = false};
    AUTO(pool) struct pool pool = POOL_INIT;
    AUTO(close) int file = folder_open_key(listing->folder, listing->key);
    struct object_entry *entry;
    struct object_info info;
    struct stat status;
    int r;

    if (file == -ENOENT)
        return 0;
    if (file < 0)
        return file;
    if (fstat(file, &status) < 0)
        return -errno;
    entry = next_entry(listing);
    if (!entry)
        return 0;
    r = folder_label_read(file, &status, &pool, &label);
    folder_label_info(&label, &status, &info);
    entry->size = info.size;
    entry->modified_ms = info.modified_ms;
    if (r == 0)
        memcpy(entry->tag, info.tag, sizeof(entry->tag));
    return 0;
}

/* 1 when there is an object in it or further down; 0: none. `key` has room for more. */
static int holds_object(struct listing *listing, char *key, size_t length)
{
    AUTO(level) struct level level = {.names = NULL};
    int r = level_read(listing->folder, key, NULL, NULL, &level);

    if (r == 0 && level.has_object)
        return 1;
    for (size_t i = 0; r == 0 && i < level.count; i++) {
        size_t size = strlen(level.names[i]);

        if (length + size > OBJECTS_KEY_MAX)
            continue;
        memcpy(key + length, level.names[i], size + 1);
        r = holds_object(listing, key, length + size);
        key[length] = '\0';
    }
    return r;
}

static int walk(struct listing *listing);

/* The key is that of a folder: show it as one, or go in. */
static int visit_folder(struct listing *listing, size_t length)
{
    size_t before = listing->length;
    char key[sizeof(listing->key)];
    int r;

    if (!listing->query->folders || length <= listing->prefix_length) {
        listing->length = length;
        r = walk(listing);
        listing->length = before;
        return r;
    }
    memcpy(key, listing->key, length + 1);
    r = holds_object(listing, key, length);
    if (r == 1) {
        struct object_entry *entry = next_entry(listing);

        if (entry)
            entry->is_folder = true;
    }
    return r < 0 ? r : 0;
}

static int visit(struct listing *listing, const char *name)
{
    size_t size = strlen(name);

    memcpy(listing->key + listing->length, name, size + 1);
    if (is_folder(name))
        return visit_folder(listing, listing->length + size);
    return add_object(listing);
}

/* All of the folder whose key is the first `length` bytes of ours. */
static int walk(struct listing *listing)
{
    AUTO(free) char *mark = NULL;
    bool is_cut;
    int r = 0;

    do {
        AUTO(level) struct level level = {.names = NULL};

        if (objects_work_go_on(listing->work, NULL) < 0)
            return -ECANCELED;
        listing->key[listing->length] = '\0';
        {
            AUTO(free) char *prefix = mem_copy_text(listing->key);

            listing->mark = mark;
            r = level_read(listing->folder, prefix, wants_name, listing, &level);
        }
        for (size_t i = 0; r == 0 && i < level.count && !listing->is_full; i++)
            r = visit(listing, level.names[i]);
        is_cut = level.is_cut && !listing->is_full && r == 0;
        if (is_cut) {
            free(mark);
            mark = mem_copy_text(level.names[level.count - 1]);
        }
    } while (is_cut);
    return r;
}

/* The walk begins where the prefix's folder is: no need to look above. */
static void enter_prefix(struct listing *listing)
{
    const char *slash = strrchr(listing->query->prefix, '/');
    size_t length = slash ? (size_t) (slash - listing->query->prefix) + 1 : 0;

    memcpy(listing->key, listing->query->prefix, length);
    listing->length = length;
}

int folder_list(void *self, struct objects_work *work, const struct object_query *query,
                struct object_list *ret_list, struct error *err)
{
    struct listing listing = {
        .folder = self,
        .work = work,
        .query = query,
        .prefix_length = strlen(query->prefix),
        .after = query->after ? query->after : "",
        .entries = pool_alloc(work->pool, query->limit * sizeof(*listing.entries)),
    };
    int r;

    listing.after_folder =
        query->folders && is_folder(listing.after) && strlen(listing.after) > listing.prefix_length;
    enter_prefix(&listing);
    r = walk(&listing);
    if (r < 0)
        return folder_failure(self, "list", query->prefix, r, err);
    *ret_list = (struct object_list){
        .entries = listing.entries,
        .count = listing.count,
        .next = listing.is_full ? listing.entries[listing.count - 1].key : NULL,
    };
    return 0;
}
