#include "store/keyring.h"

#include <fcntl.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <string.h>
#include <sys/stat.h>

#include "base/encoding/encode.h"
#include "base/encoding/hash.h"
#include "base/id.h"
#include "base/memory.h"
#include "base/number.h"
#include "sys/file/sys_file.h"
#include "sys/file/sys_lock.h"

/* version | key id, big endian | nonce | ciphertext, as long as the plain text | tag */
#define SEAL_VERSION 1
#define KEY_SIZE     32
#define KEY_ID_SIZE  4
#define NONCE_SIZE   12
#define TAG_SIZE     16
#define HEAD_SIZE    (1 + KEY_ID_SIZE + NONCE_SIZE)
_Static_assert(KEYRING_SEAL_EXTRA == HEAD_SIZE + TAG_SIZE, "the header says it");

/* A line: a decimal id, a space, the key in hexadecimal. */
#define FILE_MAX        ((size_t) KEYRING_KEYS_MAX * 128)
#define LOCK_TIMEOUT_MS 5000

struct key {
    uint32_t id;
    uint8_t bytes[KEY_SIZE];
};

/* Keys are only ever added, and behind the last: another thread that reads the count sees whole
 * keys, so that it may seal while this one rotates. */
struct keyring {
    struct key keys[KEYRING_KEYS_MAX]; /* oldest first */
    atomic_size_t count;               /* at least 1 in a ring that somebody has */
};

void keyring_free(struct keyring *keyring)
{
    if (!keyring)
        return;
    OPENSSL_cleanse(keyring, sizeof(*keyring));
    free(keyring);
}

static const struct key *newest(const struct keyring *keyring)
{
    return &keyring->keys[atomic_load_explicit(&keyring->count, memory_order_acquire) - 1];
}

static const struct key *find_key(const struct keyring *keyring, uint32_t id)
{
    size_t count = atomic_load_explicit(&keyring->count, memory_order_acquire);

    for (size_t i = count; i > 0; i--)
        if (keyring->keys[i - 1].id == id)
            return &keyring->keys[i - 1];
    return NULL;
}

static void add_key(struct keyring *keyring, const struct key *key)
{
    size_t count = atomic_load_explicit(&keyring->count, memory_order_relaxed);

    keyring->keys[count] = *key;
    atomic_store_explicit(&keyring->count, count + 1, memory_order_release);
}

static struct key keyring_make_key(uint32_t id)
{
    struct key key = {.id = id};

    random_bytes(key.bytes, sizeof(key.bytes));
    return key;
}

struct keyring *keyring_new(void)
{
    struct keyring *keyring = mem_alloc(sizeof(*keyring));
    struct key key = keyring_make_key(1);

    add_key(keyring, &key);
    return keyring;
}

/* --- the file --------------------------------------------------------------------------------- */

static int parse_line(struct keyring *keyring, const char *line, size_t length)
{
    const char *space = memchr(line, ' ', length);
    size_t id_length = space ? (size_t) (space - line) : 0, size = 0;
    struct key key;
    uint64_t id;

    if (!space || number_parse_digits(line, id_length, UINT32_MAX, &id) < 0 ||
        hex_decode(space + 1, length - id_length - 1, key.bytes, KEY_SIZE, &size) < 0 ||
        size != KEY_SIZE || find_key(keyring, (uint32_t) id) || keyring->count == KEYRING_KEYS_MAX)
        return -EINVAL;
    key.id = (uint32_t) id;
    add_key(keyring, &key);
    OPENSSL_cleanse(&key, sizeof(key));
    return 0;
}

static int parse_file(struct keyring *keyring, const char *data, size_t length, const char *name,
                      struct error *err)
{
    const char *line = data, *end = data + length;

    for (int number = 1; line < end; number++) {
        const char *stop = memchr(line, '\n', (size_t) (end - line));

        if (!stop)
            stop = end;
        if (stop > line && *line != '#' && parse_line(keyring, line, (size_t) (stop - line)) < 0)
            return error_set(err, ERR_INVALID, 0,
                             "line %d of the key file '%s' is no \"ID HEX\" with an id of its own "
                             "and 64 digits, or the %dth key is one too many",
                             number, name, KEYRING_KEYS_MAX + 1);
        line = stop + 1;
    }
    if (keyring->count == 0)
        return error_set(err, ERR_INVALID, 0, "the key file '%s' has no key", name);
    return 0;
}

static int check_mode(int fd, const char *name, struct error *err)
{
    struct stat status;

    if (fstat(fd, &status) < 0)
        return error_set(err, ERR_INTERNAL, errno, "look at the key file '%s'", name);
    if (!S_ISREG(status.st_mode))
        return error_set(err, ERR_INVALID, 0, "the key file '%s' is no regular file", name);
    if (status.st_mode & 077)
        return error_set(err, ERR_INVALID, 0,
                         "others may use the key file '%s' (mode %03o): chmod 600 it, and change "
                         "the secrets if somebody has",
                         name, status.st_mode & 0777u);
    return 0;
}

/* 1: read. 0: there is none. */
static int keyring_read_file(struct keyring *keyring, int folder, const char *name,
                             struct error *err)
{
    AUTO(close) int fd = sys_file_open(folder, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK, 0);
    char *data;
    ssize_t length;
    int r;

    if (fd == -ENOENT)
        return 0;
    if (fd < 0)
        return error_set(err, error_code_from_errno(fd), fd, "open the key file '%s'", name);
    if (check_mode(fd, name, err) < 0)
        return -1;
    data = mem_alloc(FILE_MAX + 1);
    length = sys_file_read_full(fd, data, FILE_MAX + 1);
    if (length < 0)
        r = error_set(err, ERR_INTERNAL, (int) length, "read the key file '%s'", name);
    else if ((size_t) length > FILE_MAX)
        r = error_set(err, ERR_INVALID, 0, "the key file '%s' is too long", name);
    else
        r = parse_file(keyring, data, (size_t) length, name, err);
    OPENSSL_cleanse(data, FILE_MAX + 1);
    free(data);
    return r < 0 ? -1 : 1;
}

static void format_file(const struct keyring *keyring, struct text *text)
{
    char hex[HEX_TEXT_SIZE(KEY_SIZE)];

    /* At once, so that no piece is left behind by growing. */
    (void) text_reserve(text, FILE_MAX);
    for (size_t i = 0; i < keyring->count; i++) {
        (void) hex_encode(keyring->keys[i].bytes, KEY_SIZE, hex);
        text_format(text, "%u %s\n", keyring->keys[i].id, hex);
    }
    OPENSSL_cleanse(hex, sizeof(hex));
}

static int keyring_write_file(const struct keyring *keyring, int folder, const char *name,
                              struct error *err)
{
    AUTO(text) struct text text = TEXT_INIT(FILE_MAX);
    int r;

    format_file(keyring, &text);
    r = sys_file_replace(folder, name, text_string(&text), text.length, 0600);
    OPENSSL_cleanse(text.data, text.length);
    if (r < 0)
        return error_set(err, error_code_from_errno(r), r, "write the key file '%s'", name);
    return 0;
}

/* Two that start at once, or rotate at once, must not lose each other's key. */
static int lock_folder(int folder, const char *name, struct error *err)
{
    AUTO(close) int fd = sys_file_open(folder, ".", O_RDONLY | O_DIRECTORY, 0);
    int r = fd;

    if (r >= 0)
        r = sys_lock_take(fd, SYS_LOCK_EXCLUSIVE, LOCK_TIMEOUT_MS);
    if (r < 0)
        return error_set(err, error_code_from_errno(r), r, "lock the folder of the key file '%s'",
                         name);
    return TAKE_FD(fd);
}

struct keyring *keyring_open(int folder, const char *name, struct error *err)
{
    AUTO(keyring) struct keyring *keyring = mem_alloc(sizeof(*keyring));
    AUTO(close) int lock = lock_folder(folder, name, err);
    struct key key;
    int r = lock < 0 ? -1 : keyring_read_file(keyring, folder, name, err);

    if (r < 0)
        return NULL;
    if (r == 0) {
        key = keyring_make_key(1);
        add_key(keyring, &key);
        if (keyring_write_file(keyring, folder, name, err) < 0)
            return NULL;
    }
    return TAKE_PTR(keyring);
}

/* Whether the file still has our keys, or is gone. */
static int check_unchanged(const struct keyring *keyring, int folder, const char *name,
                           struct error *err)
{
    AUTO(keyring) struct keyring *there = mem_alloc(sizeof(*there));
    int r = keyring_read_file(there, folder, name, err);

    if (r < 0)
        return -1;
    if (r > 0 && (there->count != keyring->count ||
                  memcmp(there->keys, keyring->keys, sizeof(there->keys)) != 0))
        return error_set(err, ERR_CONFLICT, 0,
                         "the key file '%s' was changed by somebody else: restart first", name);
    return 0;
}

static uint32_t highest_id(const struct keyring *keyring)
{
    uint32_t id = 0;

    for (size_t i = 0; i < keyring->count; i++)
        id = keyring->keys[i].id > id ? keyring->keys[i].id : id;
    return id;
}

int keyring_rotate(struct keyring *keyring, int folder, const char *name, struct error *err)
{
    AUTO(keyring) struct keyring *next = mem_alloc(sizeof(*next));
    AUTO(close) int lock = lock_folder(folder, name, err);
    uint32_t id = highest_id(keyring);
    struct key key;

    if (lock < 0 || check_unchanged(keyring, folder, name, err) < 0)
        return -1;
    if (keyring->count == KEYRING_KEYS_MAX || id == UINT32_MAX)
        return error_set(err, ERR_CONFLICT, 0,
                         "the key file '%s' has %d keys, as many as it may: remove the oldest "
                         "lines that no backup needs, and restart",
                         name, KEYRING_KEYS_MAX);
    key = keyring_make_key(id + 1);
    memcpy(next->keys, keyring->keys, sizeof(next->keys));
    next->count = keyring->count;
    add_key(next, &key);
    if (keyring_write_file(next, folder, name, err) < 0)
        return -1;
    add_key(keyring, &key); /* only now: nothing is sealed by a key that is not on disk */
    OPENSSL_cleanse(&key, sizeof(key));
    return 0;
}

/* --- sealing ---------------------------------------------------------------------------------- */

static void put_id(uint32_t id, uint8_t *out)
{
    for (int i = 0; i < KEY_ID_SIZE; i++)
        out[i] = (uint8_t) (id >> (8 * (KEY_ID_SIZE - 1 - i)));
}

static uint32_t get_id(const uint8_t *bytes)
{
    uint32_t id = 0;

    for (int i = 0; i < KEY_ID_SIZE; i++)
        id = id << 8 | bytes[i];
    return id;
}

/* The head is authenticated too: an old key's id cannot be put before a new key's value. */
static bool add_context(EVP_CIPHER_CTX *cipher, int sealing, const uint8_t *head,
                        const char *context)
{
    int ignored;

    return EVP_CipherInit_ex(cipher, NULL, NULL, NULL, head + 1 + KEY_ID_SIZE, sealing) == 1 &&
           EVP_CipherUpdate(cipher, NULL, &ignored, head, HEAD_SIZE) == 1 &&
           EVP_CipherUpdate(cipher, NULL, &ignored, (const uint8_t *) context,
                            (int) strlen(context)) == 1;
}

void keyring_seal(const struct keyring *keyring, const char *context, const void *bytes,
                  size_t length, struct text *out)
{
    const struct key *key = newest(keyring);
    uint8_t *head = (uint8_t *) text_reserve(out, length + KEYRING_SEAL_EXTRA);
    EVP_CIPHER_CTX *cipher;
    int done = 0, rest = 0;

    if (!head)
        return; /* the text says that it overflowed */
    head[0] = SEAL_VERSION;
    put_id(key->id, head + 1);
    random_bytes(head + 1 + KEY_ID_SIZE, NONCE_SIZE);
    cipher = EVP_CIPHER_CTX_new();
    if (!cipher || length > INT32_MAX ||
        EVP_CipherInit_ex(cipher, EVP_aes_256_gcm(), NULL, key->bytes, NULL, 1) != 1 ||
        !add_context(cipher, 1, head, context) ||
        (length && EVP_CipherUpdate(cipher, head + HEAD_SIZE, &done, bytes, (int) length) != 1) ||
        EVP_CipherFinal_ex(cipher, head + HEAD_SIZE + done, &rest) != 1 ||
        EVP_CIPHER_CTX_ctrl(cipher, EVP_CTRL_GCM_GET_TAG, TAG_SIZE, head + HEAD_SIZE + length) != 1)
        abort(); /* an OpenSSL without AES, or no memory: keeping it in the clear is no way out */
    EVP_CIPHER_CTX_free(cipher);
    text_commit(out, length + KEYRING_SEAL_EXTRA);
}

/* Returns whether the tag is right. `out` has room for `length` bytes. */
static bool decrypt(const struct key *key, const char *context, const uint8_t *head, size_t length,
                    uint8_t *out)
{
    EVP_CIPHER_CTX *cipher = EVP_CIPHER_CTX_new();
    int done = 0, rest = 0;
    bool good;

    if (!cipher)
        abort();
    good = EVP_CipherInit_ex(cipher, EVP_aes_256_gcm(), NULL, key->bytes, NULL, 0) == 1 &&
           add_context(cipher, 0, head, context) &&
           (!length || EVP_CipherUpdate(cipher, out, &done, head + HEAD_SIZE, (int) length) == 1) &&
           EVP_CIPHER_CTX_ctrl(cipher, EVP_CTRL_GCM_SET_TAG, TAG_SIZE,
                               (void *) (uintptr_t) (head + HEAD_SIZE + length)) == 1 &&
           EVP_CipherFinal_ex(cipher, out + done, &rest) == 1;
    EVP_CIPHER_CTX_free(cipher);
    return good;
}

static bool is_sealed(const void *sealed, size_t length)
{
    return length >= KEYRING_SEAL_EXTRA && length <= INT32_MAX &&
           *(const uint8_t *) sealed == SEAL_VERSION;
}

int keyring_unseal(const struct keyring *keyring, const char *context, const void *sealed,
                   size_t length, struct text *out, struct error *err)
{
    const uint8_t *head = sealed;
    const struct key *key;
    char *plain;

    if (!is_sealed(sealed, length))
        return error_set(err, ERR_INVALID, 0, "this is no sealed value");
    key = find_key(keyring, get_id(head + 1));
    if (!key)
        return error_set(err, ERR_INVALID, 0, "key %u, which sealed it, is not in the key file",
                         get_id(head + 1));
    plain = text_reserve(out, length - KEYRING_SEAL_EXTRA + 1);
    if (!plain)
        return error_set(err, ERR_TOO_LARGE, 0, "a sealed value is longer than expected");
    if (!decrypt(key, context, head, length - KEYRING_SEAL_EXTRA, (uint8_t *) plain))
        return error_set(err, ERR_INVALID, 0,
                         "a sealed value was changed, or belongs to another row");
    text_commit(out, length - KEYRING_SEAL_EXTRA);
    return 0;
}

bool keyring_is_current(const struct keyring *keyring, const void *sealed, size_t length)
{
    return is_sealed(sealed, length) && get_id((const uint8_t *) sealed + 1) == newest(keyring)->id;
}

void keyring_derive(const struct keyring *keyring, const char *purpose,
                    uint8_t ret_secret[static SHA256_SIZE])
{
    hash_hmac(keyring->keys[0].bytes, KEY_SIZE, purpose, strlen(purpose), ret_secret);
}
