#include "programs/root/root_verb.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "sys/process/sys_signal.h"
#include "sys/sys_feature.h"

static void print_usage(const char *program, const struct root_verb *verbs, size_t count, FILE *out)
{
    (void) fprintf(out, "usage: %s VERB [...]\n\n", program);
    for (size_t i = 0; i < count; i++)
        (void) fprintf(out, "  %-10s %s\n", verbs[i].name, verbs[i].summary);
    (void) fprintf(out, "\n%s VERB --help tells more.\n", program);
}

bool root_verb_is_allowed(const char *verb)
{
    if (geteuid() == 0)
        return true;
    (void) fprintf(stderr, "burrow %s: needs root: run it with sudo\n", verb);
    return false;
}

static int prepare_process(const char *program)
{
    char unknown[SYS_FEATURE_NAME_MAX];

    (void) sys_signal_ignore(SIGPIPE);
    if (sys_feature_init(getenv(SYS_FEATURE_VARIABLE), unknown) == 0)
        return 0;
    (void) fprintf(stderr, "%s: " SYS_FEATURE_VARIABLE ": there is no feature '%s'\n", program,
                   unknown);
    return -1;
}

int root_verb_main(const char *program, const struct root_verb *verbs, size_t count, int argc,
                   char **argv)
{
    const char *name = argc > 1 ? argv[1] : "";

    if (prepare_process(program) < 0)
        return ROOT_VERB_REFUSED;
    if (strcmp(name, "--version") == 0) {
        (void) printf("%s " BURROW_VERSION "\n", program);
        return 0;
    }
    if (strcmp(name, "--help") == 0 || strcmp(name, "-h") == 0) {
        print_usage(program, verbs, count, stdout);
        return 0;
    }
    for (size_t i = 0; i < count; i++) {
        if (strcmp(verbs[i].name, name) == 0)
            return verbs[i].run(argc - 1, argv + 1);
    }
    if (*name)
        (void) fprintf(stderr, "%s: there is no verb '%s'\n", program, name);
    print_usage(program, verbs, count, stderr);
    return ROOT_VERB_REFUSED;
}
