/* POST /api/execute and /api/execute/stream: one command, its output as JSON or as events.
 *
 * Without a session (none named, or EXECUTE_NO_SESSION) every command is a process of its own:
 * its own session and process group, stdin closed, nothing kept. A client that leaves cancels its
 * command. Named sessions are refused for now.
 *
 * Memory does not grow with output. The stream pauses the command while its client is slow. The
 * JSON form holds up to EXECUTE_HOLD_MAX bytes of stdout and of stderr; the first that is longer
 * is sent while the command still runs, the other may have EXECUTE_OTHER_MAX bytes and is then
 * cut, which "stdoutTruncated" or "stderrTruncated" says. */
#pragma once

#include "net/http_request.h"

#define EXECUTE_HOLD_MAX  ((size_t) 64 * 1024)
#define EXECUTE_OTHER_MAX ((size_t) 1024 * 1024)

void execute_handle(struct http_request *request);
void execute_handle_stream(struct http_request *request);
