/* The table of data sets, and that what needs no files opens with defaults. */
#include <string.h>

#include "data_files.h"

static void rows_have_names_and_summaries(void **state) {
    (void)state;
    int n = 0;
    for (; data_name(n); n++) {
        assert_true(strlen(data_name(n)) > 0 && strlen(data_summary(n)) > 0);
        for (int i = 0; i < n; i++) assert_string_not_equal(data_name(i), data_name(n));
    }
    assert_true(n >= 4);
    assert_null(data_name(-1));
    assert_null(data_name(n));
    assert_null(data_summary(n));
}

static void every_row_describes_its_task(void **state) {
    (void)state;
    for (int i = 0; data_name(i); i++) {
        if (strncmp(data_name(i), "synth-", 6) != 0) continue;
        data_options o = default_options(data_name(i), "");
        o.limit = 50;
        dataset *d = open_data(&o);
        batch b;
        assert_int_equal(data_get_shape(d)->task, data_task(i));
        assert_int_equal(data_batch(d, SPLIT_VALID, 0, 0, &b, NULL), SR_OK);
        assert_int_equal(b.task, data_task(i));
        assert_true(b.count > 0 && b.tokens >= b.count);
        assert_non_null(strstr(data_describe(d), data_name(i)));
        assert_null(strchr(data_describe(d), '\n'));
        assert_true((data_word(d, SIDE_SOURCE, TOKEN_EOS) != NULL) == (data_task(i) == TASK_PAIRS));
        data_close(d);
    }
}

static void closing_nothing_is_fine(void **state) {
    (void)state;
    data_close(NULL);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rows_have_names_and_summaries),
        cmocka_unit_test(every_row_describes_its_task),
        cmocka_unit_test(closing_nothing_is_fine),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
