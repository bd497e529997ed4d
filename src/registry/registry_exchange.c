#include "registry/registry_exchange.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/memory.h"
#include "base/number.h"

#define RANGE_SIZE     64
#define EVERYWHERE     "0.0.0.0/0,::/0"
#define LOOPBACK       "127.0.0.0/8,::1"
#define RETRY_AFTER_S  UINT64_C(86400) /* more is not believed */
#define USER_AGENT     "burrow/" BURROW_VERSION
#define HEADERS_MAX    4
#define STATUS_SUCCESS 200
#define STATUS_PART    206
#define STATUS_OUTSIDE 416

struct registry_link {
    struct loop loop;
    struct outbound *named;     /* owned: to the host that the operator named */
    struct outbound *strangers; /* owned: to where that one sends us */
};

struct exchange {
    struct registry_link *link;
    const struct registry_request *request;
    struct registry_answer *answer;
    struct outbound_request *outbound; /* NULL: it is over */
    bool into_sink;
    bool has_failed;
    struct error failure;
};

/* --- the link -------------------------------------------------------------------------------- */

static int open_outbound(struct registry_link *link, const struct registry_link_settings *settings,
                         const char *const *allowed, size_t count, struct outbound **ret_outbound,
                         struct error *err)
{
    struct outbound_settings outbound = {.ca_file = settings->ca_file};

    for (size_t i = 0; i < count; i++) {
        if (address_rules_allow_list(&outbound.rules, allowed[i], err) < 0)
            return -1;
    }
    return outbound_new(&link->loop, &outbound, ret_outbound, err);
}

int registry_link_new(const struct registry_link_settings *settings,
                      struct registry_link **ret_link, struct error *err)
{
    const char *const named[] = {EVERYWHERE};
    const char *const strangers[] = {settings->allow ? settings->allow : "",
                                     settings->allow_loopback ? LOOPBACK : ""};
    struct registry_link *link = mem_alloc(sizeof(*link));
    int r = loop_init(&link->loop, NULL);

    if (r < 0) {
        free(link);
        return error_set(err, ERR_INTERNAL, r, "start a loop");
    }
    if (open_outbound(link, settings, named, ARRAY_COUNT(named), &link->named, err) < 0 ||
        open_outbound(link, settings, strangers, ARRAY_COUNT(strangers), &link->strangers, err) <
            0) {
        registry_link_free(link);
        return -1;
    }
    *ret_link = link;
    return 0;
}

void registry_link_free(struct registry_link *link)
{
    if (!link)
        return;
    outbound_close(link->named, NULL, NULL);
    outbound_close(link->strangers, NULL, NULL);
    loop_run(&link->loop); /* until both are gone */
    loop_done(&link->loop);
    free(link);
}

void registry_answer_done(struct registry_answer *answer)
{
    pool_done(&answer->pool);
    text_done(&answer->body);
    *answer = (struct registry_answer) REGISTRY_ANSWER_INIT;
}

/* --- what comes ------------------------------------------------------------------------------ */

/* No event comes any more. */
static void stop(struct exchange *exchange)
{
    exchange->outbound = NULL;
    loop_stop(&exchange->link->loop);
}

static void fail(struct exchange *exchange, bool is_sink)
{
    exchange->has_failed = true;
    exchange->answer->sink_failed = is_sink;
    outbound_cancel(exchange->outbound);
    stop(exchange);
}

static void take_header(struct registry_answer *answer, const struct outbound_header *header)
{
    if (strcmp(header->name, "location") == 0) {
        answer->location = pool_copy_text(&answer->pool, header->value);
    } else if (strcmp(header->name, "retry-after") == 0) {
        /* A date is not understood: then our own pause does. */
        (void) number_parse_digits(header->value, strlen(header->value), RETRY_AFTER_S,
                                   &answer->retry_after_s);
    } else if (strcmp(header->name, "www-authenticate") == 0) {
        registry_challenge_read(header->value, &answer->pool, &answer->challenge);
    }
}

/* "bytes 100-199/200": whether it begins where we asked. */
static bool begins_at(const struct outbound_header *headers, size_t count, uint64_t offset)
{
    char wanted[RANGE_SIZE];

    (void) snprintf(wanted, sizeof(wanted), "bytes %" PRIu64 "-", offset);
    for (size_t i = 0; i < count; i++) {
        if (strcmp(headers[i].name, "content-range") == 0)
            return strncmp(headers[i].value, wanted, strlen(wanted)) == 0;
    }
    return false;
}

static int begin_sink(struct exchange *exchange, const struct outbound_header *headers,
                      size_t count)
{
    const struct registry_sink *sink = exchange->request->sink;
    bool is_part = exchange->answer->status == STATUS_PART;

    if (is_part && !begins_at(headers, count, exchange->request->offset))
        return error_set(&exchange->failure, ERR_UPSTREAM, 0,
                         "the registry answers with another part than was asked for");
    return sink->begin(sink->context, is_part ? exchange->request->offset : 0, &exchange->failure);
}

static void head_came(struct outbound_request *outbound, void *context, int status,
                      const struct outbound_header *headers, size_t count)
{
    struct exchange *exchange = context;

    (void) outbound;
    exchange->answer->status = status;
    exchange->answer->is_past_end = status == STATUS_OUTSIDE;
    for (size_t i = 0; i < count; i++)
        take_header(exchange->answer, &headers[i]);
    exchange->into_sink =
        exchange->request->sink && (status == STATUS_SUCCESS || status == STATUS_PART);
    if (exchange->into_sink && begin_sink(exchange, headers, count) < 0)
        fail(exchange, true);
}

static void body_came(struct outbound_request *outbound, void *context, const char *bytes,
                      size_t length)
{
    struct exchange *exchange = context;
    const struct registry_sink *sink = exchange->request->sink;

    (void) outbound;
    if (exchange->into_sink) {
        if (sink->take(sink->context, bytes, length, &exchange->failure) < 0)
            fail(exchange, true);
        return;
    }
    text_append_bytes(&exchange->answer->body, bytes, length);
    if (exchange->answer->body.overflowed) {
        (void) error_set(&exchange->failure, ERR_TOO_LARGE, 0,
                         "the registry's answer does not end");
        fail(exchange, true);
    }
}

static void is_done(struct outbound_request *outbound, void *context, const struct error *err)
{
    struct exchange *exchange = context;

    (void) outbound;
    exchange->has_failed = err != NULL;
    if (err)
        exchange->failure = *err;
    stop(exchange);
}

static const struct outbound_events events = {
    .on_head = head_came, .on_body = body_came, .on_done = is_done};

/* --- what goes ------------------------------------------------------------------------------- */

int registry_exchange(struct registry_link *link, const struct registry_request *request,
                      struct registry_answer *answer, struct error *err)
{
    struct exchange exchange = {.link = link, .request = request, .answer = answer};
    struct outbound_header headers[HEADERS_MAX] = {{"user-agent", USER_AGENT}};
    char range[RANGE_SIZE];
    struct outbound_call call = {
        .url = request->url,
        .headers = headers,
        .header_count = 1,
        .limits = {.idle_ms = REGISTRY_IDLE_MS,
                   .total_ms = request->sink ? OUTBOUND_NO_LIMIT : REGISTRY_DOCUMENT_MS,
                   .body_max = request->sink ? OUTBOUND_NO_LIMIT : REGISTRY_DOCUMENT_MAX,
                   .redirects = request->is_stranger ? REGISTRY_REDIRECTS_MAX : 0},
        .events = &events,
        .context = &exchange,
    };

    if (request->accept)
        headers[call.header_count++] = (struct outbound_header){"accept", request->accept};
    if (request->authorization)
        headers[call.header_count++] =
            (struct outbound_header){"authorization", request->authorization};
    if (request->offset) {
        (void) snprintf(range, sizeof(range), "bytes=%" PRIu64 "-", request->offset);
        headers[call.header_count++] = (struct outbound_header){"range", range};
    }
    if (outbound_start(request->is_stranger ? link->strangers : link->named, &call,
                       &exchange.outbound, err) < 0)
        return -1;
    while (exchange.outbound)
        loop_run(&link->loop);
    if (exchange.has_failed && err)
        *err = exchange.failure;
    return exchange.has_failed ? -1 : 0;
}
