#include "agent/terminal/terminal_control.h"

#include <string.h>

#include "json/json_read.h"

int terminal_count_read(const char *name, const char *text, uint16_t *ret_count, struct error *err)
{
    unsigned int count = 0;

    if (!text)
        return 0;
    for (const char *at = text; *at; at++) {
        if (*at < '0' || *at > '9' || count > TERMINAL_SIZE_MAX) {
            count = 0;
            break;
        }
        count = count * 10 + (unsigned int) (*at - '0');
    }
    if (count < 1 || count > TERMINAL_SIZE_MAX)
        return error_set(err, ERR_INVALID, 0, "%s must be a number from 1 to %d", name,
                         TERMINAL_SIZE_MAX);
    *ret_count = (uint16_t) count;
    return 0;
}

int terminal_control_read(const char *bytes, size_t length, struct exec_terminal *ret_size,
                          struct error *err)
{
    static const struct json_limits limits = {
        .size = TERMINAL_CONTROL_MAX, .depth = 4, .values = 64};
    AUTO(json) json_t *message = json_read(bytes, length, &limits, NULL);
    struct json_place root;
    const char *type;
    int64_t columns, rows;

    if (!message || json_root_object(message, &root, NULL) < 0 ||
        json_field_text(&root, "type", JSON_REQUIRED, 64, &type, NULL) < 0 ||
        strcmp(type, "resize") != 0)
        return error_set(err, ERR_INVALID, 0, "Invalid control message");
    if (json_field_integer(&root, "cols", JSON_REQUIRED, 1, TERMINAL_SIZE_MAX, &columns, NULL) <
            0 ||
        json_field_integer(&root, "rows", JSON_REQUIRED, 1, TERMINAL_SIZE_MAX, &rows, NULL) < 0)
        return error_set(err, ERR_INVALID, 0,
                         "Invalid control message: cols and rows must be from 1 to %d",
                         TERMINAL_SIZE_MAX);
    *ret_size = (struct exec_terminal){.columns = (uint16_t) columns, .rows = (uint16_t) rows};
    return 0;
}
