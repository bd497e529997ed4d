#include "api/admission.h"

#include <string.h>
#include <strings.h>

#include "api/access.h"
#include "base/auto.h"
#include "base/memory.h"
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

int admission_init(struct admission *admission, bool without_keys, const char *hosts,
                   struct error *err)
{
    static const char *const own[] = {"localhost", "127.0.0.1", "[::1]"};

    *admission = (struct admission){.without_keys = without_keys};
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

void admission_set_key(struct admission *admission, const char *key)
{
    hash_bytes(key, strlen(key), admission->key_hash);
}

void admission_done(struct admission *admission)
{
    for (size_t i = 0; i < admission->host_count; i++)
        free(admission->hosts[i]);
    admission->host_count = 0;
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

int admission_check_source(struct http_request *request, void *data, struct error *err)
{
    const struct admission *admission = data;
    const char *asked = http_request_host(request);
    const char *origin = http_request_header(request, "origin");
    struct url_host host;

    if (!admission->without_keys)
        return 0;
    if (url_host_parse(asked, strlen(asked), &host, err) < 0 || !is_allowed_host(admission, &host))
        return error_set(err, ERR_MISDIRECTED, 0,
                         "without keys only this machine's own names are answered; add the name to "
                         "allowed-hosts if it is one");
    if ((origin && !is_own_origin(origin, &host, request->is_secure)) || is_foreign_fetch(request))
        return error_set(err, ERR_FORBIDDEN, 0,
                         "without keys a page of another origin may not use this server");
    return 0;
}

/* --- access --------------------------------------------------------------------------------- */

static const char *bearer_key(struct http_request *request)
{
    const char *value = http_request_header(request, "authorization");

    if (!value || strncasecmp(value, "bearer ", 7) != 0)
        return NULL;
    value += 7;
    return value + strspn(value, " ");
}

int admission_check_access(struct http_request *request, void *data, struct error *err)
{
    const struct admission *admission = data;
    const char *key = bearer_key(request);
    uint8_t hash[HASH_SIZE];

    if (admission->without_keys || request->match.route->access == ACCESS_PUBLIC)
        return 0;
    if (key) {
        hash_bytes(key, strlen(key), hash);
        if (hash_equal(hash, admission->key_hash, sizeof(hash)))
            return 0;
    }
    (void) http_reply_header(request, "WWW-Authenticate", "Bearer");
    return error_set(err, ERR_UNAUTHENTICATED, 0, "%s",
                     key ? "this key is not known" : "a key is needed: Authorization: Bearer KEY");
}
