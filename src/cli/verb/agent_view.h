/* What an agent says, on a terminal: text as it comes, tool calls folded into a line each, what it
 * asks, and how its turn ended. Follows a stream of events until its end; a daemon that is restarted
 * is found again, and nothing is missed or told twice. */
#pragma once

#include "cli/verb/verb_client.h"

struct agent_view {
    const struct verb_call *call;
    struct client *client; /* follows */
    struct client *other;  /* asks meanwhile: cancels, answers; NULL: it is opened when needed */
    struct client own;     /* that one */
    bool is_json;          /* events as they are, a line each */
    bool answers;          /* asks the person about permissions */
    long long after;       /* the last event that was kept */
    char part[160];        /* that is being written */
    size_t told;           /* bytes of it that were shown */
    bool is_at_start;      /* of a line */
    const char *sandbox;   /* of answers; owned by the caller */
    const char *cancel;    /* path to post to on Ctrl-C; NULL: there is none */
    bool is_cancelled;
    char state[24]; /* how it ended; "": not yet */
    unsigned int failures;
};

void agent_view_init(struct agent_view *view, const struct verb_call *call, struct client *client);
void agent_view_done(struct agent_view *view);

/* `path`: of events, without a query. Returns 0 at the end of the stream, or -1. */
int agent_view_follow(struct agent_view *view, const char *path, struct error *err);

/* 0: done; 1: anything else. */
int agent_view_status(const struct agent_view *view);
