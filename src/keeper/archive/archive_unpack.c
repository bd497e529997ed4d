#include "keeper/archive/archive_unpack.h"

#include <string.h>

#include "base/format/tar_attributes.h"
#include "base/memory.h"
#include "base/table.h"
#include "json/name_escape.h"
#include "keeper/archive/archive_progress.h"
#include "keeper/archive/tar_stream.h"
#include "keeper/squash/squash_image.h"

#define SHOWN_MAX  60 /* of a path in a message */
#define PATH_START "./"

/* What a record of a pax header takes beside the attribute: its length and prefix. */
#define RECORD_SIZE (sizeof(TAR_ATTRIBUTE_PREFIX) + 16)

struct level {
    struct squash_folder folder;
    size_t path_length; /* of the folder's path */
};

/* A file that has further names: where its first one is. */
struct seen {
    struct table_link link; /* its hash is the number */
    uint32_t left;          /* names that may still come */
    char path[];
};

struct unpacking {
    struct squash_image *image;
    struct tar_stream tar;
    struct tar_attributes set; /* of the entry */
    size_t records;            /* what they will take */
    struct archive_progress progress;
    struct level *levels; /* owned */
    size_t depth, capacity;
    struct text path;  /* "./a/b" */
    uint8_t *visited;  /* owned: a bit for each inode */
    struct table seen; /* owned */
    size_t seen_size;
    uint64_t files, folders, bytes, sockets, devices, attributes;
};

static int write_error(int system, struct error *err)
{
    return error_set(err, system == -EPIPE ? ERR_CANCELLED : error_code_from_errno(system), system,
                     "write the stream");
}

static int broken(struct error *err, const char *what)
{
    return error_set(err, ERR_INVALID, 0, "the archive is broken: %s", what);
}

/* --- files with several names --------------------------------------------------------------- */

static struct seen *find_seen(const struct unpacking *unpacking, uint32_t number)
{
    struct table_link *at = table_find(&unpacking->seen, number);

    return at ? CONTAINER_OF(at, struct seen, link) : NULL;
}

static size_t seen_size(const struct seen *seen)
{
    return sizeof(*seen) + strlen(seen->path) + 1;
}

static void forget(struct unpacking *unpacking, struct seen *seen)
{
    table_remove(&unpacking->seen, &seen->link);
    unpacking->seen_size -= seen_size(seen);
    free(seen);
}

static int remember(struct unpacking *unpacking, const struct squash_inode *inode,
                    struct error *err)
{
    size_t length = unpacking->path.length + 1;
    struct seen *seen;

    if (inode->links < 2)
        return 0;
    if (unpacking->seen_size + sizeof(*seen) + length > ARCHIVE_LINKS_MAX)
        return error_set(err, ERR_TOO_LARGE, 0, "the archive has too many hard links");
    seen = mem_alloc(sizeof(*seen) + length);
    memcpy(seen->path, unpacking->path.data, length);
    seen->left = inode->links - 1;
    seen->link.hash = inode->number;
    table_add(&unpacking->seen, &seen->link);
    unpacking->seen_size += seen_size(seen);
    return 0;
}

/* Mark it as met. 1 when it was before: only a further name may meet it again. */
static bool meet(struct unpacking *unpacking, uint32_t number)
{
    uint8_t *byte = &unpacking->visited[number / 8], bit = (uint8_t) (1u << number % 8);
    bool before = *byte & bit;

    *byte |= bit;
    return before;
}

/* --- entries -------------------------------------------------------------------------------- */

static int take_attribute(void *context, const char *name, const uint8_t *value, size_t length,
                          struct error *err)
{
    struct unpacking *unpacking = context;
    size_t name_length = strlen(name), record = RECORD_SIZE + name_length + length;

    (void) err;
    if (strchr(name, '=') || record > ARCHIVE_RECORDS_MAX - unpacking->records ||
        !tar_attributes_add(&unpacking->set, name, name_length, (const char *) value, length)) {
        unpacking->attributes++;
        return 0;
    }
    unpacking->records += record;
    return 0;
}

static int take_bytes(void *context, const uint8_t *bytes, size_t length, struct error *err)
{
    struct unpacking *unpacking = context;
    int result = tar_stream_bytes(&unpacking->tar, bytes, length);

    if (result < 0)
        return write_error(result, err);
    unpacking->bytes += length;
    return archive_progress_tell(&unpacking->progress, unpacking->files, unpacking->bytes, err);
}

static int send(struct unpacking *unpacking, const struct squash_inode *inode, char type,
                const char *target, struct error *err)
{
    const struct tar_entry entry = {
        .type = type,
        .path = unpacking->path.data,
        .link = target,
        .size = type == TAR_FILE ? inode->size : 0,
        .mode = inode->mode,
        .uid = inode->uid,
        .gid = inode->gid,
        .mtime = {.tv_sec = inode->mtime},
        .attributes = &unpacking->set,
    };
    int result;

    text_clear(&unpacking->set.bytes);
    unpacking->records = 0;
    if (type != TAR_HARD_LINK &&
        squash_image_attributes(unpacking->image, inode, take_attribute, unpacking, err) < 0)
        return -1;
    result = tar_stream_entry(&unpacking->tar, &entry);
    return result < 0 ? write_error(result, err) : 0;
}

static int send_again(struct unpacking *unpacking, const struct squash_inode *inode,
                      struct error *err)
{
    struct seen *seen = find_seen(unpacking, inode->number);

    if (!seen)
        return broken(err, "a file has more names than it says");
    if (send(unpacking, inode, TAR_HARD_LINK, seen->path, err) < 0)
        return -1;
    if (--seen->left == 0)
        forget(unpacking, seen);
    return 0;
}

static int send_link(struct unpacking *unpacking, const struct squash_inode *inode,
                     struct error *err)
{
    char target[SQUASH_TARGET_MAX + 1];

    if (squash_image_target(unpacking->image, inode, target, err) < 0)
        return -1;
    return send(unpacking, inode, TAR_LINK, target, err);
}

static int send_file(struct unpacking *unpacking, const struct squash_inode *inode,
                     struct error *err)
{
    if (send(unpacking, inode, TAR_FILE, "", err) < 0)
        return -1;
    return squash_image_content(unpacking->image, inode, take_bytes, unpacking, err);
}

/* Anything but a folder. */
static int send_other(struct unpacking *unpacking, const struct squash_inode *inode,
                      struct error *err)
{
    bool again = meet(unpacking, inode->number);
    int result;

    if (inode->type == SQUASH_SOCKET || inode->type == SQUASH_BLOCK_DEVICE ||
        inode->type == SQUASH_CHARACTER_DEVICE) {
        *(inode->type == SQUASH_SOCKET ? &unpacking->sockets : &unpacking->devices) += 1;
        return 0;
    }
    unpacking->files++;
    if (again)
        return send_again(unpacking, inode, err);
    if (inode->type == SQUASH_FILE)
        result = send_file(unpacking, inode, err);
    else if (inode->type == SQUASH_LINK)
        result = send_link(unpacking, inode, err);
    else
        result = send(unpacking, inode, TAR_PIPE, "", err);
    return result < 0 ? -1 : remember(unpacking, inode, err);
}

/* --- folders -------------------------------------------------------------------------------- */

static void cut_path(struct unpacking *unpacking, size_t length)
{
    unpacking->path.length = length;
    unpacking->path.data[length] = '\0';
}

static int enter(struct unpacking *unpacking, const struct squash_inode *inode, struct error *err)
{
    struct level *level;

    if (meet(unpacking, inode->number))
        return broken(err, "a folder is in two places");
    unpacking->folders++;
    if (unpacking->depth == unpacking->capacity) {
        unpacking->capacity = unpacking->capacity ? unpacking->capacity * 2 : 32;
        unpacking->levels =
            mem_resize(unpacking->levels, unpacking->capacity * sizeof(*unpacking->levels));
    }
    if (send(unpacking, inode, TAR_FOLDER, "", err) < 0)
        return -1;
    text_append_char(&unpacking->path, '/'); /* what is in it follows */
    level = &unpacking->levels[unpacking->depth++];
    level->path_length = unpacking->path.length;
    squash_folder_init(&level->folder, inode);
    return 0;
}

static int visit(struct unpacking *unpacking, const struct squash_folder *entry, struct error *err)
{
    struct squash_inode inode;

    text_append(&unpacking->path, entry->name);
    if (unpacking->path.length > SQUASH_PATH_MAX + strlen(PATH_START))
        return error_set(err, ERR_INVALID, 0, "the archive has a path that is too long");
    if (squash_image_inode(unpacking->image, entry->place, &inode, err) < 0)
        return -1;
    if (inode.type != entry->type || inode.number != entry->number)
        return broken(err, "a name belongs to another file");
    if (inode.type == SQUASH_FOLDER)
        return enter(unpacking, &inode, err);
    return send_other(unpacking, &inode, err);
}

static int walk(struct unpacking *unpacking, struct error *err)
{
    while (unpacking->depth) {
        struct level *level = &unpacking->levels[unpacking->depth - 1];
        int more;

        cut_path(unpacking, level->path_length);
        more = squash_folder_next(unpacking->image, &level->folder, err);
        if (more < 0)
            return -1;
        if (more == 0)
            unpacking->depth--;
        else if (visit(unpacking, &level->folder, err) < 0 ||
                 archive_progress_tell(&unpacking->progress, unpacking->files, unpacking->bytes,
                                       err) < 0)
            return -1;
    }
    return 0;
}

/* --- the whole ------------------------------------------------------------------------------ */

static int unpack(struct unpacking *unpacking, struct error *err)
{
    const struct squash_superblock *superblock = squash_image_superblock(unpacking->image);
    struct squash_inode top;
    int result;

    if (superblock->inode_count > ARCHIVE_INODES_MAX)
        return error_set(err, ERR_TOO_LARGE, 0, "the archive has too many files");
    unpacking->visited = mem_alloc(superblock->inode_count / 8 + 1);
    if (squash_image_inode(unpacking->image, superblock->root, &top, err) < 0)
        return -1;
    if (top.type != SQUASH_FOLDER)
        return broken(err, "its top is no folder");
    text_append(&unpacking->path, ".");
    if (enter(unpacking, &top, err) < 0 || walk(unpacking, err) < 0) {
        AUTO(text) struct text shown = TEXT_INIT(SHOWN_MAX * NAME_ESCAPE_FACTOR);
        size_t length = unpacking->path.length;
        size_t hidden = length > SHOWN_MAX ? length - SHOWN_MAX : 0;

        name_escape(&shown, unpacking->path.data + hidden, length - hidden);
        return error_wrap(err, "unpack '%s%s'", hidden ? "..." : "", text_string(&shown));
    }
    result = tar_stream_end(&unpacking->tar);
    return result < 0 ? write_error(result, err) : 0;
}

static void tell(const struct unpacking *unpacking, struct output *output)
{
    struct json_writer json;

    output_begin(output, &json);
    json_key(&json, "unpacked");
    json_begin_object(&json);
    output_add_count(&json, "files", unpacking->files);
    output_add_count(&json, "folders", unpacking->folders);
    output_add_count(&json, "bytes", unpacking->bytes);
    output_add_count(&json, "sockets_left_out", unpacking->sockets);
    output_add_count(&json, "devices_left_out", unpacking->devices);
    output_add_count(&json, "attributes_left_out", unpacking->attributes);
    json_end_object(&json);
    output_end(output, &json);
}

static void done(struct unpacking *unpacking)
{
    for (size_t i = 0; i < unpacking->seen.bucket_count; i++) {
        struct table_link *next;

        for (struct table_link *at = unpacking->seen.buckets[i]; at; at = next) {
            next = at->next;
            free(CONTAINER_OF(at, struct seen, link));
        }
    }
    table_done(&unpacking->seen);
    free(unpacking->levels);
    free(unpacking->visited);
    text_done(&unpacking->path);
    tar_stream_done(&unpacking->tar);
    tar_attributes_done(&unpacking->set);
}

int archive_unpack(int file, int tar, struct output *output, struct error *err)
{
    AUTO(squash_image) struct squash_image *image = NULL;
    struct unpacking unpacking = {.path = TEXT_INIT(SQUASH_PATH_MAX + SQUASH_NAME_MAX + 8),
                                  .seen = TABLE_INIT,
                                  .set = TAR_ATTRIBUTES_INIT(ARCHIVE_RECORDS_MAX)};
    int result;

    if (squash_image_new(file, &image, err) < 0)
        return -1;
    unpacking.image = image;
    tar_stream_init(&unpacking.tar, tar);
    archive_progress_init(&unpacking.progress, output);
    result = unpack(&unpacking, err);
    if (result == 0)
        tell(&unpacking, output);
    done(&unpacking);
    return result;
}
