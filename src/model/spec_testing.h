/* For tests: specs that are fine and say something in every field, made from the rows of spec.def, so
 * that a new field is tried without a new line here. Include cmocka's headers before. */
#pragma once

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/text.h"
#include "model/spec.h"

static inline uint32_t spec_random_number(uint64_t *state)
{
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t) (*state >> 33);
}

/* Any characters that JSON makes trouble with; on one line when `plain`. */
static inline char *spec_random_text(uint64_t *state, size_t pieces_max, bool plain)
{
    static const char *const pieces[] = {"a", "Z", "0", " ", "\"", "\\",   "/",  "ä",
                                         "€", "😀", "{", "}", "-",  "null", "\n", "\x01"};
    AUTO(text) struct text text = TEXT_INIT(16 * pieces_max);
    size_t count = 1 + spec_random_number(state) % pieces_max;

    for (size_t i = 0; i < count; i++)
        text_append(&text,
                    pieces[spec_random_number(state) % (ARRAY_COUNT(pieces) - (plain ? 2 : 0))]);
    return text_take(&text);
}

/* Up to `most`, often small, often the largest. */
static inline uint64_t spec_random_size(uint64_t *state, uint64_t least, uint64_t most)
{
    uint64_t number =
        (uint64_t) spec_random_number(state) << 32 | (uint64_t) spec_random_number(state) << 1;

    if (spec_random_number(state) % 8 == 0)
        return most;
    return least + number % (spec_random_number(state) % 2 ? most - least + 1 : 100);
}

static inline void spec_random_pairs(uint64_t *state, enum spec_type type,
                                     struct sandbox_pairs *pairs)
{
    size_t count = 1 + spec_random_number(state) % 8;

    for (size_t i = 0; i < count; i++) {
        AUTO(free) char *value = spec_random_text(state, 10, type != SPEC_VARIABLES);
        char name[32];

        (void) snprintf(name, sizeof(name), "%sname_%u", type == SPEC_BINDS ? "/" : "",
                        spec_random_number(state) % 20);
        sandbox_pairs_set(pairs, name, value);
    }
}

static inline void spec_random_rules(uint64_t *state, struct sandbox_rules *rules)
{
    rules->count = 1 + spec_random_number(state) % 5;
    rules->items = mem_alloc_array(rules->count, sizeof(*rules->items));
    for (size_t i = 0; i < rules->count; i++) {
        uint16_t first = (uint16_t) spec_random_number(state);

        rules->items[i] = (struct network_rule){
            .allow = spec_random_number(state) % 2,
            .to = {.address = (uint32_t) spec_random_size(state, 0, UINT32_MAX),
                   .bits = (uint8_t) (spec_random_number(state) % 33)},
            .protocol = (enum network_protocol)(spec_random_number(state) % 3),
            .ports = {.first = first,
                      .last = (uint16_t) spec_random_size(state, first, UINT16_MAX)}};
        if (rules->items[i].ports.last < first)
            rules->items[i].ports.last = first;
    }
}

/* In the form that it is kept in. */
static inline char *spec_random_policy(uint64_t *state)
{
    AUTO(text) struct text text = TEXT_INIT(EGRESS_POLICY_MAX);

    text_format(&text, "{\"default\":\"%s\",\"rules\":[",
                spec_random_number(state) % 2 ? "deny" : "allow");
    for (size_t i = spec_random_number(state) % 4, first = i; i > 0; i--)
        text_format(&text, "%s{\"host\":\"h%u.example.org\",\"port\":%u%s}", i < first ? "," : "",
                    spec_random_number(state) % 9, 1 + spec_random_number(state) % UINT16_MAX,
                    spec_random_number(state) % 2 ? ",\"protocol\":\"tcp\"" : "");
    text_format(&text, "],\"models\":{},\"budget\":{\"tokensPerDay\":%u}}",
                1 + spec_random_number(state));
    return text_take(&text);
}

static inline char *spec_random_folder(uint64_t *state)
{
    AUTO(free) char *text = spec_random_text(state, 10, true);
    AUTO(text) struct text folder = TEXT_INIT(1024);

    text_format(&folder, "/%s", text);
    return text_take(&folder);
}

static inline char *spec_random_name(uint64_t *state)
{
    AUTO(text) struct text name = TEXT_INIT(64);

    text_format(&name, "box-%u", spec_random_number(state));
    return text_take(&name);
}

static inline void spec_random_field(uint64_t *state, const struct spec_field *field, void *at)
{
    switch (field->type) {
    case SPEC_NAME:
        *(char **) at = spec_random_name(state);
        break;
    case SPEC_TEXT:
        *(char **) at = spec_random_text(state, 10, true);
        break;
    case SPEC_FOLDER:
        *(char **) at = spec_random_folder(state);
        break;
    case SPEC_VARIABLES:
    case SPEC_LABELS:
    case SPEC_BINDS:
        spec_random_pairs(state, field->type, at);
        break;
    case SPEC_COMMANDS: {
        AUTO(free) char *command = spec_random_text(state, 20, false);

        sandbox_texts_add(at, command);
        sandbox_texts_add(at, "true");
        break;
    }
    case SPEC_DURATION:
        *(uint64_t *) at = spec_random_size(state, field->least, field->most);
        break;
    case SPEC_TIER:
        *(uint64_t *) at = spec_random_number(state) % 4
                               ? 1 + spec_random_size(state, 0, field->most - 1)
                               : SANDBOX_NEVER;
        break;
    case SPEC_COUNT:
        *(uint32_t *) at = (uint32_t) spec_random_size(state, 1, field->most);
        break;
    case SPEC_FLAG:
        *(bool *) at = true;
        break;
    case SPEC_LIMITS:
        for (size_t i = 0; i < LIMIT_FIELD_COUNT; i++)
            limit_set(at, &limit_fields[i],
                      spec_random_size(state, 0, (uint64_t) limit_fields[i].most));
        break;
    case SPEC_NETWORK:
        *(struct sandbox_network *) at = (struct sandbox_network){
            .is_set = true, .mode = (enum network_mode)(spec_random_number(state) % 2)};
        break;
    case SPEC_RULES:
        spec_random_rules(state, at);
        break;
    case SPEC_POLICY:
        free(*(char **) at);
        *(char **) at = spec_random_policy(state);
        break;
    case SPEC_TYPE_COUNT:
        break;
    }
}

/* A field is said with a probability of `sixths` out of six. */
static inline struct sandbox_spec spec_random(uint64_t *state, unsigned int sixths)
{
    struct sandbox_spec spec = SANDBOX_SPEC_INIT;

    for (size_t i = 0; i < SPEC_FIELD_COUNT; i++)
        if (spec_random_number(state) % 6 < sixths)
            spec_random_field(state, &spec_fields[i], (char *) &spec + spec_fields[i].offset);
    return spec;
}
