/* Patterns against texts: the matcher agrees with a plain one that tries everything. Input: a byte
 * for the dialect, the pattern, a newline, the text. */
#include <stdlib.h>
#include <string.h>

#include "base/format/ignore_pattern.c"

/* What trying everything can afford. */
#define PATTERN_MAX 24
#define TEXT_MAX    32
#define STEPS_MAX   200000

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(bool holds)
{
    if (!holds)
        abort();
}

struct trial {
    const struct ignore_pattern *pattern;
    const char *text;
    size_t length;
    int steps;
};

static bool takes_one(const struct trial *trial, const struct ignore_token *token, uint8_t byte)
{
    if (token->kind == TOKEN_BYTE)
        return byte == token->byte;
    if (byte == '/')
        return false;
    return token->kind == TOKEN_ANY || has_byte(trial->pattern->classes[token->class], byte);
}

/* Whether the tokens from `token` on take the text from `at` on. */
static bool try_all(struct trial *trial, size_t token, size_t at)
{
    const struct ignore_token *now = &trial->pattern->tokens[token];

    if (++trial->steps > STEPS_MAX)
        return false;
    if (token == trial->pattern->count)
        return at == trial->length;
    if (now->kind < TOKEN_STAR)
        return at < trial->length && takes_one(trial, now, (uint8_t) trial->text[at]) &&
               try_all(trial, token + 1, at + 1);
    if (try_all(trial, token + 1, at))
        return true;
    for (; at < trial->length; at++) {
        bool is_slash = trial->text[at] == '/';

        if (is_slash && now->kind == TOKEN_STAR)
            return false;
        if ((is_slash || now->kind != TOKEN_FOLDERS) && try_all(trial, token + 1, at + 1))
            return true;
    }
    return false;
}

static void compare(const struct ignore_pattern *pattern, const char *text, size_t length)
{
    struct trial trial = {.pattern = pattern, .text = text, .length = length};
    bool ours = ignore_pattern_matches(pattern, text, length), theirs;

    if (pattern->count > PATTERN_MAX || length > TEXT_MAX ||
        (pattern->hidden_is_literal && length && text[0] == '.'))
        return;
    theirs = try_all(&trial, 0, 0);
    must(trial.steps > STEPS_MAX || ours == theirs);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const char *pattern = (const char *) data + 1, *end;
    AUTO(ignore_pattern) struct ignore_pattern read = {.tokens = NULL};
    size_t length;

    if (size < 2)
        return 0;
    end = memchr(pattern, '\n', size - 1);
    length = end ? (size_t) (end - pattern) : size - 1;
    if (ignore_pattern_read(pattern, length, (enum ignore_dialect)(data[0] % 3), &read) < 0)
        return 0;
    must(read.count > 0 && read.count <= length);
    compare(&read, pattern, length);
    if (end)
        compare(&read, end + 1, size - 2 - length);
    return 0;
}
