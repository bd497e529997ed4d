#include "agent/exec/image_command.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

static size_t count_lines(const char *text)
{
    size_t count = 1;

    for (; *text; text++)
        count += *text == '\n';
    return count;
}

/* One line to `to`; returns what follows its NUL, or NULL for a backslash that says nothing. */
static char *take_word(const char **text, char *to)
{
    for (; **text && **text != '\n'; (*text)++) {
        char c = **text;

        if (c == '\\') {
            c = *++*text;
            if (c != 'n' && c != '\\')
                return NULL;
            c = c == 'n' ? '\n' : '\\';
        }
        *to++ = c;
    }
    *text += **text == '\n';
    *to = '\0';
    return to + 1;
}

const char **image_command_read(const char *text)
{
    size_t count = text && *text ? count_lines(text) : 0;
    const char **words;
    char *at;

    if (!count)
        return NULL;
    /* The words lie behind the array: none is longer than it is written. */
    words = mem_alloc((count + 1) * sizeof(*words) + strlen(text) + 1);
    at = (char *) (words + count + 1);
    for (size_t i = 0; i < count; i++) {
        words[i] = at;
        at = take_word(&text, at);
        if (!at || (i == 0 && !words[0][0])) {
            free(words);
            return NULL;
        }
    }
    return words;
}
