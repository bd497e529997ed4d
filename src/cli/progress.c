#include "cli/progress.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/number.h"
#include "cli/run/run_terminal.h"

#define NS_PER_MS     UINT64_C(1000000)
#define BLINK_MS      300
#define EVERY_MS      100
#define BAR           20
#define WHAT_MAX      24
#define LINE_MAX_SIZE ((size_t) 512)
#define CLEAR_LINE    "\r\033[K"

static void write_bar(unsigned int percent, struct text *out)
{
    unsigned int filled = percent * BAR / 100;

    text_append(out, "  [");
    for (unsigned int i = 0; i < BAR; i++)
        text_append_char(out, i < filled ? '=' : i == filled ? '>' : ' ');
    text_format(out, "] %3u%%", percent);
}

static void write_amounts(const struct progress *progress, uint64_t elapsed_ms, struct text *out)
{
    uint64_t rate =
        elapsed_ms ? (uint64_t) ((double) progress->done * 1000 / (double) elapsed_ms) : 0;
    char size[NUMBER_TEXT_SIZE];

    number_format_size(progress->done, size);
    text_format(out, "  %s", size);
    if (progress->total >= 0) {
        number_format_size((uint64_t) progress->total, size);
        text_format(out, " of %s", size);
    }
    number_format_size(rate, size);
    text_format(out, "  %s/s", size);
    if (rate && progress->total > (int64_t) progress->done) {
        uint64_t left_ms = ((uint64_t) progress->total - progress->done) / rate * 1000;

        number_format_duration(left_ms, size);
        text_format(out, "  %s left", size);
    }
}

void progress_line(const struct progress *progress, uint64_t elapsed_ms, unsigned int columns,
                   struct text *out)
{
    size_t length = strlen(progress->what);

    /* The end of a long name says more than its beginning. */
    text_append(out, length > WHAT_MAX ? progress->what + length - WHAT_MAX : progress->what);
    if (progress->total > 0) {
        uint64_t total = (uint64_t) progress->total;
        uint64_t done = progress->done < total ? progress->done : total;

        write_bar((unsigned int) ((double) done * 100 / (double) total), out);
    }
    write_amounts(progress, elapsed_ms, out);
    if (out->length > columns) {
        out->length = columns;
        out->data[columns] = '\0';
    }
}

static void progress_show(struct progress *progress, uint64_t now_ns)
{
    AUTO(text) struct text line = TEXT_INIT(LINE_MAX_SIZE);
    uint16_t columns, rows;

    run_terminal_size(STDERR_FILENO, &columns, &rows);
    progress_line(progress, (now_ns - progress->started_ns) / NS_PER_MS, columns - 1u, &line);
    (void) fprintf(stderr, CLEAR_LINE "%s", text_string(&line));
    (void) fflush(stderr);
    progress->shown_ns = now_ns;
}

void progress_begin(struct progress *progress, const char *what, int64_t total)
{
    const char *slash = strrchr(what, '/');

    *progress = (struct progress){
        .what = slash && slash[1] ? slash + 1 : what,
        .total = total,
        .started_ns = clock_monotonic_ns(clock_system()),
        .is_wanted = isatty(STDERR_FILENO),
    };
}

void progress_add(struct progress *progress, uint64_t bytes)
{
    uint64_t now_ns;

    progress->done += bytes;
    if (!progress->is_wanted)
        return;
    now_ns = clock_monotonic_ns(clock_system());
    if (now_ns - progress->started_ns > BLINK_MS * NS_PER_MS &&
        now_ns - progress->shown_ns > EVERY_MS * NS_PER_MS)
        progress_show(progress, now_ns);
}

void progress_end(struct progress *progress)
{
    if (progress->shown_ns)
        (void) fputs(CLEAR_LINE, stderr);
    progress->is_wanted = false;
    progress->shown_ns = 0;
}
