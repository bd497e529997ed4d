/* The operations on files that clients call, for every transport. Those with a call are rows of one
 * table; those with a request are routes of their own, for files of any size with flat memory. */
#pragma once

#include <sys/stat.h>

#include "agent/call.h"
#include "agent/operation.h"
#include "json/json_write.h"
#include "net/http/http_request.h"

extern const struct operation_table file_operations;

/* --- small changes -------------------------------------------------------------------------- */

void file_delete(struct call *call);
void file_make_directory(struct call *call);
void file_exists(struct call *call);

/* --- moving and renaming -------------------------------------------------------------------- */

/* As mv(1) does: into a folder that is there, over a file that is there, and to another filesystem
 * by copying. A copy is made beside the destination and takes its name when it is complete; then
 * the source is deleted. It goes on to the end though its client may leave. */
void file_move(struct call *call);
void file_rename(struct call *call);

/* --- listing -------------------------------------------------------------------------------- */

/* More is refused: nobody reads such an answer. */
#define FILE_LIST_MAX ((uint64_t) 1000 * 1000)

void file_list(struct call *call);

#define FILE_LIST_TIME_SIZE 32
#define FILE_LIST_MODE_SIZE 10

/* "2026-11-15T18:27:25.2114504240": UTC, seconds as find(1) prints them. Years that four digits
 * do not hold are 1970. */
void file_list_time(const struct timespec *time, char ret_text[static FILE_LIST_TIME_SIZE]);

/* "rw-r--r--" */
void file_list_mode(mode_t mode, char ret_text[static FILE_LIST_MODE_SIZE]);

/* --- reading -------------------------------------------------------------------------------- */

/* The most that goes into one JSON object. */
#define FILE_READ_MAX ((uint64_t) 32 * 1024 * 1024)

/* Bytes of a file in one event; a multiple of three, so that events join to one base64 text. */
#define FILE_READ_SLICE ((size_t) 65535)

/* As one JSON object, as events. */
void file_read(struct call *call);
void file_read_stream(struct call *call);

/* GET and HEAD /burrow/file?path=...: the bytes of a regular file, of any size, with flat memory.
 *
 * One range of bytes may be asked for (Range, If-Range with the ETag). A file that grows meanwhile
 * is cut at the size it had, one that shrinks cuts the connection. docs/agent-protocol.md says
 * more. */
void file_download(struct http_request *request);

/* --- writing -------------------------------------------------------------------------------- */

/* The most content that one call may carry, and what its JSON may take. */
#define FILE_WRITE_MAX      ((size_t) 32 * 1024 * 1024)
#define FILE_WRITE_BODY_MAX ((size_t) 48 * 1024 * 1024)

/* Content in the call itself, or a stream of it. */
void file_write(struct call *call);
void file_write_stream(struct call *call);

/* Decode base64 as clients write it: padding may be missing. Returns how many bytes `text` stands
 * for, or -EINVAL when it has other characters or a length that no bytes have. */
ssize_t file_write_base64_size(const char *text, size_t length);
/* The bytes that `length` characters stand for, which file_write_base64_size took, from a multiple
 * of four on. Returns their number; `ret_bytes` has room for 3 for every 4, rounded up. */
size_t file_write_base64(const char *text, size_t length, char *ret_bytes);

/* PUT /burrow/file?path=...: the bytes of the body become a file, of any size, with flat memory.
 *
 * The file is replaced as a whole (file_writer.h) when the last byte is there; a client that leaves
 * before has changed nothing. docs/agent-protocol.md says more. */
void file_upload(struct http_request *request);
