/* Disk jobs: what each kind is given, checked once for all providers. */
#include "provider/provider_internal.h"
#include "wire/wire_text.h"

static int check_id(const struct id *id, struct error *err)
{
    return !id->text[0] || id_is_valid(id->text) ? 0 : error_set(err, ERR_INVALID, 0, "not an id");
}

static int check(const struct provider_disk_job *job, struct error *err)
{
    unsigned int given = (job->on.id.text[0] ? 1U << DISK_JOB_ON : 0) |
                         (job->base.id.text[0] ? 1U << DISK_JOB_BASE : 0) |
                         (job->target.text[0] ? 1U << DISK_JOB_TARGET : 0) |
                         (job->image || disk_job_is_view(job->kind) ? 1U << DISK_JOB_IMAGE : 0) |
                         (job->input >= 0 ? 1U << DISK_JOB_INPUT : 0) |
                         (job->data >= 0 ? 1U << DISK_JOB_DATA : 0);

    if (check_id(&job->on.id, err) < 0 || check_id(&job->base.id, err) < 0 ||
        check_id(&job->target, err) < 0 || disk_job_check(job->kind, given, ~0U, err) < 0)
        return -1;
    if (job->image && !wire_text_is_name(job->image))
        return error_set(err, ERR_INVALID, 0, "not the name of an image: '%s'", job->image);
    return 0;
}

/* The id of a sandbox's disk; snapshots are not in the table. */
static struct id sandbox_of(const struct disk_ref *disk)
{
    return disk->set == DISK_OF_SANDBOX ? disk->id : (struct id){.text = ""};
}

void provider_run_disk_job(struct provider *provider, const struct provider_disk_job *job,
                           provider_job_done *done, void *context)
{
    struct id on = sandbox_of(&job->on);
    struct provider_call *call = provider_call_new(provider, PROVIDER_CALL_DISK_JOB, &on, context);
    struct error err = ERROR_INIT;

    call->answer.job = done;
    call->base = sandbox_of(&job->base);
    call->target = job->target;
    call->adds_to_target = job->kind == DISK_JOB_UNPACK;
    if (check(job, &err) < 0)
        provider_call_answer(call, &err);
    if (provider_call_begin(call))
        provider->operations->disk_job(provider, job, call);
    provider_call_leave(call);
}
