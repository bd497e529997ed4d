/* Any bytes as output in two pieces, as a client's frame and as the agent's control message: frames
 * are valid JSON in valid UTF-8, and what arrives does not depend on where it was cut. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "api/terminal/terminal_frames.h"
#include "base/encoding/utf8.h"
#include "json/json_read.h"

static void check(bool promise)
{
    if (!promise)
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* The text of a frame's data behind what was seen so far. */
static void see(struct text *seen, const struct text *frame)
{
    const struct json_limits limits = {
        .size = frame->length, .depth = 4, .values = 16, .nul = true};
    AUTO(json) json_t *value = NULL;
    json_t *text;

    if (!frame->length)
        return;
    check(!frame->overflowed && utf8_is_valid(frame->data, frame->length));
    value = json_read(frame->data, frame->length, &limits, NULL);
    text = json_object_get(value, "data");
    check(json_is_string(text) && json_string_length(text) > 0);
    text_append_bytes(seen, json_string_value(text), json_string_length(text));
}

static void show(struct text *seen, const char *bytes, size_t length, size_t cut)
{
    struct terminal_frames frames = {.carried = 0};
    AUTO(text) struct text first = TEXT_INIT(TERMINAL_FRAMES_OUTPUT_MAX(length));
    AUTO(text) struct text second = TEXT_INIT(TERMINAL_FRAMES_OUTPUT_MAX(length));
    AUTO(text) struct text last = TEXT_INIT(TERMINAL_FRAMES_OUTPUT_MAX(0));

    terminal_frames_output(&frames, bytes, cut, &first);
    terminal_frames_output(&frames, bytes + cut, length - cut, &second);
    terminal_frames_flush(&frames, &last);
    see(seen, &first);
    see(seen, &second);
    see(seen, &last);
}

static void check_output(const char *bytes, size_t length, size_t cut)
{
    AUTO(text) struct text whole = TEXT_INIT(length * 3 + 16), parts = TEXT_INIT(length * 3 + 16);

    show(&whole, bytes, length, length);
    show(&parts, bytes, length, cut);
    check(!whole.overflowed && whole.length == parts.length);
    check(memcmp(text_string(&whole), text_string(&parts), whole.length) == 0);
}

static void check_frame(const char *bytes, size_t length)
{
    AUTO(terminal_frame) struct terminal_frame frame = {.document = NULL};

    if (terminal_frame_read(bytes, length, &frame, NULL) < 0)
        return;
    if (frame.kind == TERMINAL_FRAME_RESIZE)
        check(frame.columns && frame.columns <= TERMINAL_FRAMES_SIZE_MAX && frame.rows &&
              frame.rows <= TERMINAL_FRAMES_SIZE_MAX);
    else
        check(frame.data && frame.length <= length);
}

static void check_control(const char *bytes, size_t length)
{
    AUTO(text) struct text frame = TEXT_INIT(16 * 1024);
    AUTO(json) json_t *value = NULL;

    (void) terminal_frames_control(bytes, length, &frame);
    check(!frame.overflowed);
    if (!frame.length)
        return;
    value = json_read(frame.data, frame.length, NULL, NULL);
    check(json_is_object(value));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const char *bytes = (const char *) data;

    if (!size)
        return 0;
    check_output(bytes + 1, size - 1, size > 1 ? data[0] % size : 0);
    check_frame(bytes, size);
    check_control(bytes, size);
    return 0;
}
