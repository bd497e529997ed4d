#include "launcher/image/debian_build.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "launcher/child/child_words.h"
#include "launcher/image/debian_recipe.h"
#include "sys/file/sys_file.h"
#include "sys/file/sys_tree.h"
#include "sys/process/sys_process.h"
#include "sys/process/sys_signal.h"
#include "sys/process/sys_spawn.h"

#define PROGRAM      "/usr/bin/mmdebstrap"
#define PLACE        "/var/tmp"
#define NAME         PLACE "/burrow-debian-XXXXXX"
#define TEXT_SIZE    4096
#define WORDS_MAX    12
#define FROM_STDIN   "-"
#define WAIT_FOREVER (-1)

static int build_fail(struct error *err, int system, const char *what)
{
    return error_set(err, error_code_from_errno(system), system, "%s", what);
}

void debian_layout_done(struct debian_layout *layout)
{
    AUTO(close) int place = sys_file_open(AT_FDCWD, PLACE, O_RDONLY | O_DIRECTORY, 0);

    layout->folder = fd_close(layout->folder);
    if (layout->path[0] && place >= 0)
        (void) sys_tree_delete(place, layout->path + strlen(PLACE "/")); /* /var/tmp is cleaned */
}

/* A folder that belongs to who builds. */
static int make_layout_folder(struct debian_layout *layout, const struct id_range *range,
                              struct error *err)
{
    (void) snprintf(layout->path, sizeof(layout->path), "%s", NAME);
    if (!mkdtemp(layout->path)) {
        layout->path[0] = '\0';
        return build_fail(err, errno, "make a folder in " PLACE);
    }
    if (chown(layout->path, range->first, range->first) < 0 || chmod(layout->path, 0755) < 0)
        return build_fail(err, errno, "give a folder away");
    return 0;
}

/* A file of sources may be where the recipe cannot see it: then it comes as its standard input. */
static int open_source(const struct debian_build *build, int *ret_file, struct error *err)
{
    struct stat status;

    if (stat(build->source, &status) < 0 || !S_ISREG(status.st_mode))
        return 0;
    *ret_file = sys_file_open(AT_FDCWD, build->source, O_RDONLY, 0);
    return *ret_file < 0 ? error_set(err, error_code_from_errno(*ret_file), *ret_file, "read '%s'",
                                     build->source)
                         : 0;
}

static int start_recipe(const struct debian_build *build, const struct debian_layout *layout,
                        const struct id_range *range, int says, struct error *err)
{
    AUTO(close) int source = -EBADF;
    const struct sys_id_range ids = {.outside = range->first, .count = range->count};
    const char *proxy = getenv("http_proxy");
    char proxy_text[TEXT_SIZE];
    const char *environment[] = {"PATH=/usr/sbin:/usr/bin:/sbin:/bin", "HOME=/", "LC_ALL=C.UTF-8",
                                 proxy ? proxy_text : NULL, NULL};
    const char *words[WORDS_MAX] = {"sh",          "-c",
                                    debian_recipe, "debian",
                                    layout->path,  build->program ? build->program : PROGRAM,
                                    build->suite,  build->packages,
                                    build->source};
    struct sys_spawn_descriptor stdio[] = {{says, STDERR_FILENO}, {-EBADF, STDIN_FILENO}};
    struct sys_spawn how = {
        .path = "/bin/sh",
        .arguments = words,
        .environment = environment,
        .directory = "/",
        .descriptors = stdio,
        .descriptor_count = 1,
        .new_session = true,
        .parent_signal = SIGKILL,
        .own_processes = true,
        .root_of = &ids,
    };
    int pidfd;

    if (open_source(build, &source, err) < 0)
        return -1;
    if (source >= 0) {
        stdio[how.descriptor_count++].from = source;
        words[8] = FROM_STDIN;
    }
    (void) snprintf(proxy_text, sizeof(proxy_text), "http_proxy=%s", proxy ? proxy : "");
    pidfd = sys_spawn(&how, NULL);
    return pidfd < 0 ? build_fail(err, pidfd, "start a child that builds") : pidfd;
}

/* The signals that end a build; blocked meanwhile, since we clean up behind it. */
struct interruption {
    int signals; /* owned */
    sigset_t before;
};

static void interruption_done(struct interruption *interruption)
{
    if (interruption->signals < 0)
        return;
    interruption->signals = fd_close(interruption->signals);
    (void) sys_signal_restore(&interruption->before);
}

AUTO_DEFINE(interruption, struct interruption, interruption_done);

static int interruption_open(struct interruption *interruption, struct error *err)
{
    static const int signals[] = {SIGINT, SIGTERM, SIGHUP};

    (void) sigprocmask(SIG_BLOCK, NULL, &interruption->before); /* only asks */
    interruption->signals = sys_signal_open(signals, ARRAY_COUNT(signals));
    return interruption->signals < 0 ? build_fail(err, interruption->signals, "wait for signals")
                                     : 0;
}

/* Until nobody is left to say anything, which a signal to us sees to. */
static int see_to_its_end(const struct debian_build *build, int pidfd, int says, int signals,
                          struct error *err)
{
    struct child_words words = {.matched = 0};
    struct sys_exit ended = {0};
    struct sys_signal signal;
    bool is_over = child_words_pass_on(&words, says, signals, build->show, build->context);

    if (!is_over) {
        (void) sys_signal_read(signals, &signal); /* or it would end us when we let it through */
        (void) sys_process_kill(pidfd, SIGKILL);  /* PID 1 of its namespace: all of them */
    }
    (void) sys_process_wait(pidfd, WAIT_FOREVER, &ended); /* unknown is not success */
    if (!is_over)
        return error_set(err, ERR_INVALID, 0, "interrupted");
    if (ended.kind != SYS_EXIT_STATUS || ended.value != 0)
        return error_set(err, ERR_INVALID, 0, "mmdebstrap failed, for the reasons above");
    return 0;
}

static int build_in(const struct debian_build *build, struct debian_layout *layout,
                    const struct id_range *range, struct error *err)
{
    AUTO(close) int read_end = -EBADF, write_end = -EBADF, pidfd = -EBADF;
    AUTO(close) int around = -EBADF;
    AUTO(interruption) struct interruption interruption = {.signals = -EBADF};
    int ends[2];

    if (interruption_open(&interruption, err) < 0 || make_layout_folder(layout, range, err) < 0)
        return -1;
    if (pipe2(ends, O_CLOEXEC) < 0)
        return build_fail(err, errno, "make a pipe");
    read_end = ends[0];
    write_end = ends[1];
    pidfd = start_recipe(build, layout, range, write_end, err);
    if (pidfd < 0)
        return -1;
    (void) fd_close(TAKE_FD(write_end)); /* or it would never end */
    if (see_to_its_end(build, pidfd, read_end, interruption.signals, err) < 0)
        return -1;
    /* The folder is a stranger's: no link of his is followed. */
    around = sys_file_open(AT_FDCWD, layout->path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0);
    layout->folder = around < 0
                         ? around
                         : sys_file_open(around, "layout", O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0);
    return layout->folder < 0 ? build_fail(err, layout->folder, "open what was built") : 0;
}

int debian_build(struct id_range_table *ids, const struct debian_build *build,
                 struct debian_layout *ret_layout, struct error *err)
{
    AUTO(debian_layout) struct debian_layout layout = DEBIAN_LAYOUT_INIT;
    struct id id = id_new();
    struct id_range range;
    int r;

    if (!build->program && access(PROGRAM, X_OK) < 0)
        return error_set(err, ERR_NOT_FOUND, 0, "there is no mmdebstrap: apt install mmdebstrap");
    if (id_range_take(ids, &id, &range, err) < 0)
        return -1;
    r = build_in(build, &layout, &range, err);
    (void) id_range_release(ids, &id, NULL); /* the next launcher finds it otherwise */
    if (r < 0)
        return -1;
    *ret_layout = layout;
    layout = (struct debian_layout) DEBIAN_LAYOUT_INIT;
    return 0;
}
