#include "domain/stored_disk.h"

#include <stdlib.h>
#include <string.h>

#include "base/encoding/encode.h"
#include "base/memory.h"
#include "json/json_read.h"
#include "json/json_write.h"

void stored_disk_done(struct stored_disk *disk)
{
    free(disk->layers);
    *disk = (struct stored_disk){.layers = NULL};
}

void stored_disk_add(struct stored_disk *disk, const struct vault_layer *layer)
{
    disk->layers = mem_resize(disk->layers, (disk->count + 1) * sizeof(*disk->layers));
    disk->layers[disk->count++] = *layer;
    disk->bytes += layer->bytes;
}

void stored_disk_put_row(struct store_transaction *change, const struct id *owner,
                         const struct vault_layer *layer, int64_t now_ms)
{
    struct store_value values[STORE_LAYER_COLUMN_COUNT];

    values[STORE_LAYER_OWNER] = store_text(owner->text);
    values[STORE_LAYER_ID] = store_text(layer->id);
    values[STORE_LAYER_SIZE] = store_integer((int64_t) layer->size);
    values[STORE_LAYER_BYTES] = store_integer((int64_t) layer->bytes);
    values[STORE_LAYER_SHA256] = store_bytes(layer->sum, sizeof(layer->sum));
    values[STORE_LAYER_CREATED] = store_integer(now_ms);
    values[STORE_LAYER_USED] = store_integer(now_ms);
    store_put(change, STORE_LAYER, values);
}

/* Each has an id and a sum in hex. */
bool stored_disk_is_short(const char *json, size_t count)
{
    return strlen(json) < (count + 1) * 4 * VAULT_SUM_SIZE;
}

/* `[` and what is in it are the same in both. */
bool stored_disk_begins(const char *json, const char *start)
{
    const char *end = strrchr(start, ']');
    size_t length = end ? (size_t) (end - start) : 0;

    return length && strncmp(json, start, length) == 0 &&
           (json[length] == ',' || json[length] == ']');
}

void stored_disk_write(const struct stored_disk *disk, struct text *text)
{
    struct json_writer json;

    json_writer_init_text(&json, text);
    json_begin_object(&json);
    json_key(&json, "layers");
    json_begin_array(&json);
    for (size_t i = 0; i < disk->count; i++) {
        const struct vault_layer *layer = &disk->layers[i];
        char sum[HEX_TEXT_SIZE(VAULT_SUM_SIZE)];

        (void) hex_encode(layer->sum, sizeof(layer->sum), sum);
        json_begin_object(&json);
        json_add_text(&json, "id", layer->id);
        json_add_text(&json, "sha256", sum);
        json_add_integer(&json, "size", (int64_t) layer->size);
        json_end_object(&json);
    }
    json_end_array(&json);
    json_add_integer(&json, "bytes", (int64_t) disk->bytes);
    json_end_object(&json);
    (void) json_writer_finish(&json); /* text->overflowed says so */
}

static int read_sum(const struct json_place *place, const char *key, uint8_t *ret_sum,
                    struct error *err)
{
    const char *text = NULL;
    size_t count = 0;

    if (json_field_text(place, key, JSON_REQUIRED, VAULT_LAYER_SIZE - 1, &text, err) < 0)
        return -1;
    if (hex_decode(text, strlen(text), ret_sum, VAULT_SUM_SIZE, &count) < 0 ||
        count != VAULT_SUM_SIZE)
        return json_refuse_field(place, key, "a SHA-256 in hex", err);
    return 0;
}

static int read_layer(const struct json_place *item, struct vault_layer *layer, struct error *err)
{
    uint8_t id[VAULT_SUM_SIZE];
    int64_t size = 0;

    if (read_sum(item, "id", id, err) < 0 || read_sum(item, "sha256", layer->sum, err) < 0 ||
        json_field_integer(item, "size", JSON_REQUIRED, 0, INT64_MAX, &size, err) < 0)
        return -1;
    (void) hex_encode(id, sizeof(id), layer->id);
    layer->size = (uint64_t) size;
    return 0;
}

static int read_layers(const struct json_place *root, struct stored_disk *disk, struct error *err)
{
    struct json_place array, item;
    int64_t bytes = 0;
    size_t count;

    if (json_field_array(root, "layers", JSON_REQUIRED, &array, err) < 0 ||
        json_field_integer(root, "bytes", JSON_OPTIONAL, 0, INT64_MAX, &bytes, err) < 0)
        return -1;
    disk->bytes = (uint64_t) bytes;
    count = json_array_size(array.value);
    if (count == 0 || count > STORED_DISK_LAYERS_MAX)
        return error_set(err, ERR_INTERNAL, 0, "a stored disk has 1 to %d layers",
                         STORED_DISK_LAYERS_MAX);
    disk->layers = mem_alloc_array(count, sizeof(*disk->layers));
    for (; disk->count < count; disk->count++)
        if (json_item_object(&array, disk->count, &item, err) < 0 ||
            read_layer(&item, &disk->layers[disk->count], err) < 0)
            return -1;
    return 0;
}

int stored_disk_read(const char *json, struct stored_disk *ret_disk, struct error *err)
{
    const struct json_limits limits = {
        .size = STORED_DISK_MAX, .depth = 8, .values = JSON_VALUES_MAX};
    AUTO(json) json_t *value = json_read(json, strlen(json), &limits, err);
    AUTO(stored_disk) struct stored_disk disk = {.layers = NULL};
    struct json_place root;

    if (!value || json_root_object(value, &root, err) < 0 || read_layers(&root, &disk, err) < 0) {
        err->code = ERR_INTERNAL;
        return error_wrap(err, "what is known of the stored disk");
    }
    *ret_disk = disk;
    disk = (struct stored_disk){.layers = NULL};
    return 0;
}
