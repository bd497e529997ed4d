#include "net/outbound/resolver.h"

#include <netdb.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>

#include "base/auto.h"
#include "base/memory.h"

struct resolver_query {
    struct list link; /* in waiting, running or done */
    struct resolver_pool *pool;
    const void *asker;
    resolver_answer *done; /* NULL: forgotten */
    void *context;
    struct sys_address addresses[RESOLVER_ADDRESSES_MAX];
    size_t count;
    char name[256];
};

/* What threads and loop share. Threads are not waited for: whoever is last frees it. */
struct resolver_pool {
    pthread_mutex_t lock;
    pthread_cond_t more;
    struct list waiting, running, done;
    size_t waiting_count, thread_count, idle_count;
    size_t users;              /* threads, and the loop until its handle is closed */
    struct resolver *resolver; /* NULL: closed */
};

struct resolver {
    struct resolver_pool *pool;
    uv_async_t answers;
    void (*on_closed)(void *context);
    void *context;
};

/* --- on a thread ------------------------------------------------------------------------------ */

static void query_fill(struct resolver_query *query)
{
    const struct addrinfo hints = {.ai_socktype = SOCK_STREAM};
    struct addrinfo *found = NULL;

    if (getaddrinfo(query->name, NULL, &hints, &found) != 0)
        return;
    for (const struct addrinfo *at = found; at && query->count < RESOLVER_ADDRESSES_MAX;
         at = at->ai_next) {
        struct sys_address *address = &query->addresses[query->count];

        if ((at->ai_family != AF_INET && at->ai_family != AF_INET6) ||
            at->ai_addrlen > sizeof(address->ipv6))
            continue;
        memcpy(&address->any, at->ai_addr, at->ai_addrlen);
        address->length = at->ai_addrlen;
        query->count++;
    }
    freeaddrinfo(found);
}

static bool asker_has_enough(const struct resolver_pool *pool, const void *asker)
{
    size_t running = 0;

    LIST_EACH (&pool->running, at)
        running += CONTAINER_OF(at, struct resolver_query, link)->asker == asker;
    return running >= RESOLVER_RUNNING_MAX;
}

/* The first that may run, or NULL. The lock is held. */
static struct resolver_query *pool_next(struct resolver_pool *pool)
{
    LIST_EACH (&pool->waiting, at) {
        struct resolver_query *query = CONTAINER_OF(at, struct resolver_query, link);

        if (asker_has_enough(pool, query->asker))
            continue;
        list_remove(&query->link);
        pool->waiting_count--;
        list_append(&pool->running, &query->link);
        return query;
    }
    return NULL;
}

/* The lock is held, and is gone with the last user. */
static void pool_leave(struct resolver_pool *pool)
{
    bool is_last = --pool->users == 0;

    (void) pthread_mutex_unlock(&pool->lock);
    if (!is_last)
        return;
    (void) pthread_cond_destroy(&pool->more);
    (void) pthread_mutex_destroy(&pool->lock);
    free(pool);
}

static void *resolver_thread(void *data)
{
    struct resolver_pool *pool = data;

    (void) pthread_mutex_lock(&pool->lock);
    while (pool->resolver) {
        struct resolver_query *query = pool_next(pool);

        if (!query) {
            pool->idle_count++;
            (void) pthread_cond_wait(&pool->more, &pool->lock);
            pool->idle_count--;
            continue;
        }
        (void) pthread_mutex_unlock(&pool->lock);
        query_fill(query);
        (void) pthread_mutex_lock(&pool->lock);
        list_remove(&query->link);
        if (pool->resolver) {
            list_append(&pool->done, &query->link);
            (void) uv_async_send(&pool->resolver->answers);
        } else {
            free(query);
        }
    }
    pool->thread_count--;
    pool_leave(pool);
    return NULL;
}

/* --- on the loop ------------------------------------------------------------------------------ */

/* One more thread when all are busy. Signals are for the loop's thread. The lock is held. */
static void pool_staff(struct resolver_pool *pool)
{
    sigset_t all, before;
    pthread_t thread;

    if (pool->waiting_count <= pool->idle_count || pool->thread_count == RESOLVER_THREADS_MAX)
        return;
    (void) sigfillset(&all);
    (void) pthread_sigmask(SIG_SETMASK, &all, &before);
    if (pthread_create(&thread, NULL, resolver_thread, pool) == 0) {
        (void) pthread_setname_np(thread, "resolver");
        (void) pthread_detach(thread);
        pool->thread_count++;
        pool->users++;
    }
    (void) pthread_sigmask(SIG_SETMASK, &before, NULL);
}

static void resolver_answers(uv_async_t *handle)
{
    struct resolver *resolver = handle->data;
    struct resolver_pool *pool = resolver->pool;
    struct list *first;

    (void) pthread_mutex_lock(&pool->lock);
    while ((first = list_first(&pool->done))) {
        AUTO(free) struct resolver_query *query = CONTAINER_OF(first, struct resolver_query, link);

        list_remove(&query->link);
        if (!query->done)
            continue;
        (void) pthread_mutex_unlock(&pool->lock);
        query->done(query->context, query->addresses, query->count);
        (void) pthread_mutex_lock(&pool->lock);
    }
    (void) pthread_cond_broadcast(&pool->more); /* an asker may have another one run */
    (void) pthread_mutex_unlock(&pool->lock);
}

struct resolver *resolver_new(struct loop *loop)
{
    struct resolver *resolver = mem_alloc(sizeof(*resolver));
    struct resolver_pool *pool = mem_alloc(sizeof(*pool));

    list_init(&pool->waiting);
    list_init(&pool->running);
    list_init(&pool->done);
    (void) pthread_mutex_init(&pool->lock, NULL);
    (void) pthread_cond_init(&pool->more, NULL);
    pool->users = 1;
    pool->resolver = resolver;
    resolver->pool = pool;
    if (uv_async_init(&loop->uv, &resolver->answers, resolver_answers) < 0)
        abort(); /* no descriptor for it: the daemon has just begun */
    resolver->answers.data = resolver;
    uv_unref((uv_handle_t *) &resolver->answers); /* asking keeps nobody's loop alive by itself */
    return resolver;
}

static void resolver_gone(uv_handle_t *handle)
{
    struct resolver *resolver = handle->data;

    (void) pthread_mutex_lock(&resolver->pool->lock);
    pool_leave(resolver->pool);
    if (resolver->on_closed)
        resolver->on_closed(resolver->context);
    free(resolver);
}

static void queries_drop(struct list *queries)
{
    struct list *first;

    while ((first = list_first(queries))) {
        list_remove(first);
        free(CONTAINER_OF(first, struct resolver_query, link));
    }
}

void resolver_close(struct resolver *resolver, void (*on_closed)(void *context), void *context)
{
    struct resolver_pool *pool = resolver->pool;

    (void) pthread_mutex_lock(&pool->lock);
    pool->resolver = NULL;
    queries_drop(&pool->waiting);
    queries_drop(&pool->done);
    (void) pthread_cond_broadcast(&pool->more);
    (void) pthread_mutex_unlock(&pool->lock);
    resolver->on_closed = on_closed;
    resolver->context = context;
    uv_close((uv_handle_t *) &resolver->answers, resolver_gone);
}

struct resolver_query *resolver_ask(struct resolver *resolver, const void *asker, const char *name,
                                    resolver_answer *done, void *context)
{
    struct resolver_pool *pool = resolver->pool;
    struct resolver_query *query = mem_alloc(sizeof(*query));
    size_t length = strlen(name);

    list_init(&query->link);
    query->pool = pool;
    query->asker = asker;
    query->done = done;
    query->context = context;
    (void) pthread_mutex_lock(&pool->lock);
    if (length < sizeof(query->name) && pool->waiting_count < RESOLVER_WAITING_MAX) {
        memcpy(query->name, name, length + 1);
        list_append(&pool->waiting, &query->link);
        pool->waiting_count++;
        pool_staff(pool);
    }
    if (list_is_empty(&query->link) || !pool->thread_count) {
        if (!list_is_empty(&query->link))
            pool->waiting_count--;
        list_remove(&query->link);
        list_append(&pool->done, &query->link); /* nobody can look: nothing is found */
        (void) uv_async_send(&resolver->answers);
    }
    (void) pthread_cond_signal(&pool->more);
    (void) pthread_mutex_unlock(&pool->lock);
    return query;
}

void resolver_forget(struct resolver_query *query)
{
    (void) pthread_mutex_lock(&query->pool->lock);
    query->done = NULL;
    (void) pthread_mutex_unlock(&query->pool->lock);
}
