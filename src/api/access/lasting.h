/* Lasting: credentials are checked for as long as they are used.
 *
 * Admission lets a request in, and lets go of it. What then lasts (a terminal, a stream of events,
 * an upload, a tunnel, a preview) keeps its caller, whom this asks the domain about again: soon
 * after somebody may have lost a right (standing.h), and when the first credential expires. Whoever
 * may not stay is sent away by the server (http_server_review). */
#pragma once

#include <stdint.h>

#include "base/clock.h"
#include "base/log.h"
#include "domain/caller.h"
#include "domain/domain.h"
#include "net/http/http_server.h"
#include "net/loop.h"

#define LASTING_SERVERS_MAX 2

struct lasting;

/* All are borrowed, and outlive it; `log` may be NULL. */
struct lasting *lasting_new(struct loop *loop, struct domain *domain, const struct clock *clock,
                            struct log *log);

/* Whom this server has is asked about, too. Before lasting_close it has drained. */
void lasting_watch(struct lasting *lasting, struct http_server *server);

/* Somebody was let in: note until when, if that has an end. NULL does nothing. */
void lasting_note(struct lasting *lasting, const struct caller *caller);

/* Look at everybody soon: many changes at once are looked at once. */
void lasting_changed(struct lasting *lasting);

/* Frees itself once the loop has turned. Accepts NULL. */
void lasting_close(struct lasting *lasting);
