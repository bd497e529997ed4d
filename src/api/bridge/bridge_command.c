#include <string.h>

#include "api/bridge/bridge_internal.h"

/* What bash never takes for anything but itself, at any place of a line. */
static const char plain[] =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789@%+=:,./-";

/* $'...' and not '...': line breaks become visible, so the line stays one. */
static const struct {
    char byte;
    const char *quoted;
} escapes[] = {
    {'\\', "\\\\"}, {'\'', "\\'"}, {'\n', "\\n"}, {'\r', "\\r"}, {'\t', "\\t"},
};

static void write_byte(struct text *line, char byte)
{
    for (size_t i = 0; i < ARRAY_COUNT(escapes); i++) {
        if (escapes[i].byte == byte) {
            text_append(line, escapes[i].quoted);
            return;
        }
    }
    text_append_char(line, byte);
}

static void write_argument(struct text *line, const char *argument)
{
    if (argument[0] && !argument[strspn(argument, plain)]) {
        text_append(line, argument);
        return;
    }
    text_append(line, "$'");
    for (const char *at = argument; *at; at++)
        write_byte(line, *at);
    text_append_char(line, '\'');
}

void bridge_command_write(struct text *line, const char *const *arguments, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (i)
            text_append_char(line, ' ');
        write_argument(line, arguments[i]);
    }
}

bool bridge_command_is_program(const char *program)
{
    return strchr(program, '/') && !strchr(program, '=');
}
