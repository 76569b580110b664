/* Whole texts: byte order marks, line ends, bytes that are not text; line transforms. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "testing/check.h"
#include "text/line_transform.h"
#include "text/text.h"

static const char *write_file(const char *bytes, size_t size) {
    static char path[512];
    snprintf(path, sizeof path, "%s/text", check_temporary());
    FILE *f = fopen(path, "wb");
    assert_non_null(f);
    assert_int_equal(fwrite(bytes, 1, size, f), size);
    assert_int_equal(fclose(f), 0);
    return path;
}

/* Checks the words of the text: '|' follows each word, '/' each line. */
static void expect(const char *bytes, int64_t want_lines, const char *want) {
    file_bytes f;
    int64_t lines;
    sr_failure why = {0};
    check_ok(text_read(write_file(bytes, strlen(bytes)), &f, &lines, &why), &why);
    assert_int_equal(lines, want_lines);
    assert_int_equal(f.byte[f.size], 0);
    text_walk w = {&f, 0};
    char got[256] = "";
    for (int64_t i = 0; i < lines; i++) {
        const char *word;
        size_t length;
        while (text_word(&w, &word, &length)) {
            strncat(got, word, length);
            strcat(got, "|");
        }
        strcat(got, "/");
    }
    assert_string_equal(got, want);
    file_free(&f);
}

static void takes_the_mark_off(void **state) {
    (void)state;
    expect("\xef\xbb\xbf"
           "der hund\nein",
           2, "der|hund|/ein|/");
    expect("\xef\xbb\xbf\nein", 2, "/ein|/");
    expect("\xef\xbb\xbf", 0, "");
    /* elsewhere, and a second time, it is a character like others */
    expect("a \xef\xbb\xbf"
           "b\n",
           1,
           "a|\xef\xbb\xbf"
           "b|/");
    expect("\xef\xbb\xbf\xef\xbb\xbf"
           "a",
           1,
           "\xef\xbb\xbf"
           "a|/");
}

static void ends_of_lines_are_no_words(void **state) {
    (void)state;
    expect("a b\r\n\r\nc\r\n", 3, "a|b|//c|/");
    expect("a\r\nb", 2, "a|/b|/");
    expect("", 0, "");
}

static void refuse(const char *bytes, size_t size, const char *part) {
    file_bytes f;
    int64_t lines;
    sr_failure why = {0};
    assert_int_equal(text_read(write_file(bytes, size), &f, &lines, &why), SR_FORMAT);
    check_failure(&why, SR_FORMAT, part);
    assert_null(f.byte);
}

/* Byte numbers count from the start of the file's line, including the mark. */
static void names_line_and_byte(void **state) {
    (void)state;
    refuse("a\nb\nc \xfc\n", 8, "text:3: byte 2 of the line is 0xfc, not UTF-8");
    refuse("\xef\xbb\xbf\xff", 4, "text:1: byte 3 of the line is 0xff, not UTF-8");
    refuse("a\n\0\n", 4, "text:2: byte 0 of the line is 0x00, not text");
    refuse("\xef\xbb", 2, "text:1: byte 0 of the line is 0xef");
}

/* -- steps */

static sr_status double_it(void *self, int side, const char *line, size_t length, byte_buffer *out,
                           sr_failure *why) {
    (void)why;
    ++*(int *)self;
    bool done = buffer_put(out, line, length) && buffer_put(out, side ? "R" : "L", 1) &&
                buffer_put(out, line, length);
    return done ? SR_OK : SR_MEMORY;
}

static sr_status refuse_x(void *self, int side, const char *line, size_t length, byte_buffer *out,
                          sr_failure *why) {
    (void)self, (void)side;
    if (memchr(line, 'x', length)) return sr_fail(why, SR_FORMAT, "an x");
    return buffer_put(out, line, length) ? SR_OK : SR_MEMORY;
}

static void steps_follow_each_other(void **state) {
    (void)state;
    int calls = 0;
    byte_buffer out = {0};
    sr_failure why = {0};
    line_transform step[] = {{.name = "double", .apply = double_it, .self = &calls},
                             {.name = "double", .apply = double_it, .self = &calls},
                             {.name = "no x", .apply = refuse_x}};
    static const char *const want[] = {"ab", "abLab", "abLabLabLab", "abLabLabLab"};
    for (int n = 0; n < 4; n++) {
        check_ok(line_steps_apply(step, n, 0, "ab", 2, &out, &why), &why);
        assert_string_equal(out.byte, want[n]);
        assert_int_equal(out.size, strlen(want[n]));
    }
    check_ok(line_steps_apply(step, 3, 1, "", 0, &out, &why), &why);
    assert_string_equal(out.byte, "RRR");
    assert_int_equal(line_steps_apply(step, 3, 1, "x", 1, &out, &why), SR_FORMAT);
    buffer_free(&out);
}

static void texts_take_steps_line_by_line(void **state) {
    (void)state;
    int calls = 0;
    sr_failure why = {0};
    line_transform step = {.name = "double", .apply = double_it, .self = &calls};
    static const char text[] = "a\r\n\nbc";
    file_bytes from = {.byte = (uint8_t *)(uintptr_t)text, .size = strlen(text), .path = "t.de"};
    file_bytes to;
    check_ok(line_transform_text(&step, 1, &from, &to, &why), &why);
    assert_string_equal((char *)to.byte, "aRa\nR\nbcRbc\n");
    assert_string_equal(to.path, "t.de");
    assert_int_equal(calls, 3);
    file_free(&to);
    from.size = 0;
    check_ok(line_transform_text(&step, 1, &from, &to, &why), &why);
    assert_true(to.byte && to.size == 0);
    file_free(&to);
    step.apply = refuse_x;
    from = (file_bytes){.byte = (uint8_t *)(uintptr_t) "x", .size = 1, .path = "t.de"};
    assert_int_equal(line_transform_text(&step, 1, &from, &to, &why), SR_FORMAT);
    assert_null(to.byte);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(takes_the_mark_off),
        cmocka_unit_test(ends_of_lines_are_no_words),
        cmocka_unit_test(names_line_and_byte),
        cmocka_unit_test(steps_follow_each_other),
        cmocka_unit_test(texts_take_steps_line_by_line),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
