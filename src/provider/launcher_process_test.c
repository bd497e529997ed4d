/* Programs that stand in for burrow-launcher: shell scripts of the test's. */
#include <signal.h>
#include <string.h>
#include <sys/socket.h>

#include "provider/launcher_process.h"
#include "sys/file/sys_file.h"
#include "sys/process/sys_process.h"
#include "sys/sys_test.h"

struct place {
    char folder[64];
    char program[96];
    char output[96];
};

static int setup(void **state)
{
    struct place *place = test_calloc(1, sizeof(*place));

    (void) snprintf(place->folder, sizeof(place->folder), "/tmp/burrow-process-test-XXXXXX");
    assert_non_null(mkdtemp(place->folder));
    (void) snprintf(place->program, sizeof(place->program), "%s/launcher", place->folder);
    (void) snprintf(place->output, sizeof(place->output), "%s/output", place->folder);
    *state = place;
    return 0;
}

static int teardown(void **state)
{
    struct place *place = *state;

    (void) unlink(place->program);
    (void) unlink(place->output);
    assert_int_equal(rmdir(place->folder), 0);
    test_free(place);
    return 0;
}

/* A script as the launcher; $OUT is the place's output file. */
static struct launcher_process start_script(const struct place *place, const char *lines,
                                            struct launcher_process_options options)
{
    struct launcher_process process = LAUNCHER_PROCESS_INIT;
    struct error err = ERROR_INIT;
    char script[1024];
    int length = snprintf(script, sizeof(script), "#!/bin/sh\nOUT=%s\n%s\n", place->output, lines);

    assert_int_equal(sys_file_replace(AT_FDCWD, place->program, script, (size_t) length, 0755), 0);
    options.program = place->program;
    if (launcher_process_start(&options, &process, &err) < 0)
        fail_msg("%s", err.message);
    return process;
}

static void the_options_become_arguments(void **state)
{
    struct launcher_process_bind binds[] = {{"one", "/usr"}, {"two", "/a b"}};
    struct launcher_process_options options = {.data = "/d",
                                               .run = "/r",
                                               .cgroup = "c",
                                               .user = "u",
                                               .network = "n",
                                               .pool_size = "2G",
                                               .log_level = "debug",
                                               .binds = binds,
                                               .bind_count = ARRAY_COUNT(binds)};
    struct launcher_process process =
        start_script(*state, "for a; do echo \"[$a]\"; done >$OUT", options);
    AUTO(free) char *output = NULL;
    struct error err = ERROR_INIT;
    size_t length;
    char agents[64];

    (void) snprintf(agents, sizeof(agents), "/r/once-%d/agents", (int) process.pid);
    assert_string_equal(process.agents, agents);
    assert_int_equal(launcher_process_end(&process, 10000, &err), 0);
    assert_int_equal(
        sys_file_read_all(AT_FDCWD, ((struct place *) *state)->output, 4096, &output, &length), 0);
    assert_string_equal(output,
                        "[once]\n[--socket-fd]\n[3]\n[--data]\n[/d]\n[--run]\n[/r]\n"
                        "[--cgroup]\n[c]\n[--user]\n[u]\n[--network-name]\n[n]\n"
                        "[--pool-size]\n[2G]\n[--log-level]\n[debug]\n[--bind]\n[one=/usr]\n"
                        "[--bind]\n[two=/a b]\n");
}

static void the_conversation_is_descriptor_3(void **state)
{
    struct launcher_process process = start_script(
        *state, "echo hello >&3; answer=$(head -c 4 <&3); [ \"$answer\" = yes ] || exit 9",
        (struct launcher_process_options){.run = NULL});
    struct error err = ERROR_INIT;
    char bytes[16] = "";

    assert_int_equal(recv(process.conversation, bytes, sizeof(bytes), 0), 6);
    assert_string_equal(bytes, "hello\n");
    assert_int_equal(send(process.conversation, "yes\n", 4, MSG_NOSIGNAL), 4);
    assert_int_equal(launcher_process_end(&process, 10000, &err), 0);
    assert_int_equal(launcher_process_end(&process, 10000, &err), 0);
}

static void our_end_is_its_signal_to_clean_up(void **state)
{
    struct launcher_process process = start_script(*state, "cat <&3; echo clean >$OUT",
                                                   (struct launcher_process_options){.run = NULL});
    AUTO(free) char *output = NULL;
    struct error err = ERROR_INIT;
    size_t length;

    assert_int_equal(launcher_process_end(&process, 10000, &err), 0);
    assert_int_equal(
        sys_file_read_all(AT_FDCWD, ((struct place *) *state)->output, 4096, &output, &length), 0);
    assert_string_equal(output, "clean\n");
}

static void it_has_a_session_of_its_own(void **state)
{
    struct launcher_process process =
        start_script(*state, "cat <&3", (struct launcher_process_options){.run = NULL});
    struct error err = ERROR_INIT;

    assert_int_equal(getsid(process.pid), process.pid);
    assert_int_equal(launcher_process_end(&process, 10000, &err), 0);
}

static void a_program_that_is_not_there_is_not_found(void **state)
{
    struct launcher_process_options options = {.program = "/does/not/exist"};
    struct launcher_process process;
    struct error err = ERROR_INIT;

    (void) state;
    assert_int_equal(launcher_process_start(&options, &process, &err), -1);
    assert_int_equal(err.code, ERR_NOT_FOUND);
    assert_non_null(strstr(err.message, "/does/not/exist"));
}

static void an_early_end_is_explained(void **state)
{
    static const struct {
        const char *lines, *said;
    } ends[] = {{"exit 2", "status 2"}, {"kill -9 $$", "signal 9"}, {"exit 0", "too early"}};

    for (size_t i = 0; i < ARRAY_COUNT(ends); i++) {
        struct launcher_process process =
            start_script(*state, ends[i].lines, (struct launcher_process_options){.run = NULL});
        struct error err = ERROR_INIT;

        (void) error_set(&err, ERR_UNAVAILABLE, 0, "something else");
        launcher_process_explain(&process, 10000, &err);
        assert_int_equal(err.code, ERR_UPSTREAM);
        assert_non_null(strstr(err.message, ends[i].said));
        assert_int_equal(launcher_process_end(&process, 10000, &err), 0);
    }
}

static void one_that_lives_explains_nothing(void **state)
{
    struct launcher_process process =
        start_script(*state, "cat <&3", (struct launcher_process_options){.run = NULL});
    struct error err = ERROR_INIT;

    (void) error_set(&err, ERR_UNAVAILABLE, 0, "something else");
    launcher_process_explain(&process, 0, &err);
    assert_string_equal(err.message, "something else");
    assert_int_equal(launcher_process_end(&process, 10000, &err), 0);
}

static void one_that_does_not_end_is_said_so(void **state)
{
    struct launcher_process process =
        start_script(*state, "exec sleep 60", (struct launcher_process_options){.run = NULL});
    AUTO(close) int pidfd = fcntl(process.pidfd, F_DUPFD_CLOEXEC, 0);
    struct error err = ERROR_INIT;
    struct sys_exit ended;

    assert_int_equal(launcher_process_end(&process, 50, &err), -1);
    assert_int_equal(err.code, ERR_UPSTREAM_TIMEOUT);
    assert_int_equal(sys_process_kill(pidfd, SIGKILL), 0);
    assert_int_equal(sys_process_wait(pidfd, 10000, &ended), 0);
}

static void options_that_are_too_much_are_refused(void **state)
{
    struct launcher_process_bind binds[LAUNCHER_PROCESS_BINDS_MAX + 1] = {{"a", "/b"}};
    struct launcher_process_options options = {
        .program = "/bin/true", .binds = binds, .bind_count = ARRAY_COUNT(binds)};
    struct launcher_process process;
    struct error err = ERROR_INIT;
    char run[PATH_MAX];

    (void) state;
    assert_int_equal(launcher_process_start(&options, &process, &err), -1);
    assert_int_equal(err.code, ERR_INVALID);
    options.bind_count = 0;
    memset(run, 'r', sizeof(run) - 1);
    run[sizeof(run) - 1] = '\0';
    options.run = run;
    assert_int_equal(launcher_process_start(&options, &process, &err), -1);
    assert_int_equal(err.code, ERR_INVALID);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(the_options_become_arguments, setup, teardown),
        cmocka_unit_test_setup_teardown(the_conversation_is_descriptor_3, setup, teardown),
        cmocka_unit_test_setup_teardown(our_end_is_its_signal_to_clean_up, setup, teardown),
        cmocka_unit_test_setup_teardown(it_has_a_session_of_its_own, setup, teardown),
        cmocka_unit_test(a_program_that_is_not_there_is_not_found),
        cmocka_unit_test_setup_teardown(an_early_end_is_explained, setup, teardown),
        cmocka_unit_test_setup_teardown(one_that_lives_explains_nothing, setup, teardown),
        cmocka_unit_test_setup_teardown(one_that_does_not_end_is_said_so, setup, teardown),
        cmocka_unit_test(options_that_are_too_much_are_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
