/* test_norm_options.c -- the options of the methods' own parameters in the table of `statrec train`:
 * each has a row and a value of its own, in the order of norm_option_at, and words of methods tell
 * them from other options. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "testing/check.h"
#include "train/train.h"

static int row_of(const char *key) {
    const option_table t = train_options();
    for (int i = 0; i < t.count; i++)
        if (!strcmp(t.row[i].key, key)) return i;
    return -1;
}

static void rows(void **state) {
    (void)state;
    const int first = row_of("layer-scale") + 1;
    const norm_option *o;
    int count = 0;
    for (; (o = norm_option_at(count)); count++) {
        const option *row = &train_options().row[first + count];
        assert_string_equal(row->key, o->key);
        assert_string_equal(row->help, o->help);
        assert_string_equal(row->default_text, "");
    }
    assert_int_equal(row_of("embed-dim"), first + count);
    assert_int_equal(row_of("profile"), train_options().count - 1);
}

static void values(void **state) {
    (void)state;
    static train_config c;
    char *args[2 * NORM_OPTION_MAX], text[NORM_OPTION_MAX][2][64];
    sr_failure why = {0};
    int positional, count = 0;
    for (; norm_option_at(count); count++) {
        snprintf(text[count][0], 64, "--%s", norm_option_at(count)->key);
        snprintf(text[count][1], 64, "value %d", count);
        args[2 * count] = text[count][0], args[2 * count + 1] = text[count][1];
    }
    options_set_defaults(train_options(), &c);
    check_ok(options_parse(train_options(), &c, 2 * count, args, 0, &positional, &why), &why);
    for (int i = 0; i < count; i++) assert_string_equal(c.model.norm_param[i], text[i][1]);
    char *dump = options_dump(train_options(), &c);
    assert_non_null(strstr(dump, "\nrbn-lambda-mean = value 4\nrbn-lambda-std = value 5\n"));
    free(dump);
}

/* Figures take "WORD-..." for an option of a method whose first word that is (plot_labels.c). */
static void first_words(void **state) {
    (void)state;
    for (int i = 0; norm_at(i); i++)
        for (int k = 0; k < train_options().count; k++) {
            const char *key = train_options().row[k].key, *name = norm_at(i)->name;
            const size_t length = strcspn(key, "-");
            bool of_norm = !strncmp(key, "norm-", 5);
            for (int j = 0; norm_option_at(j); j++)
                of_norm = of_norm || !strcmp(norm_option_at(j)->key, key);
            if (!of_norm && key[length] && length == strcspn(name, "-") &&
                !strncmp(key, name, length))
                fail_msg("--%s would be an option of %s", key, name);
        }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(rows), cmocka_unit_test(values),
                                       cmocka_unit_test(first_words)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
