/* The heads of a request on its way out and of its reply on its way in: what is taken out, what is put
 * in. */
#pragma once

#include "broker/broker_internal.h"

struct relay_head {
    struct upstream_address address;
    const char *target;
    struct http_header *headers;
    size_t header_count;
    bool has_wish; /* the body is to ask for its usage: usage_wish.h */
};

/* Write the head for `request` as it was asked for and granted; everything comes from the request's
 * pool. Returns 0, or -1 with ERR_INTERNAL when the grant makes no sense; never tells a secret. */
int relay_head_write(struct http_request *request, const struct broker_ask *ask,
                     const struct broker_grant *grant, struct relay_head *ret_head,
                     struct error *err);

/* Copy the headers of the reply. Returns 0, or -1 when they do not fit. */
int relay_head_copy(struct http_request *request, const struct http_head *reply,
                    const struct broker_grant *grant);
