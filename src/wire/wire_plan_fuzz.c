/* Any bytes are refused with a reason, or are a plan that is valid, encodes to them, and prints as
 * lines that nobody can forge. */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "wire/wire_plan.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(bool holds)
{
    if (!holds)
        abort();
}

static size_t count_lines(const char *text)
{
    size_t lines = 0;

    for (; *text; text++) {
        must((*text >= ' ' && *text <= '~') || *text == '\n');
        lines += *text == '\n';
    }
    return lines;
}

static void check_print(const struct wire_plan *plan)
{
    AUTO(text) struct text text = TEXT_INIT(1 << 16);
    size_t flags = (size_t) __builtin_popcount(plan->flags);
    size_t origins = plan->origin.id.text[0] != '\0', owners = plan->owner.text[0] != '\0';

    wire_plan_print(plan, &text);
    must(!text.overflowed);
    must(count_lines(text_string(&text)) ==
         10 + flags + origins + owners + plan->rules.count + plan->binds.count);
}

/* What the launcher relies on, said without the codec. */
static void check_meaning(const struct wire_plan *plan)
{
    must(id_is_valid(plan->id.text));
    must(!plan->owner.text[0] || id_is_valid(plan->owner.text));
    must(!strchr(plan->image, '/') && plan->image[0] != '.' && plan->image[0]);
    must(plan->rules.count <= WIRE_RULES_MAX && plan->binds.count <= WIRE_BINDS_MAX);
    must(plan->rules.count == 0 || plan->network == NETWORK_NAT);
    must(plan->origin.id.text[0] || !(plan->flags & WIRE_BIT(WIRE_PLAN_HOLD_ORIGIN)));
    if (plan->origin.id.text[0])
        must(id_is_valid(plan->origin.id.text) &&
             !(plan->flags & ~WIRE_BIT(WIRE_PLAN_HOLD_ORIGIN)) &&
             (plan->origin.set == DISK_OF_SNAPSHOT ||
              strcmp(plan->origin.id.text, plan->id.text) != 0));
    for (size_t i = 0; i < plan->rules.count; i++)
        must(plan->rules.items[i].to.bits <= 32 &&
             plan->rules.items[i].ports.first <= plan->rules.items[i].ports.last);
    for (size_t i = 0; i < plan->binds.count; i++) {
        must(!strchr(plan->binds.items[i].source, '/'));
        must(plan->binds.items[i].place[0] == '/' && plan->binds.items[i].place[1]);
        must(!strstr(plan->binds.items[i].place, "/../"));
        for (size_t j = 0; j < i; j++)
            must(strcmp(plan->binds.items[i].place, plan->binds.items[j].place) != 0);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct error err = ERROR_INIT;
    struct wire_plan plan;
    struct wire_plan_bytes bytes;

    if (wire_plan_decode(data, size, &plan, &err) < 0) {
        must(err.code == ERR_INVALID || err.code == ERR_UPGRADE_REQUIRED);
        must(err.message[0] && wire_text_is_printable(err.message));
        return 0;
    }
    must(wire_plan_encode(&plan, &bytes, &err) == 0);
    must(bytes.length == size && memcmp(bytes.bytes, data, size) == 0);
    check_meaning(&plan);
    check_print(&plan);
    return 0;
}
