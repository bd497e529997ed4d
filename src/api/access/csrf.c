#include "api/access/csrf.h"

#include <string.h>
#include <strings.h>

#include "base/auto.h"
#include "net/url.h"

bool csrf_is_at_stake(const struct http_request *request)
{
    static const char *const harmless[] = {"GET", "HEAD", "OPTIONS"};

    if (request->head->upgrade)
        return true;
    for (size_t i = 0; i < ARRAY_COUNT(harmless); i++) {
        if (strcmp(request->head->method, harmless[i]) == 0)
            return false;
    }
    return true;
}

bool csrf_is_own_origin(const char *origin, const struct url_host *asked, bool is_secure)
{
    struct url url;
    struct url_host host;
    uint16_t usual;

    if (url_parse(origin, strlen(origin), &url, NULL) < 0)
        return false;
    if (is_secure && !url_scheme_is_secure(url.scheme))
        return false;
    url_host_of(&url, &host);
    usual = url_scheme_is_secure(url.scheme) ? 443 : 80;
    return strcmp(host.name, asked->name) == 0 && host.port == (asked->port ? asked->port : usual);
}

int csrf_check(struct http_request *request, const struct origins *origins, bool is_secure,
               struct error *err)
{
    const char *site = http_request_header(request, "sec-fetch-site");
    const char *origin = http_request_header(request, "origin");
    const char *from = origin ? origin : http_request_header(request, "referer");
    const char *asked = http_request_host(request);
    struct url_host host;

    if (!site && !from)
        return 0;
    if (from && origins_has(origins, from))
        return 0;
    if (site && (strcasecmp(site, "same-origin") == 0 || strcasecmp(site, "none") == 0))
        return 0;
    if (!site && url_host_parse(asked, strlen(asked), &host, NULL) == 0 &&
        csrf_is_own_origin(from, &host, is_secure))
        return 0;
    return error_set(err, ERR_FORBIDDEN, 0,
                     "a page of another origin may not do this with your login");
}
