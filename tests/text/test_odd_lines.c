/* Unusual line ends and letters: words of texts, subwords of a training text and lowercase letters
 * equal Python's. */
#include <string.h>

#include "testing/check.h"
#include "testing/odd_lines.h"
#include "text/bpe/bpe_step.h"
#include "text/text.h"

static file_bytes bytes_of(const char *text, size_t size) {
    return (file_bytes){.byte = (uint8_t *)(uintptr_t)text, .size = size, .path = "odd"};
}

/* The words of a text of one line, a newline between them. */
static const char *words_of(const char *text, size_t size) {
    static char out[512];
    const file_bytes f = bytes_of(text, size);
    text_walk w = {&f, 0};
    const char *word;
    size_t length, used = 0;
    while (text_word(&w, &word, &length)) {
        if (used) out[used++] = '\n';
        memcpy(out + used, word, length);
        used += length;
    }
    assert_int_equal(w.at, size);
    out[used] = 0;
    return out;
}

static void words(void **state) {
    (void)state;
    assert_true(ODD_LINES >= 200);
    for (int i = 0; i < ODD_LINES; i++) {
        const char *line = odd_lines[i].line;
        assert_string_equal(words_of(line, strlen(line)), odd_lines[i].words);
    }
}

/* Applies an empty list of merges; learnt merges see the same parts of a line. */
static void subwords(void **state) {
    (void)state;
    sr_failure why = {0};
    const file_bytes codes = bytes_of("#version: 0.2\n", 14);
    line_transform s = bpe_step_of(bpe_codes_parse(&codes, -1, &why), &why);
    assert_non_null(s.apply);
    for (int i = 0; i < ODD_LINES; i++) {
        byte_buffer out = {0};
        const char *line = odd_lines[i].line;
        check_ok(s.apply(s.self, 0, line, line_content(line, strlen(line)), &out, &why), &why);
        assert_string_equal(words_of(out.byte, out.size), odd_lines[i].pieces);
        buffer_free(&out);
    }
    s.free(s.self);
}

/* b follows a at a word's end only if U+2028 ends a line; otherwise no pair occurs twice. */
static void merges_are_learnt_from_parts(void **state) {
    (void)state;
    sr_failure why = {0};
    static const char text[] = "x\xe2\x80\xa8"
                               "ab xab\n";
    const file_bytes sides[2] = {bytes_of(text, sizeof text - 1), bytes_of(text, sizeof text - 1)};
    line_transform s = bpe_step("", 1, &why);
    byte_buffer out = {0};
    check_ok(s.begin(s.self, sides, 2, 1, &why), &why);
    check_ok(s.apply(s.self, 0, "ab", 2, &out, &why), &why);
    assert_string_equal(out.byte, "ab");
    buffer_free(&out);
    s.free(s.self);
}

static void small_letters(void **state) {
    (void)state;
    sr_failure why = {0};
    const line_transform s = lowercase_step();
    for (int i = 0; i < ODD_LINES; i++) {
        byte_buffer out = {0};
        const char *columns = odd_lines[i].columns;
        for (const char *at = columns; *at;) { /* column by column: a sigma may be final */
            const size_t length = strcspn(at, "\n");
            check_ok(s.apply(s.self, 0, at, length, &out, &why), &why);
            at += length;
            if (*at) assert_true(buffer_put(&out, at++, 1));
        }
        assert_string_equal(out.byte, odd_lines[i].lower);
        buffer_free(&out);
    }
}

static void line_ends_counted(void **state) {
    (void)state;
    line_ends e = {0};
    char text[160];
    line_ends_warning(&e, "t", text, sizeof text);
    assert_string_equal(text, "");
    line_ends_add(&e, "a\r\nb\r\r\nc\rd", 10);
    line_ends_add(&e, "\r", 1);
    line_ends_add(&e, "", 0);
    assert_int_equal(e.crlf, 2);
    assert_int_equal(e.lone, 3);
    line_ends_warning(&e, "t", text, sizeof text);
    assert_string_equal(text, "t: 3 carriage returns without a newline end no line; `tr '\\r' "
                              "'\\n'` makes lines of them");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(words),
        cmocka_unit_test(subwords),
        cmocka_unit_test(merges_are_learnt_from_parts),
        cmocka_unit_test(small_letters),
        cmocka_unit_test(line_ends_counted),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
