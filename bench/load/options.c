#include "load/options.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/auto.h"
#include "base/number.h"
#include "load/fail.h"

#define CONNECTIONS_MAX 100000
#define BYTES_MAX       (1ull << 40)
#define TIME_MAX_MS     3600000

static int set_target(struct load_options *options, const char *value)
{
    return target_parse(value, &options->target);
}

static int set_path(struct load_options *options, const char *value)
{
    options->path = value;
    return *value == '/' ? 0 : -EINVAL;
}

static int set_connections(struct load_options *options, const char *value)
{
    int64_t number = 0;
    int r = number_parse(value, 1, CONNECTIONS_MAX, &number);

    options->connections = (unsigned) number;
    return r;
}

static int set_bytes(struct load_options *options, const char *value)
{
    return number_parse_size(value, BYTES_MAX, &options->bytes);
}

static int set_time(struct load_options *options, const char *value)
{
    return number_parse_duration(value, TIME_MAX_MS, &options->milliseconds);
}

static const struct load_option {
    const char *name;
    const char *help;
    int (*set)(struct load_options *options, const char *value);
} load_option_table[] = {
    {"--target", "ADDR:PORT or unix:PATH of the server (needed)", set_target},
    {"--path", "a request target that starts with /", set_path},
    {"--connections", "how many at once, 1 to 100000", set_connections},
    {"--bytes", "the size of a body or message: 64, 64K, 64M", set_bytes},
    {"--time", "how long: 2s, 500ms", set_time},
};

static const struct load_option *find_option(const char *name)
{
    for (size_t i = 0; i < ARRAY_COUNT(load_option_table); i++) {
        if (strcmp(load_option_table[i].name, name) == 0)
            return &load_option_table[i];
    }
    return NULL;
}

void load_options_parse(struct load_options *options, int count, char **arguments)
{
    for (int i = 0; i < count; i += 2) {
        const struct load_option *option = find_option(arguments[i]);

        if (!option)
            fail("unknown option '%s'; --help lists them", arguments[i]);
        if (i + 1 >= count || option->set(options, arguments[i + 1]) < 0)
            fail("%s wants %s", option->name, option->help);
    }
    if (!options->target.text)
        fail("--target is missing");
}

void load_options_help(void)
{
    for (size_t i = 0; i < ARRAY_COUNT(load_option_table); i++)
        printf("  %-14s %s\n", load_option_table[i].name, load_option_table[i].help);
}
