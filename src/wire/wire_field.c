#include "wire/wire_field.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define LENGTH_WIDTH 2 /* of texts and lists */

void wire_put_number(struct wire_writer *writer, uint64_t number, size_t width)
{
    for (size_t i = 0; i < width; i++)
        *writer->at++ = (uint8_t) (number >> 8 * i);
}

uint64_t wire_get_number(struct wire_reader *reader, size_t width)
{
    uint64_t number = 0;

    for (size_t i = 0; i < width; i++)
        number |= (uint64_t) *reader->at++ << 8 * i;
    return number;
}

static int need_room(const struct wire_writer *writer, size_t count, struct error *err)
{
    if ((size_t) (writer->end - writer->at) < count)
        return error_set(err, ERR_TOO_LARGE, 0, "does not fit into the message");
    return 0;
}

static int need_bytes(const struct wire_reader *reader, size_t count, struct error *err)
{
    if ((size_t) (reader->end - reader->at) < count)
        return error_set(err, ERR_INVALID, 0, "cut short");
    return 0;
}

/* Members are read and written by their size, so that one kind serves bool, enum and integers. */
union member {
    uint8_t u8;
    uint16_t u16;
    uint32_t u32;
    uint64_t u64;
};

static uint64_t load(const void *member, size_t size)
{
    union member value = {.u64 = 0};

    memcpy(&value, member, size);
    return size == 1 ? value.u8 : size == 2 ? value.u16 : size == 4 ? value.u32 : value.u64;
}

static void store(void *ret_member, size_t size, uint64_t number)
{
    union member value = {.u64 = number};

    if (size == 1)
        value.u8 = (uint8_t) number;
    else if (size == 2)
        value.u16 = (uint16_t) number;
    else if (size == 4)
        value.u32 = (uint32_t) number;
    memcpy(ret_member, &value, size);
}

static int check_number(const struct wire_field *field, uint64_t number, struct error *err)
{
    if (number < field->minimum || number > field->maximum)
        return error_set(err, ERR_INVALID, 0, "%" PRIu64 " is not from %" PRIu64 " to %" PRIu64,
                         number, field->minimum, field->maximum);
    return 0;
}

static int encode_number(const struct wire_field *field, const void *member,
                         struct wire_writer *writer, struct error *err)
{
    uint64_t number = load(member, field->size);

    if (check_number(field, number, err) < 0 || need_room(writer, field->width, err) < 0)
        return -1;
    wire_put_number(writer, number, field->width);
    return 0;
}

static int decode_number(const struct wire_field *field, struct wire_reader *reader,
                         void *ret_member, struct error *err)
{
    uint64_t number;

    if (need_bytes(reader, field->width, err) < 0)
        return -1;
    number = wire_get_number(reader, field->width);
    if (check_number(field, number, err) < 0)
        return -1;
    store(ret_member, field->size, number);
    return 0;
}

static int check_id(const struct wire_field *field, const char *text, struct error *err)
{
    bool none = text[0] == '\0' && field->kind == WIRE_KIND_ID_OR_NONE;

    if (!none && (!memchr(text, '\0', ID_SIZE) || !id_is_valid(text)))
        return error_set(err, ERR_INVALID, 0, "not an id (26 characters of a-z2-7)");
    return 0;
}

static int encode_id(const struct wire_field *field, const void *member, struct wire_writer *writer,
                     struct error *err)
{
    const struct id *id = member;

    if (check_id(field, id->text, err) < 0 || need_room(writer, ID_LENGTH, err) < 0)
        return -1;
    memset(writer->at, 0, ID_LENGTH);
    memcpy(writer->at, id->text, strlen(id->text));
    writer->at += ID_LENGTH;
    return 0;
}

static int decode_id(const struct wire_field *field, struct wire_reader *reader, void *ret_member,
                     struct error *err)
{
    static const char none[ID_LENGTH];
    struct id *id = ret_member;

    if (need_bytes(reader, ID_LENGTH, err) < 0)
        return -1;
    memcpy(id->text, reader->at, ID_LENGTH);
    id->text[ID_LENGTH] = '\0';
    reader->at += ID_LENGTH;
    /* None has one spelling: a zero byte and then something would be another one. */
    if (id->text[0] == '\0' && memcmp(id->text, none, sizeof(none)) != 0)
        return error_set(err, ERR_INVALID, 0, "neither an id nor empty");
    return check_id(field, id->text, err);
}

static bool is_name_or_none(const char *text)
{
    return !*text || wire_text_is_name(text);
}

static int check_text(const struct wire_field *field, const char *text, struct error *err)
{
    static const struct {
        enum wire_kind kind;
        bool (*holds)(const char *text);
        const char *rule;
    } rules[] = {
        {WIRE_KIND_NAME, wire_text_is_name, "a name: [a-z0-9][a-z0-9._-]{0,63}"},
        {WIRE_KIND_NAME_OR_NONE, is_name_or_none, "a name, nor empty"},
        {WIRE_KIND_TEXT, wire_text_is_printable, "printable"},
        {WIRE_KIND_PATH, wire_text_is_path,
         "an absolute path below / without empty, '.' or '..' parts"},
    };

    for (size_t i = 0; i < sizeof(rules) / sizeof(rules[0]); i++)
        if (rules[i].kind == field->kind)
            return rules[i].holds(text) ? 0
                                        : error_set(err, ERR_INVALID, 0, "not %s", rules[i].rule);
    return error_set(err, ERR_INTERNAL, 0, "a text without a rule");
}

static int encode_text(const struct wire_field *field, const void *member,
                       struct wire_writer *writer, struct error *err)
{
    size_t length = strnlen(member, field->size);

    if (length >= field->size)
        return error_set(err, ERR_INVALID, 0, "not terminated");
    if (check_text(field, member, err) < 0 || need_room(writer, LENGTH_WIDTH + length, err) < 0)
        return -1;
    wire_put_number(writer, length, LENGTH_WIDTH);
    memcpy(writer->at, member, length);
    writer->at += length;
    return 0;
}

static int decode_text(const struct wire_field *field, struct wire_reader *reader, void *ret_member,
                       struct error *err)
{
    char *text = ret_member;
    size_t length;

    if (need_bytes(reader, LENGTH_WIDTH, err) < 0)
        return -1;
    length = wire_get_number(reader, LENGTH_WIDTH);
    if (length > field->maximum)
        return error_set(err, ERR_INVALID, 0, "%zu characters, at most %" PRIu64 " are allowed",
                         length, field->maximum);
    if (need_bytes(reader, length, err) < 0)
        return -1;
    memcpy(text, reader->at, length);
    text[length] = '\0';
    reader->at += length;
    if (strlen(text) != length)
        return error_set(err, ERR_INVALID, 0, "a zero byte inside");
    return check_text(field, text, err);
}

static int encode_record(const struct wire_field *field, const void *member,
                         struct wire_writer *writer, struct error *err)
{
    return wire_record_encode(field->record, member, writer, err);
}

static int decode_record(const struct wire_field *field, struct wire_reader *reader,
                         void *ret_member, struct error *err)
{
    return wire_record_decode(field->record, reader, ret_member, err);
}

static int check_count(const struct wire_field *field, size_t count, struct error *err)
{
    if (count > field->maximum)
        return error_set(err, ERR_INVALID, 0, "%zu items, at most %" PRIu64 " are allowed", count,
                         field->maximum);
    return 0;
}

/* A list's count lies before its items in the same struct: see WIRE_LIST. */
static ptrdiff_t count_distance(const struct wire_field *field)
{
    return (ptrdiff_t) field->count_offset - (ptrdiff_t) field->offset;
}

static int encode_list(const struct wire_field *field, const void *member,
                       struct wire_writer *writer, struct error *err)
{
    const char *items = member;
    size_t count = load(items + count_distance(field), sizeof(uint16_t));

    if (check_count(field, count, err) < 0 || need_room(writer, LENGTH_WIDTH, err) < 0)
        return -1;
    wire_put_number(writer, count, LENGTH_WIDTH);
    for (size_t i = 0; i < count; i++)
        if (wire_record_encode(field->record, items + i * field->record->size, writer, err) < 0)
            return error_wrap(err, "item %zu", i);
    return 0;
}

static int decode_list(const struct wire_field *field, struct wire_reader *reader, void *ret_member,
                       struct error *err)
{
    char *items = ret_member;
    size_t count;

    if (need_bytes(reader, LENGTH_WIDTH, err) < 0)
        return -1;
    count = wire_get_number(reader, LENGTH_WIDTH);
    if (check_count(field, count, err) < 0)
        return -1;
    store(items + count_distance(field), sizeof(uint16_t), count);
    for (size_t i = 0; i < count; i++)
        if (wire_record_decode(field->record, reader, items + i * field->record->size, err) < 0)
            return error_wrap(err, "item %zu", i);
    return 0;
}

/* Both directions check the same things, so that we cannot send what we would refuse. */
static const struct {
    int (*encode)(const struct wire_field *field, const void *member, struct wire_writer *writer,
                  struct error *err);
    int (*decode)(const struct wire_field *field, struct wire_reader *reader, void *ret_member,
                  struct error *err);
} kinds[WIRE_KIND_COUNT] = {
    [WIRE_KIND_NUMBER] = {encode_number, decode_number},
    [WIRE_KIND_ID] = {encode_id, decode_id},
    [WIRE_KIND_ID_OR_NONE] = {encode_id, decode_id},
    [WIRE_KIND_NAME] = {encode_text, decode_text},
    [WIRE_KIND_NAME_OR_NONE] = {encode_text, decode_text},
    [WIRE_KIND_TEXT] = {encode_text, decode_text},
    [WIRE_KIND_PATH] = {encode_text, decode_text},
    [WIRE_KIND_RECORD] = {encode_record, decode_record},
    [WIRE_KIND_LIST] = {encode_list, decode_list},
};

int wire_record_encode(const struct wire_record *record, const void *object,
                       struct wire_writer *writer, struct error *err)
{
    for (size_t i = 0; i < record->count; i++) {
        const struct wire_field *field = &record->fields[i];

        if (kinds[field->kind].encode(field, (const char *) object + field->offset, writer, err) <
            0)
            return error_wrap(err, "%s", field->name);
    }
    return record->check ? record->check(object, err) : 0;
}

int wire_record_decode(const struct wire_record *record, struct wire_reader *reader,
                       void *ret_object, struct error *err)
{
    memset(ret_object, 0, record->size);
    for (size_t i = 0; i < record->count; i++) {
        const struct wire_field *field = &record->fields[i];

        if (kinds[field->kind].decode(field, reader, (char *) ret_object + field->offset, err) < 0)
            return error_wrap(err, "%s", field->name);
    }
    return record->check ? record->check(ret_object, err) : 0;
}

static size_t field_size_max(const struct wire_field *field)
{
    switch (field->kind) {
    case WIRE_KIND_NUMBER:
        return field->width;
    case WIRE_KIND_ID:
    case WIRE_KIND_ID_OR_NONE:
        return ID_LENGTH;
    case WIRE_KIND_NAME:
    case WIRE_KIND_NAME_OR_NONE:
    case WIRE_KIND_TEXT:
    case WIRE_KIND_PATH:
        return LENGTH_WIDTH + field->maximum;
    case WIRE_KIND_RECORD:
        return wire_record_size_max(field->record);
    case WIRE_KIND_LIST:
        return LENGTH_WIDTH + field->maximum * wire_record_size_max(field->record);
    case WIRE_KIND_COUNT:
        break;
    }
    abort();
}

size_t wire_record_size_max(const struct wire_record *record)
{
    size_t size = 0;

    for (size_t i = 0; i < record->count; i++)
        size += field_size_max(&record->fields[i]);
    return size;
}
