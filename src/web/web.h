/* The page's files as they are served: bundled, named by their hash, packed. Made by build.py from
 * the TypeScript, the style sheet and the HTML of this folder; api/page serves them. */
#pragma once

#include <stddef.h>

struct web_file {
    const char *name; /* "app.<hash>.js"; "index.html" names the others */
    const char *type;
    const char *etag; /* with its quotes */
    const unsigned char *plain;
    size_t plain_length;
    const unsigned char *packed; /* by gzip */
    size_t packed_length;
};

extern const struct web_file web_files[];
extern const size_t web_file_count;

/* NULL: there is none of that name. */
const struct web_file *web_file_find(const char *name);
