/* Any bytes are refused with a reason, or are rules. What is in a folder that is left out is left
 * out with it, unless a rule takes back; and a rule behind all others decides. Input: a path, a
 * newline, the rules. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/text.h"
#include "recipe/context_ignore.h"

#define PATH_LENGTH ((size_t) 512)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(bool holds)
{
    if (!holds)
        abort();
}

static bool matches_with(const char *rules, size_t length, const char *more, const char *path)
{
    AUTO(text) struct text all = TEXT_INIT(2 * CONTEXT_IGNORE_SIZE_MAX);
    AUTO(context_ignore) struct context_ignore *ignore = NULL;

    text_append_bytes(&all, rules, length);
    text_append(&all, more);
    ignore = context_ignore_read(all.data, all.length, NULL);
    must(ignore != NULL);
    return context_ignore_matches(ignore, path);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const char *line = memchr(data, '\n', size);
    size_t length = line ? (size_t) (line - (const char *) data) : size;
    AUTO(free) char *path = mem_copy_bytes(data, length < PATH_LENGTH ? length : PATH_LENGTH);
    const char *rules = line ? line + 1 : (const char *) data + size;
    size_t rest = (size_t) ((const char *) data + size - rules);
    struct error err = ERROR_INIT;
    AUTO(context_ignore) struct context_ignore *ignore = context_ignore_read(rules, rest, &err);
    char *slash = strrchr(path, '/');

    if (!ignore) {
        must(err.message[0] != '\0');
        return 0;
    }
    if (!path[0] || path[0] == '/')
        return 0;
    must(matches_with(rules, rest, "\n**", path));
    must(!matches_with(rules, rest, "\n**\n!**", path));
    if (!slash || context_ignore_has_exceptions(ignore))
        return 0;
    if (!context_ignore_matches(ignore, path)) {
        *slash = '\0';
        must(!*path || !context_ignore_matches(ignore, path));
    }
    return 0;
}
