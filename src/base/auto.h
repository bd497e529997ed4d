/* Cleanup by scope and explicit transfer of ownership: the only clever macros of the project.
 *
 *     AUTO(close) int fd = -EBADF;          closed when the scope ends, unless taken
 *     AUTO(free) char *name = NULL;         freed with free(3)
 *     ...
 *     *ret_fd = TAKE_FD(fd);                now the caller's
 *     return TAKE_PTR(name);
 *
 * A type adds its own destructor with AUTO_DEFINE(text, struct text, text_done), which makes
 * AUTO(text) usable for `struct text`. Destructors accept empty and half-built objects. */
#pragma once

#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <unistd.h>

#define AUTO(name) __attribute__((cleanup(auto_##name)))

/* Define the cleanup function behind AUTO(name) for objects of `type`, which `destroy` (a function
 * that takes `type *`) empties. */
#define AUTO_DEFINE(name, type, destroy)                                                           \
    static inline void auto_##name(type *object)                                                   \
    {                                                                                              \
        destroy(object);                                                                           \
    }                                                                                              \
    struct auto_define_needs_a_semicolon

/* The same for owning pointers: `destroy` takes `type *` and accepts NULL. */
#define AUTO_DEFINE_PTR(name, type, destroy)                                                       \
    static inline void auto_##name(type **object)                                                  \
    {                                                                                              \
        if (*object)                                                                               \
            destroy(*object);                                                                      \
    }                                                                                              \
    struct auto_define_needs_a_semicolon

/* Give a pointer away: yields its value and leaves NULL behind. */
#define TAKE_PTR(pointer)                                                                          \
    ({                                                                                             \
        __typeof__(pointer) *take_ptr_from = &(pointer);                                           \
        __typeof__(pointer) take_ptr_value = *take_ptr_from;                                       \
        *take_ptr_from = NULL;                                                                     \
        take_ptr_value;                                                                            \
    })

static inline int auto_take_fd(int *fd)
{
    int taken = *fd;

    *fd = -EBADF;
    return taken;
}

/* Give a file descriptor away: yields its value and leaves -EBADF behind. */
#define TAKE_FD(fd) auto_take_fd(&(fd))

/* Closes `fd` when it is one, keeps errno, and returns -EBADF so that `fd = fd_close(fd)` reads
 * well. close(2) is never retried: on Linux the descriptor is gone even after EINTR. */
static inline int fd_close(int fd)
{
    if (fd >= 0) {
        int saved = errno;

        (void) close(fd);
        errno = saved;
    }
    return -EBADF;
}

static inline void auto_close(int *fd)
{
    *fd = fd_close(*fd);
}

static inline void auto_free(void *pointer)
{
    free(*(void **) pointer);
}

#define ARRAY_COUNT(array) (sizeof(array) / sizeof((array)[0]))

/* The object that holds `member` at `pointer`. */
#define CONTAINER_OF(pointer, type, member)                                                        \
    ((type *) (void *) ((char *) (pointer) -offsetof(type, member)))
