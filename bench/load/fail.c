#include "load/fail.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

void fail(const char *format, ...)
{
    va_list arguments;

    (void) fprintf(stderr, "%s: ", program_invocation_short_name);
    va_start(arguments, format);
    (void) vfprintf(stderr, format, arguments);
    va_end(arguments);
    (void) fputc('\n', stderr);
    exit(EXIT_FAILURE);
}
