/* Any key file is read or refused, and one that was read is written and read the same again. Any
 * bytes seal and open; any other bytes do not open. */
#include "store/keyring.c"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(bool holds)
{
    if (!holds)
        abort();
}

static void check_file(const char *data, size_t size)
{
    AUTO(keyring) struct keyring *keyring = mem_alloc(sizeof(*keyring));
    AUTO(keyring) struct keyring *again = mem_alloc(sizeof(*again));
    AUTO(text) struct text text = TEXT_INIT(FILE_MAX);
    struct error err = ERROR_INIT;

    if (parse_file(keyring, data, size, "keys", &err) < 0) {
        must(err.code == ERR_INVALID);
        return;
    }
    must(keyring->count >= 1 && keyring->count <= KEYRING_KEYS_MAX);
    format_file(keyring, &text);
    must(!text.overflowed);
    must(parse_file(again, text.data, text.length, "keys", &err) == 0);
    must(again->count == keyring->count &&
         memcmp(again->keys, keyring->keys, sizeof(again->keys)) == 0);
}

static void check_sealed(const char *data, size_t size)
{
    AUTO(keyring) struct keyring *keyring = keyring_new();
    AUTO(text) struct text sealed = TEXT_INIT(size + KEYRING_SEAL_EXTRA);
    AUTO(text) struct text plain = TEXT_INIT(size + 1);
    struct error err = ERROR_INIT;

    must(keyring_unseal(keyring, "c", data, size, &plain, &err) < 0 && plain.length == 0);
    keyring_seal(keyring, "c", data, size, &sealed);
    must(sealed.length == size + KEYRING_SEAL_EXTRA);
    must(keyring_unseal(keyring, "c", sealed.data, sealed.length, &plain, &err) == 0);
    must(plain.length == size && memcmp(text_string(&plain), data, size) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 1 || size > 4096)
        return 0;
    if (data[0] == 's')
        check_sealed((const char *) data + 1, size - 1);
    else
        check_file((const char *) data, size);
    return 0;
}
