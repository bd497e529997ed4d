#include "cli/run/run_terminal.h"

#include <errno.h>

#include "sys/process/sys_pty.h"

#define COLUMNS_USUAL 80
#define ROWS_USUAL    24

int run_terminal_enter(struct run_terminal *terminal, int fd)
{
    struct termios raw;

    if (!terminal->raw && tcgetattr(fd, &terminal->before) < 0)
        return -errno;
    raw = terminal->before;
    cfmakeraw(&raw);
    if (tcsetattr(fd, TCSADRAIN, &raw) < 0)
        return -errno;
    terminal->fd = fd;
    terminal->raw = true;
    return 0;
}

void run_terminal_leave(struct run_terminal *terminal)
{
    if (!terminal->raw)
        return;
    terminal->raw = false;
    (void) tcsetattr(terminal->fd, TCSADRAIN, &terminal->before); /* a terminal that is gone */
}

void run_terminal_size(int fd, uint16_t *ret_columns, uint16_t *ret_rows)
{
    uint16_t columns = 0, rows = 0;

    (void) sys_pty_get_size(fd, &columns, &rows); /* then they stay 0 */
    *ret_columns = columns ? columns : COLUMNS_USUAL;
    *ret_rows = rows ? rows : ROWS_USUAL;
}
