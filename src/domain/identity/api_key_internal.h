/* Between api_key.c (which keys there are, and who holds one) and api_key_change.c. */
#pragma once

#include "domain/identity/api_key.h"

struct api_keys {
    struct table by_hash, by_id;
    struct list all; /* oldest first */
    size_t count;
};

/* Accepts NULL. */
void api_key_free(struct api_key *key);
AUTO_DEFINE_PTR(api_key, struct api_key, api_key_free);

/* One more key, which is taken. */
void api_key_remember(struct domain *domain, struct api_key *key);

struct api_key *api_key_find_hash(const struct domain *domain, const uint8_t hash[SHA256_SIZE]);
struct api_key *api_key_find_id(const struct domain *domain, const struct id *id);

/* The whole row into the transaction. */
void api_key_put(struct store_transaction *transaction, const struct api_key *key, bool is_new);
