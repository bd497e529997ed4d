#include "model/state.h"

#include <errno.h>
#include <string.h>

#include "base/auto.h"

#define GO      SANDBOX_GO
#define ALREADY SANDBOX_ALREADY
#define WAIT    SANDBOX_WAIT
#define REFUSE  SANDBOX_REFUSE

struct state {
    const char *text;
    enum sandbox_verdict verdicts[SANDBOX_ACTION_COUNT];
    const char *advice; /* for what is refused; NULL where nothing is */
};

/* Columns: use, start, stop, sleep, wake, update, destroy, snapshot, roll back. A stop of one that
 * ended by itself is no "already": from then on a use does not start it again. */
static const struct state states[SANDBOX_STATUS_COUNT] = {
    [SANDBOX_CREATING] = {"creating", {WAIT, WAIT, WAIT, WAIT, WAIT, WAIT, WAIT, WAIT, WAIT}, NULL},
    [SANDBOX_STARTING] = {"starting", {WAIT, WAIT, WAIT, WAIT, WAIT, WAIT, WAIT, WAIT, WAIT}, NULL},
    [SANDBOX_RUNNING] = {"running", {ALREADY, ALREADY, GO, GO, ALREADY, GO, GO, GO, GO}, NULL},
    [SANDBOX_FROZEN] = {"frozen", {GO, GO, GO, ALREADY, GO, GO, GO, GO, GO}, NULL},
    [SANDBOX_HIBERNATED] = {"hibernated", {GO, GO, GO, ALREADY, GO, GO, GO, GO, GO}, NULL},
    [SANDBOX_WAKING] = {"waking", {WAIT, WAIT, WAIT, WAIT, WAIT, WAIT, WAIT, WAIT, WAIT}, NULL},
    [SANDBOX_STOPPING] = {"stopping", {WAIT, WAIT, WAIT, WAIT, WAIT, WAIT, WAIT, WAIT, WAIT}, NULL},
    [SANDBOX_STOPPED] = {"stopped", {GO, GO, GO, REFUSE, GO, GO, GO, GO, GO}, "start it first"},
    [SANDBOX_ERROR] = {"error",
                       {REFUSE, REFUSE, REFUSE, REFUSE, REFUSE, REFUSE, GO, REFUSE, REFUSE},
                       "destroy it and create another"},
    [SANDBOX_DESTROYED] = {"destroyed",
                           {REFUSE, REFUSE, REFUSE, REFUSE, REFUSE, REFUSE, ALREADY, REFUSE,
                            REFUSE},
                           "create another"},
    [SANDBOX_UNKNOWN] = {"unknown",
                         {REFUSE, REFUSE, REFUSE, REFUSE, REFUSE, REFUSE, GO, REFUSE, REFUSE},
                         "try again later, or destroy it"},
};

enum sandbox_verdict sandbox_verdict(enum sandbox_status status, enum sandbox_action action)
{
    return states[status].verdicts[action];
}

const char *sandbox_advice(enum sandbox_status status, enum sandbox_action action)
{
    const char *advice = states[status].advice;

    return advice && sandbox_verdict(status, action) == REFUSE ? advice : "try again";
}

const char *sandbox_status_text(enum sandbox_status status)
{
    return status < SANDBOX_STATUS_COUNT ? states[status].text : "unknown";
}

int sandbox_status_from_text(const char *text, enum sandbox_status *ret_status)
{
    for (size_t i = 0; i < ARRAY_COUNT(states); i++)
        if (strcmp(states[i].text, text) == 0) {
            *ret_status = (enum sandbox_status) i;
            return 0;
        }
    return -EINVAL;
}

bool sandbox_status_is_asleep(enum sandbox_status status)
{
    return status == SANDBOX_FROZEN || status == SANDBOX_HIBERNATED;
}

bool sandbox_status_is_busy(enum sandbox_status status)
{
    return status == SANDBOX_CREATING || status == SANDBOX_STARTING || status == SANDBOX_WAKING ||
           status == SANDBOX_STOPPING;
}

static const struct {
    const char *text;
    enum run_state shown;
} run_states[RUN_STATE_COUNT] = {
    [RUN_STATE_POOLED] = {"in the warm pool", RUN_STATE_POOLED},
    [RUN_STATE_RUNNING] = {"running", RUN_STATE_RUNNING},
    [RUN_STATE_FROZEN] = {"frozen", RUN_STATE_FROZEN},
    [RUN_STATE_STOPPING] = {"being stopped", RUN_STATE_STOPPING},
    [RUN_STATE_STOPPED] = {"stopped", RUN_STATE_STOPPED},
    [RUN_STATE_BROKEN] = {"broken", RUN_STATE_BROKEN},
    [RUN_STATE_ABSENT] = {"absent", RUN_STATE_ABSENT},
    [RUN_STATE_CREATING] = {"being created", RUN_STATE_CREATING},
    [RUN_STATE_STARTING] = {"being started", RUN_STATE_STOPPED},
    [RUN_STATE_DESTROYING] = {"being destroyed", RUN_STATE_STOPPING},
};

const char *run_state_text(enum run_state state)
{
    return run_states[state].text;
}

enum run_state run_state_shown(enum run_state state)
{
    return run_states[state].shown;
}
