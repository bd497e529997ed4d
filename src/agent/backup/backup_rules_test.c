#include <string.h>

#include "agent/agent_test.h"
#include "agent/backup/backup_rules.h"

static void folders_are_those_of_users(void **state)
{
    static const char *const good[] = {"/workspace", "/workspace/a", "/home/x",
                                       "/tmp",       "/var/tmp/x",   "/app/"};
    static const char *const bad[] = {"",          "workspace",         "/",        "/etc",
                                      "/workspac", "/workspace/../etc", "/varx/tmp"};

    (void) state;
    for (size_t i = 0; i < ARRAY_COUNT(good); i++)
        assert_null(backup_rules_folder(good[i]));
    for (size_t i = 0; i < ARRAY_COUNT(bad); i++)
        assert_non_null(backup_rules_folder(bad[i]));
}

static void archives_are_in_one_place(void **state)
{
    static const char *const good[] = {"/var/backups/x.sqsh", "/var/backups/a/b"};
    static const char *const bad[] = {"",
                                      "/var/backups",
                                      "/var/backups/",
                                      "/var/backups/a/",
                                      "/var/backups/.",
                                      "/var/backups/../x",
                                      "/tmp/x",
                                      "var/backups/x"};

    (void) state;
    for (size_t i = 0; i < ARRAY_COUNT(good); i++)
        assert_null(backup_rules_archive(good[i]));
    for (size_t i = 0; i < ARRAY_COUNT(bad); i++)
        assert_non_null(backup_rules_archive(bad[i]));
}

static void long_paths_are_refused(void **state)
{
    char path[BACKUP_PATH_MAX + 2];

    (void) state;
    memset(path, 'x', sizeof(path));
    memcpy(path, "/tmp/", 5);
    path[sizeof(path) - 1] = '\0';
    assert_non_null(backup_rules_folder(path));
    path[sizeof(path) - 2] = '\0';
    assert_null(backup_rules_folder(path));
}

static void a_pattern_means_the_top_and_any_depth(void **state)
{
    static const struct {
        const char *pattern, *lines;
    } rows[] = {
        {"node_modules", "node_modules\n... node_modules\n"},
        {"**/*.log", "*.log\n... *.log\n"},
        {"a/**/b", "a/b\n"},
        {"/dist/", "dist\n... dist\n"},
        {"./x", "x\n... x\n"},
        {"dist/**", "dist/*\n"},
        {"#x", "\\#x\n... #x\n"},
        {"x ", "x\\ \n... x\\ \n"},
    };

    (void) state;
    for (size_t i = 0; i < ARRAY_COUNT(rows); i++) {
        AUTO(text) struct text lines = TEXT_INIT(1000);

        assert_null(backup_rules_exclude(rows[i].pattern));
        backup_rules_add_pattern(&lines, rows[i].pattern);
        assert_string_equal(text_string(&lines), rows[i].lines);
    }
}

static void patterns_that_say_nothing_are_refused(void **state)
{
    static const char *const bad[] = {"", "/", "**/", "a\nb", "\t", "./", "//", "**/*", "a\x7f"};

    (void) state;
    for (size_t i = 0; i < ARRAY_COUNT(bad); i++) {
        if (!backup_rules_exclude(bad[i]))
            fail_msg("'%s' was taken", bad[i]);
    }
}

static void a_path_means_itself(void **state)
{
    static const struct {
        const char *path, *line;
    } rows[] = {
        {"a/b/", "a/b\n"},      {"a[1]*?", "a\\[1\\]\\*\\?\n"}, {"back\\slash", "back\\\\slash\n"},
        {"... x", ".\\.. x\n"}, {" x ", "\\ x\\ \n"},           {"#x", "\\#x\n"},
    };
    AUTO(text) struct text none = TEXT_INIT(100);

    (void) state;
    for (size_t i = 0; i < ARRAY_COUNT(rows); i++) {
        AUTO(text) struct text line = TEXT_INIT(100);

        assert_true(backup_rules_add_path(&line, rows[i].path, strlen(rows[i].path)));
        assert_string_equal(text_string(&line), rows[i].line);
    }
    assert_false(backup_rules_add_path(&none, "new\nline", 8));
    assert_false(backup_rules_add_path(&none, "/", 1));
    assert_int_equal(none.length, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(folders_are_those_of_users),
        cmocka_unit_test(archives_are_in_one_place),
        cmocka_unit_test(long_paths_are_refused),
        cmocka_unit_test(a_pattern_means_the_top_and_any_depth),
        cmocka_unit_test(patterns_that_say_nothing_are_refused),
        cmocka_unit_test(a_path_means_itself),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
