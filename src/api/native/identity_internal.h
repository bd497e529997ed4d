/* Between the files that serve people and keys. */
#pragma once

#include "api/native/body.h"
#include "domain/identity/owner.h"

#define IDENTITY_PAGE_MAX     1000
#define IDENTITY_PAGE_DEFAULT 1000

/* The user that is meant ("me", an id, an email or a name), or NULL with ERR_NOT_FOUND: there is
 * none for this caller. */
struct owner *identity_user_of(struct http_request *request, const char *text, struct error *err);

void identity_write_user(struct json_writer *json, const struct owner *owner);

/* "createdAt": "2026-...", or null for 0. */
void identity_add_time(struct json_writer *json, const char *key, int64_t wall_ms);

/* A page of a list in memory, in the order things were made: ?limit= and ?after=ID. */
struct identity_page {
    struct native_answer answer;
    const char *after; /* NULL: from the start, or passed already */
    int64_t left;
    const char *last; /* of this page */
    bool has_more;
};

/* Of a page of zeros. Returns 0, or -1 with ERR_INVALID: it is ended in both cases. */
int identity_page_begin(struct identity_page *page, struct http_request *request, const char *name,
                        struct error *err);

/* Whether the thing with this id belongs to the page. */
bool identity_page_takes(struct identity_page *page, const struct id *id);

/* Writes "next", and sends; or the failure. */
void identity_page_end(struct identity_page *page, struct http_request *request,
                       const struct error *failure);
