#include "programs/burrow/image_prepare.h"

#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/auto.h"
#include "base/encoding/encode.h"
#include "base/encoding/sha256.h"
#include "base/memory.h"
#include "base/text.h"
#include "sys/file/sys_file.h"

#define RECIPES_INSTALLED "/usr/share/burrow/recipes"
#define RECIPES_IN_TREE   "../../../packaging/recipes" /* from where programs are built */
#define FILE_MAX          ((size_t) 1 << 20)
#define WORDS_MAX         48
#define LOCK_FILE         "package-lock.json"
#define FETCHER           "fetch-packages"
#define NOBODY            65534
#define NICE              10

struct prepare {
    const struct image_prepare *options;
    const char *data;
    char self[PATH_MAX], recipe[PATH_MAX], room[PATH_MAX]; /* room: for what is fetched */
    int state;                                             /* the folder DATA/prepare/NAME */
    char digest[HEX_TEXT_SIZE(SHA256_SIZE)];
};

static void prepare_done(struct prepare *prepare)
{
    prepare->state = fd_close(prepare->state); /* and with it the lock */
}

AUTO_DEFINE(prepare, struct prepare, prepare_done);

/* --- where things are ------------------------------------------------------------------------- */

static int prepare_find_recipe(struct prepare *prepare, struct error *err)
{
    const char *name = prepare->options->name;
    char beside[PATH_MAX], tree[PATH_MAX];
    const char *places[3];
    ssize_t length = readlink("/proc/self/exe", prepare->self, sizeof(prepare->self) - 1);

    if (length < 0)
        return error_set(err, ERR_INTERNAL, errno, "find this program");
    prepare->self[length] = '\0';
    (void) snprintf(beside, sizeof(beside), "%s", prepare->self);
    (void) snprintf(tree, sizeof(tree), "%.3000s/" RECIPES_IN_TREE "/%.200s", dirname(beside),
                    name);
    (void) snprintf(beside, sizeof(beside), RECIPES_INSTALLED "/%.200s", name);
    places[0] = prepare->options->recipe ? prepare->options->recipe : tree;
    places[1] = prepare->options->recipe ? prepare->options->recipe : beside;
    for (size_t i = 0; i < 2; i++) {
        if (realpath(places[i], prepare->recipe))
            return 0;
    }
    return error_set(
        err, ERR_NOT_FOUND, 0,
        "there is no recipe '%s': those that come with Burrow are in " RECIPES_INSTALLED
        ", others are named with --recipe",
        name);
}

/* One at a time: whoever holds the folder's lock. */
static int prepare_open_state(struct prepare *prepare, struct error *err)
{
    char path[PATH_MAX];
    int r;

    (void) snprintf(path, sizeof(path), "%.3000s/prepare/%.200s", prepare->data,
                    prepare->options->name);
    r = sys_file_make_directories(AT_FDCWD, path, 0755);
    if (r == 0)
        r = prepare->state = sys_file_open(AT_FDCWD, path, O_RDONLY | O_DIRECTORY, 0);
    if (r < 0)
        return error_set(err, error_code_from_errno(r), r, "make '%s'", path);
    if (flock(prepare->state, LOCK_EX | LOCK_NB) < 0)
        return error_set(err, ERR_CONFLICT, 0, "image %s is being prepared already; see %s/log",
                         prepare->options->name, path);
    return 0;
}

/* A small file, "" when there is none. Owned. */
static char *prepare_read(int folder, const char *name)
{
    char *content = NULL;
    size_t length;

    if (sys_file_read_all(folder, name, FILE_MAX, &content, &length) < 0)
        return mem_copy_text("");
    return content;
}

static int prepare_write(const struct prepare *prepare, const char *name, const char *content)
{
    AUTO(close)
    int file = openat(prepare->state, name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);

    return file >= 0 && dprintf(file, "%s\n", content) > 0 ? 0 : -1;
}

static void prepare_tell(const struct prepare *prepare, const char *state)
{
    (void) prepare_write(prepare, "state", state);
    (void) printf("prepare %s: %s\n", prepare->options->name, state);
    (void) fflush(stdout);
}

/* Of all files of the recipe that matter, in a fixed order. */
static int prepare_digest(struct prepare *prepare, struct error *err)
{
    static const char *const names[] = {"packages", "fetch", "fetch-packages", "package-lock.json",
                                        "Dockerfile"};
    AUTO(close) int folder = sys_file_open(AT_FDCWD, prepare->recipe, O_RDONLY | O_DIRECTORY, 0);
    struct sha256 hash;
    uint8_t digest[SHA256_SIZE];

    if (folder < 0)
        return error_set(err, error_code_from_errno(folder), folder, "open '%s'", prepare->recipe);
    sha256_init(&hash);
    for (size_t i = 0; i < ARRAY_COUNT(names); i++) {
        AUTO(free) char *content = prepare_read(folder, names[i]);

        sha256_add(&hash, content, strlen(content) + 1);
    }
    sha256_finish(&hash, digest);
    (void) hex_encode(digest, sizeof(digest), prepare->digest);
    return 0;
}

static bool prepare_has_image(const struct prepare *prepare, const char *name)
{
    char path[PATH_MAX];
    struct stat status;

    (void) snprintf(path, sizeof(path), "%.3000s/images/%.200s", prepare->data, name);
    return lstat(path, &status) == 0;
}

/* --- children --------------------------------------------------------------------------------- */

struct prepare_words {
    const char *list[WORDS_MAX + 1];
    size_t count;
};

static void prepare_add(struct prepare_words *words, const char *word)
{
    if (words->count < WORDS_MAX)
        words->list[words->count++] = word;
    words->list[words->count] = NULL;
}

static void prepare_add_pair(struct prepare_words *words, const char *flag, const char *value)
{
    if (!value)
        return;
    prepare_add(words, flag);
    prepare_add(words, value);
}

/* Run it to its end. */
static int prepare_run(const struct prepare_words *words, const char *what, struct error *err)
{
    pid_t child = fork();
    int status;

    if (child == 0) {
        (void) execvp(words->list[0], (char *const *) words->list);
        (void) fprintf(stderr, "%s: %s\n", words->list[0], strerror(errno));
        _exit(127);
    }
    if (child < 0)
        return error_set(err, ERR_INTERNAL, errno, "start %s", words->list[0]);
    while (waitpid(child, &status, 0) < 0) {
        if (errno != EINTR)
            return error_set(err, ERR_INTERNAL, errno, "wait for %s", words->list[0]);
    }
    if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
        return 0;
    if (WIFEXITED(status) && WEXITSTATUS(status) == 127)
        return error_set(err, ERR_NOT_FOUND, 0, "%s needs %s: install it with apt", what,
                         words->list[0]);
    return error_set(err, ERR_UPSTREAM, 0, "%s failed; see what it said above, or in the log",
                     what);
}

static void prepare_add_build(const struct prepare *prepare, struct prepare_words *words)
{
    prepare_add(words, prepare->self);
    prepare_add(words, "image");
    prepare_add(words, "build");
    prepare_add_pair(words, "--data", prepare->options->data);
    prepare_add_pair(words, "--run", prepare->options->run);
}

/* --- steps ------------------------------------------------------------------------------------ */

static int prepare_base(struct prepare *prepare, struct error *err)
{
    AUTO(close) int folder = sys_file_open(AT_FDCWD, prepare->recipe, O_RDONLY | O_DIRECTORY, 0);
    AUTO(free) char *packages = prepare_read(folder, "packages");
    AUTO(free) char *made = prepare_read(prepare->state, "base");
    struct prepare_words words = {.count = 0};
    char name[300];

    (void) snprintf(name, sizeof(name), "%.200s-base", prepare->options->name);
    packages[strcspn(packages, "\n")] = '\0';
    made[strcspn(made, "\n")] = '\0';
    if (!*packages || (strcmp(packages, made) == 0 && prepare_has_image(prepare, name)))
        return 0;
    prepare_add_build(prepare, &words);
    prepare_add(&words, "--debian");
    prepare_add_pair(&words, "--packages", packages);
    prepare_add(&words, name);
    if (prepare_run(&words, "making the base", err) < 0)
        return -1;
    (void) prepare_write(prepare, "base", packages);
    return 0;
}

/* Into the room: the recipe may lie where nobody else can go. */
static int prepare_lend(const struct prepare *prepare, const char *name, struct error *err)
{
    AUTO(close) int recipe = sys_file_open(AT_FDCWD, prepare->recipe, O_RDONLY | O_DIRECTORY, 0);
    AUTO(close) int room = sys_file_open(AT_FDCWD, prepare->room, O_RDONLY | O_DIRECTORY, 0);
    AUTO(free) char *content = prepare_read(recipe, name);
    AUTO(close) int file = openat(room, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);

    if (file < 0 || dprintf(file, "%s", content) < 0)
        return error_set(err, error_code_from_errno(errno), errno, "copy '%s' of the recipe", name);
    return 0;
}

/* One line of `fetch`. Who talks to the registry, and takes its archives apart, has no right at all. */
static int prepare_fetch_line(const struct prepare *prepare, char *line, struct error *err)
{
    char folder[PATH_MAX + 300], lock[PATH_MAX + 32], program[PATH_MAX + 32], *rest = NULL;
    struct prepare_words words = {.count = 0};
    const char *name = strtok_r(line, " ", &rest), *package;

    if (!name || strchr(name, '/'))
        return 0;
    (void) snprintf(folder, sizeof(folder), "%s/%s", prepare->room, name);
    (void) snprintf(lock, sizeof(lock), "%s/" LOCK_FILE, prepare->room);
    (void) snprintf(program, sizeof(program), "%s/" FETCHER, prepare->room);
    if (mkdir(folder, 0755) < 0 || chown(folder, NOBODY, NOBODY) < 0)
        return error_set(err, error_code_from_errno(errno), errno, "make '%s'", folder);
    prepare_add(&words, "setpriv");
    prepare_add(&words, "--reuid=65534");
    prepare_add(&words, "--regid=65534");
    prepare_add(&words, "--clear-groups");
    prepare_add(&words, "--no-new-privs");
    prepare_add(&words, "--bounding-set=-all");
    prepare_add(&words, "--inh-caps=-all");
    prepare_add(&words, "/usr/bin/python3");
    prepare_add(&words, program);
    prepare_add(&words, lock);
    prepare_add(&words, folder);
    while ((package = strtok_r(NULL, " ", &rest)))
        prepare_add(&words, package);
    return prepare_run(&words, "fetching packages from npm", err);
}

static int prepare_fetch(struct prepare *prepare, struct error *err)
{
    AUTO(close) int folder = sys_file_open(AT_FDCWD, prepare->recipe, O_RDONLY | O_DIRECTORY, 0);
    AUTO(free) char *lines = prepare_read(folder, "fetch");
    char *rest = NULL;

    if (*lines &&
        (prepare_lend(prepare, LOCK_FILE, err) < 0 || prepare_lend(prepare, FETCHER, err) < 0))
        return -1;
    for (char *line = strtok_r(lines, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest)) {
        if (prepare_fetch_line(prepare, line, err) < 0)
            return -1;
    }
    return 0;
}

static int prepare_build(struct prepare *prepare, struct error *err)
{
    struct prepare_words words = {.count = 0};
    char file[PATH_MAX + 32];

    (void) snprintf(file, sizeof(file), "%s/Dockerfile", prepare->recipe);
    prepare_add_build(prepare, &words);
    prepare_add_pair(&words, "--cgroup", prepare->options->cgroup);
    prepare_add_pair(&words, "--network-name", prepare->options->network_name);
    prepare_add_pair(&words, "--net", "none");
    prepare_add_pair(&words, "--file", file);
    prepare_add(&words, prepare->options->name);
    prepare_add(&words, prepare->room);
    return prepare_run(&words, "building the image", err);
}

static const struct prepare_step {
    const char *what;
    int (*run)(struct prepare *prepare, struct error *err);
} steps[] = {
    {"make its base of Debian packages", prepare_base},
    {"fetch its packages from npm", prepare_fetch},
    {"build it", prepare_build},
};

/* --- all together ----------------------------------------------------------------------------- */

static int prepare_make_room(struct prepare *prepare, struct error *err)
{
    const char *parent = getenv("TMPDIR");

    (void) snprintf(prepare->room, sizeof(prepare->room), "%.3000s/burrow-prepare-XXXXXX",
                    parent && *parent == '/' ? parent : "/var/tmp");
    if (!mkdtemp(prepare->room) || chmod(prepare->room, 0711) < 0)
        return error_set(err, error_code_from_errno(errno), errno, "make a folder for packages");
    return 0;
}

static void prepare_clear_room(const struct prepare *prepare)
{
    struct prepare_words words = {.count = 0};
    struct error ignored;

    prepare_add(&words, "rm");
    prepare_add(&words, "-rf");
    prepare_add(&words, prepare->room);
    (void) prepare_run(&words, "cleaning up", &ignored);
}

static int prepare_walk(struct prepare *prepare, struct error *err)
{
    char state[128];
    int r = prepare_make_room(prepare, err);

    for (size_t i = 0; r == 0 && i < ARRAY_COUNT(steps); i++) {
        (void) snprintf(state, sizeof(state), "step %zu of %zu: %s", i + 1, ARRAY_COUNT(steps),
                        steps[i].what);
        prepare_tell(prepare, state);
        r = steps[i].run(prepare, err);
    }
    if (*prepare->room)
        prepare_clear_room(prepare);
    return r;
}

/* Whatever happens is in the state, for whoever looks later. */
static int prepare_do(struct prepare *prepare, struct error *err)
{
    AUTO(text) struct text state = TEXT_INIT(1024);
    int r = prepare_walk(prepare, err);

    if (r == 0)
        text_format(&state, "ready %s", prepare->digest);
    else
        text_format(&state, "failed: %s", err->message);
    prepare_tell(prepare, text_string(&state));
    return r;
}

static bool prepare_is_ready(const struct prepare *prepare)
{
    AUTO(free) char *state = prepare_read(prepare->state, "state");
    char wanted[sizeof(prepare->digest) + 16];

    (void) snprintf(wanted, sizeof(wanted), "ready %s\n", prepare->digest);
    return strcmp(state, wanted) == 0 && prepare_has_image(prepare, prepare->options->name);
}

/* A child of nobody, so that whatever this process becomes does not hear of it. False: this is the
 * child that does the work; its output goes to the log. */
static bool prepare_detach(const struct prepare *prepare)
{
    pid_t child = fork();
    int log;

    if (child > 0)
        (void) waitpid(child, NULL, 0);
    if (child != 0)
        return true;
    if (setsid() < 0 || fork() != 0)
        _exit(0);
    log = openat(prepare->state, "log", O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    if (log < 0 || dup2(log, STDOUT_FILENO) < 0 || dup2(log, STDERR_FILENO) < 0)
        _exit(1);
    log = open("/dev/null", O_RDONLY | O_CLOEXEC);
    if (log < 0 || dup2(log, STDIN_FILENO) < 0)
        _exit(1);
    (void) signal(SIGHUP, SIG_IGN);
    (void) setpriority(PRIO_PROCESS, 0, NICE);
    return false;
}

int image_prepare(const struct image_prepare *options, struct error *err)
{
    AUTO(prepare)
    struct prepare prepare = {.options = options,
                              .data = options->data ? options->data : IMAGE_PREPARE_DATA,
                              .state = -EBADF};

    if (!*options->name || strchr(options->name, '/') || options->name[0] == '.')
        return error_set(err, ERR_INVALID, 0, "'%s' is no name of a recipe", options->name);
    if (prepare_find_recipe(&prepare, err) < 0 || prepare_open_state(&prepare, err) < 0 ||
        prepare_digest(&prepare, err) < 0)
        return -1;
    if (prepare_is_ready(&prepare)) {
        if (!options->is_background)
            (void) printf("image %s is ready\n", options->name);
        return 0;
    }
    if (!options->is_background)
        return prepare_do(&prepare, err);
    if (prepare_detach(&prepare))
        return 0;
    _exit(prepare_do(&prepare, err) < 0 ? 1 : 0);
}
