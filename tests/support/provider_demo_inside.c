/* What provider_demo asks inside of a sandbox: its agent, and listeners on its ports. */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/auto.h"
#include "base/memory.h"
#include "base/number.h"
#include "net/http/http_proxy.h"
#include "provider_demo.h"

#define SAID_MAX 4096

/* --- ports ----------------------------------------------------------------------------------- */

struct hearing {
    struct asked *asked; /* owned */
    uint16_t port;
    uv_poll_t poll;
    int socket; /* owned */
    char said[SAID_MAX];
    size_t length;
};

static void hearing_free(struct hearing *hearing)
{
    (void) fd_close(hearing->socket);
    free(hearing);
}

static void poll_closed(uv_handle_t *handle)
{
    hearing_free(handle->data);
}

static void answer(struct hearing *hearing, int failure)
{
    struct http_request *request = asked_take(hearing->asked);
    struct error err = ERROR_INIT;

    if (!request)
        return;
    if (failure) {
        (void) error_set(&err, ERR_UPSTREAM, failure, "port %u of the sandbox", hearing->port);
        http_reply_error(request, &err);
        return;
    }
    http_reply(request, 200, "text/plain", hearing->said, hearing->length);
}

static void can_be_heard(uv_poll_t *poll, int status, int events)
{
    struct hearing *hearing = poll->data;
    ssize_t got = -1;

    (void) events;
    errno = -status;
    if (status == 0)
        got = read(hearing->socket, hearing->said + hearing->length,
                   sizeof(hearing->said) - hearing->length);
    if (got < 0 && errno == EAGAIN)
        return;
    if (got > 0) {
        hearing->length += (size_t) got;
        return;
    }
    answer(hearing, got < 0 ? errno : 0);
    uv_close((uv_handle_t *) poll, poll_closed);
}

static int start_hearing(struct hearing *hearing)
{
    struct sockaddr_in address = {.sin_family = AF_INET,
                                  .sin_port = htons(hearing->port),
                                  .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int r;

    if (connect(hearing->socket, (const struct sockaddr *) &address, sizeof(address)) < 0 &&
        errno != EINPROGRESS)
        return -errno;
    r = uv_poll_init(&hearing->asked->demo->loop.uv, &hearing->poll, hearing->socket);
    if (r < 0)
        return r;
    hearing->poll.data = hearing;
    return uv_poll_start(&hearing->poll, UV_READABLE, can_be_heard);
}

static void got_sockets(void *context, const struct error *failure, const int *sockets,
                        size_t count)
{
    struct hearing *hearing = context;
    struct http_request *request;
    int r;

    (void) count;
    if (failure) {
        request = asked_take(hearing->asked);
        if (request)
            http_reply_error(request, failure);
        hearing_free(hearing);
        return;
    }
    hearing->socket = sockets[0];
    r = start_hearing(hearing);
    if (r < 0) {
        answer(hearing, r);
        hearing_free(hearing);
    }
}

void get_port(struct http_request *request)
{
    struct demo *demo = request->context;
    struct hearing *hearing;
    struct error err = ERROR_INIT;
    int64_t port;
    struct id id;

    if (path_id(request, &id) < 0)
        return;
    if (number_parse(http_request_parameter(request, "port"), 1, UINT16_MAX, &port) < 0) {
        (void) error_set(&err, ERR_INVALID, 0, "not a port");
        http_reply_error(request, &err);
        return;
    }
    hearing = mem_alloc(sizeof(*hearing));
    *hearing =
        (struct hearing){.asked = asked_new(request), .port = (uint16_t) port, .socket = -EBADF};
    provider_sockets(demo->provider, &id, 1, got_sockets, hearing);
}

/* --- agents ---------------------------------------------------------------------------------- */

struct agent {
    struct list link;
    struct id id;
    struct http_origin *origin; /* owned */
};

static struct agent *find_agent(struct demo *demo, const struct id *id)
{
    LIST_EACH (&demo->agents, at) {
        struct agent *agent = CONTAINER_OF(at, struct agent, link);

        if (strcmp(agent->id.text, id->text) == 0)
            return agent;
    }
    return NULL;
}

static struct agent *new_agent(struct demo *demo, const struct id *id, struct error *err)
{
    struct http_origin_options options = HTTP_ORIGIN_OPTIONS_DEFAULT;
    char address[PROVIDER_ADDRESS_MAX];
    struct http_origin *origin;
    struct agent *agent;

    options.idle_max = 0; /* a thousand agents would be a thousand descriptors */
    if (provider_agent_address(demo->provider, id, address, err) < 0)
        return NULL;
    origin = http_origin_new(&demo->loop, address, &options, err);
    if (!origin)
        return NULL;
    agent = mem_alloc(sizeof(*agent));
    *agent = (struct agent){.id = *id, .origin = origin};
    list_append(&demo->agents, &agent->link);
    return agent;
}

void ask_agent(struct http_request *request)
{
    const char *path = http_request_parameter(request, "path");
    size_t length = strlen(path) + 2;
    char *target = pool_alloc(&request->pool, length);
    struct http_proxy_options options = {.target = target, .host = "agent"};
    struct demo *demo = request->context;
    struct error err = ERROR_INIT;
    struct agent *agent;
    struct id id;

    if (path_id(request, &id) < 0)
        return;
    target[0] = '/';
    memcpy(target + 1, path, length - 1);
    agent = find_agent(demo, &id);
    if (!agent)
        agent = new_agent(demo, &id, &err);
    if (!agent) {
        http_reply_error(request, &err);
        return;
    }
    http_proxy(request, agent->origin, &options);
}

void forget_agent(struct demo *demo, const struct id *id)
{
    struct agent *agent = find_agent(demo, id);

    if (!agent)
        return;
    list_remove(&agent->link);
    http_origin_close(agent->origin, NULL, NULL);
    free(agent);
}
