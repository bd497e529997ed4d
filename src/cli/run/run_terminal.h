/* Our terminal while a command in a sandbox has it: raw, so that every key reaches the terminal
 * there, and as it was before afterwards. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <termios.h>

struct run_terminal {
    int fd; /* borrowed; negative: none */
    bool raw;
    struct termios before;
};

#define RUN_TERMINAL_INIT                                                                          \
    {                                                                                              \
        .fd = -1                                                                                   \
    }

/* Make the terminal `fd` raw. Also after SIGCONT: whoever stopped us may have changed it. Returns
 * 0, or -errno (-ENOTTY: it is no terminal) with nothing changed. May block while the terminal
 * still writes; stops us, as the kernel does, when we are in the background. */
int run_terminal_enter(struct run_terminal *terminal, int fd);

/* Back to what it was; safe at any time, and twice. */
void run_terminal_leave(struct run_terminal *terminal);

/* The size of the terminal `fd`, or 80 by 24 when it does not say. */
void run_terminal_size(int fd, uint16_t *ret_columns, uint16_t *ret_rows);
