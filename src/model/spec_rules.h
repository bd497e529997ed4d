/* Network rules as JSON: in requests and answers as texts, in rows as numbers (spec_json.h). One rule
 * each; what is read over is filled as a whole, or not at all used. */
#pragma once

#include "json/json_read.h"
#include "json/json_write.h"
#include "model/network_rule.h"

/* {"allow": true, "to": "10.0.0.0/8", "protocol": "tcp", "ports": "443"} */
int spec_rule_read_api(const struct json_place *item, struct network_rule *rule, struct error *err);
void spec_rule_write_api(struct json_writer *json, const struct network_rule *rule);

/* {"allow": true, "address": 167772160, "bits": 8, "protocol": 1, "first": 443, "last": 443} */
int spec_rule_read_row(const struct json_place *item, struct network_rule *rule, struct error *err);
void spec_rule_write_row(struct json_writer *json, const struct network_rule *rule);
