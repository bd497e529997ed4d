#include "agent/call.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "agent/agent.h"
#include "agent/control/quiesce.h"
#include "json/json_write.h"

bool call_session_is_valid(const char *session)
{
    return session[strspn(session, " \t\r\n")] &&
           strnlen(session, CALL_SESSION_MAX + 1) <= CALL_SESSION_MAX;
}

bool call_is_sessionless(const struct call *call)
{
    return strcmp(call->session, CALL_NO_SESSION) == 0;
}

void call_take_input(struct call *call)
{
    call->transport->want_input(call, true);
}

void call_pause_input(struct call *call)
{
    call->transport->want_input(call, false);
}

void call_resume_input(struct call *call)
{
    call->transport->want_input(call, true);
}

void call_reply(struct call *call, const struct text *json)
{
    quiesce_call_ends(call);
    call->transport->reply(call, text_string(json), json->length);
}

void call_fail(struct call *call, struct api_error *error)
{
    if (!error->operation)
        error->operation = call->operation->name;
    quiesce_call_ends(call);
    call->transport->fail(call, error);
}

void call_fail_text(struct call *call, enum api_code code, const char *format, ...)
{
    AUTO(api_error) struct api_error error = API_ERROR_INIT;
    char message[API_MESSAGE_MAX];
    va_list arguments;

    va_start(arguments, format);
    (void) vsnprintf(message, sizeof(message), format, arguments);
    va_end(arguments);
    api_error_fill(&error, code, "%s", message);
    call_fail(call, &error);
}

void call_fail_field(struct call *call, const char *field, const char *message)
{
    AUTO(api_error) struct api_error error = API_ERROR_INIT;

    (void) api_error_field(&error, field, message);
    call_fail(call, &error);
}

void call_begin_events(struct call *call)
{
    call->state = CALL_EVENTS;
    call->transport->begin_events(call);
}

void call_event(struct call *call, const char *type, const char *json, size_t length)
{
    call->transport->event(call, type, json, length);
}

void call_begin_bytes(struct call *call, const struct text *head)
{
    call->state = CALL_BYTES;
    call->transport->begin_bytes(call, text_string(head), head->length);
}

void call_begin_json(struct call *call)
{
    call->state = CALL_JSON;
    call->transport->begin_json(call);
}

void call_write(struct call *call, const void *bytes, size_t length)
{
    call->transport->write(call, bytes, length);
}

bool call_is_full(const struct call *call)
{
    return call->transport->is_full(call);
}

void call_end(struct call *call)
{
    quiesce_call_ends(call);
    call->transport->end(call);
}

void call_break(struct call *call)
{
    quiesce_call_ends(call);
    call->transport->abandon(call);
}

void call_add_timestamp(const struct call *call, struct json_writer *json)
{
    char time[CLOCK_TEXT_SIZE];

    clock_format(clock_wall_ms(call->agent->clock), time);
    json_add_text(json, "timestamp", time);
}

void call_begin_success(struct json_writer *json, struct text *body)
{
    json_document_begin(json, body);
    json_add_boolean(json, "success", true);
}

void call_finish_success(struct call *call, struct json_writer *json, struct text *body)
{
    call_add_timestamp(call, json);
    if (json_document_end(json) < 0)
        call_fail_text(call, API_INTERNAL_ERROR, "The answer is too large");
    else
        call_reply(call, body);
}

void call_tell_gone(struct call *call)
{
    quiesce_call_ends(call);
    if (call->on_gone)
        call->on_gone(call);
}

void call_tell_drain(struct call *call)
{
    if (call->on_drain)
        call->on_drain(call);
}
