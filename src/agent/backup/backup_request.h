/* What a client asks of making or restoring an archive: read and checked, nothing done yet. */
#pragma once

#include <stdint.h>

#include "agent/call.h"
#include "json/json_read.h"

struct backup_request {
    const char *folder;
    const char *archive;
    struct json_texts excludes;
    const char *compression;
    int64_t threads;
    bool gitignore;
};

/* Read the arguments of the call; the strings are the pool's. Returns 0, or -1 with the error to
 * tell: VALIDATION_FAILED, INVALID_BACKUP_CONFIG. */
int backup_request_read(json_t *arguments, struct pool *pool, struct backup_request *ret_request,
                        struct api_error *error);

/* INVALID_BACKUP_CONFIG for this field. Returns -1. */
int backup_request_refuse(struct api_error *error, const char *field, const char *reason);
