/* The executors: programs of ours in Python and JavaScript, part of this executable, that run other
 * people's code. They are handed to the interpreter as its standard input. */
#pragma once

#include <stddef.h>

struct executor_source {
    const char *text;
    size_t length;
};

/* Made from the files of executors/ by the build. */
extern const struct executor_source executor_python;
extern const struct executor_source executor_javascript;
