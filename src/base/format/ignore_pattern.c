#include "base/format/ignore_pattern.h"

#include <ctype.h>
#include <string.h>

#include "base/encoding/utf8.h"
#include "base/memory.h"

enum token_kind {
    TOKEN_BYTE,
    TOKEN_ANY,       /* one byte, no '/' */
    TOKEN_CHARACTER, /* the bytes of one character, no '/' */
    TOKEN_CLASS,     /* one byte of a class, no '/' */
    TOKEN_STAR,      /* any bytes, no '/' */
    TOKEN_ALL,       /* any bytes */
    TOKEN_FOLDERS,   /* nothing, or any bytes and a '/' */
};

struct ignore_token {
    uint8_t kind;
    uint8_t byte;
    uint16_t class;
};

/* --- reading -------------------------------------------------------------------------------- */

struct ignore_pattern_reading {
    struct ignore_pattern *pattern;
    const char *text;
    size_t length, at;
    enum ignore_dialect dialect;
};

static const struct {
    const char *name;
    int (*holds)(int c);
} class_names[] = {
    {"alnum", isalnum}, {"alpha", isalpha}, {"blank", isblank}, {"cntrl", iscntrl},
    {"digit", isdigit}, {"graph", isgraph}, {"lower", islower}, {"print", isprint},
    {"punct", ispunct}, {"space", isspace}, {"upper", isupper}, {"xdigit", isxdigit},
};

static void add_token(struct ignore_pattern_reading *reading, enum token_kind kind, uint8_t byte,
                      size_t class)
{
    reading->pattern->tokens[reading->pattern->count++] =
        (struct ignore_token){(uint8_t) kind, byte, (uint16_t) class};
}

static void add_range(uint64_t class[static 4], unsigned int from, unsigned int to)
{
    for (unsigned int byte = from; byte <= to; byte++)
        class[byte / 64] |= UINT64_C(1) << byte % 64;
}

static bool has_byte(const uint64_t class[static 4], uint8_t byte)
{
    return class[byte / 64] >> byte % 64 & 1;
}

static int add_named(uint64_t class[static 4], const char *name, size_t length)
{
    for (size_t i = 0; i < ARRAY_COUNT(class_names); i++) {
        if (strlen(class_names[i].name) != length || memcmp(class_names[i].name, name, length) != 0)
            continue;
        for (unsigned int byte = 0; byte < 128; byte++)
            if (class_names[i].holds((int) byte))
                add_range(class, byte, byte);
        return 0;
    }
    return -EINVAL;
}

/* The next byte of a class, which a backslash may precede. -EINVAL at the end. */
static int class_byte(const struct ignore_pattern_reading *reading, size_t *at)
{
    if (*at < reading->length && reading->text[*at] == '\\')
        (*at)++;
    return *at < reading->length ? (uint8_t) reading->text[(*at)++] : -EINVAL;
}

/* "[:alpha:]" at `*at`, which then is behind it. 1, 0 for none such, or -EINVAL: no such class. */
static int read_named(const struct ignore_pattern_reading *reading, size_t *at,
                      uint64_t class[static 4])
{
    const char *from = reading->text + *at + 2, *end;
    size_t left = reading->length - *at;

    if (left < 2 || reading->text[*at] != '[' || reading->text[*at + 1] != ':')
        return 0;
    end = memchr(from, ']', left - 2);
    if (!end)
        return -EINVAL;
    if (end == from || end[-1] != ':')
        return 0;
    *at = (size_t) (end + 1 - reading->text);
    return add_named(class, from, (size_t) (end - 1 - from)) < 0 ? -EINVAL : 1;
}

/* One member at `*at`: a byte, a range, or a name. `*last` is where a range would begin, or -1. */
static int read_member(const struct ignore_pattern_reading *reading, size_t *at, int *last,
                       uint64_t class[static 4])
{
    const char *text = reading->text;
    int named = read_named(reading, at, class), byte;

    if (named) {
        *last = -1;
        return named < 0 ? named : 0;
    }
    if (text[*at] == '-' && *last >= 0 && *at + 1 < reading->length && text[*at + 1] != ']') {
        (*at)++;
        byte = class_byte(reading, at);
        if (byte >= *last)
            add_range(class, (unsigned int) *last, (unsigned int) byte);
        *last = -1;
        return byte < 0 ? byte : 0;
    }
    byte = class_byte(reading, at);
    if (byte < 0)
        return byte;
    add_range(class, (unsigned int) byte, (unsigned int) byte);
    *last = byte;
    return 0;
}

/* From behind the '['. 0, or -EINVAL when it has no end. */
static int read_class(struct ignore_pattern_reading *reading)
{
    struct ignore_pattern *pattern = reading->pattern;
    uint64_t class[4] = {0};
    size_t at = reading->at;
    const char *negation = reading->dialect == IGNORE_DOCKER ? "^" : "!^";
    bool negated = at < reading->length && strchr(negation, reading->text[at]) != NULL;
    int last = -1;

    at += negated;
    do { /* a ']' at the beginning is a member */
        if (at >= reading->length || read_member(reading, &at, &last, class) < 0)
            return -EINVAL;
        if (at >= reading->length)
            return -EINVAL;
    } while (reading->text[at] != ']');
    for (size_t i = 0; negated && i < ARRAY_COUNT(class); i++)
        class[i] = ~class[i];
    pattern->classes =
        mem_resize(pattern->classes, (pattern->class_count + 1) * sizeof(*pattern->classes));
    memcpy(pattern->classes[pattern->class_count], class, sizeof(class));
    add_token(reading, TOKEN_CLASS, 0, pattern->class_count++);
    reading->at = at + 1;
    return 0;
}

/* Stars from `reading->at - 1` on. */
static void read_stars(struct ignore_pattern_reading *reading)
{
    const struct ignore_pattern *pattern = reading->pattern;
    const char *text = reading->text;
    size_t first = reading->at - 1, end;
    bool is_docker = reading->dialect == IGNORE_DOCKER, whole;
    bool is_anywhere = is_docker || reading->dialect == IGNORE_WATCH; /* where two stars may be */
    bool is_step = first == 0 || text[first - 1] == '/';
    enum token_kind kind = TOKEN_STAR;

    while (reading->at < reading->length && text[reading->at] == '*')
        reading->at++;
    end = reading->at;
    whole = end - first > 1 && (is_anywhere || (reading->dialect == IGNORE_GIT_PATH && is_step));
    if (whole && (is_docker || is_step) && end < reading->length && text[end] == '/') {
        kind = TOKEN_FOLDERS;
        reading->at++;
    } else if (whole &&
               (is_anywhere || end == reading->length ||
                (text[end] == '\\' && end + 1 < reading->length && text[end + 1] == '/'))) {
        kind = TOKEN_ALL;
    }
    /* Twice is not more than once. */
    if (pattern->count && pattern->tokens[pattern->count - 1].kind == kind)
        return;
    add_token(reading, kind, 0, 0);
}

static int read_token(struct ignore_pattern_reading *reading)
{
    char c = reading->text[reading->at++];

    if (reading->dialect == IGNORE_WATCH && c != '*') {
        add_token(reading, c == '?' ? TOKEN_CHARACTER : TOKEN_BYTE, (uint8_t) c, 0);
    } else if (c == '\\') {
        if (reading->at == reading->length)
            return -EINVAL;
        add_token(reading, TOKEN_BYTE, (uint8_t) reading->text[reading->at++], 0);
    } else if (c == '?') {
        add_token(reading, TOKEN_ANY, 0, 0);
    } else if (c == '*') {
        read_stars(reading);
    } else if (c == '[' && read_class(reading) == 0) {
        return 0;
    } else if (c == '[' && reading->dialect != IGNORE_SHELL) {
        return -EINVAL;
    } else {
        add_token(reading, TOKEN_BYTE, (uint8_t) c, 0);
    }
    return 0;
}

/* What stands in front of a watch's pattern and means nothing. Returns 0 or -EINVAL. */
static int strip_front(const char **text, size_t *length)
{
    const char *at = *text, *end = at + *length;

    if (*length > IGNORE_WATCH_MAX)
        return -EINVAL;
    for (const char *c = at; c < end; c++)
        if (strchr("[]{}", *c))
            return -EINVAL;
    while (at < end && (*at == '/' || (end - at > 1 && at[0] == '.' && at[1] == '/')))
        at += *at == '/' ? 1 : 2;
    *text = at;
    *length = (size_t) (end - at);
    return 0;
}

int ignore_pattern_read(const char *text, size_t length, enum ignore_dialect dialect,
                        struct ignore_pattern *ret_pattern)
{
    struct ignore_pattern pattern = {.is_literal = dialect != IGNORE_WATCH,
                                     .is_part = dialect == IGNORE_WATCH,
                                     .is_absolute = length && text[0] == '/',
                                     .hidden_is_literal = dialect == IGNORE_SHELL};
    struct ignore_pattern_reading reading = {&pattern, text, length, 0, dialect};

    if (dialect == IGNORE_WATCH && strip_front(&reading.text, &reading.length) < 0)
        return -EINVAL;
    length = reading.length;
    if (length == 0 || length > IGNORE_PATTERN_MAX)
        return -EINVAL;
    pattern.tokens = mem_alloc_array(length, sizeof(*pattern.tokens));
    while (reading.at < length) {
        if (read_token(&reading) < 0) {
            ignore_pattern_done(&pattern);
            return -EINVAL;
        }
        if (pattern.tokens[pattern.count - 1].kind != TOKEN_BYTE)
            pattern.is_literal = false;
    }
    while (pattern.is_part && pattern.count &&
           pattern.tokens[pattern.count - 1].kind == TOKEN_BYTE &&
           pattern.tokens[pattern.count - 1].byte == '/')
        pattern.count--;
    if (pattern.count == 0) {
        ignore_pattern_done(&pattern);
        return -EINVAL;
    }
    pattern.tokens = mem_resize(pattern.tokens, pattern.count * sizeof(*pattern.tokens));
    *ret_pattern = pattern;
    return 0;
}

void ignore_pattern_done(struct ignore_pattern *pattern)
{
    free(pattern->tokens);
    free(pattern->classes);
    *pattern = (struct ignore_pattern){.tokens = NULL};
}

size_t ignore_pattern_size(const struct ignore_pattern *pattern)
{
    return sizeof(*pattern) + pattern->count * sizeof(*pattern->tokens) +
           pattern->class_count * sizeof(*pattern->classes);
}

/* --- comparing ------------------------------------------------------------------------------ */

/* All states in which the pattern may be at once: a state is the number of tokens behind us. */
struct states {
    bool has[IGNORE_PATTERN_MAX + 1]; /* only from `low` to `high` */
    size_t low, high;
    bool is_empty;
};

static void set_state(struct states *states, size_t state)
{
    if (states->is_empty) {
        states->low = states->high = state;
        states->is_empty = false;
        states->has[state] = true;
        return;
    }
    while (states->high < state)
        states->has[++states->high] = false;
    while (states->low > state)
        states->has[--states->low] = false;
    states->has[state] = true;
}

/* Come to a state from another one: what may match nothing may be behind us as well. */
static void arrive(const struct ignore_pattern *pattern, struct states *states, size_t state)
{
    set_state(states, state);
    while (state < pattern->count && pattern->tokens[state].kind >= TOKEN_STAR)
        set_state(states, ++state);
}

/* `ends`: with this byte a character is complete. */
static void advance(const struct ignore_pattern *pattern, size_t state, uint8_t byte, bool ends,
                    struct states *next)
{
    const struct ignore_token *token = &pattern->tokens[state];
    bool is_slash = byte == '/';

    switch ((enum token_kind) token->kind) {
    case TOKEN_BYTE:
        if (token->byte == byte)
            arrive(pattern, next, state + 1);
        return;
    case TOKEN_ANY:
        if (!is_slash)
            arrive(pattern, next, state + 1);
        return;
    case TOKEN_CHARACTER:
        if (!is_slash && ends)
            arrive(pattern, next, state + 1);
        else if (!is_slash)
            set_state(next, state);
        return;
    case TOKEN_CLASS:
        if (!is_slash && has_byte(pattern->classes[token->class], byte))
            arrive(pattern, next, state + 1);
        return;
    case TOKEN_STAR:
        if (!is_slash)
            arrive(pattern, next, state);
        return;
    case TOKEN_ALL:
        arrive(pattern, next, state);
        return;
    case TOKEN_FOLDERS: /* only at the end of a folder it is behind us */
        set_state(next, state);
        if (is_slash)
            arrive(pattern, next, state + 1);
        return;
    }
}

static bool matches_literally(const struct ignore_pattern *pattern, const char *text, size_t length)
{
    if (pattern->count != length)
        return false;
    for (size_t i = 0; i < length; i++)
        if (pattern->tokens[i].byte != (uint8_t) text[i])
            return false;
    return true;
}

static bool has_end(const struct ignore_pattern *pattern, const struct states *states)
{
    return !states->is_empty && states->high == pattern->count && states->has[pattern->count];
}

/* How many bytes the character has that begins here; one that is no UTF-8 has one. */
static size_t character_size(const char *text, size_t length)
{
    uint32_t character;
    size_t size = utf8_decode(text, length < 4 ? length : 4, &character);

    return size ? size : 1;
}

/* From every state there is by one byte; `is_end` when it is the last of its character. */
static void advance_all(const struct ignore_pattern *pattern, const struct states *now,
                        uint8_t byte, bool is_end, struct states *next)
{
    next->is_empty = true;
    if (now->is_empty)
        return;
    for (size_t state = now->low; state <= now->high; state++)
        if (state < pattern->count && now->has[state])
            advance(pattern, state, byte, is_end, next);
}

/* The whole text; or, when the pattern is for parts, from where a name begins to where one ends. */
static bool run_states(const struct ignore_pattern *pattern, const char *text, size_t length)
{
    struct states first, second; /* not zeroed: that would take longer than comparing */
    struct states *now = &first, *next = &second;
    size_t left = 0; /* bytes of the character */

    now->is_empty = true;
    for (size_t i = 0;; i++) {
        struct states *swap = now;

        if (i == 0 || (pattern->is_part && !pattern->is_absolute && text[i - 1] == '/'))
            arrive(pattern, now, 0);
        if ((i == length || (pattern->is_part && text[i] == '/')) && has_end(pattern, now))
            return true;
        if (i == length || (now->is_empty && !pattern->is_part))
            return false;
        if (left == 0)
            left = pattern->is_part ? character_size(text + i, length - i) : 1;
        left--;
        advance_all(pattern, now, (uint8_t) text[i], left == 0, next);
        now = next;
        next = swap;
    }
}

bool ignore_pattern_matches(const struct ignore_pattern *pattern, const char *text, size_t length)
{
    if (pattern->is_literal)
        return matches_literally(pattern, text, length);
    if (pattern->hidden_is_literal && length && text[0] == '.' &&
        pattern->tokens[0].kind != TOKEN_BYTE)
        return false;
    return run_states(pattern, text, length);
}

bool ignore_pattern_finds(const struct ignore_pattern *pattern, const char *relative,
                          const char *absolute)
{
    if (pattern->is_absolute)
        return *absolute && run_states(pattern, absolute + 1, strlen(absolute + 1));
    return run_states(pattern, relative, strlen(relative));
}
