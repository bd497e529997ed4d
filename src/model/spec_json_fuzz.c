/* Any JSON as the body of a create, a template, a change, and as a row: what is taken passes the spec's
 * check or is refused by it, and what is written can be read. */
#include <stdlib.h>

#include "model/spec_json.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void shown_check(const struct sandbox_spec *spec)
{
    AUTO(text) struct text out = TEXT_INIT((size_t) 64 * 1024 * 1024);
    AUTO(json) json_t *again = NULL;
    struct json_writer json;

    json_writer_init_text(&json, &out);
    json_begin_object(&json);
    sandbox_spec_write_api(&json, spec, true);
    json_end_object(&json);
    if (json_writer_finish(&json) < 0)
        abort();
    again = json_read(text_string(&out), out.length, NULL, NULL);
    if (!again && out.length < JSON_SIZE_MAX)
        abort();
}

static void row_check(const struct sandbox_spec *spec)
{
    AUTO(text) struct text out = TEXT_INIT(SANDBOX_SPEC_MAX);
    AUTO(sandbox_spec) struct sandbox_spec back = SANDBOX_SPEC_INIT;
    AUTO(sandbox_spec) struct sandbox_spec copy = sandbox_spec_copy(spec);
    struct error err = ERROR_INIT;

    if (sandbox_spec_check(spec, &err) < 0) {
        if (err.code != ERR_INVALID || !err.message[0])
            abort();
        return;
    }
    sandbox_spec_write(spec, &out);
    if (out.overflowed || sandbox_spec_read(out.data, out.length, &back, &err) < 0)
        abort();
    free(copy.name); /* it has a column of its own */
    copy.name = NULL;
    if (!sandbox_spec_equal(&copy, &back))
        abort();
}

static void read_try(const struct json_place *root, enum spec_where where)
{
    static const char *const more[] = {"template", "snapshot", "count", "freeze", NULL};
    AUTO(sandbox_change) struct sandbox_change change = {.spec = SANDBOX_SPEC_INIT};
    AUTO(sandbox_spec) struct sandbox_spec changed = SANDBOX_SPEC_INIT;
    struct error err = ERROR_INIT;

    if (sandbox_spec_read_api(root, where, more, &change.spec, &change.fields, &err) < 0) {
        if (err.code != ERR_INVALID || !err.message[0])
            abort();
        return;
    }
    if (where != SPEC_CHANGE)
        shown_check(&change.spec);
    sandbox_spec_apply(&changed, &change);
    row_check(&changed);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    AUTO(json) json_t *body = json_read((const char *) data, size, NULL, NULL);
    AUTO(sandbox_spec) struct sandbox_spec spec = SANDBOX_SPEC_INIT;
    struct json_place root;

    if (!body || json_root_object(body, &root, NULL) < 0)
        return 0;
    for (enum spec_where where = SPEC_CREATE; where <= SPEC_CHANGE; where *= 2)
        read_try(&root, where);
    if (sandbox_spec_read_members(&root, &spec, NULL) == 0)
        shown_check(&spec);
    return 0;
}
