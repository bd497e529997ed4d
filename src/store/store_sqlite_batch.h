/* Several transactions, one sync. Included by src/store only. */
#pragma once

#include "store/store_sqlite_connection.h"

/* Run these commits and queries in their order and move them to `finished` (links of struct
 * store_job), each with its result or its failure. What has no failure is on disk. Returns how many
 * times it synced. */
size_t sqlite_batch_run(struct sqlite_connection *connection, struct list *jobs,
                        struct list *finished);
