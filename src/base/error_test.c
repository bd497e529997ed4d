#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
/* After the headers it needs. */
#include <cmocka.h>

#include "base/error.h"

static void setting_fills_code_errno_and_words(void **state)
{
    struct error err = ERROR_INIT;

    (void) state;
    assert_int_equal(err.code, ERR_NONE);
    assert_int_equal(error_set(&err, ERR_NOT_FOUND, ENOENT, "open '%s'", "a"), -1);
    assert_int_equal(err.code, ERR_NOT_FOUND);
    assert_int_equal(err.system, ENOENT);
    assert_string_equal(err.message, "open 'a': No such file or directory");
}

static void a_negative_errno_counts_like_its_positive(void **state)
{
    struct error err = ERROR_INIT;

    (void) state;
    (void) error_set(&err, ERR_INTERNAL, -EIO, "read");
    assert_int_equal(err.system, EIO);
    assert_string_equal(err.message, "read: Input/output error");
    (void) error_set(&err, ERR_INTERNAL, 99999, "read");
    assert_string_equal(err.message, "read: ?");
    (void) error_set(&err, ERR_INTERNAL, 0, "read");
    assert_string_equal(err.message, "read");
}

static void wrapping_puts_context_before_and_keeps_the_code(void **state)
{
    struct error err = ERROR_INIT;

    (void) state;
    (void) error_set(&err, ERR_NO_SPACE, ENOSPC, "write");
    assert_int_equal(error_wrap(&err, "create sandbox %d", 7), -1);
    assert_int_equal(err.code, ERR_NO_SPACE);
    assert_int_equal(err.system, ENOSPC);
    assert_string_equal(err.message, "create sandbox 7: write: No space left on device");
}

static void long_messages_are_cut_and_say_so(void **state)
{
    struct error err = ERROR_INIT;
    char longer[2 * ERROR_MESSAGE_MAX];

    (void) state;
    memset(longer, 'x', sizeof(longer) - 1);
    longer[sizeof(longer) - 1] = '\0';
    (void) error_set(&err, ERR_INVALID, EINVAL, "%s", longer);
    assert_int_equal(strlen(err.message), ERROR_MESSAGE_MAX - 1);
    assert_string_equal(err.message + ERROR_MESSAGE_MAX - 4, "...");

    /* the errno in words is what no longer fits */
    (void) error_set(&err, ERR_INVALID, EINVAL, "%.*s", ERROR_MESSAGE_MAX - 6, longer);
    assert_string_equal(err.message + ERROR_MESSAGE_MAX - 4, "...");

    /* exactly full is not cut */
    (void) error_set(&err, ERR_INVALID, 0, "%.*s", ERROR_MESSAGE_MAX - 1, longer);
    assert_string_equal(err.message + ERROR_MESSAGE_MAX - 4, "xxx");

    (void) error_set(&err, ERR_INVALID, 0, "inner");
    (void) error_wrap(&err, "%.*s", ERROR_MESSAGE_MAX - 5, longer);
    assert_string_equal(err.message + ERROR_MESSAGE_MAX - 4, "...");
    (void) error_wrap(&err, "%s", longer);
    assert_string_equal(err.message + ERROR_MESSAGE_MAX - 4, "...");
}

static void a_caller_may_want_no_error(void **state)
{
    (void) state;
    assert_int_equal(error_set(NULL, ERR_INTERNAL, EIO, "read"), -1);
    assert_int_equal(error_wrap(NULL, "context"), -1);
}

static void clearing_leaves_no_error(void **state)
{
    struct error err = ERROR_INIT;

    (void) state;
    (void) error_set(&err, ERR_INTERNAL, EIO, "read");
    error_clear(&err);
    assert_int_equal(err.code, ERR_NONE);
    assert_int_equal(err.system, 0);
    assert_string_equal(err.message, "");
}

static void every_code_has_its_own_text_and_a_fitting_status(void **state)
{
    (void) state;
    for (int code = ERR_NONE; code < ERR_CODE_COUNT; code++) {
        const char *text = error_code_text((enum err_code) code);
        int status = error_http_status((enum err_code) code);

        assert_true(text && *text);
        assert_int_equal(error_code_from_text(text), code); /* so no two are the same */
        assert_true(code == ERR_NONE ? status == 200 : status >= 400 && status < 600);
    }
}

static void the_contract_of_codes_holds(void **state)
{
    (void) state;
    assert_string_equal(error_code_text(ERR_NOT_FOUND), "not_found");
    assert_int_equal(error_http_status(ERR_NOT_FOUND), 404);
    assert_string_equal(error_code_text(ERR_INVALID), "invalid_request");
    assert_int_equal(error_http_status(ERR_INVALID), 400);
    assert_int_equal(error_http_status(ERR_CONFLICT), 409);
    assert_int_equal(error_http_status(ERR_INTERNAL), 500);
}

static void codes_out_of_range_are_internal_errors(void **state)
{
    (void) state;
    assert_string_equal(error_code_text((enum err_code) 1000), "internal_error");
    assert_int_equal(error_http_status((enum err_code) - 1), 500);
    assert_int_equal(error_code_from_text("nonsense"), ERR_CODE_COUNT);
}

static void plain_errnos_have_codes(void **state)
{
    (void) state;
    assert_int_equal(error_code_from_errno(ENOENT), ERR_NOT_FOUND);
    assert_int_equal(error_code_from_errno(-ENOSPC), ERR_NO_SPACE);
    assert_int_equal(error_code_from_errno(EACCES), ERR_FORBIDDEN);
    assert_int_equal(error_code_from_errno(EXDEV), ERR_INTERNAL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(setting_fills_code_errno_and_words),
        cmocka_unit_test(a_negative_errno_counts_like_its_positive),
        cmocka_unit_test(wrapping_puts_context_before_and_keeps_the_code),
        cmocka_unit_test(long_messages_are_cut_and_say_so),
        cmocka_unit_test(a_caller_may_want_no_error),
        cmocka_unit_test(clearing_leaves_no_error),
        cmocka_unit_test(every_code_has_its_own_text_and_a_fitting_status),
        cmocka_unit_test(the_contract_of_codes_holds),
        cmocka_unit_test(codes_out_of_range_are_internal_errors),
        cmocka_unit_test(plain_errnos_have_codes),
    };

    return cmocka_run_group_tests_name("error", tests, NULL, NULL);
}
