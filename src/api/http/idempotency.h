/* Answers that are given again: the header Idempotency-Key.
 *
 * The same key with the same request (method, path, body) of the same owner, by a credential of the
 * same scope (for one sandbox: that one), within
 * IDEMPOTENCY_KEPT_MS gets the answer of the first one, with "Idempotency-Replayed: true"; with
 * another request it is ERR_CONFLICT, and so is a second one while the first is under way. Good
 * answers are kept, before they are sent, and only those that are JSON and not too long: what was
 * made (201, 202) is told again whatever its length, and other answers, such as the output of a
 * command, up to IDEMPOTENCY_OUTPUT_MAX. After a failure, and after an answer that is not kept, the
 * key is free again.
 *
 * An owner has so many answers kept, and so many bytes of them (share.h): ERR_QUOTA beyond, before
 * anything is done. They are counted again when the daemon starts.
 *
 * A client that leaves before its answer has freed its key, unless what it asked for goes on
 * without it: then see idempotency_adopt. */
#pragma once

#include "base/clock.h"
#include "base/error.h"
#include "domain/caller.h"
#include "domain/domain.h"
#include "net/http/http_request.h"

#define IDEMPOTENCY_KEY_MAX    255
#define IDEMPOTENCY_KEPT_MS    ((int64_t) 24 * 3600 * 1000)
#define IDEMPOTENCY_REPLY_MAX  ((size_t) 512 * 1024)
#define IDEMPOTENCY_OUTPUT_MAX ((size_t) 16 * 1024)

struct idempotency;
struct idempotency_entry;

struct shares;

/* All are borrowed; `shares` may be NULL: nothing is counted. */
struct idempotency *idempotency_new(struct store *store, const struct clock *clock,
                                    struct shares *shares);

/* When no request is left. Accepts NULL. Answers of the store that are still to come find nobody.
 */
void idempotency_free(struct idempotency *idempotency);

/* Call `go` with the request, now or later, unless the header says that it is a repetition, which
 * is answered here. `idempotency` may be NULL: the header is ignored. Until `go`, request->data and
 * on_gone are used. */
void idempotency_check(struct idempotency *idempotency, struct http_request *request,
                       const struct caller *caller, const char *body, size_t length,
                       void (*go)(struct http_request *request));

/* For what goes on when the client leaves: keep the request's key until one of the two below; NULL
 * when it has none. When the client is still there its reply is the answer: then the entry is not
 * to be used any more. */
struct idempotency_entry *idempotency_adopt(struct http_request *request);

/* The client had left. Keep the good answer for its return; or free the key. Accept NULL. */
void idempotency_keep(struct idempotency_entry *entry, int status, const char *body, size_t length);
void idempotency_drop(struct idempotency_entry *entry);
