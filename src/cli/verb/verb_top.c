/* burrow top: what running sandboxes use. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/memory.h"
#include "base/number.h"
#include "cli/client/client_sandbox.h"
#include "cli/grid.h"
#include "cli/verb/verb_client.h"
#include "cli/verb/verbs.h"
#include "json/json_read.h"

#define EVERY_MS     2000
#define FIRST_MS     500 /* between the two looks that a share of CPU time needs */
#define EVERY_MIN_MS 100
#define EVERY_MAX_MS ((uint64_t) 3600 * 1000)
#define CLEAR_SCREEN "\033[H\033[2J"
#define PATH_SIZE    128
#define US_PER_MS    1000
#define NS_PER_US    1000.0

static const struct verb_option options[] = {
    {"once", '1', NULL, "print one table and leave, as when stdout is no terminal", false},
    {"every", 'd', "TIME", "how often (2s)", false},
    {NULL, 0, NULL, NULL, false},
};

static const char *const titles[] = {"NAME", "CPU", "MEMORY", "LIMIT", "PIDS",
                                     "DISK", "IN",  "OUT",    "ID",    NULL};

/* One look at all of them: [{"sandbox": {...}, "stats": {...}, "cpu": percent}, ...]. */
struct top_look {
    json_t *rows;
    uint64_t taken_ns;
};

static json_t *previous_stats(const struct top_look *before, const char *id)
{
    json_t *row;
    size_t i;

    json_array_foreach (before->rows, i, row) {
        if (strcmp(verb_field(json_object_get(row, "sandbox"), "id"), id) == 0)
            return json_object_get(row, "stats");
    }
    return NULL;
}

static void add_share(json_t *row, json_t *old, double elapsed_us)
{
    json_t *now_cpu = json_object_get(json_object_get(row, "stats"), "cpuMicroseconds");
    json_t *old_cpu = json_object_get(old, "cpuMicroseconds");
    double used;

    if (!json_is_integer(now_cpu) || !json_is_integer(old_cpu) || elapsed_us <= 0)
        return;
    used = (double) (json_integer_value(now_cpu) - json_integer_value(old_cpu));
    (void) json_object_set_new(row, "cpu", json_real(used > 0 ? used * 100 / elapsed_us : 0));
}

static int top_look(struct client *client, const struct top_look *before, struct top_look *ret_look,
                    struct error *err)
{
    AUTO(json) json_t *all = client_sandbox_list(client, "&status=running", err);
    double elapsed_us;
    json_t *one;
    size_t i;

    if (!all)
        return -1;
    *ret_look =
        (struct top_look){.rows = json_array(), .taken_ns = clock_monotonic_ns(clock_system())};
    elapsed_us = (double) (ret_look->taken_ns - before->taken_ns) / NS_PER_US;
    json_array_foreach (all, i, one) {
        AUTO(client_reply) struct client_reply reply = CLIENT_REPLY_INIT;
        const char *id = verb_field(one, "id");
        json_t *row = json_object();
        char path[PATH_SIZE];

        (void) json_object_set(row, "sandbox", one);
        (void) snprintf(path, sizeof(path), CLIENT_PREFIX "/sandboxes/%.64s/stats", id);
        if (client_call(client, "GET", path, NULL, &reply, NULL) == 0) /* else it is gone */
            (void) json_object_set(row, "stats", reply.json);
        add_share(row, previous_stats(before, id), elapsed_us);
        (void) json_array_append_new(ret_look->rows, row);
    }
    return 0;
}

/* --- printing -------------------------------------------------------------------------------- */

static void put_row(struct grid *grid, json_t *row)
{
    json_t *sandbox = json_object_get(row, "sandbox"), *stats = json_object_get(row, "stats");
    json_t *cpu = json_object_get(row, "cpu");

    grid_put(grid, verb_field(sandbox, "name"));
    if (cpu)
        grid_format(grid, "%.1f%%", json_real_value(cpu));
    else
        grid_put(grid, NULL);
    verb_put_size(grid, stats, "memoryBytes");
    verb_put_size(grid, json_object_get(sandbox, "limits"), "memory");
    verb_put_number(grid, stats, "pids");
    verb_put_size(grid, stats, "diskBytes");
    verb_put_size(grid, stats, "receivedBytes");
    verb_put_size(grid, stats, "sentBytes");
    grid_put(grid, verb_field(sandbox, "id"));
}

static int by_share(const void *left, const void *right)
{
    double a = json_real_value(json_object_get(*(json_t *const *) left, "cpu"));
    double b = json_real_value(json_object_get(*(json_t *const *) right, "cpu"));

    return (a < b) - (a > b);
}

static void print_look(const struct top_look *look_now)
{
    size_t count = json_array_size(look_now->rows);
    AUTO(free) json_t **rows = mem_alloc_array(count + 1, sizeof(json_t *));
    AUTO(grid) struct grid grid = GRID_INIT;
    AUTO(text) struct text out = TEXT_INIT(GRID_TEXT_MAX);

    for (size_t i = 0; i < count; i++)
        rows[i] = json_array_get(look_now->rows, i);
    qsort(rows, count, sizeof(json_t *), by_share);
    grid_titles(&grid, titles);
    for (size_t i = 0; i < count; i++)
        put_row(&grid, rows[i]);
    grid_write(&grid, &out);
    verb_print(&out);
    (void) fflush(stdout);
}

static int top(struct verb_call *call, struct client *client, struct error *err)
{
    bool is_json = verb_flag(call, "json");
    bool goes_on = isatty(STDOUT_FILENO) && !is_json && !verb_flag(call, "once");
    const char *every = verb_value(call, "every");
    struct top_look before = {.rows = json_array()}, now;
    uint64_t every_ms = EVERY_MS;
    int r = 0;

    if (every &&
        (number_parse_duration(every, EVERY_MAX_MS, &every_ms) < 0 || every_ms < EVERY_MIN_MS))
        r = error_set(err, ERR_INVALID, 0, "--every %s: a time such as 500ms or 5s", every);
    for (uint64_t wait_ms = FIRST_MS; r == 0; wait_ms = every_ms) {
        bool is_first = !before.taken_ns;

        r = top_look(client, &before, &now, err);
        if (r < 0)
            break;
        json_decref(before.rows);
        before = now;
        if (goes_on && !is_first)
            (void) fputs(CLEAR_SCREEN, stdout);
        if (is_json && !is_first)
            verb_print_json(now.rows);
        else if (!is_first)
            print_look(&now);
        if (!goes_on && !is_first)
            break;
        (void) usleep((useconds_t) wait_ms * US_PER_MS);
    }
    json_decref(before.rows);
    return r;
}

const struct verb verb_top = {
    .name = "top",
    .summary = "Show what running sandboxes use, the busiest first",
    .arguments = "",
    .options = options,
    .details = "CPU is in percent of one processor, disk and network since the sandbox was made.",
    .work = top,
};
