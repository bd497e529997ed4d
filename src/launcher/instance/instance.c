#include "launcher/instance/instance.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/auto.h"
#include "launcher/instance/record.h"
#include "launcher/network/network_socket.h"
#include "sys/file/sys_file.h"
#include "sys/file/sys_lock.h"

#define LOCK_MS  10000
#define DYING_MS 3000
#define LOCK     "lock"
#define RECORDS  "records"
#define AGENTS   "agents"

static int fill_folder(struct instance *instance, struct error *err)
{
    char agents[INSTANCE_PATH_MAX + sizeof("/" AGENTS)];

    if (mkdirat(instance->folder, RECORDS, 0700) < 0 && errno != EEXIST)
        return error_set(err, error_code_from_errno(errno), errno, "make the folder of records");
    instance->records = sys_file_open(instance->folder, RECORDS, O_RDONLY | O_DIRECTORY, 0);
    if (instance->records < 0)
        return error_set(err, ERR_INTERNAL, instance->records, "open the folder of records");
    (void) snprintf(agents, sizeof(agents), "%s/" AGENTS, instance->path);
    return network_agent_folder(agents, instance->user, instance->group, &instance->agents, err);
}

static int take_lock(struct instance *instance, const char *path, struct error *err)
{
    instance->folder = sys_file_open(AT_FDCWD, path, O_RDONLY | O_DIRECTORY, 0);
    if (instance->folder < 0)
        return error_set(err, ERR_INTERNAL, instance->folder, "open folder '%s'", path);
    instance->lock = sys_file_open(instance->folder, LOCK, O_RDWR | O_CREAT, 0600);
    if (instance->lock < 0)
        return error_set(err, ERR_INTERNAL, instance->lock, "open the lock of '%s'", path);
    /* A child of a launcher that just died may hold its lock until it execs. */
    if (sys_lock_take(instance->lock, SYS_LOCK_EXCLUSIVE, LOCK_MS) < 0)
        return error_set(err, ERR_CONFLICT, 0, "another launcher works in '%s'", instance->path);
    return 0;
}

/* A new folder gets its name when its lock is held: others would take it for a dead one's. */
static int make_folder(struct instance *instance, const char *run, const char *name,
                       struct error *err)
{
    char hidden[INSTANCE_PATH_MAX + 1];

    (void) snprintf(hidden, sizeof(hidden), "%s/.%s", run, name);
    if (mkdir(hidden, 0755) < 0 && errno != EEXIST)
        return error_set(err, error_code_from_errno(errno), errno, "make folder '%s'", hidden);
    if (take_lock(instance, hidden, err) < 0)
        return -1;
    if (rename(hidden, instance->path) < 0)
        return error_set(err, error_code_from_errno(errno), errno, "name folder '%s'",
                         instance->path);
    return 0;
}

static int take_folder(struct instance *instance, const char *run, const char *name,
                       struct error *err)
{
    int r = access(instance->path, F_OK) == 0 ? take_lock(instance, instance->path, err)
                                              : make_folder(instance, run, name, err);

    return r < 0 ? -1 : fill_folder(instance, err);
}

int instance_open(struct instance *instance, const char *run, const char *name, uid_t user,
                  gid_t group, struct error *err)
{
    int length;

    *instance = (struct instance){.user = user,
                                  .group = group,
                                  .folder = -EBADF,
                                  .lock = -EBADF,
                                  .records = -EBADF,
                                  .agents = -EBADF};
    length = snprintf(instance->path, sizeof(instance->path), "%s/%s", run, name);
    if (length < 0 || (size_t) length >= sizeof(instance->path))
        return error_set(err, ERR_INVALID, 0, "the path '%s' is too long", run);
    if (take_folder(instance, run, name, err) == 0)
        return 0;
    instance_close(instance);
    return -1;
}

void instance_close(struct instance *instance)
{
    instance->agents = fd_close(instance->agents);
    instance->records = fd_close(instance->records);
    instance->lock = fd_close(instance->lock);
    instance->folder = fd_close(instance->folder);
}

void instance_remove(struct instance *instance)
{
    /* The lock goes last: until then nobody else takes this for an abandoned folder. */
    (void) unlinkat(instance->folder, AGENTS, AT_REMOVEDIR);
    (void) unlinkat(instance->records, RECORD_UNFINISHED, 0);
    (void) unlinkat(instance->folder, RECORDS, AT_REMOVEDIR);
    (void) unlinkat(instance->folder, LOCK, 0);
    (void) rmdir(instance->path);
    instance_close(instance);
}

/* --- others ---------------------------------------------------------------------------------- */

typedef void each_function(void *context, int folder, const char *name);

static void each_instance(const char *run, each_function *call, void *context)
{
    DIR *directory = opendir(run);
    const struct dirent *entry;

    while (directory && (entry = readdir(directory))) {
        AUTO(close) int folder = -EBADF;

        if (entry->d_name[0] == '.' || strlen(entry->d_name) > INSTANCE_NAME_MAX)
            continue;
        folder = openat(dirfd(directory), entry->d_name,
                        O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        if (folder >= 0 && faccessat(folder, LOCK, F_OK, 0) == 0)
            call(context, folder, entry->d_name);
    }
    if (directory)
        (void) closedir(directory);
}

struct search {
    const char *prefix;
    void (*found)(void *context, const char *name);
    void *context;
};

/* The name ends in the launcher's pid. When that is gone, its janitor is on its way out and has the
 * lock until then: a commit of the pool may hold it up. */
static int patience_for(const char *pid_text)
{
    pid_t pid = (pid_t) strtol(pid_text, NULL, 10);

    return pid > 0 && kill(pid, 0) < 0 && errno == ESRCH ? DYING_MS : 0;
}

static void report_dead(void *context, int folder, const char *name)
{
    struct search *search = context;
    AUTO(close) int lock = -EBADF;

    if (strncmp(name, search->prefix, strlen(search->prefix)) != 0)
        return;
    lock = openat(folder, LOCK, O_RDWR | O_CLOEXEC);
    if (lock < 0 ||
        sys_lock_take(lock, SYS_LOCK_EXCLUSIVE, patience_for(name + strlen(search->prefix))) < 0)
        return;
    sys_lock_release(lock);
    search->found(search->context, name);
}

void instance_find_dead(const char *run, const char *prefix,
                        void (*found)(void *context, const char *name), void *context)
{
    struct search search = {prefix, found, context};

    each_instance(run, report_dead, &search);
}

struct question {
    const char *own;
    const struct id *id;
    bool answer;
};

static void look_for(void *context, int folder, const char *name)
{
    struct question *question = context;
    char path[sizeof(RECORDS "/") + ID_SIZE];

    if (strcmp(name, question->own) == 0)
        return;
    (void) snprintf(path, sizeof(path), RECORDS "/%s", question->id->text);
    if (faccessat(folder, path, F_OK, 0) == 0)
        question->answer = true;
}

bool instance_others_have(const char *run, const char *own, const struct id *id)
{
    struct question question = {own, id, false};

    each_instance(run, look_for, &question);
    return question.answer;
}
