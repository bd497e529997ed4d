#include "keeper/output.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/time.h>
#include <unistd.h>

#include "sys/file/sys_file.h"

#define LOOK_EVERY_US 100000

void output_init(struct output *output, int fd)
{
    output->fd = fd;
    output->error = 0;
    output->used = 0;
}

int output_flush(struct output *output)
{
    if (!output->error && output->used)
        output->error = sys_file_write_full(output->fd, output->buffer, output->used);
    output->used = 0;
    return output->error;
}

static int gather(void *context, const char *bytes, size_t length)
{
    struct output *output = context;

    while (length && !output->error) {
        size_t room = sizeof(output->buffer) - output->used;
        size_t part = length < room ? length : room;

        memcpy(output->buffer + output->used, bytes, part);
        output->used += part;
        bytes += part;
        length -= part;
        if (output->used == sizeof(output->buffer))
            (void) output_flush(output);
    }
    return output->error;
}

void output_begin(struct output *output, struct json_writer *json)
{
    json_writer_init_sink(json, gather, output);
    json_begin_object(json);
}

void output_end(struct output *output, struct json_writer *json)
{
    int result;

    json_end_object(json);
    result = json_writer_finish(json);
    if (result < 0 && !output->error)
        output->error = result;
    (void) gather(output, "\n", 1);
}

void output_add_count(struct json_writer *json, const char *key, uint64_t count)
{
    json_add_integer(json, key, count > INT64_MAX ? INT64_MAX : (int64_t) count);
}

/* A job may spend minutes in the kernel or in a loop that writes nothing: so a timer looks. */
static void look(int number)
{
    struct pollfd reader = {.fd = STDOUT_FILENO};
    int saved = errno;

    (void) number;
    if (poll(&reader, 1, 0) > 0 && reader.revents & (POLLERR | POLLHUP))
        _exit(1);
    errno = saved;
}

int output_end_with_reader(void)
{
    struct sigaction action = {.sa_handler = look, .sa_flags = SA_RESTART};
    struct itimerval often = {{0, LOOK_EVERY_US}, {0, LOOK_EVERY_US}};

    if (sigaction(SIGALRM, &action, NULL) < 0 || setitimer(ITIMER_REAL, &often, NULL) < 0)
        return -errno;
    return 0;
}
