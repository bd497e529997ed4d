#include "load/sandbox_commands.h"

#include <stdio.h>
#include <string.h>

#include "base/auto.h"
#include "load/sandbox_runs.h"

static const struct sandbox_command commands[] = {
    {"cold", 1, "COUNT: create, /bin/true, destroy; one after the other", sandbox_run_cold},
    {"exec", 1, "COUNT: /bin/true in one running sandbox", sandbox_run_exec},
    {"pooled", 2, "COUNT RATE: from the call to the end of /bin/true, at RATE per second",
     sandbox_run_pooled},
    {"sustained", 2, "SECONDS WORKERS: as cold, side by side, as many as there can be",
     sandbox_run_sustained},
    {"idle", 1, "COUNT: let so many be, beside what other commands make", sandbox_run_idle},
};

const struct sandbox_command *sandbox_command_find(const char *name)
{
    for (size_t i = 0; i < ARRAY_COUNT(commands); i++) {
        if (strcmp(commands[i].name, name) == 0)
            return &commands[i];
    }
    return NULL;
}

void sandbox_commands_help(void)
{
    for (size_t i = 0; i < ARRAY_COUNT(commands); i++)
        printf("  %-10s %s\n", commands[i].name, commands[i].help);
}
