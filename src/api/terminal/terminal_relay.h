/* A client that speaks JSON frames (terminal_frames.h), at the terminal of a sandbox's session.
 *
 *     client ◄── WebSocket, JSON frames ──► relay ◄── WebSocket, the agent's /ws/pty ──► shell
 *
 * The upgrade is answered first, because browsers see no other answer: what goes wrong afterwards
 * is an error frame and a close code. 1008: there is no such sandbox, or it cannot run; 1011: its
 * terminal failed; 1000: the shell has ended.
 *
 * ?session=NAME joins the terminal of that session, with a replay of what it showed, and leaves it
 * there; without it the terminal is the connection's own and ends with it. Also cols, rows, shell.
 *
 * Whoever reads slowly holds up the shell (up to what the agent allows), never memory: each side is
 * paused while the other is full. The sandbox stays awake as long as the client is there. */
#pragma once

#include "net/http/http_request.h"

/* Answer an upgrade whose route has an {id}; its context is the `struct api`. */
void terminal_relay(struct http_request *request);
