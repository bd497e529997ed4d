#include "api/access/admission.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "api/access/access.h"
#include "api/access/credential.h"
#include "api/access/csrf.h"
#include "api/access/lasting.h"
#include "base/auto.h"
#include "base/memory.h"
#include "base/number.h"
#include "domain/event/audit.h"
#include "domain/identity/api_key.h"
#include "domain/identity/login.h"
#include "domain/identity/owner.h"
#include "net/url.h"

static int add_host(struct admission *admission, const char *text, size_t length, struct error *err)
{
    struct url_host host;

    if (admission->host_count == ADMISSION_HOSTS_MAX)
        return error_set(err, ERR_INVALID, 0, "more than %d allowed hosts", ADMISSION_HOSTS_MAX);
    if (url_host_parse(text, length, &host, err) < 0 || host.port)
        return error_set(err, ERR_INVALID, 0, "allowed host '%.*s' is not a host name",
                         (int) length, text);
    admission->hosts[admission->host_count++] = mem_copy_text(host.name);
    return 0;
}

static int add_hosts(struct admission *admission, const char *hosts, struct error *err)
{
    static const char *const own[] = {"localhost", "127.0.0.1", "[::1]"};

    for (size_t i = 0; i < ARRAY_COUNT(own); i++)
        (void) add_host(admission, own[i], strlen(own[i]), NULL);
    while (*hosts) {
        size_t length = strcspn(hosts, ",");

        if (add_host(admission, hosts, length, err) < 0)
            return -1;
        hosts += length + (hosts[length] == ',');
    }
    return 0;
}

int admission_init(struct admission *admission, const struct admission_options *options,
                   struct error *err)
{
    *admission = (struct admission){.without_keys = options->without_keys};
    admission->clock = options->clock ? options->clock : clock_system();
    throttle_init(&admission->failures, ADMISSION_FAILURES_BURST, ADMISSION_FAILURES_A_MINUTE);
    if (add_hosts(admission, options->hosts ? options->hosts : "", err) < 0 ||
        trusted_proxies_read(&admission->proxies, options->proxies ? options->proxies : "", err) <
            0)
        return -1;
    return origins_read(&admission->origins, options->origins ? options->origins : "", err);
}

void admission_open(struct admission *admission, struct domain *domain, struct lasting *lasting,
                    const struct id *administrator)
{
    admission->domain = domain;
    admission->lasting = lasting;
    admission->administrator = *administrator;
}

void admission_close(struct admission *admission)
{
    admission->domain = NULL;
    admission->lasting = NULL;
}

void admission_done(struct admission *admission)
{
    for (size_t i = 0; i < admission->host_count; i++)
        free(admission->hosts[i]);
    admission->host_count = 0;
    origins_done(&admission->origins);
    throttle_done(&admission->failures);
}

/* --- source --------------------------------------------------------------------------------- */

static bool is_allowed_host(const struct admission *admission, const struct url_host *host)
{
    for (size_t i = 0; i < admission->host_count; i++) {
        if (strcmp(admission->hosts[i], host->name) == 0)
            return true;
    }
    return false;
}

/* Whether the page's origin is the very host and port that was asked. */
static bool is_own_origin(const char *origin, const struct url_host *asked, bool secure)
{
    struct url url;
    struct url_host host;
    uint16_t port = asked->port ? asked->port : secure ? 443 : 80;

    if (url_parse(origin, strlen(origin), &url, NULL) < 0)
        return false;
    url_host_of(&url, &host);
    return strcmp(host.name, asked->name) == 0 && host.port == port;
}

/* A person may follow a link to us from anywhere; a page may not load or send anything. */
static bool is_foreign_fetch(struct http_request *request)
{
    const char *site = http_request_header(request, "sec-fetch-site");
    const char *mode = http_request_header(request, "sec-fetch-mode");

    if (!site || strcasecmp(site, "same-origin") == 0 || strcasecmp(site, "none") == 0)
        return false;
    return !mode || strcasecmp(mode, "navigate") != 0 || strcmp(request->head->method, "GET") != 0;
}

/* Which page sent it, as far as the browser says: old ones tell a form's page in Referer alone.
 * Those that know Sec-Fetch-Site have said what Referer can tell, and more. */
static const char *page_of(const struct http_request *request)
{
    const char *origin = http_request_header(request, "origin");

    if (origin || http_request_header(request, "sec-fetch-site"))
        return origin;
    return http_request_header(request, "referer");
}

static int check_without_keys(const struct admission *admission, struct http_request *request,
                              struct error *err)
{
    const char *asked = http_request_host(request);
    const char *page = page_of(request);
    struct url_host host;

    if (url_host_parse(asked, strlen(asked), &host, err) < 0 || !is_allowed_host(admission, &host))
        return error_set(err, ERR_MISDIRECTED, 0,
                         "without keys only this machine's own names are answered; add the name to "
                         "allowed-hosts if it is one");
    if (page && origins_has(&admission->origins, page))
        return 0;
    if ((page && !is_own_origin(page, &host, request->is_secure)) || is_foreign_fetch(request))
        return error_set(err, ERR_FORBIDDEN, 0,
                         "without keys a page of another origin may not use this server; start it "
                         "with keys, or name the page's origin in cors-origins");
    return 0;
}

static void answer_preflight(struct http_request *request)
{
    const struct admission *admission = request->context;

    origins_answer_preflight(&admission->origins, request);
}

int admission_check_source(struct http_request *request, void *data, struct error *err)
{
    struct admission *admission = data;

    if (admission->without_keys && check_without_keys(admission, request, err) < 0)
        return -1;
    if (origins_is_preflight(request)) {
        request->context = admission;
        request->intercepted = answer_preflight;
    } else {
        origins_add_headers(&admission->origins, request);
    }
    return 0;
}

/* --- who it is ------------------------------------------------------------------------------- */

/* WebSockets of browsers can set no header; nor can whoever opens the bridge's document. */
static struct url_span query_of(const struct http_request *request)
{
    static const char document[] = "/v1/openapi";
    struct url_span path = request->target.path;

    if (request->head->upgrade || (path.length >= sizeof(document) - 1 &&
                                   memcmp(path.text, document, sizeof(document) - 1) == 0))
        return request->target.query;
    return url_span(NULL, 0);
}

/* A cookie holds the token of a login; elsewhere it may be a key, too. */
static int look_up(struct domain *domain, const struct credential *credential,
                   struct caller *caller, struct error *err)
{
    if (credential->source != CREDENTIAL_COOKIE &&
        api_key_check(domain, credential->secret, caller, err) == 0)
        return 0;
    return login_check(domain, credential->secret, caller, NULL, err);
}

static void retry_after(struct http_request *request, unsigned int seconds)
{
    char text[NUMBER_TEXT_SIZE];

    (void) number_format(seconds, text);
    (void) http_reply_header(request, "Retry-After", text);
}

/* All wrong credentials get this one answer, until there were too many. */
static int admission_refuse(struct admission *admission, struct http_request *request,
                            const struct client_address *from, struct error *err)
{
    unsigned int seconds = 0;

    if (!throttle_take(&admission->failures, from->network, clock_monotonic_ns(admission->clock),
                       &seconds)) {
        retry_after(request, seconds);
        return error_set(err, ERR_RATE_LIMITED, 0,
                         "too many wrong keys from this address; wait %u s", seconds);
    }
    (void) http_reply_header(request, "WWW-Authenticate", "Bearer");
    return error_set(err, ERR_UNAUTHENTICATED, 0, "this key is not known");
}

static int identify(struct admission *admission, struct http_request *request,
                    const struct client_address *from, struct caller *caller, struct error *err)
{
    bool is_open = request->match.route->access == ACCESS_PUBLIC;
    struct credential credential =
        credential_find(request->head, query_of(request), from->is_secure, &request->pool);

    /* A key in a header proves that no page sent this by itself. */
    if ((credential.source == CREDENTIAL_COOKIE || credential.source == CREDENTIAL_NONE) &&
        csrf_is_at_stake(request) &&
        csrf_check(request, &admission->origins, from->is_secure, err) < 0)
        return -1;
    if (!admission->domain)
        return is_open
                   ? 0
                   : error_set(err, ERR_UNAVAILABLE, 0, "the daemon is starting or shutting down");
    if (credential.secret && look_up(admission->domain, &credential, caller, err) == 0)
        return 0;
    if (is_open)
        return 0;
    if (credential.secret)
        return admission_refuse(admission, request, from, err);
    (void) http_reply_header(request, "WWW-Authenticate", "Bearer");
    return error_set(err, ERR_UNAUTHENTICATED, 0, "a key is needed: Authorization: Bearer KEY");
}

/* --- whether that is enough ------------------------------------------------------------------ */

#define BIT(scope) (1u << (scope))
#define WIDE       (BIT(CALLER_ADMIN) | BIT(CALLER_SYSTEM))

static const unsigned int lets_in[ACCESS_COUNT] = {
    [ACCESS_ADMIN] = WIDE,
    [ACCESS_WRITE] = WIDE | BIT(CALLER_WRITE),
    [ACCESS_READ] = WIDE | BIT(CALLER_WRITE) | BIT(CALLER_SANDBOX) | BIT(CALLER_READ),
    [ACCESS_ENTER] = WIDE | BIT(CALLER_WRITE) | BIT(CALLER_SANDBOX),
    [ACCESS_PUBLIC] = ~0u,
    [ACCESS_SIGNED_IN] = ~BIT(CALLER_NOBODY),
};

/* For people, of those that let in. */
static const char *const wanted[ACCESS_COUNT] = {
    [ACCESS_ADMIN] = "'admin'",     [ACCESS_WRITE] = "'write'",
    [ACCESS_READ] = "'read'",       [ACCESS_ENTER] = "'write', or 'sandbox' for that one",
    [ACCESS_PUBLIC] = "of anybody", [ACCESS_SIGNED_IN] = "of anybody",
};

static int check_scope(const struct http_request *request, const struct caller *caller,
                       struct error *err)
{
    unsigned int access = request->match.route->access;

    if (access < ACCESS_COUNT && (lets_in[access] & BIT(caller->scope)))
        return 0;
    return error_set(err, ERR_FORBIDDEN, 0,
                     "a key with the scope '%s' may not do this; it needs the scope %s",
                     api_key_scope_text(caller->scope),
                     access < ACCESS_COUNT ? wanted[access] : wanted[ACCESS_ADMIN]);
}

static void tell_rate(struct admission *admission, struct http_request *request,
                      const struct owner *owner)
{
    double most = owner->quota.requests_per_minute;
    double seconds = (most - owner->tokens) * 60 / most;
    char text[NUMBER_TEXT_SIZE];

    (void) number_format(owner->quota.requests_per_minute, text);
    (void) http_reply_header(request, "X-RateLimit-Limit", text);
    (void) number_format((int64_t) owner->tokens, text);
    (void) http_reply_header(request, "X-RateLimit-Remaining", text);
    (void) number_format(clock_wall_ms(admission->clock) / 1000 + (int64_t) seconds + 1, text);
    (void) http_reply_header(request, "X-RateLimit-Reset", text);
}

static int check_rate(struct admission *admission, struct http_request *request,
                      const struct caller *caller, struct error *err)
{
    struct owner *owner = owner_find(admission->domain, &caller->owner);
    unsigned int seconds = 0;
    bool is_good;

    if (!owner || !owner->quota.requests_per_minute)
        return 0;
    is_good = owner_take_request(admission->domain, owner, &seconds);
    tell_rate(admission, request, owner);
    if (is_good)
        return 0;
    retry_after(request, seconds);
    return error_set(err, ERR_RATE_LIMITED, 0, "at most %u requests a minute; wait %u s",
                     owner->quota.requests_per_minute, seconds);
}

static int decide(struct admission *admission, struct http_request *request,
                  const struct client_address *from, struct caller *caller, struct error *err)
{
    if (admission->without_keys) {
        caller->scope = CALLER_ADMIN;
        caller->owner = admission->administrator;
        return admission->domain || request->match.route->access == ACCESS_PUBLIC
                   ? 0
                   : error_set(err, ERR_UNAVAILABLE, 0, "the daemon is starting or shutting down");
    }
    if (identify(admission, request, from, caller, err) < 0 ||
        check_scope(request, caller, err) < 0)
        return -1;
    if (request->match.route->access == ACCESS_PUBLIC)
        return 0;
    return check_rate(admission, request, caller, err);
}

/* Which object it was about: the first name in the path. */
static const char *object_of(const struct http_request *request)
{
    return request->match.parameter_count ? request->match.parameters[0].value : "";
}

/* Somebody may not, has too much already, or is too fast; not that a request makes no sense. */
static bool is_denial(enum err_code code)
{
    return code == ERR_UNAUTHENTICATED || code == ERR_FORBIDDEN || code == ERR_QUOTA ||
           code == ERR_RATE_LIMITED;
}

static void admission_note(struct admission *admission, struct http_request *request,
                           const struct error *error)
{
    if (admission->domain && is_denial(error->code))
        audit_add(admission->domain, request->caller,
                  pool_format(&request->pool, "%s %s", request->head->method,
                              request->match.route->pattern),
                  object_of(request), error);
}

static bool is_public(const struct http_request *request)
{
    return request->match.route->access == ACCESS_PUBLIC;
}

int admission_check_access(struct http_request *request, void *data, struct error *err)
{
    struct admission *admission = data;
    struct caller *caller = pool_alloc(&request->pool, sizeof(*caller));
    struct client_address from;

    client_address_find(&admission->proxies, request, &from);
    caller->request = request->id;
    (void) snprintf(caller->address, sizeof(caller->address), "%s", from.text);
    request->caller = caller;
    if (decide(admission, request, &from, caller, err) == 0) {
        if (*caller->credential.text)
            lasting_note(admission->lasting, caller);
        return 0;
    }
    if (is_public(request))
        admission_note(admission, request, err);
    return -1;
}

/* Routes that are open to everybody note for themselves whom they refuse: logins do. */
void admission_note_denial(struct http_request *request, const struct error *error, void *data)
{
    if (request->caller && request->match.route && !is_public(request))
        admission_note(data, request, error);
}
