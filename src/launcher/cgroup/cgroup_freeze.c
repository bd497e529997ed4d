#include "launcher/cgroup/cgroup_freeze.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <string.h>

#include "launcher/cgroup/cgroup_file.h"
#include "launcher/cgroup/cgroup_internal.h"
#include "sys/file/sys_file.h"

/* How the two versions say it. */
static const struct {
    const char *file;
    const char *freeze;
    const char *thaw;
} words[] = {
    [CGROUP_V1] = {"freezer.state", "FROZEN", "THAWED"},
    [CGROUP_V2] = {"cgroup.freeze", "1", "0"},
};

/* The hierarchy to freeze `part` in, or NULL with `err` filled. */
static const struct cgroup_hierarchy *freezer(const struct cgroup *cgroup, enum cgroup_part part,
                                              struct error *err)
{
    const struct cgroup_hierarchy *hierarchy = cgroup_serving(cgroup->host, CGROUP_FREEZER);

    if (!hierarchy)
        (void) error_set(err, ERR_NOT_IMPLEMENTED, EOPNOTSUPP, "no freezer on this host");
    if (hierarchy && part == CGROUP_WORK && !(hierarchy->leaves & CGROUP_BIT(CGROUP_WORK))) {
        (void) error_set(err, ERR_NOT_IMPLEMENTED, EOPNOTSUPP,
                         "on this host only a whole sandbox can be frozen");
        return NULL;
    }
    if (part != CGROUP_AGENT)
        return hierarchy;
    (void) error_set(err, ERR_INVALID, 0, "the agent cannot be frozen alone");
    return NULL;
}

static int fail(const struct cgroup *cgroup, int result, const char *doing, struct error *err)
{
    return error_set(err, cgroup_error_code(result), result, "%s %s", doing, cgroup->id.text);
}

int cgroup_freeze(const struct cgroup *cgroup, enum cgroup_part part, struct error *err)
{
    const struct cgroup_hierarchy *hierarchy = freezer(cgroup, part, err);
    int result;

    if (!hierarchy)
        return -1;
    result = cgroup_write(hierarchy, cgroup, part, words[hierarchy->version].file,
                          words[hierarchy->version].freeze);
    return result < 0 ? fail(cgroup, result, "freeze", err) : 0;
}

int cgroup_thaw(const struct cgroup *cgroup, enum cgroup_part part, struct error *err)
{
    const struct cgroup_hierarchy *hierarchy = freezer(cgroup, part, err);
    int result;

    if (!hierarchy)
        return -1;
    result = cgroup_write(hierarchy, cgroup, part, words[hierarchy->version].file,
                          words[hierarchy->version].thaw);
    return result < 0 ? fail(cgroup, result, "thaw", err) : 0;
}

/* THAWED, FREEZING or FROZEN: reading makes the kernel count again. */
static int v1_state(const struct cgroup_hierarchy *hierarchy, const struct cgroup *cgroup,
                    enum cgroup_part part, struct cgroup_freeze_state *ret_state)
{
    char path[CGROUP_FILE_PATH_SIZE], text[32];
    uint64_t asked = 0;
    int result = cgroup_read_number(hierarchy, cgroup, part, "freezer.self_freezing", &asked);

    if (result < 0)
        return result;
    cgroup_path(hierarchy, cgroup, part, "freezer.state", path);
    result = cgroup_file_read(hierarchy->base, path, text, sizeof(text));
    if (result < 0)
        return result;
    ret_state->asked = asked != 0;
    ret_state->frozen = strcmp(text, "FROZEN\n") == 0;
    return 0;
}

static int v2_state(const struct cgroup_hierarchy *hierarchy, const struct cgroup *cgroup,
                    enum cgroup_part part, struct cgroup_freeze_state *ret_state)
{
    uint64_t asked = 0, frozen = 0;
    int result = cgroup_read_number(hierarchy, cgroup, part, "cgroup.freeze", &asked);

    if (result == 0)
        result = cgroup_read_field(hierarchy, cgroup, part, "cgroup.events", "frozen", &frozen);
    if (result < 0)
        return result;
    ret_state->asked = asked != 0;
    ret_state->frozen = frozen != 0;
    return 0;
}

static int read_state(const struct cgroup_hierarchy *hierarchy, const struct cgroup *cgroup,
                      enum cgroup_part part, struct cgroup_freeze_state *ret_state)
{
    return hierarchy->version == CGROUP_V2 ? v2_state(hierarchy, cgroup, part, ret_state)
                                           : v1_state(hierarchy, cgroup, part, ret_state);
}

int cgroup_freeze_state(const struct cgroup *cgroup, enum cgroup_part part,
                        struct cgroup_freeze_state *ret_state, struct error *err)
{
    const struct cgroup_hierarchy *hierarchy = freezer(cgroup, part, err);
    int result;

    if (!hierarchy)
        return -1;
    result = read_state(hierarchy, cgroup, part, ret_state);
    return result < 0 ? fail(cgroup, result, "read the freezer of", err) : 0;
}

/* Ask again and again: all that v1 offers. */
static int v1_wait(const struct cgroup_hierarchy *hierarchy, const struct cgroup *cgroup,
                   enum cgroup_part part, uint64_t deadline)
{
    for (;;) {
        struct cgroup_freeze_state state;
        int result = v1_state(hierarchy, cgroup, part, &state);

        if (result < 0 || state.frozen)
            return result;
        if (cgroup_time_left_ms(cgroup->host, deadline) == 0)
            return -ETIMEDOUT;
        cgroup_pause();
    }
}

/* An event comes with every change of the file; reading it first arms the next one. */
static int v2_wait(const struct cgroup_hierarchy *hierarchy, const struct cgroup *cgroup,
                   enum cgroup_part part, uint64_t deadline)
{
    char path[CGROUP_FILE_PATH_SIZE];
    AUTO(close) int events = -EBADF;

    cgroup_path(hierarchy, cgroup, part, "cgroup.events", path);
    events = sys_file_open(hierarchy->base, path, O_RDONLY, 0);
    if (events < 0)
        return events;
    for (;;) {
        char text[128] = "";
        uint64_t frozen = 0;
        int left = cgroup_time_left_ms(cgroup->host, deadline);
        ssize_t length = sys_file_pread_full(events, text, sizeof(text) - 1, 0);
        int result = length < 0 ? (int) length : cgroup_file_find_field(text, "frozen", &frozen);

        if (result < 0 || frozen)
            return result;
        if (left == 0)
            return -ETIMEDOUT;
        result = sys_file_poll(events, POLLPRI, left);
        if (result < 0)
            return result;
    }
}

int cgroup_freeze_wait(const struct cgroup *cgroup, enum cgroup_part part, int timeout_ms,
                       struct error *err)
{
    const struct cgroup_hierarchy *hierarchy = freezer(cgroup, part, err);
    uint64_t deadline = cgroup_deadline(cgroup->host, timeout_ms);
    int result;

    if (!hierarchy)
        return -1;
    result = hierarchy->version == CGROUP_V2 ? v2_wait(hierarchy, cgroup, part, deadline)
                                             : v1_wait(hierarchy, cgroup, part, deadline);
    if (result == -ETIMEDOUT)
        return error_set(err, ERR_UNAVAILABLE, result, "wait until %s is frozen", cgroup->id.text);
    return result < 0 ? fail(cgroup, result, "wait for the freezer of", err) : 0;
}
