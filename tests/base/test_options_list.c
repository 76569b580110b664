/* Options that may be repeated. */
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "base/options/options.h"
#include "testing/check.h"

typedef struct list_values {
    option_list ref;
    option_text name;
} list_values;

static const option rows[] = {
    LIST_OPTION(NULL, "ref", offsetof(list_values, ref), "references"),
    TEXT_OPTION(NULL, "name", offsetof(list_values, name), "", "a name"),
};
static const option_table list_table = {rows, 2};

static sr_status parse(list_values *v, int argc, const char *const *argv, sr_failure *why) {
    char *copy[64];
    int positional;
    options_set_defaults(list_table, v);
    for (int i = 0; i < argc; i++) copy[i] = (char *)argv[i];
    return options_parse(list_table, v, argc, copy, 0, &positional, why);
}

static void every_one_counts(void **state) {
    (void)state;
    list_values v = {0};
    sr_failure why = {0};
    char text[64];
    const char *argv[] = {"--ref", "a", "--name=x", "--ref=b", "--name=y", "--ref", "a"};
    v.ref.count = 9; /* the default is none */
    options_set_defaults(list_table, &v);
    assert_int_equal(v.ref.count, 0);
    assert_false(options_changed(&rows[0], &v));
    check_ok(parse(&v, 7, argv, &why), &why);
    assert_int_equal(v.ref.count, 3);
    assert_string_equal(v.ref.text[0], "a");
    assert_string_equal(v.ref.text[1], "b");
    assert_string_equal(v.ref.text[2], "a");
    assert_string_equal(v.name, "y");
    assert_true(options_changed(&rows[0], &v));
    options_format(&rows[0], &v, text, sizeof text);
    assert_string_equal(text, "3 values");
}

static void the_most(void **state) {
    (void)state;
    list_values v;
    sr_failure why = {0};
    const char *argv[OPTION_LIST_MOST + 1];
    for (int i = 0; i <= OPTION_LIST_MOST; i++) argv[i] = "--ref=r";
    check_ok(parse(&v, OPTION_LIST_MOST, argv, &why), &why);
    assert_int_equal(v.ref.count, OPTION_LIST_MOST);
    assert_int_equal(parse(&v, OPTION_LIST_MOST + 1, argv, &why), SR_USAGE);
    check_failure(&why, SR_USAGE, "--ref: value 'r' is one too many; at most 16");
}

static void too_long(void **state) {
    (void)state;
    list_values v;
    sr_failure why = {0};
    char text[OPTION_TEXT_SIZE + 8];
    const char *argv[] = {"--ref", text};
    memset(text, 'x', sizeof text);
    text[OPTION_TEXT_SIZE] = 0;
    assert_int_equal(parse(&v, 2, argv, &why), SR_USAGE);
    check_failure(&why, SR_USAGE, "is too long; at most 511 bytes");
    assert_int_equal(v.ref.count, 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_one_counts),
        cmocka_unit_test(the_most),
        cmocka_unit_test(too_long),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
