#include "agent/code/code_language.h"

#include <limits.h>
#include <strings.h>

#include "agent/environment.h"
#include "agent/exec/program.h"

static const struct code_language python = {"python", CODE_PYTHON};
static const struct code_language javascript = {"javascript", CODE_NODE};
static const struct code_language typescript = {"typescript", CODE_NODE};

static const struct {
    const char *name;
    const struct code_language *language;
} names[] = {
    {"python", &python}, {"python3", &python},  {"javascript", &javascript},
    {"js", &javascript}, {"node", &javascript}, {"typescript", &typescript},
    {"ts", &typescript},
};

static const char *const python_arguments[] = {"python3", "-u", "-", NULL};
static const char *const node_arguments[] = {"node", "-", NULL};

static const struct code_program programs[CODE_INTERPRETERS] = {
    [CODE_PYTHON] = {.name = "python3",
                     .arguments = python_arguments,
                     .missing = API_PYTHON_NOT_AVAILABLE,
                     .missing_text = "Python is not installed in this sandbox",
                     .executor = &executor_python},
    [CODE_NODE] = {.name = "node",
                   .arguments = node_arguments,
                   .missing = API_JAVASCRIPT_NOT_AVAILABLE,
                   .missing_text = "Node.js is not installed in this sandbox",
                   .executor = &executor_javascript},
};

const struct code_language *code_language_find(const char *name)
{
    if (!name)
        return &python;
    for (size_t i = 0; i < ARRAY_COUNT(names); i++) {
        if (strcasecmp(names[i].name, name) == 0)
            return names[i].language;
    }
    return NULL;
}

const struct code_program *code_program_of(enum code_interpreter interpreter)
{
    return &programs[interpreter];
}

bool code_program_is_installed(const struct code_program *program, const char *const *environment)
{
    const char *path = environment_get(environment, "PATH");
    char file[PATH_MAX];

    return program_find(program->name, path ? path : "", file, sizeof(file)) == 0;
}
