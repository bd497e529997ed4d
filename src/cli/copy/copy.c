#include "cli/copy/copy.h"

#include <string.h>

#include "cli/client/client_sandbox.h"
#include "net/url.h"

const char *copy_file_path(struct copy *copy, const char *path, const char *query)
{
    AUTO(text) struct text rest = TEXT_INIT(URL_LENGTH_MAX);

    text_append(&rest, "/files");
    url_encode_path(&rest, path, strlen(path));
    text_append(&rest, query);
    return client_sandbox_path(copy->client, copy->sandbox, text_string(&rest));
}

const char *copy_archive_path(struct copy *copy, const char *path)
{
    AUTO(text) struct text rest = TEXT_INIT(URL_LENGTH_MAX);

    text_append(&rest, "/archive?links=any&path=");
    url_encode(&rest, path, strlen(path));
    return client_sandbox_path(copy->client, copy->sandbox, text_string(&rest));
}

int copy_is_folder_there(struct copy *copy, const char *path, struct error *err)
{
    AUTO(client_reply) struct client_reply reply = CLIENT_REPLY_INIT;

    if (strcmp(path, "/") == 0)
        return 1;
    if (client_call(copy->client, "GET", copy_file_path(copy, path, "?list=1"), NULL, &reply,
                    err) == 0)
        return 1;
    if (reply.status != 400 && reply.status != 404)
        return -1;
    error_clear(err);
    return 0;
}

void copy_show(struct copy *copy, const char *what, int64_t total)
{
    progress_begin(&copy->progress, what, total);
    copy->progress.is_wanted = copy->progress.is_wanted && !copy->is_quiet;
}
