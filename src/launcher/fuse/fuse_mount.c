#include "launcher/fuse/fuse_mount.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "base/auto.h"
#include "base/number.h"
#include "sys/file/sys_file.h"
#include "sys/mount/sys_mount.h"

/* What is seen of it in a sandbox: nothing of where its files are. */
#define SOURCE        "burrow"
#define MOUNTINFO_MAX ((size_t) 4 << 20)

/* --- making one ------------------------------------------------------------------------------ */

static int configure(int filesystem, int server)
{
    static const struct {
        const char *key, *value;
    } rows[] = {{"source", SOURCE}, {"rootmode", "40000"}, {"user_id", "0"}, {"group_id", "0"}};
    char number[NUMBER_TEXT_SIZE];
    int r = 0;

    (void) number_format(server, number);
    r = sys_mount_set_string(filesystem, "fd", number);
    for (size_t i = 0; r == 0 && i < ARRAY_COUNT(rows); i++)
        r = sys_mount_set_string(filesystem, rows[i].key, rows[i].value);
    /* Seen by users other than the one who mounts, and the kernel checks modes as always. */
    if (r == 0)
        r = sys_mount_set_flag(filesystem, "allow_other");
    if (r == 0)
        r = sys_mount_set_flag(filesystem, "default_permissions");
    return r < 0 ? r : sys_mount_create(filesystem);
}

/* Without asking the server, who does not answer yet. */
static int read_minor(int mount, unsigned int *ret_minor)
{
    struct statx about;

    if (statx(mount, "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC, 0, &about) < 0)
        return -errno;
    *ret_minor = about.stx_dev_minor;
    return 0;
}

int fuse_mount_make_filesystem(int server)
{
    AUTO(close) int filesystem = sys_mount_open_filesystem("fuse");
    int r = filesystem < 0 ? filesystem : configure(filesystem, server);

    return r < 0 ? r : TAKE_FD(filesystem);
}

static int mount_it(int filesystem, bool read_only)
{
    return sys_mount_detached(filesystem, MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV |
                                              (read_only ? MOUNT_ATTR_RDONLY : 0));
}

int fuse_mount_open(pid_t sandbox, bool read_only, struct fuse_mount *ret_mount, struct error *err)
{
    AUTO(close) int server = -EBADF, filesystem = -EBADF, mount = -EBADF;
    unsigned int minor = 0;
    int r = fuse_mount_make_in(sandbox, &server, &filesystem);

    if (r == 0)
        r = mount = mount_it(filesystem, read_only);
    if (r >= 0)
        r = read_minor(mount, &minor);
    if (r < 0)
        return error_set(err, ERR_INTERNAL, r, "make a FUSE mount");
    *ret_mount =
        (struct fuse_mount){.mount = TAKE_FD(mount), .server = TAKE_FD(server), .minor = minor};
    return 0;
}

/* In our own namespaces, which is nearly the same as in a sandbox's. */
int fuse_mount_try(void)
{
    AUTO(close) int control = fuse_mount_control();
    AUTO(close)
    int server = control < 0 ? control : sys_file_open(AT_FDCWD, "/dev/fuse", O_RDWR, 0);
    AUTO(close) int filesystem = server < 0 ? server : fuse_mount_make_filesystem(server);
    AUTO(close) int mount = filesystem < 0 ? filesystem : mount_it(filesystem, false);

    return mount < 0 ? mount : 0;
}

/* --- ending one ------------------------------------------------------------------------------ */

int fuse_mount_control(void)
{
    AUTO(close) int filesystem = sys_mount_open_filesystem("fusectl");
    int r = filesystem < 0 ? filesystem : sys_mount_create(filesystem);

    return r < 0 ? r
                 : sys_mount_detached(filesystem,
                                      MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | MOUNT_ATTR_NOEXEC);
}

void fuse_mount_abort(int control, unsigned int minor)
{
    char path[64];
    AUTO(close) int file = -EBADF;

    (void) snprintf(path, sizeof(path), "%u/abort", minor);
    file = control < 0 ? control : sys_file_open(control, path, O_WRONLY, 0);
    if (file >= 0)
        (void) sys_file_write_full(file, "1", 1);
}

/* --- finding them ---------------------------------------------------------------------------- */

/* A field of a line: up to the next space. */
static const char *next_field(const char **at, size_t *ret_length)
{
    const char *field = *at;

    *ret_length = strcspn(field, " \n");
    *at = field + *ret_length;
    *at += **at == ' ';
    return field;
}

static bool is_octal(const char *text)
{
    for (int i = 0; i < 3; i++) {
        if (text[i] < '0' || text[i] > '7')
            return false;
    }
    return true;
}

/* Whether a field, in which the kernel writes some bytes as \ooo, is this text. */
static bool field_is(const char *field, size_t length, const char *text)
{
    size_t i = 0;

    while (i < length && *text) {
        unsigned int byte = (unsigned char) field[i];

        if (byte == '\\' && length - i >= 4 && is_octal(field + i + 1)) {
            byte = (unsigned int) ((field[i + 1] - '0') << 6 | (field[i + 2] - '0') << 3 |
                                   (field[i + 3] - '0'));
            i += 3;
        }
        if (byte != (unsigned char) *text)
            return false;
        i++;
        text++;
    }
    return i == length && !*text;
}

/* "36 35 0:42 / /mnt rw,noatime master:1 - fuse burrow rw": the third, fifth, and behind the dash.
 */
static bool read_line(const char *line, const char *place, unsigned int *ret_minor)
{
    const char *device = NULL, *type = NULL;
    size_t device_length = 0, length;
    uint64_t minor;
    const char *colon;

    for (int i = 0; i < 6; i++) {
        const char *field = next_field(&line, &length);

        if (i == 2) {
            device = field;
            device_length = length;
        }
        if (i == 4 && place && !field_is(field, length, place))
            return false;
    }
    do {
        type = next_field(&line, &length);
    } while (length && !(length == 1 && *type == '-'));
    type = next_field(&line, &length);
    colon = memchr(device, ':', device_length);
    if (length != strlen("fuse") || memcmp(type, "fuse", length) != 0 || !colon ||
        number_parse_digits(colon + 1, (size_t) (device + device_length - colon - 1), UINT32_MAX,
                            &minor) < 0)
        return false;
    *ret_minor = (unsigned int) minor;
    return true;
}

size_t fuse_mount_find_in(const char *text, const char *place, unsigned int *ret_minors,
                          size_t maximum)
{
    size_t count = 0;

    while (*text && count < maximum) {
        count += read_line(text, place, &ret_minors[count]);
        text += strcspn(text, "\n");
        text += *text == '\n';
    }
    return count;
}

size_t fuse_mount_find(pid_t pid, const char *place, unsigned int *ret_minors, size_t maximum)
{
    AUTO(free) char *text = NULL;
    char path[64];
    size_t length;

    (void) snprintf(path, sizeof(path), "/proc/%d/mountinfo", (int) pid);
    if (sys_file_read_all(AT_FDCWD, path, MOUNTINFO_MAX, &text, &length) < 0)
        return 0;
    return fuse_mount_find_in(text, place, ret_minors, maximum);
}
