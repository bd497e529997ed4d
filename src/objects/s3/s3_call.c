#include <time.h>

#include "base/id.h"
#include "objects/objects_transfer.h"
#include "objects/s3/s3_exchange.h"

#define LOOK_MS 50 /* between looks at whether a wait was cancelled */

/* Full jitter: anything up to the bound, so that many who failed together do not come back
 * together. */
static uint64_t wait_ms(const struct s3_client *client, unsigned int attempt)
{
    uint64_t bound = client->limits.backoff_ms, dice;

    for (unsigned int i = 1; i < attempt && bound < S3_BACKOFF_MAX_MS; i++)
        bound *= 2;
    if (bound > S3_BACKOFF_MAX_MS)
        bound = S3_BACKOFF_MAX_MS;
    random_bytes(&dice, sizeof(dice));
    return dice % (bound + 1);
}

int s3_back_off(const struct s3_client *client, struct objects_work *work, unsigned int attempt,
                struct error *err)
{
    uint64_t left = wait_ms(client, attempt);

    (void) atomic_fetch_add(work->retries, 1);
    while (left) {
        uint64_t step = left < LOOK_MS ? left : LOOK_MS;
        struct timespec pause = {.tv_nsec = (long) step * 1000000};

        if (objects_work_go_on(work, err) < 0)
            return -1;
        (void) nanosleep(&pause, NULL); /* a signal makes it shorter, no harm */
        left -= step;
    }
    return objects_work_go_on(work, err);
}

/* Copies and uploads may say 200 at once, and what happened only later. */
static bool is_late_failure(const struct s3_request *request, const struct s3_answer *answer)
{
    return request->is_slow && answer->http.status == 200 && answer->http.body.length &&
           s3_document_is_failure(answer->http.body.data, answer->http.body.length);
}

/* One attempt. Returns 0 for a success. */
static int try_once(struct s3_client *client, struct objects_work *work,
                    const struct s3_request *request, struct s3_answer *answer, struct error *err)
{
    if (s3_exchange(client, work, request, answer, err) < 0)
        return -1;
    if (answer->http.status < 200 || answer->http.status >= 300 || is_late_failure(request, answer))
        return s3_error_of(client, answer, err);
    atomic_store(&client->bucket_seen, true);
    return 0;
}

int s3_call(struct s3_client *client, struct objects_work *work, const struct s3_request *request,
            struct s3_answer *answer, struct error *err)
{
    for (unsigned int attempt = 1;; attempt++) {
        struct error failure = ERROR_INIT;

        if (try_once(client, work, request, answer, &failure) == 0)
            return 0;
        if (!answer->is_transient || attempt >= client->limits.attempts_max) {
            *err = failure;
            return -1;
        }
        if (s3_back_off(client, work, attempt, err) < 0)
            return -1;
    }
}
