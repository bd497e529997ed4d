#include "launcher/cgroup/cgroup_file.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>

#include "base/auto.h"
#include "base/number.h"
#include "sys/file/sys_file.h"

int cgroup_file_write(int directory, const char *path, const char *text)
{
    AUTO(close) int fd = sys_file_open(directory, path, O_WRONLY, 0);

    return fd < 0 ? fd : sys_file_write_full(fd, text, strlen(text));
}

int cgroup_file_read(int directory, const char *path, char *ret_text, size_t size)
{
    AUTO(close) int fd = sys_file_open(directory, path, O_RDONLY, 0);
    ssize_t length;

    if (fd < 0)
        return fd;
    length = sys_file_read_full(fd, ret_text, size);
    if (length < 0)
        return (int) length;
    if ((size_t) length == size)
        return -EFBIG;
    ret_text[length] = '\0';
    return (int) length;
}

static size_t digits_at(const char *text)
{
    return strspn(text, "0123456789");
}

int cgroup_file_parse_number(const char *text, uint64_t *ret_number)
{
    size_t length = strcspn(text, "\n");

    if (length == strlen("max") && memcmp(text, "max", length) == 0) {
        *ret_number = UINT64_MAX;
        return 0;
    }
    return number_parse_digits(text, length, UINT64_MAX, ret_number);
}

int cgroup_file_find_field(const char *text, const char *key, uint64_t *ret_number)
{
    size_t length = strlen(key);

    while (*text) {
        if (strncmp(text, key, length) == 0 && text[length] == ' ')
            return cgroup_file_parse_number(text + length + 1, ret_number);
        text += strcspn(text, "\n");
        text += *text == '\n';
    }
    return -ENODATA;
}

uint64_t cgroup_file_sum(const char *text, const char *marker)
{
    uint64_t sum = 0;

    while ((text = strstr(text, marker))) {
        uint64_t number = 0;

        text += strlen(marker);
        if (number_parse_digits(text, digits_at(text), UINT64_MAX, &number) == 0)
            sum += number;
    }
    return sum;
}

int cgroup_file_number(int directory, const char *path, uint64_t *ret_number)
{
    char text[64];
    int result = cgroup_file_read(directory, path, text, sizeof(text));

    return result < 0 ? result : cgroup_file_parse_number(text, ret_number);
}

int cgroup_file_field(int directory, const char *path, const char *key, uint64_t *ret_number)
{
    char text[CGROUP_FILE_SIZE];
    int result = cgroup_file_read(directory, path, text, sizeof(text));

    return result < 0 ? result : cgroup_file_find_field(text, key, ret_number);
}
