/* Small changes: delete, make a folder, and whether something is there (operations of
 * file_service.h). */
#pragma once

#include "agent/call.h"

void file_delete(struct call *call);
void file_make_directory(struct call *call);
void file_exists(struct call *call);
