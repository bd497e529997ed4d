#include "net/tls.h"

#include <arpa/inet.h>
#include <errno.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <string.h>
#include <sys/socket.h>

#include "base/memory.h"

/* OpenSSL takes int lengths. */
#define TLS_STEP_MAX ((size_t) 1 << 30)

static struct tls *session_accept(struct tls_context *context);
static struct tls *session_connect(struct tls_context *context, const char *host);

static const struct tls_methods session_methods;

/* The newest reason in OpenSSL's queue, which is emptied: an old entry would be misread as the
 * result of the next call. */
static int fail_with_reason(struct error *err, const char *what, const char *file)
{
    unsigned long code = ERR_peek_last_error();
    const char *reason = ERR_reason_error_string(code);

    ERR_clear_error();
    return error_set(err, ERR_INVALID, 0, "%s '%s': %s", what, file ? file : "(system)",
                     reason ? reason : "unknown TLS error");
}

static struct tls_context *context_new(const SSL_METHOD *method, struct error *err)
{
    struct tls_context *context = mem_alloc(sizeof(*context));

    context->accept = session_accept;
    context->connect = session_connect;
    context->ssl = SSL_CTX_new(method);
    if (!context->ssl) {
        fail_with_reason(err, "TLS context", NULL);
        free(context);
        return NULL;
    }
    (void) SSL_CTX_set_min_proto_version(context->ssl, TLS1_2_VERSION);
    (void) SSL_CTX_set_options(context->ssl, SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION);
    (void) SSL_CTX_set_mode(context->ssl, SSL_MODE_ENABLE_PARTIAL_WRITE |
                                              SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER |
                                              SSL_MODE_RELEASE_BUFFERS);
    return context;
}

struct tls_context *tls_context_server(const char *certificate_file, const char *key_file,
                                       struct error *err)
{
    AUTO(tls_context) struct tls_context *context = context_new(TLS_server_method(), err);

    if (!context)
        return NULL;
    if (SSL_CTX_use_certificate_chain_file(context->ssl, certificate_file) != 1) {
        fail_with_reason(err, "TLS certificate", certificate_file);
        return NULL;
    }
    if (SSL_CTX_use_PrivateKey_file(context->ssl, key_file, SSL_FILETYPE_PEM) != 1) {
        fail_with_reason(err, "TLS key", key_file);
        return NULL;
    }
    if (SSL_CTX_check_private_key(context->ssl) != 1) {
        fail_with_reason(err, "TLS key does not belong to the certificate", key_file);
        return NULL;
    }
    return TAKE_PTR(context);
}

/* HTTP/1.1 when the client offers it; a client that offers only others is refused. */
static int choose_protocol(SSL *ssl, const unsigned char **chosen, unsigned char *length,
                           const unsigned char *offered, unsigned int size, void *data)
{
    static const unsigned char ours[] = "\x08http/1.1";

    (void) ssl;
    (void) data;
    return SSL_select_next_proto((unsigned char **) (uintptr_t) chosen, length, ours,
                                 sizeof(ours) - 1, offered, size) == OPENSSL_NPN_NEGOTIATED
               ? SSL_TLSEXT_ERR_OK
               : SSL_TLSEXT_ERR_ALERT_FATAL;
}

struct tls_context *tls_context_server_of(struct x509_st *certificate, struct evp_pkey_st *key,
                                          struct error *err)
{
    AUTO(tls_context) struct tls_context *context = context_new(TLS_server_method(), err);

    if (!context)
        return NULL;
    if (SSL_CTX_use_certificate(context->ssl, certificate) != 1 ||
        SSL_CTX_use_PrivateKey(context->ssl, key) != 1) {
        fail_with_reason(err, "TLS certificate", NULL);
        return NULL;
    }
    SSL_CTX_set_alpn_select_cb(context->ssl, choose_protocol, NULL);
    return TAKE_PTR(context);
}

struct tls_context *tls_context_client(const char *authority_file, struct error *err)
{
    AUTO(tls_context) struct tls_context *context = context_new(TLS_client_method(), err);
    int r;

    if (!context)
        return NULL;
    SSL_CTX_set_verify(context->ssl, SSL_VERIFY_PEER, NULL);
    if (authority_file)
        r = SSL_CTX_load_verify_locations(context->ssl, authority_file, NULL);
    else
        r = SSL_CTX_set_default_verify_paths(context->ssl);
    if (r != 1) {
        fail_with_reason(err, "TLS authorities", authority_file);
        return NULL;
    }
    return TAKE_PTR(context);
}

void tls_context_free(struct tls_context *context)
{
    if (!context)
        return;
    SSL_CTX_free(context->ssl);
    free(context);
}

static struct tls *session_new(struct tls_context *context)
{
    struct tls *tls = mem_alloc(sizeof(*tls));

    tls->methods = &session_methods;
    tls->ssl = SSL_new(context->ssl);
    if (!tls->ssl) {
        free(tls);
        return NULL;
    }
    return tls;
}

static void session_free(struct tls *tls)
{
    SSL_free(tls->ssl);
    free(tls->early);
    free(tls);
}

static struct tls *session_accept(struct tls_context *context)
{
    struct tls *tls = session_new(context);

    if (tls)
        SSL_set_accept_state(tls->ssl);
    return tls;
}

/* An address is proved by another kind of name, and is never an SNI (RFC 6066 3). */
static bool expect_peer(SSL *ssl, const char *host)
{
    unsigned char address[16];

    if (inet_pton(AF_INET, host, address) == 1 || inet_pton(AF_INET6, host, address) == 1)
        return X509_VERIFY_PARAM_set1_ip_asc(SSL_get0_param(ssl), host) == 1;
    return SSL_set1_host(ssl, host) == 1 && SSL_set_tlsext_host_name(ssl, host) == 1;
}

static struct tls *session_connect(struct tls_context *context, const char *host)
{
    struct tls *tls = session_new(context);

    if (!tls)
        return NULL;
    SSL_set_connect_state(tls->ssl);
    if (!expect_peer(tls->ssl, host)) {
        session_free(tls);
        return NULL;
    }
    return tls;
}

/* --- bytes that were read before --------------------------------------------------------------
 *
 * Reading goes through a BIO that gives those first and then asks the socket. It takes no more from
 * the socket than it is asked for: what it held back, poll would not see. */

static int early_read(BIO *bio, char *buffer, size_t size, size_t *ret_read)
{
    struct tls *tls = BIO_get_data(bio);
    size_t left = tls->early_length - tls->early_used;
    ssize_t got;

    BIO_clear_retry_flags(bio);
    if (left) {
        *ret_read = size < left ? size : left;
        memcpy(buffer, tls->early + tls->early_used, *ret_read);
        tls->early_used += *ret_read;
        return 1;
    }
    do
        got = recv(tls->fd, buffer, size, MSG_DONTWAIT);
    while (got < 0 && errno == EINTR);
    *ret_read = got > 0 ? (size_t) got : 0;
    if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK))
        BIO_set_retry_read(bio);
    return got > 0;
}

static long early_control(BIO *bio, int command, long number, void *pointer)
{
    (void) bio;
    (void) number;
    (void) pointer;
    return command == BIO_CTRL_FLUSH;
}

static BIO_METHOD *early_method(void)
{
    BIO_METHOD *method = BIO_meth_new(BIO_get_new_index() | BIO_TYPE_SOURCE_SINK, "early bytes");

    if (method) {
        (void) BIO_meth_set_read_ex(method, early_read);
        (void) BIO_meth_set_ctrl(method, early_control);
    }
    return method;
}

void tls_preload(struct tls *tls, const void *bytes, size_t length)
{
    tls->early = mem_copy_bytes(bytes, length);
    tls->early_length = length;
}

static int session_attach_early(struct tls *tls, int fd)
{
    static BIO_METHOD *method; /* made once, for the life of the process, by the loop's thread */
    BIO *in, *out;

    if (!method)
        method = early_method();
    in = method ? BIO_new(method) : NULL;
    out = BIO_new_socket(fd, BIO_NOCLOSE);
    if (!in || !out) {
        BIO_free(in);
        BIO_free(out);
        return -ENOMEM;
    }
    BIO_set_data(in, tls);
    BIO_set_init(in, 1);
    tls->fd = fd;
    SSL_set_bio(tls->ssl, in, out);
    return 0;
}

static int session_attach(struct tls *tls, int fd)
{
    if (tls->early)
        return session_attach_early(tls, fd);
    return SSL_set_fd(tls->ssl, fd) == 1 ? 0 : -ENOMEM;
}

/* What a failed OpenSSL call means for us. */
static int step_error(SSL *ssl, int result, bool *ret_wants_write)
{
    int reason = SSL_get_error(ssl, result);
    int system = errno;

    ERR_clear_error();
    switch (reason) {
    case SSL_ERROR_WANT_READ:
        return -EAGAIN;
    case SSL_ERROR_WANT_WRITE:
        *ret_wants_write = true;
        return -EAGAIN;
    case SSL_ERROR_ZERO_RETURN:
        return 0;
    case SSL_ERROR_SYSCALL:
        return system ? -system : -ECONNRESET;
    default:
        return -EPROTO;
    }
}

static int step_length(size_t length)
{
    return (int) (length < TLS_STEP_MAX ? length : TLS_STEP_MAX);
}

static int session_handshake(struct tls *tls, bool *ret_wants_write)
{
    int r;

    *ret_wants_write = false;
    errno = 0;
    r = SSL_do_handshake(tls->ssl);
    if (r == 1)
        return 0;
    r = step_error(tls->ssl, r, ret_wants_write);
    return r ? r : -ECONNRESET;
}

static ssize_t session_read(struct tls *tls, void *buffer, size_t size, bool *ret_wants_write)
{
    int got;

    *ret_wants_write = false;
    errno = 0;
    got = SSL_read(tls->ssl, buffer, step_length(size));
    return got > 0 ? got : step_error(tls->ssl, got, ret_wants_write);
}

static ssize_t session_write(struct tls *tls, const void *bytes, size_t length)
{
    bool wants_write = false;
    int sent;

    errno = 0;
    sent = SSL_write(tls->ssl, bytes, step_length(length));
    if (sent > 0)
        return sent;
    sent = step_error(tls->ssl, sent, &wants_write);
    /* No renegotiation, so a write never waits for the peer; treat an end as a broken pipe. */
    return sent ? sent : -EPIPE;
}

static bool session_pending(const struct tls *tls)
{
    return SSL_pending(tls->ssl) > 0;
}

static int session_shut(struct tls *tls)
{
    int r = SSL_shutdown(tls->ssl);
    bool blocked = r < 0 && SSL_get_error(tls->ssl, r) == SSL_ERROR_WANT_WRITE;

    ERR_clear_error();
    return blocked ? -EAGAIN : 0;
}

static const struct tls_methods session_methods = {
    .attach = session_attach,
    .handshake = session_handshake,
    .read = session_read,
    .write = session_write,
    .pending = session_pending,
    .shut = session_shut,
    .free = session_free,
};
