#include <stdio.h>
#include <string.h>

#include "cli/verb/verb_client.h"

#define PAGE_MAX ((size_t) 1024 * 1024)

static int print_usage(const struct verb_table *table, FILE *out, int status)
{
    AUTO(text) struct text usage = TEXT_INIT(PAGE_MAX);

    verb_write_usage(table, &usage);
    (void) fputs(text_string(&usage), out);
    return status;
}

static int print_help(const struct verb_table *table, const struct verb *verb)
{
    AUTO(text) struct text help = TEXT_INIT(PAGE_MAX);

    verb_write_help(table, verb, &help);
    (void) fputs(text_string(&help), stdout);
    return 0;
}

static int do_it(const struct verb *verb, struct verb_call *call)
{
    return verb->work ? verb_with_client(call, verb->work, VERB_STATUS_FAILURE) : verb->run(call);
}

static int main_run(const struct verb_table *table, const struct verb *verb, int argc, char **argv)
{
    struct error err = ERROR_INIT;
    struct verb_call call;
    int status;

    if (verb->run_plain)
        return verb->run_plain(argc, argv);
    if (verb_read(verb, argc, argv, &call, &err) < 0) {
        status = verb_complain(VERB_STATUS_USAGE, &err);
        (void) fprintf(stderr, "burrow: see %s %s --help\n", table->program, verb->name);
    } else {
        status = call.wants_help ? print_help(table, verb) : do_it(verb, &call);
    }
    verb_call_done(&call);
    /* What was printed may be all that was wanted: a full disk or a closed pipe is a failure. */
    return fflush(stdout) == 0 || status ? status : VERB_STATUS_FAILURE;
}

int verb_main(const struct verb_table *table, int argc, char **argv)
{
    const char *first = argc > 0 ? argv[0] : "";
    bool is_help = strcmp(first, "help") == 0;
    struct error err = ERROR_INIT;
    const struct verb *verb;
    int used;

    if (strcmp(first, "--help") == 0 || strcmp(first, "-h") == 0 || (is_help && argc == 1))
        return print_usage(table, stdout, 0);
    if (argc == 0)
        return print_usage(table, stderr, VERB_STATUS_USAGE);
    verb = verb_find(table, argc - is_help, argv + is_help, &used, &err);
    if (!verb)
        return verb_complain(VERB_STATUS_USAGE, &err);
    if (is_help && !verb->run_plain)
        return print_help(table, verb);
    if (is_help)
        return verb->run_plain(1, (char *[]){(char[]){"--help"}, NULL});
    return main_run(table, verb, argc - used, argv + used);
}
