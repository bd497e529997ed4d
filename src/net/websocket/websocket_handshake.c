#include "net/websocket/websocket_handshake.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/encoding/encode.h"
#include "base/encoding/sha1.h"
#include "base/id.h"

#define KEY_BYTES 16
/* Proves that the answer comes from something that knows WebSocket, nothing more. */
#define GUID "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"

#define BASE64_ALPHABET "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
#define BLANKS          " \t"

/* --- lists of tokens ------------------------------------------------------------------------- */

/* The next item of a comma-separated list, without the blanks around it, moving `*list` behind it.
 * Returns false at the end of the list. */
static bool next_item(const char **list, const char **ret_item, size_t *ret_length)
{
    const char *item, *end;

    if (!*list)
        return false;
    item = *list + strspn(*list, BLANKS);
    end = item + strcspn(item, ",");
    *list = *end ? end + 1 : NULL;
    while (end > item && strchr(BLANKS, end[-1]))
        end--;
    *ret_item = item;
    *ret_length = (size_t) (end - item);
    return true;
}

static bool list_has(const char *list, const char *token)
{
    const char *item;
    size_t length;

    while (next_item(&list, &item, &length)) {
        if (length == strlen(token) && strncasecmp(item, token, length) == 0)
            return true;
    }
    return false;
}

/* --- keys ------------------------------------------------------------------------------------ */

static void make_accept(const char *key, char ret_accept[static WEBSOCKET_HANDSHAKE_ACCEPT_SIZE])
{
    uint8_t digest[SHA1_SIZE];
    char input[WEBSOCKET_HANDSHAKE_KEY_SIZE + sizeof(GUID)];
    int length = snprintf(input, sizeof(input), "%.24s%s", key, GUID);

    sha1_bytes(input, (size_t) length, digest);
    (void) base64_encode(BASE64_STANDARD, digest, sizeof(digest), ret_accept);
}

/* Exactly 16 bytes in base64: 22 characters, of which the last holds only two bits (A, Q, g or w),
 * and the padding. */
static bool key_is_valid(const char *key)
{
    return strlen(key) == WEBSOCKET_HANDSHAKE_KEY_SIZE - 1 && strspn(key, BASE64_ALPHABET) == 22 &&
           strchr("AQgw", key[21]) && strcmp(key + 22, "==") == 0;
}

void websocket_handshake_key(char ret_key[static WEBSOCKET_HANDSHAKE_KEY_SIZE])
{
    unsigned char bytes[KEY_BYTES];

    random_bytes(bytes, sizeof(bytes));
    (void) base64_encode(BASE64_STANDARD, bytes, sizeof(bytes), ret_key);
}

/* --- server ---------------------------------------------------------------------------------- */

int websocket_upgrade_check(const struct websocket_upgrade *request,
                            char ret_accept[static WEBSOCKET_HANDSHAKE_ACCEPT_SIZE],
                            struct error *err)
{
    if (strcmp(request->method, "GET") != 0)
        return error_set(err, ERR_METHOD, 0, "a WebSocket begins with GET");
    if (request->http_major < 1 || (request->http_major == 1 && request->http_minor < 1))
        return error_set(err, ERR_HTTP_VERSION, 0, "a WebSocket needs HTTP/1.1");
    if (!list_has(request->upgrade, "websocket"))
        return error_set(err, ERR_UPGRADE_REQUIRED, 0, "this is a WebSocket: Upgrade must name it");
    if (!list_has(request->connection, "upgrade"))
        return error_set(err, ERR_UPGRADE_REQUIRED, 0,
                         "this is a WebSocket: Connection must name Upgrade");
    if (!request->version || strcmp(request->version, WEBSOCKET_VERSION) != 0)
        return error_set(err, ERR_UPGRADE_REQUIRED, 0,
                         "Sec-WebSocket-Version must be " WEBSOCKET_VERSION);
    if (!request->key || !key_is_valid(request->key))
        return error_set(err, ERR_INVALID, 0, "Sec-WebSocket-Key must be 16 bytes in base64");
    make_accept(request->key, ret_accept);
    return 0;
}

/* --- client ---------------------------------------------------------------------------------- */

int websocket_answer_check(const struct websocket_answer *answer, const char *key,
                           struct error *err)
{
    char accept[WEBSOCKET_HANDSHAKE_ACCEPT_SIZE];

    make_accept(key, accept);
    if (answer->status != 101)
        return error_set(err, ERR_UPSTREAM, 0,
                         "the server answered %d instead of switching to "
                         "WebSocket",
                         answer->status);
    if (!answer->upgrade || strcasecmp(answer->upgrade, "websocket") != 0)
        return error_set(err, ERR_UPSTREAM, 0, "the server switched to something else");
    if (!list_has(answer->connection, "upgrade"))
        return error_set(err, ERR_UPSTREAM, 0, "the server's Connection does not name Upgrade");
    if (!answer->accept || strcmp(answer->accept, accept) != 0)
        return error_set(err, ERR_UPSTREAM, 0, "the server's Sec-WebSocket-Accept is wrong");
    if (answer->extensions && *answer->extensions)
        return error_set(err, ERR_UPSTREAM, 0, "the server uses an extension nobody offered");
    if (answer->protocol)
        return error_set(err, ERR_UPSTREAM, 0, "the server chose a subprotocol nobody offered");
    return 0;
}
