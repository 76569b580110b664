/* Code points: sequences, classes, small letters. */
#include <stdlib.h>
#include <string.h>

#include "base/utf8.h"
#include "testing/check.h"
#include "text/unicode.h"

static void check_lower(const char *text, const char *want) {
    size_t size = 0;
    uint8_t *got = unicode_lower((const uint8_t *)text, strlen(text), &size);
    assert_non_null(got);
    assert_string_equal((char *)got, want);
    assert_int_equal(size, strlen(want));
    free(got);
}

static void decodes(void **state) {
    (void)state;
    static const struct {
        const char *text;
        size_t bytes;
        uint32_t code;
    } cases[] = {
        {"a", 1, 'a'},
        {"\xc3\xbc", 2, 0xfc},
        {"\xe2\x80\xa8", 3, 0x2028},
        {"\xf0\x9f\x99\x82", 4, 0x1f642},
        {"\xf4\x8f\xbf\xbf", 4, 0x10ffff},
    };
    static const char *const wrong[] = {"\x80",         "\xc3",         "\xc0\xaf",
                                        "\xe0\x80\xaf", "\xed\xa0\x80", "\xf4\x90\x80\x80",
                                        "\xff",         "\xe2\x80",     "\xf0\x80\x80\x80"};
    uint32_t code;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        assert_int_equal(utf8_decode((const uint8_t *)cases[i].text, &code), cases[i].bytes);
        assert_int_equal(code, cases[i].code);
    }
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++)
        assert_int_equal(utf8_decode((const uint8_t *)wrong[i], &code), 0);
}

/* Blanks of Python 3.11: all of them, and characters that only look blank. */
static void knows_blanks(void **state) {
    (void)state;
    int count = 0;
    for (uint32_t code = 0; code <= 0x10ffff; code++) count += unicode_is_blank(code);
    assert_int_equal(count, 29);
    static const uint32_t blank[] = {' ',    '\t',   0x1c,   0x1f,   0x85,   0xa0,   0x1680,
                                     0x2000, 0x200a, 0x2028, 0x2029, 0x202f, 0x205f, 0x3000};
    static const uint32_t other[] = {0x8, 0x1b, 0x180e, 0x200b, 0x2060, 0xfeff};
    for (size_t i = 0; i < sizeof blank / sizeof blank[0]; i++)
        assert_true(unicode_is_blank(blank[i]));
    for (size_t i = 0; i < sizeof other / sizeof other[0]; i++)
        assert_false(unicode_is_blank(other[i]));
}

static void knows_classes(void **state) {
    (void)state;
    static const struct {
        uint32_t code;
        char class;
    } cases[] = {
        {'0', 'N'},    {0xb2, 'N'},   {0xbd, 'N'},    {0x661, 'N'},  {0x2167, 'N'},
        {0x3007, 'N'}, {'.', 'P'},    {'-', 'P'},     {'_', 'P'},    {0xab, 'P'},
        {0x2026, 'P'}, {0x3002, 'P'}, {'$', 'S'},     {'+', 'S'},    {'^', 'S'},
        {'`', 'S'},    {0x20ac, 'S'}, {0x1f642, 'S'}, {'a', '-'},    {' ', '-'},
        {0xe4, '-'},   {0x301, '-'},  {0x200b, '-'},  {0xfeff, '-'}, {0x378, '-'},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        assert_int_equal(unicode_is_number(cases[i].code), cases[i].class == 'N');
        assert_int_equal(unicode_is_punctuation(cases[i].code), cases[i].class == 'P');
        assert_int_equal(unicode_is_symbol(cases[i].code), cases[i].class == 'S');
    }
}

static void small_letters(void **state) {
    (void)state;
    check_lower("", "");
    check_lower("AbC 1.", "abc 1.");
    check_lower("\xc3\x84\xc3\x96\xe1\xba\x9e", "\xc3\xa4\xc3\xb6\xc3\x9f");
    check_lower("\xc4\xb0", "i\xcc\x87"); /* one letter becomes two code points */
    check_lower("\xc7\x85", "\xc7\x86");
    check_lower("\xf0\x90\x90\x80", "\xf0\x90\x90\xa8");
}

#define SIGMA "\xce\xa3"
#define SMALL "\xcf\x83"
#define FINAL "\xcf\x82"

static void final_sigma(void **state) {
    (void)state;
    check_lower(SIGMA, SMALL);
    check_lower("A" SIGMA, "a" FINAL);
    check_lower("A" SIGMA SIGMA " " SIGMA "A", "a" SMALL FINAL " " SMALL "a");
    check_lower("A" SIGMA ".", "a" FINAL ".");
    check_lower("A" SIGMA ".B", "a" SMALL ".b"); /* a point does not end a word here */
    check_lower("A" SIGMA " B", "a" FINAL " b");
    check_lower("A'" SIGMA, "a'" FINAL);
    check_lower("A" SIGMA "'B", "a" SMALL "'b");
    check_lower("1" SIGMA, "1" SMALL);
    /* U+02B0 is cased and case-ignorable: it decides nothing for the letters around it */
    check_lower("A" SIGMA "\xca\xb0", "a" FINAL "\xca\xb0");
    check_lower("\xca\xb0" SIGMA, "\xca\xb0" SMALL);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(decodes),       cmocka_unit_test(knows_blanks),
        cmocka_unit_test(knows_classes), cmocka_unit_test(small_letters),
        cmocka_unit_test(final_sigma),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
