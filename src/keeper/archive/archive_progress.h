/* Inside archive_make and archive_unpack: telling how far a job is, now and then. */
#pragma once

#include "base/error.h"
#include "keeper/output.h"

#define ARCHIVE_PROGRESS_NS UINT64_C(250000000)

struct archive_progress {
    struct output *output; /* borrowed */
    uint64_t told_ns;
};

/* Time begins now. */
void archive_progress_init(struct archive_progress *progress, struct output *output);

/* Tell it, unless that was done a short while ago. 0, or -1 with ERR_CANCELLED: nobody reads. */
int archive_progress_tell(struct archive_progress *progress, uint64_t files, uint64_t bytes,
                          struct error *err);
