#include "programs/admin/child_screen.h"

#include <stdint.h>
#include <stdio.h>
#include <unistd.h>

#include "sys/process/sys_pty.h"

#define COLUMNS_DEFAULT 80
#define COLUMNS_MAX     1000

unsigned int child_screen_columns(void)
{
    uint16_t columns, rows;

    if (!isatty(STDERR_FILENO))
        return 0;
    if (sys_pty_get_size(STDERR_FILENO, &columns, &rows) < 0 || !columns || columns > COLUMNS_MAX)
        return COLUMNS_DEFAULT;
    return columns;
}

void child_screen_show(void *context, const char *bytes, size_t length)
{
    (void) context;
    (void) fwrite(bytes, 1, length, stderr);
    (void) fflush(stderr);
}
