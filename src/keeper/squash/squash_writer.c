#include "keeper/squash/squash_writer.h"

#include <limits.h>
#include <string.h>
#include <sys/xattr.h>

#include "base/memory.h"
#include "keeper/squash/squash_writer_internal.h"
#include "sys/file/sys_file.h"

/* What loop devices want of a file's size. */
#define PADDING 4096

#define LZ4_VERSION 1
#define LZ4_IS_HC   1

struct id {
    struct table_link link; /* its hash is the id */
    uint16_t index;
};

struct squash_writer *squash_writer_new(int file, const struct squash_writer_options *options)
{
    struct squash_writer *writer = mem_alloc(sizeof(*writer));
    const struct squash_belt_options belt = {
        .compression = options->compression,
        .level = options->level,
        .block_size = SQUASH_BLOCK_SIZE,
        .threads = options->threads,
        .take = squash_writer_take,
        .owner = writer,
    };

    writer->file = file;
    writer->options = *options;
    writer->codec = squash_codec_new(options->compression, options->level, SQUASH_METADATA_SIZE);
    writer->belt = squash_belt_new(&belt);
    writer->buffer = squash_belt_buffer(writer->belt);
    writer->fragment = squash_belt_buffer(writer->belt);
    writer->id_list = mem_alloc_array(SQUASH_IDS_MAX, sizeof(*writer->id_list));
    squash_links_init(&writer->links);
    squash_xattrs_init(&writer->xattrs, writer->codec);
    attributes_init(&writer->attributes);
    squash_table_init(&writer->inodes, writer->codec);
    squash_table_init(&writer->folders, writer->codec);
    squash_table_init(&writer->fragments, writer->codec);
    writer->position = SQUASH_SUPERBLOCK_SIZE;
    if (options->compression == SQUASH_LZ4)
        writer->position += 2 + 8; /* its options, which readers insist on */
    return writer;
}

static void free_ids(struct squash_writer *writer)
{
    for (size_t i = 0; i < writer->ids.bucket_count; i++) {
        struct table_link *next;

        for (struct table_link *at = writer->ids.buckets[i]; at; at = next) {
            next = at->next;
            free(CONTAINER_OF(at, struct id, link));
        }
    }
    table_done(&writer->ids);
    free(writer->id_list);
}

void squash_writer_free(struct squash_writer *writer)
{
    if (!writer)
        return;
    squash_belt_free(writer->belt, squash_writer_drop);
    for (size_t i = 0; i < writer->open_count; i++) {
        squash_node_free(writer->open[i].node);
        squash_listing_done(&writer->open[i].listing);
    }
    free(writer->open);
    free(writer->parents);
    free(writer->buffer);
    free(writer->fragment);
    free_ids(writer);
    squash_links_done(&writer->links);
    squash_xattrs_done(&writer->xattrs);
    attributes_done(&writer->attributes);
    squash_table_done(&writer->inodes);
    squash_table_done(&writer->folders);
    squash_table_done(&writer->fragments);
    squash_codec_free(writer->codec);
    free(writer);
}

const struct squash_totals *squash_writer_totals(const struct squash_writer *writer)
{
    return &writer->totals;
}

/* --- what a node needs to know -------------------------------------------------------------- */

static int find_id(struct squash_writer *writer, uint32_t number, uint16_t *ret_index,
                   struct error *err)
{
    struct table_link *at = table_find(&writer->ids, number);
    struct id *id;

    if (at) {
        *ret_index = CONTAINER_OF(at, struct id, link)->index;
        return 0;
    }
    if (writer->id_count == SQUASH_IDS_MAX)
        return error_set(err, ERR_TOO_LARGE, 0, "the tree has too many owners for an archive");
    id = mem_alloc(sizeof(*id));
    id->link.hash = number;
    id->index = *ret_index = writer->id_count;
    table_add(&writer->ids, &id->link);
    writer->id_list[writer->id_count++] = number;
    return 0;
}

static uint32_t clamp_time(struct squash_writer *writer, int64_t seconds)
{
    uint32_t nearest = seconds < 0 ? 0 : seconds > UINT32_MAX ? UINT32_MAX : (uint32_t) seconds;

    writer->totals.times_changed += nearest != seconds;
    return nearest;
}

static bool is_kept(const char *name)
{
    if (strncmp(name, "user.overlay.", strlen("user.overlay.")) == 0)
        return false;
    return strncmp(name, "user.", strlen("user.")) == 0 || strcmp(name, "security.capability") == 0;
}

static int read_attributes(struct squash_writer *writer, const struct tree_step *step,
                           uint32_t *ret_index, struct error *err)
{
    struct attributes *attributes = &writer->attributes;
    int result = attributes_list(attributes, step->folder, step->at); /* and we stand there */

    for (size_t i = 0; result == 0 && i < attributes->count; i++) {
        const char *name = attributes->names[i];
        ssize_t length;

        if (!is_kept(name)) {
            writer->totals.attributes_left_out++;
            continue;
        }
        length = lgetxattr(step->at, name, attributes->value, ATTRIBUTES_VALUE_MAX);
        if (length < 0)
            result = -errno;
        else
            (void) squash_xattrs_add(&writer->xattrs, name, attributes->value, (size_t) length);
    }
    if (result == 0)
        result = squash_xattrs_finish(&writer->xattrs, ret_index);
    return result < 0 ? tree_step_error(step, result, "read the attributes of", err) : 0;
}

/* Everything but the content. */
static struct squash_node *new_node(struct squash_writer *writer, const struct tree_step *step,
                                    struct error *err)
{
    AUTO(squash_node) struct squash_node *node = squash_node_new(step->name, &step->status);

    if (step->path_length > SQUASH_PATH_MAX) {
        (void) tree_step_error(step, ENAMETOOLONG, "archive", err);
        return NULL;
    }
    if (writer->inode_count == UINT32_MAX - 1) {
        (void) error_set(err, ERR_TOO_LARGE, 0, "the tree has too many files for an archive");
        return NULL;
    }
    if (find_id(writer, step->status.st_uid, &node->uid, err) < 0 ||
        find_id(writer, step->status.st_gid, &node->gid, err) < 0 ||
        read_attributes(writer, step, &node->xattr, err) < 0)
        return NULL;
    node->mtime = clamp_time(writer, step->status.st_mtim.tv_sec);
    node->number = ++writer->inode_count;
    return TAKE_PTR(node);
}

static int read_target(const struct tree_step *step, struct squash_node *node, struct error *err)
{
    char target[SQUASH_TARGET_MAX + 1];
    ssize_t length = readlinkat(step->folder, step->at, target, sizeof(target));

    if (length < 0 || length > SQUASH_TARGET_MAX)
        return tree_step_error(step, length < 0 ? errno : ENAMETOOLONG, "read the link", err);
    node->target = mem_copy_bytes(target, (size_t) length);
    return 0;
}

/* --- steps ---------------------------------------------------------------------------------- */

static void push_parent(struct squash_writer *writer, uint32_t number)
{
    if (writer->depth == writer->depth_capacity) {
        writer->depth_capacity = writer->depth_capacity ? writer->depth_capacity * 2 : 64;
        writer->parents =
            mem_resize(writer->parents, writer->depth_capacity * sizeof(*writer->parents));
    }
    writer->parents[writer->depth++] = number;
}

int squash_writer_enter(struct squash_writer *writer, const struct tree_step *step,
                        struct error *err)
{
    AUTO(squash_node) struct squash_node *node = new_node(writer, step, err);
    uint32_t number;

    if (!node)
        return -1;
    number = node->number;
    if (writer->depth)
        node->parent = writer->parents[writer->depth - 1];
    else
        writer->made_at = node->mtime;
    if (squash_belt_put(writer->belt, SQUASH_PUT_ENTER, node, err) < 0)
        return -1;
    (void) TAKE_PTR(node);
    push_parent(writer, number);
    writer->totals.folders++;
    return 0;
}

int squash_writer_leave(struct squash_writer *writer, struct error *err)
{
    writer->depth--;
    return squash_belt_put(writer->belt, SQUASH_PUT_LEAVE, NULL, err);
}

static int add_again(struct squash_writer *writer, struct squash_link *link, const char *name,
                     struct error *err)
{
    size_t length = strlen(name);
    AUTO(free) struct squash_again *again = mem_alloc(sizeof(*again) + length + 1);

    again->link = link;
    again->name_length = length;
    memcpy(again->name, name, length + 1);
    squash_links_again(&writer->links, link);
    if (squash_belt_put(writer->belt, SQUASH_PUT_AGAIN, again, err) < 0) {
        squash_link_taken(link);
        return -1;
    }
    (void) TAKE_PTR(again);
    return 0;
}

static int add_first(struct squash_writer *writer, const struct tree_step *step, struct error *err)
{
    AUTO(squash_node) struct squash_node *node = new_node(writer, step, err);

    if (!node)
        return -1;
    if (node->type == SQUASH_LINK && read_target(step, node, err) < 0)
        return -1;
    if (node->type == SQUASH_FILE && squash_writer_content(writer, step, node, err) < 0)
        return -1;
    if (step->status.st_nlink > 1) {
        if (writer->links.table.count == SQUASH_LINKS_MAX)
            return error_set(err, ERR_TOO_LARGE, 0, "the tree has too many hard links");
        node->link = squash_links_add(&writer->links, &step->status);
    }
    if (squash_belt_put(writer->belt, SQUASH_PUT_NODE, node, err) < 0)
        return -1;
    (void) TAKE_PTR(node);
    return 0;
}

int squash_writer_add(struct squash_writer *writer, const struct tree_step *step, struct error *err)
{
    struct squash_link *link = NULL;

    if (step->status.st_nlink > 1)
        link = squash_links_find(&writer->links, &step->status);
    writer->totals.files++;
    if (link && step->path_length <= SQUASH_PATH_MAX)
        return add_again(writer, link, step->name, err);
    return add_first(writer, step, err);
}

/* --- the end -------------------------------------------------------------------------------- */

static int write_at(struct squash_writer *writer, const void *bytes, size_t size)
{
    int result = sys_file_pwrite_full(writer->file, bytes, size, (off_t) writer->position);

    writer->position += size;
    return result;
}

static int write_table(struct squash_writer *writer, struct squash_table *table,
                       uint64_t *ret_start)
{
    int result;

    squash_table_close(table);
    *ret_start = writer->position;
    result = squash_table_write(table, writer->file, writer->position);
    writer->position += table->size;
    return result;
}

/* A table, and behind it where each of its blocks is: that is where it is found. */
static int write_indexed(struct squash_writer *writer, struct squash_table *table,
                         uint64_t *ret_start)
{
    uint64_t blocks;
    int result = write_table(writer, table, &blocks);

    *ret_start = writer->position;
    for (size_t i = 0; result == 0 && i < table->block_count; i++) {
        uint8_t bytes[8];

        (void) squash_put64(bytes, blocks + table->starts[i]);
        result = write_at(writer, bytes, sizeof(bytes));
    }
    return result;
}

static int write_ids(struct squash_writer *writer, uint64_t *ret_start)
{
    AUTO(squash_table) struct squash_table table;

    squash_table_init(&table, writer->codec);
    for (size_t i = 0; i < writer->id_count; i++) {
        uint8_t bytes[4];

        (void) squash_put32(bytes, writer->id_list[i]);
        squash_table_append(&table, bytes, sizeof(bytes));
    }
    return write_indexed(writer, &table, ret_start);
}

static int write_start(struct squash_writer *writer, const struct squash_superblock *superblock)
{
    uint8_t bytes[SQUASH_SUPERBLOCK_SIZE + 2 + 8];
    size_t size = SQUASH_SUPERBLOCK_SIZE;

    squash_superblock_encode(superblock, bytes);
    if (writer->options.compression == SQUASH_LZ4) {
        uint8_t *at = squash_put16(bytes + size, 8 | SQUASH_METADATA_PLAIN);

        at = squash_put32(at, LZ4_VERSION);
        (void) squash_put32(at, writer->options.level > 1 ? LZ4_IS_HC : 0);
        size += 2 + 8;
    }
    return sys_file_pwrite_full(writer->file, bytes, size, 0);
}

static int write_end(struct squash_writer *writer)
{
    struct squash_superblock superblock = {
        .inode_count = writer->inode_count,
        .made_at = writer->made_at,
        .block_size = SQUASH_BLOCK_SIZE,
        .fragment_count = writer->fragment_count,
        .compression = (uint16_t) writer->options.compression,
        .id_count = writer->id_count,
        .root = writer->root,
        .export_table = SQUASH_NO_TABLE,
        .fragment_table = SQUASH_NO_TABLE,
    };
    int result = write_table(writer, &writer->inodes, &superblock.inode_table);

    if (result == 0)
        result = write_table(writer, &writer->folders, &superblock.folder_table);
    if (result == 0 && writer->fragment_count)
        result = write_indexed(writer, &writer->fragments, &superblock.fragment_table);
    if (result == 0)
        result = write_ids(writer, &superblock.id_table);
    if (result == 0)
        result = squash_xattrs_write(&writer->xattrs, writer->file, &writer->position,
                                     &superblock.xattr_table);
    superblock.bytes_used = writer->position;
    superblock.flags =
        (uint16_t) ((writer->options.compression == SQUASH_LZ4 ? SQUASH_FLAG_OPTIONS : 0) |
                    (writer->fragment_count ? 0 : SQUASH_FLAG_NO_FRAGMENTS) |
                    (writer->xattrs.count ? 0 : SQUASH_FLAG_NO_XATTRS));
    return result < 0 ? result : write_start(writer, &superblock);
}

int squash_writer_finish(struct squash_writer *writer, uint64_t *ret_size, struct error *err)
{
    uint64_t size;
    int result;

    if (squash_writer_flush_fragment(writer, err) < 0 || squash_belt_flush(writer->belt, err) < 0)
        return -1;
    result = write_end(writer);
    size = (writer->position + PADDING - 1) / PADDING * PADDING;
    if (result == 0 && ftruncate(writer->file, (off_t) size) < 0)
        result = -errno;
    if (result < 0)
        return error_set(err, error_code_from_errno(result), result, "write the archive");
    *ret_size = size;
    return 0;
}
