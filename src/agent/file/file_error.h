/* Failures of the filesystem as clients know them: errno to a code, a sentence and a context
 * {"path", "operation"}. */
#pragma once

#include "agent/api_error.h"
#include "agent/call.h"

/* What has no errno of its own. Not negated, like an errno; far above all of them. */
#define FILE_ERROR_NOT_REGULAR 5000 /* a pipe, a socket or a device where a file is wanted */
#define FILE_ERROR_TOO_DEEP    5001 /* folders in each other beyond FILE_WALK_DEPTH_MAX */

/* `error` is an errno or one of the above, negated or not. `operation` is "file.read". */
void file_error_fill(struct api_error *api, const char *operation, const char *path, int error);

/* The code alone. */
enum api_code file_error_code(int error);

/* Fail the call with it. */
void file_error_fail(struct call *call, const char *path, int error);

/* FILE_TOO_LARGE with both sizes in its context. */
void file_error_fail_size(struct call *call, const char *path, uint64_t maximum, uint64_t actual);

/* Set the context {"path", "operation"}. */
void file_error_context(struct api_error *api, const char *operation, const char *path);
