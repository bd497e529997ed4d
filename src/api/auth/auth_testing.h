/* For tests of accounts, users and keys over HTTP: a server with those tables in front of a real
 * domain, and calls that wait for their answer. Included by test programs only. */
#pragma once

#include "api/access/admission.h"
#include "api/auth/auth.h"
#include "api/http/api.h"
#include "api/native/native.h"
#include "domain/identity/identity_testing.h"
#include "net/http/http_testing.h"

struct office {
    struct house house;
    struct admission admission;
    struct api api;
    struct http_mount mounts[2];
    struct http_router *router;
    struct http_server *server;
    struct owner *admin;
    char admin_key[128];
    bool is_drained, is_closed;

    /* The last answer. */
    int status;
    char reply[65536];
    char token[128];
};

static inline void office_begin(struct office *office, enum auth_sign_up sign_up,
                                struct admission_options given)
{
    struct http_server_options options = HTTP_SERVER_OPTIONS_DEFAULT;
    struct auth_options auth = {.api = &office->api,
                                .admission = &office->admission,
                                .sign_up = sign_up,
                                .cost = {.memory_kib = 8, .passes = 1}};

    memset(office, 0, sizeof(*office));
    house_begin(&office->house);
    office->admin = house_owner(&office->house, "admin", NULL, true);
    (void) house_key(&office->house, office->admin, CALLER_ADMIN);
    memcpy(office->admin_key, office->house.secret, sizeof(office->admin_key));
    given.clock = &office->house.clock.clock;
    assert_int_equal(admission_init(&office->admission, &given, NULL), 0);
    admission_open(&office->admission, office->house.domain, NULL, &office->admin->id);
    office->api = (struct api){.loop = &office->house.loop,
                               .domain = office->house.domain,
                               .clock = &office->house.clock.clock};
    (void) auth_new(&auth);
    office->router = http_router_new();
    office->mounts[0] = auth_mount(&office->api);
    office->mounts[1] = native_mount(&office->api);
    for (size_t i = 0; i < ARRAY_COUNT(office->mounts); i++)
        assert_int_equal(http_router_mount(office->router, &office->mounts[i], NULL), 0);
    options.router = office->router;
    options.clock = &office->house.clock.clock;
    options.admit = admission_check_source;
    options.authorize = admission_check_access;
    options.on_error = admission_note_denial;
    options.admit_data = &office->admission;
    options.encode_error = error_body_write;
    office->server = http_server_new(&office->house.loop, &options);
    assert_int_equal(http_server_listen(office->server, "127.0.0.1:0", NULL, NULL), 0);
}

static inline void office_drained(struct http_server *server, void *data)
{
    (void) server;
    ((struct office *) data)->is_drained = true;
}

static inline void office_closed(void *context)
{
    ((struct office *) context)->is_closed = true;
}

static inline void office_end(struct office *office)
{
    http_server_drain(office->server, 1, office_drained, office);
    TURN_UNTIL(&office->house.loop, office->is_drained);
    http_server_free(office->server);
    http_router_free(office->router);
    auth_close(office->api.auth, office_closed, office);
    TURN_UNTIL(&office->house.loop, office->is_closed);
    admission_done(&office->admission);
    house_end(&office->house);
}

/* `headers` are whole lines, each ended by \r\n; `body` NULL: none. Returns the status. */
static inline int office_call(struct office *office, const char *method, const char *path,
                              const char *headers, const char *body)
{
    struct raw raw = raw_connect(http_server_port(office->server, 0));
    AUTO(text) struct text request = TEXT_INIT(RAW_MAX);

    text_format(&request, "%s %s HTTP/1.1\r\nConnection: close\r\nContent-Length: %zu\r\n%s",
                method, path, body ? strlen(body) : 0, headers);
    if (!strstr(headers, "Host:"))
        text_append(&request, "Host: localhost\r\n");
    text_format(&request, "\r\n%s", body ? body : "");
    raw_send_bytes(&raw, &office->house.loop, text_string(&request), request.length);
    TURN_UNTIL(&office->house.loop, raw_is_over(&raw));
    (void) snprintf(office->reply, sizeof(office->reply), "%s", text_string(&raw.got));
    office->status = 0;
    if (strncmp(office->reply, "HTTP/1.1 ", 9) == 0)
        office->status = (int) strtol(office->reply + 9, NULL, 10);
    raw_close(&raw);
    return office->status;
}

static inline int office_call_with(struct office *office, const char *key, const char *method,
                                   const char *path, const char *body)
{
    char header[256];

    (void) snprintf(header, sizeof(header), "Authorization: Bearer %s\r\n", key);
    return office_call(office, method, path, header, body);
}

static inline bool office_says(const struct office *office, const char *text)
{
    return strstr(office->reply, text);
}

/* The text behind "name":" in the last answer, copied into `ret_text`. */
static inline void office_field(const struct office *office, const char *name, char *ret_text,
                                size_t size)
{
    char key[64];
    const char *at;

    (void) snprintf(key, sizeof(key), "\"%s\":\"", name);
    at = strstr(office->reply, key);
    if (!at)
        fail_msg("no %s in: %s", name, office->reply);
    at += strlen(key);
    (void) snprintf(ret_text, size, "%.*s", (int) strcspn(at, "\""), at);
}
