#include "wire/wire_done.h"

#include <string.h>

void wire_done_set(struct wire_message *ret_message, const struct error *failure)
{
    enum err_code code = failure ? failure->code : ERR_NONE;

    memset(ret_message, 0, sizeof(*ret_message));
    ret_message->number = WIRE_MESSAGE_DONE;
    wire_text_set(ret_message->done.code, sizeof(ret_message->done.code), error_code_text(code));
    if (code == ERR_NONE)
        return;
    ret_message->done.system = (uint16_t) failure->system;
    wire_text_set(ret_message->done.message, sizeof(ret_message->done.message), failure->message);
}

int wire_done_get(const struct wire_done *done, struct error *err)
{
    enum err_code code = error_code_from_text(done->code);

    if (code == ERR_NONE)
        return 0;
    /* The errno is in the message already: the launcher put it there in words. */
    if (code == ERR_CODE_COUNT)
        (void) error_set(err, ERR_INTERNAL, 0, "%s (%s)", done->message, done->code);
    else
        (void) error_set(err, code, 0, "%s", done->message);
    if (err)
        err->system = done->system;
    return -1;
}
