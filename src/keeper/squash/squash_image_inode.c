#include <string.h>

#include "keeper/squash/squash_image_internal.h"

/* What follows the header of each kind, before anything of variable length. */
#define BODY_MAX 40

struct kind {
    uint8_t size; /* of the body */
    void (*read)(const uint8_t *body, struct squash_inode *inode);
};

/* --- bodies --------------------------------------------------------------------------------- */

static void read_folder(const uint8_t *body, struct squash_inode *inode)
{
    inode->listing.block = squash_get32(body);
    inode->links = squash_get32(body + 4);
    inode->listing_size = squash_get16(body + 8);
    inode->listing.offset = squash_get16(body + 10);
}

static void read_long_folder(const uint8_t *body, struct squash_inode *inode)
{
    inode->links = squash_get32(body);
    inode->listing_size = squash_get32(body + 4);
    inode->listing.block = squash_get32(body + 8);
    inode->listing.offset = squash_get16(body + 18);
    inode->xattr = squash_get32(body + 20);
}

static void read_file(const uint8_t *body, struct squash_inode *inode)
{
    inode->start = squash_get32(body);
    inode->fragment = squash_get32(body + 4);
    inode->fragment_offset = squash_get32(body + 8);
    inode->size = squash_get32(body + 12);
    inode->links = 1;
}

static void read_long_file(const uint8_t *body, struct squash_inode *inode)
{
    inode->start = squash_get64(body);
    inode->size = squash_get64(body + 8);
    inode->links = squash_get32(body + 24);
    inode->fragment = squash_get32(body + 28);
    inode->fragment_offset = squash_get32(body + 32);
    inode->xattr = squash_get32(body + 36);
}

static void read_link(const uint8_t *body, struct squash_inode *inode)
{
    inode->links = squash_get32(body);
    inode->size = squash_get32(body + 4);
}

static void read_device(const uint8_t *body, struct squash_inode *inode)
{
    inode->links = squash_get32(body);
    inode->device = squash_get32(body + 4);
}

static void read_long_device(const uint8_t *body, struct squash_inode *inode)
{
    read_device(body, inode);
    inode->xattr = squash_get32(body + 8);
}

static void read_pipe(const uint8_t *body, struct squash_inode *inode)
{
    inode->links = squash_get32(body);
}

static void read_long_pipe(const uint8_t *body, struct squash_inode *inode)
{
    inode->links = squash_get32(body);
    inode->xattr = squash_get32(body + 4);
}

static const struct kind kinds[] = {
    [SQUASH_FOLDER] = {16, read_folder},
    [SQUASH_FILE] = {16, read_file},
    [SQUASH_LINK] = {8, read_link},
    [SQUASH_BLOCK_DEVICE] = {8, read_device},
    [SQUASH_CHARACTER_DEVICE] = {8, read_device},
    [SQUASH_FIFO] = {4, read_pipe},
    [SQUASH_SOCKET] = {4, read_pipe},
    [SQUASH_FOLDER + SQUASH_EXTENDED] = {24, read_long_folder},
    [SQUASH_FILE + SQUASH_EXTENDED] = {40, read_long_file},
    [SQUASH_LINK + SQUASH_EXTENDED] = {8, read_link},
    [SQUASH_BLOCK_DEVICE + SQUASH_EXTENDED] = {12, read_long_device},
    [SQUASH_CHARACTER_DEVICE + SQUASH_EXTENDED] = {12, read_long_device},
    [SQUASH_FIFO + SQUASH_EXTENDED] = {8, read_long_pipe},
    [SQUASH_SOCKET + SQUASH_EXTENDED] = {8, read_long_pipe},
};

/* --- the inode ------------------------------------------------------------------------------ */

static int read_header(struct squash_image *image, const uint8_t *header,
                       struct squash_inode *inode, struct error *err)
{
    uint16_t uid = squash_get16(header + 4), gid = squash_get16(header + 6);

    if (uid >= image->superblock.id_count || gid >= image->superblock.id_count)
        return squash_broken(err, "an owner is not in its table");
    inode->mode = squash_get16(header + 2) & 07777;
    inode->uid = image->ids[uid];
    inode->gid = image->ids[gid];
    inode->mtime = squash_get32(header + 8);
    inode->number = squash_get32(header + 12);
    if (inode->number == 0 || inode->number > image->superblock.inode_count)
        return squash_broken(err, "an inode has a wrong number");
    return 0;
}

/* The attributes of an extended link stand behind its target. */
static int read_link_xattr(struct squash_image *image, struct squash_inode *inode,
                           struct error *err)
{
    struct squash_cursor cursor = inode->rest;
    char target[SQUASH_TARGET_MAX];
    uint8_t bytes[4];

    if (squash_image_metadata(image, &cursor, target, (size_t) inode->size, err) < 0 ||
        squash_image_metadata(image, &cursor, bytes, sizeof(bytes), err) < 0)
        return -1;
    inode->xattr = squash_get32(bytes);
    return 0;
}

static int check(struct squash_image *image, struct squash_inode *inode, bool is_extended,
                 struct error *err)
{
    if (inode->type == SQUASH_FOLDER) {
        if (inode->listing_size < SQUASH_FOLDER_LISTING_BASE)
            return squash_broken(err, "a folder has a wrong size");
        inode->listing_size -= SQUASH_FOLDER_LISTING_BASE;
        inode->listing.block += image->superblock.folder_table;
        inode->listing.end = image->superblock.bytes_used;
    }
    if (inode->type == SQUASH_FILE && inode->size > INT64_MAX)
        return squash_broken(err, "a file has a wrong size");
    if (inode->type != SQUASH_LINK)
        return 0;
    if (inode->size == 0 || inode->size > SQUASH_TARGET_MAX)
        return squash_broken(err, "a link has a wrong size");
    return is_extended ? read_link_xattr(image, inode, err) : 0;
}

int squash_image_inode(struct squash_image *image, uint64_t place, struct squash_inode *ret_inode,
                       struct error *err)
{
    struct squash_cursor cursor = {.end = image->superblock.folder_table,
                                   .offset = (uint32_t) (place & 0xffff)};
    struct squash_inode inode = {.xattr = SQUASH_NONE, .fragment = SQUASH_NONE};
    uint8_t header[SQUASH_INODE_HEADER_SIZE], body[BODY_MAX];
    bool is_extended;
    uint16_t type;

    cursor.block = image->superblock.inode_table + (place >> 16);
    if (squash_image_metadata(image, &cursor, header, sizeof(header), err) < 0 ||
        read_header(image, header, &inode, err) < 0)
        return -1;
    type = squash_get16(header);
    if (type >= ARRAY_COUNT(kinds) || !kinds[type].read)
        return squash_broken(err, "an inode is of an unknown type");
    if (squash_image_metadata(image, &cursor, body, kinds[type].size, err) < 0)
        return -1;
    is_extended = type > SQUASH_EXTENDED;
    inode.type = (enum squash_type)(is_extended ? type - SQUASH_EXTENDED : type);
    inode.rest = cursor;
    kinds[type].read(body, &inode);
    if (check(image, &inode, is_extended, err) < 0)
        return -1;
    *ret_inode = inode;
    return 0;
}

int squash_image_target(struct squash_image *image, const struct squash_inode *inode,
                        char ret_target[static SQUASH_TARGET_MAX + 1], struct error *err)
{
    struct squash_cursor cursor = inode->rest;

    if (squash_image_metadata(image, &cursor, ret_target, (size_t) inode->size, err) < 0)
        return -1;
    ret_target[inode->size] = '\0';
    return strlen(ret_target) == inode->size ? 0 : squash_broken(err, "a link has a NUL in it");
}

/* --- folders -------------------------------------------------------------------------------- */

void squash_folder_init(struct squash_folder *folder, const struct squash_inode *inode)
{
    *folder = (struct squash_folder){.cursor = inode->listing, .left = inode->listing_size};
}

static int read_listing(struct squash_image *image, struct squash_folder *folder, void *buffer,
                        size_t size, struct error *err)
{
    if (size > folder->left)
        return squash_broken(err, "a folder ends in the middle of an entry");
    folder->left -= (uint32_t) size;
    return squash_image_metadata(image, &folder->cursor, buffer, size, err);
}

static int read_run(struct squash_image *image, struct squash_folder *folder, struct error *err)
{
    uint8_t bytes[SQUASH_FOLDER_HEADER_SIZE];
    uint32_t count;

    if (read_listing(image, folder, bytes, sizeof(bytes), err) < 0)
        return -1;
    count = squash_get32(bytes);
    if (count >= SQUASH_FOLDER_RUN_MAX)
        return squash_broken(err, "a folder counts its entries wrongly");
    folder->run_left = count + 1;
    folder->run_block = squash_get32(bytes + 4);
    folder->run_number = squash_get32(bytes + 8);
    return 0;
}

static const char *name_problem(const char *name, size_t length, const char *last)
{
    if (strlen(name) != length || strchr(name, '/') || strcmp(name, ".") == 0 ||
        strcmp(name, "..") == 0)
        return "a name is none";
    return strcmp(name, last) > 0 ? NULL : "names of a folder are not in order";
}

int squash_folder_next(struct squash_image *image, struct squash_folder *folder, struct error *err)
{
    uint8_t bytes[SQUASH_FOLDER_ENTRY_SIZE];
    char name[SQUASH_NAME_MAX + 1];
    const char *problem;
    size_t length;

    if (folder->run_left == 0) {
        if (folder->left == 0)
            return 0;
        if (read_run(image, folder, err) < 0)
            return -1;
    }
    folder->run_left--;
    if (read_listing(image, folder, bytes, sizeof(bytes), err) < 0)
        return -1;
    length = (size_t) squash_get16(bytes + 6) + 1;
    if (length > SQUASH_NAME_MAX)
        return squash_broken(err, "a name is too long");
    if (read_listing(image, folder, name, length, err) < 0)
        return -1;
    name[length] = '\0';
    problem = name_problem(name, length, folder->name);
    if (problem)
        return squash_broken(err, problem);
    memcpy(folder->name, name, length + 1);
    folder->place = folder->run_block << 16 | squash_get16(bytes);
    folder->number = folder->run_number + (uint32_t) (int32_t) (int16_t) squash_get16(bytes + 2);
    folder->type = (enum squash_type) squash_get16(bytes + 4);
    return 1;
}
