/* Media types: by the name of a file, else by its first bytes.
 *
 * Names are looked up by extension, and a few whole names (Makefile, Dockerfile, LICENSE). What has
 * no known name is told by the signature of its format, else it is text/plain when it looks like
 * text, else application/octet-stream. The results are static strings. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

/* Bytes from the beginning of a file that mime_of_bytes makes use of. */
#define MIME_SNIFF_SIZE ((size_t) 4096)

#define MIME_EMPTY   "inode/x-empty"
#define MIME_TEXT    "text/plain"
#define MIME_UNKNOWN "application/octet-stream"

/* By the last component of a path; NULL when it says nothing. */
const char *mime_of_name(const char *name);

/* By content: the first bytes of a file. Never NULL. */
const char *mime_of_bytes(const void *bytes, size_t length);

/* Whether content of this type is passed on as text, not as base64. */
bool mime_is_text(const char *type);
