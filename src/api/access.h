/* What a caller needs to use a route: the `access` of a row in a route table.
 *
 * The value 0 is the strictest, so that a forgotten field locks a route instead of opening it. */
#pragma once

enum access {
    ACCESS_ADMIN = 0, /* an administrator's key */
    ACCESS_PUBLIC,    /* nothing: the answer tells nothing worth a key */
};
