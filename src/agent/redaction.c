#include "agent/redaction.h"

#include <assert.h>
#include <stdbool.h>
#include <string.h>

#define MASK_LENGTH (sizeof(REDACTION_MASK) - 1)

void redaction_add(struct redaction *redaction, const char *secret)
{
    if (!secret || strlen(secret) < REDACTION_SECRET_MIN || !secret[strspn(secret, "*")])
        return;
    assert(redaction->count < REDACTION_SECRETS_MAX);
    redaction->secrets[redaction->count++] = secret;
}

/* --- known secrets --------------------------------------------------------------------------- */

static bool take_secret_back(const struct redaction *redaction, struct text *out, size_t start)
{
    for (size_t i = 0; i < redaction->count; i++) {
        size_t length = strlen(redaction->secrets[i]);

        if (out->length - start >= length &&
            memcmp(out->data + out->length - length, redaction->secrets[i], length) == 0) {
            out->length -= length;
            out->data[out->length] = '\0';
            return true;
        }
    }
    return false;
}

/* The end of what was written is looked at after every character, those of the mask included: a
 * secret may have asterisks, and must not come to be by our writing them. Ends, because every
 * round takes away a character that is no asterisk. */
static void append_character(const struct redaction *redaction, struct text *out, size_t start,
                             char character)
{
    size_t stars = 0;

    text_append_char(out, character ? character : '?');
    for (;;) {
        if (take_secret_back(redaction, out, start))
            stars = MASK_LENGTH;
        if (!stars)
            return;
        text_append_char(out, '*');
        stars--;
    }
}

/* --- URLs ------------------------------------------------------------------------------------ */

/* Where the host begins behind "://": after the last '@' of what can be an authority. */
static size_t credentials_length(const char *bytes, size_t length)
{
    size_t found = 0;

    for (size_t i = 0; i < length && !strchr("/ \t\r\n'\"<>", bytes[i]); i++) {
        if (bytes[i] == '@')
            found = i;
    }
    return found;
}

static void append_url_parts(struct text *out, const char *bytes, size_t length)
{
    for (size_t i = 0; i < length; i++) {
        size_t skipped;

        text_append_char(out, bytes[i]);
        if (i < 2 || memcmp(bytes + i - 2, "://", 3) != 0)
            continue;
        skipped = credentials_length(bytes + i + 1, length - i - 1);
        if (skipped)
            text_append(out, REDACTION_MASK);
        i += skipped;
    }
}

void redaction_append(const struct redaction *redaction, struct text *out, const char *bytes,
                      size_t length)
{
    AUTO(text) struct text plain = TEXT_INIT(2 * length + 2 * MASK_LENGTH);
    size_t start = out->length;

    append_url_parts(&plain, bytes, length);
    for (size_t i = 0; i < plain.length; i++)
        append_character(redaction, out, start, plain.data[i]);
}
