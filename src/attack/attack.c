#include "attack/attack.h"

#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/auto.h"
#include "base/number.h"

#define ATTEMPT_SECONDS 10

enum { EXIT_SUCCEEDED, EXIT_REFUSED, EXIT_IMPOSSIBLE };

static const struct attack *const tables[] = {
    attack_namespaces, attack_processes, attack_files, attack_sockets, attack_kernel,
};

int attack_impossible(const char *reason)
{
    (void) printf("impossible %s\n", reason);
    return ATTACK_IMPOSSIBLE;
}

const char *attack_target(const char *variable)
{
    const char *value = getenv(variable);

    return value ? value : "";
}

int attack_number(const char *variable)
{
    int64_t number = 0;

    (void) number_parse(attack_target(variable), 0, INT_MAX, &number);
    return (int) number;
}

static const struct attack *attack_find(const char *name)
{
    for (size_t i = 0; i < ARRAY_COUNT(tables); i++) {
        for (const struct attack *attack = tables[i]; attack->name; attack++) {
            if (strcmp(attack->name, name) == 0)
                return attack;
        }
    }
    return NULL;
}

static _Noreturn void attempt_and_exit(const struct attack *attack)
{
    int r;

    (void) alarm(ATTEMPT_SECONDS);
    r = attack->attempt();
    if (r == 0)
        (void) puts("succeeded");
    else if (r < 0)
        (void) printf("refused %s\n", strerrorname_np(-r));
    (void) fflush(stdout);
    _exit(r == 0 ? EXIT_SUCCEEDED : r < 0 ? EXIT_REFUSED : EXIT_IMPOSSIBLE);
}

static int attack_try(const char *name)
{
    const struct attack *attack = attack_find(name);
    int status = 0;
    pid_t pid;

    (void) printf("%s ", name);
    if (!attack) {
        (void) puts("unknown");
        return EXIT_IMPOSSIBLE;
    }
    (void) fflush(stdout);
    pid = fork();
    if (pid == 0)
        attempt_and_exit(attack);
    if (pid < 0 || waitpid(pid, &status, 0) < 0) {
        (void) puts("impossible fork");
        return EXIT_IMPOSSIBLE;
    }
    if (WIFEXITED(status))
        return WEXITSTATUS(status);
    (void) printf("refused SIG%s\n", sigabbrev_np(WTERMSIG(status)));
    return EXIT_REFUSED;
}

int attack_main(int argc, char **argv)
{
    int status = EXIT_IMPOSSIBLE;

    /* Run by an attempt, as a set-id program. */
    if (argc == 2 && strcmp(argv[1], "--am-i-root") == 0)
        return geteuid() == 0 ? 0 : 1;
    if (argc == 2 && strcmp(argv[1], "--list") == 0) {
        for (size_t i = 0; i < ARRAY_COUNT(tables); i++) {
            for (const struct attack *attack = tables[i]; attack->name; attack++)
                (void) puts(attack->name);
        }
        return 0;
    }
    for (int i = 1; i < argc; i++)
        status = attack_try(argv[i]);
    return status;
}
