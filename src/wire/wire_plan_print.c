#include "base/number.h"
#include "wire/wire_plan.h"

static void print_line(struct text *text, const char *name, const char *value)
{
    text_format(text, "%-10s%s\n", name, value);
}

static void print_size(struct text *text, const char *name, uint64_t bytes, const char *otherwise)
{
    char size[NUMBER_TEXT_SIZE];

    number_format_size(bytes, size);
    print_line(text, name, bytes ? size : otherwise);
}

static void print_count(struct text *text, const char *name, uint64_t count, const char *otherwise)
{
    char number[NUMBER_TEXT_SIZE];

    (void) number_format_unsigned(count, number);
    print_line(text, name, count ? number : otherwise);
}

static void print_limits(struct text *text, const struct limits *limits)
{
    print_size(text, "memory", limits->memory_bytes, "unlimited");
    if (limits->swap_bytes == LIMITS_SWAP_UNLIMITED)
        print_line(text, "swap", "unlimited");
    else
        print_size(text, "swap", limits->swap_bytes, "none");
    print_count(text, "pids", limits->pids, "unlimited");
    if (limits->cpu_millis)
        text_format(text, "%-10s%u.%03u\n", "cpus", limits->cpu_millis / 1000,
                    limits->cpu_millis % 1000);
    else
        print_line(text, "cpus", "unlimited");
    print_size(text, "disk", limits->disk_bytes, "unlimited");
    print_count(text, "files", limits->files, "default");
}

static void print_rule(struct text *text, const struct network_rule *rule)
{
    uint32_t to = rule->to.address;

    text_format(text, "%-10s%s %s %u.%u.%u.%u/%u", "rule", rule->allow ? "allow" : "deny",
                wire_protocol_words[rule->protocol], to >> 24, to >> 16 & 255, to >> 8 & 255,
                to & 255, rule->to.bits);
    if (rule->protocol != NETWORK_ANY)
        text_format(text, " ports %u-%u", rule->ports.first, rule->ports.last);
    text_append_char(text, '\n');
}

void wire_plan_print(const struct wire_plan *plan, struct text *text)
{
    print_line(text, "sandbox", plan->id.text);
    print_line(text, "hostname", plan->hostname);
    print_line(text, "image", plan->image);
    for (unsigned int flag = 0; flag < wire_plan_flag_count; flag++)
        if (plan->flags & WIRE_BIT(flag))
            print_line(text, "flag", wire_plan_flag_words[flag]);
    if (plan->origin.id.text[0])
        text_format(text, "%-10s%s %s\n", "origin", wire_disk_set_words[plan->origin.set],
                    plan->origin.id.text);
    print_limits(text, &plan->limits);
    if (plan->owner.text[0])
        text_format(text, "%-10s%s\n", "owner", plan->owner.text);
    print_line(text, "network", wire_network_mode_words[plan->network]);
    for (size_t i = 0; i < plan->rules.count; i++)
        print_rule(text, &plan->rules.items[i]);
    for (size_t i = 0; i < plan->binds.count; i++)
        text_format(text, "%-10s%s at %s\n", "bind", plan->binds.items[i].source,
                    plan->binds.items[i].place);
}
