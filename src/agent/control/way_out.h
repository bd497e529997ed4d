/* PUT /burrow/way-out: names that lead to the egress broker, and whom programs trust there.
 *
 *     {"hosts": [{"address": "127.66.0.1", "name": "github.com"}], "authority": PEM or null}
 *
 * It is the whole of it each time: what was told before is taken away. Names go into /etc/hosts,
 * between two marks, behind what is there; the authority into WAY_OUT_CA, and with the image's own
 * roots into WAY_OUT_BUNDLE. Both are there also when there is no authority, so that variables that
 * name them are never wrong. */
#pragma once

#include <jansson.h>

#include "net/http/http_request.h"

#define WAY_OUT_FOLDER   "/run/burrow"
#define WAY_OUT_CA       WAY_OUT_FOLDER "/ca.pem"
#define WAY_OUT_BUNDLE   WAY_OUT_FOLDER "/ca-bundle.pem"
#define WAY_OUT_BODY_MAX ((size_t) 512 * 1024)

void way_out_handle(struct http_request *request);

/* The text of /etc/hosts with these names in the place of those of before. `hosts` is the JSON array;
 * the caller's, to be freed. NULL: a name or an address is none. */
char *way_out_hosts(const char *before, const json_t *hosts);
