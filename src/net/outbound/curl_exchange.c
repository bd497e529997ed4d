#include "net/outbound/curl_exchange.h"

#include <errno.h>
#include <limits.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <stdlib.h>
#include <string.h>

#include "base/auto.h"
#include "base/number.h"
#include "sys/file/sys_file.h"
#include "sys/network/sys_socket.h"

#define BUFFER_SIZE (256 * 1024L) /* of curl, in each direction */

static const struct {
    CURLoption option;
    long value;
} fixed_options[] = {
    {CURLOPT_NOSIGNAL, 1},
    {CURLOPT_FOLLOWLOCATION, 0}, /* callers do, with more rules; a signature is for one host */
    {CURLOPT_HTTP_VERSION, CURL_HTTP_VERSION_1_1},
    {CURLOPT_HTTP09_ALLOWED, 0},
    {CURLOPT_HTTP_CONTENT_DECODING, 0}, /* limits count what the peer sent: no bombs */
    {CURLOPT_NETRC, CURL_NETRC_IGNORED},
    {CURLOPT_PATH_AS_IS, 1}, /* "a/../b" is a key of an object */
    {CURLOPT_SSL_VERIFYPEER, 1},
    {CURLOPT_SSL_VERIFYHOST, 2},
    {CURLOPT_SSLVERSION, CURL_SSLVERSION_TLSv1_2},
    {CURLOPT_TCP_KEEPALIVE, 1},
    /* Otherwise the end of a transfer waits for the thread that still asks DNS, and the whole loop
     * with it (lib/asyn-thread.c, Curl_resolver_kill). */
    {CURLOPT_QUICK_EXIT, 1},
    {CURLOPT_BUFFERSIZE, BUFFER_SIZE},
    {CURLOPT_UPLOAD_BUFFERSIZE, BUFFER_SIZE},
    {CURLOPT_LOW_SPEED_LIMIT, 1}, /* bytes a second; without effect when idle_ms is 0 */
};

static const struct {
    CURLoption option;
    const char *value;
} fixed_texts[] = {
    {CURLOPT_PROTOCOLS_STR, "http,https"},
    {CURLOPT_PROXY, ""}, /* not NULL: "" also ignores http_proxy and friends */
    {CURLOPT_NOPROXY, "*"},
};

/* What curl's results are called. `detail` adds curl's own words, where those speak of names,
 * addresses, times and certificates only. */
static const struct {
    CURLcode result;
    enum err_code code;
    bool detail;
    const char *text;
} results[] = {
    {CURLE_COULDNT_RESOLVE_HOST, ERR_UNAVAILABLE, false, "the host name cannot be resolved"},
    {CURLE_COULDNT_CONNECT, ERR_UNAVAILABLE, false, "cannot connect"},
    {CURLE_OPERATION_TIMEDOUT, ERR_UPSTREAM_TIMEOUT, true, "too slow"},
    {CURLE_GOT_NOTHING, ERR_UNAVAILABLE, false, "the peer closed without an answer"},
    {CURLE_PARTIAL_FILE, ERR_UNAVAILABLE, false, "the answer ended too early"},
    {CURLE_SEND_ERROR, ERR_UNAVAILABLE, false, "the connection broke while sending"},
    {CURLE_SEND_FAIL_REWIND, ERR_UNAVAILABLE, false, "the connection broke while sending"},
    {CURLE_RECV_ERROR, ERR_UNAVAILABLE, false, "the connection broke while receiving"},
    {CURLE_SSL_CONNECT_ERROR, ERR_UNAVAILABLE, true, "the TLS handshake failed"},
    {CURLE_PEER_FAILED_VERIFICATION, ERR_UPSTREAM, true, "the certificate is not trusted"},
    {CURLE_UNSUPPORTED_PROTOCOL, ERR_UPSTREAM, false, "the answer is not HTTP/1"},
    {CURLE_WEIRD_SERVER_REPLY, ERR_UPSTREAM, false, "the answer is not valid HTTP"},
    {CURLE_BAD_CONTENT_ENCODING, ERR_UPSTREAM, false, "the answer is not valid HTTP"},
    {CURLE_SSL_CACERT_BADFILE, ERR_INVALID, false,
     "the file of trusted certificates cannot be used"},
};

int outbound_global_init(struct error *err)
{
    CURLcode result = curl_global_init(CURL_GLOBAL_DEFAULT);

    if (result != CURLE_OK)
        return error_set(err, ERR_INTERNAL, 0, "start libcurl: %s", curl_easy_strerror(result));
    return 0;
}

void outbound_global_done(void)
{
    curl_global_cleanup();
}

void outbound_answer_done(struct outbound_answer *answer)
{
    pool_done(&answer->pool);
    text_done(&answer->body);
}

const char *outbound_answer_header(const struct outbound_answer *answer, const char *name)
{
    for (size_t i = 0; i < answer->header_count; i++) {
        if (strcmp(answer->headers[i].name, name) == 0)
            return answer->headers[i].value;
    }
    return NULL;
}

int outbound_url_read(const char *text, struct pool *pool, const char **ret_text,
                      struct url *ret_url, struct error *err)
{
    AUTO(text) struct text normal = TEXT_INIT(URL_LENGTH_MAX);

    if (url_parse(text, strlen(text), ret_url, err) < 0)
        return -1;
    if (ret_url->scheme != URL_HTTP && ret_url->scheme != URL_HTTPS)
        return error_set(err, ERR_INVALID, 0, "the URL must be http or https");
    url_write(ret_url, &normal);
    if (normal.overflowed)
        return error_set(err, ERR_INVALID, 0, "the URL has more than %zu bytes", URL_LENGTH_MAX);
    *ret_text = pool_copy_text(pool, text_string(&normal));
    return url_parse(*ret_text, normal.length, ret_url, err);
}

bool outbound_may_retry(const struct outbound_answer *answer, const struct error *err)
{
    return !answer->stopped_by_caller &&
           (err->code == ERR_UNAVAILABLE || err->code == ERR_UPSTREAM_TIMEOUT);
}

int outbound_name_peer(const char *method, const struct url *url, struct error *err)
{
    struct url_host host;

    url_host_of(url, &host);
    return error_wrap(err, host.kind == URL_HOST_IPV6 ? "%s %s://[%s]:%u" : "%s %s://%s:%u", method,
                      url_scheme_text(url->scheme), host.name, (unsigned int) host.port);
}

/* --- the head -------------------------------------------------------------------------------- */

/* The first failure is the one to tell. Always returns 0, which ends the transfer when curl gets
 * it from a callback. */
static size_t peer_failed(struct curl_exchange *exchange, int system, const char *text)
{
    if (exchange->failure.code == ERR_NONE)
        (void) error_set(&exchange->failure, ERR_UPSTREAM, system, "%s", text);
    return 0;
}

/* RFC 9110, 5.6.2. */
static bool is_token(const char *text, size_t length)
{
    for (size_t i = 0; i < length; i++) {
        unsigned char c = (unsigned char) text[i];

        if (c <= ' ' || c >= 0x7f || strchr("\"(),/:;<=>?@[\\]{}", c))
            return false;
    }
    return length > 0;
}

/* A bare CR and its like in a value would split whatever it is copied into. */
static bool has_control_character(const char *text, size_t length)
{
    for (size_t i = 0; i < length; i++) {
        if (((unsigned char) text[i] < ' ' && text[i] != '\t') || text[i] == 0x7f)
            return true;
    }
    return false;
}

static size_t add_header(struct curl_exchange *exchange, const char *line, size_t length)
{
    struct outbound_answer *answer = exchange->answer;
    const char *colon = memchr(line, ':', length);
    size_t name_length = colon ? (size_t) (colon - line) : 0, value_length;
    char *name;

    if (!colon || !is_token(line, name_length) || has_control_character(line, length))
        return peer_failed(exchange, 0, "the answer has a malformed header line");
    if (answer->header_count == OUTBOUND_HEADERS_MAX)
        return peer_failed(exchange, EMSGSIZE, "the answer has too many headers");
    name = pool_copy_bytes(&answer->pool, line, name_length);
    for (char *at = name; *at; at++)
        *at = (char) (*at >= 'A' && *at <= 'Z' ? *at - 'A' + 'a' : *at);
    value_length = length - name_length - 1;
    for (colon++; value_length && (*colon == ' ' || *colon == '\t'); value_length--)
        colon++;
    while (value_length && (colon[value_length - 1] == ' ' || colon[value_length - 1] == '\t'))
        value_length--;
    answer->headers[answer->header_count++] =
        (struct outbound_header){name, pool_copy_bytes(&answer->pool, colon, value_length)};
    return 1;
}

/* Two answers about the length would let the peer choose what we read as its next answer. */
static size_t check_length(struct curl_exchange *exchange)
{
    const struct outbound_answer *answer = exchange->answer;
    const char *first = NULL;
    uint64_t length = 0;

    for (size_t i = 0; i < answer->header_count; i++) {
        const char *text = answer->headers[i].value;

        if (strcmp(answer->headers[i].name, "content-length") != 0)
            continue;
        if (number_parse_digits(text, strlen(text), UINT64_MAX, &length) < 0 ||
            (first && strcmp(first, text) != 0))
            return peer_failed(exchange, 0, "the answer's length is malformed");
        first = text;
    }
    return 1;
}

/* Whether the bytes are what was asked for, and not a page about a failure. */
static bool is_success(const struct curl_exchange *exchange)
{
    return exchange->answer->status == 200 || exchange->answer->status == 206;
}

/* What a callback of the caller returned. */
static bool goes_on(struct curl_exchange *exchange, int result)
{
    if (result < 0)
        exchange->answer->stopped_by_caller = true;
    return result >= 0;
}

static size_t end_head(struct curl_exchange *exchange)
{
    const struct outbound_request *request = exchange->request;
    struct outbound_answer *answer = exchange->answer;
    long status = 0;

    (void) curl_easy_getinfo(exchange->easy, CURLINFO_RESPONSE_CODE, &status);
    exchange->in_head = false;
    if (status == 101)
        return peer_failed(exchange, 0, "the peer switched protocols unasked");
    if (status < 200)
        return 1; /* interim: another head follows */
    exchange->head_done = true;
    if (!check_length(exchange))
        return 0;
    answer->status = (int) status;
    if (!request->on_head || !is_success(exchange))
        return 1;
    return goes_on(exchange, request->on_head(request->context, answer, &exchange->failure));
}

/* For curl: one line of a head or trailer, with its line end. */
static size_t line_received(char *line, size_t size, size_t count, void *context)
{
    struct curl_exchange *exchange = context;
    size_t whole = size * count, length = whole;

    exchange->head_bytes += whole;
    if (exchange->head_bytes > OUTBOUND_HEAD_MAX)
        return peer_failed(exchange, EMSGSIZE, "the answer's head is over the limit");
    while (length && (line[length - 1] == '\n' || line[length - 1] == '\r'))
        length--;
    if (exchange->head_done)
        return whole; /* a trailer */
    if (!exchange->in_head) {
        exchange->answer->header_count = 0;
        exchange->in_head = true;
        return whole; /* the status line, which curl reads */
    }
    if (length == 0)
        return end_head(exchange) ? whole : 0;
    return add_header(exchange, line, length) ? whole : 0;
}

/* --- bodies ---------------------------------------------------------------------------------- */

static size_t bytes_received(char *bytes, size_t size, size_t count, void *context)
{
    struct curl_exchange *exchange = context;
    const struct outbound_request *request = exchange->request;
    size_t length = size * count;
    int result;

    if (request->on_bytes && is_success(exchange)) {
        result = request->on_bytes(request->context, bytes, length, &exchange->failure);
        return goes_on(exchange, result) ? length : CURL_WRITEFUNC_ERROR;
    }
    text_append_bytes(&exchange->answer->body, bytes, length);
    if (!exchange->answer->body.overflowed)
        return length;
    (void) peer_failed(exchange, EMSGSIZE, "the answer is longer than it may be");
    return CURL_WRITEFUNC_ERROR;
}

static size_t body_wanted(char *buffer, size_t size, size_t count, void *context)
{
    struct curl_exchange *exchange = context;
    const struct outbound_body *body = exchange->request->body;
    size_t room = size * count;
    ssize_t got = 0;

    if (room > body->length - exchange->sent)
        room = (size_t) (body->length - exchange->sent);
    if (room && body->bytes)
        memcpy(buffer, (const char *) body->bytes + exchange->sent, room);
    else if (room)
        got = sys_file_pread_full(body->fd, buffer, room, (off_t) (body->offset + exchange->sent));
    if (room && !body->bytes && (got < 0 || (size_t) got < room)) {
        (void) error_set(&exchange->failure, ERR_INTERNAL, got < 0 ? (int) got : 0,
                         got < 0 ? "read what is to be sent" : "what is to be sent became shorter");
        return CURL_READFUNC_ABORT;
    }
    exchange->sent += room;
    return room;
}

/* curl sends again from the start when a connection that it kept turns out to be dead. */
static int body_rewound(void *context, curl_off_t offset, int origin)
{
    struct curl_exchange *exchange = context;

    if (origin != SEEK_SET || offset < 0 || (uint64_t) offset > exchange->request->body->length)
        return CURL_SEEKFUNC_FAIL;
    exchange->sent = (uint64_t) offset;
    return CURL_SEEKFUNC_OK;
}

static int exchange_progress(void *context, curl_off_t download_total, curl_off_t downloaded,
                             curl_off_t upload_total, curl_off_t uploaded)
{
    struct curl_exchange *exchange = context;
    const struct outbound_request *request = exchange->request;

    (void) download_total;
    (void) upload_total;
    return !goes_on(exchange, request->on_progress(request->context, (uint64_t) downloaded,
                                                   (uint64_t) uploaded, &exchange->failure));
}

/* --- connecting ------------------------------------------------------------------------------ */

/* Asked for every address that curl is about to connect to. */
static curl_socket_t socket_opened(void *context, curlsocktype purpose,
                                   struct curl_sockaddr *address)
{
    struct curl_exchange *exchange = context;
    const struct address_rules *rules = exchange->request->rules;
    struct sys_address target = {.length = address->addrlen};
    int fd;

    (void) purpose;
    if (address->addrlen > sizeof(target.local))
        return CURL_SOCKET_BAD;
    memcpy(&target.any, &address->addr, address->addrlen);
    if (rules && address_rules_check(rules, &target.any, target.length, &exchange->refusal) < 0)
        return CURL_SOCKET_BAD;
    exchange->dialled = true;
    fd = sys_socket_create(&target);
    return fd < 0 ? CURL_SOCKET_BAD : fd;
}

static CURLcode tls_prepared(CURL *easy, void *tls, void *context)
{
    const struct curl_exchange *exchange = context;

    (void) easy;
    if (SSL_CTX_load_verify_file(tls, exchange->request->ca_file) == 1)
        return CURLE_OK;
    ERR_clear_error();
    return CURLE_SSL_CACERT_BADFILE;
}

/* --- options --------------------------------------------------------------------------------- */

/* An option that is not set could be one that protects: then rather nothing at all. */
#define SET(option, value) (curl_easy_setopt(exchange->easy, (option), (value)) == CURLE_OK)

static bool set_fixed(const struct curl_exchange *exchange)
{
    bool ok = true;

    for (size_t i = 0; i < ARRAY_COUNT(fixed_options); i++)
        ok &= SET(fixed_options[i].option, fixed_options[i].value);
    for (size_t i = 0; i < ARRAY_COUNT(fixed_texts); i++)
        ok &= SET(fixed_texts[i].option, fixed_texts[i].value);
    return ok;
}

static bool set_callbacks(struct curl_exchange *exchange)
{
    const struct outbound_request *request = exchange->request;
    bool ok = SET(CURLOPT_ERRORBUFFER, exchange->detail) &&
              SET(CURLOPT_HEADERFUNCTION, line_received) && SET(CURLOPT_HEADERDATA, exchange) &&
              SET(CURLOPT_WRITEFUNCTION, bytes_received) && SET(CURLOPT_WRITEDATA, exchange) &&
              SET(CURLOPT_OPENSOCKETFUNCTION, socket_opened) &&
              SET(CURLOPT_OPENSOCKETDATA, exchange);

    if (request->on_progress)
        ok = ok && SET(CURLOPT_NOPROGRESS, 0L) &&
             SET(CURLOPT_XFERINFOFUNCTION, exchange_progress) &&
             SET(CURLOPT_XFERINFODATA, exchange);
    if (request->ca_file)
        ok = ok && SET(CURLOPT_SSL_CTX_FUNCTION, tls_prepared) &&
             SET(CURLOPT_SSL_CTX_DATA, exchange);
    return ok;
}

static bool set_method(struct curl_exchange *exchange)
{
    const struct outbound_request *request = exchange->request;
    const char *method = request->method ? request->method : "GET";

    if (strcmp(method, "HEAD") == 0)
        return SET(CURLOPT_NOBODY, 1L);
    /* "Upload" is how curl sends any body without adding a content type of its own. */
    if (request->body &&
        !(SET(CURLOPT_UPLOAD, 1L) && SET(CURLOPT_READFUNCTION, body_wanted) &&
          SET(CURLOPT_READDATA, exchange) && SET(CURLOPT_SEEKFUNCTION, body_rewound) &&
          SET(CURLOPT_SEEKDATA, exchange) &&
          SET(CURLOPT_INFILESIZE_LARGE, (curl_off_t) request->body->length)))
        return false;
    return SET(CURLOPT_CUSTOMREQUEST, method);
}

/* curl takes times as `long` milliseconds. */
static long as_long(uint64_t number)
{
    return number > INT_MAX ? INT_MAX : (long) number;
}

static bool set_request(struct curl_exchange *exchange)
{
    const struct outbound_request *request = exchange->request;

    return SET(CURLOPT_URL, request->url) && SET(CURLOPT_HTTPHEADER, exchange->headers) &&
           SET(CURLOPT_CONNECTTIMEOUT_MS, as_long(request->connect_ms)) &&
           SET(CURLOPT_TIMEOUT_MS, as_long(request->total_ms)) &&
           SET(CURLOPT_LOW_SPEED_TIME, as_long((request->idle_ms + 999) / 1000)) &&
           set_method(exchange);
}

static void add_line(struct curl_exchange *exchange, const char *line)
{
    struct curl_slist *longer = curl_slist_append(exchange->headers, line);

    if (!longer)
        abort(); /* out of memory */
    exchange->headers = longer;
}

static int add_lines(struct curl_exchange *exchange, struct error *err)
{
    const struct outbound_request *request = exchange->request;
    AUTO(text) struct text line = TEXT_INIT(OUTBOUND_SENT_LINE_MAX);

    /* Without this curl waits a second for a "100 Continue" that many servers never send. */
    add_line(exchange, "Expect:");
    for (size_t i = 0; i < request->header_count; i++) {
        const struct outbound_header *header = &request->headers[i];

        if (has_control_character(header->value, strlen(header->value)))
            return error_set(err, ERR_INVALID, 0, "the header %.64s has a control character",
                             header->name);
        text_clear(&line);
        /* "Name:" would remove the header, "Name;" sends it empty. */
        text_format(&line, *header->value ? "%s: %s" : "%s;%s", header->name, header->value);
        if (line.overflowed)
            return error_set(err, ERR_INVALID, 0, "the header %.64s is too long", header->name);
        add_line(exchange, text_string(&line));
    }
    return 0;
}

/* --- the whole ------------------------------------------------------------------------------- */

static void answer_reset(struct outbound_answer *answer)
{
    pool_reset(&answer->pool);
    text_clear(&answer->body);
    answer->body.overflowed = false;
    answer->headers = pool_alloc(&answer->pool, OUTBOUND_HEADERS_MAX * sizeof(*answer->headers));
    answer->header_count = 0;
    answer->status = 0;
    answer->stopped_by_caller = false;
}

int curl_exchange_begin(struct curl_exchange *exchange, CURL *easy,
                        const struct outbound_request *request, struct outbound_answer *answer,
                        struct error *err)
{
    int result;

    *exchange = (struct curl_exchange){.request = request, .answer = answer, .easy = easy};
    answer_reset(answer);
    result = add_lines(exchange, err);
    if (result == 0 && (!set_fixed(exchange) || !set_callbacks(exchange) || !set_request(exchange)))
        result = error_set(err, ERR_INTERNAL, 0, "libcurl refused an option");
    if (result < 0)
        curl_slist_free_all(TAKE_PTR(exchange->headers));
    return result;
}

/* Parts of curl's words come from the peer: make them safe to print. */
static void clean_detail(char *detail)
{
    for (; *detail; detail++) {
        if (*detail < ' ' || *detail > '~')
            *detail = '?';
    }
}

/* The mark of failures that tell where a name leads, or that it leads nowhere. */
#define TELLS_ADDRESS EADDRNOTAVAIL

void outbound_hide_address(struct error *err)
{
    if (err->system == TELLS_ADDRESS)
        (void) error_set(err, ERR_FORBIDDEN, 0, "the host has no public address");
}

static int result_error(struct curl_exchange *exchange, CURLcode result, struct error *err)
{
    long system = 0;

    clean_detail(exchange->detail);
    for (size_t i = 0; i < ARRAY_COUNT(results); i++) {
        bool detail = results[i].detail && *exchange->detail;

        if (results[i].result != result)
            continue;
        if (result == CURLE_COULDNT_CONNECT)
            (void) curl_easy_getinfo(exchange->easy, CURLINFO_OS_ERRNO, &system);
        else if (result == CURLE_COULDNT_RESOLVE_HOST)
            system = TELLS_ADDRESS;
        return error_set(err, results[i].code, (int) system, "%s%s%.160s", results[i].text,
                         detail ? ": " : "", detail ? exchange->detail : "");
    }
    return error_set(err, ERR_UPSTREAM, 0, "%s", curl_easy_strerror(result));
}

int curl_exchange_end(struct curl_exchange *exchange, CURLcode result, struct error *err)
{
    curl_slist_free_all(TAKE_PTR(exchange->headers));
    if (exchange->failure.code != ERR_NONE) {
        *err = exchange->failure;
        return -1;
    }
    /* curl 7.88 calls an answer whose head was cut off a success. */
    if (result == CURLE_OK && !exchange->head_done)
        result = CURLE_PARTIAL_FILE;
    if (result == CURLE_OK)
        return 0;
    if (exchange->refusal.code != ERR_NONE && !exchange->dialled) {
        *err = exchange->refusal;
        err->system = TELLS_ADDRESS;
        return -1;
    }
    return result_error(exchange, result, err);
}

int curl_exchange(CURL *easy, const struct outbound_request *request,
                  struct outbound_answer *answer, struct error *err)
{
    struct curl_exchange exchange;
    int result = curl_exchange_begin(&exchange, easy, request, answer, err);

    if (result == 0)
        result = curl_exchange_end(&exchange, curl_easy_perform(easy), err);
    curl_easy_reset(easy);
    return result;
}
