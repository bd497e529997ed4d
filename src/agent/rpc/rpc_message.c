#include "agent/rpc/rpc_message.h"

#include <string.h>

#include "base/auto.h"
#include "base/encoding/encode.h"
#include "base/memory.h"
#include "json/json_read.h"

/* Of \uXXXX. */
#define ESCAPE_LENGTH 6

enum { WANTS_ID = 1, WANTS_COUNT = 2, WANTS_EXPRESSION = 4 };

/* Indexed by type. */
static const struct {
    const char *name;
    int wants;
} types[] = {
    [RPC_PUSH] = {"push", WANTS_EXPRESSION},
    [RPC_STREAM] = {"stream", WANTS_EXPRESSION},
    [RPC_PIPE] = {"pipe", 0},
    [RPC_PULL] = {"pull", WANTS_ID},
    [RPC_RESOLVE] = {"resolve", WANTS_ID | WANTS_EXPRESSION},
    [RPC_REJECT] = {"reject", WANTS_ID | WANTS_EXPRESSION},
    [RPC_RELEASE] = {"release", WANTS_ID | WANTS_COUNT},
    [RPC_ABORT] = {"abort", WANTS_EXPRESSION},
};

static int rpc_message_read_number(json_t *frame, size_t index, int64_t minimum,
                                   int64_t *ret_number)
{
    json_t *number = json_array_get(frame, index);

    if (!json_is_integer(number) || json_integer_value(number) < minimum)
        return -1;
    *ret_number = json_integer_value(number);
    return 0;
}

static int read_parts(struct rpc_message *message, int wants)
{
    size_t at = 1;

    if ((wants & WANTS_ID) &&
        rpc_message_read_number(message->frame, at++, INT64_MIN, &message->id) < 0)
        return -1;
    if ((wants & WANTS_COUNT) &&
        rpc_message_read_number(message->frame, at++, 1, &message->count) < 0)
        return -1;
    if (!(wants & WANTS_EXPRESSION))
        return 0;
    message->expression = json_array_get(message->frame, at);
    return message->expression ? 0 : -1;
}

static int read_type(struct rpc_message *message)
{
    const char *name = json_string_value(json_array_get(message->frame, 0));

    for (size_t i = 0; name && i < ARRAY_COUNT(types); i++) {
        if (strcmp(types[i].name, name) == 0) {
            message->type = (enum rpc_message_type) i;
            return read_parts(message, types[i].wants);
        }
    }
    return -1;
}

/* The unit of UTF-16 that is escaped at `bytes`: \uXXXX. 0: none. */
static unsigned int escaped_unit(const char *bytes, size_t length)
{
    uint8_t unit[2];
    size_t count;

    if (length < ESCAPE_LENGTH || bytes[0] != '\\' || bytes[1] != 'u' ||
        hex_decode(bytes + 2, 4, unit, sizeof(unit), &count) < 0)
        return 0;
    return (unsigned int) unit[0] << 8 | unit[1];
}

/* Texts of JavaScript may be cut inside a character. It sends the half of it that is left, and
 * reads it as U+FFFD; our reader refuses the text. Returns a copy without halves, or NULL when
 * there are none. */
static char *without_halves(const char *bytes, size_t length)
{
    static const char replacement[ESCAPE_LENGTH] = {'\\', 'u', 'f', 'f', 'f', 'd'};
    char *copy = NULL;
    size_t i = 0;

    while (i < length) {
        unsigned int unit = escaped_unit(bytes + i, length - i);
        unsigned int next =
            unit ? escaped_unit(bytes + i + ESCAPE_LENGTH, length - i - ESCAPE_LENGTH) : 0;

        if ((unit & 0xfc00) == 0xd800 && (next & 0xfc00) == 0xdc00) {
            i += 2 * (size_t) ESCAPE_LENGTH;
            continue;
        }
        if ((unit & 0xf800) == 0xd800) {
            if (!copy)
                copy = mem_copy_bytes(bytes, length);
            memcpy(copy + i, replacement, ESCAPE_LENGTH);
        }
        i += unit ? ESCAPE_LENGTH : bytes[i] == '\\' ? 2 : 1;
    }
    return copy;
}

static json_t *read_frame(const char *bytes, size_t length, struct error *err)
{
    static const struct json_limits limits = {.size = RPC_FRAME_MAX,
                                              .depth = RPC_FRAME_DEPTH_MAX,
                                              .values = RPC_FRAME_VALUES,
                                              .nul = true};
    json_t *frame = json_read(bytes, length, &limits, err);
    AUTO(free) char *mended = frame ? NULL : without_halves(bytes, length);

    return mended ? json_read(mended, length, &limits, err) : frame;
}

int rpc_message_read(const char *bytes, size_t length, struct rpc_message *ret_message,
                     struct error *err)
{
    struct rpc_message message = {.frame = read_frame(bytes, length, err)};

    if (!message.frame)
        return -1;
    if (read_type(&message) < 0) {
        json_decref(message.frame);
        return error_set(err, ERR_INVALID, 0, "not a message of this protocol");
    }
    *ret_message = message;
    return 0;
}

int rpc_pipeline_read(json_t *expression, struct rpc_pipeline *ret_pipeline, struct error *err)
{
    json_t *path = json_array_get(expression, 2), *arguments = json_array_get(expression, 3);
    const char *name = json_string_value(json_array_get(expression, 0));
    json_t *id = json_array_get(expression, 1);

    if (!name || strcmp(name, "pipeline") != 0)
        return error_set(err, ERR_INVALID, 0, "only calls are understood here");
    if (!json_is_integer(id) || json_array_size(expression) > 4 || (path && !json_is_array(path)) ||
        (arguments && !json_is_array(arguments)))
        return error_set(err, ERR_INVALID, 0, "a call of a wrong form");
    *ret_pipeline =
        (struct rpc_pipeline){.id = json_integer_value(id), .path = path, .arguments = arguments};
    return 0;
}
