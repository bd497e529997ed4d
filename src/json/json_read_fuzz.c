/* Whatever is accepted keeps the limits, is written by our writer, read again as the same value,
 * and written again as the same text. */
#include <stdint.h>
#include <stdlib.h>

#include "base/encoding/utf8.h"
#include "json/json_read.h"
#include "json/json_write.h"

#define FUZZ_DEPTH_MAX 16

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(bool holds)
{
    if (!holds)
        abort();
}

static size_t depth_of(json_t *value)
{
    size_t deepest = 0;
    const char *key;
    json_t *child;

    if (!json_is_object(value) && !json_is_array(value))
        return 0;
    for (size_t i = 0; i < json_array_size(value); i++) {
        size_t depth = depth_of(json_array_get(value, i));

        deepest = depth > deepest ? depth : deepest;
    }
    json_object_foreach (value, key, child) {
        size_t depth = depth_of(child);

        deepest = depth > deepest ? depth : deepest;
    }
    return deepest + 1;
}

static void write_value(struct text *text, json_t *value)
{
    struct json_writer writer;

    json_writer_init_text(&writer, text);
    json_put_value(&writer, value);
    must(json_writer_finish(&writer) == 0);
}

/* The accessors take anything and either succeed or fill the error. */
static void fetch(json_t *value)
{
    AUTO(pool) struct pool pool = POOL_INIT;
    struct error err = ERROR_INIT;
    struct json_place root;
    struct json_texts texts = {.count = 0};
    const char *text = "";
    int64_t number = 5;

    if (json_root_object(value, &root, &err) < 0) {
        must(err.code == ERR_INVALID && err.message[0]);
        return;
    }
    if (json_field_text(&root, "a", JSON_OPTIONAL, 8, &text, &err) < 0 ||
        json_field_integer(&root, "a", JSON_OPTIONAL, 0, 9, &number, &err) < 0 ||
        json_field_texts(&root, "b", JSON_OPTIONAL, 4, 8, &pool, &texts, &err) < 0 ||
        json_known_fields(&root, (const char *const[]){"a", "b"}, 2, &err) < 0)
        must(err.code == ERR_INVALID && err.message[0]);
    must(strlen(text) <= 8 && number >= 0 && number <= 9 && texts.count <= 4);
    for (size_t i = 0; i < texts.count; i++)
        must(strlen(texts.items[i]) <= 8);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const struct json_limits limits = {.size = 4096, .depth = FUZZ_DEPTH_MAX, .values = 1000};
    AUTO(text) struct text first = TEXT_INIT(1 << 20);
    AUTO(text) struct text second = TEXT_INIT(1 << 20);
    AUTO(json) json_t *value = NULL;
    AUTO(json) json_t *again = NULL;
    struct error err = ERROR_INIT;

    value = json_read((const char *) data, size, &limits, &err);
    if (!value) {
        must(err.code == ERR_INVALID || err.code == ERR_TOO_LARGE);
        return 0;
    }
    must(size <= limits.size && depth_of(value) <= limits.depth);
    fetch(value);
    write_value(&first, value);
    must(utf8_is_valid(first.data, first.length));
    again = json_read(first.data, first.length, NULL, &err);
    must(again && json_equal(value, again));
    write_value(&second, again);
    must(first.length == second.length && memcmp(first.data, second.data, first.length) == 0);
    return 0;
}
