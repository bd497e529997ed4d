/* A look into a provider: what is under way, and what the processes behind it say. */
#include "provider/provider_internal.h"

void provider_inspect(struct provider *provider, bool state, const struct trace_context *about,
                      provider_inspect_done *done, void *context)
{
    struct provider_call *call = provider_call_new(provider, PROVIDER_CALL_INSPECT, NULL, context);

    call->answer.inspection = done;
    call->result.inspection = -EBADF;
    call->asked.inspection.state = state;
    call->asked.inspection.about = *about;
    provider_call_run(call);
}

static const char *const stage_texts[] = {
    [PROVIDER_STAGE_NEW] = "new",         [PROVIDER_STAGE_OPENING] = "opening",
    [PROVIDER_STAGE_OPEN] = "open",       [PROVIDER_STAGE_LOST] = "lost",
    [PROVIDER_STAGE_CLOSING] = "closing",
};

void provider_describe(const struct provider *provider, struct text *out)
{
    uint64_t now = loop_now(provider->loop);

    text_format(out, "provider %s: %s, %zu sandboxes, %zu calls\n", provider->operations->name,
                stage_texts[provider->stage], provider->sandboxes.count, provider->open_calls);
    LIST_EACH (&provider->calls, at) {
        const struct provider_call *call = CONTAINER_OF(at, struct provider_call, under_way);

        text_format(out, "  call %s sandbox=%s request=%s ms=%llu\n",
                    provider_call_name(call->kind), call->id.text[0] ? call->id.text : "-",
                    call->trace.request.text[0] ? call->trace.request.text : "-",
                    (unsigned long long) (now - call->asked_ms));
    }
    for (size_t i = 0; i < provider->sandboxes.count; i++) {
        const struct provider_entry *entry = &provider->sandboxes.entries[i];

        text_format(out, "  entry %s %s\n", entry->id.text, run_state_text(entry->state));
    }
}
