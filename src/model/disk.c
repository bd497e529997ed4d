#include "model/disk.h"

static const char *const job_texts[DISK_JOB_COUNT] = {DISK_JOBS(WORD_TEXT)};

enum need { NO, MAY, YES };

/* Columns: on, base, target, image, input, data. A descriptor that is missing where one is needed
 * would make a job that succeeds and did nothing; one too many does no harm. */
static const enum need needs[DISK_JOB_COUNT][DISK_JOB_PART_COUNT] = {
    [DISK_JOB_DELETE] = {YES, NO, NO, NO, MAY, MAY},
    [DISK_JOB_MEASURE] = {YES, NO, NO, NO, MAY, MAY},
    [DISK_JOB_LIST] = {YES, NO, NO, NO, MAY, MAY},
    [DISK_JOB_COPY] = {YES, NO, YES, NO, MAY, MAY},
    [DISK_JOB_DIFF] = {YES, YES, NO, NO, MAY, MAY},
    [DISK_JOB_PACK] = {YES, MAY, NO, NO, MAY, YES},
    [DISK_JOB_UNPACK] = {NO, NO, YES, NO, YES, MAY},
    [DISK_JOB_ARCHIVE] = {YES, NO, NO, YES, YES, YES},
    [DISK_JOB_UNARCHIVE] = {NO, NO, NO, NO, YES, YES},
    [DISK_JOB_SCAN] = {YES, NO, NO, YES, YES, MAY},
    [DISK_JOB_READ] = {YES, NO, NO, YES, YES, YES},
};

static const char *const part_texts[DISK_JOB_PART_COUNT] = {
    [DISK_JOB_ON] = "on",       [DISK_JOB_BASE] = "base",   [DISK_JOB_TARGET] = "target",
    [DISK_JOB_IMAGE] = "image", [DISK_JOB_INPUT] = "input", [DISK_JOB_DATA] = "data",
};

const char *disk_job_text(enum disk_job_kind kind)
{
    return job_texts[kind];
}

int disk_job_check(enum disk_job_kind kind, unsigned int given, unsigned int looked_at,
                   struct error *err)
{
    if ((unsigned int) kind >= DISK_JOB_COUNT)
        return error_set(err, ERR_INVALID, 0, "there is no disk job of kind %d", (int) kind);
    for (unsigned int part = 0; part < DISK_JOB_PART_COUNT; part++) {
        enum need need = needs[kind][part];
        bool is_given = given >> part & 1;

        if (looked_at >> part & 1 && need != MAY && is_given != (need == YES))
            return error_set(err, ERR_INVALID, 0, "'%s' %s '%s'", disk_job_text(kind),
                             is_given ? "has no" : "needs", part_texts[part]);
    }
    return 0;
}

bool disk_job_is_view(enum disk_job_kind kind)
{
    return (unsigned int) kind < DISK_JOB_COUNT && needs[kind][DISK_JOB_IMAGE] == YES;
}
