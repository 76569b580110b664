/* What is odd about data is told, and nothing about data that are not odd. */
#include <string.h>

#include "data_files.h"

static const char *const good = "1 a b\n1 c d\n2 e f\n2 g h\n";

static void expect(const char *format, const char *train, const char *valid, const char *want) {
    const char *dir = make_folder();
    write_text(dir, "train", train);
    write_text(dir, "valid", valid);
    data_options o = default_options(format, dir);
    o.batch_size = o.eval_batch_size = o.window = 1;
    dataset *d = open_data(&o);
    assert_string_equal(data_warnings(d), want);
    data_close(d);
}

static void classes_and_sentences(void **state) {
    (void)state;
    expect("labelled", good, "1 i j\n2 k l\n", "");
    expect("labelled", good, "1 i j\n", "the validation text is one sentence");
    expect("labelled", good, "2 i j\n2 k\n", "all 2 validation sentences have one class");
    expect("labelled", good, "1 i\n2 k\n",
           "every validation sentence is one word; are words separated?");
    expect("labelled", "1 a b\n1 c d\n2 e f\n", "1 i j\n2 k l\n",
           "1 of 2 labels occurs once in the training text: '2'");
    expect("labelled", "1 a b\n2 e f\n3 x y\n4 z z\n", "1 i j\n2 k l\n",
           "4 of 4 labels occur once in the training text: '1', '2', '3' ...");
    expect("labelled", good, "1 a  b\n2 k l\n2 a\n",
           "1 of 3 validation sentences (33.3 %) are in the training text, too");
    expect("conll", "a B-X\nb O\n\nc O\nd O\n", "b O\nb O\n\na B-X\nb O\n",
           "1 of 2 validation sentences (50.0 %) are in the training text, too");
}

/* From 5 %. */
static void few_common_sentences(void **state) {
    (void)state;
    char valid[512] = "1 a b\n";
    for (int i = 0; i < 20; i++) sprintf(valid + strlen(valid), "%d x y%d\n", 1 + i % 2, i);
    expect("labelled", good, valid, "");
    *strstr(valid, "2 x y19") = 0; /* 20 lines are left */
    expect("labelled", good, valid,
           "1 of 20 validation sentences (5.0 %) are in the training text, too");
}

static void carriage_returns(void **state) {
    (void)state;
    const char *dir = make_folder();
    write_text(dir, "train", "a b\r\nc d\r\n");
    write_text(dir, "valid", "a b\rc d\ra a\n");
    data_options o = default_options("text", dir);
    o.batch_size = o.eval_batch_size = o.window = 1;
    dataset *d = open_data(&o);
    assert_non_null(strstr(data_describe(d), "/train (2 lines end in CR LF) "));
    assert_non_null(strstr(data_warnings(d), "/valid: 2 carriage returns without a newline end no "
                                             "line; `tr"));
    assert_null(strstr(data_warnings(d), "/train"));
    data_close(d);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(classes_and_sentences),
        cmocka_unit_test(few_common_sentences),
        cmocka_unit_test(carriage_returns),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
