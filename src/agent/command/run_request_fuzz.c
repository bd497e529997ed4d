/* Any text as a request and as an order of /burrow/run: what is accepted keeps the promises that
 * the code behind it relies on. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "agent/command/run_request.h"

static void check(bool promise)
{
    if (!promise)
        abort();
}

static void check_size(const struct exec_terminal *size)
{
    check(size->columns >= 1 && size->columns <= RUN_TERMINAL_SIZE_MAX);
    check(size->rows >= 1 && size->rows <= RUN_TERMINAL_SIZE_MAX);
}

static void try_request(json_t *message)
{
    AUTO(api_error) struct api_error error = API_ERROR_INIT;
    AUTO(pool) struct pool pool = POOL_INIT;
    struct run_request request;

    if (run_request_read(message, &pool, &request, &error) < 0) {
        check(error.message[0]);
        return;
    }
    check(!request.arguments != !request.command);
    check(!request.arguments || request.arguments[0][0]);
    check(request.timeout_ms <= RUN_TIMEOUT_MAX);
    check(!request.directory || request.directory[0]);
    for (size_t i = 0; i < request.variables.count; i++)
        check(environment_is_name(request.variables.changes[i].name));
    if (request.has_terminal) {
        check_size(&request.terminal);
        check(request.terminal_name[0] && !strchr(request.terminal_name, '/'));
    }
}

static void try_order(json_t *message)
{
    AUTO(api_error) struct api_error error = API_ERROR_INIT;
    struct run_order order;

    if (run_order_read(message, &order, &error) < 0)
        check(error.message[0]);
    else if (order.type == RUN_ORDER_RESIZE)
        check_size(&order.size);
    else if (order.type == RUN_ORDER_SIGNAL)
        check(order.signal > 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    AUTO(json) json_t *message = json_read((const char *) data, size, NULL, NULL);

    if (message) {
        try_request(message);
        try_order(message);
    }
    return 0;
}
