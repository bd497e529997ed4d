/* For the tests of net/outbound: a small blocking HTTP server on loopback, one thread per
 * connection, and a client that records what came. */
#pragma once

#include <arpa/inet.h>
#include <errno.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
/* After the headers it needs. */
#include <cmocka.h>

#include "base/auto.h"
#include "base/memory.h"
#include "base/text.h"
#include "net/outbound/curl_exchange.h"

#define KIT_CONNECTIONS_MAX 64
#define KIT_BODY_MAX        ((size_t) 4 * 1024 * 1024)

struct kit_server;

/* One request as the server saw it. */
struct kit_exchange {
    struct kit_server *server;
    SSL *tls; /* NULL: plain */
    int fd;
    char head[32 * 1024]; /* request line and headers, NUL-terminated */
    struct text body;
};

/* Answers one request; false closes the connection. */
typedef bool kit_serve(struct kit_exchange *exchange);

struct kit_route {
    const char *path;
    kit_serve *serve; /* NULL: send `raw` and close */
    const char *raw;
    size_t raw_length;
};

struct kit_connection {
    struct kit_server *server;
    pthread_t thread;
    int fd;
};

struct kit_server {
    const struct kit_route *routes;
    int listener;
    uint16_t port;
    SSL_CTX *tls; /* owned; NULL: plain */
    pthread_t thread;
    pthread_mutex_t lock;
    char last_head[32 * 1024]; /* under lock */
    struct kit_connection connections[KIT_CONNECTIONS_MAX];
    atomic_uint connection_count;
    atomic_uint request_count;
    atomic_size_t written;
    atomic_bool stopping;
};

static inline ssize_t kit_read(struct kit_exchange *exchange, char *buffer, size_t size)
{
    if (exchange->tls)
        return SSL_read(exchange->tls, buffer, (int) size);
    return recv(exchange->fd, buffer, size, 0);
}

static inline bool kit_write(struct kit_exchange *exchange, const char *bytes, size_t length)
{
    while (length) {
        ssize_t done = exchange->tls ? SSL_write(exchange->tls, bytes, (int) length)
                                     : send(exchange->fd, bytes, length, MSG_NOSIGNAL);

        if (done <= 0)
            return false;
        atomic_fetch_add(&exchange->server->written, (size_t) done);
        bytes += done;
        length -= (size_t) done;
    }
    return true;
}

static inline bool kit_say(struct kit_exchange *exchange, const char *text)
{
    return kit_write(exchange, text, strlen(text));
}

/* "200 OK" with a body and the connection kept. */
static inline bool kit_reply(struct kit_exchange *exchange, const char *headers, const char *body,
                             size_t length)
{
    AUTO(text) struct text head = TEXT_INIT(64 * 1024);

    text_format(&head, "HTTP/1.1 200 OK\r\nContent-Length: %zu\r\n%s\r\n", length, headers);
    return kit_say(exchange, text_string(&head)) && kit_write(exchange, body, length);
}

/* The value of a header of the request, in `buffer`; NULL when it was not sent. */
static inline const char *kit_header(const char *head, const char *name, char *buffer, size_t size)
{
    for (const char *line = strstr(head, "\r\n"); line && line[2];
         line = strstr(line + 2, "\r\n")) {
        const char *at = line + 2;
        size_t length = strlen(name);

        if (strncasecmp(at, name, length) != 0 || at[length] != ':')
            continue;
        at += length + 1;
        at += strspn(at, " ");
        length = strcspn(at, "\r");
        if (length >= size)
            length = size - 1;
        memcpy(buffer, at, length);
        buffer[length] = '\0';
        return buffer;
    }
    return NULL;
}

static inline bool kit_read_head(struct kit_exchange *exchange)
{
    size_t used = 0;

    while (used + 1 < sizeof(exchange->head)) {
        if (kit_read(exchange, exchange->head + used, 1) != 1)
            return false;
        exchange->head[++used] = '\0';
        if (used >= 4 && memcmp(exchange->head + used - 4, "\r\n\r\n", 4) == 0)
            return true;
    }
    return false;
}

static inline bool kit_read_bytes(struct kit_exchange *exchange, size_t length)
{
    char buffer[8192];

    while (length) {
        size_t wanted = length < sizeof(buffer) ? length : sizeof(buffer);
        ssize_t got = kit_read(exchange, buffer, wanted);

        if (got <= 0)
            return false;
        text_append_bytes(&exchange->body, buffer, (size_t) got);
        length -= (size_t) got;
    }
    return true;
}

static inline bool kit_read_chunks(struct kit_exchange *exchange)
{
    for (;;) {
        char line[32], c;
        size_t used = 0, size;

        while (used + 1 < sizeof(line) && kit_read(exchange, &c, 1) == 1 && c != '\n')
            line[used++] = c;
        line[used] = '\0';
        if (used < 2)
            return false;
        size = strtoul(line, NULL, 16);
        if (!kit_read_bytes(exchange, size + 2))
            return false;
        exchange->body.length -= 2; /* the line end behind the chunk */
        if (size == 0)
            return true;
    }
}

/* Read the request's body into exchange->body. */
static inline bool kit_read_body(struct kit_exchange *exchange)
{
    char value[64];

    if (kit_header(exchange->head, "transfer-encoding", value, sizeof(value)))
        return kit_read_chunks(exchange);
    if (kit_header(exchange->head, "content-length", value, sizeof(value)))
        return kit_read_bytes(exchange, strtoul(value, NULL, 10));
    return true;
}

static inline bool kit_dispatch(struct kit_exchange *exchange)
{
    struct kit_server *server = exchange->server;
    const char *target = strchr(exchange->head, ' ');
    size_t length = target ? strcspn(target + 1, " ?") : 0;

    atomic_fetch_add(&server->request_count, 1);
    pthread_mutex_lock(&server->lock);
    memcpy(server->last_head, exchange->head, sizeof(server->last_head));
    pthread_mutex_unlock(&server->lock);
    for (const struct kit_route *route = server->routes; target && route->path; route++) {
        if (strlen(route->path) != length || memcmp(route->path, target + 1, length) != 0)
            continue;
        if (route->serve)
            return route->serve(exchange);
        (void) kit_write(exchange, route->raw, route->raw_length);
        return false;
    }
    (void) kit_say(exchange, "HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n");
    return true;
}

static inline void *kit_connection_thread(void *context)
{
    struct kit_connection *connection = context;
    AUTO(free) struct kit_exchange *exchange = mem_alloc(sizeof(*exchange));
    sigset_t pipe;

    /* OpenSSL writes to sockets that are gone. Not ignored for the process: the client under test
     * must never raise it. */
    sigemptyset(&pipe);
    sigaddset(&pipe, SIGPIPE);
    pthread_sigmask(SIG_BLOCK, &pipe, NULL);
    exchange->server = connection->server;
    exchange->fd = connection->fd;
    exchange->body = (struct text) TEXT_INIT(KIT_BODY_MAX);
    if (exchange->server->tls) {
        exchange->tls = SSL_new(exchange->server->tls);
        SSL_set_fd(exchange->tls, exchange->fd);
    }
    if (!exchange->tls || SSL_accept(exchange->tls) == 1) {
        while (kit_read_head(exchange) && kit_dispatch(exchange))
            text_clear(&exchange->body);
    }
    SSL_free(exchange->tls);
    text_done(&exchange->body);
    (void) shutdown(connection->fd, SHUT_RDWR); /* the descriptor itself is closed by the stopper */
    return NULL;
}

static inline void *kit_accept_thread(void *context)
{
    struct kit_server *server = context;

    while (!atomic_load(&server->stopping)) {
        unsigned int index = atomic_load(&server->connection_count);
        int fd = accept4(server->listener, NULL, NULL, SOCK_CLOEXEC);

        if (fd < 0)
            continue;
        if (index == KIT_CONNECTIONS_MAX) {
            (void) close(fd);
            continue;
        }
        server->connections[index].server = server;
        server->connections[index].fd = fd;
        /* Before it can answer anybody, who may count then. */
        atomic_store(&server->connection_count, index + 1);
        (void) pthread_create(&server->connections[index].thread, NULL, kit_connection_thread,
                              &server->connections[index]);
    }
    return NULL;
}

/* The head of the request answered last. Stays as it is until the next request. */
static inline const char *kit_last_head(struct kit_server *server)
{
    pthread_mutex_lock(&server->lock); /* orders us behind the thread that wrote it */
    pthread_mutex_unlock(&server->lock);
    return server->last_head;
}

/* Listen at a port of 127.0.0.1. The last route has no path. */
static inline struct kit_server *kit_server_start(const struct kit_route *routes, SSL_CTX *tls)
{
    struct kit_server *server = mem_alloc(sizeof(*server));
    struct sockaddr_in ipv4 = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
    socklen_t length = sizeof(ipv4);

    server->routes = routes;
    server->tls = tls;
    pthread_mutex_init(&server->lock, NULL);
    server->listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_true(server->listener >= 0);
    assert_int_equal(bind(server->listener, (struct sockaddr *) &ipv4, sizeof(ipv4)), 0);
    assert_int_equal(getsockname(server->listener, (struct sockaddr *) &ipv4, &length), 0);
    server->port = ntohs(ipv4.sin_port);
    assert_int_equal(listen(server->listener, 64), 0);
    assert_int_equal(pthread_create(&server->thread, NULL, kit_accept_thread, server), 0);
    return server;
}

static inline void kit_server_stop(struct kit_server *server)
{
    atomic_store(&server->stopping, true);
    (void) shutdown(server->listener, SHUT_RDWR); /* wakes accept */
    pthread_join(server->thread, NULL);
    (void) close(server->listener);
    for (unsigned int i = 0; i < atomic_load(&server->connection_count); i++) {
        (void) shutdown(server->connections[i].fd, SHUT_RDWR);
        pthread_join(server->connections[i].thread, NULL);
        (void) close(server->connections[i].fd);
    }
    pthread_mutex_destroy(&server->lock);
    SSL_CTX_free(server->tls);
    free(server);
}

/* A context with a fresh certificate for 127.0.0.1, which is also written to `ca_path`. */
static inline SSL_CTX *kit_tls_new(const char *ca_path)
{
    SSL_CTX *tls = SSL_CTX_new(TLS_server_method());
    EVP_PKEY *key = EVP_EC_gen("P-256");
    X509 *certificate = X509_new();
    X509_EXTENSION *names =
        X509V3_EXT_conf_nid(NULL, NULL, NID_subject_alt_name, "IP:127.0.0.1,DNS:elsewhere.test");
    FILE *file = fopen(ca_path, "we");

    assert_non_null(file);
    X509_set_version(certificate, 2);
    ASN1_INTEGER_set(X509_get_serialNumber(certificate), 1);
    X509_gmtime_adj(X509_getm_notBefore(certificate), -3600);
    X509_gmtime_adj(X509_getm_notAfter(certificate), 3600);
    X509_NAME_add_entry_by_txt(X509_get_subject_name(certificate), "CN", MBSTRING_ASC,
                               (const unsigned char *) "test", -1, -1, 0);
    X509_set_issuer_name(certificate, X509_get_subject_name(certificate));
    X509_set_pubkey(certificate, key);
    X509_add_ext(certificate, names, -1);
    assert_true(X509_sign(certificate, key, EVP_sha256()) > 0);
    assert_int_equal(SSL_CTX_use_certificate(tls, certificate), 1);
    assert_int_equal(SSL_CTX_use_PrivateKey(tls, key), 1);
    assert_int_equal(PEM_write_X509(file, certificate), 1);
    fclose(file);
    X509_EXTENSION_free(names);
    X509_free(certificate);
    EVP_PKEY_free(key);
    return tls;
}

/* What a test works with: a server, a handle that may dial 127.0.0.0/8, and what came last. */
struct kit {
    struct kit_server *server;
    CURL *easy;
    struct address_rules rules;
    struct outbound_answer answer;
    struct error err;
};

static inline struct kit *kit_new(const struct kit_route *routes)
{
    struct kit *kit = mem_alloc(sizeof(*kit));

    kit->server = kit_server_start(routes, NULL);
    kit->easy = curl_easy_init();
    kit->answer.body.maximum = KIT_BODY_MAX;
    assert_int_equal(address_rules_allow(&kit->rules, "127.0.0.0/8", NULL), 0);
    return kit;
}

static inline void kit_free(struct kit *kit)
{
    curl_easy_cleanup(kit->easy);
    kit_server_stop(kit->server);
    outbound_answer_done(&kit->answer);
    free(kit);
}

/* "/path" at the kit's server, or a whole URL as it is. */
static inline const char *kit_url(const struct kit *kit, const char *url, char buffer[static 1024])
{
    if (url[0] != '/')
        return url;
    (void) snprintf(buffer, 1024, "http://127.0.0.1:%u%s", (unsigned int) kit->server->port, url);
    return buffer;
}

/* Ask and keep what came. Under the kit's rules, unless the request has others. */
static inline int kit_ask(struct kit *kit, struct outbound_request request)
{
    char url[1024];

    request.url = kit_url(kit, request.url, url);
    request.rules = request.rules ? request.rules : &kit->rules;
    error_clear(&kit->err);
    return curl_exchange(kit->easy, &request, &kit->answer, &kit->err);
}

static inline int kit_get(struct kit *kit, const char *url)
{
    return kit_ask(kit, (struct outbound_request){.url = url});
}

static inline void assert_answered(const struct kit *kit, int status, const char *body)
{
    if (kit->err.code != ERR_NONE)
        fail_msg("failed: %s", kit->err.message);
    assert_int_equal(kit->answer.status, status);
    assert_string_equal(text_string(&kit->answer.body), body);
}

static inline void assert_error(const struct error *err, enum err_code code, const char *reason)
{
    if (err->code != code)
        fail_msg("%s instead of %s: %s", error_code_text(err->code), error_code_text(code),
                 err->message);
    if (!strstr(err->message, reason))
        fail_msg("'%s' does not say '%s'", err->message, reason);
}

/* --- for groups of tests ---------------------------------------------------------------------- */

/* The state of each test is a kit. */
static inline int kit_tear_down(void **state)
{
    kit_free(*state);
    return 0;
}

static inline int kit_begin(void **state)
{
    (void) state;
    return outbound_global_init(NULL);
}

static inline int kit_end(void **state)
{
    (void) state;
    outbound_global_done();
    return 0;
}
