/* Disk jobs: what each kind is given, checked once for all providers. */
#include "base/auto.h"
#include "provider/provider_internal.h"
#include "wire/wire_text.h"

enum need { NEVER, MAYBE, ALWAYS };

/* The table of provider.h. A descriptor that is missing where one is needed would make a job that
 * succeeds and did nothing. */
static const struct {
    const char *name;
    enum need on, base, target, image, input, data;
} rows[] = {
    [PROVIDER_DISK_MEASURE] = {"measure", .on = ALWAYS},
    [PROVIDER_DISK_LIST] = {"list", .on = ALWAYS},
    [PROVIDER_DISK_COPY] = {"copy", .on = ALWAYS, .target = ALWAYS},
    [PROVIDER_DISK_DIFF] = {"diff", .on = ALWAYS, .base = ALWAYS},
    [PROVIDER_DISK_PACK] = {"pack", .on = ALWAYS, .base = MAYBE, .data = ALWAYS},
    [PROVIDER_DISK_UNPACK] = {"unpack", .target = ALWAYS, .input = ALWAYS},
    [PROVIDER_DISK_ARCHIVE] = {"archive", .on = ALWAYS, .image = MAYBE, .input = ALWAYS,
                               .data = ALWAYS},
    [PROVIDER_DISK_UNARCHIVE] = {"unarchive", .input = ALWAYS, .data = ALWAYS},
    [PROVIDER_DISK_SCAN] = {"scan", .on = ALWAYS, .image = MAYBE, .input = ALWAYS},
    [PROVIDER_DISK_READ] = {"read", .on = ALWAYS, .image = MAYBE, .input = ALWAYS, .data = ALWAYS},
};

static int check_need(const char *name, enum need need, bool is_there, const char *what,
                      struct error *err)
{
    if (need == MAYBE || (need == ALWAYS) == is_there)
        return 0;
    return error_set(err, ERR_INVALID, 0, "a job '%s' %s %s", name,
                     need == ALWAYS ? "needs" : "has no", what);
}

static int check_id(const struct id *id, struct error *err)
{
    return !id->text[0] || id_is_valid(id->text) ? 0 : error_set(err, ERR_INVALID, 0, "not an id");
}

static int check(const struct provider_disk_job *job, struct error *err)
{
    const char *name;

    if ((size_t) job->kind >= ARRAY_COUNT(rows))
        return error_set(err, ERR_INVALID, 0, "no such disk job");
    name = rows[job->kind].name;
    if (check_id(&job->on.id, err) < 0 || check_id(&job->base.id, err) < 0 ||
        check_id(&job->target, err) < 0)
        return -1;
    if (check_need(name, rows[job->kind].on, job->on.id.text[0], "disk", err) < 0 ||
        check_need(name, rows[job->kind].base, job->base.id.text[0], "base", err) < 0 ||
        check_need(name, rows[job->kind].target, job->target.text[0], "target", err) < 0 ||
        check_need(name, rows[job->kind].image, job->image != NULL, "image", err) < 0 ||
        check_need(name, rows[job->kind].input ?: MAYBE, job->input >= 0, "input", err) < 0 ||
        check_need(name, rows[job->kind].data ?: MAYBE, job->data >= 0, "data", err) < 0)
        return -1;
    if (job->image && !wire_text_is_name(job->image))
        return error_set(err, ERR_INVALID, 0, "not the name of an image: '%s'", job->image);
    return 0;
}

/* The id of a sandbox's disk; snapshots are not in the table. */
static struct id sandbox_of(const struct provider_disk *disk)
{
    return disk->set == PROVIDER_OF_SANDBOX ? disk->id : (struct id){.text = ""};
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
    call->adds_to_target = job->kind == PROVIDER_DISK_UNPACK;
    if (check(job, &err) < 0)
        provider_call_answer(call, &err);
    if (provider_call_begin(call))
        provider->operations->disk_job(provider, job, call);
    provider_call_leave(call);
}
