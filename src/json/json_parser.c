#include "json/json_parser.h"

#include <stdint.h>
#include <string.h>

#include "base/auto.h"
#include "base/encoding/utf8.h"
#include "base/memory.h"
#include "base/number.h"
#include "json/json_read.h"

/* An integer of so many digits needs no look at its range. */
#define SHORT_DIGITS 18
/* Behind "\u". */
#define HEX_DIGITS 4

struct parser {
    const char *at;
    const char *end;
    size_t depth; /* that may still be entered */
    bool nul;
};

/* A decoded string. */
struct json_parser_piece {
    const char *bytes; /* in the text, or `owned` */
    size_t length;
    char *owned;
};

static void piece_done(struct json_parser_piece *piece)
{
    free(piece->owned);
}

AUTO_DEFINE(piece, struct json_parser_piece, piece_done);

static json_t *parse_value(struct parser *parser);

static void skip_blanks(struct parser *parser)
{
    while (parser->at < parser->end && (*parser->at == ' ' || *parser->at == '\n' ||
                                        *parser->at == '\r' || *parser->at == '\t'))
        parser->at++;
}

/* Step over `wanted`, if it comes next. */
static bool json_parser_take(struct parser *parser, char wanted)
{
    if (parser->at == parser->end || *parser->at != wanted)
        return false;
    parser->at++;
    return true;
}

/* --- strings -------------------------------------------------------------------------------- */

static const char *skip_plain(const char *at, const char *end)
{
    uint64_t word;

    while ((size_t) (end - at) >= sizeof(word)) {
        memcpy(&word, at, sizeof(word));
        if (!utf8_is_plain_word(word))
            break;
        at += sizeof(word);
    }
    return at;
}

/* The closing quote of the string that `at` is inside of, or NULL. */
static const char *find_quote(const char *at, const char *end, bool *ret_escaped)
{
    *ret_escaped = false;
    for (at = skip_plain(at, end); at < end; at = skip_plain(at + 1, end)) {
        if (*at == '"')
            return at;
        if ((unsigned char) *at < 0x20)
            return NULL;
        if (*at == '\\') {
            *ret_escaped = true;
            if (++at == end) /* what is escaped ends nothing */
                return NULL;
        }
    }
    return NULL;
}

static int read_hex(const char *at, const char *end, uint32_t *ret_unit)
{
    uint32_t unit = 0;

    if (end - at < HEX_DIGITS)
        return -1;
    for (size_t i = 0; i < HEX_DIGITS; i++) {
        static const char digits[] = "0123456789abcdef0123456789ABCDEF";
        const char *digit = at[i] ? strchr(digits, at[i]) : NULL;

        if (!digit)
            return -1;
        unit = unit << 4 | ((uint32_t) (digit - digits) & 0xf);
    }
    *ret_unit = unit;
    return 0;
}

static char *put_character(char *to, uint32_t character)
{
    static const uint8_t marks[] = {0, 0, 0xc0, 0xe0, 0xf0};
    size_t length = character < 0x80 ? 1 : character < 0x800 ? 2 : character < 0x10000 ? 3 : 4;

    for (size_t i = length; i-- > 1; character >>= 6)
        to[i] = (char) (0x80 | (character & 0x3f));
    to[0] = (char) (marks[length == 1 ? 0 : length] | character);
    return to + length;
}

/* The four digits behind "\u", and what must follow them. Returns what is behind, or NULL. */
static const char *decode_unicode(const struct parser *parser, const char *at, const char *end,
                                  char **to)
{
    uint32_t unit, low;

    if (read_hex(at, end, &unit) < 0 || (!unit && !parser->nul) ||
        (unit >= 0xdc00 && unit <= 0xdfff))
        return NULL;
    at += HEX_DIGITS;
    if (unit >= 0xd800 && unit <= 0xdbff) {
        if (end - at < 2 || at[0] != '\\' || at[1] != 'u' || read_hex(at + 2, end, &low) < 0 ||
            low < 0xdc00 || low > 0xdfff)
            return NULL;
        at += 2 + HEX_DIGITS;
        unit = 0x10000 + ((unit & 0x3ff) << 10 | (low & 0x3ff));
    }
    *to = put_character(*to, unit);
    return at;
}

/* What is behind a backslash. */
static const char *decode_escape(const struct parser *parser, const char *at, const char *end,
                                 char **to)
{
    static const char letters[] = "\"\\/bfnrt", meanings[] = "\"\\/\b\f\n\r\t";
    const char *letter = *at ? strchr(letters, *at) : NULL;

    if (*at == 'u')
        return decode_unicode(parser, at + 1, end, to);
    if (!letter)
        return NULL;
    *(*to)++ = meanings[letter - letters];
    return at + 1;
}

/* Every escape is longer than what it stands for. */
static int decode(const struct parser *parser, const char *at, const char *end,
                  struct json_parser_piece *piece)
{
    char *to = piece->owned = mem_alloc((size_t) (end - at) + 1);

    while (at) {
        const char *escape = memchr(at, '\\', (size_t) (end - at));
        size_t run = (size_t) ((escape ? escape : end) - at);

        memcpy(to, at, run);
        to += run;
        if (!escape) {
            piece->bytes = piece->owned;
            piece->length = (size_t) (to - piece->owned);
            return 0;
        }
        at = decode_escape(parser, escape + 1, end, &to);
    }
    return -1;
}

static int parse_text(struct parser *parser, struct json_parser_piece *ret_piece)
{
    const char *start, *end;
    bool escaped;

    if (!json_parser_take(parser, '"'))
        return -1;
    start = parser->at;
    end = find_quote(start, parser->end, &escaped);
    if (!end || !utf8_is_valid(start, (size_t) (end - start)))
        return -1;
    parser->at = end + 1;
    if (escaped)
        return decode(parser, start, end, ret_piece);
    *ret_piece = (struct json_parser_piece){.bytes = start, .length = (size_t) (end - start)};
    return 0;
}

static json_t *parse_string(struct parser *parser)
{
    AUTO(piece) struct json_parser_piece piece = {.owned = NULL};

    return parse_text(parser, &piece) < 0 ? NULL : json_stringn_nocheck(piece.bytes, piece.length);
}

/* --- numbers and words ---------------------------------------------------------------------- */

static json_t *parse_number(struct parser *parser)
{
    const char *start = parser->at, *digits = start;
    size_t length;
    uint64_t number;

    while (parser->at < parser->end && *parser->at && strchr("+-.0123456789Ee", *parser->at))
        parser->at++;
    if (digits < parser->at && *digits == '-')
        digits++;
    length = (size_t) (parser->at - digits);
    if (length <= SHORT_DIGITS && (length == 1 || (length && *digits != '0')) &&
        number_parse_digits(digits, length, INT64_MAX, &number) == 0)
        return json_integer(digits == start ? (json_int_t) number : -(json_int_t) number);
    return json_loadb(start, (size_t) (parser->at - start), JSON_DECODE_ANY, NULL);
}

static json_t *parse_word(struct parser *parser)
{
    static const struct {
        const char *name;
        json_t *(*make)(void);
    } words[] = {{"true", json_true}, {"false", json_false}, {"null", json_null}};

    for (size_t i = 0; i < ARRAY_COUNT(words); i++) {
        size_t length = strlen(words[i].name);

        if ((size_t) (parser->end - parser->at) >= length &&
            memcmp(parser->at, words[i].name, length) == 0) {
            parser->at += length;
            return words[i].make();
        }
    }
    return NULL;
}

/* --- arrays and objects --------------------------------------------------------------------- */

static int parse_item(struct parser *parser, json_t *array)
{
    json_t *value = parse_value(parser);

    return value ? json_array_append_new(array, value) : -1;
}

static int parse_member(struct parser *parser, json_t *object)
{
    AUTO(piece) struct json_parser_piece key = {.owned = NULL};
    json_t *value;

    skip_blanks(parser);
    if (parse_text(parser, &key) < 0 || memchr(key.bytes, '\0', key.length) ||
        json_object_getn(object, key.bytes, key.length))
        return -1;
    skip_blanks(parser);
    if (!json_parser_take(parser, ':'))
        return -1;
    value = parse_value(parser);
    return value ? json_object_setn_new_nocheck(object, key.bytes, key.length, value) : -1;
}

/* Behind the opening bracket. `container` is taken. */
static json_t *parse_members(struct parser *parser, json_t *container, char close,
                             int (*parse_one)(struct parser *, json_t *))
{
    AUTO(json) json_t *whole = container;

    if (!parser->depth)
        return NULL;
    parser->depth--;
    skip_blanks(parser);
    if (!json_parser_take(parser, close)) {
        do {
            if (parse_one(parser, whole) < 0)
                return NULL;
            skip_blanks(parser);
        } while (json_parser_take(parser, ','));
        if (!json_parser_take(parser, close))
            return NULL;
    }
    parser->depth++;
    return TAKE_PTR(whole);
}

static json_t *parse_container(struct parser *parser)
{
    if (json_parser_take(parser, '['))
        return parse_members(parser, json_array(), ']', parse_item);
    if (json_parser_take(parser, '{'))
        return parse_members(parser, json_object(), '}', parse_member);
    return NULL;
}

static json_t *parse_value(struct parser *parser)
{
    char first;

    skip_blanks(parser);
    first = parser->at < parser->end ? *parser->at : '\0';
    if (first == '[' || first == '{')
        return parse_container(parser);
    if (first == '"')
        return parse_string(parser);
    if (first == '-' || (first >= '0' && first <= '9'))
        return parse_number(parser);
    return parse_word(parser);
}

json_t *json_parse(const char *bytes, size_t length, const struct json_limits *limits)
{
    struct parser parser = {
        .at = bytes, .end = bytes + length, .depth = limits->depth, .nul = limits->nul};
    AUTO(json) json_t *value = NULL;

    skip_blanks(&parser);
    value = parse_container(&parser);
    skip_blanks(&parser);
    return parser.at == parser.end ? TAKE_PTR(value) : NULL;
}
