#include "load/slow.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#include "base/auto.h"
#include "base/clock.h"
#include "base/memory.h"
#include "load/exchange.h"
#include "load/fail.h"
#include "load/histogram.h"

#define NANOSECONDS    1000000000ull
#define FAST_PERIOD_NS (NANOSECONDS / 1000)
#define WARM_UP_MS     200

/* A request whose last header never ends while the test runs. */
static const char slow_head[] = "GET / HTTP/1.1\r\nHost: localhost\r\nX-Slow: ";

struct slow_client {
    int fd; /* owned */
    unsigned sent;
    uint64_t due_ns;
};

struct crowd {
    const struct load_options *options; /* borrowed: outlives us */
    struct slow_client *clients;        /* owned */
    unsigned next;                      /* the client whose byte is due first */
    uint64_t bytes;
    uint64_t reconnects;
};

static uint64_t now_ns(void)
{
    return clock_monotonic_ns(clock_system());
}

static void slow_client_open(const struct crowd *crowd, struct slow_client *client, unsigned turn)
{
    client->sent = 0;
    client->fd = target_connect(&crowd->options->target, turn);
    if (client->fd < 0)
        fail("slow connection %u: %s", turn, strerror(-client->fd));
}

static void slow_client_send(struct crowd *crowd, unsigned turn)
{
    struct slow_client *client = &crowd->clients[turn];
    char byte = client->sent < sizeof(slow_head) - 1 ? slow_head[client->sent] : 'a';

    if (send(client->fd, &byte, 1, MSG_NOSIGNAL | MSG_DONTWAIT) == 1) {
        client->sent++;
        crowd->bytes++;
        return;
    }
    (void) fd_close(client->fd);
    slow_client_open(crowd, client, turn);
    crowd->reconnects++;
}

/* The clients are due in the order of the array, spread over the second. */
static void crowd_send_due(struct crowd *crowd)
{
    uint64_t now = now_ns();

    while (crowd->clients[crowd->next].due_ns <= now) {
        slow_client_send(crowd, crowd->next);
        crowd->clients[crowd->next].due_ns += NANOSECONDS;
        crowd->next = (crowd->next + 1) % crowd->options->connections;
    }
}

static void crowd_open(struct crowd *crowd, const struct load_options *options)
{
    uint64_t start;

    crowd->options = options;
    crowd->clients = mem_alloc_array(options->connections, sizeof(*crowd->clients));
    for (unsigned i = 0; i < options->connections; i++)
        slow_client_open(crowd, &crowd->clients[i], i);
    start = now_ns();
    for (unsigned i = 0; i < options->connections; i++)
        crowd->clients[i].due_ns = start + i * (NANOSECONDS / options->connections);
}

static void crowd_close(struct crowd *crowd)
{
    for (unsigned i = 0; i < crowd->options->connections; i++)
        target_reset(crowd->clients[i].fd);
    free(crowd->clients);
}

static void sleep_until(uint64_t when_ns)
{
    struct timespec when = {
        .tv_sec = (time_t) (when_ns / NANOSECONDS),
        .tv_nsec = (long) (when_ns % NANOSECONDS),
    };

    while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &when, NULL) == EINTR)
        ;
}

/* Ask at a steady pace for `milliseconds`, beside `crowd` unless it is NULL. */
static void measure(const struct load_options *options, struct crowd *crowd, uint64_t milliseconds,
                    struct histogram *latency)
{
    AUTO(close) int fd = target_connect(&options->target, 0);
    struct response response;
    char request[EXCHANGE_REQUEST_MAX];
    size_t length = exchange_write_get(options, request);
    uint64_t tick = now_ns();
    uint64_t end = tick + milliseconds * 1000000;

    if (fd < 0)
        fail("connect to %s: %s", options->target.text, strerror(-fd));
    for (; tick < end; tick += FAST_PERIOD_NS) {
        uint64_t start;
        int r;

        sleep_until(tick);
        if (crowd)
            crowd_send_due(crowd);
        start = now_ns();
        r = exchange_run(fd, request, length, &response);
        if (r < 0 || response.status != 200)
            fail("GET %s: %s, status %d", options->path, strerror(-r), response.status);
        histogram_add(latency, now_ns() - start);
    }
}

static double microseconds(const struct histogram *latency, double percent)
{
    return (double) histogram_percentile(latency, percent) / 1e3;
}

void slow_run(const struct load_options *options)
{
    AUTO(free) struct histogram *warm_up = mem_alloc(sizeof(*warm_up));
    AUTO(free) struct histogram *quiet = mem_alloc(sizeof(*quiet));
    AUTO(free) struct histogram *loaded = mem_alloc(sizeof(*loaded));
    struct crowd crowd = {0};

    measure(options, NULL, WARM_UP_MS, warm_up);
    measure(options, NULL, options->milliseconds, quiet);
    crowd_open(&crowd, options);
    measure(options, &crowd, options->milliseconds, loaded);
    crowd_close(&crowd);
    printf("{\"quiet_p50_us\":%.1f,\"quiet_p99_us\":%.1f,\"loaded_p50_us\":%.1f,"
           "\"loaded_p99_us\":%.1f,\"requests\":%" PRIu64 ",\"slow_bytes\":%" PRIu64
           ",\"reconnects\":%" PRIu64 "}\n",
           microseconds(quiet, 50), microseconds(quiet, 99), microseconds(loaded, 50),
           microseconds(loaded, 99), quiet->count + loaded->count, crowd.bytes, crowd.reconnects);
}
