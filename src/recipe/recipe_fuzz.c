/* Any bytes are refused with a reason, or are steps that keep the rules of recipe.h; and what they
 * say can be applied, or is refused, without harm. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "recipe/draft.h"
#include "recipe/recipe_text.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(bool holds)
{
    if (!holds)
        abort();
}

static void check_failure(const struct error *err)
{
    must(err->code == ERR_INVALID || err->code == ERR_TOO_LARGE);
    must(err->message[0] != '\0');
}

static void check_step(const struct recipe_step *step, size_t index, size_t line_before)
{
    must((unsigned int) step->kind < RECIPE_KINDS && step->line > line_before);
    must(step->rest >= step->text && step->rest[0] && !strchr(step->text, '\n'));
    must(step->word_count <= RECIPE_WORDS_MAX);
    must(!step->owner || step->kind == RECIPE_COPY);
    must(index > 0 || step->kind == RECIPE_FROM || step->kind == RECIPE_ARG);
    for (size_t i = 0; i < step->word_count; i++)
        must(step->words[i] != NULL);
}

static void apply(struct draft *draft, const struct recipe_step *step)
{
    AUTO(text) struct text out = TEXT_INIT(RECIPE_TEXT_MAX), path = TEXT_INIT(4 * RECIPE_TEXT_MAX);
    struct error err = ERROR_INIT;
    char key[DRAFT_STEP_SIZE];

    if (draft_apply(draft, step, &err) < 0)
        check_failure(&err);
    draft_key(draft, step, NULL, key);
    must(strlen(key) == DRAFT_STEP_SIZE - 1);
    error_clear(&err);
    if (draft_expand(draft, step->rest, &out, &err) < 0) {
        check_failure(&err);
        return;
    }
    draft_path(draft, text_string(&out), &path);
    must(text_string(&path)[0] == '/' && !strstr(text_string(&path), "//"));
    must(!strstr(text_string(&path), "/../"));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char *const given[] = {"A=given", NULL};
    AUTO(pool) struct pool pool = POOL_INIT;
    AUTO(draft) struct draft draft = DRAFT_INIT;
    struct error err = ERROR_INIT;
    struct recipe recipe;
    size_t bases = 0;

    draft.given = given;
    if (recipe_read((const char *) data, size, &pool, &recipe, &err) < 0) {
        check_failure(&err);
        return 0;
    }
    for (size_t i = 0; i < recipe.count; i++) {
        bases += recipe.steps[i].kind == RECIPE_FROM;
        check_step(&recipe.steps[i], i, i ? recipe.steps[i - 1].line : 0);
        apply(&draft, &recipe.steps[i]);
    }
    must(bases == 1 && recipe.count <= RECIPE_STEPS_MAX);
    return 0;
}
