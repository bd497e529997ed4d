/* docs/api.md: the table of a spec's fields, between its two marks, is made from spec.def, and this
 * test compares.
 *
 *     spec_document_test --write      writes it anew, from the top of the tree */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include "base/document_testing.h"
#include "model/spec.h"
/* After the headers it needs. */
#include <cmocka.h>

#define PAGE  "docs/api.md"
#define FIRST "<!-- fields: made from src/model/spec.def by spec_document_test --write -->\n"
#define LAST  "<!-- fields end -->\n"

static const char *const types[SPEC_TYPE_COUNT] = {
    [SPEC_NAME] = "name",
    [SPEC_TEXT] = "text",
    [SPEC_FOLDER] = "path",
    [SPEC_VARIABLES] = "object of texts",
    [SPEC_LABELS] = "object of texts",
    [SPEC_BINDS] = "object of texts",
    [SPEC_COMMANDS] = "list of texts",
    [SPEC_DURATION] = "duration",
    [SPEC_TIER] = "duration; `null`: the default again",
    [SPEC_COUNT] = "number",
    [SPEC_FLAG] = "boolean",
    [SPEC_LIMITS] = "object",
    [SPEC_NETWORK] = "`none` or `nat`",
    [SPEC_RULES] = "list of rules",
    [SPEC_POLICY] = "object; `null`: none",
};

static const char *const limit_types[] = {
    [LIMIT_SIZE] = "size", [LIMIT_NUMBER] = "number", [LIMIT_SHARE] = "number, like 0.5"};

static const char *where_text(unsigned int where)
{
    if (!where)
        return "shown only";
    if (!(where & SPEC_CHANGE))
        return "create, template";
    return where & SPEC_TEMPLATE ? "everywhere" : "create, change, fork";
}

static void put_row(struct text *page, const char *prefix, const char *name, const char *type,
                    const char *where, const char *option, const char *meaning)
{
    text_format(page, "| `%s%s` | %s | %s | %s%s%s | ", prefix, name, type, where,
                option ? "`--" : "", option ? option : "", option ? "`" : "");
    text_append(page, meaning);
    text_append(page, " |\n");
}

static void put_table(struct text *page)
{
    text_append(page, "\n| field | type | where | option | meaning |\n|---|---|---|---|---|\n");
    for (size_t i = 0; i < SPEC_FIELD_COUNT; i++) {
        const struct spec_field *field = &spec_fields[i];

        put_row(page, "", field->name, types[field->type], where_text(field->where), field->option,
                field->meaning);
        for (size_t j = 0; field->type == SPEC_LIMITS && j < LIMIT_FIELD_COUNT; j++)
            put_row(page, "limits.", limit_fields[j].name, limit_types[limit_fields[j].type],
                    where_text(field->where), limit_fields[j].option, limit_fields[j].meaning);
    }
    text_append(page, "\n");
}

static const struct document_part part = {
    .page = PAGE, .first = FIRST, .last = LAST, .put = put_table};

static void the_page_says_what_the_rows_say(void **state)
{
    (void) state;
    if (!document_is_true(&part))
        fail_msg(PAGE " is not what src/model/spec.def says: run spec_document_test --write");
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_page_says_what_the_rows_say),
    };

    if (argc > 1 && strcmp(argv[1], "--write") == 0)
        return document_write(&part);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
