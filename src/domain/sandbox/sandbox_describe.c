/* The table of sandboxes, for people who look for what hangs. */
#include "base/auto.h"
#include "domain/domain_internal.h"
#include "domain/sandbox/sandbox_set.h"
#include "domain/sandbox/sandboxes.h"
#include "model/state.h"

static void describe_sandbox(const struct sandbox *sandbox, struct text *out)
{
    text_format(out, "  sandbox %s %s name=%s uses=%u waiting=%u", sandbox->id.text,
                sandbox_status_text(sandbox->status), sandbox->spec.name ? sandbox->spec.name : "-",
                sandbox->uses, sandbox->wishes);
    if (sandbox->is_held)
        text_append(out, " held");
    if (sandbox->stored)
        text_append(out, " stored");
    if (*sandbox->reason)
        text_format(out, " reason=\"%s\"", sandbox->reason);
    text_append_char(out, '\n');
}

void sandboxes_describe(const struct domain *domain, struct text *out)
{
    LIST_EACH (&domain->sandboxes->all, at)
        describe_sandbox(CONTAINER_OF(at, struct sandbox, link), out);
}
