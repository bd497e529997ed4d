/* Any frame as a message: what is read of it keeps its promises, and what is written of a value
 * reads back as that value. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "agent/operation.h"
#include "agent/rpc/rpc_expression.h"
#include "agent/rpc/rpc_message.h"

static void check(bool promise)
{
    if (!promise)
        abort();
}

static void check_reference(void *context, enum rpc_reference kind, int64_t id)
{
    size_t *count = context;

    (void) id;
    check(kind == RPC_STUB || kind == RPC_READABLE);
    ++*count;
}

/* What rpc_expression_value leaves out would not survive: only its results are compared. */
static void check_round_trip(json_t *value)
{
    AUTO(text) struct text written = TEXT_INIT(RPC_FRAME_MAX * 4);
    AUTO(text) struct text wrapped = TEXT_INIT(RPC_FRAME_MAX * 4);
    char *plain = json_dumps(value, JSON_COMPACT | JSON_ENCODE_ANY);
    struct rpc_wrap wrap = {.in_string = false};
    json_t *tree, *again = NULL;

    rpc_expression_write(&written, value);
    rpc_wrap_append(&wrap, &wrapped, plain, strlen(plain));
    check(!wrap.in_string && !wrap.escaped);
    check(strstr(plain, OPERATION_RAW) ||
          strcmp(text_string(&written), text_string(&wrapped)) == 0);
    tree = json_loads(text_string(&wrapped), JSON_DECODE_ANY, NULL);
    check(tree && rpc_expression_value(tree, &again, NULL) == 0 && json_equal(again, value));
    json_decref(again);
    json_decref(tree);
    free(plain);
}

static void try_expression(json_t *expression)
{
    struct error err = ERROR_INIT;
    size_t references = 0, length;
    json_t *value = NULL;
    char *bytes;

    rpc_expression_visit(expression, check_reference, &references);
    if (rpc_expression_value(expression, &value, &err) < 0)
        check(err.message[0]);
    else if (value)
        check_round_trip(value);
    json_decref(value);
    if (rpc_expression_bytes(expression, &bytes, &length, &err) == 0) {
        AUTO(text) struct text written = TEXT_INIT(RPC_FRAME_MAX * 2);
        json_t *tree, *text = json_array_get(expression, 1);

        rpc_expression_write_bytes(&written, bytes, length);
        tree = json_loads(text_string(&written), 0, NULL);
        /* one text for one value, but for the padding */
        check(!text || strncmp(json_string_value(json_array_get(tree, 1)), json_string_value(text),
                               json_string_length(json_array_get(tree, 1))) == 0);
        json_decref(tree);
        free(bytes);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct error err = ERROR_INIT;
    struct rpc_pipeline pipeline;
    struct rpc_message message;

    if (rpc_message_read((const char *) data, size, &message, &err) < 0) {
        check(err.message[0]);
        return 0;
    }
    check(message.type <= RPC_ABORT);
    check(message.type != RPC_RELEASE || message.count > 0);
    if (message.expression) {
        try_expression(message.expression);
        if (rpc_pipeline_read(message.expression, &pipeline, &err) == 0)
            check(!pipeline.arguments || json_is_array(pipeline.arguments));
    }
    json_decref(message.frame);
    return 0;
}
