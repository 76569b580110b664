/* test_tagging.c -- the tagging task: entities counted in the forward pass, numbers worked out by
 * hand, the file of predictions. The model repeats the gold tags except for one word. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "task/task.h"
#include "testing/check.h"
#include "text/tag_set.h"

static void write_lines(const char *name, const char *text) {
    char path[600];
    snprintf(path, sizeof path, "%s/%s", check_temporary(), name);
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    assert_true(fputs(text, f) >= 0 && fclose(f) == 0);
}

/* Sentences of several lengths; three of validation: 4 entities, 7 words. */
static dataset *open_set(void) {
    sr_failure why = {0};
    data_options o = {.name = "conll", .batch_size = 2, .seed = 1};
    write_lines("train", "a B-P\nb B-L\n");
    write_lines("valid",
                "Ann B-P\nLee I-P\nran O\nhome B-L\n\nbye O\n\nIn O\n\303\204 B-P\nBob B-L\n");
    snprintf(o.dir, sizeof o.dir, "%s", check_temporary());
    strcpy(o.trainpref, "train"), strcpy(o.validpref, "valid"), strcpy(o.testpref, "test");
    dataset *d = data_open(&o, &why);
    if (!d) fail_msg("%s", why.text);
    return d;
}

static bool decodes = true;

static int32_t id_of(const tag_set *s, const char *name) {
    for (int32_t i = 0; i < s->count; i++)
        if (!strcmp(s->name[i], name)) return i;
    fail_msg("no tag %s", name);
    return -1;
}

/* The i-th sentence of the batch has nll i + 1; "home" becomes a P, padding a B-P. No training. */
static tensor *repeat_gold(model *m, pass *p) {
    const batch *b = p->batch;
    const int64_t n = b->count * b->source_length;
    int32_t *tag = tape_alloc(p->tape, (size_t)n * sizeof *tag);
    tensor *nll = tape_tensor(p->tape, 1, (int64_t[]){b->count});
    (void)m;
    assert_true(tag && nll && p->mode == NORM_RUNNING);
    for (int64_t i = 0; i < n; i++) tag[i] = b->source_mask[i] ? b->tag[i] : id_of(b->tags, "B-P");
    for (int64_t i = 0; i < b->count; i++) {
        if (b->pair[i] == 0 && b->source_length > 3)
            tag[i * b->source_length + 3] = id_of(b->tags, "S-P");
        nll->value[i] = (real)(b->pair[i] + 1);
    }
    if (decodes) p->predicted = tag;
    return nll;
}

static const model_row knows = {.name = "knows", .task = TASK_TAGS, .forward = repeat_gold};

static void counts_and_numbers(void **state) {
    (void)state;
    sr_failure why = {0};
    dataset *d = open_set();
    tape *t = tape_create(1, &why);
    model m = {.row = &knows, .gives_nll = true};
    const task_row *row = task_of(TASK_TAGS);
    task_sums sum;
    double v[TASK_METRICS];
    for (decodes = false;; decodes = true) {
        const task_options o = {.label_smoothing = NAN};
        check_ok(task_evaluate(row, &o, &m, t, d, SPLIT_VALID, NORM_RUNNING, &sum, &why), &why);
        row->measure(&sum, v);
        assert_int_equal(sum.tokens, 3);
        check_equals(v[0], 2);
        check_equals(v[1], 2); /* nats 1, 2, 3 */
        if (decodes) break;
        for (int i = 2; i < 6; i++) assert_true(isnan(v[i]));
    }
    check_within(v[2], 700. / 8, 1e-12);
    check_within(v[3], 75, 1e-12);
    check_within(v[4], 75, 1e-12);
    check_within(v[5], 75, 1e-12);
    assert_string_equal(row->metric[row->leading].name, "f1");
    char text[TASK_TEXT];
    row->describe(&(task_result){&sum, "test", 0, ""}, text);
    assert_string_equal(text,
                        "test F1: 75.00 % (P 75.00 %, R 75.00 %: 3 right, 4 predicted, 4 "
                        "gold; I behind O or another type begins one, as in conlleval; running "
                        "statistics)");
    tape_free(t);
    data_close(d);
}

/* P = 1/2, R = 1/4, F = 1/3; nothing cut off of large numbers. */
static void formulas(void **state) {
    (void)state;
    const task_row *row = task_of(TASK_TAGS);
    task_sums sum = {.loss = 6, .nll = 4, .tokens = 2, .correct = 3, .count = {1, 2, 4, 12}};
    double v[TASK_METRICS];
    char text[TASK_TEXT];
    row->measure(&sum, v);
    const double want[] = {3, 2, 25, 50, 25, 100. / 3};
    check_near_double("metrics", v, want, 6, 1e-14, 0);
    sum.count[0] = sum.count[1] = 0;
    row->measure(&sum, v);
    check_equals(v[3], 0);
    check_equals(v[4], 0);
    check_equals(v[5], 0);
    sum.count[2] = sum.count[0] = sum.count[1] = 1234567890;
    row->describe(&(task_result){&sum, "validation", 0, "word vectors not pretrained"}, text);
    assert_non_null(strstr(text, "conlleval; word vectors not pretrained; running statistics)"));
    assert_true(text[strlen(text) - 1] == ')');
}

/* In the file's order, whatever the order of the batches. */
static void predictions(void **state) {
    (void)state;
    sr_failure why = {0};
    char *got = NULL;
    size_t size = 0;
    dataset *d = open_set();
    tape *t = tape_create(1, &why);
    model m = {.row = &knows, .gives_nll = true};
    const task_options o = {.label_smoothing = NAN};
    task_decoding decoding = {
        .options = &o, .model = &m, .tape = t, .data = d, .split = SPLIT_TRAIN};
    decodes = true;
    FILE *of_train = open_memstream(&got, &size);
    check_ok(task_of(TASK_TAGS)->predict(&decoding, of_train, &why), &why);
    assert_int_equal(fclose(of_train), 0);
    assert_string_equal(got, "a B-P B-P\nb B-L B-L\n\n");
    free(got);
    decoding.split = SPLIT_VALID;
    FILE *out = open_memstream(&got, &size);
    check_ok(task_of(TASK_TAGS)->predict(&decoding, out, &why), &why);
    assert_int_equal(fclose(out), 0);
    assert_string_equal(got,
                        "Ann B-P B-P\nLee I-P I-P\nran O O\nhome B-L B-P\n\nbye O O\n\nIn O O\n"
                        "\303\204 B-P B-P\nBob B-L B-L\n\n");
    free(got);
    decodes = false;
    out = open_memstream(&got, &size);
    assert_int_equal(task_of(TASK_TAGS)->predict(&decoding, out, &why), SR_USAGE);
    assert_int_equal(fclose(out), 0);
    check_failure(&why, SR_USAGE, "model knows decodes no tags");
    free(got);
    tape_free(t);
    data_close(d);
}

static void wants_likelihood(void **state) {
    (void)state;
    sr_failure why = {0};
    const task_options o = {.label_smoothing = NAN};
    model m = {.row = &knows, .gives_nll = true};
    check_ok(task_check_loss(task_of(TASK_TAGS), &o, &m, &why), &why);
    m.gives_nll = false;
    assert_int_equal(task_check_loss(task_of(TASK_TAGS), &o, &m, &why), SR_USAGE);
    check_failure(&why, SR_USAGE, "model knows gives task tags no likelihood");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(counts_and_numbers),
        cmocka_unit_test(formulas),
        cmocka_unit_test(predictions),
        cmocka_unit_test(wants_likelihood),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
