/* Environments: NULL-terminated arrays of "NAME=text", and changes to them.
 *
 * The strings of a merged environment are its own; the arrays are freed with environment_free. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

struct environment_change {
    const char *name;
    const char *text; /* NULL: take the variable away */
};

/* The value of a variable, borrowed, or NULL. */
const char *environment_get(const char *const *environment, const char *name);

/* A copy with the changes applied in order: variables that exist keep their place, new ones come
 * last. A changed variable is there once, however often `environment` names it. */
const char **environment_merge(const char *const *environment,
                               const struct environment_change *changes, size_t count);

/* Accepts NULL. */
void environment_free(const char **environment);

/* Whether `name` may be the name of a variable: [A-Za-z_][A-Za-z0-9_]*. */
bool environment_is_name(const char *name);

/* What every command of the sandbox finds, made from the agent's own environment: PATH, HOME,
 * LANG and LC_ALL get a value when they have none, the agent's own settings (BURROW_*) are left
 * out. `home` is the home directory of the agent's user. Free with environment_free. */
const char **environment_for_commands(const char *const *own, const char *home);
