/* What sandbox-load can be told to do; each prints one line of JSON. */
#pragma once

#include "load/sandbox_session.h"

struct sandbox_crowd;

/* `numbers`: what stood behind the command's name. */
struct sandbox_command {
    const char *name;
    size_t number_count;
    const char *help;
    void (*run)(struct sandbox_session *session, struct sandbox_crowd *crowd,
                const uint64_t *numbers);
};

#define SANDBOX_COMMAND_NUMBERS 2

/* NULL: there is none of that name. */
const struct sandbox_command *sandbox_command_find(const char *name);

void sandbox_commands_help(void);

/* Sandboxes that stay, doing nothing. */
struct sandbox_crowd *sandbox_crowd_new(void);
void sandbox_crowd_free(struct sandbox_crowd *crowd);
