/* Bodies in this dialect: one JSON object, or nothing, which counts as {}; and JSON answers.
 *
 * Requests that have a body also have the header Idempotency-Key (api/http/idempotency.h): it is
 * looked after here, before the body is read. */
#pragma once

#include "api/http/api.h"
#include "api/http/json_body.h"
#include "api/http/pending.h"
#include "json/json_read.h"
#include "json/json_write.h"

#define NATIVE_REPLY_MAX ((size_t) 32 * 1024 * 1024)
#define NATIVE_PAGE_FULL ((size_t) 128 * 1024)

/* Take the body, within the route's own limit, and read it. Uses request->data and on_gone until
 * then. `argument` is static, and the reader's by native_argument. */
void native_take(struct http_request *request, json_body_read *read);
void native_take_with(struct http_request *request, json_body_read *read, const void *argument);
const void *native_argument(const struct http_request *request);

/* The sandbox that the route's {id} names; NULL: the request was answered. */
struct sandbox;
struct sandbox *native_find_sandbox(struct http_request *request);

/* An optional duration ("24h", "7d", or seconds) from now as wall time; without it `ret_expires_ms`
 * stays. Returns 0, or -1 with ERR_INVALID. */
int native_read_expiry(struct http_request *request, const struct json_place *body, const char *key,
                       int64_t *ret_expires_ms, struct error *err);

/* How many a list is to have at the most: ?limit=, or `ret_limit` as it was. Returns 0, or -1 with
 * ERR_INVALID. */
int native_read_limit(struct http_request *request, int64_t max, int64_t *ret_limit,
                      struct error *err);

/* A time, unless it is 0. */
void native_add_time(struct json_writer *json, const char *key, int64_t wall_ms);

/* An answer in JSON: begin it, write it, send it.
 *
 *     AUTO(native_answer) struct native_answer answer;
 *
 *     native_answer_begin_list(&answer, "ports");
 *     ... one value per port
 *     native_answer_send(&answer, request, 200); */
struct native_answer {
    struct json_writer json;
    struct text body;
};

void native_answer_begin_value(struct native_answer *answer); /* one value is to be written */
void native_answer_begin(struct native_answer *answer);       /* fields of an object */
void native_answer_begin_list(struct native_answer *answer, const char *key); /* a list in one */

/* Begin an object for a request that was pending. NULL: its client is gone, or there is a failure,
 * which was answered. */
struct http_request *native_answer_pending(struct native_answer *answer, struct pending *pending,
                                           const struct error *failure);

/* Whether a page of a list is as long as one may be: what is left is behind its cursor. Nothing holds
 * the loop for longer than it takes to write so much. `answer` is a struct native_answer; fits
 * sandbox_filter and snapshot_filter. */
bool native_answer_is_full(void *answer);

/* Ends what is open, and the request. */
void native_answer_send(struct native_answer *answer, struct http_request *request, int status);
void native_answer_done(struct native_answer *answer);

AUTO_DEFINE(native_answer, struct native_answer, native_answer_done);
