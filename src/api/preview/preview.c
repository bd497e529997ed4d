#include "api/preview/preview.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "api/access/client_address.h"
#include "api/access/credential.h"
#include "api/access/lasting.h"
#include "api/preview/preview_headers.h"
#include "api/preview/preview_name.h"
#include "api/preview/preview_origin.h"
#include "base/auto.h"
#include "base/memory.h"
#include "domain/domain_share.h"
#include "domain/sandbox/sandbox_use.h"
#include "domain/sandbox/sandboxes.h"
#include "domain/standing.h"
#include "json/json_write.h"
#include "net/http/http_proxy.h"

#define PATH_POLICY                                                                                \
    "sandbox allow-scripts allow-forms allow-modals allow-popups allow-downloads "                 \
    "allow-pointer-lock"

struct preview {
    struct domain *domain;
    struct lasting *lasting;
    struct log *log;
    const struct trusted_proxies *proxies; /* borrowed; may be NULL */
    char *host;                            /* owned; "": not by name */
    uint16_t port;
    bool is_secure;
    bool is_address_given; /* port and is_secure are the operator's word */
    struct preview_origins *origins;
    struct http_mount mount; /* for its encode_error alone */
};

/* One request, from its pool; on the heap from the moment it becomes a tunnel. */
struct viewing {
    struct share_claim claim;
    struct preview *preview;
    struct http_request *request; /* NULL: it is a tunnel */
    struct preview_name name;
    struct sandbox_use use;
    struct preview_lease lease;
    struct tunnel_watch watch;
    const char *target; /* what the application is asked for */
    bool is_by_path;
};

/* --- refusals -------------------------------------------------------------------------------- */

static const char *code_of(const struct error *error)
{
    switch (error->code) {
    case ERR_NOT_FOUND:
        return "INVALID_TOKEN";
    case ERR_GONE:
        return "STALE_PREVIEW_URL";
    case ERR_UPSTREAM:
    case ERR_UPSTREAM_TIMEOUT:
        return "SERVICE_NOT_RESPONDING";
    default:
        return "PREVIEW_UNAVAILABLE";
    }
}

static void preview_add_escaped(struct text *out, const char *text)
{
    for (; *text; text++) {
        if (strchr("<>&\"'", *text))
            text_format(out, "&#%d;", *text);
        else
            text_append_char(out, *text);
    }
}

/* A page for people, JSON for programs. */
static void write_refusal(const struct http_request *request, const struct error *error,
                          struct text *body, const char **ret_content_type)
{
    const char *accept = http_request_header(request, "accept");
    struct json_writer json;

    if (accept && strstr(accept, "text/html")) {
        text_format(body,
                    "<!doctype html><meta charset=utf-8><title>Preview</title>"
                    "<body style=\"font:16px system-ui;margin:15vh auto;max-width:30em\">"
                    "<h1>%d</h1><p>",
                    error_http_status(error->code));
        preview_add_escaped(body, error->message);
        text_append(body, ".</p>\n");
        *ret_content_type = "text/html; charset=utf-8";
        return;
    }
    json_document_begin(&json, body);
    json_add_text(&json, "error", error->message);
    json_add_text(&json, "code", code_of(error));
    (void) json_document_end(&json);
    *ret_content_type = "application/json";
}

static void preview_refuse(struct http_request *request, enum err_code code, const char *message)
{
    struct error error;

    (void) error_set(&error, code, 0, "%s", message);
    http_reply_error(request, &error);
}

static void refuse_access(struct http_request *request)
{
    preview_refuse(request, ERR_NOT_FOUND, "Access denied: Invalid token or port not exposed");
}

static void refuse_stale(struct http_request *request)
{
    preview_refuse(request, ERR_GONE,
                   "Preview URL is stale because the sandbox runtime is not active");
}

/* --- passing on ------------------------------------------------------------------------------ */

static void viewing_end(struct viewing *viewing)
{
    preview_lease_end(&viewing->lease);
    sandbox_use_end(&viewing->use);
    share_release(&viewing->claim);
}

static void request_ended(struct http_request *request)
{
    viewing_end(request->ended_data);
}

static void preview_client_left(struct http_request *request)
{
    (void) request; /* request_ended follows */
}

static void tunnel_ended(struct tunnel_watch *watch)
{
    struct viewing *viewing = CONTAINER_OF(watch, struct viewing, watch);

    viewing_end(viewing);
    free(viewing);
}

static void cut_tunnel(struct preview_lease *lease)
{
    struct viewing *viewing = CONTAINER_OF(lease, struct viewing, lease);

    if (viewing->watch.tunnel)
        tunnel_cut(viewing->watch.tunnel);
}

static void nothing_ready(struct sandbox_use *use, const struct error *failure)
{
    (void) use;
    (void) failure;
}

/* The request's memory goes with the upgrade: what the tunnel needs moves to the heap, with a use
 * and a lease of its own. */
static struct tunnel_watch *watch_tunnel(struct http_request *request)
{
    struct viewing *before = request->ended_data;
    struct viewing *viewing = mem_alloc(sizeof(*viewing));

    viewing->preview = before->preview;
    viewing->watch.ended = tunnel_ended;
    domain_claim_anyway(before->preview->domain, &before->use.sandbox->owner, SHARE_WEBSOCKETS, 1,
                        &viewing->claim);
    sandbox_use_begin(before->preview->domain, before->use.sandbox, &viewing->use,
                      SANDBOX_USE_QUIET, nothing_ready);
    preview_lease_join(&viewing->lease, &before->lease);
    viewing->lease.cut = cut_tunnel;
    return &viewing->watch;
}

/* Who asks, as the application is told: what a proxy that the operator trusts says, or the peer. */
static struct client_address preview_asker(const struct preview *preview,
                                           const struct http_request *request)
{
    static const struct trusted_proxies none = {.count = 0};
    struct client_address from;

    client_address_find(preview->proxies ? preview->proxies : &none, request, &from);
    return from;
}

static void preview_pass_on(struct viewing *viewing)
{
    struct http_request *request = viewing->request;
    const struct client_address from = preview_asker(viewing->preview, request);
    const char *url = pool_format(&request->pool, "%s://%s%s", from.is_secure ? "https" : "http",
                                  http_request_host(request), viewing->target);
    const struct http_header extra[] = {
        http_header_of("X-Original-URL", url),
        http_header_of("X-Sandbox-Name", viewing->name.sandbox.text),
    };
    const struct http_proxy_options options = {
        .target = viewing->target,
        .client = from.text,
        .is_secure = from.is_secure,
        .edit_request_header =
            viewing->is_by_path ? preview_path_request_header : preview_request_header,
        .edit_reply_header = viewing->is_by_path ? preview_path_reply_header : preview_reply_header,
        .extra = extra,
        /* By path the original URL would tell the token to no purpose. */
        .extra_count = viewing->is_by_path ? 0 : ARRAY_COUNT(extra),
        .watch_tunnel = watch_tunnel,
    };

    /* The token is in the host name, or in the path, where every preview is of the same origin. */
    (void) http_reply_header(request, "Referrer-Policy",
                             viewing->is_by_path ? "no-referrer" : "same-origin");
    if (viewing->is_by_path)
        (void) http_reply_header(request, "Content-Security-Policy", PATH_POLICY);
    http_proxy(request, preview_lease_origin(&viewing->lease), &options);
}

static void lease_ready(struct preview_lease *lease, const struct error *failure)
{
    struct viewing *viewing = CONTAINER_OF(lease, struct viewing, lease);

    if (failure)
        http_reply_error(viewing->request, failure);
    else
        preview_pass_on(viewing);
}

static bool is_open(const struct viewing *viewing)
{
    const struct domain *domain = viewing->preview->domain;
    const struct port *port = port_find(domain, &viewing->name.sandbox, viewing->name.number);

    return port && port_opens(domain, port, viewing->name.token);
}

static void sandbox_ready(struct sandbox_use *use, const struct error *failure)
{
    struct viewing *viewing = CONTAINER_OF(use, struct viewing, use);

    if (failure && failure->code == ERR_CONFLICT)
        refuse_stale(viewing->request);
    else if (failure)
        http_reply_error(viewing->request, failure);
    else if (!is_open(viewing)) /* it was closed while the sandbox woke */
        refuse_access(viewing->request);
    else
        preview_lease_begin(viewing->preview->origins, use->sandbox, viewing->name.number,
                            &viewing->lease, lease_ready);
}

/* The path with the query of the request, less secrets of ours. */
static const char *preview_target(struct http_request *request, struct url_span path)
{
    struct url_span query = credential_clean_query(request->target.query, &request->pool);

    return pool_format(&request->pool, "%.*s%s%.*s", (int) path.length, path.text,
                       query.text ? "?" : "", (int) query.length, query.text ? query.text : "");
}

/* Whoever has the token is the request's caller, and is asked for as long as it lasts. */
static bool preview_admit(struct preview *preview, struct http_request *request,
                          const struct port *port, const char *token)
{
    struct caller *caller = pool_alloc(&request->pool, sizeof(*caller));
    int64_t until_ms;

    *caller = standing_of_port(port);
    caller->request = request->id;
    if (!port_opens(preview->domain, port, token) ||
        standing_check(preview->domain, caller, &until_ms, NULL) < 0)
        return false;
    request->caller = caller;
    lasting_note(preview->lasting, caller);
    return true;
}

static void view(struct preview *preview, struct http_request *request,
                 const struct preview_name *name, struct url_span path, bool is_by_path)
{
    const char *waits_for = domain_waits_for(preview->domain);
    struct caller system = caller_system();
    struct sandbox *sandbox = sandbox_find(preview->domain, &system, name->sandbox.text, NULL);
    const struct port *port =
        sandbox ? port_find(preview->domain, &sandbox->id, name->number) : NULL;
    struct share_claim claim = SHARE_CLAIM_NONE;
    struct error error = ERROR_INIT;
    struct viewing *viewing;

    if (waits_for) {
        preview_refuse(request, ERR_UNAVAILABLE, waits_for);
        return;
    }
    if (!port || !preview_admit(preview, request, port, name->token)) {
        refuse_access(request);
        return;
    }
    /* Whoever looks may be anybody: it is the owner of what is shown who takes part in it. */
    if (domain_claim(preview->domain, &sandbox->owner,
                     request->is_upgrade ? SHARE_WEBSOCKETS : SHARE_REQUESTS, 1, &claim,
                     &error) < 0) {
        http_reply_error(request, &error);
        return;
    }
    viewing = pool_alloc(&request->pool, sizeof(*viewing));
    *viewing = (struct viewing){
        .preview = preview,
        .request = request,
        .claim = claim,
        .name = *name,
        .target = preview_target(request, path),
        .is_by_path = is_by_path,
    };
    request->on_gone = preview_client_left;
    request->ended_data = viewing;
    request->on_ended = request_ended;
    sandbox_use_begin(preview->domain, sandbox, &viewing->use,
                      port->wakes ? SANDBOX_USE_START : SANDBOX_USE_QUIET, sandbox_ready);
}

/* --- by host name ---------------------------------------------------------------------------- */

/* The length of the first label when the rest of the host is ours; 0: none of ours. */
static size_t label_of(const struct preview *preview, const char *host)
{
    size_t length = strcspn(host, ":"), own = strlen(preview->host), label;

    if (length && host[length - 1] == '.')
        length--; /* the same host, written out in full */
    label = length > own + 1 ? length - own - 1 : 0;

    if (!own || !label || host[label] != '.' ||
        strncasecmp(host + label + 1, preview->host, own) != 0 || memchr(host, '.', label))
        return 0;
    return label;
}

static void view_by_host(struct http_request *request)
{
    struct preview *preview = request->context;
    const char *host = http_request_host(request);
    struct preview_name name;

    request->match.mount = &preview->mount;
    if (preview_name_parse(host, label_of(preview, host), &name) < 0)
        refuse_access(request);
    else
        view(preview, request, &name, request->target.path, false);
}

http_handler *preview_intercept(struct http_request *request, void *data)
{
    struct preview *preview = data;
    const char *host = http_request_host(request);
    size_t label = label_of(preview, host);

    if (!label || !preview_name_is_meant(host, label))
        return NULL;
    request->context = preview;
    return view_by_host;
}

/* --- by path --------------------------------------------------------------------------------- */

void preview_by_path(struct http_request *request)
{
    struct preview *preview = request->context;
    struct url_span path = request->target.path;
    const char *slash = path.length ? memchr(path.text + 1, '/', path.length - 1) : NULL;
    size_t segment = slash ? (size_t) (slash - path.text) - 1 : path.length ? path.length - 1 : 0;
    struct preview_name name;

    request->match.mount = &preview->mount;
    if (preview_name_parse(path.text + 1, segment, &name) < 0) {
        refuse_access(request);
        return;
    }
    if (!slash) {
        /* Relative links need the slash. */
        (void) http_reply_header(
            request, "Location",
            pool_format(&request->pool, "%.*s/", (int) path.length, path.text));
        (void) http_reply_header(request, "Referrer-Policy", "no-referrer");
        http_reply(request, 308, NULL, NULL, 0);
        return;
    }
    view(preview, request, &name, url_span(slash, path.length - segment - 1), true);
}

/* --- life ------------------------------------------------------------------------------------ */

/* "preview.example.org", or "https://preview.example.org:8443". Returns 0, or -1 with ERR_INVALID. */
static int preview_read_host(struct preview *preview, const char *text, struct error *err)
{
    struct url url;

    if (!strstr(text, "://")) {
        preview->host = mem_copy_text(text);
        return 0;
    }
    if (url_parse(text, strlen(text), &url, err) < 0)
        return error_wrap(err, "preview-host '%s'", text);
    if ((url.scheme != URL_HTTP && url.scheme != URL_HTTPS) || url.host_kind != URL_HOST_NAME ||
        !url_span_equals(url.path, "/") || url.query.text)
        return error_set(err, ERR_INVALID, 0,
                         "preview-host '%s' is neither a name nor a URL such as "
                         "https://preview.example.org",
                         text);
    preview->host = mem_copy_bytes(url.host.text, url.host.length);
    preview->port = url.port;
    preview->is_secure = url.scheme == URL_HTTPS;
    preview->is_address_given = true;
    return 0;
}

struct preview *preview_new(const struct preview_options *options, struct error *err)
{
    struct preview *preview = mem_alloc(sizeof(*preview));

    *preview = (struct preview){.proxies = options->proxies};
    if (preview_read_host(preview, options->host, err) < 0) {
        free(preview);
        return NULL;
    }
    preview->domain = options->domain;
    preview->lasting = options->lasting;
    preview->log = options->log;
    preview->origins = preview_origins_new(options->loop, options->domain);
    preview->mount = (struct http_mount){.name = "preview", .encode_error = write_refusal};
    return preview;
}

void preview_set_address(struct preview *preview, uint16_t port, bool is_secure)
{
    if (preview->is_address_given)
        return;
    preview->port = port;
    preview->is_secure = is_secure;
}

/* The host of all previews, with its port where browsers need it. */
static void preview_add_host(const struct preview *preview, struct text *out)
{
    text_append(out, *preview->host ? preview->host : "localhost");
    if (preview->port && preview->port != (preview->is_secure ? 443 : 80))
        text_format(out, ":%u", preview->port);
}

struct preview_origins *preview_origins_of(struct preview *preview)
{
    return preview->origins;
}

bool preview_has_host(const struct preview *preview)
{
    return *preview->host;
}

void preview_url(const struct preview *preview, const struct port *port, struct text *out)
{
    text_format(out, "%s://%u-%s-%s.", preview->is_secure ? "https" : "http", port->number,
                port->sandbox.text, port->token);
    preview_add_host(preview, out);
    text_append_char(out, '/');
}

void preview_source(const struct preview *preview, struct text *out)
{
    text_append(out, preview->is_secure ? "https://*." : "http://*.");
    preview_add_host(preview, out);
}

void preview_forget(struct preview *preview, const struct id *sandbox, uint16_t number)
{
    preview_origins_forget(preview->origins, sandbox, number);
}

void preview_close(struct preview *preview, void (*done)(void *context), void *context)
{
    preview_origins_close(preview->origins, done, context);
    free(preview->host);
    free(preview);
}
