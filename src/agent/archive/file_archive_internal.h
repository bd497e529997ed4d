/* What both ways of file_archive share. */
#pragma once

#include "agent/file/file_path.h"
#include "net/http/http_request.h"

/* Answer with a failure of the filesystem, or of a parameter. */
void file_archive_fail(struct http_request *request, const char *operation, const char *path,
                       int error);
void file_archive_fail_parameter(struct http_request *request, const char *operation,
                                 const char *name, const char *message);

/* The folder of ?path=. Returns -1 when the request was answered. */
int file_archive_place(struct http_request *request, const char *operation,
                       struct file_place *place);
