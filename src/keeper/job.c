#include "keeper/job.h"

#include <stdlib.h>
#include <string.h>

#include "base/auto.h"
#include "keeper/tree_copy.h"
#include "keeper/tree_list.h"
#include "keeper/tree_measure.h"
#include "sys/sys_tree.h"

static int run_delete(int folder, int target, struct output *output, struct error *err)
{
    struct json_writer json;
    int result = sys_tree_empty(folder);

    (void) target;
    if (result < 0)
        return error_set(err, error_code_from_errno(result), result, "delete the tree");
    output_begin(output, &json);
    json_add_boolean(&json, "deleted", true);
    output_end(output, &json);
    return 0;
}

static int run_measure(int folder, int target, struct output *output, struct error *err)
{
    (void) target;
    return tree_measure(folder, output, err);
}

static int run_list(int folder, int target, struct output *output, struct error *err)
{
    (void) target;
    return tree_list(folder, output, err);
}

static const struct job_kind kinds[] = {
    {"delete", false, run_delete},
    {"measure", false, run_measure},
    {"list", false, run_list},
    {"copy", true, tree_copy},
};

const struct job_kind *job_find(const char *name)
{
    for (size_t i = 0; i < ARRAY_COUNT(kinds); i++)
        if (strcmp(kinds[i].name, name) == 0)
            return &kinds[i];
    return NULL;
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

int job_run(const struct job_kind *kind, int folder, int target, struct output *output,
            struct error *err)
{
    if (kind->run(folder, target, output, err) < 0)
        return job_fail(output, err);
    /* A report that was not taken is no success. */
    if (output_flush(output) < 0) {
        (void) error_set(err, ERR_CANCELLED, output->error, "write the report");
        return EXIT_FAILURE;
    }
    return EXIT_SUCCESS;
}
