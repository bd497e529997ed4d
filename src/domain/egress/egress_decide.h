/* What a policy says of something that a sandbox asks of the broker. Pure: budgets, credentials and
 * what is dialled in the end are egress_ask.c's. */
#pragma once

#include "domain/broker.h"
#include "model/egress_policy.h"

struct egress_verdict {
    enum broker_verdict verdict;
    const struct egress_rule *rule;   /* that let it go, or NULL */
    const struct egress_route *route; /* of a route */
    enum broker_format format;
    /* Of a refusal: */
    enum err_code code;
    const char *reason; /* a word for the event; static */
    bool is_violation;  /* something that a well-meaning program does not do */
    char message[256];
};

void egress_decide(const struct egress_policy *policy, const struct broker_ask *ask,
                   struct egress_verdict *ret_verdict);

/* Whether an API has such a request, and how its usage is told. A "/v1" or "/v1beta" in front means
 * nothing. */
bool egress_api_has(enum egress_api api, const char *method, const char *path,
                    enum broker_format *ret_format);

/* The length of "/v1" or "/v1beta" in front of a path; 0: there is none. */
size_t egress_version_length(const char *path);

/* What a client inside has for a key: a label that begins with EGRESS_LABEL, or something else that
 * is of no interest. Whether that label is the one of this route, or of a host with this credential
 * of this API. */
bool egress_label_fits(const struct egress_policy *policy, const char *label, const char *route,
                       const char *credential, enum egress_api api);
