#include "base/format/tar_header.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/format/tar_attributes.h"

/*   0 name[100]   100 mode[8]   108 uid[8]   116 gid[8]   124 size[12]   136 mtime[12]
 * 148 checksum[8] 156 type      157 link[100] 257 "ustar\0" "00"  265 user[32]  297 group[32]
 * 329 major[8]    337 minor[8]  345 prefix[155] */
struct block {
    char name[100];
    char mode[8];
    char uid[8];
    char gid[8];
    char size[12];
    char mtime[12];
    char checksum[8];
    char type;
    char link[100];
    char magic[8];
    char user[32];
    char group[32];
    char major[8];
    char minor[8];
    char prefix[155];
    char unused[12];
};

_Static_assert(sizeof(struct block) == TAR_BLOCK, "a header is one block");

/* The largest numbers that fields of 8 and 12 bytes hold: seven and eleven octal digits. */
#define SMALL_MAX UINT64_C(07777777)
#define LARGE_MAX UINT64_C(077777777777)

#define PAX_TYPE 'x'

/* A record beside its value; of all but texts and attributes there are at most this many bytes. */
#define RECORD_SIZE  ((size_t) 64)
#define RECORDS_SIZE (8 * RECORD_SIZE)

/* --- writing -------------------------------------------------------------------------------- */

static void put_octal(char *field, size_t size, uint64_t number)
{
    field[size - 1] = '\0';
    for (size_t i = size - 1; i-- > 0; number >>= 3)
        field[i] = (char) ('0' + (number & 7));
}

static unsigned int sum_of(const unsigned char *bytes)
{
    const size_t from = offsetof(struct block, checksum);
    unsigned int sum = 0;

    for (size_t i = 0; i < TAR_BLOCK; i++) /* the field itself counts as spaces */
        sum += i >= from && i < from + 8 ? ' ' : bytes[i];
    return sum;
}

/* A text that fills its field has no NUL. */
static void put_text(char *field, size_t size, const char *text)
{
    size_t length = strlen(text);

    memcpy(field, text, length < size ? length : size);
}

static void append_block(struct text *out, struct block *block)
{
    memcpy(block->magic, "ustar\00000", sizeof(block->magic));
    put_octal(block->checksum, 7, sum_of((unsigned char *) block));
    block->checksum[7] = ' ';
    text_append_bytes(out, block, sizeof(*block));
}

/* "25 mtime=1234567890.123\n": the length counts itself. */
static void append_record(struct text *pax, const char *key, const char *value, size_t value_length)
{
    size_t rest = strlen(key) + value_length + 3;
    size_t length = rest + 1;
    char digits[24];

    while ((size_t) snprintf(digits, sizeof(digits), "%zu", length) + rest != length)
        length = rest + strlen(digits);
    text_append(pax, digits);
    text_append_char(pax, ' ');
    text_append(pax, key);
    text_append_char(pax, '=');
    text_append_bytes(pax, value, value_length);
    text_append_char(pax, '\n');
}

static void append_number(struct text *pax, const char *key, uint64_t number, uint64_t maximum)
{
    char digits[24];

    if (number <= maximum)
        return;
    (void) snprintf(digits, sizeof(digits), "%" PRIu64, number);
    append_record(pax, key, digits, strlen(digits));
}

/* Before 1970 seconds are negative and the fraction counts forward from them: -1.25 is -2 + 0.75.
 */
static void append_time(struct text *pax, const struct timespec *time)
{
    int64_t seconds = time->tv_sec;
    long fraction = time->tv_nsec;
    bool negative = seconds < 0;
    char digits[48];

    if (seconds >= 0 && (uint64_t) seconds <= LARGE_MAX && !fraction)
        return;
    if (negative && fraction) {
        seconds++;
        fraction = 1000000000 - fraction;
    }
    (void) snprintf(digits, sizeof(digits), "%s%" PRIu64 ".%09ld", negative ? "-" : "",
                    negative ? -(uint64_t) seconds : (uint64_t) seconds, fraction);
    append_record(pax, "mtime", digits, strlen(digits));
}

static void append_attributes(struct text *pax, const struct tar_attributes *attributes)
{
    char key[sizeof(TAR_ATTRIBUTE_PREFIX) + TAR_ATTRIBUTE_NAME_MAX];
    struct tar_attribute attribute;
    size_t at = 0;

    while (tar_attributes_next(attributes, &at, &attribute)) {
        (void) snprintf(key, sizeof(key), TAR_ATTRIBUTE_PREFIX "%s", attribute.name);
        append_record(pax, key, attribute.value, attribute.length);
    }
}

static void append_pax(struct text *out, const struct text *pax)
{
    struct block block = {.type = PAX_TYPE};

    put_text(block.name, sizeof(block.name), "PaxHeaders/entry");
    put_octal(block.mode, sizeof(block.mode), 0644);
    put_octal(block.uid, sizeof(block.uid), 0);
    put_octal(block.gid, sizeof(block.gid), 0);
    put_octal(block.size, sizeof(block.size), pax->length);
    put_octal(block.mtime, sizeof(block.mtime), 0);
    append_block(out, &block);
    text_append_bytes(out, text_string(pax), pax->length);
    tar_padding_append(out, pax->length);
}

static uint64_t at_most(uint64_t number, uint64_t maximum)
{
    return number > maximum ? 0 : number;
}

void tar_header_append(struct text *out, const struct tar_entry *entry)
{
    const struct tar_attributes *attributes = entry->attributes;
    size_t texts = strlen(entry->path) + strlen(entry->link) + RECORDS_SIZE;
    /* An attribute is kept with nine bytes beside it, and written with less than RECORD_SIZE. */
    AUTO(text) struct text pax = TEXT_INIT(texts + (attributes ? 8 * attributes->bytes.length : 0));
    AUTO(text) struct text path = TEXT_INIT(texts);
    struct block block = {.type = entry->type};
    int64_t seconds = entry->mtime.tv_sec;

    text_append(&path, entry->path);
    if (entry->type == TAR_FOLDER)
        text_append_char(&path, '/');
    if (path.length > sizeof(block.name))
        append_record(&pax, "path", text_string(&path), path.length);
    if (strlen(entry->link) > sizeof(block.link))
        append_record(&pax, "linkpath", entry->link, strlen(entry->link));
    append_number(&pax, "size", entry->size, LARGE_MAX);
    append_number(&pax, "uid", entry->uid, SMALL_MAX);
    append_number(&pax, "gid", entry->gid, SMALL_MAX);
    append_time(&pax, &entry->mtime);
    if (attributes)
        append_attributes(&pax, attributes);
    if (pax.length)
        append_pax(out, &pax);
    put_text(block.name, sizeof(block.name), text_string(&path));
    put_text(block.link, sizeof(block.link), entry->link);
    put_octal(block.mode, sizeof(block.mode), entry->mode & 07777);
    put_octal(block.uid, sizeof(block.uid), at_most(entry->uid, SMALL_MAX));
    put_octal(block.gid, sizeof(block.gid), at_most(entry->gid, SMALL_MAX));
    put_octal(block.size, sizeof(block.size), at_most(entry->size, LARGE_MAX));
    put_octal(block.mtime, sizeof(block.mtime),
              seconds < 0 ? 0 : at_most((uint64_t) seconds, LARGE_MAX));
    append_block(out, &block);
}

void tar_padding_append(struct text *out, uint64_t size)
{
    static const char zeros[TAR_BLOCK];

    text_append_bytes(out, zeros, tar_padding(size));
}

void tar_end_append(struct text *out)
{
    static const char zeros[TAR_END_SIZE];

    text_append_bytes(out, zeros, sizeof(zeros));
}

/* --- reading -------------------------------------------------------------------------------- */

/* Octal digits between spaces, up to a NUL or the end of the field; empty is 0. GNU: a first byte
 * of 0x80 and the number in binary, big-endian; 0xff: a negative one. */
static int get_number(const char *field, size_t size, bool is_signed, int64_t *ret_number)
{
    const unsigned char *bytes = (const unsigned char *) field;
    bool negative = bytes[0] == 0xff;
    uint64_t number = negative ? UINT64_MAX : 0;
    size_t at = 0;

    if (bytes[0] == 0x80 || negative) {
        for (at = 1; at < size; at++) {
            if (size - at > 8 && bytes[at] != (negative ? 0xff : 0))
                return -EINVAL;
            number = number << 8 | bytes[at];
        }
        *ret_number = (int64_t) number;
        return (number > INT64_MAX) == (negative && is_signed) ? 0 : -EINVAL;
    }
    while (at < size && bytes[at] == ' ')
        at++;
    for (; at < size && bytes[at] >= '0' && bytes[at] <= '7'; at++)
        number = number << 3 | (bytes[at] - '0');
    for (; at < size && bytes[at]; at++) {
        if (bytes[at] != ' ')
            return -EINVAL;
    }
    *ret_number = (int64_t) number;
    return 0;
}

/* Checksums of old were of signed characters. */
static bool has_checksum(const unsigned char *bytes, int64_t expected)
{
    int64_t sum = sum_of(bytes), high = 0;

    for (size_t i = 0; i < TAR_BLOCK; i++) {
        bool is_sum = i >= 148 && i < 156;

        high += !is_sum && bytes[i] >= 0x80;
    }
    return sum == expected || sum - 256 * high == expected;
}

static void get_path(const struct block *block, char ret_path[static 257])
{
    bool has_prefix = memcmp(block->magic, "ustar\0", 6) == 0 && block->prefix[0];

    (void) snprintf(ret_path, 257, "%.*s%s%.*s", has_prefix ? (int) sizeof(block->prefix) : 0,
                    block->prefix, has_prefix ? "/" : "", (int) sizeof(block->name), block->name);
}

int tar_header_decode(const unsigned char bytes[static TAR_BLOCK], struct tar_header *ret_header)
{
    struct block block;
    int64_t checksum, mode, uid, gid, size, mtime;

    memcpy(&block, bytes, sizeof(block));
    if (bytes[0] == 0 && memcmp(bytes, bytes + 1, TAR_BLOCK - 1) == 0)
        return 1;
    if (get_number(block.checksum, sizeof(block.checksum), false, &checksum) < 0 ||
        !has_checksum(bytes, checksum) ||
        get_number(block.mode, sizeof(block.mode), false, &mode) < 0 ||
        get_number(block.uid, sizeof(block.uid), false, &uid) < 0 ||
        get_number(block.gid, sizeof(block.gid), false, &gid) < 0 ||
        get_number(block.size, sizeof(block.size), false, &size) < 0 ||
        get_number(block.mtime, sizeof(block.mtime), true, &mtime) < 0)
        return -EINVAL;
    *ret_header = (struct tar_header){
        .type = block.type,
        .size = (uint64_t) size,
        .mode = (mode_t) (mode & 07777),
        .uid = (uint64_t) uid,
        .gid = (uint64_t) gid,
        .mtime = mtime,
    };
    get_path(&block, ret_header->path);
    memcpy(ret_header->link, block.link, sizeof(block.link));
    return 0;
}
