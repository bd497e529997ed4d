#include <string.h>

#include "agent/rpc/rpc_internal.h"

/* What is being read. */
struct rpc_arguments_reading {
    struct rpc_call *call;
    json_t *arguments; /* owned */
    struct api_error *error;
};

static int rpc_arguments_refuse(struct rpc_arguments_reading *reading, const char *name,
                                const char *message)
{
    return api_error_field(reading->error, name, message);
}

static int read_input(struct rpc_arguments_reading *reading, json_t *expression)
{
    struct rpc_session *session = reading->call->answer.session;
    struct rpc_slot slot = {.object = NULL};
    int64_t id;

    if (rpc_expression_reference(expression, &id) != RPC_READABLE) {
        rpc_drop_references(session, expression);
        return rpc_arguments_refuse(reading, "stream", "must be a ReadableStream");
    }
    if (!rpc_table_find(&session->exports, id, &slot) || slot.kind != RPC_EXPORT_INLET ||
        rpc_inlet_attach(slot.object, reading->call) < 0)
        return rpc_arguments_refuse(reading, "stream",
                                    "its pipe is not there, or was passed before");
    reading->call->inlet = slot.object;
    reading->call->call.has_input = true;
    return 0;
}

static int read_callbacks(struct rpc_arguments_reading *reading, json_t *expression)
{
    json_t *value = NULL;
    bool is_plain = rpc_expression_value(expression, &value, NULL) == 0;
    bool is_absent = is_plain && (!value || json_is_null(value));

    json_decref(value);
    if (is_absent)
        return 0;
    reading->call->callbacks = rpc_callbacks_new(reading->call, expression);
    if (!reading->call->callbacks)
        return rpc_arguments_refuse(reading, "callbacks", "must be an object of functions");
    return 0;
}

/* What was passed by position wins over fields of the object. */
static int rpc_arguments_read_fields(struct rpc_arguments_reading *reading, json_t *value)
{
    int result = 0;

    if (json_is_object(value))
        (void) json_object_update_missing(reading->arguments, value);
    else if (!json_is_null(value))
        result = rpc_arguments_refuse(reading, "options", "must be an object");
    json_decref(value);
    return result;
}

static int read_plain(struct rpc_arguments_reading *reading, const char *name, json_t *expression)
{
    bool is_fields = strcmp(name, OPERATION_FIELDS) == 0;
    struct error err = ERROR_INIT;
    json_t *value = NULL;

    rpc_drop_references(reading->call->answer.session, expression);
    if (rpc_expression_value(expression, &value, &err) < 0)
        return rpc_arguments_refuse(reading, is_fields ? "options" : name, err.message);
    if (value && is_fields)
        return rpc_arguments_read_fields(reading, value);
    if (value)
        (void) json_object_set_new(reading->arguments, name, value);
    return 0;
}

static int read_one(struct rpc_arguments_reading *reading, const char *name, json_t *expression)
{
    if (name && strcmp(name, OPERATION_INPUT) == 0)
        return read_input(reading, expression);
    if (name && strcmp(name, OPERATION_CALLBACKS) == 0)
        return read_callbacks(reading, expression);
    if (name)
        return read_plain(reading, name, expression);
    rpc_drop_references(reading->call->answer.session, expression);
    return 0; /* more arguments than anybody asked for: JavaScript ignores them too */
}

/* All are read even after one failed, so that every reference is dealt with. */
int rpc_arguments_read(struct rpc_call *call, json_t *expressions, json_t **ret_arguments,
                       struct api_error *error)
{
    struct rpc_arguments_reading reading = {
        .call = call, .arguments = json_object(), .error = error};
    json_t *expression;
    int result = 0;
    size_t i;

    json_array_foreach (expressions, i, expression) {
        const char *name =
            i < OPERATION_PARAMETERS_MAX ? call->call.operation->parameters[i] : NULL;

        if (read_one(&reading, name, expression) < 0)
            result = -1;
    }
    if (result < 0)
        json_decref(reading.arguments);
    else
        *ret_arguments = reading.arguments;
    return result;
}
