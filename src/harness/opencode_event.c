#include "harness/opencode_event.h"

#include <string.h>

#include "base/auto.h"

#define DATA_DEPTH 48

const char *opencode_id(const json_t *object, const char *key)
{
    const json_t *value = json_object_get(object, key);
    size_t length = json_string_length(value);

    return length && length <= OPENCODE_ID_MAX ? json_string_value(value) : NULL;
}

bool opencode_id_is_plain(const char *id)
{
    static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-";
    size_t length = strlen(id);

    return length && length <= OPENCODE_ID_MAX && strspn(id, plain) == length;
}

static const char *opencode_event_either(const json_t *object, const char *key, const char *other)
{
    const char *id = opencode_id(object, key);

    return id ? id : opencode_id(object, other);
}

/* --- one reader a kind: whether it is one ------------------------------------------------------ */

static bool opencode_event_connected(struct opencode_event *event, const json_t *properties)
{
    (void) properties;
    event->kind = OPENCODE_CONNECTED;
    return true;
}

static bool opencode_event_session(struct opencode_event *event, const json_t *properties)
{
    const json_t *info = json_object_get(properties, "info");

    event->kind = OPENCODE_SESSION;
    event->session = opencode_id(info, "id");
    event->parent = opencode_id(info, "parentID");
    return event->session != NULL;
}

static bool opencode_event_message(struct opencode_event *event, const json_t *properties)
{
    event->kind = OPENCODE_MESSAGE;
    event->body = json_object_get(properties, "info");
    event->session = opencode_id(event->body, "sessionID");
    event->message = opencode_id(event->body, "id");
    return event->session && event->message;
}

static bool opencode_event_part(struct opencode_event *event, const json_t *properties)
{
    const json_t *delta = json_object_get(properties, "delta");

    event->kind = OPENCODE_PART;
    event->body = json_object_get(properties, "part");
    event->session = opencode_id(event->body, "sessionID");
    event->message = opencode_id(event->body, "messageID");
    event->part = opencode_id(event->body, "id");
    event->text = json_string_value(delta);
    event->text_length = json_string_length(delta);
    return event->session && event->message && event->part;
}

static bool opencode_event_delta(struct opencode_event *event, const json_t *properties)
{
    const json_t *delta = json_object_get(properties, "delta");

    event->kind = OPENCODE_DELTA;
    event->session = opencode_id(properties, "sessionID");
    event->message = opencode_id(properties, "messageID");
    event->part = opencode_id(properties, "partID");
    event->field = opencode_id(properties, "field");
    event->text = json_string_value(delta);
    event->text_length = json_string_length(delta);
    return event->session && event->message && event->part && event->field && event->text;
}

/* 1.0 has one pattern or several, and its own words. */
static void opencode_event_rename(json_t *made, const json_t *asked)
{
    json_t *pattern = json_object_get(asked, "pattern");
    const char *kind = opencode_id(asked, "type"), *call = opencode_id(asked, "callID");
    const char *message = opencode_id(asked, "messageID");

    if (kind)
        (void) json_object_set_new(made, "permission", json_string(kind));
    if (json_is_array(pattern))
        (void) json_object_set(made, "patterns", pattern);
    else if (json_is_string(pattern))
        (void) json_object_set_new(made, "patterns", json_pack("[O]", pattern));
    else
        (void) json_object_set_new(made, "patterns", json_array());
    (void) json_object_set_new(made, "always", json_array());
    if (message && call)
        (void) json_object_set_new(made, "tool",
                                   json_pack("{s:s,s:s}", "messageID", message, "callID", call));
}

json_t *opencode_permission(const json_t *asked)
{
    static const char *const same[] = {"id",       "sessionID", "metadata", "title",
                                       "patterns", "always",    "tool",     "permission"};
    json_t *made = json_object();

    for (size_t i = 0; i < ARRAY_COUNT(same); i++) {
        json_t *member = json_object_get(asked, same[i]);

        if (member)
            (void) json_object_set(made, same[i], member);
    }
    if (!json_object_get(asked, "permission"))
        opencode_event_rename(made, asked);
    return made;
}

static bool opencode_event_permission(struct opencode_event *event, const json_t *properties)
{
    event->kind = OPENCODE_PERMISSION;
    event->session = opencode_id(properties, "sessionID");
    event->request = opencode_id(properties, "id");
    event->body = event->made = opencode_permission(properties);
    return event->session && event->request;
}

static bool opencode_event_question(struct opencode_event *event, const json_t *properties)
{
    event->kind = OPENCODE_QUESTION;
    event->session = opencode_id(properties, "sessionID");
    event->request = opencode_id(properties, "id");
    event->body = (json_t *) properties;
    return event->session && event->request;
}

static bool opencode_event_answered(struct opencode_event *event, const json_t *properties)
{
    event->kind = OPENCODE_ANSWERED;
    event->session = opencode_id(properties, "sessionID");
    event->request = opencode_event_either(properties, "requestID", "permissionID");
    event->reply = opencode_event_either(properties, "reply", "response");
    if (!event->reply)
        event->reply = "answered";
    return event->session && event->request;
}

static bool opencode_event_rejected(struct opencode_event *event, const json_t *properties)
{
    bool is_one = opencode_event_answered(event, properties);

    event->reply = "reject";
    return is_one;
}

static bool opencode_event_error(struct opencode_event *event, const json_t *properties)
{
    event->kind = OPENCODE_ERROR;
    event->session = opencode_id(properties, "sessionID");
    event->body = json_object_get(properties, "error");
    return json_is_object(event->body);
}

static bool opencode_event_idle(struct opencode_event *event, const json_t *properties)
{
    event->kind = OPENCODE_IDLE;
    event->session = opencode_id(properties, "sessionID");
    return event->session != NULL;
}

static bool opencode_event_status(struct opencode_event *event, const json_t *properties)
{
    const char *type = opencode_id(json_object_get(properties, "status"), "type");

    event->kind = type && strcmp(type, "idle") == 0 ? OPENCODE_IDLE : OPENCODE_BUSY;
    event->session = opencode_id(properties, "sessionID");
    return event->session && type;
}

static const struct {
    const char *type;
    bool (*read)(struct opencode_event *event, const json_t *properties);
} kinds[] = {
    {"server.connected", opencode_event_connected},
    {"session.created", opencode_event_session},
    {"session.updated", opencode_event_session},
    {"message.updated", opencode_event_message},
    {"message.part.updated", opencode_event_part},
    {"message.part.delta", opencode_event_delta},
    {"permission.asked", opencode_event_permission},
    {"permission.updated", opencode_event_permission}, /* 1.0's name for it */
    {"permission.replied", opencode_event_answered},
    {"question.asked", opencode_event_question},
    {"question.replied", opencode_event_answered},
    {"question.rejected", opencode_event_rejected},
    {"session.error", opencode_event_error},
    {"session.idle", opencode_event_idle},
    {"session.status", opencode_event_status},
};

int opencode_event_read(const char *bytes, size_t length, struct opencode_event *ret_event,
                        struct error *err)
{
    static const struct json_limits limits = {
        .size = 2 * JSON_SIZE_MAX, .depth = DATA_DEPTH, .values = JSON_VALUES_MAX, .nul = true};
    struct json_place place;
    AUTO(opencode_event) struct opencode_event event = {.kind = OPENCODE_OTHER};
    const char *type;

    event.root = json_read(bytes, length, &limits, err);
    if (!event.root || json_root_object(event.root, &place, err) < 0)
        return -1;
    type = opencode_id(event.root, "type");
    for (size_t i = 0; type && i < ARRAY_COUNT(kinds); i++) {
        if (strcmp(kinds[i].type, type) != 0)
            continue;
        if (!kinds[i].read(&event, json_object_get(event.root, "properties")))
            event.kind = OPENCODE_OTHER;
    }
    *ret_event = event;
    event.root = event.made = NULL;
    return 0;
}

void opencode_event_done(struct opencode_event *event)
{
    json_decref(event->made);
    json_decref(event->root);
    event->root = event->made = NULL;
}
