/* Data sets of trees: ids, transitions and features by hand, skipped sentences, splitting one file,
 * errors, and the counts of the shared treebanks. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "data/sets/tree_data.h"
#include "data_files.h"

#define ROW(id, form, pos, head, label)                                                            \
    id "\t" form "\t_\tC\t" pos "\t_\t" head "\t" label "\t_\t_\n"
#define CONTROL                                                                                    \
    ROW("1", "He", "PRP", "2", "nsubj")                                                            \
    ROW("2", "has", "VBZ", "0", "root") ROW("3", "control", "NN", "2", "dobj") "\n"
#define CROSSING                                                                                   \
    ROW("1", "a", "X", "3", "dep")                                                                 \
    ROW("2", "b", "X", "4", "dep")                                                                 \
    ROW("3", "c", "X", "0", "root") ROW("4", "d", "X", "3", "dep") "\n"
#define ONE ROW("1", "has", "VBZ", "0", "root") "\n"

/* Ids from 4 on: POS tags X VBZ NN PRP, labels dep root dobj nsubj. The only word is has, id 4. */
enum { ROOT, NONE, UNK = 3, HAS, X = 4, VBZ, NN, PRP, DEP = 4, LROOT, DOBJ, NSUBJ };

static data_options small(const char *valid) {
    const char *dir = make_folder();
    write_text(dir, "train.gz", CONTROL CROSSING ONE);
    if (valid) write_text(dir, "valid", valid);
    data_options o = default_options("trees", dir);
    o.min_count = 2;
    if (!valid) o.validpref[0] = 0;
    return o;
}

static batch get(dataset *d, data_split split, int64_t epoch, int64_t index) {
    batch b;
    sr_failure why = {0};
    check_ok(data_batch(d, split, epoch, index, &b, &why), &why);
    return b;
}

static void expect_row(const batch *b, int64_t row, const char *what, int64_t first,
                       const int32_t *want, int count) {
    for (int i = 0; i < count; i++) {
        const int32_t got = b->feature[row * b->features + first + i];
        if (got != want[i])
            fail_msg("row %d, %s %d is %d, not %d", (int)row, what, i, got, want[i]);
    }
}

/* S S L(nsubj) S R(dobj) R(root). In the state before R(dobj), the word "He" is a child of
 * "has". */
static void transitions_by_hand(void **state) {
    (void)state;
    data_options o = small(CONTROL);
    dataset *d = open_data(&o);
    const data_shape *shape = data_get_shape(d);
    assert_int_equal(shape->task, TASK_TREES);
    assert_int_equal(shape->vocabulary, 5);
    assert_int_equal(shape->pos_tags, 8);
    assert_int_equal(shape->arc_labels, 8);
    assert_int_equal(shape->classes, 9);
    const batch b = get(d, SPLIT_VALID, 0, 0);
    const int32_t class[] = {0, 0, 1 + 3, 0, 5 + 2, 5 + 1};
    assert_int_equal(b.count, 6);
    assert_int_equal(b.tokens, 6);
    assert_int_equal(b.features, 48);
    for (int i = 0; i < 6; i++) assert_int_equal(b.label[i], class[i]);
    expect_row(&b, 0, "word", 0, (int32_t[]){ROOT, NONE, NONE, UNK, HAS, UNK, NONE}, 7);
    expect_row(&b, 0, "tag", 18, (int32_t[]){ROOT, NONE, NONE, PRP, VBZ, NN, NONE}, 7);
    for (int i = 0; i < 12; i++) expect_row(&b, 0, "label", 36 + i, (int32_t[]){NONE}, 1);
    /* s1 control, s2 has with "He" on its left, s3 ROOT */
    expect_row(&b, 4, "word", 0, (int32_t[]){UNK, HAS, ROOT, NONE, NONE, NONE, NONE}, 7);
    expect_row(&b, 4, "word", 12, (int32_t[]){UNK, NONE, NONE, NONE, NONE, NONE}, 6);
    expect_row(&b, 4, "tag", 18, (int32_t[]){NN, VBZ, ROOT, NONE}, 4);
    expect_row(&b, 4, "tag", 18 + 12, (int32_t[]){PRP, NONE}, 2);
    expect_row(&b, 4, "label", 36, (int32_t[]){NONE, NONE, NONE, NONE, NONE, NONE, NSUBJ, NONE}, 8);
    /* s1 has with both, s2 ROOT */
    expect_row(&b, 5, "word", 0, (int32_t[]){HAS, ROOT, NONE, NONE, NONE, NONE, UNK, UNK}, 8);
    expect_row(&b, 5, "label", 36, (int32_t[]){NSUBJ, DOBJ, NONE}, 3);
    data_trees t;
    assert_true(data_trees_of(d, SPLIT_VALID, &t));
    assert_int_equal(t.count, 1);
    assert_true(t.one_root);
    assert_int_equal(t.rules.punctuation, TREE_PUNCTUATION_UNICODE);
    assert_false(data_trees_of(d, SPLIT_TEST, &t));
    assert_false(data_has_split(d, SPLIT_TEST));
    const double share = 2.0 / 3, got = data_unknown_share(d, SPLIT_VALID);
    check_near_double("unknown", &got, &share, 1, 1e-15, 0);
    data_close(d);
}

/* The sentence that is not projective, and one with an unknown label, are reported and skipped. */
static void what_is_left_out(void **state) {
    (void)state;
    data_options o = small(CROSSING CONTROL ROW("1", "has", "VBZ", "0", "new"));
    dataset *d = open_data(&o);
    assert_int_equal(get(d, SPLIT_TRAIN, 0, 0).count, 6 + 2);
    assert_int_equal(get(d, SPLIT_VALID, 0, 0).count, 6);
    const char *text = data_describe(d);
    assert_non_null(
        strstr(text, "format conllx; POS of column POSTAG; dictionary 5 (1 of 7 words of the "
                     "training text, 2 times at least); 4 POS tags; 4 labels; parsed to one root "
                     "each"));
    assert_non_null(strstr(text, "training 3 sentences, 8 words, 75.00 % <unk>, 8 transitions "
                                 "(without 1 sentences that are not projective)"));
    assert_non_null(strstr(text, "validation 3 sentences, 8 words, 75.00 % <unk>, 6 transitions "
                                 "(without 1 sentences that are not projective) (without 1 with "
                                 "labels that training lacks)"));
    data_trees t;
    assert_true(data_trees_of(d, SPLIT_VALID, &t));
    assert_int_equal(t.count, 3); /* all are parsed */
    data_close(d);
    write_text(o.dir, "valid", CONTROL ROW("1", "has", "SYM", "0", "root"));
    d = open_data(&o);
    assert_non_null(strstr(data_describe(d), "8 transitions (1 words with POS tags that training "
                                             "lacks)"));
    data_close(d);
}

/* Every transition once, in a different order each epoch; a batch depends on its index only. */
static void training_is_shuffled(void **state) {
    (void)state;
    data_options o = small(NULL);
    o.batch_size = 3;
    check_pure(&o, SPLIT_TRAIN);
    dataset *d = open_data(&o);
    int same = 0, seen[9] = {0};
    assert_int_equal(data_batches(d, SPLIT_TRAIN), 3);
    for (int64_t i = 0; i < 3; i++) {
        const batch b = get(d, SPLIT_TRAIN, 1, i);
        assert_int_equal(b.count, i < 2 ? 3 : 2);
        for (int64_t k = 0; k < b.count; k++) seen[b.label[k]]++;
        const uint64_t first = digest_batch(&b);
        const batch again = get(d, SPLIT_TRAIN, 2, i);
        same += digest_batch(&again) == first;
    }
    assert_true(same < 3);
    /* both sentences: four SHIFT, L(nsubj), R(dobj), two R(root) */
    assert_true(seen[0] == 4 && seen[4] == 1 && seen[7] == 1 && seen[6] == 2);
    data_close(d);
}

/* One file: the test split last, validation before it. */
static void one_file_is_cut(void **state) {
    (void)state;
    const char *dir = make_folder();
    write_text(dir, "all.dp",
               "a\tX\t0\n\nb\tX\t0\n\nc\tX\t0\n\nd\tX\t0\n\ne\tX\t0\n\nf\tX\t0\n\ng\tX\t0\n");
    data_options o = default_options("trees-cut", dir);
    strcpy(o.file, "all.dp");
    o.valid_count = 2, o.test_count = 1;
    data_trees t;
    for (int by_share = 0; by_share < 2; by_share++) {
        dataset *d = open_data(&o);
        assert_true(data_trees_of(d, SPLIT_TRAIN, &t) && t.first == 0 && t.count == 4);
        assert_true(data_trees_of(d, SPLIT_VALID, &t) && t.first == 4 && t.count == 2);
        assert_true(data_trees_of(d, SPLIT_TEST, &t) && t.first == 6 && t.count == 1);
        assert_int_equal(t.rules.punctuation, TREE_PUNCTUATION_PTB_TAGS);
        const data_shape *shape = data_get_shape(d);
        assert_int_equal(shape->vocabulary, 4 + 4); /* training only */
        assert_int_equal(shape->classes, 3);
        assert_int_equal(shape->arc_labels, 0);
        const batch b = get(d, SPLIT_TEST, 0, 0);
        assert_int_equal(b.features, 36);
        assert_int_equal(b.feature[3], UNK);
        assert_int_equal(b.label[1], 2);
        data_close(d);
        o.valid_count = o.test_count = -1;
        o.valid_share = 0.3, o.test_share = 0.2;
    }
    o.limit = 2;
    dataset *d = open_data(&o);
    assert_true(data_trees_of(d, SPLIT_TRAIN, &t) && t.count == 2);
    assert_true(data_trees_of(d, SPLIT_VALID, &t) && t.first == 4);
    data_close(d);
    o.limit = 100; /* more than there are */
    d = open_data(&o);
    assert_true(data_trees_of(d, SPLIT_TRAIN, &t) && t.count == 4);
    data_close(d);
    o.limit = 0, o.valid_count = 3; /* each option separately */
    d = open_data(&o);
    assert_true(data_trees_of(d, SPLIT_VALID, &t) && t.first == 3 && t.count == 3);
    assert_true(data_trees_of(d, SPLIT_TEST, &t) && t.first == 6 && t.count == 1);
    data_close(d);
    o.valid_count = o.test_count = 0;
    d = open_data(&o);
    assert_false(data_has_split(d, SPLIT_VALID) || data_has_split(d, SPLIT_TEST));
    data_close(d);
    o.test_count = 4, o.valid_count = 3;
    refuse_data(&o, SR_USAGE, "3 validation and 4 test sentences use all 7");
    o.test_count = 0, o.valid_count = 7;
    refuse_data(&o, SR_USAGE, "7 validation and 0 test sentences use all 7");
    o.valid_count = -1, o.valid_share = -0.5;
    refuse_data(&o, SR_USAGE, "valid-share -0.5 is negative");
    o.valid_count = 0, o.test_count = -1, o.test_share = -0.5;
    refuse_data(&o, SR_USAGE, "test-share -0.5 is negative");
    strcpy(o.file, "none");
    refuse_data(&o, SR_IO, "none: No such file or directory (nor ");
}

static sr_status small_letters(void *self, int side, const char *line, size_t length,
                               byte_buffer *out, sr_failure *why) {
    (void)self, (void)side, (void)why;
    for (size_t i = 0; i < length; i++) {
        const char c = line[i] >= 'A' && line[i] <= 'Z' ? (char)(line[i] + 32) : line[i];
        if (!buffer_put(out, &c, 1)) return SR_MEMORY;
    }
    return SR_OK;
}

/* A line transform changes words, not tags; POS columns; several roots. */
static void options_have_effects(void **state) {
    (void)state;
    const line_transform step = {.name = "small", .apply = small_letters};
    data_options o = small(NULL);
    write_text(o.dir, "train.gz", ROW("1", "Has", "VB", "0", "a") ROW("2", "has", "vb", "0", "b"));
    for (int i = 0; i < 2; i++) {
        data_trees t;
        dataset *d = open_data(&o);
        assert_int_equal(data_get_shape(d)->vocabulary, i ? 5 : 4);
        assert_int_equal(data_get_shape(d)->pos_tags, i ? 5 : 6);
        assert_true(data_trees_of(d, SPLIT_TRAIN, &t));
        assert_false(t.one_root);
        assert_int_equal(t.rules.punctuation, i ? TREE_PUNCTUATION_UPOS : TREE_PUNCTUATION_UNICODE);
        assert_int_equal(t.rules.subtypes, i ? TREE_SUBTYPES_IGNORE : TREE_SUBTYPES_COMPARE);
        assert_non_null(strstr(data_describe(d), "parsed to any roots"));
        data_close(d);
        o.tokenizer = &step;
        strcpy(o.pos_column, "coarse"), strcpy(o.punctuation, "upos"), strcpy(o.subtypes, "ignore");
    }
    strcpy(o.tree_format, "conllu");
    refuse_data(&o, SR_FORMAT, "train.gz:2: word 2 'has' is a second root");
}

static void refusals(void **state) {
    (void)state;
    data_options o = small(NULL);
    o.batch_size = 0;
    refuse_data(&o, SR_USAGE, "batch-size 0 is below 1");
    o.batch_size = 1;
    strcpy(o.pos_column, "xpos");
    refuse_data(&o, SR_USAGE, "pos-column 'xpos'");
    o.pos_column[0] = 0;
    char *const word[] = {o.tree_format, o.punctuation, o.subtypes};
    for (int i = 0; i < 3; i++) {
        strcpy(word[i], "odd");
        refuse_data(&o, SR_USAGE, "is not known");
        word[i][0] = 0;
    }
    strcpy(o.validpref, "none");
    refuse_data(&o, SR_IO, "none: No such file or directory (nor ");
    o.validpref[0] = o.trainpref[0] = 0;
    refuse_data(&o, SR_USAGE, "trainpref is empty");
    strcpy(o.trainpref, "train");
    write_text(o.dir, "train.gz", CROSSING);
    refuse_data(&o, SR_FORMAT, "train.gz: no sentence of 1 has transitions: 1 are not projective");
    write_text(o.dir, "train.gz", CONTROL);
    write_text(o.dir, "valid", ROW("1", "has", "VBZ", "0", "_"));
    strcpy(o.validpref, "valid");
    refuse_data(&o, SR_FORMAT,
                "valid: no sentence of 1 has transitions: 0 are not projective, 1 have labels that "
                "training lacks");
    write_text(o.dir, "valid", CROSSING); /* training also lacks its labels: counted once */
    refuse_data(&o, SR_FORMAT,
                "valid: no sentence of 1 has transitions: 1 are not projective, 0 have labels that "
                "training lacks");
    write_text(o.dir, "train.gz", CONTROL "1\tx\n");
    refuse_data(&o, SR_FORMAT, "train.gz:5: 2 columns where conllx has 10");
}

/* Sentences that are not projective, counted by another method than ours: crossing arcs. */
static void shared_treebanks(void **state) {
    (void)state;
    const char *dir = check_shared("data/ud-english-ewt");
    if (!dir) skip();
    data_options o = default_options("trees", dir);
    strcpy(o.trainpref, "en_ewt-ud-train.conllu"), strcpy(o.validpref, "en_ewt-ud-dev.conllu");
    strcpy(o.testpref, "en_ewt-ud-test.conllu");
    o.min_count = 2;
    dataset *d = open_data(&o);
    for (int s = 0; s < 3; s++) {
        data_trees t;
        int64_t straight = 0;
        assert_true(data_trees_of(d, (data_split)s, &t));
        for (int64_t i = 0; i < t.count; i++) {
            int32_t n, crossing = 0;
            const tree_word *w = treebank_sentence(t.bank, i, &n);
            for (int32_t a = 1; a <= n; a++)
                for (int32_t b = 1; b <= n; b++) {
                    const int32_t low = a < w[a - 1].head ? a : w[a - 1].head;
                    const int32_t high = a + w[a - 1].head - low;
                    const int32_t from = b < w[b - 1].head ? b : w[b - 1].head;
                    crossing += low < from && from < high && high < b + w[b - 1].head - from;
                }
            straight += crossing ? 0 : 2 * n;
        }
        int64_t got = 0;
        for (int64_t i = 0; i < data_batches(d, (data_split)s); i++)
            got += s == SPLIT_TRAIN && i + 1 < data_batches(d, SPLIT_TRAIN)
                       ? o.batch_size
                       : get(d, (data_split)s, 0, i).count;
        print_message("%s: %lld of %lld transitions\n", data_split_name((data_split)s),
                      (long long)got, (long long)straight);
        assert_true(got <= straight && got > straight - 200); /* a few have unknown labels */
        if (s == SPLIT_TRAIN) assert_int_equal(got, straight);
    }
    data_close(d);
}

static sr_status leave_nothing(void *self, int side, const char *line, size_t length,
                               byte_buffer *out, sr_failure *why) {
    (void)self, (void)side, (void)line, (void)length, (void)out, (void)why;
    return SR_OK;
}

/* A word that the line transform empties stays unchanged. */
static void words_of_blanks(void **state) {
    (void)state;
    const line_transform step = {.name = "nothing", .apply = leave_nothing};
    data_options o = small(NULL);
    o.tokenizer = &step;
    dataset *d = open_data(&o);
    assert_string_equal(data_word(d, SIDE_SOURCE, HAS), "has");
    data_close(d);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(words_of_blanks),  cmocka_unit_test(transitions_by_hand),
        cmocka_unit_test(what_is_left_out), cmocka_unit_test(training_is_shuffled),
        cmocka_unit_test(one_file_is_cut),  cmocka_unit_test(options_have_effects),
        cmocka_unit_test(refusals),         cmocka_unit_test(shared_treebanks),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
