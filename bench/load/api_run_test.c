/* Lives over connections whose other ends are played by a thread. */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/auto.h"
#include "base/memory.h"
#include "load/api_run.h"

#define ENDS     3
#define SEEN_MAX 8192

static const char good[] = "HTTP/1.1 200 OK\r\nContent-Length: 14\r\n\r\n{\"exitCode\":0}";
static const char failed[] = "HTTP/1.1 200 OK\r\nContent-Length: 14\r\n\r\n{\"exitCode\":1}";
static const char refused[] = "HTTP/1.1 429 Too Many Requests\r\nContent-Length: 0\r\n\r\n";

/* One end: answers every request with the same bytes, in two pieces. */
struct end {
    pthread_t thread;
    int fd;
    const char *answer;
    char seen[SEEN_MAX];
    size_t length;
};

static void *play(void *argument)
{
    struct end *end = argument;
    size_t half = strlen(end->answer) / 2;
    ssize_t got;

    while ((got = recv(end->fd, end->seen + end->length, SEEN_MAX - 1 - end->length, 0)) > 0) {
        end->length += (size_t) got;
        (void) send(end->fd, end->answer, half, MSG_NOSIGNAL);
        (void) usleep(1000);
        (void) send(end->fd, end->answer + half, strlen(end->answer) - half, MSG_NOSIGNAL);
    }
    return NULL;
}

struct stage {
    struct end ends[ENDS];
    struct api_server server;
    struct api_pool *pool;
};

static void stage_open(struct stage *stage, const char *answer)
{
    *stage = (struct stage){.server = {.target.text = "host", .key = "secret"}};
    stage->pool = mem_alloc(sizeof(*stage->pool));
    stage->pool->server = &stage->server;
    for (size_t i = 0; i < ENDS; i++) {
        struct api_connection *connection = &stage->pool->connections[stage->pool->count++];
        int pair[2];

        assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
        assert_int_equal(target_unblock(pair[0]), 0);
        *connection = (struct api_connection){.fd = pair[0],
                                              .request = TEXT_INIT(API_REQUEST_MAX),
                                              .answer = TEXT_INIT(API_ANSWER_MAX)};
        stage->ends[i].fd = pair[1];
        stage->ends[i].answer = answer;
        assert_int_equal(pthread_create(&stage->ends[i].thread, NULL, play, &stage->ends[i]), 0);
    }
}

static void stage_close(struct stage *stage)
{
    api_pool_close(stage->pool);
    for (size_t i = 0; i < ENDS; i++) {
        assert_int_equal(pthread_join(stage->ends[i].thread, NULL), 0);
        (void) fd_close(stage->ends[i].fd);
    }
    free(stage->pool);
}

static char *printed_by(const struct api_run *run, struct stage *stage)
{
    char *text = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);

    assert_non_null(out);
    api_run(run, stage->pool, out);
    assert_int_equal(fclose(out), 0);
    return text;
}

static size_t count_of(const char *text, const char *part)
{
    size_t count = 0;

    while ((text = strstr(text, part))) {
        text += strlen(part);
        count++;
    }
    return count;
}

static void a_life_goes_through_its_steps_in_order(void **state)
{
    struct api_run run = {
        .steps = {api_step_find("create"), api_step_find("exec"), api_step_find("destroy")},
        .step_count = 3,
        .first = 7,
        .stride = 1,
        .count = 1,
        .at_once = 1};
    struct stage stage;
    AUTO(free) char *text = NULL;
    const char *create, *exec, *destroy;

    (void) state;
    stage_open(&stage, good);
    text = printed_by(&run, &stage);
    stage_close(&stage);
    create = strstr(stage.ends[0].seen, "POST /burrow/v1/sandboxes HTTP/1.1\r\n");
    exec = strstr(stage.ends[0].seen, "POST /burrow/v1/sandboxes/bench-7/exec HTTP/1.1\r\n");
    destroy = strstr(stage.ends[0].seen, "DELETE /burrow/v1/sandboxes/bench-7 HTTP/1.1\r\n");
    assert_true(create && create < exec && exec < destroy);
    assert_non_null(strstr(create, "\"name\":\"bench-7\""));
    assert_int_equal(count_of(stage.ends[0].seen, "Authorization: Bearer secret\r\n"), 3);
    assert_non_null(strstr(text, "\"create_us\":["));
    assert_non_null(strstr(text, "\"exec_us\":["));
    assert_non_null(strstr(text, "\"destroy_us\":["));
}

static void all_connections_work_side_by_side(void **state)
{
    struct api_run run = {.steps = {api_step_find("exec")},
                          .step_count = 1,
                          .stride = 1,
                          .count = 9,
                          .at_once = ENDS};
    struct stage stage;
    AUTO(free) char *text = NULL;
    size_t sum = 0;

    (void) state;
    stage_open(&stage, good);
    text = printed_by(&run, &stage);
    stage_close(&stage);
    for (size_t i = 0; i < ENDS; i++) {
        size_t count = count_of(stage.ends[i].seen, "POST ");

        assert_true(count >= 1);
        sum += count;
    }
    assert_int_equal(sum, 9);
    assert_int_equal(count_of(text, ","), 9); /* eight between nine times, one before the list */
}

static void one_sandbox_is_asked_again_and_again(void **state)
{
    struct api_run run = {
        .steps = {api_step_find("exec")}, .step_count = 1, .first = 3, .count = 5, .at_once = 1};
    struct stage stage;
    AUTO(free) char *text = NULL;

    (void) state;
    stage_open(&stage, good);
    text = printed_by(&run, &stage);
    stage_close(&stage);
    assert_int_equal(count_of(text, ","), 5); /* one list of five times */
    assert_int_equal(count_of(stage.ends[0].seen, "/bench-3/exec"), 5);
}

/* Ten at a hundred a second: the last begins after 90 ms. */
static void a_rate_is_kept(void **state)
{
    struct api_run run = {.steps = {api_step_find("get")},
                          .step_count = 1,
                          .count = 10,
                          .at_once = ENDS,
                          .rate = 100};
    struct stage stage;
    AUTO(free) char *text = NULL;

    (void) state;
    stage_open(&stage, "HTTP/1.1 200 OK\r\nContent-Length: 20\r\n\r\n{\"status\":\"running\"}");
    text = printed_by(&run, &stage);
    stage_close(&stage);
    assert_true(strtoul(strchr(text, ':') + 1, NULL, 10) >= 90000);
}

/* The exit status of a run that ends its program. */
static int status_of_run(const char *answer)
{
    struct api_run run = {
        .steps = {api_step_find("exec")}, .step_count = 1, .count = 1, .at_once = 1};
    pid_t child = fork();
    int status = 0;

    if (child == 0) {
        struct stage stage;

        (void) fclose(stderr);
        stage_open(&stage, answer);
        api_run(&run, stage.pool, stdout);
        _exit(EXIT_SUCCESS);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static void an_answer_that_is_no_success_ends_the_program(void **state)
{
    (void) state;
    assert_int_equal(status_of_run(failed), EXIT_FAILURE);
    assert_int_equal(status_of_run(refused), EXIT_FAILURE);
    assert_int_equal(status_of_run("nonsense\r\n\r\n"), EXIT_FAILURE);
}

static void unknown_steps_are_not_found(void **state)
{
    (void) state;
    assert_null(api_step_find("creat"));
    assert_null(api_step_find(""));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_life_goes_through_its_steps_in_order),
        cmocka_unit_test(all_connections_work_side_by_side),
        cmocka_unit_test(one_sandbox_is_asked_again_and_again),
        cmocka_unit_test(a_rate_is_kept),
        cmocka_unit_test(an_answer_that_is_no_success_ends_the_program),
        cmocka_unit_test(unknown_steps_are_not_found),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
