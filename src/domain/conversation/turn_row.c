/* A turn as a row of the store, and back. */
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "domain/conversation/conversation_internal.h"
#include "domain/conversation/turn_usage.h"
#include "json/json_read.h"

/* Members of struct turn that are texts. */
static const size_t turn_texts[] = {
    offsetof(struct turn, input),         offsetof(struct turn, answer),
    offsetof(struct turn, parts),         offsetof(struct turn, info),
    offsetof(struct turn, provider),      offsetof(struct turn, model),
    offsetof(struct turn, agent),         offsetof(struct turn, error_code),
    offsetof(struct turn, error_message),
};

static const char **turn_text_at(struct turn *turn, size_t i)
{
    return (const char **) (void *) ((char *) turn + turn_texts[i]);
}

void turn_own(struct turn *turn)
{
    for (size_t i = 0; i < ARRAY_COUNT(turn_texts); i++) {
        const char **text = turn_text_at(turn, i);

        *text = *text ? mem_copy_text(*text) : NULL;
    }
}

void turn_disown(struct turn *turn)
{
    for (size_t i = 0; i < ARRAY_COUNT(turn_texts); i++)
        free((char *) *turn_text_at(turn, i));
    *turn = (struct turn){.state = TURN_STATE_COUNT};
}

void turn_set(const char **text, const char *value)
{
    char *copy = value ? mem_copy_text(value) : NULL;

    free((char *) *text);
    *text = copy;
}

static struct store_value turn_time(int64_t time_ms)
{
    return time_ms ? store_integer(time_ms) : store_null();
}

static struct store_value turn_id_or_null(const struct id *id)
{
    return *id->text ? store_text(id->text) : store_null();
}

void turn_put_row(struct store_transaction *rows, const struct turn *turn, const char *key,
                  bool is_new)
{
    char usage[TURN_USAGE_MAX];

    turn_usage_text(&turn->usage, usage);
    const struct store_value values[STORE_TURN_COLUMN_COUNT] = {
        [STORE_TURN_ID] = store_text(turn->id.text),
        [STORE_TURN_OWNER] = store_text(turn->owner.text),
        [STORE_TURN_CONVERSATION] = store_text(turn->conversation.text),
        [STORE_TURN_SANDBOX] = store_text(turn->sandbox.text),
        [STORE_TURN_TASK] = turn_id_or_null(&turn->task),
        [STORE_TURN_STATE] = store_text(turn_state_text(turn->state)),
        [STORE_TURN_INPUT] = store_text(turn->input),
        [STORE_TURN_ANSWER] = store_text(turn->answer),
        [STORE_TURN_PARTS] = store_text(turn->parts),
        [STORE_TURN_INFO] = store_text(turn->info),
        [STORE_TURN_PROVIDER] = store_text(turn->provider),
        [STORE_TURN_MODEL] = store_text(turn->model),
        [STORE_TURN_AGENT] = store_text(turn->agent),
        [STORE_TURN_ERROR_CODE] = store_text(turn->error_code),
        [STORE_TURN_ERROR_MESSAGE] = store_text(turn->error_message),
        [STORE_TURN_USAGE] = store_text(usage),
        [STORE_TURN_KEY] = store_text(key),
        [STORE_TURN_CREATED] = store_integer(turn->created_ms),
        [STORE_TURN_STARTED] = turn_time(turn->started_ms),
        [STORE_TURN_ENDED] = turn_time(turn->ended_ms),
        [STORE_TURN_DEADLINE] = turn_time(turn->deadline_ms),
    };

    if (is_new)
        store_insert(rows, STORE_TURN, values);
    else
        store_update(rows, STORE_TURN, values);
}

static const char *turn_row_text(const struct store_value *value)
{
    return value->is_null ? NULL : value->bytes;
}

void turn_from_row(const struct store_value *row, struct turn *ret_turn)
{
    *ret_turn = (struct turn){
        .id = domain_row_id(&row[STORE_TURN_ID]),
        .owner = domain_row_id(&row[STORE_TURN_OWNER]),
        .conversation = domain_row_id(&row[STORE_TURN_CONVERSATION]),
        .sandbox = domain_row_id(&row[STORE_TURN_SANDBOX]),
        .task = domain_row_id(&row[STORE_TURN_TASK]),
        .state = turn_state_from_text(row[STORE_TURN_STATE].bytes),
        .input = row[STORE_TURN_INPUT].bytes,
        .answer = row[STORE_TURN_ANSWER].bytes,
        .parts = row[STORE_TURN_PARTS].bytes,
        .info = row[STORE_TURN_INFO].bytes,
        .provider = turn_row_text(&row[STORE_TURN_PROVIDER]),
        .model = turn_row_text(&row[STORE_TURN_MODEL]),
        .agent = turn_row_text(&row[STORE_TURN_AGENT]),
        .error_code = row[STORE_TURN_ERROR_CODE].bytes,
        .error_message = row[STORE_TURN_ERROR_MESSAGE].bytes,
        .created_ms = row[STORE_TURN_CREATED].integer,
        .started_ms = row[STORE_TURN_STARTED].integer,
        .ended_ms = row[STORE_TURN_ENDED].integer,
        .deadline_ms = row[STORE_TURN_DEADLINE].integer,
    };
    turn_usage_read(row[STORE_TURN_USAGE].bytes, &ret_turn->usage);
}

void turn_write_input_text(const struct turn *turn, struct text *out)
{
    AUTO(json) json_t *parts = json_read(turn->input, strlen(turn->input), NULL, NULL);
    json_t *part;
    size_t i;

    json_array_foreach (parts, i, part) {
        const char *type = json_string_value(json_object_get(part, "type"));
        const char *text = json_string_value(json_object_get(part, "text"));

        if (type && text && strcmp(type, "text") == 0) {
            if (out->length)
                text_append_char(out, '\n');
            text_append(out, text);
        }
    }
}
