/* test_float_text.c -- numbers as printf and strtod give them. Every magnitude, halves of the last
 * digit, powers of ten and their neighbours, and numbers left to the library. */
#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/float_text.h"
#include "base/rng.h"
#include "testing/check.h"

enum { DRAWN = 40000 };

static void check_text_of(double value) {
    char want[64], got[64] = "";
    FILE *out = fmemopen(got, sizeof got, "w");
    snprintf(want, sizeof want, "%.9g", value);
    assert_non_null(out);
    float_text_print(out, value);
    fclose(out);
    if (strcmp(got, want) != 0) fail_msg("%a is written %.24s, not %s", value, got, want);
}

static void check_number_of(const char *text) {
    char *end = NULL, *want_end = NULL;
    const double want = strtod(text, &want_end), got = float_text_read(text, &end);
    if (end != want_end || (memcmp(&got, &want, sizeof got) != 0 && !(isnan(got) && isnan(want))))
        fail_msg("'%s' is read as %a, not %a, up to %d", text, got, want, (int)(end - text));
}

static void check_both(double value) {
    char text[64];
    for (int sign = -1; sign <= 1; sign += 2) {
        check_text_of(sign * value);
        for (int places = 1; places <= 17; places += 4) {
            snprintf(text, sizeof text, "%.*g", places, sign * value);
            check_number_of(text);
        }
    }
}

static void numbers_of_every_size(void **state) {
    (void)state;
    rng r = rng_create(1);
    for (int i = 0; i < DRAWN; i++) {
        const double size = 700 * (rng_uniform(&r) - 0.5);
        check_both(exp(i % 4 ? size / 10 : size));
        check_both((double)(float)exp(size / 20));
    }
}

/* d.dddddddd5 is halfway between two texts: the remaining binary digits decide the rounding. */
static void halves_of_the_last_digit(void **state) {
    (void)state;
    rng r = rng_create(2);
    for (int i = 0; i < DRAWN; i++) {
        const double half = (double)(100000000 + rng_below(&r, 900000000)) + 0.5;
        const double value = half * pow(10, (double)rng_below(&r, 30) - 20);
        check_both(value);
        check_both(nextafter(value, INFINITY)), check_both(nextafter(value, 0));
    }
}

static void powers_and_their_neighbours(void **state) {
    (void)state;
    for (int k = -330; k <= 308; k++) {
        char text[32];
        snprintf(text, sizeof text, "1e%d", k);
        const double ten = strtod(text, NULL), two = ldexp(1, k);
        const double at[] = {ten, two, 9.999999995 * ten, 9.9999999949 * ten, 5 * ten};
        for (size_t i = 0; i < sizeof at / sizeof at[0]; i++) {
            check_both(at[i]);
            check_both(nextafter(at[i], INFINITY)), check_both(nextafter(at[i], 0));
        }
    }
    for (int i = 0; i < 20000; i++) check_both(i), check_both(i / 1000.0);
}

static void what_is_left_to_the_library(void **state) {
    (void)state;
    static const double value[] = {0, -0.0, NAN, INFINITY, DBL_MIN, DBL_TRUE_MIN, DBL_MAX};
    static const char *const text[] = {"",
                                       "-",
                                       ".",
                                       "-.5",
                                       "5.",
                                       "0",
                                       "-0",
                                       "00012",
                                       "1e",
                                       "1e+",
                                       "1e5x",
                                       "x1",
                                       " 1",
                                       "+1",
                                       "nan",
                                       "-inf",
                                       "0x10",
                                       "1 ",
                                       "1e22",
                                       "1e23",
                                       "1e-22",
                                       "1e-23",
                                       "1E5",
                                       "--1",
                                       "1e-5.",
                                       "1..2",
                                       "1e99999",
                                       "1e-99999999999",
                                       "9007199254740992",
                                       "9007199254740993",
                                       "12345678901234567890",
                                       "0.00000000000000000000001",
                                       "123456789.123456789123456789"};
    for (size_t i = 0; i < sizeof value / sizeof value[0]; i++) check_both(value[i]);
    for (size_t i = 0; i < sizeof text / sizeof text[0]; i++) check_number_of(text[i]);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(numbers_of_every_size),
        cmocka_unit_test(halves_of_the_last_digit),
        cmocka_unit_test(powers_and_their_neighbours),
        cmocka_unit_test(what_is_left_to_the_library),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
