#include "net/tls.h"

#include <errno.h>
#include <openssl/err.h>
#include <string.h>

#include "base/memory.h"

/* OpenSSL takes int lengths. */
#define TLS_STEP_MAX ((size_t) 1 << 30)

struct tls_context {
    SSL_CTX *ssl; /* owned */
};

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

SSL *tls_accept(struct tls_context *context)
{
    SSL *ssl = SSL_new(context->ssl);

    if (ssl)
        SSL_set_accept_state(ssl);
    return ssl;
}

SSL *tls_connect(struct tls_context *context, const char *host)
{
    SSL *ssl = SSL_new(context->ssl);

    if (!ssl)
        return NULL;
    SSL_set_connect_state(ssl);
    if (SSL_set1_host(ssl, host) != 1 || SSL_set_tlsext_host_name(ssl, host) != 1) {
        SSL_free(ssl);
        return NULL;
    }
    return ssl;
}

void tls_free(SSL *ssl)
{
    SSL_free(ssl);
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

int tls_handshake(SSL *ssl, bool *ret_wants_write)
{
    int r;

    *ret_wants_write = false;
    errno = 0;
    r = SSL_do_handshake(ssl);
    if (r == 1)
        return 0;
    r = step_error(ssl, r, ret_wants_write);
    return r ? r : -ECONNRESET;
}

ssize_t tls_read(SSL *ssl, void *buffer, size_t size, bool *ret_wants_write)
{
    int got;

    *ret_wants_write = false;
    errno = 0;
    got = SSL_read(ssl, buffer, step_length(size));
    return got > 0 ? got : step_error(ssl, got, ret_wants_write);
}

ssize_t tls_write(SSL *ssl, const void *bytes, size_t length)
{
    bool wants_write = false;
    int sent;

    errno = 0;
    sent = SSL_write(ssl, bytes, step_length(length));
    if (sent > 0)
        return sent;
    sent = step_error(ssl, sent, &wants_write);
    /* No renegotiation, so a write never waits for the peer; treat an end as a broken pipe. */
    return sent ? sent : -EPIPE;
}

bool tls_pending(const SSL *ssl)
{
    return SSL_pending(ssl) > 0;
}

int tls_shut(SSL *ssl)
{
    int r = SSL_shutdown(ssl);
    bool blocked = r < 0 && SSL_get_error(ssl, r) == SSL_ERROR_WANT_WRITE;

    ERR_clear_error();
    return blocked ? -EAGAIN : 0;
}
