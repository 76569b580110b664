/* test_messages.c -- messages of object headers. A message fits only if everything it refers to is
 * present. The bytes follow HDF5's file format specification 3.0, IV.A.2, and are cut at every
 * offset. */
#include <stdio.h>
#include <string.h>

#include "hdf5/v1_10/h5_checks.h"
#include "testing/check.h"

#define ZERO4       "\0\0\0\0"
#define ZERO8       ZERO4 ZERO4
#define FLOAT       "\x11\x20\x3f\0\x08\0\0\0" ZERO8 ZERO4 /* 8-byte float */
#define BYTES(text) (const unsigned char *)(text), sizeof(text) - 1

static const struct {
    const char *name;
    int type;
    const unsigned char *at;
    size_t length;
} messages[] = {
    {"dataspace 1", 1, BYTES("\1\2\1\0" ZERO4 ZERO8 ZERO8 ZERO8 ZERO8)},
    {"dataspace 1, permuted", 1, BYTES("\1\1\2\0" ZERO4 "\5\0\0\0" ZERO4 ZERO8)},
    {"dataspace 2", 1, BYTES("\2\1\1\1" ZERO8 ZERO8)},
    {"scalar", 1, BYTES("\2\0\0\0")},
    {"whole number", 3, BYTES("\x10\x08\0\0\4\0\0\0\0\0\x20\0")},
    {"float", 3, BYTES(FLOAT)},
    {"text", 3, BYTES("\x13\0\0\0\x10\0\0\0")},
    {"fill value, old", 4, BYTES("\4\0\0\0abcd")},
    {"fill value 1", 5, BYTES("\1\2\0\0\4\0\0\0abcd")},
    {"fill value 2", 5, BYTES("\2\2\0\1\4\0\0\0abcd")},
    {"fill value 2, none", 5, BYTES("\2\2\0\0")},
    {"fill value 3", 5, BYTES("\3\x2a\4\0\0\0abcd")},
    {"fill value 3, none", 5, BYTES("\3\x0a")},
    {"hard link", 6, BYTES("\1\0\3abc" ZERO8)},
    {"hard link in order, of a character set", 6, BYTES("\1\x15\3\0" ZERO4 "\0\0\1\3\0abc" ZERO8)},
    {"soft link", 6, BYTES("\1\x08\1\3abc\2\0xy")},
    {"compact 1", 8, BYTES("\1\1\0\0" ZERO4 "\2\0\0\0\2\0\0\0ab")},
    {"contiguous 2", 8, BYTES("\2\2\1\0" ZERO4 ZERO8 ZERO8)},
    {"compact", 8, BYTES("\3\0\4\0abcd")},
    {"contiguous", 8, BYTES("\3\1" ZERO8 ZERO8)},
    {"chunked 1", 8, BYTES("\1\2\2\0" ZERO4 ZERO8 "abcdabcd")},
    {"chunked 3", 8, BYTES("\3\2\3" ZERO8 "abcdabcdabcd")},
    {"chunked 4, one chunk", 8, BYTES("\4\2\0\3\1xyz\1" ZERO8)},
    {"chunked 4, one chunk under filters", 8, BYTES("\4\2\2\3\1xyz\1" ZERO8 ZERO4 ZERO8)},
    {"chunked 4, implicit", 8, BYTES("\4\2\0\2\2wxyz\2" ZERO8)},
    {"chunked 4, fixed array", 8, BYTES("\4\2\0\2\1xy\3\x0a" ZERO8)},
    {"chunked 4, extensible array", 8, BYTES("\4\2\0\2\1xy\4\x20\4\4\x10\x0a" ZERO8)},
    {"chunked 4, tree", 8, BYTES("\4\2\0\3\1xyz\5\0\4\0\0\x64\x28" ZERO8)},
    {"pipeline 1", 11, BYTES("\1\1\0\0" ZERO4 "\3\0\3\0\1\0\1\0ab\0\0" ZERO4 ZERO8)},
    {"pipeline 2", 11, BYTES("\2\2\3\0\1\0\0\0\0\2\3\0\1\0\2\0abc" ZERO8)},
    {"attribute 1", 12,
     BYTES("\1\0\3\0\x14\0\4\0ab\0" ZERO4 "\0" FLOAT ZERO4 "\2\0\0\0" ZERO4 "12345678")},
    {"attribute 2", 12,
     BYTES("\2\0\3\0\x14\0\4\0ab\0" FLOAT "\2\0\0\0"
           "12345678")},
    {"attribute 3 of two", 12,
     BYTES("\3\0\3\0\x14\0\x0c\0\0ab\0" FLOAT "\2\1\0\1\2\0\0\0" ZERO4 ZERO8 ZERO8)},
    {"attribute 3 of a shared type", 12, BYTES("\3\1\3\0\2\0\4\0\0ab\0xy\2\0\0\0")},
    {"virtual", 8, BYTES("\4\3")},
    {"chunked 4, an index that nobody knows", 8, BYTES("\4\2\0\3\1xyz\6" ZERO8)},
    {"chunked 4, implicit, with the flag of filters", 8, BYTES("\4\2\2\2\2wxyz\2" ZERO8)},
};

static void cut_anywhere(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof messages / sizeof *messages; i++) {
        for (size_t length = 0; length <= messages[i].length; length++)
            if (h5_message_fits(messages[i].type, messages[i].at, length) !=
                (length == messages[i].length))
                fail_msg("%s: %zu of %zu bytes", messages[i].name, length, messages[i].length);
    }
}

/* Declared sizes beyond the message's own. A value, a chunk or filters without bytes, as fuzzing
 * found them. Products beyond 64 bits. */
static void too_large(void **state) {
    (void)state;
    static const char most[] =
        "\2\2\0\1\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff";
    static const char attribute[] =
        "\2\0\1\0\x0c\0\x0c\0a\x10\0\0\0\x10\0\0\0" ZERO4 "\2\1\0\1\0\0\0\0\0\0\0\x10";
    assert_false(h5_message_fits(8, BYTES("\3\0\4\1abcd")));
    assert_false(h5_message_fits(5, BYTES("\3\x2a\xff\xff\xff\xff"
                                          "abcd")));
    assert_false(h5_message_fits(5, BYTES("\3\x2a\0\0\0\0")));
    assert_false(h5_message_fits(11, BYTES("\2\0\3\0\0\0\0\0")));
    assert_true(h5_message_fits(5, BYTES("\2\2\0\1\0\0\0\0")));
    assert_false(h5_message_fits(8, BYTES("\1\2\2\0" ZERO4 ZERO8 "abcd" ZERO4)));
    assert_false(h5_message_fits(8, BYTES("\3\2\2" ZERO8 ZERO4 "abcd")));
    assert_false(h5_message_fits(8, BYTES("\4\2\0\3\1x\0z\1" ZERO8)));
    assert_false(h5_message_fits(8, BYTES("\4\2\0\3\0\1" ZERO8)));
    assert_false(h5_message_fits(1, BYTES(most)));
    assert_false(h5_message_fits(12, BYTES(attribute)));
}

/* The attribute leaves too few bytes for its type or its space; the bytes after them belong to
 * other parts. */
static void too_narrow(void **state) {
    (void)state;
    assert_true(h5_message_fits(12, BYTES("\2\0\3\0\x14\0\4\0ab\0" FLOAT "\2\0\0\0"
                                          "12345678")));
    assert_false(h5_message_fits(12, BYTES("\2\0\3\0\x12\0\4\0ab\0" FLOAT "\2\0\0\0"
                                           "12345678")));
    assert_false(
        h5_message_fits(12, BYTES("\2\0\3\0\x14\0\4\0ab\0" FLOAT "\2\1\0\0" ZERO8 "12345678")));
}

/* A message whose content gives no length always fits. */
static void others(void **state) {
    (void)state;
    for (int type = 0; type < 256; type++)
        if (!memchr("\x01\x03\x04\x05\x06\x08\x0b\x0c", type, 8))
            assert_true(h5_message_fits(type, BYTES("")));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(cut_anywhere),
        cmocka_unit_test(too_large),
        cmocka_unit_test(too_narrow),
        cmocka_unit_test(others),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
