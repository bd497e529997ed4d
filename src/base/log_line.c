#include "base/log_line.h"

#include <string.h>

#include "base/encoding/utf8.h"
#include "base/number.h"

/* Kept free behind the last field: ..." ,"cut":true } and the newline. */
#define TAIL_ROOM 24

/* The longest thing one input byte or character becomes: \u0000. */
#define ESCAPE_ROOM 8

struct log_line {
    char *at;
    const char *limit; /* TAIL_ROOM before the real end */
    bool cut;
};

struct level_name {
    const char *json; /* what stands between time and message */
    const char *text;
};

static const struct level_name levels[] = {
    [LOG_LEVEL_DEBUG] = {"\",\"level\":\"debug\",\"message\":", " debug "},
    [LOG_LEVEL_INFO] = {"\",\"level\":\"info\",\"message\":", " info  "},
    [LOG_LEVEL_WARNING] = {"\",\"level\":\"warning\",\"message\":", " warn  "},
    [LOG_LEVEL_ERROR] = {"\",\"level\":\"error\",\"message\":", " error "},
};

static const struct {
    size_t length;
    const char *word;
} secrets[] = {
    {13, "authorization"}, {6, "cookie"}, {8, "password"}, {6, "secret"}, {5, "token"}, {3, "key"},
};

bool log_line_hides(const char *name, size_t length)
{
    for (size_t i = 0; i < ARRAY_COUNT(secrets); i++) {
        size_t left = secrets[i].length;

        if (length < left)
            continue;
        /* Backwards, because nearly every name differs in its last letters. */
        while (left &&
               (name[length - secrets[i].length + left - 1] | 0x20) == secrets[i].word[left - 1])
            left--;
        if (!left)
            return true;
    }
    return false;
}

/* A closing quote may stand behind the limit: then there is none. */
static size_t room(const struct log_line *line)
{
    return line->at < line->limit ? (size_t) (line->limit - line->at) : 0;
}

static void add(struct log_line *line, const char *bytes, size_t length)
{
    if (room(line) < length) {
        line->cut = true;
        return;
    }
    memcpy(line->at, bytes, length);
    line->at += length;
}

/* Characters above ASCII that a terminal or a viewer takes as a command: C1 controls, line and
 * paragraph separators, changes of writing direction. */
static bool is_hidden_control(uint32_t character)
{
    return (character >= 0x80 && character < 0xa0) ||
           (character >= 0x2028 && character <= 0x202e) ||
           (character >= 0x2066 && character <= 0x2069);
}

static void add_code(struct log_line *line, uint32_t unit)
{
    static const char digits[] = "0123456789abcdef";
    const char code[] = {'\\',
                         'u',
                         digits[unit >> 12 & 15],
                         digits[unit >> 8 & 15],
                         digits[unit >> 4 & 15],
                         digits[unit & 15]};

    add(line, code, sizeof(code));
}

/* One character that is not plain; returns how many bytes it took. Invalid bytes become U+FFFD. */
static size_t add_special(struct log_line *line, const char *bytes, size_t length, bool quoted)
{
    uint32_t character = 0;
    size_t size = utf8_decode(bytes, length, &character);

    if (size == 0)
        add_code(line, 0xfffd);
    else if (character == '"' || character == '\\') {
        if (quoted)
            *line->at++ = '\\';
        *line->at++ = bytes[0];
    } else if (character == '\n')
        add(line, "\\n", 2);
    else if (character < 0x20 || character == 0x7f || is_hidden_control(character))
        add_code(line, character);
    else
        add(line, bytes, size);
    return size ? size : 1;
}

/* Copies plain bytes until one is not, or room or input end; returns how many. The pointers are
 * locals: through `line` the compiler would reload them after every byte. */
static size_t add_plain(struct log_line *line, const char *bytes, size_t length)
{
    size_t most = room(line), i = 0;
    char *at = line->at;
    uint64_t word;

    if (length > most)
        length = most;
    while (length - i >= sizeof(word)) {
        memcpy(&word, bytes + i, sizeof(word));
        if (!utf8_is_plain_word(word))
            break;
        memcpy(at + i, &word, sizeof(word));
        i += sizeof(word);
    }
    while (i < length && utf8_is_plain((unsigned char) bytes[i])) {
        at[i] = bytes[i];
        i++;
    }
    line->at = at + i;
    return i;
}

/* `quoted`: the result stands between quotes, so quotes and backslashes are escaped too. */
static void add_escaped(struct log_line *line, const char *bytes, size_t length, bool quoted)
{
    size_t i = add_plain(line, bytes, length);

    while (i < length) {
        if (room(line) < ESCAPE_ROOM) {
            line->cut = true;
            return;
        }
        i += add_special(line, bytes + i, length - i, quoted);
        i += add_plain(line, bytes + i, length - i);
    }
}

static void add_quoted(struct log_line *line, const char *bytes, size_t length)
{
    add(line, "\"", 1);
    if (line->cut)
        return;
    add_escaped(line, bytes, length, true);
    if (line->cut) { /* the tail room is for this */
        memcpy(line->at, "...", 3);
        line->at += 3;
    }
    *line->at++ = '"';
}

/* A value on a terminal goes without quotes when it reads the same without. */
static bool needs_quotes(const char *bytes, size_t length)
{
    for (size_t i = 0; i < length; i++) {
        if (bytes[i] == ' ' || bytes[i] == '=' || !utf8_is_plain((unsigned char) bytes[i]))
            return true;
    }
    return length == 0;
}

static void add_number(struct log_line *line, int64_t number)
{
    char text[NUMBER_TEXT_SIZE];
    size_t length = number_format(number, text);

    add(line, text, length);
}

static void add_value(struct log_line *line, enum log_format format, const struct log_field *field,
                      bool hidden)
{
    if (hidden)
        add_quoted(line, "[hidden]", 8);
    else if (field->type == LOG_FIELD_NUMBER)
        add_number(line, field->number);
    else if (field->type == LOG_FIELD_BOOLEAN)
        add(line, field->number ? "true" : "false", field->number ? 4 : 5);
    else if (format == LOG_FORMAT_TEXT && !needs_quotes(field->text, field->length))
        add_escaped(line, field->text, field->length, false);
    else
        add_quoted(line, field->text, field->length);
}

static void add_field(struct log_line *line, enum log_format format, const struct log_field *field)
{
    bool text = format == LOG_FORMAT_TEXT;
    size_t length = strlen(field->name);
    char *before = line->at, *value = NULL;

    add(line, text ? " " : ",\"", text ? 1 : 2);
    add_escaped(line, field->name, length, true);
    add(line, text ? "=" : "\":", text ? 1 : 2);
    if (!line->cut) {
        value = line->at;
        add_value(line, format, field, log_line_hides(field->name, length));
    }
    /* A name without a value would not be JSON: take the whole field back. */
    if (line->cut && (!value || line->at == value))
        line->at = before;
}

static void add_fields(struct log_line *line, enum log_format format,
                       const struct log_field *fields, size_t count)
{
    bool first = true;

    for (size_t i = 0; i < count && !line->cut; i++) {
        if (fields[i].type == LOG_FIELD_NONE ||
            (fields[i].type == LOG_FIELD_TEXT && !fields[i].text))
            continue;
        if (first && format == LOG_FORMAT_TEXT)
            add(line, " ", 1);
        first = false;
        add_field(line, format, &fields[i]);
    }
}

static void begin_json(struct log_line *line, const char *time, enum log_level level,
                       const char *message)
{
    add(line, "{\"time\":\"", 9);
    add(line, time, CLOCK_TEXT_SIZE - 1);
    add(line, levels[level].json, strlen(levels[level].json));
    add_quoted(line, message, strlen(message));
}

static void begin_text(struct log_line *line, const char *time, enum log_level level,
                       const char *message)
{
    /* The day is known to who sits before a terminal. */
    add(line, time + 11, 12);
    add(line, levels[level].text, strlen(levels[level].text));
    add_escaped(line, message, strlen(message), false);
}

static void put(struct log_line *line, const char *tail)
{
    size_t length = strlen(tail);

    memcpy(line->at, tail, length); /* TAIL_ROOM was kept for it */
    line->at += length;
}

size_t log_line_format(enum log_format format, char ret_line[static LOG_LINE_MAX],
                       const char time[static CLOCK_TEXT_SIZE], enum log_level level,
                       const char *message, const struct log_field *fields, size_t count)
{
    struct log_line line = {.at = ret_line, .limit = ret_line + LOG_LINE_MAX - TAIL_ROOM};

    if (format == LOG_FORMAT_TEXT) {
        begin_text(&line, time, level, message);
        add_fields(&line, format, fields, count);
        put(&line, line.cut ? " ...\n" : "\n");
    } else {
        begin_json(&line, time, level, message);
        add_fields(&line, format, fields, count);
        put(&line, line.cut ? ",\"cut\":true}\n" : "}\n");
    }
    return (size_t) (line.at - ret_line);
}
