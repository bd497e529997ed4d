#include "domain/sandbox/sandbox_environment.h"

#include "base/text.h"
#include "json/json_write.h"

void sandbox_tell_environment(struct domain *domain, const struct sandbox *sandbox,
                              inside_call_done *done, void *context)
{
    const struct sandbox_pairs *pairs = &sandbox->spec.environment;
    AUTO(text) struct text text = TEXT_INIT(SANDBOX_SPEC_MAX);
    struct json_writer json;

    json_writer_init_text(&json, &text);
    json_begin_object(&json);
    for (size_t i = 0; i < pairs->count; i++)
        json_add_text(&json, pairs->items[i].name, pairs->items[i].value);
    json_end_object(&json);
    (void) json_writer_finish(&json); /* part of the spec, which fits */
    inside_ask(domain, &sandbox->id, INSIDE_ENVIRONMENT, text_string(&text), done, context);
}
