#include "agent/command/execute_request.h"

#include <string.h>

#include "base/encoding/encode.h"
#include "json/json_read.h"

/* An error of the JSON layer names the field in its message; ours names it apart, too. */
static int execute_request_refuse(struct api_error *error, const char *field,
                                  const struct error *err)
{
    return api_error_field(error, field, err->message);
}

static bool execute_request_is_blank(const char *text)
{
    return !text[strspn(text, " \t\r\n")];
}

static int execute_request_read_text(const struct json_place *root, const char *key, size_t maximum,
                                     const char **ret_text, struct api_error *error)
{
    struct error err = ERROR_INIT;

    if (json_field_text(root, key, JSON_OPTIONAL, maximum, ret_text, &err) < 0)
        return execute_request_refuse(error, key, &err);
    return 0;
}

/* --- the command ---------------------------------------------------------------------------- */

static const char *execute_request_join(const struct json_texts *words, struct pool *pool)
{
    AUTO(text) struct text line = TEXT_INIT(EXECUTE_COMMAND_MAX);

    for (size_t i = 0; i < words->count; i++) {
        if (i)
            text_append_char(&line, ' ');
        text_append(&line, words->items[i]);
    }
    return pool_copy_bytes(pool, text_string(&line), line.length);
}

static int read_arguments(const struct json_place *root, struct pool *pool,
                          struct execute_request *request, struct api_error *error)
{
    struct error err = ERROR_INIT;
    struct json_texts words = {.count = 0};
    const char **arguments;

    if (json_field_texts(root, "argv", JSON_REQUIRED, EXECUTE_ARGUMENTS_MAX, EXECUTE_COMMAND_MAX,
                         pool, &words, &err) < 0)
        return execute_request_refuse(error, "argv", &err);
    if (!words.count || !words.items[0][0])
        return api_error_set(error, API_INVALID_COMMAND, "argv must begin with a program");
    arguments = pool_alloc(pool, (words.count + 1) * sizeof(*arguments));
    memcpy(arguments, words.items, words.count * sizeof(*arguments));
    request->arguments = arguments;
    request->command = execute_request_join(&words, pool);
    return 0;
}

static int read_command(const struct json_place *root, struct pool *pool,
                        struct execute_request *request, struct api_error *error)
{
    if (execute_request_read_text(root, "command", EXECUTE_COMMAND_MAX, &request->command, error) <
        0)
        return -1;
    if (!request->command && json_object_get(root->value, "argv"))
        return read_arguments(root, pool, request, error);
    if (!request->command)
        return api_error_field(error, "command", "a command is required");
    if (execute_request_is_blank(request->command))
        return api_error_set(error, API_INVALID_COMMAND, "Command cannot be empty");
    return 0;
}

/* --- the rest ------------------------------------------------------------------------------- */

/* "utf-8", "utf8" or "base64". */
static int read_encoding(const struct json_place *root, const char *key, bool *ret_base64,
                         struct api_error *error)
{
    const char *name = NULL;

    if (execute_request_read_text(root, key, 16, &name, error) < 0)
        return -1;
    *ret_base64 = name && strcmp(name, "base64") == 0;
    if (name && !*ret_base64 && strcmp(name, "utf-8") != 0 && strcmp(name, "utf8") != 0)
        return api_error_field(error, key, "must be utf-8 or base64");
    return 0;
}

static int read_input(const struct json_place *root, struct pool *pool,
                      struct execute_request *request, struct api_error *error)
{
    bool base64 = false;
    size_t length;
    char *bytes;

    if (execute_request_read_text(root, "stdin", EXECUTE_BODY_MAX, &request->input, error) < 0 ||
        read_encoding(root, "stdinEncoding", &base64, error) < 0)
        return -1;
    if (!request->input)
        return 0;
    length = strlen(request->input);
    request->input_length = length;
    if (!base64)
        return 0;
    bytes = pool_alloc_raw(pool, BASE64_BYTES_MAX(length));
    if (base64_decode(BASE64_STANDARD, request->input, length, bytes, BASE64_BYTES_MAX(length),
                      &request->input_length) < 0)
        return api_error_field(error, "stdin", "is not base64");
    request->input = bytes;
    return 0;
}

static int read_settings(const struct json_place *root, struct execute_request *request,
                         struct api_error *error)
{
    struct error err = ERROR_INIT;
    int64_t timeout_ms = 0;

    if (execute_request_read_text(root, "cwd", EXECUTE_PATH_MAX, &request->directory, error) < 0 ||
        execute_request_read_text(root, "user", EXECUTE_USER_MAX, &request->user, error) < 0 ||
        read_encoding(root, "encoding", &request->base64, error) < 0)
        return -1;
    if (json_field_integer(root, "timeoutMs", JSON_OPTIONAL, 0, EXECUTE_TIMEOUT_MAX, &timeout_ms,
                           &err) < 0)
        return execute_request_refuse(error, "timeoutMs", &err);
    if (json_field_boolean(root, "background", JSON_OPTIONAL, &request->background, &err) < 0)
        return execute_request_refuse(error, "background", &err);
    if (json_field_boolean(root, "plain", JSON_OPTIONAL, &request->plain, &err) < 0)
        return execute_request_refuse(error, "plain", &err);
    request->timeout_ms = (uint64_t) timeout_ms;
    if (request->directory && !request->directory[0])
        request->directory = NULL;
    return 0;
}

int execute_request_read(json_t *body, struct pool *pool, struct execute_request *ret_request,
                         struct api_error *error)
{
    struct execute_request request = {.command = NULL};
    struct error err = ERROR_INIT;
    struct json_place root;

    if (json_root_object(body, &root, &err) < 0)
        return execute_request_refuse(error, "body", &err);
    if (read_command(&root, pool, &request, error) < 0 ||
        variables_read(&root, false, pool, &request.variables, error) < 0 ||
        read_settings(&root, &request, error) < 0 || read_input(&root, pool, &request, error) < 0)
        return -1;
    *ret_request = request;
    return 0;
}
