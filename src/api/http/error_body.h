/* The body of an error reply in our own shape; dialects with another shape have their own encoder.
 *
 *     {"error":{"code":"not_found","message":"no route for this path","requestId":"..."}} */
#pragma once

#include "base/error.h"
#include "base/text.h"
#include "net/http/http_request.h"

/* Fits http_mount and http_server_options. */
void error_body_write(const struct http_request *request, const struct error *error,
                      struct text *body, const char **ret_content_type);
