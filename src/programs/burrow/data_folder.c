#include "programs/burrow/data_folder.h"

#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>

#include "base/encoding/encode.h"
#include "base/id.h"
#include "base/memory.h"
#include "base/number.h"
#include "domain/caller.h"
#include "sys/file/sys_file.h"

#define VERSION_FILE     "version"
#define LOCK_FILE        "lock"
#define KEY_FOLDER       "keys"
#define KEY_FILE         KEY_FOLDER "/admin"
#define KEY_RANDOM_BYTES 32
#define SMALL_FILE_MAX   256

static int lock_folder(struct data_folder *folder, const char *path, struct error *err)
{
    int fd = sys_file_open(folder->fd, LOCK_FILE, O_RDWR | O_CREAT, 0600);

    if (fd < 0)
        return error_set(err, error_code_from_errno(fd), fd, "lock the data folder '%s'", path);
    folder->lock_fd = fd;
    if (flock(fd, LOCK_EX | LOCK_NB) == 0)
        return 0;
    if (errno == EWOULDBLOCK)
        return error_set(
            err, ERR_CONFLICT, 0,
            "the data folder '%s' is in use by another burrow; stop it or give another "
            "folder with --data",
            path);
    return error_set(err, ERR_INTERNAL, errno, "lock the data folder '%s'", path);
}

static int write_version(struct data_folder *folder, const char *path, struct error *err)
{
    char text[NUMBER_TEXT_SIZE];
    size_t length = number_format(DATA_FOLDER_VERSION, text);
    int r;

    text[length++] = '\n';
    r = sys_file_replace(folder->fd, VERSION_FILE, text, length, 0600);
    if (r < 0)
        return error_set(err, error_code_from_errno(r), r, "mark the data folder '%s'", path);
    return 0;
}

static int check_version(struct data_folder *folder, const char *path, struct error *err)
{
    AUTO(free) char *text = NULL;
    uint64_t version;
    size_t length;
    int r = sys_file_read_all(folder->fd, VERSION_FILE, SMALL_FILE_MAX, &text, &length);

    if (r == -ENOENT)
        return write_version(folder, path, err);
    if (r < 0)
        return error_set(err, error_code_from_errno(r), r, "read '%s/" VERSION_FILE "'", path);
    while (length && text[length - 1] == '\n')
        length--;
    if (number_parse_digits(text, length, UINT32_MAX, &version) < 0)
        return error_set(err, ERR_INVALID, 0,
                         "'%s/" VERSION_FILE "' is not a number: is this a "
                         "data folder of burrow?",
                         path);
    if (version > DATA_FOLDER_VERSION)
        return error_set(err, ERR_INVALID, 0,
                         "the data folder '%s' has version %llu, this burrow knows %d: upgrade "
                         "burrow or give another folder with --data",
                         path, (unsigned long long) version, DATA_FOLDER_VERSION);
    return 0;
}

int data_folder_open(struct data_folder *folder, const char *path, struct error *err)
{
    int r = sys_file_make_directories(AT_FDCWD, path, 0700);

    if (r < 0)
        return error_set(err, error_code_from_errno(r), r, "make the data folder '%s'", path);
    folder->fd = sys_file_open(AT_FDCWD, path, O_RDONLY | O_DIRECTORY, 0);
    if (folder->fd < 0)
        return error_set(err, error_code_from_errno(folder->fd), folder->fd,
                         "open the data folder '%s'", path);
    if (lock_folder(folder, path, err) < 0)
        return -1;
    return check_version(folder, path, err);
}

void data_folder_done(struct data_folder *folder)
{
    folder->lock_fd = fd_close(folder->lock_fd);
    folder->fd = fd_close(folder->fd);
}

/* 256 random bits behind a prefix that scanners for leaked keys can know. */
static char *make_key(void)
{
    uint8_t bytes[KEY_RANDOM_BYTES];
    char text[sizeof(CALLER_SECRET_PREFIX) + 2 * KEY_RANDOM_BYTES + 1] = CALLER_SECRET_PREFIX;

    random_bytes(bytes, sizeof(bytes));
    (void) hex_encode(bytes, sizeof(bytes), text + sizeof(CALLER_SECRET_PREFIX) - 1);
    explicit_bzero(bytes, sizeof(bytes));
    return mem_copy_text(text);
}

int data_folder_admin_key(struct data_folder *folder, char **ret_key, bool *ret_is_new,
                          struct error *err)
{
    AUTO(free) char *key = NULL;
    size_t length;
    int r = sys_file_read_all(folder->fd, KEY_FILE, SMALL_FILE_MAX, &key, &length);

    *ret_is_new = r == -ENOENT;
    if (r == -ENOENT) {
        key = make_key();
        r = sys_file_make_directories(folder->fd, KEY_FOLDER, 0700);
        if (r == 0)
            r = sys_file_replace(folder->fd, KEY_FILE, key, strlen(key), 0600);
    }
    if (r < 0)
        return error_set(err, error_code_from_errno(r), r,
                         "the administrator's key in '" KEY_FILE "' of the data folder");
    key[strcspn(key, "\r\n")] = '\0';
    if (strlen(key) < sizeof(CALLER_SECRET_PREFIX) + KEY_RANDOM_BYTES ||
        strncmp(key, CALLER_SECRET_PREFIX, sizeof(CALLER_SECRET_PREFIX) - 1) != 0)
        return error_set(err, ERR_INVALID, 0,
                         "'" KEY_FILE "' of the data folder holds no key (" CALLER_SECRET_PREFIX
                         "...); remove it to get a new one");
    *ret_key = TAKE_PTR(key);
    return 0;
}
