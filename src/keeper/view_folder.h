/* Inside the jobs that work on one folder of a view: opening it, and reading their input. */
#pragma once

#include <stddef.h>

#include "base/error.h"
#include "base/text.h"
#include "json/json_read.h"

#define VIEW_FOLDER_PATH_MAX 4096

/* The member `folder` of the options: a path as the sandbox names it, escaped as in name_escape.h.
 * Links on the way lead where they lead inside and never out of the view. Returns a descriptor that
 * the caller owns, or -1 with `err`: ERR_INVALID when it is no path or no folder, ERR_NOT_FOUND. */
int view_folder_open(int view, const struct json_place *options, struct error *err);

/* The member `key`, an escaped name or path of at most `maximum` bytes, into `ret_name`, which is
 * cleared first. 0, or -1 with ERR_INVALID. */
int view_folder_name(const struct json_place *object, const char *key, size_t maximum,
                     struct text *ret_name, struct error *err);
