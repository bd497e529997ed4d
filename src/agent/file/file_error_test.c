#include <errno.h>
#include <string.h>

#include "agent/agent_test.h"
#include "agent/file/file_error.h"

static void every_errno_has_its_code(void **state)
{
    static const struct {
        int error;
        enum api_code code;
    } cases[] = {
        {ENOENT, API_FILE_NOT_FOUND},
        {-ENOENT, API_FILE_NOT_FOUND},
        {EACCES, API_PERMISSION_DENIED},
        {EISDIR, API_IS_DIRECTORY},
        {ENOTDIR, API_NOT_DIRECTORY},
        {ENOSPC, API_NO_SPACE},
        {EDQUOT, API_NO_SPACE},
        {ENAMETOOLONG, API_NAME_TOO_LONG},
        {ELOOP, API_TOO_MANY_LINKS},
        {EMFILE, API_TOO_MANY_FILES},
        {EROFS, API_READ_ONLY},
        {EEXIST, API_FILE_EXISTS},
        {EBUSY, API_RESOURCE_BUSY},
        {EIO, API_FILESYSTEM_ERROR},
        {FILE_ERROR_NOT_REGULAR, API_FILESYSTEM_ERROR},
    };

    (void) state;
    for (size_t i = 0; i < ARRAY_COUNT(cases); i++) {
        AUTO(api_error) struct api_error api = API_ERROR_INIT;

        file_error_fill(&api, "file.read", "/a", cases[i].error);
        assert_int_equal(api.code, cases[i].code);
        assert_int_equal(file_error_code(cases[i].error), cases[i].code);
    }
}

static void the_message_and_context_are_what_clients_read(void **state)
{
    AUTO(api_error) struct api_error api = API_ERROR_INIT;

    (void) state;
    file_error_fill(&api, "file.read", "/nope", -ENOENT);
    assert_string_equal(api.message, "File not found: /nope");
    assert_string_equal(text_string(&api.context),
                        "{\"path\":\"/nope\",\"operation\":\"file.read\"}");
}

static void long_paths_are_cut_in_the_message_only(void **state)
{
    AUTO(api_error) struct api_error api = API_ERROR_INIT;
    char path[4097];

    (void) state;
    memset(path, 'a', sizeof(path) - 1);
    path[sizeof(path) - 1] = '\0';
    memcpy(path + sizeof(path) - 4, "end", 3);
    file_error_fill(&api, "file.read", path, ENAMETOOLONG);
    assert_true(strlen(api.message) < sizeof(api.message) - 1);
    assert_string_equal(api.message + strlen(api.message) - 3, "end");
    assert_non_null(strstr(text_string(&api.context), path));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_errno_has_its_code),
        cmocka_unit_test(the_message_and_context_are_what_clients_read),
        cmocka_unit_test(long_paths_are_cut_in_the_message_only),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
