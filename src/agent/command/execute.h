/* POST /api/execute and /api/execute/stream, commands.execute and commands.executeStream: one
 * command, its output as JSON or as events.
 *
 * In a session (session_set.h) the command is run by the session's shell, and goes on when its
 * client leaves. Without one (CALL_NO_SESSION; or no session named, and `argv` or `stdin` given)
 * it is a process of its own: its own session and process group, stdin closed, nothing kept; a
 * client that leaves cancels it.
 *
 * Memory does not grow with output: the command waits while its client is slow. The JSON form holds
 * up to EXECUTE_HOLD_MAX bytes of stdout and of stderr; the first that is longer is sent while the
 * command still runs, the other may have EXECUTE_OTHER_MAX bytes and is then cut, which
 * "stdoutTruncated" or "stderrTruncated" says. Transports that take only so much of a JSON object
 * (call.h) get EXECUTE_LIVE_MAX bytes of the first. */
#pragma once

#include "agent/operation.h"

#define EXECUTE_HOLD_MAX  ((size_t) 64 * 1024)
#define EXECUTE_OTHER_MAX ((size_t) 1024 * 1024)
#define EXECUTE_LIVE_MAX  ((size_t) 24 * 1024 * 1024)

extern const struct operation_table execute_operations;
