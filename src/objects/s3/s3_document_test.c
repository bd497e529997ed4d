#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
/* After the headers it needs. */
#include <cmocka.h>

#include "objects/s3/s3_document.h"
#include "objects/s3/s3_xml.h"

/* --- XML ---------------------------------------------------------------------------------------
 */

static void note_open(void *context, const char *parent, const char *name)
{
    text_format(context, "(%s>%s ", parent, name);
}

static void note_close(void *context, const char *parent, const char *name, const char *text)
{
    text_format(context, "%s>%s=%s) ", parent, name, text);
}

static const struct s3_xml_events notes = {.on_open = note_open, .on_close = note_close};

static void expect_events(const char *document, const char *events)
{
    AUTO(text) struct text seen = TEXT_INIT(4096);
    struct error err = ERROR_INIT;

    if (s3_xml_read(document, strlen(document), &notes, &seen, &err) < 0)
        fail_msg("%s: %s", document, err.message);
    assert_string_equal(text_string(&seen), events);
}

static void elements_and_their_text_are_told(void **state)
{
    (void) state;
    expect_events("<a><b>x</b> <b/></a>", "(>a (a>b a>b=x) (a>b a>b=) >a=) ");
    expect_events(
        "\xef\xbb\xbf<?xml version='1.0'?>\n<!-- <c> -->\n<s3:a xmlns:s3=\"u>v\">t</s3:a >\n",
        "(>a >a=t) ");
    expect_events("<a>&lt;&amp;&gt;&quot;&apos;&#65;&#x42;&#xe4;&#x20AC;&#x1F407;</a>",
                  "(>a >a=<&>\"'AB\xc3\xa4\xe2\x82\xac\xf0\x9f\x90\x87) ");
    expect_events("<a>1<![CDATA[<&]>]]>2</a>", "(>a >a=1<&]>2) ");
    expect_events("<a b='\"/>' c=\"'\"/>", "(>a >a=) ");
}

static void expect_broken(const char *document, size_t length)
{
    AUTO(text) struct text seen = TEXT_INIT(65536);
    struct error err = ERROR_INIT;

    if (s3_xml_read(document, length, &notes, &seen, &err) == 0)
        fail_msg("taken: %s", document);
    assert_int_equal(err.code, ERR_UPSTREAM);
}

static void expect_depth(size_t depth, bool is_fine)
{
    AUTO(text) struct text document = TEXT_INIT(4096), seen = TEXT_INIT(4096);

    for (size_t i = 0; i < depth; i++)
        text_append(&document, "<a>");
    for (size_t i = 0; i < depth; i++)
        text_append(&document, "</a>");
    assert_int_equal(s3_xml_read(document.data, document.length, &notes, &seen, NULL),
                     is_fine ? 0 : -1);
}

static void everything_else_is_refused(void **state)
{
    static const char *const broken[] = {
        "",
        "   ",
        "text",
        "<a>",
        "<a></b>",
        "</a>",
        "<a/><b/>",
        "<a/>text",
        "<a/>&amp;",
        "<![CDATA[x]]><a/>",
        "<!DOCTYPE a [<!ENTITY x \"y\">]><a>&x;</a>",
        "<a>&x;</a>",
        "<a>&amp</a>",
        "<a>&#0;</a>",
        "<a>&#xD800;</a>",
        "<a>&#x110000;</a>",
        "<a>&#99999999999;</a>",
        "<a>&#;</a>",
        "<a>&#x;</a>",
        "<a>&#1a;</a>",
        "<a <b/></a>",
        "<a b='></a>",
        "<>x</>",
        "<a><!-- x</a>",
        "<a><![CDATA[x]]</a>",
        "<a>\xff</a>",
        "<a>x</a",
        "<?xml <a/>",
        "<1234567890123456789012345678901234567890123456789012345678901234567890/>",
    };

    (void) state;
    for (size_t i = 0; i < ARRAY_COUNT(broken); i++)
        expect_broken(broken[i], strlen(broken[i]));
    expect_broken("<a>\0</a>", 8);
    expect_depth(S3_XML_DEPTH_MAX, true);
    expect_depth(S3_XML_DEPTH_MAX + 1, false);
}

/* --- documents ---------------------------------------------------------------------------------
 */

static const char aws_list[] =
    "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
    "<ListBucketResult xmlns=\"http://s3.amazonaws.com/doc/2006-03-01/\"><Name>quotes</Name>"
    "<Prefix>N</Prefix><KeyCount>2</KeyCount><MaxKeys>1000</MaxKeys>"
    "<EncodingType>url</EncodingType><IsTruncated>true</IsTruncated>"
    "<Contents><Key>Ne+p%2Btune</Key><LastModified>2011-02-26T01:56:20.000Z</LastModified>"
    "<ETag>&quot;bf1d737a4d46a19f3bced6905cc8b902&quot;</ETag><Size>142863</Size>"
    "<Owner><ID>x</ID><DisplayName>Key</DisplayName></Owner><StorageClass>STANDARD</StorageClass>"
    "</Contents><Contents><Key>N</Key><LastModified>2011-02-26T01:56:20Z</LastModified>"
    "<Size>0</Size></Contents><CommonPrefixes><Prefix>Nasa/</Prefix></CommonPrefixes>"
    "</ListBucketResult>";

static void a_list_is_read(void **state)
{
    AUTO(pool) struct pool pool = POOL_INIT;
    struct error err = ERROR_INIT;
    struct s3_listing listing;

    (void) state;
    assert_int_equal(s3_document_listing(aws_list, strlen(aws_list), &pool, &listing, &err), 0);
    assert_true(listing.is_truncated);
    assert_int_equal(listing.count, 3);
    assert_string_equal(listing.entries[0].key, "Ne p+tune");
    assert_string_equal(listing.entries[0].tag, "bf1d737a4d46a19f3bced6905cc8b902");
    assert_int_equal(listing.entries[0].size, 142863);
    assert_int_equal(listing.entries[0].modified_ms, 1298685380000);
    assert_int_equal(listing.entries[1].modified_ms, 1298685380000);
    assert_string_equal(listing.entries[1].tag, ""); /* nothing of the one before */
    assert_false(listing.entries[1].is_folder);
    assert_string_equal(listing.entries[2].key, "Nasa/");
    assert_true(listing.entries[2].is_folder);
}

static void a_list_without_escapes_is_taken_as_it_is(void **state)
{
    static const char list[] = "<ListBucketResult><Contents><Key>a+b%41</Key><Size>1</Size>"
                               "</Contents></ListBucketResult>";
    AUTO(pool) struct pool pool = POOL_INIT;
    struct error err = ERROR_INIT;
    struct s3_listing listing;

    (void) state;
    assert_int_equal(s3_document_listing(list, strlen(list), &pool, &listing, &err), 0);
    assert_false(listing.is_truncated);
    assert_string_equal(listing.entries[0].key, "a+b%41");
}

static void too_many_entries_are_refused(void **state)
{
    AUTO(text) struct text list = TEXT_INIT((size_t) 1024 * 1024);
    AUTO(pool) struct pool pool = POOL_INIT;
    struct error err = ERROR_INIT;
    struct s3_listing listing;

    (void) state;
    text_append(&list, "<ListBucketResult>");
    for (int i = 0; i <= S3_ENTRIES_MAX; i++)
        text_append(&list, "<Contents><Key>k</Key></Contents>");
    text_append(&list, "</ListBucketResult>");
    assert_int_equal(s3_document_listing(list.data, list.length, &pool, &listing, &err), -1);
    assert_int_equal(err.code, ERR_UPSTREAM);
}

static void a_failure_is_read(void **state)
{
    static const char failure[] =
        "<Error><Code>RequestTimeTooSkewed</Code><Message>The difference</Message>"
        "<RequestTime>20261116T100000Z</RequestTime><ServerTime>2026-11-16T11:00:00Z</ServerTime>"
        "<Region>eu-west-1</Region></Error>";
    AUTO(pool) struct pool pool = POOL_INIT;
    struct s3_failure read;

    (void) state;
    assert_int_equal(s3_document_failure(failure, strlen(failure), &pool, &read, NULL), 0);
    assert_string_equal(read.code, "RequestTimeTooSkewed");
    assert_string_equal(read.server_time, "2026-11-16T11:00:00Z");
    assert_string_equal(read.region, "eu-west-1");
    assert_string_equal(read.endpoint, "");
    assert_true(s3_document_is_failure(failure, strlen(failure)));
    assert_false(s3_document_is_failure(aws_list, strlen(aws_list)));
}

static void answers_of_uploads_and_copies_are_read(void **state)
{
    static const char begun[] = "<InitiateMultipartUploadResult><Bucket>b</Bucket><Key>k</Key>"
                                "<UploadId>VXB</UploadId></InitiateMultipartUploadResult>";
    static const char no_id[] = "<InitiateMultipartUploadResult/>";
    static const char copied[] = "<CopyObjectResult><ETag>\"9b2\"</ETag><LastModified>"
                                 "2009-10-12T17:50:30.000Z</LastModified></CopyObjectResult>";
    static const char no_tag[] = "<CopyObjectResult/>";
    AUTO(pool) struct pool pool = POOL_INIT;
    struct error err = ERROR_INIT;
    const char *text;
    int64_t when;

    (void) state;
    assert_int_equal(s3_document_upload_id(begun, strlen(begun), &pool, &text, &err), 0);
    assert_string_equal(text, "VXB");
    assert_int_equal(s3_document_upload_id(no_id, strlen(no_id), &pool, &text, &err), -1);
    assert_int_equal(s3_document_upload_id(copied, strlen(copied), &pool, &text, &err), -1);
    assert_int_equal(s3_document_tag(copied, strlen(copied), &pool, &text, &when, &err), 0);
    assert_string_equal(text, "9b2");
    assert_int_equal(when, 1255369830000);
    assert_int_equal(s3_document_tag(no_tag, strlen(no_tag), &pool, &text, &when, &err), -1);
}

static void uploads_are_read(void **state)
{
    static const char list[] =
        "<ListMultipartUploadsResult><Upload><Key>a</Key><UploadId>1</UploadId>"
        "<Initiated>2010-11-10T20:48:33.000Z</Initiated></Upload><Upload><Key>b</Key>"
        "<UploadId>2</UploadId></Upload></ListMultipartUploadsResult>";
    AUTO(pool) struct pool pool = POOL_INIT;
    struct s3_uploads uploads;

    (void) state;
    assert_int_equal(s3_document_uploads(list, strlen(list), &pool, &uploads, NULL), 0);
    assert_int_equal(uploads.count, 2);
    assert_string_equal(uploads.uploads[0].key, "a");
    assert_int_equal(uploads.uploads[0].started_ms, 1289422113000);
    assert_int_equal(uploads.uploads[1].started_ms, 0);
}

static void what_is_written_is_read_again(void **state)
{
    AUTO(text) struct text document = TEXT_INIT(1024), seen = TEXT_INIT(1024);

    (void) state;
    text_append(&document, "<a>");
    s3_document_escape(&document, "x<y>&z]]>\"'");
    text_append(&document, "</a>");
    assert_int_equal(s3_xml_read(document.data, document.length, &notes, &seen, NULL), 0);
    assert_string_equal(text_string(&seen), "(>a >a=x<y>&z]]>\"') ");
    assert_true(s3_document_can_hold("a b\xc3\xa4"));
    assert_false(s3_document_can_hold("a\nb"));
    assert_false(s3_document_can_hold("a\xef\xbf\xbf"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(elements_and_their_text_are_told),
        cmocka_unit_test(everything_else_is_refused),
        cmocka_unit_test(a_list_is_read),
        cmocka_unit_test(a_list_without_escapes_is_taken_as_it_is),
        cmocka_unit_test(too_many_entries_are_refused),
        cmocka_unit_test(a_failure_is_read),
        cmocka_unit_test(answers_of_uploads_and_copies_are_read),
        cmocka_unit_test(uploads_are_read),
        cmocka_unit_test(what_is_written_is_read_again),
    };

    return cmocka_run_group_tests_name("s3_document", tests, NULL, NULL);
}
