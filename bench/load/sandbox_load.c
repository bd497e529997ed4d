/* sandbox-load: makes sandboxes through the provider `local`, as told on stdin, line by line.
 *
 *     $ sandbox-load --data DIR --run DIR --cgroup NAME --network-name NAME --pool-size 4G
 *     cold 20
 *     {"create_us":[...],"exec_us":[...],"destroy_us":[...],"total_us":[...]}
 *
 * At the end of stdin everything is taken down. One line is read at a time, so that rows can let a
 * peer work in between. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/auto.h"
#include "base/number.h"
#include "load/fail.h"
#include "load/sandbox_commands.h"
#include "provider/provider_local.h"

#define LINE_MAX_SIZE 256
#define NUMBER_MAX    1000000

struct option {
    const char *name;
    const char *help;
    const char **value;
};

static void parse(const struct option *options, size_t count, int argc, char **argv)
{
    for (int i = 1; i < argc; i += 2) {
        size_t at = 0;

        while (at < count && strcmp(options[at].name, argv[i]) != 0)
            at++;
        if (at == count || i + 1 == argc)
            fail("'%s' is no option, or has no value; --help lists them", argv[i]);
        *options[at].value = argv[i + 1];
    }
}

static void help(const struct option *options, size_t count)
{
    printf("usage: sandbox-load OPTION VALUE...; then lines on stdin\n\noptions:\n");
    for (size_t i = 0; i < count; i++)
        printf("  %-14s %s\n", options[i].name, options[i].help);
    printf("\nlines:\n");
    sandbox_commands_help();
}

static void run_command(struct sandbox_session *session, struct sandbox_crowd *crowd,
                        const struct sandbox_command *command, char *rest)
{
    uint64_t numbers[SANDBOX_COMMAND_NUMBERS] = {0};

    for (size_t i = 0; i < command->number_count; i++) {
        const char *word = strsep(&rest, " \n");
        int64_t number = 0;

        if (!word || number_parse(word, 0, NUMBER_MAX, &number) < 0)
            fail("%s wants %s", command->name, command->help);
        numbers[i] = (uint64_t) number;
    }
    command->run(session, crowd, numbers);
    (void) fflush(stdout);
}

static void run_line(struct sandbox_session *session, struct sandbox_crowd *crowd, char *line)
{
    char *rest = line;
    const char *word = strsep(&rest, " \n");
    const struct sandbox_command *command = sandbox_command_find(word);

    if (command)
        run_command(session, crowd, command, rest);
    else
        fail("unknown line '%s'; --help lists them", word);
}

static size_t stock_size(const char *text)
{
    int64_t number = 0;

    if (text && number_parse(text, 0, PROVIDER_LOCAL_STOCK_MAX, &number) < 0)
        fail("--stock wants a number up to %d", PROVIDER_LOCAL_STOCK_MAX);
    return (size_t) number;
}

static void serve(const struct sandbox_session_options *options)
{
    struct sandbox_session session;
    struct sandbox_crowd *crowd = sandbox_crowd_new();
    char line[LINE_MAX_SIZE];

    sandbox_session_open(&session, options);
    while (fgets(line, sizeof(line), stdin))
        run_line(&session, crowd, line);
    sandbox_session_close(&session);
    sandbox_crowd_free(crowd);
}

int main(int argc, char **argv)
{
    struct sandbox_session_options session = {.launcher.log_level = "error"};
    const char *stock = NULL;
    const struct option options[] = {
        {"--launcher", "the program burrow-launcher", &session.launcher.program},
        {"--data", "its data folder", &session.launcher.data},
        {"--run", "its run folder", &session.launcher.run},
        {"--cgroup", "the base of its groups", &session.launcher.cgroup},
        {"--network-name", "of its router", &session.launcher.network},
        {"--pool-size", "of its disk pool", &session.launcher.pool_size},
        {"--image", "what sandboxes start from", &session.image},
        {"--stock", "ready sandboxes to keep (0)", &stock},
    };

    if (argc == 2 && strcmp(argv[1], "--help") == 0) {
        help(options, ARRAY_COUNT(options));
        return EXIT_SUCCESS;
    }
    parse(options, ARRAY_COUNT(options), argc, argv);
    session.stock = stock_size(stock);
    serve(&session);
    return EXIT_SUCCESS;
}
