#include "keeper/squash/squash_belt.h"

#include <pthread.h>
#include <stdbool.h>
#include <string.h>

#include "base/list.h"
#include "base/memory.h"

/* Things without bytes are small; so many of them do not stop the threads. */
#define THINGS_MAX 4096

/* Enough for a thread to find the next one ready. */
#define BLOCKS_PER_THREAD 4

#define THREADS_MAX 64
#define STACK_SIZE  ((size_t) 512 << 10)

struct block {
    struct list link; /* in `todo`, while it waits */
    uint8_t *in;      /* owned */
    uint8_t *out;     /* owned */
    size_t length, size;
    bool is_done; /* under the lock */
};

struct place {
    unsigned int kind;
    void *thing;
    struct block *block; /* owned; NULL: no bytes */
};

struct squash_belt {
    struct squash_belt_options options;
    struct squash_codec *codec; /* owned: for work without threads */

    struct place places[THINGS_MAX]; /* a ring */
    size_t first, count;
    size_t block_count, block_max; /* on the belt */
    struct block *spare[THREADS_MAX * BLOCKS_PER_THREAD + 1];
    size_t spare_count;

    pthread_t threads[THREADS_MAX];
    unsigned int thread_count;
    pthread_mutex_t lock;
    pthread_cond_t has_work, is_done;
    struct list todo; /* under the lock, like the next */
    bool stopped;
};

static void pack(struct squash_codec *codec, struct block *block)
{
    block->size = squash_codec_pack(codec, block->in, block->length, block->out);
}

/* --- threads -------------------------------------------------------------------------------- */

static void *work(void *argument)
{
    struct squash_belt *belt = argument;
    const struct squash_belt_options *options = &belt->options;
    AUTO(squash_codec)
    struct squash_codec *codec =
        squash_codec_new(options->compression, options->level, options->block_size);

    (void) pthread_mutex_lock(&belt->lock);
    while (!belt->stopped) {
        struct block *block;

        if (list_is_empty(&belt->todo)) {
            (void) pthread_cond_wait(&belt->has_work, &belt->lock);
            continue;
        }
        block = CONTAINER_OF(belt->todo.next, struct block, link);
        list_remove(&block->link);
        (void) pthread_mutex_unlock(&belt->lock);
        pack(codec, block);
        (void) pthread_mutex_lock(&belt->lock);
        block->is_done = true;
        (void) pthread_cond_signal(&belt->is_done);
    }
    (void) pthread_mutex_unlock(&belt->lock);
    return NULL;
}

static void start_threads(struct squash_belt *belt)
{
    unsigned int wanted = belt->options.threads < THREADS_MAX ? belt->options.threads : THREADS_MAX;
    pthread_attr_t attributes;

    (void) pthread_attr_init(&attributes);
    (void) pthread_attr_setstacksize(&attributes, STACK_SIZE);
    while (belt->thread_count < wanted &&
           pthread_create(&belt->threads[belt->thread_count], &attributes, work, belt) == 0)
        belt->thread_count++;
    (void) pthread_attr_destroy(&attributes);
}

static void stop_threads(struct squash_belt *belt)
{
    (void) pthread_mutex_lock(&belt->lock);
    belt->stopped = true;
    (void) pthread_cond_broadcast(&belt->has_work);
    (void) pthread_mutex_unlock(&belt->lock);
    for (unsigned int i = 0; i < belt->thread_count; i++)
        (void) pthread_join(belt->threads[i], NULL);
}

static void begin_work(struct squash_belt *belt, struct block *block)
{
    if (belt->thread_count == 0) {
        pack(belt->codec, block);
        block->is_done = true;
        return;
    }
    block->is_done = false;
    (void) pthread_mutex_lock(&belt->lock);
    list_append(&belt->todo, &block->link);
    (void) pthread_cond_signal(&belt->has_work);
    (void) pthread_mutex_unlock(&belt->lock);
}

static void wait_for(struct squash_belt *belt, const struct block *block)
{
    (void) pthread_mutex_lock(&belt->lock);
    while (!block->is_done)
        (void) pthread_cond_wait(&belt->is_done, &belt->lock);
    (void) pthread_mutex_unlock(&belt->lock);
}

/* --- blocks --------------------------------------------------------------------------------- */

uint8_t *squash_belt_buffer(const struct squash_belt *belt)
{
    return mem_alloc(belt->options.block_size);
}

static struct block *block_take(struct squash_belt *belt)
{
    struct block *block;

    if (belt->spare_count)
        return belt->spare[--belt->spare_count];
    block = mem_alloc(sizeof(*block));
    block->in = squash_belt_buffer(belt);
    block->out = squash_belt_buffer(belt);
    return block;
}

static void block_free(struct block *block)
{
    if (!block)
        return;
    free(block->in);
    free(block->out);
    free(block);
}

/* --- the belt ------------------------------------------------------------------------------- */

struct squash_belt *squash_belt_new(const struct squash_belt_options *options)
{
    struct squash_belt *belt = mem_alloc(sizeof(*belt));

    belt->options = *options;
    belt->codec = squash_codec_new(options->compression, options->level, options->block_size);
    list_init(&belt->todo);
    (void) pthread_mutex_init(&belt->lock, NULL);
    (void) pthread_cond_init(&belt->has_work, NULL);
    (void) pthread_cond_init(&belt->is_done, NULL);
    start_threads(belt);
    belt->block_max = belt->thread_count ? (size_t) belt->thread_count * BLOCKS_PER_THREAD : 1;
    return belt;
}

void squash_belt_free(struct squash_belt *belt, void (*drop)(unsigned int kind, void *thing))
{
    if (!belt)
        return;
    stop_threads(belt);
    for (; belt->count; belt->count--, belt->first = (belt->first + 1) % THINGS_MAX) {
        drop(belt->places[belt->first].kind, belt->places[belt->first].thing);
        block_free(belt->places[belt->first].block);
    }
    while (belt->spare_count)
        block_free(belt->spare[--belt->spare_count]);
    (void) pthread_mutex_destroy(&belt->lock);
    (void) pthread_cond_destroy(&belt->has_work);
    (void) pthread_cond_destroy(&belt->is_done);
    squash_codec_free(belt->codec);
    free(belt);
}

static int take_first(struct squash_belt *belt, struct error *err)
{
    struct place place = belt->places[belt->first];
    struct squash_parcel parcel = {.kind = place.kind, .thing = place.thing};
    int result;

    if (place.block) {
        wait_for(belt, place.block);
        parcel.length = place.block->length;
        parcel.is_packed = place.block->size > 0;
        parcel.size = parcel.is_packed ? place.block->size : parcel.length;
        parcel.bytes = parcel.is_packed ? place.block->out : place.block->in;
    }
    belt->first = (belt->first + 1) % THINGS_MAX;
    belt->count--;
    result = belt->options.take(belt->options.owner, &parcel, err);
    if (place.block) {
        belt->block_count--;
        belt->spare[belt->spare_count++] = place.block;
    }
    return result;
}

static int put(struct squash_belt *belt, struct place place, struct error *err)
{
    if (belt->count == THINGS_MAX && take_first(belt, err) < 0)
        return -1;
    belt->places[(belt->first + belt->count++) % THINGS_MAX] = place;
    return 0;
}

int squash_belt_put(struct squash_belt *belt, unsigned int kind, void *thing, struct error *err)
{
    return put(belt, (struct place){kind, thing, NULL}, err);
}

int squash_belt_put_block(struct squash_belt *belt, unsigned int kind, void *thing,
                          uint8_t **buffer, size_t length, struct error *err)
{
    struct block *block;
    uint8_t *empty;

    while (belt->block_count == belt->block_max)
        if (take_first(belt, err) < 0)
            return -1;
    if (belt->count == THINGS_MAX && take_first(belt, err) < 0)
        return -1;
    block = block_take(belt);
    empty = block->in;
    block->in = *buffer;
    block->length = length;
    *buffer = empty;
    belt->block_count++;
    begin_work(belt, block);
    return put(belt, (struct place){kind, thing, block}, err);
}

int squash_belt_flush(struct squash_belt *belt, struct error *err)
{
    while (belt->count)
        if (take_first(belt, err) < 0)
            return -1;
    return 0;
}
