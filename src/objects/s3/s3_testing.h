/* A store that does what a test says, on a thread of its own. Included by test programs only.
 *
 * A script is called for every request with its number (from 0); it appends an answer, and may say
 * what comes then. No answer: the connection closes. */
#pragma once

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
/* After the headers it needs. */
#include <cmocka.h>

#include "base/number.h"
#include "net/outbound/curl_exchange.h"
#include "objects/s3/s3_operations.h"

#define TESTING_HEAD_MAX ((size_t) 64 * 1024)
#define TESTING_SECRET   "the-secret-of-the-test"
#define TESTING_TAG      "0123456789abcdef"

enum testing_then { THEN_GO_ON, THEN_CLOSE, THEN_HANG, THEN_REPEAT };

struct testing_store {
    int listener;
    uint16_t port;
    pthread_t thread;
    atomic_bool ending;
    void (*script)(struct testing_store *store, unsigned int number, struct text *answer);
    enum testing_then then;
    atomic_uint requests, connections;
    struct text heads;           /* of all requests, for looking at them when the store is gone */
    char head[TESTING_HEAD_MAX]; /* of the present one */
    char put_id[64];             /* of the last request that had one */

    struct pool pool;
    atomic_bool cancelled;
    atomic_uint_least64_t done_bytes, retries;
    struct objects_work work;
    struct s3_client *client;
    struct error err;
};

/* --- the store ---------------------------------------------------------------------------------
 */

/* The value of a header of the present request, "" when it has none. */
static inline const char *testing_header(const struct testing_store *store, const char *name,
                                         char *ret_value, size_t size)
{
    ret_value[0] = '\0';
    for (const char *line = strstr(store->head, "\r\n"); line; line = strstr(line + 2, "\r\n")) {
        size_t length = strlen(name), end;

        if (strncasecmp(line + 2, name, length) != 0 || line[2 + length] != ':')
            continue;
        line += 2 + length + 1;
        line += strspn(line, " ");
        end = strcspn(line, "\r");
        if (end >= size)
            end = size - 1;
        memcpy(ret_value, line, end);
        ret_value[end] = '\0';
        break;
    }
    return ret_value;
}

static inline bool testing_wait(const struct testing_store *store, int fd)
{
    struct pollfd poll_fd = {.fd = fd, .events = POLLIN};

    while (!atomic_load(&store->ending)) {
        if (poll(&poll_fd, 1, 20) > 0)
            return true;
    }
    return false;
}

/* A whole request. False at the end of the connection. */
static inline bool testing_receive(struct testing_store *store, int fd)
{
    char number[NUMBER_TEXT_SIZE], drop[65536], *end = NULL;
    uint64_t body = 0, got = 0;
    size_t length = 0;

    while (!end) {
        ssize_t count;

        if (!testing_wait(store, fd))
            return false;
        count = read(fd, store->head + length, 1);
        if (count <= 0 || length + 1 == TESTING_HEAD_MAX)
            return false;
        length++;
        store->head[length] = '\0';
        end = length >= 4 && memcmp(store->head + length - 4, "\r\n\r\n", 4) == 0 ? store->head
                                                                                  : NULL;
    }
    (void) testing_header(store, "content-length", number, sizeof(number));
    if (*number)
        (void) number_parse_digits(number, strlen(number), UINT64_MAX, &body);
    while (got < body) {
        ssize_t count;

        if (!testing_wait(store, fd))
            return false;
        count = read(fd, drop, sizeof(drop) < body - got ? sizeof(drop) : (size_t) (body - got));
        if (count <= 0)
            return false;
        got += (uint64_t) count;
    }
    return true;
}

static inline void testing_send(struct testing_store *store, int fd, const struct text *answer)
{
    do {
        size_t done = 0;

        while (done < answer->length && !atomic_load(&store->ending)) {
            ssize_t count =
                send(fd, answer->data + done, answer->length - done, MSG_NOSIGNAL | MSG_DONTWAIT);

            if (count > 0)
                done += (size_t) count;
            else if (count < 0 && errno == EAGAIN)
                (void) poll(NULL, 0, 1);
            else
                return;
        }
    } while (store->then == THEN_REPEAT && !atomic_load(&store->ending));
}

static inline void testing_serve(struct testing_store *store, int fd)
{
    while (testing_receive(store, fd)) {
        AUTO(text) struct text answer = TEXT_INIT((size_t) 32 * 1024 * 1024);
        char id[sizeof(store->put_id)];

        text_append(&store->heads, store->head);
        if (*testing_header(store, S3_META_PUT, id, sizeof(id)))
            memcpy(store->put_id, id, sizeof(id));
        store->then = THEN_GO_ON;
        store->script(store, atomic_fetch_add(&store->requests, 1), &answer);
        testing_send(store, fd, &answer);
        while (store->then == THEN_HANG && !atomic_load(&store->ending))
            (void) poll(NULL, 0, 10);
        if (answer.length == 0 || store->then != THEN_GO_ON)
            return;
    }
}

static inline void *testing_run(void *data)
{
    struct testing_store *store = data;

    while (testing_wait(store, store->listener)) {
        int fd = accept(store->listener, NULL, NULL);

        if (fd < 0)
            continue;
        (void) atomic_fetch_add(&store->connections, 1);
        testing_serve(store, fd);
        (void) close(fd);
    }
    return NULL;
}

/* --- and who asks it ---------------------------------------------------------------------------
 */

/* Limits for stores that hang. The others may have to wait for a CPU. */
#define TESTING_IMPATIENT .stall_ms = 300, .patience_ms = 600

static inline void testing_open(struct testing_store *store, const struct s3_settings *more)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
    struct s3_settings settings = more ? *more : (struct s3_settings){.allow_private = true};
    socklen_t length = sizeof(address);
    char endpoint[64];

    store->listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(store->listener, (struct sockaddr *) &address, length), 0);
    assert_int_equal(listen(store->listener, 16), 0);
    assert_int_equal(getsockname(store->listener, (struct sockaddr *) &address, &length), 0);
    store->port = ntohs(address.sin_port);
    (void) snprintf(endpoint, sizeof(endpoint), "http://127.0.0.1:%u", store->port);
    settings.endpoint = endpoint;
    settings.bucket = "bucket";
    settings.access_key = "key";
    settings.secret_key = TESTING_SECRET;
    if (!settings.limits.stall_ms)
        settings.limits.stall_ms = 10000;
    if (!settings.limits.patience_ms)
        settings.limits.patience_ms = 10000;
    settings.limits.backoff_ms = 5;
    if (!settings.limits.attempts_max)
        settings.limits.attempts_max = 3;
    store->heads = (struct text) TEXT_INIT((size_t) 1024 * 1024);
    store->work =
        (struct objects_work){&store->pool, &store->cancelled, &store->done_bytes, &store->retries};
    store->client = s3_client_new(&settings, &store->err);
    assert_non_null(store->client);
}

static inline void testing_start(struct testing_store *store, const struct s3_settings *more,
                                 void (*script)(struct testing_store *, unsigned int,
                                                struct text *))
{
    *store = (struct testing_store){.script = script};
    testing_open(store, more);
    assert_int_equal(pthread_create(&store->thread, NULL, testing_run, store), 0);
}

/* End the store; `heads` stays until testing_done. No request had the secret in it. */
static inline void testing_stop(struct testing_store *store)
{
    s3_client_free(store->client);
    store->client = NULL;
    atomic_store(&store->ending, true);
    assert_int_equal(pthread_join(store->thread, NULL), 0);
    (void) close(store->listener);
    assert_null(strstr(text_string(&store->heads), TESTING_SECRET));
}

static inline void testing_done(struct testing_store *store)
{
    if (store->client)
        testing_stop(store);
    text_done(&store->heads);
    pool_done(&store->pool);
}

AUTO_DEFINE(testing_store, struct testing_store, testing_done);

static inline void testing_expect(const struct testing_store *store, int result, enum err_code code)
{
    if (result == 0 ? code != ERR_NONE : store->err.code != code)
        fail_msg("%d, %s instead of %s: %s", result, error_code_text(store->err.code),
                 error_code_text(code), store->err.message);
    assert_null(strstr(store->err.message, TESTING_SECRET));
}

/* --- answers -----------------------------------------------------------------------------------
 */

static inline void answer_status(struct text *answer, const char *status, const char *headers,
                                 const char *body)
{
    text_format(answer, "HTTP/1.1 %s\r\n%sContent-Length: %zu\r\n\r\n%s", status, headers,
                strlen(body), body);
}

static inline void answer_ok(struct text *answer)
{
    answer_status(answer, "200 OK", "ETag: \"" TESTING_TAG "\"\r\n", "");
}

static inline void answer_error(struct text *answer, const char *status, const char *code)
{
    AUTO(text) struct text body = TEXT_INIT(4096);

    text_format(&body,
                "<?xml version=\"1.0\"?><Error><Code>%s</Code><Message>words</Message>"
                "</Error>",
                code);
    answer_status(answer, status, "Content-Type: application/xml\r\n", text_string(&body));
}

/* --- calls -------------------------------------------------------------------------------------
 */

static inline int testing_put(struct testing_store *store, const char *bytes,
                              const struct object_put_options *options)
{
    struct objects_source source = {.bytes = bytes, .length = strlen(bytes), .fd = -EBADF};
    struct object_info info;

    return s3_put(store->client, &store->work, "some/key", &source, options, &info, &store->err);
}

static inline int testing_get(struct testing_store *store, struct objects_sink *ret_sink)
{
    struct object_info info;

    *ret_sink = (struct objects_sink){.fd = -EBADF};
    return s3_get(store->client, &store->work, "some/key", NULL, NULL, ret_sink, &info,
                  &store->err);
}
