/* Every key has one path of names that a file system takes, and comes back from it; every name that
 * is read is the one that would be written. */
#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/auto.h"
#include "base/memory.h"
#include "objects/objects_key.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(bool holds)
{
    if (!holds)
        abort();
}

/* Read a path as a list does: name by name. */
static void read_back(char *path, const char *key)
{
    char again[OBJECTS_KEY_MAX + 1] = "";
    size_t length = 0;

    for (char *name = path; name;) {
        char *slash = strchr(name, '/');
        char part[OBJECTS_PART_SIZE];
        bool goes_on = false;
        int count;

        if (slash)
            *slash = '\0';
        must(*name && *name != '.' && strlen(name) <= 255);
        count = objects_key_part(name, part, &goes_on);
        must(count >= 0 && (size_t) count == strlen(part));
        must(length + (size_t) count <= OBJECTS_KEY_MAX);
        memcpy(again + length, part, (size_t) count);
        length += (size_t) count;
        must(!goes_on || slash);
        if (slash && !goes_on)
            again[length++] = '/';
        name = slash ? slash + 1 : NULL;
    }
    again[length] = '\0';
    must(strcmp(again, key) == 0);
}

static void check_key(const char *key)
{
    /* Exactly as large as promised, so that the sanitizer sees one byte too many. */
    AUTO(free) char *path = mem_alloc(OBJECTS_PATH_SIZE);

    objects_key_path(key, path);
    must(strlen(path) < OBJECTS_PATH_SIZE);
    read_back(path, key);
}

static void check_name(const char *name)
{
    AUTO(free) char *path = mem_alloc(OBJECTS_PATH_SIZE);
    char part[OBJECTS_PART_SIZE];
    bool goes_on = false;
    int count = objects_key_part(name, part, &goes_on);

    must(count >= 0 || count == -EINVAL);
    if (count < 0)
        return;
    must((size_t) count == strlen(part) && !strchr(part, '/'));
    objects_key_path(part, path);
    if (!goes_on)
        must(strcmp(path, name) == 0);
    else
        must(strncmp(path, name, strlen(path)) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    AUTO(free) char *text = mem_copy_bytes(data, size);

    check_name(text);
    if (objects_key_check(text, NULL) == 0)
        check_key(text);
    return 0;
}
