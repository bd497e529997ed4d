/* burrow port: ports of a sandbox that the outside may open. */
#include <stdio.h>
#include <string.h>

#include "base/number.h"
#include "cli/client/client_sandbox.h"
#include "cli/verb/verb_client.h"
#include "cli/verb/verbs.h"
#include "json/json_read.h"

static const struct verb_option expose_options[] = {
    {"name", 0, "TEXT", "for people", false},
    {"token", 0, "TEXT", "of the URL, instead of a random one", false},
    {"wake", 0, NULL, "a request wakes the sandbox", false},
    {"expires", 0, "TIME", "close it after so long: 24h, 7d", false},
    {NULL, 0, NULL, NULL, false},
};

static const struct verb_column columns[] = {
    {"PORT", "port", verb_put_number},  {"NAME", "name", verb_put_text},
    {"WAKES", "wake", verb_put_yes_no}, {"CREATED", "createdAt", verb_put_age},
    {"URL", "url", verb_put_text},      VERB_COLUMNS_END,
};

static int expose(struct verb_call *call, struct client *client, struct error *err)
{
    AUTO(client_reply) struct client_reply reply = CLIENT_REPLY_INIT;
    AUTO(json) json_t *body = json_object();
    int64_t number;

    if (number_parse(call->words[1], 1, UINT16_MAX, &number) < 0)
        return error_set(err, ERR_INVALID, 0, "'%s' is not a port from 1 to 65535", call->words[1]);
    (void) json_object_set_new(body, "port", json_integer(number));
    (void) json_object_set_new(body, "wake", json_boolean(verb_flag(call, "wake")));
    verb_set_text(body, "name", verb_value(call, "name"));
    verb_set_text(body, "token", verb_value(call, "token"));
    verb_set_text(body, "expiresIn", verb_value(call, "expires"));
    if (client_sandbox_call(client, "POST", call->words[0], "/ports", body, &reply, err) < 0)
        return -1;
    return verb_print_field(call, reply.json, "url");
}

static int list_ports(struct verb_call *call, struct client *client, struct error *err)
{
    AUTO(client_reply) struct client_reply reply = CLIENT_REPLY_INIT;

    if (client_sandbox_call(client, "GET", call->words[0], "/ports", NULL, &reply, err) < 0)
        return -1;
    if (verb_flag(call, "json")) {
        verb_print_json(reply.json);
        return 0;
    }
    return verb_print_list(call, json_object_get(reply.json, "ports"), columns);
}

static int remove_port(struct verb_call *call, struct client *client, struct error *err)
{
    AUTO(client_reply) struct client_reply reply = CLIENT_REPLY_INIT;
    int64_t number;

    if (number_parse(call->words[1], 1, UINT16_MAX, &number) < 0)
        return error_set(err, ERR_INVALID, 0, "'%s' is not a port from 1 to 65535", call->words[1]);
    if (client_sandbox_call(client, "DELETE", call->words[0],
                            pool_format(&client->pool, "/ports/%lld", (long long) number), NULL,
                            &reply, err) < 0)
        return -1;
    if (!verb_flag(call, "json"))
        (void) puts(call->words[1]);
    return 0;
}

const struct verb verb_port_expose = {
    .name = "port expose",
    .summary = "Give a port of a sandbox a URL, and print it",
    .arguments = "NAME PORT",
    .options = expose_options,
    .details = "Whoever knows the URL may open the port: its token is the key.",
    .examples = "  burrow port expose demo 8000",
    .words_min = 2,
    .words_max = 2,
    .takes_sandboxes = true,
    .work = expose,
};

const struct verb verb_port_list = {
    .name = "port ls",
    .summary = "List exposed ports of a sandbox",
    .arguments = "NAME",
    .words_min = 1,
    .words_max = 1,
    .takes_sandboxes = true,
    .work = list_ports,
};

const struct verb verb_port_remove = {
    .name = "port rm",
    .summary = "Take the URL of a port away",
    .arguments = "NAME PORT",
    .words_min = 2,
    .words_max = 2,
    .takes_sandboxes = true,
    .work = remove_port,
};
