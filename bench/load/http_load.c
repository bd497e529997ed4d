/* http-load: the HTTP load that wrk cannot make. Prints one JSON object per line.
 *
 *     http-load download --target 127.0.0.1:8080 --path /64mb --connections 4 --time 2s
 *     http-load idle --target 127.0.0.1:8080 --path /json --connections 10000 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "base/auto.h"
#include "load/fail.h"
#include "load/idle.h"
#include "load/options.h"
#include "load/slow.h"
#include "load/transfer.h"

static const struct mode {
    const char *name;
    const char *help;
    void (*run)(const struct load_options *options);
} modes[] = {
    {"idle", "hold connections after one request each, until stdin ends", idle_run},
    {"download", "GET large bodies and drop them", transfer_download},
    {"upload", "PUT bodies of --bytes bytes", transfer_upload},
    {"slow", "latency of a fast client beside --connections slow ones", slow_run},
};

static void raise_file_limit(void)
{
    struct rlimit limit;

    if (getrlimit(RLIMIT_NOFILE, &limit) < 0)
        fail("read the limit of open files: %s", strerror(errno));
    limit.rlim_cur = limit.rlim_max;
    /* When it stays low, the connection that does not fit says so. */
    (void) setrlimit(RLIMIT_NOFILE, &limit);
}

static void help(void)
{
    printf("usage: http-load MODE --target ADDR:PORT [options]\n\nmodes:\n");
    for (size_t i = 0; i < ARRAY_COUNT(modes); i++)
        printf("  %-14s %s\n", modes[i].name, modes[i].help);
    printf("\noptions:\n");
    load_options_help();
}

int main(int argc, char **argv)
{
    struct load_options options = {
        .path = "/", .connections = 4, .bytes = 64ull << 20, .milliseconds = 2000};

    if (argc < 2 || strcmp(argv[1], "--help") == 0) {
        help();
        return argc < 2 ? EXIT_FAILURE : EXIT_SUCCESS;
    }
    raise_file_limit();
    for (size_t i = 0; i < ARRAY_COUNT(modes); i++) {
        if (strcmp(modes[i].name, argv[1]) == 0) {
            load_options_parse(&options, argc - 2, argv + 2);
            modes[i].run(&options);
            return EXIT_SUCCESS;
        }
    }
    fail("unknown mode '%s'; --help lists them", argv[1]);
}
