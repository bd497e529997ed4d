#include "api/access/password.h"

#include <argon2.h>
#include <string.h>

#include "base/auto.h"
#include "base/id.h"
#include "base/list.h"
#include "base/memory.h"

#define SALT_SIZE    16
#define HASH_BYTES   32
#define ENCODED_SIZE 160 /* with parameters of any size */

struct password_job {
    struct list link;      /* while it waits */
    struct loop_task task; /* for a refusal */
    uv_work_t work;
    struct passwords *passwords;
    struct password_cost cost;
    char password[PASSWORD_MAX + 1];
    char encoded[ENCODED_SIZE];
    bool is_dummy;
    int result; /* of Argon2 */
    struct error failure;
    password_made *made; /* one of the two */
    password_verified *verified;
    void *context;
};

struct passwords {
    struct loop *loop;
    struct password_cost cost;
    struct list waiting; /* of job */
    size_t waiting_count;
    size_t running;
    size_t unanswered; /* all jobs there are */
    bool is_closing;
    void (*closed)(void *context);
    void *closed_context;
};

struct passwords *passwords_new(struct loop *loop, struct password_cost cost)
{
    struct passwords *passwords = mem_alloc(sizeof(*passwords));

    passwords->loop = loop;
    passwords->cost = cost;
    list_init(&passwords->waiting);
    return passwords;
}

int password_check_form(const char *password, struct error *err)
{
    size_t length = strlen(password);

    if (length < PASSWORD_MIN || length > PASSWORD_MAX)
        return error_set(err, ERR_INVALID, 0, "a password has %d to %d bytes", PASSWORD_MIN,
                         PASSWORD_MAX);
    return 0;
}

static void end_if_over(struct passwords *passwords)
{
    void (*closed)(void *context) = passwords->closed;
    void *context = passwords->closed_context;

    if (!passwords->is_closing || passwords->unanswered)
        return;
    free(passwords);
    if (closed)
        closed(context);
}

/* --- one job --------------------------------------------------------------------------------- */

/* On a thread of the pool. Touches nothing but the job. */
static void compute(uv_work_t *work)
{
    struct password_job *job = CONTAINER_OF(work, struct password_job, work);
    size_t length = strlen(job->password);
    uint8_t salt[SALT_SIZE];

    if (job->verified && !job->is_dummy) {
        job->result = argon2id_verify(job->encoded, job->password, length);
        return;
    }
    random_bytes(salt, sizeof(salt));
    job->result =
        argon2id_hash_encoded(job->cost.passes, job->cost.memory_kib, 1, job->password, length,
                              salt, sizeof(salt), HASH_BYTES, job->encoded, sizeof(job->encoded));
}

static void password_answer(struct password_job *job)
{
    struct passwords *passwords = job->passwords;
    const struct error *failure = job->failure.code == ERR_NONE ? NULL : &job->failure;

    if (job->made)
        job->made(job->context, failure, failure ? NULL : job->encoded);
    else
        job->verified(job->context, failure,
                      !failure && !job->is_dummy && job->result == ARGON2_OK);
    explicit_bzero(job, sizeof(*job));
    free(job);
    passwords->unanswered--;
    end_if_over(passwords);
}

static void password_refused(struct loop_task *task)
{
    password_answer(CONTAINER_OF(task, struct password_job, task));
}

static void password_refuse(struct password_job *job, const char *reason)
{
    (void) error_set(&job->failure, ERR_UNAVAILABLE, 0, "%s", reason);
    loop_defer(job->passwords->loop, &job->task);
}

static void start_next(struct passwords *passwords);

static void computed(uv_work_t *work, int status)
{
    struct password_job *job = CONTAINER_OF(work, struct password_job, work);
    struct passwords *passwords = job->passwords;
    bool is_verdict =
        job->result == ARGON2_OK || (job->verified && job->result == ARGON2_VERIFY_MISMATCH);

    if (status < 0 || !is_verdict)
        (void) error_set(&job->failure, ERR_INTERNAL, 0, "the password could not be computed: %s",
                         argon2_error_message(job->result));
    passwords->running--;
    start_next(passwords);
    password_answer(job);
}

static void start_next(struct passwords *passwords)
{
    while (passwords->running < PASSWORDS_AT_ONCE && !list_is_empty(&passwords->waiting)) {
        struct password_job *job =
            CONTAINER_OF(list_first(&passwords->waiting), struct password_job, link);

        list_remove(&job->link);
        passwords->waiting_count--;
        passwords->running++;
        /* Fails only for a NULL callback. */
        (void) uv_queue_work(&passwords->loop->uv, &job->work, compute, computed);
    }
}

static struct password_job *job_new(struct passwords *passwords, const char *password,
                                    void *context)
{
    struct password_job *job = mem_alloc(sizeof(*job));
    size_t length = strnlen(password, PASSWORD_MAX + 1);

    job->passwords = passwords;
    job->cost = passwords->cost;
    job->context = context;
    list_init(&job->link);
    loop_task_init(&job->task, password_refused);
    passwords->unanswered++;
    if (length <= PASSWORD_MAX)
        memcpy(job->password, password, length);
    else
        (void) error_set(&job->failure, ERR_INVALID, 0, "a password has at most %d bytes",
                         PASSWORD_MAX);
    return job;
}

static void password_add(struct password_job *job)
{
    struct passwords *passwords = job->passwords;

    if (job->failure.code != ERR_NONE) {
        loop_defer(passwords->loop, &job->task);
        return;
    }
    if (passwords->is_closing || passwords->waiting_count >= PASSWORDS_WAITING_MAX) {
        password_refuse(job, "too many logins at once; try again in a moment");
        return;
    }
    list_append(&passwords->waiting, &job->link);
    passwords->waiting_count++;
    start_next(passwords);
}

/* --- interface ------------------------------------------------------------------------------- */

void password_make(struct passwords *passwords, const char *password, password_made *done,
                   void *context)
{
    struct password_job *job = job_new(passwords, password, context);

    job->made = done;
    password_add(job);
}

void password_verify(struct passwords *passwords, const char *password, const char *encoded,
                     password_verified *done, void *context)
{
    struct password_job *job = job_new(passwords, password, context);

    job->verified = done;
    job->is_dummy = !encoded || strlen(encoded) >= sizeof(job->encoded);
    if (!job->is_dummy)
        memcpy(job->encoded, encoded, strlen(encoded) + 1);
    password_add(job);
}

void passwords_close(struct passwords *passwords, void (*done)(void *context), void *context)
{
    if (!passwords) {
        if (done)
            done(context);
        return;
    }
    passwords->is_closing = true;
    passwords->closed = done;
    passwords->closed_context = context;
    LIST_EACH (&passwords->waiting, at) {
        list_remove(at);
        passwords->waiting_count--;
        password_refuse(CONTAINER_OF(at, struct password_job, link), "the daemon is shutting down");
    }
    end_if_over(passwords);
}
