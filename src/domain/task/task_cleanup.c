/* What becomes of a task's sandbox when the task is over. */
#include <stdlib.h>
#include <string.h>

#include "base/auto.h"
#include "base/memory.h"
#include "domain/sandbox/sandbox_set.h"
#include "domain/sandbox/sandboxes.h"
#include "domain/task/task_internal.h"

static void task_cleaned(void *context, const struct error *failure, struct sandbox *sandbox)
{
    struct domain *domain = context;

    (void) sandbox;
    if (failure)
        LOG_WARNING(domain->options.log, "the sandbox of a task is still there",
                    log_text("error", failure->message));
    domain->works--;
    domain_check_gone(domain);
}

void task_clean_up(struct domain *domain, const struct task *task)
{
    struct sandbox *sandbox = sandbox_set_by_id(domain, task->sandbox.text);
    const struct caller caller = caller_system();

    if (!sandbox || !task->owns_sandbox || task->cleanup == TASK_KEEP)
        return;
    domain->works++;
    if (task->cleanup == TASK_DESTROY)
        sandbox_destroy(domain, &caller, sandbox, task_cleaned, domain);
    else
        sandbox_sleep(domain, &caller, sandbox, task_cleaned, domain);
}

/* --- after a restart ---------------------------------------------------------------------------- */

struct task_leftover {
    struct domain *domain;
    struct id sandbox;
};

static void task_leftover_read(void *context, const struct error *failure, const struct task *task)
{
    AUTO(free) struct task_leftover *leftover = context;
    struct domain *domain = leftover->domain;

    if (!failure && task_state_is_over(task->state) && id_equal(&task->sandbox, &leftover->sandbox))
        task_clean_up(domain, task);
    domain->works--;
    domain_check_gone(domain);
}

void tasks_recovered(struct domain *domain)
{
    const struct caller caller = caller_system();

    LIST_EACH (&domain->sandboxes->all, at) {
        const struct sandbox *sandbox = CONTAINER_OF(at, struct sandbox, link);
        const char *kind = sandbox->spec.kind;
        const char *task = sandbox_pairs_get(&sandbox->spec.labels, SANDBOX_LABEL_TASK);
        struct task_leftover *leftover;

        if (!kind || strcmp(kind, SANDBOX_KIND_TASK) != 0 || !task || task_live(domain, task))
            continue;
        leftover = mem_alloc(sizeof(*leftover));
        *leftover = (struct task_leftover){.domain = domain, .sandbox = sandbox->id};
        domain->works++;
        task_read(domain, &caller, task, false, task_leftover_read, leftover);
    }
}
