/* What can be asked about one sandbox; a life is a row of such steps. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "load/api_connection.h"

struct api_step {
    const char *name;
    const char *help;
    const char *method;
    const char *path;   /* "%s": the name of the sandbox */
    const char *body;   /* the same; "" for none */
    const char *expect; /* what a good answer contains besides its status; NULL: nothing */
};

/* NULL: there is none of that name. */
const struct api_step *api_step_find(const char *name);

/* Ask it about the sandbox with this number. */
void api_step_begin(const struct api_step *step, uint64_t number, struct api_connection *connection,
                    const struct api_server *server);

/* Ends the program when the answer is not the one that was hoped for. */
void api_step_check(const struct api_step *step, const struct api_connection *connection);

/* The lines of the help text, to stdout. */
void api_steps_help(void);
