#include "harness/turn_record.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/auto.h"
#include "base/memory.h"
#include "harness/part_json.h"
#include "json/json_read.h"
#include "json/json_write.h"

#define HISTORY_VALUES_MAX 1000000
#define ANSWER_MAX         ((size_t) 1024 * 1024)
#define RESULT_MAX         ((size_t) 4 * 1024 * 1024)
#define TOKENS_MAX         (INT64_C(1) << 48)

/* A part that was told. */
struct turn_part {
    struct table_link by_id;
    uint64_t told;      /* a hash of what was told last; 0: nothing */
    size_t text_length; /* told in pieces */
    char id[];
};

/* A message of the agent. */
struct turn_message {
    struct list link;
    struct harness_usage usage;
    char id[];
};

/* A session, or a request. */
struct turn_name {
    struct list link;
    char id[];
};

/* --- names ----------------------------------------------------------------------------------- */

static struct turn_name *turn_name_find(const struct list *names, const char *id)
{
    LIST_EACH (names, at) {
        struct turn_name *name = CONTAINER_OF(at, struct turn_name, link);

        if (strcmp(name->id, id) == 0)
            return name;
    }
    return NULL;
}

/* False when it is there already, or there are too many. */
static bool turn_name_add(struct list *names, size_t *count, size_t most, const char *id)
{
    size_t size = strlen(id) + 1;
    struct turn_name *name;

    if (*count >= most || turn_name_find(names, id))
        return false;
    name = mem_alloc(sizeof(*name) + size);
    memcpy(name->id, id, size);
    list_append(names, &name->link);
    (*count)++;
    return true;
}

static void turn_name_drop(size_t *count, struct turn_name *name)
{
    list_remove(&name->link);
    free(name);
    (*count)--;
}

/* --- messages and what they used --------------------------------------------------------------- */

static uint64_t turn_record_tokens(const json_t *tokens, const char *key)
{
    json_t *value = json_object_get(tokens, key);
    json_int_t number = json_is_integer(value) ? json_integer_value(value) : 0;

    return number > 0 && number < TOKENS_MAX ? (uint64_t) number : 0;
}

static void turn_record_read_usage(const json_t *info, struct harness_usage *usage)
{
    const json_t *tokens = json_object_get(info, "tokens");
    const json_t *cache = json_object_get(tokens, "cache");
    double cost = json_number_value(json_object_get(info, "cost"));

    *usage = (struct harness_usage){
        .input = turn_record_tokens(tokens, "input"),
        .output = turn_record_tokens(tokens, "output"),
        .reasoning = turn_record_tokens(tokens, "reasoning"),
        .cache_read = turn_record_tokens(cache, "read"),
        .cache_write = turn_record_tokens(cache, "write"),
    };
    /* OpenCode says 0 for models whose price it does not know. */
    if (cost > 0 && cost < 1e6) {
        usage->cost_micros = (uint64_t) (cost * 1e6 + 0.5);
        usage->is_cost_known = true;
    }
}

static struct turn_message *turn_record_message(const struct turn_record *record, const char *id)
{
    LIST_EACH (&record->messages, at) {
        struct turn_message *message = CONTAINER_OF(at, struct turn_message, link);

        if (strcmp(message->id, id) == 0)
            return message;
    }
    return NULL;
}

static bool turn_record_is_ours(const struct turn_record *record, const json_t *info,
                                const char *id)
{
    const char *parent = opencode_id(info, "parentID");

    if (!record->user[0])
        return false;
    return (parent && strcmp(parent, record->user) == 0) || strcmp(id, record->user) > 0;
}

/* The turn's own message, by its end. */
static void turn_record_take_user(struct turn_record *record, const char *id)
{
    size_t length = strlen(id), tail = strlen(record->tail);

    if (length < tail || strcmp(id + length - tail, record->tail) != 0)
        return;
    (void) snprintf(record->user, sizeof(record->user), "%s", id);
    record->has_user = true;
}

static void turn_record_take_error(struct turn_record *record, const json_t *error)
{
    const char *name = opencode_id(error, "name");
    const json_t *message = json_object_get(json_object_get(error, "data"), "message");

    if (!name)
        return;
    if (strcmp(name, "MessageAbortedError") == 0) {
        record->is_aborted = true;
        return;
    }
    record->has_failed = true;
    (void) error_set(&record->failure, ERR_UPSTREAM, 0, "%s: %.300s", name,
                     json_is_string(message) ? json_string_value(message) : "no message");
}

/* A message of the agent's that is the turn's is known from here on. */
static struct turn_message *turn_record_take_message(struct turn_record *record, const json_t *info)
{
    const char *id = opencode_id(info, "id"), *role = opencode_id(info, "role");
    struct turn_message *message;
    size_t size;

    if (!id || !role)
        return NULL;
    if (strcmp(role, "user") == 0) {
        turn_record_take_user(record, id);
        return NULL;
    }
    if (strcmp(role, "assistant") != 0)
        return NULL;
    /* Ours may be too far back to be in what was read: its answers name it. */
    if (opencode_id(info, "parentID"))
        turn_record_take_user(record, opencode_id(info, "parentID"));
    if (!turn_record_is_ours(record, info, id))
        return NULL;
    message = turn_record_message(record, id);
    if (!message) {
        if (record->message_count >= TURN_MESSAGES_MAX)
            return NULL;
        size = strlen(id) + 1;
        message = mem_alloc(sizeof(*message) + size);
        memcpy(message->id, id, size);
        list_append(&record->messages, &message->link);
        record->message_count++;
    }
    turn_record_read_usage(info, &message->usage);
    return message;
}

/* --- parts ----------------------------------------------------------------------------------- */

static struct turn_part *turn_record_part(struct turn_record *record, const char *id)
{
    size_t size = strlen(id) + 1;
    uint64_t hash = table_hash(0, id, size);
    struct turn_part *part;

    for (struct table_link *at = table_find(&record->parts, hash); at; at = table_next(at)) {
        part = CONTAINER_OF(at, struct turn_part, by_id);
        if (strcmp(part->id, id) == 0)
            return part;
    }
    if (record->parts.count >= TURN_PARTS_MAX)
        return NULL;
    part = mem_alloc(sizeof(*part) + size);
    part->by_id.hash = hash;
    memcpy(part->id, id, size);
    table_add(&record->parts, &part->by_id);
    return part;
}

/* Text that is being written has no end yet; everything else is told in each of its states. */
static bool turn_part_is_growing(const json_t *body)
{
    const char *type = opencode_id(body, "type");
    const json_t *time = json_object_get(body, "time");

    return type && (strcmp(type, "text") == 0 || strcmp(type, "reasoning") == 0) &&
           !json_object_get(time, "end");
}

static void turn_record_tell_delta(struct turn_record *record, struct turn_part *part,
                                   const char *field, const char *text, size_t length)
{
    if (!length || record->is_over)
        return;
    part->text_length += length;
    record->listener->delta(record->context, part->id, field, text, length);
}

static void turn_record_grow(struct turn_record *record, struct turn_part *part,
                             const struct opencode_event *event)
{
    const json_t *text = json_object_get(event->body, "text");
    size_t length = json_string_length(text);

    if (event->text)
        turn_record_tell_delta(record, part, "text", event->text, event->text_length);
    else if (length > part->text_length)
        turn_record_tell_delta(record, part, "text", json_string_value(text) + part->text_length,
                               length - part->text_length);
}

static void turn_record_tell_part(struct turn_record *record, struct turn_part *part,
                                  const json_t *body)
{
    AUTO(text) struct text written = TEXT_INIT(PART_JSON_MAX);
    /* Events and histories have the same members in another order. */
    AUTO(free) char *sorted = json_dumps(body, JSON_SORT_KEYS | JSON_COMPACT);
    uint64_t told = sorted ? table_hash(1, sorted, strlen(sorted)) | 1 : 0;

    if (!told || told == part->told || record->is_over)
        return;
    part_json_write(body, &written);
    part->told = told;
    record->listener->part(record->context, part->id, text_string(&written));
}

static void turn_record_take_part(struct turn_record *record, const struct opencode_event *event)
{
    struct turn_part *part;

    if (!turn_record_message(record, event->message))
        return; /* the user's own, or another turn's */
    part = turn_record_part(record, event->part);
    if (!part)
        return;
    if (turn_part_is_growing(event->body))
        turn_record_grow(record, part, event);
    else
        turn_record_tell_part(record, part, event->body);
}

static void turn_record_take_delta(struct turn_record *record, const struct opencode_event *event)
{
    struct turn_part *part;

    if (!turn_record_message(record, event->message))
        return;
    part = turn_record_part(record, event->part);
    if (part)
        turn_record_tell_delta(record, part, event->field, event->text, event->text_length);
}

/* --- requests -------------------------------------------------------------------------------- */

static void turn_record_ask(struct turn_record *record, const char *request, json_t *body,
                            bool is_question)
{
    AUTO(text) struct text written = TEXT_INIT(PART_JSON_MAX);

    if (record->is_over || !opencode_id_is_plain(request) ||
        !turn_name_add(&record->requests, &record->request_count, TURN_REQUESTS_MAX, request))
        return;
    part_json_write(body, &written);
    if (is_question)
        record->listener->question(record->context, request, text_string(&written));
    else
        record->listener->permission(record->context, request, text_string(&written));
}

static void turn_record_answered(struct turn_record *record, const char *request, const char *reply)
{
    struct turn_name *name = turn_name_find(&record->requests, request);

    if (!name || record->is_over)
        return;
    turn_name_drop(&record->request_count, name);
    record->listener->answered(record->context, request, reply);
}

bool turn_record_knows(const struct turn_record *record, const char *request)
{
    return turn_name_find(&record->requests, request) != NULL;
}

static bool turn_record_is_family(const struct turn_record *record, const char *session)
{
    return strcmp(session, record->session) == 0 || turn_name_find(&record->children, session);
}

void turn_record_waiting(struct turn_record *record, const char *bytes, size_t length,
                         bool is_question)
{
    static const struct json_limits limits = {
        .size = JSON_SIZE_MAX, .depth = 48, .values = JSON_VALUES_MAX, .nul = true};
    AUTO(json) json_t *list = json_read(bytes, length, &limits, NULL);
    json_t *asked;
    size_t index;

    json_array_foreach (list, index, asked) {
        const char *session = opencode_id(asked, "sessionID"), *request = opencode_id(asked, "id");
        AUTO(json) json_t *body = NULL;

        if (!session || !request || !turn_record_is_family(record, session))
            continue;
        body = is_question ? json_incref(asked) : opencode_permission(asked);
        turn_record_ask(record, request, body, is_question);
    }
}

/* --- events ---------------------------------------------------------------------------------- */

/* What sub-agents ask for is asked in sessions of their own. */
static void turn_record_take_session(struct turn_record *record, const struct opencode_event *event)
{
    if (event->parent && turn_record_is_family(record, event->parent) &&
        strcmp(event->session, record->session) != 0)
        (void) turn_name_add(&record->children, &record->child_count, TURN_CHILDREN_MAX,
                             event->session);
}

/* Those of sub-agents, too. */
static bool turn_record_family_event(struct turn_record *record, const struct opencode_event *event)
{
    switch (event->kind) {
    case OPENCODE_SESSION:
        turn_record_take_session(record, event);
        return true;
    case OPENCODE_PERMISSION:
    case OPENCODE_QUESTION:
        if (turn_record_is_family(record, event->session))
            turn_record_ask(record, event->request, event->body, event->kind == OPENCODE_QUESTION);
        return true;
    case OPENCODE_ANSWERED:
        turn_record_answered(record, event->request, event->reply);
        return true;
    default:
        return false;
    }
}

bool turn_record_event(struct turn_record *record, const struct opencode_event *event)
{
    if (record->is_over || !record->session[0] || turn_record_family_event(record, event) ||
        !event->session || strcmp(event->session, record->session) != 0)
        return false;
    switch (event->kind) {
    case OPENCODE_MESSAGE:
        (void) turn_record_take_message(record, event->body);
        return false;
    case OPENCODE_PART:
        turn_record_take_part(record, event);
        return false;
    case OPENCODE_DELTA:
        turn_record_take_delta(record, event);
        return false;
    case OPENCODE_ERROR:
        if (record->has_user)
            turn_record_take_error(record, event->body);
        return record->has_user;
    case OPENCODE_IDLE:
        return record->has_user; /* one from before does not count */
    default:
        return false;
    }
}

/* --- histories ------------------------------------------------------------------------------- */

static bool turn_record_is_complete(const json_t *info)
{
    const char *finish = opencode_id(info, "finish");

    /* One that ends in calls of tools is followed by another. */
    if (finish && strcmp(finish, "tool-calls") == 0)
        return false;
    return json_object_get(json_object_get(info, "time"), "completed") ||
           json_is_object(json_object_get(info, "error"));
}

static void turn_record_take_history_part(struct turn_record *record, const json_t *body)
{
    const char *id = opencode_id(body, "id");
    struct turn_part *part = id ? turn_record_part(record, id) : NULL;

    if (part && !turn_part_is_growing(body))
        turn_record_tell_part(record, part, body);
}

static void turn_record_take_past(struct turn_record *record, json_t *entry)
{
    const json_t *info = json_object_get(entry, "info");
    const json_t *error = json_object_get(info, "error");
    const json_t *parts = json_object_get(entry, "parts");
    json_t *part;
    size_t index;

    if (!turn_record_take_message(record, info))
        return;
    json_array_foreach (parts, index, part) {
        turn_record_take_history_part(record, part);
    }
    if (json_is_object(error))
        turn_record_take_error(record, error);
    else if (turn_record_is_complete(info))
        record->has_failed = false; /* it went on behind what failed */
    if (json_is_true(json_object_get(info, "summary")))
        return; /* of a conversation that became too long: not what was asked for */
    json_decref(record->last);
    record->last = json_incref(entry);
    record->is_last_complete = turn_record_is_complete(info);
}

int turn_record_history(struct turn_record *record, const char *bytes, size_t length,
                        struct error *err)
{
    static const struct json_limits limits = {
        .size = SIZE_MAX, .depth = 48, .values = HISTORY_VALUES_MAX, .nul = true};
    AUTO(json) json_t *history = json_read(bytes, length, &limits, err);
    json_t *entry;
    size_t index;

    if (!json_is_array(history)) {
        if (history)
            (void) error_set(err, ERR_UPSTREAM, 0, "the agent's messages are no array");
        (void) error_wrap(err, "messages");
        err->code = ERR_UPSTREAM;
        return -1;
    }
    json_array_foreach (history, index, entry) {
        if (!record->is_over)
            turn_record_take_past(record, entry);
    }
    return 0;
}

/* --- the result ------------------------------------------------------------------------------ */

static void turn_record_add_usage(struct harness_usage *sum, const struct harness_usage *usage)
{
    sum->input += usage->input;
    sum->output += usage->output;
    sum->reasoning += usage->reasoning;
    sum->cache_read += usage->cache_read;
    sum->cache_write += usage->cache_write;
    sum->cost_micros += usage->cost_micros;
    sum->is_cost_known |= usage->is_cost_known;
}

static void turn_record_write_answer(const json_t *parts, struct text *answer)
{
    json_t *part;
    size_t index;

    json_array_foreach (parts, index, part) {
        const char *type = opencode_id(part, "type");
        json_t *text = json_object_get(part, "text");

        if (!type || strcmp(type, "text") != 0 || json_is_true(json_object_get(part, "synthetic")))
            continue;
        text_append_bytes(answer, json_string_value(text) ? json_string_value(text) : "",
                          json_string_length(text));
    }
}

static void turn_record_write_parts(const json_t *parts, struct text *out)
{
    AUTO(text) struct text one = TEXT_INIT(PART_JSON_MAX);
    const char *between = "[";
    json_t *part;
    size_t index;

    json_array_foreach (parts, index, part) {
        part_json_write(part, &one);
        if (out->length + one.length + 4 > out->maximum)
            break;
        text_append(out, between);
        text_append_bytes(out, text_string(&one), one.length);
        between = ",";
    }
    text_append(out, out->length ? "]" : "[]");
}

void turn_record_tell(struct turn_record *record, const struct error *failure, bool was_cancelled)
{
    json_t *info = json_object_get(record->last, "info");
    json_t *past = json_object_get(record->last, "parts");
    AUTO(text) struct text answer = TEXT_INIT(ANSWER_MAX);
    AUTO(text) struct text parts = TEXT_INIT(RESULT_MAX);
    AUTO(text) struct text about = TEXT_INIT(PART_JSON_MAX);
    struct harness_result result = {.provider = opencode_id(info, "providerID"),
                                    .model = opencode_id(info, "modelID"),
                                    .was_cancelled = was_cancelled};

    if (record->is_over)
        return;
    record->is_over = true;
    turn_record_write_answer(past, &answer);
    turn_record_write_parts(past, &parts);
    if (info)
        part_json_write(info, &about);
    LIST_EACH (&record->messages, at)
        turn_record_add_usage(&result.usage, &CONTAINER_OF(at, struct turn_message, link)->usage);
    result.answer = text_string(&answer);
    result.parts = text_string(&parts);
    result.info = about.length ? text_string(&about) : "{}";
    record->listener->ended(record->context, failure, &result);
}

/* --- life ------------------------------------------------------------------------------------ */

static void turn_record_tail(const struct id *turn, char ret_tail[static TURN_TAIL_SIZE])
{
    memcpy(ret_tail, turn->text, TURN_TAIL_SIZE - 1);
    ret_tail[TURN_TAIL_SIZE - 1] = '\0';
}

/* "msg_", 12 hexadecimal digits of time, 14 characters of anything. */
void turn_record_message_id(const struct id *turn, int64_t wall_ms,
                            char ret_id[static OPENCODE_ID_MAX + 1])
{
    uint64_t time = ((uint64_t) wall_ms * 0x1000) & UINT64_C(0xffffffffffff);
    char tail[TURN_TAIL_SIZE];

    turn_record_tail(turn, tail);
    (void) snprintf(ret_id, OPENCODE_ID_MAX + 1, "msg_%012" PRIx64 "%s", time, tail);
}

void turn_record_init(struct turn_record *record, const struct id *turn,
                      const struct harness_listener *listener, void *context)
{
    *record = (struct turn_record){.listener = listener, .context = context};
    turn_record_tail(turn, record->tail);
    list_init(&record->messages);
    list_init(&record->children);
    list_init(&record->requests);
}

void turn_record_set_session(struct turn_record *record, const char *session)
{
    (void) snprintf(record->session, sizeof(record->session), "%s", session);
}

static void turn_record_free_parts(struct turn_record *record)
{
    for (size_t i = 0; i < record->parts.bucket_count; i++) {
        for (struct table_link *at = record->parts.buckets[i], *next; at; at = next) {
            next = at->next;
            free(CONTAINER_OF(at, struct turn_part, by_id));
        }
    }
    table_done(&record->parts);
}

void turn_record_done(struct turn_record *record)
{
    turn_record_free_parts(record);
    LIST_EACH (&record->messages, at)
        free(CONTAINER_OF(at, struct turn_message, link));
    LIST_EACH (&record->children, at)
        free(CONTAINER_OF(at, struct turn_name, link));
    LIST_EACH (&record->requests, at)
        free(CONTAINER_OF(at, struct turn_name, link));
    json_decref(record->last);
    record->last = NULL;
}
