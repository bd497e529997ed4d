/* burrow sync: the working folder of a sandbox, mirrored in the object store. */
#include <inttypes.h>
#include <stdio.h>

#include "base/number.h"
#include "cli/client/client_sandbox.h"
#include "cli/verb/verb_client.h"
#include "cli/verb/verbs.h"
#include "json/json_read.h"

static const struct verb_option options[] = {
    {"restore", 0, NULL, "the other way round: make the folder what the mirror holds", false},
    VERB_FREEZE_OPTION,
    {"show", 0, NULL, "only say what the mirror holds", false},
    {NULL, 0, NULL, NULL, false},
};

static uint64_t number(json_t *json, const char *key)
{
    return (uint64_t) json_integer_value(json_object_get(json, key));
}

static void sync_print(json_t *json, bool is_restore, bool is_show)
{
    char size[NUMBER_TEXT_SIZE];

    number_format_size(number(json, "totalSize"), size);
    if (is_restore)
        (void) printf("%" PRIu64 " files restored, %s\n", number(json, "restoredFiles"), size);
    else if (is_show)
        (void) printf("%" PRIu64 " files, %s, synced at %s\n", number(json, "totalFiles"), size,
                      verb_field(json, "syncedAt"));
    else
        (void) printf("%" PRIu64 " files put, %" PRIu64 " unchanged, %" PRIu64 " removed, %" PRIu64
                      " left out; %" PRIu64 " files, %s in all\n",
                      number(json, "syncedFiles"), number(json, "unchangedFiles"),
                      number(json, "removedFiles"), number(json, "skippedFiles"),
                      number(json, "totalFiles"), size);
}

static int sync_one(struct verb_call *call, struct client *client, struct error *err)
{
    AUTO(client_reply) struct client_reply reply = CLIENT_REPLY_INIT;
    bool is_restore = verb_flag(call, "restore"), is_show = verb_flag(call, "show");
    AUTO(json) json_t *body = json_object();

    if (is_restore + is_show + verb_flag(call, "no-freeze") > 1)
        return error_set(err, ERR_INVALID, 0,
                         "--restore, --show and --no-freeze exclude each other");
    verb_set_freeze(call, body);
    if (client_sandbox_call(client, is_show ? "GET" : "POST", call->words[0],
                            is_restore ? "/sync/restore" : "/sync", is_show ? NULL : body, &reply,
                            err) < 0)
        return -1;
    if (verb_flag(call, "json"))
        verb_print_json(reply.json);
    else
        sync_print(reply.json, is_restore, is_show);
    return 0;
}

const struct verb verb_sync = {
    .name = "sync",
    .summary = "Mirror the working folder of a sandbox in the object store, file by file",
    .arguments = "NAME",
    .options = options,
    .words_min = 1,
    .words_max = 1,
    .takes_sandboxes = true,
    .examples = "  burrow sync demo\n  burrow sync --restore demo",
    .work = sync_one,
};
