/* The verbs of the burrow program that are no clients of its API. `argv` are the words behind the
 * verb; they return the exit status. */
#pragma once

#include "cli/verb/verb.h"

int command_image(int argc, char **argv);
int command_run(int argc, char **argv);
int command_serve(int argc, char **argv);
int command_settings(int argc, char **argv);

extern const struct verb verb_db_check;
extern const struct verb verb_db_rotate_keys;
