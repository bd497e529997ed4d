/* GET and HEAD /burrow/file?path=...: the bytes of a regular file, of any size, with flat memory.
 *
 * One range of bytes may be asked for (Range, If-Range with the ETag). A file that grows meanwhile
 * is cut at the size it had, one that shrinks cuts the connection. docs/agent-protocol.md says
 * more. */
#pragma once

#include "net/http/http_request.h"

void file_download(struct http_request *request);
