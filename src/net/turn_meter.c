#include "net/turn_meter.h"

#include <stdlib.h>

#include "base/auto.h"
#include "base/memory.h"
#include "base/trace.h"

#define NS_PER_MS    UINT64_C(1000000)
#define LOG_EVERY_NS UINT64_C(1000000000)
#define LOOK_ENTRIES 512 /* of the trace; what is older is not looked at */

struct turn_meter {
    uv_prepare_t handle;
    struct loop *loop;
    struct log *log;
    struct turn_meter_counts counts;
    uint64_t began_ns, idle_ns; /* of this turn: when, and how long the loop had slept by then */
    uint64_t logged_ns;
    int64_t unlogged; /* long turns since then */
};

/* The entry behind which most of the time since `began_ns` went by, or before which, when it is the
 * first: what comes first was done for the same request mostly. NULL: nothing was traced. */
static const struct trace_entry *find_holder(const struct trace_entry *entries, size_t count,
                                             uint64_t began_ns, uint64_t now_ns)
{
    const struct trace_entry *holder = NULL;
    uint64_t longest = 0;

    for (size_t i = 0; i < count; i++) {
        uint64_t at = (uint64_t) entries[i].time_ns;
        uint64_t next = i + 1 < count ? (uint64_t) entries[i + 1].time_ns : now_ns;

        if (at < began_ns || next < at)
            continue;
        if (!holder)
            longest = at - began_ns, holder = &entries[i];
        if (next - at < longest)
            continue;
        longest = next - at;
        holder = &entries[i];
    }
    return holder;
}

static void log_turn(struct turn_meter *meter, uint64_t busy_ns, uint64_t now_ns)
{
    static const struct trace_context anybody = {.request = {.text = ""}};
    AUTO(free) struct trace_entry *entries = NULL;
    const struct trace_entry *holder;
    size_t count;

    if (meter->logged_ns && now_ns - meter->logged_ns < LOG_EVERY_NS) {
        meter->unlogged++;
        return;
    }
    entries = mem_alloc(LOOK_ENTRIES * sizeof(*entries));
    count = trace_read(&anybody, entries, LOOK_ENTRIES);
    holder = find_holder(entries, count, meter->began_ns, now_ns);
    LOG_WARNING(meter->log, "one turn of the loop was long: all others waited",
                log_number("ms", (int64_t) (busy_ns / NS_PER_MS)),
                log_text("request", holder ? holder->context.request.text : ""),
                log_text("sandbox", holder ? holder->context.sandbox.text : ""),
                log_text("behind", holder ? holder->point : ""),
                log_number("others", meter->unlogged));
    meter->logged_ns = now_ns;
    meter->unlogged = 0;
}

static void count_turn(struct turn_meter *meter, uint64_t busy_ns)
{
    static const uint64_t bounds_ms[TURN_METER_BUCKETS] = {1,   5,   10,   50,
                                                           100, 500, 5000, UINT64_MAX / NS_PER_MS};
    struct turn_meter_counts *counts = &meter->counts;

    for (size_t i = 0; i < TURN_METER_BUCKETS; i++)
        counts->buckets[i] += busy_ns <= bounds_ms[i] * NS_PER_MS;
    counts->ns_total += busy_ns;
    if (busy_ns > counts->longest_ns)
        counts->longest_ns = busy_ns;
}

/* Once a turn, always at the same point of it. */
static void turn_ended(uv_prepare_t *handle)
{
    struct turn_meter *meter = handle->data;
    uint64_t now_ns = uv_hrtime(), idle_ns = uv_metrics_idle_time(&meter->loop->uv);
    uint64_t slept = idle_ns - meter->idle_ns, passed = now_ns - meter->began_ns;
    uint64_t busy_ns = passed > slept ? passed - slept : 0;

    if (meter->began_ns) {
        count_turn(meter, busy_ns);
        if (busy_ns > TURN_METER_LONG_MS * NS_PER_MS)
            log_turn(meter, busy_ns, now_ns);
    }
    meter->began_ns = now_ns;
    meter->idle_ns = idle_ns;
}

struct turn_meter *turn_meter_new(struct loop *loop, struct log *log)
{
    struct turn_meter *meter = mem_alloc(sizeof(*meter));

    meter->loop = loop;
    meter->log = log;
    (void) uv_loop_configure(&loop->uv, UV_METRICS_IDLE_TIME);
    (void) uv_prepare_init(&loop->uv, &meter->handle);
    meter->handle.data = meter;
    (void) uv_prepare_start(&meter->handle, turn_ended);
    uv_unref((uv_handle_t *) &meter->handle);
    return meter;
}

void turn_meter_read(const struct turn_meter *meter, struct turn_meter_counts *ret_counts)
{
    *ret_counts = meter->counts;
}

static void turn_meter_closed(uv_handle_t *handle)
{
    free(handle->data);
}

void turn_meter_close(struct turn_meter *meter)
{
    if (meter)
        uv_close((uv_handle_t *) &meter->handle, turn_meter_closed);
}
