/* JSON that is long, read on the thread pool: parsing some MB takes longer than one caller may hold
 * the loop. What is short (LONG_JSON_MIN) costs less to read at once, as everybody else does. */
#pragma once

#include <stdbool.h>

#include "base/text.h"
#include "json/json_read.h"
#include "net/http/http_request.h"
#include "net/loop.h"

#define LONG_JSON_MIN ((size_t) 64 * 1024)

struct long_json;

/* Once, from the loop, never from inside the call. `text` is what was read: take it, or leave it.
 * `json` is borrowed for the call; NULL: it is none, and `failure` says why. */
typedef void long_json_done(void *context, struct text *text, json_t *json,
                            const struct error *failure);

/* `text` is taken, and empty afterwards. */
struct long_json *long_json_read(struct loop *loop, struct text *text,
                                 const struct json_limits *limits, long_json_done *done,
                                 void *context);

/* Nobody is to be told any more. */
void long_json_drop(struct long_json *reading);

/* Whether writing it takes long: by its texts and how many values it has. */
bool long_json_is_long(const json_t *json);

/* Answer with it: 200, written on the thread pool with these flags of json_dumps. `json` is taken.
 * Until the reply, request->data and on_gone are not the caller's; then they are as before. */
void long_json_reply(struct http_request *request, json_t *json, size_t flags,
                     const char *content_type);
