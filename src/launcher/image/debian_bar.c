#include "launcher/image/debian_bar.h"

#include <string.h>

#include "base/auto.h"

#define CLEAR_LINE "\r\033[K"
#define REMARK     "I: "
#define WIDTH      20

/* As they come, and how far all of it is when each begins, on the machine this was written on. */
static const struct step {
    const char *said;
    unsigned int percent;
} steps[] = {
    {"running apt-get update", 1},
    {"downloading packages", 8},
    {"extracting archives", 30},
    {"installing essential packages", 38},
    {"installing remaining packages", 55},
    {"cleaning package lists", 88},
    {"creating tarball", 90},
    {"removing tempdir", 98},
};

/* The number of the step that begins with this line; 0: none. */
static size_t find_step(const char *line)
{
    if (strncmp(line, REMARK, strlen(REMARK)) != 0)
        return 0;
    for (size_t i = 0; i < ARRAY_COUNT(steps); i++) {
        if (strncmp(line + strlen(REMARK), steps[i].said, strlen(steps[i].said)) == 0)
            return i + 1;
    }
    return 0;
}

static void take_line(struct debian_bar *bar, struct text *out)
{
    size_t step;

    bar->line[bar->length] = '\0';
    bar->length = 0;
    step = find_step(bar->line);
    if (step > bar->step)
        bar->step = step;
    /* Its remarks are for who wants to know how; its warnings and errors are for everybody. */
    if (strncmp(bar->line, REMARK, strlen(REMARK)) != 0)
        text_format(out, CLEAR_LINE "%s\n", bar->line);
}

static void draw(const struct debian_bar *bar, uint64_t elapsed_ms, struct text *out)
{
    AUTO(text) struct text line = TEXT_INIT(2 * DEBIAN_BAR_LINE_MAX);
    const struct step *step = &steps[bar->step - 1];
    unsigned int filled = step->percent * WIDTH / 100;

    text_append_char(&line, '[');
    for (unsigned int i = 0; i < WIDTH; i++)
        text_append_char(&line, i < filled ? '=' : i == filled ? '>' : ' ');
    text_format(&line, "]  step %zu of %zu  %s  %llu s", bar->step, ARRAY_COUNT(steps), step->said,
                (unsigned long long) (elapsed_ms / 1000));
    text_append(out, CLEAR_LINE);
    /* One that breaks could not be written over. */
    text_append_bytes(out, line.data, line.length < bar->columns ? line.length : bar->columns - 1);
}

void debian_bar_take(struct debian_bar *bar, const char *bytes, size_t length, uint64_t elapsed_ms,
                     struct text *out)
{
    for (size_t i = 0; i < length; i++) {
        if (bytes[i] == '\n' || bar->length == sizeof(bar->line) - 1)
            take_line(bar, out);
        if (bytes[i] != '\n')
            bar->line[bar->length++] = bytes[i];
    }
    if (bar->step)
        draw(bar, elapsed_ms, out);
}

void debian_bar_end(struct debian_bar *bar, struct text *out)
{
    if (bar->length)
        take_line(bar, out);
    if (bar->step)
        text_append(out, CLEAR_LINE);
}
