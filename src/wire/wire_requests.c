#include "wire/wire_requests.h"

#include <inttypes.h>
#include <string.h>

void wire_requests_init(struct wire_requests *requests)
{
    memset(requests, 0, sizeof(*requests));
}

/* 256 numbers are looked through faster than a hash of them is computed. */
static struct wire_request *find(struct wire_requests *requests, uint64_t number)
{
    for (size_t i = 0; i < ARRAY_COUNT(requests->places); i++)
        if (requests->places[i].number == number)
            return &requests->places[i];
    return NULL;
}

/* NULL when the table is full. */
static struct wire_request *put(struct wire_requests *requests, struct wire_request request)
{
    struct wire_request *place = find(requests, 0);

    if (!place)
        return NULL;
    *place = request;
    place->trace = trace_context;
    requests->last = request.number;
    requests->count++;
    return place;
}

struct wire_request *wire_requests_add(struct wire_requests *requests, enum wire_number message,
                                       struct wire_answer answer, struct error *err)
{
    struct wire_request *added = put(
        requests,
        (struct wire_request){.number = requests->last + 1, .message = message, .answer = answer});

    if (!added)
        (void) error_set(err, ERR_UNAVAILABLE, 0, "%d requests wait for the launcher already",
                         WIRE_REQUESTS_MAX);
    return added;
}

int wire_requests_note(struct wire_requests *requests, uint64_t number, enum wire_number message,
                       struct error *err)
{
    if (number <= requests->last)
        return error_set(err, ERR_FORBIDDEN, 0,
                         "request %" PRIu64 " after request %" PRIu64 ": numbers must rise", number,
                         requests->last);
    if (!put(requests, (struct wire_request){.number = number, .message = message}))
        return error_set(err, ERR_FORBIDDEN, 0, "more than %d requests at once", WIRE_REQUESTS_MAX);
    return 0;
}

struct wire_request *wire_requests_find(struct wire_requests *requests,
                                        const struct wire_message *reply, struct error *err)
{
    struct wire_request *request = reply->request ? find(requests, reply->request) : NULL;

    if (!request) {
        (void) error_set(err, ERR_INVALID, 0, "'%s' answers request %" PRIu64 ", which is not open",
                         wire_message_name(reply->number), reply->request);
        return NULL;
    }
    if (!wire_message_answers(request->message, reply)) {
        (void) error_set(err, ERR_INVALID, 0, "'%s' is no answer to '%s'",
                         wire_message_name(reply->number), wire_message_name(request->message));
        return NULL;
    }
    return request;
}

struct wire_request wire_requests_remove(struct wire_requests *requests,
                                         struct wire_request *request)
{
    struct wire_request removed = *request;

    *request = (struct wire_request){.number = 0};
    requests->count--;
    return removed;
}

struct wire_request *wire_requests_oldest(struct wire_requests *requests)
{
    struct wire_request *oldest = NULL;

    for (size_t i = 0; i < ARRAY_COUNT(requests->places); i++) {
        struct wire_request *request = &requests->places[i];

        if (request->number && (!oldest || request->number < oldest->number))
            oldest = request;
    }
    return oldest;
}
