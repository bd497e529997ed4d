#include "keeper/archive/archive_progress.h"

#include "base/clock.h"

void archive_progress_init(struct archive_progress *progress, struct output *output)
{
    *progress =
        (struct archive_progress){.output = output, .told_ns = clock_monotonic_ns(clock_system())};
}

int archive_progress_tell(struct archive_progress *progress, uint64_t files, uint64_t bytes,
                          struct error *err)
{
    uint64_t now = clock_monotonic_ns(clock_system());
    struct json_writer json;

    if (now - progress->told_ns < ARCHIVE_PROGRESS_NS)
        return 0;
    progress->told_ns = now;
    output_begin(progress->output, &json);
    json_key(&json, "progress");
    json_begin_object(&json);
    output_add_count(&json, "files", files);
    output_add_count(&json, "bytes", bytes);
    json_end_object(&json);
    output_end(progress->output, &json);
    if (output_flush(progress->output) < 0)
        return error_set(err, ERR_CANCELLED, progress->output->error, "write the progress");
    return 0;
}
