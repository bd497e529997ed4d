/* What callers may ask for, checked once for all backends. Pure. Each returns 0, or -1 with
 * ERR_INVALID (ERR_RANGE, ERR_TOO_LARGE) and a sentence. */
#pragma once

#include "objects/objects.h"

#define OBJECTS_MEDIA_TYPE_MAX 255
#define OBJECTS_NAME_MAX       64   /* of metadata */
#define OBJECTS_AFTER_MAX      4096 /* a store's own word for where a page ends */

/* `options` may be NULL. */
int objects_options_check(const struct object_put_options *options, struct error *err);

/* `tag` may be NULL. */
int objects_tag_check(const char *tag, struct error *err);

/* `range` may be NULL. */
int objects_range_check(const struct object_range *range, struct error *err);

int objects_query_check(const struct object_query *query, struct error *err);
