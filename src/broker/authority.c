#include "broker/authority.h"

#include <arpa/inet.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/id.h"
#include "base/memory.h"
#include "base/text.h"

#define DAY_S        (INT64_C(24) * 3600)
#define CLOCK_SKEW_S 3600 /* clocks inside may be behind ours */
#define SERIAL_SIZE  16
#define NAMES_MAX    ((size_t) 256 * 1024)

AUTO_DEFINE_PTR(x509, X509, X509_free);
AUTO_DEFINE_PTR(evp_pkey, EVP_PKEY, EVP_PKEY_free);
AUTO_DEFINE_PTR(x509_extension, X509_EXTENSION, X509_EXTENSION_free);
AUTO_DEFINE_PTR(name_constraints, NAME_CONSTRAINTS, NAME_CONSTRAINTS_free);

struct broker_authority {
    X509 *certificate;                 /* owned */
    EVP_PKEY *key;                     /* owned */
    char *certificate_text, *key_text; /* owned */
};

void authority_free(struct broker_authority *authority)
{
    if (!authority)
        return;
    X509_free(authority->certificate);
    EVP_PKEY_free(authority->key);
    free(authority->certificate_text);
    if (authority->key_text)
        OPENSSL_cleanse(authority->key_text, strlen(authority->key_text));
    free(authority->key_text);
    free(authority);
}

/* The newest reason of OpenSSL; its queue is emptied. Never names key material. */
static int authority_failed(struct error *err, enum err_code code, const char *what)
{
    const char *reason = ERR_reason_error_string(ERR_peek_last_error());

    ERR_clear_error();
    return error_set(err, code, 0, "%s: %s", what, reason ? reason : "unknown reason");
}

/* --- certificates ----------------------------------------------------------------------------- */

static bool is_address(const char *host)
{
    unsigned char bytes[16];

    return inet_pton(AF_INET, host, bytes) == 1 || inet_pton(AF_INET6, host, bytes) == 1;
}

/* What may stand in OpenSSL's little language for extensions without meaning something there. */
static bool host_is_plain(const char *host)
{
    return *host && strlen(host) <= 253 &&
           strspn(host, "abcdefghijklmnopqrstuvwxyz0123456789-._:") == strlen(host) &&
           (is_address(host) || !strchr(host, ':'));
}

static bool extension_add(X509 *certificate, X509 *issuer, int kind, const char *value)
{
    X509V3_CTX context;
    AUTO(x509_extension) X509_EXTENSION *extension = NULL;

    X509V3_set_ctx(&context, issuer, certificate, NULL, NULL, 0);
    extension = X509V3_EXT_conf_nid(NULL, &context, kind, value);
    return extension && X509_add_ext(certificate, extension, -1) == 1;
}

static bool serial_set(X509 *certificate)
{
    uint8_t bytes[SERIAL_SIZE];
    BIGNUM *number;
    bool done;

    random_bytes(bytes, sizeof(bytes));
    bytes[0] = (uint8_t) ((bytes[0] & 0x7f) | 0x40); /* positive, and never short */
    number = BN_bin2bn(bytes, sizeof(bytes), NULL);
    done = number && BN_to_ASN1_INTEGER(number, X509_get_serialNumber(certificate));
    BN_free(number);
    return done;
}

static bool name_add(X509_NAME *name, const char *field, const char *value)
{
    return X509_NAME_add_entry_by_txt(name, field, MBSTRING_ASC, (const unsigned char *) value, -1,
                                      -1, 0) == 1;
}

/* A certificate with everything but its extensions and its signature. */
static X509 *certificate_new(EVP_PKEY *key, const char *common_name, int64_t from_s, int64_t to_s)
{
    AUTO(x509) X509 *certificate = X509_new();
    X509_NAME *subject = certificate ? X509_get_subject_name(certificate) : NULL;

    if (!certificate || X509_set_version(certificate, 2) != 1 || !serial_set(certificate) ||
        !ASN1_TIME_set(X509_getm_notBefore(certificate), (time_t) from_s) ||
        !ASN1_TIME_set(X509_getm_notAfter(certificate), (time_t) to_s) ||
        !name_add(subject, "O", "Burrow") || !name_add(subject, "CN", common_name) ||
        X509_set_pubkey(certificate, key) != 1)
        return NULL;
    return TAKE_PTR(certificate);
}

/* Permitted: the hosts. Excluded: addresses, when only names are hosts, because a constraint on
 * names says nothing of addresses. */
static bool constraints_add(X509 *certificate, const char *const *hosts, size_t count)
{
    AUTO(text) struct text value = TEXT_INIT(NAMES_MAX);
    bool has_name = false, has_address = false;

    text_append(&value, "critical");
    for (size_t i = 0; i < count; i++) {
        bool is_number = is_address(hosts[i]);

        text_format(&value,
                    is_number && strchr(hosts[i], ':')
                        ? ",permitted;IP:%s/ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff"
                    : is_number ? ",permitted;IP:%s/255.255.255.255"
                                : ",permitted;DNS:%s",
                    hosts[i]);
        has_name |= !is_number;
        has_address |= is_number;
    }
    if (!has_name)
        text_append(&value, ",permitted;DNS:burrow.invalid");
    if (!has_address)
        text_append(&value, ",excluded;IP:0.0.0.0/0.0.0.0,excluded;IP:::/::");
    return !value.overflowed &&
           extension_add(certificate, certificate, NID_name_constraints, text_string(&value));
}

static bool authority_extend(X509 *certificate, const char *const *hosts, size_t count)
{
    return extension_add(certificate, certificate, NID_basic_constraints,
                         "critical,CA:TRUE,pathlen:0") &&
           extension_add(certificate, certificate, NID_key_usage, "critical,keyCertSign") &&
           extension_add(certificate, certificate, NID_subject_key_identifier, "hash") &&
           constraints_add(certificate, hosts, count);
}

/* --- as text ---------------------------------------------------------------------------------- */

static char *bio_take(BIO *bio)
{
    char *bytes = NULL;
    long length = BIO_get_mem_data(bio, &bytes);
    char *copy = length > 0 ? mem_copy_bytes(bytes, (size_t) length) : NULL;

    BIO_free(bio); /* memory of a BIO is wiped when it goes */
    return copy;
}

static bool authority_write(struct broker_authority *authority)
{
    BIO *certificate = BIO_new(BIO_s_mem()), *key = BIO_new(BIO_s_secmem());

    if (certificate && key &&
        (PEM_write_bio_X509(certificate, authority->certificate) != 1 ||
         PEM_write_bio_PKCS8PrivateKey(key, authority->key, NULL, NULL, 0, NULL, NULL) != 1)) {
        BIO_free(certificate);
        BIO_free(key);
        return false;
    }
    authority->certificate_text = certificate ? bio_take(certificate) : NULL;
    authority->key_text = key ? bio_take(key) : NULL;
    return authority->certificate_text && authority->key_text;
}

/* --- making and loading ----------------------------------------------------------------------- */

struct broker_authority *authority_new(const char *const *hosts, size_t count, int64_t now_s,
                                       struct error *err)
{
    AUTO(authority) struct broker_authority *authority = mem_alloc(sizeof(*authority));

    for (size_t i = 0; i < count; i++) {
        if (!host_is_plain(hosts[i])) {
            (void) error_set(err, ERR_INVALID, 0,
                             "'%.64s' is no host that TLS can be ended for: name it exactly",
                             hosts[i]);
            return NULL;
        }
    }
    authority->key = EVP_EC_gen("P-256");
    if (authority->key)
        authority->certificate =
            certificate_new(authority->key, "Burrow sandbox authority", now_s - CLOCK_SKEW_S,
                            now_s + AUTHORITY_DAYS * DAY_S);
    if (!authority->certificate ||
        X509_set_issuer_name(authority->certificate,
                             X509_get_subject_name(authority->certificate)) != 1 ||
        !authority_extend(authority->certificate, hosts, count) ||
        X509_sign(authority->certificate, authority->key, EVP_sha256()) <= 0 ||
        !authority_write(authority)) {
        (void) authority_failed(err, ERR_INTERNAL, "make a certificate authority");
        return NULL;
    }
    return TAKE_PTR(authority);
}

static int no_password(char *buffer, int size, int is_writing, void *data)
{
    (void) buffer;
    (void) size;
    (void) is_writing;
    (void) data;
    return -1; /* OpenSSL would ask on the terminal */
}

struct broker_authority *authority_load(const char *certificate, const char *key, struct error *err)
{
    AUTO(authority) struct broker_authority *authority = mem_alloc(sizeof(*authority));
    BIO *certificate_bio = BIO_new_mem_buf(certificate, -1), *key_bio = BIO_new_mem_buf(key, -1);

    if (certificate_bio && key_bio) {
        authority->certificate = PEM_read_bio_X509(certificate_bio, NULL, no_password, NULL);
        authority->key = PEM_read_bio_PrivateKey(key_bio, NULL, no_password, NULL);
    }
    BIO_free(certificate_bio);
    BIO_free(key_bio);
    if (!authority->certificate || !authority->key ||
        X509_check_private_key(authority->certificate, authority->key) != 1 ||
        !authority_write(authority)) {
        (void) authority_failed(err, ERR_INVALID, "load a certificate authority");
        return NULL;
    }
    return TAKE_PTR(authority);
}

const char *authority_certificate(const struct broker_authority *authority)
{
    return authority->certificate_text;
}

const char *authority_key(const struct broker_authority *authority)
{
    return authority->key_text;
}

/* --- what it is good for ---------------------------------------------------------------------- */

static bool permits_name(const GENERAL_SUBTREE *subtree, const char *host)
{
    const ASN1_IA5STRING *name = subtree->base->d.dNSName;

    return subtree->base->type == GEN_DNS && (size_t) ASN1_STRING_length(name) == strlen(host) &&
           strncasecmp((const char *) ASN1_STRING_get0_data(name), host, strlen(host)) == 0;
}

static bool permits_address(const GENERAL_SUBTREE *subtree, const char *host)
{
    const ASN1_OCTET_STRING *range = subtree->base->d.iPAddress;
    unsigned char bytes[16];
    int size = inet_pton(AF_INET, host, bytes) == 1 ? 4 : inet_pton(AF_INET6, host, bytes) * 16;

    return subtree->base->type == GEN_IPADD && size > 0 && ASN1_STRING_length(range) == 2 * size &&
           memcmp(ASN1_STRING_get0_data(range), bytes, (size_t) size) == 0;
}

static bool constraints_permit(const NAME_CONSTRAINTS *constraints, const char *host)
{
    for (int i = 0; i < sk_GENERAL_SUBTREE_num(constraints->permittedSubtrees); i++) {
        const GENERAL_SUBTREE *subtree =
            sk_GENERAL_SUBTREE_value(constraints->permittedSubtrees, i);

        if (permits_name(subtree, host) || permits_address(subtree, host))
            return true;
    }
    return false;
}

static NAME_CONSTRAINTS *authority_constraints(const struct broker_authority *authority)
{
    return X509_get_ext_d2i(authority->certificate, NID_name_constraints, NULL, NULL);
}

bool authority_covers(const struct broker_authority *authority, const char *const *hosts,
                      size_t count, int64_t now_s)
{
    AUTO(name_constraints) NAME_CONSTRAINTS *constraints = authority_constraints(authority);
    time_t needed = (time_t) (now_s + AUTHORITY_LEFT_DAYS * DAY_S);

    if (!constraints || X509_cmp_time(X509_get0_notAfter(authority->certificate), &needed) <= 0)
        return false;
    for (size_t i = 0; i < count; i++) {
        if (!constraints_permit(constraints, hosts[i]))
            return false;
    }
    return true;
}

/* --- leaves ----------------------------------------------------------------------------------- */

static X509 *leaf_new(const struct broker_authority *authority, EVP_PKEY *key, const char *host,
                      int64_t now_s)
{
    AUTO(x509)
    X509 *leaf =
        certificate_new(key, "Burrow", now_s - CLOCK_SKEW_S, now_s + LEAF_HOURS * INT64_C(3600));
    AUTO(text) struct text name = TEXT_INIT(512);

    text_format(&name, "%s:%s", is_address(host) ? "IP" : "DNS", host);
    if (!leaf || X509_set_issuer_name(leaf, X509_get_subject_name(authority->certificate)) != 1 ||
        !extension_add(leaf, authority->certificate, NID_basic_constraints, "critical,CA:FALSE") ||
        !extension_add(leaf, authority->certificate, NID_key_usage, "critical,digitalSignature") ||
        !extension_add(leaf, authority->certificate, NID_ext_key_usage, "serverAuth") ||
        !extension_add(leaf, authority->certificate, NID_subject_alt_name, text_string(&name)) ||
        !extension_add(leaf, authority->certificate, NID_subject_key_identifier, "hash") ||
        !extension_add(leaf, authority->certificate, NID_authority_key_identifier,
                       "keyid:always") ||
        X509_sign(leaf, authority->key, EVP_sha256()) <= 0)
        return NULL;
    return TAKE_PTR(leaf);
}

struct tls_context *authority_issue(const struct broker_authority *authority, const char *host,
                                    int64_t now_s, struct error *err)
{
    AUTO(name_constraints) NAME_CONSTRAINTS *constraints = authority_constraints(authority);
    AUTO(evp_pkey) EVP_PKEY *key = NULL;
    AUTO(x509) X509 *leaf = NULL;

    if (!constraints || !host_is_plain(host) || !constraints_permit(constraints, host)) {
        (void) error_set(err, ERR_FORBIDDEN, 0,
                         "TLS of %.128s is not ended for this sandbox: it is not among the hosts "
                         "of its authority",
                         host);
        return NULL;
    }
    key = EVP_EC_gen("P-256");
    leaf = key ? leaf_new(authority, key, host, now_s) : NULL;
    if (!leaf) {
        (void) authority_failed(err, ERR_INTERNAL, "issue a certificate");
        return NULL;
    }
    return tls_context_server_of(leaf, key, err);
}
