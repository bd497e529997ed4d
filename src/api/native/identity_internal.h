/* Between the files that serve people and keys. */
#pragma once

#include "api/http/api.h"
#include "domain/identity/owner.h"
#include "json/json_write.h"

#define IDENTITY_REPLY_MAX    ((size_t) 4 * 1024 * 1024)
#define IDENTITY_PAGE_MAX     1000
#define IDENTITY_PAGE_DEFAULT 1000

/* Handlers, by the file they are in. */
void identity_list_users(struct http_request *request); /* identity_user.c */
void identity_get_user(struct http_request *request);
void identity_create_user(struct http_request *request); /* identity_user_change.c */
void identity_update_user(struct http_request *request);
void identity_delete_user(struct http_request *request);
void identity_list_keys(struct http_request *request); /* identity_key.c */
void identity_create_key(struct http_request *request);
void identity_revoke_key(struct http_request *request);

/* The user that is meant ("me", an id, an email or a name), or NULL with ERR_NOT_FOUND: there is
 * none for this caller. */
struct owner *identity_user_of(struct http_request *request, const char *text, struct error *err);

void identity_write_user(struct json_writer *json, const struct owner *owner);

/* "createdAt": "2026-...", or null for 0. */
void identity_add_time(struct json_writer *json, const char *key, int64_t wall_ms);

/* Send what was written, or 500 when it did not fit. */
void identity_reply(struct http_request *request, int status, struct json_writer *json,
                    struct text *body);

/* A page of a list in memory, in the order things were made: ?limit= and ?after=ID. */
struct identity_page {
    struct json_writer json;
    const char *after; /* NULL: from the start, or passed already */
    int64_t left;
    const char *last; /* of this page */
    bool has_more;
};

/* Returns 0, or -1 with ERR_INVALID. */
int identity_page_begin(struct identity_page *page, struct http_request *request, const char *name,
                        struct text *body, struct error *err);

/* Whether the thing with this id belongs to the page. */
bool identity_page_takes(struct identity_page *page, const struct id *id);

/* Writes "next", and sends. */
void identity_page_end(struct identity_page *page, struct http_request *request, struct text *body);
