/* Cursors of the event log as clients see them. In the log they count all events of everybody; shown
 * that way, two of them would tell an owner how much others did between. So each owner sees them
 * through a permutation of its own: they say where to go on, and nothing else, not even which is
 * later. They stay good over restarts; one of another owner, of another daemon or made up is none. */
#pragma once

#include "base/encoding/permutation.h"
#include "base/error.h"
#include "domain/caller.h"

struct api;

/* How this caller's owner sees them. */
struct permutation event_cursor_view(const struct api *api, const struct caller *caller);

/* 0, the beginning, is 0 for everybody. */
int64_t event_cursor_show(const struct permutation *view, int64_t cursor);

/* Read one that was shown, 0, or, where `minimum` says so, -1 (only what comes). Returns 0, or -1
 * with ERR_INVALID; `name` is what it is called there. */
int event_cursor_read(const struct permutation *view, const char *name, const char *text,
                      int64_t minimum, int64_t *ret_cursor, struct error *err);
