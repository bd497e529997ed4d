#include "launcher/launcher_look.h"

#include <ctype.h>
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/auto.h"
#include "base/number.h"
#include "sys/file/sys_file.h"

#define NAME      "burrow-launcher"
#define VERB      "serve"
#define DATA      "--data"
#define WORDS_MAX 65536
#define PATH_SIZE 64

bool launcher_look_is(int proc, const char *pid)
{
    AUTO(free) char *name = NULL;
    struct stat ours, theirs;
    char path[PATH_SIZE];
    size_t length;

    (void) snprintf(path, sizeof(path), "%.16s/comm", pid);
    if (sys_file_read_all(proc, path, WORDS_MAX, &name, &length) < 0 ||
        strcmp(name, NAME "\n") != 0)
        return false;
    (void) snprintf(path, sizeof(path), "%.16s/ns/user", pid);
    return fstatat(proc, "self/ns/user", &ours, 0) == 0 && fstatat(proc, path, &theirs, 0) == 0 &&
           ours.st_ino == theirs.st_ino;
}

/* Its words have a NUL behind each. */
static bool is_serving(int proc, const char *pid, const char *data)
{
    AUTO(free) char *words = NULL;
    bool has_verb = false, has_data = false;
    const char *before = "";
    char path[PATH_SIZE];
    size_t length;

    (void) snprintf(path, sizeof(path), "%.16s/cmdline", pid);
    if (sys_file_read_all(proc, path, WORDS_MAX, &words, &length) < 0)
        return false;
    for (const char *word = words; word < words + length; word += strlen(word) + 1) {
        has_verb = has_verb || strcmp(word, VERB) == 0;
        has_data = has_data || (strcmp(before, DATA) == 0 && strcmp(word, data) == 0);
        before = word;
    }
    return has_verb && has_data;
}

pid_t launcher_look_find(int proc, const char *data)
{
    int folder = sys_file_open(proc, ".", O_RDONLY | O_DIRECTORY, 0);
    DIR *entries = folder < 0 ? NULL : fdopendir(folder);
    struct dirent *entry;
    int64_t found = 0;

    while (entries && found == 0 && (entry = readdir(entries))) {
        if (isdigit((unsigned char) entry->d_name[0]) && launcher_look_is(proc, entry->d_name) &&
            is_serving(proc, entry->d_name, data) &&
            number_parse(entry->d_name, 1, INT32_MAX, &found) < 0)
            found = 0;
    }
    if (entries)
        (void) closedir(entries);
    return (pid_t) found;
}
