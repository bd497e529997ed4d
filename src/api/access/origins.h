/* Pages of other origins: which of them may use the API from a browser (CORS).
 *
 * None, unless the operator names them (setting cors-origins): "https://app.example" may then also
 * use a login's cookie; "*" lets every page call with a key of its own, never with a cookie. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"
#include "net/http/http_request.h"

#define ORIGINS_MAX 32

struct origins {
    char *items[ORIGINS_MAX]; /* owned: scheme://host:port, lower case, in one form */
    size_t count;
    bool is_any; /* "*" */
};

/* "https://app.example,http://localhost:5173", "*", or "" for none. Returns 0, or -1 with
 * ERR_INVALID. */
int origins_read(struct origins *origins, const char *text, struct error *err);
void origins_done(struct origins *origins);

/* Whether the operator named this origin; "*" names none. */
bool origins_has(const struct origins *origins, const char *origin);

/* Tell the browser that the page may see the coming reply, when it may. */
void origins_add_headers(const struct origins *origins, struct http_request *request);

/* Whether this is a browser's question before the request itself, which has no credential. */
bool origins_is_preflight(const struct http_request *request);

/* Answer it. Ends the request. */
void origins_answer_preflight(const struct origins *origins, struct http_request *request);
