#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
/* After the headers it needs. */
#include <cmocka.h>

#include "base/auto.h"
#include "harness/turn_record.h"

#define SESSION "ses_1"

struct notes {
    struct turn_record record;
    struct text told; /* one line a call */
};

static void note_began(void *context, const char *agent_session)
{
    (void) context;
    fail_msg("began %s", agent_session);
}

static void note_delta(void *context, const char *part_id, const char *field, const char *text,
                       size_t length)
{
    text_format(&((struct notes *) context)->told, "delta %s %s %.*s\n", part_id, field,
                (int) length, text);
}

static void note_part(void *context, const char *part_id, const char *json)
{
    (void) json;
    text_format(&((struct notes *) context)->told, "part %s\n", part_id);
}

static void note_permission(void *context, const char *request, const char *json)
{
    text_format(&((struct notes *) context)->told, "permission %s %s\n", request, json);
}

static void note_question(void *context, const char *request, const char *json)
{
    (void) json;
    text_format(&((struct notes *) context)->told, "question %s\n", request);
}

static void note_answered(void *context, const char *request, const char *reply)
{
    text_format(&((struct notes *) context)->told, "answered %s %s\n", request, reply);
}

static void note_ended(void *context, const struct error *failure,
                       const struct harness_result *result)
{
    text_format(&((struct notes *) context)->told, "ended %s '%s' %d+%d %d%s\n",
                failure ? failure->message : "well", result->answer, (int) result->usage.input,
                (int) result->usage.output, (int) result->usage.cost_micros,
                result->was_cancelled ? " cancelled" : "");
}

static const struct harness_listener listener = {
    .began = note_began,
    .delta = note_delta,
    .part = note_part,
    .permission = note_permission,
    .question = note_question,
    .answered = note_answered,
    .ended = note_ended,
};

static int notes_open(void **state)
{
    static struct notes notes;
    struct id turn = {.text = "tailtailtailtailtailtailaa"};

    notes = (struct notes){.told = TEXT_INIT(1 << 20)};
    turn_record_init(&notes.record, &turn, &listener, &notes);
    turn_record_set_session(&notes.record, SESSION);
    *state = &notes;
    return 0;
}

static int notes_close(void **state)
{
    struct notes *notes = *state;

    turn_record_done(&notes->record);
    text_done(&notes->told);
    return 0;
}

static bool notes_feed(struct notes *notes, const char *event)
{
    AUTO(opencode_event) struct opencode_event read = {.kind = OPENCODE_OTHER};

    assert_int_equal(opencode_event_read(event, strlen(event), &read, NULL), 0);
    return turn_record_event(&notes->record, &read);
}

#define EVENT(type, properties) "{\"type\":\"" type "\",\"properties\":" properties "}"
#define USER                                                                                       \
    EVENT("message.updated", "{\"info\":{\"id\":\"msg_1tailtailtailta\",\"role\":\"user\","        \
                             "\"sessionID\":\"" SESSION "\"}}")
#define MESSAGE(id, more)                                                                          \
    EVENT("message.updated", "{\"info\":{\"id\":\"" id "\",\"role\":\"assistant\",\"sessionID\":"  \
                             "\"" SESSION "\"" more "}}")
#define TEXT_PART(id, message, text, more)                                                         \
    "{\"part\":{\"id\":\"" id "\",\"type\":\"text\",\"text\":\"" text                              \
    "\",\"messageID\":\"" message "\",\"sessionID\":\"" SESSION "\"" more "}"
#define IDLE EVENT("session.idle", "{\"sessionID\":\"" SESSION "\"}")

static void notes_begin(struct notes *notes)
{
    (void) snprintf(notes->record.user, sizeof(notes->record.user), "msg_1tailtailtailta");
}

static void an_idle_from_before_our_message_does_not_count(void **state)
{
    struct notes *notes = *state;

    notes_begin(notes);
    assert_false(notes_feed(notes, IDLE));
    assert_false(notes_feed(notes, USER));
    assert_true(notes_feed(notes, IDLE));
    assert_false(notes_feed(notes, EVENT("session.idle", "{\"sessionID\":\"ses_2\"}")));
}

static void texts_of_users_and_of_other_turns_are_not_told(void **state)
{
    struct notes *notes = *state;

    notes_begin(notes);
    (void) notes_feed(notes, USER);
    (void) notes_feed(notes, MESSAGE("msg_0old", ""));
    (void) notes_feed(notes, EVENT("message.part.updated",
                                   TEXT_PART("a", "msg_1tailtailtailta", "mine", "") "}"));
    (void) notes_feed(notes,
                      EVENT("message.part.updated", TEXT_PART("b", "msg_0old", "old", "") "}"));
    assert_string_equal(text_string(&notes->told), "");
}

static void deltas_of_both_generations_are_told_alike(void **state)
{
    struct notes *notes = *state;

    notes_begin(notes);
    (void) notes_feed(notes, MESSAGE("msg_2", ""));
    (void) notes_feed(notes, EVENT("message.part.updated", TEXT_PART("a", "msg_2", "", "") "}"));
    (void) notes_feed(notes, EVENT("message.part.delta",
                                   "{\"sessionID\":\"" SESSION "\",\"messageID\":\"msg_2\","
                                   "\"partID\":\"a\",\"field\":\"text\",\"delta\":\"one\"}"));
    (void) notes_feed(notes, EVENT("message.part.updated",
                                   TEXT_PART("b", "msg_2", "two", "") ",\"delta\":\"two\"}"));
    (void) notes_feed(notes,
                      EVENT("message.part.updated", TEXT_PART("b", "msg_2", "twothree", "") "}"));
    (void) notes_feed(notes, EVENT("message.part.updated", TEXT_PART("b", "msg_2", "twothree",
                                                                     ",\"time\":{\"end\":1}") "}"));
    assert_string_equal(text_string(&notes->told),
                        "delta a text one\ndelta b text two\ndelta b text three\npart b\n");
}

static void a_history_tells_only_what_is_news(void **state)
{
    static const char history[] =
        "[{\"info\":{\"id\":\"msg_0\",\"role\":\"assistant\"},\"parts\":[{\"id\":\"x\"}]},"
        "{\"info\":{\"id\":\"msg_1tailtailtailta\",\"role\":\"user\"},\"parts\":[]},"
        "{\"info\":{\"id\":\"msg_2\",\"role\":\"assistant\",\"time\":{\"completed\":1},"
        "\"finish\":\"stop\",\"cost\":0.5,\"tokens\":{\"input\":3,\"output\":4}},\"parts\":["
        "{\"type\":\"text\",\"text\":\"hello \",\"id\":\"a\",\"time\":{\"end\":1}},"
        "{\"type\":\"tool\",\"id\":\"b\"},{\"type\":\"text\",\"text\":\"world\",\"id\":\"c\","
        "\"time\":{\"end\":2}}]}]";
    struct notes *notes = *state;

    /* As after a restart: whose message it is tells its end. */
    for (int i = 0; i < 2; i++)
        assert_int_equal(turn_record_history(&notes->record, history, strlen(history), NULL), 0);
    assert_true(notes->record.has_user && notes->record.is_last_complete);
    turn_record_tell(&notes->record, NULL, false);
    assert_string_equal(text_string(&notes->told),
                        "part a\npart b\npart c\nended well 'hello world' 3+4 500000\n");
}

static void a_message_that_is_too_far_back_is_known_by_its_answers(void **state)
{
    static const char history[] =
        "[{\"info\":{\"id\":\"msg_2\",\"role\":\"assistant\",\"parentID\":\"msg_1tailtailtailta\","
        "\"time\":{\"completed\":1}},\"parts\":[]}]";
    struct notes *notes = *state;

    assert_int_equal(turn_record_history(&notes->record, history, strlen(history), NULL), 0);
    assert_true(notes->record.has_user && notes->record.is_last_complete);
    assert_string_equal(notes->record.user, "msg_1tailtailtailta");
}

static void usage_is_the_sum_over_all_messages_of_the_turn(void **state)
{
    struct notes *notes = *state;

    notes_begin(notes);
    (void) notes_feed(notes, MESSAGE("msg_2", ",\"tokens\":{\"input\":1,\"output\":1}"));
    (void) notes_feed(notes, MESSAGE("msg_2", ",\"tokens\":{\"input\":10,\"output\":20}"));
    (void) notes_feed(notes, MESSAGE("msg_3", ",\"cost\":0.000002,\"tokens\":{\"input\":5,"
                                              "\"output\":-9}"));
    turn_record_tell(&notes->record, NULL, true);
    turn_record_tell(&notes->record, NULL, true); /* nothing */
    assert_string_equal(text_string(&notes->told), "ended well '' 15+20 2 cancelled\n");
}

static void an_error_is_the_models_and_an_abort_is_none(void **state)
{
    struct notes *notes = *state;

    notes_begin(notes);
    (void) notes_feed(notes, USER);
    assert_true(notes_feed(notes, EVENT("session.error",
                                        "{\"sessionID\":\"" SESSION "\",\"error\":{\"name\":"
                                        "\"APIError\",\"data\":{\"message\":\"busy\"}}}")));
    assert_true(notes->record.has_failed);
    assert_string_equal(notes->record.failure.message, "APIError: busy");
    assert_true(notes_feed(notes, EVENT("session.error",
                                        "{\"sessionID\":\"" SESSION "\",\"error\":{\"name\":"
                                        "\"MessageAbortedError\"}}")));
    assert_true(notes->record.is_aborted);
}

static void requests_are_told_once_in_one_form(void **state)
{
    static const char list[] =
        "[{\"id\":\"per_1\",\"sessionID\":\"" SESSION "\",\"permission\":\"bash\"},"
        "{\"id\":\"per_2\",\"sessionID\":\"ses_of_another\"},"
        "{\"id\":\"../x\",\"sessionID\":\"" SESSION "\"}]";
    struct notes *notes = *state;

    (void) notes_feed(notes,
                      EVENT("permission.updated", "{\"id\":\"per_1\",\"sessionID\":\"" SESSION
                                                  "\",\"type\":\"bash\",\"pattern\":\"ls\"}"));
    turn_record_waiting(&notes->record, list, strlen(list), false);
    assert_true(turn_record_knows(&notes->record, "per_1"));
    assert_false(turn_record_knows(&notes->record, "per_2"));
    (void) notes_feed(notes, EVENT("permission.replied",
                                   "{\"sessionID\":\"" SESSION "\",\"permissionID\":\"per_1\","
                                   "\"response\":\"once\"}"));
    assert_string_equal(text_string(&notes->told),
                        "permission per_1 {\"id\":\"per_1\",\"sessionID\":\"ses_1\",\"permission\":"
                        "\"bash\",\"patterns\":[\"ls\"],\"always\":[]}\nanswered per_1 once\n");
}

static void sub_agents_ask_through_their_turn(void **state)
{
    struct notes *notes = *state;

    (void) notes_feed(notes, EVENT("session.created", "{\"info\":{\"id\":\"ses_2\",\"parentID\":"
                                                      "\"" SESSION "\"}}"));
    (void) notes_feed(
        notes, EVENT("session.created", "{\"info\":{\"id\":\"ses_3\",\"parentID\":\"ses_2\"}}"));
    (void) notes_feed(notes, EVENT("question.asked", "{\"id\":\"que_1\",\"sessionID\":\"ses_3\"}"));
    (void) notes_feed(notes, EVENT("question.asked", "{\"id\":\"que_2\",\"sessionID\":\"ses_4\"}"));
    assert_string_equal(text_string(&notes->told), "question que_1\n");
}

static void ids_of_messages_sort_as_opencodes_do(void **state)
{
    struct id turn = {.text = "abcdefghijklmnopqrstuvwxya"};
    char older[OPENCODE_ID_MAX + 1], newer[OPENCODE_ID_MAX + 1];

    (void) state;
    turn_record_message_id(&turn, INT64_C(1795125232470), older);
    turn_record_message_id(&turn, INT64_C(1795125232471), newer);
    assert_string_equal(older, "msg_1f5cd4356000abcdefghijklmn");
    assert_true(strcmp(older, newer) < 0);
    /* One that OpenCode made in the same millisecond sorts behind ours. */
    assert_true(strcmp(older, "msg_1f5cd4356001AAAA") < 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(an_idle_from_before_our_message_does_not_count, notes_open,
                                        notes_close),
        cmocka_unit_test_setup_teardown(texts_of_users_and_of_other_turns_are_not_told, notes_open,
                                        notes_close),
        cmocka_unit_test_setup_teardown(deltas_of_both_generations_are_told_alike, notes_open,
                                        notes_close),
        cmocka_unit_test_setup_teardown(a_history_tells_only_what_is_news, notes_open, notes_close),
        cmocka_unit_test_setup_teardown(a_message_that_is_too_far_back_is_known_by_its_answers,
                                        notes_open, notes_close),
        cmocka_unit_test_setup_teardown(usage_is_the_sum_over_all_messages_of_the_turn, notes_open,
                                        notes_close),
        cmocka_unit_test_setup_teardown(an_error_is_the_models_and_an_abort_is_none, notes_open,
                                        notes_close),
        cmocka_unit_test_setup_teardown(requests_are_told_once_in_one_form, notes_open,
                                        notes_close),
        cmocka_unit_test_setup_teardown(sub_agents_ask_through_their_turn, notes_open, notes_close),
        cmocka_unit_test(ids_of_messages_sort_as_opencodes_do),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
