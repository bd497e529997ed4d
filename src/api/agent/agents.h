/* Connections to the agents of running sandboxes: one http_origin each, made when first needed,
 * closed when unused for a while, when the sandbox stops, and with the least recently used going
 * first when there are more than AGENTS_MAX. A sleeping sandbox costs nothing here. */
#pragma once

#include "base/error.h"
#include "base/id.h"
#include "domain/domain.h"
#include "domain/inside.h"
#include "net/http/http_client.h"
#include "net/loop.h"

#define AGENTS_MAX 4096

struct agents;

struct agents *agents_new(struct loop *loop, struct log *log);

/* The domain is made after this (it needs agents_inside), and given here before any request. */
void agents_set_domain(struct agents *agents, struct domain *domain);

/* Where to send requests for a sandbox's agent; NULL with ERR_UNAVAILABLE or ERR_NOT_FOUND.
 * Borrowed: good until the end of this turn, and as long as an exchange on it lasts. */
struct http_origin *agents_origin(struct agents *agents, const struct id *sandbox,
                                  struct error *err);

/* What the domain asks of agents (inside_agent.c). Borrowed: lives as long as `agents`. */
const struct inside *agents_inside(struct agents *agents);

/* What a sandbox's agent did last about a request ("": any), as trace_json_read reads it. */
typedef void agents_text_done(void *context, const struct error *failure, const char *text);
void agents_ask_trace(struct agents *agents, const struct id *sandbox, const struct id *request,
                      agents_text_done *done, void *context);

/* For metrics. */
struct agents_counts {
    size_t peers;       /* sandboxes that are or were just talked to */
    size_t connections; /* open to them, idle ones included; tunnels are not counted */
};
void agents_count(const struct agents *agents, struct agents_counts *ret_counts);

/* Fails what is under way; `done` (may be NULL) when all is gone. */
void agents_close(struct agents *agents, void (*done)(void *context), void *context);
