/* The bodies of this dialect as JSON schemas, for the OpenAPI document. */
#pragma once

#include "model/spec.def"

/* A duration: "30s", "5m" or seconds. A size: "512M" or bytes. */
#define DURATION_SCHEMA                                                                            \
    "{\"oneOf\":[{\"type\":\"string\",\"examples\":[\"30s\",\"5m\",\"1h\"]},{\"type\":\"num"       \
    "ber\"}],\"description\":\"a duration; numbers are seconds\"}"

#define SIZE_SCHEMA                                                                                \
    "{\"oneOf\":[{\"type\":\"string\",\"examples\":[\"512M\"]},{\"type\":\"integer\"}],\"de"       \
    "scription\":\"a size; numbers are bytes\"}"

#define PAIRS_SCHEMA "{\"type\":\"object\",\"additionalProperties\":{\"type\":\"string\"}}"

#define CHANGES_SCHEMA                                                                             \
    "{\"type\":\"object\",\"additionalProperties\":{\"type\":[\"string\",\"null\"]}}"

/* --- specs: made from the rows of model/spec.def ---------------------------------------------- */

#define OBJECT_SCHEMA(properties)                                                                  \
    "{\"type\":\"object\",\"additionalProperties\":false,\"properties\":{" properties "}}"

#define PROPERTY_SCHEMA(name, schema) "\"" name "\":" schema

#define STRING_SCHEMA  "{\"type\":\"string\"}"
#define INTEGER_SCHEMA "{\"type\":\"integer\"}"
#define NUMBER_SCHEMA  "{\"type\":\"number\"}"
#define BOOLEAN_SCHEMA "{\"type\":\"boolean\"}"
#define TEXT_OR_NULL   "{\"type\":[\"string\",\"null\"]}"

#define LIMIT_SCHEMA_SIZE   SIZE_SCHEMA
#define LIMIT_SCHEMA_NUMBER INTEGER_SCHEMA
#define LIMIT_SCHEMA_SHARE  NUMBER_SCHEMA

#define LIMIT_PROPERTY(member, TYPE, limit, name, ...) PROPERTY_SCHEMA(name, LIMIT_SCHEMA_##TYPE)
#define LIMIT_NEXT(...)                                "," LIMIT_PROPERTY(__VA_ARGS__)
#define LIMITS_SCHEMA                                  OBJECT_SCHEMA(LIMIT_FIRST(LIMIT_PROPERTY) LIMIT_OTHERS(LIMIT_NEXT))

#define NETWORK_SCHEMA "{\"enum\":[\"none\",\"nat\"]}"
#define RULES_SCHEMA                                                                               \
    "{\"type\":\"array\",\"items\":{\"type\":\"object\",\"additionalProperties\":false,"           \
    "\"properties\":{\"allow\":{\"type\":\"boolean\"},\"to\":{\"type\":\"string\"},\"protocol\":"  \
    "{\"enum\":[\"any\",\"tcp\",\"udp\"]},\"ports\":{\"type\":\"string\"}},\"required\":["         \
    "\"allow\"]}}"
#define TIER_CHANGE_SCHEMA                                                                         \
    "{\"oneOf\":[{\"type\":\"string\"},{\"type\":\"number\"},{\"type\":\"null\"}],"                \
    "\"description\":\"a duration; null: the default again\"}"
#define BUDGET_SCHEMA                                                                              \
    "{\"type\":\"object\",\"additionalProperties\":false,\"properties\":{"                         \
    "\"requestsPerMinute\":{\"type\":\"integer\",\"minimum\":1},"                                  \
    "\"tokensPerDay\":{\"type\":\"integer\",\"minimum\":1},"                                       \
    "\"costPerDay\":{\"type\":[\"string\",\"number\"],\"description\":\"money, as "                \
    "\\\"5.00\\\"\"}}}"
#define POLICY_SCHEMA                                                                              \
    "{\"type\":[\"object\",\"null\"],\"additionalProperties\":false,\"properties\":{"              \
    "\"default\":{\"enum\":[\"deny\",\"allow\"]},"                                                 \
    "\"rules\":{\"type\":\"array\",\"maxItems\":128,\"items\":{\"type\":\"object\","               \
    "\"additionalProperties\":false,\"required\":[\"host\"],\"properties\":{\"host\":"             \
    "{\"type\":\"string\",\"description\":\"example.org, *.example.org or *\"},"                   \
    "\"port\":{\"type\":\"integer\"},\"protocol\":{\"enum\":[\"http\",\"tcp\"]},"                  \
    "\"credential\":{\"type\":\"string\"},"                                                        \
    "\"methods\":{\"type\":\"array\",\"items\":{\"type\":\"string\"}},"                            \
    "\"paths\":{\"type\":\"array\",\"items\":{\"type\":\"string\"}}}}},"                           \
    "\"models\":{\"type\":\"object\",\"additionalProperties\":{\"oneOf\":[{\"type\":\"string\"},"  \
    "{\"type\":\"object\",\"additionalProperties\":false,\"properties\":{"                         \
    "\"credential\":{\"type\":\"string\"},\"base\":{\"type\":\"string\"},"                         \
    "\"api\":{\"enum\":[\"anthropic\",\"openai\",\"google\",\"none\"]},"                           \
    "\"paths\":{\"type\":\"array\",\"items\":{\"type\":\"string\"}}}}]}},"                         \
    "\"budget\":" BUDGET_SCHEMA ",\"taskBudget\":" BUDGET_SCHEMA "}}"
#define COMMANDS_SCHEMA "{\"type\":\"array\",\"maxItems\":16,\"items\":{\"type\":\"string\"}}"

/* By type: in what makes something, in what changes it, and as it is shown. */
#define SCHEMA_TYPE_NAME(pick)      pick(STRING_SCHEMA, STRING_SCHEMA, TEXT_OR_NULL)
#define SCHEMA_TYPE_TEXT(pick)      pick(STRING_SCHEMA, STRING_SCHEMA, TEXT_OR_NULL)
#define SCHEMA_TYPE_FOLDER(pick)    STRING_SCHEMA
#define SCHEMA_TYPE_VARIABLES(pick) pick(PAIRS_SCHEMA, CHANGES_SCHEMA, CHANGES_SCHEMA)
#define SCHEMA_TYPE_LABELS(pick)    pick(PAIRS_SCHEMA, CHANGES_SCHEMA, PAIRS_SCHEMA)
#define SCHEMA_TYPE_BINDS(pick)     PAIRS_SCHEMA
#define SCHEMA_TYPE_COMMANDS(pick)  COMMANDS_SCHEMA
#define SCHEMA_TYPE_DURATION(pick)  pick(DURATION_SCHEMA, DURATION_SCHEMA, NUMBER_SCHEMA)
#define SCHEMA_TYPE_TIER(pick)      pick(DURATION_SCHEMA, TIER_CHANGE_SCHEMA, NUMBER_SCHEMA)
#define SCHEMA_TYPE_COUNT(pick)     INTEGER_SCHEMA
#define SCHEMA_TYPE_FLAG(pick)      BOOLEAN_SCHEMA
#define SCHEMA_TYPE_LIMITS(pick)    pick(LIMITS_SCHEMA, LIMITS_SCHEMA, "{\"type\":\"object\"}")
#define SCHEMA_TYPE_NETWORK(pick)   NETWORK_SCHEMA
#define SCHEMA_TYPE_RULES(pick)     RULES_SCHEMA
#define SCHEMA_TYPE_POLICY(pick)    POLICY_SCHEMA

#define SCHEMA_WHEN_MADE(made, changed, shown)    made
#define SCHEMA_WHEN_CHANGED(made, changed, shown) changed
#define SCHEMA_WHEN_SHOWN(made, changed, shown)   shown

#define NAME_PROPERTY(member, TYPE, name, ...)                                                     \
    PROPERTY_SCHEMA(name, SCHEMA_TYPE_##TYPE(SCHEMA_WHEN_MADE))
#define CREATE_NEXT(member, TYPE, name, row, least, most, WHERE, ...)                              \
    SPEC_IN_CREATE_##WHERE("," PROPERTY_SCHEMA(name, SCHEMA_TYPE_##TYPE(SCHEMA_WHEN_MADE)))
#define TEMPLATE_NEXT(member, TYPE, name, row, least, most, WHERE, ...)                            \
    SPEC_IN_TEMPLATE_##WHERE("," PROPERTY_SCHEMA(name, SCHEMA_TYPE_##TYPE(SCHEMA_WHEN_MADE)))
#define CHANGE_NEXT(member, TYPE, name, row, least, most, WHERE, ...)                              \
    SPEC_IN_CHANGE_##WHERE("," PROPERTY_SCHEMA(name, SCHEMA_TYPE_##TYPE(SCHEMA_WHEN_CHANGED)))
#define SHOWN_NEXT(member, TYPE, name, ...)                                                        \
    "," PROPERTY_SCHEMA(name, SCHEMA_TYPE_##TYPE(SCHEMA_WHEN_SHOWN))

#define SPEC_SCHEMA                                                                                \
    OBJECT_SCHEMA(SPEC_FIRST(NAME_PROPERTY)                                                        \
                      SPEC_OTHERS(CREATE_NEXT) "," PROPERTY_SCHEMA("template", STRING_SCHEMA))

#define CHANGE_SCHEMA OBJECT_SCHEMA(SPEC_FIRST(NAME_PROPERTY) SPEC_OTHERS(CHANGE_NEXT))

#define COLLECT_SCHEMA                                                                             \
    "{\"type\":\"object\",\"additionalProperties\":false,\"properties\":{"                         \
    "\"grace\":" DURATION_SCHEMA "}}"

#define INSPECT_SCHEMA                                                                             \
    "{\"type\":\"object\",\"additionalProperties\":false,\"properties\":{"                         \
    "\"deep\":{\"type\":\"boolean\"}}}"

#define TIME_SCHEMA "{\"type\":[\"string\",\"null\"],\"format\":\"date-time\"}"

#define SANDBOX_SCHEMA                                                                             \
    "{\"type\":\"object\",\"required\":[\"id\",\"status\"],\"properties\":{\"id\":{\"type\""       \
    ":\"string\"},\"name\":{\"type\":[\"string\",\"null\"]},\"owner\":{\"type\":\"string\"}"       \
    ",\"status\":{\"enum\":[\"creating\",\"starting\",\"running\",\"frozen\",\"hibernated\""       \
    ",\"waking\",\"stopping\",\"stopped\",\"error\",\"destroyed\",\"unknown\"]},\"tier\":{"        \
    "\"enum\":[\"running\",\"frozen\",\"reclaimed\",\"hibernated\",\"offloaded\"]},\"reason\":"    \
    "{\"type\":\"string\"},\"unenforced\":{\"type\":\"array\",\"items\":{\"type"                   \
    "\":\"string\"}},\"createdAt\":" TIME_SCHEMA ",\"updatedAt\":" TIME_SCHEMA                     \
    ",\"activeAt\":" TIME_SCHEMA ",\"startedAt\":" TIME_SCHEMA                                     \
    SPEC_OTHERS(SHOWN_NEXT) "}}"

#define SANDBOXES_SCHEMA                                                                           \
    "{\"type\":\"object\",\"properties\":{\"sandboxes\":{\"type\":\"array\",\"items\":{\"ty"       \
    "pe\":\"object\"}},\"nextCursor\":{\"type\":[\"string\",\"null\"]}}}"

#define EXECUTE_SCHEMA                                                                             \
    "{\"type\":\"object\",\"additionalProperties\":false,\"properties\":{\"command\":{\"typ"       \
    "e\":\"string\"},\"argv\":{\"type\":\"array\",\"items\":{\"type\":\"string\"}},\"cwd\":"       \
    "{\"type\":\"string\"},\"env\":" CHANGES_SCHEMA                                                \
    ",\"user\":{\"type\":\"string\"},\"timeout\":" DURATION_SCHEMA                                 \
    ",\"stdin\":{\"type\":\"string\"},\"stdinEncoding\":{\"enum\":[\"utf-8\",\"base64\"]},"        \
    "\"encoding\":{\"enum\":[\"utf-8\",\"base64\"]},\"sessionId\":{\"type\":\"string\"},\"s"       \
    "tream\":{\"type\":\"boolean\"}}}"

#define EXECUTED_SCHEMA                                                                            \
    "{\"type\":\"object\",\"properties\":{\"exitCode\":{\"type\":[\"integer\",\"null\"]},\""       \
    "signal\":{\"type\":\"string\"},\"stdout\":{\"type\":\"string\"},\"stderr\":{\"type\":"        \
    "\"string\"},\"stdoutTruncated\":{\"type\":\"boolean\"},\"stderrTruncated\":{\"type\":"        \
    "\"boolean\"},\"timedOut\":{\"type\":\"boolean\"},\"outOfMemory\":{\"type\":\"boolean\""       \
    "},\"duration\":{\"type\":\"integer\"}}}"

#define SESSION_SCHEMA                                                                             \
    "{\"type\":\"object\",\"additionalProperties\":false,\"properties\":{\"id\":{\"type\":"        \
    "\"string\"},\"cwd\":{\"type\":\"string\"},\"env\":" CHANGES_SCHEMA                            \
    ",\"commandTimeout\":" DURATION_SCHEMA "}}"

#define PROCESS_SCHEMA                                                                             \
    "{\"type\":\"object\",\"additionalProperties\":false,\"properties\":{\"command\":{\"typ"       \
    "e\":\"string\"},\"id\":{\"type\":\"string\"},\"cwd\":{\"type\":\"string\"},"                  \
    "\"env\":" CHANGES_SCHEMA ",\"timeout\":" DURATION_SCHEMA                                      \
    ",\"autoCleanup\":{\"type\":\"boolean\"},\"encoding\":{\"type\":\"string\"},\"sessionId"       \
    "\":{\"type\":\"string\"}},\"required\":[\"command\"]}"

#define CONTEXT_SCHEMA                                                                             \
    "{\"type\":\"object\",\"additionalProperties\":false,\"properties\":{\"language\":{\"en"       \
    "um\":[\"python\",\"javascript\",\"typescript\"]},\"cwd\":{\"type\":\"string\"},\"env\""       \
    ":" PAIRS_SCHEMA "}}"

#define RUN_SCHEMA                                                                                 \
    "{\"type\":\"object\",\"additionalProperties\":false,\"properties\":{\"code\":{\"type\""       \
    ":\"string\"},\"language\":{\"type\":\"string\"},\"contextId\":{\"type\":\"string\"},\""       \
    "env\":" PAIRS_SCHEMA ",\"timeout\":" DURATION_SCHEMA "},\"required\":[\"code\"]}"

#define CLONE_SCHEMA                                                                               \
    "{\"type\":\"object\",\"additionalProperties\":false,\"properties\":{\"url\":{\"type\":"       \
    "\"string\"},\"branch\":{\"type\":\"string\"},\"folder\":{\"type\":\"string\"},\"depth"        \
    "\":{\"type\":\"integer\"},\"timeout\":" DURATION_SCHEMA                                       \
    ",\"sessionId\":{\"type\":\"string\"}},\"required\":[\"url\"]}"

#define WATCH_SCHEMA                                                                               \
    "{\"type\":\"object\",\"additionalProperties\":false,\"properties\":{\"path\":{\"type\""       \
    ":\"string\"},\"recursive\":{\"type\":\"boolean\"},\"include\":{\"type\":\"array\",\"it"       \
    "ems\":{\"type\":\"string\"}},\"exclude\":{\"type\":\"array\",\"items\":{\"type\":\"str"       \
    "ing\"}},\"events\":{\"type\":\"array\",\"items\":{\"type\":\"string\"}},\"sessionId\":"       \
    "{\"type\":\"string\"}},\"required\":[\"path\"]}"

#define ORDER_SCHEMA                                                                               \
    "{\"type\":\"object\",\"additionalProperties\":false,\"properties\":{\"action\":{\"enum"       \
    "\":[\"mkdir\",\"move\"]},\"to\":{\"type\":\"string\"},\"recursive\":{\"type\":\"boolea"       \
    "n\"}},\"required\":[\"action\"]}"

#define EVENTS_SCHEMA                                                                              \
    "{\"type\":\"object\",\"properties\":{\"events\":{\"type\":\"array\",\"items\":{\"type"        \
    "\":\"object\"}},\"next\":{\"type\":\"integer\"}}}"

#define BACKUP_SCHEMA                                                                              \
    "{\"type\":\"object\",\"additionalProperties\":false,\"properties\":{\"name\":{\"type\""       \
    ":\"string\"}}}"

#define FREEZE_SCHEMA                                                                              \
    "{\"type\":\"boolean\",\"default\":true,\"description\":\"hold a running sandbox still for "   \
    "the "                                                                                         \
    "moment of the copy; pauseMs says how long\"}"

#define SNAPSHOT_ORDER_SCHEMA                                                                      \
    "{\"type\":\"object\",\"additionalProperties\":false,\"properties\":{\"name\":{\"type\""       \
    ":\"string\"},\"freeze\":" FREEZE_SCHEMA ",\"ttl\":" DURATION_SCHEMA "}}"

#define SNAPSHOT_SCHEMA                                                                            \
    "{\"type\":\"object\",\"required\":[\"id\",\"state\"],\"properties\":{\"id\":{\"type\""        \
    ":\"string\"},\"name\":{\"type\":[\"string\",\"null\"]},\"sandboxId\":{\"type\":\"string\""    \
    "},\"owner\":{\"type\":\"string\"},\"reason\":{\"type\":\"string\"},\"state\":{\"enum\":["     \
    "\"ready\",\"storing\",\"stored\",\"lost\"]},\"size\":{\"type\":\"integer\"},\"image\":{"      \
    "\"type\":[\"string\",\"null\"]},\"createdAt\":{\"type\":\"string\",\"format\":\"date-time"    \
    "\"},\"expiresAt\":{\"type\":\"string\",\"format\":\"date-time\"},\"pauseMs\":{\"type\":\""    \
    "number\"},\"tookMs\":{\"type\":\"number\"},\"copied\":{\"type\":\"boolean\"}}}"

#define SNAPSHOTS_SCHEMA                                                                           \
    "{\"type\":\"object\",\"properties\":{\"snapshots\":{\"type\":\"array\","                      \
    "\"items\":" SNAPSHOT_SCHEMA "},\"nextCursor\":{\"type\":[\"string\",\"null\"]}}}"

#define FORK_SCHEMA                                                                                \
    OBJECT_SCHEMA(SPEC_FIRST(NAME_PROPERTY)                                                        \
                      SPEC_OTHERS(CHANGE_NEXT) ",\"count\":{\"type\":\"integer\",\"minimum\":1,"   \
                                               "\"maximum\":1000},\"freeze\":" FREEZE_SCHEMA)

#define FORKED_SCHEMA                                                                              \
    "{\"type\":\"object\",\"properties\":{\"sandboxes\":{\"type\":\"array\",\"items\":{\"type"     \
    "\":\"object\"}},\"pauseMs\":{\"type\":\"number\"}}}"

#define ROLLBACK_SCHEMA                                                                            \
    "{\"type\":\"object\",\"additionalProperties\":false,\"required\":[\"snapshot\"],\"propert"    \
    "ies\":{\"snapshot\":{\"type\":\"string\"}}}"

#define ROLLED_BACK_SCHEMA                                                                         \
    "{\"type\":\"object\",\"properties\":{\"sandbox\":{\"type\":\"object\"},"                      \
    "\"saved\":" SNAPSHOT_SCHEMA "}}"

#define DIFF_SCHEMA                                                                                \
    "{\"type\":\"object\",\"properties\":{\"changes\":{\"type\":\"array\",\"items\":{\"type\""     \
    ":\"object\"}},\"totals\":{\"type\":\"object\"},\"truncated\":{\"type\":\"boolean\"}}}"

#define TEMPLATE_ORDER_SCHEMA                                                                      \
    OBJECT_SCHEMA(PROPERTY_SCHEMA("snapshot", STRING_SCHEMA) SPEC_OTHERS(TEMPLATE_NEXT))

#define TEMPLATE_SCHEMA                                                                            \
    "{\"type\":\"object\",\"required\":[\"name\"],\"properties\":{\"name\":{\"type\":\"string\""   \
    "},\"snapshot\":{\"type\":[\"string\",\"null\"]},\"image\":{\"type\":[\"string\",\"null\"]}"   \
    ",\"createdAt\":{\"type\":\"string\"},\"updatedAt\":{\"type\":\"string\"}}}"

#define TEMPLATES_SCHEMA                                                                           \
    "{\"type\":\"object\",\"properties\":{\"templates\":{\"type\":\"array\",\"items\":{\"ty"       \
    "pe\":\"object\"}},\"nextCursor\":{\"type\":[\"string\",\"null\"]}}}"

/* --- ports, backups, mounts, webhooks, workspaces, people ------------------------------------ */

#define TEXT_FIELD(name) "\"" name "\":{\"type\":\"string\"}"

#define EXPOSE_SCHEMA                                                                              \
    "{\"type\":\"object\",\"required\":[\"port\"],\"properties\":{"                                \
    "\"port\":{\"type\":\"integer\",\"minimum\":1024,\"maximum\":65535},"                          \
    "\"name\":{\"type\":\"string\"},\"token\":{\"type\":\"string\",\"pattern\":"                   \
    "\"^[a-z0-9_]{1,16}$\"},\"wake\":{\"type\":\"boolean\"},"                                      \
    "\"expiresIn\":{\"type\":[\"string\",\"integer\"]}}}"

#define BACKUP_ORDER_SCHEMA                                                                        \
    "{\"type\":\"object\",\"properties\":{\"dir\":{\"type\":\"string\"},"                          \
    "\"name\":{\"type\":\"string\",\"maxLength\":256},\"ttl\":{\"type\":[\"integer\",\"string\"]}" \
    ","                                                                                            \
    "\"gitignore\":{\"type\":\"boolean\"},\"excludes\":{\"type\":\"array\",\"items\":"             \
    "{\"type\":\"string\"}},\"compression\":{\"enum\":[\"lz4\",\"zstd\",\"gzip\",\"xz\"]},"        \
    "\"freeze\":" FREEZE_SCHEMA "}}"

#define RESTORE_SCHEMA                                                                             \
    "{\"type\":\"object\",\"required\":[\"backup\"],\"properties\":{"                              \
    "\"backup\":{\"type\":[\"object\",\"string\"]},\"dir\":{\"type\":\"string\"}}}"

#define MOUNT_SCHEMA                                                                                                                                                   \
    "{\"type\":\"object\",\"required\":[\"path\",\"bucket\"],\"properties\":{" TEXT_FIELD("path") "," TEXT_FIELD(                                                      \
        "bucket") "," TEXT_FIELD("prefix") ",\"readOnly\":{\"type\":"                                                                                                  \
                                           "\"boolean\"}," TEXT_FIELD("endpoint") "," TEXT_FIELD("region") ",\"style\":{\"enum\":[\"path\",\"virtual\"]}," TEXT_FIELD( \
                                               "accessKeyId") "," TEXT_FIELD("secretAccessKey") "," TEXT_FIELD("sessionToken") "}}"

#define WEBHOOK_SCHEMA                                                                             \
    "{\"type\":\"object\",\"required\":[\"url\"],\"properties\":{\"url\":{\"type\":\"string\"},"   \
    "\"events\":{\"type\":\"array\",\"items\":{\"type\":\"string\"}},"                             \
    "\"secret\":{\"type\":\"string\"},\"bearer\":{\"type\":\"string\"}}}"
#define WEBHOOK_CHANGE_SCHEMA                                                                      \
    "{\"type\":\"object\",\"required\":[\"enabled\"],"                                             \
    "\"properties\":{\"enabled\":{\"type\":\"boolean\"}}}"

#define SYNC_SCHEMA                                                                                \
    "{\"type\":\"object\",\"additionalProperties\":false,\"properties\":{"                         \
    "\"freeze\":" FREEZE_SCHEMA "}}"
#define EMPTY_SCHEMA "{\"type\":\"object\",\"additionalProperties\":false}"

#define USER_FIELDS                                                                                \
    TEXT_FIELD("name")                                                                             \
    "," TEXT_FIELD("email") "," TEXT_FIELD(                                                        \
        "password") ","                                                                            \
                    "\"role\":{\"enum\":[\"admin\",\"user\"]},\"quotas\":{\"type\":\"object\"}"
#define CREATE_USER_SCHEMA                                                                         \
    "{\"type\":\"object\",\"required\":[\"name\"],\"properties\":{" USER_FIELDS "}}"
#define UPDATE_USER_SCHEMA                                                                         \
    "{\"type\":\"object\",\"properties\":{" USER_FIELDS                                            \
    "," TEXT_FIELD("currentPassword") ",\"disabled\":{\"type\":\"boolean\"}}}"
#define CREATE_KEY_SCHEMA                                                                          \
    "{\"type\":\"object\",\"required\":[\"name\"],\"properties\":{" TEXT_FIELD(                    \
        "name") ","                                                                                \
                "\"scope\":{\"enum\":[\"admin\",\"write\",\"read\",\"sandbox\",\"port\"]}"         \
                "," TEXT_FIELD(                                                                    \
                    "sandbox") ",\"port\":{\"type\":\"integer\"},"                                 \
                               "\"expiresIn\":{\"type\":[\"string\",\"integer\"]}," TEXT_FIELD(    \
                                   "user") "}}"

/* --- egress ---------------------------------------------------------------------------------- */

#define TEXTS_SCHEMA "{\"type\":\"array\",\"items\":{\"type\":\"string\"}}"
#define EGRESS_SCHEMA                                                                              \
    "{\"type\":\"object\",\"properties\":{\"policy\":" POLICY_SCHEMA                               \
    ",\"open\":{\"type\":\"boolean\"},\"listening\":" TEXTS_SCHEMA                                 \
    ",\"counters\":{\"type\":\"object\"},\"today\":{\"type\":\"object\"},"                         \
    "\"recent\":{\"type\":\"array\",\"items\":{\"type\":\"object\"}}}}"
#define EGRESS_DEFAULTS_SCHEMA                                                                     \
    "{\"type\":\"object\",\"additionalProperties\":false,\"properties\":{"                         \
    "\"policy\":" POLICY_SCHEMA ",\"budget\":" BUDGET_SCHEMA "}}"
#define USAGE_SCHEMA                                                                               \
    "{\"type\":\"object\",\"properties\":{\"usage\":{\"type\":\"array\",\"items\":{\"type\":"      \
    "\"object\",\"properties\":{\"requests\":{\"type\":\"integer\"},\"partial\":{\"type\":"        \
    "\"integer\"},\"tokens\":{\"type\":\"object\"},\"cost\":{\"type\":\"string\"},"                \
    "\"costMicros\":{\"type\":\"integer\"},\"costKnown\":{\"type\":\"boolean\"},\"unpriced\":"     \
    "{\"type\":\"integer\"}}}},\"nextCursor\":" TEXT_OR_NULL "}}"
#define CREDENTIAL_KIND_SCHEMA                                                                     \
    "{\"enum\":[\"header\",\"bearer\",\"basic\",\"anthropic\",\"openai\",\"google\",\"oauth\","    \
    "\"github-app\"]}"
#define CREDENTIAL_SHOWN                                                                           \
    "\"kind\":" CREDENTIAL_KIND_SCHEMA ",\"hosts\":" TEXTS_SCHEMA ",\"header\":" STRING_SCHEMA     \
    ",\"base\":" STRING_SCHEMA ",\"account\":" STRING_SCHEMA ",\"api\":" STRING_SCHEMA             \
    ",\"tokenUrl\":" STRING_SCHEMA ",\"clientId\":" STRING_SCHEMA ",\"scope\":" STRING_SCHEMA      \
    ",\"appId\":" STRING_SCHEMA ",\"installationId\":" STRING_SCHEMA                               \
    ",\"expiresAt\":" STRING_SCHEMA
#define CREDENTIAL_SCHEMA                                                                          \
    "{\"type\":\"object\",\"properties\":{\"name\":" STRING_SCHEMA ",\"owner\":" STRING_SCHEMA     \
    "," CREDENTIAL_SHOWN ",\"failure\":" STRING_SCHEMA ",\"usedAt\":" STRING_SCHEMA                \
    ",\"createdAt\":" STRING_SCHEMA ",\"updatedAt\":" STRING_SCHEMA "}}"
#define CREDENTIALS_SCHEMA                                                                         \
    "{\"type\":\"object\",\"properties\":{\"credentials\":{\"type\":\"array\","                    \
    "\"items\":" CREDENTIAL_SCHEMA "}}}"
#define CREDENTIAL_ORDER_SCHEMA                                                                    \
    "{\"type\":\"object\",\"additionalProperties\":false,\"required\":[\"kind\"],\"properties\":"  \
    "{" CREDENTIAL_SHOWN ",\"value\":" STRING_SCHEMA ",\"refreshToken\":" STRING_SCHEMA            \
    ",\"clientSecret\":" STRING_SCHEMA ",\"privateKey\":" STRING_SCHEMA "}}"

/* clang-format off */
/* --- agents ------------------------------------------------------------------------------------ */

#define MODEL_SCHEMA                                                                               \
    "{\"oneOf\":[{\"type\":\"string\",\"examples\":[\"anthropic/claude-sonnet-4-6\"]},{\"type\":"  \
    "\"object\",\"properties\":{\"providerID\":{\"type\":\"string\"},\"modelID\":{\"type\":"        \
    "\"string\"}}}]}"
#define TEXT_OR_OBJECT "{\"type\":[\"string\",\"object\"]}"
#define ARRAY_SCHEMA   "{\"type\":\"array\",\"items\":{\"type\":\"object\"}}"
#define ANY_OBJECT     "{\"type\":\"object\"}"
#define WAIT_SCHEMA    "{\"enum\":[true,false,\"stream\"]}"

/* Of conversations and tasks: which agent, and how. */
#define AGENT_PROPERTIES                                                                           \
    PROPERTY_SCHEMA("title", STRING_SCHEMA)                                                        \
    "," PROPERTY_SCHEMA("model", MODEL_SCHEMA) "," PROPERTY_SCHEMA("agent", STRING_SCHEMA) ","     \
    PROPERTY_SCHEMA("kind", "{\"enum\":[\"opencode\",\"claude\",\"codex\",\"command\"]}") ","      \
    PROPERTY_SCHEMA("folder", STRING_SCHEMA) "," PROPERTY_SCHEMA("config", TEXT_OR_OBJECT) ","     \
    PROPERTY_SCHEMA("command", STRING_SCHEMA) "," PROPERTY_SCHEMA("permission", TEXT_OR_OBJECT)    \
    "," PROPERTY_SCHEMA("permissionTimeout", DURATION_SCHEMA)

#define CONVERSATION_SCHEMA OBJECT_SCHEMA(AGENT_PROPERTIES)

#define TURN_SCHEMA                                                                                \
    OBJECT_SCHEMA(PROPERTY_SCHEMA("text", STRING_SCHEMA) "," PROPERTY_SCHEMA("parts", ARRAY_SCHEMA)\
                  "," PROPERTY_SCHEMA("model", MODEL_SCHEMA) ","                                   \
                  PROPERTY_SCHEMA("agent", STRING_SCHEMA) ","                                      \
                  PROPERTY_SCHEMA("timeout", DURATION_SCHEMA) ","                                  \
                  PROPERTY_SCHEMA("wait", WAIT_SCHEMA) ","                                         \
                  PROPERTY_SCHEMA("idempotencyKey", STRING_SCHEMA))

#define PERMISSION_SCHEMA                                                                          \
    OBJECT_SCHEMA(PROPERTY_SCHEMA("reply", "{\"enum\":[\"once\",\"always\",\"reject\"]}") ","        \
                  PROPERTY_SCHEMA("message", STRING_SCHEMA))
#define QUESTION_SCHEMA                                                                            \
    OBJECT_SCHEMA(PROPERTY_SCHEMA("answers", "{\"type\":\"array\"}") ","                           \
                  PROPERTY_SCHEMA("reply", "{\"enum\":[\"reject\"]}"))

#define TASK_PROPERTIES                                                                            \
    AGENT_PROPERTIES                                                                               \
    "," PROPERTY_SCHEMA("text", STRING_SCHEMA) "," PROPERTY_SCHEMA("parts", ARRAY_SCHEMA) ","      \
    PROPERTY_SCHEMA("backend", "{\"enum\":[\"local\",\"docker\",\"cloudflare\",\"burrow\"]}") ","  \
    PROPERTY_SCHEMA("sandbox", STRING_SCHEMA) "," PROPERTY_SCHEMA("sandboxName", STRING_SCHEMA)    \
    "," PROPERTY_SCHEMA("image", STRING_SCHEMA) "," PROPERTY_SCHEMA("template", STRING_SCHEMA) "," \
    PROPERTY_SCHEMA("git",                                                                         \
                    OBJECT_SCHEMA(PROPERTY_SCHEMA("url", STRING_SCHEMA) ","                        \
                                  PROPERTY_SCHEMA("branch", STRING_SCHEMA) ","                     \
                                  PROPERTY_SCHEMA("depth", INTEGER_SCHEMA)))                       \
    "," PROPERTY_SCHEMA("files", ARRAY_SCHEMA) "," PROPERTY_SCHEMA("env", PAIRS_SCHEMA) ","        \
    PROPERTY_SCHEMA("egress", ANY_OBJECT) "," PROPERTY_SCHEMA("timeout", DURATION_SCHEMA) ","      \
    PROPERTY_SCHEMA("cleanup", "{\"enum\":[\"keep\",\"sleep\",\"destroy\"]}") ","                  \
    PROPERTY_SCHEMA("idempotencyKey", STRING_SCHEMA) "," PROPERTY_SCHEMA("wait", WAIT_SCHEMA)

#define TASK_SCHEMA OBJECT_SCHEMA(TASK_PROPERTIES)

#define TEAM_SCHEMA                                                                                \
    OBJECT_SCHEMA(TASK_PROPERTIES "," PROPERTY_SCHEMA("members", ARRAY_SCHEMA) ","                 \
                  PROPERTY_SCHEMA("parallel", INTEGER_SCHEMA) ","                                  \
                  PROPERTY_SCHEMA("onFailure", "{\"enum\":[\"continue\",\"cancel\"]}") ","           \
                  PROPERTY_SCHEMA("shared", "{\"enum\":[\"none\",\"fork\"]}"))

#define SCHEDULE_SCHEMA                                                                            \
    OBJECT_SCHEMA(PROPERTY_SCHEMA("name", STRING_SCHEMA) "," PROPERTY_SCHEMA("cron", STRING_SCHEMA)\
                  "," PROPERTY_SCHEMA("timeZone", STRING_SCHEMA) ","                               \
                  PROPERTY_SCHEMA("overlap", "{\"enum\":[\"skip\",\"allow\",\"replace\"]}") ","      \
                  PROPERTY_SCHEMA("missed", "{\"enum\":[\"skip\",\"once\"]}") ","                    \
                  PROPERTY_SCHEMA("paused", BOOLEAN_SCHEMA) "," PROPERTY_SCHEMA("task", ANY_OBJECT))
/* clang-format on */
