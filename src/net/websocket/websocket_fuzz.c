/* Arbitrary bytes in arbitrary splits to both halves of the receiving side: the pure reader, and a
 * whole connection over a socket. Beyond not crashing: every split tells the same story, limits
 * hold, text is UTF-8, nothing follows the end, and everything is given back.
 *
 * Input: a byte of flags, a byte that seeds the splits, then the bytes from the peer. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/auto.h"
#include "base/encoding/utf8.h"
#include "base/memory.h"
#include "base/text.h"
#include "net/websocket/websocket.h"

#define HOLDS(condition) ((condition) ? (void) 0 : abort())

#define FLAG_CLIENT       0x01
#define FLAG_STREAMING    0x02
#define FLAG_LARGE_LIMITS 0x04

#define INPUT_MAX 4096
#define STORY_MAX ((size_t) 1024 * 1024)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* What was told, one way for both modes: pieces are joined and told when their message ends, since
 * where they were cut, and how many came before a fault, depends on the split. */
struct story {
    struct text told;
    struct text pieces;
    uint64_t message_max;
    bool in_message;
    bool over;
};

struct run {
    struct websocket_options options;
    const char *bytes;
    size_t length;
    uint32_t seed; /* 0: all at once */
};

static size_t next_part(struct run *run, size_t left)
{
    uint32_t part;

    if (!run->seed)
        return left;
    run->seed = run->seed * 1664525 + 1013904223;
    part = 1 + (run->seed >> 16) % (run->seed & 0x100 ? 3 : 150);
    return part < left ? part : left;
}

static void tell(struct story *story, const char *what, const char *bytes, size_t length)
{
    HOLDS(!story->over);
    text_append(&story->told, what);
    text_append_bytes(&story->told, bytes, length);
    text_append_char(&story->told, '\n');
}

static void tell_data(struct story *story, enum websocket_opcode kind, bool first, bool last,
                      const char *bytes, size_t length)
{
    HOLDS(kind == WEBSOCKET_TEXT || kind == WEBSOCKET_BINARY);
    HOLDS(bytes && first == !story->in_message && (length || last));
    story->in_message = !last;
    text_append_bytes(&story->pieces, bytes, length);
    HOLDS(story->pieces.length <= story->message_max);
    if (!last)
        return;
    HOLDS(kind == WEBSOCKET_BINARY ||
          utf8_is_valid(text_string(&story->pieces), story->pieces.length));
    tell(story, kind == WEBSOCKET_TEXT ? "text " : "binary ", text_string(&story->pieces),
         story->pieces.length);
    text_clear(&story->pieces);
}

static void story_done(struct story *story)
{
    text_done(&story->told);
    text_done(&story->pieces);
}

static void compare(const struct text *one, const struct text *other)
{
    HOLDS(one->length == other->length);
    HOLDS(memcmp(text_string(one), text_string(other), one->length) == 0);
}

/* --- the reader ------------------------------------------------------------------------------ */

static void tell_event(struct story *story, const struct websocket_event *event)
{
    char code[16];

    switch (event->type) {
    case WEBSOCKET_EVENT_DATA:
        tell_data(story, event->kind, event->first, event->last, event->bytes, event->length);
        break;
    case WEBSOCKET_EVENT_PING:
        tell(story, "ping ", event->bytes, event->length);
        break;
    case WEBSOCKET_EVENT_PONG:
        tell(story, "pong ", event->bytes, event->length);
        break;
    case WEBSOCKET_EVENT_CLOSE:
    case WEBSOCKET_EVENT_FAULT:
        HOLDS(event->length <= WEBSOCKET_REASON_MAX);
        HOLDS(event->code == WEBSOCKET_CODE_NONE || websocket_code_is_valid(event->code));
        (void) snprintf(code, sizeof(code), "%d %d ", event->type, event->code);
        tell(story, code, event->bytes, event->length);
        story->over = true;
        break;
    }
}

static void read_all(struct run run, struct story *story)
{
    char scratch[WEBSOCKET_SCRATCH_SIZE];
    struct websocket_reader reader;
    struct websocket_event event;

    websocket_reader_init(&reader, run.options.role, run.options.streaming, run.options.message_max,
                          run.options.frames_max);
    while (run.length) {
        size_t part = next_part(&run, run.length), left = part;
        AUTO(free) char *copy = mem_copy_bytes(run.bytes, part);
        const char *at = copy;

        while (websocket_reader_next(&reader, &at, &left, scratch, &event))
            tell_event(story, &event);
        HOLDS(left == 0 && at == copy + part);
        HOLDS(reader.capacity <= run.options.message_max);
        run.bytes += part;
        run.length -= part;
    }
    websocket_reader_done(&reader);
}

/* --- the connection -------------------------------------------------------------------------- */

struct side {
    struct websocket ws;
    struct story *story;
    struct run *run;
    bool released;
};

static struct side *side_of(struct websocket *ws)
{
    return CONTAINER_OF(ws, struct side, ws);
}

static void on_message(struct websocket *ws, enum websocket_opcode kind, const char *bytes,
                       size_t length)
{
    struct side *side = side_of(ws);

    tell_data(side->story, kind, true, true, bytes, length);
    if (side->run->seed & 0x10000)
        websocket_pause(ws); /* resumed between the pieces of input */
}

static void on_piece(struct websocket *ws, const struct websocket_piece *piece)
{
    struct side *side = side_of(ws);

    tell_data(side->story, piece->kind, piece->first, piece->last, piece->bytes, piece->length);
    if (side->run->seed & 0x10000)
        websocket_pause(ws);
}

static void on_pong(struct websocket *ws, const char *bytes, size_t length)
{
    tell(side_of(ws)->story, "pong ", bytes, length);
}

static void on_close(struct websocket *ws, unsigned int code, const char *reason, bool clean)
{
    struct story *story = side_of(ws)->story;
    char text[32];

    (void) snprintf(text, sizeof(text), "close %u %d ", code, clean);
    tell(story, text, reason, strlen(reason));
    story->over = true;
}

static void on_released(struct websocket *ws)
{
    HOLDS(!side_of(ws)->released);
    side_of(ws)->released = true;
}

static const struct websocket_events events = {
    .on_message = on_message,
    .on_piece = on_piece,
    .on_pong = on_pong,
    .on_close = on_close,
    .on_released = on_released,
};

static void turn(struct loop *loop, struct side *side)
{
    for (int i = 0; i < 3; i++) {
        if (!side->released)
            websocket_resume(&side->ws);
        (void) uv_run(&loop->uv, UV_RUN_NOWAIT);
    }
}

/* What the connection sent. */
static void take_output(int fd, struct text *output)
{
    char buffer[4096];
    ssize_t got;

    while ((got = recv(fd, buffer, sizeof(buffer), MSG_DONTWAIT)) > 0)
        text_append_bytes(output, buffer, (size_t) got);
}

/* A paused connection leaves bytes in its socket. */
static bool has_unread(int fd)
{
    int count = 0;

    HOLDS(ioctl(fd, FIONREAD, &count) == 0);
    return count > 0;
}

static void connect_all(struct loop *loop, struct run run, struct story *story, struct text *output)
{
    static const struct stream_events nobody = {0};
    struct stream *stream = mem_alloc(sizeof(*stream));
    struct side side = {.story = story, .run = &run};
    size_t pending = run.seed ? next_part(&run, run.length) : 0;
    int fds[2];

    HOLDS(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, fds) == 0);
    HOLDS(stream_init(stream, loop, fds[0], NULL, false, &nobody) == 0);
    websocket_init(&side.ws, stream, &run.options, &events, run.bytes, pending);
    for (size_t at = pending, part; at < run.length && !side.released; at += part) {
        part = next_part(&run, run.length - at);
        HOLDS(send(fds[1], run.bytes + at, part, MSG_NOSIGNAL) == (ssize_t) part);
        turn(loop, &side);
    }
    /* All must be answered before we end: an end without a close frame drops what is queued. */
    do
        turn(loop, &side);
    while (side.ws.held || stream_queued(side.ws.stream) || has_unread(fds[0]));
    HOLDS(!side.released); /* lingers until we end */
    HOLDS(shutdown(fds[1], SHUT_WR) == 0);
    for (int i = 0; i < INPUT_MAX && !side.released; i++)
        turn(loop, &side);
    HOLDS(side.released && story->over);
    take_output(fds[1], output);
    (void) close(fds[1]);
}

/* --- both ------------------------------------------------------------------------------------ */

static struct story new_story(const struct run *run)
{
    return (struct story){
        .told = TEXT_INIT(STORY_MAX),
        .pieces = TEXT_INIT(STORY_MAX),
        .message_max = run->options.message_max,
    };
}

static void compare_readers(struct run run, uint32_t seed)
{
    struct story whole = new_story(&run), split = new_story(&run);

    read_all(run, &whole);
    run.seed = seed;
    read_all(run, &split);
    compare(&whole.told, &split.told);
    story_done(&whole);
    story_done(&split);
}

static void compare_connections(struct loop *loop, struct run run, uint32_t seed)
{
    struct story whole = new_story(&run), split = new_story(&run);
    struct text first = TEXT_INIT(STORY_MAX), second = TEXT_INIT(STORY_MAX);

    connect_all(loop, run, &whole, &first);
    run.seed = seed;
    connect_all(loop, run, &split, &second);
    compare(&whole.told, &split.told);
    if (run.options.role == WEBSOCKET_SERVER) /* a client masks with random keys */
        compare(&first, &second);
    HOLDS(first.length == second.length);
    text_done(&first);
    text_done(&second);
    story_done(&whole);
    story_done(&split);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct loop *loop; /* one for all inputs: making it would cost more than the test */
    struct run run = {0};

    if (size < 2 || size - 2 > INPUT_MAX)
        return 0;
    if (!loop) {
        loop = mem_alloc(sizeof(*loop));
        HOLDS(loop_init(loop, NULL) == 0);
    }
    run.options.role = data[0] & FLAG_CLIENT ? WEBSOCKET_CLIENT : WEBSOCKET_SERVER;
    run.options.streaming = data[0] & FLAG_STREAMING;
    run.options.message_max = data[0] & FLAG_LARGE_LIMITS ? 100000 : 200;
    run.options.frames_max = data[0] & FLAG_LARGE_LIMITS ? 1000 : 5;
    run.bytes = (const char *) data + 2;
    run.length = size - 2;
    compare_readers(run, data[1] + 1u);
    compare_connections(loop, run, data[1] + 1u);
    return 0;
}
