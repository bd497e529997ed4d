#include <openssl/ssl.h>

#include "broker/broker_testing.h"
#include "broker/client_hello.h"

#define HELLO_SIZE ((size_t) 65536)

/* A hello of OpenSSL's for that name; NULL: none. Returns its length. */
static size_t hello_make(const char *name, uint8_t *ret_hello)
{
    SSL_CTX *context = SSL_CTX_new(TLS_client_method());
    SSL *ssl = SSL_new(context);
    BIO *in = BIO_new(BIO_s_mem()), *out = BIO_new(BIO_s_mem());
    int length;

    SSL_set_bio(ssl, in, out);
    SSL_set_connect_state(ssl);
    if (name)
        assert_int_equal(SSL_set_tlsext_host_name(ssl, name), 1);
    (void) SSL_do_handshake(ssl);
    length = BIO_read(out, ret_hello, (int) HELLO_SIZE);
    assert_true(length > 100);
    SSL_free(ssl);
    SSL_CTX_free(context);
    return (size_t) length;
}

static void the_name_is_found_once_all_of_it_is_there(void **state)
{
    uint8_t bytes[HELLO_SIZE];
    size_t length = hello_make("API.Example.COM", bytes);
    struct client_hello hello;

    (void) state;
    for (size_t part = 0; part < length; part++)
        assert_int_equal(client_hello_read(bytes, part, &hello), CLIENT_HELLO_NEEDS_MORE);
    assert_int_equal(client_hello_read(bytes, length, &hello), CLIENT_HELLO_READY);
    assert_string_equal(hello.host, "api.example.com");
    assert_false(hello.is_encrypted);
    memset(bytes + length, 'x', 4);
    assert_int_equal(client_hello_read(bytes, length + 4, &hello), CLIENT_HELLO_READY);
}

static void a_hello_without_a_name_has_none(void **state)
{
    uint8_t bytes[HELLO_SIZE];
    size_t length = hello_make(NULL, bytes);
    struct client_hello hello;

    (void) state;
    assert_int_equal(client_hello_read(bytes, length, &hello), CLIENT_HELLO_READY);
    assert_string_equal(hello.host, "");
}

/* The same message in records of at most `size` bytes. */
static size_t hello_split(const uint8_t *hello, size_t length, size_t size, uint8_t *ret_bytes)
{
    size_t used = 0;

    for (size_t at = 5; at < length; at += size) {
        size_t part = length - at < size ? length - at : size;

        ret_bytes[used++] = 22;
        ret_bytes[used++] = 3;
        ret_bytes[used++] = 1;
        ret_bytes[used++] = (uint8_t) (part >> 8);
        ret_bytes[used++] = (uint8_t) part;
        memcpy(ret_bytes + used, hello + at, part);
        used += part;
    }
    return used;
}

static void a_hello_in_several_records_is_the_same(void **state)
{
    uint8_t bytes[HELLO_SIZE], split[HELLO_SIZE];
    size_t length = hello_make("split.example", bytes);
    struct client_hello hello;

    (void) state;
    for (size_t size = 1; size < 100; size += 7) {
        size_t used = hello_split(bytes, length, size, split);

        assert_int_equal(client_hello_read(split, used, &hello), CLIENT_HELLO_READY);
        assert_string_equal(hello.host, "split.example");
    }
}

static void what_is_no_hello_is_told_from_what_is_broken(void **state)
{
    static const struct {
        const char *bytes;
        size_t length;
        enum client_hello_progress progress;
    } rows[] = {
        {"", 0, CLIENT_HELLO_NEEDS_MORE},
        {"GET / HTTP/1.1\r\n", 16, CLIENT_HELLO_NOT_TLS},
        {"SSH-2.0-x", 9, CLIENT_HELLO_NOT_TLS},
        {"\x15\x03\x01\0\x02\x01\0", 7, CLIENT_HELLO_NOT_TLS},
        {"\x16\x03\x01\0\x05\x02\0\0\x01\0", 10, CLIENT_HELLO_NOT_TLS}, /* a server's */
        {"\x16\x03\x01\0\0", 5, CLIENT_HELLO_BROKEN},
        {"\x16\x03\x01\x7f\xff", 5, CLIENT_HELLO_BROKEN},
        {"\x16\x03\x01\0\x04\x01\0\xff\xff", 9, CLIENT_HELLO_BROKEN},
        {"\x16\x03\x01\0\x06\x01\0\0\x02\x03\x03", 11, CLIENT_HELLO_BROKEN},
    };
    struct client_hello hello;

    (void) state;
    for (size_t i = 0; i < ARRAY_COUNT(rows); i++)
        assert_int_equal(client_hello_read(rows[i].bytes, rows[i].length, &hello),
                         rows[i].progress);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_name_is_found_once_all_of_it_is_there),
        cmocka_unit_test(a_hello_without_a_name_has_none),
        cmocka_unit_test(a_hello_in_several_records_is_the_same),
        cmocka_unit_test(what_is_no_hello_is_told_from_what_is_broken),
    };

    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
