#include "base/trace.h"

#include <errno.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/auto.h"

#define WORDS (sizeof(struct trace_entry) / sizeof(uint64_t))

/* Time, three names and a point, and what stands between them. */
#define LINE_SIZE 192

/* How much a process that ends by a fault says. */
#define LAST_WORDS 256

/* A place that somebody is writing to. One that dies there costs the ring this place. */
#define BUSY UINT64_MAX

_Thread_local struct trace_context trace_context;

/* `done` is the number of the entry that is here as a whole; 0: none. The entry is kept in words,
 * because a reader and the next writer may meet in it: the reader sees by `done` that they did, and
 * atomic words make that defined. */
struct ring_place {
    atomic_uint_fast64_t done;
    atomic_uint_fast64_t words[WORDS];
};

_Static_assert(sizeof(struct trace_entry) % sizeof(uint64_t) == 0, "whole words");
_Static_assert(sizeof(struct ring_place) == TRACE_PLACE_SIZE, "what files are measured by");
_Static_assert(ATOMIC_LLONG_LOCK_FREE == 2, "shared with other processes");

/* The newest number is kept apart from the places: a file has only those. */
struct ring {
    atomic_uint_fast64_t *last;
    struct ring_place *places;
    size_t count; /* a power of two */
};

static atomic_uint_fast64_t first_last;
static struct ring_place first_places[TRACE_ENTRIES_DEFAULT];
static struct ring ring = {&first_last, first_places, TRACE_ENTRIES_DEFAULT};
static char process_name[TRACE_PROCESS_SIZE];

static struct ring_place *ring_place_at(uint64_t number)
{
    return &ring.places[number & (ring.count - 1)];
}

static int64_t trace_now_ns(void)
{
    struct timespec now;

    (void) clock_gettime(CLOCK_MONOTONIC, &now); /* this clock is always there */
    return (int64_t) now.tv_sec * 1000000000 + now.tv_nsec;
}

/* --- writing --------------------------------------------------------------------------------- */

/* Returns how much of `point` is filled. */
static size_t put_word(char point[static TRACE_POINT_SIZE], size_t length, const char *word)
{
    size_t wanted = strnlen(word, TRACE_POINT_SIZE - 1 - length);

    memcpy(point + length, word, wanted);
    return length + wanted;
}

/* A writer that was a whole round behind would mix its entry with ours: it goes without. */
static void ring_put_entry(struct trace_entry *entry)
{
    uint64_t number = atomic_fetch_add_explicit(ring.last, 1, memory_order_relaxed) + 1;
    struct ring_place *place = ring_place_at(number);
    uint64_t words[WORDS];

    entry->number = number;
    if (atomic_exchange_explicit(&place->done, BUSY, memory_order_acquire) == BUSY)
        return;
    memcpy(words, entry, sizeof(words));
    atomic_thread_fence(memory_order_release);
    for (size_t i = 0; i < WORDS; i++)
        atomic_store_explicit(&place->words[i], words[i], memory_order_relaxed);
    atomic_store_explicit(&place->done, number, memory_order_release);
}

void trace_add(const char *point, const char *what)
{
    struct trace_entry entry = {.time_ns = trace_now_ns(), .context = trace_context};
    size_t length = put_word(entry.point, 0, point);

    memcpy(entry.process, process_name, sizeof(entry.process));
    if (what) {
        length = put_word(entry.point, length, " ");
        (void) put_word(entry.point, length, what);
    }
    ring_put_entry(&entry);
}

/* --- reading --------------------------------------------------------------------------------- */

/* Whether entry `number` was there as a whole while it was copied. */
static bool ring_copy_entry(struct ring_place *place, uint64_t number,
                            struct trace_entry *ret_entry)
{
    uint64_t words[WORDS];

    if (atomic_load_explicit(&place->done, memory_order_acquire) != number)
        return false;
    for (size_t i = 0; i < WORDS; i++)
        words[i] = atomic_load_explicit(&place->words[i], memory_order_relaxed);
    atomic_thread_fence(memory_order_acquire);
    if (atomic_load_explicit(&place->done, memory_order_relaxed) != number)
        return false;
    memcpy(ret_entry, words, sizeof(*ret_entry));
    return true;
}

static uint64_t oldest_number(uint64_t newest)
{
    return newest > ring.count ? newest - ring.count + 1 : 1;
}

static bool is_or_any(const struct id *id, const struct id *wanted)
{
    return !wanted->text[0] || memcmp(id, wanted, sizeof(*id)) == 0;
}

static bool is_about(const struct trace_entry *entry, const struct trace_context *about)
{
    return is_or_any(&entry->context.request, &about->request) &&
           is_or_any(&entry->context.sandbox, &about->sandbox);
}

static void reverse(struct trace_entry *entries, size_t count)
{
    for (size_t i = 0; i < count / 2; i++) {
        struct trace_entry entry = entries[i];

        entries[i] = entries[count - 1 - i];
        entries[count - 1 - i] = entry;
    }
}

/* From the newest backwards, because older ones are left out when there are too many. */
size_t trace_read(const struct trace_context *about, struct trace_entry *ret_entries, size_t most)
{
    uint64_t newest = atomic_load(ring.last), oldest = oldest_number(newest);
    size_t count = 0;

    for (uint64_t number = newest; number >= oldest && count < most; number--) {
        if (ring_copy_entry(ring_place_at(number), number, &ret_entries[count]) &&
            is_about(&ret_entries[count], about))
            count++;
    }
    reverse(ret_entries, count);
    return count;
}

size_t trace_read_new(uint64_t *seen, struct trace_entry *ret_entries, size_t most)
{
    uint64_t newest = atomic_load(ring.last), number = oldest_number(newest);
    size_t count = 0;

    if (number <= *seen)
        number = *seen + 1;
    for (; number <= newest && count < most; number++) {
        if (ring_copy_entry(ring_place_at(number), number, &ret_entries[count]))
            count++;
        *seen = number;
    }
    return count;
}

/* --- rings of others ---------------------------------------------------------------------------
 */

static void clean_text(char *text, size_t size)
{
    size_t length = strnlen(text, size - 1);

    for (size_t i = 0; i < length; i++)
        if (text[i] < ' ' || text[i] > '~')
            text[i] = '?';
    memset(text + length, 0, size - length);
}

static void clean_id(struct id *id)
{
    id->text[ID_LENGTH] = '\0';
    if (!id_is_valid(id->text))
        *id = (struct id){.text = ""};
}

void trace_entry_clean(struct trace_entry *entry)
{
    clean_text(entry->process, sizeof(entry->process));
    clean_text(entry->point, sizeof(entry->point));
    clean_id(&entry->context.request);
    clean_id(&entry->context.sandbox);
}

/* Read, never mapped: whoever cut the file short would have us killed by SIGBUS. */
void trace_collect(int fd, size_t count, const char *process)
{
    /* Number 1 is in place 1. Whoever shows entries sorts them by time. */
    for (size_t i = 1; i <= count; i++) {
        struct {
            uint64_t done;
            struct trace_entry entry;
        } place;
        off_t at = (off_t) (i % count * sizeof(place));

        if (pread(fd, &place, sizeof(place), at) != (ssize_t) sizeof(place))
            return;
        if (place.done == 0 || place.done == BUSY)
            continue;
        memset(place.entry.process, 0, sizeof(place.entry.process));
        memcpy(place.entry.process, process, strnlen(process, TRACE_PROCESS_SIZE - 1));
        place.entry.context = trace_context;
        trace_entry_clean(&place.entry);
        ring_put_entry(&place.entry);
    }
}

/* --- as text, without anything that a signal handler may not call ------------------------------
 */

static char *put_text(char *at, const char *text)
{
    size_t length = strlen(text);

    memcpy(at, text[0] ? text : "-", length ? length : 1);
    at += length ? length : 1;
    *at = ' ';
    return at + 1;
}

static char *put_number(char *at, uint64_t number, int digits)
{
    char text[20];
    int count = 0;

    while (number || count < digits) {
        text[count++] = (char) ('0' + number % 10);
        number /= 10;
    }
    while (count)
        *at++ = text[--count];
    return at;
}

static size_t format_entry(const struct trace_entry *entry, char line[static LINE_SIZE])
{
    uint64_t time_us = (uint64_t) entry->time_ns / 1000;
    char *at = put_number(line, time_us / 1000000, 1);

    *at++ = '.';
    at = put_number(at, time_us % 1000000, 6);
    *at++ = ' ';
    at = put_text(at, entry->process);
    at = put_text(at, entry->context.request.text);
    at = put_text(at, entry->context.sandbox.text);
    at = put_text(at, entry->point);
    at[-1] = '\n';
    return (size_t) (at - line);
}

void trace_print(int fd, size_t most)
{
    uint64_t newest = atomic_load(ring.last), number = oldest_number(newest);

    if (newest > most && number <= newest - most)
        number = newest - most + 1;
    for (; number <= newest; number++) {
        struct trace_entry entry;
        char line[LINE_SIZE];

        if (ring_copy_entry(ring_place_at(number), number, &entry) &&
            write(fd, line, format_entry(&entry, line)) < 0)
            return; /* nobody reads */
    }
}

/* --- the last words of a process -----------------------------------------------------------------
 */

static void print_and_die(int number)
{
    static const char title[] = "the trace, as seconds, process, request, sandbox and point:\n";
    static atomic_flag is_printed = ATOMIC_FLAG_INIT;

    if (!atomic_flag_test_and_set(&is_printed) &&
        write(STDERR_FILENO, title, sizeof(title) - 1) > 0)
        trace_print(STDERR_FILENO, LAST_WORDS);
    (void) raise(number); /* the handler is gone (SA_RESETHAND): this ends the process */
}

/* Sanitizers have handlers of their own for faults, which say more. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
static const int last_signals[] = {SIGABRT};
#else
static const int last_signals[] = {SIGABRT, SIGSEGV, SIGBUS, SIGILL, SIGFPE};
#endif

static void print_at_the_end(void)
{
    struct sigaction action = {.sa_handler = print_and_die, .sa_flags = (int) SA_RESETHAND};

    for (size_t i = 0; i < ARRAY_COUNT(last_signals); i++)
        (void) sigaction(last_signals[i], &action, NULL); /* known signals take a handler */
}

void trace_name(const char *process)
{
    memset(process_name, 0, sizeof(process_name));
    memcpy(process_name, process, strnlen(process, sizeof(process_name) - 1));
}

void trace_start(const char *process, size_t count)
{
    size_t size = sizeof(atomic_uint_fast64_t) + count * sizeof(struct ring_place);
    void *shared = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

    trace_name(process);
    print_at_the_end();
    if (shared == MAP_FAILED)
        return; /* the ring that is there is shorter, and our own */
    ring = (struct ring){.last = shared,
                         .places = (void *) ((char *) shared + sizeof(atomic_uint_fast64_t)),
                         .count = count};
}

int trace_start_in(const char *process, size_t count, int fd)
{
    struct stat status;
    void *shared;

    trace_name(process);
    print_at_the_end();
    if (fstat(fd, &status) < 0)
        return -errno;
    if (status.st_size != (off_t) TRACE_FILE_SIZE(count))
        return -EINVAL;
    shared = mmap(NULL, TRACE_FILE_SIZE(count), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (shared == MAP_FAILED)
        return -errno;
    ring.places = shared;
    ring.count = count;
    return 0;
}

/* --- scopes ----------------------------------------------------------------------------------- */

struct trace_context trace_enter(const struct id *request, const struct id *sandbox)
{
    struct trace_context before = trace_context;

    if (request)
        trace_context.request = *request;
    if (sandbox)
        trace_context.sandbox = *sandbox;
    return before;
}
