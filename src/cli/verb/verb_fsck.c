/* burrow fsck: look whether everything that is promised is there. */
#include <stdio.h>

#include "cli/verb/verb_client.h"
#include "cli/verb/verbs.h"
#include "json/json_read.h"

#define OUTPUT_MAX ((size_t) 16 * 1024 * 1024)

static const struct verb_option options[] = {
    {"deep", 0, NULL, "read every byte that is stored, and check its sum", false},
    {NULL, 0, NULL, NULL, false},
};

static const char *field(json_t *object, const char *key)
{
    const char *text = verb_field(object, key);

    return text ? text : "?";
}

static void print_findings(json_t *reply)
{
    AUTO(text) struct text out = TEXT_INIT(OUTPUT_MAX);
    const json_t *findings = json_object_get(reply, "findings");

    for (size_t i = 0; i < json_array_size(findings); i++) {
        json_t *finding = json_array_get(findings, i);

        text_format(&out, "%s: %s %s: %s\n", field(finding, "is"), field(finding, "what"),
                    field(finding, "name"), field(finding, "detail"));
    }
    if (json_is_true(json_object_get(reply, "truncated")))
        text_format(&out, "... and more of them\n");
    text_format(&out,
                "%lld sandboxes, %lld snapshots, %lld layers, %lld backups, %lld workspaces, %lld "
                "objects, %lld bytes read: %lld lost, %lld garbage\n",
                verb_number(reply, "sandboxes"), verb_number(reply, "snapshots"),
                verb_number(reply, "layers"), verb_number(reply, "backups"),
                verb_number(reply, "workspaces"), verb_number(reply, "objects"),
                verb_number(reply, "bytesRead"), verb_number(reply, "lost"),
                verb_number(reply, "garbage"));
    verb_print(&out);
}

static int inspect(struct verb_call *call, struct client *client, struct error *err)
{
    AUTO(client_reply) struct client_reply reply = CLIENT_REPLY_INIT;
    AUTO(json) json_t *body = json_pack("{s:b}", "deep", verb_flag(call, "deep"));

    if (client_call(client, "POST", CLIENT_PREFIX "/fsck", body, &reply, err) < 0)
        return -1;
    if (verb_flag(call, "json"))
        verb_print_json(reply.json);
    else
        print_findings(reply.json);
    return verb_number(reply.json, "lost") == 0 ? 0 : VERB_STATUS_FAILURE;
}

const struct verb verb_fsck = {
    .name = "fsck",
    .summary = "Look whether everything that is promised is there",
    .arguments = "",
    .options = options,
    .details =
        "Compares what is known of sandboxes, snapshots, layers, backups and workspaces with "
        "disks and\nobjects, while everything goes on, and changes nothing. A line for each "
        "finding: `lost` is missing\nor damaged, `garbage` is there and belongs to nobody. "
        "The status is 1 when something is lost.",
    .work = inspect,
};
