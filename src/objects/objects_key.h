/* Keys: which ones there are, and what they are called as files. Pure; any thread.
 *
 * A file system refuses what S3 allows (empty names, "..", names of 1,024 bytes), so that a key's
 * segments are written in another way where they must be, and one key has exactly one path:
 *
 *     backups/x/data.sqsh    backups/x/data.sqsh
 *     a//b/                  a/%/b/%                  an empty segment
 *     ../.git/50%            %2E./%2Egit/50%25        "%", a dot in front, control characters
 *     <600 times x>/y        <200 times x>%_/<200 times x>%_/<200 times x>/y
 *
 * No name begins with a dot: those are free for whoever keeps the folder. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"
#include "objects/objects.h"

/* Enough for the path of every key, NUL included: each byte three times, and the marks. */
#define OBJECTS_PATH_SIZE (3 * OBJECTS_KEY_MAX + 256)

/* Enough for what one name of a path says, NUL included. */
#define OBJECTS_PART_SIZE 256

/* Returns 0, or -1 with ERR_INVALID: too short or too long, or no UTF-8. */
int objects_key_check(const char *key, struct error *err);

/* The path of a key. Also that of the folder of all keys that begin with `key` and a "/": so the
 * key may be "", of the folder "/". No longer than OBJECTS_KEY_MAX. */
void objects_key_path(const char *key, char ret_path[static OBJECTS_PATH_SIZE]);

/* The other way, for one name of a path: the segment, or a part of it when it goes on in the names
 * of that folder. Returns its length, or -EINVAL for what objects_key_path never writes. */
int objects_key_part(const char *name, char ret_part[static OBJECTS_PART_SIZE], bool *ret_goes_on);
