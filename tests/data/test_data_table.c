/* The table of data sets; a set without files opens with defaults. */
#include <stdio.h>
#include <string.h>

#include "data/sets/tree_data.h"
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

static void no_such_row(void **state) {
    (void)state;
    for (int i = -1; data_name(i) || i < 0; i++) {
        const bool there = i >= 0;
        assert_true((data_option_keys(i) != NULL) == there && (data_summary(i) != NULL) == there);
    }
    assert_null(data_option_keys(99));
    assert_int_equal(data_task(-1), TASK_IMAGES);
    assert_int_equal(data_task(99), TASK_IMAGES);
    assert_false(data_reads_files("none"));
    assert_false(data_obeys("none", "batch-size"));
    assert_true(data_obeys("cifar10", "batch-size"));
    data_options o = default_options("none", "");
    refuse_data(&o, SR_USAGE, "no data set is called 'none'");
    o = default_options("synth-images", "");
    o.limit = -1;
    refuse_data(&o, SR_USAGE, "limit -1 is negative");
}

/* A set of another task returns nothing. */
static void other_tasks_have_none(void **state) {
    (void)state;
    data_options o = default_options("synth-images", "");
    o.limit = 50;
    dataset *d = open_data(&o);
    data_trees trees;
    assert_false(data_trees_of(d, SPLIT_TRAIN, &trees));
    assert_null(data_codec(d).dictionary[SIDE_SOURCE]);
    assert_int_equal(data_batches(d, (data_split)(SPLIT_TEST + 1)), 0);
    assert_null(data_source(d, SPLIT_TRAIN, 0).byte);
    assert_int_equal(data_line_of(d, SPLIT_TRAIN, -1), -1);
    data_close(d);
}

static void a_file_is_no_folder(void **state) {
    (void)state;
    const char *dir = make_folder();
    data_options o = default_options("text", write_text(dir, "train", "a b\n"));
    refuse_data(&o, SR_IO, "/train: Not a directory");
    snprintf(o.dir, sizeof o.dir, "%s/none", dir);
    refuse_data(&o, SR_IO, "/none: No such file or directory");
}

static void closing_nothing_is_fine(void **state) {
    (void)state;
    data_close(NULL);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rows_have_names_and_summaries),
        cmocka_unit_test(every_row_describes_its_task),
        cmocka_unit_test(no_such_row),
        cmocka_unit_test(other_tasks_have_none),
        cmocka_unit_test(a_file_is_no_folder),
        cmocka_unit_test(closing_nothing_is_fine),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
