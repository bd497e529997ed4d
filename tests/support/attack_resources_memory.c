/* Memory: of programs, of files in memory, and the kernel's on behalf of them. */
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/ipc.h>
#include <sys/mman.h>
#include <sys/shm.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "attack_resources.h"
#include "base/auto.h"

#define PAGE_BYTES  ((size_t) 4096)
#define EATER_SIZE  (8 * RESOURCE_MEGABYTE)
#define TABLE_SPAN  ((size_t) 2 << 20) /* what one page of page table maps */
#define TABLES_SIZE (TABLE_SPAN * 256) /* whose page tables are a megabyte */
#define NAME_BYTES  200

static int result(long r)
{
    return r < 0 ? -errno : 0;
}

static char *map(size_t size)
{
    return mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1,
                0);
}

static int touch(size_t size)
{
    char *memory = map(size);

    if (memory == MAP_FAILED)
        return -errno;
    for (size_t i = 0; i < size; i += PAGE_BYTES)
        memory[i] = 1;
    return 0;
}

static int take_megabyte(size_t number)
{
    (void) number;
    return touch(RESOURCE_MEGABYTE);
}

/* Many processes at once, so that killing one of them is not enough. */
static int take_eater(size_t number)
{
    int ends[2];
    char byte;
    pid_t pid;

    (void) number;
    if (pipe2(ends, O_CLOEXEC) < 0 || (pid = resource_fork()) < 0)
        return -errno;
    if (pid == 0) {
        if (touch(EATER_SIZE) < 0 || write(ends[1], "", 1) != 1)
            _exit(1);
        for (;;)
            (void) pause();
    }
    (void) close(ends[1]);
    /* Killed now, or earlier for the sake of another. */
    if (read(ends[0], &byte, 1) != 1 || waitpid(-1, NULL, WNOHANG) > 0)
        return -ENOMEM;
    (void) close(ends[0]);
    return 0;
}

/* One read of each stretch of 2 MB: the page is the kernel's page of zeros, its table is not. */
static int take_tables(size_t number)
{
    volatile char *memory = map(TABLES_SIZE);

    (void) number;
    if (memory == MAP_FAILED)
        return -errno;
    (void) madvise((void *) (uintptr_t) memory, TABLES_SIZE, MADV_NOHUGEPAGE);
    for (size_t i = 0; i < TABLES_SIZE; i += TABLE_SPAN)
        (void) memory[i];
    return 0;
}

/* --- files in memory ------------------------------------------------------------------------ */

static int append(const char *path)
{
    AUTO(close) int fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);

    return fd < 0 ? -errno : resource_write_megabyte(fd);
}

static int take_shared_file(size_t number)
{
    (void) number;
    return append("/dev/shm/burrow-lab");
}

static int take_device_file(size_t number)
{
    (void) number;
    return append("/dev/burrow-lab");
}

static int take_memory_file(size_t number)
{
    int fd = memfd_create("burrow-lab", MFD_CLOEXEC);

    (void) number;
    return fd < 0 ? -errno : resource_write_megabyte(fd);
}

static int take_segment(size_t number)
{
    int id = shmget(IPC_PRIVATE, RESOURCE_MEGABYTE, IPC_CREAT | 0600);
    char *memory = id < 0 ? (char *) -1 : shmat(id, NULL, 0);

    (void) number;
    if (memory == (char *) -1)
        return -errno;
    for (size_t i = 0; i < RESOURCE_MEGABYTE; i += PAGE_BYTES)
        memory[i] = 1;
    return result(shmdt(memory));
}

static int make_empty(const char *folder, size_t number)
{
    char path[NAME_BYTES + 64];

    (void) snprintf(path, sizeof(path), "%s/%0*zu", folder, NAME_BYTES, number);
    AUTO(close) int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    return fd < 0 ? -errno : 0;
}

static int take_shared_inode(size_t number)
{
    (void) mkdir("/dev/shm/burrow-lab-files", 0700);
    return make_empty("/dev/shm/burrow-lab-files", number);
}

/* Names that are not there, which the kernel remembers. */
static int take_name(size_t number)
{
    char path[NAME_BYTES + 64];

    (void) snprintf(path, sizeof(path), "/tmp/%0*zu", NAME_BYTES, number);
    return access(path, F_OK) < 0 && errno == ENOENT ? 0 : -errno;
}

/* --- the disk ------------------------------------------------------------------------------- */

static int take_disk(size_t number)
{
    (void) number;
    return append("/workspace/burrow-lab");
}

static int take_temporary_file(size_t number)
{
    (void) number;
    return append("/tmp/burrow-lab");
}

static int take_inode(size_t number)
{
    char folder[64];

    (void) snprintf(folder, sizeof(folder), "/workspace/burrow-lab-%zu", number / 1000);
    (void) mkdir(folder, 0700);
    return make_empty(folder, number);
}

const struct resource resource_memory[] = {
    {"memory", "a megabyte", take_megabyte},
    {"storm", "a process with 8 megabytes", take_eater},
    {"page_tables", "a megabyte of page tables", take_tables},
    {"shared_files", "a megabyte in /dev/shm", take_shared_file},
    {"device_files", "a megabyte in /dev", take_device_file},
    {"memory_files", "a megabyte in a memfd", take_memory_file},
    {"segments", "a megabyte of System V memory", take_segment},
    {"shared_inodes", "an empty file in /dev/shm", take_shared_inode},
    {"names", "a name that is not there", take_name},
    {"disk", "a megabyte in /workspace", take_disk},
    {"temporary_files", "a megabyte in /tmp", take_temporary_file},
    {"inodes", "an empty file in /workspace", take_inode},
    {NULL, NULL, NULL},
};
