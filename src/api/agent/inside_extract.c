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

#include "api/agent/agents_internal.h"
#include "base/auto.h"
#include "base/memory.h"
#include "json/json_read.h"
#include "net/url.h"

#define REPLY_MAX  ((size_t) 64 * 1024)
#define TARGET_MAX ((size_t) 16 * 1024)
/* Nothing moved in either direction for that long. Deleting what was there before takes time. */
#define STALL_MS ((uint64_t) 300 * 1000)
/* Read in one turn of the loop. */
#define PIECES_PER_TURN 4

struct extraction {
    struct list link;
    struct agents *agents;
    struct http_exchange *exchange; /* NULL: over, or never begun */
    int tar;                        /* owned */
    uv_poll_t poll;
    struct deadline deadline;
    struct loop_task refuse; /* when it could not even begin */
    struct text reply;
    struct error failure;
    inside_done *done;
    void *context;
    unsigned int handles; /* that are not closed yet */
    bool is_over;
};

/* --- the end --------------------------------------------------------------------------------- */

static void inside_extract_handle_gone(struct extraction *extraction)
{
    struct agents *agents = extraction->agents;

    if (--extraction->handles)
        return;
    (void) fd_close(extraction->tar);
    text_done(&extraction->reply);
    free(extraction);
    agents_part_closed(agents);
}

static void poll_gone(uv_handle_t *handle)
{
    inside_extract_handle_gone(CONTAINER_OF((uv_poll_t *) handle, struct extraction, poll));
}

static void inside_extract_deadline_gone(struct deadline *deadline)
{
    inside_extract_handle_gone(CONTAINER_OF(deadline, struct extraction, deadline));
}

static void inside_extract_finish(struct extraction *extraction, const struct error *failure)
{
    if (extraction->is_over)
        return;
    extraction->is_over = true;
    list_remove(&extraction->link);
    loop_task_cancel(&extraction->refuse);
    if (extraction->exchange)
        http_exchange_cancel(TAKE_PTR(extraction->exchange));
    extraction->done(extraction->context, failure);
    deadline_close(&extraction->deadline, inside_extract_deadline_gone);
    if (extraction->handles == 2)
        uv_close((uv_handle_t *) &extraction->poll, poll_gone);
}

static void inside_extract_refuse(struct loop_task *task)
{
    struct extraction *extraction = CONTAINER_OF(task, struct extraction, refuse);

    inside_extract_finish(extraction, &extraction->failure);
}

static void inside_extract_time_is_up(struct deadline *deadline)
{
    struct extraction *extraction = CONTAINER_OF(deadline, struct extraction, deadline);

    (void) error_set(&extraction->failure, ERR_UPSTREAM_TIMEOUT, 0,
                     "the sandbox's agent takes nothing more");
    inside_extract_finish(extraction, &extraction->failure);
}

/* --- the pipe -------------------------------------------------------------------------------- */

static void read_tar(uv_poll_t *poll, int status, int events)
{
    struct extraction *extraction = CONTAINER_OF(poll, struct extraction, poll);
    char *scratch = extraction->agents->loop->scratch;

    (void) status, (void) events; /* reading says more */
    for (int i = 0; i < PIECES_PER_TURN; i++) {
        ssize_t got;

        if (http_exchange_is_full(extraction->exchange)) {
            (void) uv_poll_stop(poll); /* until it drains */
            return;
        }
        got = read(extraction->tar, scratch, LOOP_SCRATCH_SIZE);
        if (got < 0 && (errno == EAGAIN || errno == EINTR))
            return;
        if (got <= 0) {
            (void) uv_poll_stop(poll);
            http_exchange_end(extraction->exchange);
            return;
        }
        deadline_set(&extraction->deadline, STALL_MS);
        http_exchange_write(extraction->exchange, scratch, (size_t) got);
    }
}

static void drained(struct http_exchange *exchange)
{
    struct extraction *extraction = http_exchange_data(exchange);

    deadline_set(&extraction->deadline, STALL_MS);
    (void) uv_poll_start(&extraction->poll, UV_READABLE, read_tar);
}

/* --- the agent ------------------------------------------------------------------------------- */

static void inside_extract_got_head(struct http_exchange *exchange)
{
    struct extraction *extraction = http_exchange_data(exchange);

    (void) uv_poll_stop(&extraction->poll); /* it has made up its mind */
}

static void inside_extract_got_body(struct http_exchange *exchange, const char *bytes,
                                    size_t length)
{
    struct extraction *extraction = http_exchange_data(exchange);

    text_append_bytes(&extraction->reply, bytes, length); /* the rest is not looked at */
}

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
static void read_refusal(struct extraction *extraction, int status)
{
    AUTO(json)
    json_t *body = json_read(text_string(&extraction->reply), extraction->reply.length, NULL, NULL);
    const char *code = json_string_value(json_object_get(body, "code"));
    const char *message = json_string_value(json_object_get(body, "message"));

    (void) error_set(&extraction->failure, code_of(code), 0,
                     "the sandbox's agent answered %d: %.200s", status,
                     message ? message : "no reason");
}

static void inside_extract_got_end(struct http_exchange *exchange)
{
    struct extraction *extraction = http_exchange_data(exchange);
    int status = http_exchange_head(exchange)->status;

    extraction->exchange = NULL;
    if (status >= 200 && status < 300) {
        inside_extract_finish(extraction, NULL);
        return;
    }
    read_refusal(extraction, status);
    inside_extract_finish(extraction, &extraction->failure);
}

static void got_failure(struct http_exchange *exchange, const struct error *error)
{
    struct extraction *extraction = http_exchange_data(exchange);

    extraction->exchange = NULL;
    extraction->failure = *error;
    if (error->code == ERR_CANCELLED) /* not by whoever asked: its origin is gone */
        (void) error_set(&extraction->failure, ERR_CONFLICT, 0,
                         "the sandbox was stopped or destroyed meanwhile");
    inside_extract_finish(extraction, &extraction->failure);
}

static const struct http_exchange_events events = {
    .on_head = inside_extract_got_head,
    .on_body = inside_extract_got_body,
    .on_end = inside_extract_got_end,
    .on_drain = drained,
    .on_failure = got_failure,
};

/* --- the beginning --------------------------------------------------------------------------- */

#define HEADER(key, text)                                                                          \
    {                                                                                              \
        .name = (key), .value = (text), .name_length = sizeof(key) - 1,                            \
        .value_length = sizeof(text) - 1                                                           \
    }

static void begin_exchange(struct extraction *extraction, struct http_origin *origin,
                           const char *folder)
{
    static const struct http_header headers[] = {
        HEADER("Host", "agent"),
        HEADER("Content-Type", "application/x-tar"),
    };
    AUTO(text) struct text target = TEXT_INIT(TARGET_MAX);
    struct http_exchange_request request = {.method = "PUT",
                                            .headers = headers,
                                            .header_count = ARRAY_COUNT(headers),
                                            .body_length = HTTP_LENGTH_UNKNOWN,
                                            .send_length = true};

    text_append(&target, "/burrow/archive?replace=1&links=any&path=");
    url_encode(&target, folder, strlen(folder));
    request.target = text_string(&target);
    extraction->exchange = http_exchange_start(origin, &request, &events, extraction);
    (void) uv_poll_start(&extraction->poll, UV_READABLE, read_tar);
}

static int open_tar(struct extraction *extraction, int tar)
{
    int flags;

    extraction->tar = fcntl(tar, F_DUPFD_CLOEXEC, 0);
    flags = extraction->tar < 0 ? -1 : fcntl(extraction->tar, F_GETFL);
    if (flags < 0 || fcntl(extraction->tar, F_SETFL, flags | O_NONBLOCK) < 0)
        return -errno;
    return uv_poll_init(&extraction->agents->loop->uv, &extraction->poll, extraction->tar);
}

void inside_extract(void *self, const struct id *sandbox, const char *folder, int tar,
                    inside_done *done, void *context)
{
    struct agents *agents = self;
    struct extraction *extraction = mem_alloc(sizeof(*extraction));
    struct http_origin *origin;
    int r;

    *extraction = (struct extraction){.agents = agents,
                                      .tar = -EBADF,
                                      .reply = TEXT_INIT(REPLY_MAX),
                                      .done = done,
                                      .context = context,
                                      .handles = 1};
    agents->open++;
    list_append(&agents->extractions, &extraction->link);
    loop_task_init(&extraction->refuse, inside_extract_refuse);
    deadline_init(agents->loop, &extraction->deadline, inside_extract_time_is_up);
    deadline_set(&extraction->deadline, STALL_MS);
    origin = agents_origin(agents, sandbox, &extraction->failure);
    r = origin ? open_tar(extraction, tar) : 0;
    if (r < 0)
        (void) error_set(&extraction->failure, ERR_INTERNAL, r, "read the archive");
    else if (origin)
        extraction->handles = 2;
    if (extraction->handles == 2)
        begin_exchange(extraction, origin, folder);
    else
        loop_defer(agents->loop, &extraction->refuse);
}

void inside_extract_close(struct agents *agents)
{
    struct list *link;

    while ((link = list_first(&agents->extractions))) {
        struct extraction *extraction = CONTAINER_OF(link, struct extraction, link);

        (void) error_set(&extraction->failure, ERR_UNAVAILABLE, 0, "the daemon is closing");
        inside_extract_finish(extraction, &extraction->failure);
    }
}
