/* burrow db backup: a copy of all that a running daemon keeps. */
#include <stdio.h>

#include "cli/verb/verb_client.h"
#include "cli/verb/verbs.h"
#include "json/json_read.h"

static int backup(struct verb_call *call, struct client *client, struct error *err)
{
    AUTO(client_reply) struct client_reply reply = CLIENT_REPLY_INIT;
    AUTO(json) json_t *body = json_object();

    verb_set_text(body, "name", call->word_count ? call->words[0] : NULL);
    if (client_call(client, "POST", CLIENT_PREFIX "/db/backup", body, &reply, err) < 0)
        return -1;
    return verb_print_field(call, reply.json, "file");
}

const struct verb verb_db_backup = {
    .name = "db backup",
    .summary = "Copy all that the daemon keeps, while it works",
    .arguments = "[FILE]",
    .details =
        "The copy is a file in the folder `backups` of the daemon's data, on its machine; "
        "its path is\nprinted. Disks of sandboxes are not in it, and neither are the keys of "
        "its secrets: keep a\ncopy of the file keys/ring beside it.",
    .words_max = 1,
    .work = backup,
};
