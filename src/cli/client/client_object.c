#include "cli/client/client_object.h"

#include <string.h>

#include "net/url.h"

const char *client_object_path(struct client *client, const char *kind, const char *name,
                               const char *rest)
{
    AUTO(text) struct text escaped = TEXT_INIT(URL_LENGTH_MAX);

    url_encode(&escaped, name, strlen(name));
    return pool_format(&client->pool, CLIENT_PREFIX "/%s/%s%s", kind, text_string(&escaped), rest);
}
