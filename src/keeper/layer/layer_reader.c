#include "keeper/layer/layer_reader.h"

#include <string.h>

#include "base/memory.h"
#include "base/text.h"
#include "json/name_escape.h"
#include "keeper/layer/layer_input.h"

/* Bytes of a path that a message shows. */
#define SHOWN_MAX 60

#define NANOSECONDS 1000000000u

enum part { PART_RECORD, PART_PIECES, PART_ATTRIBUTES };

/* Which fields follow the kind. */
enum {
    HAS_NAME = 1 << 0,
    HAS_STATUS = 1 << 1,
    HAS_LINKED = 1 << 2,
    HAS_SIZE = 1 << 3,
    HAS_TARGET = 1 << 4,
    HAS_NUMBER = 1 << 5,
    HAS_PIECES = 1 << 6,
    HAS_ATTRIBUTES = 1 << 7,
    DELTA_ONLY = 1 << 8,
};

static const struct {
    enum layer_kind kind;
    unsigned int fields;
} kinds[] = {
    {LAYER_ENTER, HAS_NAME},
    {LAYER_LEAVE, HAS_STATUS | HAS_ATTRIBUTES},
    {LAYER_FILE, HAS_NAME | HAS_STATUS | HAS_LINKED | HAS_SIZE | HAS_PIECES | HAS_ATTRIBUTES},
    {LAYER_LINK, HAS_NAME | HAS_STATUS | HAS_LINKED | HAS_TARGET | HAS_ATTRIBUTES},
    {LAYER_FIFO, HAS_NAME | HAS_STATUS | HAS_LINKED | HAS_ATTRIBUTES},
    {LAYER_WHITEOUT, HAS_NAME | HAS_STATUS | HAS_ATTRIBUTES},
    {LAYER_HARD_LINK, HAS_NAME | HAS_NUMBER},
    {LAYER_REMOVED, HAS_NAME | DELTA_ONLY},
    {LAYER_CHANGED, HAS_NAME | HAS_STATUS | HAS_ATTRIBUTES | DELTA_ONLY},
    {LAYER_END, 0},
};

struct layer_reader {
    struct layer_input *input; /* owned */
    bool is_delta;
    enum part next;
    unsigned int fields; /* of the record */
    uint64_t records, linked;
    size_t depth;                  /* folders that are open */
    bool has_top;                  /* it was entered */
    struct text path;              /* the names of these, each followed by its length as a byte */
    char last[NAME_MAX + 1];       /* the name before, in this folder */
    char attribute[UINT8_MAX + 1]; /* the name before, of this entry */
    uint64_t size, offset;         /* of the file, and where its last piece ended */
    struct layer_sums sums;
    uint8_t buffer[LAYER_WINDOW]; /* a piece or value */
};

struct layer_reader *layer_reader_new(int fd)
{
    struct layer_reader *reader = mem_alloc(sizeof(*reader));

    reader->input = layer_input_new(fd);
    reader->path = (struct text) TEXT_INIT(LAYER_PATH_MAX);
    return reader;
}

void layer_reader_free(struct layer_reader *reader)
{
    if (!reader)
        return;
    layer_input_free(reader->input);
    text_done(&reader->path);
    free(reader);
}

/* --- where we are --------------------------------------------------------------------------- */

static void push_name(struct layer_reader *reader, const char *name)
{
    size_t length = strlen(name);

    text_append_bytes(&reader->path, name, length);
    text_append_char(&reader->path, (char) (uint8_t) length);
    reader->depth++;
    reader->last[0] = '\0';
}

/* The name of the folder that is left is the one before what follows. */
static void pop_name(struct layer_reader *reader)
{
    struct text *path = &reader->path;
    size_t length = (uint8_t) path->data[path->length - 1];

    path->length -= length + 1;
    memcpy(reader->last, path->data + path->length, length);
    reader->last[length] = '\0';
    reader->depth--;
}

/* The last names, as a path; the first ones of a long path are left out. */
static void show_path(const struct layer_reader *reader, struct text *shown)
{
    const char *names = text_string(&reader->path);
    size_t end = reader->path.length, start = end, begin;

    while (start > 0 && end - start < SHOWN_MAX)
        start -= (uint8_t) names[start - 1] + 1u;
    if (start > 0)
        text_append(shown, "...");
    /* Forward again: each name ends where its own length says so, which only the way back tells. */
    for (begin = start; begin < end;) {
        size_t stop = end;

        while (stop - ((uint8_t) names[stop - 1] + 1u) > begin)
            stop -= (uint8_t) names[stop - 1] + 1u;
        name_escape(shown, names + begin, stop - begin - 1);
        if (stop - begin > 1)
            text_append(shown, "/");
        begin = stop;
    }
    name_escape(shown, reader->last, strlen(reader->last));
}

int layer_reader_error(const struct layer_reader *reader, enum err_code code, int system,
                       const char *what, struct error *err)
{
    AUTO(text)
    struct text shown = TEXT_INIT((SHOWN_MAX + 3 * (NAME_MAX + 1)) * NAME_ESCAPE_FACTOR + 3);

    show_path(reader, &shown);
    return error_set(err, code, system, "%s '%s'", what, shown.length ? text_string(&shown) : ".");
}

static int refuse(const struct layer_reader *reader, const char *why, struct error *err)
{
    return layer_reader_error(reader, ERR_INVALID, 0, why, err);
}

/* --- fields --------------------------------------------------------------------------------- */

static int read_number(struct layer_reader *reader, size_t size, uint64_t *ret_number,
                       struct error *err)
{
    uint8_t bytes[8];

    if (layer_input_read(reader->input, bytes, size, err) < 0)
        return -1;
    *ret_number = layer_get_number(bytes, size);
    return 0;
}

/* A text whose length is a number of `size` bytes, with a NUL behind it in `ret_text`. */
static int read_text(struct layer_reader *reader, size_t size, char *ret_text, size_t maximum,
                     struct error *err)
{
    uint64_t length;

    if (read_number(reader, size, &length, err) < 0)
        return -1;
    if (length > maximum)
        return refuse(reader, "not a layer: a text is too long at", err);
    if (layer_input_read(reader->input, ret_text, (size_t) length, err) < 0)
        return -1;
    ret_text[length] = '\0';
    if (strlen(ret_text) != length)
        return refuse(reader, "not a layer: a text has a NUL in it at", err);
    return 0;
}

static bool is_name(const char *name)
{
    return *name && !strchr(name, '/') && strcmp(name, ".") != 0 && strcmp(name, "..") != 0;
}

static int read_name(struct layer_reader *reader, struct layer_record *record, struct error *err)
{
    if (read_text(reader, 1, record->name, NAME_MAX, err) < 0)
        return -1;
    if (!reader->has_top)
        return *record->name ? refuse(reader, "not a layer: it does not begin at the top", err) : 0;
    if (!is_name(record->name))
        return refuse(reader, "not a layer: a bad name behind", err);
    if (strcmp(record->name, reader->last) <= 0)
        return refuse(reader, "not a layer: names out of order behind", err);
    memcpy(reader->last, record->name, sizeof(reader->last));
    return 0;
}

static int read_status(struct layer_reader *reader, struct layer_status *status, struct error *err)
{
    uint64_t mode, uid, gid, seconds, nanoseconds;

    if (read_number(reader, 2, &mode, err) < 0 || read_number(reader, 4, &uid, err) < 0 ||
        read_number(reader, 4, &gid, err) < 0 || read_number(reader, 8, &seconds, err) < 0 ||
        read_number(reader, 4, &nanoseconds, err) < 0)
        return -1;
    if (mode > 07777 || nanoseconds >= NANOSECONDS)
        return refuse(reader, "not a layer: a bad mode or time at", err);
    *status = (struct layer_status){.mode = (uint16_t) mode,
                                    .uid = (uint32_t) uid,
                                    .gid = (uint32_t) gid,
                                    .seconds = (int64_t) seconds,
                                    .nanoseconds = (uint32_t) nanoseconds};
    return 0;
}

static int read_linked(struct layer_reader *reader, struct layer_record *record, struct error *err)
{
    uint64_t linked;

    if (read_number(reader, 1, &linked, err) < 0)
        return -1;
    if (linked > 1)
        return refuse(reader, "not a layer: a bad mark at", err);
    record->linked = linked;
    if (record->linked)
        record->number = ++reader->linked;
    return 0;
}

static int read_linked_number(struct layer_reader *reader, struct layer_record *record,
                              struct error *err)
{
    if (read_number(reader, 8, &record->number, err) < 0)
        return -1;
    if (record->number == 0 || record->number > reader->linked)
        return refuse(reader, "not a layer: a name of no file at", err);
    return 0;
}

static int read_size(struct layer_reader *reader, struct layer_record *record, struct error *err)
{
    if (read_number(reader, 8, &record->size, err) < 0)
        return -1;
    if (record->size > INT64_MAX)
        return refuse(reader, "not a layer: too long a file at", err);
    reader->size = record->size;
    reader->offset = 0;
    return 0;
}

static int read_target(struct layer_reader *reader, struct layer_record *record, struct error *err)
{
    if (read_text(reader, 2, record->target, LAYER_TARGET_MAX, err) < 0)
        return -1;
    if (!*record->target)
        return refuse(reader, "not a layer: a link to nothing at", err);
    return 0;
}

/* --- records -------------------------------------------------------------------------------- */

static int read_kind(struct layer_reader *reader, struct layer_record *record, struct error *err)
{
    uint64_t byte;
    size_t i = 0;

    if (read_number(reader, 1, &byte, err) < 0)
        return -1;
    while (i < ARRAY_COUNT(kinds) && (uint64_t) kinds[i].kind != byte)
        i++;
    if (i == ARRAY_COUNT(kinds))
        return refuse(reader, "not a layer: an unknown record behind", err);
    if (kinds[i].fields & DELTA_ONLY && !reader->is_delta)
        return refuse(reader, "not a layer: a change in a whole one behind", err);
    record->kind = kinds[i].kind;
    reader->fields = kinds[i].fields;
    return 0;
}

/* Before the top is entered only that may come, and behind it only the end. */
static int check_place(const struct layer_reader *reader, enum layer_kind kind, struct error *err)
{
    bool is_over = reader->has_top && reader->depth == 0;

    if (!reader->has_top && kind != LAYER_ENTER)
        return refuse(reader, "not a layer: it does not begin at the top", err);
    if (is_over != (kind == LAYER_END))
        return refuse(reader, "not a layer: folders and records do not match behind", err);
    return 0;
}

static int read_fields(struct layer_reader *reader, struct layer_record *record, struct error *err)
{
    static const struct {
        unsigned int field;
        int (*read)(struct layer_reader *reader, struct layer_record *record, struct error *err);
    } rest[] = {{HAS_LINKED, read_linked},
                {HAS_NUMBER, read_linked_number},
                {HAS_SIZE, read_size},
                {HAS_TARGET, read_target}};

    if (reader->fields & HAS_NAME && read_name(reader, record, err) < 0)
        return -1;
    if (reader->fields & HAS_STATUS && read_status(reader, &record->status, err) < 0)
        return -1;
    for (size_t i = 0; i < ARRAY_COUNT(rest); i++)
        if (reader->fields & rest[i].field && rest[i].read(reader, record, err) < 0)
            return -1;
    return 0;
}

static int enter(struct layer_reader *reader, struct layer_record *record, struct error *err)
{
    if (reader->depth == LAYER_DEPTH_MAX)
        return refuse(reader, "not a layer: too deep at", err);
    reader->has_top = true;
    push_name(reader, record->name);
    if (reader->path.overflowed)
        return error_set(err, ERR_INVALID, 0, "not a layer: too deep");
    return 0;
}

static int read_trailer(struct layer_reader *reader, struct error *err)
{
    uint64_t records, bytes, position;
    uint8_t digest[SHA256_SIZE];

    if (read_number(reader, 8, &records, err) < 0)
        return -1;
    position = layer_input_position(reader->input);
    if (read_number(reader, 8, &bytes, err) < 0)
        return -1;
    layer_input_digest(reader->input, reader->sums.id);
    if (layer_input_read(reader->input, digest, sizeof(digest), err) < 0)
        return -1;
    if (records != reader->records || bytes != position ||
        memcmp(digest, reader->sums.id, sizeof(digest)) != 0)
        return error_set(err, ERR_INVALID, 0, "the layer is damaged: its trailer is wrong");
    reader->sums.records = records;
    reader->sums.bytes = layer_input_position(reader->input);
    return layer_input_finish(reader->input, &reader->sums, err);
}

int layer_reader_begin(struct layer_reader *reader, bool *ret_is_delta, struct error *err)
{
    uint8_t magic[LAYER_MAGIC_SIZE];
    uint64_t version, flags;

    if (layer_input_read(reader->input, magic, sizeof(magic), err) < 0)
        return -1;
    if (memcmp(magic, LAYER_MAGIC, sizeof(magic)) != 0)
        return error_set(err, ERR_INVALID, 0, "this is no layer");
    if (read_number(reader, 4, &version, err) < 0 || read_number(reader, 4, &flags, err) < 0)
        return -1;
    if (version != LAYER_VERSION)
        return error_set(err, ERR_INVALID, 0, "a layer of version %llu; this program knows %d",
                         (unsigned long long) version, LAYER_VERSION);
    if (flags & ~(uint64_t) LAYER_DELTA)
        return error_set(err, ERR_INVALID, 0, "not a layer: unknown flags");
    reader->is_delta = flags & LAYER_DELTA;
    *ret_is_delta = reader->is_delta;
    return 0;
}

int layer_reader_next(struct layer_reader *reader, struct layer_record *ret_record,
                      struct error *err)
{
    struct layer_record *record = ret_record;

    if (reader->next != PART_RECORD)
        return error_set(err, ERR_INTERNAL, 0, "a record was not read to its end");
    *record = (struct layer_record){.depth = reader->depth};
    if (read_kind(reader, record, err) < 0 || check_place(reader, record->kind, err) < 0)
        return -1;
    if (record->kind == LAYER_END)
        return read_trailer(reader, err);
    if (record->kind == LAYER_LEAVE) {
        pop_name(reader);
        record->depth = reader->depth;
    }
    if (read_fields(reader, record, err) < 0)
        return -1;
    if (record->kind == LAYER_ENTER && enter(reader, record, err) < 0)
        return -1;
    reader->attribute[0] = '\0';
    reader->next = reader->fields & HAS_PIECES       ? PART_PIECES
                   : reader->fields & HAS_ATTRIBUTES ? PART_ATTRIBUTES
                                                     : PART_RECORD;
    reader->records++;
    return 0;
}

int layer_reader_again(struct layer_reader *reader, struct error *err)
{
    int more = layer_input_again(reader->input, err);

    if (more == 1) {
        reader->records = reader->linked = 0;
        reader->has_top = false;
        reader->last[0] = '\0';
    }
    return more;
}

/* --- parts of records ----------------------------------------------------------------------- */

static bool is_piece(const struct layer_reader *reader, uint64_t offset, uint64_t length)
{
    return length <= LAYER_WINDOW && offset % LAYER_BLOCK == 0 && offset >= reader->offset &&
           offset <= reader->size && length <= reader->size - offset &&
           (length % LAYER_BLOCK == 0 || offset + length == reader->size);
}

int layer_reader_piece(struct layer_reader *reader, struct layer_piece *ret_piece,
                       struct error *err)
{
    uint64_t length, offset;

    if (reader->next != PART_PIECES)
        return error_set(err, ERR_INTERNAL, 0, "pieces of what has none");
    if (read_number(reader, 4, &length, err) < 0)
        return -1;
    if (length == 0) {
        reader->next = PART_ATTRIBUTES;
        return 0;
    }
    if (read_number(reader, 8, &offset, err) < 0)
        return -1;
    if (!is_piece(reader, offset, length))
        return refuse(reader, "not a layer: a bad piece of", err);
    if (layer_input_read(reader->input, reader->buffer, (size_t) length, err) < 0)
        return -1;
    reader->offset = offset + length;
    *ret_piece = (struct layer_piece){offset, reader->buffer, (size_t) length};
    return 1;
}

int layer_reader_attribute(struct layer_reader *reader, struct layer_attribute *ret_attribute,
                           struct error *err)
{
    struct layer_attribute *attribute = ret_attribute;
    uint64_t length;

    if (reader->next != PART_ATTRIBUTES)
        return error_set(err, ERR_INTERNAL, 0, "attributes of what has none");
    if (read_text(reader, 1, attribute->name, UINT8_MAX, err) < 0)
        return -1;
    if (!*attribute->name) {
        reader->next = PART_RECORD;
        return 0;
    }
    if (strcmp(attribute->name, reader->attribute) <= 0)
        return refuse(reader, "not a layer: attributes out of order at", err);
    memcpy(reader->attribute, attribute->name, sizeof(reader->attribute));
    if (read_number(reader, 4, &length, err) < 0)
        return -1;
    if (length > LAYER_ATTRIBUTE_MAX)
        return refuse(reader, "not a layer: too long an attribute of", err);
    if (layer_input_read(reader->input, reader->buffer, (size_t) length, err) < 0)
        return -1;
    attribute->value = reader->buffer;
    attribute->length = (size_t) length;
    return 1;
}

void layer_reader_sums(const struct layer_reader *reader, struct layer_sums *ret_sums)
{
    *ret_sums = reader->sums;
}
