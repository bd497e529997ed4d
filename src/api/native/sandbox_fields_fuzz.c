/* Any JSON as the body of a create and of a change: what is taken passes the domain's own check or
 * is refused by it, and what is written can be read. */
#include <stdlib.h>

#include "api/native/sandbox_fields.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_written(const struct sandbox *sandbox)
{
    const struct caller caller = {.scope = CALLER_WRITE};
    AUTO(text) struct text out = TEXT_INIT((size_t) 64 * 1024 * 1024);
    AUTO(json) json_t *again = NULL;
    struct json_writer json;

    json_writer_init_text(&json, &out);
    sandbox_fields_write(&json, sandbox, &caller);
    if (json_writer_finish(&json) < 0)
        abort();
    again = json_read(text_string(&out), out.length, NULL, NULL);
    if (!again && out.length < JSON_SIZE_MAX)
        abort();
}

static void try_create(const struct json_place *root)
{
    struct sandbox sandbox = {.spec = SANDBOX_SPEC_INIT, .reason = (char *) (uintptr_t) ""};
    struct error err = ERROR_INIT;

    if (sandbox_fields_read(root, &sandbox.spec, &err) == 0)
        check_written(&sandbox);
    else if (err.code != ERR_INVALID || !err.message[0])
        abort();
    sandbox_spec_done(&sandbox.spec);
}

static void try_change(const struct json_place *root)
{
    const struct sandbox sandbox = {.spec = SANDBOX_SPEC_INIT};
    AUTO(sandbox_fields_change) struct sandbox_fields_change change = {.spec = SANDBOX_SPEC_INIT};
    struct error err = ERROR_INIT;

    if (sandbox_fields_read_change(root, &sandbox, &change, &err) < 0 && err.code != ERR_INVALID)
        abort();
}

static void try_fork(const struct json_place *root)
{
    AUTO(sandbox_fields_change) struct sandbox_fields_change change = {.spec = SANDBOX_SPEC_INIT};
    struct error err = ERROR_INIT;

    if (sandbox_fields_read_fork(root, &change, &err) < 0 && err.code != ERR_INVALID)
        abort();
}

/* A template, and a create over what it says. */
static void try_template(const struct json_place *root)
{
    AUTO(sandbox_spec) struct sandbox_spec spec = SANDBOX_SPEC_INIT;
    struct error err = ERROR_INIT;

    if (sandbox_fields_read_template(root, &spec, &err) == 0)
        (void) sandbox_fields_read(root, &spec, &err);
    else if (err.code != ERR_INVALID)
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    AUTO(json) json_t *body = json_read((const char *) data, size, NULL, NULL);
    struct json_place root;

    if (!body || json_root_object(body, &root, NULL) < 0)
        return 0;
    try_create(&root);
    try_change(&root);
    try_fork(&root);
    try_template(&root);
    return 0;
}
