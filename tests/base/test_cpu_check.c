/* test_cpu_check.c -- detects instructions that the program needs and the processor lacks. */
#include "base/program/cpu_check.h"

#include <string.h>

#include "testing/check.h"

static void test_missing(void **state) {
    (void)state;
    for (int built = 0; built < 8; built++)
        for (int has = 0; has < 8; has++) {
            const cpu_feature row[] = {{"avx", built & 1, has & 1},
                                       {"avx2", built >> 1 & 1, has >> 1 & 1},
                                       {"avx512f", built >> 2 & 1, has >> 2 & 1}};
            const int lacks = built & ~has;
            const char *want = lacks & 1   ? "avx"
                               : lacks & 2 ? "avx2"
                               : lacks & 4 ? "avx512f"
                                           : NULL;
            const char *got = cpu_check_missing(row, 3);
            if (want)
                assert_string_equal(got, want);
            else
                assert_null(got);
        }
    assert_null(cpu_check_missing(NULL, 0));
}

/* This test was built for this processor, with the features that the compiler reports. */
static void test_program(void **state) {
    (void)state;
    assert_null(cpu_check_program());
#if defined(__x86_64__)
    const cpu_feature row[] = {CPU_CHECK_ROWS};
    for (size_t i = 0; i < sizeof row / sizeof row[0]; i++) {
#ifdef __AVX2__
        if (!strcmp(row[i].name, "avx2")) assert_true(row[i].built);
#endif
#ifndef __FMA4__
        if (!strcmp(row[i].name, "fma4")) assert_false(row[i].built);
#endif
    }
#endif
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_missing),
                                       cmocka_unit_test(test_program)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
