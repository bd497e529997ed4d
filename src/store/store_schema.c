#include "store/store_schema.h"

#include "base/auto.h"

#define COLUMN(name_, text_, type_, flags_) {.name = text_, .type = type_, .flags = flags_},

#define X(kind, table)                                                                             \
    static const struct store_column columns_of_##kind[] = {STORE_##kind##_COLUMNS(COLUMN)};       \
    _Static_assert(ARRAY_COUNT(columns_of_##kind) <= STORE_COLUMNS_MAX, "too many columns");
STORE_KINDS(X)
#undef X

/* An index is worth its writes where rows are looked for while somebody waits, or deleted by age.
 */
static const struct store_index indexes_of_OWNER[] = {
    {"owner_email", true, 1, {STORE_OWNER_EMAIL}},
};

static const struct store_index indexes_of_API_KEY[] = {
    {"api_key_hash", true, 1, {STORE_API_KEY_HASH}},
    {"api_key_prefix", false, 1, {STORE_API_KEY_PREFIX}},
    {"api_key_owner", false, 1, {STORE_API_KEY_OWNER}},
    {"api_key_sandbox", false, 1, {STORE_API_KEY_SANDBOX}},
};

static const struct store_index indexes_of_LOGIN[] = {
    {"login_owner", false, 1, {STORE_LOGIN_OWNER}},
    {"login_expires", false, 1, {STORE_LOGIN_EXPIRES}},
};

static const struct store_index indexes_of_SANDBOX[] = {
    {"sandbox_name", true, 2, {STORE_SANDBOX_OWNER, STORE_SANDBOX_NAME}},
    {"sandbox_created", false, 2, {STORE_SANDBOX_OWNER, STORE_SANDBOX_CREATED}},
    {"sandbox_status", false, 1, {STORE_SANDBOX_STATUS}},
};

static const struct store_index indexes_of_PORT[] = {
    {"port_owner", false, 1, {STORE_PORT_OWNER}},
};

static const struct store_index indexes_of_EVENT[] = {
    {"event_stream", false, 2, {STORE_EVENT_STREAM, STORE_EVENT_CURSOR}},
    {"event_owner", false, 2, {STORE_EVENT_OWNER, STORE_EVENT_CURSOR}},
    {"event_time", false, 1, {STORE_EVENT_TIME}},
};

static const struct store_index indexes_of_AUDIT[] = {
    {"audit_owner", false, 2, {STORE_AUDIT_OWNER, STORE_AUDIT_NUMBER}},
    {"audit_time", false, 1, {STORE_AUDIT_TIME}},
};

static const struct store_index indexes_of_WEBHOOK[] = {
    {"webhook_owner", false, 1, {STORE_WEBHOOK_OWNER}},
};

static const struct store_index indexes_of_DELIVERY[] = {
    {"delivery_next", false, 2, {STORE_DELIVERY_STATE, STORE_DELIVERY_NEXT}},
    {"delivery_webhook", false, 2, {STORE_DELIVERY_WEBHOOK, STORE_DELIVERY_CREATED}},
    {"delivery_owner", false, 1, {STORE_DELIVERY_OWNER}},
    {"delivery_created", false, 1, {STORE_DELIVERY_CREATED}},
};

static const struct store_index indexes_of_SECRET[] = {
    {"secret_name", true, 2, {STORE_SECRET_OWNER, STORE_SECRET_NAME}},
};

static const struct store_index indexes_of_IDEMPOTENCY[] = {
    {"idempotency_created", false, 1, {STORE_IDEMPOTENCY_CREATED}},
};

static const struct store_index indexes_of_SNAPSHOT[] = {
    {"snapshot_name", true, 2, {STORE_SNAPSHOT_OWNER, STORE_SNAPSHOT_NAME}},
    {"snapshot_owner", false, 2, {STORE_SNAPSHOT_OWNER, STORE_SNAPSHOT_CREATED}},
    {"snapshot_sandbox", false, 2, {STORE_SNAPSHOT_SANDBOX, STORE_SNAPSHOT_CREATED}},
    {"snapshot_expires", false, 1, {STORE_SNAPSHOT_EXPIRES}},
};

static const struct store_index indexes_of_BACKUP[] = {
    {"backup_owner", false, 2, {STORE_BACKUP_OWNER, STORE_BACKUP_CREATED}},
    {"backup_sandbox", false, 2, {STORE_BACKUP_SANDBOX, STORE_BACKUP_CREATED}},
    {"backup_expires", false, 1, {STORE_BACKUP_EXPIRES}},
};

static const struct store_index indexes_of_MOUNT[] = {
    {"mount_owner", false, 1, {STORE_MOUNT_OWNER}},
};

static const struct store_index indexes_of_TEMPLATE[] = {
    {"template_snapshot", false, 1, {STORE_TEMPLATE_SNAPSHOT}},
};

static const struct store_index indexes_of_LAYER[] = {
    {"layer_used", false, 1, {STORE_LAYER_USED}},
};

static const struct store_index indexes_of_WORKSPACE[] = {
    {"workspace_owner", false, 1, {STORE_WORKSPACE_OWNER}},
};

static const struct store_index indexes_of_CREDENTIAL[] = {
    {"credential_created", false, 1, {STORE_CREDENTIAL_CREATED}},
};

static const struct store_index indexes_of_EGRESS_TOTAL[] = {
    {"egress_total_day", false, 2, {STORE_EGRESS_TOTAL_DAY, STORE_EGRESS_TOTAL_SANDBOX}},
    {"egress_total_owner", false, 2, {STORE_EGRESS_TOTAL_OWNER, STORE_EGRESS_TOTAL_DAY}},
};

static const struct store_index indexes_of_EGRESS_AUTHORITY[] = {
    {"egress_authority_owner", false, 1, {STORE_EGRESS_AUTHORITY_OWNER}},
};

static const struct store_index indexes_of_EGRESS_OWNER[] = {
    {"egress_owner_updated", false, 1, {STORE_EGRESS_OWNER_UPDATED}},
};

static const struct store_index indexes_of_CONVERSATION[] = {
    {"conversation_sandbox", false, 1, {STORE_CONVERSATION_SANDBOX}},
    {"conversation_owner", false, 1, {STORE_CONVERSATION_OWNER}},
};

static const struct store_index indexes_of_TURN[] = {
    {"turn_conversation", false, 2, {STORE_TURN_CONVERSATION, STORE_TURN_CREATED}},
    {"turn_key", true, 2, {STORE_TURN_CONVERSATION, STORE_TURN_KEY}},
    {"turn_state", false, 1, {STORE_TURN_STATE}},
    {"turn_owner", false, 1, {STORE_TURN_OWNER}},
};

static const struct store_index indexes_of_TURN_PART[] = {
    {"turn_part_turn", false, 2, {STORE_TURN_PART_TURN, STORE_TURN_PART_SEQUENCE}},
};

static const struct store_index indexes_of_PERMISSION[] = {
    {"permission_sandbox", false, 2, {STORE_PERMISSION_SANDBOX, STORE_PERMISSION_CREATED}},
    {"permission_conversation",
     false,
     2,
     {STORE_PERMISSION_CONVERSATION, STORE_PERMISSION_CREATED}},
    {"permission_turn", false, 1, {STORE_PERMISSION_TURN}},
};

static const struct store_index indexes_of_TASK[] = {
    {"task_key", true, 2, {STORE_TASK_OWNER, STORE_TASK_KEY}},
    {"task_owner", false, 2, {STORE_TASK_OWNER, STORE_TASK_CREATED}},
    {"task_team", false, 2, {STORE_TASK_TEAM, STORE_TASK_PLACE}},
    {"task_schedule", false, 2, {STORE_TASK_SCHEDULE, STORE_TASK_CREATED}},
    {"task_state", false, 1, {STORE_TASK_STATE}},
    {"task_ended", false, 1, {STORE_TASK_ENDED}},
};

static const struct store_index indexes_of_TEAM[] = {
    {"team_owner", false, 2, {STORE_TEAM_OWNER, STORE_TEAM_CREATED}},
    {"team_state", false, 1, {STORE_TEAM_STATE}},
    {"team_ended", false, 1, {STORE_TEAM_ENDED}},
};

static const struct store_index indexes_of_SCHEDULE[] = {
    {"schedule_name", true, 2, {STORE_SCHEDULE_OWNER, STORE_SCHEDULE_NAME}},
};

static const struct store_index indexes_of_WORKFLOW[] = {
    {"workflow_name", true, 2, {STORE_WORKFLOW_OWNER, STORE_WORKFLOW_NAME}},
    {"workflow_ended", false, 1, {STORE_WORKFLOW_ENDED}},
};

static const struct store_table tables[STORE_KIND_COUNT] = {
#define X(kind, table)                                                                             \
    [STORE_##kind] = {table, ARRAY_COUNT(columns_of_##kind), columns_of_##kind,                    \
                      ARRAY_COUNT(indexes_of_##kind), indexes_of_##kind},
    STORE_KINDS(X)
#undef X
};

const struct store_table *store_table(enum store_kind kind)
{
    return &tables[kind];
}
