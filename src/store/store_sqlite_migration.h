/* From one schema to the next: numbered texts that never change once they were released. The number
 * is the file's PRAGMA user_version. Included by src/store only. */
#pragma once

#include <sqlite3.h>

#include "base/error.h"

/* The file's version, 0 for an empty one. -1 with ERR_INVALID: newer than we know, or not ours. */
int sqlite_migration_look(sqlite3 *db, const char *path, struct error *err);

/* Bring a file from `version` to the newest, in one transaction. Returns 0 or -1. */
int sqlite_migrate(sqlite3 *db, int version, struct error *err);

/* The newest version. */
int sqlite_migration_newest(void);
