/* What a sandbox of the lab has used and what was refused to it, as the launcher's statistics tell
 * it: one JSON object. What this machine cannot know is left out.
 *
 *     {"cpu_us":..., "memory_bytes":..., "pids":..., "pids_refused":..., "oom_kills_agent":...,
 *      "oom_kills_work":..., "disk_bytes":...} */
#pragma once

#include "base/text.h"
#include "wall_box.h"

void wall_measure(const struct wall_box *box, struct text *ret_answer);
