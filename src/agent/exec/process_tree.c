#include "agent/exec/process_tree.h"

#include <ctype.h>
#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "base/auto.h"
#include "base/memory.h"
#include "base/number.h"
#include "sys/file/sys_file.h"
#include "sys/process/sys_process.h"

/* Numbers and 16 bytes of name: far more than the kernel writes. */
#define STAT_SIZE 1024

enum membership { UNKNOWN, INSIDE, OUTSIDE };

struct process_tree_entry {
    pid_t pid;
    pid_t parent;
    enum membership membership;
};

struct process_tree {
    struct process_tree_entry *entries; /* owned; sorted by pid once complete */
    size_t count;
    size_t capacity;
    pid_t root;
};

static void tree_done(struct process_tree *tree)
{
    free(tree->entries);
}

AUTO_DEFINE(tree, struct process_tree, tree_done);

static void close_directory(DIR *directory)
{
    (void) closedir(directory); /* it was open */
}

AUTO_DEFINE_PTR(directory, DIR, close_directory);

int process_tree_parse_stat(const char *stat, char *ret_state, pid_t *ret_parent)
{
    /* The last one: the name may hold more, what follows never does. */
    const char *at = strrchr(stat, ')');
    const char *digits;
    uint64_t parent = 0;
    size_t length = 0;

    if (!at || at[1] != ' ' || !isalpha((unsigned char) at[2]) || at[3] != ' ')
        return -EINVAL;
    digits = at + 4;
    while (isdigit((unsigned char) digits[length]))
        length++;
    if (digits[length] != ' ' || number_parse_digits(digits, length, INT32_MAX, &parent) < 0)
        return -EINVAL;
    *ret_state = at[2];
    *ret_parent = (pid_t) parent;
    return 0;
}

static int read_stat(int proc, pid_t pid, char *ret_state, pid_t *ret_parent)
{
    char path[32], stat[STAT_SIZE];
    AUTO(close) int fd = -EBADF;
    ssize_t length;

    (void) snprintf(path, sizeof(path), "%d/stat", pid);
    fd = sys_file_open(proc, path, O_RDONLY, 0);
    if (fd < 0)
        return fd;
    length = sys_file_read_full(fd, stat, sizeof(stat) - 1);
    if (length < 0)
        return (int) length;
    stat[length] = '\0';
    return process_tree_parse_stat(stat, ret_state, ret_parent);
}

static void process_tree_add_entry(struct process_tree *tree, pid_t pid, pid_t parent)
{
    if (tree->count == tree->capacity) {
        tree->capacity = tree->capacity ? tree->capacity * 2 : 64;
        tree->entries = mem_resize(tree->entries, tree->capacity * sizeof(*tree->entries));
    }
    tree->entries[tree->count++] = (struct process_tree_entry){.pid = pid, .parent = parent};
}

static int compare_pids(const void *left, const void *right)
{
    pid_t a = ((const struct process_tree_entry *) left)->pid,
          b = ((const struct process_tree_entry *) right)->pid;

    return (a > b) - (a < b);
}

static void read_tree(DIR *proc, struct process_tree *tree)
{
    struct dirent *item;

    while ((item = readdir(proc))) {
        uint64_t pid;
        pid_t parent;
        char state;

        if (number_parse_digits(item->d_name, strlen(item->d_name), INT32_MAX, &pid) < 0)
            continue;
        if (read_stat(dirfd(proc), (pid_t) pid, &state, &parent) == 0)
            process_tree_add_entry(tree, (pid_t) pid, parent);
    }
    if (tree->count)
        qsort(tree->entries, tree->count, sizeof(*tree->entries), compare_pids);
}

static struct process_tree_entry *process_tree_find(struct process_tree *tree, pid_t pid)
{
    struct process_tree_entry key = {.pid = pid};

    return tree->count ? bsearch(&key, tree->entries, tree->count, sizeof(key), compare_pids)
                       : NULL;
}

/* Climb until the answer is known, then write it on every process passed. The climb is cut at the
 * number of processes: entries were read one by one, and pids reused meanwhile could form a ring.
 */
static enum membership process_tree_judge(struct process_tree *tree,
                                          struct process_tree_entry *entry)
{
    enum membership answer = OUTSIDE;
    struct process_tree_entry *at = entry;

    for (size_t steps = 0; at && steps <= tree->count; steps++) {
        if (at->membership != UNKNOWN) {
            answer = at->membership;
            break;
        }
        if (at->parent == tree->root) {
            answer = INSIDE;
            break;
        }
        at = process_tree_find(tree, at->parent);
    }
    for (at = entry; at && at->membership == UNKNOWN; at = process_tree_find(tree, at->parent)) {
        at->membership = answer;
        if (at->parent == tree->root)
            break; /* the root and what is above it do not belong to its tree */
    }
    return answer;
}

static bool is_parent_inside(struct process_tree *tree, pid_t parent)
{
    struct process_tree_entry *entry = process_tree_find(tree, parent);

    return parent == tree->root || (entry && entry->membership == INSIDE);
}

/* Returns 1 when a living process was signalled. */
static int signal_entry(int proc, struct process_tree *tree, const struct process_tree_entry *entry,
                        int signal)
{
    AUTO(close) int pidfd = sys_process_open(entry->pid);
    pid_t parent;
    char state;

    if (pidfd < 0)
        return 0;
    /* Read after the pidfd was opened: if the pid was reused before, the stranger's parent is seen
     * here; if later, the signal finds the old process gone. */
    if (read_stat(proc, entry->pid, &state, &parent) < 0 || !is_parent_inside(tree, parent))
        return 0;
    if (state == 'Z' || state == 'X')
        return 0;
    return sys_process_kill(pidfd, signal) == 0;
}

int process_tree_signal(pid_t root, int signal)
{
    AUTO(directory) DIR *proc = opendir("/proc");
    AUTO(tree) struct process_tree tree = {.root = root};
    int signalled = 0;

    if (!proc)
        return -errno;
    read_tree(proc, &tree);
    for (size_t i = 0; i < tree.count; i++) {
        if (tree.entries[i].pid != root && process_tree_judge(&tree, &tree.entries[i]) == INSIDE)
            signalled += signal_entry(dirfd(proc), &tree, &tree.entries[i], signal);
    }
    return signalled;
}
