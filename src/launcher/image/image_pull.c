#include "launcher/image/image_pull.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/text.h"
#include "launcher/child/child_words.h"
#include "launcher/image/image_internal.h"
#include "launcher/image/image_stage.h"
#include "sys/file/sys_memfd.h"
#include "sys/process/sys_process.h"
#include "sys/process/sys_spawn.h"

#define PROGRAM      "burrow-puller"
#define FOLDER_FD    3
#define HERE_FD      4
#define WAIT_MS      10000
#define FOLDER_MODE  0755 /* the keeper has yet other ids */
#define CERTIFICATES "SSL_CERT_FILE="

AUTO_DEFINE_PTR(closedir, DIR, (void) closedir);

/* --- what it says ---------------------------------------------------------------------------- */

/* Its last words; it is gone. */
static void read_failure(int from, char ret_text[static ERROR_MESSAGE_MAX])
{
    ssize_t got = sys_file_read_full(from, ret_text, ERROR_MESSAGE_MAX - 1);

    ret_text[got < 0 ? 0 : got] = '\0';
    for (char *at = ret_text; *at; at++)
        *at = (char) (*at >= ' ' && *at <= '~' ? *at : '?');
}

/* --- what it gets ---------------------------------------------------------------------------- */

/* A file with the names of the layers that are here. */
static int list_layers(int layers, struct error *err)
{
    AUTO(text)
    struct text list = TEXT_INIT(IMAGE_PULL_HERE_MAX * (WIRE_IMAGE_DIGEST_LENGTH + 1));
    int again = sys_file_open(layers, ".", O_RDONLY | O_DIRECTORY, 0);
    AUTO(closedir) DIR *entries = again < 0 ? NULL : fdopendir(again);
    struct dirent *entry;
    int r;

    if (!entries) {
        (void) fd_close(again);
        return error_set(err, ERR_INTERNAL, errno, "list the layers of images");
    }
    while ((entry = readdir(entries))) {
        /* More than there is room for come once more. */
        if (wire_image_is_digest(entry->d_name) &&
            list.length + WIRE_IMAGE_DIGEST_LENGTH + 1 <= list.maximum)
            text_format(&list, "%s\n", entry->d_name);
    }
    r = sys_memfd_from_bytes("layers", SYS_MEMFD_DATA, text_string(&list), list.length);
    return r < 0 ? error_set(err, ERR_INTERNAL, r, "write down the layers of images") : r;
}

/* What the process has that it is started with. */
struct start {
    int here;        /* owned */
    int credentials; /* owned */
    int shown[2];    /* owned, a pipe each: read by us, written by it */
    int failure[2];
};

static void start_done(struct start *start)
{
    start->here = fd_close(start->here);
    start->credentials = fd_close(start->credentials);
    for (size_t i = 0; i < 2; i++) {
        start->shown[i] = fd_close(start->shown[i]);
        start->failure[i] = fd_close(start->failure[i]);
    }
}

AUTO_DEFINE(start, struct start, start_done);

#define START_INIT                                                                                 \
    {                                                                                              \
        .here = -EBADF, .credentials = -EBADF, .shown = {-EBADF, -EBADF}, .failure = {             \
            -EBADF,                                                                                \
            -EBADF                                                                                 \
        }                                                                                          \
    }

static int start_open(struct start *start, const struct image_pull *pull,
                      const struct image_stage *stage, struct error *err)
{
    const char *credentials = pull->credentials ? pull->credentials : "";

    start->here = list_layers(stage->layers, err);
    if (start->here < 0)
        return -1;
    start->credentials =
        sys_memfd_from_bytes("credentials", SYS_MEMFD_DATA, credentials, strlen(credentials));
    if (start->credentials < 0 || pipe2(start->shown, O_CLOEXEC) < 0 ||
        pipe2(start->failure, O_CLOEXEC) < 0)
        return error_set(err, ERR_INTERNAL, start->credentials < 0 ? start->credentials : errno,
                         "prepare the pull");
    return 0;
}

/* --- the process ----------------------------------------------------------------------------- */

static int spawn(const struct image_pull *pull, const struct image_stage *stage,
                 const struct start *start, const struct sys_spawn_user *user, struct error *err)
{
    const struct sys_spawn_descriptor descriptors[] = {
        {start->credentials, STDIN_FILENO},
        {start->failure[1], STDOUT_FILENO},
        {start->shown[1], STDERR_FILENO},
        {stage->folder, FOLDER_FD},
        {start->here, HERE_FD},
    };
    AUTO(text) struct text certificates = TEXT_INIT(sizeof(CERTIFICATES) + PATH_MAX);
    char path[32], columns[16];
    const char *arguments[10] = {PROGRAM, "--columns", columns};
    const char *environment[2] = {NULL};
    size_t count = 3;
    struct sys_spawn how = {
        .path = path,
        .arguments = arguments,
        .environment = environment,
        .directory = "/",
        .descriptors = descriptors,
        .descriptor_count = ARRAY_COUNT(descriptors),
        .new_session = true,
        .parent_signal = SIGKILL,
        .own_processes = true,
        .user = user,
    };
    int pidfd;

    (void) snprintf(path, sizeof(path), "/proc/self/fd/%d", pull->program);
    (void) snprintf(columns, sizeof(columns), "%u", pull->columns);
    if (pull->plain_http)
        arguments[count++] = "--plain-http";
    if (pull->allow) {
        arguments[count++] = "--allow";
        arguments[count++] = pull->allow;
    }
    arguments[count++] = "--";
    arguments[count] = pull->reference;
    if (pull->ca_file) {
        text_format(&certificates, CERTIFICATES "%s", pull->ca_file);
        environment[0] = text_string(&certificates);
    }
    pidfd = sys_spawn(&how, NULL);
    return pidfd < 0 ? error_set(err, error_code_from_errno(pidfd), pidfd, "start " PROGRAM)
                     : pidfd;
}

static int wait_for(int pidfd, const struct start *start, struct error *err)
{
    struct sys_exit ended = {.kind = SYS_EXIT_UNKNOWN};
    char failure[ERROR_MESSAGE_MAX];

    (void) sys_process_wait_or_kill(pidfd, WAIT_MS, &ended);
    if (ended.kind == SYS_EXIT_STATUS && ended.value == 0)
        return 0;
    read_failure(start->failure[0], failure);
    if (failure[0])
        return error_set(err, ERR_UPSTREAM, 0, "%s", failure);
    return error_set(err, ERR_UPSTREAM, 0, "the pull ended without a word (%s %d)",
                     ended.kind == SYS_EXIT_SIGNAL ? "signal" : "status", ended.value);
}

static int run_puller(const struct image_pull *pull, const struct image_stage *stage,
                      const struct id_range *range, struct error *err)
{
    const struct sys_spawn_user user = {range->first, range->first};
    struct child_words words = {.matched = 0};
    AUTO(start) struct start start = START_INIT;
    AUTO(close) int pidfd = -EBADF;

    if (fchown(stage->folder, user.user, user.group) < 0 || fchmod(stage->folder, FOLDER_MODE) < 0)
        return error_set(err, ERR_INTERNAL, errno, "give a folder to " PROGRAM);
    if (start_open(&start, pull, stage, err) < 0)
        return -1;
    pidfd = spawn(pull, stage, &start, &user, err);
    if (pidfd < 0)
        return -1;
    /* Or they would never end. */
    start.shown[1] = fd_close(start.shown[1]);
    start.failure[1] = fd_close(start.failure[1]);
    (void) child_words_pass_on(&words, start.shown[0], -1, pull->show, pull->context);
    return wait_for(pidfd, &start, err);
}

static int fetch_and_import(struct image_registry *registry, const struct keeper_host *keepers,
                            const struct image_pull *pull, const struct id_range *range,
                            struct error *err)
{
    AUTO(image_stage) struct image_stage stage = IMAGE_STAGE_INIT;
    struct image_import import = {
        .name = pull->name, .progress = pull->progress, .context = pull->context};

    if (image_stage_open(registry, &stage, err) < 0 || run_puller(pull, &stage, range, err) < 0)
        return -1;
    import.source = stage.folder;
    return image_import(registry, keepers, &import, err);
}

int image_pull(struct image_registry *registry, const struct keeper_host *keepers,
               const struct image_pull *pull, struct error *err)
{
    const struct id owner = id_new();
    struct id_range range;
    int result;

    if (image_check_name(registry, pull->name, err) < 0)
        return -1;
    if (id_range_take(keepers->ids, &owner, &range, err) < 0)
        return -1;
    /* Held to the end: nothing is pruned meanwhile. */
    result = fetch_and_import(registry, keepers, pull, &range, err);
    (void) id_range_release(keepers->ids, &owner, NULL); /* or recovery does */
    return result;
}

int image_pull_name(const char *reference, char ret_name[static IMAGE_NAME_MAX + 1],
                    struct error *err)
{
    size_t length = strcspn(reference, "@");
    const char *last = reference;

    for (size_t i = 0; i < length; i++) {
        if (reference[i] == '/')
            last = reference + i + 1;
    }
    length = strcspn(last, ":@");
    if (length > IMAGE_NAME_MAX)
        return error_set(err, ERR_INVALID, 0, "'%.80s' makes no name for an image: give one",
                         reference);
    memcpy(ret_name, last, length);
    ret_name[length] = '\0';
    if (!image_name_is_valid(ret_name) || strcmp(ret_name, IMAGE_HOST) == 0)
        return error_set(err, ERR_INVALID, 0, "'%.80s' makes no name for an image: give one",
                         reference);
    return 0;
}
