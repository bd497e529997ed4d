/* Where people see what a child says: our standard error. */
#pragma once

#include <stddef.h>

/* How wide it is; 0: nobody looks, it is no terminal. */
unsigned int child_screen_columns(void);

/* For `show` of those who run children (image_pull.h); `context` is not used. */
void child_screen_show(void *context, const char *bytes, size_t length);
