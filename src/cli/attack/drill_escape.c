/* Attempts to get out of a sandbox: a program of ours is sent into one over the API, and tries by name
 * what attack/ has. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/memory.h"
#include "cli/attack/drill.h"
#include "cli/attack/drill_target.h"
#include "json/json_read.h"

#define PROGRAM      "burrow-attack-inside"
#define PROGRAM_MAX  ((size_t) 16 * 1024 * 1024)
#define PLACE        "/workspace/attack"
#define NAMES_MAX    256
#define PATH_SIZE    256
#define LIST_MAX     ((size_t) 16 * 1024)
#define EXEC_TIMEOUT 30

/* Those that take two starts of a sandbox, or leave one that starts no more. */
static const char *const elsewhere[] = {"plant_link", "read_planted_link"};

struct drill_inside {
    struct drill *drill;
    const struct drill_group *group;
    struct drill_user user;
    char box[DRILL_NAME_SIZE];
    struct drill_target target;
    bool is_here; /* the daemon is on this host */
};

/* --- the program ----------------------------------------------------------------------------- */

/* It is beside us. */
static int inside_open(char ret_path[static PATH_MAX], struct error *err)
{
    char self[PATH_MAX - sizeof(PROGRAM)] = "", *slash;
    int fd;

    if (readlink("/proc/self/exe", self, sizeof(self) - 1) < 0 || !(slash = strrchr(self, '/')))
        return error_set(err, ERR_INTERNAL, errno, "find our own program");
    slash[1] = '\0';
    (void) snprintf(ret_path, PATH_MAX, "%s%s", self, PROGRAM);
    fd = open(ret_path, O_RDONLY | O_CLOEXEC);
    return fd < 0 ? error_set(err, ERR_NOT_FOUND, errno,
                              "%s, which is installed beside burrow and tries to get out", ret_path)
                  : fd;
}

static int inside_load(struct text *ret_bytes, struct error *err)
{
    static char piece[65536];
    char path[PATH_MAX];
    AUTO(close) int fd = inside_open(path, err);
    ssize_t got;

    if (fd < 0)
        return -1;
    while ((got = read(fd, piece, sizeof(piece))) > 0)
        text_append_bytes(ret_bytes, piece, (size_t) got);
    return got < 0 || ret_bytes->overflowed ? error_set(err, ERR_INTERNAL, errno, "read %s", path)
                                            : 0;
}

/* Names of all attempts, one to a line: it runs here, too. */
static int inside_names(struct text *ret_names, struct error *err)
{
    char path[PATH_MAX], bytes[4096];
    AUTO(close) int program = inside_open(path, err);
    ssize_t got;
    int ends[2];
    pid_t pid;

    if (program < 0)
        return -1;
    if (pipe2(ends, O_CLOEXEC) < 0)
        return error_set(err, ERR_INTERNAL, errno, "make a pipe");
    pid = fork();
    if (pid == 0) {
        (void) dup2(ends[1], STDOUT_FILENO);
        (void) execl(path, path, "--list", (char *) NULL);
        _exit(EXIT_FAILURE);
    }
    (void) close(ends[1]);
    while ((got = read(ends[0], bytes, sizeof(bytes))) > 0)
        text_append_bytes(ret_names, bytes, (size_t) got);
    (void) close(ends[0]);
    if (pid > 0)
        (void) waitpid(pid, NULL, 0);
    return ret_names->length ? 0 : error_set(err, ERR_INTERNAL, 0, "%s named no attempts", path);
}

static void escape_list(void)
{
    AUTO(text) struct text names = TEXT_INIT(LIST_MAX);
    AUTO(free) char *lines = NULL;
    struct error err = ERROR_INIT;
    char *rest = NULL;

    if (inside_names(&names, &err) < 0) {
        (void) printf("    (%s)\n", err.message);
        return;
    }
    lines = text_take(&names);
    for (char *name = strtok_r(lines, "\n", &rest); name; name = strtok_r(NULL, "\n", &rest)) {
        if (strcmp(name, elsewhere[0]) != 0 && strcmp(name, elsewhere[1]) != 0)
            (void) printf("    %s\n", name);
    }
}

static int inside_send(struct drill_inside *inside, struct error *err)
{
    AUTO(text) struct text bytes = TEXT_INIT(PROGRAM_MAX);
    AUTO(drill_talk) struct drill_talk talk = {0};
    AUTO(json) json_t *done = NULL;
    char path[PATH_SIZE];
    struct drill_call call = {
        .method = "PUT",
        .path = path,
        .key = inside->user.key,
        .type = "application/octet-stream",
    };

    if (inside_load(&bytes, err) < 0)
        return -1;
    call.body = text_string(&bytes);
    call.body_length = bytes.length;
    (void) snprintf(path, sizeof(path), CLIENT_PREFIX "/sandboxes/%s/files" PLACE, inside->box);
    if (drill_ask(&inside->drill->client, &call, &talk) == 0 || !drill_talk_is_good(&talk))
        return error_set(err, ERR_UPSTREAM, 0, "send the program into the sandbox: status %d",
                         talk.status);
    (void) snprintf(path, sizeof(path), CLIENT_PREFIX "/sandboxes/%s/exec", inside->box);
    done = drill_want(inside->drill, inside->user.key, "POST", path,
                      "{\"argv\":[\"chmod\",\"755\",\"" PLACE "\"]}", err);
    return done ? 0 : -1;
}

/* --- attempts -------------------------------------------------------------------------------- */

static char *inside_body(const struct drill_inside *inside, const char *name)
{
    AUTO(json) json_t *body = json_object();
    json_t *argv = json_array();

    (void) json_array_append_new(argv, json_string("env"));
    for (size_t i = 0; i < DRILL_TARGETS; i++) {
        if (inside->target.texts[i][0])
            (void) json_array_append_new(argv, json_string(inside->target.texts[i]));
    }
    (void) json_array_append_new(argv, json_string(PLACE));
    (void) json_array_append_new(argv, json_string(name));
    (void) json_object_set_new(body, "argv", argv);
    (void) json_object_set_new(body, "timeout", json_integer(EXEC_TIMEOUT));
    return json_dumps(body, JSON_COMPACT);
}

/* "NAME refused EPERM" */
static void inside_tell(struct drill_inside *inside, const char *name, const char *printed)
{
    const char *group = inside->group->name, *word = strchr(printed, ' ');
    size_t length;

    word = word ? word + 1 : "said nothing";
    length = strcspn(word, "\n");
    if (strncmp(word, "refused", 7) == 0)
        drill_tell(inside->drill, group, name, DRILL_HELD, "%.*s", (int) length, word);
    else if (strncmp(word, "succeeded", 9) == 0)
        drill_tell(inside->drill, group, name, DRILL_BROKEN, "it succeeded");
    else
        drill_tell(inside->drill, group, name, DRILL_UNTRIED, "%.*s", (int) length, word);
}

static int inside_try(struct drill_inside *inside, const char *name, struct error *err)
{
    const char *target = drill_target_of(name);
    AUTO(free) char *body = inside_body(inside, name);
    AUTO(json) json_t *done = NULL;
    char path[PATH_SIZE];

    if (*target && !inside->is_here) {
        drill_tell(inside->drill, inside->group->name, name, DRILL_UNTRIED,
                   "aims at the daemon's host, and this is another");
        return 0;
    }
    (void) snprintf(path, sizeof(path), CLIENT_PREFIX "/sandboxes/%s/exec", inside->box);
    done = drill_want(inside->drill, inside->user.key, "POST", path, body, err);
    if (!done)
        return error_wrap(err, "%s", name);
    inside_tell(inside, name,
                json_string_value(json_object_get(done, "stdout"))
                    ? json_string_value(json_object_get(done, "stdout"))
                    : "");
    return 0;
}

static int inside_try_all(struct drill_inside *inside, char *names, struct error *err)
{
    char *rest = NULL;
    int r = 0;

    for (char *name = strtok_r(names, "\n", &rest); name && r == 0;
         name = strtok_r(NULL, "\n", &rest)) {
        if (strcmp(name, elsewhere[0]) != 0 && strcmp(name, elsewhere[1]) != 0 &&
            drill_wants(inside->drill, name))
            r = inside_try(inside, name, err);
    }
    return r;
}

static bool escape_is_wanted(const struct drill *drill, const char *names)
{
    AUTO(free) char *copy = mem_copy_text(names);
    char *rest = NULL;

    for (char *name = strtok_r(copy, "\n", &rest); name; name = strtok_r(NULL, "\n", &rest)) {
        if (drill_wants(drill, name))
            return true;
    }
    return false;
}

static bool escape_knows(const char *name)
{
    AUTO(text) struct text names = TEXT_INIT(LIST_MAX);
    char *at;

    if (inside_names(&names, NULL) < 0)
        return false;
    text_append_char(&names, '\n');
    at = strstr(text_string(&names), name);
    while (at && !((at == text_string(&names) || at[-1] == '\n') && at[strlen(name)] == '\n'))
        at = strstr(at + 1, name);
    return at != NULL;
}

static int escape_make(struct drill *drill, const struct drill_group *group, struct error *err)
{
    struct drill_inside inside = {.drill = drill, .group = group};
    AUTO(text) struct text names = TEXT_INIT(LIST_MAX);
    AUTO(free) char *lines = NULL;
    int r;

    if (inside_names(&names, err) < 0)
        return -1;
    if (!escape_is_wanted(drill, text_string(&names)))
        return 0;
    lines = text_take(&names);
    inside.is_here = drill_is_here(drill);
    if (drill_target_make(&inside.target, drill->mark, err) < 0)
        return -1;
    r = drill_user_make(drill, "escape", &inside.user, err);
    if (r == 0)
        r = drill_box_make(drill, &inside.user, "box", inside.box, err);
    if (r == 0)
        r = inside_send(&inside, err);
    if (r == 0)
        r = inside_try_all(&inside, lines, err);
    drill_target_remove(&inside.target);
    return r;
}

const struct drill_group drill_escape = {
    .name = "escape",
    .summary = "attempts to get out of a sandbox, made inside one",
    .list = escape_list,
    .knows = escape_knows,
    .make = escape_make,
};
