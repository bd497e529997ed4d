/* What executors say: whatever is taken for a frame becomes an event that is JSON, on one line. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "agent/code/code_frame.h"
#include "json/json_read.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_event(const struct code_frame *frame)
{
    AUTO(text) struct text event = TEXT_INIT(CODE_EVENT_MAX);
    const struct json_limits limits = {
        .size = CODE_EVENT_MAX, .depth = 128, .values = (size_t) 1 << 24, .nul = true};
    struct error err = ERROR_INIT;
    AUTO(json) json_t *value = NULL;

    if (code_frame_write_event(frame, NULL, NULL, &event) < 0)
        abort();
    if (memchr(text_string(&event), '\n', event.length))
        abort();
    value = json_read(text_string(&event), event.length, &limits, &err);
    if (!json_is_object(value) || !json_is_string(json_object_get(value, "type")))
        abort();
    if (frame->type == CODE_FRAME_RESULT && !json_is_object(json_object_get(value, "metadata")))
        abort();
    if (frame->type == CODE_FRAME_ERROR && (!json_is_string(json_object_get(value, "ename")) ||
                                            !json_is_string(json_object_get(value, "evalue")) ||
                                            !json_is_array(json_object_get(value, "traceback"))))
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    AUTO(code_frame) struct code_frame frame = {.type = CODE_FRAME_END};

    if (code_frame_read((const char *) data, size, &frame) < 0)
        return 0;
    if (frame.type >= CODE_FRAME_TYPES || (frame.type == CODE_FRAME_READY && frame.pid <= 1) ||
        (frame.type == CODE_FRAME_FAILED && frame.error >= 0))
        abort();
    if (frame.type == CODE_FRAME_RESULT || frame.type == CODE_FRAME_ERROR)
        check_event(&frame);
    return 0;
}
