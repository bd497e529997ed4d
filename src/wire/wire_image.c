#include "wire/wire_image.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/number.h"
#include "wire/wire_text.h"

#define HEAD "burrow-image 1\n"

/* --- words ---------------------------------------------------------------------------------- */

bool wire_image_is_digest(const char *text)
{
    return strlen(text) == WIRE_IMAGE_DIGEST_LENGTH &&
           strspn(text, "0123456789abcdef") == WIRE_IMAGE_DIGEST_LENGTH;
}

static bool is_any(const char *word)
{
    (void) word;
    return true;
}

static bool is_variable(const char *word)
{
    size_t name = strcspn(word, "=");

    if (!name || word[name] != '=')
        return false;
    for (size_t i = 0; i < name; i++) {
        if ((unsigned char) word[i] <= ' ' || word[i] == 0x7f)
            return false;
    }
    return true;
}

/* "name", "1000", "name:group", "1000:1000". */
static bool is_user(const char *word)
{
    return *word && strspn(word, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
                                 "._-:$") == strlen(word);
}

static bool is_path(const char *word)
{
    return word[0] == '/' && !strchr(word, '\n');
}

static bool is_port(const char *word)
{
    size_t digits = strcspn(word, "/");
    uint64_t port;

    return number_parse_digits(word, digits, UINT16_MAX, &port) == 0 && port > 0 &&
           (strcmp(word + digits, "/tcp") == 0 || strcmp(word + digits, "/udp") == 0);
}

static const struct {
    const char *name;
    size_t maximum;
    bool (*is_valid)(const char *word);
} keys[WIRE_IMAGE_KEYS] = {
    [WIRE_IMAGE_BASE] = {"base", 1, wire_text_is_name},
    [WIRE_IMAGE_LAYER] = {"layer", WIRE_IMAGE_LAYERS_MAX, wire_image_is_digest},
    [WIRE_IMAGE_ENV] = {"env", WIRE_IMAGE_WORDS_MAX, is_variable},
    [WIRE_IMAGE_USER] = {"user", 1, is_user},
    [WIRE_IMAGE_WORKDIR] = {"workdir", 1, is_path},
    [WIRE_IMAGE_ENTRYPOINT] = {"entrypoint", WIRE_IMAGE_WORDS_MAX, is_any},
    [WIRE_IMAGE_CMD] = {"cmd", WIRE_IMAGE_WORDS_MAX, is_any},
    [WIRE_IMAGE_PORT] = {"port", WIRE_IMAGE_WORDS_MAX, is_port},
};

void wire_image_clear(struct wire_image *image, enum wire_image_key key)
{
    for (size_t i = 0; i < image->by_key[key].count; i++)
        free(image->by_key[key].words[i]);
    free(image->by_key[key].words);
    image->by_key[key] = (struct wire_image_words){.count = 0};
}

void wire_image_done(struct wire_image *image)
{
    for (size_t key = 0; key < WIRE_IMAGE_KEYS; key++)
        wire_image_clear(image, (enum wire_image_key) key);
}

int wire_image_add(struct wire_image *image, enum wire_image_key key, const char *word,
                   struct error *err)
{
    struct wire_image_words *words = &image->by_key[key];

    if (words->count == keys[key].maximum)
        return error_set(err, ERR_TOO_LARGE, 0, "an image has at most %zu of '%s'",
                         keys[key].maximum, keys[key].name);
    if (strlen(word) > WIRE_IMAGE_WORD_MAX)
        return error_set(err, ERR_TOO_LARGE, 0, "a word of '%s' of the image is too long",
                         keys[key].name);
    if (!keys[key].is_valid(word))
        return error_set(err, ERR_INVALID, 0, "'%.80s' cannot be '%s' of an image", word,
                         keys[key].name);
    words->words = mem_resize(words->words, (words->count + 1) * sizeof(*words->words));
    words->words[words->count++] = mem_copy_text(word);
    return 0;
}

const char *wire_image_word(const struct wire_image *image, enum wire_image_key key)
{
    return image->by_key[key].count ? image->by_key[key].words[0] : "";
}

/* --- reading -------------------------------------------------------------------------------- */

bool wire_image_is_one(const char *bytes, size_t length)
{
    return length >= strlen(HEAD) && memcmp(bytes, HEAD, strlen(HEAD)) == 0;
}

static int malformed(size_t line, struct error *err)
{
    return error_set(err, ERR_INVALID, 0, "line %zu of the image is malformed", line);
}

/* The word that was written, or false for a backslash that says nothing. */
static bool unescape(const char *from, size_t length, struct text *to)
{
    for (size_t i = 0; i < length; i++) {
        char c = from[i];

        if (c == '\\' && (i + 1 == length || (from[i + 1] != 'n' && from[i + 1] != '\\')))
            return false;
        if (c == '\\')
            c = from[++i] == 'n' ? '\n' : '\\';
        text_append_char(to, c);
    }
    return true;
}

static int read_line(struct wire_image *image, const char *line, size_t length, size_t number,
                     struct error *err)
{
    AUTO(text) struct text word = TEXT_INIT(WIRE_IMAGE_TEXT_MAX);
    const char *space = memchr(line, ' ', length);
    size_t name = space ? (size_t) (space - line) : 0;

    if (!space || memchr(line, '\0', length) || !unescape(space + 1, length - name - 1, &word))
        return malformed(number, err);
    for (size_t key = 0; key < WIRE_IMAGE_KEYS; key++) {
        if (strlen(keys[key].name) == name && memcmp(keys[key].name, line, name) == 0)
            return wire_image_add(image, (enum wire_image_key) key, text_string(&word), err);
    }
    return malformed(number, err);
}

static int read_lines(struct wire_image *image, const char *at, size_t left, struct error *err)
{
    for (size_t number = 2; left; number++) {
        const char *end = memchr(at, '\n', left);
        size_t length = end ? (size_t) (end - at) : 0;

        if (!end)
            return malformed(number, err);
        if (read_line(image, at, length, number, err) < 0)
            return -1;
        at += length + 1;
        left -= length + 1;
    }
    return 0;
}

int wire_image_read(const char *bytes, size_t length, struct wire_image *ret_image,
                    struct error *err)
{
    struct wire_image image = WIRE_IMAGE_INIT;
    size_t head = strlen(HEAD);

    if (length > WIRE_IMAGE_TEXT_MAX)
        return error_set(err, ERR_TOO_LARGE, 0, "the description of the image is too long");
    if (!wire_image_is_one(bytes, length))
        return error_set(err, ERR_INVALID, 0, "this is no description of an image");
    if (read_lines(&image, bytes + head, length - head, err) < 0) {
        wire_image_done(&image);
        return -1;
    }
    if (!image.by_key[WIRE_IMAGE_LAYER].count && !image.by_key[WIRE_IMAGE_BASE].count) {
        wire_image_done(&image);
        return error_set(err, ERR_INVALID, 0, "the image has no layers");
    }
    *ret_image = image;
    return 0;
}

/* --- writing -------------------------------------------------------------------------------- */

static void write_word(struct text *out, const char *name, const char *word)
{
    text_append(out, name);
    text_append_char(out, ' ');
    for (; *word; word++) {
        if (*word == '\\' || *word == '\n')
            text_append_char(out, '\\');
        text_append_char(out, *word == '\n' ? 'n' : *word);
    }
    text_append_char(out, '\n');
}

int wire_image_write(const struct wire_image *image, struct text *out, struct error *err)
{
    AUTO(text) struct text text = TEXT_INIT(2 * WIRE_IMAGE_TEXT_MAX);

    text_append(&text, HEAD);
    for (size_t key = 0; key < WIRE_IMAGE_KEYS; key++) {
        const struct wire_image_words *words = &image->by_key[key];

        for (size_t i = 0; i < words->count && text.length <= WIRE_IMAGE_TEXT_MAX; i++)
            write_word(&text, keys[key].name, words->words[i]);
    }
    if (text.length > WIRE_IMAGE_TEXT_MAX)
        return error_set(err, ERR_TOO_LARGE, 0, "the description of the image is too long");
    text_append_bytes(out, text.data, text.length);
    return 0;
}
