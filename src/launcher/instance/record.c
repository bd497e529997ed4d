#include "launcher/instance/record.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/auto.h"
#include "base/memory.h"
#include "base/number.h"
#include "base/text.h"
#include "sys/file/sys_file.h"
#include "wire/wire_field.h"

#define RECORD_HEAD "burrow-record 1"
#define RECORD_MAX  1024
/* Every record is filled up to this with empty lines: then a new one covers an old one. */
#define RECORD_SIZE 512
#define BOOT_FILE   "/proc/sys/kernel/random/boot_id"

int record_read_boot(char ret_boot[static RECORD_BOOT_SIZE])
{
    AUTO(free) char *text = NULL;
    size_t length = 0;
    int r = sys_file_read_all(AT_FDCWD, BOOT_FILE, 64, &text, &length);

    if (r < 0)
        return r;
    if (length < RECORD_BOOT_SIZE - 1)
        return -EINVAL;
    memcpy(ret_boot, text, RECORD_BOOT_SIZE - 1);
    ret_boot[RECORD_BOOT_SIZE - 1] = '\0';
    return 0;
}

/* --- writing --------------------------------------------------------------------------------- */

static void print(const struct record *record, const char *boot, struct text *text)
{
    text_format(text, RECORD_HEAD "\nboot %s\nimage %s\n", boot, record->image);
    text_format(text, "pid %d\nstart %llu\npooled %d\nnat %d\n", (int) record->pid,
                (unsigned long long) record->start_time, record->pooled, record->nat);
    text_format(text, "fresh %d\nready %d\nkilled %d\nkeep %d\ntold %d\n", record->fresh,
                record->ready, record->was_killed, record->keep_disk, record->was_told);
    text_format(text, "held %d\nsnapshot %d\n", record->is_held, record->is_snapshot);
    if (record->has_ended)
        text_format(text, "ended %u\nvalue %u\n", (unsigned int) record->ending.kind,
                    record->ending.value);
    if (record->owner.text[0])
        text_format(text, "\nowner %s\n", record->owner.text);
    while (text->length < RECORD_SIZE)
        text_append_char(text, '\n');
}

/* A new one: never there in part. No fsync, unlike sys_file_replace: nothing here outlives a
 * reboot. */
static int write_new(int folder, const struct record *record, const struct text *text)
{
    AUTO(close)
    int fd =
        sys_file_open(folder, RECORD_UNFINISHED, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW, 0600);
    int r = fd;

    if (r >= 0)
        r = sys_file_write_full(fd, text->data, text->length);
    if (r == 0 && renameat(folder, RECORD_UNFINISHED, folder, record->id.text) < 0)
        r = -errno;
    if (r < 0)
        (void) unlinkat(folder, RECORD_UNFINISHED, 0);
    return r;
}

int record_write(int folder, const char *boot, const struct record *record)
{
    AUTO(text) struct text text = TEXT_INIT(RECORD_MAX);
    AUTO(close) int fd = -EBADF;
    ssize_t written;

    print(record, boot, &text);
    fd = sys_file_open(folder, record->id.text, O_WRONLY | O_NOFOLLOW, 0);
    if (fd == -ENOENT || text.length != RECORD_SIZE)
        return write_new(folder, record, &text);
    if (fd < 0)
        return fd;
    /* One write within a page of an existing file: no kill comes in between. */
    written = pwrite(fd, text.data, text.length, 0);
    if (written < 0)
        return -errno;
    return (size_t) written == text.length ? 0 : -EIO;
}

/* --- reading --------------------------------------------------------------------------------- */

static int take_number(const char *key, uint64_t number, struct record *record)
{
    const struct {
        const char *key;
        bool *flag;
    } flags[] = {
        {"pooled", &record->pooled},        {"nat", &record->nat},
        {"fresh", &record->fresh},          {"ready", &record->ready},
        {"killed", &record->was_killed},    {"keep", &record->keep_disk},
        {"told", &record->was_told},        {"held", &record->is_held},
        {"snapshot", &record->is_snapshot},
    };

    for (size_t i = 0; i < ARRAY_COUNT(flags); i++) {
        if (strcmp(key, flags[i].key) == 0 && number <= 1) {
            *flags[i].flag = number;
            return 0;
        }
    }
    if (strcmp(key, "pid") == 0 && number <= WIRE_PID_MAX) {
        record->pid = (pid_t) number;
    } else if (strcmp(key, "start") == 0) {
        record->start_time = number;
    } else if (strcmp(key, "ended") == 0 && number <= ENDED_UNKNOWN) {
        record->has_ended = true;
        record->ending.kind = (enum ending_kind) number;
    } else if (strcmp(key, "value") == 0 && number <= UINT8_MAX) {
        record->ending.value = (uint8_t) number;
    } else {
        return -EINVAL;
    }
    return 0;
}

static int take_line(const char *key, const char *value, const char *boot, struct record *record)
{
    uint64_t number;
    int r;

    if (strcmp(key, "boot") == 0)
        return strcmp(value, boot) == 0 ? 0 : -EINVAL;
    if (strcmp(key, "image") == 0) {
        if (!image_name_is_valid(value))
            return -EINVAL;
        (void) snprintf(record->image, sizeof(record->image), "%s", value);
        return 0;
    }
    r = number_parse_digits(value, strlen(value), UINT64_MAX, &number);
    return r < 0 ? r : take_number(key, number, record);
}

/* Behind the first empty line, where launchers before it do not look: they find their sandboxes too. */
static int take_owner(const char *rest, struct record *record)
{
    static const char key[] = "owner ";
    char id[ID_SIZE] = "";

    if (strncmp(rest, key, strlen(key)) != 0)
        return 0;
    rest += strlen(key);
    memcpy(id, rest, strnlen(rest, ID_LENGTH));
    if (!id_is_valid(id) || rest[ID_LENGTH] != '\n')
        return -EINVAL;
    memcpy(record->owner.text, id, ID_SIZE);
    return 0;
}

static int parse(char *text, const char *boot, struct record *record)
{
    char *line = strsep(&text, "\n");
    int r = 0;

    if (!line || strcmp(line, RECORD_HEAD) != 0)
        return -EINVAL;
    while ((line = strsep(&text, "\n")) && *line) {
        char *value = strchr(line, ' ');

        if (!value)
            return -EINVAL;
        *value++ = '\0';
        r = take_line(line, value, boot, record);
        if (r < 0)
            return r;
    }
    r = text ? take_owner(text, record) : 0;
    return r == 0 && *record->image ? 0 : -EINVAL;
}

int record_read(int folder, const char *boot, const struct id *id, struct record *ret_record)
{
    AUTO(free) char *text = NULL;
    struct record record = {.id = *id};
    size_t length = 0;
    int r = sys_file_read_all(folder, id->text, RECORD_MAX, &text, &length);

    if (r == 0)
        r = parse(text, boot, &record);
    if (r < 0)
        return r == -EFBIG ? -EINVAL : r;
    *ret_record = record;
    return 0;
}

int record_remove(int folder, const struct id *id)
{
    return unlinkat(folder, id->text, 0) < 0 ? -errno : 0;
}

int record_list(int folder, struct id **ret_ids, size_t *ret_count)
{
    AUTO(free) struct id *ids = NULL;
    size_t count = 0, capacity = 0;
    int fd = sys_file_open(folder, ".", O_RDONLY | O_DIRECTORY, 0);
    DIR *directory = fd < 0 ? NULL : fdopendir(fd);
    const struct dirent *entry;

    (void) unlinkat(folder, RECORD_UNFINISHED, 0);
    if (!directory) {
        (void) fd_close(fd);
        return fd < 0 ? fd : -errno;
    }
    while ((entry = readdir(directory))) {
        if (!id_is_valid(entry->d_name))
            continue;
        if (count == capacity) {
            capacity = capacity ? 2 * capacity : 64;
            ids = mem_resize(ids, capacity * sizeof(*ids));
        }
        memcpy(ids[count++].text, entry->d_name, ID_SIZE);
    }
    (void) closedir(directory);
    *ret_ids = TAKE_PTR(ids);
    *ret_count = count;
    return 0;
}
