#include "provider/provider_fake_job.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "sys/file/sys_file.h"

#define HEX_OF_NOTHING "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"

/* As the keeper tells of an empty disk. */
static const char *const outcomes[DISK_JOB_COUNT] = {
    [DISK_JOB_MEASURE] = "{\"files\":0,\"folders\":3,\"links\":0,\"others\":0,\"names\":3,"
                         "\"bytes\":0,\"allocated\":0}\n",
    [DISK_JOB_LIST] = "{\"entries\":0}\n",
    [DISK_JOB_COPY] = "{\"folders\":1,\"files\":0,\"links\":0,\"bytes\":0}\n",
    [DISK_JOB_DIFF] = "{\"diff\":{\"added\":0,\"changed\":0,\"removed\":0}}\n",
    [DISK_JOB_PACK] = "{\"layer\":{\"id\":\"" HEX_OF_NOTHING "\",\"size\":0,\"bytes\":0,"
                      "\"sha256\":\"" HEX_OF_NOTHING "\",\"files\":0,\"entries\":0,"
                      "\"removed\":0}}\n",
    [DISK_JOB_UNPACK] = "{\"layer\":{\"id\":\"" HEX_OF_NOTHING "\",\"size\":0,\"bytes\":0,"
                        "\"sha256\":\"" HEX_OF_NOTHING "\",\"files\":0,\"entries\":0,"
                        "\"removed\":0}}\n",
    [DISK_JOB_ARCHIVE] = "{\"archived\":{\"files\":0,\"folders\":1,\"bytes\":0,\"size\":0,"
                         "\"sha256\":\"" HEX_OF_NOTHING "\"}}\n",
    [DISK_JOB_UNARCHIVE] = "{\"unpacked\":{\"files\":0,\"folders\":1,\"bytes\":0}}\n",
    [DISK_JOB_SCAN] = "{\"scanned\":{\"files\":0,\"folders\":0,\"links\":0,\"others\":0,"
                      "\"bytes\":0,\"skipped\":0,\"too_long\":0}}\n",
    [DISK_JOB_READ] = "{\"read\":{\"files\":0,\"missing\":0,\"bytes\":0}}\n",
};

void fake_jobs_done(struct fake_jobs *jobs)
{
    for (size_t i = 0; i < DISK_JOB_COUNT; i++) {
        free(jobs->kinds[i].report);
        free(jobs->kinds[i].data);
    }
    *jobs = (struct fake_jobs){.kinds[0].size = 0};
}

void fake_jobs_set(struct fake_jobs *jobs, enum disk_job_kind kind,
                   const struct provider_fake_job *job)
{
    free(jobs->kinds[kind].report);
    free(jobs->kinds[kind].data);
    jobs->kinds[kind].report = job->report ? mem_copy_text(job->report) : NULL;
    jobs->kinds[kind].data = job->size ? mem_copy_bytes(job->data, job->size) : NULL;
    jobs->kinds[kind].size = job->size;
    jobs->kinds[kind].failure = job->failure;
}

/* Nobody there to read is no fault of ours. */
static void put(int fd, const char *bytes, size_t length)
{
    if (fd >= 0 && length)
        (void) sys_file_write_full(fd, bytes, length);
}

struct ending fake_jobs_run(const struct fake_jobs *jobs, const struct provider_disk_job *job)
{
    const char *report = jobs->kinds[job->kind].report ?: outcomes[job->kind];
    enum err_code failure = jobs->kinds[job->kind].failure;
    char line[256];

    put(job->data, jobs->kinds[job->kind].data, jobs->kinds[job->kind].size);
    if (failure != ERR_NONE) {
        (void) snprintf(line, sizeof(line),
                        "{\"error\":{\"code\":\"%s\",\"message\":\"the job fails, as it was told "
                        "to\",\"errno\":0}}\n",
                        error_code_text(failure));
        report = line;
    }
    put(job->output, report, strlen(report));
    return (struct ending){.kind = ENDED_STATUS, .value = failure != ERR_NONE};
}
