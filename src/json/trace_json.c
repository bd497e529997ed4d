#include "json/trace_json.h"

#include <stdio.h>
#include <string.h>

/* Later than this no clock that counts from a boot is: it is exact in every reader of JSON. */
#define NS_MAX (INT64_C(1) << 53)

static void add_id(struct json_writer *json, const char *key, const struct id *id)
{
    if (id->text[0])
        json_add_text(json, key, id->text);
}

void trace_json_write(struct json_writer *json, const struct trace_entry *entries, size_t count)
{
    json_begin_array(json);
    for (size_t i = 0; i < count; i++) {
        const struct trace_entry *entry = &entries[i];

        json_begin_object(json);
        json_add_integer(json, "ns", entry->time_ns);
        json_add_text(json, "process", entry->process);
        add_id(json, "request", &entry->context.request);
        add_id(json, "sandbox", &entry->context.sandbox);
        json_add_text(json, "point", entry->point);
        json_end_object(json);
    }
    json_end_array(json);
}

/* Into a field of `size` bytes; what is missing or too long leaves it empty. */
static int take_text(const struct json_place *object, const char *key, char *ret_text, size_t size,
                     struct error *err)
{
    const char *text = NULL;

    if (json_field_text(object, key, JSON_OPTIONAL, size - 1, &text, err) < 0)
        return -1;
    /* All of it: entries are copied and compared as bytes. */
    memset(ret_text, 0, size);
    (void) snprintf(ret_text, size, "%s", text ? text : "");
    return 0;
}

static int trace_read_entry(const struct json_place *object, struct trace_entry *ret_entry,
                            struct error *err)
{
    *ret_entry = (struct trace_entry){.number = 0};
    if (json_field_integer(object, "ns", JSON_REQUIRED, 0, NS_MAX, &ret_entry->time_ns, err) < 0 ||
        take_text(object, "process", ret_entry->process, sizeof(ret_entry->process), err) < 0 ||
        take_text(object, "request", ret_entry->context.request.text, ID_SIZE, err) < 0 ||
        take_text(object, "sandbox", ret_entry->context.sandbox.text, ID_SIZE, err) < 0 ||
        take_text(object, "point", ret_entry->point, sizeof(ret_entry->point), err) < 0)
        return -1;
    trace_entry_clean(ret_entry);
    return 0;
}

ssize_t trace_json_read(const struct json_place *object, struct trace_entry *ret_entries,
                        size_t most, struct error *err)
{
    struct json_place array, item;
    size_t count;

    if (json_field_array(object, "entries", JSON_REQUIRED, &array, err) < 0)
        return -1;
    count = json_array_size(array.value);
    if (count > most)
        count = most;
    for (size_t i = 0; i < count; i++)
        if (json_item_object(&array, i, &item, err) < 0 ||
            trace_read_entry(&item, &ret_entries[i], err) < 0)
            return -1;
    return (ssize_t) count;
}
