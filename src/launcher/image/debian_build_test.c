#include <dirent.h>
#include <glob.h>
#include <poll.h>
#include <signal.h>
#include <string.h>

#include "base/text.h"
#include "launcher/image/debian_build.h"
#include "sys/file/sys_file.h"
#include "sys/sys_test.h"

#define SCRIPT  "/tmp/script"
#define WAIT_MS 20000
/* Nobody else on this machine sleeps so long. */
#define SLEEP_LONG "86397.25"

AUTO_DEFINE_PTR(closedir, DIR, (void) closedir);

/* Instead of mmdebstrap, in a mount namespace of the test: a script. What it says goes to a pipe.
 */
struct stage {
    struct id_range_table *ids;
    struct debian_layout layout;
    struct text shown;
    int begun[2];
    struct error err;
    int result;
};

static void show(void *context, const char *bytes, size_t length)
{
    struct stage *stage = context;

    text_append_bytes(&stage->shown, bytes, length);
    CHECK_EQUAL(write(stage->begun[1], "b", 1), 1);
}

static void set_stage(struct stage *stage, const char *script)
{
    const struct id_range_options options = {.folder = "/tmp/run"};

    enter_private_mounts();
    CHECK_EQUAL(chmod("/tmp", 0755), 0);
    /* What a launcher that is killed leaves there. */
    CHECK_EQUAL(syscall(SYS_mount, "tmpfs", "/var/tmp", "tmpfs", 0, "size=1M"), 0);
    CHECK_EQUAL(chmod("/var/tmp", 01777), 0);
    *stage =
        (struct stage){.shown = TEXT_INIT(4096), .layout = DEBIAN_LAYOUT_INIT, .err = ERROR_INIT};
    CHECK_EQUAL(pipe2(stage->begun, O_CLOEXEC), 0);
    CHECK_EQUAL(sys_file_replace(AT_FDCWD, SCRIPT, script, strlen(script), 0755), 0);
    if (id_range_table_open(&options, &stage->ids, &stage->err) < 0)
        _exit(CHILD_UNABLE);
}

static void build(struct stage *stage, const char *source)
{
    const struct debian_build build = {
        .suite = "suite",
        .packages = "",
        .source = source,
        .program = SCRIPT,
        .show = show,
        .context = stage,
    };

    stage->result = debian_build(stage->ids, &build, &stage->layout, &stage->err);
}

static unsigned int count_entries(const char *path)
{
    AUTO(closedir) DIR *folder = opendir(path);
    unsigned int count = 0;

    CHECK(folder != NULL);
    while (readdir(folder))
        count++;
    return count - 2;
}

/* Whether any of those that the script started still lives. */
static bool is_left(void)
{
    glob_t found;
    bool is_found = false;

    CHECK_EQUAL(glob("/proc/[0-9]*/cmdline", GLOB_NOSORT, NULL, &found), 0);
    for (size_t i = 0; i < found.gl_pathc; i++) {
        AUTO(close) int file = open(found.gl_pathv[i], O_RDONLY | O_CLOEXEC);
        char words[64] = "";

        is_found |= file >= 0 && read(file, words, sizeof(words) - 1) > 6 &&
                    memmem(words, sizeof(words), SLEEP_LONG, sizeof(SLEEP_LONG)) != NULL;
    }
    globfree(&found);
    return is_found;
}

static void check_none_left(void)
{
    for (int waited = 0; is_left(); waited += 10) {
        CHECK(waited < WAIT_MS);
        (void) usleep(10000);
    }
}

/* The one that is no document: what the script wrote to its standard output. */
static const char *read_layer(const struct stage *stage)
{
    static char bytes[4096];
    glob_t found;
    char pattern[128];

    (void) snprintf(pattern, sizeof(pattern), "%s/layout/blobs/sha256/*", stage->layout.path);
    CHECK_EQUAL(glob(pattern, 0, NULL, &found), 0);
    CHECK_EQUAL(found.gl_pathc, 3);
    for (size_t i = 0; i < found.gl_pathc; i++) {
        AUTO(close) int file = open(found.gl_pathv[i], O_RDONLY | O_CLOEXEC);
        ssize_t length = sys_file_read_full(file, bytes, sizeof(bytes) - 1);

        CHECK(length >= 0);
        bytes[length] = '\0';
        if (bytes[0] != '{')
            break;
    }
    globfree(&found);
    return bytes;
}

static void check_text(const char *found, const char *wanted)
{
    if (strcmp(found, wanted) != 0)
        (void) fprintf(stderr, "found: %s\n", found);
    CHECK(strcmp(found, wanted) == 0);
}

/* --- what it is given ----------------------------------------------------------------------- */

static void build_without_a_terminal(void)
{
    struct stage stage;

    set_stage(&stage, "#!/bin/sh\n"
                      "readlink /proc/self/fd/0\n"
                      "set -- $(cat /proc/self/stat)\n"
                      "echo session $6 terminal $7\n"
                      "(exec 3</dev/tty) 2>/dev/null && echo has a terminal\n"
                      "printf 'a\\033]0;title\\007b\\n' >&2\n"
                      "sleep " SLEEP_LONG " &\n"
                      "exit 0\n");
    build(&stage, "");
    check_text(text_string(&stage.shown), "a?]0;title?b\n");
    CHECK_EQUAL(stage.result, 0);
    check_text(read_layer(&stage), "/dev/null\nsession 1 terminal 0\n");
    check_none_left();
    debian_layout_done(&stage.layout);
    CHECK_EQUAL(count_entries("/var/tmp"), 0);
}

static void packages_have_no_terminal_and_leave_no_process(void **state)
{
    (void) state;
    run_in_child(build_without_a_terminal, NEEDS_MOUNTS);
}

static void build_with_a_file(void)
{
    struct stage stage;

    set_stage(&stage, "#!/bin/sh\nfor last; do :; done\ncat \"$last\"\necho \"${last##*.}\"\n");
    CHECK_EQUAL(mkdir("/tmp/closed", 0700), 0);
    CHECK_EQUAL(chdir("/tmp/closed"), 0);
    CHECK_EQUAL(sys_file_replace(AT_FDCWD, "mine.sources", "Types: deb\n", 11, 0600), 0);
    build(&stage, "mine.sources");
    CHECK_EQUAL(stage.result, 0);
    check_text(read_layer(&stage), "Types: deb\nsources\n");
}

static void sources_are_read_wherever_they_lie(void **state)
{
    (void) state;
    run_in_child(build_with_a_file, NEEDS_MOUNTS);
}

/* --- how it ends ---------------------------------------------------------------------------- */

/* The launcher gets a signal while it builds. Returns how it ended. */
static int end_by(struct stage *stage, int number)
{
    int status = 0;
    pid_t launcher;
    char byte;

    set_stage(stage,
              "#!/bin/sh\ntrap '' INT TERM HUP\nsleep " SLEEP_LONG " &\necho begun >&2\nwait\n");
    launcher = fork();
    if (launcher == 0) {
        build(stage, "");
        _exit(stage->result < 0 && strstr(stage->err.message, "interrupted") ? 5 : 6);
    }
    CHECK(sys_file_poll(stage->begun[0], POLLIN, WAIT_MS) > 0);
    CHECK_EQUAL(read(stage->begun[0], &byte, 1), 1);
    while (!is_left()) /* it may not have executed it yet */
        (void) usleep(10000);
    CHECK_EQUAL(kill(launcher, number), 0);
    CHECK_EQUAL(waitpid(launcher, &status, 0), launcher);
    check_none_left();
    return status;
}

static void interrupt(void)
{
    struct stage stage;
    int status = end_by(&stage, SIGINT);

    CHECK(WIFEXITED(status));
    CHECK_EQUAL(WEXITSTATUS(status), 5);
    CHECK_EQUAL(count_entries("/var/tmp"), 0);
}

static void terminate(void)
{
    struct stage stage;
    int status = end_by(&stage, SIGTERM);

    CHECK(WIFEXITED(status));
    CHECK_EQUAL(WEXITSTATUS(status), 5);
    CHECK_EQUAL(count_entries("/var/tmp"), 0);
}

static void kill_launcher(void)
{
    struct stage stage;

    CHECK(WIFSIGNALED(end_by(&stage, SIGKILL)));
}

static void a_signal_ends_all_of_it(void **state)
{
    (void) state;
    run_in_child(interrupt, NEEDS_MOUNTS);
    run_in_child(terminate, NEEDS_MOUNTS);
}

static void nothing_outlives_the_launcher(void **state)
{
    (void) state;
    run_in_child(kill_launcher, NEEDS_MOUNTS);
}

static void build_that_fails(void)
{
    struct stage stage;

    set_stage(&stage, "#!/bin/sh\necho why >&2\nexit 3\n");
    build(&stage, "");
    CHECK_EQUAL(stage.result, -1);
    CHECK_EQUAL(stage.err.code, ERR_INVALID);
    check_text(text_string(&stage.shown), "why\n");
    CHECK_EQUAL(count_entries("/var/tmp"), 0);
}

static void a_failure_is_told(void **state)
{
    (void) state;
    run_in_child(build_that_fails, NEEDS_MOUNTS);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(packages_have_no_terminal_and_leave_no_process),
        cmocka_unit_test(sources_are_read_wherever_they_lie),
        cmocka_unit_test(a_signal_ends_all_of_it),
        cmocka_unit_test(nothing_outlives_the_launcher),
        cmocka_unit_test(a_failure_is_told),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
