/* The other user, who only does his work, and how long it takes him: to make a sandbox, run a command,
 * make a backup, and hear of an event. */
#pragma once

#include "cli/attack/drill.h"

enum drill_work { DRILL_CREATE, DRILL_EXEC, DRILL_BACKUP, DRILL_EVENT, DRILL_WORKS };

/* In milliseconds. */
struct drill_figures {
    double median[DRILL_WORKS], worst[DRILL_WORKS];
    char problem[160]; /* what he was refused; "": nothing */
};

struct drill_victim {
    struct drill_user user;
    char box[DRILL_NAME_SIZE];
    struct drill_call call;
    struct drill_talk stream; /* his events */
    unsigned int serial;
};

extern const char *const drill_work_names[DRILL_WORKS];

int drill_victim_make(struct drill *drill, struct drill_victim *ret_victim, struct error *err);
void drill_victim_done(struct drill_victim *victim);

/* Work, and measure. */
void drill_victim_measure(struct drill *drill, struct drill_victim *victim,
                          struct drill_figures *ret_figures);
