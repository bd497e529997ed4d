/* Inside the janitor's process: taking one sandbox down, and looking after the pool. */
#pragma once

#include "launcher/helper/janitor.h"

struct janitor_result {
    uint64_t number;
    struct error error;
};

/* The whole life of the process. `socket` brings tasks and takes results; its end ends us. */
_Noreturn void janitor_work(const struct site_options *site, const struct instance *instance,
                            int socket);
