#include "broker/client_hello.h"

#include <string.h>

#define RECORD_HANDSHAKE    22
#define RECORD_HEAD         5
#define HANDSHAKE_HEAD      4
#define MESSAGE_HELLO       1
#define RANDOM_SIZE         32
#define EXTENSION_SNI       0
#define EXTENSION_ECH       0xfe0d
#define EXTENSION_ECH_OUTER 0xfd00
#define SNI_HOST            0

/* Bytes that are read from the front; once too few are left it is broken, and stays so. */
struct hello_bytes {
    const uint8_t *at;
    size_t left;
    bool broken;
};

static uint32_t hello_number(struct hello_bytes *bytes, size_t size)
{
    uint32_t number = 0;

    if (bytes->left < size) {
        bytes->broken = true;
        bytes->left = 0;
        return 0;
    }
    for (size_t i = 0; i < size; i++)
        number = number << 8 | bytes->at[i];
    bytes->at += size;
    bytes->left -= size;
    return number;
}

static struct hello_bytes hello_take(struct hello_bytes *bytes, size_t length)
{
    struct hello_bytes part = {.at = bytes->at, .left = length};

    if (bytes->left < length) {
        bytes->broken = true;
        bytes->left = 0;
        part.left = 0;
        return part;
    }
    bytes->at += length;
    bytes->left -= length;
    return part;
}

/* One with a length of `size` bytes before it. */
static struct hello_bytes hello_vector(struct hello_bytes *bytes, size_t size)
{
    return hello_take(bytes, hello_number(bytes, size));
}

/* RFC 6066 3: a list, of which there is one name of each kind. */
static bool hello_read_sni(struct hello_bytes extension, struct client_hello *hello)
{
    struct hello_bytes list = hello_vector(&extension, 2);
    struct url_host host;

    while (list.left) {
        uint32_t kind = hello_number(&list, 1);
        struct hello_bytes name = hello_vector(&list, 2);

        if (kind != SNI_HOST || list.broken || *hello->host)
            return false;
        if (memchr(name.at, ':', name.left) || memchr(name.at, '\0', name.left) ||
            url_host_parse((const char *) name.at, name.left, &host, NULL) < 0 ||
            host.kind != URL_HOST_NAME)
            return false;
        memcpy(hello->host, host.name, sizeof(hello->host));
    }
    return !extension.broken && !list.broken && extension.left == 0 && *hello->host;
}

static bool hello_read_extensions(struct hello_bytes extensions, struct client_hello *hello)
{
    bool has_sni = false;

    while (extensions.left) {
        uint32_t kind = hello_number(&extensions, 2);
        struct hello_bytes extension = hello_vector(&extensions, 2);

        if (extensions.broken)
            return false;
        if (kind == EXTENSION_SNI && (has_sni || !hello_read_sni(extension, hello)))
            return false;
        has_sni |= kind == EXTENSION_SNI;
        hello->is_encrypted |= kind == EXTENSION_ECH || kind == EXTENSION_ECH_OUTER;
    }
    return true;
}

static bool hello_read_message(struct hello_bytes message, struct client_hello *hello)
{
    struct hello_bytes extensions;

    (void) hello_number(&message, 2);         /* version */
    (void) hello_take(&message, RANDOM_SIZE); /* random */
    (void) hello_vector(&message, 1);         /* session */
    (void) hello_vector(&message, 2);         /* ciphers */
    (void) hello_vector(&message, 1);         /* compression */
    if (message.broken || !message.left)
        return !message.broken; /* older than extensions: no name */
    extensions = hello_vector(&message, 2);
    return !message.broken && !message.left && hello_read_extensions(extensions, hello);
}

/* Join what records carry of the first message. Returns how it went; `ret_length` of them are at
 * `joined`, the head of the message included. */
static enum client_hello_progress hello_join(struct hello_bytes bytes, uint8_t *joined,
                                             size_t *ret_length)
{
    size_t length = 0, wanted = HANDSHAKE_HEAD;

    while (bytes.left >= RECORD_HEAD) {
        struct hello_bytes record;
        size_t part;

        if (bytes.at[0] != RECORD_HANDSHAKE || bytes.at[1] != 3)
            return length ? CLIENT_HELLO_BROKEN : CLIENT_HELLO_NOT_TLS;
        (void) hello_number(&bytes, 3);
        part = hello_number(&bytes, 2);
        if (!part || length + part > CLIENT_HELLO_MAX)
            return CLIENT_HELLO_BROKEN;
        record =
            (struct hello_bytes){.at = bytes.at, .left = part < bytes.left ? part : bytes.left};
        memcpy(joined + length, record.at, record.left);
        length += record.left;
        (void) hello_take(&bytes, record.left);
        if (length && joined[0] != MESSAGE_HELLO)
            return CLIENT_HELLO_NOT_TLS;
        if (length >= HANDSHAKE_HEAD)
            wanted =
                HANDSHAKE_HEAD + ((size_t) joined[1] << 16 | (size_t) joined[2] << 8 | joined[3]);
        if (wanted > CLIENT_HELLO_MAX)
            return CLIENT_HELLO_BROKEN;
        if (length >= wanted) {
            *ret_length = wanted;
            return CLIENT_HELLO_READY;
        }
        if (record.left < part)
            return CLIENT_HELLO_NEEDS_MORE;
    }
    return CLIENT_HELLO_NEEDS_MORE;
}

enum client_hello_progress client_hello_read(const void *bytes, size_t length,
                                             struct client_hello *ret_hello)
{
    struct hello_bytes all = {.at = bytes, .left = length};
    uint8_t joined[CLIENT_HELLO_MAX];
    struct client_hello hello = {.host = ""};
    enum client_hello_progress progress;
    size_t joined_length = 0;

    if (length && all.at[0] != RECORD_HANDSHAKE)
        return CLIENT_HELLO_NOT_TLS;
    progress = hello_join(all, joined, &joined_length);
    if (progress == CLIENT_HELLO_NEEDS_MORE && length > CLIENT_HELLO_MAX)
        return CLIENT_HELLO_BROKEN;
    if (progress != CLIENT_HELLO_READY)
        return progress;
    if (!hello_read_message((struct hello_bytes){.at = joined + HANDSHAKE_HEAD,
                                                 .left = joined_length - HANDSHAKE_HEAD},
                            &hello))
        return CLIENT_HELLO_BROKEN;
    *ret_hello = hello;
    return CLIENT_HELLO_READY;
}
