/* For tests of the bridge: the rest of a domain, and a bench whose table is the bridge's. Client
 * and agent are played with raw bytes. Included by test programs only, which must not link the
 * domain.
 */
#pragma once

#include "api/agent/visit_testing.h"
#include "api/bridge/bridge.h"
#include "api/bridge/bridge_pool.h"
#include "api/preview/preview.h"
#include "api/stored_testing.h"
#include "domain/identity/owner.h"
#include "domain/port/port.h"

#define HOST "Host: a.test\r\n"

/* --- the rest of the domain ------------------------------------------------------------------ */

/* What was asked of it, and what it will say. */
static struct {
    int destroyed, exposed, unexposed, forgotten, primed, drained;
    bool has_failure;
    struct owner owner;
    struct port port;
    char name[64];
} asked;

static inline const struct error *failure(void)
{
    static const struct error error = {.code = ERR_NOT_FOUND, .message = "there is none"};

    return asked.has_failure ? &error : NULL;
}

void sandbox_destroy(struct domain *domain, const struct caller *caller, struct sandbox *sandbox,
                     sandbox_done *done, void *context)
{
    (void) domain;
    (void) caller;
    (void) sandbox;
    asked.destroyed++;
    done(context, failure(), NULL);
}

void sandbox_count(const struct domain *domain, const struct id *owner,
                   size_t ret_counts[static SANDBOX_STATUS_COUNT])
{
    (void) domain;
    assert_non_null(owner); /* never everybody's */
    memset(ret_counts, 0, SANDBOX_STATUS_COUNT * sizeof(*ret_counts));
    ret_counts[SANDBOX_RUNNING] = 2;
    ret_counts[SANDBOX_FROZEN] = 1;
    ret_counts[SANDBOX_STOPPED] = 50;
}

struct owner *owner_find(const struct domain *domain, const struct id *id)
{
    (void) domain;
    (void) id;
    return &asked.owner;
}

void port_expose(struct domain *domain, const struct caller *caller, struct sandbox *sandbox,
                 const struct port_spec *spec, port_done *done, void *context)
{
    (void) domain;
    (void) caller;
    asked.exposed++;
    (void) snprintf(asked.name, sizeof(asked.name), "%s", spec->name ? spec->name : "");
    asked.port = (struct port){
        .sandbox = sandbox->id, .number = spec->number, .name = spec->name ? asked.name : NULL};
    done(context, failure(), &asked.port);
}

void port_unexpose(struct domain *domain, const struct caller *caller, struct sandbox *sandbox,
                   uint16_t number, port_done *done, void *context)
{
    (void) domain;
    (void) caller;
    (void) sandbox;
    (void) number;
    asked.unexposed++;
    done(context, failure(), NULL);
}

void preview_url(const struct preview *preview, const struct port *port, struct text *out)
{
    (void) preview;
    text_format(out, "http://%u-x-token.localhost:8787/", port->number);
}

void preview_forget(struct preview *preview, const struct id *sandbox, uint16_t number)
{
    (void) preview;
    (void) sandbox;
    (void) number;
    asked.forgotten++;
}

static inline void figures(void *self, struct bridge_pool_figures *ret_figures)
{
    (void) self;
    *ret_figures =
        (struct bridge_pool_figures){.warm = 7, .target = 8, .refresh_ms = 1000, .batch = 1};
}

static inline void prime(void *self)
{
    (void) self;
    asked.primed++;
}

static inline void drain(void *self)
{
    (void) self;
    asked.drained++;
}

/* --- the bench ------------------------------------------------------------------------------- */

static const struct bridge_pool_ops pool = {NULL, figures, prime, drain};

static inline int bridge_setup(void **state)
{
    struct http_mount mount = bridge_mount(NULL);
    struct visit_bench *bench = bench_new(mount.routes, mount.route_count);

    memset(&asked, 0, sizeof(asked));
    bench->mount.encode_error = mount.encode_error;
    bench->mount.check = mount.check;
    bench->api.bridge_pool = &pool;
    bench->api.preview = (struct preview *) bench; /* only handed around */
    *state = bench;
    return 0;
}

static inline int bridge_teardown(void **state)
{
    bench_free(*state);
    return 0;
}

static inline struct raw ask(struct visit_bench *bench, const char *method, const char *path,
                             const char *headers, const char *body)
{
    char request[4096];

    (void) snprintf(request, sizeof(request),
                    "%s /v1/%s HTTP/1.1\r\n" HOST "%sContent-Length: %zu\r\n\r\n%s", method, path,
                    headers, strlen(body), body);
    return bench_client(bench, request);
}

static inline void answer(struct visit_bench *bench, struct raw *agent, const char *status,
                          const char *type, const char *body)
{
    char reply[4096];

    (void) snprintf(reply, sizeof(reply),
                    "HTTP/1.1 %s\r\nContent-Type: %s\r\nContent-Length: %zu\r\n\r\n%s", status,
                    type, strlen(body), body);
    SAY(bench, agent, reply);
}

static inline void close_both(struct raw *raw, struct raw *agent)
{
    raw_close(raw);
    raw_close(agent);
}

#define BRIDGE_TEST(name) cmocka_unit_test_setup_teardown(name, bridge_setup, bridge_teardown)
