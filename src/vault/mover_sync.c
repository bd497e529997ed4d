/* Mirroring a folder: its files as objects, and a list of all that is in it.
 *
 *     1  the last list, if there is one
 *     2  scan: the new list, compared line by line with the last; both are in the same order
 *     3  contents of files that are new or changed are put
 *     4  the new list is put
 *     5  objects of files that are gone are deleted
 *
 * In this order, because a list must not name what is not there: who dies in between leaves the
 * last list with some newer contents, or the new one with some objects too many. Only where a file
 * took the place of a folder, or the other way round, 5 comes before 3: a store of folders cannot
 * have both. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/memory.h"
#include "base/sha256.h"
#include "json/json_write.h"
#include "sys/sys_file.h"
#include "vault/mirror_contents.h"
#include "vault/mirror_list.h"

/* Files, folders and links of one mirror; what a scan stops at. */
#define ENTRIES_MAX 400000

#define OPTIONS_MAX ((size_t) 256 << 10)

/* Places of lines in a list. */
struct places {
    size_t *items; /* owned */
    size_t count, room;
};

static void places_add(struct places *places, size_t place)
{
    if (places->count == places->room) {
        places->room = places->room ? places->room * 2 : 256;
        places->items = mem_resize(places->items, places->room * sizeof(size_t));
    }
    places->items[places->count++] = place;
}

struct sync {
    struct work work;
    struct report report;
    struct contents contents;
    struct objects_call *call;

    struct provider_disk disk;
    char *image, *folder, *prefix, *manifest; /* owned; image may be NULL */
    struct text options;                      /* of the scan */
    uint64_t bytes_max;

    int file;        /* owned: a list on its way from or to the store */
    struct text old; /* the last list */
    struct mirror_cursor old_cursor;
    struct mirror_entry old_entry;
    size_t old_place; /* of its line */
    bool old_began;   /* old_entry is a line, perhaps one that was passed */
    bool has_old;     /* it was not passed yet */
    bool old_is_bad;  /* out of order or no list: nothing it says is believed */

    struct text list; /* the new one */
    struct mirror_entry entry, before;
    bool has_before;
    struct sha256 sha;
    struct places changed; /* lines of `list` */
    struct places removed; /* lines of `old` */
    size_t next_change, next_removal;
    bool swaps;       /* a file for a folder, or a folder for a file */
    bool scan_failed; /* by what it told; said when the job is gone */
    struct error scan_failure;
    bool is_listed;

    struct vault_synced synced;
    struct vault_progress progress;
    vault_progressed *progressed;
    vault_sync_done *done;
    void *context;
};

static void sync_finished(struct work *work, const struct error *failure)
{
    struct sync *sync = CONTAINER_OF(work, struct sync, work);

    sync->done(sync->context, failure, failure ? NULL : &sync->synced);
    sync->file = fd_close(sync->file);
    free(sync->image);
    free(sync->folder);
    free(sync->prefix);
    free(sync->manifest);
    text_done(&sync->options);
    text_done(&sync->old);
    text_done(&sync->list);
    mirror_entry_done(&sync->old_entry);
    mirror_entry_done(&sync->entry);
    mirror_entry_done(&sync->before);
    free(sync->changed.items);
    free(sync->removed.items);
    free(sync);
}

static void sync_cancel(struct work *work)
{
    struct sync *sync = CONTAINER_OF(work, struct sync, work);

    report_cancel(&sync->report);
    contents_cancel(&sync->contents);
    if (sync->call)
        objects_cancel(sync->call);
}

/* --- 5: what is gone ------------------------------------------------------------------------- */

static void put_contents(struct sync *sync);
static void remove_gone(struct sync *sync);

static void gone_removed(void *context, const struct error *failure)
{
    struct sync *sync = context;

    sync->call = NULL;
    if (failure)
        work_end(&sync->work, failure);
    else if (work_goes_on(&sync->work))
        remove_gone(sync);
}

/* The key that a line of the old list stands for. */
static int old_key(struct sync *sync, size_t place, char ret_key[static OBJECTS_KEY_MAX + 1])
{
    struct mirror_cursor cursor = {&sync->old, place};
    const char *line;
    size_t length;

    if (!mirror_next_line(&cursor, &line, &length) ||
        mirror_entry_read(&sync->old_entry, line, length, NULL) < 0)
        return -1;
    mirror_key(ret_key, sync->prefix, sync->manifest, &sync->old_entry);
    return 0;
}

static void remove_gone(struct sync *sync)
{
    enum { AT_ONCE = 250 };
    AUTO(free) char *text = NULL;
    const char *keys[AT_ONCE];
    size_t count = 0;

    if (sync->next_removal == sync->removed.count) {
        if (sync->is_listed)
            work_end(&sync->work, NULL);
        else
            put_contents(sync);
        return;
    }
    text = mem_alloc((size_t) AT_ONCE * (OBJECTS_KEY_MAX + 1));
    while (sync->next_removal < sync->removed.count && count < AT_ONCE) {
        char *key = text + count * (OBJECTS_KEY_MAX + 1);

        if (old_key(sync, sync->removed.items[sync->next_removal++], key) == 0)
            keys[count++] = key;
    }
    sync->call = objects_delete(sync->work.mover->objects, keys, count, gone_removed, sync);
}

/* --- 4: the list ----------------------------------------------------------------------------- */

static void list_put(void *context, const struct error *failure, const struct object_info *info)
{
    struct sync *sync = context;

    (void) info;
    sync->call = NULL;
    sync->is_listed = true;
    if (failure)
        work_end(&sync->work, failure);
    else if (work_goes_on(&sync->work))
        remove_gone(sync);
}

static void put_list(struct sync *sync)
{
    bool is_same = !sync->old_is_bad && sync->list.length == sync->old.length &&
                   memcmp(text_string(&sync->list), text_string(&sync->old), sync->old.length) == 0;

    sha256_finish(&sync->sha, sync->synced.manifest_sum);
    if (is_same && sync->old.length) {
        sync->is_listed = true;
        remove_gone(sync);
        return;
    }
    sync->file = work_open_bytes(&sync->work, text_string(&sync->list), sync->list.length);
    if (work_goes_on(&sync->work))
        sync->call = objects_put_file(sync->work.mover->objects, sync->manifest, sync->file, NULL,
                                      list_put, sync);
}

/* --- 3: contents ----------------------------------------------------------------------------- */

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
    sync->progress.files++;
    sync->progress.stored_bytes += bytes;
    if (sync->progressed)
        sync->progressed(sync->context, &sync->progress);
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
    struct provider_disk_job job = {
        .kind = PROVIDER_DISK_READ, .on = sync->disk, .image = sync->image};

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

/* --- 2: the scan ----------------------------------------------------------------------------- */

static bool is_folder(const struct mirror_entry *entry)
{
    return entry->type == MIRROR_FOLDER;
}

static void forget_old(struct sync *sync)
{
    sync->old_is_bad = true;
    sync->has_old = false;
    sync->removed.count = 0;
    sync->synced.removed = 0;
    sync->old_cursor.at = sync->old.length;
    LOG_WARNING(sync->work.mover->log,
                "the last list of a mirror is damaged: all of it is put anew",
                log_text("list", sync->manifest));
}

/* The next entry of the old list, whose order is checked: in another one, files that are still
 * there would look as if they were gone. */
static void advance_old(struct sync *sync)
{
    struct mirror_entry last = sync->old_entry;
    const char *line;
    size_t length, place = sync->old_cursor.at;

    sync->has_old = false;
    if (sync->old_is_bad || !mirror_next_line(&sync->old_cursor, &line, &length))
        return;
    sync->old_entry = (struct mirror_entry) MIRROR_ENTRY_INIT;
    if (mirror_entry_read(&sync->old_entry, line, length, NULL) < 0 ||
        (sync->old_began && mirror_compare(&last, &sync->old_entry) >= 0))
        forget_old(sync);
    else
        sync->has_old = true;
    sync->old_began = true;
    sync->old_place = place;
    mirror_entry_done(&last);
}

/* What comes before `limit` in the old list (NULL: all of the rest) is gone. */
static void pass_old(struct sync *sync, const struct mirror_entry *limit)
{
    while (sync->has_old && (!limit || mirror_compare(&sync->old_entry, limit) < 0)) {
        if (sync->old_entry.type == MIRROR_FILE) {
            places_add(&sync->removed, sync->old_place);
            sync->synced.removed++;
        }
        advance_old(sync);
    }
}

/* Whether the old list has this file with this content. */
static bool is_unchanged(struct sync *sync, const struct mirror_entry *entry)
{
    const struct mirror_entry *old = &sync->old_entry;
    bool is_same;

    pass_old(sync, entry);
    if (!sync->has_old || mirror_compare(old, entry) != 0)
        return false;
    is_same = old->type == MIRROR_FILE && entry->type == MIRROR_FILE && old->size == entry->size &&
              memcmp(old->sum, entry->sum, sizeof(old->sum)) == 0;
    if (is_folder(old) != is_folder(entry))
        sync->swaps = true;
    /* Its object goes, unless the new file takes its place. */
    if (old->type == MIRROR_FILE && entry->type != MIRROR_FILE) {
        places_add(&sync->removed, sync->old_place);
        sync->synced.removed++;
    }
    advance_old(sync);
    return is_same;
}

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
    is_same = is_unchanged(sync, entry);
    if (entry->type == MIRROR_FILE) {
        sync->synced.total_files++;
        sync->synced.total_bytes += entry->size;
        sync->synced.unchanged += is_same;
        if (!is_same)
            places_add(&sync->changed, place);
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
        report_cancel(&sync->report);
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
    pass_old(sync, NULL);
    sync->progress.bytes = sync->synced.total_bytes;
    if (!work_goes_on(&sync->work))
        return;
    if (sync->swaps)
        remove_gone(sync);
    else
        put_contents(sync);
}

static void start_scan(struct sync *sync)
{
    struct mover *mover = sync->work.mover;
    struct provider_disk_job job = {
        .kind = PROVIDER_DISK_SCAN, .on = sync->disk, .image = sync->image, .data = -EBADF};
    AUTO(close)
    int input = work_open_bytes(&sync->work, sync->options.data, sync->options.length);

    if (!work_goes_on(&sync->work))
        return;
    sync->old_cursor = (struct mirror_cursor){.text = &sync->old};
    advance_old(sync);
    job.input = input;
    report_run(&sync->report, mover->loop, mover->provider, &job, scan_line, scanned, sync);
}

/* --- 1: the last list ------------------------------------------------------------------------ */

/* It was just written, so that it is read from memory. */
static void read_old(struct sync *sync)
{
    struct stat status;
    char *place;
    ssize_t got;

    if (fstat(sync->file, &status) < 0 || status.st_size <= 0)
        return;
    place = text_reserve(&sync->old, (size_t) status.st_size);
    got = place ? sys_file_pread_full(sync->file, place, (size_t) status.st_size, 0) : -1;
    if (got > 0)
        text_commit(&sync->old, (size_t) got);
    sync->old_is_bad = got != status.st_size;
}

static void old_got(void *context, const struct error *failure, const struct object_info *info)
{
    struct sync *sync = context;

    (void) info;
    sync->call = NULL;
    if (failure && failure->code != ERR_NOT_FOUND && failure->code != ERR_UPSTREAM) {
        work_end(&sync->work, failure);
        return;
    }
    if (!failure)
        read_old(sync);
    if (sync->old_is_bad || (failure && failure->code == ERR_UPSTREAM))
        forget_old(sync);
    sync->file = fd_close(sync->file);
    if (work_goes_on(&sync->work))
        start_scan(sync);
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

static struct sync *new_sync(const struct vault_sync *what)
{
    struct sync *sync = mem_alloc(sizeof(*sync));

    *sync = (struct sync){
        .disk = what->disk,
        .image = what->image ? mem_copy_text(what->image) : NULL,
        .folder = mem_copy_text(what->folder),
        .prefix = mem_copy_text(what->prefix),
        .manifest = mem_copy_text(what->manifest),
        .options = TEXT_INIT(OPTIONS_MAX),
        .bytes_max = what->bytes_max,
        .file = -EBADF,
        .old = TEXT_INIT(MOVER_LIST_MAX),
        .list = TEXT_INIT(MOVER_LIST_MAX),
        .old_entry = MIRROR_ENTRY_INIT,
        .entry = MIRROR_ENTRY_INIT,
        .before = MIRROR_ENTRY_INIT,
        .contents = {.data = -EBADF, .spool = -EBADF},
    };
    sha256_init(&sync->sha);
    write_options(sync, what);
    return sync;
}

void mover_sync(void *self, const struct vault_sync *what, vault_progressed *progressed,
                vault_sync_done *done, void *context)
{
    struct mover *mover = self;
    struct sync *sync = new_sync(what);

    sync->progressed = progressed;
    sync->done = done;
    sync->context = context;
    if (!work_begin(&sync->work, mover, sync_finished, sync_cancel))
        return;
    if (sync->options.overflowed) {
        work_fail(&sync->work, ERR_TOO_LARGE, 0, "so many excludes");
        return;
    }
    sync->file = work_open_file(&sync->work);
    if (work_goes_on(&sync->work))
        sync->call =
            objects_get_file(mover->objects, sync->manifest, sync->file, NULL, old_got, sync);
}
