#include "objects/s3/s3_exchange.h"

#include <string.h>

#include "objects/objects_transfer.h"

#define EMPTY_SUM   "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
#define OWN_HEADERS 5 /* host, date, sum, token, authorization */

/* One exchange while it lasts: whether bytes move. */
struct s3_exchange {
    struct s3_client *client;
    struct objects_work *work;
    const struct s3_request *request;
    uint64_t window_ns;    /* the stretch in which bytes must move began here */
    uint64_t window_bytes; /* and this many had moved until then */
    uint64_t upload_ns;    /* the last byte of ours went then */
    uint64_t uploaded;
    bool is_stalled;
};

void s3_answer_done(struct s3_answer *answer)
{
    outbound_answer_done(&answer->http);
}

/* Both are called with constants of this folder and bounded metadata: they fit. */
void s3_request_query(struct s3_request *request, const char *name, const char *value)
{
    if (request->query_count == S3_QUERY_MAX)
        abort();
    request->query[request->query_count++] = (struct sigv4_pair){name, value};
}

void s3_request_header(struct s3_request *request, const char *name, const char *value)
{
    if (!value)
        return;
    if (request->header_count == S3_HEADERS_MAX)
        abort();
    request->headers[request->header_count++] = (struct sigv4_pair){name, value};
}

/* --- while it lasts -------------------------------------------------------------------------- */

static void mark_alive(struct s3_exchange *exchange)
{
    exchange->window_ns = clock_monotonic_ns(exchange->client->clock);
}

static int exchange_head(void *context, const struct outbound_answer *answer, struct error *err)
{
    const struct s3_request *request = ((struct s3_exchange *) context)->request;

    return request->on_head(request->context, answer, err);
}

static int exchange_bytes(void *context, const void *bytes, size_t length, struct error *err)
{
    struct s3_exchange *exchange = context;
    const struct s3_request *request = exchange->request;

    if (request->on_bytes(request->context, bytes, length, err) < 0)
        return -1;
    mark_alive(exchange); /* a slow reader of ours is not the store's fault */
    return 0;
}

static int exchange_progress(void *context, uint64_t received, uint64_t sent, struct error *err)
{
    struct s3_exchange *exchange = context;
    const struct s3_limits *limits = &exchange->client->limits;
    const struct s3_request *request = exchange->request;
    uint64_t now = clock_monotonic_ns(exchange->client->clock);
    uint64_t stall_ms = request->is_slow ? limits->patience_ms : limits->stall_ms;

    if (objects_work_go_on(exchange->work, err) < 0)
        return -1;
    if (sent != exchange->uploaded) {
        exchange->uploaded = sent;
        exchange->upload_ns = now;
    }
    if (now - exchange->window_ns >= stall_ms * 1000000) {
        exchange->is_stalled = received + sent - exchange->window_bytes < S3_STALL_BYTES;
        exchange->window_ns = now;
        exchange->window_bytes = received + sent;
    }
    /* A document that trickles in for ever. */
    if (!request->on_bytes && now - exchange->upload_ns >= limits->patience_ms * 1000000ULL)
        exchange->is_stalled = true;
    if (!exchange->is_stalled)
        return 0;
    return error_set(err, ERR_UPSTREAM_TIMEOUT, 0, "%s: it does not answer, or too slowly",
                     exchange->client->text);
}

/* --- what goes ------------------------------------------------------------------------------- */

/* What is sent is what is signed. `ret_headers` has room; their texts are in the pool. Returns
 * their number, or 0 when the signature is too long. */
static size_t sign(const struct s3_exchange *exchange, const char *path, struct pool *pool,
                   struct outbound_header *ret_headers)
{
    const struct s3_request *request = exchange->request;
    const struct sigv4_key *key = &exchange->client->key;
    const char *sum = request->body_sum ? request->body_sum : EMPTY_SUM;
    struct sigv4_pair headers[S3_HEADERS_MAX + OWN_HEADERS];
    AUTO(text) struct text authorization = TEXT_INIT(S3_URL_MAX);
    char *date = pool_alloc(pool, SIGV4_DATE_SIZE);
    struct sigv4_request to_sign = {.method = request->method,
                                    .path = path,
                                    .query = request->query,
                                    .query_count = request->query_count,
                                    .headers = headers,
                                    .payload = sum};
    size_t count = 0;

    sigv4_date(clock_wall_ms(exchange->client->clock), date);
    headers[count++] = (struct sigv4_pair){"host", exchange->client->host};
    headers[count++] = (struct sigv4_pair){"x-amz-date", date};
    headers[count++] = (struct sigv4_pair){"x-amz-content-sha256", sum};
    if (key->session_token)
        headers[count++] = (struct sigv4_pair){"x-amz-security-token", key->session_token};
    for (size_t i = 0; i < request->header_count; i++)
        headers[count++] = request->headers[i];
    to_sign.header_count = count;
    sigv4_authorize(key, &to_sign, date, &authorization);
    headers[count++] =
        (struct sigv4_pair){"authorization", pool_copy_text(pool, text_string(&authorization))};
    for (size_t i = 0; i < count; i++)
        ret_headers[i] = (struct outbound_header){headers[i].name, headers[i].value};
    return authorization.overflowed ? 0 : count;
}

static int send_signed(struct s3_exchange *exchange, struct outbound_answer *answer,
                       struct error *err)
{
    AUTO(text) struct text path = TEXT_INIT(S3_URL_MAX), url = TEXT_INIT(S3_URL_MAX);
    AUTO(pool) struct pool pool = POOL_INIT;
    struct outbound_header headers[S3_HEADERS_MAX + OWN_HEADERS];
    const struct s3_request *asked = exchange->request;
    struct s3_client *client = exchange->client;
    struct outbound_request request = {
        .method = asked->method,
        .headers = headers,
        .body = asked->has_body ? &asked->body : NULL,
        .rules = client->checks_addresses ? &client->rules : NULL,
        .ca_file = client->ca_file,
        .connect_ms = client->limits.connect_ms,
        .on_head = asked->on_head ? exchange_head : NULL,
        .on_bytes = asked->on_bytes ? exchange_bytes : NULL,
        .on_progress = exchange_progress,
        .context = exchange,
    };
    CURL *easy;
    int result;

    s3_client_path(client, asked->key, &path);
    text_format(&url, "%s%s", client->origin, text_string(&path));
    if (asked->query_count) {
        text_append_char(&url, '?');
        sigv4_query(asked->query, asked->query_count, &url);
    }
    request.url = text_string(&url);
    request.header_count = sign(exchange, text_string(&path), &pool, headers);
    if (path.overflowed || url.overflowed || !request.header_count)
        return error_set(err, ERR_INTERNAL, 0, "the request is too long");
    easy = s3_client_take(client);
    mark_alive(exchange);
    exchange->upload_ns = exchange->window_ns;
    result = curl_exchange(easy, &request, answer, err);
    s3_client_give(client, easy);
    return result;
}

/* --- the end --------------------------------------------------------------------------------- */

int s3_exchange(struct s3_client *client, struct objects_work *work,
                const struct s3_request *request, struct s3_answer *answer, struct error *err)
{
    struct s3_exchange exchange = {.client = client, .work = work, .request = request};

    answer->is_transient = false;
    answer->http.status = 0;
    answer->failure = (struct s3_failure){"", "", "", "", "", ""};
    if (objects_work_go_on(work, err) < 0)
        return -1;
    if (send_signed(&exchange, &answer->http, err) == 0)
        return 0;
    if (exchange.is_stalled)
        answer->is_transient = ++answer->stalls < S3_STALLS_MAX;
    if (answer->http.stopped_by_caller)
        return -1;
    answer->is_transient = outbound_may_retry(&answer->http, err);
    return error_wrap(err, "%s", client->text);
}
