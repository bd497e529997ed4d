#include <poll.h>
#include <signal.h>

#include "keeper/job.h"
#include "keeper/tree/tree_test_kit.h"

static void kinds_are_found_by_name(void **state)
{
    (void) state;
    assert_string_equal(job_find("delete")->name, "delete");
    assert_true(job_find("copy")->has_target);
    assert_false(job_find("list")->has_target);
    assert_int_equal(job_folders_min(job_find("copy")), 2);
    assert_int_equal(job_folders_max(job_find("list")), 1);
    assert_int_equal(job_folders_min(job_find("pack")), 1);
    assert_int_equal(job_folders_max(job_find("pack")), 2);
    assert_int_equal(job_folders_max(job_find("unarchive")), 0);
    assert_true(job_find("read")->has_data);
    assert_null(job_find("format"));
    assert_null(job_find(""));
}

static void deleting_empties_the_folder(void **state)
{
    AUTO(close) int top = -EBADF;
    AUTO(free) char *said = NULL;
    struct error err = ERROR_INIT;
    char path[SCRATCH_SIZE];

    (void) state;
    make_scratch(path);
    top = open_place(AT_FDCWD, path);
    grow_tree(top, 9, 500);
    said = SAID(job_run(job_find("delete"), &(struct job){.disk = top, .output = output}, &err));
    assert_int_equal(said_result, 0);
    assert_string_equal(said, "{\"deleted\":true}\n");
    assert_int_equal(rmdir(path), 0);
}

static void a_failure_is_the_last_line(void **state)
{
    AUTO(close) int file = open("/dev/null", O_RDONLY | O_CLOEXEC);
    AUTO(free) char *said = NULL;
    struct error err = ERROR_INIT;

    (void) state;
    said = SAID(job_run(job_find("measure"), &(struct job){.disk = file, .output = output}, &err));
    assert_int_equal(said_result, 1);
    assert_non_null(strstr(said, "{\"error\":{\"code\":\""));
    assert_non_null(strstr(said, "\"message\":\"read '.': Not a directory\",\"errno\":20}}\n"));
}

static void a_report_that_nobody_takes_is_no_success(void **state)
{
    AUTO(free) struct output *output = malloc(sizeof(*output));
    AUTO(close) int top = -EBADF, writer = -EBADF;
    struct error err = ERROR_INIT;
    char path[SCRATCH_SIZE];
    int ends[2];

    (void) state;
    make_scratch(path);
    top = open_place(AT_FDCWD, path);
    assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
    (void) close(ends[0]);
    writer = ends[1];
    output_init(output, writer);
    assert_int_equal(
        job_run(job_find("measure"), &(struct job){.disk = top, .output = output}, &err), 1);
    assert_int_equal(err.code, ERR_CANCELLED);
    remove_scratch(path);
}

/* A process that is busy and writes nothing ends soon after its reader went away. */
static void the_process_ends_with_its_reader(void **state)
{
    int ends[2], status = 0;
    pid_t pid;

    (void) state;
    assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
    pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        (void) dup2(ends[1], STDOUT_FILENO);
        (void) close(ends[0]);
        (void) close(ends[1]);
        if (output_end_with_reader() < 0)
            _exit(99);
        for (int i = 0; i < 100; i++)
            (void) poll(NULL, 0, 100);
        _exit(98);
    }
    (void) close(ends[1]);
    (void) poll(NULL, 0, 300);
    assert_int_equal(waitpid(pid, &status, WNOHANG), 0);
    (void) close(ends[0]);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 1);
}

/* Lines longer than what is gathered arrive whole. */
static void long_lines_arrive_whole(void **state)
{
    enum { LENGTH = OUTPUT_BUFFER_SIZE * 2 + 77 };
    AUTO(free) char *said = NULL, *text = malloc(LENGTH + 1);
    struct json_writer json;

    (void) state;
    memset(text, 'x', LENGTH);
    text[LENGTH] = '\0';
    said = SAID(({
        for (int i = 0; i < 3; i++) {
            output_begin(output, &json);
            json_add_text(&json, "text", text);
            output_add_count(&json, "count", UINT64_MAX);
            output_end(output, &json);
        }
        output->error;
    }));
    assert_int_equal(said_result, 0);
    assert_int_equal(strlen(said),
                     3 * (LENGTH + strlen("{\"text\":\"\",\"count\":9223372036854775807}\n")));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(kinds_are_found_by_name),
        cmocka_unit_test(deleting_empties_the_folder),
        cmocka_unit_test(a_failure_is_the_last_line),
        cmocka_unit_test(a_report_that_nobody_takes_is_no_success),
        cmocka_unit_test(the_process_ends_with_its_reader),
        cmocka_unit_test(long_lines_arrive_whole),
    };

    (void) signal(SIGPIPE, SIG_IGN);
    return cmocka_run_group_tests_name("job", tests, NULL, NULL);
}
