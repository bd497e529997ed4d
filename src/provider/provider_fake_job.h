/* Inside of the provider `fake`: what its disk jobs write. */
#pragma once

#include "provider/provider_fake.h"

/* What tests want of each kind. Zeroed: nothing special. */
struct fake_jobs {
    struct {
        char *report; /* owned, may be NULL */
        char *data;   /* owned, may be NULL */
        size_t size;
        enum err_code failure;
    } kinds[DISK_JOB_COUNT];
};

void fake_jobs_done(struct fake_jobs *jobs);

void fake_jobs_set(struct fake_jobs *jobs, enum disk_job_kind kind,
                   const struct provider_fake_job *job);

/* Write what this job writes. Returns how it ended. */
struct ending fake_jobs_run(const struct fake_jobs *jobs, const struct provider_disk_job *job);
