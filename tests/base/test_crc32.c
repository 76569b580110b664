/* test_crc32.c -- CRC-32 of any number of bytes at any address, against the defining division. */
#include <stdlib.h>

#include "base/crc32.h"
#include "testing/check.h"

enum { MOST = 1400, PLACES = 5 };

/* Bit by bit: the remainder of the bytes, reflected, by 0x04c11db7. */
static uint32_t divide(const unsigned char *at, size_t size) {
    uint32_t c = 0xffffffff;
    for (size_t i = 0; i < size; i++) {
        c ^= at[i];
        for (int k = 0; k < 8; k++) c = c & 1 ? c >> 1 ^ 0xedb88320u : c >> 1;
    }
    return ~c;
}

static unsigned char *make_bytes(void) {
    unsigned char *bytes = malloc(MOST + PLACES);
    uint32_t x = 1;
    assert_non_null(bytes);
    for (int i = 0; i < MOST + PLACES; i++) {
        x = 1664525 * x + 1013904223;
        bytes[i] = (unsigned char)(x >> 24);
    }
    return bytes;
}

/* The published check value of this polynomial. */
static void published(void **state) {
    (void)state;
    assert_int_equal(crc32_add(0, "123456789", 9), 0xcbf43926);
    assert_int_equal(crc32_add(0, "", 0), 0);
}

static void any_size(void **state) {
    (void)state;
    unsigned char *bytes = make_bytes();
    for (size_t size = 0; size <= MOST; size++) {
        const unsigned char *at = bytes + size % PLACES;
        const uint32_t sum = divide(at, size);
        if (crc32_add(0, at, size) != sum)
            fail_msg("%zu bytes: %08x, not %08x", size, crc32_add(0, at, size), sum);
    }
    free(bytes);
}

static void in_two_parts(void **state) {
    (void)state;
    unsigned char *bytes = make_bytes();
    const uint32_t whole = divide(bytes, MOST);
    for (size_t first = 0; first <= MOST; first++) {
        const uint32_t sum = crc32_add(0, bytes, first);
        assert_int_equal(crc32_add(sum, bytes + first, MOST - first), whole);
    }
    free(bytes);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(published), cmocka_unit_test(any_size),
                                       cmocka_unit_test(in_two_parts)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
