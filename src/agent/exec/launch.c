#include "agent/exec/launch.h"

#include <string.h>

#include "base/memory.h"
#include "sys/file/sys_file.h"
#include "sys/file/sys_memfd.h"
#include "sys/network/sys_fd_pass.h"

enum launch_flags {
    LAUNCH_HAS_ARGUMENTS = 1 << 0,
    LAUNCH_HAS_SHELL = 1 << 1,
    LAUNCH_HAS_DIRECTORY = 1 << 2,
    LAUNCH_ANY_DIRECTORY = 1 << 3,
    LAUNCH_TERMINAL = 1 << 4,
    LAUNCH_HAS_USER = 1 << 5,
    LAUNCH_OWN_HOME = 1 << 6,
    LAUNCH_FLAGS_KNOWN = (1 << 7) - 1,
};

/* Strings follow, each with its NUL: directory, user, shell command, arguments, environment. */
struct launch_header {
    uint64_t serial;
    uint32_t flags;
    uint32_t argument_count;
    uint32_t variable_count;
    uint32_t padding;
};

static uint32_t count_strings(const char *const *strings)
{
    uint32_t count = 0;

    while (strings && strings[count])
        count++;
    return count;
}

static void append_string(struct text *bytes, const char *string)
{
    if (string)
        text_append_bytes(bytes, string, strlen(string) + 1);
}

static void append_strings(struct text *bytes, const char *const *strings)
{
    for (; strings && *strings; strings++)
        append_string(bytes, *strings);
}

int launch_encode(const struct launch *launch, struct text *bytes)
{
    struct launch_header header = {
        .flags = (launch->arguments ? LAUNCH_HAS_ARGUMENTS : 0u) |
                 (launch->shell_command ? LAUNCH_HAS_SHELL : 0u) |
                 (launch->directory ? LAUNCH_HAS_DIRECTORY : 0u) |
                 (launch->any_directory ? LAUNCH_ANY_DIRECTORY : 0u) |
                 (launch->terminal ? LAUNCH_TERMINAL : 0u) | (launch->user ? LAUNCH_HAS_USER : 0u) |
                 (launch->own_home ? LAUNCH_OWN_HOME : 0u),
        .argument_count = count_strings(launch->arguments),
        .variable_count = count_strings(launch->environment),
    };

    text_append_bytes(bytes, &header, sizeof(header));
    append_string(bytes, launch->directory);
    append_string(bytes, launch->user);
    append_string(bytes, launch->shell_command);
    append_strings(bytes, launch->arguments);
    append_strings(bytes, launch->environment);
    return bytes->overflowed ? -E2BIG : 0;
}

void launch_set_serial(char *bytes, uint64_t serial)
{
    memcpy(bytes + offsetof(struct launch_header, serial), &serial, sizeof(serial));
}

uint64_t launch_serial(const char *bytes)
{
    uint64_t serial;

    memcpy(&serial, bytes + offsetof(struct launch_header, serial), sizeof(serial));
    return serial;
}

/* --- decoding ------------------------------------------------------------------------------- */

struct cursor {
    const char *at;
    const char *end;
};

static const char *take_string(struct cursor *cursor)
{
    const char *string = cursor->at;
    const char *nul =
        string < cursor->end ? memchr(string, '\0', (size_t) (cursor->end - string)) : NULL;

    if (!nul)
        return NULL;
    cursor->at = nul + 1;
    return string;
}

/* Every string takes at least one byte, so what is left bounds the array before it is made. */
static const char **take_strings(struct cursor *cursor, uint32_t count)
{
    const char **strings;

    if (count > (size_t) (cursor->end - cursor->at))
        return NULL;
    strings = mem_alloc_array((size_t) count + 1, sizeof(*strings));
    for (uint32_t i = 0; i < count; i++) {
        strings[i] = take_string(cursor);
        if (!strings[i]) {
            free(strings);
            return NULL;
        }
    }
    return strings;
}

static bool header_is_sane(const struct launch_header *header)
{
    bool has_arguments = header->flags & LAUNCH_HAS_ARGUMENTS;

    return !header->padding && !(header->flags & ~(uint32_t) LAUNCH_FLAGS_KNOWN) &&
           has_arguments == (header->argument_count > 0) &&
           (has_arguments || header->flags & LAUNCH_HAS_SHELL);
}

static int take_all(struct cursor *cursor, const struct launch_header *header,
                    struct launch *launch)
{
    if (header->flags & LAUNCH_HAS_DIRECTORY && !(launch->directory = take_string(cursor)))
        return -EBADMSG;
    if (header->flags & LAUNCH_HAS_USER && !(launch->user = take_string(cursor)))
        return -EBADMSG;
    if (header->flags & LAUNCH_HAS_SHELL && !(launch->shell_command = take_string(cursor)))
        return -EBADMSG;
    if (header->flags & LAUNCH_HAS_ARGUMENTS &&
        !(launch->arguments = take_strings(cursor, header->argument_count)))
        return -EBADMSG;
    launch->environment = take_strings(cursor, header->variable_count);
    if (!launch->environment || cursor->at != cursor->end)
        return -EBADMSG;
    launch->any_directory = header->flags & LAUNCH_ANY_DIRECTORY;
    launch->terminal = header->flags & LAUNCH_TERMINAL;
    launch->own_home = header->flags & LAUNCH_OWN_HOME;
    return 0;
}

int launch_decode(const char *bytes, size_t length, struct launch *ret_launch)
{
    AUTO(launch) struct launch launch = {.arguments = NULL};
    struct cursor cursor = {.at = bytes, .end = bytes + length};
    struct launch_header header;
    int r;

    if (length < sizeof(header) || length > LAUNCH_SIZE_MAX)
        return -EBADMSG;
    memcpy(&header, bytes, sizeof(header));
    cursor.at += sizeof(header);
    if (!header_is_sane(&header))
        return -EBADMSG;
    r = take_all(&cursor, &header, &launch);
    if (r < 0)
        return r;
    *ret_launch = launch;
    launch = (struct launch){.arguments = NULL};
    return 0;
}

void launch_done(struct launch *launch)
{
    free((void *) (uintptr_t) launch->arguments);
    free((void *) (uintptr_t) launch->environment);
    *launch = (struct launch){.arguments = NULL};
}

/* --- travelling ----------------------------------------------------------------------------- */

static int send_message(int socket, const char *bytes, size_t length, const int *fds, size_t count)
{
    ssize_t sent = sys_fd_pass_send(socket, bytes, length, fds, count);

    return sent < 0 ? (int) sent : 0;
}

int launch_send(int socket, const char *bytes, size_t length, const int fds[LAUNCH_DESCRIPTORS])
{
    AUTO(close) int memory = -EBADF;
    size_t count = fds[LAUNCH_CHANNEL] < 0 ? LAUNCH_CHANNEL : LAUNCH_DESCRIPTORS;
    int all[LAUNCH_DESCRIPTORS + 1];

    if (length <= LAUNCH_INLINE_MAX)
        return send_message(socket, bytes, length, fds, count);
    memory = sys_memfd_from_bytes("launch", SYS_MEMFD_DATA, bytes, length);
    if (memory < 0)
        return memory;
    memcpy(all, fds, count * sizeof(*fds));
    all[count++] = memory;
    return send_message(socket, "", 1, all, count); /* one byte: shorter than any header */
}

static ssize_t read_memory(int fd, char **ret_bytes)
{
    AUTO(free) char *bytes = NULL;
    size_t size = 0;
    ssize_t got = sys_memfd_check(fd, SYS_MEMFD_SEALS_ALL, LAUNCH_SIZE_MAX, &size);

    if (got < 0)
        return got;
    bytes = mem_try_alloc(size, LAUNCH_SIZE_MAX);
    if (!bytes)
        return -ENOMEM;
    got = sys_file_pread_full(fd, bytes, size, 0);
    if (got < 0)
        return got;
    *ret_bytes = TAKE_PTR(bytes);
    return got;
}

static void launch_close_all(int *fds, size_t count)
{
    for (size_t i = 0; i < count; i++)
        fds[i] = fd_close(fds[i]);
}

ssize_t launch_receive(int socket, char buffer[static LAUNCH_INLINE_MAX], const char **ret_bytes,
                       char **ret_owned, int ret_fds[LAUNCH_DESCRIPTORS])
{
    int fds[LAUNCH_DESCRIPTORS + 1];
    size_t count = 0;
    ssize_t length =
        sys_fd_pass_receive(socket, buffer, LAUNCH_INLINE_MAX, fds, LAUNCH_DESCRIPTORS + 1, &count);

    if (length <= 0)
        return length;
    *ret_owned = NULL;
    *ret_bytes = buffer;
    if (length == 1 && count > LAUNCH_CHANNEL) {
        length = read_memory(fds[--count], ret_owned);
        fds[count] = fd_close(fds[count]);
        *ret_bytes = *ret_owned;
    }
    if (count == LAUNCH_CHANNEL)
        fds[LAUNCH_CHANNEL] = -EBADF;
    else if (length >= 0 && count != LAUNCH_DESCRIPTORS)
        length = -EBADMSG;
    if (length >= 0 && (size_t) length < sizeof(struct launch_header)) {
        free(TAKE_PTR(*ret_owned));
        length = -EBADMSG;
    }
    if (length < 0) {
        launch_close_all(fds, count);
        return length;
    }
    memcpy(ret_fds, fds, LAUNCH_DESCRIPTORS * sizeof(*fds));
    return length;
}
