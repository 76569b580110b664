/* Reading what options_dump wrote, without the table of its options. */
#include <stdlib.h>
#include <string.h>

#include "options_fixture.h"
#include "testing/check.h"

static const char text[] = "# of the resnet20: lr = 7\n"
                           "lr = 0.1\n"
                           "norm-at = \n"
                           "no value here\n"
                           "data-dir = \"a \\\"b\\\" \\\\ #c\"\n"
                           "lr-end = x = y\n"
                           "last = \"";

static void lines_in_their_order(void **state) {
    (void)state;
    static const char *const key[] = {"lr", "norm-at", "data-dir", "lr-end", "last"};
    static const int length[] = {3, 0, 15, 5, 1};
    const char *at = text;
    option_line l;
    for (int i = 0; i < 5; i++) {
        assert_true(options_next_line(&at, &l));
        assert_int_equal(l.key_length, strlen(key[i]));
        assert_memory_equal(l.key, key[i], strlen(key[i]));
        assert_int_equal(l.value_length, length[i]);
    }
    assert_false(options_next_line(&at, &l));
    at = NULL; /* a run without a configuration */
    assert_false(options_next_line(&at, &l));
}

static void value_of_a_key(void **state) {
    (void)state;
    static const struct {
        const char *key, *value;
    } cases[] = {
        {"lr", "0.1"},  {"norm-at", ""}, {"data-dir", "a \"b\" \\ #c"}, {"lr-end", "x = y"},
        {"last", "\""}, {"norm", ""},    {"# of the resnet20: lr", ""}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char value[64];
        options_line_value(text, cases[i].key, value, sizeof value);
        assert_string_equal(value, cases[i].value);
    }
    char small[4];
    options_line_value(text, "data-dir", small, sizeof small);
    assert_string_equal(small, "a \"");
}

/* A key of an earlier version is read as its present name: in stored text, in a file, on a command
 * line. */
static void renamed_key(void **state) {
    (void)state;
    static const option row[] = {TEXT_OPTION("", "norm-placement", 0, "", "")};
    static const option_table one = {row, 1};
    static const char stored[] = "norm = rmsnorm\nrmsnorm-placement = outside\n";
    char word[3][32] = {"program", "--rmsnorm-placement", "inside"};
    char *argv[] = {word[0], word[1], word[2]};
    option_text value;
    option_line l;
    sr_failure why = {0};
    int positional;
    options_line_value(stored, "norm-placement", value, sizeof value);
    assert_string_equal(value, "outside");
    assert_true(options_find_line(stored, "norm-placement", 14, &l));
    assert_memory_equal(l.key, "norm-placement", (size_t)l.key_length + 1);
    value[0] = 0;
    check_ok(options_read_text(one, value, stored + strlen("norm = rmsnorm\n"), "text", &why),
             &why);
    assert_string_equal(value, "outside");
    check_ok(options_parse(one, value, 3, argv, 1, &positional, &why), &why);
    assert_string_equal(value, "inside");
    assert_null(options_renamed("norm-placement", 14));
    assert_null(options_renamed("rmsnorm-placement", 7));
}

/* Commands and files of 0.1.0 contain the old names. */
static void names_of_0_1_0(void **state) {
    (void)state;
    static const char *const name[][2] = {{"startup", "burn-in"},
                                          {"shares", "shards"},
                                          {"record-ranks", "record-shards"},
                                          {"layer-norms-every", "parameter-norms-every"},
                                          {"kept-in", "running-dtype"},
                                          {"rank-seconds", "rank-timeout"},
                                          {"each", "max-runs"},
                                          {"eos-of-empty-lines", "eos-on-empty-lines"}};
    for (size_t i = 0; i < sizeof name / sizeof name[0]; i++)
        assert_string_equal(options_renamed(name[i][0], strlen(name[i][0])), name[i][1]);
}

/* Text written by options_dump is read back unchanged. */
static void value_of_a_dump(void **state) {
    (void)state;
    static const char odd[] = " \"a\\n\" # \t= \n b\\";
    values v;
    sr_failure why = {0};
    char value[OPTION_TEXT_SIZE];
    memset(&v, 0, sizeof v);
    options_set_defaults(table, &v);
    for (int i = 0; i < table.count; i++) {
        if (table.row[i].type != OPTION_TEXT || !strcmp(table.row[i].key, "config")) continue;
        check_ok(options_set(table, &v, table.row[i].key, odd, "test", &why), &why);
        char *dump = options_dump(table, &v);
        assert_non_null(dump);
        options_line_value(dump, table.row[i].key, value, sizeof value);
        assert_string_equal(value, odd);
        free(dump);
    }
    char *dump = options_dump(table, &v);
    assert_non_null(dump);
    const char *at = dump;
    option_line l;
    for (int i = 0; i < table.count; i++) {
        if (!strcmp(table.row[i].key, "config")) continue;
        assert_true(options_next_line(&at, &l));
        assert_int_equal(l.key_length, strlen(table.row[i].key));
    }
    assert_false(options_next_line(&at, &l));
    free(dump);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lines_in_their_order), cmocka_unit_test(value_of_a_key),
        cmocka_unit_test(renamed_key), cmocka_unit_test(names_of_0_1_0),
        cmocka_unit_test(value_of_a_dump)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
