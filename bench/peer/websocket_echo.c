/* websocket-echo-peer: the other server of the WebSocket rows. An echo on libwebsockets
 * with buffers large enough to take a 64 KB message at once, no extensions and no log. Writing
 * without flow control, or straight from the receive callback, came out a few per cent faster at
 * 64 B and slower at 64 KB, within the noise of the three rounds tried.
 *
 *     websocket-echo-peer PORT        listens on 127.0.0.1 until it is killed
 *     websocket-echo-peer --version   that of the library */
#include <libwebsockets.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/number.h"

#define MESSAGE_MAX    (1u << 20)
#define SERVICE_BUFFER (80u << 10)

/* One message of one connection: gathered, then sent back whole. libwebsockets writes its frame
 * head into the LWS_PRE bytes before it. */
struct echo {
    unsigned char *buffer; /* owned: LWS_PRE + MESSAGE_MAX, grown on first use */
    size_t capacity;
    size_t length;
    bool binary;
};

static int echo_receive(struct lws *socket, struct echo *echo, const void *bytes, size_t length)
{
    if (length > MESSAGE_MAX - echo->length)
        return -1;
    if (echo->length + length > echo->capacity) {
        echo->capacity = echo->length + length + lws_remaining_packet_payload(socket);
        echo->buffer = mem_resize(echo->buffer, LWS_PRE + echo->capacity);
    }
    memcpy(echo->buffer + LWS_PRE + echo->length, bytes, length);
    echo->length += length;
    echo->binary = lws_frame_is_binary(socket);
    if (lws_is_final_fragment(socket) && lws_remaining_packet_payload(socket) == 0) {
        /* One message at a time: the client waits for its echo, so nothing is lost by it. */
        lws_rx_flow_control(socket, 0);
        lws_callback_on_writable(socket);
    }
    return 0;
}

static int echo_send(struct lws *socket, struct echo *echo)
{
    int sent = lws_write(socket, echo->buffer + LWS_PRE, echo->length,
                         echo->binary ? LWS_WRITE_BINARY : LWS_WRITE_TEXT);

    if (sent < (int) echo->length)
        return -1;
    echo->length = 0;
    lws_rx_flow_control(socket, 1);
    return 0;
}

static int on_event(struct lws *socket, enum lws_callback_reasons reason, void *session,
                    void *bytes, size_t length)
{
    struct echo *echo = session;

    switch (reason) {
    case LWS_CALLBACK_RECEIVE:
        return echo_receive(socket, echo, bytes, length);
    case LWS_CALLBACK_SERVER_WRITEABLE:
        return echo->length ? echo_send(socket, echo) : 0;
    case LWS_CALLBACK_CLOSED:
        free(echo->buffer);
        return 0;
    default:
        return 0;
    }
}

static const struct lws_protocols protocols[] = {
    {.name = "echo",
     .callback = on_event,
     .per_session_data_size = sizeof(struct echo),
     .rx_buffer_size = SERVICE_BUFFER},
    {0},
};

int main(int argc, char **argv)
{
    int64_t port = 0;
    struct lws_context_creation_info info = {
        .iface = "127.0.0.1",
        .protocols = protocols,
        .pt_serv_buf_size = SERVICE_BUFFER,
        .gid = (gid_t) -1,
        .uid = (uid_t) -1,
    };
    struct lws_context *context;

    if (argc == 2 && strcmp(argv[1], "--version") == 0) {
        printf("%s\n", lws_get_library_version());
        return EXIT_SUCCESS;
    }
    if (argc != 2 || number_parse(argv[1], 1, UINT16_MAX, &port) < 0) {
        (void) fprintf(stderr, "usage: websocket-echo-peer PORT\n");
        return EXIT_FAILURE;
    }
    info.port = (int) port;
    lws_set_log_level(LLL_ERR, NULL);
    context = lws_create_context(&info);
    if (!context)
        return EXIT_FAILURE;
    while (lws_service(context, 0) >= 0)
        ;
    lws_context_destroy(context);
    return EXIT_SUCCESS;
}
