#include "cli/run/run_signals.h"

#include <signal.h>

#include "base/auto.h"

static const int numbers[RUN_SIGNALS] = {SIGHUP,  SIGINT,  SIGQUIT,  SIGTERM,
                                         SIGUSR1, SIGUSR2, SIGWINCH, SIGCONT};

static void arrived(uv_signal_t *handle, int number)
{
    struct run_signals *signals = handle->data;

    signals->on_signal(signals->context, number);
}

int run_signals_open(struct run_signals *signals, struct loop *loop,
                     void (*on_signal)(void *context, int number), void *context)
{
    signals->on_signal = on_signal;
    signals->context = context;
    for (size_t i = 0; i < RUN_SIGNALS; i++) {
        (void) uv_signal_init(&loop->uv, &signals->handles[i]); /* cannot fail on a good loop */
        signals->handles[i].data = signals;
    }
    for (size_t i = 0; i < RUN_SIGNALS; i++) {
        int r = uv_signal_start(&signals->handles[i], arrived, numbers[i]);

        if (r < 0)
            return r;
    }
    return 0;
}

void run_signals_close(struct run_signals *signals)
{
    for (size_t i = 0; i < RUN_SIGNALS; i++)
        uv_close((uv_handle_t *) &signals->handles[i], NULL);
}
