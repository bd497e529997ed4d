#include "objects/s3/s3_exchange.h"

#include <openssl/err.h>
#include <openssl/ssl.h>
#include <string.h>

#include "objects/objects_transfer.h"
#include "sys/file/sys_file.h"
#include "sys/network/sys_socket.h"

#define EMPTY_SUM   "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
#define BUFFER_SIZE (256 * 1024L) /* of curl, in each direction */
#define OWN_HEADERS 4             /* host, date, sum, token */

/* One exchange while curl has it. */
struct exchange {
    struct s3_client *client;
    struct objects_work *work;
    const struct s3_request *request;
    struct s3_answer *answer;
    CURL *handle;
    struct curl_slist *headers; /* owned */
    uint64_t sent;              /* of the body */
    size_t head_bytes;
    bool head_done;
    uint64_t window_ns;      /* the stretch in which bytes must move began here */
    curl_off_t window_bytes; /* and this many had moved until then */
    uint64_t upload_ns;      /* the last byte of ours went then */
    curl_off_t uploaded;
    bool is_stalled;
    bool has_refused; /* `reason` is why an address was not dialled */
    bool has_failed;  /* `reason` is what a callback found */
    struct error reason;
    char detail[CURL_ERROR_SIZE];
};

static const struct {
    CURLoption option;
    long value;
} fixed_options[] = {
    {CURLOPT_NOSIGNAL, 1},
    {CURLOPT_FOLLOWLOCATION, 0}, /* a signature is for one host */
    {CURLOPT_HTTP_VERSION, CURL_HTTP_VERSION_1_1},
    {CURLOPT_HTTP09_ALLOWED, 0},
    {CURLOPT_HTTP_CONTENT_DECODING, 0}, /* objects are bytes, whatever their headers say */
    {CURLOPT_NETRC, CURL_NETRC_IGNORED},
    {CURLOPT_PATH_AS_IS, 1}, /* "a/../b" is a key */
    {CURLOPT_SSL_VERIFYPEER, 1},
    {CURLOPT_SSL_VERIFYHOST, 2},
    {CURLOPT_SSLVERSION, CURL_SSLVERSION_TLSv1_2},
    {CURLOPT_TCP_KEEPALIVE, 1},
    {CURLOPT_QUICK_EXIT, 1}, /* a cancelled call does not wait for DNS */
    {CURLOPT_NOPROGRESS, 0},
    {CURLOPT_BUFFERSIZE, BUFFER_SIZE},
    {CURLOPT_UPLOAD_BUFFERSIZE, BUFFER_SIZE},
};

/* How curl's results are told. `detail` adds curl's own words, where those speak of names,
 * addresses and certificates only. */
static const struct {
    CURLcode result;
    enum err_code code;
    bool is_transient;
    bool detail;
    const char *text;
} results[] = {
    {CURLE_COULDNT_RESOLVE_HOST, ERR_UNAVAILABLE, true, false, "its name cannot be resolved"},
    {CURLE_COULDNT_CONNECT, ERR_UNAVAILABLE, true, false, "cannot connect"},
    {CURLE_OPERATION_TIMEDOUT, ERR_UPSTREAM_TIMEOUT, true, false, "no connection in time"},
    {CURLE_GOT_NOTHING, ERR_UNAVAILABLE, true, false, "it closed without an answer"},
    {CURLE_PARTIAL_FILE, ERR_UNAVAILABLE, true, false, "its answer ended too early"},
    {CURLE_SEND_ERROR, ERR_UNAVAILABLE, true, false, "the connection broke while sending"},
    {CURLE_SEND_FAIL_REWIND, ERR_UNAVAILABLE, true, false, "the connection broke while sending"},
    {CURLE_RECV_ERROR, ERR_UNAVAILABLE, true, false, "the connection broke while receiving"},
    {CURLE_SSL_CONNECT_ERROR, ERR_UNAVAILABLE, true, true, "the TLS handshake failed"},
    {CURLE_PEER_FAILED_VERIFICATION, ERR_UPSTREAM, false, true, "its certificate is not trusted"},
    {CURLE_SSL_CACERT_BADFILE, ERR_INVALID, false, false,
     "the file of trusted certificates cannot be used"},
    {CURLE_UNSUPPORTED_PROTOCOL, ERR_UPSTREAM, false, false, "its answer is not HTTP/1"},
    {CURLE_WEIRD_SERVER_REPLY, ERR_UPSTREAM, false, false, "its answer is not valid HTTP"},
};

void s3_answer_done(struct s3_answer *answer)
{
    pool_done(&answer->pool);
    text_done(&answer->body);
}

const char *s3_answer_header(const struct s3_answer *answer, const char *name)
{
    for (size_t i = 0; i < answer->header_count; i++) {
        if (strcmp(answer->headers[i].name, name) == 0)
            return answer->headers[i].value;
    }
    return NULL;
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

/* --- what curl calls ---------------------------------------------------------------------------
 */

static size_t fail(struct exchange *exchange, const char *what)
{
    (void) error_set(&exchange->reason, ERR_UPSTREAM, 0, "%s: %s", exchange->client->text, what);
    exchange->has_failed = true;
    return 0;
}

/* "Name: value" without its end. */
static size_t add_header(struct exchange *exchange, const char *line, size_t length)
{
    struct s3_answer *answer = exchange->answer;
    const char *colon = memchr(line, ':', length);
    size_t name_length = colon ? (size_t) (colon - line) : 0, value_length;
    char *name;

    if (!name_length || memchr(line, '\0', length))
        return fail(exchange, "its answer has a malformed header");
    if (answer->header_count == S3_ANSWER_HEADERS)
        return fail(exchange, "its answer has too many headers");
    name = pool_copy_bytes(&answer->pool, line, name_length);
    for (char *at = name; *at; at++)
        *at = (char) (*at >= 'A' && *at <= 'Z' ? *at - 'A' + 'a' : *at);
    value_length = length - name_length - 1;
    for (colon++; value_length && (*colon == ' ' || *colon == '\t'); value_length--)
        colon++;
    while (value_length && (colon[value_length - 1] == ' ' || colon[value_length - 1] == '\t'))
        value_length--;
    answer->headers[answer->header_count++] =
        (struct sigv4_pair){name, pool_copy_bytes(&answer->pool, colon, value_length)};
    return 1;
}

static bool is_object(const struct exchange *exchange)
{
    return exchange->request->on_bytes &&
           (exchange->answer->status == 200 || exchange->answer->status == 206);
}

static size_t end_head(struct exchange *exchange)
{
    const struct s3_request *request = exchange->request;
    long status = 0;

    (void) curl_easy_getinfo(exchange->handle, CURLINFO_RESPONSE_CODE, &status);
    if (status < 200) {
        exchange->answer->header_count = 0; /* interim: another head follows */
        return 1;
    }
    exchange->head_done = true;
    exchange->answer->status = (int) status;
    if (is_object(exchange) && request->on_head &&
        request->on_head(request->context, exchange->answer, &exchange->reason) < 0) {
        exchange->has_failed = true;
        return 0;
    }
    return 1;
}

static size_t line_received(char *line, size_t size, size_t count, void *context)
{
    struct exchange *exchange = context;
    size_t whole = size * count, length = whole;

    exchange->head_bytes += whole;
    if (exchange->head_bytes > S3_ANSWER_HEAD_MAX)
        return fail(exchange, "its answer's head is too long");
    while (length && (line[length - 1] == '\r' || line[length - 1] == '\n'))
        length--;
    if (exchange->head_done) /* trailers */
        return whole;
    if (length == 0)
        return end_head(exchange) ? whole : 0;
    if (length >= 5 && memcmp(line, "HTTP/", 5) == 0)
        return whole;
    return add_header(exchange, line, length) ? whole : 0;
}

static void mark_alive(struct exchange *exchange)
{
    exchange->window_ns = clock_monotonic_ns(exchange->client->clock);
}

static size_t bytes_received(char *bytes, size_t size, size_t count, void *context)
{
    struct exchange *exchange = context;
    size_t length = size * count;

    if (is_object(exchange)) {
        if (exchange->request->on_bytes(exchange->request->context, bytes, length,
                                        &exchange->reason) < 0) {
            exchange->has_failed = true;
            return 0;
        }
        mark_alive(exchange); /* a slow reader of ours is not the store's fault */
        return length;
    }
    text_append_bytes(&exchange->answer->body, bytes, length);
    if (exchange->answer->body.overflowed)
        return fail(exchange, "its answer does not end");
    return length;
}

static size_t body_wanted(char *buffer, size_t size, size_t count, void *context)
{
    struct exchange *exchange = context;
    const struct s3_body *body = &exchange->request->body;
    size_t room = size * count;

    if (room > body->length - exchange->sent)
        room = (size_t) (body->length - exchange->sent);
    if (room && body->bytes) {
        memcpy(buffer, (const char *) body->bytes + exchange->sent, room);
    } else if (room) {
        ssize_t got =
            sys_file_pread_full(body->fd, buffer, room, (off_t) (body->offset + exchange->sent));

        if (got < 0 || (size_t) got < room) {
            (void) error_set(&exchange->reason, ERR_INTERNAL, got < 0 ? (int) got : 0,
                             got < 0 ? "read what is to be put"
                                     : "what is to be put became shorter");
            exchange->has_failed = true;
            return CURL_READFUNC_ABORT;
        }
    }
    exchange->sent += room;
    return room;
}

/* curl sends again from the start when a reused connection turns out to be dead. */
static int body_rewound(void *context, curl_off_t offset, int origin)
{
    struct exchange *exchange = context;

    if (origin != SEEK_SET || offset < 0 || (uint64_t) offset > exchange->request->body.length)
        return CURL_SEEKFUNC_FAIL;
    exchange->sent = (uint64_t) offset;
    return CURL_SEEKFUNC_OK;
}

/* At least once a second: whether to go on. */
static int looked(void *context, curl_off_t download_total, curl_off_t downloaded,
                  curl_off_t upload_total, curl_off_t uploaded)
{
    struct exchange *exchange = context;
    const struct s3_limits *limits = &exchange->client->limits;
    const struct s3_request *request = exchange->request;
    uint64_t now = clock_monotonic_ns(exchange->client->clock);
    uint64_t stall_ms = request->is_slow ? limits->patience_ms : limits->stall_ms;

    (void) download_total;
    (void) upload_total;
    if (atomic_load(exchange->work->cancelled))
        return 1;
    if (uploaded != exchange->uploaded) {
        exchange->uploaded = uploaded;
        exchange->upload_ns = now;
    }
    if (now - exchange->window_ns >= stall_ms * 1000000) {
        exchange->is_stalled = downloaded + uploaded - exchange->window_bytes < S3_STALL_BYTES;
        exchange->window_ns = now;
        exchange->window_bytes = downloaded + uploaded;
    }
    /* A document that trickles in for ever. */
    if (!request->on_bytes && now - exchange->upload_ns >= limits->patience_ms * 1000000ULL)
        exchange->is_stalled = true;
    return exchange->is_stalled;
}

/* Asked for every address curl is about to connect to: names may lead anywhere. */
static curl_socket_t socket_opened(void *context, curlsocktype purpose,
                                   struct curl_sockaddr *address)
{
    struct exchange *exchange = context;
    struct sys_address target = {.length = address->addrlen};
    int fd;

    (void) purpose;
    if (address->addrlen > sizeof(target.local))
        return CURL_SOCKET_BAD;
    memcpy(&target.any, &address->addr, address->addrlen);
    if (exchange->client->checks_addresses &&
        address_rules_check(&exchange->client->rules, &target.any, target.length,
                            &exchange->reason) < 0) {
        exchange->has_refused = true;
        return CURL_SOCKET_BAD;
    }
    exchange->has_refused = false;
    fd = sys_socket_create(&target);
    return fd < 0 ? CURL_SOCKET_BAD : fd;
}

static CURLcode tls_prepared(CURL *handle, void *tls, void *context)
{
    struct exchange *exchange = context;

    (void) handle;
    if (SSL_CTX_load_verify_file(tls, exchange->client->ca_file) == 1)
        return CURLE_OK;
    ERR_clear_error();
    return CURLE_SSL_CACERT_BADFILE;
}

/* --- options -----------------------------------------------------------------------------------
 */

static bool set_fixed(struct exchange *exchange)
{
    CURL *handle = exchange->handle;
    bool ok = true;

    for (size_t i = 0; i < ARRAY_COUNT(fixed_options); i++)
        ok &= !curl_easy_setopt(handle, fixed_options[i].option, fixed_options[i].value);
    ok &= !curl_easy_setopt(handle, CURLOPT_PROTOCOLS_STR, "http,https");
    ok &= !curl_easy_setopt(handle, CURLOPT_PROXY, ""); /* "" also ignores http_proxy */
    ok &= !curl_easy_setopt(handle, CURLOPT_NOPROXY, "*");
    ok &= !curl_easy_setopt(handle, CURLOPT_CONNECTTIMEOUT_MS,
                            (long) exchange->client->limits.connect_ms);
    ok &= !curl_easy_setopt(handle, CURLOPT_ERRORBUFFER, exchange->detail);
    return ok;
}

static bool set_callbacks(struct exchange *exchange)
{
    CURL *handle = exchange->handle;
    bool ok = true;

    ok &= !curl_easy_setopt(handle, CURLOPT_HEADERFUNCTION, line_received);
    ok &= !curl_easy_setopt(handle, CURLOPT_HEADERDATA, exchange);
    ok &= !curl_easy_setopt(handle, CURLOPT_WRITEFUNCTION, bytes_received);
    ok &= !curl_easy_setopt(handle, CURLOPT_WRITEDATA, exchange);
    ok &= !curl_easy_setopt(handle, CURLOPT_READFUNCTION, body_wanted);
    ok &= !curl_easy_setopt(handle, CURLOPT_READDATA, exchange);
    ok &= !curl_easy_setopt(handle, CURLOPT_SEEKFUNCTION, body_rewound);
    ok &= !curl_easy_setopt(handle, CURLOPT_SEEKDATA, exchange);
    ok &= !curl_easy_setopt(handle, CURLOPT_XFERINFOFUNCTION, looked);
    ok &= !curl_easy_setopt(handle, CURLOPT_XFERINFODATA, exchange);
    ok &= !curl_easy_setopt(handle, CURLOPT_OPENSOCKETFUNCTION, socket_opened);
    ok &= !curl_easy_setopt(handle, CURLOPT_OPENSOCKETDATA, exchange);
    if (exchange->client->ca_file) {
        ok &= !curl_easy_setopt(handle, CURLOPT_SSL_CTX_FUNCTION, tls_prepared);
        ok &= !curl_easy_setopt(handle, CURLOPT_SSL_CTX_DATA, exchange);
    }
    return ok;
}

static bool set_method(struct exchange *exchange)
{
    const struct s3_request *request = exchange->request;
    CURL *handle = exchange->handle;

    if (strcmp(request->method, "HEAD") == 0)
        return !curl_easy_setopt(handle, CURLOPT_NOBODY, 1L);
    /* "Upload" is how curl sends any body without adding a content type of its own. */
    if (request->has_body &&
        (curl_easy_setopt(handle, CURLOPT_UPLOAD, 1L) ||
         curl_easy_setopt(handle, CURLOPT_INFILESIZE_LARGE, (curl_off_t) request->body.length)))
        return false;
    return !curl_easy_setopt(handle, CURLOPT_CUSTOMREQUEST, request->method);
}

static void add_line(struct exchange *exchange, const char *name, const char *value)
{
    AUTO(text) struct text line = TEXT_INIT(S3_URL_MAX);
    struct curl_slist *longer;

    /* "name;" is how curl spells an empty value. */
    text_format(&line, *value ? "%s: %s" : "%s;%s", name, value);
    longer = curl_slist_append(exchange->headers, text_string(&line));
    if (!longer)
        abort(); /* out of memory */
    exchange->headers = longer;
}

/* Sign, and say all of it to curl. */
static bool set_signed(struct exchange *exchange, const char *path)
{
    const struct s3_request *request = exchange->request;
    const struct sigv4_key *key = &exchange->client->key;
    const char *sum = request->body_sum ? request->body_sum : EMPTY_SUM;
    struct sigv4_pair headers[S3_HEADERS_MAX + OWN_HEADERS];
    AUTO(text) struct text authorization = TEXT_INIT(S3_URL_MAX);
    char date[SIGV4_DATE_SIZE];
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
    for (size_t i = 0; i < count; i++)
        add_line(exchange, headers[i].name, headers[i].value);
    add_line(exchange, "authorization", text_string(&authorization));
    exchange->headers = curl_slist_append(exchange->headers, "Expect:"); /* no 100-continue */
    return exchange->headers && !authorization.overflowed &&
           !curl_easy_setopt(exchange->handle, CURLOPT_HTTPHEADER, exchange->headers);
}

static bool set_url(struct exchange *exchange)
{
    AUTO(text) struct text path = TEXT_INIT(S3_URL_MAX), url = TEXT_INIT(S3_URL_MAX);
    const struct s3_request *request = exchange->request;

    s3_client_path(exchange->client, request->key, &path);
    text_format(&url, "%s%s", exchange->client->origin, text_string(&path));
    if (request->query_count) {
        text_append_char(&url, '?');
        sigv4_query(request->query, request->query_count, &url);
    }
    return !path.overflowed && !url.overflowed &&
           !curl_easy_setopt(exchange->handle, CURLOPT_URL, text_string(&url)) &&
           set_signed(exchange, text_string(&path));
}

/* --- the end -----------------------------------------------------------------------------------
 */

/* Parts of curl's words come from the peer. */
static void clean(char *detail)
{
    for (; *detail; detail++) {
        if (*detail < ' ' || *detail > '~')
            *detail = '?';
    }
}

static int result_error(struct exchange *exchange, CURLcode result, struct error *err)
{
    long system = 0;

    for (size_t i = 0; i < ARRAY_COUNT(results); i++) {
        if (results[i].result != result)
            continue;
        if (result == CURLE_COULDNT_CONNECT)
            (void) curl_easy_getinfo(exchange->handle, CURLINFO_OS_ERRNO, &system);
        clean(exchange->detail);
        exchange->answer->is_transient = results[i].is_transient;
        return error_set(err, results[i].code, (int) system, "%s: %s%s%.160s",
                         exchange->client->text, results[i].text, results[i].detail ? ": " : "",
                         results[i].detail ? exchange->detail : "");
    }
    return error_set(err, ERR_UPSTREAM, 0, "%s: %s", exchange->client->text,
                     curl_easy_strerror(result));
}

static int end_exchange(struct exchange *exchange, CURLcode result, struct error *err)
{
    struct s3_answer *answer = exchange->answer;

    answer->is_transient = false;
    if (atomic_load(exchange->work->cancelled))
        return error_set(err, ERR_CANCELLED, 0, "cancelled");
    if (exchange->has_failed || (exchange->has_refused && result != CURLE_OK)) {
        *err = exchange->reason;
        return exchange->has_failed ? -1 : error_wrap(err, "%s", exchange->client->text);
    }
    if (exchange->is_stalled) {
        answer->is_transient = ++answer->stalls < S3_STALLS_MAX;
        return error_set(err, ERR_UPSTREAM_TIMEOUT, 0, "%s: it does not answer, or too slowly",
                         exchange->client->text);
    }
    if (result != CURLE_OK)
        return result_error(exchange, result, err);
    if (answer->status == 0)
        return error_set(err, ERR_UPSTREAM, 0, "%s: it did not answer", exchange->client->text);
    return 0;
}

static void reset_answer(struct s3_answer *answer)
{
    pool_reset(&answer->pool);
    text_clear(&answer->body);
    answer->body.overflowed = false;
    answer->headers = pool_alloc(&answer->pool, S3_ANSWER_HEADERS * sizeof(*answer->headers));
    answer->header_count = 0;
    answer->status = 0;
    answer->is_transient = false;
    answer->failure = (struct s3_failure){"", "", "", "", "", ""};
}

int s3_exchange(struct s3_client *client, struct objects_work *work,
                const struct s3_request *request, struct s3_answer *answer, struct error *err)
{
    struct exchange exchange = {
        .client = client, .work = work, .request = request, .answer = answer};
    int result;

    reset_answer(answer);
    if (objects_work_go_on(work, err) < 0)
        return -1;
    exchange.handle = s3_client_take(client);
    mark_alive(&exchange);
    exchange.upload_ns = exchange.window_ns;
    /* An option that is not set could be one that protects: then rather nothing at all. */
    if (!set_fixed(&exchange) || !set_callbacks(&exchange) || !set_method(&exchange) ||
        !set_url(&exchange))
        result = error_set(err, ERR_INTERNAL, 0, "libcurl refused an option");
    else
        result = end_exchange(&exchange, curl_easy_perform(exchange.handle), err);
    s3_client_give(client, exchange.handle);
    curl_slist_free_all(exchange.headers);
    return result;
}
