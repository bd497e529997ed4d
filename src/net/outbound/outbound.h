/* Exchanges of curl_exchange.h on the loop, several at a time: for webhooks.
 *
 * outbound_start copies everything it needs and calls on_done once, last, on the loop's thread and
 * never from inside a call of this module. There is no queue: the caller knows how many it may
 * have under way. */
#pragma once

#include "net/loop.h"
#include "net/outbound/curl_exchange.h"

struct outbound;

/* Connections are made under `rules`, which are copied, and are never shared with another outbound.
 * At most `active_max` exchanges run at a time. The caller closes it; `loop` is borrowed and
 * outlives it. */
struct outbound *outbound_new(struct loop *loop, const struct address_rules *rules,
                              unsigned int active_max);

/* Close it. What is under way gets on_done with ERR_CANCELLED at the end of this turn; `on_closed`
 * (may be NULL) is called when the memory is gone. Accepts NULL, then calls nothing. */
void outbound_close(struct outbound *outbound, void (*on_closed)(void *context), void *context);

struct outbound_call {
    const char *method; /* NULL: GET */
    const char *url;    /* from anybody: see outbound_url_read */
    const struct outbound_header *headers;
    size_t header_count;
    const void *body; /* NULL: none */
    size_t body_length;
    uint64_t connect_ms; /* as in struct outbound_request */
    uint64_t total_ms;
    size_t answer_max; /* bytes of the answer's body; a longer one is an error */
    /* `err` is NULL when a whole answer came, whatever its status. When it broke off behind its
     * head, there is an error and a status. */
    void (*on_done)(void *context, const struct outbound_answer *answer, const struct error *err);
    void *context;
};

/* Returns 0, or -1 with ERR_INVALID (the URL, a header), ERR_URL_TOO_LONG or ERR_UNAVAILABLE
 * (active_max are running, or it is being closed); then on_done is not called.
 *
 * A connection that was kept may turn out dead before a byte of the answer came; the request is
 * then sent once more on a new one. Like any HTTP client: what must not happen twice carries an
 * id. */
int outbound_start(struct outbound *outbound, const struct outbound_call *call, struct error *err);
