#include "recipe/recipe.h"

#include <ctype.h>
#include <string.h>
#include <strings.h>

#include "base/encoding/utf8.h"
#include "base/text.h"
#include "json/json_read.h"
#include "recipe/recipe_text.h"

#define BLANKS "\t\r "
#define BOM    "\xef\xbb\xbf"

/* --- the instructions ----------------------------------------------------------------------- */

static const struct kind {
    const char *name;
    size_t words_min, words_max; /* 0: `rest` is not split */
    bool takes_json;
    bool is_command; /* JSON that is none is a line for the shell */
} kinds[RECIPE_KINDS] = {
    [RECIPE_FROM] = {.name = "FROM", .words_min = 1, .words_max = 3},
    [RECIPE_ARG] = {.name = "ARG", .words_min = 1, .words_max = RECIPE_WORDS_MAX},
    [RECIPE_ENV] = {.name = "ENV", .words_min = 1, .words_max = RECIPE_WORDS_MAX},
    [RECIPE_WORKDIR] = {.name = "WORKDIR"},
    [RECIPE_USER] = {.name = "USER"},
    [RECIPE_COPY] = {.name = "COPY",
                     .words_min = 2,
                     .words_max = RECIPE_WORDS_MAX,
                     .takes_json = true},
    [RECIPE_RUN] = {.name = "RUN", .takes_json = true, .is_command = true},
    [RECIPE_EXPOSE] = {.name = "EXPOSE", .words_min = 1, .words_max = RECIPE_WORDS_MAX},
    [RECIPE_CMD] = {.name = "CMD", .takes_json = true, .is_command = true},
    [RECIPE_ENTRYPOINT] = {.name = "ENTRYPOINT", .takes_json = true, .is_command = true},
};

const char *recipe_kind_text(enum recipe_kind kind)
{
    return kinds[kind].name;
}

/* --- lines ---------------------------------------------------------------------------------- */

struct recipe_reading {
    const char *at, *end;
    size_t line; /* of what is at `at` */
    struct pool *pool;
    struct recipe *recipe;
    struct error *err;
};

/* The line at `at`, without its end and the blanks before that. */
static bool next_line(struct recipe_reading *reading, const char **ret_line, size_t *ret_length)
{
    const char *line = reading->at, *end;

    if (line == reading->end)
        return false;
    end = memchr(line, '\n', (size_t) (reading->end - line));
    reading->at = end ? end + 1 : reading->end;
    reading->line++;
    end = end ? end : reading->end;
    while (end > line && strchr(BLANKS, end[-1]))
        end--;
    *ret_line = line;
    *ret_length = (size_t) (end - line);
    return true;
}

/* One instruction with the lines that continue it. Empty lines and comments do not end it. */
static bool next_instruction(struct recipe_reading *reading, struct text *out, size_t *ret_line)
{
    const char *line;
    size_t length;
    bool goes_on = false;

    text_clear(out);
    while (next_line(reading, &line, &length)) {
        size_t blanks = 0;

        while (blanks < length && strchr(BLANKS, line[blanks]))
            blanks++;
        if (blanks == length || line[blanks] == '#')
            continue;
        if (!out->length) {
            *ret_line = reading->line;
            line += blanks;
            length -= blanks;
        }
        goes_on = line[length - 1] == '\\';
        text_append_bytes(out, line, length - goes_on);
        if (!goes_on)
            break;
    }
    while (out->length && strchr(BLANKS, out->data[out->length - 1]))
        out->data[--out->length] = '\0';
    return out->length > 0;
}

/* --- one instruction ------------------------------------------------------------------------ */

static int find_kind(const char *text, size_t length, enum recipe_kind *ret_kind, struct error *err)
{
    for (size_t i = 0; i < RECIPE_KINDS; i++) {
        if (strlen(kinds[i].name) == length && strncasecmp(kinds[i].name, text, length) == 0) {
            *ret_kind = (enum recipe_kind) i;
            return 0;
        }
    }
    return error_set(err, ERR_INVALID, 0, "'%.*s' is not one of the instructions known here",
                     (int) (length < 40 ? length : 40), text);
}

/* "--chown=1000:1000 " in front. */
static int recipe_read_options(struct recipe_step *step, struct pool *pool, struct error *err)
{
    while (strncmp(step->rest, "--", 2) == 0) {
        size_t length = strcspn(step->rest, BLANKS);
        const char *key = "--chown=";

        if (step->kind != RECIPE_COPY || strncmp(step->rest, key, strlen(key)) != 0 ||
            length == strlen(key))
            return error_set(err, ERR_INVALID, 0, "%s has no option '%.*s' here",
                             kinds[step->kind].name, (int) (length < 40 ? length : 40), step->rest);
        step->owner = pool_copy_bytes(pool, step->rest + strlen(key), length - strlen(key));
        step->rest += length;
        step->rest += strspn(step->rest, BLANKS);
    }
    return 0;
}

/* Texts of a JSON array: 1; 0 when it is none. */
static int read_json(struct recipe_step *step, struct pool *pool)
{
    static const struct json_limits limits = {
        .size = RECIPE_SIZE_MAX, .depth = 2, .values = 2 * RECIPE_WORDS_MAX};
    AUTO(json) json_t *array = json_read(step->rest, strlen(step->rest), &limits, NULL);
    size_t count = json_array_size(array);

    if (!json_is_array(array) || count > RECIPE_WORDS_MAX)
        return 0;
    step->words = pool_alloc(pool, (count + 1) * sizeof(*step->words));
    for (size_t i = 0; i < count; i++) {
        const char *text = json_string_value(json_array_get(array, i));

        if (!text)
            return 0;
        step->words[i] = pool_copy_text(pool, text);
    }
    step->word_count = count;
    step->is_json = true;
    return 1;
}

static int read_words(struct recipe_step *step, struct pool *pool, struct error *err)
{
    const struct kind *kind = &kinds[step->kind];

    if (kind->takes_json && step->rest[0] == '[') {
        if (!read_json(step, pool) && !kind->is_command)
            return error_set(err, ERR_INVALID, 0, "this is not a JSON array of texts");
    }
    if (!step->is_json && kind->words_max &&
        recipe_text_split(step->rest, kind->words_max, pool, &step->words, &step->word_count, err) <
            0)
        return -1;
    if (step->word_count < kind->words_min)
        return error_set(err, ERR_INVALID, 0, "%s needs %s", kind->name,
                         kind->words_min == 2 ? "something to copy and a place" : "more words");
    if (step->kind == RECIPE_RUN && step->is_json && (!step->word_count || !step->words[0][0]))
        return error_set(err, ERR_INVALID, 0, "RUN needs a program");
    return 0;
}

static bool is_here_document(const char *word)
{
    return word[0] == '<' && word[1] == '<';
}

/* What is not known here and would otherwise mean something else. */
static int check_step(const struct recipe_step *step, struct error *err)
{
    bool has_document = step->kind == RECIPE_RUN && is_here_document(step->rest);

    for (size_t i = 0; step->kind == RECIPE_COPY && !step->is_json && i < step->word_count; i++)
        has_document |= is_here_document(step->words[i]);
    if (has_document)
        return error_set(err, ERR_INVALID, 0, "here-documents are not known here");
    if (step->kind == RECIPE_FROM && step->word_count > 1 &&
        (step->word_count != 3 || strcasecmp(step->words[1], "as") != 0))
        return error_set(err, ERR_INVALID, 0, "FROM takes the name of an image");
    if (!step->rest[0])
        return error_set(err, ERR_INVALID, 0, "%s needs more words", kinds[step->kind].name);
    return 0;
}

/* One FROM, and only ARG before it. */
static int recipe_check_place(const struct recipe *recipe, const struct recipe_step *step,
                              struct error *err)
{
    bool has_base = false;

    for (size_t i = 0; i < recipe->count; i++)
        has_base |= recipe->steps[i].kind == RECIPE_FROM;
    if (has_base && step->kind == RECIPE_FROM)
        return error_set(err, ERR_INVALID, 0, "a second FROM: builds in stages are not known here");
    if (!has_base && step->kind != RECIPE_FROM && step->kind != RECIPE_ARG)
        return error_set(err, ERR_INVALID, 0, "%s before FROM", kinds[step->kind].name);
    return 0;
}

static int read_step(struct recipe_reading *reading, const char *text, struct recipe_step *step)
{
    size_t length = strcspn(text, BLANKS);

    if (find_kind(text, length, &step->kind, reading->err) < 0)
        return -1;
    step->text = pool_copy_text(reading->pool, text);
    step->rest = step->text + length;
    step->rest += strspn(step->rest, BLANKS);
    if (recipe_read_options(step, reading->pool, reading->err) < 0 ||
        read_words(step, reading->pool, reading->err) < 0 || check_step(step, reading->err) < 0)
        return -1;
    return recipe_check_place(reading->recipe, step, reading->err);
}

/* "# escape=`" in the first lines would change what all others mean. */
static int check_directive(const char *bytes, size_t length, struct error *err)
{
    static const char key[] = "escape";
    const char *at = bytes, *end = bytes + length;

    while (at < end && *at == '#') {
        const char *next = memchr(at, '\n', (size_t) (end - at));
        const char *word = at + 1;

        next = next ? next + 1 : end;
        while (word < next && strchr(BLANKS, *word))
            word++;
        if ((size_t) (next - word) > strlen(key) && strncasecmp(word, key, strlen(key)) == 0 &&
            memchr(word, '`', (size_t) (next - word)))
            return error_set(err, ERR_INVALID, 0, "another escape character is not known here");
        at = next;
    }
    return 0;
}

/* --- all of it ------------------------------------------------------------------------------ */

static int check_bytes(const char *bytes, size_t length, struct error *err)
{
    if (length > RECIPE_SIZE_MAX)
        return error_set(err, ERR_TOO_LARGE, 0, "it is larger than %zu bytes", RECIPE_SIZE_MAX);
    if (memchr(bytes, '\0', length) || !utf8_is_valid(bytes, length))
        return error_set(err, ERR_INVALID, 0, "it is not UTF-8");
    return 0;
}

int recipe_read(const char *bytes, size_t length, struct pool *pool, struct recipe *ret_recipe,
                struct error *err)
{
    AUTO(text) struct text instruction = TEXT_INIT(RECIPE_SIZE_MAX);
    struct recipe recipe = {.count = 0};
    struct recipe_reading reading = {
        .at = bytes, .end = bytes + length, .pool = pool, .recipe = &recipe, .err = err};
    size_t line = 0;

    if (!length)
        return error_set(err, ERR_INVALID, 0, "it is empty");
    if (check_bytes(bytes, length, err) < 0)
        return -1;
    if (length >= strlen(BOM) && memcmp(bytes, BOM, strlen(BOM)) == 0)
        reading.at += strlen(BOM);
    if (check_directive(reading.at, (size_t) (reading.end - reading.at), err) < 0)
        return -1;
    recipe.steps = pool_alloc(pool, RECIPE_STEPS_MAX * sizeof(*recipe.steps));
    while (next_instruction(&reading, &instruction, &line)) {
        struct recipe_step *step = &recipe.steps[recipe.count];

        if (recipe.count == RECIPE_STEPS_MAX)
            return error_set(err, ERR_TOO_LARGE, 0, "more than %zu steps", RECIPE_STEPS_MAX);
        step->line = line;
        if (read_step(&reading, text_string(&instruction), step) < 0)
            return error_wrap(err, "line %zu", line);
        recipe.count++;
    }
    if (!recipe.count ||
        (recipe.steps[recipe.count - 1].kind == RECIPE_ARG &&
         recipe_check_place(&recipe, &(struct recipe_step){.kind = RECIPE_RUN}, NULL) < 0))
        return error_set(err, ERR_INVALID, 0, "there is no FROM in it");
    *ret_recipe = recipe;
    return 0;
}
