/* stamp: say what time it is, in one write, and end. What an agent takes to pass it on is the time
 * that agent-load --stamps measures. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "load/samples.h"

int main(void)
{
    char line[64];
    int length = snprintf(line, sizeof(line), "stamp:%" PRIu64 ";\n", samples_now());

    return write(STDOUT_FILENO, line, (size_t) length) == length ? EXIT_SUCCESS : EXIT_FAILURE;
}
