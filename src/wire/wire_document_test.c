/* docs/wire-protocol.md: everything below its marker is made from the lists, and this test
 * compares.
 *
 *     wire_document_test --write      writes it anew, from the top of the tree */
#include <fcntl.h>
#include <stdio.h>

#include "base/text.h"
#include "sys/file/sys_file.h"
#include "wire/wire_requests.h"
#include "wire/wire_testing.h"

#define PAGE      "docs/wire-protocol.md"
#define PAGE_MAX  (1 << 18)
#define REFERENCE "## Reference\n"

static const char *const permission_texts[] = {
    [WIRE_FORBID] = "-", [WIRE_REFUSE] = "refused", [WIRE_ALLOW] = "yes"};

static const char *fds_text(const struct wire_row *row, char text[static 64])
{
    (void) snprintf(text, 64, "%u", row->fds);
    for (size_t i = 0; i < row->body->count; i++) {
        const struct wire_field *field = &row->body->fields[i];

        if (field->counts_fds)
            (void) snprintf(text, 64, "%s", field->name);
    }
    return text;
}

static void put_message(struct text *page, unsigned int number, const char *meaning)
{
    const struct wire_row *row = wire_message_row(number);
    char fds[64];

    text_format(page, "| %u | %s | %s | %s | %s |", number, row->name, row->body->name,
                fds_text(row, fds), row->answer ? wire_message_name(row->answer) : "");
    for (enum wire_state at = WIRE_FRESH; at < WIRE_STATE_COUNT; at++)
        text_format(page, " %s |", permission_texts[row->permissions[at]]);
    text_format(page, " %s |\n", meaning);
}

static void put_messages(struct text *page, enum wire_type type, const char *title)
{
    text_format(page,
                "\n### %s\n\n"
                "| number | message | body | fds | answer | fresh | greeted | serving | draining | "
                "meaning |\n"
                "|---|---|---|---|---|---|---|---|---|---|\n",
                title);
#define X(number, NAME, name, body, type_, fds, answer, then, a, b, c, d, meaning)                 \
    if (type == WIRE_##type_)                                                                      \
        put_message(page, number, meaning);
    WIRE_MESSAGES(X)
#undef X
}

static void put_field(struct text *page, const struct wire_field *field, const char *kind,
                      const char *meaning)
{
    static const char *const names[WIRE_KIND_COUNT] = {
        [WIRE_KIND_ID] = "id",     [WIRE_KIND_ID_OR_NONE] = "id or none",
        [WIRE_KIND_NAME] = "name", [WIRE_KIND_NAME_OR_NONE] = "name or none",
        [WIRE_KIND_TEXT] = "text", [WIRE_KIND_PATH] = "path",
    };

    text_format(page, "| %s | ", field->name);
    if (field->kind == WIRE_KIND_RECORD)
        text_format(page, "struct %s | ", field->record->name);
    else if (field->kind == WIRE_KIND_LIST)
        text_format(page, "list of %s | at most %llu ", field->record->name,
                    (unsigned long long) field->maximum);
    else if (field->kind == WIRE_KIND_ID || field->kind == WIRE_KIND_ID_OR_NONE)
        text_format(page, "%s | ", names[field->kind]);
    else if (field->kind != WIRE_KIND_NUMBER)
        text_format(page, "%s | at most %llu characters ", names[field->kind],
                    (unsigned long long) field->maximum);
    else if (field->words)
        text_format(page, "%s, u%u | see below ", kind, field->width * 8U);
    else
        text_format(page, "u%u | %llu to %llu ", field->width * 8U,
                    (unsigned long long) field->minimum, (unsigned long long) field->maximum);
    text_format(page, "| %s |\n", meaning);
}

struct field_text {
    const char *kind, *meaning;
};

static void put_struct(struct text *page, const struct wire_record *record,
                       const struct field_text *texts)
{
    if (record->count == 0)
        return;
    text_format(page, "\n#### %s\n\n| field | kind | values | meaning |\n|---|---|---|---|\n",
                record->name);
    for (size_t i = 0; i < record->count; i++)
        put_field(page, &record->fields[i], texts[i].kind, texts[i].meaning);
}

#define FIELD_KIND_ENUM(parameter)         "enum " #parameter
#define FIELD_KIND_FLAGS(parameter)        "flags " #parameter
#define FIELD_KIND_U8(parameter)           ""
#define FIELD_KIND_U16(parameter)          ""
#define FIELD_KIND_U32(parameter)          ""
#define FIELD_KIND_U64(parameter)          ""
#define FIELD_KIND_BOOL(parameter)         ""
#define FIELD_KIND_COUNT(parameter)        ""
#define FIELD_KIND_FD_COUNT(parameter)     ""
#define FIELD_KIND_ID(parameter)           ""
#define FIELD_KIND_ID_OR_NONE(parameter)   ""
#define FIELD_KIND_NAME(parameter)         ""
#define FIELD_KIND_NAME_OR_NONE(parameter) ""
#define FIELD_KIND_TEXT(parameter)         ""
#define FIELD_KIND_PATH(parameter)         ""
#define FIELD_KIND_RECORD(parameter)       ""
#define FIELD_KIND_LIST(parameter)         ""

#define FIELD_TEXT(of, kind, name, parameter, meaning) {FIELD_KIND_##kind(parameter), meaning},
#define PUT_STRUCT(page, name, fields)                                                             \
    put_struct(page, &wire_##name##_record, (const struct field_text[]){fields(FIELD_TEXT, ){}})

static void put_structs(struct text *page)
{
    text_append(page, "\n### Bodies\n\n`nothing` has no fields.\n");
    PUT_STRUCT(page, hello, WIRE_HELLO_FIELDS);
    PUT_STRUCT(page, target, WIRE_TARGET_FIELDS);
    PUT_STRUCT(page, adopt, WIRE_ADOPT_FIELDS);
    PUT_STRUCT(page, list, WIRE_LIST_FIELDS);
    PUT_STRUCT(page, sockets, WIRE_SOCKETS_FIELDS);
    PUT_STRUCT(page, kill, WIRE_KILL_FIELDS);
    PUT_STRUCT(page, set_limits, WIRE_SET_LIMITS_FIELDS);
    PUT_STRUCT(page, open_mount, WIRE_OPEN_MOUNT_FIELDS);
    PUT_STRUCT(page, mount, WIRE_MOUNT_FIELDS);
    PUT_STRUCT(page, keeper_job, WIRE_KEEPER_JOB_FIELDS);
    PUT_STRUCT(page, snapshot, WIRE_SNAPSHOT_FIELDS);
    PUT_STRUCT(page, snapshot_name, WIRE_SNAPSHOT_NAME_FIELDS);
    PUT_STRUCT(page, roll_back, WIRE_ROLL_BACK_FIELDS);
    PUT_STRUCT(page, disk_usage, WIRE_DISK_USAGE_FIELDS);
    PUT_STRUCT(page, sync, WIRE_SYNC_FIELDS);
    PUT_STRUCT(page, inspect, WIRE_INSPECT_FIELDS);
    PUT_STRUCT(page, welcome, WIRE_WELCOME_FIELDS);
    PUT_STRUCT(page, refused, WIRE_REFUSED_FIELDS);
    PUT_STRUCT(page, done, WIRE_DONE_FIELDS);
    PUT_STRUCT(page, listed, WIRE_LISTED_FIELDS);
    PUT_STRUCT(page, sandbox, WIRE_SANDBOX_FIELDS);
    PUT_STRUCT(page, sockets_made, WIRE_SOCKETS_MADE_FIELDS);
    PUT_STRUCT(page, stats_read, WIRE_STATS_READ_FIELDS);
    PUT_STRUCT(page, mount_opened, WIRE_MOUNT_OPENED_FIELDS);
    PUT_STRUCT(page, job_ended, WIRE_JOB_ENDED_FIELDS);
    PUT_STRUCT(page, snapshot_made, WIRE_SNAPSHOT_MADE_FIELDS);
    PUT_STRUCT(page, snapshots_listed, WIRE_SNAPSHOTS_LISTED_FIELDS);
    PUT_STRUCT(page, bytes_counted, WIRE_BYTES_COUNTED_FIELDS);
    PUT_STRUCT(page, exited, WIRE_EXITED_FIELDS);
    PUT_STRUCT(page, stopping, WIRE_STOPPING_FIELDS);
    text_append(page, "\n### Parts of bodies\n");
    PUT_STRUCT(page, limits, WIRE_LIMITS_FIELDS);
    PUT_STRUCT(page, entry, WIRE_ENTRY_FIELDS);
    PUT_STRUCT(page, disk, WIRE_DISK_FIELDS);
    PUT_STRUCT(page, ending, WIRE_ENDING_FIELDS);
    text_append(page, "\n### The plan\n");
    PUT_STRUCT(page, plan, WIRE_PLAN_FIELDS);
    PUT_STRUCT(page, rule, WIRE_RULE_FIELDS);
    PUT_STRUCT(page, prefix, WIRE_PREFIX_FIELDS);
    PUT_STRUCT(page, ports, WIRE_PORTS_FIELDS);
    PUT_STRUCT(page, bind, WIRE_BIND_FIELDS);
}

#define PUT_WORD(constant, word, meaning)                                                          \
    text_format(page, "| %d | %s | %s |\n", (int) (constant), word, meaning);
#define PUT_WORDS(page, name, list)                                                                \
    do {                                                                                           \
        text_append(page,                                                                          \
                    "\n#### " name "\n\n| value or bit | word | meaning |\n|---|---|---|\n");      \
        list(PUT_WORD)                                                                             \
    } while (0)

static void put_words(struct text *page)
{
    text_append(page, "\n### Words\n");
    PUT_WORDS(page, "limit", LIMIT_WORDS);
    PUT_WORDS(page, "feature", WIRE_FEATURES);
    PUT_WORDS(page, "sandbox_state", RUN_STATES);
    PUT_WORDS(page, "exit_kind", ENDING_KINDS);
    PUT_WORDS(page, "kill_scope", WIRE_KILL_SCOPES);
    PUT_WORDS(page, "inspection", WIRE_INSPECTIONS);
    PUT_WORDS(page, "socket_family", WIRE_SOCKET_FAMILIES);
    PUT_WORDS(page, "disk_set", DISK_SETS);
    PUT_WORDS(page, "keeper_job_kind", DISK_JOBS);
    PUT_WORDS(page, "stat", STATS_PARTS);
    PUT_WORDS(page, "plan_flag", WIRE_PLAN_FLAGS);
    PUT_WORDS(page, "network_mode", NETWORK_MODES);
    PUT_WORDS(page, "protocol", NETWORK_PROTOCOLS);
}

static void put_limits(struct text *page)
{
    text_append(page, "\n### Limits\n\n| what | most |\n|---|---|\n");
    text_format(page, "| bytes of a message | %d |\n", WIRE_PACKET_MAX);
    text_format(page, "| bytes of a plan | %d |\n", WIRE_PLAN_MAX);
    text_format(page, "| descriptors with a message | %d |\n", WIRE_FDS_MAX);
    text_format(page, "| requests open at once | %d |\n", WIRE_REQUESTS_MAX);
    text_format(page, "| messages that wait for a peer to read | %d |\n", WIRE_WAITING_MAX);
    text_format(page, "| versions spoken | %d to %d |\n", WIRE_VERSION_MIN, WIRE_VERSION_MAX);
}

static void put_reference(struct text *page)
{
    put_messages(page, WIRE_REQUEST, "Requests: daemon to launcher");
    put_messages(page, WIRE_REPLY, "Replies: launcher to daemon");
    put_messages(page, WIRE_EVENT, "Events: launcher to daemon");
    put_structs(page);
    put_words(page);
    put_limits(page);
    assert_false(page->overflowed);
}

/* The page, and where its generated part begins. */
static char *read_page(size_t *ret_start)
{
    char *page = NULL, *marker;
    size_t length;

    if (sys_file_read_all(AT_FDCWD, PAGE, PAGE_MAX, &page, &length) < 0)
        fail_msg("cannot read %s: run this at the top of the tree", PAGE);
    marker = strstr(page, REFERENCE);
    assert_non_null(marker);
    *ret_start = (size_t) (marker - page) + strlen(REFERENCE);
    return page;
}

static void the_page_has_what_the_lists_say(void **state)
{
    AUTO(text) struct text expected = TEXT_INIT(PAGE_MAX);
    AUTO(free) char *page = NULL;
    size_t start;

    (void) state;
    page = read_page(&start);
    put_reference(&expected);
    if (strcmp(page + start, text_string(&expected)) != 0)
        fail_msg("%s is not what the lists say: write it with wire_document_test --write", PAGE);
}

/* Every struct of a message is in the page. */
static void no_struct_is_left_out(void **state)
{
    AUTO(text) struct text page = TEXT_INIT(PAGE_MAX);

    (void) state;
    put_reference(&page);
    for (unsigned int number = 0; number < WIRE_NUMBER_END; number++) {
        const struct wire_row *row = wire_message_row(number);
        char title[80];

        if (!row || row->body->count == 0)
            continue;
        (void) snprintf(title, sizeof(title), "\n#### %s\n", row->body->name);
        if (!strstr(text_string(&page), title))
            fail_msg("struct %s is missing", row->body->name);
    }
}

static int write_page(void)
{
    AUTO(text) struct text text = TEXT_INIT(PAGE_MAX);
    AUTO(free) char *page = NULL;
    size_t start;

    page = read_page(&start);
    text_append_bytes(&text, page, start);
    put_reference(&text);
    return sys_file_replace(AT_FDCWD, PAGE, text.data, text.length, 0644) < 0;
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_page_has_what_the_lists_say),
        cmocka_unit_test(no_struct_is_left_out),
    };

    if (argc == 2 && strcmp(argv[1], "--write") == 0)
        return write_page();
    return cmocka_run_group_tests_name("wire_document", tests, NULL, NULL);
}
