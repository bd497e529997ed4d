#include "recipe/recipe_text.h"

#include <stdbool.h>
#include <string.h>

#include "base/memory.h"

#define BLANKS     " \t\r\n"
#define NAME_FIRST "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_"
#define NAME_REST  NAME_FIRST "0123456789"
/* Texts of ${NAME:-text} may hold variables themselves, so deep. */
#define DEPTH_MAX 8

/* --- splitting ------------------------------------------------------------------------------ */

/* Where the word that begins here ends; NULL: in the middle of a quote. */
static const char *find_end(const char *at)
{
    char quote = '\0';

    for (; *at && (quote || !strchr(BLANKS, *at)); at++) {
        if (*at == '\\' && quote != '\'' && at[1])
            at++;
        else if (quote)
            quote = *at == quote ? '\0' : quote;
        else if (*at == '"' || *at == '\'')
            quote = *at;
    }
    return quote ? NULL : at;
}

int recipe_text_split(const char *text, size_t maximum, struct pool *pool, const char ***ret_words,
                      size_t *ret_count, struct error *err)
{
    const char **words = pool_alloc(pool, (maximum + 1) * sizeof(*words));
    size_t count = 0;

    for (text += strspn(text, BLANKS); *text; text += strspn(text, BLANKS)) {
        const char *end = find_end(text);

        if (!end)
            return error_set(err, ERR_INVALID, 0, "a quote has no end");
        if (count == maximum)
            return error_set(err, ERR_TOO_LARGE, 0, "more than %zu words", maximum);
        words[count++] = pool_copy_bytes(pool, text, (size_t) (end - text));
        text = end;
    }
    *ret_words = words;
    *ret_count = count;
    return 0;
}

/* --- replacing ------------------------------------------------------------------------------ */

struct expansion {
    const struct recipe_variables *variables;
    struct text *out;
    struct error *err;
    int depth;
};

static int expand(struct expansion *expansion, const char *text, size_t length);

static const char *find_value(const struct expansion *expansion, const char *name, size_t length)
{
    return expansion->variables->find(expansion->variables->context, name, length);
}

/* The brace that ends what begins behind "${"; NULL: none. */
static const char *find_brace(const char *at, const char *end)
{
    int depth = 1;

    for (; at < end; at++) {
        if (*at == '\\' && at + 1 < end)
            at++;
        else if (*at == '$' && at + 1 < end && at[1] == '{')
            depth++;
        else if (*at == '}' && --depth == 0)
            return at;
    }
    return NULL;
}

static size_t name_length(const char *at, const char *end)
{
    size_t length = 0;

    if (at == end || !strchr(NAME_FIRST, *at) || !*at)
        return 0;
    while (at + length < end && at[length] && strchr(NAME_REST, at[length]))
        length++;
    return length;
}

/* What is between the braces. */
static int expand_form(struct expansion *expansion, const char *at, const char *end)
{
    size_t length = name_length(at, end);
    const char *value = length ? find_value(expansion, at, length) : NULL;
    const char *form = at + length;
    bool is_set = value && *value;

    if (length && form == end) {
        text_append(expansion->out, value ? value : "");
        return 0;
    }
    if (!length || end - form < 2 || form[0] != ':' || (form[1] != '-' && form[1] != '+'))
        return error_set(expansion->err, ERR_INVALID, 0, "'${%.*s}' is not known here",
                         (int) (end - at < 40 ? end - at : 40), at);
    if (form[1] == '-' && is_set)
        text_append(expansion->out, value);
    else if ((form[1] == '-') != is_set)
        return expand(expansion, form + 2, (size_t) (end - form) - 2);
    return 0;
}

/* At a dollar; returns what comes behind it, or NULL with an error. */
static const char *expand_variable(struct expansion *expansion, const char *at, const char *end)
{
    const char *brace;
    size_t length;

    if (at + 1 < end && at[1] == '{') {
        brace = find_brace(at + 2, end);
        if (!brace) {
            (void) error_set(expansion->err, ERR_INVALID, 0, "'${' has no end");
            return NULL;
        }
        return expand_form(expansion, at + 2, brace) < 0 ? NULL : brace + 1;
    }
    length = name_length(at + 1, end);
    if (length) {
        const char *value = find_value(expansion, at + 1, length);

        text_append(expansion->out, value ? value : "");
    } else {
        text_append_char(expansion->out, '$');
    }
    return at + 1 + length;
}

static int expand_all(struct expansion *expansion, const char *at, const char *end)
{
    char quote = '\0';

    while (at < end) {
        bool is_plain = quote == '\'' && *at != '\'';

        if (!is_plain && *at == '\\' && at + 1 < end) {
            /* Within double quotes a backslash stands for itself before most characters. */
            if (quote && !strchr("\"$\\", at[1]))
                text_append_char(expansion->out, '\\');
            text_append_char(expansion->out, at[1]);
            at += 2;
        } else if (!is_plain && *at == '$') {
            at = expand_variable(expansion, at, end);
            if (!at)
                return -1;
        } else if (!is_plain && (quote ? *at == quote : *at == '"' || *at == '\'')) {
            quote = quote ? '\0' : *at;
            at++;
        } else {
            text_append_char(expansion->out, *at++);
        }
    }
    return quote ? error_set(expansion->err, ERR_INVALID, 0, "a quote has no end") : 0;
}

static int expand(struct expansion *expansion, const char *text, size_t length)
{
    int r;

    if (expansion->depth == DEPTH_MAX)
        return error_set(expansion->err, ERR_INVALID, 0, "variables within variables, too deep");
    expansion->depth++;
    r = expand_all(expansion, text, text + length);
    expansion->depth--;
    return r;
}

int recipe_text_expand(const char *text, const struct recipe_variables *variables, struct text *out,
                       struct error *err)
{
    AUTO(text) struct text result = TEXT_INIT(RECIPE_TEXT_MAX);
    struct expansion expansion = {.variables = variables, .out = &result, .err = err};

    if (expand(&expansion, text, strlen(text)) < 0)
        return -1;
    text_append(out, text_string(&result));
    if (result.overflowed || out->overflowed)
        return error_set(err, ERR_TOO_LARGE, 0, "a text is too long with its variables replaced");
    return 0;
}
