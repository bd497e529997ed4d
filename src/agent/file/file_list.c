#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <string.h>
#include <time.h>

#include "agent/agent.h"
#include "agent/file/file_error.h"
#include "agent/file/file_operations.h"
#include "agent/file/file_request.h"
#include "agent/file/file_walk.h"
#include "agent/file_open.h"
#include "base/memory.h"
#include "sys/file/sys_file.h"

/* Entries in one turn of the loop. */
#define ENTRIES_PER_TURN 256

#define ABSOLUTE_MAX (2 * FILE_PATH_MAX + (FILE_WALK_DEPTH_MAX + 1) * (size_t) 256)

/* In the call's pool. */
struct file_list {
    struct call *call;
    const char *path; /* as the client gave it */
    struct file_walk *walk;
    bool recursive;
    bool hidden;
    uint64_t count;
    struct text absolute; /* of the entry that is being written */
    size_t base_length;   /* of it: the folder and a slash */
    struct file_reply reply;
    struct json_writer json;
    struct loop_task task;
};

/* --- one entry ------------------------------------------------------------------------------ */

static char *put_digits(char *end, unsigned long number, int count)
{
    for (int i = count; i-- > 0; number /= 10)
        end[i] = (char) ('0' + number % 10);
    return end + count;
}

/* By hand: it is done for every file. */
void file_list_time(const struct timespec *time, char ret_text[static FILE_LIST_TIME_SIZE])
{
    struct tm parts;
    char *end = ret_text;

    if (!gmtime_r(&time->tv_sec, &parts) || parts.tm_year < -1900 || parts.tm_year > 9999 - 1900)
        parts = (struct tm){.tm_year = 70, .tm_mday = 1}; /* no year that four digits hold */
    end = put_digits(end, (unsigned long) parts.tm_year + 1900, 4);
    *end++ = '-';
    end = put_digits(end, (unsigned long) parts.tm_mon + 1, 2);
    *end++ = '-';
    end = put_digits(end, (unsigned long) parts.tm_mday, 2);
    *end++ = 'T';
    end = put_digits(end, (unsigned long) parts.tm_hour, 2);
    *end++ = ':';
    end = put_digits(end, (unsigned long) parts.tm_min, 2);
    *end++ = ':';
    end = put_digits(end, (unsigned long) parts.tm_sec, 2);
    *end++ = '.';
    end = put_digits(end, (unsigned long) time->tv_nsec, 9);
    *end++ = '0';
    *end = '\0';
}

void file_list_mode(mode_t mode, char ret_text[static FILE_LIST_MODE_SIZE])
{
    static const char letters[] = "rwxrwxrwx";

    for (int i = 0; i < 9; i++)
        ret_text[i] = mode & (0400 >> i) ? letters[i] : '-';
    if (mode & S_ISUID)
        ret_text[2] = mode & S_IXUSR ? 's' : 'S';
    if (mode & S_ISGID)
        ret_text[5] = mode & S_IXGRP ? 's' : 'S';
    if (mode & S_ISVTX)
        ret_text[8] = mode & S_IXOTH ? 't' : 'T';
    ret_text[9] = '\0';
}

static const char *type_of(mode_t mode)
{
    if (S_ISREG(mode))
        return "file";
    if (S_ISDIR(mode))
        return "directory";
    return S_ISLNK(mode) ? "symlink" : "other";
}

#define RIGHTS(r, w, x) "{\"readable\":" #r ",\"writable\":" #w ",\"executable\":" #x "}"

/* By the owner's three bits. */
static const char *const owner_rights[8] = {
    RIGHTS(false, false, false), RIGHTS(false, false, true), RIGHTS(false, true, false),
    RIGHTS(false, true, true),   RIGHTS(true, false, false), RIGHTS(true, false, true),
    RIGHTS(true, true, false),   RIGHTS(true, true, true),
};

static void add_entry(struct file_list *list, const struct file_walk_entry *entry)
{
    struct json_writer *json = &list->json;
    mode_t mode = entry->status.st_mode;
    const char *rights = owner_rights[mode >> 6 & 7];
    char time[FILE_LIST_TIME_SIZE], permissions[FILE_LIST_MODE_SIZE];

    list->absolute.length = list->base_length;
    text_append(&list->absolute, entry->path);
    file_list_time(&entry->status.st_mtim, time);
    file_list_mode(mode, permissions);
    json_begin_object(json);
    json_add_text(json, "name", entry->name);
    json_add_text(json, "absolutePath", text_string(&list->absolute));
    json_add_text(json, "relativePath", entry->path);
    json_add_text(json, "type", type_of(mode));
    json_add_integer(json, "size", entry->status.st_size);
    json_add_text(json, "modifiedAt", time);
    json_add_text(json, "mode", permissions);
    json_key(json, "permissions");
    json_put_raw(json, rights, strlen(rights));
    json_end_object(json);
    list->count++;
}

/* --- the walk ------------------------------------------------------------------------------- */

static void close_list(struct file_list *list)
{
    loop_task_cancel(&list->task);
    file_walk_free(list->walk);
    list->walk = NULL;
    text_done(&list->absolute);
}

static void finish(struct file_list *list)
{
    struct json_writer *json = &list->json;

    close_list(list);
    json_end_array(json);
    json_add_integer(json, "count", (int64_t) list->count);
    call_add_timestamp(list->call, json);
    (void) json_document_end(json); /* what does not fit is seen by file_reply_end */
    file_reply_end(&list->reply, list->path);
}

static void fail(struct file_list *list, int error)
{
    close_list(list);
    file_reply_fail(&list->reply, list->path, error);
}

/* The next entry that is wanted. As file_walk_next. */
static int take_entry(struct file_list *list)
{
    struct file_walk_entry entry;
    int r = file_walk_next(list->walk, &entry);

    if (r <= 0)
        return r;
    if (entry.is_end || (entry.name[0] == '.' && !list->hidden))
        return 1;
    add_entry(list, &entry);
    file_reply_flush(&list->reply);
    if (list->count > FILE_LIST_MAX)
        return -EFBIG;
    if (list->recursive && S_ISDIR(entry.status.st_mode)) {
        r = file_walk_enter(list->walk);
        /* What may not be read is listed, without what is in it. */
        return r == -FILE_ERROR_TOO_DEEP || r == -EMFILE || r == -ENFILE ? r : 1;
    }
    return 1;
}

static void list_on(struct loop_task *task)
{
    struct file_list *list = CONTAINER_OF(task, struct file_list, task);
    int r = 1;

    for (int i = 0; i < ENTRIES_PER_TURN && r > 0; i++)
        r = take_entry(list);
    if (r > 0 && list->reply.pending.overflowed)
        r = -EFBIG;
    if (r == 0) {
        finish(list);
    } else if (r < 0) {
        fail(list, r);
    } else if (!call_is_full(list->call)) { /* else on_drain goes on */
        loop_defer(&list->call->agent->loop, &list->task);
    }
}

static void client_took(struct call *call)
{
    struct file_list *list = call->data;

    loop_defer(&call->agent->loop, &list->task);
}

static void client_left(struct call *call)
{
    struct file_list *list = call->data;

    close_list(list);
    file_reply_done(&list->reply);
}

/* --- beginning ------------------------------------------------------------------------------ */

static int read_options(struct call *call, struct file_list *list)
{
    json_t *options = json_object_get(call->arguments, "options");

    if (options && !json_is_object(options) && !json_is_null(options)) {
        call_fail_field(call, "options", "must be an object");
        return -1;
    }
    if (file_request_flag(call, options, "recursive", &list->recursive) < 0)
        return -1;
    return file_request_flag(call, options, "includeHidden", &list->hidden);
}

static int open_walk(struct file_list *list, const struct file_place *place)
{
    int fd = file_open(place->base, place->path, O_RDONLY | O_DIRECTORY | O_NONBLOCK, 0);
    int r = fd;

    if (fd >= 0)
        list->walk = file_walk_new(fd, &r);
    return list->walk ? 0 : r;
}

static void begin(struct file_list *list, const struct file_place *place)
{
    struct json_writer *json = &list->json;

    list->absolute = (struct text) TEXT_INIT(ABSOLUTE_MAX);
    text_append(&list->absolute, place->absolute);
    if (place->absolute[1])
        text_append_char(&list->absolute, '/');
    list->base_length = list->absolute.length;
    file_reply_init(&list->reply, list->call);
    call_begin_success(json, &list->reply.pending);
    json_add_text(json, "path", list->path);
    json_begin_array_at(json, "files");
}

void file_list(struct call *call)
{
    struct file_list *list = pool_alloc(call->pool, sizeof(*list));
    AUTO(file_place) struct file_place place = FILE_PLACE_INIT;
    int r;

    *list = (struct file_list){.call = call};
    if (file_request_place(call, "path", &place) < 0 || read_options(call, list) < 0)
        return;
    list->path = place.path;
    r = open_walk(list, &place);
    if (r < 0) {
        file_error_fail(call, list->path, r);
        return;
    }
    begin(list, &place);
    loop_task_init(&list->task, list_on);
    call->data = list;
    call->on_gone = client_left;
    call->on_drain = client_took;
    list_on(&list->task);
}
