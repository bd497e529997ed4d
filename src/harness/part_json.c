#include "harness/part_json.h"

#include <string.h>

#include "base/auto.h"
#include "json/json_read.h"
#include "json/json_write.h"

#define PART_DEPTH_MAX 32

/* A copy without what is too long or too deep. Owned. */
static json_t *part_json_cut(const json_t *value, unsigned int depth, bool *is_cut)
{
    const char *key;
    json_t *member, *copy;
    size_t index;

    if (depth > PART_DEPTH_MAX) {
        *is_cut = true;
        return json_null();
    }
    if (json_is_string(value) && json_string_length(value) > PART_STRING_MAX) {
        size_t length = PART_STRING_MAX;

        /* Not within a character. */
        while (length && ((unsigned char) json_string_value(value)[length] & 0xC0) == 0x80)
            length--;
        *is_cut = true;
        return json_stringn_nocheck(json_string_value(value), length);
    }
    if (json_is_object(value)) {
        copy = json_object();
        json_object_foreach ((json_t *) value, key, member) {
            (void) json_object_set_new_nocheck(copy, key, part_json_cut(member, depth + 1, is_cut));
        }
        return copy;
    }
    if (json_is_array(value)) {
        copy = json_array();
        json_array_foreach (value, index, member) {
            (void) json_array_append_new(copy, part_json_cut(member, depth + 1, is_cut));
        }
        return copy;
    }
    return json_incref((json_t *) value);
}

static int part_json_try(json_t *value, struct text *out)
{
    struct json_writer json;

    text_clear(out);
    json_writer_init_text(&json, out);
    json_put_value(&json, value);
    return json_writer_finish(&json);
}

/* Of a part that is too long whatever is cut: what names it, and that there was more. */
static json_t *part_json_least(const json_t *part)
{
    json_t *least = json_object();
    static const char *const kept[] = {"id", "type", "tool"};

    for (size_t i = 0; i < ARRAY_COUNT(kept); i++) {
        json_t *member = json_object_get(part, kept[i]);

        if (json_is_string(member) && json_string_length(member) < 256)
            (void) json_object_set(least, kept[i], member);
    }
    (void) json_object_set_new(least, "truncated", json_true());
    return least;
}

void part_json_write(const json_t *part, struct text *out)
{
    bool is_cut = false;
    AUTO(json) json_t *copy = part_json_cut(part, 0, &is_cut);
    AUTO(text) struct text written = TEXT_INIT(PART_JSON_MAX);

    if (is_cut && json_is_object(copy))
        (void) json_object_set_new(copy, "truncated", json_true());
    if (part_json_try(copy, &written) < 0) {
        AUTO(json) json_t *least = part_json_least(part);

        written.overflowed = false;
        (void) part_json_try(least, &written);
    }
    text_clear(out);
    text_append_bytes(out, text_string(&written), written.length);
}
