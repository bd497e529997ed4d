#include "load/api_connection.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>

#include "load/fail.h"

#define READ_SIZE ((size_t) 64 << 10)

void api_connection_open(struct api_connection *connection, const struct api_server *server,
                         unsigned turn)
{
    *connection = (struct api_connection){
        .fd = target_connect(&server->target, turn),
        .request = TEXT_INIT(API_REQUEST_MAX),
        .answer = TEXT_INIT(API_ANSWER_MAX),
    };
    if (connection->fd < 0)
        fail("connect to %s: %s", server->target.text, strerror(-connection->fd));
    if (target_unblock(connection->fd) < 0)
        fail("a connection that cannot be made non-blocking");
}

void api_connection_ask(struct api_connection *connection, const struct api_server *server,
                        const char *method, const char *path, const char *body)
{
    struct text *request = &connection->request;
    ssize_t sent;

    text_clear(request);
    text_format(request, "%s %s HTTP/1.1\r\nHost: %s\r\nAuthorization: Bearer %s\r\n", method, path,
                server->target.text, server->key);
    if (*body)
        text_format(request, "Content-Type: application/json\r\nContent-Length: %zu\r\n",
                    strlen(body));
    text_format(request, "\r\n%s", body);
    if (request->overflowed)
        fail("a request of more than %zu bytes", API_REQUEST_MAX);
    text_clear(&connection->answer);
    response_begin(&connection->response);
    sent = send(connection->fd, text_string(request), request->length, MSG_NOSIGNAL);
    if (sent != (ssize_t) request->length)
        fail("send %s %s: %s", method, path, sent < 0 ? strerror(errno) : "only a part");
}

bool api_connection_take(struct api_connection *connection)
{
    struct text *answer = &connection->answer;
    char *place = text_reserve(answer, READ_SIZE);
    ssize_t got, used;

    if (!place) {
        fail("an answer of more than %zu bytes", API_ANSWER_MAX);
        return false;
    }
    got = recv(connection->fd, place, READ_SIZE, 0);
    if (got < 0 && (errno == EAGAIN || errno == EINTR))
        return false;
    if (got <= 0)
        fail("the server closed the connection: %s", got < 0 ? strerror(errno) : "end of file");
    used = response_feed(&connection->response, place, (size_t) got);
    text_commit(answer, (size_t) got);
    if (used != got)
        fail("an answer that is none: %s", used < 0 ? strerror((int) -used) : "bytes behind it");
    return response_is_done(&connection->response);
}

void api_connection_close(struct api_connection *connection)
{
    target_reset(connection->fd);
    text_done(&connection->request);
    text_done(&connection->answer);
}
