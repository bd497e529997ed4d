#include "agent/code/code_launch.h"

#include "sys/file/sys_memfd.h"

struct exec *code_launch(struct agent *agent, const struct code_program *program,
                         const struct code_place *place, const int fds[static CODE_DESCRIPTORS],
                         const struct exec_events *events, void *owner, int *ret_error)
{
    AUTO(close)
    int source = sys_memfd_from_bytes("executor", SYS_MEMFD_DATA, program->executor->text,
                                      program->executor->length);
    const int descriptors[] = {source, fds[CODE_STDOUT], fds[CODE_STDERR]};
    const struct exec_options options = {
        .launch = {.arguments = program->arguments,
                   .environment = place->environment,
                   .directory = place->directory,
                   .any_directory = place->any_directory},
        .descriptors = descriptors,
        .channel = fds[CODE_CHANNEL],
    };

    if (source < 0) {
        *ret_error = source;
        return NULL;
    }
    return exec_start(&agent->execs, &options, events, owner, ret_error);
}
