#include "recipe/context_ignore.h"

#include <stdlib.h>
#include <string.h>

#include "base/format/ignore_pattern.h"
#include "base/memory.h"

#define BLANKS "\t\r "

struct context_ignore_rule {
    struct ignore_pattern pattern;
    bool takes_back;
};

struct context_ignore {
    struct context_ignore_rule *rules; /* owned */
    size_t count;
    bool has_exceptions;
};

void context_ignore_free(struct context_ignore *ignore)
{
    if (!ignore)
        return;
    for (size_t i = 0; i < ignore->count; i++)
        ignore_pattern_done(&ignore->rules[i].pattern);
    free(ignore->rules);
    free(ignore);
}

/* Without blanks around it, and without "./" and '/' that mean nothing. */
static void strip(const char **line, size_t *length)
{
    const char *at = *line;
    size_t left = *length;

    while (left && strchr(BLANKS, *at))
        at++, left--;
    while (left && strchr(BLANKS "/", at[left - 1]))
        left--;
    *line = at;
    *length = left;
}

static void strip_front(const char **line, size_t *length)
{
    while (*length && (**line == '/' || (*length > 1 && strncmp(*line, "./", 2) == 0))) {
        *line += 1;
        *length -= 1;
    }
}

static int add_rule(struct context_ignore *ignore, const char *line, size_t length,
                    struct error *err)
{
    struct context_ignore_rule rule = {.takes_back = *line == '!'};

    line += rule.takes_back;
    length -= rule.takes_back;
    strip(&line, &length);
    strip_front(&line, &length);
    if (!length || (length == 1 && *line == '.'))
        return 0; /* "." and "/" name nothing, as with others */
    if (ignore->count == CONTEXT_IGNORE_RULES_MAX)
        return error_set(err, ERR_TOO_LARGE, 0, "more than %zu patterns", CONTEXT_IGNORE_RULES_MAX);
    if (ignore_pattern_read(line, length, IGNORE_DOCKER, &rule.pattern) < 0)
        return error_set(err, ERR_INVALID, 0, "'%.*s' is not a pattern",
                         (int) (length < 80 ? length : 80), line);
    ignore->rules = mem_resize(ignore->rules, (ignore->count + 1) * sizeof(*ignore->rules));
    ignore->rules[ignore->count++] = rule;
    ignore->has_exceptions |= rule.takes_back;
    return 0;
}

struct context_ignore *context_ignore_read(const char *bytes, size_t length, struct error *err)
{
    AUTO(context_ignore) struct context_ignore *ignore = mem_alloc(sizeof(*ignore));
    const char *end = bytes + length;

    if (length > CONTEXT_IGNORE_SIZE_MAX || memchr(bytes, '\0', length)) {
        (void) error_set(err, ERR_TOO_LARGE, 0, "it is not a text, or too long");
        return NULL;
    }
    for (size_t number = 1; bytes < end; number++) {
        const char *next = memchr(bytes, '\n', (size_t) (end - bytes));
        const char *line = bytes;
        size_t size = (size_t) ((next ? next : end) - line);

        strip(&line, &size);
        if (size && *line != '#' && add_rule(ignore, line, size, err) < 0) {
            (void) error_wrap(err, "line %zu", number);
            return NULL;
        }
        bytes = next ? next + 1 : end;
    }
    return TAKE_PTR(ignore);
}

/* The path, or a folder it is in. */
static bool names(const struct ignore_pattern *pattern, const char *path)
{
    for (const char *end = path; *end; end++) {
        end += strcspn(end + 1, "/") + 1;
        if (ignore_pattern_matches(pattern, path, (size_t) (end - path)))
            return true;
        if (!*end)
            break;
    }
    return false;
}

bool context_ignore_matches(const struct context_ignore *ignore, const char *path)
{
    for (size_t i = ignore ? ignore->count : 0; i > 0; i--) {
        const struct context_ignore_rule *rule = &ignore->rules[i - 1];

        if (names(&rule->pattern, path))
            return !rule->takes_back;
    }
    return false;
}

bool context_ignore_has_exceptions(const struct context_ignore *ignore)
{
    return ignore && ignore->has_exceptions;
}
