/* Parsing a split: greedy search among the legal transitions, equal for a batch and for single
 * sentences. Scores by the rules of the data, the written file, interruption by a signal. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "data/sets/tree_data.h"
#include "task/task.h"
#include "testing/check.h"

enum { SENTENCES = 600, LONGEST = 12 };

static const char *path_of(const char *name) {
    static char path[600];
    snprintf(path, sizeof path, "%s/%s", check_temporary(), name);
    return path;
}

/* Random trees of conllx with one root each. */
static void write_trees(const char *name, int sentences, uint64_t seed) {
    rng r = rng_create(seed);
    FILE *f = fopen(path_of(name), "w");
    assert_non_null(f);
    for (int i = 0; i < sentences; i++) {
        const int words = 1 + (int)rng_below(&r, LONGEST);
        for (int k = 1; k <= words; k++) {
            const int id = (int)rng_below(&r, 30);
            fprintf(f, "%d\t%s%.0d\t_\t%s\tp%d\t_\t%d\tl%d:%d\t_\t_\n", k,
                    id < 6 ? "\xe2\x80\x9c" : "w", id < 6 ? 0 : id, id < 3 ? "PUNCT" : "C", id % 5,
                    k - 1, k == 1 ? 9 : id % 3, k % 2);
        }
        fputs("\n", f);
    }
    assert_int_equal(fclose(f), 0);
}

typedef struct setting {
    dataset *data;
    model *model;
    tape *tape;
} setting;

static setting make(const char *punctuation, const char *subtypes, const char *norm) {
    sr_failure why = {0};
    data_options d = {.name = "trees", .batch_size = 64, .min_count = 2};
    snprintf(d.dir, sizeof d.dir, "%s", check_temporary());
    strcpy(d.trainpref, "train"), strcpy(d.validpref, "valid"), strcpy(d.testpref, "test");
    strcpy(d.punctuation, punctuation), strcpy(d.subtypes, subtypes);
    setting s = {.data = data_open(&d, &why)};
    if (!s.data) fail_msg("%s", why.text);
    model_options o = {.name = "mlp_parser",
                       .norm_eps = NAN,
                       .norm_alpha = NAN,
                       .dropout = NAN,
                       .hidden_dim = 24,
                       .embed_dim = 6,
                       .seed = 2};
    strcpy(o.norm, norm);
    s.model = model_create(&o, data_get_shape(s.data), &why);
    if (!s.model) fail_msg("%s", why.text);
    rng r = rng_create(8); /* random weights, so that it does not always choose the same */
    for (int i = 0; i < s.model->params.count; i++)
        for (int64_t k = 0; k < s.model->params.item[i]->t.count; k++)
            s.model->params.item[i]->t.value[k] += (real)(0.3 * rng_normal(&r));
    s.tape = tape_create(2, &why);
    return s;
}

static void end(setting *s) {
    tape_free(s->tape);
    model_free(s->model);
    data_close(s->data);
}

static task_decoding decoding_of(const setting *s, data_split split) {
    return (task_decoding){.model = s->model, .tape = s->tape, .data = s->data, .split = split};
}

/* One sentence with the model's own scorer, the plainest way. */
static void parse_alone(const setting *s, const data_trees *t, int64_t sentence, int32_t *head,
                        int32_t *label) {
    sr_failure why = {0};
    const int64_t start = t->bank->start[sentence];
    const int32_t words = (int32_t)(t->bank->start[sentence + 1] - start);
    int32_t feature[48];
    real *logits = malloc((size_t)data_tree_classes(t) * sizeof *logits);
    void *scorer = s->model->row->scorer->create(s->model, 1, &why);
    arc_state a = {0};
    assert_true(logits && scorer && arc_begin(&a, words, t->one_root));
    for (int32_t i = 0; i < 2 * words; i++) {
        int32_t best = -1, l;
        data_tree_feature(t, start, &a, feature);
        check_ok(s->model->row->scorer->score(scorer, 1, feature, logits, &why), &why);
        for (int32_t c = 0; c < data_tree_classes(t); c++)
            if (arc_legal(&a, arc_kind_of(c, t->arc_labels, &l)) &&
                (best < 0 || logits[c] > logits[best]))
                best = c;
        const arc_kind kind = arc_kind_of(best, t->arc_labels, &l);
        arc_apply(&a, kind, l);
    }
    assert_true(arc_done(&a));
    memcpy(head, a.head + 1, (size_t)words * sizeof *head);
    memcpy(label, a.label + 1, (size_t)words * sizeof *label);
    arc_free(&a);
    s->model->row->scorer->free(scorer);
    free(logits);
}

/* The text of the split as the parser writes it; malloc'd. */
static char *predict(const setting *s, data_split split) {
    char *text = NULL;
    size_t size = 0;
    sr_failure why = {0};
    const task_decoding d = decoding_of(s, split);
    FILE *out = open_memstream(&text, &size);
    check_ok(task_of(TASK_TREES)->predict(&d, out, &why), &why);
    assert_int_equal(fclose(out), 0);
    return text;
}

static void read_back(const char *text, treebank *t) {
    sr_failure why = {0};
    const treebank_options o = {0};
    FILE *f = fopen(path_of("predicted"), "w");
    assert_true(f && fputs(text, f) >= 0 && fclose(f) == 0);
    check_ok(treebank_read(path_of("predicted"), &o, t, &why), &why); /* they are trees */
}

/* More sentences than one batch decodes: each is parsed as if alone and has one root. The other
 * columns of its lines are kept. */
static void each_as_if_alone(void **state) {
    (void)state;
    setting s = make("", "", "ln");
    data_trees t;
    treebank got;
    int different = 0;
    assert_true(data_trees_of(s.data, SPLIT_VALID, &t));
    assert_int_equal(t.count, SENTENCES);
    char *text = predict(&s, SPLIT_VALID);
    read_back(text, &got);
    assert_int_equal(got.words, t.bank->words);
    for (int64_t i = 0; i < SENTENCES; i++) {
        int32_t head[LONGEST], label[LONGEST], words, roots = 0;
        const tree_word *w = treebank_sentence(&got, i, &words);
        parse_alone(&s, &t, i, head, label);
        for (int32_t k = 0; k < words; k++) {
            const tree_word *gold = &t.bank->word[t.bank->start[i] + k];
            const char *name = vocab_word(t.labels, TOKEN_FIRST_WORD + label[k]);
            assert_int_equal(w[k].head, head[k]);
            assert_true(w[k].label.size == (int32_t)strlen(name) &&
                        !memcmp(w[k].label.byte, name, strlen(name)));
            assert_true(w[k].form.size == gold->form.size &&
                        !memcmp(w[k].form.byte, gold->form.byte, (size_t)gold->form.size));
            roots += head[k] == 0;
            different += head[k] != k;
        }
        assert_int_equal(roots, 1);
    }
    assert_true(different > 100);
    treebank_free(&got);
    free(text);
    end(&s);
}

/* The metrics equal counts over the written predictions, for both sets of rules. */
static void scores(void **state) {
    (void)state;
    static const struct {
        const char *punctuation, *subtypes;
        tree_rules rules;
    } by[] = {{"", "", {TREE_PUNCTUATION_UNICODE, TREE_SUBTYPES_COMPARE}},
              {"upos", "ignore", {TREE_PUNCTUATION_UPOS, TREE_SUBTYPES_IGNORE}}};
    for (int i = 0; i < 2; i++) {
        setting s = make(by[i].punctuation, by[i].subtypes, "bn");
        sr_failure why = {0};
        attachments sum = {0};
        treebank got;
        data_trees t;
        double value[4];
        char line[TASK_DECODED];
        bool stopped = true;
        const task_decoding d = decoding_of(&s, SPLIT_TEST);
        check_ok(task_of(TASK_TREES)->decode(&d, value, line, &stopped, &why), &why);
        assert_false(stopped);
        char *text = predict(&s, SPLIT_TEST);
        read_back(text, &got);
        assert_true(data_trees_of(s.data, SPLIT_TEST, &t));
        for (int64_t k = 0; k < got.words; k++)
            attachment_count(&sum, &by[i].rules, &t.bank->word[k], got.word[k].head,
                             &got.word[k].label);
        const double want[] = {attachment_percent(sum.all.head, sum.all.words),
                               attachment_percent(sum.all.both, sum.all.words),
                               attachment_percent(sum.plain.head, sum.plain.words),
                               attachment_percent(sum.plain.both, sum.plain.words)};
        check_near_double("scores", value, want, 4, 1e-12, 0);
        assert_true(sum.plain.words < sum.all.words);
        check_differs(value[0], value[2]);
        check_above(value[0], 0);
        check_below(value[0], 100);
        check_below(value[1], value[0]);
        assert_non_null(strstr(line, tree_punctuation_text(by[i].rules.punctuation)));
        assert_non_null(strstr(line, tree_subtypes_text(by[i].rules.subtypes)));
        treebank_free(&got);
        free(text);
        end(&s);
    }
}

static bool at_once(void *context) {
    int *calls = context;
    return ++*calls == 2;
}

static void stops(void **state) {
    (void)state;
    setting s = make("", "", "none");
    sr_failure why = {0};
    double value[4] = {-1, -1, -1, -1};
    char line[TASK_DECODED];
    bool stopped = false;
    int calls = 0;
    task_decoding d = decoding_of(&s, SPLIT_VALID);
    d.stop = at_once, d.context = &calls;
    check_ok(task_of(TASK_TREES)->decode(&d, value, line, &stopped, &why), &why);
    assert_true(stopped && calls == 2);
    check_equals(value[0], -1);
    end(&s);
}

/* Without labels there is no LAS, and none is written. */
static void without_labels(void **state) {
    (void)state;
    FILE *f = fopen(path_of("train"), "w");
    assert_true(f && fputs("a\tDT\t2\nb\tNN\t0\n.\t.\t2\n\n", f) >= 0 && fclose(f) == 0);
    assert_int_equal(remove(path_of("valid")) | remove(path_of("test")), 0);
    f = fopen(path_of("valid"), "w");
    assert_true(f && fputs("a\tDT\t2\nb\tNN\t0\n.\t.\t2", f) >= 0 && fclose(f) == 0);
    setting s = make("", "", "ln");
    sr_failure why = {0};
    double value[4];
    char line[TASK_DECODED];
    bool stopped;
    task_decoding d = decoding_of(&s, SPLIT_VALID);
    check_ok(task_of(TASK_TREES)->decode(&d, value, line, &stopped, &why), &why);
    assert_true(isnan(value[1]) && isnan(value[3]));
    check_at_least(value[0], 0);
    check_at_least(value[2], 0);
    assert_non_null(strstr(line, " of 3 words, without punctuation "));
    assert_non_null(strstr(line, " of 2; no labels; punctuation ptb-tags: "));
    char *text = predict(&s, SPLIT_VALID);
    assert_true(!strncmp(text, "a\tDT\t", 5) &&
                strlen(text) == strlen("a\tDT\t2\nb\tNN\t0\n.\t.\t2\n\n"));
    free(text);
    d.split = SPLIT_TEST;
    assert_int_equal(task_of(TASK_TREES)->decode(&d, value, line, &stopped, &why), SR_USAGE);
    check_failure(&why, SR_USAGE, "model mlp_parser parses no sentences of the test split");
    end(&s);
}

static int write_all(void **state) {
    (void)state;
    write_trees("train", 50, 1);
    write_trees("valid", SENTENCES, 2);
    write_trees("test", 40, 3);
    return 0;
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_as_if_alone), cmocka_unit_test(scores), cmocka_unit_test(stops),
        cmocka_unit_test(without_labels), /* last: it replaces the files */
    };
    return cmocka_run_group_tests(tests, write_all, NULL);
}
