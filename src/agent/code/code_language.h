/* The languages code can be in, and the interpreters behind them. */
#pragma once

#include <stdbool.h>

#include "agent/api_error.h"
#include "agent/code/code_executor.h"

enum code_interpreter { CODE_PYTHON, CODE_NODE, CODE_INTERPRETERS };

struct code_language {
    const char *name; /* as clients are told */
    enum code_interpreter interpreter;
};

struct code_program {
    const char *name;             /* looked for in $PATH */
    const char *const *arguments; /* to run its executor from stdin */
    enum api_code missing;        /* when there is none */
    const char *missing_text;     /* the same for people */
    const struct executor_source *executor;
};

/* The language of that name, whatever its case: python, python3, javascript, js, node, typescript
 * or ts; python for NULL. NULL when there is none. Static. */
const struct code_language *code_language_find(const char *name);

/* Static. */
const struct code_program *code_program_of(enum code_interpreter interpreter);

/* Whether the interpreter is installed, as far as $PATH of that environment knows. */
bool code_program_is_installed(const struct code_program *program, const char *const *environment);
