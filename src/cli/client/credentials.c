#include "cli/client/credentials.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/auto.h"
#include "cli/client/client.h"
#include "net/url.h"
#include "sys/file/sys_file.h"

#define FILE_MAX        4096
#define PATH_SIZE       4096
#define FOLDER          ".config/burrow"
#define FILE_NAME       "credentials"
#define ADMIN_KEY       "daemon/keys/admin" /* in the data folder of a daemon that root started */
#define DATA_DEFAULT    "/var/lib/burrow"
#define OTHERS_MAY_READ 077

const char *credentials_place(void)
{
    return "~/" FOLDER "/" FILE_NAME;
}

static int folder_path(char ret_path[static PATH_SIZE])
{
    const char *home = getenv("HOME");
    int length = home ? snprintf(ret_path, PATH_SIZE, "%s/" FOLDER, home) : -1;

    return length > 0 && length < PATH_SIZE ? 0 : -ENOENT;
}

/* A value of "name = value" lines, in the pool; NULL: not there. */
static const char *value_of(struct pool *pool, const char *text, const char *name)
{
    size_t length = strlen(name);

    for (; *text; text += strcspn(text, "\n"), text += *text == '\n') {
        const char *at = text + strspn(text, " \t");
        size_t size;

        if (strncmp(at, name, length) != 0)
            continue;
        at += length + strspn(at + length, " \t");
        if (*at++ != '=')
            continue;
        at += strspn(at, " \t");
        size = strcspn(at, "\r\n");
        while (size && strchr(" \t", at[size - 1]))
            size--;
        return size ? pool_copy_bytes(pool, at, size) : NULL;
    }
    return NULL;
}

static bool is_same_url(const char *a, const char *b)
{
    size_t length = strlen(a), other = strlen(b);

    while (length && a[length - 1] == '/')
        length--;
    while (other && b[other - 1] == '/')
        other--;
    return length == other && strncmp(a, b, length) == 0;
}

static void credentials_read_file(struct pool *pool, struct credentials *found)
{
    char path[PATH_SIZE + sizeof(FILE_NAME) + 1];
    AUTO(free) char *text = NULL;
    struct stat status;
    const char *url;
    size_t length;

    if (folder_path(path) < 0)
        return;
    (void) snprintf(path + strlen(path), sizeof(FILE_NAME) + 1, "/" FILE_NAME);
    if (sys_file_read_all(AT_FDCWD, path, FILE_MAX, &text, &length) < 0)
        return;
    if (stat(path, &status) < 0 || (status.st_mode & OTHERS_MAY_READ)) {
        (void) fprintf(stderr, "burrow: %s can be read by others and is not used; chmod 600 it\n",
                       path);
        return;
    }
    url = value_of(pool, text, "url");
    if (!found->url)
        found->url = url;
    /* It opens the daemon it was stored for: another one must not get to see it. */
    if (!found->key && (!url || is_same_url(url, found->url)))
        found->key = value_of(pool, text, "key");
}

/* Whether the daemon is on this machine. */
static bool credentials_is_here(const char *text)
{
    struct url_host host;
    struct url url;

    if (url_parse(text, strlen(text), &url, NULL) < 0)
        return false;
    if (url.scheme == URL_UNIX)
        return true;
    url_host_of(&url, &host);
    return strcmp(host.name, "localhost") == 0 || strcmp(host.name, "[::1]") == 0 ||
           strcmp(host.name, "::1") == 0 ||
           (strncmp(host.name, "127.", 4) == 0 &&
            strspn(host.name, "0123456789.") == strlen(host.name));
}

static void read_admin_key(struct pool *pool, struct credentials *found)
{
    const char *data = getenv("BURROW_DATA");
    char path[PATH_SIZE];
    AUTO(free) char *text = NULL;
    size_t length;

    (void) snprintf(path, sizeof(path), "%s/" ADMIN_KEY, data && *data ? data : DATA_DEFAULT);
    if (sys_file_read_all(AT_FDCWD, path, FILE_MAX, &text, &length) == 0)
        found->key = pool_copy_bytes(pool, text, strcspn(text, "\r\n"));
}

static const char *variable(struct pool *pool, const char *name)
{
    const char *value = getenv(name);

    return value && *value ? pool_copy_text(pool, value) : NULL;
}

void credentials_find(struct pool *pool, const char *url, const char *key,
                      struct credentials *ret_credentials)
{
    struct credentials found = {
        .url = url ? pool_copy_text(pool, url) : variable(pool, "BURROW_URL"),
        .key = key ? pool_copy_text(pool, key) : variable(pool, "BURROW_API_KEY"),
    };

    if (!found.url || !found.key)
        credentials_read_file(pool, &found);
    if (!found.url)
        found.url = CLIENT_URL_DEFAULT;
    if (!found.key && credentials_is_here(found.url))
        read_admin_key(pool, &found);
    *ret_credentials = found;
}

int credentials_keep(const char *url, const char *key, struct error *err)
{
    char folder[PATH_SIZE], text[FILE_MAX];
    AUTO(close) int fd = -EBADF;
    int length = snprintf(text, sizeof(text), "url = %s\nkey = %s\n", url, key);
    int r = folder_path(folder);

    if (r == 0 && (length < 0 || length >= (int) sizeof(text)))
        r = -ENAMETOOLONG;
    if (r == 0)
        r = sys_file_make_directories(AT_FDCWD, folder, 0700);
    if (r == 0)
        r = fd = sys_file_open(AT_FDCWD, folder, O_RDONLY | O_DIRECTORY, 0);
    if (r >= 0)
        r = sys_file_replace(fd, FILE_NAME, text, (size_t) length, 0600);
    if (r < 0)
        return error_set(err, error_code_from_errno(r), r, "keep the key in %s",
                         credentials_place());
    return 0;
}
