/* burrow cp: files and folders into a sandbox and out of it. */
#include <stdio.h>
#include <string.h>

#include "cli/client/client_sandbox.h"
#include "cli/copy/copy.h"
#include "cli/verb/verb_client.h"
#include "cli/verb/verbs.h"

static const struct verb_option options[] = {
    {"quiet", 'q', NULL, "show no progress", false},
    {NULL, 0, NULL, NULL, false},
};

static int copy_one(struct verb_call *call, struct client *client, struct error *err)
{
    AUTO(client_reply) struct client_reply reply = CLIENT_REPLY_INIT;
    struct copy copy = {.client = client, .is_quiet = verb_flag(call, "quiet")};
    const char *folder;
    bool is_into;
    int r;

    copy_place_read(call->words[0], &client->pool, &copy.from);
    copy_place_read(call->words[1], &client->pool, &copy.to);
    is_into = copy.to.kind == COPY_THERE;
    if (is_into == (copy.from.kind == COPY_THERE))
        return error_set(err, ERR_INVALID, 0,
                         "one of the two must be in a sandbox, as NAME:PATH: burrow cp %s",
                         call->verb->arguments);
    copy.sandbox = is_into ? copy.to.sandbox : copy.from.sandbox;
    if (client_sandbox_call(client, "GET", copy.sandbox, "", NULL, &reply, err) < 0)
        return -1;
    folder = json_string_value(json_object_get(reply.json, "folder"));
    copy.folder = pool_copy_text(&client->pool, folder ? folder : "/");
    r = is_into ? copy_into(&copy, err) : copy_out(&copy, err);
    if (r == 0 && verb_flag(call, "json") && copy.to.kind != COPY_STREAM)
        (void) printf("{\"bytes\":%llu}\n", (unsigned long long) copy.progress.done);
    return r;
}

const struct verb verb_copy = {
    .name = "cp",
    .summary = "Copy files and folders into a sandbox and out of it",
    .arguments = "FROM TO",
    .options = options,
    .details =
        "One of the two is NAME:PATH, the other a path here, or - for stdin or stdout. Paths in a "
        "sandbox\nbegin in its folder, /workspace. What is copied to a folder that is there goes "
        "into it; the\ncontent alone is copied with a last /. as in cp(1). A folder as - is a tar "
        "archive, and a tar\narchive from - goes to a PATH that ends in /.",
    .examples = "  burrow cp notes.txt demo:\n"
                "  burrow cp demo:/workspace/out .\n"
                "  burrow cp demo:log.txt - | less\n"
                "  git archive HEAD | burrow cp - demo:src/",
    .words_min = 2,
    .words_max = 2,
    .takes_sandboxes = true,
    .work = copy_one,
};
