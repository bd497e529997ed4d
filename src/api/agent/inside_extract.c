/* inside.extract: a tar stream from a pipe to a sandbox's agent, as it comes.
 *
 *     pipe ──read──► PUT /burrow/archive?replace=1 ──► the agent swaps the folder at its end
 *
 * A pipe that ends early gives the agent half an archive, which it refuses; so whoever writes it
 * need not tell us of a failure. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "api/agent/inquiry.h"
#include "base/auto.h"
#include "base/memory.h"
#include "json/json_read.h"
#include "net/url.h"

#define TARGET_MAX ((size_t) 16 * 1024)
/* Nothing moved in either direction for that long. Deleting what was there before takes time. */
#define STALL_MS ((uint64_t) 300 * 1000)
/* Read in one turn of the loop. */
#define PIECES_PER_TURN 4

struct extract_upload {
    struct inquiry *inquiry; /* until it is answered, when the poll is closed */
    struct agents *agents;
    int tar; /* owned */
    uv_poll_t poll;
};

static void upload_gone(uv_handle_t *handle)
{
    struct extract_upload *upload = CONTAINER_OF((uv_poll_t *) handle, struct extract_upload, poll);
    struct agents *agents = upload->agents;

    (void) fd_close(upload->tar);
    free(upload);
    agents_part_closed(agents);
}

/* --- the pipe -------------------------------------------------------------------------------- */

static void read_tar(uv_poll_t *poll, int status, int events)
{
    struct extract_upload *upload = CONTAINER_OF(poll, struct extract_upload, poll);
    struct http_exchange *exchange = upload->inquiry->exchange;
    char *scratch = upload->agents->loop->scratch;

    (void) status, (void) events; /* reading says more */
    for (int i = 0; i < PIECES_PER_TURN; i++) {
        ssize_t got;

        if (http_exchange_is_full(exchange)) {
            (void) uv_poll_stop(poll); /* until it drains */
            return;
        }
        got = read(upload->tar, scratch, LOOP_SCRATCH_SIZE);
        if (got < 0 && (errno == EAGAIN || errno == EINTR))
            return;
        if (got <= 0) {
            (void) uv_poll_stop(poll);
            http_exchange_end(exchange);
            return;
        }
        deadline_set(&upload->inquiry->deadline, STALL_MS);
        http_exchange_write(exchange, scratch, (size_t) got);
    }
}

static void upload_drained(struct http_exchange *exchange)
{
    struct inquiry *inquiry = http_exchange_data(exchange);
    struct extract_upload *upload = inquiry->upload;

    deadline_set(&inquiry->deadline, STALL_MS);
    (void) uv_poll_start(&upload->poll, UV_READABLE, read_tar);
}

/* It has made up its mind. */
static void upload_got_head(struct http_exchange *exchange)
{
    struct inquiry *inquiry = http_exchange_data(exchange);
    struct extract_upload *upload = inquiry->upload;

    (void) uv_poll_stop(&upload->poll);
}

/* --- the answer ------------------------------------------------------------------------------ */

/* What is the client's to mend; all else is the agent's failure. */
static enum err_code code_of(const char *word)
{
    static const struct {
        const char *word;
        enum err_code code;
    } codes[] =
        {
            {"NO_SPACE", ERR_NO_SPACE},      {"NOT_DIRECTORY", ERR_INVALID},
            {"READ_ONLY", ERR_INVALID},      {"NAME_TOO_LONG", ERR_INVALID},
            {"RESOURCE_BUSY", ERR_CONFLICT}, /* something is mounted in the folder */
        };

    for (size_t i = 0; word && i < ARRAY_COUNT(codes); i++)
        if (strcmp(word, codes[i].word) == 0)
            return codes[i].code;
    return ERR_UPSTREAM;
}

/* {"code": "NO_SPACE", "message": "..."}, of a peer that is not trusted. */
static void read_refusal(struct inquiry *inquiry)
{
    AUTO(json)
    json_t *body = json_read(text_string(&inquiry->reply), inquiry->reply.length, NULL, NULL);
    const char *code = json_string_value(json_object_get(body, "code"));
    const char *message = json_string_value(json_object_get(body, "message"));

    (void) error_set(&inquiry->failure, code_of(code), 0, "the sandbox's agent answered %d: %.200s",
                     inquiry->status, message ? message : "no reason");
}

static void answer_extract(struct inquiry *inquiry, const struct error *failure)
{
    struct extract_upload *upload = inquiry->upload;

    if (failure && inquiry->status)
        read_refusal(inquiry);
    else if (failure && failure->code == ERR_CANCELLED) /* its origin is gone */
        (void) error_set(&inquiry->failure, ERR_CONFLICT, 0,
                         "the sandbox was stopped or destroyed meanwhile");
    else if (failure)
        inquiry->failure = *failure;
    if (upload)
        uv_close((uv_handle_t *) &upload->poll, upload_gone);
    inquiry->done.plain(inquiry->context, failure ? &inquiry->failure : NULL);
}

/* --- the beginning --------------------------------------------------------------------------- */

static void begin_exchange(struct inquiry *inquiry, struct http_origin *origin, const char *folder)
{
    static const struct http_exchange_events events = {
        .on_head = upload_got_head,
        .on_body = inquiry_got_body,
        .on_end = inquiry_got_end,
        .on_drain = upload_drained,
        .on_failure = inquiry_got_failure,
    };
    static const struct http_header headers[] = {
        HTTP_HEADER("Host", "agent"),
        HTTP_HEADER("Content-Type", "application/x-tar"),
    };
    AUTO(text) struct text target = TEXT_INIT(TARGET_MAX);
    struct http_exchange_request request = {.method = "PUT",
                                            .headers = headers,
                                            .header_count = ARRAY_COUNT(headers),
                                            .body_length = HTTP_LENGTH_UNKNOWN,
                                            .send_length = true};
    struct extract_upload *upload = inquiry->upload;

    text_append(&target, "/burrow/archive?replace=1&links=any&path=");
    url_encode(&target, folder, strlen(folder));
    request.target = text_string(&target);
    inquiry->exchange = http_exchange_start(origin, &request, &events, inquiry);
    (void) uv_poll_start(&upload->poll, UV_READABLE, read_tar);
}

/* -errno: it cannot be read. */
static int upload_new(struct inquiry *inquiry, int tar)
{
    AUTO(close) int copy = fcntl(tar, F_DUPFD_CLOEXEC, 0);
    int flags = copy < 0 ? -1 : fcntl(copy, F_GETFL);
    AUTO(free) struct extract_upload *upload = mem_alloc(sizeof(*upload));
    int r;

    if (flags < 0 || fcntl(copy, F_SETFL, flags | O_NONBLOCK) < 0)
        return -errno;
    r = uv_poll_init(&inquiry->agents->loop->uv, &upload->poll, copy);
    if (r < 0)
        return r;
    upload->inquiry = inquiry;
    upload->agents = inquiry->agents;
    upload->tar = TAKE_FD(copy);
    upload->agents->open++;
    inquiry->upload = TAKE_PTR(upload);
    return 0;
}

void inside_extract(void *self, const struct id *sandbox, const char *folder, int tar,
                    inside_done *done, void *context)
{
    struct http_origin *origin;
    struct inquiry *inquiry = inquiry_new(self, sandbox, STALL_MS, &origin);
    int r;

    inquiry->answer = answer_extract;
    inquiry->done.plain = done;
    inquiry->context = context;
    if (!origin)
        return;
    r = upload_new(inquiry, tar);
    if (r == 0) {
        begin_exchange(inquiry, origin, folder);
        return;
    }
    (void) error_set(&inquiry->failure, ERR_INTERNAL, r, "read the archive");
    inquiry_refuse(inquiry);
}
