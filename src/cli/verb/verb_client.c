#include "cli/verb/verb_client.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/number.h"
#include "cli/grid.h"

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

long long verb_number(json_t *object, const char *key)
{
    return (long long) json_integer_value(json_object_get(object, key));
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

int verb_print_field(const struct verb_call *call, json_t *answer, const char *field)
{
    if (verb_flag(call, "json"))
        verb_print_json(answer);
    else if (verb_field(answer, field))
        (void) puts(verb_field(answer, field));
    return 0;
}

void verb_put_text(struct grid *grid, json_t *object, const char *field)
{
    grid_put(grid, verb_field(object, field));
}

void verb_put_number(struct grid *grid, json_t *object, const char *field)
{
    if (json_is_integer(json_object_get(object, field)))
        grid_format(grid, "%lld", verb_number(object, field));
    else
        grid_put(grid, NULL);
}

void verb_put_size(struct grid *grid, json_t *object, const char *field)
{
    char size[NUMBER_TEXT_SIZE] = "";

    if (json_is_integer(json_object_get(object, field)) && verb_number(object, field) >= 0)
        number_format_size((uint64_t) verb_number(object, field), size);
    grid_put(grid, size);
}

void verb_put_yes_no(struct grid *grid, json_t *object, const char *field)
{
    grid_put(grid, json_is_true(json_object_get(object, field)) ? "yes" : "no");
}

void verb_put_age(struct grid *grid, json_t *object, const char *field)
{
    grid_put(grid, grid_age(grid, verb_field(object, field), clock_wall_ms(clock_system())));
}

int verb_print_list(const struct verb_call *call, json_t *list, const struct verb_column *columns)
{
    const char *titles[GRID_COLUMNS_MAX + 1] = {NULL};
    AUTO(grid) struct grid grid = GRID_INIT;
    AUTO(text) struct text out = TEXT_INIT(GRID_TEXT_MAX);
    json_t *one;
    size_t i;

    if (verb_flag(call, "json")) {
        verb_print_json(list);
        return 0;
    }
    for (size_t column = 0; columns[column].title; column++)
        titles[column] = columns[column].title;
    grid_titles(&grid, titles);
    json_array_foreach (list, i, one) {
        for (const struct verb_column *column = columns; column->title; column++)
            column->put(&grid, one, column->field);
    }
    grid_write(&grid, &out);
    verb_print(&out);
    return 0;
}

int verb_print_lines(json_t *list, const char *field)
{
    AUTO(text) struct text out = TEXT_INIT(GRID_TEXT_MAX);
    json_t *one;
    size_t i;

    json_array_foreach (list, i, one) {
        const char *text = verb_field(one, field);

        text_format(&out, "%s\n", text ? text : verb_field(one, "id"));
    }
    verb_print(&out);
    return 0;
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
        const char *path = client_path(client, kind, call->words[i], "");
        struct error err = ERROR_INIT;

        if (client_call(client, "DELETE", path, NULL, &reply, &err) < 0)
            status = verb_complain(VERB_STATUS_FAILURE, &err);
        else if (!verb_flag(call, "json"))
            (void) puts(call->words[i]);
    }
    return status;
}
