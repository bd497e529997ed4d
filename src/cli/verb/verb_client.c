#include "cli/verb/verb_client.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "cli/client/client_object.h"

#define INDENT 2
#define ESCAPE 0x20 /* characters below it are control characters */
#define DELETE 0x7f

static void print_safely(const char *bytes, size_t length, FILE *out)
{
    for (size_t i = 0; i < length; i++) {
        unsigned char c = (unsigned char) bytes[i];
        bool is_control = (c < ESCAPE && c != '\n' && c != '\t') || c == DELETE;

        (void) fputc(is_control ? '?' : c, out);
    }
}

int verb_complain(int status, const struct error *err)
{
    (void) fflush(stdout);
    (void) fputs("burrow: ", stderr);
    print_safely(err->message, strnlen(err->message, sizeof(err->message)), stderr);
    (void) fputc('\n', stderr);
    return status;
}

const char *verb_field(json_t *object, const char *key)
{
    return json_string_value(json_object_get(object, key));
}

void verb_set_text(json_t *object, const char *key, const char *text)
{
    if (text)
        (void) json_object_set_new(object, key, json_string(text));
}

void verb_set_freeze(const struct verb_call *call, json_t *object)
{
    if (verb_flag(call, "no-freeze"))
        (void) json_object_set_new(object, "freeze", json_false());
}

void verb_print(const struct text *text)
{
    print_safely(text_string(text), text->length, stdout);
}

void verb_print_json(json_t *value)
{
    (void) json_dumpf(value, stdout, isatty(STDOUT_FILENO) ? JSON_INDENT(INDENT) : JSON_COMPACT);
    (void) fputc('\n', stdout);
    (void) fflush(stdout);
}

int verb_with_client(struct verb_call *call, verb_work *work, int failure_status)
{
    AUTO(client) struct client client = {.pool = POOL_INIT};
    struct error err = ERROR_INIT;
    int status;

    if (client_open(&client, verb_value(call, "url"), verb_value(call, "key"), &err) < 0)
        return verb_complain(failure_status, &err);
    status = work(call, &client, &err);
    return status < 0 ? verb_complain(failure_status, &err) : status;
}

int verb_remove_objects(struct verb_call *call, struct client *client, const char *kind)
{
    int status = 0;

    for (size_t i = 0; i < call->word_count; i++) {
        AUTO(client_reply) struct client_reply reply = CLIENT_REPLY_INIT;
        const char *path = client_object_path(client, kind, call->words[i], "");
        struct error err = ERROR_INIT;

        if (client_call(client, "DELETE", path, NULL, &reply, &err) < 0)
            status = verb_complain(VERB_STATUS_FAILURE, &err);
        else if (!verb_flag(call, "json"))
            (void) puts(call->words[i]);
    }
    return status;
}
