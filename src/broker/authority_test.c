#include <arpa/inet.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>

#include "base/clock.h"
#include "broker/authority.h"
#include "broker/broker_testing.h"

static const char *const hosts[] = {"api.one.test", "two.test", "10.1.2.3"};

static int64_t now_s(void)
{
    return clock_wall_ms(clock_system()) / 1000;
}

/* Shake hands in memory, as a client that trusts `authority` and wants `host`. Returns 0, or what
 * OpenSSL's verification says. */
static long shake(const struct broker_authority *authority, struct tls_context *server_context,
                  const char *host)
{
    SSL_CTX *client_context = SSL_CTX_new(TLS_client_method());
    BIO *pem = BIO_new_mem_buf(authority_certificate(authority), -1);
    X509 *trusted = PEM_read_bio_X509(pem, NULL, NULL, NULL);
    SSL *client = SSL_new(client_context), *server = SSL_new(server_context->ssl);
    BIO *client_bio = NULL, *server_bio = NULL;
    unsigned char address[4];
    long result;

    assert_int_equal(BIO_new_bio_pair(&client_bio, 0, &server_bio, 0), 1);
    assert_int_equal(X509_STORE_add_cert(SSL_CTX_get_cert_store(client_context), trusted), 1);
    SSL_set_bio(client, client_bio, client_bio);
    SSL_set_bio(server, server_bio, server_bio);
    SSL_set_connect_state(client);
    SSL_set_accept_state(server);
    SSL_set_verify(client, SSL_VERIFY_PEER, NULL);
    if (inet_pton(AF_INET, host, address) == 1)
        assert_int_equal(X509_VERIFY_PARAM_set1_ip_asc(SSL_get0_param(client), host), 1);
    else
        assert_int_equal(SSL_set1_host(client, host), 1);
    X509_VERIFY_PARAM_set_flags(SSL_get0_param(client), X509_V_FLAG_X509_STRICT);
    for (int i = 0; i < 10; i++) {
        (void) SSL_do_handshake(client);
        (void) SSL_do_handshake(server);
    }
    result = SSL_is_init_finished(client) ? 0 : SSL_get_verify_result(client);
    ERR_clear_error();
    SSL_free(client);
    SSL_free(server);
    X509_free(trusted);
    BIO_free(pem);
    SSL_CTX_free(client_context);
    return result;
}

static void a_strict_client_takes_leaves_for_its_hosts(void **state)
{
    AUTO(authority) struct broker_authority *authority = authority_new(hosts, 3, now_s(), NULL);

    (void) state;
    assert_non_null(authority);
    for (size_t i = 0; i < ARRAY_COUNT(hosts); i++) {
        struct error error = ERROR_INIT;
        AUTO(tls_context)
        struct tls_context *leaf = authority_issue(authority, hosts[i], now_s(), &error);

        assert_non_null(leaf);
        assert_int_equal(shake(authority, leaf, hosts[i]), 0);
        assert_int_not_equal(shake(authority, leaf, "other.test"), 0);
    }
}

static void no_leaf_is_issued_for_another_host(void **state)
{
    static const char *const others[] = {"other.test",
                                         "one.test",
                                         "a.api.one.test",
                                         "10.1.2.4",
                                         "api.one.test.evil",
                                         "two.test,DNS:evil.test",
                                         "*.test",
                                         ""};
    AUTO(authority) struct broker_authority *authority = authority_new(hosts, 3, now_s(), NULL);

    (void) state;
    for (size_t i = 0; i < ARRAY_COUNT(others); i++) {
        struct error error = ERROR_INIT;

        assert_null(authority_issue(authority, others[i], now_s(), &error));
        assert_int_equal(error.code, ERR_FORBIDDEN);
    }
}

/* What a stolen key could do: a leaf of ours, signed by an authority for other hosts. */
static void clients_refuse_what_the_constraints_do_not_name(void **state)
{
    static const char *const narrow[] = {"narrow.test"};
    static const char *const wide[] = {"narrow.test", "evil.test", "10.9.9.9"};
    AUTO(authority) struct broker_authority *small = authority_new(narrow, 1, now_s(), NULL);
    AUTO(authority) struct broker_authority *big = authority_new(wide, 3, now_s(), NULL);
    AUTO(authority) struct broker_authority *forged = NULL;
    AUTO(tls_context) struct tls_context *leaf = NULL;

    (void) state;
    /* The same key with other names: a client that trusts `small` sees through it. */
    assert_null(authority_load(authority_certificate(big), authority_key(small), NULL));
    forged = authority_load(authority_certificate(big), authority_key(big), NULL);
    assert_non_null(forged);
    leaf = authority_issue(forged, "evil.test", now_s(), NULL);
    assert_non_null(leaf);
    assert_int_not_equal(shake(small, leaf, "evil.test"), 0);
}

static void it_can_be_kept_and_loaded(void **state)
{
    static const char *const fewer[] = {"two.test"}, *const others[] = {"two.test", "three.test"};
    AUTO(authority) struct broker_authority *made = authority_new(hosts, 3, now_s(), NULL);
    AUTO(authority)
    struct broker_authority *kept =
        authority_load(authority_certificate(made), authority_key(made), NULL);

    (void) state;
    assert_non_null(kept);
    assert_string_equal(authority_certificate(kept), authority_certificate(made));
    assert_true(authority_covers(kept, hosts, 3, now_s()));
    assert_true(authority_covers(kept, fewer, 1, now_s()));
    assert_false(authority_covers(kept, others, 2, now_s()));
    assert_false(authority_covers(kept, hosts, 3,
                                  now_s() + (AUTHORITY_DAYS - AUTHORITY_LEFT_DAYS) * 86400 + 60));
}

static void what_is_no_authority_is_refused(void **state)
{
    static const char *const bad[] = {"*.example.test", "a,DNS:b", "a b", "UPPER", "", "a:b"};
    struct error error = ERROR_INIT;

    (void) state;
    for (size_t i = 0; i < ARRAY_COUNT(bad); i++) {
        assert_null(authority_new(&bad[i], 1, now_s(), &error));
        assert_int_equal(error.code, ERR_INVALID);
    }
    assert_null(authority_load("", "", &error));
    assert_int_equal(error.code, ERR_INVALID);
    assert_null(strstr(error.message, "KEY"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_strict_client_takes_leaves_for_its_hosts),
        cmocka_unit_test(no_leaf_is_issued_for_another_host),
        cmocka_unit_test(clients_refuse_what_the_constraints_do_not_name),
        cmocka_unit_test(it_can_be_kept_and_loaded),
        cmocka_unit_test(what_is_no_authority_is_refused),
    };

    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
