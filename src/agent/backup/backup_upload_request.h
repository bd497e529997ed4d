/* What a client asks of an upload, and what a server answered to one part of it. Pure functions.
 *
 * Part URLs are presigned: whoever has one may write. No message repeats any of it. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "agent/api_error.h"
#include "base/pool.h"
#include "json/json_read.h"

#define BACKUP_UPLOAD_BODY_MAX  ((size_t) 16 * 1024 * 1024)
#define BACKUP_UPLOAD_PARTS_MAX ((size_t) 10000)
#define BACKUP_UPLOAD_ETAG_MAX  ((size_t) 256)

struct backup_part {
    int64_t number;
    int64_t offset;
    int64_t size;
    const char *url;
    const char *etag; /* NULL until it was sent */
};

struct backup_upload_request {
    const char *archive;
    struct backup_part *parts; /* by number */
    size_t count;
};

/* Read the arguments of the call; everything is the pool's. Returns 0, or -1 with the error to
 * tell: VALIDATION_FAILED, INVALID_BACKUP_CONFIG. */
int backup_upload_request_read(json_t *arguments, struct pool *pool,
                               struct backup_upload_request *ret_request, struct api_error *error);

/* Append the config that makes curl send a part from its stdin. */
void backup_upload_config(struct text *config, const struct backup_part *part);

/* Read the head of what curl printed with -i; interim answers are passed over. Returns the status
 * and the value of ETag ("" without one), or -1 when that is no answer. */
int backup_upload_answer(const char *bytes, size_t length,
                         char ret_etag[static BACKUP_UPLOAD_ETAG_MAX]);
