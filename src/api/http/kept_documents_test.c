#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>

#include "api/http/kept_documents.h"
#include "base/auto.h"
/* After the headers it needs. */
#include <cmocka.h>

#define MANY 20

static void what_is_kept_is_found_by_its_routes_and_type(void **state)
{
    static const struct http_mount ours[] = {{.name = "ours"}}, theirs[] = {{.name = "theirs"}};
    struct kept_documents *documents = kept_documents_new();
    AUTO(text) struct text text = TEXT_INIT(64);

    (void) state;
    text_append(&text, "a document");
    assert_null(kept_document(documents, ours, "text/plain"));
    kept_document_add(documents, ours, "text/plain", &text);
    text_append(&text, " that is longer now");
    assert_string_equal(text_string(kept_document(documents, ours, "text/plain")), "a document");
    assert_null(kept_document(documents, ours, "text/html"));
    assert_null(kept_document(documents, theirs, "text/plain"));
    kept_documents_free(documents);
}

static void only_so_many_are_kept(void **state)
{
    static const struct http_mount mounts[MANY];
    struct kept_documents *documents = kept_documents_new();
    AUTO(text) struct text text = TEXT_INIT(64);
    size_t found = 0;

    (void) state;
    for (size_t i = 0; i < MANY; i++)
        kept_document_add(documents, &mounts[i], "text/plain", &text);
    for (size_t i = 0; i < MANY; i++)
        found += kept_document(documents, &mounts[i], "text/plain") != NULL;
    assert_in_range(found, 1, MANY - 1);
    kept_documents_free(documents);
}

static void without_a_place_nothing_is_kept(void **state)
{
    static const struct http_mount ours[] = {{.name = "ours"}};
    AUTO(text) struct text text = TEXT_INIT(64);

    (void) state;
    kept_document_add(NULL, ours, "text/plain", &text);
    assert_null(kept_document(NULL, ours, "text/plain"));
    kept_documents_free(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_kept_is_found_by_its_routes_and_type),
        cmocka_unit_test(only_so_many_are_kept),
        cmocka_unit_test(without_a_place_nothing_is_kept),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
