#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "cli/run/run_options.h"
/* After the headers it needs. */
#include <cmocka.h>

#define WORDS_MAX 64

struct reading {
    struct pool pool;
    struct run_options options;
    struct error err;
    char *line;
    char *words[WORDS_MAX];
    int result;
};

/* The words of a line, parted by single spaces. */
static void read_line(struct reading *reading, const char *line)
{
    static const char *const environment[] = {"HERE=from here", "PATH=/bin", NULL};
    char *rest;
    int count = 0;

    *reading = (struct reading){.line = strdup(line)};
    rest = reading->line;
    while (rest && *rest && count < WORDS_MAX - 1)
        reading->words[count++] = strsep(&rest, " ");
    reading->result = run_options_read(count, reading->words, environment, &reading->pool,
                                       &reading->options, &reading->err);
}

static void reading_done(struct reading *reading)
{
    pool_done(&reading->pool);
    free(reading->line);
}

static void assert_refused(const char *line, const char *part)
{
    struct reading reading;

    read_line(&reading, line);
    if (reading.result == 0)
        fail_msg("accepted: %s", line);
    if (!strstr(reading.err.message, part))
        fail_msg("%s: '%s' is not in '%s'", line, part, reading.err.message);
    reading_done(&reading);
}

static void defaults_are_those_of_the_help(void **state)
{
    struct reading reading;
    const struct run_options *options = &reading.options;

    (void) state;
    read_line(&reading, "true");
    assert_int_equal(reading.result, 0);
    assert_null(options->image);
    assert_int_equal(options->limits.memory_bytes, UINT64_C(2) << 30);
    assert_int_equal(options->limits.swap_bytes, 0);
    assert_int_equal(options->limits.disk_bytes, UINT64_C(4) << 30);
    assert_int_equal(options->limits.pids, 1024);
    assert_int_equal(options->limits.cpu_millis, 0);
    assert_int_equal(options->chosen, 0);
    assert_int_equal(options->network, NETWORK_NONE);
    assert_int_equal(options->timeout_ms, 0);
    assert_false(options->terminal);
    assert_string_equal(options->memory_text, "2G");
    reading_done(&reading);
}

static void all_options_are_read(void **state)
{
    struct reading reading;
    const struct run_options *options = &reading.options;

    (void) state;
    read_line(&reading, "--image debian --memory 512M --cpus 1.5 --pids=256 --disk 1G --net nat "
                        "--env A=b=c --env HERE --env A=d --bind-ro data:/data --bind-ro /opt "
                        "--timeout 30s --tty --data /d --run-folder=/r --cgroup g --cwd /usr "
                        "--network-name n -- ls -l --all");
    assert_int_equal(reading.result, 0);
    assert_string_equal(options->image, "debian");
    assert_int_equal(options->limits.memory_bytes, 512 << 20);
    assert_string_equal(options->memory_text, "512M");
    assert_int_equal(options->limits.cpu_millis, 1500);
    assert_int_equal(options->limits.pids, 256);
    assert_int_equal(options->limits.disk_bytes, 1 << 30);
    assert_int_equal(options->chosen,
                     LIMIT_BIT(MEMORY) | LIMIT_BIT(CPU) | LIMIT_BIT(PIDS) | LIMIT_BIT(DISK));
    assert_int_equal(options->network, NETWORK_NAT);
    assert_int_equal(options->variable_count, 2);
    assert_string_equal(options->variables[0].name, "A");
    assert_string_equal(options->variables[0].value, "d");
    assert_string_equal(options->variables[1].value, "from here");
    assert_int_equal(options->bind_count, 2);
    assert_string_equal(options->binds[0].source, "data");
    assert_string_equal(options->binds[0].place, "/data");
    assert_string_equal(options->binds[1].source, "/opt");
    assert_string_equal(options->binds[1].place, "/opt");
    assert_int_equal(options->timeout_ms, 30000);
    assert_true(options->terminal);
    assert_string_equal(options->data, "/d");
    assert_string_equal(options->run_folder, "/r");
    assert_string_equal(options->cgroup, "g");
    assert_string_equal(options->network_name, "n");
    assert_string_equal(options->directory, "/usr");
    assert_int_equal(options->command_count, 3);
    assert_string_equal(options->command[2], "--all");
    reading_done(&reading);
}

static void the_command_begins_at_the_first_other_word(void **state)
{
    struct reading reading;

    (void) state;
    read_line(&reading, "--pids 5 ls --tty");
    assert_int_equal(reading.result, 0);
    assert_string_equal(reading.options.command[0], "ls");
    assert_string_equal(reading.options.command[1], "--tty");
    assert_false(reading.options.terminal);
    reading_done(&reading);
    read_line(&reading, "-- --help");
    assert_int_equal(reading.result, 0);
    assert_string_equal(reading.options.command[0], "--help");
    assert_false(reading.options.help);
    reading_done(&reading);
}

static void cpus_are_exact(void **state)
{
    static const struct {
        const char *line;
        uint32_t millis;
    } cases[] = {{"--cpus 1 x", 1000},    {"--cpus 0.5 x", 500}, {"--cpus 2.25 x", 2250},
                 {"--cpus 0.001 x", 1},   {"--cpus 0 x", 0},     {"--cpus 4096 x", 4096000},
                 {"--cpus 1.050 x", 1050}};

    (void) state;
    for (size_t i = 0; i < ARRAY_COUNT(cases); i++) {
        struct reading reading;

        read_line(&reading, cases[i].line);
        assert_int_equal(reading.result, 0);
        assert_int_equal(reading.options.limits.cpu_millis, cases[i].millis);
        reading_done(&reading);
    }
    assert_refused("--cpus 1. x", "CPUs");
    assert_refused("--cpus .5 x", "CPUs");
    assert_refused("--cpus 1.0001 x", "CPUs");
    assert_refused("--cpus -1 x", "CPUs");
    assert_refused("--cpus 4097 x", "CPUs");
    assert_refused("--cpus two x", "CPUs");
}

static void mistakes_are_told_by_their_option(void **state)
{
    (void) state;
    assert_refused("", "no command");
    assert_refused("--tty", "no command");
    assert_refused("--dance x", "there is no option '--dance'");
    assert_refused("-i x", "there is no option '-i'");
    assert_refused("--memory", "--memory needs a value");
    assert_refused("--tty=yes x", "--tty takes no value");
    assert_refused("--memory much x", "--memory: not a size");
    assert_refused("--disk -1 x", "--disk: not a size");
    assert_refused("--pids 1.5 x", "--pids");
    assert_refused("--net host x", "--net");
    assert_refused("--env =x x", "not the name");
    assert_refused("--env A-B=x x", "not the name");
    assert_refused("--env NOT_HERE x", "not set here");
    assert_refused("--bind-ro a:b x", "--bind-ro");
    assert_refused("--bind-ro :/b x", "--bind-ro");
    assert_refused("--bind-ro data x", "--bind-ro");
    assert_refused("--timeout 0 x", "--timeout");
    assert_refused("--timeout 5y x", "--timeout");
    assert_refused("--cwd here x", "--cwd");
    assert_refused("-- \xff", "UTF-8");
    assert_refused("--env A=\xff x", "UTF-8");
}

static void help_and_plan_need_no_command(void **state)
{
    struct reading reading;

    (void) state;
    read_line(&reading, "--help");
    assert_int_equal(reading.result, 0);
    assert_true(reading.options.help);
    reading_done(&reading);
    read_line(&reading, "--plan --memory 1G");
    assert_int_equal(reading.result, 0);
    assert_true(reading.options.plan);
    reading_done(&reading);
}

static void too_many_of_a_kind_are_refused(void **state)
{
    struct text line = TEXT_INIT(4096);

    (void) state;
    for (int i = 0; i <= RUN_BINDS_MAX; i++)
        text_format(&line, "--bind-ro /a:/b%d ", i);
    text_append(&line, "x");
    assert_refused(text_string(&line), "more than 16 binds");
    text_done(&line);
}

static void the_help_names_every_option(void **state)
{
    AUTO(text) struct text text = TEXT_INIT(16384);

    (void) state;
    run_options_describe(&text);
    assert_false(text.overflowed);
    assert_non_null(strstr(text_string(&text), "--bind-ro SRC:DST"));
    assert_non_null(strstr(text_string(&text), "(2G; 0: no limit)"));
    for (const char *line = text_string(&text); *line; line += strcspn(line, "\n") + 1)
        assert_true(strcspn(line, "\n") <= 100);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(defaults_are_those_of_the_help),
        cmocka_unit_test(all_options_are_read),
        cmocka_unit_test(the_command_begins_at_the_first_other_word),
        cmocka_unit_test(cpus_are_exact),
        cmocka_unit_test(mistakes_are_told_by_their_option),
        cmocka_unit_test(help_and_plan_need_no_command),
        cmocka_unit_test(too_many_of_a_kind_are_refused),
        cmocka_unit_test(the_help_names_every_option),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
