#include "agent/exec/out_of_memory.h"

#include <string.h>
#include <unistd.h>

#include "base/number.h"

#define TEXT_SIZE 512
#define KEY       "oom_kill "

uint64_t out_of_memory_parse(const char *text)
{
    while (text && *text) {
        const char *end = strchr(text, '\n');
        uint64_t number;

        if (strncmp(text, KEY, strlen(KEY)) == 0) {
            const char *digits = text + strlen(KEY);
            size_t length = end ? (size_t) (end - digits) : strlen(digits);

            return number_parse_digits(digits, length, UINT64_MAX, &number) == 0 ? number : 0;
        }
        text = end ? end + 1 : NULL;
    }
    return 0;
}

uint64_t out_of_memory_kills(int fd)
{
    char text[TEXT_SIZE];
    ssize_t got = fd < 0 ? -1 : pread(fd, text, sizeof(text) - 1, 0);

    if (got <= 0)
        return 0;
    text[got] = '\0';
    return out_of_memory_parse(text);
}
