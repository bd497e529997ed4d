#include "launcher/child/child_words.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <unistd.h>

#include "base/auto.h"

#define CHUNK_SIZE 4096

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

bool child_words_pass_on(struct child_words *words, int from, int stop,
                         void (*show)(void *context, const char *bytes, size_t length),
                         void *context)
{
    struct pollfd waiting[] = {{.fd = from, .events = POLLIN}, {.fd = stop, .events = POLLIN}};
    char bytes[CHUNK_SIZE], harmless[CHILD_WORDS_GROWTH * CHUNK_SIZE];

    for (;;) {
        ssize_t got;

        if (poll(waiting, ARRAY_COUNT(waiting), -1) < 0)
            continue; /* a signal that ends nothing */
        if (waiting[1].revents)
            return false;
        got = read(from, bytes, sizeof(bytes));
        if (got == 0 || (got < 0 && errno != EINTR))
            return true;
        if (got > 0)
            show(context, harmless,
                 child_words_make_harmless(words, bytes, (size_t) got, harmless));
    }
}
