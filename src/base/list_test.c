#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
/* After the headers it needs. */
#include <cmocka.h>

#include "base/auto.h"
#include "base/list.h"

struct letter {
    char name;
    struct list link;
};

/* The letters in the order of the list; also checks that it reads the same backwards. */
static const char *spell(const struct list *list, char *word)
{
    size_t length = 0;

    LIST_EACH (list, at)
        word[length++] = CONTAINER_OF(at, struct letter, link)->name;
    word[length] = '\0';
    for (const struct list *at = list->previous; at != list; at = at->previous)
        assert_int_equal(CONTAINER_OF(at, struct letter, link)->name, word[--length]);
    assert_int_equal(length, 0);
    return word;
}

static void a_new_list_is_empty(void **state)
{
    struct list list;
    char word[8];

    (void) state;
    list_init(&list);
    assert_true(list_is_empty(&list));
    assert_null(list_first(&list));
    assert_string_equal(spell(&list, word), "");
}

static void appending_keeps_the_order(void **state)
{
    struct letter letters[] = {{.name = 'a'}, {.name = 'b'}, {.name = 'c'}};
    struct list list;
    char word[8];

    (void) state;
    list_init(&list);
    for (size_t i = 0; i < ARRAY_COUNT(letters); i++)
        list_append(&list, &letters[i].link);
    assert_false(list_is_empty(&list));
    assert_ptr_equal(list_first(&list), &letters[0].link);
    assert_string_equal(spell(&list, word), "abc");
}

static void removing_works_anywhere_and_twice(void **state)
{
    struct letter letters[] = {{.name = 'a'}, {.name = 'b'}, {.name = 'c'}};
    struct list list;
    char word[8];

    (void) state;
    list_init(&list);
    for (size_t i = 0; i < ARRAY_COUNT(letters); i++)
        list_append(&list, &letters[i].link);
    list_remove(&letters[1].link);
    assert_string_equal(spell(&list, word), "ac");
    list_remove(&letters[1].link); /* in no list: nothing happens */
    assert_string_equal(spell(&list, word), "ac");
    list_remove(&letters[0].link);
    list_remove(&letters[2].link);
    assert_true(list_is_empty(&list));
    assert_true(list_is_empty(&letters[2].link));
}

static void the_walk_survives_removal_of_its_own_link(void **state)
{
    struct letter letters[] = {{.name = 'a'}, {.name = 'b'}, {.name = 'c'}, {.name = 'd'}};
    struct list list, other;
    char word[8];

    (void) state;
    list_init(&list);
    list_init(&other);
    for (size_t i = 0; i < ARRAY_COUNT(letters); i++)
        list_append(&list, &letters[i].link);
    LIST_EACH (&list, at) {
        if (CONTAINER_OF(at, struct letter, link)->name % 2 == 0) {
            list_remove(at);
            list_append(&other, at);
        }
    }
    assert_string_equal(spell(&list, word), "ac");
    assert_string_equal(spell(&other, word), "bd");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_new_list_is_empty),
        cmocka_unit_test(appending_keeps_the_order),
        cmocka_unit_test(removing_works_anywhere_and_twice),
        cmocka_unit_test(the_walk_survives_removal_of_its_own_link),
    };

    return cmocka_run_group_tests_name("list", tests, NULL, NULL);
}
