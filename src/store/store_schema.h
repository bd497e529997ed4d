/* What is kept: tables, their columns and indexes, as data. Both engines make their SQL from it,
 * and nothing above store/ knows any.
 *
 * A column list is an X-macro: X(NAME, "name", type, flags). Its position is its number in a row:
 * STORE_SANDBOX_STATUS and so on. Add columns at the end, and a migration with them. Times are
 * milliseconds since 1970; ids are text.
 *
 * Every row has an owner, also those that belong to the system (owner ""). */
#pragma once

#include <stdbool.h>
#include <stddef.h>

enum store_type { STORE_TEXT, STORE_INTEGER, STORE_BYTES };

enum store_column_flag {
    STORE_KEY = 1 << 0,      /* part of the primary key */
    STORE_NULL = 1 << 1,     /* may have no value */
    STORE_SEALED = 1 << 2,   /* a secret: encrypted on disk (AES-256-GCM), never in an index */
    STORE_ASSIGNED = 1 << 3, /* an integer that the store gives out, growing, at insert */
};

/* People, and the programs that act for them. */
#define STORE_OWNER_COLUMNS(X)                                                                     \
    X(ID, "id", STORE_TEXT, STORE_KEY)                                                             \
    X(OWNER, "owner_id", STORE_TEXT, 0) /* itself */                                               \
    X(NAME, "name", STORE_TEXT, 0)                                                                 \
    X(EMAIL, "email", STORE_TEXT, STORE_NULL)       /* lower case, unique */                       \
    X(PASSWORD, "password", STORE_TEXT, STORE_NULL) /* Argon2id, encoded; null: cannot log in */   \
    X(ROLE, "role", STORE_TEXT, 0)                  /* "admin" or "user" */                        \
    X(QUOTAS, "quotas", STORE_TEXT, 0)              /* JSON object; "{}": the defaults */          \
    X(DISABLED, "disabled_at", STORE_INTEGER, STORE_NULL)                                          \
    X(CREATED, "created_at", STORE_INTEGER, 0)                                                     \
    X(UPDATED, "updated_at", STORE_INTEGER, 0)

#define STORE_API_KEY_COLUMNS(X)                                                                   \
    X(ID, "id", STORE_TEXT, STORE_KEY)                                                             \
    X(OWNER, "owner_id", STORE_TEXT, 0)                                                            \
    X(NAME, "name", STORE_TEXT, 0)                                                                 \
    X(PREFIX, "prefix", STORE_TEXT, 0)               /* shown in lists, found by it */             \
    X(HASH, "hash", STORE_BYTES, 0)                  /* SHA-256 of the whole key, unique */        \
    X(SCOPE, "scope", STORE_TEXT, 0)                 /* admin, write, read, sandbox, port */       \
    X(SANDBOX, "sandbox_id", STORE_TEXT, STORE_NULL) /* for the scopes sandbox and port */         \
    X(PORT, "port", STORE_INTEGER, STORE_NULL)       /* for the scope port */                      \
    X(EXPIRES, "expires_at", STORE_INTEGER, STORE_NULL)                                            \
    X(REVOKED, "revoked_at", STORE_INTEGER, STORE_NULL)                                            \
    X(USED, "used_at", STORE_INTEGER, STORE_NULL) /* to about a minute */                          \
    X(CREATED, "created_at", STORE_INTEGER, 0)

/* A browser that is logged in. */
#define STORE_LOGIN_COLUMNS(X)                                                                     \
    X(HASH, "hash", STORE_BYTES, STORE_KEY) /* SHA-256 of the cookie's token */                    \
    X(OWNER, "owner_id", STORE_TEXT, 0)                                                            \
    X(ID, "id", STORE_TEXT, 0)                                                                     \
    X(ADDRESS, "address", STORE_TEXT, 0)                                                           \
    X(PROGRAM, "user_agent", STORE_TEXT, 0)                                                        \
    X(CREATED, "created_at", STORE_INTEGER, 0)                                                     \
    X(EXPIRES, "expires_at", STORE_INTEGER, 0)

#define STORE_SANDBOX_COLUMNS(X)                                                                   \
    X(ID, "id", STORE_TEXT, STORE_KEY)                                                             \
    X(OWNER, "owner_id", STORE_TEXT, 0)                                                            \
    X(NODE, "node_id", STORE_TEXT, 0)                                                              \
    X(EPOCH, "epoch", STORE_INTEGER, 0)                                                            \
    X(NAME, "name", STORE_TEXT, STORE_NULL)     /* unique per owner */                             \
    X(STATUS, "status", STORE_TEXT, 0)          /* model/state.h   */                              \
    X(REASON, "reason", STORE_TEXT, 0)          /* why it is so, for people; may be "" */          \
    X(SPEC, "spec", STORE_TEXT, 0)              /* JSON: sandbox_record.h */                       \
    X(INSIDE, "inside", STORE_TEXT, STORE_NULL) /* JSON: sessions to bring back at wake */         \
    X(CREATED, "created_at", STORE_INTEGER, 0)                                                     \
    X(UPDATED, "updated_at", STORE_INTEGER, 0)                                                     \
    X(ACTIVE, "active_at", STORE_INTEGER, 0)                                                       \
    X(STARTED, "started_at", STORE_INTEGER, STORE_NULL) /* of this run, for maxRuntime */          \
    X(STORED, "stored", STORE_TEXT, STORE_NULL)         /* JSON {"layers":[...],"bytes":n} */

/* Exposed ports. */
#define STORE_PORT_COLUMNS(X)                                                                      \
    X(SANDBOX, "sandbox_id", STORE_TEXT, STORE_KEY)                                                \
    X(PORT, "port", STORE_INTEGER, STORE_KEY)                                                      \
    X(OWNER, "owner_id", STORE_TEXT, 0)                                                            \
    X(NAME, "name", STORE_TEXT, STORE_NULL)                                                        \
    X(TOKEN, "token", STORE_TEXT, 0)                                                               \
    X(WAKE, "wake", STORE_INTEGER, 0) /* 1: a request wakes the sandbox */                         \
    X(EXPIRES, "expires_at", STORE_INTEGER, STORE_NULL)                                            \
    X(CREATED, "created_at", STORE_INTEGER, 0)

/* The log of what happened. `cursor` is global, `sequence` counts within the stream. */
#define STORE_EVENT_COLUMNS(X)                                                                     \
    X(CURSOR, "cursor", STORE_INTEGER, STORE_KEY | STORE_ASSIGNED)                                 \
    X(STREAM, "stream", STORE_TEXT, 0) /* a sandbox's id, or "system" */                           \
    X(SEQUENCE, "sequence", STORE_INTEGER, 0)                                                      \
    X(OWNER, "owner_id", STORE_TEXT, 0)                                                            \
    X(TIME, "time", STORE_INTEGER, 0)                                                              \
    X(ACTOR, "actor", STORE_TEXT, 0) /* who: an owner's id, or "system" */                         \
    X(REQUEST, "request_id", STORE_TEXT, 0)                                                        \
    X(TYPE, "type", STORE_TEXT, 0)                                                                 \
    X(VERSION, "version", STORE_INTEGER, 0)                                                        \
    X(DATA, "data", STORE_TEXT, 0) /* JSON object, at most STORE_EVENT_DATA_MAX bytes */

/* Who changed what, and who was refused. */
#define STORE_AUDIT_COLUMNS(X)                                                                     \
    X(NUMBER, "number", STORE_INTEGER, STORE_KEY | STORE_ASSIGNED)                                 \
    X(OWNER, "owner_id", STORE_TEXT, 0) /* who asked; "": nobody known */                          \
    X(TIME, "time", STORE_INTEGER, 0)                                                              \
    X(CREDENTIAL, "credential", STORE_TEXT, 0) /* id of the key or login, or "" */                 \
    X(ADDRESS, "address", STORE_TEXT, 0)                                                           \
    X(REQUEST, "request_id", STORE_TEXT, 0)                                                        \
    X(ACTION, "action", STORE_TEXT, 0)   /* "sandbox.create", "key.revoke", ... */                 \
    X(OBJECT, "object", STORE_TEXT, 0)   /* id of what was changed, or "" */                       \
    X(OUTCOME, "outcome", STORE_TEXT, 0) /* "ok", or an error code's text */                       \
    X(DETAIL, "detail", STORE_TEXT, 0)   /* a sentence, never a secret */

/* Where to send events. */
#define STORE_WEBHOOK_COLUMNS(X)                                                                   \
    X(ID, "id", STORE_TEXT, STORE_KEY)                                                             \
    X(OWNER, "owner_id", STORE_TEXT, 0)                                                            \
    X(URL, "url", STORE_TEXT, 0)                                                                   \
    X(EVENTS, "events", STORE_TEXT, 0)             /* JSON array of types; "[]": all */            \
    X(SECRET, "secret", STORE_BYTES, STORE_SEALED) /* for the signature */                         \
    X(BEARER, "bearer", STORE_BYTES, STORE_SEALED | STORE_NULL) /* for the legacy header */        \
    X(DISABLED, "disabled_at", STORE_INTEGER, STORE_NULL)                                          \
    X(CREATED, "created_at", STORE_INTEGER, 0)                                                     \
    X(CURSOR, "cursor", STORE_INTEGER, 0) /* of the last event that was looked at */

/* One event on its way to one webhook: the queue, and afterwards the delivery log. */
#define STORE_DELIVERY_COLUMNS(X)                                                                  \
    X(ID, "id", STORE_TEXT, STORE_KEY)                                                             \
    X(OWNER, "owner_id", STORE_TEXT, 0)                                                            \
    X(WEBHOOK, "webhook_id", STORE_TEXT, 0)                                                        \
    X(CURSOR, "cursor", STORE_INTEGER, 0) /* of the event */                                       \
    X(BODY, "body", STORE_TEXT, 0)                                                                 \
    X(STATE, "state", STORE_TEXT, 0) /* waiting, delivered, failed */                              \
    X(ATTEMPTS, "attempts", STORE_INTEGER, 0)                                                      \
    X(NEXT, "next_at", STORE_INTEGER, STORE_NULL)                                                  \
    X(STATUS, "status", STORE_INTEGER, STORE_NULL) /* HTTP status of the last attempt */           \
    X(DETAIL, "detail", STORE_TEXT, 0)                                                             \
    X(CREATED, "created_at", STORE_INTEGER, 0)                                                     \
    X(UPDATED, "updated_at", STORE_INTEGER, 0)

/* Credentials that sandboxes or the daemon use for somebody: buckets, git, models. */
#define STORE_SECRET_COLUMNS(X)                                                                    \
    X(ID, "id", STORE_TEXT, STORE_KEY)                                                             \
    X(OWNER, "owner_id", STORE_TEXT, 0)                                                            \
    X(NAME, "name", STORE_TEXT, 0) /* unique per owner */                                          \
    X(KIND, "kind", STORE_TEXT, 0)                                                                 \
    X(VALUE, "value", STORE_BYTES, STORE_SEALED)                                                   \
    X(CREATED, "created_at", STORE_INTEGER, 0)                                                     \
    X(UPDATED, "updated_at", STORE_INTEGER, 0)

/* Answers that are given again when a client repeats itself. */
#define STORE_IDEMPOTENCY_COLUMNS(X)                                                               \
    X(OWNER, "owner_id", STORE_TEXT, STORE_KEY)                                                    \
    X(KEY, "key", STORE_TEXT, STORE_KEY)                                                           \
    X(REQUEST, "request_hash", STORE_BYTES, 0)                                                     \
    X(STATUS, "status", STORE_INTEGER, 0)                                                          \
    X(REPLY, "reply", STORE_BYTES, STORE_SEALED) /* may tell a secret that is shown only once */   \
    X(CREATED, "created_at", STORE_INTEGER, 0)

/* A disk at one moment. Its node has it, or (state "stored") its layers are in the object store. */
#define STORE_SNAPSHOT_COLUMNS(X)                                                                  \
    X(ID, "id", STORE_TEXT, STORE_KEY)                                                             \
    X(OWNER, "owner_id", STORE_TEXT, 0)                                                            \
    X(NODE, "node_id", STORE_TEXT, 0)                                                              \
    X(SANDBOX, "sandbox_id", STORE_TEXT, 0) /* it was taken of; may be gone */                     \
    X(NAME, "name", STORE_TEXT, STORE_NULL) /* unique per owner */                                 \
    X(REASON, "reason", STORE_TEXT, 0)      /* manual, task, ...: domain/snapshot/snapshot.h */    \
    X(STATE, "state", STORE_TEXT, 0)        /* ready, storing, stored, lost */                     \
    X(SPEC, "spec", STORE_TEXT, 0)          /* JSON of the sandbox then */                         \
    X(INSIDE, "inside", STORE_TEXT, STORE_NULL) /* JSON: its sessions then */                      \
    X(SIZE, "size", STORE_INTEGER, 0)           /* bytes, logical */                               \
    X(LAYERS, "layers", STORE_TEXT, STORE_NULL) /* JSON as `stored` of a sandbox */                \
    X(CREATED, "created_at", STORE_INTEGER, 0)                                                     \
    X(EXPIRES, "expires_at", STORE_INTEGER, STORE_NULL)

/* One folder of a sandbox, kept in the object store. */
#define STORE_BACKUP_COLUMNS(X)                                                                    \
    X(ID, "id", STORE_TEXT, STORE_KEY) /* a UUID, version 4 */                                     \
    X(OWNER, "owner_id", STORE_TEXT, 0)                                                            \
    X(SANDBOX, "sandbox_id", STORE_TEXT, 0) /* it was made of; may be gone */                      \
    X(DIR, "dir", STORE_TEXT, 0)                                                                   \
    X(NAME, "name", STORE_TEXT, STORE_NULL)                                                        \
    X(SIZE, "size", STORE_INTEGER, 0)   /* of the archive */                                       \
    X(SHA256, "sha256", STORE_BYTES, 0) /* of the archive */                                       \
    X(TTL, "ttl", STORE_INTEGER, 0)     /* seconds */                                              \
    X(STATE, "state", STORE_TEXT, 0)    /* making, ready */                                        \
    X(DETAIL, "detail", STORE_TEXT, 0)                                                             \
    X(CREATED, "created_at", STORE_INTEGER, 0)                                                     \
    X(EXPIRES, "expires_at", STORE_INTEGER, 0)

/* A prefix of a bucket, seen as a folder in a sandbox. */
#define STORE_MOUNT_COLUMNS(X)                                                                     \
    X(SANDBOX, "sandbox_id", STORE_TEXT, STORE_KEY)                                                \
    X(PLACE, "place", STORE_TEXT, STORE_KEY)                                                       \
    X(OWNER, "owner_id", STORE_TEXT, 0)                                                            \
    X(KIND, "kind", STORE_TEXT, 0) /* bucket, s3 */                                                \
    X(BUCKET, "bucket", STORE_TEXT, 0)                                                             \
    X(PREFIX, "prefix", STORE_TEXT, 0)                                                             \
    X(READ_ONLY, "read_only", STORE_INTEGER, 0) /* 1: yes */                                       \
    X(OPTIONS, "options", STORE_TEXT, 0)        /* JSON: endpoint, region, style, ... */           \
    X(SECRET, "secret", STORE_BYTES, STORE_SEALED | STORE_NULL)                                    \
    X(CREATED, "created_at", STORE_INTEGER, 0)

/* What new sandboxes are made from, by name. */
#define STORE_TEMPLATE_COLUMNS(X)                                                                  \
    X(OWNER, "owner_id", STORE_TEXT, STORE_KEY)                                                    \
    X(NAME, "name", STORE_TEXT, STORE_KEY)                                                         \
    X(IMAGE, "image", STORE_TEXT, STORE_NULL)                                                      \
    X(SNAPSHOT, "snapshot_id", STORE_TEXT, STORE_NULL) /* instead of an empty disk */              \
    X(SPEC, "spec", STORE_TEXT, 0)                     /* JSON: sandbox_record.h */                \
    X(CREATED, "created_at", STORE_INTEGER, 0)                                                     \
    X(UPDATED, "updated_at", STORE_INTEGER, 0)

/* A layer in the object store. Each owner has its own, also of the same contents. */
#define STORE_LAYER_COLUMNS(X)                                                                     \
    X(OWNER, "owner_id", STORE_TEXT, STORE_KEY)                                                    \
    X(ID, "id", STORE_TEXT, STORE_KEY)  /* SHA-256 of the uncompressed stream, in hex */           \
    X(SIZE, "size", STORE_INTEGER, 0)   /* of the object, as it is kept */                         \
    X(BYTES, "bytes", STORE_INTEGER, 0) /* uncompressed */                                         \
    X(SHA256, "sha256", STORE_BYTES, 0) /* of the object */                                        \
    X(CREATED, "created_at", STORE_INTEGER, 0)                                                     \
    X(USED, "used_at", STORE_INTEGER, 0)

/* What was mirrored of a sandbox's workspace, last time. */
#define STORE_WORKSPACE_COLUMNS(X)                                                                 \
    X(SANDBOX, "sandbox_id", STORE_TEXT, STORE_KEY)                                                \
    X(OWNER, "owner_id", STORE_TEXT, 0)                                                            \
    X(PREFIX, "prefix", STORE_TEXT, 0)                                                             \
    X(FILES, "files", STORE_INTEGER, 0)                                                            \
    X(BYTES, "bytes", STORE_INTEGER, 0)                                                            \
    X(MANIFEST, "manifest", STORE_TEXT, 0) /* SHA-256 of the manifest object, in hex */            \
    X(SYNCED, "synced_at", STORE_INTEGER, 0)

/* A secret for hosts of the outside world, put in where requests leave. */
#define STORE_CREDENTIAL_COLUMNS(X)                                                                \
    X(OWNER, "owner_id", STORE_TEXT, STORE_KEY)                                                    \
    X(NAME, "name", STORE_TEXT, STORE_KEY)                                                         \
    X(KIND, "kind", STORE_TEXT, 0)                 /* domain/egress/credential.h */                \
    X(HOSTS, "hosts", STORE_TEXT, 0)               /* JSON array */                                \
    X(OPTIONS, "options", STORE_TEXT, 0)           /* JSON: what is no secret of it */             \
    X(SECRET, "secret", STORE_BYTES, STORE_SEALED) /* JSON */                                      \
    X(EXPIRES, "expires_at", STORE_INTEGER, STORE_NULL)                                            \
    X(USED, "used_at", STORE_INTEGER, STORE_NULL) /* to about a minute */                          \
    X(CREATED, "created_at", STORE_INTEGER, 0)                                                     \
    X(UPDATED, "updated_at", STORE_INTEGER, 0)

/* What went out in one day, by sandbox, route and model. */
#define STORE_EGRESS_TOTAL_COLUMNS(X)                                                              \
    X(OWNER, "owner_id", STORE_TEXT, STORE_KEY)                                                    \
    X(SANDBOX, "sandbox_id", STORE_TEXT, STORE_KEY) /* it may be gone */                           \
    X(DAY, "day", STORE_INTEGER, STORE_KEY)         /* when it began, in UTC */                    \
    X(ROUTE, "route", STORE_TEXT, STORE_KEY)        /* "": not of a model */                       \
    X(MODEL, "model", STORE_TEXT, STORE_KEY)        /* as replies tell; may be "" */               \
    X(TASK, "task", STORE_TEXT, 0)                  /* label `task` of the sandbox */              \
    X(REQUESTS, "requests", STORE_INTEGER, 0)                                                      \
    X(PARTIAL, "partial", STORE_INTEGER, 0)   /* of these, that were cut */                        \
    X(UNPRICED, "unpriced", STORE_INTEGER, 0) /* of these, whose price is not known */             \
    X(INPUT, "input", STORE_INTEGER, 0)                                                            \
    X(OUTPUT, "output", STORE_INTEGER, 0)                                                          \
    X(REASONING, "reasoning", STORE_INTEGER, 0)                                                    \
    X(CACHE_READ, "cache_read", STORE_INTEGER, 0)                                                  \
    X(CACHE_WRITE, "cache_write", STORE_INTEGER, 0)                                                \
    X(COST, "cost_micros", STORE_INTEGER, 0) /* of the others */                                   \
    X(UPDATED, "updated_at", STORE_INTEGER, 0)

/* Who signs for the hosts that a sandbox's TLS is ended for. */
#define STORE_EGRESS_AUTHORITY_COLUMNS(X)                                                          \
    X(SANDBOX, "sandbox_id", STORE_TEXT, STORE_KEY)                                                \
    X(OWNER, "owner_id", STORE_TEXT, 0)                                                            \
    X(CERTIFICATE, "certificate", STORE_TEXT, 0)   /* PEM */                                       \
    X(SECRET, "secret", STORE_BYTES, STORE_SEALED) /* its key, PEM */                              \
    X(CREATED, "created_at", STORE_INTEGER, 0)

/* What an owner says of all its sandboxes together. */
#define STORE_EGRESS_OWNER_COLUMNS(X)                                                              \
    X(OWNER, "owner_id", STORE_TEXT, STORE_KEY)                                                    \
    X(POLICY, "policy", STORE_TEXT, STORE_NULL) /* of new sandboxes that say nothing; JSON */      \
    X(BUDGET, "budget", STORE_TEXT, 0)          /* of all together; JSON */                        \
    X(UPDATED, "updated_at", STORE_INTEGER, 0)

/* A thread with a coding agent in a sandbox. */
#define STORE_CONVERSATION_COLUMNS(X)                                                              \
    X(ID, "id", STORE_TEXT, STORE_KEY)                                                             \
    X(OWNER, "owner_id", STORE_TEXT, 0)                                                            \
    X(SANDBOX, "sandbox_id", STORE_TEXT, 0)    /* "": not made yet; may be gone */                 \
    X(TASK, "task_id", STORE_TEXT, STORE_NULL) /* whose it is */                                   \
    X(TITLE, "title", STORE_TEXT, 0)                                                               \
    X(KIND, "kind", STORE_TEXT, 0)               /* of the agent: "opencode", ... */               \
    X(PLACE, "place", STORE_BYTES, STORE_SEALED) /* JSON: how it is started; a caller's config */  \
    X(PROVIDER, "provider", STORE_TEXT, STORE_NULL)                                                \
    X(MODEL, "model", STORE_TEXT, STORE_NULL)                                                      \
    X(AGENT, "agent", STORE_TEXT, STORE_NULL)                                                      \
    X(AGENT_SESSION, "agent_session", STORE_TEXT, STORE_NULL) /* the agent's own id */             \
    X(ASK, "ask_ms", STORE_INTEGER, 0)                                                             \
    X(GONE, "gone_at", STORE_INTEGER, STORE_NULL) /* deleted; what is left of it goes in slices */ \
    X(CREATED, "created_at", STORE_INTEGER, 0)                                                     \
    X(UPDATED, "updated_at", STORE_INTEGER, 0)

/* One prompt, and what came of it. */
#define STORE_TURN_COLUMNS(X)                                                                      \
    X(ID, "id", STORE_TEXT, STORE_KEY)                                                             \
    X(OWNER, "owner_id", STORE_TEXT, 0)                                                            \
    X(CONVERSATION, "conversation_id", STORE_TEXT, 0)                                              \
    X(SANDBOX, "sandbox_id", STORE_TEXT, 0)                                                        \
    X(TASK, "task_id", STORE_TEXT, STORE_NULL)                                                     \
    X(STATE, "state", STORE_TEXT, 0) /* domain/conversation/turn.h */                              \
    X(INPUT, "input", STORE_TEXT, 0) /* JSON array of parts */                                     \
    X(ANSWER, "answer", STORE_TEXT, 0)                                                             \
    X(PARTS, "parts", STORE_TEXT, 0) /* JSON array: of the answer */                               \
    X(INFO, "info", STORE_TEXT, 0)   /* JSON object: likewise */                                   \
    X(PROVIDER, "provider", STORE_TEXT, STORE_NULL)                                                \
    X(MODEL, "model", STORE_TEXT, STORE_NULL)                                                      \
    X(AGENT, "agent", STORE_TEXT, STORE_NULL)                                                      \
    X(ERROR_CODE, "error_code", STORE_TEXT, 0)                                                     \
    X(ERROR_MESSAGE, "error_message", STORE_TEXT, 0)                                               \
    X(USAGE, "usage", STORE_TEXT, 0)      /* JSON: as the agent tells */                           \
    X(KEY, "key", STORE_TEXT, STORE_NULL) /* unique per conversation */                            \
    X(CREATED, "created_at", STORE_INTEGER, 0)                                                     \
    X(STARTED, "started_at", STORE_INTEGER, STORE_NULL) /* its prompt is sent, or about to be */   \
    X(ENDED, "ended_at", STORE_INTEGER, STORE_NULL)                                                \
    X(DEADLINE, "deadline_at", STORE_INTEGER, STORE_NULL)

/* What was said and done in a conversation, one after the other. */
#define STORE_TURN_PART_COLUMNS(X)                                                                 \
    X(CONVERSATION, "conversation_id", STORE_TEXT, STORE_KEY)                                      \
    X(SEQUENCE, "sequence", STORE_INTEGER, STORE_KEY)                                              \
    X(OWNER, "owner_id", STORE_TEXT, 0)                                                            \
    X(TURN, "turn_id", STORE_TEXT, 0) /* "": of the task */                                        \
    X(KIND, "kind", STORE_TEXT, 0)    /* domain/conversation/turn_follow.h */                      \
    X(PART, "part", STORE_TEXT, 0)    /* the agent's id of it, or "" */                            \
    X(JSON, "json", STORE_TEXT, 0)                                                                 \
    X(TIME, "time", STORE_INTEGER, 0)

/* What an agent asked in a turn: a permission, or a question. */
#define STORE_PERMISSION_COLUMNS(X)                                                                \
    X(ID, "id", STORE_TEXT, STORE_KEY)                                                             \
    X(OWNER, "owner_id", STORE_TEXT, 0)                                                            \
    X(SANDBOX, "sandbox_id", STORE_TEXT, 0)                                                        \
    X(CONVERSATION, "conversation_id", STORE_TEXT, 0)                                              \
    X(TURN, "turn_id", STORE_TEXT, 0)                                                              \
    X(KIND, "kind", STORE_TEXT, 0)       /* permission, question */                                \
    X(STATE, "state", STORE_TEXT, 0)     /* domain/conversation/ask.h */                           \
    X(REQUEST, "request", STORE_TEXT, 0) /* the agent's own id */                                  \
    X(DETAIL, "detail", STORE_TEXT, 0)   /* JSON object */                                         \
    X(REPLY, "reply", STORE_TEXT, 0)                                                               \
    X(ANSWERED_BY, "answered_by", STORE_TEXT, 0)                                                   \
    X(CREATED, "created_at", STORE_INTEGER, 0)                                                     \
    X(ANSWERED, "answered_at", STORE_INTEGER, STORE_NULL)                                          \
    X(EXPIRES, "expires_at", STORE_INTEGER, 0)

/* A prompt with a sandbox of its own, whose result is kept. */
#define STORE_TASK_COLUMNS(X)                                                                      \
    X(ID, "id", STORE_TEXT, STORE_KEY)                                                             \
    X(OWNER, "owner_id", STORE_TEXT, 0)                                                            \
    X(TEAM, "team_id", STORE_TEXT, STORE_NULL)                                                     \
    X(PLACE, "place", STORE_INTEGER, 0) /* among the members of its team */                        \
    X(SCHEDULE, "schedule_id", STORE_TEXT, STORE_NULL)                                             \
    X(SANDBOX, "sandbox_id", STORE_TEXT, 0) /* "": not made yet; may be gone */                    \
    X(CONVERSATION, "conversation_id", STORE_TEXT, 0)                                              \
    X(TURN, "turn_id", STORE_TEXT, STORE_NULL)                                                     \
    X(SNAPSHOT, "snapshot_id", STORE_TEXT, STORE_NULL) /* from before */                           \
    X(STATE, "state", STORE_TEXT, 0)                   /* domain/task/task.h */                    \
    X(SPEC, "spec", STORE_BYTES, STORE_SEALED) /* JSON: what was wished for, with its secrets */   \
    X(ABOUT, "about", STORE_TEXT, 0)           /* JSON: what is shown of it */                     \
    X(KEY, "key", STORE_TEXT, STORE_NULL)      /* unique per owner */                              \
    X(ANSWER, "answer", STORE_TEXT, 0)                                                             \
    X(ERROR_CODE, "error_code", STORE_TEXT, 0)                                                     \
    X(ERROR_MESSAGE, "error_message", STORE_TEXT, 0)                                               \
    X(USAGE, "usage", STORE_TEXT, 0)              /* JSON: as the agent tells */                   \
    X(CHANGES, "changes", STORE_TEXT, STORE_NULL) /* JSON: of the workspace */                     \
    X(CREATED, "created_at", STORE_INTEGER, 0)                                                     \
    X(STARTED, "started_at", STORE_INTEGER, STORE_NULL)                                            \
    X(ENDED, "ended_at", STORE_INTEGER, STORE_NULL)                                                \
    X(DEADLINE, "deadline_at", STORE_INTEGER, STORE_NULL)

/* Tasks that belong together. */
#define STORE_TEAM_COLUMNS(X)                                                                      \
    X(ID, "id", STORE_TEXT, STORE_KEY)                                                             \
    X(OWNER, "owner_id", STORE_TEXT, 0)                                                            \
    X(STATE, "state", STORE_TEXT, 0) /* domain/task/team.h */                                      \
    X(TITLE, "title", STORE_TEXT, 0)                                                               \
    X(POLICY, "policy", STORE_TEXT, 0)         /* JSON */                                          \
    X(SPEC, "spec", STORE_BYTES, STORE_SEALED) /* JSON of the shared checkout */                   \
    X(BASE, "base_id", STORE_TEXT, STORE_NULL) /* the sandbox that members are forks of */         \
    X(CREATED, "created_at", STORE_INTEGER, 0)                                                     \
    X(ENDED, "ended_at", STORE_INTEGER, STORE_NULL)

/* When tasks are begun by themselves. */
#define STORE_SCHEDULE_COLUMNS(X)                                                                  \
    X(ID, "id", STORE_TEXT, STORE_KEY)                                                             \
    X(OWNER, "owner_id", STORE_TEXT, 0)                                                            \
    X(NAME, "name", STORE_TEXT, 0) /* unique per owner */                                          \
    X(CRON, "cron", STORE_TEXT, 0)                                                                 \
    X(ZONE, "zone", STORE_TEXT, 0)                                                                 \
    X(POLICY, "policy", STORE_TEXT, 0)            /* JSON: overlap, missed, paused */              \
    X(SPEC, "spec", STORE_BYTES, STORE_SEALED)    /* JSON of the task */                           \
    X(NEXT, "next_at", STORE_INTEGER, STORE_NULL) /* null: never again, or paused */               \
    X(LAST, "last_at", STORE_INTEGER, STORE_NULL)                                                  \
    X(LAST_TASK, "last_task_id", STORE_TEXT, STORE_NULL)                                           \
    X(DETAIL, "detail", STORE_TEXT, 0) /* what came of the last time, in words */                  \
    X(CREATED, "created_at", STORE_INTEGER, 0)                                                     \
    X(UPDATED, "updated_at", STORE_INTEGER, 0)

/* Executions of workflows. */
#define STORE_WORKFLOW_COLUMNS(X)                                                                  \
    X(ID, "id", STORE_TEXT, STORE_KEY)                                                             \
    X(OWNER, "owner_id", STORE_TEXT, 0)                                                            \
    X(NAME, "name", STORE_TEXT, 0) /* unique per owner */                                          \
    X(WORKFLOW, "workflow_id", STORE_TEXT, 0)                                                      \
    X(STATE, "state", STORE_TEXT, 0)             /* domain/workflow/workflow.h */                  \
    X(SPEC, "spec", STORE_BYTES, STORE_SEALED)   /* JSON: what is drawn, and what set it off */    \
    X(STEPS, "steps", STORE_BYTES, STORE_SEALED) /* JSON: what nodes gave, and are doing */        \
    X(ERROR, "error", STORE_TEXT, STORE_NULL)                                                      \
    X(CREATED, "created_at", STORE_INTEGER, 0)                                                     \
    X(UPDATED, "updated_at", STORE_INTEGER, 0)                                                     \
    X(ENDED, "ended_at", STORE_INTEGER, STORE_NULL)

/* kind, table */
#define STORE_KINDS(X)                                                                             \
    X(OWNER, "owner")                                                                              \
    X(API_KEY, "api_key")                                                                          \
    X(LOGIN, "login")                                                                              \
    X(SANDBOX, "sandbox")                                                                          \
    X(PORT, "port")                                                                                \
    X(EVENT, "event")                                                                              \
    X(AUDIT, "audit")                                                                              \
    X(WEBHOOK, "webhook")                                                                          \
    X(DELIVERY, "delivery")                                                                        \
    X(SECRET, "secret")                                                                            \
    X(IDEMPOTENCY, "idempotency")                                                                  \
    X(SNAPSHOT, "snapshot")                                                                        \
    X(BACKUP, "backup")                                                                            \
    X(MOUNT, "mount")                                                                              \
    X(TEMPLATE, "template")                                                                        \
    X(LAYER, "layer")                                                                              \
    X(WORKSPACE, "workspace")                                                                      \
    X(CREDENTIAL, "credential")                                                                    \
    X(EGRESS_TOTAL, "egress_total")                                                                \
    X(EGRESS_AUTHORITY, "egress_authority")                                                        \
    X(EGRESS_OWNER, "egress_owner")                                                                \
    X(CONVERSATION, "conversation")                                                                \
    X(TURN, "turn")                                                                                \
    X(TURN_PART, "turn_part")                                                                      \
    X(PERMISSION, "permission")                                                                    \
    X(TASK, "task")                                                                                \
    X(TEAM, "team")                                                                                \
    X(SCHEDULE, "schedule")                                                                        \
    X(WORKFLOW, "workflow")

enum store_kind {
#define X(kind, table) STORE_##kind,
    STORE_KINDS(X)
#undef X
        STORE_KIND_COUNT
};

/* STORE_SANDBOX_STATUS, STORE_SANDBOX_COLUMN_COUNT, ... */
#define STORE_COLUMN_NUMBERS(kind)                                                                 \
    enum store_##kind##_column                                                                     \
    {                                                                                              \
        STORE_##kind##_COLUMNS(STORE_NUMBER_##kind) STORE_##kind##_COLUMN_COUNT                    \
    }
#define STORE_NUMBER_OWNER(name, text, type, flags)            STORE_OWNER_##name,
#define STORE_NUMBER_API_KEY(name, text, type, flags)          STORE_API_KEY_##name,
#define STORE_NUMBER_LOGIN(name, text, type, flags)            STORE_LOGIN_##name,
#define STORE_NUMBER_SANDBOX(name, text, type, flags)          STORE_SANDBOX_##name,
#define STORE_NUMBER_PORT(name, text, type, flags)             STORE_PORT_##name,
#define STORE_NUMBER_EVENT(name, text, type, flags)            STORE_EVENT_##name,
#define STORE_NUMBER_AUDIT(name, text, type, flags)            STORE_AUDIT_##name,
#define STORE_NUMBER_WEBHOOK(name, text, type, flags)          STORE_WEBHOOK_##name,
#define STORE_NUMBER_DELIVERY(name, text, type, flags)         STORE_DELIVERY_##name,
#define STORE_NUMBER_SECRET(name, text, type, flags)           STORE_SECRET_##name,
#define STORE_NUMBER_IDEMPOTENCY(name, text, type, flags)      STORE_IDEMPOTENCY_##name,
#define STORE_NUMBER_SNAPSHOT(name, text, type, flags)         STORE_SNAPSHOT_##name,
#define STORE_NUMBER_BACKUP(name, text, type, flags)           STORE_BACKUP_##name,
#define STORE_NUMBER_MOUNT(name, text, type, flags)            STORE_MOUNT_##name,
#define STORE_NUMBER_TEMPLATE(name, text, type, flags)         STORE_TEMPLATE_##name,
#define STORE_NUMBER_LAYER(name, text, type, flags)            STORE_LAYER_##name,
#define STORE_NUMBER_WORKSPACE(name, text, type, flags)        STORE_WORKSPACE_##name,
#define STORE_NUMBER_CREDENTIAL(name, text, type, flags)       STORE_CREDENTIAL_##name,
#define STORE_NUMBER_EGRESS_TOTAL(name, text, type, flags)     STORE_EGRESS_TOTAL_##name,
#define STORE_NUMBER_EGRESS_AUTHORITY(name, text, type, flags) STORE_EGRESS_AUTHORITY_##name,
#define STORE_NUMBER_EGRESS_OWNER(name, text, type, flags)     STORE_EGRESS_OWNER_##name,
#define STORE_NUMBER_CONVERSATION(name, text, type, flags)     STORE_CONVERSATION_##name,
#define STORE_NUMBER_TURN(name, text, type, flags)             STORE_TURN_##name,
#define STORE_NUMBER_TURN_PART(name, text, type, flags)        STORE_TURN_PART_##name,
#define STORE_NUMBER_PERMISSION(name, text, type, flags)       STORE_PERMISSION_##name,
#define STORE_NUMBER_TASK(name, text, type, flags)             STORE_TASK_##name,
#define STORE_NUMBER_TEAM(name, text, type, flags)             STORE_TEAM_##name,
#define STORE_NUMBER_SCHEDULE(name, text, type, flags)         STORE_SCHEDULE_##name,
#define STORE_NUMBER_WORKFLOW(name, text, type, flags)         STORE_WORKFLOW_##name,

STORE_COLUMN_NUMBERS(OWNER);
STORE_COLUMN_NUMBERS(API_KEY);
STORE_COLUMN_NUMBERS(LOGIN);
STORE_COLUMN_NUMBERS(SANDBOX);
STORE_COLUMN_NUMBERS(PORT);
STORE_COLUMN_NUMBERS(EVENT);
STORE_COLUMN_NUMBERS(AUDIT);
STORE_COLUMN_NUMBERS(WEBHOOK);
STORE_COLUMN_NUMBERS(DELIVERY);
STORE_COLUMN_NUMBERS(SECRET);
STORE_COLUMN_NUMBERS(IDEMPOTENCY);
STORE_COLUMN_NUMBERS(SNAPSHOT);
STORE_COLUMN_NUMBERS(BACKUP);
STORE_COLUMN_NUMBERS(MOUNT);
STORE_COLUMN_NUMBERS(TEMPLATE);
STORE_COLUMN_NUMBERS(LAYER);
STORE_COLUMN_NUMBERS(WORKSPACE);
STORE_COLUMN_NUMBERS(CREDENTIAL);
STORE_COLUMN_NUMBERS(EGRESS_TOTAL);
STORE_COLUMN_NUMBERS(EGRESS_AUTHORITY);
STORE_COLUMN_NUMBERS(EGRESS_OWNER);
STORE_COLUMN_NUMBERS(CONVERSATION);
STORE_COLUMN_NUMBERS(TURN);
STORE_COLUMN_NUMBERS(TURN_PART);
STORE_COLUMN_NUMBERS(PERMISSION);
STORE_COLUMN_NUMBERS(TASK);
STORE_COLUMN_NUMBERS(TEAM);
STORE_COLUMN_NUMBERS(SCHEDULE);
STORE_COLUMN_NUMBERS(WORKFLOW);

#define STORE_COLUMNS_MAX 24

struct store_column {
    const char *name;
    enum store_type type;
    unsigned int flags; /* enum store_column_flag */
};

#define STORE_INDEX_COLUMNS_MAX 3

struct store_index {
    const char *name;
    bool is_unique; /* where none of its columns is null */
    size_t column_count;
    unsigned int columns[STORE_INDEX_COLUMNS_MAX];
};

struct store_table {
    const char *name;
    size_t column_count;
    const struct store_column *columns;
    size_t index_count;
    const struct store_index *indexes;
};

/* The description of a kind. Static. */
const struct store_table *store_table(enum store_kind kind);
