/* GET /burrow/ports: which ports are listened at, and by whom.
 *
 * The processes behind the sockets are found by looking through /proc/PID/fd of all, a millisecond
 * at a time: the loop goes on meanwhile. */
#include <arpa/inet.h>
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "agent/agent.h"
#include "agent/call.h"
#include "agent/port/port_table.h"
#include "agent/port/port_watch.h"
#include "base/memory.h"
#include "base/number.h"
#include "json/json_write.h"
#include "sys/file/sys_file.h"

#define SLICE_NS ((uint64_t) 1000000)
/* Links between two looks at the clock, and in all: a second's work on a slow machine. */
#define LOOKS_PER_CLOCK 16
#define LOOKS_MAX       500000

#define REPLY_MAX ((size_t) PORT_TABLE_MAX * (PORT_COMMAND_MAX * 6 + 256))

struct port_list_listing {
    struct call *call;
    struct loop_task slice;
    struct port_table table; /* sorted by inode */
    size_t unknown;          /* entries without a process */
    DIR *processes;          /* owned: /proc */
    DIR *descriptors;        /* owned: of `pid`; NULL between two processes */
    pid_t pid;
    unsigned int looks;
};

static void listing_free(struct port_list_listing *listing)
{
    loop_task_cancel(&listing->slice);
    port_table_done(&listing->table);
    if (listing->descriptors)
        (void) closedir(listing->descriptors);
    if (listing->processes)
        (void) closedir(listing->processes);
    free(listing);
}

/* --- looking --------------------------------------------------------------------------------- */

static int compare_inodes(const void *left, const void *right)
{
    uint64_t a = ((const struct port_entry *) left)->inode;
    uint64_t b = ((const struct port_entry *) right)->inode;

    return (a > b) - (a < b);
}

/* The command line of the process as one line, or NULL. */
static char *read_command(int directory)
{
    AUTO(close) int fd = sys_file_open(directory, "../cmdline", O_RDONLY, 0);
    char line[PORT_COMMAND_MAX];
    ssize_t length = fd < 0 ? fd : sys_file_read_full(fd, line, sizeof(line));

    while (length > 0 && line[length - 1] == '\0')
        length--;
    if (length <= 0)
        return NULL;
    for (ssize_t i = 0; i < length; i++) {
        if (line[i] == '\0')
            line[i] = ' ';
    }
    return mem_copy_bytes(line, (size_t) length);
}

static void look_at_descriptor(struct port_list_listing *listing, const char *name)
{
    struct port_entry key = {.inode = 0}, *found;
    int directory = dirfd(listing->descriptors);
    char target[64];
    ssize_t length = readlinkat(directory, name, target, sizeof(target));

    if (length > 0)
        key.inode = port_table_parse_link(target, (size_t) length);
    if (!key.inode)
        return;
    found =
        bsearch(&key, listing->table.entries, listing->table.count, sizeof(key), compare_inodes);
    if (!found || found->pid)
        return; /* others may share it: the oldest is named */
    found->pid = listing->pid;
    found->command = read_command(directory);
    listing->unknown--;
}

static void open_descriptors(struct port_list_listing *listing, const char *name)
{
    char path[300];
    uint64_t pid;
    int fd;

    if (number_parse_digits(name, strlen(name), INT32_MAX, &pid) < 0)
        return;
    (void) snprintf(path, sizeof(path), "%s/fd", name);
    fd = sys_file_open(dirfd(listing->processes), path, O_RDONLY | O_DIRECTORY, 0);
    if (fd < 0)
        return; /* it is gone, or not ours to look at */
    listing->pid = (pid_t) pid;
    listing->descriptors = fdopendir(fd);
    if (!listing->descriptors)
        (void) fd_close(fd);
}

/* One step. Returns false when there is nothing left to look at. */
static bool port_list_look(struct port_list_listing *listing)
{
    DIR *directory = listing->descriptors ? listing->descriptors : listing->processes;
    struct dirent *item;

    if (!listing->unknown || !directory || listing->looks++ >= LOOKS_MAX)
        return false;
    item = readdir(directory);
    if (item && listing->descriptors) {
        look_at_descriptor(listing, item->d_name);
    } else if (item) {
        open_descriptors(listing, item->d_name);
    } else if (listing->descriptors) {
        (void) closedir(listing->descriptors);
        listing->descriptors = NULL;
    } else {
        return false;
    }
    return true;
}

/* --- the answer ------------------------------------------------------------------------------ */

static int compare_ports(const void *left, const void *right)
{
    const struct port_entry *a = left, *b = right;

    if (a->port != b->port)
        return a->port < b->port ? -1 : 1;
    return a->is_ipv6 - b->is_ipv6;
}

static void put_entry(struct json_writer *json, const struct port_entry *entry)
{
    char address[INET6_ADDRSTRLEN] = "";

    (void) inet_ntop(entry->is_ipv6 ? AF_INET6 : AF_INET, &entry->ipv6, address, sizeof(address));
    json_begin_object(json);
    json_add_integer(json, "port", entry->port);
    json_add_text(json, "address", address);
    if (entry->pid)
        json_add_integer(json, "pid", entry->pid);
    else
        json_add_null(json, "pid");
    json_add_text(json, "command", entry->command);
    json_end_object(json);
}

static void port_list_answer(struct port_list_listing *listing)
{
    AUTO(text) struct text body = TEXT_INIT(REPLY_MAX);
    struct port_table *table = &listing->table;
    struct call *call = listing->call;
    struct json_writer json;

    if (table->count)
        qsort(table->entries, table->count, sizeof(*table->entries), compare_ports);
    call_begin_success(&json, &body);
    json_begin_array_at(&json, "ports");
    for (size_t i = 0; i < table->count; i++)
        put_entry(&json, &table->entries[i]);
    json_end_array(&json);
    if (table->truncated)
        json_add_boolean(&json, "truncated", true);
    listing_free(listing);
    call_finish_success(call, &json, &body);
}

static void slice(struct loop_task *task)
{
    struct port_list_listing *listing = CONTAINER_OF(task, struct port_list_listing, slice);
    uint64_t end = uv_hrtime() + SLICE_NS;

    do {
        for (int i = 0; i < LOOKS_PER_CLOCK; i++) {
            if (!port_list_look(listing)) {
                port_list_answer(listing);
                return;
            }
        }
    } while (uv_hrtime() < end);
    loop_defer(&listing->call->agent->loop, &listing->slice);
}

static void port_list_client_left(struct call *call)
{
    listing_free(call->data);
}

void port_list(struct call *call)
{
    struct port_list_listing *listing = mem_alloc(sizeof(*listing));
    int r = port_table_read(&listing->table);

    loop_task_init(&listing->slice, slice);
    if (r < 0) {
        listing_free(listing);
        call_fail_text(call, API_PORT_OPERATION_ERROR, "Ports cannot be listed: %s",
                       strerrordesc_np(-r));
        return;
    }
    listing->call = call;
    listing->unknown = listing->table.count;
    listing->processes = opendir("/proc");
    if (listing->table.count)
        qsort(listing->table.entries, listing->table.count, sizeof(*listing->table.entries),
              compare_inodes);
    call->data = listing;
    call->on_gone = port_list_client_left;
    loop_defer(&call->agent->loop, &listing->slice);
}
