/* Transformer-XL in training and in evaluation: dropout positions, clamped distances in each,
 * attention span (docs/models.md 4). */
#include <math.h>
#include <string.h>

#include "engine/gemm/gemm.h"
#include "nets/models.h"
#include "testing/check.h"

enum { WORDS = 23, SEQS = 2, LENGTH = 12 };

static const int32_t stream[SEQS][LENGTH] = {{2, 3, 22, 7, 0, 9, 14, 1, 8, 12, 4, 0},
                                             {5, 1, 1, 17, 20, 6, 3, 11, 9, 2, 13, 18}};

static model_options small_options(void) {
    return (model_options){.norm_eps = NAN,
                           .norm_alpha = NAN,
                           .dropout = NAN,
                           .attention_dropout = NAN,
                           .relu_dropout = NAN,
                           .norm = "ln",
                           .decoder_norm = "ln",
                           .name = "transformer_xl",
                           .preset = "enwik8-mini",
                           .embed_dim = 8,
                           .ffn_dim = 10,
                           .heads = 2,
                           .head_dim = 3,
                           .seed = 1};
}

static model *create(const model_options *o, int64_t window) {
    const data_shape shape = {.task = TASK_LM, .vocabulary = WORDS, .longest = window};
    sr_failure why = {0};
    model *m = model_create(o, &shape, &why);
    if (!m) fail_msg("%s", why.text);
    return m;
}

static void words_of_stream(int64_t T, int32_t *in) {
    for (int s = 0; s < SEQS; s++) memcpy(in + s * T, stream[s], (size_t)T * sizeof *in);
}

/* Ops that draw random numbers in a pass. */
static int64_t draws(double dropout, double attention, bool training) {
    sr_failure why = {0};
    int32_t in[SEQS * 4];
    model_options o = small_options();
    o.layers = 2;
    o.dropout = dropout, o.attention_dropout = attention;
    model *m = create(&o, 4);
    tape *t = tape_create(1, &why);
    words_of_stream(4, in);
    const batch b = {
        .task = TASK_LM, .count = SEQS, .target_length = 4, .target_in = in, .tokens = SEQS * 4};
    pass p = {.tape = t, .batch = &b, .mode = training ? NORM_TRAIN : NORM_RUNNING};
    tape_reset(t, rng_create(1), training, false);
    assert_non_null(m->row->forward(m, &p));
    const int64_t count = (int64_t)t->draws;
    tape_free(t);
    model_free(m);
    return count;
}

/* Dropout after the embedding, of the positions and before the output. Each layer has three more
 * (after attention, inside and after the FFN), and one of attention weights. */
static void places_of_dropout(void **state) {
    (void)state;
    assert_int_equal(draws(NAN, NAN, true), 3 + 2 * 3);
    assert_int_equal(draws(0, 0.1, true), 2);
    assert_int_equal(draws(0, 0, true), 0);
    assert_int_equal(draws(0.1, 0.1, false), 0);
}

/* Returns the first logit at the last position of a window, for these distances. */
static double logit_of(int64_t clamp, int64_t eval_clamp, bool same_length, bool training) {
    sr_failure why = {0};
    int32_t in[SEQS * LENGTH];
    model_options o = small_options();
    o.layers = 1, o.dropout = 0;
    o.clamp_len = clamp, o.eval_clamp_len = eval_clamp;
    o.same_length = same_length, o.eval_mem_len = 2;
    model *m = create(&o, LENGTH);
    for (int i = 0; i < m->params.count; i++) {
        tensor *x = &m->params.item[i]->t;
        for (int64_t n = 0; n < x->count; n++) x->value[n] *= 20;
    }
    tape *t = tape_create(1, &why);
    words_of_stream(LENGTH, in);
    const batch b = {.task = TASK_LM,
                     .count = SEQS,
                     .target_length = LENGTH,
                     .target_in = in,
                     .tokens = SEQS * LENGTH};
    pass p = {.tape = t, .batch = &b, .mode = training ? NORM_TRAIN : NORM_RUNNING};
    tape_reset(t, rng_create(1), training, false);
    const tensor *y = m->row->forward(m, &p);
    assert_non_null(y);
    const double value = (double)y->value[(LENGTH - 1) * WORDS];
    tape_free(t);
    model_free(m);
    return value;
}

/* clamp-len applies in training, eval-clamp-len outside it (0: clamp-len); same-length only
 * outside. */
static void training_and_evaluation(void **state) {
    (void)state;
    const double far = logit_of(0, 0, false, true), two = logit_of(2, 0, false, true),
                 near = logit_of(0, 0, true, false);
    check_apart(far, two, 1e-4);
    check_apart(far, near, 1e-4);
    check_within(logit_of(2, 5, false, true), two, 1e-6);
    check_within(logit_of(5, 2, false, false), two, 1e-6);
    check_within(logit_of(2, 0, false, false), two, 1e-6);
    check_within(logit_of(0, 2, false, true), far, 1e-6);
    check_within(logit_of(0, 0, false, false), far, 1e-6);
    check_within(logit_of(0, 0, true, true), far, 1e-6);
}

int main(void) {
    gemm_setup(2);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(places_of_dropout),
        cmocka_unit_test(training_and_evaluation),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
