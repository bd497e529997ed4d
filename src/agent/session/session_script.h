/* What a session's shell is told: commands as text that no command can break out of.
 *
 * The shell reads its script from stdin, a pipe, and says on a channel of its own (descriptor 3)
 * when something is done:
 *
 *     "<serial> <exit status>\n"       -1 for a directory that could not be entered
 *
 * A command is one quoted argument of `eval`, at the top level of the shell. So a syntax error is
 * the command's error, `break`, `return` and `exit` mean what they mean in a shell, and builtins
 * cost no process. For its duration stdin is /dev/null, stdout and stderr are those of the
 * beginning (whatever `exec` did to them before), and the shell's own descriptors are out of reach.
 *
 * Bash reads a script from a pipe byte by byte. Therefore each script for bash begins with a short
 * line that reads the rest of it in one go, counted in characters; the rest is ASCII, which has one
 * byte for a character in every locale that a session may choose. An empty line ends it, which the
 * shell reads when it is done with the rest: a shell that has read it and did not report never
 * will. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "agent/environment.h"
#include "base/text.h"

enum session_dialect {
    SESSION_BASH,
    SESSION_SH, /* POSIX and no more */
};

/* The status in a report when the directory of the request could not be entered. */
#define SESSION_NO_DIRECTORY (-1)

/* Sections before the report of session_script_ask: directory, `export -p`, `declare -Fx`. */
enum session_section {
    SESSION_SECTION_DIRECTORY,
    SESSION_SECTION_EXPORTS,
    SESSION_SECTION_FUNCTIONS,
    SESSION_SECTIONS,
};

struct session_request {
    uint64_t serial;
    const char *command;
    const char *directory;                    /* NULL: where the shell is */
    const struct environment_change *changes; /* for this command only; with a text each */
    size_t change_count;
};

/* The first words to a new shell. */
void session_script_begin(enum session_dialect dialect, struct text *script);

void session_script_command(enum session_dialect dialect, const struct session_request *request,
                            struct text *script);

/* Say where you are and what you export, as sections that end with a NUL each. */
void session_script_ask(enum session_dialect dialect, uint64_t serial, struct text *script);

/* Of bash: print these functions, a section for each. */
void session_script_functions(uint64_t serial, const char *const *names, size_t count,
                              struct text *script);
