#include <errno.h>
#include <limits.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <string.h>

#include "base/auto.h"
#include "net/outbound/outbound_internal.h"
#include "sys/network/sys_socket.h"

static const struct {
    CURLoption option;
    long value;
} fixed_options[] = {
    {CURLOPT_NOSIGNAL, 1},
    {CURLOPT_FOLLOWLOCATION, 0}, /* outbound_redirect.c does, with more rules */
    {CURLOPT_HTTP_VERSION, CURL_HTTP_VERSION_1_1},
    {CURLOPT_HTTP09_ALLOWED, 0},
    {CURLOPT_HTTP_CONTENT_DECODING, 0}, /* the body cap counts what the peer sent: no bombs */
    {CURLOPT_NETRC, CURL_NETRC_IGNORED},
    {CURLOPT_PATH_AS_IS, 1},
    {CURLOPT_SSL_VERIFYPEER, 1},
    {CURLOPT_SSL_VERIFYHOST, 2},
    {CURLOPT_SSLVERSION, CURL_SSLVERSION_TLSv1_2},
    {CURLOPT_TCP_KEEPALIVE, 1},
    /* Otherwise ending a transfer joins the thread that still waits for DNS, and the whole loop
     * with it (lib/asyn-thread.c, Curl_resolver_kill). */
    {CURLOPT_QUICK_EXIT, 1},
};

static const struct {
    CURLoption option;
    const char *value;
} fixed_texts[] = {
    {CURLOPT_PROTOCOLS_STR, "http,https"},
    {CURLOPT_PROXY, ""}, /* not NULL: "" also ignores http_proxy and friends */
    {CURLOPT_NOPROXY, "*"},
};

/* How curl's results are told. `detail` adds curl's own words, where those speak of names,
 * addresses and certificates only. */
static const struct {
    CURLcode result;
    enum err_code code;
    bool detail;
    const char *text;
} results[] = {
    {CURLE_COULDNT_RESOLVE_HOST, ERR_UPSTREAM, false, "the host name cannot be resolved"},
    {CURLE_COULDNT_CONNECT, ERR_UPSTREAM, false, "cannot connect"},
    {CURLE_OPERATION_TIMEDOUT, ERR_UPSTREAM_TIMEOUT, false, "no connection in time"},
    {CURLE_PEER_FAILED_VERIFICATION, ERR_UPSTREAM, true, "the certificate is not trusted"},
    {CURLE_SSL_CONNECT_ERROR, ERR_UPSTREAM, true, "the TLS handshake failed"},
    {CURLE_GOT_NOTHING, ERR_UPSTREAM, false, "the peer closed without an answer"},
    {CURLE_PARTIAL_FILE, ERR_UPSTREAM, false, "the response ended too early"},
    {CURLE_SEND_ERROR, ERR_UPSTREAM, false, "the connection broke while sending"},
    {CURLE_SEND_FAIL_REWIND, ERR_UPSTREAM, false,
     "the connection broke and a streamed body cannot be sent again"},
    {CURLE_RECV_ERROR, ERR_UPSTREAM, false, "the connection broke while receiving"},
    {CURLE_UNSUPPORTED_PROTOCOL, ERR_UPSTREAM, false, "the response is not HTTP/1"},
    {CURLE_WEIRD_SERVER_REPLY, ERR_UPSTREAM, false, "the response is not valid HTTP"},
    {CURLE_BAD_CONTENT_ENCODING, ERR_UPSTREAM, false, "the response is not valid HTTP"},
};

static size_t send_streamed(struct outbound_request *request, char *buffer, size_t size)
{
    struct error reason = ERROR_INIT;
    ssize_t given;

    request->send_woken = false;
    given = request->events->on_send(request, request->context, buffer, size);
    if (request->cancelled)
        return CURL_READFUNC_ABORT;
    if (given == OUTBOUND_SEND_LATER) {
        request->held_send = true;
        return CURL_READFUNC_PAUSE;
    }
    if (given < 0 || (size_t) given > size) {
        (void) error_set(&reason, ERR_CANCELLED, 0, "the body could not be completed");
        (void) outbound_fail(request, &reason);
        return CURL_READFUNC_ABORT;
    }
    request->sent += (uint64_t) given;
    /* A wrong length would leave the peer waiting, or speaking of bytes as the next request. */
    if (request->streamed_length >= 0 &&
        (request->sent > (uint64_t) request->streamed_length ||
         (given == 0 && request->sent < (uint64_t) request->streamed_length))) {
        (void) error_set(&reason, ERR_INTERNAL, 0, "the body does not have the announced length");
        (void) outbound_fail(request, &reason);
        return CURL_READFUNC_ABORT;
    }
    return (size_t) given;
}

static size_t body_wanted(char *buffer, size_t size, size_t count, void *context)
{
    struct outbound_request *request = context;
    size_t room = size * count, left;

    if (request->cancelled)
        return CURL_READFUNC_ABORT;
    outbound_alive(request);
    if (request->streamed)
        return send_streamed(request, buffer, room);
    left = request->body_length - (size_t) request->sent;
    if (room > left)
        room = left;
    if (room)
        memcpy(buffer, request->body + request->sent, room);
    request->sent += room;
    return room;
}

/* curl sends again from the start when a reused connection turns out to be dead. */
static int body_rewound(void *context, curl_off_t offset, int origin)
{
    struct outbound_request *request = context;

    if (origin != SEEK_SET || offset < 0 ||
        (request->streamed ? offset != (curl_off_t) request->sent
                           : (uint64_t) offset > request->body_length))
        return CURL_SEEKFUNC_FAIL;
    request->sent = (uint64_t) offset;
    return CURL_SEEKFUNC_OK;
}

/* The dialler: asked for every address curl is about to connect to. */
static curl_socket_t socket_opened(void *context, curlsocktype purpose,
                                   struct curl_sockaddr *address)
{
    struct outbound_request *request = context;
    struct sys_address target = {.length = address->addrlen};
    int fd;

    (void) purpose;
    if (address->addrlen > sizeof(target.local))
        return CURL_SOCKET_BAD;
    memcpy(&target.any, &address->addr, address->addrlen);
    if (address_rules_check(&request->outbound->rules, &target.any, target.length,
                            &request->refusal) < 0)
        return CURL_SOCKET_BAD;
    request->dialled = true;
    fd = sys_socket_create(&target);
    return fd < 0 ? CURL_SOCKET_BAD : fd;
}

static CURLcode tls_prepared(CURL *easy, void *tls, void *context)
{
    struct outbound_request *request = context;

    (void) easy;
    if (SSL_CTX_load_verify_file(tls, request->outbound->ca_file) == 1)
        return CURLE_OK;
    ERR_clear_error();
    return CURLE_SSL_CACERT_BADFILE;
}

static CURL *take_easy(struct outbound *outbound)
{
    CURL *easy =
        outbound->spare_count ? outbound->spare[--outbound->spare_count] : curl_easy_init();

    if (!easy)
        abort(); /* out of memory */
    return easy;
}

static bool set_fixed(CURL *easy)
{
    bool ok = true;

    for (size_t i = 0; i < ARRAY_COUNT(fixed_options); i++)
        ok &= !curl_easy_setopt(easy, fixed_options[i].option, fixed_options[i].value);
    for (size_t i = 0; i < ARRAY_COUNT(fixed_texts); i++)
        ok &= !curl_easy_setopt(easy, fixed_texts[i].option, fixed_texts[i].value);
    return ok;
}

static bool set_callbacks(struct outbound_request *request)
{
    CURL *easy = request->easy;
    bool ok = true;

    ok &= !curl_easy_setopt(easy, CURLOPT_PRIVATE, request);
    ok &= !curl_easy_setopt(easy, CURLOPT_ERRORBUFFER, request->curl_error);
    ok &= !curl_easy_setopt(easy, CURLOPT_HEADERFUNCTION, outbound_line_received);
    ok &= !curl_easy_setopt(easy, CURLOPT_HEADERDATA, request);
    ok &= !curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, outbound_body_received);
    ok &= !curl_easy_setopt(easy, CURLOPT_WRITEDATA, request);
    ok &= !curl_easy_setopt(easy, CURLOPT_READFUNCTION, body_wanted);
    ok &= !curl_easy_setopt(easy, CURLOPT_READDATA, request);
    ok &= !curl_easy_setopt(easy, CURLOPT_SEEKFUNCTION, body_rewound);
    ok &= !curl_easy_setopt(easy, CURLOPT_SEEKDATA, request);
    ok &= !curl_easy_setopt(easy, CURLOPT_OPENSOCKETFUNCTION, socket_opened);
    ok &= !curl_easy_setopt(easy, CURLOPT_OPENSOCKETDATA, request);
    if (request->outbound->ca_file) {
        ok &= !curl_easy_setopt(easy, CURLOPT_SSL_CTX_FUNCTION, tls_prepared);
        ok &= !curl_easy_setopt(easy, CURLOPT_SSL_CTX_DATA, request);
    }
    return ok;
}

static bool set_method(struct outbound_request *request)
{
    CURL *easy = request->easy;
    curl_off_t length = request->streamed ? (curl_off_t) request->streamed_length
                                          : (curl_off_t) request->body_length;

    if (strcmp(request->method, "HEAD") == 0)
        return !curl_easy_setopt(easy, CURLOPT_NOBODY, 1L);
    /* "Upload" is how curl sends any body without adding a content type of its own. */
    if (request->has_body && (curl_easy_setopt(easy, CURLOPT_UPLOAD, 1L) ||
                              curl_easy_setopt(easy, CURLOPT_INFILESIZE_LARGE, length)))
        return false;
    return !curl_easy_setopt(easy, CURLOPT_CUSTOMREQUEST, request->method);
}

static bool set_request(struct outbound_request *request)
{
    uint64_t connect_ms = request->limits.connect_ms;
    CURL *easy = request->easy;
    bool ok = true;

    if (connect_ms > INT_MAX)
        connect_ms = INT_MAX;
    ok &= !curl_easy_setopt(easy, CURLOPT_URL, request->url_text);
    ok &= !curl_easy_setopt(easy, CURLOPT_CONNECTTIMEOUT_MS, (long) connect_ms);
    ok &= !curl_easy_setopt(easy, CURLOPT_HTTPHEADER, request->header_list);
    if (request->unix_socket)
        ok &= !curl_easy_setopt(easy, CURLOPT_UNIX_SOCKET_PATH, request->unix_socket);
    return ok && set_method(request);
}

static void reset_hop(struct outbound_request *request)
{
    struct pool pool = request->received.pool;

    pool_reset(&pool);
    request->received = (struct outbound_received){.pool = pool};
    request->sent = 0;
    request->dialled = false;
    request->held_receive = request->held_send = false;
    error_clear(&request->refusal);
    request->curl_error[0] = '\0';
}

int outbound_transfer_begin(struct outbound_request *request, struct error *err)
{
    reset_hop(request);
    request->easy = take_easy(request->outbound);
    request->header_list = outbound_request_header_list(request);
    /* An option that is not set could be one that protects: then rather nothing at all. */
    if (!set_fixed(request->easy) || !set_callbacks(request) || !set_request(request) ||
        curl_multi_add_handle(request->outbound->curl.multi, request->easy) != CURLM_OK)
        return error_set(err, ERR_INTERNAL, 0, "libcurl refused an option");
    outbound_alive(request);
    return 0;
}

void outbound_transfer_end(struct outbound_request *request)
{
    struct outbound *outbound = request->outbound;
    CURL *easy = TAKE_PTR(request->easy);

    if (!easy)
        return;
    (void) curl_multi_remove_handle(outbound->curl.multi, easy);
    curl_easy_reset(easy);
    curl_slist_free_all(TAKE_PTR(request->header_list));
    if (outbound->spare_count < OUTBOUND_SPARE_MAX)
        outbound->spare[outbound->spare_count++] = easy;
    else
        curl_easy_cleanup(easy);
}

CURLcode outbound_transfer_hold(struct outbound_request *request)
{
    int what = CURLPAUSE_CONT;

    if (request->paused)
        what |= CURLPAUSE_RECV;
    if (request->held_send && !request->send_woken)
        what |= CURLPAUSE_SEND;
    request->held_receive = what & CURLPAUSE_RECV;
    request->held_send = what & CURLPAUSE_SEND;
    outbound_alive(request);
    return curl_easy_pause(request->easy, what);
}

/* curl's words, made safe to print: parts of them come from the peer. */
static void clean_detail(char *detail)
{
    for (; *detail; detail++) {
        if (*detail < ' ' || *detail > '~')
            *detail = '?';
    }
}

static int result_error(struct outbound_request *request, CURLcode result, struct error *err)
{
    long system = 0;

    for (size_t i = 0; i < ARRAY_COUNT(results); i++) {
        if (results[i].result != result)
            continue;
        if (result == CURLE_COULDNT_CONNECT)
            (void) curl_easy_getinfo(request->easy, CURLINFO_OS_ERRNO, &system);
        if (!results[i].detail || !request->curl_error[0])
            return error_set(err, results[i].code, (int) system, "%s", results[i].text);
        clean_detail(request->curl_error);
        return error_set(err, results[i].code, 0, "%s: %.200s", results[i].text,
                         request->curl_error);
    }
    return error_set(err, ERR_UPSTREAM, 0, "%s", curl_easy_strerror(result));
}

int outbound_transfer_error(struct outbound_request *request, CURLcode result, struct error *err)
{
    if (request->failure.code != ERR_NONE) {
        *err = request->failure;
        return -1;
    }
    if (request->refusal.code != ERR_NONE && !request->dialled) {
        *err = request->refusal;
        return -1;
    }
    return result_error(request, result, err);
}
