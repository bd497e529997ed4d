/* Any name becomes valid UTF-8 of bounded length that leads back to the same name, and so does the
 * JSON string made of it. */
#include <stdlib.h>
#include <string.h>

#include "base/encoding/utf8.h"
#include "json/json_read.h"
#include "json/json_write.h"
#include "json/name_escape.h"

#define INPUT_MAX ((size_t) 1 << 16)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(bool holds)
{
    if (!holds)
        abort();
}

static void check_same(const char *text, size_t length, const uint8_t *name, size_t size)
{
    AUTO(text) struct text back = TEXT_INIT(INPUT_MAX);

    must(name_unescape(&back, text, length));
    must(!back.overflowed && back.length == size);
    must(size == 0 || memcmp(back.data, name, size) == 0);
}

/* As it leaves the keeper and arrives at a reader. */
static void check_json(const struct text *text, const uint8_t *name, size_t size)
{
    AUTO(text) struct text line = TEXT_INIT(INPUT_MAX * 16);
    struct json_writer json;
    AUTO(json) json_t *value = NULL;
    const json_t *path;

    json_writer_init_text(&json, &line);
    json_begin_object(&json);
    json_add_text(&json, "path", text_string(text));
    json_end_object(&json);
    must(json_writer_finish(&json) == 0);
    must(!memchr(line.data, '\n', line.length));
    value = json_read(line.data, line.length, NULL, NULL);
    must(value != NULL);
    path = json_object_get(value, "path");
    check_same(json_string_value(path), json_string_length(path), name, size);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    AUTO(text) struct text text = TEXT_INIT(INPUT_MAX * NAME_ESCAPE_FACTOR);

    /* What is behind a NUL is no part of a name. */
    size = size ? strnlen((const char *) data, size < INPUT_MAX ? size : INPUT_MAX) : 0;
    name_escape(&text, data, size);
    must(!text.overflowed && text.length <= size * NAME_ESCAPE_FACTOR);
    must(utf8_is_valid(text_string(&text), text.length));
    check_same(text_string(&text), text.length, data, size);
    check_json(&text, data, size);
    return 0;
}
