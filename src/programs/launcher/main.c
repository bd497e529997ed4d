/* burrow-launcher: everything of burrow that needs root. Wiring only. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/auto.h"
#include "programs/launcher/verb.h"
#include "sys/process/sys_signal.h"
#include "sys/sys_feature.h"

static const struct verb verbs[] = {
    {"bind", "Register folders that sandboxes may be shown, read-only", verb_bind},
    {"doctor", "Print what this machine has of what sandboxes need", verb_doctor},
    {"hold", "Keep the systemd unit that sandboxes live in", verb_hold},
    {"image", "Register folders that sandboxes start from", verb_image},
    {"once", "Serve one conversation on a given socket", verb_launch},
    {"serve", "Start the daemon, and sandboxes for it", verb_launch},
};

static void print_usage(FILE *out)
{
    (void) fprintf(out, "usage: burrow-launcher VERB [...]\n\n");
    for (size_t i = 0; i < ARRAY_COUNT(verbs); i++)
        (void) fprintf(out, "  %-10s %s\n", verbs[i].name, verbs[i].summary);
    (void) fprintf(out, "\nburrow-launcher VERB --help tells more.\n");
}

bool verb_is_root(const char *verb)
{
    if (geteuid() == 0)
        return true;
    (void) fprintf(stderr, "burrow %s: needs root: run it with sudo\n", verb);
    return false;
}

static int prepare_process(void)
{
    char unknown[SYS_FEATURE_NAME_MAX];

    (void) sys_signal_ignore(SIGPIPE);
    if (sys_feature_init(getenv(SYS_FEATURE_VARIABLE), unknown) == 0)
        return 0;
    (void) fprintf(stderr, "burrow-launcher: " SYS_FEATURE_VARIABLE ": there is no feature '%s'\n",
                   unknown);
    return -1;
}

int main(int argc, char **argv)
{
    const char *name = argc > 1 ? argv[1] : "";

    if (prepare_process() < 0)
        return VERB_REFUSED;
    if (strcmp(name, "--version") == 0) {
        (void) puts("burrow-launcher " BURROW_VERSION);
        return 0;
    }
    if (strcmp(name, "--help") == 0 || strcmp(name, "-h") == 0) {
        print_usage(stdout);
        return 0;
    }
    for (size_t i = 0; i < ARRAY_COUNT(verbs); i++) {
        if (strcmp(verbs[i].name, name) == 0)
            return verbs[i].run(argc - 1, argv + 1);
    }
    if (*name)
        (void) fprintf(stderr, "burrow-launcher: there is no verb '%s'\n", name);
    print_usage(stderr);
    return VERB_REFUSED;
}
