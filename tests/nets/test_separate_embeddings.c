/* A transformer with a dictionary per side. With both embeddings equal to a joint model's, its
 * outputs are equal. Its two gradients add up to the joint one. */
#include <math.h>
#include <string.h>

#include "task/task.h"
#include "testing/check.h"

enum { WIDTH = 8, COUNT = 2, LENGTH = 4, WORDS = 20, TARGET_WORDS = 12 };

/* target 0: one dictionary for both. */
static model *create(int64_t source, int64_t target) {
    model_options o = {.name = "transformer",
                       .preset = "mini",
                       .norm = "ln",
                       .decoder_norm = "ln",
                       .norm_eps = NAN,
                       .norm_alpha = NAN,
                       .embed_dim = WIDTH,
                       .ffn_dim = WIDTH,
                       .heads = 2,
                       .encoder_layers = 1,
                       .decoder_layers = 1,
                       .seed = 1};
    data_shape shape = {
        .task = TASK_PAIRS, .vocabulary = source, .target_vocabulary = target, .longest = LENGTH};
    sr_failure why = {0};
    model *m = model_create(&o, &shape, &why);
    if (!m) fail_msg("%s", why.text);
    return m;
}

static const int32_t source[COUNT * LENGTH] = {7, 9, 4, TOKEN_EOS, 5, TOKEN_EOS, 1, 1};
static const int32_t target_in[COUNT * LENGTH] = {TOKEN_EOS, 8, 11, 1, TOKEN_EOS, 7, 7, 9};
static const int32_t target_out[COUNT * LENGTH] = {8, 11, TOKEN_EOS, 1, 7, 7, 9, TOKEN_EOS};
static const uint8_t source_mask[COUNT * LENGTH] = {1, 1, 1, 1, 1, 1, 0, 0};
static const uint8_t target_mask[COUNT * LENGTH] = {1, 1, 1, 0, 1, 1, 1, 1};

/* Loss of the batch, with gradients. */
static double loss_of(model *m) {
    sr_failure why = {0};
    tape *t = tape_create(1, &why);
    assert_non_null(t);
    const batch b = {.task = TASK_PAIRS,
                     .count = COUNT,
                     .source_length = LENGTH,
                     .target_length = LENGTH,
                     .source = source,
                     .target_in = target_in,
                     .target_out = target_out,
                     .source_mask = source_mask,
                     .target_mask = target_mask,
                     .tokens = 7};
    const task_options o = {.label_smoothing = 0.1};
    task_sums sum = {0};
    tape_reset(t, rng_create(1), true, true);
    pass p = {.tape = t, .batch = &b, .mode = NORM_TRAIN};
    tensor *loss = task_loss(task_of(TASK_PAIRS), &o, m, &p, &sum);
    tape_backward(t, loss, 1);
    if (tape_failure(t)) fail_msg("%s", tape_failure(t)->text);
    tape_free(t);
    return sum.loss;
}

static param *find(model *m, const char *name) {
    param *p = params_find(&m->params, name);
    if (!p) fail_msg("no parameter %s", name);
    return p;
}

/* Copies every weight of `from` by name; both embeddings from its joint one. */
static void copy_weights(model *from, model *to) {
    for (int i = 0; i < to->params.count; i++) {
        param *p = to->params.item[i];
        const param *q = find(from, strncmp(p->name, "embedding.", 10) ? p->name : "embedding");
        assert_int_equal(p->t.count, q->t.count);
        memcpy(p->t.value, q->t.value, (size_t)p->t.count * sizeof *p->t.value);
    }
}

static void computes_as_the_joint_one(void **state) {
    (void)state;
    model *joint = create(WORDS, 0), *two = create(WORDS, WORDS);
    copy_weights(joint, two);
    const double want = loss_of(joint), got = loss_of(two);
    check_above(want, 0);
    check_equals(got, want);
    const real *g = find(joint, "embedding")->t.grad, *s = find(two, "embedding.source")->t.grad,
               *t = find(two, "embedding.target")->t.grad;
    double of_source = 0, of_target = 0;
    for (int i = 0; i < WORDS * WIDTH; i++) {
        check_within((double)g[i] - (double)s[i], (double)t[i], 1e-5);
        of_source += fabs((double)s[i]), of_target += fabs((double)t[i]);
        if (i / WIDTH == 8) check_equals(s[i], 0); /* no source word */
    }
    check_above(of_source, 0.01);
    check_above(of_target, 0.01);
    model_free(joint);
    model_free(two);
}

/* Only sources contain token 19; the logits cover the target's dictionary. */
static void sizes_are_each_its_own(void **state) {
    (void)state;
    model *m = create(WORDS, TARGET_WORDS);
    const tensor *s = &find(m, "embedding.source")->t, *t = &find(m, "embedding.target")->t;
    assert_true(s->dim[0] == WORDS && t->dim[0] == TARGET_WORDS && t->dim[1] == WIDTH);
    assert_true(m->embedding == s && m->target_embedding == t);
    assert_null(params_find(&m->params, "embedding"));
    check_above(loss_of(m), 0);
    for (int k = 0; k < WIDTH; k++) {
        check_equals(s->value[TOKEN_PAD * WIDTH + k], 0);
        check_equals(t->value[TOKEN_PAD * WIDTH + k], 0);
    }
    model_free(m);
    m = create(WORDS, 0);
    assert_int_equal(m->embedding->dim[0], WORDS);
    assert_ptr_equal(m->target_embedding, m->embedding);
    model_free(m);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(computes_as_the_joint_one),
        cmocka_unit_test(sizes_are_each_its_own),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
