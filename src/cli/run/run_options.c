#include "cli/run/run_options.h"

#include <string.h>

#include "base/encoding/utf8.h"
#include "base/number.h"

#define MEMORY_DEFAULT "2G"
#define DISK_DEFAULT   "4G"
#define PIDS_DEFAULT   "1024"
#define CPUS_DEFAULT   "0"

#define SIZE_MAXIMUM  (UINT64_C(1) << 50)
#define PIDS_MAXIMUM  4194304
#define CPUS_MAXIMUM  4096
#define PLACE_MAXIMUM 255

#define NAME_FIRST "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_"
#define NAME_REST  NAME_FIRST "0123456789"

struct run_options_reading {
    struct run_options *options;
    const char *const *environment;
    struct pool *pool;
    struct error *err;
};

/* --- one option each ------------------------------------------------------------------------ */

static int set_image(struct run_options_reading *reading, const char *value)
{
    reading->options->image = value;
    return 0;
}

static int run_options_read_size(struct run_options_reading *reading, const char *value,
                                 uint64_t *ret_bytes)
{
    if (number_parse_size(value, SIZE_MAXIMUM, ret_bytes) < 0)
        return error_set(reading->err, ERR_INVALID, 0, "not a size like 512M or 4G: '%s'", value);
    return 0;
}

static int set_memory(struct run_options_reading *reading, const char *value)
{
    reading->options->memory_text = value;
    reading->options->chosen |= LIMIT_BIT(MEMORY);
    return run_options_read_size(reading, value, &reading->options->limits.memory_bytes);
}

static int set_disk(struct run_options_reading *reading, const char *value)
{
    reading->options->chosen |= LIMIT_BIT(DISK);
    return run_options_read_size(reading, value, &reading->options->limits.disk_bytes);
}

static int set_pids(struct run_options_reading *reading, const char *value)
{
    int64_t number;

    if (number_parse(value, 0, PIDS_MAXIMUM, &number) < 0)
        return error_set(reading->err, ERR_INVALID, 0, "not a number of processes: '%s'", value);
    reading->options->limits.pids = (uint32_t) number;
    reading->options->chosen |= LIMIT_BIT(PIDS);
    return 0;
}

static int set_cpus(struct run_options_reading *reading, const char *value)
{
    uint64_t millis;

    if (number_parse_thousandths(value, CPUS_MAXIMUM * 1000, &millis) < 0)
        return error_set(reading->err, ERR_INVALID, 0, "not a number of CPUs like 2 or 0.5: '%s'",
                         value);
    reading->options->limits.cpu_millis = (uint32_t) millis;
    reading->options->chosen |= LIMIT_BIT(CPU);
    return 0;
}

static int set_network(struct run_options_reading *reading, const char *value)
{
    if (strcmp(value, "none") != 0 && strcmp(value, "nat") != 0)
        return error_set(reading->err, ERR_INVALID, 0, "the network is none or nat, not '%s'",
                         value);
    reading->options->network = strcmp(value, "nat") == 0 ? NETWORK_NAT : NETWORK_NONE;
    return 0;
}

static const char *find_variable(const char *const *environment, const char *name)
{
    size_t length = strlen(name);

    for (; environment && *environment; environment++) {
        if (strncmp(*environment, name, length) == 0 && (*environment)[length] == '=')
            return *environment + length + 1;
    }
    return NULL;
}

/* A name that was set before gets the new value: the agent takes each once. */
static int keep_variable(struct run_options_reading *reading, const char *name, const char *value)
{
    struct run_options *options = reading->options;
    size_t at = 0;

    while (at < options->variable_count && strcmp(options->variables[at].name, name) != 0)
        at++;
    if (at == RUN_VARIABLES_MAX)
        return error_set(reading->err, ERR_INVALID, 0, "more than %d variables", RUN_VARIABLES_MAX);
    options->variables[at] = (struct run_variable){.name = name, .value = value};
    if (at == options->variable_count)
        options->variable_count++;
    return 0;
}

static int add_variable(struct run_options_reading *reading, const char *value)
{
    size_t length = strcspn(value, "=");
    const char *name = pool_copy_bytes(reading->pool, value, length);
    const char *text =
        value[length] ? value + length + 1 : find_variable(reading->environment, name);

    if (!*name || !strchr(NAME_FIRST, *name) || name[strspn(name, NAME_REST)])
        return error_set(reading->err, ERR_INVALID, 0, "not the name of a variable: '%s'", name);
    if (!text)
        return error_set(reading->err, ERR_INVALID, 0,
                         "--env %s: it is not set here, and no value is given", name);
    if (!utf8_is_valid(text, strlen(text)))
        return error_set(reading->err, ERR_INVALID, 0, "the value of %s is not UTF-8", name);
    return keep_variable(reading, name, text);
}

static int add_bind(struct run_options_reading *reading, const char *value)
{
    struct run_options *options = reading->options;
    size_t length = strcspn(value, ":");
    const char *source = pool_copy_bytes(reading->pool, value, length);
    const char *place = value[length] ? value + length + 1 : source;

    if (!*source || place[0] != '/' || strlen(place) > PLACE_MAXIMUM)
        return error_set(reading->err, ERR_INVALID, 0,
                         "not SOURCE:PLACE with an absolute place in the sandbox: '%s'", value);
    if (options->bind_count == RUN_BINDS_MAX)
        return error_set(reading->err, ERR_INVALID, 0, "more than %d binds", RUN_BINDS_MAX);
    options->binds[options->bind_count++] = (struct run_bind){.source = source, .place = place};
    return 0;
}

static int set_directory(struct run_options_reading *reading, const char *value)
{
    if (value[0] != '/')
        return error_set(reading->err, ERR_INVALID, 0, "not an absolute folder: '%s'", value);
    reading->options->directory = value;
    return 0;
}

static int set_timeout(struct run_options_reading *reading, const char *value)
{
    if (number_parse_duration(value, RUN_TIMEOUT_MS, &reading->options->timeout_ms) < 0 ||
        !reading->options->timeout_ms)
        return error_set(reading->err, ERR_INVALID, 0, "not a time like 30s or 5m: '%s'", value);
    return 0;
}

static int set_terminal(struct run_options_reading *reading, const char *value)
{
    (void) value;
    reading->options->terminal = true;
    return 0;
}

static int set_plan(struct run_options_reading *reading, const char *value)
{
    (void) value;
    reading->options->plan = true;
    return 0;
}

static int set_help(struct run_options_reading *reading, const char *value)
{
    (void) value;
    reading->options->help = true;
    return 0;
}

static int set_data(struct run_options_reading *reading, const char *value)
{
    reading->options->data = value;
    return 0;
}

static int set_run_folder(struct run_options_reading *reading, const char *value)
{
    reading->options->run_folder = value;
    return 0;
}

static int set_cgroup(struct run_options_reading *reading, const char *value)
{
    reading->options->cgroup = value;
    return 0;
}

static int set_network_name(struct run_options_reading *reading, const char *value)
{
    reading->options->network_name = value;
    return 0;
}

static const struct option_row {
    const char *name;
    const char *value; /* what stands for the value in the help; NULL: there is none */
    const char *summary;
    int (*set)(struct run_options_reading *reading, const char *value);
} rows[] = {
    {"--image", "NAME", "root filesystem: host (the default), or one of `burrow image ls`",
     set_image},
    {"--memory", "SIZE", "memory of all processes together (" MEMORY_DEFAULT "; 0: no limit)",
     set_memory},
    {"--cpus", "NUMBER", "CPU time, 0.5 is half of one (all there are)", set_cpus},
    {"--pids", "NUMBER", "processes and threads (" PIDS_DEFAULT "; 0: no limit)", set_pids},
    {"--disk", "SIZE", "what may be written (" DISK_DEFAULT "; 0: no limit)", set_disk},
    {"--net", "none|nat", "loopback only (none, the default), or out through this machine",
     set_network},
    {"--env", "NAME=TEXT", "a variable for the command; NAME alone takes ours. Repeatable",
     add_variable},
    {"--bind-ro", "SRC:DST", "show a folder of this machine at DST, read-only. Repeatable",
     add_bind},
    {"--cwd", "FOLDER", "where the command runs in the sandbox (/workspace)", set_directory},
    {"--timeout", "TIME", "kill the command after this long: 30s, 5m (never)", set_timeout},
    {"--tty", NULL, "run it at a terminal; ours, when stdin is one, becomes raw", set_terminal},
    {"--plan", NULL, "print what would be made, and make nothing; needs no root", set_plan},
    {"--data", "FOLDER", "of the launcher: images and the disk pool (/var/lib/burrow)", set_data},
    {"--run-folder", "FOLDER", "of the launcher: id ranges and sockets (/run/burrow)",
     set_run_folder},
    {"--cgroup", "NAME", "of the launcher: its group among the host's", set_cgroup},
    {"--network-name", "NAME", "of the launcher: its link and table of --net nat (burrow)",
     set_network_name},
    {"--help", NULL, "print this", set_help},
};

/* --- all of them ---------------------------------------------------------------------------- */

static const struct option_row *find_row(const char *word, const char **ret_value)
{
    size_t length = strcspn(word, "=");

    for (size_t i = 0; i < ARRAY_COUNT(rows); i++) {
        if (strlen(rows[i].name) != length || strncmp(rows[i].name, word, length) != 0)
            continue;
        *ret_value = word[length] ? word + length + 1 : NULL;
        return &rows[i];
    }
    return NULL;
}

/* The option at `at`. Returns how many words it took, or -1. */
static int read_option(struct run_options_reading *reading, int count, char *const *words, int at)
{
    const char *value = NULL;
    const struct option_row *row = find_row(words[at], &value);
    int used = 1;

    if (!row)
        return error_set(reading->err, ERR_INVALID, 0, "there is no option '%s'", words[at]);
    if (!row->value && value)
        return error_set(reading->err, ERR_INVALID, 0, "%s takes no value", row->name);
    if (row->value && !value) {
        if (at + 1 == count)
            return error_set(reading->err, ERR_INVALID, 0, "%s needs a value", row->name);
        value = words[at + 1];
        used = 2;
    }
    if (row->set(reading, value) < 0)
        return error_wrap(reading->err, "%s", row->name);
    return used;
}

/* JSON carries it, which knows no other bytes; changing them silently would be worse. */
static int check_command(const struct run_options *options, struct error *err)
{
    if (options->command_count > RUN_WORDS_MAX)
        return error_set(err, ERR_INVALID, 0, "the command has more than %d words", RUN_WORDS_MAX);
    for (size_t i = 0; i < options->command_count; i++) {
        if (!utf8_is_valid(options->command[i], strlen(options->command[i])))
            return error_set(err, ERR_INVALID, 0, "word %zu of the command is not UTF-8", i + 1);
    }
    if (options->directory && !utf8_is_valid(options->directory, strlen(options->directory)))
        return error_set(err, ERR_INVALID, 0, "--cwd is not UTF-8");
    return 0;
}

static int set_defaults(struct run_options_reading *reading)
{
    struct run_options *options = reading->options;

    options->variables = pool_alloc(reading->pool, RUN_VARIABLES_MAX * sizeof(*options->variables));
    if (set_memory(reading, MEMORY_DEFAULT) < 0 || set_disk(reading, DISK_DEFAULT) < 0 ||
        set_pids(reading, PIDS_DEFAULT) < 0 || set_cpus(reading, CPUS_DEFAULT) < 0)
        return -1;
    options->chosen = 0;
    return 0;
}

int run_options_read(int count, char *const *words, const char *const *environment,
                     struct pool *pool, struct run_options *ret_options, struct error *err)
{
    struct run_options options = {.network = NETWORK_NONE};
    struct run_options_reading reading = {
        .options = &options, .environment = environment, .pool = pool, .err = err};
    int at = 0, used;

    if (set_defaults(&reading) < 0)
        return -1;
    for (; at < count && words[at][0] == '-' && strcmp(words[at], "--") != 0; at += used) {
        used = read_option(&reading, count, words, at);
        if (used < 0)
            return -1;
    }
    if (at < count && strcmp(words[at], "--") == 0)
        at++;
    options.command = (const char *const *) words + at;
    options.command_count = (size_t) (count - at);
    if (!options.command_count && !options.image && !options.help && !options.plan)
        return error_set(err, ERR_INVALID, 0, "no command is given");
    if (options.command_count && !options.command[0][0])
        return error_set(err, ERR_INVALID, 0, "the command is empty");
    if (check_command(&options, err) < 0)
        return -1;
    *ret_options = options;
    return 0;
}

void run_options_describe(struct text *text)
{
    text_append(text, "usage: burrow run [OPTION...] [--] COMMAND [WORD...]\n\n"
                      "Run one command in a fresh sandbox, which is gone afterwards. Without one, "
                      "the command that the\nimage of --image names (its Entrypoint and Cmd).\n\n");
    for (size_t i = 0; i < ARRAY_COUNT(rows); i++) {
        AUTO(text) struct text left = TEXT_INIT(64);

        text_format(&left, "%s %s", rows[i].name, rows[i].value ? rows[i].value : "");
        text_format(text, "  %-21s %s\n", text_string(&left), rows[i].summary);
    }
    text_append(text,
                "\nStdin, stdout, stderr, signals and the exit status are the command's. Else:\n"
                "  124 the time was over     137 killed, also for lack of memory\n"
                "  126 it cannot be run      127 there is no such program\n"
                "  125 the sandbox failed    2   wrong options, or not root\n");
}
