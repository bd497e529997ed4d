#include "cli/grid.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/memory.h"
#include "base/number.h"

#define GAP         2
#define CELL_MAX    ((size_t) 4096)
#define CONTROL_END 0x20
#define DELETE      0x7f

/* UTF-8: bytes that begin a character. Wide characters count as one: a table may then be crooked,
 * which is all. */
static size_t width_of(const char *text)
{
    size_t width = 0;

    for (; *text; text++)
        width += ((unsigned char) *text & 0xc0) != 0x80;
    return width;
}

void grid_put(struct grid *grid, const char *text)
{
    char *copy = pool_copy_text(&grid->pool, text && *text ? text : "-");

    for (char *at = copy; *at; at++) {
        if ((unsigned char) *at < CONTROL_END || *at == DELETE)
            *at = *at == '\n' || *at == '\t' ? ' ' : '?';
    }
    if (grid->count == grid->capacity) {
        grid->capacity = grid->capacity ? grid->capacity * 2 : 64;
        grid->cells = mem_resize(grid->cells, grid->capacity * sizeof(*grid->cells));
    }
    grid->cells[grid->count++] = copy;
}

void grid_format(struct grid *grid, const char *format, ...)
{
    AUTO(text) struct text cell = TEXT_INIT(CELL_MAX);
    va_list arguments;

    va_start(arguments, format);
    text_format_list(&cell, format, arguments);
    va_end(arguments);
    grid_put(grid, text_string(&cell));
}

void grid_titles(struct grid *grid, const char *const *titles)
{
    for (; titles[grid->columns] && grid->columns < GRID_COLUMNS_MAX; grid->columns++)
        grid_put(grid, titles[grid->columns]);
}

static void grid_measure(const struct grid *grid, size_t rows,
                         size_t widths[static GRID_COLUMNS_MAX])
{
    for (size_t i = 0; i < rows * grid->columns; i++) {
        size_t width = width_of(grid->cells[i]);

        if (width > widths[i % grid->columns])
            widths[i % grid->columns] = width;
    }
}

void grid_write(const struct grid *grid, struct text *out)
{
    size_t widths[GRID_COLUMNS_MAX] = {0}, rows = grid->columns ? grid->count / grid->columns : 0;

    grid_measure(grid, rows, widths);
    for (size_t i = 0; i < rows * grid->columns; i++) {
        bool is_last = i % grid->columns == grid->columns - 1;
        size_t missing = widths[i % grid->columns] - width_of(grid->cells[i]);

        text_append(out, grid->cells[i]);
        if (is_last)
            text_append_char(out, '\n');
        else
            text_format(out, "%*s", (int) (missing + GAP), "");
    }
}

void grid_done(struct grid *grid)
{
    free(grid->cells);
    pool_done(&grid->pool);
    *grid = (struct grid) GRID_INIT;
}

const char *grid_age(struct grid *grid, const char *time, int64_t now_ms)
{
    char text[NUMBER_TEXT_SIZE], *space;
    int64_t then;

    if (!time || clock_parse(time, &then) < 0)
        return time;
    if (now_ms - then < 1000)
        return "now";
    number_format_duration((uint64_t) (now_ms - then) / 1000 * 1000, text);
    space = strchr(text, ' '); /* the larger of its two units will do */
    space = space ? strchr(space + 1, ' ') : NULL;
    if (space)
        *space = '\0';
    return pool_copy_text(&grid->pool, text);
}
