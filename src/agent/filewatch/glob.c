#include "agent/filewatch/glob.h"

#include <errno.h>
#include <string.h>

#include "base/encoding/utf8.h"

/* A token is a character, or one of these, above all characters. */
enum {
    BYTE = 0x200000, /* + a byte that is no UTF-8 */
    ONE = 0x300000,  /* one character but '/' */
    NAME,            /* any number of characters but '/' */
    DEEP,            /* any number of characters */
    FOLDERS,         /* nothing, or any number of characters and a '/' */
};

/* The character at `*at`, which is moved behind it. */
static uint32_t next_character(const char **at)
{
    uint32_t character;
    size_t length = utf8_decode(*at, strnlen(*at, 4), &character);

    if (length == 0) {
        character = BYTE + (unsigned char) **at;
        length = 1;
    }
    *at += length;
    return character;
}

/* The token at `*at`. `is_first`: a name begins here. */
static uint32_t next_token(const char **at, bool is_first)
{
    if (**at == '?') {
        ++*at;
        return ONE;
    }
    if (**at != '*')
        return next_character(at);
    if ((*at)[1] != '*') {
        ++*at;
        return NAME;
    }
    while (**at == '*')
        ++*at;
    if (!is_first || **at != '/')
        return DEEP;
    ++*at;
    return FOLDERS;
}

int glob_read(const char *pattern, struct pool *pool, struct glob *ret_glob)
{
    bool is_absolute = pattern[0] == '/';
    uint32_t *tokens;
    size_t count = 0;

    if (strnlen(pattern, GLOB_MAX + 1) > GLOB_MAX || strpbrk(pattern, "[]{}"))
        return -EINVAL;
    while (*pattern == '/' || (pattern[0] == '.' && pattern[1] == '/'))
        pattern += *pattern == '/' ? 1 : 2;
    tokens = pool_alloc(pool, (strlen(pattern) + 1) * sizeof(*tokens));
    while (*pattern) {
        bool is_first = count == 0 || tokens[count - 1] == '/' || tokens[count - 1] == FOLDERS;

        tokens[count++] = next_token(&pattern, is_first);
    }
    while (count > 0 && tokens[count - 1] == '/')
        count--;
    if (count == 0)
        return -EINVAL;
    *ret_glob = (struct glob){.tokens = tokens, .count = count, .is_absolute = is_absolute};
    return 0;
}

/* --- comparing ------------------------------------------------------------------------------ */

/* The places in the pattern where the text so far may have led to, each once. */
struct places {
    uint16_t at[GLOB_MAX + 1];
    size_t count;
    uint64_t present[GLOB_MAX / 64 + 1];
};

struct search {
    const struct glob *glob;
    struct places places[2];
    size_t steps; /* for tests: how much was done */
};

static void clear(struct places *places)
{
    for (size_t i = 0; i < places->count; i++)
        places->present[places->at[i] / 64] = 0;
    places->count = 0;
}

/* Add a place, and those behind it that need no character. */
static void add(struct search *search, struct places *places, size_t place)
{
    const struct glob *glob = search->glob;

    for (;; place++) {
        uint64_t bit = UINT64_C(1) << (place % 64);

        search->steps++;
        if (places->present[place / 64] & bit)
            return;
        places->present[place / 64] |= bit;
        places->at[places->count++] = (uint16_t) place;
        if (place == glob->count || glob->tokens[place] < NAME)
            return;
    }
}

static void advance(struct search *search, const struct places *from, struct places *to,
                    uint32_t character)
{
    const struct glob *glob = search->glob;

    for (size_t i = 0; i < from->count; i++) {
        size_t place = from->at[i];
        uint32_t token = place < glob->count ? glob->tokens[place] : BYTE;

        search->steps++;
        if (token == DEEP || (token == NAME && character != '/')) {
            add(search, to, place);
        } else if (token == FOLDERS) {
            /* It stays; what is behind it begins only behind a '/'. */
            if (!(to->present[place / 64] & UINT64_C(1) << (place % 64))) {
                to->present[place / 64] |= UINT64_C(1) << (place % 64);
                to->at[to->count++] = (uint16_t) place;
            }
            if (character == '/')
                add(search, to, place + 1);
        } else if (token == character || (token == ONE && character != '/')) {
            add(search, to, place + 1);
        }
    }
}

static bool has_end(const struct search *search, const struct places *places)
{
    size_t place = search->glob->count;

    return places->present[place / 64] & UINT64_C(1) << (place % 64);
}

static bool find(struct search *search, const char *text)
{
    struct places *now = &search->places[0], *then = &search->places[1];
    bool begins = true; /* a name begins here */

    for (bool is_start = true;; is_start = false) {
        struct places *swap = now;
        uint32_t character;

        if (begins && (is_start || !search->glob->is_absolute))
            add(search, now, 0);
        if ((!*text || *text == '/') && has_end(search, now))
            return true;
        if (!*text)
            return false;
        character = next_character(&text);
        begins = character == '/';
        advance(search, now, then, character);
        clear(now);
        now = then;
        then = swap;
    }
}

bool glob_finds(const struct glob *glob, const char *relative, const char *absolute)
{
    struct search search = {.glob = glob};

    if (glob->is_absolute)
        return *absolute && find(&search, absolute + 1);
    return find(&search, relative);
}
