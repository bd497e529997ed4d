/* Options that say what a sandbox shall be, for the verbs that have them: create, fork, template.
 *
 *     static const struct verb_option options[] = {VERB_SPEC_OPTIONS, {NULL, 0, NULL, NULL,
 * false}};
 */
#pragma once

#include <jansson.h>

#include "base/error.h"
#include "cli/verb/verb.h"

/* What may also be changed later. */
#define VERB_CHANGE_OPTIONS                                                                        \
    {"memory", 'm', "SIZE", "memory of all processes together: 512M, 2G", false},                  \
        {"cpus", 0, "NUMBER", "CPU time, 0.5 is half of one", false},                              \
        {"pids", 0, "NUMBER", "processes and threads", false},                                     \
        {"disk", 0, "SIZE", "what may be written", false},                                         \
        {"env", 'e', "NAME=TEXT", "a variable for everything in it; NAME alone takes ours", true}, \
        {"label", 'l', "NAME=TEXT", "a label, for `burrow ls --label`", true},                     \
        {"sleep-after", 0, "TIME", "sleep after so long without work: 30s, 10m", false},           \
        {"keep-alive", 0, NULL, "never sleep by itself", false},                                   \
        {"sync", 0, NULL, "mirror its working folder before it sleeps without memory", false},     \
        {"freeze-for", 0, "TIME", "push its memory to swap after sleeping so long; 0 never",       \
         false},                                                                                   \
        {"hibernate-after", 0, "TIME", "end its processes after sleeping so long; 0 never",        \
         false},                                                                                   \
        {"offload-after", 0, "TIME", "move its disk to the object store after that; 0 never",      \
         false},                                                                                   \
        {"startup", 0, "COMMAND", "start this with its processes, each time", true},               \
        {"max-runtime", 0, "TIME", "stop it after running so long at a stretch", false},           \
        {"lifetime", 0, "TIME", "destroy it after so long", false},                                \
        {"snapshot-every", 0, "TIME", "make a snapshot of it by itself, while it runs", false},    \
        {"snapshot-keep", 0, "NUMBER", "keep so many of those", false},                            \
    {                                                                                              \
        "snapshot-keep-for", 0, "TIME", "keep each of those so long", false                        \
    }

#define VERB_SPEC_OPTIONS                                                                          \
    {"image", 0, "NAME", "root filesystem: host, or one of `burrow image ls`", false},             \
        VERB_CHANGE_OPTIONS,                                                                       \
        {"net", 0, "none|nat", "loopback only, or out through the machine", false},                \
    {                                                                                              \
        "bind-ro", 0, "NAME:PLACE", "show a folder of `burrow bind ls` there, read-only", true     \
    }

/* Put into `body` what the options of a call say. Return 0, or -1 with ERR_INVALID. */
int verb_add_changes(const struct verb_call *call, json_t *body, struct error *err);
int verb_add_spec(const struct verb_call *call, json_t *body, struct error *err);
