#include "launcher/loop/child_words.h"

#include <string.h>

/* "\r\033[K": back to the left, and the rest of the line away. */
static const char clear_line[] = {'\033', '[', 'K'};

size_t child_words_make_harmless(struct child_words *words, const char *bytes, size_t length,
                                 char *ret_bytes)
{
    size_t made = 0;

    for (size_t i = 0; i < length; i++) {
        char c = bytes[i];

        if (words->matched && c != clear_line[words->matched]) {
            ret_bytes[made++] = '?'; /* it began like one */
            words->matched = 0;
        }
        if (c != clear_line[words->matched]) {
            ret_bytes[made++] = (char) ((c >= ' ' && c <= '~') || c == '\n' || c == '\r' ? c : '?');
        } else if (++words->matched == sizeof(clear_line)) {
            memcpy(ret_bytes + made, clear_line, sizeof(clear_line));
            made += sizeof(clear_line);
            words->matched = 0;
        }
    }
    return made;
}
