/* TLS on non-blocking sockets, by OpenSSL: contexts, and the few calls a stream needs.
 *
 * TLS 1.2 and later, no renegotiation, no compression. Buffers are released while a connection is
 * idle. All calls return -errno; what OpenSSL said is in the error text of the context functions.
 */
#pragma once

#include <openssl/ssl.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "base/auto.h"
#include "base/error.h"

struct tls_context;

/* For listeners: certificate chain and key in PEM files. NULL with `err` set when they cannot be
 * used. */
struct tls_context *tls_context_server(const char *certificate_file, const char *key_file,
                                       struct error *err);

/* For clients: verifies peers against the system's authorities, or only those of `authority_file`
 * when it is given. */
struct tls_context *tls_context_client(const char *authority_file, struct error *err);

void tls_context_free(struct tls_context *context);

AUTO_DEFINE_PTR(tls_context, struct tls_context, tls_context_free);

/* A session for one accepted socket: give it to stream_init. NULL when OpenSSL has no memory. */
SSL *tls_accept(struct tls_context *context);

/* A session for one outgoing connection that must prove to be `host`. */
SSL *tls_connect(struct tls_context *context, const char *host);

void tls_free(SSL *ssl);

/* 0 when established, -EAGAIN when it needs the socket again (writable if *ret_wants_write, else
 * readable), -EPROTO when it failed. */
int tls_handshake(SSL *ssl, bool *ret_wants_write);

/* Bytes read; 0 at the peer's orderly end; -EAGAIN as above; -ECONNRESET for an end without
 * close-notify in the middle of a record; -EPROTO. */
ssize_t tls_read(SSL *ssl, void *buffer, size_t size, bool *ret_wants_write);

/* Bytes written (may be fewer), -EAGAIN, or another -errno. */
ssize_t tls_write(SSL *ssl, const void *bytes, size_t length);

/* Whether decrypted bytes wait inside OpenSSL, where poll does not see them. */
bool tls_pending(const SSL *ssl);

/* Say that we send no more. Returns 0, or -EAGAIN when the socket must become writable first. A
 * peer that is gone counts as told. */
int tls_shut(SSL *ssl);
