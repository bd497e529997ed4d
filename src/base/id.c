#include "base/id.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

static const char alphabet[] = "abcdefghijklmnopqrstuvwxyz234567";

void random_bytes(void *bytes, size_t count)
{
    char *at = bytes;

    while (count) {
        ssize_t got = getrandom(at, count, 0);

        if (got < 0 && errno != EINTR) {
            (void) fprintf(stderr, "burrow: no random numbers: %s\n", strerror(errno));
            abort();
        }
        if (got > 0) {
            at += got;
            count -= (size_t) got;
        }
    }
}

struct id id_new(void)
{
    uint8_t bytes[ID_RANDOM_SIZE];

    random_bytes(bytes, sizeof(bytes));
    return id_from_bytes(bytes);
}

struct id id_from_bytes(const uint8_t bytes[static ID_RANDOM_SIZE])
{
    struct id id = {.text = ""};
    unsigned int window = 0; /* the bits not yet written are its lowest `bits` */
    int bits = 0, used = 0;

    for (int i = 0; i < ID_LENGTH; i++) {
        if (bits < 5) {
            /* 26 characters hold 130 bits, the bytes 128: the last two are 0. */
            window = window << 8 | (used < ID_RANDOM_SIZE ? bytes[used++] : 0);
            bits += 8;
        }
        bits -= 5;
        id.text[i] = alphabet[window >> bits & 31];
    }
    return id;
}

bool id_is_valid(const char *text)
{
    size_t length = strspn(text, alphabet);

    /* The values of the last character are multiples of four: a, e, i, m, q, u, y, 4. */
    return length == ID_LENGTH && text[length] == '\0' && strchr("aeimquy4", text[ID_LENGTH - 1]);
}
