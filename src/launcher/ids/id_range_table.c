#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/memory.h"
#include "launcher/ids/id_range_internal.h"
#include "sys/file/sys_file.h"
#include "sys/file/sys_lock.h"

#define TABLE_NAME  "id-ranges"
#define RECORD_SIZE 64
#define MAGIC       "burrowID"
#define VERSION     1

struct header {
    char magic[8];
    uint32_t version;
    uint32_t first; /* id */
    uint32_t slots;
    char boot[ID_RANGE_BOOT_SIZE];
    uint64_t checksum;
};

_Static_assert(sizeof(struct header) == RECORD_SIZE, "the header is one record long");
_Static_assert(sizeof(struct id_range_record) == RECORD_SIZE, "records have a fixed size");

uint64_t id_range_checksum(const void *bytes, size_t count)
{
    const unsigned char *at = bytes;
    uint64_t sum = 0xcbf29ce484222325u;

    for (size_t i = 0; i < count; i++)
        sum = (sum ^ at[i]) * 0x100000001b3u;
    return sum;
}

/* Reading and writing records. */

static off_t offset_of(uint32_t slot)
{
    return (off_t) (slot + 1) * RECORD_SIZE;
}

static void check_record(struct id_range_record *record)
{
    static const struct id_range_record empty;

    if (memcmp(record, &empty, sizeof(empty)) == 0)
        return;
    if (record->checksum != id_range_checksum(record, offsetof(struct id_range_record, checksum)) ||
        !memchr(record->sandbox, '\0', ID_SIZE))
        *record = (struct id_range_record){.state = STATE_TAKEN};
}

int id_range_read(struct id_range_table *table, uint32_t slot, struct id_range_record *ret_records,
                  uint32_t count)
{
    size_t size = count * sizeof(*ret_records);
    ssize_t done = sys_file_pread_full(table->file, ret_records, size, offset_of(slot));

    if (done < 0)
        return (int) done;
    /* The file ends behind the last record that was ever written. */
    memset((char *) ret_records + done, 0, size - (size_t) done);
    for (uint32_t i = 0; i < count; i++)
        check_record(&ret_records[i]);
    return 0;
}

int id_range_write(struct id_range_table *table, uint32_t slot, struct id_range_record record)
{
    if (record.state != STATE_NEVER)
        record.checksum = id_range_checksum(&record, offsetof(struct id_range_record, checksum));
    return sys_file_pwrite_full(table->file, &record, sizeof(record), offset_of(slot));
}

/* The header. */

static void fill_header(const struct id_range_table *table, struct header *ret_header)
{
    *ret_header = (struct header){.version = VERSION, .first = table->first, .slots = table->slots};
    memcpy(ret_header->magic, MAGIC, sizeof(ret_header->magic));
    memcpy(ret_header->boot, table->boot, ID_RANGE_BOOT_SIZE);
    ret_header->checksum = id_range_checksum(ret_header, offsetof(struct header, checksum));
}

static bool is_header(const struct header *header)
{
    return memcmp(header->magic, MAGIC, sizeof(header->magic)) == 0 && header->version == VERSION &&
           header->slots > 0 &&
           header->checksum == id_range_checksum(header, offsetof(struct header, checksum));
}

static int start_table(struct id_range_table *table, struct error *err)
{
    struct header header;
    int r = ftruncate(table->file, 0) < 0 ? -errno : 0;

    fill_header(table, &header);
    if (r == 0)
        r = sys_file_pwrite_full(table->file, &header, sizeof(header), 0);
    return r < 0 ? error_set(err, error_code_from_errno(r), r, "make the table of id ranges") : 0;
}

static int is_in_use(struct id_range_table *table)
{
    struct id_range_record record;

    for (uint32_t slot = 0; slot < table->slots; slot++) {
        int r = id_range_read(table, slot, &record, 1);

        if (r < 0)
            return r;
        if (record.state == STATE_TAKEN)
            return 1;
    }
    return 0;
}

/* Take the place that a table with ranges in use has, or give an unused one ours. */
static int agree_on_place(struct id_range_table *table, const struct header *header,
                          struct error *err)
{
    uint32_t first = table->first, slots = table->slots;
    int r;

    if (header->first == first && header->slots == slots)
        return 0;
    table->first = header->first;
    table->slots = header->slots;
    r = is_in_use(table);
    if (r < 0)
        return error_set(err, ERR_INTERNAL, r, "read the table of id ranges");
    if (r > 0)
        return 0;
    table->first = first;
    table->slots = slots;
    return start_table(table, err);
}

/* Under the lock. An empty file is one whose maker died before the header. */
static int load_table(struct id_range_table *table, struct error *err)
{
    struct header header;
    ssize_t count = sys_file_pread_full(table->file, &header, sizeof(header), 0);

    if (count < 0)
        return error_set(err, ERR_INTERNAL, (int) count, "read the table of id ranges");
    if (count == 0)
        return start_table(table, err);
    if (count != sizeof(header) || !is_header(&header))
        return error_set(err, ERR_CONFLICT, 0,
                         "the file " TABLE_NAME " in the run folder is no table of id ranges; "
                         "remove it when no sandbox runs");
    if (memcmp(header.boot, table->boot, ID_RANGE_BOOT_SIZE) != 0)
        return start_table(table, err);
    return agree_on_place(table, &header, err);
}

int id_range_lock(struct id_range_table *table, struct error *err)
{
    int r = sys_lock_take(table->file, SYS_LOCK_EXCLUSIVE, ID_RANGE_LOCK_MS);

    if (r < 0)
        return error_set(err, ERR_UNAVAILABLE, r, "wait for the lock of the id ranges");
    /* Another process may have started an unused table anew, at another place. */
    if (load_table(table, err) == 0)
        return 0;
    sys_lock_release(table->file);
    return -1;
}

/* Opening. */

static int check_bounds(const struct id_range_options *options, struct id_range_table *table,
                        struct error *err)
{
    uint32_t first = options->first, end = options->end;

    if (first == 0 && end == 0) {
        first = ID_RANGE_FIRST;
        end = ID_RANGE_END;
    }
    if (first < ID_RANGE_SIZE || first % ID_RANGE_SIZE || end % ID_RANGE_SIZE || end <= first)
        return error_set(err, ERR_INVALID, 0,
                         "id ranges from %u to %u: both must be multiples of %d, and some", first,
                         end, ID_RANGE_SIZE);
    table->first = first;
    table->slots = (end - first) / ID_RANGE_SIZE;
    return 0;
}

static int read_boot(struct id_range_table *table, const char *boot, struct error *err)
{
    AUTO(free) char *text = NULL;
    size_t length;
    int r;

    if (boot) {
        (void) snprintf(table->boot, sizeof(table->boot), "%-*s", ID_RANGE_BOOT_SIZE, boot);
        return 0;
    }
    r = sys_file_read_all(AT_FDCWD, "/proc/sys/kernel/random/boot_id", 256, &text, &length);
    if (r < 0 || length < ID_RANGE_BOOT_SIZE)
        return error_set(err, ERR_INTERNAL, r, "read the kernel's boot id");
    memcpy(table->boot, text, ID_RANGE_BOOT_SIZE);
    return 0;
}

/* In another pid namespace the same number is another process. */
static uint64_t read_pid_namespace(const struct id_range_table *table)
{
    char path[PATH_MAX + 16];
    struct stat status;

    (void) snprintf(path, sizeof(path), "%s/ns/pid", table->process);
    return stat(path, &status) < 0 ? 0 : status.st_ino;
}

/* Others must be able neither to change the table nor to put another in its place. */
static int check_owner(int fd, const char *what, struct error *err)
{
    struct stat status;

    if (fstat(fd, &status) < 0)
        return error_set(err, ERR_INTERNAL, errno, "look at %s", what);
    if (status.st_uid == geteuid() && (status.st_mode & 022) == 0)
        return 0;
    return error_set(err, ERR_FORBIDDEN, 0, "%s can be changed by other users", what);
}

static int open_file(const char *folder, struct error *err)
{
    AUTO(close) int directory = -EBADF, file = -EBADF;
    int r = sys_file_make_directories(AT_FDCWD, folder, 0700);

    if (r == 0)
        r = directory = sys_file_open(AT_FDCWD, folder, O_RDONLY | O_DIRECTORY, 0);
    if (r < 0)
        return error_set(err, error_code_from_errno(r), r, "open the run folder '%s'", folder);
    if (check_owner(directory, "the run folder", err) < 0)
        return -1;
    file = sys_file_open(directory, TABLE_NAME, O_RDWR | O_CREAT | O_NOFOLLOW, 0600);
    if (file < 0)
        return error_set(err, error_code_from_errno(file), file, "open '%s/" TABLE_NAME "'",
                         folder);
    if (check_owner(file, "the table of id ranges", err) < 0)
        return -1;
    return TAKE_FD(file);
}

int id_range_table_open(const struct id_range_options *options, struct id_range_table **ret_table,
                        struct error *err)
{
    AUTO(id_range_table) struct id_range_table *table = mem_alloc(sizeof(*table));

    table->file = -EBADF;
    table->user = options->user ? id_range_checksum(options->user, strlen(options->user)) : 0;
    (void) snprintf(table->etc, sizeof(table->etc), "%s", options->etc ? options->etc : "/etc");
    (void) snprintf(table->process, sizeof(table->process), "%s",
                    options->process ? options->process : "/proc/self");
    table->pids = read_pid_namespace(table);
    if (check_bounds(options, table, err) < 0 || read_boot(table, options->boot, err) < 0 ||
        id_range_reserved_read(&table->reserved, table->etc, table->process, err) < 0)
        return -1;
    table->file = open_file(options->folder, err);
    if (table->file < 0 || id_range_lock(table, err) < 0)
        return -1;
    sys_lock_release(table->file);
    *ret_table = TAKE_PTR(table);
    return 0;
}

void id_range_table_free(struct id_range_table *table)
{
    if (!table)
        return;
    table->file = fd_close(table->file);
    id_range_reserved_done(&table->reserved);
    free(table);
}
