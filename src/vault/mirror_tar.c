#include "vault/mirror_tar.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define NAME_SIZE      100
#define SIZE_MAX_OCTAL ((uint64_t) 077777777777)
#define TIME_MAX_OCTAL ((int64_t) 077777777777)

/* Records of one entry: two paths and some numbers. */
#define RECORDS_MAX (4 * MIRROR_PATH_MAX)

/* POSIX.1-1988 ustar, all text. */
struct header {
    char name[NAME_SIZE];
    char mode[8], uid[8], gid[8];
    char size[12], mtime[12];
    char checksum[8];
    char type;
    char link[NAME_SIZE];
    char magic[6], version[2];
    char user[32], group[32];
    char device_major[8], device_minor[8];
    char prefix[155];
    char rest[12];
};

_Static_assert(sizeof(struct header) == MIRROR_TAR_BLOCK, "a header is a block");

static void put_header(struct text *stream, const char *name, char type, const char *link,
                       uint32_t mode, uint64_t size, int64_t mtime)
{
    struct header header = {.type = type, .magic = "ustar", .version = {'0', '0'}};
    unsigned int sum = 0;

    memcpy(header.name, name, strnlen(name, sizeof(header.name)));
    memcpy(header.link, link, strnlen(link, sizeof(header.link)));
    (void) snprintf(header.mode, sizeof(header.mode), "%07o", mode);
    (void) snprintf(header.uid, sizeof(header.uid), "%07o", 0u);
    (void) snprintf(header.gid, sizeof(header.gid), "%07o", 0u);
    (void) snprintf(header.size, sizeof(header.size), "%011" PRIo64,
                    size > SIZE_MAX_OCTAL ? 0 : size);
    (void) snprintf(header.mtime, sizeof(header.mtime), "%011" PRIo64,
                    mtime < 0 || mtime > TIME_MAX_OCTAL ? (uint64_t) 0 : (uint64_t) mtime);
    memset(header.checksum, ' ', sizeof(header.checksum));
    for (size_t i = 0; i < sizeof(header); i++)
        sum += ((const unsigned char *) &header)[i];
    (void) snprintf(header.checksum, sizeof(header.checksum), "%06o", sum);
    text_append_bytes(stream, &header, sizeof(header));
}

/* "27 path=...\n": the number counts itself. */
static void put_record(struct text *records, const char *key, const char *value, size_t length)
{
    size_t rest = strlen(key) + length + 3, total = rest + 1, digits = 1;

    for (size_t limit = 10; total >= limit; limit *= 10)
        total = rest + ++digits;
    text_format(records, "%zu %s=", total, key);
    text_append_bytes(records, value, length);
    text_append_char(records, '\n');
}

static void put_records(struct text *records, const struct mirror_entry *entry, const char *name,
                        uint64_t size)
{
    char number[64];

    if (strlen(name) > NAME_SIZE)
        put_record(records, "path", name, strlen(name));
    if (entry->type == MIRROR_LINK && entry->target.length > NAME_SIZE)
        put_record(records, "linkpath", entry->target.data, entry->target.length);
    if (size > SIZE_MAX_OCTAL)
        put_record(records, "size", number,
                   (size_t) snprintf(number, sizeof(number), "%" PRIu64, size));
    if (entry->mtime_ns || entry->mtime < 0 || entry->mtime > TIME_MAX_OCTAL) {
        /* The fraction counts upwards also before 1970: -1.5 is second -2 and half a second. */
        bool goes_down = entry->mtime < 0 && entry->mtime_ns;
        int64_t seconds = goes_down ? entry->mtime + 1 : entry->mtime;
        uint32_t fraction = goes_down ? 1000000000 - entry->mtime_ns : entry->mtime_ns;

        put_record(records, "mtime", number,
                   (size_t) snprintf(number, sizeof(number), "%s%" PRId64 ".%09u",
                                     goes_down && seconds == 0 ? "-" : "", seconds, fraction));
    }
}

bool mirror_tar_entry(struct text *stream, const struct mirror_entry *entry, uint64_t size)
{
    static const char types[] = {
        [MIRROR_FILE] = '0', [MIRROR_FOLDER] = '5', [MIRROR_LINK] = '2', [MIRROR_OTHER] = '\0'};
    AUTO(text) struct text records = TEXT_INIT(RECORDS_MAX), name = TEXT_INIT(MIRROR_PATH_MAX + 1);
    const char *link = entry->type == MIRROR_LINK ? text_string(&entry->target) : "";

    if (!types[entry->type])
        return false;
    if (entry->type != MIRROR_FILE)
        size = 0;
    text_append(&name, text_string(&entry->name));
    if (entry->type == MIRROR_FOLDER)
        text_append_char(&name, '/');
    put_records(&records, entry, text_string(&name), size);
    if (records.length) {
        put_header(stream, "PaxHeaders/entry", 'x', "", 0644, records.length, 0);
        text_append_bytes(stream, records.data, records.length);
        mirror_tar_pad(stream, records.length);
    }
    put_header(stream, text_string(&name), types[entry->type], link, entry->mode, size,
               entry->mtime);
    return true;
}

void mirror_tar_pad(struct text *stream, uint64_t size)
{
    static const char zeros[MIRROR_TAR_BLOCK];
    size_t left = (size_t) (size % MIRROR_TAR_BLOCK);

    if (left)
        text_append_bytes(stream, zeros, MIRROR_TAR_BLOCK - left);
}

void mirror_tar_end(struct text *stream)
{
    static const char zeros[2 * MIRROR_TAR_BLOCK];

    text_append_bytes(stream, zeros, sizeof(zeros));
}
