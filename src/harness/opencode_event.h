/* One event of an OpenCode server, of 1.0 as of 1.18, in one form. Pure; the server is not trusted:
 * what is no event of the kinds below, or lacks what its kind needs, is OPENCODE_OTHER. */
#pragma once

#include <jansson.h>
#include <stddef.h>

#include "json/json_read.h"

#define OPENCODE_ID_MAX ((size_t) 128) /* longer ids are none */

enum opencode_event_kind {
    OPENCODE_OTHER,
    OPENCODE_CONNECTED,  /* the stream has begun */
    OPENCODE_SESSION,    /* `session`, and whose child it is (`parent`, may be NULL) */
    OPENCODE_MESSAGE,    /* `body`: its info */
    OPENCODE_PART,       /* `body`: the part; `text`: what is new of it, may be NULL (1.0) */
    OPENCODE_DELTA,      /* `part`, `field`, `text` */
    OPENCODE_PERMISSION, /* `request`, `body`: in 1.18's form */
    OPENCODE_QUESTION,   /* `request`, `body` */
    OPENCODE_ANSWERED,   /* `request`, `reply` */
    OPENCODE_ERROR,      /* `body`: {"name","data"}; `session` may be NULL: of all */
    OPENCODE_IDLE,
    OPENCODE_BUSY,
};

struct opencode_event {
    enum opencode_event_kind kind;
    const char *session; /* these are borrowed from `root` */
    const char *parent, *message, *part, *field, *request, *reply;
    const char *text;
    size_t text_length;
    json_t *body;
    json_t *root; /* owned */
    json_t *made; /* owned: a body of our own; NULL */
};

/* 0, or -1 with ERR_INVALID when the bytes are no JSON object; then there is nothing to free. */
int opencode_event_read(const char *bytes, size_t length, struct opencode_event *ret_event,
                        struct error *err);

void opencode_event_done(struct opencode_event *event);

AUTO_DEFINE(opencode_event, struct opencode_event, opencode_event_done);

/* A permission as 1.18 has it, made of 1.0's or a copy. Owned. */
json_t *opencode_permission(const json_t *asked);

/* The member that is a text of at most OPENCODE_ID_MAX bytes and not empty, or NULL. */
const char *opencode_id(const json_t *object, const char *key);

/* Letters, digits, '_' and '-', as all ids of OpenCode's are: may be part of a path. */
bool opencode_id_is_plain(const char *id);
