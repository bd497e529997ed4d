/* api-load: a client of the API, as told on stdin, line by line.
 *
 *     $ api-load --target 127.0.0.1:8787 --key FILE
 *     each 0 20 1 0 create,exec,destroy
 *     {"wall_us":N,"create_us":[...],"exec_us":[...],"destroy_us":[...]}
 *     one 7 100 exec
 *     {"wall_us":N,"exec_us":[...]}
 *
 * One line is read at a time, so that rows can let a peer work in between. Connections stay open
 * until the end of stdin; an answer that is no success ends the program. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/auto.h"
#include "base/memory.h"
#include "base/number.h"
#include "load/api_run.h"
#include "load/fail.h"
#include "sys/file/sys_file.h"

#define LINE_MAX_SIZE 256
#define KEY_MAX       4096
#define COUNT_MAX     1000000

static void help(void)
{
    printf("usage: api-load --target ADDRESS --key FILE; then lines on stdin\n\n"
           "lines:\n"
           "  each FIRST COUNT AT_ONCE RATE STEP,...   sandboxes FIRST and on; RATE per second, or "
           "0\n"
           "  one NUMBER COUNT STEP,...                the same sandbox each time\n\n"
           "steps:\n");
    api_steps_help();
}

static uint64_t read_number(char **rest, int64_t least, int64_t most)
{
    const char *word = strsep(rest, " \n");
    int64_t number = 0;

    if (!word || number_parse(word, least, most, &number) < 0)
        fail("'%s' is no number from %lld to %lld", word ? word : "", (long long) least,
             (long long) most);
    return (uint64_t) number;
}

static void read_steps(char **rest, struct api_run *run)
{
    char *names = strsep(rest, " \n");
    const char *name;

    while ((name = strsep(&names, ","))) {
        const struct api_step *step = api_step_find(name);

        if (!step || run->step_count == API_STEPS_MAX)
            fail("'%s' is no step, or one too many; --help lists them", name);
        run->steps[run->step_count++] = step;
    }
    if (!run->step_count)
        fail("a line without steps");
}

static void run_line(struct api_pool *pool, char *line)
{
    char *rest = line;
    const char *word = strsep(&rest, " \n");
    bool is_each = strcmp(word, "each") == 0;
    struct api_run run = {.stride = is_each, .at_once = 1};

    if (!is_each && strcmp(word, "one") != 0)
        fail("unknown line '%s'; --help lists them", word);
    run.first = read_number(&rest, 0, COUNT_MAX);
    run.count = read_number(&rest, 1, COUNT_MAX);
    if (is_each) {
        run.at_once = read_number(&rest, 1, API_CONNECTIONS_MAX);
        run.rate = read_number(&rest, 0, COUNT_MAX);
    }
    read_steps(&rest, &run);
    api_run(&run, pool, stdout);
    (void) fflush(stdout);
}

static char *read_key(const char *path)
{
    char *key = NULL;
    size_t length = 0;
    int r = sys_file_read_all(AT_FDCWD, path, KEY_MAX, &key, &length);

    if (r < 0)
        fail("read %s: %s", path, strerror(-r));
    key[strcspn(key, "\r\n")] = '\0';
    return key;
}

int main(int argc, char **argv)
{
    AUTO(free) struct api_pool *pool = mem_alloc(sizeof(*pool));
    AUTO(free) char *key = NULL;
    struct api_server server = {.key = NULL};
    char line[LINE_MAX_SIZE];

    if (argc == 2 && strcmp(argv[1], "--help") == 0) {
        help();
        return EXIT_SUCCESS;
    }
    if (argc != 5 || strcmp(argv[1], "--target") != 0 || strcmp(argv[3], "--key") != 0 ||
        target_parse(argv[2], &server.target) < 0)
        fail("usage: api-load --target ADDRESS --key FILE");
    key = read_key(argv[4]);
    server.key = key;
    pool->server = &server;
    while (fgets(line, sizeof(line), stdin))
        run_line(pool, line);
    api_pool_close(pool);
    return EXIT_SUCCESS;
}
