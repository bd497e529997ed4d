#include "wire/wire_image.h"
#include "wire/wire_testing.h"

#define DIGEST "5d0da3dc976460b72c77d94c8a1ad043720b0416bfc16c52c45d4847e53fadb6"

static int read_text(const char *text, struct wire_image *ret_image)
{
    return wire_image_read(text, strlen(text), ret_image, NULL);
}

static void what_is_written_is_read_again(void **state)
{
    AUTO(wire_image) struct wire_image image = WIRE_IMAGE_INIT, again = WIRE_IMAGE_INIT;
    AUTO(text) struct text text = TEXT_INIT(4096), second = TEXT_INIT(4096);

    (void) state;
    assert_int_equal(wire_image_add(&image, WIRE_IMAGE_LAYER, DIGEST, NULL), 0);
    assert_int_equal(wire_image_add(&image, WIRE_IMAGE_ENV, "A=one\ntwo\\n=", NULL), 0);
    assert_int_equal(wire_image_add(&image, WIRE_IMAGE_ENV, "EMPTY=", NULL), 0);
    assert_int_equal(wire_image_add(&image, WIRE_IMAGE_CMD, "", NULL), 0);
    assert_int_equal(wire_image_add(&image, WIRE_IMAGE_PORT, "53/udp", NULL), 0);
    assert_int_equal(wire_image_write(&image, &text, NULL), 0);
    assert_string_equal(text_string(&text), "burrow-image 1\nlayer " DIGEST
                                            "\nenv A=one\\ntwo\\\\n=\nenv EMPTY=\ncmd \n"
                                            "port 53/udp\n");
    assert_int_equal(read_text(text_string(&text), &again), 0);
    assert_string_equal(wire_image_word(&again, WIRE_IMAGE_ENV), "A=one\ntwo\\n=");
    assert_string_equal(wire_image_word(&again, WIRE_IMAGE_USER), "");
    assert_int_equal(wire_image_write(&again, &second, NULL), 0);
    assert_string_equal(text_string(&second), text_string(&text));
}

static void whatever_is_malformed_is_refused(void **state)
{
    static const char *const texts[] = {
        "",
        "/srv/images/debian\n",
        "burrow-image 1\n",
        "burrow-image 2\nlayer " DIGEST "\n",
        "burrow-image 1\nlayer " DIGEST,
        "burrow-image 1\nlayer " DIGEST "0\n",
        "burrow-image 1\nlayer ../../etc\n",
        "burrow-image 1\nlayer " DIGEST "\nlayers x\n",
        "burrow-image 1\nlayer " DIGEST "\nenv\n",
        "burrow-image 1\nlayer " DIGEST "\nenv =x\n",
        "burrow-image 1\nlayer " DIGEST "\nenv A=\\x\n",
        "burrow-image 1\nlayer " DIGEST "\nenv A=\\\n",
        "burrow-image 1\nlayer " DIGEST "\nuser a\nuser b\n",
        "burrow-image 1\nlayer " DIGEST "\nuser a b\n",
        "burrow-image 1\nlayer " DIGEST "\nworkdir srv\n",
        "burrow-image 1\nlayer " DIGEST "\nport 0/tcp\n",
        "burrow-image 1\nlayer " DIGEST "\nport 80\n",
        "burrow-image 1\nlayer " DIGEST "\nport 65536/tcp\n",
    };
    static const char with_nul[] = "burrow-image 1\nlayer " DIGEST "\nenv A=\0b\n";
    AUTO(wire_image) struct wire_image image = WIRE_IMAGE_INIT;

    (void) state;
    for (size_t i = 0; i < ARRAY_COUNT(texts); i++)
        if (read_text(texts[i], &image) == 0)
            fail_msg("'%s'", texts[i]);
    assert_int_equal(wire_image_read(with_nul, sizeof(with_nul) - 1, &image, NULL), -1);
    assert_int_equal(image.by_key[WIRE_IMAGE_LAYER].count, 0);
}

static void there_is_a_limit_to_everything(void **state)
{
    AUTO(wire_image) struct wire_image image = WIRE_IMAGE_INIT;
    AUTO(text) struct text text = TEXT_INIT(WIRE_IMAGE_TEXT_MAX * 2);
    char word[WIRE_IMAGE_WORD_MAX + 2];
    struct error err = ERROR_INIT;

    (void) state;
    for (size_t i = 0; i < WIRE_IMAGE_LAYERS_MAX; i++)
        assert_int_equal(wire_image_add(&image, WIRE_IMAGE_LAYER, DIGEST, &err), 0);
    assert_int_equal(wire_image_add(&image, WIRE_IMAGE_LAYER, DIGEST, &err), -1);
    assert_int_equal(err.code, ERR_TOO_LARGE);
    memset(word, 'a', sizeof(word));
    word[WIRE_IMAGE_WORD_MAX + 1] = '\0';
    assert_int_equal(wire_image_add(&image, WIRE_IMAGE_CMD, word, &err), -1);
    word[WIRE_IMAGE_WORD_MAX] = '\0';
    for (size_t i = 0; i < 8; i++)
        assert_int_equal(wire_image_add(&image, WIRE_IMAGE_CMD, word, &err), 0);
    assert_int_equal(wire_image_write(&image, &text, &err), -1);
    assert_int_equal(err.code, ERR_TOO_LARGE);
    assert_int_equal(text.length, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_written_is_read_again),
        cmocka_unit_test(whatever_is_malformed_is_refused),
        cmocka_unit_test(there_is_a_limit_to_everything),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
