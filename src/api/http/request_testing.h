/* For tests of what looks at requests: one as the server would hand it over, made of headers alone,
 * without a connection. Included by test programs only. */
#pragma once

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
/* After the headers it needs. */
#include <cmocka.h>

#include "base/auto.h"
#include "net/http/http_request.h"

#define ASKED_HEADERS_MAX 8

struct asked {
    struct http_header headers[ASKED_HEADERS_MAX];
    struct http_head head;
    struct http_route route;
    struct http_request request;
};

static inline void asked_add(struct asked *asked, const char *name, const char *value)
{
    assert_true(asked->head.header_count < ASKED_HEADERS_MAX);
    asked->headers[asked->head.header_count++] = http_header_of(name, value);
}

/* Headers as pairs, with NULL behind the last. The object must not move. */
static inline void asked_begin(struct asked *asked, const char *method, const char *const *headers)
{
    *asked = (struct asked){.head = {.method = method, .minor = 1}};
    asked->head.headers = asked->headers;
    asked->request.head = &asked->head;
    asked->request.match.route = &asked->route;
    asked->request.extra_headers = (struct text) TEXT_INIT(4096);
    asked->request.peer = "192.0.2.7:4711";
    asked->request.id = id_new();
    asked->route.pattern = "/thing/{id}";
    for (; headers && *headers; headers += 2)
        asked_add(asked, headers[0], headers[1]);
}

static inline void asked_end(struct asked *asked)
{
    pool_done(&asked->request.pool);
    text_done(&asked->request.extra_headers);
}

#define ASKED(...) ((const char *const[]){__VA_ARGS__, NULL})
