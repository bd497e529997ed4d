#include "programs/burrow/stored_state.h"

#include <stdio.h>

#include "base/auto.h"
#include "base/clock.h"
#include "sys/file/sys_file.h"

/* Nameless files between two steps, and of mounts that are being written to. */
#define SPOOL_FOLDER "spool"
#define PATH_SIZE    4096
#define MOUNT_CACHE  ((size_t) 256 * 1024 * 1024)
#define MOUNT_SPOOL  ((uint64_t) 64 * 1024 * 1024 * 1024)

static int stored_state_make_folder(struct data_folder *data, const struct settings *settings,
                                    char ret_path[static PATH_SIZE], struct error *err)
{
    int r = sys_file_make_directories(data->fd, SPOOL_FOLDER, 0700);

    if (r < 0)
        return error_set(err, error_code_from_errno(r), r, "make '%s/" SPOOL_FOLDER "'",
                         settings->data);
    (void) snprintf(ret_path, PATH_SIZE, "%s/" SPOOL_FOLDER, settings->data);
    return 0;
}

static int open_mounter(struct stored_state *state, struct loop *loop, struct log *log,
                        const struct settings *settings, const struct object_stores *stores,
                        const char *spool, struct shares *shares, struct error *err)
{
    const struct mount_host_options host = {.spool = spool,
                                            .spool_limit = MOUNT_SPOOL,
                                            .cache_limit = MOUNT_CACHE,
                                            .floor = settings->disk_floor,
                                            .shares = shares,
                                            .log = log,
                                            .clock = clock_system()};
    struct bucket_mounter_options options = {.loop = loop,
                                             .buckets = stores->buckets,
                                             .shares = shares,
                                             .rules = &state->rules,
                                             .log = log};

    state->mounts = mount_host_new(loop, &host, err);
    if (!state->mounts)
        return -1;
    options.host = state->mounts;
    state->mounter = bucket_mounter_new(&options);
    return 0;
}

int stored_state_open(struct stored_state *state, struct loop *loop, struct log *log,
                      const struct settings *settings, struct data_folder *data,
                      const struct object_stores *stores, struct provider *provider,
                      const struct inside *inside, struct shares *shares, struct error *err)
{
    char spool[PATH_SIZE];
    const struct mover_options mover = {.loop = loop,
                                        .provider = provider,
                                        .objects = stores->objects,
                                        .inside = inside,
                                        .shares = shares,
                                        .spool = spool,
                                        .log = log};

    *state = (struct stored_state){.mover = NULL};
    if (address_rules_allow_list(&state->rules, settings->mount_networks, err) < 0)
        return error_wrap(err, "mount-networks");
    if (!provider)
        return 0;
    if (stored_state_make_folder(data, settings, spool, err) < 0)
        return -1;
    state->mover = mover_new(&mover);
    return open_mounter(state, loop, log, settings, stores, spool, shares, err);
}

const struct vault *stored_state_vault(const struct stored_state *state)
{
    return state->mover ? mover_vault(state->mover) : NULL;
}

const struct mounter *stored_state_mounter(const struct stored_state *state)
{
    return state->mounter ? bucket_mounter_interface(state->mounter) : NULL;
}

static void mounter_stopped(void *context)
{
    struct stored_state *state = context;

    state->stopped(state->context);
}

static void mover_closed(void *context)
{
    struct stored_state *state = context;

    if (state->mounter)
        bucket_mounter_stop(state->mounter, mounter_stopped, state);
    else
        mounter_stopped(state);
}

void stored_state_stop(struct stored_state *state, void (*stopped)(void *context), void *context)
{
    state->stopped = stopped;
    state->context = context;
    if (state->mover)
        mover_close(state->mover, mover_closed, state);
    else
        mover_closed(state);
}

void stored_state_done(struct stored_state *state)
{
    bucket_mounter_free(TAKE_PTR(state->mounter));
    mount_host_free(TAKE_PTR(state->mounts));
    mover_free(TAKE_PTR(state->mover));
}
