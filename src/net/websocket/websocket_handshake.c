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
/* RFC 9110, section 5.6.2. */
#define TOKEN_CHARACTERS                                                                           \
    "!#$%&'*+-.^_`|~0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
#define BLANKS " \t"

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

/* Subprotocol names are compared exactly: the RFC gives them case. */
static const char *find_protocol(const struct websocket_protocols *protocols, const char *name,
                                 size_t length)
{
    for (size_t i = 0; i < protocols->count; i++) {
        const char *own = protocols->names[i];

        if (strlen(own) == length && memcmp(own, name, length) == 0)
            return own;
    }
    return NULL;
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

static int choose_protocol(const char *wanted, const struct websocket_protocols *ours,
                           const char **ret_protocol, struct error *err)
{
    const char *chosen = NULL, *item;
    size_t length;

    while (next_item(&wanted, &item, &length)) {
        if (length == 0 || strspn(item, TOKEN_CHARACTERS) < length)
            return error_set(err, ERR_INVALID, 0, "Sec-WebSocket-Protocol is not a list of tokens");
        if (!chosen)
            chosen = find_protocol(ours, item, length);
    }
    *ret_protocol = chosen;
    return 0;
}

int websocket_upgrade_check(const struct websocket_upgrade *request,
                            const struct websocket_protocols *ours,
                            struct websocket_acceptance *ret_acceptance, struct error *err)
{
    const char *protocol = NULL;

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
    if (choose_protocol(request->protocol, ours, &protocol, err) < 0)
        return -1;
    make_accept(request->key, ret_acceptance->accept);
    ret_acceptance->protocol = protocol;
    return 0;
}

/* --- client ---------------------------------------------------------------------------------- */

int websocket_answer_check(const struct websocket_answer *answer, const char *key,
                           const struct websocket_protocols *offered, const char **ret_protocol,
                           struct error *err)
{
    char accept[WEBSOCKET_HANDSHAKE_ACCEPT_SIZE];
    const char *protocol = NULL;

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
    if (answer->protocol) {
        protocol = find_protocol(offered, answer->protocol, strlen(answer->protocol));
        if (!protocol)
            return error_set(err, ERR_UPSTREAM, 0, "the server chose a subprotocol nobody offered");
    }
    *ret_protocol = protocol;
    return 0;
}
