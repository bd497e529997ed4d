#include "programs/admin/image_preparing.h"

#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "base/auto.h"
#include "base/encoding/utf8.h"
#include "sys/file/sys_file.h"

#define STATE_MAX 1024

static void image_preparing_print_one(int folder, const char *name)
{
    char path[NAME_MAX + 16];
    AUTO(free) char *state = NULL;
    size_t length;

    (void) snprintf(path, sizeof(path), "%s/state", name);
    if (sys_file_read_all(folder, path, STATE_MAX, &state, &length) < 0 ||
        strncmp(state, "ready ", 6) == 0)
        return;
    state[strcspn(state, "\n")] = '\0';
    utf8_make_harmless(state);
    (void) printf("%-24s (%s%s)\n", name, strncmp(state, "step ", 5) == 0 ? "being prepared: " : "",
                  state);
}

void image_preparing_print(const char *data)
{
    char path[PATH_MAX];
    DIR *folder;

    if (snprintf(path, sizeof(path), "%s/prepare", data) >= (int) sizeof(path) ||
        !(folder = opendir(path)))
        return;
    for (struct dirent *entry; (entry = readdir(folder));) {
        if (entry->d_name[0] != '.')
            image_preparing_print_one(dirfd(folder), entry->d_name);
    }
    (void) closedir(folder);
}
