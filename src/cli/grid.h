/* A grid: rows of cells under titles, printed with columns as wide as they must be.
 *
 *     AUTO(grid) struct grid grid = GRID_INIT;
 *     grid_titles(&grid, (const char *const[]){"NAME", "STATUS", NULL});
 *     grid_put(&grid, "demo");
 *     grid_put(&grid, "running");
 *     grid_write(&grid, &out);
 *
 * Cells are kept as copies; what would move the cursor of a terminal becomes '?'. Pure. */
#pragma once

#include <stdint.h>

#include "base/auto.h"
#include "base/pool.h"
#include "base/text.h"

#define GRID_COLUMNS_MAX 16
/* Enough for every verb's table. */
#define GRID_TEXT_MAX ((size_t) 64 * 1024 * 1024)

struct grid {
    struct pool pool;
    const char **cells; /* owned, row by row; the texts are in the pool */
    size_t count, capacity;
    size_t columns;
};

#define GRID_INIT                                                                                  \
    {                                                                                              \
        .pool = POOL_INIT                                                                          \
    }

/* First of all; NULL at the end, at most GRID_COLUMNS_MAX. */
void grid_titles(struct grid *grid, const char *const *titles);

/* The next cell. NULL and "" are shown as "-". */
void grid_put(struct grid *grid, const char *text);
void grid_format(struct grid *grid, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Append all lines. Whole rows only: a last row that is short is left out. */
void grid_write(const struct grid *grid, struct text *out);

void grid_done(struct grid *grid);
AUTO_DEFINE(grid, struct grid, grid_done);

/* How long ago "2026-01-02T03:04:05.678Z" was at `now_ms`: "5 min". In the grid's pool; NULL stays
 * NULL, and what is no such time is shown as it is. */
const char *grid_age(struct grid *grid, const char *time, int64_t now_ms);
