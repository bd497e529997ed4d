#include "model/spec_rules.h"

#include <arpa/inet.h>
#include <errno.h>
#include <string.h>

#include "base/number.h"

#define RULE_TEXT_MAX 32

static const char *const protocol_names[] = {NETWORK_PROTOCOLS(WORD_TEXT)};

/* --- texts ----------------------------------------------------------------------------------- */

/* "10.0.0.0/8" or one address. */
static int prefix_parse(const char *text, struct network_prefix *prefix)
{
    const char *slash = strchr(text, '/');
    char address[INET_ADDRSTRLEN];
    size_t length = slash ? (size_t) (slash - text) : strlen(text);
    struct in_addr parsed;
    int64_t bits = 32;

    if (length >= sizeof(address))
        return -EINVAL;
    memcpy(address, text, length);
    address[length] = '\0';
    if (inet_pton(AF_INET, address, &parsed) != 1 ||
        (slash && number_parse(slash + 1, 0, 32, &bits) < 0))
        return -EINVAL;
    *prefix = (struct network_prefix){.address = ntohl(parsed.s_addr), .bits = (uint8_t) bits};
    return 0;
}

/* "443" or "8000-8999". */
static int ports_parse(const char *text, struct network_ports *ports)
{
    size_t first_length = strcspn(text, "-");
    const char *second = text[first_length] ? text + first_length + 1 : text;
    uint64_t first, last;

    if (number_parse_digits(text, first_length, UINT16_MAX, &first) < 0 ||
        number_parse_digits(second, strlen(second), UINT16_MAX, &last) < 0 || first > last)
        return -EINVAL;
    *ports = (struct network_ports){.first = (uint16_t) first, .last = (uint16_t) last};
    return 0;
}

static int protocol_parse(const char *text, enum network_protocol *protocol)
{
    for (size_t i = 0; i < ARRAY_COUNT(protocol_names); i++) {
        if (strcmp(text, protocol_names[i]) == 0) {
            *protocol = (enum network_protocol) i;
            return 0;
        }
    }
    return -EINVAL;
}

int spec_rule_read_api(const struct json_place *item, struct network_rule *rule, struct error *err)
{
    static const char *const names[] = {"allow", "to", "protocol", "ports"};
    const char *to = "0.0.0.0/0", *protocol = "any", *ports = "0-65535";

    if (json_known_fields(item, names, ARRAY_COUNT(names), err) < 0 ||
        json_field_boolean(item, "allow", JSON_REQUIRED, &rule->allow, err) < 0 ||
        json_field_text(item, "to", JSON_OPTIONAL, RULE_TEXT_MAX, &to, err) < 0 ||
        json_field_text(item, "protocol", JSON_OPTIONAL, RULE_TEXT_MAX, &protocol, err) < 0 ||
        json_field_text(item, "ports", JSON_OPTIONAL, RULE_TEXT_MAX, &ports, err) < 0)
        return -1;
    if (prefix_parse(to, &rule->to) < 0)
        return json_refuse_field(item, "to", "an IPv4 address or a range like 10.0.0.0/8", err);
    if (protocol_parse(protocol, &rule->protocol) < 0)
        return json_refuse_field(item, "protocol", "any, tcp or udp", err);
    if (ports_parse(ports, &rule->ports) < 0)
        return json_refuse_field(item, "ports", "a port like 443 or a range like 8000-8999", err);
    return 0;
}

void spec_rule_write_api(struct json_writer *json, const struct network_rule *rule)
{
    uint32_t address = rule->to.address;
    char text[64];

    json_begin_object(json);
    json_add_boolean(json, "allow", rule->allow);
    (void) snprintf(text, sizeof(text), "%u.%u.%u.%u/%u", address >> 24, (address >> 16) & 255,
                    (address >> 8) & 255, address & 255, (unsigned int) rule->to.bits);
    json_add_text(json, "to", text);
    json_add_text(json, "protocol", protocol_names[rule->protocol]);
    (void) snprintf(text, sizeof(text), "%u-%u", (unsigned int) rule->ports.first,
                    (unsigned int) rule->ports.last);
    json_add_text(json, "ports", text);
    json_end_object(json);
}

/* --- numbers --------------------------------------------------------------------------------- */

int spec_rule_read_row(const struct json_place *item, struct network_rule *rule, struct error *err)
{
    int64_t address, bits, protocol, first, last;

    if (json_field_boolean(item, "allow", JSON_REQUIRED, &rule->allow, err) < 0 ||
        json_field_integer(item, "address", JSON_REQUIRED, 0, UINT32_MAX, &address, err) < 0 ||
        json_field_integer(item, "bits", JSON_REQUIRED, 0, 32, &bits, err) < 0 ||
        json_field_integer(item, "protocol", JSON_REQUIRED, 0, NETWORK_UDP, &protocol, err) < 0 ||
        json_field_integer(item, "first", JSON_REQUIRED, 0, UINT16_MAX, &first, err) < 0 ||
        json_field_integer(item, "last", JSON_REQUIRED, 0, UINT16_MAX, &last, err) < 0)
        return -1;
    rule->to = (struct network_prefix){.address = (uint32_t) address, .bits = (uint8_t) bits};
    rule->protocol = (enum network_protocol) protocol;
    rule->ports = (struct network_ports){.first = (uint16_t) first, .last = (uint16_t) last};
    return 0;
}

void spec_rule_write_row(struct json_writer *json, const struct network_rule *rule)
{
    json_begin_object(json);
    json_add_boolean(json, "allow", rule->allow);
    json_add_integer(json, "address", rule->to.address);
    json_add_integer(json, "bits", rule->to.bits);
    json_add_integer(json, "protocol", rule->protocol);
    json_add_integer(json, "first", rule->ports.first);
    json_add_integer(json, "last", rule->ports.last);
    json_end_object(json);
}
