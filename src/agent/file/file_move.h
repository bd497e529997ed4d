/* Moving and renaming, as mv(1) does: into a folder that is there, over a file that is there, and
 * to another filesystem by copying (operations of file_service.h).
 *
 * A copy is made beside the destination and takes its name when it is complete; then the source is
 * deleted. It goes on to the end though its client may leave. */
#pragma once

#include "agent/call.h"

void file_move(struct call *call);
void file_rename(struct call *call);
