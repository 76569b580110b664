/* Readers of classified sentences: labels, columns, encodings, lines of each split, errors; the
 * shared sets. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "data_files.h"

static data_options options(const char *name, const char *dir) {
    data_options o = default_options(name, dir);
    o.batch_size = 8;
    return o;
}

static void expect_note(const dataset *d, const char *part) {
    if (!strstr(data_describe(d), part)) fail_msg("no '%s' in: %s", part, data_describe(d));
}

/* Counts the sentences of each class in a split. */
static int64_t count_classes(dataset *d, data_split split, int64_t classes, int64_t *count) {
    int64_t all = 0;
    memset(count, 0, (size_t)classes * sizeof *count);
    for (int64_t k = 0; k < data_batches(d, split); k++) {
        batch b;
        assert_int_equal(data_batch(d, split, 0, k, &b, NULL), SR_OK);
        for (int64_t i = 0; i < b.count; i++, all++) {
            assert_in_range(b.label[i], 0, classes - 1);
            count[b.label[i]]++;
        }
    }
    return all;
}

/* Writes the words of sentence `number` of a split, each followed by a blank; returns its class. */
static int find_text(dataset *d, data_split split, int64_t number, char *text) {
    *text = 0;
    for (int64_t k = 0; k < data_batches(d, split); k++) {
        batch b;
        assert_int_equal(data_batch(d, split, 0, k, &b, NULL), SR_OK);
        for (int64_t i = 0; i < b.count; i++) {
            if (b.pair[i] != number) continue;
            for (int64_t j = 0; j < b.source_length && b.source_mask[i * b.source_length + j]; j++)
                sprintf(text + strlen(text), "%s ",
                        data_word(d, SIDE_SOURCE, b.source[i * b.source_length + j]));
            return b.label[i];
        }
    }
    fail_msg("no sentence %d", (int)number);
    return -1;
}

static void expect_text(dataset *d, data_split split, int64_t number, const char *want, int label) {
    char text[4096];
    assert_int_equal(find_text(d, split, number, text), label);
    assert_string_equal(text, want);
}

/* Labels 10, 9 and -1 are sorted by value. Separators: blank or TAB; CR LF; no newline at the
 * end. */
static void labels_and_texts(void **state) {
    (void)state;
    const char *dir = make_folder();
    write_text(dir, "train.gz", "10 a b\r\n9\tb a c\n\n-1 a\n9\n   \n");
    write_text(dir, "valid", "9 c\n10 zz a");
    data_options o = options("labelled", dir);
    dataset *d = open_data(&o);
    assert_int_equal(data_get_shape(d)->classes, 3);
    assert_int_equal(data_get_shape(d)->vocabulary, 4 + 3);
    assert_int_equal(data_get_shape(d)->longest, 3);
    expect_text(d, SPLIT_TRAIN, 0, "a b ", 2);
    expect_text(d, SPLIT_TRAIN, 1, "b a c ", 1);
    expect_text(d, SPLIT_TRAIN, 2, "a ", 0);
    expect_text(d, SPLIT_VALID, 1, "<unk> a ", 2);
    expect_note(d, "(3 without a word left out)");
    expect_note(d, "validation 2 sentences, 3 words, 33.33 % <unk>");
    assert_false(data_has_split(d, SPLIT_TEST));
    check_equals(data_unknown_share(d, SPLIT_VALID), 1.0 / 3);
    data_close(d);
    o.pad_to = 2;
    d = open_data(&o);
    expect_note(d, "(3 without a word left out) (1 cut to pad-to);");
    data_close(d);
    o.max_length = 1;
    d = open_data(&o);
    expect_note(d, "(3 without a word left out) (2 cut to max-length);");
    data_close(d);
    o.pad_to = o.max_length = 0;
    write_text(dir, "train.gz", "neg a\npos b\nNeg c\n"); /* words: by bytes */
    write_text(dir, "valid", "pos c\n");
    d = open_data(&o);
    expect_text(d, SPLIT_TRAIN, 2, "c ", 0);
    expect_text(d, SPLIT_VALID, 0, "c ", 2);
    data_close(d);
}

static void columns(void **state) {
    (void)state;
    const char *dir = make_folder();
    write_text(dir, "train",
               "\"2\",\"A title\",\"say \"\"no\"\", twice\\nhere\"\n1,plain text\n\n");
    write_text(dir, "valid", "\"1\",\"title,\"\r\n");
    data_options o = options("labelled-csv", dir);
    dataset *d = open_data(&o);
    expect_text(d, SPLIT_TRAIN, 0, "A title say \"no\", twice here ", 1);
    expect_text(d, SPLIT_TRAIN, 1, "plain text ", 0);
    expect_text(d, SPLIT_VALID, 0, "<unk> ", 0);
    data_close(d);
}

/* A fraction of the training lines is drawn for validation, another one with another seed. The rest
 * is training. */
static void validation_is_drawn(void **state) {
    (void)state;
    const char *dir = make_folder();
    char text[8192] = "";
    int64_t count[2];
    for (int i = 0; i < 200; i++) sprintf(text + strlen(text), "%d w%d\n", i % 2, i);
    write_text(dir, "train", text);
    data_options o = options("labelled", dir);
    *o.validpref = 0, o.valid_share = 0.3;
    dataset *d = open_data(&o), *other;
    assert_int_equal(count_classes(d, SPLIT_TRAIN, 2, count), 140);
    assert_int_equal(count_classes(d, SPLIT_VALID, 2, count), 60);
    assert_true(count[0] > 15 && count[1] > 15);
    expect_note(d, "60 of 200 lines drawn for validation by seed 1");
    check_equals(data_unknown_share(d, SPLIT_VALID), 1); /* no validation word is in training */
    char blank[8192] = "\n"; /* lines without a text are not counted, and draw nothing */
    for (int i = 0; i < 200; i++)
        sprintf(blank + strlen(blank), "%d w%d\n\n%d \xc2\xa0\n", i % 2, i, i % 2);
    write_text(dir, "train", blank);
    other = open_data(&o);
    assert_int_equal(count_classes(other, SPLIT_VALID, 2, count), 60);
    expect_note(other, "60 of 200 lines drawn for validation by seed 1");
    for (int64_t i = 4; i < 144; i++)
        assert_string_equal(data_word(d, SIDE_SOURCE, i), data_word(other, SIDE_SOURCE, i));
    data_close(other);
    write_text(dir, "train", text);
    o.seed = 2;
    other = open_data(&o);
    assert_string_not_equal(data_word(d, SIDE_SOURCE, 4), "");
    int same = 0;
    for (int64_t i = 4; i < 144; i++)
        same += !strcmp(data_word(d, SIDE_SOURCE, i), data_word(other, SIDE_SOURCE, i));
    assert_true(same < 140);
    data_close(d), data_close(other);
}

static void refuse_files(const char *name, const char *train, const char *valid, const char *part) {
    const char *dir = make_folder();
    write_text(dir, "train", train);
    write_text(dir, "valid", valid);
    data_options o = options(name, dir);
    refuse_data(&o, SR_FORMAT, part);
}

static void wrong_lines(void **state) {
    (void)state;
    char label[80] = "", many[16000] = "";
    const char *good = "0 a\n1 b\n";
    memset(label, 'x', 70);
    strcat(label, " a\n");
    for (int i = 0; i < 1001; i++) sprintf(many + strlen(many), "c%d a\n", i);
    refuse_files("labelled", good, "1 a\n2 b\n", "valid:2: label '2' is none of the 2 of ");
    refuse_files("labelled", good, "01 a\n", "valid:1: label '01' is none of the 2");
    refuse_files("labelled", "0 a\n 1 b\n", good, "train:2: the line begins with a blank");
    refuse_files("labelled", "0 a\n0 b\n", good, "train: one label in 2 lines");
    refuse_files("labelled", "\n\n", good, "train: no label in 2 lines");
    refuse_files("labelled", good, "1 a\n 1 b\n", "valid:2: the line begins with a blank");
    refuse_files("labelled", "0\n1\n", good, "no training sentence is left, 2 are empty");
    refuse_files("labelled", "", good, "train:1: holds no line");
    refuse_files("labelled", label, good, "train:1: label 'xxxx");
    refuse_files("labelled", many, good, "train:1001: 'c1000' is label number 1001");
    refuse_files("labelled-csv", "0,a\n\"1\",\"b\n", good, "train:2: a quoted column does not end");
    refuse_files("labelled-csv", "0,a\n\"1\"x,b\n", good, "train:2: neither a comma nor the end");
    refuse_files("labelled-csv", "0,a\n1\n", good, "train:2: one column");
    refuse_files("labelled-csv", "0,a\n,b\n", good, "train:2: the label is empty");
}

static void wrong_files(void **state) {
    (void)state;
    const char *dir = make_folder();
    data_options o = options("labelled", dir);
    refuse_data(&o, SR_IO, "train: No such file or directory (nor ");
    write_text(dir, "train", "0 a\n1 b\n");
    refuse_data(&o, SR_IO, "valid: No such file or directory (nor ");
    *o.validpref = 0;
    for (int i = 0; i < 5; i++) {
        o.valid_share = (const double[]){0, 0.01, -1, 2, 0.99}[i];
        refuse_data(&o, SR_USAGE, i < 4 ? "leaves no validation" : "leaves nothing for training");
    }
    *o.trainpref = 0;
    refuse_data(&o, SR_USAGE, "trainpref is empty");
    o = options("labelled", dir);
    write_raw(dir, "valid.gz", "\x1f\x8b\x08\0\0\0\0\0\0\x03K", 11);
    refuse_data(&o, SR_FORMAT, "valid.gz: byte 11: truncated gzip data");
    write_text(dir, "valid", "1 caf\xe9\n");
    strcpy(o.encoding, "utf-8");
    refuse_data(&o, SR_FORMAT, "valid:1: byte 5 of the line is 0xe9");
    strcpy(o.encoding, "utf-16");
    refuse_data(&o, SR_USAGE, "encoding 'utf-16' is not one of auto|utf-8|latin-1");
    strcpy(o.encoding, "auto");
    dataset *d = open_data(&o);
    expect_note(d, "valid (not UTF-8: read as Windows-1252)");
    data_close(d);
}

/* fastText labels after the first, a header, names of many classes. */
static void odd_labels(void **state) {
    (void)state;
    const char *dir = make_folder();
    data_options o = options("labelled", dir);
    write_text(dir, "train",
               "__label__a  __label__b\t__label__c  one\n__label__b\nlabellabel __label__x\n"
               "__label__b __label__a\n__label__a _ two\n");
    write_text(dir, "valid", "__label__a one\n");
    refuse_data(&o, SR_FORMAT, "train:1: several labels, but the model learns one");
    strcpy(o.labels, "first");
    dataset *d = open_data(&o);
    expect_text(d, SPLIT_TRAIN, 0, "one ", 0);
    expect_text(d, SPLIT_TRAIN, 1, "__label__x ", 2);
    expect_note(d, "; 3 labels after the first of a line left out");
    data_close(d);
    write_text(dir, "train", "__label__a __label__b one\n__label__b two\n");
    d = open_data(&o);
    expect_note(d, "; 1 label after the first of a line left out");
    data_close(d);
    write_text(dir, "train", "klass text\nclass a\nclass b\nother c\nother d\n");
    write_text(dir, "valid", "other d\n"); /* its label is as long as the header's */
    d = open_data(&o);
    expect_note(d, "; header 'klass' of line 1 left out");
    assert_int_equal(data_get_shape(d)->classes, 2);
    data_close(d);
    write_text(dir, "valid", "\nclass d\n");
    d = open_data(&o);
    expect_text(d, SPLIT_VALID, 0, "d ", 0);
    data_close(d);
    char many[256] = "";
    for (int i = 0; i < 12; i++) sprintf(many + strlen(many), "c%02d a\n", i);
    write_text(dir, "train", many), write_text(dir, "valid", "c00 a\n");
    d = open_data(&o);
    expect_note(d, "; labels c00, c01, c02, c03, c04, c05, c06, c07, c08 ... c11;");
    data_close(d);
    write_text(dir, "train", "99999999999999999999 a\n2 a\n1 a\n"); /* no integer of 64 bits */
    write_text(dir, "valid", "2 a\n");
    d = open_data(&o);
    expect_text(d, SPLIT_TRAIN, 0, "a ", 2);
    data_close(d);
    write_text(dir, "train", "1 a\n01 b\n0 c\n+1 d\n"), write_text(dir, "valid", "1 a\n");
    d = open_data(&o);
    expect_note(d, "; labels 0, +1, 01, 1;");
    data_close(d);
}

/* The first text of a rare class is not a header. */
static void layouts_without_header(void **state) {
    (void)state;
    const char *dir = make_folder();
    data_options o = options("labelled", dir);
    write_text(dir, "train", "(4 a)\n(0 b)\n(1 c)\n(0 d)\n(1 e)\n");
    write_text(dir, "valid", "4 f\n0 g\n");
    dataset *d = open_data(&o);
    expect_note(d, "/valid; labels 0, 1, 4; 3 classes");
    expect_text(d, SPLIT_TRAIN, 0, "a ", 2);
    expect_text(d, SPLIT_VALID, 0, "<unk> ", 2);
    data_close(d);
    o = options("labelled", dir = make_folder());
    strcpy(o.validpref, "test"), *o.testpref = 0;
    for (int i = 0; i < 2; i++) {
        const char *split = i ? "test" : "train";
        char folder[32];
        for (int class = 0; class < 3; class ++)
            for (int k = 0; k < (class ? 2 : 1); k++) {
                sprintf(folder, "%s/%c", split, 'a' + class);
                write_in(dir, folder, k ? "2" : "1", "x y\n");
            }
    }
    d = open_data(&o);
    expect_note(d, "1 texts of a, 2 texts of b, 2 texts of c); labels a, b, c; 3 classes");
    data_close(d);
    write_text(dir, "valid", "a x\nb y\n"); /* lines, but training has no header */
    strcpy(o.validpref, "valid");
    d = open_data(&o);
    expect_text(d, SPLIT_VALID, 0, "x ", 0);
    data_close(d);
    write_text(dir, "lines", "a text\nb c\nb d\nc e\nc f\n"); /* lines alone have a header */
    strcpy(o.trainpref, "lines"), strcpy(o.validpref, "test");
    refuse_data(&o, SR_FORMAT, "/test/a/1: label 'a' is none of the 2 of ");
}

/* Column contents that stay unchanged. */
static void odd_columns(void **state) {
    (void)state;
    const char *dir = make_folder();
    data_options o = options("labelled-csv", dir);
    write_text(dir, "train", "1,\n2,a\\tb\n1,c\\\n2,\\n\n");
    write_text(dir, "valid", "1,c\n");
    dataset *d = open_data(&o);
    expect_note(d, "(2 without a word left out)");
    expect_text(d, SPLIT_TRAIN, 0, "a\\tb ", 1);
    expect_text(d, SPLIT_TRAIN, 1, "c\\ ", 0);
    data_close(d);
}

static void refuse_tree(const char *line, const char *part) {
    char text[256];
    snprintf(text, sizeof text, "(1 (2 a)(3 b))\n(0 c)\n%s\n", line);
    refuse_files("labelled", text, "1 a\n", part);
}

/* Sentiment trees: labels of the roots; a first line that only resembles a tree is text. */
static void trees_of_labels(void **state) {
    (void)state;
    const char *dir = make_folder();
    data_options o = options("labelled", dir);
    write_text(dir, "train", "(1 (2 a)(3 b))\n(0\tc(2 d))\n"), write_text(dir, "valid", "1 b\n");
    dataset *d = open_data(&o);
    expect_text(d, SPLIT_TRAIN, 0, "a b ", 1);
    expect_text(d, SPLIT_TRAIN, 1, "c d ", 0);
    data_close(d);
    refuse_tree("(0 (2 a", "train:3: parentheses of the tree do not match");
    refuse_tree("(0", "train:3: parentheses of the tree do not match");
    refuse_tree("(0 a)(1 b)", "train:3: something follows the tree");
    refuse_tree("0 a", "train:3: the line is no tree, but line 1 is one");
    refuse_tree("(0 (a b) ( c))", "train:3: a node of the tree has no label");
    static const char *const text[] = {"(1111", "(1x a", "(a b)", "(1/2 a", "(1) a"};
    for (size_t i = 0; i < sizeof text / sizeof *text; i++)
        refuse_files("labelled", text[i], "1 a\n", "train: one label in 1 lines");
}

static void folders_of_classes(void **state) {
    (void)state;
    const char *dir = make_folder();
    data_options o = options("labelled", dir);
    write_in(dir, "train/neg", "1", "a\n"), write_in(dir, "train/pos", "1", "b\r\nc\n");
    write_text(dir, "valid", "pos a\n");
    dataset *d = open_data(&o);
    expect_text(d, SPLIT_TRAIN, 1, "b c ", 1);
    data_close(d);
    /* backup copies are not texts; a packed file without its plain form is */
    write_in(dir, "train/pos", "1~", "d\n"), write_in(dir, "train/pos", "1.bak", "d\n");
    write_in(dir, "train/pos", "1.gz", "d\n"), write_in(dir, "train/neg", "2.gz", "caf\xe9\n");
    d = open_data(&o);
    expect_note(d, "(folders, 2 texts of neg, 1 of them not UTF-8: read as Windows-1252, 1 texts "
                   "of pos, 3 copies left out)");
    data_close(d);
    /* error messages name the file of the text */
    write_in(dir, "test/neg", "1", "a\n"), write_in(dir, "test/neu", "7", "a\n");
    refuse_data(&o, SR_FORMAT, "test/neu/7: label 'neu' is none of the 2 of ");
    *o.testpref = 0, o.max_tokens = 8, strcpy(o.batch_by, "tokens");
    write_in(dir, "train/pos", "2", "a a a a a a a a a\n");
    refuse_data(&o, SR_USAGE, "/train/pos/2: a sentence of 9 tokens, at most 8");
    strcpy(o.encoding, "utf-16");
    refuse_data(&o, SR_USAGE, "encoding 'utf-16' is not one of auto|utf-8|latin-1");
    *o.encoding = 0;
    write_in(dir, "train/a b", "1", "a\n");
    refuse_data(&o, SR_FORMAT, "train/a b: a class with a blank in its name");
    strcpy(o.trainpref, "valid/neg"); /* below a file */
    refuse_data(&o, SR_IO, "valid/neg: ");
}

/* -- polarity */

static const char *write_polarity(int lines) {
    const char *dir = make_folder();
    for (int side = 0; side < 2; side++) {
        char text[16384] = "";
        for (int i = 0; i < lines; i++)
            sprintf(text + strlen(text), "%s%d x\n", side ? "p" : "n", i);
        write_text(dir, side ? "rt.pos" : "rt.neg.gz", text);
    }
    return dir;
}

static data_options polarity(const char *dir) {
    data_options o = options("polarity", dir);
    strcpy(o.trainpref, "rt");
    return o;
}

static void polarity_is_split_at_random(void **state) {
    (void)state;
    int64_t count[2];
    data_options o = polarity(write_polarity(100));
    o.valid_count = 20, o.test_count = 30;
    dataset *d = open_data(&o);
    assert_int_equal(count_classes(d, SPLIT_TRAIN, 2, count), 150);
    assert_true(count[0] > 60 && count[1] > 60);
    assert_int_equal(count_classes(d, SPLIT_VALID, 2, count), 20);
    assert_int_equal(count_classes(d, SPLIT_TEST, 2, count), 30);
    assert_true(count[0] > 5 && count[1] > 5);
    for (int64_t i = 0; i < 150; i++) {
        char text[64];
        const int label = find_text(d, SPLIT_TRAIN, i, text);
        assert_int_equal(text[0], label ? 'p' : 'n');
    }
    data_close(d);
    o.limit = 20; /* both classes */
    d = open_data(&o);
    assert_int_equal(count_classes(d, SPLIT_TRAIN, 2, count), 20);
    assert_true(count[0] > 3 && count[1] > 3);
    data_close(d);
}

/* Each line is in the test split of one fold and in the validation split of another. */
static void folds_cover_every_line(void **state) {
    (void)state;
    enum { LINES = 52 };
    const char *dir = write_polarity(LINES);
    int64_t tests[2] = {0}, count[2];
    for (int k = 1; k <= 10; k++) {
        data_options o = polarity(dir);
        sprintf(o.fold, "%d/10", k);
        dataset *d = open_data(&o);
        const int64_t test = count_classes(d, SPLIT_TEST, 2, count);
        tests[0] += count[0], tests[1] += count[1];
        const int64_t valid = count_classes(d, SPLIT_VALID, 2, count);
        assert_in_range(test, 10, 11);
        assert_in_range(valid, 10, 11);
        assert_int_equal(count_classes(d, SPLIT_TRAIN, 2, count), 2 * LINES - test - valid);
        check_equals(data_unknown_share(d, SPLIT_TEST), 0.5); /* its first words are unique */
        data_close(d);
    }
    assert_true(tests[0] == LINES && tests[1] == LINES);
}

static void wrong_polarity(void **state) {
    (void)state;
    const char *const folds[] = {"0/10", "11/10", "1/2", "3", "1/10x", "1/2000", "a/b"};
    data_options o = polarity(write_polarity(10));
    o.valid_count = o.test_count = -1; /* the default */
    refuse_data(&o, SR_USAGE,
                "/rt.neg.gz and .pos: valid-count 964 and test-count 1090 use all 20");
    o.valid_count = 5, o.test_count = 15;
    refuse_data(&o, SR_USAGE, "valid-count 5 and test-count 15 use all 20 lines");
    o.test_count = 30;
    refuse_data(&o, SR_USAGE, "valid-count 5 and test-count 30 use all 20 lines");
    for (size_t i = 0; i < sizeof folds / sizeof *folds; i++) {
        strcpy(o.fold, folds[i]);
        refuse_data(&o, SR_USAGE, "is not K/N, as 1/10");
    }
    strcpy(o.fold, "1/21");
    refuse_data(&o, SR_USAGE, "20 lines are fewer than the folds");
    *o.trainpref = 0;
    refuse_data(&o, SR_USAGE, "trainpref is empty");
    strcpy(o.trainpref, "mr");
    refuse_data(&o, SR_IO, "mr.neg: No such file or directory (nor ");
}

/* -- the shared sets */

static void shared_polarity(void **state) {
    (void)state;
    int64_t count[2];
    const char *dir = check_shared("data/rt-polarity");
    if (!dir) skip();
    data_options o = polarity(dir);
    strcpy(o.trainpref, "rt-polarity");
    o.valid_count = 964, o.test_count = 1090, o.min_count = 2;
    dataset *d = open_data(&o);
    assert_int_equal(count_classes(d, SPLIT_TRAIN, 2, count), 8608);
    expect_note(d, "rt-polarity.neg.gz (not UTF-8: read as Windows-1252)");
    check_below(data_unknown_share(d, SPLIT_TRAIN), 0.06);
    data_close(d);
}

static void shared_sst5(void **state) {
    (void)state;
    const int64_t want[3][5] = {
        {1092, 2218, 1624, 2322, 1288}, {139, 289, 229, 279, 165}, {279, 633, 389, 510, 399}};
    const char *dir = check_shared("data/sst5");
    if (!dir) skip();
    data_options o = options("labelled", dir);
    strcpy(o.trainpref, "stsa.fine.train"), strcpy(o.validpref, "stsa.fine.dev");
    strcpy(o.testpref, "stsa.fine.test");
    dataset *d = open_data(&o);
    for (int s = 0; s < 3; s++) {
        int64_t count[5];
        count_classes(d, (data_split)s, 5, count);
        assert_memory_equal(count, want[s], sizeof count);
    }
    data_close(d);
}

static void batches_are_functions_of_their_place(void **state) {
    (void)state;
    data_options o = polarity(write_polarity(100));
    o.valid_count = 20, o.test_count = 30, o.batch_size = 7;
    for (int prefetch = 0; prefetch < 2; prefetch++)
        for (int random = 0; random < 2; random++) {
            o.prefetch = prefetch;
            strcpy(o.batching, random ? "random" : "bucketed");
            check_pure(&o, SPLIT_TRAIN);
            check_pure(&o, SPLIT_TEST);
        }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(labels_and_texts),
        cmocka_unit_test(columns),
        cmocka_unit_test(validation_is_drawn),
        cmocka_unit_test(odd_labels),
        cmocka_unit_test(layouts_without_header),
        cmocka_unit_test(odd_columns),
        cmocka_unit_test(trees_of_labels),
        cmocka_unit_test(folders_of_classes),
        cmocka_unit_test(wrong_lines),
        cmocka_unit_test(wrong_files),
        cmocka_unit_test(polarity_is_split_at_random),
        cmocka_unit_test(folds_cover_every_line),
        cmocka_unit_test(wrong_polarity),
        cmocka_unit_test(shared_polarity),
        cmocka_unit_test(shared_sst5),
        cmocka_unit_test(batches_are_functions_of_their_place),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
