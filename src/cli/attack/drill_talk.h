/* One request of a drill and what comes of it, in whatever way: with any credential and headers, held
 * open as long as somebody likes, upgraded to a tunnel, or never finished.
 *
 *     struct drill_talk talk = {.call = &call};
 *     drill_talk_start(&talk, client);
 *     drill_talk_wait(&talk, client, TIMEOUT_MS);          runs the client's loop
 *     ... talk.status, talk.body, drill_talk_json(&talk)
 *     drill_talk_end(&talk);
 *
 * Many may be under way on one client at once; the loop runs for all of them. */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/text.h"
#include "cli/client/client.h"

#define DRILL_HEADERS_MAX 8
#define DRILL_COOKIE_SIZE 256
#define DRILL_BODY_MAX    ((size_t) 4 * 1024 * 1024)

/* Instead of a key: none at all. */
#define DRILL_NO_KEY ""

struct drill_call {
    const char *method; /* NULL: GET */
    const char *path;
    const char *key;                        /* NULL: the client's own; DRILL_NO_KEY */
    const char *host;                       /* NULL: the daemon's */
    const char *headers[DRILL_HEADERS_MAX]; /* "Name", "value", ... NULL at the end */
    const char *type;                       /* of the body; NULL: JSON */
    const char *body;                       /* NULL: none */
    size_t body_length;                     /* 0: strlen */
    size_t body_promised; /* more than is sent: the rest never comes; 0: no more */
    bool upgrade;         /* to a WebSocket */
    bool forgets;         /* keep nothing of an answer but what a refusal says */
};

struct drill_talk {
    const struct drill_call *call;            /* borrowed while it starts */
    struct client *client;                    /* borrowed */
    void (*on_over)(struct drill_talk *talk); /* optional */
    void *owner;
    struct http_exchange *exchange;
    struct stream *tunnel; /* owned; after an upgrade */
    struct text body;
    int status;   /* 0: there was no answer */
    bool is_over; /* answered whole, broken off or cut */
    bool is_cut;  /* it ended otherwise than with its answer's end */
    bool forgets, stops;
    uint64_t started_ns, ended_ns;
    char cookie[DRILL_COOKIE_SIZE]; /* "name=value" of the first Set-Cookie */
    size_t received;                /* bytes of the answer, or of the tunnel */
};

void drill_talk_start(struct drill_talk *talk, struct client *client);

/* Until it is over; with `at_head` its status is enough, as of what stays open. Whether it was in
 * time. */
bool drill_talk_wait(struct drill_talk *talk, uint64_t timeout_ms, bool at_head);

/* Whatever is under way: ended. The body is freed. */
void drill_talk_end(struct drill_talk *talk);
AUTO_DEFINE(drill_talk, struct drill_talk, drill_talk_end);

/* The answer's body, the caller's; NULL: it is no JSON. */
json_t *drill_talk_json(const struct drill_talk *talk);

/* Whether the answer is a success. */
bool drill_talk_is_good(const struct drill_talk *talk);

/* How long it took. */
double drill_talk_ms(const struct drill_talk *talk);

/* Start, wait and keep: the status, 0 for no answer in time. */
int drill_ask(struct client *client, const struct drill_call *call, struct drill_talk *ret_talk);

/* Let one thing happen, if it does so within that time. */
void drill_turn(struct client *client, uint64_t milliseconds);

/* Let what is under way go on for so long. */
void drill_pump(struct client *client, uint64_t milliseconds);
