/* Folders as tar archives, for the control plane: streams of any size, both ways, with flat memory.
 *
 *     GET /burrow/archive?path=/workspace[&excludes=a,b/c]     the folder, as application/x-tar
 *     PUT /burrow/archive?path=/workspace[&links=any][&replace=1]   an archive into the folder
 *
 * docs/agent-protocol.md says more. */
#pragma once

#include "net/http/http_request.h"

void file_archive_get(struct http_request *request);
void file_archive_put(struct http_request *request);
