/* test_tasks.c -- the task_row functions: metrics of known sums, the result line, arrays of a
 * batch, the effective smoothing, which models fit which data. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "task/task.h"
#include "testing/check.h"

static int metric_of(const task_row *row, const char *name) {
    for (int i = 0; i < task_metrics(row); i++)
        if (!strcmp(row->metric[i].name, name)) return i;
    fail_msg("task %s has no metric %s", row->name, name);
    return -1;
}

static void rows_are_whole(void **state) {
    (void)state;
    const task_row *row;
    int count = 0;
    for (; (row = task_at(count)); count++) {
        assert_ptr_equal(task_of(row->id), row);
        assert_true(row->example.task == row->id && task_metrics(row) > 0);
        assert_true(row->name && row->takes && row->summary);
        assert_true(row->leading >= 0 && row->leading < task_all_metrics(row));
        for (int i = 0; i < task_metrics(row); i++) {
            assert_true(row->metric[i].unit && row->metric[i].definition);
            assert_int_equal(metric_of(row, row->metric[i].name), i);
        }
    }
    assert_int_equal(count, 6);
    assert_string_equal(data_split_name(SPLIT_VALID), "valid");
    assert_string_equal(data_split_name(SPLIT_TEST), "test");
}

static void measures(void **state) {
    (void)state;
    const task_sums sum = {.loss = 12, .nll = 8, .tokens = 4, .correct = 3, .unknown = 1};
    for (int i = 0; task_at(i); i++) {
        const task_row *row = task_at(i);
        double value[TASK_METRICS];
        if (row->id == TASK_TAGS) continue; /* test_tagging.c */
        row->measure(&sum, value);
        check_equals(value[metric_of(row, "loss")], 3);
        check_equals(value[metric_of(row, "nll")], 2);
        check_within(value[metric_of(row, "ppl")], exp(2), 1e-14);
        check_equals(value[metric_of(row, "accuracy")], 75);
        assert_int_equal(row->metric[metric_of(row, "loss")].better, BETTER_LESS);
        assert_int_equal(row->metric[metric_of(row, "ppl")].better, BETTER_LESS);
        assert_int_equal(row->metric[metric_of(row, "accuracy")].better, BETTER_MORE);
    }
}

static tensor *forward_nothing(model *m, pass *p) {
    (void)m, (void)p;
    return NULL;
}

/* A model that returns NULL without a failure must not train silently. */
static void no_loss(void **state) {
    (void)state;
    const model_row row = {.name = "hollow", .forward = forward_nothing};
    const task_options none = {0};
    sr_failure why = {0};
    tape *t = tape_create(1, &why);
    assert_non_null(t);
    for (int i = 0; task_at(i); i++) {
        const batch b = {0};
        model m = {.row = &row};
        pass p = {.tape = t, .batch = &b};
        task_sums sum;
        tape_reset(t, rng_create(1), true, true);
        assert_null(task_loss(task_at(i), &none, &m, &p, &sum));
        check_failure(tape_failure(t), SR_USAGE, "model hollow gave no loss");
        tape_reset(t, rng_create(1), true, true);
        tape_fail(t, SR_MEMORY, "the first failure");
        assert_null(task_loss(task_at(i), &none, &m, &p, &sum));
        check_failure(tape_failure(t), SR_MEMORY, "the first failure");
    }
    tape_free(t);
}

/* The unsmoothed likelihood gives the printed number; the line names its split. */
static void describes(void **state) {
    (void)state;
    const task_sums sum = {.loss = 40, .nll = 4 * log(2), .tokens = 4, .correct = 3, .unknown = 1};
    char text[TASK_TEXT];
    task_of(TASK_PAIRS)->describe(&(task_result){&sum, "validation", 0, ""}, text);
    assert_non_null(strstr(text, "validation perplexity: 2 per target token (4 tokens, "));
    assert_non_null(strstr(text, "25.00 % are <unk>"));
    task_of(TASK_IMAGES)->describe(&(task_result){&sum, "test", 0, ""}, text);
    assert_string_equal(text, "test accuracy: 75.00 % of 4 images (running statistics)");
    const task_sums ranked = {.tokens = 4, .correct = 2, .count = {3, 4}};
    task_of(TASK_IMAGES)->describe(&(task_result){&ranked, "test", 0, ""}, text);
    assert_string_equal(text,
                        "test accuracy: 50.00 %, top-5 75.00 %, of 4 images (running statistics)");
    task_of(TASK_TREES)->describe(&(task_result){&sum, "test", 0, ""}, text);
    assert_string_equal(
        text,
        "test accuracy: 75.00 % of 4 transitions of projective sentences (running statistics)");
    task_of(TASK_SENTENCES)->describe(&(task_result){&sum, "test", 0, ""}, text);
    assert_string_equal(text, "test accuracy: 75.00 % of 4 sentences (running statistics)");
    const task_row *lm = task_of(TASK_LM);
    lm->describe(&(task_result){&sum, "test", 19, "mask causal"}, text);
    assert_string_equal(text, "test perplexity: 2 per token (4 tokens, <eos> and <unk> counted, "
                              "25.00 % are <unk>; 19 left out by the windows; mask causal; running "
                              "statistics)");
    const task_sums bytes = {.nll = 8 * log(2), .tokens = 4, .unknown = 1, .count = {4}};
    lm->describe(&(task_result){&bytes, "test", 19, "mask causal"}, text);
    assert_string_equal(text,
                        "test bpc: 2.00000 bits per byte (4 bytes, perplexity 4, 25.00 % are "
                        "<unk>; 19 left out by the windows; mask causal; running statistics)");
    double value[TASK_METRICS];
    lm->measure(&bytes, value);
    check_within(value[metric_of(lm, "bpc")], 2, 1e-12);
    lm->measure(&sum, value);
    assert_true(isnan(value[metric_of(lm, "bpc")])); /* words vary in length */
    const task_sums large = {.nll = 9e17, .tokens = INT64_C(900000000000000000)};
    char split[] = "validation", condition[] = "mask released: every position sees its own target";
    lm->describe(&(task_result){&large, split, large.tokens, condition}, text);
    assert_true(text[strlen(text) - 1] == ')'); /* nothing is cut off */
}

static void arrays(void **state) {
    (void)state;
    const int32_t source[6] = {0}, target[8] = {0}, label[2] = {0};
    const uint8_t mask[8] = {0};
    const real image[2 * 3 * 4 * 5] = {0};
    task_array a[TASK_ARRAYS];
    const batch pairs = {.task = TASK_PAIRS,
                         .count = 2,
                         .source_length = 3,
                         .target_length = 4,
                         .source = source,
                         .target_in = target,
                         .target_out = target,
                         .source_mask = mask,
                         .target_mask = mask};
    assert_int_equal(task_of(TASK_PAIRS)->arrays(&pairs, a), 5);
    assert_ptr_equal(a[0].array.data, source);
    assert_true(npz_count(&a[0].array) == 6 && npz_count(&a[4].array) == 8);
    const batch images = {.task = TASK_IMAGES,
                          .count = 2,
                          .height = 3,
                          .width = 4,
                          .channels = 5,
                          .image = image,
                          .label = label};
    const batch windows = {
        .task = TASK_LM, .count = 2, .target_length = 3, .target_in = source, .target_out = target};
    assert_int_equal(task_of(TASK_LM)->arrays(&windows, a), 2);
    assert_true(npz_count(&a[0].array) == 6 && a[1].array.data == target);
    const batch sentences = {.task = TASK_SENTENCES,
                             .count = 2,
                             .source_length = 3,
                             .source = source,
                             .source_mask = mask,
                             .label = label};
    assert_int_equal(task_of(TASK_SENTENCES)->arrays(&sentences, a), 3);
    assert_true(npz_count(&a[1].array) == 6 && a[1].array.data == mask);
    assert_true(npz_count(&a[2].array) == 2 && a[2].array.data == label);
    assert_int_equal(task_of(TASK_IMAGES)->arrays(&images, a), 2);
    assert_true(npz_count(&a[0].array) == 120 && a[0].array.dim[3] == 5);
    const batch states = {
        .task = TASK_TREES, .count = 2, .features = 4, .feature = target, .label = label};
    assert_int_equal(task_of(TASK_TREES)->arrays(&states, a), 2);
    assert_true(npz_count(&a[0].array) == 8 && a[0].array.data == target);
    assert_true(npz_count(&a[1].array) == 2 && a[1].array.data == label);
}

/* Top-5 of logits [rows, classes] against labels. */
static double top5_of(const double *logit, int rows, int classes, const int32_t *label) {
    const task_row *row = task_of(TASK_IMAGES);
    sr_failure why = {0};
    const batch b = {.task = TASK_IMAGES, .count = rows, .label = label, .tokens = rows};
    tape *t = tape_create(1, &why);
    assert_non_null(t);
    tape_reset(t, rng_create(1), false, false);
    tensor *x = tape_tensor(t, 2, (int64_t[]){rows, classes});
    for (int64_t i = 0; i < x->count; i++) x->value[i] = (real)logit[i];
    const task_options o = {.label_smoothing = NAN};
    const pass p = {.tape = t, .batch = &b, .mode = NORM_RUNNING};
    task_sums sum = {0};
    double value[TASK_METRICS];
    assert_non_null(row->loss(&o, &p, x, &sum));
    row->measure(&sum, value);
    tape_free(t);
    return value[metric_of(row, "top5")];
}

/* Every class of one row of logits against its rank in the sorted logits. */
static void five_largest(void **state) {
    (void)state;
    const double falling[7] = {6, 5, 4, 3, 2, 1, 0}, mixed[7] = {1, 9, 3, -2, 8, 7, 2};
    const double ties[7] = {1, 0, 1, 1, 1, 1, 1}, equal[7] = {0};
    const double bad[7] = {NAN, 5, 4, 3, 2, 1, NAN};
    const int right[5][7] = {{1, 1, 1, 1, 1, 0, 0},  /* falling */
                             {0, 1, 1, 0, 1, 1, 1},  /* mixed: 9 8 7 3 2 */
                             {1, 0, 1, 1, 1, 1, 0},  /* the first five of six equal ones */
                             {1, 1, 1, 1, 1, 0, 0},  /* equal: the first five */
                             {0, 1, 1, 1, 0, 0, 0}}; /* NaN ranks before all and is never right */
    const double *const row[5] = {falling, mixed, ties, equal, bad};
    for (int i = 0; i < 5; i++)
        for (int32_t label = 0; label < 7; label++)
            if (top5_of(row[i], 1, 7, &label) != 100 * right[i][label])
                fail_msg("row %d, label %d", i, (int)label);
    const double four[4 * 6] = {9, 8, 7, 6, 5, 4, 9, 8, 7, 6, 5, 4,
                                9, 8, 7, 6, 5, 4, 9, 8, 7, 6, 5, 4};
    check_equals(top5_of(four, 4, 6, (int32_t[]){0, 5, 4, 1}), 75);
    assert_true(isnan(top5_of(four, 4, 5, (int32_t[]){0, 4, 4, 1}))); /* would always be 100 */
}

/* Summed loss of one row of logits, with the task's smoothing or a given one. Equal logits would
 * give ln V for any smoothing, so the logit of class 2 differs. */
static double loss_of(const task_row *row, double smoothing) {
    sr_failure why = {0};
    int32_t target = 2;
    const batch b = {.task = row->id, .count = 1, .label = &target, .target_out = &target};
    tape *t = tape_create(1, &why);
    assert_non_null(t);
    tape_reset(t, rng_create(1), true, true);
    tensor *logits = tape_tensor(t, 2, (int64_t[]){1, 5});
    for (int i = 0; i < 5; i++) logits->value[i] = i == 2;
    const task_options o = {.label_smoothing = smoothing};
    const pass p = {.tape = t, .batch = &b, .mode = NORM_TRAIN};
    task_sums sum;
    const tensor *loss = row->loss(&o, &p, logits, &sum);
    assert_non_null(loss);
    const double value = (double)loss->value[0];
    tape_free(t);
    return value;
}

/* nll = ln(4 + e) - 1; smoothed by eps over all of V classes: + eps (1 - 1/V). */
static void smoothing(void **state) {
    (void)state;
    const double nll = log(4 + exp(1)) - 1;
    check_within(loss_of(task_of(TASK_IMAGES), NAN), nll, 1e-6);
    check_within(loss_of(task_of(TASK_PAIRS), NAN), (nll + 0.1 * 0.8), 1e-6);
    check_within(loss_of(task_of(TASK_LM), NAN), nll, 1e-6);
    check_within(loss_of(task_of(TASK_TREES), NAN), nll, 1e-6);
    check_within(loss_of(task_of(TASK_LM), 0.1), (nll + 0.1 * 0.8), 1e-6);
    check_within(loss_of(task_of(TASK_PAIRS), 0.5), (nll + 0.5 * 0.8), 1e-6);
    check_within(loss_of(task_of(TASK_SENTENCES), NAN), nll, 1e-6);
    check_within(loss_of(task_of(TASK_SENTENCES), 0.5), (nll + 0.5 * 0.8), 1e-6);
    check_within(loss_of(task_of(TASK_IMAGES), 0.5), (nll + 0.5 * 0.8), 1e-6);
}

/* No class is left out: with equal logits every row costs ln V, and the first class is right. */
static void every_class_counts(void **state) {
    (void)state;
    enum { CLASSES = 7 };
    const task tasks[] = {TASK_IMAGES, TASK_SENTENCES, TASK_TREES, TASK_LM};
    const int32_t label[CLASSES] = {0, 1, 2, 3, 4, 5, 6};
    for (int i = 0; i < 4; i++) {
        sr_failure why = {0};
        const task_row *row = task_of(tasks[i]);
        const batch b = {
            .task = row->id, .count = CLASSES, .label = label, .target_out = label, .unknown = -1};
        tape *t = tape_create(1, &why);
        tape_reset(t, rng_create(1), false, false);
        tensor *logits = tape_tensor(t, 2, (int64_t[]){CLASSES, CLASSES});
        memset(logits->value, 0, (size_t)logits->count * sizeof *logits->value);
        const task_options o = {.label_smoothing = NAN};
        const pass p = {.tape = t, .batch = &b, .mode = NORM_RUNNING};
        task_sums sum = {0};
        assert_non_null(row->loss(&o, &p, logits, &sum));
        assert_true(sum.tokens == CLASSES && sum.correct == 1);
        check_within(sum.nll, CLASSES * log(CLASSES), 1e-5);
        tape_free(t);
    }
}

/* A model without logits: its losses are summed, accuracy is unknown, smoothing is rejected. */
static void loss_of_nll(void **state) {
    (void)state;
    sr_failure why = {0};
    const task_row *row = task_of(TASK_LM);
    const int32_t target[3] = {2, 1, 2};
    batch b = {.task = TASK_LM, .count = 1, .target_length = 3, .target_out = target, .unknown = 2};
    tape *t = tape_create(1, &why);
    tape_reset(t, rng_create(1), true, true);
    const pass p = {.tape = t, .batch = &b, .mode = NORM_TRAIN};
    tensor *nll = tape_tensor(t, 1, (int64_t[]){3});
    for (int i = 0; i < 3; i++) nll->value[i] = (real)(i + 1);
    task_sums sum;
    const tensor *loss = row->loss_of_nll(&p, nll, &sum);
    assert_true(loss);
    check_equals(loss->value[0], 6);
    check_equals(sum.loss, 6);
    check_equals(sum.nll, 6);
    assert_true(sum.tokens == 3 && sum.unknown == 2);
    double value[TASK_METRICS];
    row->measure(&sum, value);
    check_equals(value[metric_of(row, "nll")], 2);
    assert_true(isnan(value[metric_of(row, "accuracy")]));
    assert_true(isnan(value[metric_of(row, "bpc")]));
    b.bytes = true;
    assert_non_null(row->loss_of_nll(&p, nll, &sum));
    row->measure(&sum, value);
    check_within(value[metric_of(row, "bpc")], 2 / log(2), 1e-12);
    tape_free(t);
    model m = {.row = model_find("tensorized"), .gives_nll = true};
    task_options o = {.label_smoothing = NAN};
    check_ok(task_check_loss(row, &o, &m, &why), &why);
    o.label_smoothing = 0.1;
    assert_int_equal(task_check_loss(row, &o, &m, &why), SR_USAGE);
    check_failure(&why, SR_USAGE, "--label-smoothing: ");
    m.gives_nll = false;
    assert_int_equal(task_check_loss(row, &o, &m, &why), SR_OK);
    m.gives_nll = true;
    assert_int_equal(task_check_loss(task_of(TASK_PAIRS), &o, &m, &why), SR_USAGE);
}

static void write_lines(const char *name, const char *text) {
    char path[600];
    snprintf(path, sizeof path, "%s/%s", check_temporary(), name);
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    assert_true(fputs(text, f) >= 0 && fclose(f) == 0);
}

/* Perplexity of a split: every token of every window counts equally; tokens left out by the windows
 * do not count. */
static void windows_of_a_split(void **state) {
    (void)state;
    sr_failure why = {0};
    write_lines("train", "a b c a\nb a c\n<unk> b a a c\nc b\n");
    write_lines("valid", "a b\nc q b\na a\nb c a a\n");
    data_options d = {.name = "text", .batch_size = 2, .eval_batch_size = 2, .window = 3};
    snprintf(d.dir, sizeof d.dir, "%s", check_temporary());
    strcpy(d.trainpref, "train"), strcpy(d.validpref, "valid");
    d.eos_of_empty = true;
    dataset *data = data_open(&d, &why);
    if (!data) fail_msg("%s", why.text);
    for (int adaptive = 0; adaptive < 2; adaptive++) {
        model_options o = {.name = "tensorized", .preset = "ptb-mini", .norm = "bn", .seed = 1};
        o.norm_eps = o.norm_alpha = o.attention_dropout = o.relu_dropout = NAN, o.dropout = 0.5;
        strcpy(o.adaptive_cutoffs, adaptive ? "2" : "none");
        model *m = model_create(&o, data_get_shape(data), &why);
        if (!m) fail_msg("%s", why.text);
        tape *t = tape_create(1, &why);
        const task_options none = {.label_smoothing = NAN};
        task_sums sum;
        check_ok(task_evaluate(task_of(TASK_LM), &none, m, t, data, SPLIT_VALID, NORM_RUNNING, &sum,
                               &why),
                 &why);
        assert_int_equal(sum.tokens, 2 * 2 * 3); /* 15 tokens in parts of 7, windows at 0 and 3 */
        assert_int_equal(sum.unknown, 1);
        double nll = 0, value[TASK_METRICS];
        for (int i = 0; i < 2; i++) {
            batch b;
            task_sums one;
            check_ok(data_batch(data, SPLIT_VALID, 0, i, &b, &why), &why);
            tape_reset(t, rng_create(3), false, false);
            pass p = {.tape = t, .batch = &b, .mode = NORM_RUNNING};
            assert_non_null(task_loss(task_of(TASK_LM), &none, m, &p, &one));
            assert_int_equal(one.tokens, b.tokens);
            nll += one.nll;
        }
        task_of(TASK_LM)->measure(&sum, value);
        check_within(value[2], exp(nll / 12), 1e-9);
        assert_true(isnan(value[3]) == adaptive);
        tape_free(t);
        model_free(m);
    }
    data_close(data);
}

static void models_and_data(void **state) {
    (void)state;
    sr_failure why = {0};
    const model_row *m = model_find("resnet20");
    check_ok(task_check(m, &task_of(TASK_IMAGES)->example, &why), &why);
    assert_int_equal(task_check(m, &task_of(TASK_PAIRS)->example, &why), SR_USAGE);
    check_failure(&why, SR_USAGE, "model resnet20 takes images, the data are sentence pairs");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rows_are_whole),
        cmocka_unit_test(measures),
        cmocka_unit_test(no_loss),
        cmocka_unit_test(describes),
        cmocka_unit_test(arrays),
        cmocka_unit_test(five_largest),
        cmocka_unit_test(smoothing),
        cmocka_unit_test(every_class_counts),
        cmocka_unit_test(models_and_data),
        cmocka_unit_test(loss_of_nll),
        cmocka_unit_test(windows_of_a_split),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
