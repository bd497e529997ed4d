/* Requests that are a sandbox's own affair: checked and translated here, answered by its agent.
 *
 *     static const struct forward_field fields[] = {
 *         {"command"}, {"timeout", "timeoutMs", FORWARD_DURATION},
 *     };
 *     static const struct forward start = {"POST", "/api/process/start", fields, COUNT(fields)};
 *
 *     void native_start_process(struct http_request *request) { forward(request, &start); }
 *
 * Which fields there are, and their units, is this dialect's; what their values may be is the
 * agent's to say, whose errors become ours. Good answers are passed on as they are. */
#pragma once

#include <stddef.h>

#include "net/http/http_request.h"

enum forward_kind {
    FORWARD_AS_IS,
    FORWARD_DURATION, /* "30s", "5m" or seconds; the agent counts milliseconds */
    FORWARD_OMIT,     /* known here, not told to the agent */
};

struct forward_field {
    const char *name;
    const char *agent_name; /* NULL: the same */
    enum forward_kind kind;
};

struct forward {
    const char *method;
    const char *path; /* of the agent; {name} is a parameter of the route, escaped */
    const struct forward_field *fields;
    size_t field_count;
    unsigned int visit;  /* flags of visit_begin */
    const char *session; /* for the agent when the body has no sessionId; NULL: its own default */
    /* Another path for a body with "stream": true, or a client that accepts events only; NULL: the
     * same. */
    const char *stream_path;
    /* A parameter of the route that the agent wants in the body, and under which name; NULL. */
    const char *parameter, *parameter_name;
    bool is_plain;  /* the agent is to leave out what the client knows */
    bool has_query; /* the request's query is passed on */
    bool is_events; /* the answer is a stream of events, whatever the client says */
};

/* The route has an {id}. With a method that has no body the query is all there is. */
void forward(struct http_request *request, const struct forward *row);

#define FORWARD_FIELDS(array) .fields = (array), .field_count = ARRAY_COUNT(array)
