/* AWS Signature Version 4: who sends a request, and that nobody changed it.
 *
 * Signed are the method, the path, the query, chosen headers and the digest of the body; both
 * sides write them in one canonical form and compare an HMAC of it. The canonical path and query
 * made here are also what is sent, so that the two cannot differ.
 *
 * As S3 wants it: the path is escaped once and not normalised ("a//b/../c" is a key). Pure,
 * thread-safe. The texts of the callers have room, or say that they overflowed. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/text.h"

#define SIGV4_DATE_SIZE 17 /* "20130524T000000Z" and a NUL */
#define SIGV4_PAIRS_MAX 64 /* headers, or parameters of a query */

struct sigv4_pair {
    const char *name;
    const char *value;
};

struct sigv4_key {
    const char *id;
    const char *secret;
    const char *session_token; /* NULL: none. A header or parameter of its own, see below */
    const char *region;
    const char *service; /* "s3" */
};

struct sigv4_request {
    const char *method;
    const char *path;               /* escaped, begins with '/' */
    const struct sigv4_pair *query; /* neither escaped nor sorted */
    size_t query_count;
    const struct sigv4_pair *headers; /* all to be signed, names in lower case, "host" among them */
    size_t header_count;
    const char *payload; /* the body's SHA-256 in hex */
};

/* "20130524T000000Z": the value of x-amz-date. */
void sigv4_date(int64_t wall_ms, char ret_date[static SIGV4_DATE_SIZE]);

/* Append the query in its canonical form, without '?': escaped, sorted, "name=" for an empty one.
 */
void sigv4_query(const struct sigv4_pair *pairs, size_t count, struct text *out);

/* Append the value of the Authorization header. `date` is that of sigv4_date; the request's headers
 * contain x-amz-date with it, and x-amz-security-token when there is a session token. */
void sigv4_authorize(const struct sigv4_key *key, const struct sigv4_request *request,
                     const char *date, struct text *out);
