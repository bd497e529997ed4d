/* Mirroring a folder: its files as objects, and a list of all that is in it.
 *
 *     1  the last list, if there is one, and doubts about it
 *     2  scan: the new list, compared line by line with the last; both are in the same order
 *     3  what will be put and deleted is in doubt
 *     4  objects in doubt that neither list has are deleted, then contents of files that are new or
 *        changed are put
 *     5  the new list is put
 *     6  objects of files that are gone are deleted, then the doubts
 *
 * In this order, because a list must not name what is not there: who dies in between leaves the
 * last list with some newer contents, or the new one with some objects too many, and the doubts
 * that tell the next sync which (mirror_doubts.h). Only where a file took the place of a folder, or
 * the other way round, 6 comes before 4: a store of folders cannot have both. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/encoding/sha256.h"
#include "base/memory.h"
#include "json/json_write.h"
#include "sys/file/sys_file.h"
#include "vault/mirror_contents.h"
#include "vault/mirror_doubts.h"
#include "vault/mirror_past.h"

/* Files, folders and links of one mirror; what a scan stops at. */
#define ENTRIES_MAX 400000

#define OPTIONS_MAX ((size_t) 256 << 10)

struct sync {
    struct work work;
    struct contents contents;
    struct disk_ref disk;
    char *image, *folder, *prefix, *manifest; /* owned; image may be NULL */
    char *doubts_key;                         /* owned */
    struct text options;                      /* of the scan */
    uint64_t bytes_max;

    struct mirror_past past;
    struct mirror_doubts doubts;
    bool has_doubts; /* they are in the store, or may be */

    struct text list; /* the new one */
    struct mirror_entry entry, before;
    bool has_before;
    struct sha256 sha;
    struct mirror_places changed; /* lines of `list` */
    size_t next_change;
    bool scan_failed; /* by what it told; said when the job is gone */
    struct error scan_failure;
    bool is_listed;

    struct vault_synced synced;
    vault_sync_done *done;
};

static void sync_finished(struct work *work, const struct error *failure)
{
    struct sync *sync = CONTAINER_OF(work, struct sync, work);

    sync->done(sync->work.context, failure, failure ? NULL : &sync->synced);
    free(sync->image);
    free(sync->folder);
    free(sync->prefix);
    free(sync->manifest);
    text_done(&sync->options);
    free(sync->doubts_key);
    mirror_past_done(&sync->past);
    mirror_doubts_done(&sync->doubts);
    text_done(&sync->list);
    mirror_entry_done(&sync->entry);
    mirror_entry_done(&sync->before);
    free(sync->changed.items);
    free(sync);
}

static void sync_cancel(struct work *work)
{
    contents_cancel(&CONTAINER_OF(work, struct sync, work)->contents);
}

/* --- 6: what is gone ------------------------------------------------------------------------- */

static void put_contents(struct sync *sync);
static void remove_gone(struct sync *sync);

static void doubts_removed(void *context, const struct error *failure)
{
    struct sync *sync = context;

    sync->work.call = NULL;
    work_end(&sync->work, failure);
}

/* The objects are what the list says. */
static void remove_doubts(struct sync *sync)
{
    const char *key = sync->doubts_key;

    if (sync->has_doubts)
        sync->work.call = objects_delete(sync->work.mover->objects, &key, 1, doubts_removed, sync);
    else
        work_end(&sync->work, NULL);
}

static void gone_removed(void *context, const struct error *failure)
{
    struct sync *sync = context;

    sync->work.call = NULL;
    if (failure)
        work_end(&sync->work, failure);
    else if (work_goes_on(&sync->work))
        remove_gone(sync);
}

/* Files of the last list, and those that an earlier sync may have put; of the former none while
 * that list is the one in the store, unless they are in the way. */
static bool next_gone(struct sync *sync, char ret_key[static OBJECTS_KEY_MAX + 1])
{
    const struct mirror_entry *gone = NULL;
    struct mirror_entry doubt = {.path = NULL};

    if (sync->is_listed || sync->past.swaps)
        gone = mirror_past_next_gone(&sync->past);
    if (!gone) {
        doubt.path = mirror_doubts_next_unseen(&sync->doubts);
        gone = doubt.path ? &doubt : NULL;
    }
    if (gone)
        mirror_key(ret_key, sync->prefix, sync->manifest, gone);
    return gone;
}

static void remove_gone(struct sync *sync)
{
    enum { AT_ONCE = 250 };
    AUTO(free) char *text = mem_alloc((size_t) AT_ONCE * (OBJECTS_KEY_MAX + 1));
    const char *keys[AT_ONCE];
    size_t count = 0;

    while (count < AT_ONCE) {
        char *key = text + count * (OBJECTS_KEY_MAX + 1);

        if (!next_gone(sync, key))
            break;
        keys[count++] = key;
    }
    if (count)
        sync->work.call =
            objects_delete(sync->work.mover->objects, keys, count, gone_removed, sync);
    else if (sync->is_listed)
        remove_doubts(sync);
    else
        put_contents(sync);
}

/* --- 5: the list ----------------------------------------------------------------------------- */

static void list_put(void *context, const struct error *failure, const struct object_info *info)
{
    struct sync *sync = context;

    (void) info;
    sync->work.call = NULL;
    sync->is_listed = true;
    if (failure)
        work_end(&sync->work, failure);
    else if (work_goes_on(&sync->work))
        remove_gone(sync);
}

static void put_list(struct sync *sync)
{
    const struct text *old = &sync->past.text;
    bool is_same = !sync->past.is_bad && sync->list.length == old->length &&
                   memcmp(text_string(&sync->list), text_string(old), old->length) == 0;

    sha256_finish(&sync->sha, sync->synced.manifest_sum);
    if (is_same && old->length) {
        sync->is_listed = true;
        remove_gone(sync);
        return;
    }
    sync->work.file = work_open_bytes(&sync->work, text_string(&sync->list), sync->list.length);
    if (work_goes_on(&sync->work))
        sync->work.call = objects_put_file(sync->work.mover->objects, sync->manifest,
                                           sync->work.file, NULL, list_put, sync);
}

/* --- 4: contents ----------------------------------------------------------------------------- */

static bool next_content(void *context, struct contents_file *ret_file)
{
    struct sync *sync = context;
    struct mirror_cursor cursor = {.text = &sync->list};
    const char *line;
    size_t length;

    if (sync->next_change == sync->changed.count)
        return false;
    cursor.at = sync->changed.items[sync->next_change++];
    /* Our own list: each line was read before. */
    if (!mirror_next_line(&cursor, &line, &length) ||
        mirror_entry_read(&sync->entry, line, length, NULL) < 0)
        return false;
    mirror_key(ret_file->key, sync->prefix, sync->manifest, &sync->entry);
    ret_file->size = sync->entry.size;
    memcpy(ret_file->sum, sync->entry.sum, sizeof(ret_file->sum));
    return true;
}

static void content_put(void *context, uint64_t bytes)
{
    struct sync *sync = context;

    sync->synced.files++;
    sync->work.progress.files++;
    sync->work.progress.stored_bytes += bytes;
    work_tell(&sync->work);
}

static void contents_done(void *context, const struct error *failure)
{
    struct sync *sync = context;

    if (failure)
        work_end(&sync->work, failure);
    else if (work_goes_on(&sync->work))
        put_list(sync);
}

/* What the keeper shall read: the folder, then a path per line. */
static int write_paths(struct sync *sync, struct text *text)
{
    struct json_writer json;

    json_writer_init_text(&json, text);
    json_begin_object(&json);
    json_add_text(&json, "folder", sync->folder);
    json_end_object(&json);
    if (json_writer_finish(&json) < 0)
        return -1;
    for (size_t i = 0; i < sync->changed.count; i++) {
        struct mirror_cursor cursor = {&sync->list, sync->changed.items[i]};
        const char *line;
        size_t length;

        if (!mirror_next_line(&cursor, &line, &length) ||
            mirror_entry_read(&sync->entry, line, length, NULL) < 0)
            return -1;
        text_append_char(text, '\n');
        json_writer_init_text(&json, text);
        json_begin_object(&json);
        json_add_text(&json, "path", sync->entry.path);
        json_end_object(&json);
        if (json_writer_finish(&json) < 0)
            return -1;
    }
    text_append_char(text, '\n');
    return text->overflowed ? -1 : 0;
}

static void put_contents(struct sync *sync)
{
    const struct contents_source source = {
        .context = sync, .next = next_content, .put = content_put, .done = contents_done};
    AUTO(text) struct text paths = TEXT_INIT(MOVER_LIST_MAX);
    AUTO(close) int input = -EBADF;
    struct provider_disk_job job = {.kind = DISK_JOB_READ, .on = sync->disk, .image = sync->image};

    if (!sync->changed.count) {
        put_list(sync);
        return;
    }
    if (write_paths(sync, &paths) < 0) {
        work_fail(&sync->work, ERR_TOO_LARGE, 0, "too many paths to read");
        return;
    }
    input = work_open_bytes(&sync->work, paths.data, paths.length);
    if (!work_goes_on(&sync->work))
        return;
    job.input = input;
    contents_run(&sync->contents, sync->work.mover, &job, &source);
}

/* --- 3: doubts ------------------------------------------------------------------------------- */

static void doubts_put(void *context, const struct error *failure, const struct object_info *info)
{
    struct sync *sync = context;

    (void) info;
    sync->work.call = NULL;
    sync->work.file = fd_close(sync->work.file);
    if (failure) {
        work_end(&sync->work, failure);
        return;
    }
    if (work_goes_on(&sync->work))
        remove_gone(sync);
}

/* To those of before, which are not settled yet, the files that will be touched are added. */
static int add_doubts(struct sync *sync)
{
    const struct mirror_entry *gone;
    struct mirror_cursor cursor = {.text = &sync->list};
    const char *line;
    size_t length;
    int r = 0;

    for (size_t i = 0; r == 0 && i < sync->changed.count; i++) {
        cursor.at = sync->changed.items[i];
        if (!mirror_next_line(&cursor, &line, &length) ||
            mirror_entry_read(&sync->entry, line, length, NULL) < 0)
            return -1;
        r = mirror_doubts_add(&sync->doubts, sync->entry.path);
    }
    while (r == 0 && (gone = mirror_past_next_gone(&sync->past))) {
        r = mirror_doubts_add(&sync->doubts, gone->path);
        /* The last list has it, so that it goes no earlier than other files of that list. */
        (void) mirror_doubts_have(&sync->doubts, gone->path);
    }
    sync->past.next_gone = 0;
    return r;
}

static void doubt(struct sync *sync)
{
    if (!sync->changed.count && !sync->past.gone.count && !sync->has_doubts) {
        put_contents(sync);
        return;
    }
    if (add_doubts(sync) < 0) {
        work_fail(&sync->work, ERR_TOO_LARGE, 0, "too many paths to change");
        return;
    }
    sync->has_doubts = true;
    sync->work.file =
        work_open_bytes(&sync->work, text_string(&sync->doubts.text), sync->doubts.text.length);
    if (work_goes_on(&sync->work))
        sync->work.call = objects_put_file(sync->work.mover->objects, sync->doubts_key,
                                           sync->work.file, NULL, doubts_put, sync);
}

/* --- 2: the scan ----------------------------------------------------------------------------- */

static int take_entry(struct sync *sync, const char *line, size_t length, struct error *err)
{
    struct mirror_entry *entry = &sync->entry;
    size_t place = sync->list.length;
    bool is_same;

    if (mirror_entry_read(entry, line, length, err) < 0)
        return -1;
    if (sync->has_before && mirror_compare(&sync->before, entry) >= 0)
        return error_set(err, ERR_UPSTREAM, 0, "the keeper told a list out of order");
    text_append_bytes(&sync->list, line, length);
    text_append_char(&sync->list, '\n');
    if (sync->list.overflowed)
        return error_set(err, ERR_TOO_LARGE, 0, "the list of the files is longer than %zu MB",
                         MOVER_LIST_MAX >> 20);
    sha256_add(&sync->sha, text_string(&sync->list) + place, sync->list.length - place);
    is_same = mirror_past_has(&sync->past, entry);
    if (entry->type == MIRROR_FILE) {
        is_same &= !mirror_doubts_have(&sync->doubts, entry->path);
        sync->synced.total_files++;
        sync->synced.total_bytes += entry->size;
        sync->synced.unchanged += is_same;
        if (!is_same)
            mirror_places_add(&sync->changed, place);
    }
    if (sync->bytes_max && sync->synced.total_bytes > sync->bytes_max)
        return error_set(err, ERR_QUOTA, 0, "the folder holds more than the %llu bytes allowed",
                         (unsigned long long) sync->bytes_max);
    return 0;
}

static void scan_line(void *context, const char *line, size_t length)
{
    struct sync *sync = context;
    struct mirror_entry last = sync->before;
    struct error err = ERROR_INIT;

    if (sync->scan_failed)
        return;
    if (take_entry(sync, line, length, &err) < 0) {
        sync->scan_failed = true;
        sync->scan_failure = err;
        report_cancel(&sync->work.report);
        return;
    }
    sync->before = sync->entry;
    sync->entry = last;
    sync->has_before = true;
}

static int read_skipped(struct sync *sync, const char *line, size_t length, struct error *err)
{
    AUTO(outcome) struct outcome told = {.root = NULL};
    uint64_t too_long = 0;

    if (outcome_read(&told, line, length, "scanned", err) < 0 ||
        outcome_count(&told, "skipped", &sync->synced.skipped, err) < 0 ||
        outcome_count(&told, "too_long", &too_long, err) < 0)
        return -1;
    sync->synced.skipped += too_long;
    return 0;
}

static void scanned(void *context, const struct error *failure, const char *outcome, size_t length)
{
    struct sync *sync = context;
    struct error err = ERROR_INIT;

    if (sync->scan_failed)
        failure = &sync->scan_failure;
    else if (!failure && read_skipped(sync, outcome, length, &err) < 0)
        failure = &err;
    if (failure) {
        work_end(&sync->work, failure);
        return;
    }
    mirror_past_end(&sync->past);
    if (sync->past.is_bad)
        LOG_WARNING(sync->work.mover->log,
                    "the last list of a mirror is damaged: all of it is put anew",
                    log_text("list", sync->manifest));
    sync->synced.removed = sync->past.gone.count;
    sync->work.progress.bytes = sync->synced.total_bytes;
    if (work_goes_on(&sync->work))
        doubt(sync);
}

static void start_scan(struct sync *sync)
{
    struct provider_disk_job job = {
        .kind = DISK_JOB_SCAN, .on = sync->disk, .image = sync->image, .data = -EBADF};
    AUTO(close)
    int input = work_open_bytes(&sync->work, sync->options.data, sync->options.length);

    if (!work_goes_on(&sync->work))
        return;
    mirror_past_begin(&sync->past);
    job.input = input;
    work_run(&sync->work, &job, scan_line, scanned);
}

/* --- 1: the last list ------------------------------------------------------------------------ */

/* It was just written, so that it is read from memory. */
static bool read_file(const struct sync *sync, struct text *text)
{
    struct stat status;
    char *place;

    if (fstat(sync->work.file, &status) < 0)
        return false;
    place = status.st_size > 0 ? text_reserve(text, (size_t) status.st_size) : NULL;
    if (place && sys_file_pread_full(sync->work.file, place, (size_t) status.st_size, 0) ==
                     (ssize_t) status.st_size)
        text_commit(text, (size_t) status.st_size);
    return (off_t) text->length == status.st_size;
}

/* True: it could be had, is damaged (*ret_is_bad), or was never there. */
static bool take_file(struct sync *sync, const struct error *failure, struct text *text,
                      bool *ret_is_bad)
{
    sync->work.call = NULL;
    *ret_is_bad = failure ? failure->code == ERR_UPSTREAM : !read_file(sync, text);
    sync->work.file = fd_close(sync->work.file);
    if (!failure || *ret_is_bad || failure->code == ERR_NOT_FOUND)
        return work_goes_on(&sync->work);
    work_end(&sync->work, failure);
    return false;
}

static void get_file(struct sync *sync, const char *key, objects_info_done *done)
{
    sync->work.file = work_open_file(&sync->work);
    if (work_goes_on(&sync->work))
        sync->work.call =
            objects_get_file(sync->work.mover->objects, key, sync->work.file, NULL, done, sync);
}

static void doubts_got(void *context, const struct error *failure, const struct object_info *info)
{
    struct sync *sync = context;

    (void) info;
    sync->has_doubts = !failure || failure->code != ERR_NOT_FOUND;
    if (!take_file(sync, failure, &sync->doubts.text, &sync->doubts.is_bad))
        return;
    mirror_doubts_read(&sync->doubts);
    start_scan(sync);
}

static void past_got(void *context, const struct error *failure, const struct object_info *info)
{
    struct sync *sync = context;

    (void) info;
    if (take_file(sync, failure, &sync->past.text, &sync->past.is_bad))
        get_file(sync, sync->doubts_key, doubts_got);
}

static void write_options(struct sync *sync, const struct vault_sync *what)
{
    struct json_writer json;

    json_writer_init_text(&json, &sync->options);
    json_begin_object(&json);
    json_add_text(&json, "folder", what->folder);
    json_add_integer(&json, "limitFiles", ENTRIES_MAX);
    json_key(&json, "excludes");
    json_begin_array(&json);
    for (size_t i = 0; i < what->exclude_count; i++)
        json_put_text(&json, what->excludes[i]);
    json_end_array(&json);
    json_end_object(&json);
    if (json_writer_finish(&json) < 0)
        sync->options.overflowed = true;
}

static char *doubts_key(const char *manifest)
{
    AUTO(text) struct text key = TEXT_INIT(OBJECTS_KEY_MAX + sizeof(MIRROR_DOUBTS_SUFFIX));

    text_format(&key, "%s" MIRROR_DOUBTS_SUFFIX, manifest);
    return mem_copy_text(text_string(&key));
}

static struct sync *new_sync(const struct vault_sync *what)
{
    struct sync *sync = mem_alloc(sizeof(*sync));

    *sync = (struct sync){
        .disk = what->disk,
        .image = what->image ? mem_copy_text(what->image) : NULL,
        .folder = mem_copy_text(what->folder),
        .prefix = mem_copy_text(what->prefix),
        .manifest = mem_copy_text(what->manifest),
        .doubts_key = doubts_key(what->manifest),
        .options = TEXT_INIT(OPTIONS_MAX),
        .bytes_max = what->bytes_max,
        .past = MIRROR_PAST_INIT(MOVER_LIST_MAX),
        .doubts = MIRROR_DOUBTS_INIT(MOVER_LIST_MAX),
        .list = TEXT_INIT(MOVER_LIST_MAX),
        .entry = MIRROR_ENTRY_INIT,
        .before = MIRROR_ENTRY_INIT,
        .contents = {.data = -EBADF, .spool = -EBADF},
    };
    sha256_init(&sync->sha);
    write_options(sync, what);
    return sync;
}

static void sync_begin(struct work *work)
{
    struct sync *sync = CONTAINER_OF(work, struct sync, work);

    if (sync->options.overflowed)
        work_fail(work, ERR_TOO_LARGE, 0, "so many excludes");
    else
        get_file(sync, sync->manifest, past_got);
}

void mover_sync(void *self, const struct vault_sync *what, vault_progressed *progressed,
                vault_sync_done *done, void *context)
{
    struct sync *sync = new_sync(what);

    sync->work.progressed = progressed;
    sync->done = done;
    sync->work.context = context;
    work_begin_in_turn(&sync->work, self, &what->asker, sync_finished, sync_cancel, sync_begin);
}
