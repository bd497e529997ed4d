#include "wire/wire_message.h"

#include <string.h>

#include "base/auto.h"

static const struct wire_row rows[WIRE_NUMBER_END] = {
#define X(number, NAME, member, of, type_, fds_, answer_, then_, fresh, greeted, serving,          \
          draining, meaning)                                                                       \
    [number] = {.name = #member,                                                                   \
                .type = WIRE_##type_,                                                              \
                .fds = (fds_),                                                                     \
                .answer = WIRE_MESSAGE_##answer_,                                                  \
                .then = WIRE_##then_,                                                              \
                .permissions = {WIRE_##fresh, WIRE_##greeted, WIRE_##serving, WIRE_##draining},    \
                .body = &wire_##of##_record},
    WIRE_MESSAGES(X)
#undef X
};

const struct wire_row *wire_message_row(unsigned int number)
{
    return number < ARRAY_COUNT(rows) && rows[number].name ? &rows[number] : NULL;
}

const char *wire_message_name(unsigned int number)
{
    const struct wire_row *row = wire_message_row(number);

    return row ? row->name : "an unknown message";
}

/* Everything in the union starts where it starts. */
static void *body_of(struct wire_message *message)
{
    return &message->hello;
}

static const void *body_of_const(const struct wire_message *message)
{
    return &message->hello;
}

static bool is_greeting(enum wire_number number)
{
    return number == WIRE_MESSAGE_HELLO || number == WIRE_MESSAGE_WELCOME ||
           number == WIRE_MESSAGE_REFUSED;
}

static unsigned int version_of(enum wire_number number, unsigned int version)
{
    return is_greeting(number) ? WIRE_VERSION_GREETING : version;
}

static bool has_trace(const struct wire_row *row, enum wire_number number)
{
    return row->type == WIRE_REQUEST && !is_greeting(number);
}

/* Zero bytes stand for none. */
static int decode_trace(struct wire_reader *reader, struct wire_message *message, struct error *err)
{
    static const uint8_t none[WIRE_TRACE_SIZE];

    if (reader->end - reader->at < WIRE_TRACE_SIZE)
        return error_set(err, ERR_INVALID, 0, "shorter than a header");
    memcpy(message->trace.text, reader->at, WIRE_TRACE_SIZE);
    reader->at += WIRE_TRACE_SIZE;
    if (memcmp(message->trace.text, none, sizeof(none)) == 0 || id_is_valid(message->trace.text))
        return 0;
    return error_set(err, ERR_INVALID, 0, "its trace is no id");
}

static int encode_trace(const struct wire_message *message, struct wire_writer *writer,
                        struct error *err)
{
    if (message->trace.text[0] && !id_is_valid(message->trace.text))
        return error_set(err, ERR_INVALID, 0, "its trace is no id");
    memset(writer->at, 0, WIRE_TRACE_SIZE);
    memcpy(writer->at, message->trace.text, strlen(message->trace.text));
    writer->at += WIRE_TRACE_SIZE;
    return 0;
}

static int check_request(const struct wire_row *row, uint64_t request, struct error *err)
{
    if ((row->type == WIRE_EVENT) != (request == 0))
        return error_set(err, ERR_INVALID, 0, "%s",
                         request ? "an event with a request number" : "no request number");
    return 0;
}

int wire_message_encode(const struct wire_message *message, unsigned int version,
                        struct wire_packet *ret_packet, struct error *err)
{
    const struct wire_row *row = wire_message_row(message->number);
    struct wire_writer writer = {.at = ret_packet->bytes,
                                 .end = ret_packet->bytes + sizeof(ret_packet->bytes)};

    if (!row)
        return error_set(err, ERR_INVALID, 0, "message %d is not in the list",
                         (int) message->number);
    if (version_of(message->number, version) == WIRE_VERSION_GREETING &&
        !is_greeting(message->number))
        return error_set(err, ERR_INVALID, 0, "%s: no version is agreed on", row->name);
    if (check_request(row, message->request, err) < 0)
        return error_wrap(err, "%s", row->name);
    wire_put_number(&writer, version_of(message->number, version), 2);
    wire_put_number(&writer, message->number, 2);
    wire_put_number(&writer, message->request, 8);
    if (has_trace(row, message->number) && encode_trace(message, &writer, err) < 0)
        return error_wrap(err, "%s", row->name);
    if (wire_record_encode(row->body, body_of_const(message), &writer, err) < 0)
        return error_wrap(err, "%s", row->name);
    ret_packet->length = (size_t) (writer.at - ret_packet->bytes);
    return 0;
}

static int decode_header(struct wire_reader *reader, unsigned int version,
                         struct wire_message *message, struct error *err)
{
    const struct wire_row *row;
    unsigned int sent, number;

    if (reader->end - reader->at < WIRE_HEADER_SIZE)
        return error_set(err, ERR_INVALID, 0, "shorter than a header");
    sent = (unsigned int) wire_get_number(reader, 2);
    number = (unsigned int) wire_get_number(reader, 2);
    message->request = wire_get_number(reader, 8);
    row = wire_message_row(number);
    if (!row)
        return error_set(err, ERR_NOT_IMPLEMENTED, 0, "message %u of version %u is unknown", number,
                         sent);
    if (sent != version_of(number, version) || (sent == 0 && !is_greeting(number)))
        return error_set(err, ERR_UPGRADE_REQUIRED, 0, "%s of version %u instead of %u", row->name,
                         sent, version_of(number, version));
    if (check_request(row, message->request, err) < 0)
        return error_wrap(err, "%s", row->name);
    if (has_trace(row, number) && decode_trace(reader, message, err) < 0)
        return error_wrap(err, "%s", row->name);
    message->number = number;
    return 0;
}

static int decode(struct wire_reader *reader, unsigned int version, struct wire_message *message,
                  struct error *err)
{
    const struct wire_row *row;

    if (decode_header(reader, version, message, err) < 0)
        return -1;
    row = wire_message_row(message->number);
    if (wire_record_decode(row->body, reader, body_of(message), err) < 0)
        return error_wrap(err, "%s", row->name);
    if (reader->at != reader->end)
        return error_set(err, ERR_INVALID, 0, "%s: %td bytes too many", row->name,
                         reader->end - reader->at);
    return 0;
}

int wire_message_decode(const void *bytes, size_t length, unsigned int version,
                        struct wire_message *ret_message, struct error *err)
{
    struct wire_reader reader = {.at = bytes, .end = (const uint8_t *) bytes + length};

    memset(ret_message, 0, sizeof(*ret_message));
    if (decode(&reader, version, ret_message, err) < 0) {
        ret_message->number = WIRE_MESSAGE_NONE;
        return -1;
    }
    return 0;
}

const struct id *wire_message_subject(const struct wire_message *message)
{
    const struct wire_record *body = wire_message_row(message->number)->body;

    for (size_t i = 0; i < body->count; i++)
        if (body->fields[i].kind == WIRE_KIND_ID && strcmp(body->fields[i].name, "id") == 0)
            return (const void *) ((const uint8_t *) body_of_const(message) +
                                   body->fields[i].offset);
    return NULL;
}

size_t wire_message_fds(const struct wire_message *message)
{
    const struct wire_row *row = wire_message_row(message->number);
    size_t count = row->fds;

    for (size_t i = 0; i < row->body->count; i++) {
        const struct wire_field *field = &row->body->fields[i];

        if (field->counts_fds)
            count += *((const uint8_t *) body_of_const(message) + field->offset);
    }
    return count;
}

bool wire_message_answers(enum wire_number request, const struct wire_message *reply)
{
    enum wire_number answer = wire_message_row(request)->answer;
    enum wire_number failure =
        request == WIRE_MESSAGE_HELLO ? WIRE_MESSAGE_REFUSED : WIRE_MESSAGE_DONE;

    if (reply->number == answer)
        return true;
    /* A request that has a result cannot succeed without one. */
    return reply->number == failure && (failure != WIRE_MESSAGE_DONE ||
                                        strcmp(reply->done.code, error_code_text(ERR_NONE)) != 0);
}

int wire_version_choose(const struct wire_hello *hello, unsigned int *ret_version,
                        struct error *err)
{
    unsigned int newest =
        hello->version_max < WIRE_VERSION_MAX ? hello->version_max : WIRE_VERSION_MAX;

    if (newest < hello->version_min || newest < WIRE_VERSION_MIN)
        return error_set(err, ERR_UPGRADE_REQUIRED, 0,
                         "the daemon speaks versions %u to %u of the launcher protocol, the "
                         "launcher %u to %u: restart both from the same release",
                         hello->version_min, hello->version_max, WIRE_VERSION_MIN,
                         WIRE_VERSION_MAX);
    *ret_version = newest;
    return 0;
}
