#include "programs/burrow/host_memory.h"

#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/auto.h"
#include "base/number.h"
#include "sys/file/sys_file.h"

#define MEMINFO_MAX ((size_t) 64 * 1024)
#define KB_MAX      (UINT64_MAX / 1024)

/* "MemAvailable:   12345 kB" */
static int host_memory_find(const char *text, size_t length, const char *name,
                            uint64_t *ret_kilobytes)
{
    const char *line = memmem(text, length, name, strlen(name)), *end = text + length;
    size_t digits = 0;

    if (!line)
        return -1;
    for (line += strlen(name); line < end && *line == ' ';)
        line++;
    while (line + digits < end && line[digits] >= '0' && line[digits] <= '9')
        digits++;
    return number_parse_digits(line, digits, KB_MAX, ret_kilobytes);
}

int host_memory_percent(const char *text, size_t length)
{
    uint64_t total = 0, available = 0;

    if (host_memory_find(text, length, "MemTotal:", &total) < 0 ||
        host_memory_find(text, length, "MemAvailable:", &available) < 0 || total == 0 ||
        available > total)
        return -1;
    return (int) (available / (total / 100 ? total / 100 : 1));
}

int host_memory_available(void)
{
    AUTO(free) char *text = NULL;
    size_t length = 0;

    if (sys_file_read_all(AT_FDCWD, "/proc/meminfo", MEMINFO_MAX, &text, &length) < 0)
        return -1;
    return host_memory_percent(text, length);
}
