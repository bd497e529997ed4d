#include "agent/port/port_table.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/auto.h"
#include "base/memory.h"
#include "base/number.h"
#include "sys/file/sys_file.h"

#define STATE_LISTEN 0x0a
/* Larger than a line, which has about 150 characters, and as much as the kernel writes at once. */
#define READ_SIZE 4096

/* --- lines ----------------------------------------------------------------------------------- */

/* Skip blanks and fields, and stand at field `number` of the line, counted from 0. */
static const char *field(const char *line, int number)
{
    line += strspn(line, " ");
    while (number--) {
        line += strcspn(line, " ");
        line += strspn(line, " ");
    }
    return line;
}

/* Exactly `length` hexadecimal digits. */
static bool parse_hex(const char *digits, size_t length, uint32_t *ret_number)
{
    uint32_t number = 0;

    for (size_t i = 0; i < length; i++) {
        static const char values[] = "0123456789ABCDEF";
        const char *at = digits[i] ? strchr(values, digits[i]) : NULL;

        if (!at)
            return false;
        number = number << 4 | (uint32_t) (at - values);
    }
    *ret_number = number;
    return true;
}

/* "0100007F:1F90": words as they lie in memory, then the port. */
static bool parse_address(const char *text, struct port_entry *entry)
{
    size_t words = entry->is_ipv6 ? 4 : 1;
    uint32_t address[4], port;

    for (size_t i = 0; i < words; i++) {
        if (!parse_hex(text + i * 8, 8, &address[i]))
            return false;
    }
    if (text[words * 8] != ':' || !parse_hex(text + words * 8 + 1, 4, &port))
        return false;
    memcpy(&entry->ipv6, address, words * sizeof(*address));
    entry->port = (uint16_t) port;
    return true;
}

int port_table_parse(const char *line, bool is_ipv6, struct port_entry *ret_entry)
{
    struct port_entry entry = {.is_ipv6 = is_ipv6};
    const char *inode = field(line, 9);
    uint32_t state;

    if (!parse_address(field(line, 1), &entry) || !parse_hex(field(line, 3), 2, &state) ||
        number_parse_digits(inode, strspn(inode, "0123456789"), INT64_MAX, &entry.inode) < 0)
        return -EINVAL;
    *ret_entry = entry;
    return state == STATE_LISTEN;
}

uint64_t port_table_parse_link(const char *target, size_t length)
{
    static const char prefix[] = "socket:[";
    size_t skip = sizeof(prefix) - 1;
    uint64_t inode;

    if (length < skip + 2 || memcmp(target, prefix, skip) != 0 || target[length - 1] != ']' ||
        number_parse_digits(target + skip, length - skip - 1, INT64_MAX, &inode) < 0)
        return 0;
    return inode;
}

/* --- the files ------------------------------------------------------------------------------- */

static void port_table_add(struct port_table *table, const struct port_entry *entry)
{
    if (table->count == PORT_TABLE_MAX) {
        table->truncated = true;
        return;
    }
    if (!(table->count & (table->count - 1))) /* grows at powers of two */
        table->entries = mem_resize(table->entries, (table->count ? table->count * 2 : 1) *
                                                        sizeof(*table->entries));
    table->entries[table->count++] = *entry;
}

/* Returns false when nothing of interest follows. */
static bool port_table_take_line(struct port_table *table, const char *line, bool is_ipv6)
{
    struct port_entry entry;
    int r = port_table_parse(line, is_ipv6, &entry);

    if (r > 0)
        port_table_add(table, &entry);
    return r != 0 && !table->truncated;
}

static int port_table_read_file(struct port_table *table, const char *path, bool is_ipv6)
{
    AUTO(close) int fd = sys_file_open(AT_FDCWD, path, O_RDONLY | O_NONBLOCK | O_NOCTTY, 0);
    char buffer[READ_SIZE + 1];
    size_t length = 0;

    if (fd < 0)
        return fd;
    for (;;) {
        ssize_t got = read(fd, buffer + length, READ_SIZE - length);
        char *line = buffer, *end;

        if (got <= 0)
            return got < 0 ? -errno : 0;
        length += (size_t) got;
        buffer[length] = '\0';
        while ((end = memchr(line, '\n', length - (size_t) (line - buffer)))) {
            *end = '\0';
            if (!port_table_take_line(table, line, is_ipv6))
                return 0;
            line = end + 1;
        }
        length -= (size_t) (line - buffer);
        memmove(buffer, line, length);
        if (length == READ_SIZE)
            return -EINVAL; /* no line of this file is so long */
    }
}

int port_table_read(struct port_table *ret_table)
{
    struct port_table table = {.count = 0};
    int r = port_table_read_file(&table, "/proc/net/tcp", false);

    if (r < 0) {
        port_table_done(&table);
        return r;
    }
    (void) port_table_read_file(&table, "/proc/net/tcp6", true); /* there may be no IPv6 */
    *ret_table = table;
    return 0;
}

void port_table_done(struct port_table *table)
{
    for (size_t i = 0; i < table->count; i++)
        free(table->entries[i].command);
    free(table->entries);
    *table = (struct port_table){.count = 0};
}
