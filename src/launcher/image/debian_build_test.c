#include <poll.h>
#include <signal.h>
#include <string.h>

#include "base/text.h"
#include "launcher/image/debian_build.h"
#include "sys/file/sys_file.h"
#include "sys/sys_test.h"

#define SCRIPT   "/tmp/script"
#define WAIT_MS  20000
#define READ_MAX 4096

/* Instead of mmdebstrap, in a mount namespace of the test: a script, and a pipe for its archive,
 * which ends when no process of the build is left. */
struct stage {
    struct id_range_table *ids;
    int archive[2];
    struct text shown;
    struct error err;
    int result;
};

static void show(void *context, const char *bytes, size_t length)
{
    text_append_bytes(context, bytes, length);
}

static void set_stage(struct stage *stage, const char *script)
{
    const struct id_range_options options = {.folder = "/tmp/run"};

    enter_private_mounts();
    CHECK_EQUAL(chmod("/tmp", 0755), 0);
    /* What a launcher that is killed leaves there. */
    CHECK_EQUAL(syscall(SYS_mount, "tmpfs", "/var/tmp", "tmpfs", 0, "size=1M"), 0);
    *stage = (struct stage){.shown = TEXT_INIT(READ_MAX), .err = ERROR_INIT};
    CHECK_EQUAL(sys_file_replace(AT_FDCWD, SCRIPT, script, strlen(script), 0755), 0);
    CHECK_EQUAL(pipe2(stage->archive, O_CLOEXEC), 0);
    if (id_range_table_open(&options, &stage->ids, &stage->err) < 0)
        _exit(CHILD_UNABLE);
}

static void build(struct stage *stage, const char *source)
{
    const struct debian_build build = {
        .suite = "suite",
        .packages = "",
        .source = source,
        .archive = stage->archive[1],
        .program = SCRIPT,
        .show = show,
        .context = &stage->shown,
    };

    stage->result = debian_build(stage->ids, &build, &stage->err);
}

/* All that was written to the archive, and then its end: nobody holds it any more. */
static const char *read_archive(struct stage *stage)
{
    static char bytes[READ_MAX];
    size_t length = 0;

    stage->archive[1] = fd_close(stage->archive[1]);
    for (;;) {
        ssize_t got;

        CHECK(sys_file_poll(stage->archive[0], POLLIN, WAIT_MS) > 0);
        got = read(stage->archive[0], bytes + length, sizeof(bytes) - 1 - length);
        CHECK(got >= 0);
        length += (size_t) got;
        bytes[length] = '\0';
        if (got == 0)
            return bytes;
    }
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
                      "sleep 1000 &\n"
                      "exit 0\n");
    build(&stage, "");
    check_text(text_string(&stage.shown), "a?]0;title?b\n");
    CHECK_EQUAL(stage.result, 0);
    check_text(read_archive(&stage), "/dev/null\nsession 1 terminal 0\n");
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
    check_text(read_archive(&stage), "Types: deb\nsources\n");
}

static void sources_are_read_wherever_they_lie(void **state)
{
    (void) state;
    run_in_child(build_with_a_file, NEEDS_MOUNTS);
}

/* --- how it ends ---------------------------------------------------------------------------- */

static void wait_for_beginning(const struct stage *stage)
{
    char byte;

    CHECK(sys_file_poll(stage->archive[0], POLLIN, WAIT_MS) > 0);
    CHECK_EQUAL(read(stage->archive[0], &byte, 1), 1);
}

/* The launcher gets a signal while it builds. Returns how it ended. */
static int end_by(struct stage *stage, int number)
{
    int status = 0;
    pid_t launcher;

    set_stage(stage, "#!/bin/sh\ntrap '' INT TERM HUP\nsleep 1000 &\necho\nwait\n");
    launcher = fork();
    if (launcher == 0) {
        build(stage, "");
        _exit(stage->result < 0 && strstr(stage->err.message, "interrupted") ? 5 : 6);
    }
    wait_for_beginning(stage);
    CHECK_EQUAL(kill(launcher, number), 0);
    CHECK_EQUAL(waitpid(launcher, &status, 0), launcher);
    check_text(read_archive(stage), "");
    return status;
}

static void interrupt(void)
{
    struct stage stage;
    int status = end_by(&stage, SIGINT);

    CHECK(WIFEXITED(status));
    CHECK_EQUAL(WEXITSTATUS(status), 5);
}

static void terminate(void)
{
    struct stage stage;
    int status = end_by(&stage, SIGTERM);

    CHECK(WIFEXITED(status));
    CHECK_EQUAL(WEXITSTATUS(status), 5);
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
