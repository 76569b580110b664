#include "testing/check.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/tsv.h"

static char *text;
static size_t size;

static FILE *open_text(void) {
    FILE *out = open_memstream(&text, &size);
    assert_non_null(out);
    return out;
}

/* Checks the written text; closes the stream. */
static void check_text(FILE *out, const char *want) {
    assert_int_equal(fclose(out), 0);
    assert_string_equal(text, want);
    free(text);
}

static void whole_table(void **state) {
    (void)state;
    tsv t;
    FILE *out = open_text();
    tsv_begin(&t, out, "stat-distance", "stat-distance cv.h5");
    tsv_note(&t, "run", "%s  %s seed %d", "cv.h5", "resnet20", 1);
    tsv_column(&t, "site", "name of the site");
    tsv_column(&t, "step", "step of the run");
    tsv_column(&t, "dist_mu", "||mu_B - mu||_2 / d");
    tsv_header(&t);
    tsv_text(&t, "stem");
    tsv_int(&t, 64);
    tsv_real(&t, 0.125);
    tsv_text(&t, "stage1.0.norm1");
    tsv_int(&t, -1);
    tsv_real(&t, NAN);
    check_text(out, "# program: stat-distance " STATREC_VERSION "\n"
                    "# command: stat-distance cv.h5\n"
                    "# run: cv.h5  resnet20 seed 1\n"
                    "# column site: name of the site\n"
                    "# column step: step of the run\n"
                    "# column dist_mu: ||mu_B - mu||_2 / d\n"
                    "site\tstep\tdist_mu\n"
                    "stem\t64\t0.125\n"
                    "stage1.0.norm1\t-1\tnan\n");
}

static void escapes(void **state) {
    (void)state;
    FILE *out = open_text();
    tsv_escape(out, "a\tb\nc\\d\re\x01\x1f\x7f caf\xc3\xa9 'q' \"p\" #");
    check_text(out, "a\\tb\\nc\\\\d\\x0de\\x01\\x1f\\x7f caf\xc3\xa9 'q' \"p\" #");
}

/* C1 controls (CSI, OSC and the rest), invalid bytes, and characters that reverse text
 * direction. */
#define DRIVES                                                                                     \
    "\xc2\x9b"                                                                                     \
    "2J\xc2\x80\xc2\x9f"                                                                           \
    "\x9b|\xe2\x80\xae|\xe2\x81\xa6|\xe2\x80\xa8|\xd8\x9c|"

static void what_drives_a_terminal(void **state) {
    (void)state;
    FILE *out = open_text();
    tsv_escape(out, DRIVES "\xc2\xa0\xe2\x80\x94\xe2\x81\xaa\xf0\x9f\x99\x82");
    check_text(out, "\\xc2\\x9b"
                    "2J\\xc2\\x80\\xc2\\x9f\\x9b|\\xe2\\x80\\xae|\\xe2\\x81\\xa6|"
                    "\\xe2\\x80\\xa8|\\xd8\\x9c|\xc2\xa0\xe2\x80\x94\xe2\x81\xaa\xf0\x9f\x99\x82");
    out = open_text();
    static const char lines[] = "a = 1\n\tb\x1b[2J\xc2\x9b\x9b\xe9t\xc3\xa9\xe2\x80\xae\n";
    tsv_plain(out, lines, sizeof lines - 1);
    check_text(out, "a = 1\n\tb?[2J??\xe9t\xc3\xa9?\n");
}

/* Names from a run file must not forge lines or cells. */
static void every_text_is_escaped(void **state) {
    (void)state;
    tsv t;
    FILE *out = open_text();
    tsv_begin(&t, out, "p", "p 'a\nb'");
    tsv_note(&t, "run", "%s", "x\n# column forged: y");
    tsv_column(&t, "c", "two\nlines");
    tsv_header(&t);
    tsv_text(&t, "a\tb\n");
    check_text(out, "# program: p " STATREC_VERSION "\n"
                    "# command: p 'a\\nb'\n"
                    "# run: x\\n# column forged: y\n"
                    "# column c: two\\nlines\n"
                    "c\n"
                    "a\\tb\\n\n");
}

static void numbers(void **state) {
    (void)state;
    tsv t;
    static const double real[] = {
        0,      -0.0,     1,         0.1, 1.0 / 3, 123456789, 1234567890123.0,
        1e-300, INFINITY, -INFINITY, NAN, -NAN};
    FILE *out = open_text();
    tsv_begin(&t, out, "p", "p");
    tsv_column(&t, "x", "a number");
    tsv_header(&t);
    for (size_t i = 0; i < sizeof real / sizeof real[0]; i++) tsv_real(&t, real[i]);
    tsv_int(&t, INT64_MIN);
    tsv_int(&t, INT64_MAX);
    tsv_uint(&t, UINT64_MAX);
    tsv_count(&t, 52), tsv_count(&t, 52.5), tsv_count(&t, 1234567890123.0), tsv_count(&t, NAN);
    check_text(
        out, "# program: p " STATREC_VERSION "\n# command: p\n# column x: a number\nx\n"
             "0\n-0\n1\n0.1\n0.333333333\n123456789\n1.23456789e+12\n1e-300\ninf\n-inf\nnan\nnan\n"
             "-9223372036854775808\n9223372036854775807\n18446744073709551615\n52\n52."
             "5\n1234567890123\nnan\n");
}

static void empty_cells_keep_their_place(void **state) {
    (void)state;
    tsv t;
    FILE *out = open_text();
    tsv_begin(&t, out, "p", "p");
    tsv_column(&t, "a", "");
    tsv_column(&t, "b", "");
    tsv_header(&t);
    tsv_text(&t, "");
    tsv_text(&t, "");
    check_text(out, "# program: p " STATREC_VERSION
                    "\n# command: p\n# column a: \n# column b: \na\tb\n\t\n");
}

static void long_notes_are_whole(void **state) {
    (void)state;
    tsv t;
    char note[10000], want[sizeof note + 100];
    memset(note, 'n', sizeof note);
    note[sizeof note - 1] = 0;
    snprintf(want, sizeof want, "# program: p %s\n# command: p\n# config: %s\n", STATREC_VERSION,
             note);
    FILE *out = open_text();
    tsv_begin(&t, out, "p", "p");
    tsv_note(&t, "config", "%s", note);
    check_text(out, want);
}

static void as_many_columns_as_there_is_room_for(void **state) {
    (void)state;
    tsv t;
    FILE *out = open_text();
    tsv_begin(&t, out, "p", "p");
    for (int i = 0; i < TSV_COLUMNS + 6; i++) tsv_column(&t, "c", "d");
    assert_int_equal(t.columns, TSV_COLUMNS);
    tsv_header(&t);
    for (int i = 0; i < 2 * TSV_COLUMNS; i++) tsv_int(&t, i);
    assert_int_equal(fclose(out), 0);
    int lines = 0, tabs = 0;
    for (char *c = text; *c; c++) lines += *c == '\n', tabs += *c == '\t';
    assert_int_equal(lines, 2 + TSV_COLUMNS + 1 + 2);
    assert_int_equal(tabs, 3 * (TSV_COLUMNS - 1));
    free(text);
}

static char *write_as(const char *format) {
    char *whole = NULL;
    size_t bytes = 0;
    FILE *out = open_memstream(&whole, &bytes);
    tsv t;
    assert_non_null(out);
    tsv_set_format(format);
    tsv_begin(&t, out, "p", "p 'a\"b'");
    tsv_note(&t, "run", "a\\b\n\x01");
    tsv_column(&t, "x,y", "first");
    tsv_note(&t, "late", "behind a column");
    tsv_column(&t, "z", "\xff caf\xc3\xa9 \xed\xa0\x80");
    tsv_header(&t);
    tsv_text(&t, "a,\"b\"\r\n"), tsv_real(&t, NAN);
    tsv_text(&t, "plain"), tsv_real(&t, -INFINITY);
    tsv_int(&t, -3), tsv_real(&t, 0.5);
    assert_int_equal(tsv_finish(out, NULL), SR_OK);
    assert_int_equal(tsv_finish(out, NULL), SR_OK); /* finished before */
    assert_int_equal(fclose(out), 0);
    tsv_set_format("tsv");
    return whole;
}

static void csv_is_quoted(void **state) {
    (void)state;
    char *table = write_as("csv");
    assert_string_equal(table, "\"x,y\",z\r\n\"a,\"\"b\"\"\r\n\",nan\r\nplain,-inf\r\n-3,0.5\r\n");
    free(table);
}

static void check_cell_as(const char *format, const char *want) {
    tsv t;
    tsv_set_format(format);
    FILE *out = open_text();
    tsv_begin(&t, out, "p", "p");
    tsv_column(&t, "c", "");
    tsv_header(&t);
    tsv_text(&t, "\xc2\x9b,x\x1b\"\t\xe2\x80\xae");
    assert_int_equal(tsv_finish(out, NULL), SR_OK);
    assert_int_equal(fclose(out), 0);
    if (!strstr(text, want)) fail_msg("%s", text);
    free(text);
    tsv_set_format("tsv");
}

static void formats_without_them(void **state) {
    (void)state;
    check_cell_as("csv", "\"\\xc2\\x9b,x\\x1b\"\"\t\\xe2\\x80\\xae\"\r\n");
    check_cell_as("json", "[\"\\u009b,x\\u001b\\\"\\u0009\\u202e\"]");
}

static void json_is_one_object(void **state) {
    (void)state;
    char *table = write_as("json");
    assert_string_equal(table,
                        "{\"program\": \"p\", \"version\": \"" STATREC_VERSION "\",\n"
                        " \"command\": \"p 'a\\\"b'\",\n"
                        " \"notes\": [\n  {\"key\": \"run\", \"text\": \"a\\\\b\\u000a\\u0001\"},\n"
                        "  {\"key\": \"late\", \"text\": \"behind a column\"}],\n"
                        " \"columns\": [\n  {\"name\": \"x,y\", \"definition\": \"first\"},\n"
                        "  {\"name\": \"z\", \"definition\": \"\\ufffd caf\xc3\xa9 "
                        "\\ufffd\\ufffd\\ufffd\"}],\n"
                        " \"rows\": [\n  [\"a,\\\"b\\\"\\u000d\\u000a\", null],\n"
                        "  [\"plain\", \"-inf\"],\n  [-3, 0.5]]}\n");
    free(table);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(whole_table),
        cmocka_unit_test(escapes),
        cmocka_unit_test(what_drives_a_terminal),
        cmocka_unit_test(formats_without_them),
        cmocka_unit_test(every_text_is_escaped),
        cmocka_unit_test(numbers),
        cmocka_unit_test(empty_cells_keep_their_place),
        cmocka_unit_test(long_notes_are_whole),
        cmocka_unit_test(as_many_columns_as_there_is_room_for),
        cmocka_unit_test(csv_is_quoted),
        cmocka_unit_test(json_is_one_object),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
