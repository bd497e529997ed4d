#include <fcntl.h>
#include <string.h>

#include "launcher/child/child_steps.h"
#include "sys/sys_test.h"

/* What the steps of the test's child are to do. */
struct plan {
    size_t fails_at; /* the step */
    size_t done;
    int status;
    int moves_to; /* where the second step puts the status pipe; -1: nowhere */
};

static int take_step(void *child, size_t step)
{
    struct plan *plan = child;

    CHECK_EQUAL(step, plan->done++);
    if (step == 1 && plan->moves_to >= 0) {
        CHECK_EQUAL(dup2(plan->status, plan->moves_to), plan->moves_to);
        CHECK_EQUAL(close(plan->status), 0);
        plan->status = plan->moves_to;
    }
    return step == plan->fails_at ? -ENOTTY : 0;
}

static const char *step_text(size_t step)
{
    static const char *const texts[] = {"get up", "wash", "eat"};

    return texts[step];
}

static const struct child_steps steps = {
    .count = 3, .run = take_step, .text = step_text, .name = "morning"};

/* Returns the pipe with what the child said; it has ended. */
static int run(struct plan plan)
{
    int ends[2], status;
    pid_t pid;

    assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
    pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        plan.status = ends[1];
        child_steps_run(&steps, &plan, &plan.status);
    }
    assert_int_equal(close(ends[1]), 0);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 127);
    return ends[0];
}

static void the_step_that_fails_is_the_message(void **state)
{
    static const char *const texts[] = {"get up", "wash", "eat"};

    (void) state;
    for (size_t i = 0; i < ARRAY_COUNT(texts); i++) {
        struct error err = ERROR_INIT;
        bool is_whole = false;
        int status = run((struct plan){.fails_at = i, .moves_to = i == 2 ? 50 : -1});

        assert_int_equal(child_steps_read(&steps, status, &is_whole, &err), -1);
        assert_true(is_whole);
        assert_int_equal(err.system, ENOTTY);
        assert_int_equal(strncmp(err.message, texts[i], strlen(texts[i])), 0);
        assert_int_equal(close(status), 0);
    }
}

static void a_pipe_that_closes_without_a_word_is_no_failure(void **state)
{
    struct error err = ERROR_INIT;
    bool is_whole = false;
    int status = run((struct plan){.fails_at = SIZE_MAX, .moves_to = -1});

    (void) state;
    assert_int_equal(child_steps_read(&steps, status, &is_whole, &err), 0);
    assert_true(is_whole);
    assert_int_equal(close(status), 0);
}

/* A child is not believed: it may be a stranger's by the time it writes. */
static void half_a_word_and_unknown_steps_are_told(void **state)
{
    const struct child_failure unknown[] = {{.step = 3, .error = -EIO},
                                            {.step = -1, .error = -EIO}};
    struct error err = ERROR_INIT;
    bool is_whole = true;
    int ends[2];

    (void) state;
    for (size_t i = 0; i < ARRAY_COUNT(unknown); i++) {
        assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
        assert_int_equal(write(ends[1], &unknown[i], sizeof(unknown[i])), sizeof(unknown[i]));
        assert_int_equal(close(ends[1]), 0);
        assert_int_equal(child_steps_read(&steps, ends[0], NULL, &err), -1);
        assert_non_null(strstr(err.message, "unknown step"));
        assert_int_equal(close(ends[0]), 0);
    }
    assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
    assert_int_equal(write(ends[1], "abc", 3), 3);
    assert_int_equal(close(ends[1]), 0);
    assert_int_equal(child_steps_read(&steps, ends[0], &is_whole, &err), 0);
    assert_false(is_whole);
    assert_int_equal(close(ends[0]), 0);
}

/* Places that are taken by one that goes elsewhere. */
static void place_crosswise(void)
{
    int first = open("/dev/null", O_RDONLY | O_CLOEXEC), second = open("/dev/zero", O_RDONLY);
    int descriptors[] = {21, 20, 20};
    char byte = 'x';

    CHECK(first >= 0 && second >= 0);
    CHECK_EQUAL(dup2(second, 20), 20);
    CHECK_EQUAL(dup2(first, 21), 21);
    CHECK_EQUAL(child_place_descriptors(descriptors, 3, 2, 20, 40), 0);
    CHECK_EQUAL(read(20, &byte, 1), 0);
    CHECK_EQUAL(read(21, &byte, 1), 1);
    CHECK_EQUAL(read(22, &byte, 1), 1);
    CHECK(!is_close_on_exec(20) && !is_close_on_exec(21) && is_close_on_exec(22));
}

static void descriptors_may_change_places(void **state)
{
    (void) state;
    run_in_child(place_crosswise, "descriptors");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_step_that_fails_is_the_message),
        cmocka_unit_test(a_pipe_that_closes_without_a_word_is_no_failure),
        cmocka_unit_test(half_a_word_and_unknown_steps_are_told),
        cmocka_unit_test(descriptors_may_change_places),
    };

    return cmocka_run_group_tests_name("child_steps", tests, NULL, NULL);
}
