#include "agent/port/port_probe.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>

#include "agent/watch.h"
#include "base/auto.h"
#include "base/memory.h"
#include "sys/network/sys_socket.h"

/* "HTTP/1.1 200": all that is looked at. */
#define STATUS_LENGTH 12
/* Of an answer this much is read and forgotten: servers complain about who hangs up early. */
#define LINGER_MAX ((size_t) 256 * 1024)

enum phase { PHASE_CONNECTING, PHASE_ANSWER, PHASE_LINGER };

struct port_probe {
    struct port_probe_request request;
    struct watch watch;
    struct deadline deadline;
    enum phase phase;
    char answer[STATUS_LENGTH];
    size_t length; /* of `answer`; of what was forgotten when lingering */
    int handles;
};

int port_probe_parse_status(const char *bytes, size_t length)
{
    static const char shape[STATUS_LENGTH + 1] = "HTTP/d.d ddd"; /* d: a digit */

    for (size_t i = 0; i < length && i < STATUS_LENGTH; i++) {
        if (shape[i] == 'd' ? bytes[i] < '0' || bytes[i] > '9' : bytes[i] != shape[i])
            return -EPROTO;
    }
    if (length < STATUS_LENGTH)
        return -EAGAIN;
    if (bytes[9] == '0')
        return -EPROTO;
    return (bytes[9] - '0') * 100 + (bytes[10] - '0') * 10 + (bytes[11] - '0');
}

/* --- the end --------------------------------------------------------------------------------- */

static void port_probe_handle_gone(struct port_probe *probe)
{
    if (--probe->handles == 0)
        free(probe);
}

static void watch_gone(struct watch *watch)
{
    port_probe_handle_gone(CONTAINER_OF(watch, struct port_probe, watch));
}

static void port_probe_deadline_gone(struct deadline *deadline)
{
    port_probe_handle_gone(CONTAINER_OF(deadline, struct port_probe, deadline));
}

static void close_probe(struct port_probe *probe)
{
    watch_close(&probe->watch);
    deadline_close(&probe->deadline, port_probe_deadline_gone);
}

void port_probe_cancel(struct port_probe *probe)
{
    close_probe(probe);
}

static void port_probe_finish(struct port_probe *probe, int result)
{
    if (probe->phase != PHASE_LINGER)
        probe->request.on_done(probe, probe->request.data, result);
    close_probe(probe);
}

static void deadline_due(struct deadline *deadline)
{
    port_probe_finish(CONTAINER_OF(deadline, struct port_probe, deadline), -ETIMEDOUT);
}

/* --- the talk -------------------------------------------------------------------------------- */

static void connected(struct port_probe *probe)
{
    const struct port_probe_request *request = &probe->request;
    int error = sys_socket_error(probe->watch.fd);

    if (error < 0 || !request->http) {
        port_probe_finish(probe, error);
        return;
    }
    /* A fresh connection takes a whole request; one that does not is not ready. */
    if (send(probe->watch.fd, request->http, request->http_length, MSG_NOSIGNAL) !=
        (ssize_t) request->http_length) {
        port_probe_finish(probe, -EPIPE);
        return;
    }
    probe->phase = PHASE_ANSWER;
    watch_for(&probe->watch, UV_READABLE);
}

static void answered(struct port_probe *probe)
{
    int status = port_probe_parse_status(probe->answer, probe->length);

    if (status == -EAGAIN)
        return;
    if (status < 0) {
        port_probe_finish(probe, status);
        return;
    }
    probe->phase = PHASE_LINGER;
    probe->length = 0;
    probe->request.on_done(probe, probe->request.data, status);
}

/* Returns false at the end, or when nothing is there now. */
static bool port_probe_read_some(struct port_probe *probe)
{
    bool lingers = probe->phase == PHASE_LINGER;
    char forgotten[4096];
    ssize_t got = recv(probe->watch.fd, lingers ? forgotten : probe->answer + probe->length,
                       lingers ? sizeof(forgotten) : STATUS_LENGTH - probe->length, 0);

    if (got < 0 && (errno == EAGAIN || errno == EINTR))
        return false;
    if (got <= 0 || (lingers && probe->length > LINGER_MAX)) {
        port_probe_finish(probe, got < 0 ? -errno : -EPIPE);
        return false;
    }
    probe->length += (size_t) got;
    if (!lingers)
        answered(probe);
    return probe->watch.open;
}

static void port_probe_ready(struct watch *watch)
{
    struct port_probe *probe = CONTAINER_OF(watch, struct port_probe, watch);

    if (probe->phase == PHASE_CONNECTING)
        connected(probe);
    else
        while (port_probe_read_some(probe))
            ;
}

/* --- the start ------------------------------------------------------------------------------- */

int port_probe_start(struct loop *loop, const struct port_probe_request *request,
                     struct port_probe **ret_probe)
{
    AUTO(close) int fd = sys_socket_create(&request->address);
    struct port_probe *probe;
    int r = fd < 0 ? fd : sys_socket_connect(fd, &request->address);

    if (r < 0 && r != -EINPROGRESS)
        return r;
    probe = mem_alloc(sizeof(*probe));
    r = watch_init(&probe->watch, loop, fd, port_probe_ready, watch_gone);
    if (r < 0) {
        free(probe);
        return r;
    }
    (void) TAKE_FD(fd);
    probe->request = *request;
    probe->handles = 2;
    deadline_init(loop, &probe->deadline, deadline_due);
    deadline_set(&probe->deadline, PORT_PROBE_TIMEOUT_MS);
    watch_for(&probe->watch, UV_WRITABLE);
    *ret_probe = probe;
    return 0;
}
