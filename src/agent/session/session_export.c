#include "agent/session/session_export.h"

#include <stdbool.h>
#include <string.h>

#include "agent/environment.h"
#include "base/text.h"

struct session_export_reader {
    const char *at;
    const char *end;
};

static bool is_over(const struct session_export_reader *reader)
{
    return reader->at >= reader->end;
}

static char session_export_peek(const struct session_export_reader *reader)
{
    return is_over(reader) ? '\0' : *reader->at;
}

static bool take_word(struct session_export_reader *reader, const char *word)
{
    size_t length = strlen(word);

    if ((size_t) (reader->end - reader->at) < length || memcmp(reader->at, word, length) != 0)
        return false;
    reader->at += length;
    return true;
}

static void skip_line(struct session_export_reader *reader)
{
    while (!is_over(reader) && *reader->at++ != '\n')
        ;
}

/* --- quoted words --------------------------------------------------------------------------- */

static void read_single(struct session_export_reader *reader, struct text *word)
{
    while (!is_over(reader) && *reader->at != '\'')
        text_append_char(word, *reader->at++);
    reader->at += !is_over(reader);
}

static void read_double(struct session_export_reader *reader, struct text *word)
{
    while (!is_over(reader) && *reader->at != '"') {
        char c = *reader->at++;

        if (c == '\\' && !is_over(reader) && strchr("\"$`\\\n", *reader->at)) {
            c = *reader->at++;
            if (c == '\n')
                continue; /* a line that goes on */
        }
        text_append_char(word, c);
    }
    reader->at += !is_over(reader);
}

static char read_octal(struct session_export_reader *reader)
{
    unsigned int value = 0;

    for (int i = 0;
         i < 3 && session_export_peek(reader) >= '0' && session_export_peek(reader) <= '7'; i++)
        value = value * 8 + (unsigned int) (*reader->at++ - '0');
    return (char) value;
}

/* Behind the backslash in $'...': what bash writes there. */
static char read_escape(struct session_export_reader *reader)
{
    static const char letters[] = "abtnvfreE";
    static const char meanings[] = "\a\b\t\n\v\f\r\033\033";
    char c = session_export_peek(reader);
    const char *place = c ? strchr(letters, c) : NULL;

    if (c >= '0' && c <= '7')
        return read_octal(reader);
    reader->at += !is_over(reader);
    return place ? meanings[place - letters] : c;
}

static void read_ansi(struct session_export_reader *reader, struct text *word)
{
    while (!is_over(reader) && *reader->at != '\'') {
        char c = *reader->at++;

        if (c == '\\')
            c = read_escape(reader);
        if (c)
            text_append_char(word, c);
    }
    reader->at += !is_over(reader);
}

/* Up to the end of the line that is not quoted. */
static void session_export_read_value(struct session_export_reader *reader, struct text *word)
{
    while (!is_over(reader) && *reader->at != '\n') {
        char c = *reader->at++;

        if (c == '\'')
            read_single(reader, word);
        else if (c == '"' || (c == '$' && session_export_peek(reader) == '"' && reader->at++))
            read_double(reader, word);
        else if (c == '$' && session_export_peek(reader) == '\'' && reader->at++)
            read_ansi(reader, word);
        else if (c == '\\' && !is_over(reader))
            text_append_char(word, *reader->at++);
        else
            text_append_char(word, c);
    }
    reader->at += !is_over(reader);
}

/* --- variables ------------------------------------------------------------------------------ */

static void session_export_add(struct session_exports *exports, struct pool *pool, const char *item)
{
    if (exports->count == SESSION_EXPORTS_MAX)
        return;
    if (exports->count + 1 >= exports->room) {
        size_t room = exports->room ? exports->room * 2 : 64;
        const char **items = pool_alloc(pool, room * sizeof(*items));

        if (exports->count)
            memcpy(items, exports->items, exports->count * sizeof(*items));
        exports->items = items;
        exports->room = room;
    }
    exports->items[exports->count++] = item;
    exports->items[exports->count] = NULL;
}

/* "-x ", "-aix " and so on. Returns whether they tell of an array. */
static bool read_flags(struct session_export_reader *reader)
{
    bool array = false;

    while (session_export_peek(reader) == '-') {
        for (; !is_over(reader) && *reader->at != ' ' && *reader->at != '\n'; reader->at++)
            array = array || *reader->at == 'a' || *reader->at == 'A';
        while (session_export_peek(reader) == ' ')
            reader->at++;
    }
    return array;
}

static void read_variable(struct session_export_reader *reader, struct session_exports *exports,
                          struct pool *pool)
{
    AUTO(text) struct text item = TEXT_INIT((size_t) (reader->end - reader->at) + 1);
    bool array = read_flags(reader);

    while (!is_over(reader) && *reader->at != '=' && *reader->at != '\n')
        text_append_char(&item, *reader->at++);
    if (session_export_peek(reader) != '=' || !environment_is_name(text_string(&item))) {
        skip_line(reader);
        return;
    }
    text_append_char(&item, *reader->at++);
    session_export_read_value(reader, &item);
    if (!array && !memchr(text_string(&item), '\0', item.length))
        session_export_add(exports, pool, pool_copy_bytes(pool, text_string(&item), item.length));
}

void session_exports_read(struct session_exports *exports, struct pool *pool, const char *text,
                          size_t length)
{
    struct session_export_reader reader = {.at = text, .end = text + length};

    while (!is_over(&reader)) {
        if (take_word(&reader, "declare ") || take_word(&reader, "export ") ||
            take_word(&reader, "typeset "))
            read_variable(&reader, exports, pool);
        else
            skip_line(&reader);
    }
}

/* --- functions ------------------------------------------------------------------------------ */

size_t session_exports_functions(struct pool *pool, const char *text, size_t length,
                                 const char ***ret_names)
{
    struct session_export_reader reader = {.at = text, .end = text + length};
    const char **names = pool_alloc(pool, SESSION_FUNCTIONS_MAX * sizeof(*names));
    size_t count = 0;

    while (!is_over(&reader) && count < SESSION_FUNCTIONS_MAX) {
        const char *start;

        if (!take_word(&reader, "declare ")) {
            skip_line(&reader);
            continue;
        }
        (void) read_flags(&reader);
        start = reader.at;
        while (!is_over(&reader) && *reader.at != '\n')
            reader.at++;
        if (reader.at > start && !memchr(start, '=', (size_t) (reader.at - start)))
            names[count++] = pool_copy_bytes(pool, start, (size_t) (reader.at - start));
        skip_line(&reader);
    }
    *ret_names = names;
    return count;
}

/* Bash prints "name () \n{ ...\n}\n" and wants "() { ...\n}". */
void session_exports_add_function(struct session_exports *exports, struct pool *pool,
                                  const char *name, const char *text, size_t length)
{
    struct session_export_reader reader = {.at = text, .end = text + length};
    const char *body;

    if (!take_word(&reader, name) || !take_word(&reader, " ()"))
        return;
    while (session_export_peek(&reader) == ' ' || session_export_peek(&reader) == '\n')
        reader.at++;
    body = reader.at;
    if (session_export_peek(&reader) != '{')
        return;
    while (reader.end > body && reader.end[-1] == '\n')
        reader.end--;
    session_export_add(
        exports, pool,
        pool_format(pool, "BASH_FUNC_%s%%%%=() %.*s", name, (int) (reader.end - body), body));
}

const char *const *session_exports_environment(struct session_exports *exports, struct pool *pool)
{
    return exports->count ? exports->items : pool_alloc(pool, sizeof(*exports->items));
}
