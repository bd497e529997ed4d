/* Why git failed: from its exit code and what it said (in English) to the error clients know. */
#pragma once

#include "agent/api_error.h"

/* Of a clone that ended with `exit_code` and these words on stderr. */
enum api_code git_failure_code(int exit_code, const char *words);

/* The line that says most, as a span of `words`: the first "fatal:" one, else the last. */
const char *git_failure_line(const char *words, size_t *ret_length);

/* What to do about it, or NULL. */
const char *git_failure_suggestion(enum api_code code);
