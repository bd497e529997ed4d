#include "objects/s3/s3_xml.h"

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "base/encoding/utf8.h"
#include "base/text.h"

struct reader {
    const char *at;
    const char *end;
    const struct s3_xml_events *events; /* borrowed */
    void *context;
    char names[S3_XML_DEPTH_MAX][S3_XML_NAME_MAX + 1];
    size_t depth;
    bool has_root;
    bool is_leaf;     /* the innermost element has no element inside so far */
    struct text text; /* of the innermost element while it is a leaf */
};

static const struct {
    const char *name;
    char character;
} entities[] = {{"amp", '&'}, {"lt", '<'}, {"gt", '>'}, {"quot", '"'}, {"apos", '\''}};

static int broken(struct error *err, const char *what)
{
    return error_set(err, ERR_UPSTREAM, 0, "the store's answer is not the XML of S3: %s", what);
}

static bool is_space(char c)
{
    return c == ' ' || c == '\t' || c == '\r' || c == '\n';
}

static bool is_name(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
           c == '-' || c == '.' || c == ':';
}

static bool starts(const struct reader *reader, const char *text)
{
    size_t length = strlen(text);

    return (size_t) (reader->end - reader->at) >= length && memcmp(reader->at, text, length) == 0;
}

static const char *parent(const struct reader *reader)
{
    return reader->depth >= 2 ? reader->names[reader->depth - 2] : "";
}

/* Move behind the next `mark`. */
static int skip_past(struct reader *reader, const char *mark, struct error *err)
{
    size_t left = (size_t) (reader->end - reader->at);
    const char *found = memmem(reader->at, left, mark, strlen(mark));

    if (!found)
        return broken(err, "it ends too early");
    reader->at = found + strlen(mark);
    return 0;
}

/* The name at the cursor without its prefix. */
static int read_name(struct reader *reader, char ret_name[static S3_XML_NAME_MAX + 1],
                     struct error *err)
{
    const char *start = reader->at, *colon;
    size_t length;

    while (reader->at < reader->end && is_name(*reader->at))
        reader->at++;
    length = (size_t) (reader->at - start);
    colon = memrchr(start, ':', length);
    if (colon) {
        length -= (size_t) (colon + 1 - start);
        start = colon + 1;
    }
    if (length == 0 || length > S3_XML_NAME_MAX)
        return broken(err, "a name is empty or too long");
    memcpy(ret_name, start, length);
    ret_name[length] = '\0';
    return 0;
}

static void open_element(struct reader *reader)
{
    reader->has_root = true;
    reader->is_leaf = true;
    text_clear(&reader->text);
    if (reader->events->on_open)
        reader->events->on_open(reader->context, parent(reader), reader->names[reader->depth - 1]);
}

static void close_element(struct reader *reader)
{
    reader->events->on_close(reader->context, parent(reader), reader->names[reader->depth - 1],
                             reader->is_leaf ? text_string(&reader->text) : "");
    reader->depth--;
    reader->is_leaf = false;
    text_clear(&reader->text);
}

/* Attributes, up to and with '>'; says whether the tag closes itself. */
static int skip_attributes(struct reader *reader, bool *ret_closes, struct error *err)
{
    char quote = '\0', last = '\0';

    for (; reader->at < reader->end; reader->at++) {
        char c = *reader->at;

        if (quote) {
            quote = c == quote ? '\0' : quote;
        } else if (c == '>') {
            reader->at++;
            *ret_closes = last == '/';
            return 0;
        } else if (c == '<') {
            return broken(err, "a tag inside a tag");
        } else if (c == '"' || c == '\'') {
            quote = c;
        }
        last = c;
    }
    return broken(err, "it ends too early");
}

static int read_start_tag(struct reader *reader, struct error *err)
{
    bool closes = false;

    if (reader->depth == 0 && reader->has_root)
        return broken(err, "it has two roots");
    if (reader->depth == S3_XML_DEPTH_MAX)
        return broken(err, "it is too deep");
    reader->at++;
    if (read_name(reader, reader->names[reader->depth], err) < 0 ||
        skip_attributes(reader, &closes, err) < 0)
        return -1;
    reader->depth++;
    open_element(reader);
    if (closes)
        close_element(reader);
    return 0;
}

static int read_end_tag(struct reader *reader, struct error *err)
{
    char name[S3_XML_NAME_MAX + 1];

    reader->at += strlen("</");
    if (read_name(reader, name, err) < 0)
        return -1;
    while (reader->at < reader->end && is_space(*reader->at))
        reader->at++;
    if (reader->at == reader->end || *reader->at != '>')
        return broken(err, "an end tag does not end");
    reader->at++;
    if (reader->depth == 0 || strcmp(name, reader->names[reader->depth - 1]) != 0)
        return broken(err, "an end tag without its beginning");
    close_element(reader);
    return 0;
}

static int append_character(struct text *text, uint32_t c)
{
    char bytes[4];
    size_t length = 0;

    if (c == 0 || c > 0x10ffff || (c >= 0xd800 && c <= 0xdfff))
        return -1;
    if (c < 0x80) {
        bytes[length++] = (char) c;
    } else if (c < 0x800) {
        bytes[length++] = (char) (0xc0 | c >> 6);
    } else if (c < 0x10000) {
        bytes[length++] = (char) (0xe0 | c >> 12);
        bytes[length++] = (char) (0x80 | (c >> 6 & 0x3f));
    } else {
        bytes[length++] = (char) (0xf0 | c >> 18);
        bytes[length++] = (char) (0x80 | (c >> 12 & 0x3f));
        bytes[length++] = (char) (0x80 | (c >> 6 & 0x3f));
    }
    if (c >= 0x80)
        bytes[length++] = (char) (0x80 | (c & 0x3f));
    text_append_bytes(text, bytes, length);
    return 0;
}

/* "38" or "x26" of "&#38;" and "&#x26;" */
static int append_number(struct text *text, const char *digits, size_t length)
{
    unsigned int base = length && *digits == 'x' ? 16 : 10;
    uint32_t value = 0;

    if (base == 16) {
        digits++;
        length--;
    }
    if (length == 0 || length > 8)
        return -1;
    for (size_t i = 0; i < length; i++) {
        static const char all[] = "0123456789abcdef";
        char c =
            (char) (digits[i] >= 'A' && digits[i] <= 'F' ? digits[i] + ('a' - 'A') : digits[i]);
        const char *found = c ? strchr(all, c) : NULL;

        if (!found || (unsigned int) (found - all) >= base || value > 0x10ffff)
            return -1;
        value = value * base + (uint32_t) (found - all);
    }
    return append_character(text, value);
}

static int read_entity(struct reader *reader, struct error *err)
{
    const char *name = reader->at + 1;
    size_t left = (size_t) (reader->end - name), length;
    const char *stop = memchr(name, ';', left < 16 ? left : 16);

    if (!stop)
        return broken(err, "an entity does not end");
    length = (size_t) (stop - name);
    reader->at = stop + 1;
    if (length && *name == '#')
        return append_number(&reader->text, name + 1, length - 1) < 0
                   ? broken(err, "a character that is none")
                   : 0;
    for (size_t i = 0; i < sizeof(entities) / sizeof(entities[0]); i++) {
        if (strlen(entities[i].name) == length && memcmp(entities[i].name, name, length) == 0) {
            text_append_char(&reader->text, entities[i].character);
            return 0;
        }
    }
    return broken(err, "an entity it does not explain");
}

static int read_cdata(struct reader *reader, struct error *err)
{
    const char *start;

    reader->at += strlen("<![CDATA[");
    start = reader->at;
    if (reader->depth == 0)
        return broken(err, "text outside of the root");
    if (skip_past(reader, "]]>", err) < 0)
        return -1;
    text_append_bytes(&reader->text, start, (size_t) (reader->at - start) - strlen("]]>"));
    return 0;
}

/* What begins with '<'. */
static int read_markup(struct reader *reader, struct error *err)
{
    if (starts(reader, "</"))
        return read_end_tag(reader, err);
    if (starts(reader, "<?"))
        return skip_past(reader, "?>", err);
    if (starts(reader, "<!--")) {
        reader->at += strlen("<!--");
        return skip_past(reader, "-->", err);
    }
    if (starts(reader, "<![CDATA["))
        return read_cdata(reader, err);
    if (starts(reader, "<!"))
        return broken(err, "it declares things of its own");
    return read_start_tag(reader, err);
}

static int read_text(struct reader *reader, struct error *err)
{
    const char *start = reader->at;

    if (*reader->at == '&' && reader->depth > 0)
        return read_entity(reader, err);
    while (reader->at < reader->end && *reader->at != '<' && *reader->at != '&')
        reader->at++;
    if (reader->depth > 0) {
        text_append_bytes(&reader->text, start, (size_t) (reader->at - start));
        return 0;
    }
    for (; start < reader->at; start++) {
        if (!is_space(*start))
            return broken(err, "text outside of the root");
    }
    return reader->at < reader->end && *reader->at == '&' ? broken(err, "text outside of the root")
                                                          : 0;
}

int s3_xml_read(const char *bytes, size_t length, const struct s3_xml_events *events, void *context,
                struct error *err)
{
    struct reader reader = {
        .at = bytes,
        .end = bytes + length,
        .events = events,
        .context = context,
        .text = TEXT_INIT(length + 1),
    };
    int result = 0;

    if (!utf8_is_valid(bytes, length) || memchr(bytes, '\0', length))
        return broken(err, "it is not UTF-8");
    if (starts(&reader, "\xef\xbb\xbf"))
        reader.at += strlen("\xef\xbb\xbf");
    while (result == 0 && reader.at < reader.end)
        result = *reader.at == '<' ? read_markup(&reader, err) : read_text(&reader, err);
    text_done(&reader.text);
    if (result == 0 && (reader.depth > 0 || !reader.has_root))
        return broken(err, "it ends too early");
    return result;
}
