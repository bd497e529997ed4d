
#include <inttypes.h>
#include <string.h>

#include "base/auto.h"
#include "base/text.h"
#include "store/store_sqlite_connection.h"

/* "Brrw": what `file` and others see, and how we know our own. */
#define APPLICATION_ID 0x42727277

/* Version 1. Frozen: store_sqlite_migration_test compares the newest version with store_schema.h.
 *
 * event_sequence counts the events of each stream, also those that were deleted for their age. A
 * counter goes with the last event of a sandbox that is gone, which is the only stream that cannot
 * continue. */
static const char version_1[] =
    "CREATE TABLE owner("
    "  id TEXT NOT NULL,"
    "  owner_id TEXT NOT NULL,"
    "  name TEXT NOT NULL,"
    "  email TEXT,"
    "  password TEXT,"
    "  role TEXT NOT NULL,"
    "  quotas TEXT NOT NULL,"
    "  disabled_at INTEGER,"
    "  created_at INTEGER NOT NULL,"
    "  updated_at INTEGER NOT NULL,"
    "  PRIMARY KEY(id)) STRICT;"
    "CREATE UNIQUE INDEX owner_email ON owner(email);"
    "CREATE TABLE api_key("
    "  id TEXT NOT NULL,"
    "  owner_id TEXT NOT NULL,"
    "  name TEXT NOT NULL,"
    "  prefix TEXT NOT NULL,"
    "  hash BLOB NOT NULL,"
    "  scope TEXT NOT NULL,"
    "  sandbox_id TEXT,"
    "  port INTEGER,"
    "  expires_at INTEGER,"
    "  revoked_at INTEGER,"
    "  used_at INTEGER,"
    "  created_at INTEGER NOT NULL,"
    "  PRIMARY KEY(id)) STRICT;"
    "CREATE UNIQUE INDEX api_key_hash ON api_key(hash);"
    "CREATE INDEX api_key_prefix ON api_key(prefix);"
    "CREATE INDEX api_key_owner ON api_key(owner_id);"
    "CREATE INDEX api_key_sandbox ON api_key(sandbox_id);"
    "CREATE TABLE login("
    "  hash BLOB NOT NULL,"
    "  owner_id TEXT NOT NULL,"
    "  id TEXT NOT NULL,"
    "  address TEXT NOT NULL,"
    "  user_agent TEXT NOT NULL,"
    "  created_at INTEGER NOT NULL,"
    "  expires_at INTEGER NOT NULL,"
    "  PRIMARY KEY(hash)) STRICT;"
    "CREATE INDEX login_owner ON login(owner_id);"
    "CREATE INDEX login_expires ON login(expires_at);"
    "CREATE TABLE sandbox("
    "  id TEXT NOT NULL,"
    "  owner_id TEXT NOT NULL,"
    "  node_id TEXT NOT NULL,"
    "  epoch INTEGER NOT NULL,"
    "  name TEXT,"
    "  status TEXT NOT NULL,"
    "  reason TEXT NOT NULL,"
    "  spec TEXT NOT NULL,"
    "  inside TEXT,"
    "  created_at INTEGER NOT NULL,"
    "  updated_at INTEGER NOT NULL,"
    "  active_at INTEGER NOT NULL,"
    "  started_at INTEGER,"
    "  PRIMARY KEY(id)) STRICT;"
    "CREATE UNIQUE INDEX sandbox_name ON sandbox(owner_id, name);"
    "CREATE INDEX sandbox_created ON sandbox(owner_id, created_at);"
    "CREATE INDEX sandbox_status ON sandbox(status);"
    "CREATE TABLE port("
    "  sandbox_id TEXT NOT NULL,"
    "  port INTEGER NOT NULL,"
    "  owner_id TEXT NOT NULL,"
    "  name TEXT,"
    "  token TEXT NOT NULL,"
    "  wake INTEGER NOT NULL,"
    "  expires_at INTEGER,"
    "  created_at INTEGER NOT NULL,"
    "  PRIMARY KEY(sandbox_id, port)) STRICT;"
    "CREATE INDEX port_owner ON port(owner_id);"
    "CREATE TABLE event("
    "  cursor INTEGER PRIMARY KEY AUTOINCREMENT,"
    "  stream TEXT NOT NULL,"
    "  sequence INTEGER NOT NULL,"
    "  owner_id TEXT NOT NULL,"
    "  time INTEGER NOT NULL,"
    "  actor TEXT NOT NULL,"
    "  request_id TEXT NOT NULL,"
    "  type TEXT NOT NULL,"
    "  version INTEGER NOT NULL,"
    "  data TEXT NOT NULL) STRICT;"
    "CREATE INDEX event_stream ON event(stream, cursor);"
    "CREATE INDEX event_owner ON event(owner_id, cursor);"
    "CREATE INDEX event_time ON event(time);"
    "CREATE TABLE audit("
    "  number INTEGER PRIMARY KEY AUTOINCREMENT,"
    "  owner_id TEXT NOT NULL,"
    "  time INTEGER NOT NULL,"
    "  credential TEXT NOT NULL,"
    "  address TEXT NOT NULL,"
    "  request_id TEXT NOT NULL,"
    "  action TEXT NOT NULL,"
    "  object TEXT NOT NULL,"
    "  outcome TEXT NOT NULL,"
    "  detail TEXT NOT NULL) STRICT;"
    "CREATE INDEX audit_owner ON audit(owner_id, number);"
    "CREATE INDEX audit_time ON audit(time);"
    "CREATE TABLE webhook("
    "  id TEXT NOT NULL,"
    "  owner_id TEXT NOT NULL,"
    "  url TEXT NOT NULL,"
    "  events TEXT NOT NULL,"
    "  secret BLOB NOT NULL,"
    "  bearer BLOB,"
    "  disabled_at INTEGER,"
    "  created_at INTEGER NOT NULL,"
    "  cursor INTEGER NOT NULL,"
    "  PRIMARY KEY(id)) STRICT;"
    "CREATE INDEX webhook_owner ON webhook(owner_id);"
    "CREATE TABLE delivery("
    "  id TEXT NOT NULL,"
    "  owner_id TEXT NOT NULL,"
    "  webhook_id TEXT NOT NULL,"
    "  cursor INTEGER NOT NULL,"
    "  body TEXT NOT NULL,"
    "  state TEXT NOT NULL,"
    "  attempts INTEGER NOT NULL,"
    "  next_at INTEGER,"
    "  status INTEGER,"
    "  detail TEXT NOT NULL,"
    "  created_at INTEGER NOT NULL,"
    "  updated_at INTEGER NOT NULL,"
    "  PRIMARY KEY(id)) STRICT;"
    "CREATE INDEX delivery_next ON delivery(state, next_at);"
    "CREATE INDEX delivery_webhook ON delivery(webhook_id, created_at);"
    "CREATE INDEX delivery_owner ON delivery(owner_id);"
    "CREATE INDEX delivery_created ON delivery(created_at);"
    "CREATE TABLE secret("
    "  id TEXT NOT NULL,"
    "  owner_id TEXT NOT NULL,"
    "  name TEXT NOT NULL,"
    "  kind TEXT NOT NULL,"
    "  value BLOB NOT NULL,"
    "  created_at INTEGER NOT NULL,"
    "  updated_at INTEGER NOT NULL,"
    "  PRIMARY KEY(id)) STRICT;"
    "CREATE UNIQUE INDEX secret_name ON secret(owner_id, name);"
    "CREATE TABLE idempotency("
    "  owner_id TEXT NOT NULL,"
    "  key TEXT NOT NULL,"
    "  request_hash BLOB NOT NULL,"
    "  status INTEGER NOT NULL,"
    "  reply BLOB NOT NULL,"
    "  created_at INTEGER NOT NULL,"
    "  PRIMARY KEY(owner_id, key)) STRICT;"
    "CREATE INDEX idempotency_created ON idempotency(created_at);"
    "CREATE TABLE event_sequence("
    "  stream TEXT PRIMARY KEY NOT NULL,"
    "  last INTEGER NOT NULL) STRICT, WITHOUT ROWID;"
    "CREATE TRIGGER event_deleted AFTER DELETE ON event"
    "  WHEN NOT EXISTS(SELECT 1 FROM event WHERE stream = old.stream)"
    "  AND NOT EXISTS(SELECT 1 FROM sandbox WHERE id = old.stream)"
    "  AND old.stream <> 'system'"
    "  BEGIN DELETE FROM event_sequence WHERE stream = old.stream; END;";

/* Version 2: snapshots, backups, mounts, templates, layers, workspaces. Frozen. */
static const char version_2[] = /* with the sandbox's new column */
    "ALTER TABLE sandbox ADD COLUMN stored TEXT;"
    "CREATE TABLE snapshot("
    "  id TEXT NOT NULL,"
    "  owner_id TEXT NOT NULL,"
    "  node_id TEXT NOT NULL,"
    "  sandbox_id TEXT NOT NULL,"
    "  name TEXT,"
    "  reason TEXT NOT NULL,"
    "  state TEXT NOT NULL,"
    "  spec TEXT NOT NULL,"
    "  inside TEXT,"
    "  size INTEGER NOT NULL,"
    "  layers TEXT,"
    "  created_at INTEGER NOT NULL,"
    "  expires_at INTEGER,"
    "  PRIMARY KEY(id)) STRICT;"
    "CREATE UNIQUE INDEX snapshot_name ON snapshot(owner_id, name);"
    "CREATE INDEX snapshot_owner ON snapshot(owner_id, created_at);"
    "CREATE INDEX snapshot_sandbox ON snapshot(sandbox_id, created_at);"
    "CREATE INDEX snapshot_expires ON snapshot(expires_at);"
    "CREATE TABLE backup("
    "  id TEXT NOT NULL,"
    "  owner_id TEXT NOT NULL,"
    "  sandbox_id TEXT NOT NULL,"
    "  dir TEXT NOT NULL,"
    "  name TEXT,"
    "  size INTEGER NOT NULL,"
    "  sha256 BLOB NOT NULL,"
    "  ttl INTEGER NOT NULL,"
    "  state TEXT NOT NULL,"
    "  detail TEXT NOT NULL,"
    "  created_at INTEGER NOT NULL,"
    "  expires_at INTEGER NOT NULL,"
    "  PRIMARY KEY(id)) STRICT;"
    "CREATE INDEX backup_owner ON backup(owner_id, created_at);"
    "CREATE INDEX backup_sandbox ON backup(sandbox_id, created_at);"
    "CREATE INDEX backup_expires ON backup(expires_at);"
    "CREATE TABLE mount("
    "  sandbox_id TEXT NOT NULL,"
    "  place TEXT NOT NULL,"
    "  owner_id TEXT NOT NULL,"
    "  kind TEXT NOT NULL,"
    "  bucket TEXT NOT NULL,"
    "  prefix TEXT NOT NULL,"
    "  read_only INTEGER NOT NULL,"
    "  options TEXT NOT NULL,"
    "  secret BLOB,"
    "  created_at INTEGER NOT NULL,"
    "  PRIMARY KEY(sandbox_id, place)) STRICT;"
    "CREATE INDEX mount_owner ON mount(owner_id);"
    "CREATE TABLE template("
    "  owner_id TEXT NOT NULL,"
    "  name TEXT NOT NULL,"
    "  image TEXT,"
    "  snapshot_id TEXT,"
    "  spec TEXT NOT NULL,"
    "  created_at INTEGER NOT NULL,"
    "  updated_at INTEGER NOT NULL,"
    "  PRIMARY KEY(owner_id, name)) STRICT;"
    "CREATE INDEX template_snapshot ON template(snapshot_id);"
    "CREATE TABLE layer("
    "  owner_id TEXT NOT NULL,"
    "  id TEXT NOT NULL,"
    "  size INTEGER NOT NULL,"
    "  bytes INTEGER NOT NULL,"
    "  sha256 BLOB NOT NULL,"
    "  created_at INTEGER NOT NULL,"
    "  used_at INTEGER NOT NULL,"
    "  PRIMARY KEY(owner_id, id)) STRICT;"
    "CREATE INDEX layer_used ON layer(used_at);"
    "CREATE TABLE workspace("
    "  sandbox_id TEXT NOT NULL,"
    "  owner_id TEXT NOT NULL,"
    "  prefix TEXT NOT NULL,"
    "  files INTEGER NOT NULL,"
    "  bytes INTEGER NOT NULL,"
    "  manifest TEXT NOT NULL,"
    "  synced_at INTEGER NOT NULL,"
    "  PRIMARY KEY(sandbox_id)) STRICT;"
    "CREATE INDEX workspace_owner ON workspace(owner_id);";

/* Version 3: credentials, and what the egress broker counts. */
static const char version_3[] = "CREATE TABLE credential("
                                "  owner_id TEXT NOT NULL,"
                                "  name TEXT NOT NULL,"
                                "  kind TEXT NOT NULL,"
                                "  hosts TEXT NOT NULL,"
                                "  options TEXT NOT NULL,"
                                "  secret BLOB NOT NULL,"
                                "  expires_at INTEGER,"
                                "  used_at INTEGER,"
                                "  created_at INTEGER NOT NULL,"
                                "  updated_at INTEGER NOT NULL,"
                                "  PRIMARY KEY(owner_id, name)) STRICT;"
                                "CREATE INDEX credential_created ON credential(created_at);"
                                "CREATE TABLE egress_total("
                                "  owner_id TEXT NOT NULL,"
                                "  sandbox_id TEXT NOT NULL,"
                                "  day INTEGER NOT NULL,"
                                "  route TEXT NOT NULL,"
                                "  model TEXT NOT NULL,"
                                "  task TEXT NOT NULL,"
                                "  requests INTEGER NOT NULL,"
                                "  partial INTEGER NOT NULL,"
                                "  unpriced INTEGER NOT NULL,"
                                "  input INTEGER NOT NULL,"
                                "  output INTEGER NOT NULL,"
                                "  reasoning INTEGER NOT NULL,"
                                "  cache_read INTEGER NOT NULL,"
                                "  cache_write INTEGER NOT NULL,"
                                "  cost_micros INTEGER NOT NULL,"
                                "  updated_at INTEGER NOT NULL,"
                                "  PRIMARY KEY(owner_id, sandbox_id, day, route, model)) STRICT;"
                                "CREATE INDEX egress_total_day ON egress_total(day, sandbox_id);"
                                "CREATE INDEX egress_total_owner ON egress_total(owner_id, day);"
                                "CREATE TABLE egress_authority("
                                "  sandbox_id TEXT NOT NULL,"
                                "  owner_id TEXT NOT NULL,"
                                "  certificate TEXT NOT NULL,"
                                "  secret BLOB NOT NULL,"
                                "  created_at INTEGER NOT NULL,"
                                "  PRIMARY KEY(sandbox_id)) STRICT;"
                                "CREATE INDEX egress_authority_owner ON egress_authority(owner_id);"
                                "CREATE TABLE egress_owner("
                                "  owner_id TEXT NOT NULL,"
                                "  policy TEXT,"
                                "  budget TEXT NOT NULL,"
                                "  updated_at INTEGER NOT NULL,"
                                "  PRIMARY KEY(owner_id)) STRICT;"
                                "CREATE INDEX egress_owner_updated ON egress_owner(updated_at);";

static const char *const migrations[] = {version_1, version_2, version_3};

int sqlite_migration_newest(void)
{
    return (int) ARRAY_COUNT(migrations);
}

int sqlite_migration_look(sqlite3 *db, const char *path, struct error *err)
{
    int64_t version, application, tables;

    if (sqlite_number(db, "PRAGMA user_version", &version, err) < 0 ||
        sqlite_number(db, "PRAGMA application_id", &application, err) < 0 ||
        sqlite_number(db, "SELECT count(*) FROM sqlite_schema", &tables, err) < 0)
        return -1;
    if (application == 0 && version == 0 && tables == 0)
        return 0;
    if (application != APPLICATION_ID || version < 1)
        return error_set(err, ERR_INVALID, 0, "'%s' is a database of another program", path);
    if (version > sqlite_migration_newest())
        return error_set(err, ERR_INVALID, 0,
                         "'%s' has schema %" PRId64 " and this program knows only up to %d: it was "
                         "left as it is; use the newer program, or a backup from before",
                         path, version, sqlite_migration_newest());
    return (int) version;
}

static int migrate_inside(sqlite3 *db, int version, struct error *err)
{
    AUTO(text) struct text sql = TEXT_INIT(128);

    for (int i = version; i < sqlite_migration_newest(); i++)
        if (sqlite_run(db, migrations[i], err) < 0)
            return error_wrap(err, "migration %d", i + 1);
    text_format(&sql, "PRAGMA application_id=%d; PRAGMA user_version=%d", APPLICATION_ID,
                sqlite_migration_newest());
    if (sqlite_run(db, text_string(&sql), err) < 0)
        return -1;
    return sqlite_run(db, "COMMIT", err);
}

int sqlite_migrate(sqlite3 *db, int version, struct error *err)
{
    if (version == sqlite_migration_newest())
        return 0;
    if (sqlite_run(db, "BEGIN EXCLUSIVE", err) < 0)
        return -1;
    if (migrate_inside(db, version, err) < 0) {
        (void) sqlite3_exec(db, "ROLLBACK", NULL, NULL, NULL); /* the first failure counts */
        return -1;
    }
    return 0;
}
