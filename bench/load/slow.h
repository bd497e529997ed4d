/* Does a crowd of slow clients delay a fast one? */
#pragma once

#include "load/options.h"

/* One client asks for the path a thousand times a second and measures each answer: first alone
 * for `milliseconds`, then as long again beside `connections` clients that each send their request
 * one byte a second. Before each fast request the slow bytes that are due go out, so that the
 * server finds them first. A slow client the server has cut off comes back at once. Prints
 * {"quiet_p50_us":…,"quiet_p99_us":…,"loaded_p50_us":…,"loaded_p99_us":…,"requests":N,
 * "slow_bytes":N,"reconnects":N}. Ends the program when the fast client fails. Blocks. */
void slow_run(const struct load_options *options);
