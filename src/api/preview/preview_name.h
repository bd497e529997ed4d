/* The name of a preview: "<port>-<id>-<token>", the first label of a host name or the first segment
 * of a path. Pure. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/id.h"
#include "domain/port/port.h"

struct preview_name {
    uint16_t number;
    struct id sandbox;
    char token[PORT_TOKEN_SIZE];
};

/* Whether it looks like one at all: four or five digits and a dash. Then nobody else answers. */
bool preview_name_is_meant(const char *text, size_t length);

/* Returns 0, or -EINVAL when it names nothing that could be there. */
int preview_name_parse(const char *text, size_t length, struct preview_name *ret_name);
