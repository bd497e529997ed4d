/* One request and its whole response on a blocking connection. */
#pragma once

#include "load/options.h"
#include "load/response.h"

#define EXCHANGE_REQUEST_MAX 1024

/* Write a GET for the path and target of `options`. Returns its length; ends the program when the
 * path is too long. */
size_t exchange_write_get(const struct load_options *options,
                          char ret[static EXCHANGE_REQUEST_MAX]);

/* Send `request` and read until the response ends. Returns 0 with the status in `response`, or
 * -errno (-ECONNRESET when the server closed before the end). Blocks. */
int exchange_run(int fd, const char *request, size_t length, struct response *response);
