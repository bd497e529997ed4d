#include "keeper/job.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/auto.h"
#include "base/trace.h"
#include "keeper/archive/archive_make.h"
#include "keeper/archive/archive_unpack.h"
#include "keeper/image/image_import.h"
#include "keeper/layer/layer_pack.h"
#include "keeper/layer/layer_unpack.h"
#include "keeper/tree/tree_copy.h"
#include "keeper/tree/tree_diff.h"
#include "keeper/tree/tree_list.h"
#include "keeper/tree/tree_measure.h"
#include "keeper/tree/tree_read.h"
#include "keeper/tree/tree_scan.h"
#include "sys/file/sys_tree.h"

static int run_delete(const struct job *job, struct error *err)
{
    struct json_writer json;
    int result = sys_tree_empty(job->disk);

    if (result < 0)
        return error_set(err, error_code_from_errno(result), result, "delete the tree");
    output_begin(job->output, &json);
    json_add_boolean(&json, "deleted", true);
    output_end(job->output, &json);
    return 0;
}

static int run_measure(const struct job *job, struct error *err)
{
    return tree_measure(job->disk, job->output, err);
}

static int run_list(const struct job *job, struct error *err)
{
    return tree_list(job->disk, job->output, err);
}

static int run_copy(const struct job *job, struct error *err)
{
    return tree_copy(&job->disk_tree, job->target, job->output, err);
}

static int run_copy_live(const struct job *job, struct error *err)
{
    return tree_copy_live(job->disk, job->target, job->input, job->output, err);
}

static int run_diff(const struct job *job, struct error *err)
{
    return tree_diff(&job->disk_tree, &job->base_tree, job->output, err);
}

static int run_pack(const struct job *job, struct error *err)
{
    return layer_pack(&job->disk_tree, job->base < 0 ? NULL : &job->base_tree, job->data,
                      job->output, err);
}

static int run_unpack(const struct job *job, struct error *err)
{
    return layer_unpack(job->target, job->input, job->output, err);
}

static int run_add_layer(const struct job *job, struct error *err)
{
    static const struct image_limits limits = {IMAGE_BYTES_MAX, IMAGE_ENTRIES_MAX, IMAGE_FREE_MIN};

    return layer_unpack_within(job->target, job->input, &limits, job->output, err);
}

static int run_archive(const struct job *job, struct error *err)
{
    return archive_make(job->disk, job->input, job->data, job->output, err);
}

static int run_unarchive(const struct job *job, struct error *err)
{
    return archive_unpack(job->input, job->data, job->output, err);
}

static int run_scan(const struct job *job, struct error *err)
{
    return tree_scan(job->disk, job->input, job->output, err);
}

static int run_read(const struct job *job, struct error *err)
{
    return tree_read(job->disk, job->input, job->data, job->output, err);
}

/* Their input is an archive; without one, the disk is a layout. */
static int run_import(const struct job *job, struct error *err)
{
    const struct image_import import = {
        .archive = job->input,
        .layout = job->disk,
        .layers = job->base,
        .target = job->target,
        .limits = {IMAGE_BYTES_MAX, IMAGE_ENTRIES_MAX, IMAGE_FREE_MIN},
    };

    return image_import(&import, job->output, err);
}

static const struct job_kind kinds[] = {
    {"delete", .has_disk = true, .run = run_delete},
    {"measure", .has_disk = true, .run = run_measure},
    {"list", .has_disk = true, .run = run_list},
    {"copy", .has_disk = true, .has_target = true, .takes_stacks = true, .run = run_copy},
    {"copy-live", .has_disk = true, .has_target = true, .run = run_copy_live},
    {"diff", .has_disk = true, .has_base = true, .takes_stacks = true, .run = run_diff},
    {"pack", .has_disk = true, .has_base = true, .may_lack_base = true, .takes_stacks = true,
     .has_data = true, .run = run_pack},
    {"unpack", .has_target = true, .run = run_unpack},
    {"archive", .has_disk = true, .has_data = true, .run = run_archive},
    {"unarchive", .has_data = true, .run = run_unarchive},
    {"scan", .has_disk = true, .run = run_scan},
    {"read", .has_disk = true, .has_data = true, .run = run_read},
    {"import", .has_base = true, .has_target = true, .run = run_import},
    {"import-layout", .has_disk = true, .has_base = true, .has_target = true, .run = run_import},
    {"add-layer", .has_target = true, .run = run_add_layer},
};

const struct job_kind *job_find(const char *name)
{
    for (size_t i = 0; i < ARRAY_COUNT(kinds); i++)
        if (strcmp(kinds[i].name, name) == 0)
            return &kinds[i];
    return NULL;
}

int job_folders_max(const struct job_kind *kind)
{
    return kind->has_disk + kind->has_base + kind->has_target;
}

int job_folders_min(const struct job_kind *kind)
{
    return job_folders_max(kind) - kind->may_lack_base;
}

void job_print_usage(void)
{
    for (size_t i = 0; i < ARRAY_COUNT(kinds); i++)
        (void) fprintf(stderr, "       burrow-keeper %s%s%s%s\n", kinds[i].name,
                       kinds[i].has_disk ? " DISK" : "",
                       kinds[i].may_lack_base ? " [BASE]"
                       : kinds[i].has_base    ? " BASE"
                                              : "",
                       kinds[i].has_target ? " TARGET" : "");
}

static void tell_failure(struct output *output, const struct error *err)
{
    struct json_writer json;

    output_begin(output, &json);
    json_key(&json, "error");
    json_begin_object(&json);
    json_add_text(&json, "code", error_code_text(err->code));
    json_add_text(&json, "message", err->message);
    json_add_integer(&json, "errno", abs(err->system));
    json_end_object(&json);
    output_end(output, &json);
}

int job_fail(struct output *output, const struct error *err)
{
    tell_failure(output, err);
    (void) output_flush(output); /* nobody there: then the exit status has to do */
    return EXIT_FAILURE;
}

int job_run(const struct job_kind *kind, const struct job *job, struct error *err)
{
    TRACE_WITH("keeper.begin", kind->name);
    if (kind->run(job, err) < 0) {
        TRACE_WITH("keeper.failed", error_code_text(err->code));
        return job_fail(job->output, err);
    }
    TRACE_WITH("keeper.done", kind->name);
    /* A report that was not taken is no success. */
    if (output_flush(job->output) < 0) {
        (void) error_set(err, ERR_CANCELLED, job->output->error, "write the report");
        return EXIT_FAILURE;
    }
    return EXIT_SUCCESS;
}
