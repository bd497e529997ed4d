#include "web/web.h"

#include <string.h>

const struct web_file *web_file_find(const char *name)
{
    for (size_t i = 0; i < web_file_count; i++)
        if (strcmp(web_files[i].name, name) == 0)
            return &web_files[i];
    return NULL;
}
