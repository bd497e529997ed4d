/* Long work in small steps, so that commits go on between them: backups and resealing. Included by
 * src/store only. */
#pragma once

#include "store/store_sqlite_connection.h"

struct sqlite_care;

/* Begin what a STORE_JOB_BACKUP or STORE_JOB_RESEAL asks for. Takes the job; never NULL. */
struct sqlite_care *sqlite_care_new(struct sqlite_connection *connection, struct store_job *job);

/* One step, of some milliseconds. The job when it is finished, with its result or failure, and the
 * care is gone; NULL: go on. Never while a transaction is open. */
struct store_job *sqlite_care_step(struct sqlite_care *care);
