/* The signals that `burrow run` hands on to its command instead of dying of them. */
#pragma once

#include "net/loop.h"

#define RUN_SIGNALS 8

struct run_signals {
    uv_signal_t handles[RUN_SIGNALS];
    void (*on_signal)(void *context, int number);
    void *context;
};

/* Start to listen for SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2, SIGWINCH and SIGCONT.
 * Must not move until it is closed. Returns 0 or -errno. */
int run_signals_open(struct run_signals *signals, struct loop *loop,
                     void (*on_signal)(void *context, int number), void *context);

/* Stop; the loop must run once more before the memory is reused. Afterwards they kill again. */
void run_signals_close(struct run_signals *signals);
