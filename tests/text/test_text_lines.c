/* Lines read one by one; line ends. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "testing/check.h"
#include "text/text_lines.h"

static const char *write_file(const char *name, const char *text, size_t length) {
    static char path[4200];
    snprintf(path, sizeof path, "%s/%s", check_temporary(), name);
    if (strstr(name, ".gz")) {
        gzFile out = gzopen(path, "wb");
        assert_int_equal(gzwrite(out, text, (unsigned)length), length);
        assert_int_equal(gzclose(out), Z_OK);
    } else {
        FILE *out = fopen(path, "w");
        assert_int_equal(fwrite(text, 1, length, out), length);
        assert_int_equal(fclose(out), 0);
    }
    return path;
}

static void expect_line(text_lines *t, const char *want) {
    sr_failure why = {0};
    const char *line;
    size_t length;
    check_ok(text_lines_next(t, &line, &length, &why), &why);
    if (!want) {
        assert_null(line);
        return;
    }
    assert_non_null(line);
    assert_int_equal(length, strlen(want));
    assert_memory_equal(line, want, length);
}

static void returns_every_line(void **state) {
    (void)state;
    static const char text[] = "a\r\n\nb c\n\xef\xbb\xbf"
                               "d";
    static const char *const names[] = {"t", "t.gz"};
    for (int i = 0; i < 2; i++) {
        sr_failure why = {0};
        text_lines *t = text_lines_open(write_file(names[i], text, sizeof text - 1), &why);
        assert_non_null(t);
        expect_line(t, "a\r\n");
        expect_line(t, "\n");
        expect_line(t, "b c\n");
        expect_line(t, "\xef\xbb\xbf"
                       "d");
        expect_line(t, NULL);
        expect_line(t, NULL);
        text_lines_close(t);
    }
}

/* Lines that do not fit the buffer, and one that ends with it. */
static void long_lines(void **state) {
    (void)state;
    enum { SIZE = 1 << 16, LENGTHS = 5 };
    static const size_t lengths[LENGTHS] = {SIZE - 1, SIZE, 10, 5 * SIZE, 3};
    char *text = malloc(8 * SIZE), *at = text;
    for (int i = 0; i < LENGTHS; i++) {
        memset(at, 'a' + i, lengths[i] - 1);
        at += lengths[i];
        at[-1] = '\n';
    }
    sr_failure why = {0};
    text_lines *t = text_lines_open(write_file("long", text, (size_t)(at - text)), &why);
    at = text;
    for (int i = 0; i < LENGTHS; at += lengths[i], i++) {
        const char *line;
        size_t length;
        check_ok(text_lines_next(t, &line, &length, &why), &why);
        assert_int_equal(length, lengths[i]);
        assert_memory_equal(line, at, length);
    }
    expect_line(t, NULL);
    text_lines_close(t);
    free(text);
}

static void fails_in(const char *path, const char *part) {
    sr_failure why = {0};
    text_lines *t = text_lines_open(path, &why);
    const char *line = "";
    size_t length;
    while (t && line && text_lines_next(t, &line, &length, &why) == SR_OK) {
    }
    assert_true(why.status == SR_FORMAT || why.status == SR_IO);
    check_failure(&why, why.status, part);
    text_lines_close(t);
}

static void says_where_it_fails(void **state) {
    (void)state;
    fails_in(write_file("bad", "a\nb\xff\nc\n", 7), "bad:2: byte 1 of the line is 0xff, not UTF-8");
    fails_in(write_file("cut", "a\n\xe2\x82", 4), "cut:2: byte 0 of the line is 0xe2");
    fails_in("/nowhere/at/all", "/nowhere/at/all: No such file");
    fails_in(check_temporary(), "Is a directory");
    char path[4300], text[3000];
    snprintf(path, sizeof path, "%s/plain.gz", check_temporary());
    FILE *out = fopen(path, "w");
    fputs("text\n", out);
    fclose(out);
    fails_in(path, "plain.gz: byte 0: not a gzip file");
    for (size_t i = 0; i < sizeof text; i++) text[i] = (char)(i * i % 89 + ' ');
    strcpy(path, write_file("short.gz", text, sizeof text));
    FILE *whole = fopen(path, "r");
    size_t size = fread(text, 1, sizeof text, whole);
    fclose(whole);
    out = fopen(path, "w");
    fwrite(text, 1, size - 12, out);
    fclose(out);
    fails_in(path, "truncated");
    text[size - 6] ^= 1; /* in the checksum */
    out = fopen(path, "w");
    fwrite(text, 1, size, out);
    fclose(out);
    fails_in(path, "short.gz:1: incorrect data check");
}

/* Text that unpacks to one endless line is not read to its end. */
static void bounds_a_line_of_gzip(void **state) {
    (void)state;
    enum { CHUNK = 1 << 20, CHUNKS = 80 };
    char *chunk = malloc(CHUNK), path[4096];
    memset(chunk, 'a', CHUNK);
    strcpy(path, write_file("long.gz", chunk, 1));
    gzFile out = gzopen(path, "wb");
    for (int i = 0; i < CHUNKS; i++) assert_int_equal(gzwrite(out, chunk, CHUNK), CHUNK);
    gzclose(out);
    free(chunk);
    fails_in(path, "long.gz:1: a line of more than 7");
}

static void lines_end_as_in_python(void **state) {
    (void)state;
    static const struct {
        const char *text;
        size_t length, first;
    } cases[] = {
        {"a\nb", 3, 2},
        {"a\r", 2, 2},
        {"a\r\nb", 4, 3},
        {"a\rb", 3, 2},
        {"a\vb", 3, 2},
        {"a\fb", 3, 2},
        {"a\x1c"
         "b",
         3, 2},
        {"a\x1d"
         "b",
         3, 2},
        {"a\x1e"
         "b",
         3, 2},
        {"a\x1f"
         "b",
         3, 3},
        {"a\xc2\x85"
         "b",
         4, 3},
        {"a\xc2\xa0"
         "b",
         4, 4},
        {"a\xe2\x80\xa8"
         "b",
         5, 4},
        {"a\xe2\x80\xa9", 4, 4},
        {"a\xe2\x80\xaa"
         "b",
         5, 5},
        {"a\tb", 3, 3},
        {"", 0, 0},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        assert_int_equal(text_first_line(cases[i].text, cases[i].length), cases[i].first);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(returns_every_line),     cmocka_unit_test(long_lines),
        cmocka_unit_test(says_where_it_fails),    cmocka_unit_test(bounds_a_line_of_gzip),
        cmocka_unit_test(lines_end_as_in_python),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
