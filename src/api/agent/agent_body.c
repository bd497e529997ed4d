#include "api/agent/agent_body.h"

void agent_body_begin(struct agent_body *body)
{
    body->text = (struct text) TEXT_INIT(AGENT_BODY_MAX);
    json_document_begin(&body->json, &body->text);
}

void agent_body_end(struct agent_body *body, struct pool *pool, const char *path,
                    struct agent_request *ret_request)
{
    if (json_document_end(&body->json) < 0)
        text_clear(&body->text);
    ret_request->path = path;
    ret_request->length = body->text.length;
    ret_request->body = pool_copy_bytes(pool, text_string(&body->text), body->text.length);
    text_done(&body->text);
}
