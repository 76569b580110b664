/* The checksum of the training data. Any change of a record or of the order changes it. Other
 * validation data, batches or file formats of the same data do not. */
#include <string.h>

#include "data_files.h"

#define ROW(word, tag, head, label) word "\t" tag "\t" head "\t" label "\n"
#define TREE                        ROW("a", "X", "2", "l") ROW("b", "Y", "0", "m") "\n"

/* Two training texts with the same dictionary, classes and number of batches. */
static const struct {
    const char *data, *text, *changed[4];
} rows[] = {
    {"text", "a b c a\nb c\n", {"b c\na b c a\n", "a b c b\na c\n", "a b c a b\nc\n"}},
    {"labelled", "x a b\ny b a\nx a a\n", {"y a b\nx b a\nx a a\n", "x a b\nx a a\ny b a\n"}},
    {"conll",
     "a B-P\nb O\n\nb B-Q\n",
     {"a B-Q\nb O\n\nb B-P\n", "b B-P\na O\n\nb B-Q\n", "a B-P\n\nb O\nb B-Q\n"}},
    {"trees",
     TREE ROW("b", "X", "0", "m") "\n",
     {TREE ROW("a", "X", "0", "m") "\n", TREE ROW("b", "Y", "0", "m") "\n",
      ROW("b", "X", "0", "m") "\n" TREE,
      ROW("a", "X", "0", "l") ROW("b", "Y", "1", "m") "\n" ROW("b", "X", "0", "m") "\n"}},
    {"parallel", "a b\nb\nc\n", {"b\na b\nc\n", "a c\nb\nc\n", "a b\nc\nb\n"}},
};

static int64_t digest(const data_options *o) {
    dataset *d = open_data(o);
    const int64_t found = data_training_digest(d);
    data_close(d);
    return found;
}

static data_options files(const char *data, const char *text) {
    data_options o = default_options(data, make_folder());
    o.batch_size = 2, o.eval_batch_size = o.eval_window = 1, o.window = 2;
    strcpy(o.source, "de"), strcpy(o.target, "en");
    const bool pairs = !strcmp(data, "parallel");
    write_text(o.dir, pairs ? "train.de" : "train", text);
    write_text(o.dir, pairs ? "valid.de" : "valid", text);
    if (pairs) write_text(o.dir, "train.en", "c\nb\na\n");
    if (pairs) write_text(o.dir, "valid.en", "c\nb\na\n");
    return o;
}

static void of_texts(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        data_options o = files(rows[i].data, rows[i].text);
        const int64_t first = digest(&o);
        o.seed = 7;
        strcpy(o.validpref, "train");
        assert_int_equal(digest(&o), first);
        for (int k = 0; k < 4 && rows[i].changed[k]; k++) {
            o = files(rows[i].data, rows[i].changed[k]);
            if (digest(&o) == first) fail_msg("%s: change %d is not seen", rows[i].data, k);
        }
    }
}

static void of_images(void **state) {
    (void)state;
    data_options o = default_options("synth-images", "");
    o.limit = 20;
    const int64_t first = digest(&o);
    o.augment = !o.augment, o.batch_size = 5;
    assert_int_equal(digest(&o), first);
    o.limit = 19;
    assert_int_not_equal(digest(&o), first);
    o.limit = 20, o.seed++;
    assert_int_not_equal(digest(&o), first);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(of_texts),
        cmocka_unit_test(of_images),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
