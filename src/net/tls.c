#include "net/tls.h"

#include <errno.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <string.h>

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
    free(tls);
}

static struct tls *session_accept(struct tls_context *context)
{
    struct tls *tls = session_new(context);

    if (tls)
        SSL_set_accept_state(tls->ssl);
    return tls;
}

static struct tls *session_connect(struct tls_context *context, const char *host)
{
    struct tls *tls = session_new(context);

    if (!tls)
        return NULL;
    SSL_set_connect_state(tls->ssl);
    if (SSL_set1_host(tls->ssl, host) != 1 || SSL_set_tlsext_host_name(tls->ssl, host) != 1) {
        session_free(tls);
        return NULL;
    }
    return tls;
}

static int session_attach(struct tls *tls, int fd)
{
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
