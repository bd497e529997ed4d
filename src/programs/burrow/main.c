/* burrow: the daemon and the command line in one program. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>

#include "base/auto.h"
#include "programs/burrow/command.h"
#include "programs/burrow/launcher_exec.h"
#include "sys/sys_feature.h"
#include "sys/sys_signal.h"

static int command_version(int argc, char **argv)
{
    (void) argc;
    (void) argv;
    (void) puts("burrow " BURROW_VERSION);
    return 0;
}

static int command_bind(int argc, char **argv)
{
    return launcher_exec_verb("bind", argc, argv);
}

static int command_doctor(int argc, char **argv)
{
    return launcher_exec_verb("doctor", argc, argv);
}

static int command_image(int argc, char **argv)
{
    return launcher_exec_verb("image", argc, argv);
}

static const struct command commands[] = {
    {"bind", "Register folders that sandboxes may be shown, read-only", command_bind},
    {"doctor", "Print what this machine has of what sandboxes need", command_doctor},
    {"image", "Register folders that sandboxes start from", command_image},
    {"run", "Run one command in a fresh sandbox", command_run},
    {"serve", "Run the daemon", command_serve},
    {"settings", "Print all settings of the daemon as a Markdown page", command_settings},
    {"version", "Print the version", command_version},
};

static void print_usage(FILE *out)
{
    (void) fprintf(out, "usage: burrow VERB [...]\n\n");
    for (size_t i = 0; i < ARRAY_COUNT(commands); i++)
        (void) fprintf(out, "  %-10s %s\n", commands[i].name, commands[i].summary);
    (void) fprintf(out, "\nburrow VERB --help tells more.\n");
}

/* What concerns the process as a whole, before anything starts a thread. */
static int prepare_process(void)
{
    char unknown[SYS_FEATURE_NAME_MAX];

    (void) prctl(PR_SET_NAME,
                 "burrow");            /* a launcher starts us by descriptor: ps would show that */
    (void) sys_signal_ignore(SIGPIPE); /* OpenSSL writes without MSG_NOSIGNAL */
    if (sys_feature_init(getenv(SYS_FEATURE_VARIABLE), unknown) == 0)
        return 0;
    (void) fprintf(stderr, "burrow: " SYS_FEATURE_VARIABLE ": there is no feature '%s'\n", unknown);
    return -1;
}

int main(int argc, char **argv)
{
    const char *verb = argc > 1 ? argv[1] : "";

    if (prepare_process() < 0)
        return 2;

    if (strcmp(verb, "--help") == 0 || strcmp(verb, "-h") == 0 || strcmp(verb, "help") == 0) {
        print_usage(stdout);
        return 0;
    }
    if (strcmp(verb, "--version") == 0)
        verb = "version";
    for (size_t i = 0; i < ARRAY_COUNT(commands); i++) {
        if (strcmp(commands[i].name, verb) == 0)
            return commands[i].run(argc - 2, argv + 2);
    }
    if (*verb)
        (void) fprintf(stderr, "burrow: there is no verb '%s'\n", verb);
    print_usage(stderr);
    return 2;
}
