#include "domain/sandbox/sandbox_record.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

#define REASON_MAX      256
#define RECORD_MORE_MAX 4096 /* beside the spec */

static void write_record(const struct sandbox *sandbox, const struct sandbox_next *next,
                         struct text *text)
{
    struct json_writer json;

    json_writer_init_text(&json, text);
    json_begin_object(&json);
    sandbox_spec_write_members(&json, next->spec);
    if (sandbox->is_ended_by_request)
        json_add_boolean(&json, "endedByRequest", true);
    if (sandbox->is_rebuilding)
        json_add_boolean(&json, "rebuilding", true);
    if (sandbox->is_disk_new)
        json_add_boolean(&json, "newDisk", true);
    if (sandbox->unenforced)
        json_add_integer(&json, "unenforced", sandbox->unenforced);
    if (*next->base.text)
        json_add_text(&json, "base", next->base.text);
    json_end_object(&json);
    (void) json_writer_finish(&json); /* checked when the spec was taken: it fits */
}

/* --- rows ------------------------------------------------------------------------------------ */

struct sandbox_next sandbox_next(const struct sandbox *sandbox)
{
    return (struct sandbox_next){.spec = &sandbox->spec,
                                 .status = sandbox->status,
                                 .stored = sandbox->stored,
                                 .base = sandbox->base};
}

void sandbox_row_init(struct sandbox_row *row, const struct sandbox *sandbox,
                      const struct sandbox_next *next)
{
    const struct sandbox_next now = sandbox_next(sandbox);

    next = next ? next : &now;
    *row = (struct sandbox_row){.spec = TEXT_INIT(SANDBOX_SPEC_MAX + RECORD_MORE_MAX)};
    write_record(sandbox, next, &row->spec);
    row->values[STORE_SANDBOX_ID] = store_text(sandbox->id.text);
    row->values[STORE_SANDBOX_OWNER] = store_text(sandbox->owner.text);
    row->values[STORE_SANDBOX_NODE] = store_text(sandbox->node);
    row->values[STORE_SANDBOX_EPOCH] = store_integer(sandbox->epoch);
    row->values[STORE_SANDBOX_NAME] = store_text(next->spec->name);
    row->values[STORE_SANDBOX_STATUS] = store_text(sandbox_status_text(next->status));
    row->values[STORE_SANDBOX_REASON] = store_text(sandbox->reason);
    row->values[STORE_SANDBOX_SPEC] = store_text(text_string(&row->spec));
    row->values[STORE_SANDBOX_INSIDE] = store_text(sandbox->inside);
    row->values[STORE_SANDBOX_CREATED] = store_integer(sandbox->created_ms);
    row->values[STORE_SANDBOX_UPDATED] = store_integer(sandbox->updated_ms);
    row->values[STORE_SANDBOX_ACTIVE] = store_integer(sandbox->active_ms);
    row->values[STORE_SANDBOX_STARTED] =
        sandbox->started_ms ? store_integer(sandbox->started_ms) : store_null();
    row->values[STORE_SANDBOX_STORED] = store_text(next->stored);
}

void sandbox_row_done(struct sandbox_row *row)
{
    text_done(&row->spec);
}

static char *copy_value(const struct store_value *value)
{
    return value->is_null ? NULL : mem_copy_bytes(value->bytes, value->length);
}

static int copy_id(const struct store_value *value, struct id *ret_id)
{
    if (value->is_null || value->length > ID_LENGTH)
        return -1;
    memcpy(ret_id->text, value->bytes, value->length);
    ret_id->text[value->length] = '\0';
    return 0;
}

static int read_record(const struct store_value *value, struct sandbox *sandbox, struct error *err)
{
    struct json_place root;
    AUTO(json) json_t *json = sandbox_spec_parse(value->bytes, value->length, &root, err);
    int64_t unenforced = 0;
    const char *base = NULL;

    if (!json || sandbox_spec_read_members(&root, &sandbox->spec, err) < 0 ||
        json_field_boolean(&root, "endedByRequest", JSON_OPTIONAL, &sandbox->is_ended_by_request,
                           err) < 0 ||
        json_field_boolean(&root, "rebuilding", JSON_OPTIONAL, &sandbox->is_rebuilding, err) < 0 ||
        json_field_boolean(&root, "newDisk", JSON_OPTIONAL, &sandbox->is_disk_new, err) < 0 ||
        json_field_integer(&root, "unenforced", JSON_OPTIONAL, 0, UINT32_MAX, &unenforced, err) <
            0 ||
        json_field_text(&root, "base", JSON_OPTIONAL, ID_LENGTH, &base, err) < 0)
        return -1;
    sandbox->unenforced = (unsigned int) unenforced;
    (void) snprintf(sandbox->base.text, sizeof(sandbox->base.text), "%s", base ? base : "");
    return 0;
}

static int read_row(const struct store_value *row, struct sandbox *sandbox, struct error *err)
{
    const struct store_value *node = &row[STORE_SANDBOX_NODE];

    if (copy_id(&row[STORE_SANDBOX_ID], &sandbox->id) < 0 || !id_is_valid(sandbox->id.text) ||
        copy_id(&row[STORE_SANDBOX_OWNER], &sandbox->owner) < 0)
        return error_set(err, ERR_INTERNAL, 0, "its id or its owner's id is not valid");
    if (node->length >= sizeof(sandbox->node))
        return error_set(err, ERR_INTERNAL, 0, "its node's name is too long");
    memcpy(sandbox->node, node->bytes, node->length);
    if (sandbox_status_from_text(row[STORE_SANDBOX_STATUS].bytes, &sandbox->status) < 0)
        return error_set(err, ERR_INTERNAL, 0, "its status is not one that there is");
    if (read_record(&row[STORE_SANDBOX_SPEC], sandbox, err) < 0)
        return -1;
    sandbox->epoch = row[STORE_SANDBOX_EPOCH].integer;
    sandbox->spec.name = copy_value(&row[STORE_SANDBOX_NAME]);
    free(sandbox->reason);
    sandbox->reason = copy_value(&row[STORE_SANDBOX_REASON]);
    sandbox->inside = copy_value(&row[STORE_SANDBOX_INSIDE]);
    sandbox->created_ms = row[STORE_SANDBOX_CREATED].integer;
    sandbox->updated_ms = row[STORE_SANDBOX_UPDATED].integer;
    sandbox->active_ms = row[STORE_SANDBOX_ACTIVE].integer;
    sandbox->started_ms =
        row[STORE_SANDBOX_STARTED].is_null ? 0 : row[STORE_SANDBOX_STARTED].integer;
    sandbox->stored = copy_value(&row[STORE_SANDBOX_STORED]);
    return 0;
}

struct sandbox *sandbox_from_row(const struct store_value *row, struct error *err)
{
    AUTO(sandbox) struct sandbox *sandbox = sandbox_new();

    if (read_row(row, sandbox, err) < 0) {
        err->code = ERR_INTERNAL;
        (void) error_wrap(err, "the row of sandbox '%.26s'", row[STORE_SANDBOX_ID].bytes);
        return NULL;
    }
    return TAKE_PTR(sandbox);
}

/* --- memory ---------------------------------------------------------------------------------- */

struct sandbox *sandbox_new(void)
{
    struct sandbox *sandbox = mem_alloc(sizeof(*sandbox));

    sandbox->spec = (struct sandbox_spec) SANDBOX_SPEC_INIT;
    sandbox->reason = mem_copy_text("");
    list_init(&sandbox->link);
    list_init(&sandbox->waiting);
    list_init(&sandbox->wanted);
    list_init(&sandbox->unkept);
    list_init(&sandbox->new_disk);
    return sandbox;
}

void sandbox_free(struct sandbox *sandbox)
{
    if (!sandbox)
        return;
    sandbox_spec_done(&sandbox->spec);
    free(sandbox->reason);
    free(sandbox->inside);
    free(sandbox->stored);
    free(sandbox);
}

void sandbox_set_reason(struct sandbox *sandbox, const char *format, ...)
{
    char reason[REASON_MAX];
    va_list arguments;

    va_start(arguments, format);
    (void) vsnprintf(reason, sizeof(reason), format, arguments); /* cut: it is for people */
    va_end(arguments);
    free(sandbox->reason);
    sandbox->reason = mem_copy_text(reason);
}
