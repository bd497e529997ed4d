/* Whatever a shell prints: every item found is NAME=text without a NUL inside, and bounded. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "agent/environment.h"
#include "agent/session/session_export.h"

static void check(const char *const *environment)
{
    size_t count = 0;

    for (; *environment; environment++, count++) {
        const char *equals = strchr(*environment, '=');

        if (!equals || equals == *environment)
            abort();
    }
    if (count > SESSION_EXPORTS_MAX)
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    AUTO(pool) struct pool pool = POOL_INIT;
    struct session_exports exports = {.items = NULL};
    const char *text = (const char *) data;
    const char **names;
    size_t count;

    session_exports_read(&exports, &pool, text, size);
    count = session_exports_functions(&pool, text, size, &names);
    if (count > SESSION_FUNCTIONS_MAX)
        abort();
    for (size_t i = 0; i < count; i++)
        session_exports_add_function(&exports, &pool, names[i], text, size);
    check(session_exports_environment(&exports, &pool));
    return 0;
}
