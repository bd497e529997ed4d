#include "sys/process/sys_pty.h"

#include <fcntl.h>
#include <linux/magic.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "base/auto.h"
#include "sys/file/sys_file.h"
#include "sys/sys_call.h"

/* "/dev/pts/4294967295" and its NUL */
#define TERMINAL_PATH_SIZE 20

int sys_pty_open_control(void)
{
    AUTO(close) int control = -EBADF;
    int locked = 0;

    control = sys_file_open(AT_FDCWD, "/dev/ptmx", O_RDWR | O_NOCTTY | O_NONBLOCK, 0);
    if (control < 0)
        return control;
    if (ioctl(control, TIOCSPTLCK, &locked) < 0)
        return -errno;
    return TAKE_FD(control);
}

int sys_pty_open_peer(int control)
{
    int result = sys_call_fault_or_missing(SYS_FEATURE_PTY_PEER);

    if (result == 0)
        result = sys_call_result(ioctl(control, TIOCGPTPEER, O_RDWR | O_NOCTTY | O_CLOEXEC));
    /* What an ioctl says that does not exist. */
    return result == -ENOTTY || result == -EINVAL ? -ENOSYS : result;
}

static int open_by_path(int control)
{
    char path[TERMINAL_PATH_SIZE];
    AUTO(close) int terminal = -EBADF;
    struct statfs filesystem;
    unsigned int number;

    if (ioctl(control, TIOCGPTN, &number) < 0)
        return -errno;
    (void) snprintf(path, sizeof(path), "/dev/pts/%u", number);
    terminal = sys_file_open(AT_FDCWD, path, O_RDWR | O_NOCTTY, 0);
    if (terminal < 0)
        return terminal;
    if (fstatfs(terminal, &filesystem) < 0)
        return -errno;
    return filesystem.f_type == DEVPTS_SUPER_MAGIC ? TAKE_FD(terminal) : -ENODEV;
}

int sys_pty_open_terminal(int control)
{
    int result = sys_pty_open_peer(control);

    return result == -ENOSYS ? open_by_path(control) : result;
}

int sys_pty_open(int *ret_control, int *ret_terminal)
{
    AUTO(close) int control = sys_pty_open_control();
    int terminal;

    if (control < 0)
        return control;
    terminal = sys_pty_open_terminal(control);
    if (terminal < 0)
        return terminal;
    *ret_control = TAKE_FD(control);
    *ret_terminal = terminal;
    return 0;
}

int sys_pty_set_size(int fd, uint16_t columns, uint16_t rows)
{
    struct winsize size = {.ws_col = columns, .ws_row = rows};

    return sys_call_result(ioctl(fd, TIOCSWINSZ, &size));
}

int sys_pty_get_size(int fd, uint16_t *ret_columns, uint16_t *ret_rows)
{
    struct winsize size;

    if (ioctl(fd, TIOCGWINSZ, &size) < 0)
        return -errno;
    *ret_columns = size.ws_col;
    *ret_rows = size.ws_row;
    return 0;
}

int sys_pty_take_control(int terminal)
{
    /* 0: never steal the terminal of another session, which root could. */
    return sys_call_result(ioctl(terminal, TIOCSCTTY, 0));
}

int sys_pty_log_in_take(int terminal)
{
    AUTO(close) int owned = terminal;
    int result;

    if (setsid() < 0)
        return -errno;
    result = sys_pty_take_control(owned);
    for (int fd = 0; result >= 0 && fd <= 2; fd++)
        result = sys_call_result(dup2(owned, fd));
    if (result < 0)
        return result;
    if (owned <= 2) {
        /* dup2 onto itself keeps the close-on-exec mark. */
        int kept = TAKE_FD(owned);

        return sys_call_result(fcntl(kept, F_SETFD, 0));
    }
    return 0;
}
