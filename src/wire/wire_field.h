/* Structs as bytes, described by tables: what both directions of the protocol and the plan share.
 *
 * A struct is one list of fields; the struct itself, the table that the codec walks, the page
 * docs/wire-protocol.md and the test values all come from that list:
 *
 *     #define WIRE_PORTS_FIELDS(F, S)               S, kind, member, parameter, meaning
 *         F(S, U16, first, UINT16_MAX, "lowest port")
 *         F(S, U16, last, UINT16_MAX, "highest port")
 *     WIRE_STRUCT(ports, WIRE_PORTS_FIELDS);                        in the header
 *     WIRE_RECORD(ports, WIRE_PORTS_FIELDS, check_ports);           in one .c
 *
 * What daemon and launcher say to others, too, is a struct of model/ that others define: there the
 * list only describes it.
 *
 *     WIRE_DESCRIBE(ports, struct network_ports);                   instead of WIRE_STRUCT
 *
 * kind          parameter             member                 bytes
 * U8 .. U64     largest value         uint8_t .. uint64_t    the number, little endian
 * BOOL          -                     bool                   1: 0 or 1
 * ENUM          name of a vocabulary  its enum               1: below the number of words
 * FLAGS         name of a vocabulary  uint32_t               4: bit n stands for word n
 * COUNT         largest value         uint8_t                1: 1 or more
 * FD_COUNT      largest value         uint8_t                1: descriptors that come along
 * ID            -                     struct id              26 characters
 * ID_OR_NONE    -                     struct id              26 characters, or 26 zero bytes
 * NAME          -                     char[]                 u16 length, characters (wire_text.h)
 * NAME_OR_NONE  -                     char[]                 the same, or u16 length 0
 * TEXT          longest length        char[]                 u16 length, printable characters
 * PATH          -                     char[]                 u16 length, characters (wire_text.h)
 * RECORD        name of a WIRE_STRUCT its struct             its fields
 * LIST          name of a WIRE_LIST   struct wire_NAME_list  u16 count, that many records
 *
 * There is no padding, nothing optional and no second way to write a value: bytes that decode
 * encode to the same bytes again, and what decodes is valid in every field. Pure, thread-safe. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "base/id.h"
#include "model/words.h"
#include "wire/wire_text.h"

enum wire_kind {
    WIRE_KIND_NUMBER, /* also bool, enum and flags */
    WIRE_KIND_ID,
    WIRE_KIND_ID_OR_NONE,
    WIRE_KIND_NAME,
    WIRE_KIND_NAME_OR_NONE,
    WIRE_KIND_TEXT,
    WIRE_KIND_PATH,
    WIRE_KIND_RECORD,
    WIRE_KIND_LIST,
    WIRE_KIND_COUNT
};

struct wire_record;

struct wire_field {
    const char *name;
    enum wire_kind kind;
    bool counts_fds;                  /* FD_COUNT */
    uint16_t offset;                  /* of the member; of a list: of its first item */
    uint16_t count_offset;            /* LIST: of the member that counts the items */
    uint16_t size;                    /* of the member in memory */
    uint8_t width;                    /* NUMBER: bytes on the wire */
    uint64_t minimum;                 /* NUMBER */
    uint64_t maximum;                 /* NUMBER: value; text: length; LIST: items */
    const struct wire_record *record; /* RECORD, LIST */
    const char *const *words;         /* ENUM, FLAGS */
};

struct wire_record {
    const char *name;
    size_t size; /* of the struct */
    const struct wire_field *fields;
    size_t count;
    /* What no single field can say. NULL: nothing. Returns 0 or -1. */
    int (*check)(const void *object, struct error *err);
};

/* Where the next byte goes, or comes from, and the end. */
struct wire_writer {
    uint8_t *at;
    const uint8_t *end;
};

struct wire_reader {
    const uint8_t *at;
    const uint8_t *end;
};

/* Append `object`. -1 with ERR_INVALID when it is not valid (with the name of the field), or
 * ERR_TOO_LARGE when it does not fit; an unknown part was then written. */
int wire_record_encode(const struct wire_record *record, const void *object,
                       struct wire_writer *writer, struct error *err);

/* Take `ret_object` from the reader; more bytes may follow. All of the struct is written, padding
 * and unused items as zero. -1 with ERR_INVALID: cut short, or not valid; the object is then
 * undefined. */
int wire_record_decode(const struct wire_record *record, struct wire_reader *reader,
                       void *ret_object, struct error *err);

/* The most bytes a valid object can take. */
size_t wire_record_size_max(const struct wire_record *record);

/* Plain numbers, for headers. The caller has checked the room. */
void wire_put_number(struct wire_writer *writer, uint64_t number, size_t width);
uint64_t wire_get_number(struct wire_reader *reader, size_t width);

/* One flag of a FLAGS field. */
#define WIRE_BIT(flag) (UINT32_C(1) << (flag))

/* WIRE_VOCABULARY(exit_kind, enum ending_kind, ENDING_KINDS): what a field ENUM or FLAGS of
 * exit_kind holds, how many words there are, and the words. The list is as model/words.h says.
 * WIRE_ENUM(kill_scope, WIRE_KILL_SCOPES) also defines the enum, as enum wire_kill_scope. */
#define WIRE_VOCABULARY(name, type, list)                                                          \
    typedef type wire_##name##_type;                                                               \
    enum { wire_##name##_count = 0 list(WORD_ONE) };                                               \
    extern const char *const wire_##name##_words[]
#define WIRE_ENUM(name, list)                                                                      \
    enum wire_##name{list(WORD_CONSTANT)};                                                         \
    WIRE_VOCABULARY(name, enum wire_##name, list)
#define WIRE_WORDS(name, list)                                                                     \
    const char *const wire_##name##_words[wire_##name##_count] = {list(WORD_TEXT)}

#define WIRE_MEMBER_U8(name, parameter)           uint8_t name;
#define WIRE_MEMBER_U16(name, parameter)          uint16_t name;
#define WIRE_MEMBER_U32(name, parameter)          uint32_t name;
#define WIRE_MEMBER_U64(name, parameter)          uint64_t name;
#define WIRE_MEMBER_BOOL(name, parameter)         bool name;
#define WIRE_MEMBER_ENUM(name, parameter)         wire_##parameter##_type name;
#define WIRE_MEMBER_FLAGS(name, parameter)        uint32_t name;
#define WIRE_MEMBER_COUNT(name, parameter)        uint8_t name;
#define WIRE_MEMBER_FD_COUNT(name, parameter)     uint8_t name;
#define WIRE_MEMBER_ID(name, parameter)           struct id name;
#define WIRE_MEMBER_ID_OR_NONE(name, parameter)   struct id name;
#define WIRE_MEMBER_NAME(name, parameter)         char name[WIRE_NAME_MAX + 1];
#define WIRE_MEMBER_NAME_OR_NONE(name, parameter) char name[WIRE_NAME_MAX + 1];
#define WIRE_MEMBER_TEXT(name, parameter)         char name[(parameter) + 1];
#define WIRE_MEMBER_PATH(name, parameter)         char name[WIRE_PATH_MAX + 1];
#define WIRE_MEMBER_RECORD(name, parameter)       wire_##parameter##_type name;
#define WIRE_MEMBER_LIST(name, parameter)         struct wire_##parameter##_list name;

#define WIRE_MEMBER(of, kind, name, parameter, meaning) WIRE_MEMBER_##kind(name, parameter)

/* The declaration of the table of a struct that is defined elsewhere. */
#define WIRE_DESCRIBE(name, type)                                                                  \
    typedef type wire_##name##_type;                                                               \
    extern const struct wire_record wire_##name##_record

/* struct wire_NAME and the declaration of its table. */
#define WIRE_STRUCT(name, fields)                                                                  \
    struct wire_##name {                                                                           \
        fields(WIRE_MEMBER, )                                                                      \
    };                                                                                             \
    WIRE_DESCRIBE(name, struct wire_##name)

/* struct wire_NAME_list: up to `most` of struct wire_NAME. */
#define WIRE_LIST(name, most)                                                                      \
    struct wire_##name##_list {                                                                    \
        uint16_t count;                                                                            \
        wire_##name##_type items[most];                                                            \
    }

#define WIRE_PLACE(type, member)                                                                   \
    .name = #member, .offset = offsetof(type, member), .size = sizeof(((type *) 0)->member)
#define WIRE_NUMBER(type, member, bytes, least, most)                                              \
    {                                                                                              \
        WIRE_PLACE(type, member), .kind = WIRE_KIND_NUMBER, .width = (bytes), .minimum = (least),  \
                                  .maximum = (most)                                                \
    }
#define WIRE_PLAIN(type, member, what, longest)                                                    \
    {                                                                                              \
        WIRE_PLACE(type, member), .kind = (what), .maximum = (longest)                             \
    }

#define WIRE_ROW_U8(type, member, most)    WIRE_NUMBER(type, member, 1, 0, most),
#define WIRE_ROW_U16(type, member, most)   WIRE_NUMBER(type, member, 2, 0, most),
#define WIRE_ROW_U32(type, member, most)   WIRE_NUMBER(type, member, 4, 0, most),
#define WIRE_ROW_U64(type, member, most)   WIRE_NUMBER(type, member, 8, 0, most),
#define WIRE_ROW_BOOL(type, member, ...)   WIRE_NUMBER(type, member, 1, 0, 1),
#define WIRE_ROW_COUNT(type, member, most) WIRE_NUMBER(type, member, 1, 1, most),
#define WIRE_ROW_ENUM(type, member, of)                                                            \
    {WIRE_PLACE(type, member), .kind = WIRE_KIND_NUMBER, .width = 1,                               \
     .maximum = wire_##of##_count - 1, .words = wire_##of##_words},
#define WIRE_ROW_FLAGS(type, member, of)                                                           \
    {WIRE_PLACE(type, member), .kind = WIRE_KIND_NUMBER, .width = 4,                               \
     .maximum = WIRE_BIT(wire_##of##_count) - 1, .words = wire_##of##_words},
#define WIRE_ROW_FD_COUNT(type, member, most)                                                      \
    {WIRE_PLACE(type, member), .kind = WIRE_KIND_NUMBER, .width = 1, .minimum = 1,                 \
     .maximum = (most),        .counts_fds = true},
#define WIRE_ROW_ID(type, member, ...) WIRE_PLAIN(type, member, WIRE_KIND_ID, ID_LENGTH),
#define WIRE_ROW_ID_OR_NONE(type, member, ...)                                                     \
    WIRE_PLAIN(type, member, WIRE_KIND_ID_OR_NONE, ID_LENGTH),
#define WIRE_ROW_NAME(type, member, ...) WIRE_PLAIN(type, member, WIRE_KIND_NAME, WIRE_NAME_MAX),
#define WIRE_ROW_NAME_OR_NONE(type, member, ...)                                                   \
    WIRE_PLAIN(type, member, WIRE_KIND_NAME_OR_NONE, WIRE_NAME_MAX),
#define WIRE_ROW_TEXT(type, member, most) WIRE_PLAIN(type, member, WIRE_KIND_TEXT, most),
#define WIRE_ROW_PATH(type, member, ...)  WIRE_PLAIN(type, member, WIRE_KIND_PATH, WIRE_PATH_MAX),
#define WIRE_ROW_RECORD(type, member, of)                                                          \
    {WIRE_PLACE(type, member), .kind = WIRE_KIND_RECORD, .record = &wire_##of##_record},
#define WIRE_ROW_LIST(type, member, of)                                                            \
    {.name = #member,                                                                              \
     .kind = WIRE_KIND_LIST,                                                                       \
     .offset = offsetof(type, member.items),                                                       \
     .count_offset = offsetof(type, member.count),                                                 \
     .size = sizeof(((type *) 0)->member.items),                                                   \
     .maximum = sizeof(((type *) 0)->member.items) / sizeof(wire_##of##_type),                     \
     .record = &wire_##of##_record},

#define WIRE_ROW(of, kind, member, parameter, meaning) WIRE_ROW_##kind(of, member, parameter)

/* The table behind WIRE_STRUCT. `checker` may be NULL. */
#define WIRE_RECORD(record, list, checker)                                                         \
    static const struct wire_field record##_fields[] = {list(WIRE_ROW, wire_##record##_type)};     \
    const struct wire_record wire_##record##_record = {                                            \
        .name = #record,                                                                           \
        .size = sizeof(wire_##record##_type),                                                      \
        .fields = record##_fields,                                                                 \
        .count = sizeof(record##_fields) / sizeof(record##_fields[0]),                             \
        .check = (checker),                                                                        \
    }
