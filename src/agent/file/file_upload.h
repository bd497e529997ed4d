/* PUT /burrow/file?path=...: the bytes of the body become a file, of any size, with flat memory.
 *
 * The file is replaced as a whole (file_writer.h) when the last byte is there; a client that leaves
 * before has changed nothing. docs/agent-protocol.md says more. */
#pragma once

#include "net/http/http_request.h"

void file_upload(struct http_request *request);
