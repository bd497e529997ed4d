/* agent-load: the same request to an agent again and again, on one connection.
 *
 *     agent-load --target unix:PATH --path /api/execute --body '{"command":"true"}' --count 200
 *
 *     --body @FILE     what is in the file
 *     --serial NUMBER  every '@@' in the body is a number, from this one on
 *     --stamps on      the time is that from the last "stamp:NANOSECONDS;" in the answer until it
 * was read here, not that of the whole exchange
 *
 * Prints {"total_us":[...],"bytes":N}: times, and the bytes of all bodies. An answer other than 200
 * ends the measurement. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "base/memory.h"
#include "base/number.h"
#include "base/text.h"
#include "load/fail.h"
#include "load/response.h"
#include "load/samples.h"
#include "load/target.h"
#include "sys/file/sys_file.h"

#define BODY_MAX    ((size_t) 64 << 20)
#define REQUEST_MAX (BODY_MAX + 4096)
#define COUNT_MAX   1000000
#define SERIAL      "@@"
#define STAMP       "stamp:"
#define READ_SIZE   ((size_t) 256 << 10)

struct agent_load {
    struct target target;
    const char *path, *method;
    struct text body; /* owned */
    uint64_t count;
    uint64_t serial;
    bool stamps;
    int fd;
    char *buffer; /* owned: READ_SIZE and a NUL */
    uint64_t bytes;
};

static void send_all(const struct agent_load *load, const char *bytes, size_t length)
{
    while (length) {
        ssize_t sent = send(load->fd, bytes, length, MSG_NOSIGNAL);

        if (sent < 0 && errno != EINTR)
            fail("send: %s", strerror(errno));
        if (sent > 0) {
            bytes += sent;
            length -= (size_t) sent;
        }
    }
}

static void append_body(struct agent_load *load, struct text *body)
{
    const char *rest = text_string(&load->body), *place;

    while ((place = strstr(rest, SERIAL))) {
        text_append_bytes(body, rest, (size_t) (place - rest));
        text_format(body, "%" PRIu64, load->serial);
        rest = place + strlen(SERIAL);
    }
    text_append(body, rest);
    load->serial++;
}

static void ask(struct agent_load *load)
{
    AUTO(text) struct text body = TEXT_INIT(BODY_MAX);
    AUTO(text) struct text request = TEXT_INIT(REQUEST_MAX);

    append_body(load, &body);
    text_format(&request, "%s %s HTTP/1.1\r\nHost: agent\r\nContent-Length: %zu\r\n\r\n",
                load->method, load->path, body.length);
    text_append_bytes(&request, text_string(&body), body.length);
    send_all(load, text_string(&request), request.length);
}

/* The newest stamp in these bytes, or 0. A stamp is short and comes in one piece. */
static uint64_t find_stamp(const char *bytes)
{
    const char *place = NULL, *next = bytes;

    while ((next = strstr(next, STAMP))) {
        next += strlen(STAMP);
        place = next;
    }
    return place ? strtoull(place, NULL, 10) : 0;
}

/* Read one answer. Returns the time from the stamp in it, or 0. */
static uint64_t read_answer(struct agent_load *load)
{
    struct response response;
    uint64_t stamp_ns = 0;

    response_begin(&response);
    while (!response_is_done(&response)) {
        ssize_t got = recv(load->fd, load->buffer, READ_SIZE, 0);
        uint64_t now = samples_now(), stamp;

        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            fail("the agent closed the connection");
        load->buffer[got] = '\0';
        stamp = load->stamps ? find_stamp(load->buffer) : 0;
        if (stamp)
            stamp_ns = now - stamp;
        if (response_feed(&response, load->buffer, (size_t) got) != got)
            fail("an answer that is no HTTP");
        if (response.status && response.status != 200)
            fail("answered with %d: %s", response.status, load->buffer);
    }
    load->bytes += response.body_bytes;
    return stamp_ns;
}

static void measure(struct agent_load *load)
{
    AUTO(samples) struct samples samples = {.count = 0};

    for (uint64_t i = 0; i < load->count; i++) {
        uint64_t before = samples_now(), stamp;

        ask(load);
        stamp = read_answer(load);
        if (load->stamps && !stamp)
            fail("an answer without a stamp");
        samples_add(&samples, load->stamps ? stamp : samples_now() - before);
    }
    printf("{");
    samples_print(&samples, "total_us");
    printf(",\"bytes\":%" PRIu64 "}\n", load->bytes);
}

static void read_body(struct agent_load *load, const char *text)
{
    AUTO(free) char *all = NULL;
    size_t length = 0;
    int r;

    if (text[0] != '@' || strncmp(text, SERIAL, strlen(SERIAL)) == 0) {
        text_append(&load->body, text);
        return;
    }
    r = sys_file_read_all(AT_FDCWD, text + 1, BODY_MAX, &all, &length);
    if (r < 0)
        fail("read %s: %s", text + 1, strerror(-r));
    text_append_bytes(&load->body, all, length);
}

static void parse_count(const char *name, const char *text, uint64_t *ret_number)
{
    int64_t number = 0;

    if (number_parse(text, 0, COUNT_MAX, &number) < 0)
        fail("%s: '%s' will not do", name, text);
    *ret_number = (uint64_t) number;
}

static void parse(struct agent_load *load, int argc, char **argv)
{
    for (int at = 1; at + 1 < argc; at += 2) {
        const char *name = argv[at], *value = argv[at + 1];

        if (strcmp(name, "--target") == 0 && target_parse(value, &load->target) == 0)
            continue;
        if (strcmp(name, "--path") == 0)
            load->path = value;
        else if (strcmp(name, "--method") == 0)
            load->method = value;
        else if (strcmp(name, "--body") == 0)
            read_body(load, value);
        else if (strcmp(name, "--stamps") == 0)
            load->stamps = strcmp(value, "on") == 0;
        else if (strcmp(name, "--count") == 0)
            parse_count(name, value, &load->count);
        else if (strcmp(name, "--serial") == 0)
            parse_count(name, value, &load->serial);
        else
            fail("unknown option or value: %s %s", name, value);
    }
    if (!load->target.text || !load->path || argc % 2 == 0)
        fail("usage: agent-load --target ADDRESS --path PATH [--method POST] [--body JSON|@FILE] "
             "[--count N] [--serial N] [--stamps on]");
}

int main(int argc, char **argv)
{
    struct agent_load load = {
        .method = "POST", .count = 1, .body = TEXT_INIT(BODY_MAX), .fd = -EBADF};

    load.buffer = mem_alloc(READ_SIZE + 1);
    parse(&load, argc, argv);
    load.fd = target_connect(&load.target, 0);
    if (load.fd < 0)
        fail("connect to %s: %s", load.target.text, strerror(-load.fd));
    measure(&load);
    return EXIT_SUCCESS;
}
