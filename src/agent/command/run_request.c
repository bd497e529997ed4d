#include "agent/command/run_request.h"

#include <signal.h>
#include <string.h>

#include "agent/command/run.h"

#define TERMINAL_NAME "xterm-256color"
/* Beyond letters and digits: what names in terminfo have. No '/', they become paths. */
#define TERMINAL_NAME_CHARACTERS                                                                   \
    "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-+._"
#define ORDER_TEXT_MAX ((size_t) 16)

static int run_request_refuse(struct api_error *error, const struct error *err)
{
    return api_error_set(error, API_VALIDATION_FAILED, "%s", err->message);
}

/* --- the command ---------------------------------------------------------------------------- */

static int read_arguments(const struct json_place *root, struct pool *pool,
                          struct run_request *request, struct api_error *error)
{
    struct json_texts words = {.count = 0};
    struct error err = ERROR_INIT;
    const char **arguments;

    if (json_field_texts(root, "argv", JSON_OPTIONAL, RUN_ARGUMENTS_MAX, RUN_TEXT_MAX, pool, &words,
                         &err) < 0)
        return run_request_refuse(error, &err);
    if (!words.items)
        return 0;
    if (!words.count || !words.items[0][0])
        return api_error_field(error, "argv", "must begin with a program");
    arguments = pool_alloc(pool, (words.count + 1) * sizeof(*arguments));
    memcpy(arguments, words.items, words.count * sizeof(*arguments));
    request->arguments = arguments;
    return 0;
}

static int read_command(const struct json_place *root, struct pool *pool,
                        struct run_request *request, struct api_error *error)
{
    struct error err = ERROR_INIT;

    if (read_arguments(root, pool, request, error) < 0)
        return -1;
    if (json_field_text(root, "command", JSON_OPTIONAL, RUN_TEXT_MAX, &request->command, &err) < 0)
        return run_request_refuse(error, &err);
    if (!request->command == !request->arguments)
        return api_error_field(error, "argv", "either argv or command is required");
    if (request->command && !request->command[strspn(request->command, " \t\r\n")])
        return api_error_field(error, "command", "must not be empty");
    return 0;
}

static int run_request_read_size(const struct json_place *place, struct exec_terminal *ret_size,
                                 struct error *err)
{
    int64_t columns = 0, rows = 0;

    if (json_field_integer(place, "columns", JSON_REQUIRED, 1, RUN_TERMINAL_SIZE_MAX, &columns,
                           err) < 0 ||
        json_field_integer(place, "rows", JSON_REQUIRED, 1, RUN_TERMINAL_SIZE_MAX, &rows, err) < 0)
        return -1;
    *ret_size = (struct exec_terminal){.columns = (uint16_t) columns, .rows = (uint16_t) rows};
    return 0;
}

static int read_terminal(const struct json_place *root, struct run_request *request,
                         struct api_error *error)
{
    static const char *const fields[] = {"columns", "rows", "name"};
    struct error err = ERROR_INIT;
    struct json_place terminal;

    if (json_field_object(root, "terminal", JSON_OPTIONAL, &terminal, &err) < 0)
        return run_request_refuse(error, &err);
    if (!terminal.value)
        return 0;
    request->has_terminal = true;
    request->terminal_name = TERMINAL_NAME;
    if (json_known_fields(&terminal, fields, ARRAY_COUNT(fields), &err) < 0 ||
        run_request_read_size(&terminal, &request->terminal, &err) < 0 ||
        json_field_text(&terminal, "name", JSON_OPTIONAL, RUN_TERMINAL_NAME_MAX,
                        &request->terminal_name, &err) < 0)
        return run_request_refuse(error, &err);
    if (!*request->terminal_name ||
        request->terminal_name[strspn(request->terminal_name, TERMINAL_NAME_CHARACTERS)])
        return api_error_field(error, "terminal", "the name must be one of terminfo's");
    return 0;
}

static int read_rest(const struct json_place *root, struct run_request *request,
                     struct api_error *error)
{
    struct error err = ERROR_INIT;
    int64_t timeout_ms = 0;

    if (json_field_text(root, "cwd", JSON_OPTIONAL, RUN_PATH_MAX, &request->directory, &err) < 0 ||
        json_field_text(root, "user", JSON_OPTIONAL, RUN_USER_MAX, &request->user, &err) < 0 ||
        json_field_integer(root, "timeout", JSON_OPTIONAL, 0, RUN_TIMEOUT_MAX, &timeout_ms, &err) <
            0)
        return run_request_refuse(error, &err);
    request->timeout_ms = (uint64_t) timeout_ms;
    if (request->directory && !*request->directory)
        return api_error_field(error, "cwd", "must not be empty");
    return read_terminal(root, request, error);
}

int run_request_read(json_t *message, struct pool *pool, struct run_request *ret_request,
                     struct api_error *error)
{
    static const char *const fields[] = {"argv", "command", "cwd",     "env",
                                         "user", "timeout", "terminal"};
    struct run_request request = {.command = NULL};
    struct error err = ERROR_INIT;
    struct json_place root;

    if (json_root_object(message, &root, &err) < 0 ||
        json_known_fields(&root, fields, ARRAY_COUNT(fields), &err) < 0)
        return run_request_refuse(error, &err);
    if (read_command(&root, pool, &request, error) < 0 ||
        variables_read(&root, true, pool, &request.variables, error) < 0 ||
        read_rest(&root, &request, error) < 0)
        return -1;
    *ret_request = request;
    return 0;
}

/* --- orders --------------------------------------------------------------------------------- */

int run_signal_number(const char *name)
{
    for (int number = 1; number < NSIG; number++) {
        const char *known = sigabbrev_np(number);

        if (known && strcmp(known, name) == 0)
            return number;
    }
    return 0;
}

static int read_signal(const struct json_place *root, struct run_order *order, struct error *err)
{
    const char *name = NULL;

    if (json_field_text(root, "signal", JSON_REQUIRED, ORDER_TEXT_MAX, &name, err) < 0)
        return -1;
    order->signal = run_signal_number(name);
    return order->signal ? 0 : error_set(err, ERR_INVALID, 0, "there is no such signal");
}

static int read_resize(const struct json_place *root, struct run_order *order, struct error *err)
{
    return run_request_read_size(root, &order->size, err);
}

static int read_close(const struct json_place *root, struct run_order *order, struct error *err)
{
    int64_t channel = 0;

    if (json_field_integer(root, "channel", JSON_REQUIRED, RUN_CHANNEL_STDOUT, RUN_CHANNEL_STDERR,
                           &channel, err) < 0)
        return -1;
    order->output = channel == RUN_CHANNEL_STDOUT ? EXEC_STDOUT : EXEC_STDERR;
    return 0;
}

static int read_nothing(const struct json_place *root, struct run_order *order, struct error *err)
{
    (void) root;
    (void) order;
    (void) err;
    return 0;
}

static const struct {
    const char *name;
    int (*read)(const struct json_place *root, struct run_order *order, struct error *err);
} orders[] = {
    [RUN_ORDER_RESIZE] = {"resize", read_resize},
    [RUN_ORDER_SIGNAL] = {"signal", read_signal},
    [RUN_ORDER_EOF] = {"eof", read_nothing},
    [RUN_ORDER_CLOSE] = {"close", read_close},
};

int run_order_read(json_t *message, struct run_order *ret_order, struct api_error *error)
{
    struct error err = ERROR_INIT;
    struct json_place root;
    const char *type = NULL;

    if (json_root_object(message, &root, &err) < 0 ||
        json_field_text(&root, "type", JSON_REQUIRED, ORDER_TEXT_MAX, &type, &err) < 0)
        return run_request_refuse(error, &err);
    for (size_t i = 0; i < ARRAY_COUNT(orders); i++) {
        struct run_order order = {.type = (enum run_order_type) i};

        if (strcmp(orders[i].name, type) != 0)
            continue;
        if (orders[i].read(&root, &order, &err) < 0)
            return run_request_refuse(error, &err);
        *ret_order = order;
        return 0;
    }
    return api_error_field(error, "type", "must be resize, signal, eof or close");
}
