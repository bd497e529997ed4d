#include "agent/file/file_request.h"

#include <limits.h>
#include <string.h>

#include "agent/file/file_error.h"
#include "agent/session/session.h"

/* Sent when so much is pending: first more, since after the first piece no error can be told. */
#define FIRST_SIZE ((size_t) 512 * 1024)
#define PIECE_SIZE ((size_t) 64 * 1024)
/* One slice of a file or the longest entry of a listing, every byte of which became six, beside
 * what was pending. */
#define PENDING_MAX ((size_t) 2 * 1024 * 1024)

int file_request_text(struct call *call, const char *field, const char **ret_text)
{
    json_t *value = json_object_get(call->arguments, field);

    *ret_text = NULL;
    if (!value || json_is_null(value))
        return 0;
    *ret_text = json_string_value(value);
    if (*ret_text)
        return 0;
    call_fail_field(call, field, "must be a string");
    return -1;
}

int file_request_flag(struct call *call, json_t *object, const char *field, bool *ret_flag)
{
    json_t *value = json_object_get(object, field);

    *ret_flag = json_is_true(value);
    if (!value || json_is_boolean(value) || json_is_null(value))
        return 0;
    call_fail_field(call, field, "must be true or false");
    return -1;
}

static int open_place(struct call *call, const char *path, struct file_place *ret_place)
{
    char directory[PATH_MAX];
    int r;

    session_directory(call->agent, call->session, directory);
    r = file_place_open(ret_place, directory, path, call->pool);
    if (r < 0)
        file_error_fail(call, directory, r);
    return r < 0 ? -1 : 0;
}

int file_request_place(struct call *call, const char *field, struct file_place *ret_place)
{
    json_t *value = json_object_get(call->arguments, field);
    const char *path = json_string_value(value);
    int r;

    if (!path) {
        call_fail_field(call, field, value ? "must be a string" : "is required");
        return -1;
    }
    r = file_path_check(path, json_string_length(value));
    if (r == -ENAMETOOLONG)
        file_error_fail(call, path, r);
    else if (r < 0)
        call_fail_field(call, field, "must not be empty or hold NUL characters");
    return r < 0 ? -1 : open_place(call, path, ret_place);
}

void file_reply_init(struct file_reply *reply, struct call *call)
{
    *reply = (struct file_reply){
        .call = call,
        .pending = TEXT_INIT(call->transport->unlimited_json ? PENDING_MAX : CALL_REPLY_MAX),
    };
}

static void send_pending(struct file_reply *reply)
{
    if (!reply->begun)
        call_begin_json(reply->call);
    reply->begun = true;
    call_write(reply->call, text_string(&reply->pending), reply->pending.length);
    text_clear(&reply->pending);
}

void file_reply_flush(struct file_reply *reply)
{
    size_t enough = reply->begun ? PIECE_SIZE : FIRST_SIZE;

    if (reply->call->transport->unlimited_json && reply->pending.length >= enough)
        send_pending(reply);
}

/* The reply may live in the call's pool: whatever is needed after the call's end is taken out. */
static struct text take_pending(struct file_reply *reply)
{
    struct text pending = reply->pending;

    reply->pending = (struct text) TEXT_INIT(pending.maximum);
    return pending;
}

void file_reply_end(struct file_reply *reply, const char *path)
{
    struct call *call = reply->call;
    AUTO(text) struct text pending = TEXT_INIT(0);

    if (reply->begun)
        send_pending(reply);
    pending = take_pending(reply);
    if (reply->begun)
        call_end(call);
    else if (pending.overflowed)
        file_error_fail_size(call, path, CALL_REPLY_MAX, pending.length + 1);
    else
        call_reply(call, &pending);
}

void file_reply_fail(struct file_reply *reply, const char *path, int error)
{
    bool begun = reply->begun;
    struct call *call = reply->call;

    file_reply_done(reply);
    if (begun)
        call_break(call);
    else
        file_error_fail(call, path, error);
}

void file_reply_done(struct file_reply *reply)
{
    text_done(&reply->pending);
}
