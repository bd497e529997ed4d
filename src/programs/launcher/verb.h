/* The verbs of burrow-launcher (programs/root/root_verb.h). */
#pragma once

/* serve and once: the launcher itself. */
int verb_launch(int argc, char **argv);

/* Be there, in the unit of the sandboxes, until systemd ends it. */
int verb_hold(int argc, char **argv);
