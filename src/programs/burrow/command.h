/* The verbs of the burrow program: one row each in main.c, one file each. */
#pragma once

struct command {
    const char *name;
    const char *summary;
    /* `argv` are the words behind the verb. Returns the exit status. */
    int (*run)(int argc, char **argv);
};

int command_run(int argc, char **argv);
int command_serve(int argc, char **argv);
int command_settings(int argc, char **argv);
