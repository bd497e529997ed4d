/* Writing files: content in the call itself, or a stream of it (operations of file_service.h). */
#pragma once

#include "agent/call.h"

/* The most content that one call may carry, and what its JSON may take. */
#define FILE_WRITE_MAX      ((size_t) 32 * 1024 * 1024)
#define FILE_WRITE_BODY_MAX ((size_t) 48 * 1024 * 1024)

void file_write(struct call *call);
void file_write_stream(struct call *call);

/* Decode base64 as clients write it: padding may be missing. Returns how many bytes `text` stands
 * for, or -EINVAL when it has other characters or a length that no bytes have. */
ssize_t file_write_base64_size(const char *text, size_t length);
/* The bytes that `length` characters stand for, which file_write_base64_size took, from a multiple
 * of four on. Returns their number; `ret_bytes` has room for 3 for every 4, rounded up. */
size_t file_write_base64(const char *text, size_t length, char *ret_bytes);
