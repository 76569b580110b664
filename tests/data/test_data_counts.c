/* Counts of splits, by hand. */
#include <string.h>

#include "data/data_counts.h"
#include "data_files.h"

enum { COUNTS = 15 };

/* Fields in the order of the struct, after the unit. */
static void expect(const data_options *o, data_split split, const char *unit,
                   const int64_t want[COUNTS]) {
    data_options own = *o;
    sr_failure why = {0};
    data_counts c;
    own.survey = true;
    dataset *d = open_data(&own);
    assert_int_equal(data_count(d, split, &c, &why), SR_OK);
    assert_string_equal(c.unit, unit);
    const int64_t got[COUNTS] = {
        c.records,  c.words[0], c.words[1], c.longest[0], c.longest[1], c.unknown[c.words[1] > 0],
        c.classes,  c.fewest,   c.most,     c.empty,      c.too_long,   c.cut,
        c.repeated, c.common,   c.uneven};
    for (size_t i = 0; i < COUNTS; i++)
        if (got[i] != want[i])
            fail_msg("count %zu is %lld, not %lld", i, (long long)got[i], (long long)want[i]);
    data_close(d);
}

static void pairs(void **state) {
    (void)state;
    const char *dir = make_folder();
    data_options o = default_options("parallel", dir);
    o.max_tokens = 12;
    /* a pair, a duplicate, an empty side, too long, 10 to 1, 9 to 1, a duplicate side */
    write_text(dir, "train.de",
               "a b\na b\n\nl l l l l l l l l l l l\nc c c c c c c c c c\n"
               "d d d d d d d d d\na b\n");
    write_text(dir, "train.en", "A B C\nA B C\nX\nL\nC\nD\nA B D\n");
    write_text(dir, "valid.de", "a b\nu v\na b\n");
    write_text(dir, "valid.en", "A B C\nU\n\n");
    expect(&o, SPLIT_TRAIN, "pairs",
           (const int64_t[]){5, 25, 11, 10, 3, 0, 0, 0, 0, 1, 1, 0, 1, 0, 1});
    expect(&o, SPLIT_VALID, "pairs",
           (const int64_t[]){2, 4, 4, 2, 3, 1, 0, 0, 0, 1, 0, 0, 0, 1, 0});
    expect(&o, SPLIT_TEST, "pairs", (const int64_t[COUNTS]){0});
    write_text(dir, "valid.de", "a\nb\n"); /* 1 to 10, 1 to 9 */
    write_text(dir, "valid.en", "A A A A A A A A A A\nB B B B B B B B B\n");
    expect(&o, SPLIT_VALID, "pairs",
           (const int64_t[]){2, 2, 19, 1, 10, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1});
}

static void running_text(void **state) {
    (void)state;
    const char *dir = make_folder();
    data_options o = default_options("text", dir);
    o.batch_size = o.eval_batch_size = o.window = 1;
    write_text(dir, "train", "a b c\n\na b c\n<unk> d\n");
    write_text(dir, "valid", "a b c\nx d\n<unk> d\n<unk> d\n\n\n");
    expect(&o, SPLIT_TRAIN, "lines",
           (const int64_t[]){4, 8, 0, 3, 0, 1, 0, 0, 0, 1, 0, 0, 1, 0, 0});
    expect(&o, SPLIT_VALID, "lines",
           (const int64_t[]){6, 9, 0, 3, 0, 3, 0, 0, 0, 2, 0, 0, 1, 3, 0});
}

static void bytes(void **state) {
    (void)state;
    const char *dir = make_folder();
    data_options o = default_options("bytes", dir);
    o.batch_size = o.eval_batch_size = o.window = 1;
    o.valid_bytes = 5, o.test_bytes = 4;
    strcpy(o.file, "all");
    write_text(dir, "all", "aaaaaaaaaaaaaaaaaaaa");
    expect(&o, SPLIT_TRAIN, "bytes", (const int64_t[COUNTS]){11});
    expect(&o, SPLIT_VALID, "bytes", (const int64_t[COUNTS]){5});
}

static void sentences(void **state) {
    (void)state;
    const char *dir = make_folder();
    data_options o = default_options("labelled", dir);
    o.min_count = 2, o.max_length = 3;
    write_text(dir, "train", "1 a b\n1 a b\n2 a\n3\n3 a b c d\n");
    write_text(dir, "valid", "2 a b\n2 x\n");
    expect(&o, SPLIT_TRAIN, "sentences",
           (const int64_t[]){4, 8, 0, 3, 0, 1, 3, 1, 2, 1, 0, 1, 1, 0, 0});
    expect(&o, SPLIT_VALID, "sentences",
           (const int64_t[]){2, 3, 0, 2, 0, 1, 1, 2, 2, 0, 0, 0, 0, 1, 0});
}

static void tags_and_trees(void **state) {
    (void)state;
    const char *dir = make_folder();
    write_text(dir, "train", "a B-X\nb O\n\nc O\n\na O\nb O\n\n");
    write_text(dir, "valid", "c O\n\n");
    data_options o = default_options("conll", dir);
    expect(&o, SPLIT_TRAIN, "sentences",
           (const int64_t[]){3, 5, 0, 2, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0});
    expect(&o, SPLIT_VALID, "sentences",
           (const int64_t[]){1, 1, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0});
    write_text(dir, "train", "a\tN\t0\nb\tN\t1\n\nc\tN\t0\n\nc\tN\t0\n\n");
    write_text(dir, "valid", "a\tN\t2\nb\tN\t0\n\nx\tN\t0\n");
    o = default_options("trees", dir);
    expect(&o, SPLIT_TRAIN, "sentences",
           (const int64_t[]){3, 4, 0, 2, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0});
    expect(&o, SPLIT_VALID, "sentences",
           (const int64_t[]){2, 3, 0, 2, 0, 1, 0, 0, 0, 0, 0, 0, 0, 1, 0});
}

static void images(void **state) {
    (void)state;
    const char *dir = make_folder();
    data_options o = default_options("idx", dir);
    unsigned char pixel[16 + 6 * 2] = {0, 0, 8, 3, 0, 0, 0, 6, 0, 0, 0, 1, 0, 0, 0, 2};
    memcpy(pixel + 16, "aaabaaabcdaa", 12); /* aa ab aa ab cd aa */
    const unsigned char label[] = {0, 0, 8, 1, 0, 0, 0, 6, 7, 8, 7, 7, 9, 9};
    write_bytes(dir, "i", pixel, sizeof pixel);
    write_bytes(dir, "l", label, sizeof label);
    strcpy(o.idx_train_images, "i"), strcpy(o.idx_train_labels, "l");
    o.valid_images = 2;
    expect(&o, SPLIT_TRAIN, "images",
           (const int64_t[]){4, 0, 0, 0, 0, 0, 2, 1, 3, 0, 0, 0, 2, 0, 0});
    expect(&o, SPLIT_VALID, "images",
           (const int64_t[]){2, 0, 0, 0, 0, 0, 1, 2, 2, 0, 0, 0, 0, 1, 0});
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pairs),     cmocka_unit_test(running_text),   cmocka_unit_test(bytes),
        cmocka_unit_test(sentences), cmocka_unit_test(tags_and_trees), cmocka_unit_test(images),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
