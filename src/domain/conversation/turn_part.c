/* What an agent writes while it writes it: text in pieces, which are told as they come but no more
 * often than TURN_DELTA_EVERY_MS a part, and whole parts, which are kept. */
#include <stdlib.h>
#include <string.h>

#include "base/encoding/utf8.h"
#include "base/memory.h"
#include "domain/conversation/conversation_internal.h"
#include "json/json_read.h"
#include "json/json_write.h"

#define OPEN_PARTS_MAX 64
#define OPEN_TEXT_MAX  ((size_t) 256 * 1024)
#define PART_TEXT_MAX  ((size_t) 128 * 1024)
#define PART_INPUT_MAX ((size_t) 64 * 1024)
#define PART_NAME_MAX  128
#define NS_PER_MS      UINT64_C(1000000)

/* --- pieces ----------------------------------------------------------------------------------- */

static void open_part_free(struct open_part *open)
{
    list_remove(&open->link);
    text_done(&open->text);
    free(open->part);
    free(open->field);
    free(open);
}

static struct open_part *open_part_find(struct live_turn *live, const char *part)
{
    LIST_EACH (&live->parts, at) {
        struct open_part *open = CONTAINER_OF(at, struct open_part, link);

        if (strcmp(open->part, part) == 0)
            return open;
    }
    return NULL;
}

static struct open_part *open_part_new(struct live_turn *live, const char *part, const char *field)
{
    struct open_part *open;

    if (live->part_count >= OPEN_PARTS_MAX || strlen(part) > PART_NAME_MAX)
        return NULL;
    open = mem_alloc(sizeof(*open));
    open->part = mem_copy_text(part);
    open->field = mem_copy_text(strcmp(field, "reasoning") == 0 ? "reasoning" : "text");
    open->text = (struct text) TEXT_INIT(OPEN_TEXT_MAX);
    list_append(&live->parts, &open->link);
    live->part_count++;
    return open;
}

/* The longest beginning that does not end inside a character. */
static size_t part_whole_length(const char *text, size_t length)
{
    size_t lead = length;

    while (lead > 0 && length - lead < 3 && ((unsigned char) text[lead - 1] & 0xC0) == 0x80)
        lead--;
    if (lead == 0 || (unsigned char) text[lead - 1] < 0xC0)
        return length;
    return utf8_is_valid(text + lead - 1, length - lead + 1) ? length : lead - 1;
}

static void part_write(struct text *out, const struct live_turn *live, const struct open_part *open,
                       const char *key, size_t from, size_t to)
{
    struct json_writer json;

    json_document_begin(&json, out);
    json_add_text(&json, "turn", live->turn.id.text);
    json_add_text(&json, "part", open->part);
    json_key(&json, key);
    json_put_bytes(&json, text_string(&open->text) + from, to - from);
    if (json_document_end(&json) < 0)
        text_clear(out); /* not UTF-8: the whole part says what it is */
}

static struct turn_item part_item(const struct live_turn *live, const struct open_part *open,
                                  const struct text *json)
{
    return (struct turn_item){.time_ms = domain_wall_ms(live->domain),
                              .turn = live->turn.id,
                              .kind = open->field,
                              .part = open->part,
                              .json = text_string(json)};
}

static void open_part_tell(struct live_turn *live, struct open_part *open)
{
    AUTO(text) struct text json = TEXT_INIT(OPEN_TEXT_MAX * 6 + 512);
    size_t until = part_whole_length(text_string(&open->text), open->text.length);
    struct turn_item item;

    if (until <= open->told)
        return;
    open->told_ns = domain_now_ns(live->domain);
    if (turn_has_live_followers(live->conversation)) {
        part_write(&json, live, open, "delta", open->told, until);
        item = part_item(live, open, &json);
        if (json.length)
            turn_followers_tell(live->conversation, &item);
    }
    open->told = until;
}

static void turn_parts_later(struct domain *domain)
{
    if (domain->conversations->is_later || !domain->options.later)
        return;
    domain->conversations->is_later = true;
    domain->options.later(domain->options.context, TURN_DELTA_EVERY_MS);
}

void turn_part_delta(struct live_turn *live, const char *part, const char *field, const char *text,
                     size_t length)
{
    struct open_part *open = open_part_find(live, part);

    if (!open)
        open = open_part_new(live, part, field);
    if (!open || open->text.length + length > OPEN_TEXT_MAX)
        return; /* the whole part comes at its end */
    text_append_bytes(&open->text, text, length);
    if (domain_now_ns(live->domain) - open->told_ns >= TURN_DELTA_EVERY_MS * NS_PER_MS)
        open_part_tell(live, open);
    else
        turn_parts_later(live->domain);
}

void turn_parts_flush(struct live_turn *live, bool is_all)
{
    uint64_t now = domain_now_ns(live->domain);

    LIST_EACH (&live->parts, at) {
        struct open_part *open = CONTAINER_OF(at, struct open_part, link);

        if (is_all || now - open->told_ns >= TURN_DELTA_EVERY_MS * NS_PER_MS)
            open_part_tell(live, open);
    }
}

void turn_parts_each(struct conversation *conversation,
                     bool (*each)(void *context, const struct turn_item *item), void *context)
{
    LIST_EACH (&conversation->work->turns, turn_at) {
        struct live_turn *live = CONTAINER_OF(turn_at, struct live_turn, link);

        LIST_EACH (&live->parts, at) {
            struct open_part *open = CONTAINER_OF(at, struct open_part, link);
            AUTO(text) struct text json = TEXT_INIT(OPEN_TEXT_MAX * 6 + 512);
            struct turn_item item;

            part_write(&json, live, open, "text", 0, open->told);
            item = part_item(live, open, &json);
            if (open->told && json.length && !each(context, &item))
                return;
        }
    }
}

void turn_parts_done(struct live_turn *live)
{
    struct list *link;

    while ((link = list_first(&live->parts)))
        open_part_free(CONTAINER_OF(link, struct open_part, link));
    live->part_count = 0;
}

/* --- whole parts ------------------------------------------------------------------------------- */

/* A text, cut where it is longer; true: it was. */
static bool part_put_text(struct json_writer *json, const char *key, json_t *value, size_t max)
{
    const char *text = json_string_value(value);
    size_t length = text ? json_string_length(value) : 0;
    bool is_cut = length > max;

    if (!text)
        return false;
    if (is_cut)
        length = part_whole_length(text, max);
    json_key(json, key);
    json_put_bytes(json, text, length);
    return is_cut;
}

static bool part_put_value(struct json_writer *json, const char *key, json_t *value)
{
    size_t length = value ? json_dumpb(value, NULL, 0, JSON_ENCODE_ANY) : 0;

    if (!value || length > PART_INPUT_MAX)
        return length != 0;
    json_key(json, key);
    json_put_value(json, value);
    return false;
}

static bool part_write_text(struct json_writer *json, json_t *part)
{
    return part_put_text(json, "text", json_object_get(part, "text"), PART_TEXT_MAX);
}

static bool part_write_tool(struct json_writer *json, json_t *part)
{
    json_t *state = json_object_get(part, "state");
    bool is_cut = false;

    is_cut |= part_put_text(json, "call", json_object_get(part, "callID"), PART_NAME_MAX);
    is_cut |= part_put_text(json, "tool", json_object_get(part, "tool"), PART_NAME_MAX);
    is_cut |= part_put_text(json, "state", json_object_get(state, "status"), PART_NAME_MAX);
    is_cut |= part_put_text(json, "title", json_object_get(state, "title"), PART_NAME_MAX * 4);
    is_cut |= part_put_value(json, "input", json_object_get(state, "input"));
    is_cut |= part_put_text(json, "output", json_object_get(state, "output"), TURN_OUTPUT_MAX);
    is_cut |= part_put_text(json, "error", json_object_get(state, "error"), TURN_OUTPUT_MAX);
    return is_cut;
}

static bool part_write_step(struct json_writer *json, json_t *part)
{
    bool is_cut = part_put_value(json, "tokens", json_object_get(part, "tokens"));

    return part_put_value(json, "cost", json_object_get(part, "cost")) || is_cut;
}

static bool part_write_raw(struct json_writer *json, json_t *part)
{
    return part_put_value(json, "raw", part);
}

static const struct part_type {
    const char *type; /* as OpenCode calls it; NULL: all others */
    const char *kind;
    bool (*write)(struct json_writer *json, json_t *part);
} part_types[] = {
    {"text", "text", part_write_text}, {"reasoning", "reasoning", part_write_text},
    {"tool", "tool", part_write_tool}, {"step-finish", "step", part_write_step},
    {NULL, "part", part_write_raw},
};

static const struct part_type *part_type_of(json_t *part)
{
    const char *type = json_string_value(json_object_get(part, "type"));
    const struct part_type *row = part_types;

    while (row->type && (!type || strcmp(row->type, type) != 0))
        row++;
    return row;
}

void turn_part_whole(struct live_turn *live, const char *part, const char *text)
{
    static const struct json_limits limits = {.size = (size_t) 16 * 1024 * 1024,
                                              .depth = JSON_DEPTH_MAX,
                                              .values = JSON_VALUES_MAX,
                                              .nul = false};
    AUTO(json) json_t *value = json_read(text, strlen(text), &limits, NULL);
    AUTO(text) struct text kept = TEXT_INIT(STORE_VALUE_MAX);
    struct open_part *open = open_part_find(live, part);
    const struct part_type *type = part_type_of(value);
    struct json_writer json;

    if (open) {
        open_part_free(open);
        live->part_count--;
    }
    if (!value || strlen(part) > PART_NAME_MAX)
        return; /* an agent that says what nobody understands */
    json_document_begin(&json, &kept);
    json_add_text(&json, "turn", live->turn.id.text);
    json_add_text(&json, "part", part);
    if (type->write(&json, value))
        json_add_boolean(&json, "truncated", true);
    if (json_document_end(&json) < 0)
        return;
    turn_log_add(live->conversation, live, type->kind, part, text_string(&kept));
    turn_log_flush(live->conversation);
}
