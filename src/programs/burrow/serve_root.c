#include "programs/burrow/serve_root.h"

#include <errno.h>
#include <fcntl.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/auto.h"
#include "base/pool.h"
#include "programs/burrow/image_prepare.h"
#include "programs/burrow/root_program.h"
#include "sys/file/sys_file.h"

/* The launcher's words; the daemon's come behind. */
#define WORDS_MAX 128

#define DAEMON_FOLDER "daemon"

/* The texts of one line of the account database. */
#define ACCOUNT_MAX 16384

bool serve_root_is_wanted(const struct settings *settings)
{
    return geteuid() == 0 && !settings->no_sandboxes && !getenv(LAUNCHER_VARIABLE);
}

static int find_user(const char *name, uid_t *ret_user, gid_t *ret_group, struct error *err)
{
    char texts[ACCOUNT_MAX];
    struct passwd entry, *found;
    int r = getpwnam_r(name, &entry, texts, sizeof(texts), &found);

    if (!found)
        return error_set(err, ERR_NOT_FOUND, r,
                         "there is no user '%s' to run the daemon as; make one with `useradd "
                         "--system --no-create-home --shell /usr/sbin/nologin %s`, name another "
                         "with --user, or serve without sandboxes: --no-sandboxes",
                         name, name);
    if (entry.pw_uid == 0)
        return error_set(err, ERR_INVALID, 0,
                         "the daemon must not run as root: name another user with --user");
    *ret_user = entry.pw_uid;
    *ret_group = entry.pw_gid;
    return 0;
}

/* DATA is root's and everybody may walk through it; DATA/daemon is the daemon's alone. What it owns
 * already is left as it is. */
static int make_data(const char *path, uid_t user, gid_t group, struct error *err)
{
    AUTO(close) int data = -EBADF;
    AUTO(close) int own = -EBADF;
    struct stat status;
    int r = sys_file_make_directories(AT_FDCWD, path, 0755);

    if (r == 0)
        r = data = sys_file_open(AT_FDCWD, path, O_RDONLY | O_DIRECTORY, 0);
    if (r >= 0 && mkdirat(data, DAEMON_FOLDER, 0700) < 0 && errno != EEXIST)
        r = -errno;
    if (r >= 0)
        r = own = sys_file_open(data, DAEMON_FOLDER, O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0);
    if (r >= 0 && fstat(own, &status) < 0)
        r = -errno;
    if (r >= 0 && status.st_uid != user && fchown(own, user, group) < 0)
        r = -errno;
    if (r < 0)
        return error_set(err, error_code_from_errno(r), r,
                         "make the daemon's folder '%s/" DAEMON_FOLDER "'", path);
    return 0;
}

struct serve_root_words {
    struct pool pool;
    const char *list[WORDS_MAX + 1];
    size_t count;
};

static void serve_root_add(struct serve_root_words *words, const char *word)
{
    if (words->count < WORDS_MAX)
        words->list[words->count++] = word;
}

static void add_pair(struct serve_root_words *words, const char *flag, const char *value)
{
    serve_root_add(words, flag);
    serve_root_add(words, value);
}

static void add_launcher(struct serve_root_words *words, const struct settings *settings)
{
    serve_root_add(words, "serve");
    add_pair(words, "--data", settings->data);
    add_pair(words, "--run", settings->run_folder);
    add_pair(words, "--cgroup", settings->cgroup);
    if (*settings->cgroup_parent)
        add_pair(words, "--cgroup-parent", settings->cgroup_parent);
    add_pair(words, "--network-name", settings->network_name);
    add_pair(words, "--user", settings->user);
    add_pair(words, "--log-level", settings->log_level);
    if (strcmp(settings->default_network, "nat") == 0)
        serve_root_add(words, "--nat");
    if (settings->pool_size)
        add_pair(words, "--pool-size",
                 pool_format(&words->pool, "%llu", (unsigned long long) settings->pool_size));
}

static void add_daemon(struct serve_root_words *words, const struct settings *settings,
                       const char *self)
{
    struct settings daemon = *settings; /* borrows all texts */
    const char *const *flags;

    daemon.data = pool_format(&words->pool, "%s/" DAEMON_FOLDER, settings->data);
    flags = settings_words(&daemon, &words->pool);
    serve_root_add(words, "--");
    add_pair(words, self, "serve");
    for (size_t i = 0; flags[i]; i++)
        serve_root_add(words, flags[i]);
}

/* Each by a child that goes on by itself. Whatever keeps one from being made keeps nobody from
 * serving. */
static void prepare_images(const struct settings *settings, struct pool *pool)
{
    char *rest = NULL, *names = pool_copy_text(pool, settings->prepare_images);

    for (char *name = strtok_r(names, ",", &rest); name; name = strtok_r(NULL, ",", &rest)) {
        const struct image_prepare image = {
            .name = name + strspn(name, " "),
            .data = settings->data,
            .run = settings->run_folder,
            .cgroup = settings->cgroup,
            .network_name = settings->network_name,
            .is_background = true,
        };
        struct error err = ERROR_INIT;

        if (image_prepare(&image, &err) < 0)
            (void) fprintf(stderr, "burrow serve: prepare-images: %s\n", err.message);
    }
}

int serve_root(const struct settings *settings, struct error *err)
{
    struct serve_root_words words = {.count = 0};
    uid_t user;
    gid_t group;
    char self[4096];
    ssize_t length = readlink("/proc/self/exe", self, sizeof(self) - 1);

    if (length < 0)
        return error_set(err, ERR_INTERNAL, errno, "find this program");
    self[length] = '\0';
    if (*settings->data != '/' || *settings->run_folder != '/')
        return error_set(err, ERR_INVALID, 0, "data and run-folder must be given from / on");
    /* Root's own may close folders that the daemon must walk through. */
    (void) umask(022);
    if (find_user(settings->user, &user, &group, err) < 0 ||
        make_data(settings->data, user, group, err) < 0)
        return -1;
    prepare_images(settings, &words.pool);
    add_launcher(&words, settings);
    add_daemon(&words, settings, self);
    /* What the file says is in the flags; the daemon may not be able to read it. */
    (void) unsetenv("BURROW_CONFIG");
    (void) root_program_exec(LAUNCHER_PROGRAM, words.list, err);
    pool_done(&words.pool);
    return -1;
}
