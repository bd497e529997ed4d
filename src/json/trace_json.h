/* Entries of the trace (base/trace.h) as JSON, for whoever asks another process for its ring:
 *
 *     [{"ns":8123456789,"process":"agent","request":"...","sandbox":"...","point":"exec.begin"}] */
#pragma once

#include "base/trace.h"
#include "json/json_read.h"
#include "json/json_write.h"

/* Append the array. */
void trace_json_write(struct json_writer *json, const struct trace_entry *entries, size_t count);

/* Read the array under "entries" of `object`, at most `most`, with clean texts (trace_entry_clean):
 * who sent it need not be trusted. Returns how many, or -1 with ERR_INVALID. */
ssize_t trace_json_read(const struct json_place *object, struct trace_entry *ret_entries,
                        size_t most, struct error *err);
