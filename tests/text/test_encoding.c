/* Texts that are not UTF-8, and the tokenizer basic_english. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "testing/check.h"
#include "text/line_transform.h"
#include "text/text.h"

static const char *write_file(const char *name, const char *bytes, size_t size) {
    static char path[512];
    snprintf(path, sizeof path, "%s/%s", check_temporary(), name);
    FILE *f = fopen(path, "wb");
    assert_non_null(f);
    assert_int_equal(fwrite(bytes, 1, size, f), size);
    assert_int_equal(fclose(f), 0);
    return path;
}

static void expect(const char *bytes, text_encoding encoding, const char *want, int64_t lines,
                   bool recoded) {
    file_bytes f;
    int64_t got_lines;
    text_decoding how;
    sr_failure why = {0};
    const char *path = write_file("text", bytes, strlen(bytes));
    check_ok(text_read_as(path, encoding, &f, &got_lines, &how, &why), &why);
    assert_string_equal((const char *)f.byte, want);
    assert_int_equal(f.size, strlen(want));
    assert_int_equal(got_lines, lines);
    assert_int_equal(how.recoded, recoded);
    file_free(&f);
}

static void refuse(const char *path, text_encoding encoding, const char *part) {
    file_bytes f = {0};
    int64_t lines;
    text_decoding how;
    sr_failure why = {0};
    assert_int_equal(text_read_as(path, encoding, &f, &lines, &how, &why), SR_FORMAT);
    check_failure(&why, SR_FORMAT, part);
    file_free(&f);
}

static void auto_takes_utf8_where_it_is(void **state) {
    (void)state;
    expect("caf\xc3\xa9\nb", ENCODING_AUTO, "caf\xc3\xa9\nb", 2, false);
    expect("caf\xe9\nb\n", ENCODING_AUTO, "caf\xc3\xa9\nb\n", 2, true);
    expect("", ENCODING_AUTO, "", 0, false);
    expect("\xef\xbb\xbf"
           "a",
           ENCODING_AUTO, "a", 1, false);
}

/* Overlong forms and surrogates are no letters. */
static void letters_are_counted(void **state) {
    (void)state;
    static const struct {
        const char *text;
        text_encoding encoding;
        int64_t letters, bad;
        const char *fault;
    } want[] = {
        {"a\n\xc3\xa9\xe2\x82\xac", ENCODING_AUTO, 2, 0, ""},
        {"a\n\xc3\xa9\xff \xc0\x80\xc3", ENCODING_AUTO, 1, 4, "text:2: byte 2 of the line is 0xff"},
        {"\xc3\xa9", ENCODING_UTF8, 1, 0, ""},
        {"\xc3\xa9\xff", ENCODING_LATIN1, 0, 0, ""}};
    for (size_t i = 0; i < sizeof want / sizeof *want; i++) {
        file_bytes f;
        int64_t lines;
        text_decoding how;
        const char *path = write_file("text", want[i].text, strlen(want[i].text));
        assert_int_equal(text_read_as(path, want[i].encoding, &f, &lines, &how, NULL), SR_OK);
        assert_int_equal(how.letters, want[i].letters);
        assert_int_equal(how.bad, want[i].bad);
        assert_true(*want[i].fault ? strstr(how.fault, want[i].fault) != NULL : !*how.fault);
        file_free(&f);
    }
}

/* 0x85 would be a line's end to Unicode in Latin-1, an ellipsis it is; 0x81 is no character. */
static void bytes_are_those_of_windows(void **state) {
    (void)state;
    expect("\x80|\x85|\x91|\x97|\x9f", ENCODING_AUTO,
           "\xe2\x82\xac|\xe2\x80\xa6|\xe2\x80\x98|\xe2\x80\x94|\xc5\xb8", 1, true);
    expect("\x81|\xa0|\xff", ENCODING_AUTO, "\xc2\x81|\xc2\xa0|\xc3\xbf", 1, true);
}

static void latin1_asks_nobody(void **state) {
    (void)state;
    expect("\xc3\xa9", ENCODING_LATIN1, "\xc3\x83\xc2\xa9", 1, true);
    expect("plain", ENCODING_LATIN1, "plain", 1, false);
}

static void what_is_refused(void **state) {
    (void)state;
    refuse(write_file("text", "a\nb\xe9", 4), ENCODING_UTF8,
           "text:2: byte 1 of the line is 0xe9, not UTF-8");
    refuse(write_file("text", "a\0b\xe9", 4), ENCODING_AUTO,
           "byte 1 of the line is 0x00, not text");
    refuse(write_file("text.gz", "a", 1), ENCODING_AUTO, "text.gz: byte ");
    assert_int_equal(text_encoding_find(""), ENCODING_AUTO);
    assert_int_equal(text_encoding_find("utf-8"), ENCODING_UTF8);
    assert_int_equal(text_encoding_find("latin-1"), ENCODING_LATIN1);
    assert_int_equal(text_encoding_find("latin-2"), -1);
}

/* -- basic_english: torchtext's rules for a line, split at blanks and joined by one */

static void expect_words(const char *line, const char *want) {
    const line_transform step = basic_english_step();
    byte_buffer out = {0};
    sr_failure why = {0};
    char got[512] = "";
    check_ok(line_steps_apply(&step, 1, 0, line, strlen(line), &out, &why), &why);
    for (char *word = strtok(out.byte, " "); word; word = strtok(NULL, " "))
        sprintf(got + strlen(got), "%s%s", *got ? " " : "", word);
    assert_string_equal(got, want);
    buffer_free(&out);
}

static void words_of_torchtext(void **state) {
    (void)state;
    expect_words("Easy to use UI, isn't it? YES!", "easy to use ui , isn ' t it ? yes !");
    expect_words("\"Great\" film.<br /><br />See it (now); ok: 10/10",
                 "great film . see it ( now ) ok 10/10");
    expect_words("a<br/>b<BR />c<br / >d", "a<br/>b c<br / >d");
    expect_words("x <\"br /> y", "x y"); /* without the quote it is a break */
    expect_words("Mr. U.S.A... 3.5", "mr . u . s . a . . . 3 . 5");
    expect_words("\xc3\x89t\xc3\xa9 \xce\xa3\xce\xa3", "\xc3\xa9t\xc3\xa9 \xcf\x83\xcf\x82");
    expect_words("<br", "<br");
    expect_words("\"\";:", "");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(auto_takes_utf8_where_it_is),
        cmocka_unit_test(bytes_are_those_of_windows),
        cmocka_unit_test(letters_are_counted),
        cmocka_unit_test(latin1_asks_nobody),
        cmocka_unit_test(what_is_refused),
        cmocka_unit_test(words_of_torchtext),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
