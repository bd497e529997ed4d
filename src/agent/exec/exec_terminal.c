/* A command at a terminal: the pair that stands in for its three pipes. */
#include <errno.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

#include "agent/exec/exec_internal.h"
#include "base/auto.h"
#include "sys/process/sys_pty.h"

/* A character that is erased is then one of UTF-8, not one byte of it. */
static void exec_terminal_prepare(int terminal)
{
    struct termios settings;

    if (tcgetattr(terminal, &settings) < 0)
        return; /* then it stays as the kernel made it */
    settings.c_iflag |= IUTF8;
    (void) tcsetattr(terminal, TCSANOW, &settings);
}

/* Our copy of the program's side is kept until the outcome is known: a program that closes its
 * terminal and opens it again must not look like one that has ended. */
static int give_terminal(struct exec *exec)
{
    for (int i = LAUNCH_STDIN; i <= LAUNCH_STDERR; i++) {
        exec->given[i] = exec_duplicate(exec->terminal);
        if (exec->given[i] < 0)
            return exec->given[i];
    }
    return 0;
}

int exec_open_terminal(struct exec *exec, const struct exec_terminal *size)
{
    AUTO(close) int control = -EBADF, input = -EBADF;
    int r = sys_pty_open(&control, &exec->terminal);

    if (r < 0)
        return r;
    exec_terminal_prepare(exec->terminal);
    r = sys_pty_set_size(control, size->columns, size->rows);
    if (r == 0)
        r = give_terminal(exec);
    if (r < 0)
        return r;
    input = exec_duplicate(control); /* one descriptor cannot be polled for twice */
    if (input < 0)
        return input;
    exec->terminal_control = control;
    return exec_open_both(exec, &control, &input);
}

void exec_resize(struct exec *exec, const struct exec_terminal *size)
{
    if (exec->output[EXEC_STDOUT].watch.open && exec->terminal_control >= 0)
        (void) sys_pty_set_size(exec->terminal_control, size->columns, size->rows);
}

bool exec_has_foreground(const struct exec *exec)
{
    pid_t group = -1;

    return exec->pid && exec->terminal_control >= 0 && exec->output[EXEC_STDOUT].watch.open &&
           ioctl(exec->terminal_control, TIOCGPGRP, &group) == 0 && group == exec->pid;
}

/* On a line that was begun the first one only ends the line. */
void exec_end_line(struct exec *exec)
{
    struct termios settings;
    char end[2];

    if (!exec->input.watch.open || tcgetattr(exec->input.watch.fd, &settings) < 0)
        return;
    end[0] = end[1] = (char) settings.c_cc[VEOF];
    byte_queue_append(&exec->input_bytes, end, exec->line_open ? 2 : 1);
    exec->line_open = false;
}

bool exec_signal_terminal(struct exec *exec, int signal)
{
    if (signal != SIGINT && signal != SIGQUIT && signal != SIGTSTP)
        return false;
    return exec->terminal_control >= 0 && exec->output[EXEC_STDOUT].watch.open &&
           ioctl(exec->terminal_control, TIOCSIG, signal) == 0;
}
