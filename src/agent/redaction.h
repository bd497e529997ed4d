/* A redaction: texts that no message may repeat, and how they are taken out of one.
 *
 * Every secret is replaced wherever it stands, and whatever looks like the user name and password
 * of a URL is replaced too, also when it is not known. Pure functions; not thread-safe. */
#pragma once

#include <stddef.h>

#include "base/text.h"

#define REDACTION_MASK "******"

/* Shorter ones stand in every other word: they are taken out of URLs only. */
#define REDACTION_SECRET_MIN  4
#define REDACTION_SECRETS_MAX 8

struct redaction {
    const char *secrets[REDACTION_SECRETS_MAX]; /* borrowed */
    size_t count;
};

/* One more secret. NULL, one that is too short, and one of nothing but asterisks are left out. At
 * most REDACTION_SECRETS_MAX. */
void redaction_add(struct redaction *redaction, const char *secret);

/* Append `bytes` without the secrets. NUL bytes become '?'. */
void redaction_append(const struct redaction *redaction, struct text *out, const char *bytes,
                      size_t length);
