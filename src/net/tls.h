/* TLS on non-blocking sockets, by OpenSSL: contexts, and the few calls a stream needs.
 *
 * TLS 1.2 and later, no renegotiation, no compression. Buffers are released while a connection is
 * idle. All calls return -errno; what OpenSSL said is in the error text of the context functions.
 *
 * Contexts and sessions carry their functions with them, so a program that never makes a context
 * does not contain OpenSSL: the agent, which is static and small, relies on it. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "base/auto.h"
#include "base/error.h"

struct tls_methods;
struct x509_st;
struct evp_pkey_st;

/* One session: of one accepted socket or outgoing connection. */
struct tls {
    const struct tls_methods *methods;
    struct ssl_st *ssl; /* owned: OpenSSL's */
    char *early;        /* owned: bytes of the peer that were read before; NULL: none */
    size_t early_length, early_used;
    int fd; /* of which they were; used while there are any */
};

/* What sessions are made from. */
struct tls_context {
    struct tls *(*accept)(struct tls_context *context);
    struct tls *(*connect)(struct tls_context *context, const char *host);
    struct ssl_ctx_st *ssl; /* owned: OpenSSL's */
};

struct tls_methods {
    int (*attach)(struct tls *tls, int fd);
    int (*handshake)(struct tls *tls, bool *ret_wants_write);
    ssize_t (*read)(struct tls *tls, void *buffer, size_t size, bool *ret_wants_write);
    ssize_t (*write)(struct tls *tls, const void *bytes, size_t length);
    bool (*pending)(const struct tls *tls);
    int (*shut)(struct tls *tls);
    void (*free)(struct tls *tls);
};

/* For listeners: certificate chain and key in PEM files. NULL with `err` set when they cannot be
 * used. */
struct tls_context *tls_context_server(const char *certificate_file, const char *key_file,
                                       struct error *err);

/* For listeners that speak HTTP/1.1 and nothing else to peers who ask (ALPN): a certificate and its
 * key as OpenSSL has them, both borrowed for the call. */
struct tls_context *tls_context_server_of(struct x509_st *certificate, struct evp_pkey_st *key,
                                          struct error *err);

/* For clients: verifies peers against the system's authorities, or only those of `authority_file`
 * when it is given. */
struct tls_context *tls_context_client(const char *authority_file, struct error *err);

void tls_context_free(struct tls_context *context);

AUTO_DEFINE_PTR(tls_context, struct tls_context, tls_context_free);

/* A session for one accepted socket: give it to stream_init. NULL when OpenSSL has no memory. */
static inline struct tls *tls_accept(struct tls_context *context)
{
    return context->accept(context);
}

/* A session for one outgoing connection that must prove to be `host`, a name or an address. */
static inline struct tls *tls_connect(struct tls_context *context, const char *host)
{
    return context->connect(context, host);
}

static inline void tls_free(struct tls *tls)
{
    tls->methods->free(tls);
}

/* Speak over this socket, which stays the caller's. 0 or -ENOMEM. */
static inline int tls_attach(struct tls *tls, int fd)
{
    return tls->methods->attach(tls, fd);
}

/* The peer sent these bytes already: they are read before the socket is. Once, before attaching. */
void tls_preload(struct tls *tls, const void *bytes, size_t length);

/* 0 when established, -EAGAIN when it needs the socket again (writable if *ret_wants_write, else
 * readable), -EPROTO when it failed. */
static inline int tls_handshake(struct tls *tls, bool *ret_wants_write)
{
    return tls->methods->handshake(tls, ret_wants_write);
}

/* Bytes read; 0 at the peer's orderly end; -EAGAIN as above; -ECONNRESET for an end without
 * close-notify in the middle of a record; -EPROTO. */
static inline ssize_t tls_read(struct tls *tls, void *buffer, size_t size, bool *ret_wants_write)
{
    return tls->methods->read(tls, buffer, size, ret_wants_write);
}

/* Bytes written (may be fewer), -EAGAIN, or another -errno. */
static inline ssize_t tls_write(struct tls *tls, const void *bytes, size_t length)
{
    return tls->methods->write(tls, bytes, length);
}

/* Whether decrypted bytes wait inside OpenSSL, where poll does not see them. */
static inline bool tls_pending(const struct tls *tls)
{
    return tls->methods->pending(tls);
}

/* Say that we send no more. Returns 0, or -EAGAIN when the socket must become writable first. A
 * peer that is gone counts as told. */
static inline int tls_shut(struct tls *tls)
{
    return tls->methods->shut(tls);
}
