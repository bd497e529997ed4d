/* What text may look like between daemon and launcher: printable ASCII by three rules, so that no
 * byte of it can end a line, a path or a terminal's patience.
 *
 * Pure, thread-safe. The texts are NUL-terminated. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#define WIRE_NAME_MAX 64
#define WIRE_PATH_MAX 255

/* [a-z0-9][a-z0-9._-]{0,63}: no path separator, no leading dot or dash, no upper case. */
bool wire_text_is_name(const char *text);

/* Only bytes from space to '~'. Empty is fine. */
bool wire_text_is_printable(const char *text);

/* A place inside a sandbox: absolute, printable, at most WIRE_PATH_MAX long, not "/" itself, and in
 * its one spelling: no empty, "." or ".." component, no slash at the end. */
bool wire_text_is_path(const char *text);

/* Make any text fit: cut to `size` bytes with the NUL, '?' for what is not printable. */
void wire_text_set(char *ret_text, size_t size, const char *text);
