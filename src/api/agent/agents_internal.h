/* Inside agents: what agents.c, inquiry.c and inside_*.c share. Nothing else includes this. */
#pragma once

#include "api/agent/agents.h"
#include "base/list.h"
#include "base/table.h"

struct agents {
    struct loop *loop;     /* borrowed */
    struct log *log;       /* borrowed, may be NULL */
    struct domain *domain; /* borrowed; NULL until agents_set_domain */
    struct inside inside;
    struct table by_id;    /* of struct agent_peer */
    struct list peers;     /* the least recently used one first */
    struct list inquiries; /* of inquiry.c, under way */
    struct deadline sweep;
    uint64_t seed;
    size_t open; /* handles and origins whose memory is not gone yet */
    bool is_closing;
    void (*done)(void *context);
    void *context;
};

/* Something that `open` counts is gone. */
void agents_part_closed(struct agents *agents);

/* The functions of agents->inside. */
void inside_agent_init(struct agents *agents);

/* The one about archives: inside_extract.c. `self` is the agents. */
void inside_extract(void *self, const struct id *sandbox, const char *folder, int tar,
                    inside_done *done, void *context);
