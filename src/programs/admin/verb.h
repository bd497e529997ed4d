/* The verbs of burrow-admin (programs/root/root_verb.h). */
#pragma once

/* Print each feature and wall; 1 when sandboxes cannot run here. */
int verb_doctor(int argc, char **argv);

/* add NAME DIR, rm NAME, ls: folders that root registers by name; image: import, inspect and prune,
 * too. */
int verb_image(int argc, char **argv);
int verb_bind(int argc, char **argv);
