/* The kernel's objects: buffers of pipes and sockets, semaphores, queues, locks. */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/sock_diag.h>
#include <mqueue.h>
#include <netinet/in.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/ipc.h>
#include <sys/mman.h>
#include <sys/msg.h>
#include <sys/sem.h>
#include <sys/socket.h>
#include <unistd.h>

#include "attack_resources.h"
#include "base/auto.h"

#define BLOCK_BYTES    65536
#define SET_SEMAPHORES 32000
#define MESSAGE_BYTES  8000
#define QUEUE_MESSAGES 10
#define QUEUE_BYTES    8192
#define LOCKS_EACH     1000
#define DATAGRAM_BYTES 32768
#define DATAGRAMS_EACH 16
#define SOCKETS_EACH   64

static int result(long r)
{
    return r < 0 ? -errno : 0;
}

/* Fill until no more goes in. 0, or -errno of what is not "full". */
static int fill(int fd)
{
    static const char block[BLOCK_BYTES];

    while (write(fd, block, sizeof(block)) > 0)
        ;
    return errno == EAGAIN || errno == EWOULDBLOCK ? 0 : -errno;
}

static int take_pipe(size_t number)
{
    int ends[2];

    (void) number;
    return pipe2(ends, O_CLOEXEC | O_NONBLOCK) < 0 ? -errno : fill(ends[1]);
}

static int take_unix_pair(size_t number)
{
    int ends[2];

    (void) number;
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends) < 0)
        return -errno;
    return fill(ends[0]);
}

static int bind_to_loopback(int fd, struct sockaddr_in *ret_address)
{
    socklen_t size = sizeof(*ret_address);

    *ret_address =
        (struct sockaddr_in){.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    if (bind(fd, (struct sockaddr *) ret_address, size) < 0)
        return -errno;
    return result(getsockname(fd, (struct sockaddr *) ret_address, &size));
}

/* What the kernel keeps for a socket, sent and received. */
static size_t held_by(int fd)
{
    uint32_t numbers[SK_MEMINFO_VARS] = {0};
    socklen_t size = sizeof(numbers);

    (void) getsockopt(fd, SOL_SOCKET, SO_MEMINFO, numbers, &size);
    return numbers[SK_MEMINFO_RMEM_ALLOC] + numbers[SK_MEMINFO_WMEM_QUEUED];
}

/* A connection to ourselves, full both ways. */
static int add_connection(size_t *held)
{
    AUTO(close) int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    int near = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), far;
    struct sockaddr_in address;
    int r;

    if (listener < 0 || near < 0)
        return -errno;
    r = bind_to_loopback(listener, &address);
    if (r < 0)
        return r;
    if (listen(listener, 1) < 0 ||
        connect(near, (struct sockaddr *) &address, sizeof(address)) < 0 ||
        (far = accept4(listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK)) < 0)
        return -errno;
    (void) fcntl(near, F_SETFL, O_NONBLOCK);
    r = fill(near);
    if (r == 0)
        r = fill(far);
    *held += held_by(near) + held_by(far);
    return r;
}

/* A socket that sends to itself; what does not fit is dropped. */
static int add_datagrams(size_t *held)
{
    static const char block[DATAGRAM_BYTES];
    int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    struct sockaddr_in address;
    int r = fd < 0 ? -errno : bind_to_loopback(fd, &address);

    if (r < 0)
        return r;
    for (int i = 0; i < DATAGRAMS_EACH; i++)
        (void) sendto(fd, block, sizeof(block), 0, (struct sockaddr *) &address, sizeof(address));
    *held += held_by(fd);
    return 0;
}

/* Until one more megabyte is held. A kernel that is out of memory for sockets still makes them, but
 * they hold next to nothing. */
static int add_megabyte(int (*add)(size_t *held), size_t *held, size_t number)
{
    for (int i = 0; i < SOCKETS_EACH && *held < (number + 1) * RESOURCE_MEGABYTE; i++) {
        int r = add(held);

        if (r < 0)
            return r;
    }
    return *held < (number + 1) * RESOURCE_MEGABYTE ? -ENOBUFS : 0;
}

static int take_connections(size_t number)
{
    static size_t held;

    return add_megabyte(add_connection, &held, number);
}

static int take_datagrams(size_t number)
{
    static size_t held;

    return add_megabyte(add_datagrams, &held, number);
}

/* --- of the ipc namespace: these stay when their maker is gone ---------------------------------
 */

static int take_semaphores(size_t number)
{
    (void) number;
    return result(semget(IPC_PRIVATE, SET_SEMAPHORES, IPC_CREAT | 0600));
}

static int take_messages(size_t number)
{
    struct {
        long type;
        char bytes[MESSAGE_BYTES];
    } message = {.type = 1};
    int id = msgget(IPC_PRIVATE, IPC_CREAT | 0600);

    (void) number;
    if (id < 0)
        return -errno;
    while (msgsnd(id, &message, sizeof(message.bytes), IPC_NOWAIT) == 0)
        ;
    return errno == EAGAIN ? 0 : -errno;
}

static int take_queue(size_t number)
{
    struct mq_attr attributes = {.mq_maxmsg = QUEUE_MESSAGES, .mq_msgsize = QUEUE_BYTES};
    char name[64];

    (void) snprintf(name, sizeof(name), "/burrow-lab-%zu", number);
    return result(mq_open(name, O_RDWR | O_CREAT | O_EXCL, 0600, &attributes));
}

/* --- locks ---------------------------------------------------------------------------------- */

/* A thousand ranges of a file of its own: the kernel walks through all locks of a file for each. */
static int take_locks(size_t number)
{
    int fd = memfd_create("burrow-lab", MFD_CLOEXEC);

    (void) number;
    if (fd < 0)
        return -errno;
    for (off_t i = 0; i < LOCKS_EACH; i++) {
        struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = i * 2, .l_len = 1};

        if (fcntl(fd, F_SETLK, &lock) < 0)
            return -errno;
    }
    return 0;
}

const struct resource resource_objects[] = {
    {"pipes", "a pipe with all it holds", take_pipe},
    {"unix_sockets", "a pair of unix sockets with all it holds", take_unix_pair},
    {"connections", "a megabyte in TCP connections to ourselves", take_connections},
    {"datagrams", "a megabyte in UDP sockets", take_datagrams},
    {"semaphores", "32,000 System V semaphores", take_semaphores},
    {"messages", "a System V message queue with all it holds", take_messages},
    {"queues", "a POSIX message queue", take_queue},
    {"locks", "1000 locks on a file", take_locks},
    {NULL, NULL, NULL},
};
