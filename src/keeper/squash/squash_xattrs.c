#include "keeper/squash/squash_xattrs.h"

#include <string.h>

#include "base/encoding/sha256.h"
#include "base/memory.h"
#include "sys/file/sys_file.h"

/* The kernel's bounds: names and values of one file. */
#define SET_MAX ((size_t) 32 << 20)

struct set {
    struct table_link link; /* its hash is of the digest */
    uint8_t digest[SHA256_SIZE];
    uint32_t index;
};

void squash_xattrs_init(struct squash_xattrs *xattrs, struct squash_codec *codec)
{
    *xattrs = (struct squash_xattrs){.known = TABLE_INIT, .set = TEXT_INIT(SET_MAX)};
    squash_table_init(&xattrs->pairs, codec);
    squash_table_init(&xattrs->ids, codec);
}

void squash_xattrs_done(struct squash_xattrs *xattrs)
{
    for (size_t i = 0; i < xattrs->known.bucket_count; i++) {
        struct table_link *next;

        for (struct table_link *at = xattrs->known.buckets[i]; at; at = next) {
            next = at->next;
            free(CONTAINER_OF(at, struct set, link));
        }
    }
    table_done(&xattrs->known);
    squash_table_done(&xattrs->pairs);
    squash_table_done(&xattrs->ids);
    text_done(&xattrs->set);
}

bool squash_xattrs_add(struct squash_xattrs *xattrs, const char *name, const void *value,
                       size_t length)
{
    const char *prefix;
    uint8_t header[4], size[4];

    for (unsigned int type = 0; (prefix = squash_xattr_prefix(type)); type++) {
        size_t prefix_length = strlen(prefix);

        if (strncmp(name, prefix, prefix_length) != 0)
            continue;
        name += prefix_length;
        (void) squash_put16(squash_put16(header, (uint16_t) type), (uint16_t) strlen(name));
        (void) squash_put32(size, (uint32_t) length);
        text_append_bytes(&xattrs->set, header, sizeof(header));
        text_append(&xattrs->set, name);
        text_append_bytes(&xattrs->set, size, sizeof(size));
        text_append_bytes(&xattrs->set, value, length);
        xattrs->pair_count++;
        return true;
    }
    return false;
}

static struct set *find_set(const struct squash_xattrs *xattrs, uint64_t hash,
                            const uint8_t *digest)
{
    for (struct table_link *at = table_find(&xattrs->known, hash); at; at = table_next(at)) {
        struct set *set = CONTAINER_OF(at, struct set, link);

        if (memcmp(set->digest, digest, SHA256_SIZE) == 0)
            return set;
    }
    return NULL;
}

static struct set *new_set(struct squash_xattrs *xattrs, uint64_t hash, const uint8_t *digest)
{
    struct set *set = mem_alloc(sizeof(*set));
    uint8_t id[SQUASH_XATTR_ID_SIZE], *at = squash_put64(id, squash_table_place(&xattrs->pairs));

    (void) squash_put32(squash_put32(at, xattrs->pair_count), (uint32_t) xattrs->set.length);
    squash_table_append(&xattrs->ids, id, sizeof(id));
    squash_table_append(&xattrs->pairs, xattrs->set.data, xattrs->set.length);
    memcpy(set->digest, digest, SHA256_SIZE);
    set->index = xattrs->count++;
    set->link.hash = hash;
    table_add(&xattrs->known, &set->link);
    return set;
}

int squash_xattrs_finish(struct squash_xattrs *xattrs, uint32_t *ret_index)
{
    uint8_t digest[SHA256_SIZE];
    struct set *set;
    uint64_t hash;

    *ret_index = SQUASH_NONE;
    if (xattrs->pair_count == 0)
        return 0;
    if (xattrs->set.overflowed || xattrs->count == SQUASH_XATTR_SETS_MAX)
        return -EFBIG;
    sha256_bytes(xattrs->set.data, xattrs->set.length, digest);
    memcpy(&hash, digest, sizeof(hash));
    set = find_set(xattrs, hash, digest);
    if (!set)
        set = new_set(xattrs, hash, digest);
    *ret_index = set->index;
    text_clear(&xattrs->set);
    xattrs->pair_count = 0;
    return 0;
}

/* Where the pairs are, how many sets, and where each block of the sets' table is. */
static int write_header(const struct squash_xattrs *xattrs, int file, uint64_t pairs, uint64_t ids,
                        uint64_t *offset)
{
    size_t size = SQUASH_XATTR_HEADER_SIZE + xattrs->ids.block_count * 8;
    AUTO(free) uint8_t *bytes = mem_alloc(size);
    uint8_t *at = squash_put64(bytes, pairs);
    int result;

    at = squash_put32(squash_put32(at, xattrs->count), 0);
    for (size_t i = 0; i < xattrs->ids.block_count; i++)
        at = squash_put64(at, ids + xattrs->ids.starts[i]);
    result = sys_file_pwrite_full(file, bytes, size, (off_t) *offset);
    *offset += size;
    return result;
}

int squash_xattrs_write(struct squash_xattrs *xattrs, int file, uint64_t *offset,
                        uint64_t *ret_start)
{
    uint64_t pairs = *offset, ids;
    int result;

    *ret_start = SQUASH_NO_TABLE;
    if (xattrs->count == 0)
        return 0;
    squash_table_close(&xattrs->pairs);
    squash_table_close(&xattrs->ids);
    result = squash_table_write(&xattrs->pairs, file, pairs);
    ids = pairs + xattrs->pairs.size;
    if (result == 0)
        result = squash_table_write(&xattrs->ids, file, ids);
    *offset = ids + xattrs->ids.size;
    *ret_start = *offset;
    return result < 0 ? result : write_header(xattrs, file, pairs, ids, offset);
}
