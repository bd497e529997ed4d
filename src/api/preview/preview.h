/* Previews: an exposed port of a sandbox, seen from a browser.
 *
 *     http://<port>-<id>-<token>.<host>[:<port>]/...        by host name: preview_intercept
 *     http://<address of a listener of its own>/<port>-<id>-<token>/...      by path:
 * preview_by_path
 *
 * A token opens exactly one port of one sandbox. What is there is not ours: it never shares an
 * origin with the API, gets no cookie and no key of ours, and by path it runs in a sandbox of the
 * browser's with no cookies at all. Requests are passed on as they are (net/http/http_proxy.h),
 * WebSockets and event streams included.
 *
 * Unknown, revoked or wrong: 404. The sandbox does not run: 410, and it is not woken, unless the
 * port was exposed with `wake`. Nothing listens: 502. */
#pragma once

#include "base/clock.h"
#include "base/error.h"
#include "base/log.h"
#include "base/text.h"
#include "domain/domain.h"
#include "domain/port/port.h"
#include "net/http/http_server.h"
#include "net/loop.h"

struct lasting;
struct preview;
struct trusted_proxies;
struct preview_origins;

struct preview_options {
    struct loop *loop;       /* borrowed, like all pointers */
    struct domain *domain;   /* closed after this */
    struct lasting *lasting; /* may be NULL */
    struct log *log;
    const struct trusted_proxies *proxies; /* NULL: none */
    /* "localhost", "preview.example.org"; "": not by host name. Copied. With a proxy in front also
     * the scheme and the port that browsers use: "https://preview.example.org:8443". */
    const char *host;
};

/* NULL with ERR_INVALID: `host` is none. */
struct preview *preview_new(const struct preview_options *options, struct error *err);

/* Where browsers reach the daemon, for preview_url; `host` may have said something else. */
void preview_set_address(struct preview *preview, uint16_t port, bool is_secure);

/* For http_server_options; `data` is the preview. */
http_handler *preview_intercept(struct http_request *request, void *data);

/* For a server of its own, as its fallback; request->context is the preview. The first segment of
 * the path holds a token: hidden_segments must be 1 there. */
void preview_by_path(struct http_request *request);

/* Connections to ports inside, for others of the api (preview_origin.h). Borrowed. */
struct preview_origins *preview_origins_of(struct preview *preview);

/* Whether there are names for exposed ports, so that a browser sees them. */
bool preview_has_host(const struct preview *preview);

/* Append the URL of an exposed port. */
void preview_url(const struct preview *preview, const struct port *port, struct text *out);

/* Append where all of them are, as a source of a Content-Security-Policy: scheme, "*." and host. */
void preview_source(const struct preview *preview, struct text *out);

/* The port is not exposed any more: cut what is open to it. */
void preview_forget(struct preview *preview, const struct id *sandbox, uint16_t number);

/* Requests under way fail. `done` (may be NULL) when it is gone. */
void preview_close(struct preview *preview, void (*done)(void *context), void *context);
