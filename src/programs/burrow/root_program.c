#include "programs/burrow/root_program.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/auto.h"
#include "base/memory.h"

#define EXIT_REFUSED 2

static bool is_program(const char *path)
{
    struct stat status;

    return stat(path, &status) == 0 && S_ISREG(status.st_mode) && access(path, X_OK) == 0;
}

/* Whether the program is in that folder, with its path in `ret_path`. */
static bool is_in(const char *folder, size_t length, const char *program,
                  char ret_path[static PATH_MAX])
{
    int size = snprintf(ret_path, PATH_MAX, "%.*s/%s", (int) length, folder, program);

    return size > 0 && size < PATH_MAX && is_program(ret_path);
}

static bool is_beside(const char *self, const char *program, char ret_path[static PATH_MAX])
{
    char own[PATH_MAX];
    const char *slash;

    if (!self) {
        ssize_t length = readlink("/proc/self/exe", own, sizeof(own) - 1);

        own[length < 0 ? 0 : length] = '\0';
        self = own;
    }
    slash = strrchr(self, '/');
    return slash && is_in(self, (size_t) (slash - self), program, ret_path);
}

int root_program_find(const char *program, const char *self, const char *path,
                      char ret_path[static PATH_MAX], struct error *err)
{
    if (is_beside(self, program, ret_path))
        return 0;
    while (path && *path) {
        size_t length = strcspn(path, ":");

        /* An empty part means the working directory, which is no place for a program of root's. */
        if (length > 0 && path[0] == '/' && is_in(path, length, program, ret_path))
            return 0;
        path += length + (path[length] == ':');
    }
    return error_set(err, ERR_NOT_FOUND, 0,
                     "%s is neither beside burrow nor in PATH: install it there", program);
}

int root_program_exec(const char *program, const char *const *arguments, struct error *err)
{
    AUTO(free) char **words = NULL;
    char path[PATH_MAX];
    size_t count = 0;

    if (root_program_find(program, NULL, getenv("PATH"), path, err) < 0)
        return -1;
    while (arguments[count])
        count++;
    words = mem_alloc_array(count + 2, sizeof(*words));
    words[0] = path;
    memcpy(words + 1, arguments, count * sizeof(*words));
    (void) execv(path, words);
    return error_set(err, ERR_INTERNAL, errno, "start %s", path);
}

int root_program_exec_verb(const char *verb, int argc, char **argv)
{
    AUTO(free) const char **words = mem_alloc_array((size_t) argc + 2, sizeof(*words));
    struct error err = ERROR_INIT;

    words[0] = verb;
    memcpy(words + 1, argv, (size_t) argc * sizeof(*words));
    (void) root_program_exec(ADMIN_PROGRAM, words, &err);
    (void) fprintf(stderr, "burrow %s: %s\n", verb, err.message);
    return EXIT_REFUSED;
}
