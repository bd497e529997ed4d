/* What every provider promises about disks: jobs on them, snapshots, forks, going back. Part of
 * provider_contract.h, which includes it. */
#pragma once

#include "provider/provider_testing.h"

static void disks_of_stopped_sandboxes_can_be_copied(void **state)
{
    struct contract *contract = *state;
    struct id id, copy = id_new();
    AUTO(close) int output = open("/dev/null", O_WRONLY | O_CLOEXEC);
    struct reply reply;

    needs(contract, PROVIDER_DISK_JOBS, "disk jobs");
    id = new_sandbox(contract);
    reply = ask_job(contract, &id, DISK_JOB_MEASURE, NULL, output);
    expect_code(&reply, ERR_CONFLICT);
    reply = ask_plain(contract, provider_stop, &id);
    expect_ok(&reply);
    reply = ask_job(contract, &id, DISK_JOB_MEASURE, NULL, output);
    expect_ok(&reply);
    assert_int_equal(reply.ending.kind, ENDED_STATUS);
    assert_int_equal(reply.ending.value, 0);
    reply = ask_job(contract, &id, DISK_JOB_COPY, NULL, output);
    expect_code(&reply, ERR_INVALID);
    reply = ask_job(contract, &id, DISK_JOB_COPY, &id, output);
    expect_code(&reply, ERR_CONFLICT);
    reply = ask_job(contract, &id, DISK_JOB_COPY, &copy, output);
    expect_ok(&reply);
    expect_state(contract, &copy, RUN_STATE_STOPPED);
    reply = ask_start(contract, &copy);
    expect_ok(&reply);
}

/* A job with everything that its kind needs, on disks of stopped sandboxes. */
static struct reply ask_whole_job(struct contract *contract, struct provider_disk_job job)
{
    AUTO(close) int null = open("/dev/null", O_RDWR | O_CLOEXEC);
    struct reply reply = {.times = 0};

    job.input = job.output = job.data = null;
    provider_run_disk_job(contract->provider, &job, on_job, &reply);
    await(contract, &reply);
    return reply;
}

static void jobs_have_just_what_they_speak_of(void **state)
{
    struct contract *contract = *state;
    struct disk_ref disk = {.set = DISK_OF_SANDBOX};
    struct id other = id_new();
    struct reply reply;

    needs(contract, PROVIDER_DISK_JOBS, "disk jobs");
    disk.id = new_sandbox(contract);
    reply = ask_plain(contract, provider_stop, &disk.id);
    expect_ok(&reply);
    {
        const struct provider_disk_job wrong[] = {
            {.kind = DISK_JOB_LIST},
            {.kind = DISK_JOB_LIST, .on.id.text = "../etc"},
            {.kind = DISK_JOB_LIST, .on = disk, .base = disk},
            {.kind = DISK_JOB_LIST, .on = disk, .target = other},
            {.kind = DISK_JOB_LIST, .on = disk, .image = "host"},
            {.kind = DISK_JOB_DIFF, .on = disk},
            {.kind = DISK_JOB_UNPACK},
            {.kind = DISK_JOB_UNPACK, .on = disk, .target = other},
            {.kind = DISK_JOB_UNARCHIVE, .on = disk},
            {.kind = DISK_JOB_SCAN, .on = disk, .image = "../etc"},
            {.kind = DISK_JOB_READ + 1, .on = disk},
        };

        for (size_t i = 0; i < ARRAY_COUNT(wrong); i++) {
            reply = ask_whole_job(contract, wrong[i]);
            expect_code(&reply, ERR_INVALID);
        }
    }
    reply = ask_job(contract, &disk.id, DISK_JOB_PACK, NULL, STDOUT_FILENO);
    expect_code(&reply, ERR_INVALID); /* where to? */
    reply = ask_whole_job(
        contract, (struct provider_disk_job){.kind = DISK_JOB_DIFF, .on = disk, .base.id = other});
    expect_code(&reply, ERR_NOT_FOUND);
    reply = ask_list(contract);
    assert_int_equal(reply.count, 1);
}

static void snapshots_are_made_listed_and_deleted(void **state)
{
    struct contract *contract = *state;
    struct id id, snapshots[] = {id_new(), id_new(), id_new()};
    struct id bad = {.text = "not an id"};
    struct reply reply;

    needs(contract, PROVIDER_SNAPSHOTS, "snapshots");
    id = new_sandbox(contract);
    reply = ask_snapshots(contract);
    expect_ok(&reply);
    assert_int_equal(reply.count, 0);
    reply = ask_snapshot(contract, &id, &bad, false);
    expect_code(&reply, ERR_INVALID);
    for (size_t i = 0; i < ARRAY_COUNT(snapshots); i++) {
        reply = ask_snapshot(contract, &id, &snapshots[i], i > 0);
        expect_ok(&reply);
        assert_true(reply.snapshot.took_us >= reply.snapshot.pause_us);
        expect_state(contract, &id, RUN_STATE_RUNNING);
    }
    reply = ask_snapshot(contract, &id, &snapshots[0], false);
    expect_code(&reply, ERR_CONFLICT);
    /* They outlive the sandbox. */
    reply = ask_plain(contract, provider_destroy, &id);
    expect_ok(&reply);
    reply = ask_snapshots(contract);
    assert_int_equal(reply.count, ARRAY_COUNT(snapshots));
    for (size_t i = 1; i < reply.count; i++)
        assert_true(strcmp(reply.ids[i - 1].text, reply.ids[i].text) < 0);
    reply = ask_usage(contract, DISK_OF_SNAPSHOT, &snapshots[0]);
    if (reply.failed)
        expect_code(&reply, ERR_NOT_IMPLEMENTED); /* nothing is counted here */
    for (int i = 0; i < 2; i++) {                 /* the second time it is not there */
        reply = ask_plain(contract, provider_delete_snapshot, &snapshots[0]);
        expect_ok(&reply);
        reply = ask_snapshots(contract);
        assert_int_equal(reply.count, 2);
    }
    reply = ask_usage(contract, DISK_OF_SNAPSHOT, &snapshots[0]);
    expect_code(&reply, ERR_NOT_FOUND);
    reply = ask_plain(contract, provider_delete_snapshot, &bad);
    expect_code(&reply, ERR_INVALID);
}

static void a_fork_stands_for_itself(void **state)
{
    struct contract *contract = *state;
    struct id id, snapshot = id_new(), unknown = id_new();
    struct id forks[] = {id_new(), id_new(), id_new()};
    struct disk_ref origins[ARRAY_COUNT(forks)];
    struct provider_spec spec;
    struct reply reply;

    needs(contract, PROVIDER_SNAPSHOTS, "snapshots");
    id = new_sandbox(contract);
    reply = ask_snapshot(contract, &id, &snapshot, false);
    expect_ok(&reply);
    origins[0] = (struct disk_ref){DISK_OF_SNAPSHOT, snapshot};
    origins[1] = (struct disk_ref){DISK_OF_SANDBOX, id};
    origins[2] = (struct disk_ref){DISK_OF_SANDBOX, forks[0]};
    for (size_t i = 0; i < ARRAY_COUNT(forks); i++) {
        spec = spec_of(contract, &forks[i]);
        spec.keep_id = false; /* an origin implies it */
        spec.origin = origins[i];
        spec.hold_origin = i == 2;
        reply = ask_create(contract, &spec);
        expect_ok(&reply);
        if (i < 2)
            assert_int_equal(reply.sandbox.pause_us, 0);
        assert_string_equal(reply.sandbox.id.text, forks[i].text);
        expect_state(contract, &forks[i], RUN_STATE_RUNNING);
    }
    reply = ask_create(contract, &spec);
    expect_code(&reply, ERR_CONFLICT);
    spec = spec_of(contract, &unknown);
    spec.origin = (struct disk_ref){DISK_OF_SNAPSHOT, id_new()};
    reply = ask_create(contract, &spec);
    expect_code(&reply, ERR_NOT_FOUND);
    spec.origin = (struct disk_ref){DISK_OF_SANDBOX, id_new()};
    reply = ask_create(contract, &spec);
    expect_code(&reply, ERR_NOT_FOUND);
    spec.origin.id = (struct id){.text = "not an id"};
    reply = ask_create(contract, &spec);
    expect_code(&reply, ERR_INVALID);
    reply = ask_plain(contract, provider_destroy, &id);
    expect_ok(&reply);
    reply = ask_plain(contract, provider_delete_snapshot, &snapshot);
    expect_ok(&reply);
    for (size_t i = 0; i < ARRAY_COUNT(forks); i++)
        expect_state(contract, &forks[i], RUN_STATE_RUNNING);
}

static void a_stopped_sandbox_goes_back(void **state)
{
    struct contract *contract = *state;
    struct id id, snapshot = id_new(), unknown = id_new();
    struct reply reply;

    needs(contract, PROVIDER_SNAPSHOTS, "snapshots");
    id = new_sandbox(contract);
    reply = ask_snapshot(contract, &id, &snapshot, true);
    expect_ok(&reply);
    reply = ask_roll_back(contract, &id, &snapshot);
    expect_code(&reply, ERR_CONFLICT);
    reply = ask_plain(contract, provider_stop, &id);
    expect_ok(&reply);
    reply = ask_roll_back(contract, &id, &unknown);
    expect_code(&reply, ERR_NOT_FOUND);
    reply = ask_roll_back(contract, &id, &snapshot);
    expect_ok(&reply);
    reply = ask_usage(contract, DISK_OF_SANDBOX, &id);
    if (reply.failed)
        expect_code(&reply, ERR_NOT_IMPLEMENTED);
    reply = ask_start(contract, &id);
    expect_ok(&reply);
    expect_state(contract, &id, RUN_STATE_RUNNING);
}

static void disks_can_be_synced(void **state)
{
    struct contract *contract = *state;
    struct reply replies[3] = {{.times = 0}};

    (void) new_sandbox(contract);
    provider_sync_disks(contract->provider, on_done, &replies[0]);
    provider_sync_contents(contract->provider, on_done, &replies[1]);
    provider_sync_disks(contract->provider, on_done, &replies[2]);
    for (size_t i = 0; i < ARRAY_COUNT(replies); i++)
        assert_int_equal(replies[i].times, 0);
    TURN_UNTIL(&contract->loop, replies[0].times && replies[1].times && replies[2].times);
    for (size_t i = 0; i < ARRAY_COUNT(replies); i++)
        expect_ok(&replies[i]);
}

/* Whatever the sandbox does meanwhile. */
static void jobs_work_on_snapshots(void **state)
{
    struct contract *contract = *state;
    struct disk_ref snapshot = {DISK_OF_SNAPSHOT, id_new()};
    struct disk_ref unknown = {DISK_OF_SNAPSHOT, id_new()};
    struct id id;
    struct reply reply;

    needs(contract, PROVIDER_DISK_JOBS, "disk jobs");
    needs(contract, PROVIDER_SNAPSHOTS, "snapshots");
    id = new_sandbox(contract);
    reply = ask_snapshot(contract, &id, &snapshot.id, false);
    expect_ok(&reply);
    reply =
        ask_whole_job(contract, (struct provider_disk_job){.kind = DISK_JOB_LIST, .on = snapshot});
    expect_ok(&reply);
    assert_int_equal(reply.ending.kind, ENDED_STATUS);
    assert_int_equal(reply.ending.value, 0);
    reply = ask_whole_job(contract, (struct provider_disk_job){
                                        .kind = DISK_JOB_PACK, .on = snapshot, .base = snapshot});
    expect_ok(&reply);
    assert_int_equal(reply.ending.value, 0);
    reply =
        ask_whole_job(contract, (struct provider_disk_job){.kind = DISK_JOB_LIST, .on = unknown});
    expect_code(&reply, ERR_NOT_FOUND);
    reply = ask_whole_job(contract, (struct provider_disk_job){
                                        .kind = DISK_JOB_DIFF, .on = snapshot, .base = unknown});
    expect_code(&reply, ERR_NOT_FOUND);
    expect_state(contract, &id, RUN_STATE_RUNNING);
}
