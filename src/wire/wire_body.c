#include "wire/wire_body.h"

#include <string.h>

WIRE_WORDS(limit, LIMIT_WORDS);
WIRE_WORDS(feature, WIRE_FEATURES);
WIRE_WORDS(sandbox_state, RUN_STATES);
WIRE_WORDS(exit_kind, ENDING_KINDS);
WIRE_WORDS(kill_scope, WIRE_KILL_SCOPES);
WIRE_WORDS(inspection, WIRE_INSPECTIONS);
WIRE_WORDS(socket_family, WIRE_SOCKET_FAMILIES);
WIRE_WORDS(disk_set, DISK_SETS);
WIRE_WORDS(keeper_job_kind, DISK_JOBS);
WIRE_WORDS(stat, STATS_PARTS);

static int check_ending(const void *object, struct error *err)
{
    const struct ending *ending = object;
    bool fits =
        ending->kind == ENDED_STATUS ||
        (ending->kind == ENDED_SIGNAL ? ending->value >= 1 && ending->value <= ENDING_SIGNAL_MAX
                                      : ending->value == 0);

    if (!fits)
        return error_set(err, ERR_INVALID, 0, "value %u does not go with '%s'", ending->value,
                         wire_exit_kind_words[ending->kind]);
    return 0;
}

static int check_versions(unsigned int least, unsigned int most, struct error *err)
{
    if (least < 1 || least > most)
        return error_set(err, ERR_INVALID, 0, "versions from %u to %u", least, most);
    return 0;
}

static int check_hello(const void *object, struct error *err)
{
    const struct wire_hello *hello = object;

    return check_versions(hello->version_min, hello->version_max, err);
}

static int check_refused(const void *object, struct error *err)
{
    const struct wire_refused *refused = object;

    return check_versions(refused->version_min, refused->version_max, err);
}

static int check_adopt(const void *object, struct error *err)
{
    const struct wire_adopt *adopt = object;

    if (adopt->pid == 0 && adopt->start_time != 0)
        return error_set(err, ERR_INVALID, 0, "a start time without a pid");
    return 0;
}

static int check_entry(const void *object, struct error *err)
{
    const struct wire_entry *entry = object;

    if (entry->pid == 0 && entry->start_time != 0)
        return error_set(err, ERR_INVALID, 0, "a start time without a pid");
    return 0;
}

/* None has one spelling. */
static int check_disk(const void *object, struct error *err)
{
    const struct disk_ref *disk = object;

    if (!disk->id.text[0] && disk->set != DISK_OF_SANDBOX)
        return error_set(err, ERR_INVALID, 0, "no disk, and yet a %s",
                         wire_disk_set_words[disk->set]);
    return 0;
}

static int check_keeper_job(const void *object, struct error *err)
{
    const struct wire_keeper_job *job = object;
    unsigned int given = (job->on.id.text[0] ? 1U << DISK_JOB_ON : 0) |
                         (job->base.id.text[0] ? 1U << DISK_JOB_BASE : 0) |
                         (job->target.text[0] ? 1U << DISK_JOB_TARGET : 0) |
                         (job->image[0] ? 1U << DISK_JOB_IMAGE : 0);
    unsigned int named = 1U << DISK_JOB_ON | 1U << DISK_JOB_BASE | 1U << DISK_JOB_TARGET |
                         1U << DISK_JOB_IMAGE; /* the others are descriptors */

    if (disk_job_check(job->job, given, named, err) < 0)
        return -1;
    if (job->disk_bytes && !job->target.text[0])
        return error_set(err, ERR_INVALID, 0, "a limit without a new disk");
    if (job->job == DISK_JOB_DELETE && job->on.set != DISK_OF_SANDBOX)
        return error_set(err, ERR_INVALID, 0, "a snapshot cannot be emptied");
    if (job->on.set == DISK_OF_SANDBOX && job->on.id.text[0] &&
        strcmp(job->target.text, job->on.id.text) == 0)
        return error_set(err, ERR_INVALID, 0, "a disk cannot be copied to itself");
    return 0;
}

static int check_done(const void *object, struct error *err)
{
    const struct wire_done *done = object;

    if (strcmp(done->code, error_code_text(ERR_NONE)) == 0 && (done->system || done->message[0]))
        return error_set(err, ERR_INVALID, 0, "success with a reason for failure");
    return 0;
}

static int check_disk_usage(const void *object, struct error *err)
{
    const struct wire_disk_usage *asked = object;

    if (!asked->disk.id.text[0])
        return error_set(err, ERR_INVALID, 0, "the usage of no disk");
    return 0;
}

static int check_snapshots_listed(const void *object, struct error *err)
{
    const struct wire_snapshots_listed *listed = object;

    for (size_t i = 1; i < listed->names.count; i++)
        if (strcmp(listed->names.items[i - 1].id.text, listed->names.items[i].id.text) >= 0)
            return error_set(err, ERR_INVALID, 0, "names are not sorted");
    if (listed->more && listed->names.count == 0)
        return error_set(err, ERR_INVALID, 0, "more after an empty page");
    return 0;
}

/* Pages are sorted, so that "after the last id" means the same to both sides. */
static int check_listed(const void *object, struct error *err)
{
    const struct wire_listed *listed = object;

    for (size_t i = 1; i < listed->entries.count; i++)
        if (strcmp(listed->entries.items[i - 1].id.text, listed->entries.items[i].id.text) >= 0)
            return error_set(err, ERR_INVALID, 0, "entries are not sorted");
    if (listed->more && listed->entries.count == 0)
        return error_set(err, ERR_INVALID, 0, "more after an empty page");
    return 0;
}

WIRE_RECORD(limits, WIRE_LIMITS_FIELDS, NULL);
WIRE_RECORD(entry, WIRE_ENTRY_FIELDS, check_entry);
WIRE_RECORD(disk, WIRE_DISK_FIELDS, check_disk);
WIRE_RECORD(ending, WIRE_ENDING_FIELDS, check_ending);
WIRE_RECORD(hello, WIRE_HELLO_FIELDS, check_hello);
WIRE_RECORD(nothing, WIRE_NOTHING_FIELDS, NULL);
WIRE_RECORD(target, WIRE_TARGET_FIELDS, NULL);
WIRE_RECORD(adopt, WIRE_ADOPT_FIELDS, check_adopt);
WIRE_RECORD(list, WIRE_LIST_FIELDS, NULL);
WIRE_RECORD(sockets, WIRE_SOCKETS_FIELDS, NULL);
WIRE_RECORD(kill, WIRE_KILL_FIELDS, NULL);
WIRE_RECORD(set_limits, WIRE_SET_LIMITS_FIELDS, NULL);
WIRE_RECORD(open_mount, WIRE_OPEN_MOUNT_FIELDS, NULL);
WIRE_RECORD(mount, WIRE_MOUNT_FIELDS, NULL);
WIRE_RECORD(keeper_job, WIRE_KEEPER_JOB_FIELDS, check_keeper_job);
WIRE_RECORD(snapshot, WIRE_SNAPSHOT_FIELDS, NULL);
WIRE_RECORD(snapshot_name, WIRE_SNAPSHOT_NAME_FIELDS, NULL);
WIRE_RECORD(roll_back, WIRE_ROLL_BACK_FIELDS, NULL);
WIRE_RECORD(disk_usage, WIRE_DISK_USAGE_FIELDS, check_disk_usage);
WIRE_RECORD(sync, WIRE_SYNC_FIELDS, NULL);
WIRE_RECORD(inspect, WIRE_INSPECT_FIELDS, NULL);
WIRE_RECORD(welcome, WIRE_WELCOME_FIELDS, NULL);
WIRE_RECORD(refused, WIRE_REFUSED_FIELDS, check_refused);
WIRE_RECORD(done, WIRE_DONE_FIELDS, check_done);
WIRE_RECORD(sandbox, WIRE_SANDBOX_FIELDS, NULL);
WIRE_RECORD(listed, WIRE_LISTED_FIELDS, check_listed);
WIRE_RECORD(sockets_made, WIRE_SOCKETS_MADE_FIELDS, NULL);
WIRE_RECORD(stats_read, WIRE_STATS_READ_FIELDS, NULL);
WIRE_RECORD(mount_opened, WIRE_MOUNT_OPENED_FIELDS, NULL);
WIRE_RECORD(job_ended, WIRE_JOB_ENDED_FIELDS, NULL);
WIRE_RECORD(snapshot_made, WIRE_SNAPSHOT_MADE_FIELDS, NULL);
WIRE_RECORD(snapshots_listed, WIRE_SNAPSHOTS_LISTED_FIELDS, check_snapshots_listed);
WIRE_RECORD(bytes_counted, WIRE_BYTES_COUNTED_FIELDS, NULL);
WIRE_RECORD(exited, WIRE_EXITED_FIELDS, NULL);
WIRE_RECORD(stopping, WIRE_STOPPING_FIELDS, NULL);
