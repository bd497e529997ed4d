#include "recipe/draft.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/path.h"
#include "recipe/recipe_text.h"

#define SHELL "/bin/sh"

void draft_done(struct draft *draft)
{
    wire_image_done(&draft->image);
    wire_image_done(&draft->arguments);
    wire_image_done(&draft->before);
}

/* --- variables ------------------------------------------------------------------------------ */

static const char *find_in(const struct wire_image *image, const char *name, size_t length)
{
    const struct wire_image_words *words = &image->by_key[WIRE_IMAGE_ENV];

    for (size_t i = 0; i < words->count; i++) {
        if (strncmp(words->words[i], name, length) == 0 && words->words[i][length] == '=')
            return words->words[i] + length + 1;
    }
    return NULL;
}

static const char *find_variable(const void *context, const char *name, size_t length)
{
    const struct draft *draft = context;
    const char *value = find_in(&draft->image, name, length);

    return value ? value : find_in(&draft->arguments, name, length);
}

const char *draft_variable(const struct draft *draft, const char *name)
{
    return find_in(&draft->image, name, strlen(name));
}

int draft_expand(const struct draft *draft, const char *text, struct text *out, struct error *err)
{
    const struct recipe_variables variables = {.find = find_variable, .context = draft};

    return recipe_text_expand(text, &variables, out, err);
}

/* NAME=VALUE, in place of what has that name. */
static int set_variable(struct wire_image *image, const char *variable, struct error *err)
{
    struct wire_image_words *words = &image->by_key[WIRE_IMAGE_ENV];
    size_t name = strcspn(variable, "=");

    for (size_t i = 0; i < words->count; i++) {
        if (strncmp(words->words[i], variable, name) != 0 || words->words[i][name] != '=')
            continue;
        if (strlen(variable) > WIRE_IMAGE_WORD_MAX)
            return error_set(err, ERR_TOO_LARGE, 0, "the value of '%.*s' is too long",
                             (int) (name < 80 ? name : 80), variable);
        free(words->words[i]);
        words->words[i] = mem_copy_text(variable);
        return 0;
    }
    return wire_image_add(image, WIRE_IMAGE_ENV, variable, err);
}

/* --- paths ---------------------------------------------------------------------------------- */

void draft_path(const struct draft *draft, const char *path, struct text *out)
{
    AUTO(pool) struct pool pool = POOL_INIT;

    text_append(out, path_resolve(&pool, wire_image_word(&draft->image, WIRE_IMAGE_WORKDIR), path));
}

/* --- steps that say something --------------------------------------------------------------- */

static int set_word(struct draft *draft, enum wire_image_key key, const char *word,
                    struct error *err)
{
    struct wire_image_words before = draft->image.by_key[key];

    draft->image.by_key[key] = (struct wire_image_words){.count = 0};
    if (wire_image_add(&draft->image, key, word, err) < 0) {
        draft->image.by_key[key] = before;
        return -1;
    }
    for (size_t i = 0; i < before.count; i++)
        free(before.words[i]);
    free(before.words);
    return 0;
}

static int apply_environment(struct draft *draft, const struct recipe_step *step, struct error *err)
{
    AUTO(wire_image) struct wire_image fresh = WIRE_IMAGE_INIT;
    const struct wire_image_words *words = &fresh.by_key[WIRE_IMAGE_ENV];
    /* The old form: ENV NAME and all that follows. */
    bool is_old = !strchr(step->words[0], '=');
    size_t count = is_old ? 1 : step->word_count;

    if (is_old && step->word_count < 2)
        return error_set(err, ERR_INVALID, 0, "ENV needs NAME=VALUE");
    for (size_t i = 0; i < count; i++) {
        AUTO(text) struct text variable = TEXT_INIT(2 * RECIPE_TEXT_MAX);
        const char *value = step->rest + strlen(step->words[0]);

        if (is_old) {
            text_format(&variable, "%s=", step->words[0]);
            if (draft_expand(draft, value + strspn(value, "\t "), &variable, err) < 0)
                return -1;
        } else if (draft_expand(draft, step->words[i], &variable, err) < 0) {
            return -1;
        }
        if (wire_image_add(&fresh, WIRE_IMAGE_ENV, text_string(&variable), err) < 0)
            return -1;
    }
    /* All values are those of before the step. */
    for (size_t i = 0; i < words->count; i++) {
        if (set_variable(&draft->image, words->words[i], err) < 0)
            return -1;
    }
    return 0;
}

/* What whoever builds says goes before what the file says. */
static const char *find_given(const struct draft *draft, const char *word, size_t name)
{
    for (const char *const *given = draft->given; given && *given; given++) {
        if (strncmp(*given, word, name) == 0 && (*given)[name] == '=')
            return *given;
    }
    return NULL;
}

void draft_begin(struct draft *draft)
{
    wire_image_done(&draft->before);
    draft->before = draft->arguments;
    draft->arguments = (struct wire_image) WIRE_IMAGE_INIT;
}

static int apply_arguments(struct draft *draft, const struct recipe_step *step, struct error *err)
{
    for (size_t i = 0; i < step->word_count; i++) {
        AUTO(text) struct text variable = TEXT_INIT(2 * RECIPE_TEXT_MAX);
        size_t name = strcspn(step->words[i], "=");
        const char *given = find_given(draft, step->words[i], name);
        const char *before = find_in(&draft->before, step->words[i], name);

        if (given)
            text_append(&variable, given);
        else if (step->words[i][name] == '=' &&
                 draft_expand(draft, step->words[i], &variable, err) < 0)
            return -1;
        else if (step->words[i][name] != '=' && before)
            text_format(&variable, "%s=%s", step->words[i], before);
        if (variable.length && set_variable(&draft->arguments, text_string(&variable), err) < 0)
            return -1;
    }
    return 0;
}

static int apply_folder(struct draft *draft, const struct recipe_step *step, struct error *err)
{
    AUTO(text) struct text word = TEXT_INIT(RECIPE_TEXT_MAX);
    AUTO(text) struct text path = TEXT_INIT(2 * WIRE_IMAGE_WORD_MAX);

    if (draft_expand(draft, step->rest, &word, err) < 0)
        return -1;
    draft_path(draft, text_string(&word), &path);
    return set_word(draft, WIRE_IMAGE_WORKDIR, text_string(&path), err);
}

static int apply_user(struct draft *draft, const struct recipe_step *step, struct error *err)
{
    AUTO(text) struct text word = TEXT_INIT(RECIPE_TEXT_MAX);

    if (draft_expand(draft, step->rest, &word, err) < 0)
        return -1;
    return set_word(draft, WIRE_IMAGE_USER, text_string(&word), err);
}

static int apply_ports(struct draft *draft, const struct recipe_step *step, struct error *err)
{
    for (size_t i = 0; i < step->word_count; i++) {
        AUTO(text) struct text port = TEXT_INIT(RECIPE_TEXT_MAX);

        if (draft_expand(draft, step->words[i], &port, err) < 0)
            return -1;
        if (!strchr(text_string(&port), '/'))
            text_append(&port, "/tcp");
        if (wire_image_add(&draft->image, WIRE_IMAGE_PORT, text_string(&port), err) < 0)
            return -1;
    }
    return 0;
}

static int set_command(struct draft *draft, enum wire_image_key key, const struct recipe_step *step,
                       struct error *err)
{
    const char *const line[] = {SHELL, "-c", step->rest};
    const char *const *words = step->is_json ? step->words : line;
    size_t count = step->is_json ? step->word_count : ARRAY_COUNT(line);

    wire_image_clear(&draft->image, key);
    for (size_t i = 0; i < count; i++) {
        if (wire_image_add(&draft->image, key, words[i], err) < 0)
            return -1;
    }
    return 0;
}

static int apply_command(struct draft *draft, const struct recipe_step *step, struct error *err)
{
    draft->has_command = true;
    return set_command(draft, WIRE_IMAGE_CMD, step, err);
}

/* Arguments that were meant for another program go with it. */
static int apply_entrypoint(struct draft *draft, const struct recipe_step *step, struct error *err)
{
    if (!draft->has_command)
        wire_image_clear(&draft->image, WIRE_IMAGE_CMD);
    return set_command(draft, WIRE_IMAGE_ENTRYPOINT, step, err);
}

static int (*const appliers[RECIPE_KINDS])(struct draft *draft, const struct recipe_step *step,
                                           struct error *err) = {
    [RECIPE_ARG] = apply_arguments,         [RECIPE_ENV] = apply_environment,
    [RECIPE_WORKDIR] = apply_folder,        [RECIPE_USER] = apply_user,
    [RECIPE_EXPOSE] = apply_ports,          [RECIPE_CMD] = apply_command,
    [RECIPE_ENTRYPOINT] = apply_entrypoint,
};

int draft_apply(struct draft *draft, const struct recipe_step *step, struct error *err)
{
    if (appliers[step->kind] && appliers[step->kind](draft, step, err) < 0)
        return error_wrap(err, "line %zu", step->line);
    return 0;
}

/* --- what layers take ------------------------------------------------------------------------ */

int draft_count(struct draft *draft, uint64_t bytes, uint64_t entries, struct error *err)
{
    if (bytes > DRAFT_BYTES_MAX - draft->bytes)
        return error_set(err, ERR_TOO_LARGE, 0, "the layers of this build are too large");
    if (entries > DRAFT_ENTRIES_MAX - draft->entries)
        return error_set(err, ERR_TOO_LARGE, 0, "the layers of this build have too many files");
    draft->bytes += bytes;
    draft->entries += entries;
    return 0;
}

/* --- the key of a step ---------------------------------------------------------------------- */

static void add_text(struct sha256 *sha, const char *text)
{
    sha256_add(sha, text, strlen(text) + 1);
}

static void add_words(struct sha256 *sha, const struct wire_image *image, enum wire_image_key key)
{
    for (size_t i = 0; i < image->by_key[key].count; i++)
        add_text(sha, image->by_key[key].words[i]);
    add_text(sha, "");
}

/* What the outcome depends on: what lies below, who runs it where with which variables, and what
 * it says. */
void draft_key(const struct draft *draft, const struct recipe_step *step, const uint8_t *digest,
               char ret_name[static DRAFT_STEP_SIZE])
{
    static const enum wire_image_key counted[] = {WIRE_IMAGE_BASE, WIRE_IMAGE_LAYER, WIRE_IMAGE_ENV,
                                                  WIRE_IMAGE_USER, WIRE_IMAGE_WORKDIR};
    uint8_t sum[SHA256_SIZE];
    struct sha256 sha;

    sha256_init(&sha);
    add_text(&sha, "burrow step 1");
    for (size_t i = 0; i < ARRAY_COUNT(counted); i++)
        add_words(&sha, &draft->image, counted[i]);
    add_words(&sha, &draft->arguments, WIRE_IMAGE_ENV);
    add_text(&sha, draft->identity ? draft->identity : "");
    add_text(&sha, step ? recipe_kind_text(step->kind) : "");
    add_text(&sha, step ? step->rest : "");
    add_text(&sha, step && step->owner ? step->owner : "");
    if (digest)
        sha256_add(&sha, digest, SHA256_SIZE);
    sha256_finish(&sha, sum);
    memcpy(ret_name, DRAFT_STEP_PREFIX, sizeof(DRAFT_STEP_PREFIX));
    for (size_t i = 0; i < DRAFT_STEP_DIGITS / 2; i++)
        (void) snprintf(ret_name + strlen(DRAFT_STEP_PREFIX) + 2 * i, 3, "%02x", sum[i]);
}
