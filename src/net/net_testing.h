/* For tests of streams, servers and clients: numbers that repeat, bytes that can be checked, a
 * certificate, and turns of a loop. Included by test programs only. */
#pragma once

#include <errno.h>
#include <fcntl.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>
/* After the headers it needs. */
#include <cmocka.h>

#include "base/auto.h"
#include "base/memory.h"
#include "base/text.h"
#include "net/loop.h"
#include "sys/file/sys_scratch_testing.h"

/* A turn that waits at most this long is tried this often before a test gives up. */
#define TESTING_TURN_MS   10
#define TESTING_TURNS_MAX 1500

/* The same numbers every time: a failure can be looked at again. */
static inline uint32_t testing_number(uint64_t *state)
{
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t) (*state >> 33);
}

/* The nth byte of an endless series without short periods. */
static inline char testing_byte(uint64_t nth)
{
    return (char) ((nth * 2654435761u) >> 13);
}

static inline void testing_fill(char *bytes, size_t length, uint64_t from)
{
    for (size_t i = 0; i < length; i++)
        bytes[i] = testing_byte(from + i);
}

static inline void testing_wake(uv_timer_t *timer)
{
    (void) timer;
}

/* One turn of the loop that sleeps no longer than TESTING_TURN_MS. */
static inline void testing_turn(struct loop *loop)
{
    uv_timer_t timer;

    (void) uv_timer_init(&loop->uv, &timer);
    /* Repeated: the first may be due before the loop comes to sleep. */
    (void) uv_timer_start(&timer, testing_wake, TESTING_TURN_MS, TESTING_TURN_MS);
    (void) uv_run(&loop->uv, UV_RUN_ONCE);
    uv_close((uv_handle_t *) &timer, NULL);
    (void) uv_run(&loop->uv, UV_RUN_NOWAIT); /* lets the timer go before its memory does */
}

/* Turn the loop until `done` says so; fails the test when it never does. */
#define TURN_UNTIL(loop, done)                                                                     \
    do {                                                                                           \
        int turns_left = TESTING_TURNS_MAX;                                                        \
                                                                                                   \
        while (!(done) && --turns_left)                                                            \
            testing_turn(loop);                                                                    \
        if (!turns_left)                                                                           \
            fail_msg("waited in vain for: %s", #done);                                             \
    } while (0)

/* A connected pair of non-blocking unix sockets; `small` keeps their buffers tiny. */
static inline void testing_pair(int fds[2], bool small)
{
    int size = 1; /* the kernel makes it its minimum */

    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, fds), 0);
    for (int i = 0; i < 2 && small; i++)
        assert_int_equal(setsockopt(fds[i], SOL_SOCKET, SO_SNDBUF, &size, sizeof(size)), 0);
}

/* --- a folder and a certificate in it ------------------------------------------------------- */

struct testing_folder {
    char path[64];
};

static inline void testing_folder_make(struct testing_folder *folder)
{
    (void) snprintf(folder->path, sizeof(folder->path), "%s/burrow-net-test-XXXXXX",
                    scratch_parent());
    assert_non_null(mkdtemp(folder->path));
}

static inline char *testing_path(const struct testing_folder *folder, const char *name)
{
    AUTO(text) struct text path = TEXT_INIT(4096);

    text_format(&path, "%s/%s", folder->path, name);
    return text_take(&path);
}

static inline void testing_folder_remove(const struct testing_folder *folder,
                                         const char *const *names, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        AUTO(free) char *path = testing_path(folder, names[i]);

        (void) unlink(path);
    }
    assert_int_equal(rmdir(folder->path), 0);
}

/* A self-signed certificate for `host`, and its key, as PEM files. */
static inline void testing_certificate(const char *certificate_file, const char *key_file,
                                       const char *host)
{
    EVP_PKEY *key = EVP_EC_gen("P-256");
    X509 *certificate = X509_new();
    AUTO(text) struct text names = TEXT_INIT(256);
    X509_EXTENSION *extension;
    FILE *file;

    assert_true(key && certificate);
    text_format(&names, "DNS:%s", host);
    extension = X509V3_EXT_conf_nid(NULL, NULL, NID_subject_alt_name, text_string(&names));
    assert_non_null(extension);
    (void) X509_set_version(certificate, 2);
    (void) ASN1_INTEGER_set(X509_get_serialNumber(certificate), 1);
    (void) X509_gmtime_adj(X509_getm_notBefore(certificate), -3600);
    (void) X509_gmtime_adj(X509_getm_notAfter(certificate), 3600);
    (void) X509_NAME_add_entry_by_txt(X509_get_subject_name(certificate), "CN", MBSTRING_ASC,
                                      (const unsigned char *) host, -1, -1, 0);
    (void) X509_set_issuer_name(certificate, X509_get_subject_name(certificate));
    (void) X509_set_pubkey(certificate, key);
    (void) X509_add_ext(certificate, extension, -1);
    assert_true(X509_sign(certificate, key, EVP_sha256()) > 0);
    file = fopen(certificate_file, "we");
    assert_int_equal(PEM_write_X509(file, certificate), 1);
    assert_int_equal(fclose(file), 0);
    file = fopen(key_file, "we");
    assert_int_equal(PEM_write_PrivateKey(file, key, NULL, NULL, 0, NULL, NULL), 1);
    assert_int_equal(fclose(file), 0);
    X509_EXTENSION_free(extension);
    X509_free(certificate);
    EVP_PKEY_free(key);
}
