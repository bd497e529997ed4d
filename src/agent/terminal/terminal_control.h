/* What a viewer of a terminal says in words: the query it connects with, and text messages. Pure.
 *
 *     GET /ws/pty?sessionId=a&cols=120&rows=40&shell=zsh {"type":"resize","cols":80,"rows":24}
 */
#pragma once

#include <stddef.h>

#include "agent/exec/exec.h"
#include "base/error.h"

#define TERMINAL_CONTROL_MAX ((size_t) 4096) /* of a text message */
#define TERMINAL_SIZE_MAX    4096            /* columns or rows */
#define TERMINAL_COLUMNS     80
#define TERMINAL_ROWS        24
#define TERMINAL_SHELL_MAX   ((size_t) 4095)

/* A number of columns or rows as text; NULL leaves `*ret_count` as it was. Returns 0, or -1 with
 * ERR_INVALID. */
int terminal_count_read(const char *name, const char *text, uint16_t *ret_count, struct error *err);

/* Read a text message, of which resize is the only one. Returns 0, or -1 with the sentence for the
 * viewer. */
int terminal_control_read(const char *bytes, size_t length, struct exec_terminal *ret_size,
                          struct error *err);
