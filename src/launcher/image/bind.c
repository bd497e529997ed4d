#include "launcher/image/bind.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#include "base/memory.h"
#include "launcher/image/folder_rules.h"
#include "sys/file/sys_file.h"

#define BIND_FOLDER "binds"
#define NOUN        "bind"

enum { OWN_DATA, OWN_RUN, OWN_COUNT };

struct bind_now {
    char name[FOLDER_NAME_MAX + 1];
    int folder; /* owned, O_PATH */
};

struct bind_registry {
    struct folder_registry names; /* owned */
    char *data;                   /* owned */
    char *run;                    /* owned */
    struct bind_now now[BIND_NOW_MAX];
    size_t now_count;
};

int bind_registry_open(const char *data, const char *run, struct bind_registry **ret_registry,
                       struct error *err)
{
    AUTO(bind_registry) struct bind_registry *registry = mem_alloc(sizeof(*registry));
    char path[PATH_MAX];

    registry->names = (struct folder_registry) FOLDER_REGISTRY_INIT;
    registry->data = mem_copy_text(data);
    registry->run = mem_copy_text(run);
    if (snprintf(path, sizeof(path), "%s/" BIND_FOLDER, data) >= (int) sizeof(path))
        return error_set(err, ERR_INVALID, 0, "the path of the data folder is too long");
    if (folder_registry_init(&registry->names, path, NOUN, err) < 0)
        return -1;
    *ret_registry = TAKE_PTR(registry);
    return 0;
}

void bind_registry_free(struct bind_registry *registry)
{
    if (!registry)
        return;
    for (size_t i = 0; i < registry->now_count; i++)
        registry->now[i].folder = fd_close(registry->now[i].folder);
    folder_registry_done(&registry->names);
    free(registry->data);
    free(registry->run);
    free(registry);
}

/* The rules that hold for every bind. Data and run folder are looked up each time: the launcher may
 * have made them meanwhile. */
static int check_folder(const struct bind_registry *registry, int folder, const char *path,
                        struct error *err)
{
    AUTO(close) int data = sys_file_open(AT_FDCWD, registry->data, O_PATH | O_DIRECTORY, 0);
    AUTO(close) int run = sys_file_open(AT_FDCWD, registry->run, O_PATH | O_DIRECTORY, 0);
    const struct folder_place own[OWN_COUNT] = {
        [OWN_DATA] = {data, "burrow's data folder"}, [OWN_RUN] = {run, "burrow's run folder"}};

    return folder_check(FOLDER_BY_HAND, folder, path, "a " NOUN, own, OWN_COUNT, err);
}

/* By the path a person gave, links resolved. */
static int open_folder(const struct bind_registry *registry, const char *path, struct error *err)
{
    AUTO(free) char *real = realpath(path, NULL);
    AUTO(close) int folder = real ? sys_file_open(AT_FDCWD, real, O_PATH | O_DIRECTORY, 0) : -errno;

    if (folder < 0)
        return error_set(err, error_code_from_errno(folder), folder, "open the folder '%s'", path);
    if (check_folder(registry, folder, real, err) < 0)
        return -1;
    return TAKE_FD(folder);
}

static const struct bind_now *find_now(const struct bind_registry *registry, const char *name)
{
    for (size_t i = 0; i < registry->now_count; i++) {
        if (strcmp(registry->now[i].name, name) == 0)
            return &registry->now[i];
    }
    return NULL;
}

int bind_registry_add_now(struct bind_registry *registry, const char *name, const char *folder,
                          struct error *err)
{
    struct bind_now *now = &registry->now[registry->now_count];
    int fd;

    if (folder_registry_check_name(&registry->names, name, err) < 0)
        return -1;
    if (find_now(registry, name))
        return error_set(err, ERR_CONFLICT, 0, "the " NOUN " '%s' was given twice", name);
    if (registry->now_count == BIND_NOW_MAX)
        return error_set(err, ERR_TOO_LARGE, 0, "more than %d " NOUN "s at once", BIND_NOW_MAX);
    fd = open_folder(registry, folder, err);
    if (fd < 0)
        return error_wrap(err, NOUN " '%s'", name);
    (void) snprintf(now->name, sizeof(now->name), "%s", name);
    now->folder = fd;
    registry->now_count++;
    return 0;
}

int bind_registry_add_word(struct bind_registry *registry, const char *word, struct error *err)
{
    const char *equals = strchr(word, '=');
    AUTO(free) char *name = equals ? mem_copy_bytes(word, (size_t) (equals - word)) : NULL;

    if (!name || !equals[1])
        return error_set(err, ERR_INVALID, 0, "a " NOUN " is NAME=DIR, not '%s'", word);
    return bind_registry_add_now(registry, name, equals + 1, err);
}

int bind_add(struct bind_registry *registry, const char *name, const char *folder,
             struct error *err)
{
    AUTO(close) int fd = open_folder(registry, folder, err);

    if (fd < 0)
        return -1;
    return folder_registry_add(&registry->names, name, folder, err);
}

int bind_remove(struct bind_registry *registry, const char *name, struct error *err)
{
    return folder_registry_remove(&registry->names, name, err);
}

int bind_list(struct bind_registry *registry, struct folder_entry **ret_entries, size_t *ret_count,
              struct error *err)
{
    return folder_registry_list(&registry->names, ret_entries, ret_count, err);
}

int bind_open(struct bind_registry *registry, const char *name, int *ret_folder, struct error *err)
{
    const struct bind_now *now = find_now(registry, name);
    AUTO(close) int folder = now ? fcntl(now->folder, F_DUPFD_CLOEXEC, 3) : -EBADF;

    if (now && folder < 0)
        return error_set(err, ERR_UNAVAILABLE, errno, "open " NOUN " '%s'", name);
    if (!now && (folder_registry_open(&registry->names, name, &folder, err) < 0 ||
                 check_folder(registry, folder, name, err) < 0))
        return -1;
    *ret_folder = TAKE_FD(folder);
    return 0;
}
