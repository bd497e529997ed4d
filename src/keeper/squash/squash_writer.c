#include "keeper/squash/squash_writer.h"

#include <endian.h>
#include <errno.h>
#include <pthread.h>
#include <string.h>
#include <sys/sysmacros.h>
#include <sys/xattr.h>

#include "base/memory.h"
#include "keeper/squash/squash_writer_internal.h"

/* What loop devices want of a file's size. */
#define PADDING 4096

#define LZ4_VERSION      1
#define LZ4_IS_HC        1
#define LZ4_OPTIONS_SIZE 8

/* Enough for a thread to find the next one ready. */
#define BLOCKS_PER_THREAD 4

/* The library starts its threads with the default: 8 MB each, which count as memory. */
#define STACK_SIZE ((size_t) 512 << 10)

/* What the library needs for an attribute beside its name and value. */
#define ATTRIBUTE_SIZE ((size_t) 128)

/* --- new and free --------------------------------------------------------------------------- */

static void table_init_memory(struct squash_table *table, sqfs_compressor_t *compressor)
{
    squash_output_init_memory(&table->output);
    table->meta = sqfs_meta_writer_create(&table->output.base, compressor, 0);
}

static void table_free(struct squash_table *table)
{
    sqfs_destroy(table->meta);
    squash_output_done(&table->output);
}

/* Fewer threads where so many cannot be started. */
static int start_threads(struct squash_writer *writer)
{
    sqfs_block_processor_desc_t options = {
        .size = sizeof(options),
        .max_block_size = SQUASH_BLOCK_SIZE,
        .num_workers = writer->options.threads ? writer->options.threads : 1,
        .cmp = writer->compressor,
        .wr = &writer->block_writer,
    };
    pthread_attr_t attributes;
    int result;

    (void) pthread_attr_init(&attributes);
#ifndef __SANITIZE_THREAD__ /* it has more than that on each stack */
    (void) pthread_attr_setstacksize(&attributes, STACK_SIZE);
    (void) pthread_setattr_default_np(&attributes);
#endif
    (void) pthread_attr_destroy(&attributes);
    do {
        options.max_backlog = options.num_workers * BLOCKS_PER_THREAD;
        result = sqfs_block_processor_create_ex(&options, &writer->processor);
        options.num_workers /= 2;
    } while (result < 0 && options.num_workers);
    return result;
}

/* Behind the superblock lz4 has its options, which readers insist on. */
static uint64_t start_of(const struct squash_writer_options *options)
{
    return SQUASH_SUPERBLOCK_SIZE + (options->compression == SQUASH_LZ4 ? 2 + LZ4_OPTIONS_SIZE : 0);
}

int squash_writer_new(int file, const struct squash_writer_options *options,
                      struct squash_writer **ret_writer, struct error *err)
{
    AUTO(squash_writer) struct squash_writer *writer = mem_alloc(sizeof(*writer));

    writer->options = *options;
    squash_links_init(&writer->links);
    attributes_init(&writer->attributes);
    squash_output_init_file(&writer->output, file, start_of(options));
    writer->compressor =
        squash_compressor_new(options->compression, options->level, SQUASH_BLOCK_SIZE);
    writer->block_writer.write_data_block = squash_writer_take_block;
    writer->buffer = mem_alloc(SQUASH_BLOCK_SIZE);
    writer->fragment = mem_alloc(SQUASH_BLOCK_SIZE);
    table_init_memory(&writer->inodes, writer->compressor);
    table_init_memory(&writer->folders, writer->compressor);
    writer->folder_writer = sqfs_dir_writer_create(writer->folders.meta, 0);
    writer->fragments = sqfs_frag_table_create(0);
    writer->ids = sqfs_id_table_create(0);
    writer->xattrs = sqfs_xattr_writer_create(0);
    if (!writer->inodes.meta || !writer->folders.meta || !writer->folder_writer ||
        !writer->fragments || !writer->ids || !writer->xattrs)
        return squash_library_error(SQFS_ERROR_ALLOC, &writer->output, err);
    if (start_threads(writer) < 0)
        return error_set(err, ERR_UNAVAILABLE, 0, "cannot start a thread that packs the archive");
    *ret_writer = TAKE_PTR(writer);
    return 0;
}

void squash_node_free(struct squash_node *node)
{
    if (!node)
        return;
    free(node->inode);
    free(node);
}

/* The library frees blocks when they are written only. With an error nothing is, and no node is
 * looked at. */
static void let_go_of_blocks(struct squash_writer *writer)
{
    writer->output.error = ECANCELED;
    if (writer->processor)
        (void) sqfs_block_processor_sync(writer->processor); /* nobody waits for its result */
}

void squash_writer_free(struct squash_writer *writer)
{
    if (!writer)
        return;
    let_go_of_blocks(writer);
    sqfs_destroy(writer->processor); /* first: its threads use the compressor */
    for (size_t i = 0; i < writer->node_count; i++)
        squash_node_free(writer->nodes[i]);
    for (size_t i = 0; i < writer->open_count; i++) {
        squash_node_free(writer->open[i].node);
        text_done(&writer->open[i].listing);
    }
    sqfs_destroy(writer->folder_writer);
    sqfs_destroy(writer->fragments);
    sqfs_destroy(writer->ids);
    sqfs_destroy(writer->xattrs);
    table_free(&writer->inodes);
    table_free(&writer->folders);
    sqfs_destroy(writer->compressor);
    squash_links_done(&writer->links);
    attributes_done(&writer->attributes);
    free(writer->open);
    free(writer->parents);
    free(writer->buffer);
    free(writer->fragment);
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
    int result = sqfs_id_table_id_to_index(writer->ids, number, ret_index);

    if (result == SQFS_ERROR_OVERFLOW || (result == 0 && *ret_index >= SQUASH_IDS_MAX))
        return error_set(err, ERR_TOO_LARGE, 0, "the tree has too many owners for an archive");
    return result < 0 ? squash_library_error(result, &writer->output, err) : 0;
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

/* The set of attributes of a file, each different one stored once. */
static int add_attributes(struct squash_writer *writer, const struct tree_step *step,
                          uint32_t *ret_index, struct error *err)
{
    struct attributes *attributes = &writer->attributes;
    uint64_t size = 0;
    int result = sqfs_xattr_writer_begin(writer->xattrs, 0);

    for (size_t i = 0; result == 0 && i < attributes->count; i++) {
        const char *name = attributes->names[i];
        ssize_t length;

        if (!is_kept(name)) {
            writer->totals.attributes_left_out++;
            continue;
        }
        length = lgetxattr(step->at, name, attributes->value, ATTRIBUTES_VALUE_MAX);
        if (length < 0)
            return tree_step_error(step, errno, "read the attributes of", err);
        size += ATTRIBUTE_SIZE + strlen(name) + 2 * (size_t) length;
        result = sqfs_xattr_writer_add(writer->xattrs, name, attributes->value, (size_t) length);
    }
    if (result == 0)
        result = sqfs_xattr_writer_end(writer->xattrs, ret_index);
    if (result < 0)
        return squash_library_error(result, &writer->output, err);
    if (*ret_index != SQUASH_NONE && *ret_index >= writer->xattr_count) {
        writer->xattr_count = *ret_index + 1;
        writer->xattrs_size += size;
    }
    return writer->xattrs_size > SQUASH_TABLES_MAX ? squash_too_large(err, "attributes") : 0;
}

static int read_attributes(struct squash_writer *writer, const struct tree_step *step,
                           uint32_t *ret_index, struct error *err)
{
    int result = attributes_list(&writer->attributes, step->folder, step->at);

    *ret_index = SQUASH_NONE;
    if (result < 0)
        return tree_step_error(step, result, "read the attributes of", err);
    return writer->attributes.count ? add_attributes(writer, step, ret_index, err) : 0;
}

/* As the kernel writes them down: 8 bits of minor, 12 of major, the rest of minor. */
static uint32_t encode_device(dev_t device)
{
    return (uint32_t) ((minor(device) & 0xff) | (major(device) & 0xfff) << 8 |
                       (minor(device) & ~0xffu) << 12);
}

/* The extended kind of inode, which says everything; where the small one does too, it is written.
 * Behind it is what the type needs: sizes of blocks, or a link's target. */
static sqfs_inode_generic_t *inode_new(const struct stat *status, uint16_t type, size_t behind)
{
    sqfs_inode_generic_t *inode = mem_alloc(sizeof(*inode) + behind);
    uint32_t links = (uint32_t) status->st_nlink;

    inode->base.type = type;
    inode->base.mode = (uint16_t) (status->st_mode & 07777);
    inode->payload_bytes_available = inode->payload_bytes_used = (uint32_t) behind;
    if (S_ISREG(status->st_mode))
        inode->data.file_ext = (sqfs_inode_file_ext_t){.file_size = (uint64_t) status->st_size,
                                                       .nlink = links,
                                                       .fragment_idx = SQUASH_NONE,
                                                       .xattr_idx = SQUASH_NONE};
    else if (S_ISLNK(status->st_mode))
        inode->data.slink_ext = (sqfs_inode_slink_ext_t){
            .nlink = links, .target_size = (uint32_t) behind, .xattr_idx = SQUASH_NONE};
    else if (S_ISBLK(status->st_mode) || S_ISCHR(status->st_mode))
        inode->data.dev_ext = (sqfs_inode_dev_ext_t){
            .nlink = links, .devno = encode_device(status->st_rdev), .xattr_idx = SQUASH_NONE};
    else
        inode->data.ipc_ext = (sqfs_inode_ipc_ext_t){.nlink = links, .xattr_idx = SQUASH_NONE};
    return inode;
}

static uint16_t inode_type(mode_t mode)
{
    static const struct {
        mode_t format;
        uint16_t type;
    } types[] = {
        {S_IFDIR, SQFS_INODE_EXT_DIR},     {S_IFREG, SQFS_INODE_EXT_FILE},
        {S_IFLNK, SQFS_INODE_EXT_SLINK},   {S_IFBLK, SQFS_INODE_EXT_BDEV},
        {S_IFCHR, SQFS_INODE_EXT_CDEV},    {S_IFIFO, SQFS_INODE_EXT_FIFO},
        {S_IFSOCK, SQFS_INODE_EXT_SOCKET},
    };

    for (size_t i = 0; i < ARRAY_COUNT(types); i++)
        if (types[i].format == (mode & S_IFMT))
            return types[i].type;
    abort(); /* Linux has no other */
}

static struct squash_node *node_new(enum squash_node_kind kind, const char *name, mode_t mode)
{
    size_t size = strlen(name) + 1;
    struct squash_node *node = mem_alloc(sizeof(*node) + size);

    node->kind = kind;
    node->type = mode & S_IFMT;
    memcpy(node->name, name, size);
    return node;
}

static int fill_inode(struct squash_writer *writer, const struct tree_step *step,
                      struct squash_node *node, struct error *err)
{
    sqfs_inode_t *inode = &node->inode->base;

    if (find_id(writer, step->status.st_uid, &inode->uid_idx, err) < 0 ||
        find_id(writer, step->status.st_gid, &inode->gid_idx, err) < 0 ||
        read_attributes(writer, step, &node->xattr, err) < 0)
        return -1;
    inode->mod_time = clamp_time(writer, step->status.st_mtim.tv_sec);
    inode->inode_number = ++writer->inode_count;
    if (node->xattr != SQUASH_NONE && !S_ISDIR(node->type))
        (void) sqfs_inode_set_xattr_index(node->inode, node->xattr); /* it has the type for it */
    return 0;
}

/* Everything but the content. */
static struct squash_node *node_of_step(struct squash_writer *writer, const struct tree_step *step,
                                        size_t behind, struct error *err)
{
    const struct stat *status = &step->status;
    AUTO(squash_node) struct squash_node *node = NULL;

    if (step->path_length > SQUASH_PATH_MAX) {
        (void) tree_step_error(step, ENAMETOOLONG, "archive", err);
        return NULL;
    }
    if (writer->inode_count == UINT32_MAX - 1) {
        (void) squash_too_large(err, "files");
        return NULL;
    }
    node = node_new(S_ISDIR(status->st_mode) ? SQUASH_NODE_ENTER : SQUASH_NODE_OTHER, step->name,
                    status->st_mode);
    node->inode = inode_new(status, inode_type(status->st_mode), behind);
    return fill_inode(writer, step, node, err) < 0 ? NULL : TAKE_PTR(node);
}

/* --- steps ---------------------------------------------------------------------------------- */

/* The node is the writer's from here on, also after a failure. */
static int put_node(struct squash_writer *writer, struct squash_node *node, struct error *err)
{
    writer->nodes[writer->node_count++] = node;
    return writer->node_count == SQUASH_NODES_MAX ? squash_writer_take_nodes(writer, err) : 0;
}

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
    struct squash_node *node = node_of_step(writer, step, 0, err);

    if (!node)
        return -1;
    if (writer->depth)
        node->parent = writer->parents[writer->depth - 1];
    else
        writer->made_at = node->inode->base.mod_time;
    push_parent(writer, node->inode->base.inode_number);
    writer->totals.folders++;
    return put_node(writer, node, err);
}

int squash_writer_leave(struct squash_writer *writer, struct error *err)
{
    writer->depth--;
    return put_node(writer, node_new(SQUASH_NODE_LEAVE, "", S_IFDIR), err);
}

static struct squash_node *new_file(struct squash_writer *writer, const struct tree_step *step,
                                    struct error *err)
{
    uint64_t size = (uint64_t) step->status.st_size;
    uint64_t blocks = size < SQUASH_BLOCK_SIZE ? 0 : (size - 1) / SQUASH_BLOCK_SIZE + 1;
    AUTO(squash_node) struct squash_node *node = NULL;

    if (size > writer->options.file_max) {
        (void) tree_step_error(step, EFBIG, "archive", err);
        return NULL;
    }
    node = node_of_step(writer, step, blocks * sizeof(uint32_t), err);
    return node && squash_writer_content(writer, step, node, err) == 0 ? TAKE_PTR(node) : NULL;
}

static struct squash_node *new_link(struct squash_writer *writer, const struct tree_step *step,
                                    struct error *err)
{
    char target[SQUASH_TARGET_MAX + 1];
    ssize_t length = readlinkat(step->folder, step->at, target, sizeof(target));
    struct squash_node *node;

    if (length < 0 || length > SQUASH_TARGET_MAX) {
        (void) tree_step_error(step, length < 0 ? errno : ENAMETOOLONG, "read the link", err);
        return NULL;
    }
    node = node_of_step(writer, step, (size_t) length, err);
    if (!node)
        return NULL;
    memcpy(node->inode->extra, target, (size_t) length);
    return node;
}

static int add_first(struct squash_writer *writer, const struct tree_step *step, struct error *err)
{
    struct squash_node *node = S_ISREG(step->status.st_mode)   ? new_file(writer, step, err)
                               : S_ISLNK(step->status.st_mode) ? new_link(writer, step, err)
                                                               : node_of_step(writer, step, 0, err);

    if (!node)
        return -1;
    if (step->status.st_nlink > 1 && writer->links.table.count < SQUASH_LINKS_MAX)
        node->link = squash_links_add(&writer->links, &step->status);
    else if (step->status.st_nlink > 1) {
        squash_node_free(node);
        return squash_too_large(err, "hard links");
    }
    return put_node(writer, node, err);
}

static int add_again(struct squash_writer *writer, struct squash_link *link,
                     const struct tree_step *step, struct error *err)
{
    struct squash_node *node = node_new(SQUASH_NODE_AGAIN, step->name, step->status.st_mode);

    node->link = link;
    return put_node(writer, node, err);
}

int squash_writer_add(struct squash_writer *writer, const struct tree_step *step, struct error *err)
{
    struct squash_link *link = NULL;

    if (step->status.st_nlink > 1 && step->path_length <= SQUASH_PATH_MAX)
        link = squash_links_again(&writer->links, &step->status);
    writer->totals.files++;
    return link ? add_again(writer, link, step, err) : add_first(writer, step, err);
}

/* --- the end -------------------------------------------------------------------------------- */

/* Both tables begin where the file ends now. */
static int write_table(struct squash_writer *writer, struct squash_table *table,
                       uint64_t *ret_start)
{
    int result = sqfs_meta_writer_flush(table->meta);

    *ret_start = writer->output.size;
    if (result == 0)
        result = squash_output_append(&writer->output, table->output.bytes, table->output.size);
    return result;
}

static int write_lz4_options(struct squash_writer *writer)
{
    const struct {
        uint16_t header;
        uint32_t version, flags;
    } __attribute__((packed)) options = {
        .header = htole16(LZ4_OPTIONS_SIZE | SQUASH_METADATA_PLAIN),
        .version = htole32(LZ4_VERSION),
        .flags = htole32(writer->options.level > 1 ? LZ4_IS_HC : 0),
    };

    return writer->output.base.write_at(&writer->output.base, SQUASH_SUPERBLOCK_SIZE, &options,
                                        sizeof(options));
}

static int write_tables(struct squash_writer *writer, sqfs_super_t *superblock)
{
    sqfs_file_t *file = &writer->output.base;
    sqfs_compressor_t *compressor = writer->compressor;
    int result = write_table(writer, &writer->inodes, &superblock->inode_table_start);

    if (result == 0)
        result = write_table(writer, &writer->folders, &superblock->directory_table_start);
    if (result == 0)
        result = sqfs_frag_table_write(writer->fragments, file, superblock, compressor);
    if (result == 0)
        result = sqfs_id_table_write(writer->ids, file, superblock, compressor);
    if (result == 0)
        result = sqfs_xattr_writer_flush(writer->xattrs, file, superblock, compressor);
    return result;
}

static int write_end(struct squash_writer *writer)
{
    sqfs_super_t superblock;
    int result = sqfs_super_init(&superblock, SQUASH_BLOCK_SIZE, writer->made_at,
                                 (SQFS_COMPRESSOR) writer->options.compression);

    if (result == 0)
        result = write_tables(writer, &superblock);
    superblock.inode_count = writer->inode_count;
    superblock.root_inode_ref = writer->root;
    superblock.bytes_used = writer->output.size;
    if (result == 0 && writer->options.compression == SQUASH_LZ4) {
        superblock.flags |= SQFS_FLAG_COMPRESSOR_OPTIONS;
        result = write_lz4_options(writer);
    }
    return result < 0 ? result : sqfs_super_write(&superblock, &writer->output.base);
}

int squash_writer_finish(struct squash_writer *writer, uint64_t *ret_size, struct error *err)
{
    uint64_t size;
    int result;

    if (squash_writer_flush_fragment(writer, err) < 0 || squash_writer_take_nodes(writer, err) < 0)
        return -1;
    result = write_end(writer);
    if (result < 0)
        return squash_library_error(result, &writer->output, err);
    size = (writer->output.size + PADDING - 1) / PADDING * PADDING;
    if (ftruncate(writer->output.file, (off_t) size) < 0)
        return error_set(err, error_code_from_errno(errno), errno, "write the archive");
    *ret_size = size;
    return 0;
}
