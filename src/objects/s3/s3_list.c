/* Pages go on behind the last key that was told (start-after), not at the store's own token: that
 * one does not outlive anything. Behind a folder ("a/") some stores go on inside it and name it
 * again; so one more entry is asked for and that one is left out. */
#include <stdlib.h>
#include <string.h>

#include "base/number.h"
#include "objects/s3/s3_operations.h"

static int by_key(const void *one, const void *other)
{
    return strcmp(((const struct s3_listed *) one)->key, ((const struct s3_listed *) other)->key);
}

static bool is_folder_key(const char *key)
{
    size_t length = strlen(key);

    return length && key[length - 1] == '/';
}

static int ask(struct s3_client *client, struct objects_work *work,
               const struct object_query *query, size_t limit, struct s3_listing *ret_listing,
               struct error *err)
{
    struct s3_request request = {.method = "GET"};
    AUTO(s3_answer) struct s3_answer answer = S3_ANSWER_INIT;
    char number[NUMBER_TEXT_SIZE];

    if (query->after && strlen(query->after) > OBJECTS_KEY_MAX)
        return error_set(err, ERR_INVALID, 0, "a page does not begin behind such a key");
    (void) number_format_unsigned(limit, number);
    s3_request_query(&request, "list-type", "2");
    s3_request_query(&request, "encoding-type", "url"); /* keys that XML cannot hold */
    s3_request_query(&request, "max-keys", number);
    s3_request_query(&request, "prefix",
                     pool_format(work->pool, "%s%s", client->prefix, query->prefix));
    if (query->folders)
        s3_request_query(&request, "delimiter", "/");
    if (query->after)
        s3_request_query(&request, "start-after",
                         pool_format(work->pool, "%s%s", client->prefix, query->after));
    if (s3_call(client, work, &request, &answer, err) < 0)
        return -1;
    return s3_document_listing(text_string(&answer.http.body), answer.http.body.length, work->pool,
                               ret_listing, err);
}

/* What a store may not say: keys of others, and keys that were told before, which would make a
 * walk over all pages endless. Keys lose our prefix. */
static int check_keys(const struct s3_client *client, const struct object_query *query,
                      struct s3_listing *listing, struct error *err)
{
    size_t ours = strlen(client->prefix), kept = 0;

    for (size_t i = 0; i < listing->count; i++) {
        struct s3_listed entry = listing->entries[i];

        if (strncmp(entry.key, client->prefix, ours) != 0 ||
            strncmp(entry.key + ours, query->prefix, strlen(query->prefix)) != 0)
            return error_set(err, ERR_UPSTREAM, 0, "%s: it listed a key that was not asked for",
                             client->text);
        entry.key += ours;
        if (query->after && strcmp(entry.key, query->after) == 0 && entry.is_folder)
            continue;
        if (!*entry.key || (query->after && strcmp(entry.key, query->after) <= 0) ||
            (kept && strcmp(listing->entries[kept - 1].key, entry.key) == 0))
            return error_set(err, ERR_UPSTREAM, 0, "%s: it listed a key twice", client->text);
        listing->entries[kept++] = entry;
    }
    listing->count = kept;
    return 0;
}

static int fill(const struct s3_listing *listing, struct objects_work *work, size_t limit,
                struct object_list *ret_list, struct error *err)
{
    size_t count = listing->count < limit ? listing->count : limit;
    struct object_entry *entries = pool_alloc(work->pool, (count + 1) * sizeof(*entries));

    for (size_t i = 0; i < count; i++) {
        const struct s3_listed *from = &listing->entries[i];

        entries[i] = (struct object_entry){.key = from->key,
                                           .is_folder = from->is_folder,
                                           .size = from->size,
                                           .modified_ms = from->modified_ms};
        if (strlen(from->tag) < OBJECTS_TAG_SIZE)
            memcpy(entries[i].tag, from->tag, strlen(from->tag));
    }
    if (listing->is_truncated && count == 0)
        return error_set(err, ERR_UPSTREAM, 0, "the store lists nothing and says there is more");
    *ret_list = (struct object_list){.entries = entries, .count = count};
    if (listing->is_truncated || listing->count > limit)
        ret_list->next = entries[count - 1].key;
    return 0;
}

int s3_list(struct s3_client *client, struct objects_work *work, const struct object_query *query,
            struct object_list *ret_list, struct error *err)
{
    bool behind_folder = query->folders && query->after && is_folder_key(query->after);
    size_t limit = query->limit + (behind_folder && query->limit < OBJECTS_PAGE_MAX);
    struct s3_listing listing;

    if (ask(client, work, query, limit, &listing, err) < 0)
        return -1;
    qsort(listing.entries, listing.count, sizeof(*listing.entries), by_key);
    if (check_keys(client, query, &listing, err) < 0)
        return -1;
    return fill(&listing, work, query->limit, ret_list, err);
}
