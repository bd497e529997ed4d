/* What every operation on files reads from its call, and how a long JSON answer is given in pieces.
 */
#pragma once

#include "agent/call.h"
#include "agent/file/file_path.h"

/* The path in this argument. Returns 0, or -1 when the call was failed and is gone. */
int file_request_place(struct call *call, const char *field, struct file_place *ret_place);

/* The argument as text ("" and NULL are told apart), NULL when it is absent or null. Returns -1
 * when it is something else: the call was failed and is gone. */
int file_request_text(struct call *call, const char *field, const char **ret_text);

/* A boolean of `object` (may be NULL); absent: false. The same. */
int file_request_flag(struct call *call, json_t *object, const char *field, bool *ret_flag);

/* A JSON object that may be long. Appended to `pending`, it goes out in pieces where the transport
 * can; elsewhere it is held, up to CALL_REPLY_MAX. */
struct file_reply {
    struct call *call; /* borrowed */
    struct text pending;
    bool begun;
};

void file_reply_init(struct file_reply *reply, struct call *call);

/* Send what is pending if it is enough. */
void file_reply_flush(struct file_reply *reply);

/* The object is complete. Ends the call, with FILE_TOO_LARGE if it was too large to be held. */
void file_reply_end(struct file_reply *reply, const char *path);

/* It cannot be completed: an error if nothing was sent yet, else a broken answer. Ends the call. */
void file_reply_fail(struct file_reply *reply, const char *path, int error);

/* Forget it. */
void file_reply_done(struct file_reply *reply);
