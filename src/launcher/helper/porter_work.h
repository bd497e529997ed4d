/* Inside the porter's process: the tasks. */
#pragma once

#include "launcher/helper/porter.h"

struct porter_result {
    uint64_t number;
    bool is_taken; /* not the result yet: the source may change again */
    uint64_t bytes;
    struct error error;
};

/* The whole life of the process. `socket` brings tasks and takes results; its end ends us. */
_Noreturn void porter_work(const struct site_options *site, const struct instance *instance,
                           int socket);
