/* The entity tagger on three small sentences: parameter counts and sites (docs/models.md 5),
 * gradients, padding, decoding, training. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/ops/ops.h"
#include "tag_batch.h"
#include "testing/check.h"

#ifdef REAL_DOUBLE
static const double CLOSE = 1e-10;
#else
static const double CLOSE = 1e-5;
#endif

static tape *make_tape(int threads) {
    sr_failure why = {0};
    tape *t = tape_create(threads, &why);
    check_ok(why.status, &why);
    return t;
}

/* -- size */

static model *of_preset(const char *preset, int64_t tags, const char *char_encoder) {
    model_options o = tagger_options("bn", "", char_encoder);
    const data_shape shape = {
        .task = TASK_TAGS, .classes = tags, .characters = 90, .vocabulary = 1000, .longest = 60};
    sr_failure why = {0};
    o.embed_dim = o.ffn_dim = o.heads = 0;
    strcpy(o.preset, preset);
    model *m = model_create(&o, &shape, &why);
    if (!m) fail_msg("%s", why.text);
    return m;
}

/* Without words and characters: 45.3 M parameters for CoNLL-2003, 0.96 M for Resume. */
static void expect_core(const char *preset, int64_t tags, int64_t words, int64_t characters,
                        int64_t want) {
    model *m = of_preset(preset, tags, "");
    assert_int_equal(params_total(&m->params) - 1000 * words - characters, want);
    model_free(m);
}

static void parameter_counts(void **state) {
    (void)state;
    const int64_t cnn = 90 * 30 + 30 * 90 + 30;
    expect_core("conll2003", 17, 100, cnn, 45255508);
    expect_core("resume", 28, 100, 0, 956004);
    expect_core("conll2003-mini", 17, 50, cnn, 244564);
    model *m = of_preset("resume", 28, "transformer"), *none = of_preset("resume", 28, "none");
    /* embedding; qkv, u, z; FFN; two norms; 30 more input columns of the layers */
    assert_int_equal(params_total(&m->params) - params_total(&none->params),
                     90 * 30 + 3 * 30 * 30 + 60 + 30 * 60 + 60 + 60 * 30 + 30 + 120 + 30 * 256);
    model_free(m);
    model_free(none);
}

static void sites(void **state) {
    (void)state;
    model_options o = tagger_options("bn", "pre", "transformer");
    model *m = tagger_create(&o);
    const char *const want[] = {"characters.norm1", "characters.norm2", "encoder.0.norm1",
                                "encoder.0.norm2",  "encoder.1.norm1",  "encoder.1.norm2"};
    assert_int_equal(m->sites, 6);
    for (int i = 0; i < 6; i++) {
        assert_string_equal(m->site[i]->name, want[i]);
        assert_string_equal(m->site[i]->method->name, i < 2 ? "ln" : "bn");
        assert_int_equal(m->site[i]->features, i < 2 ? 30 : 8);
    }
    assert_true(m->gives_nll);
    model_free(m);
    strcpy(o.qk_norm, "ln"); /* only in the words' attention */
    m = tagger_create(&o);
    assert_int_equal(m->sites, 10);
    for (int i = 0; i < 4; i++)
        assert_string_equal(
            m->site[i]->name,
            ((const char *const[]){"characters.norm1", "characters.norm2", "encoder.0.norm1",
                                   "encoder.0.attention.q_norm"})[i]);
    model_free(m);
    o.qk_norm[0] = 0;
    strcpy(o.char_encoder, "");
    o.layers = 3;
    m = tagger_create(&o);
    assert_int_equal(m->sites, 6);
    assert_string_equal(m->site[5]->name, "encoder.2.norm2");
    model_free(m);
}

static void refusals(void **state) {
    (void)state;
    model_options o = tagger_options("ln", "", "");
    const data_shape shape = {.task = TASK_TAGS, .classes = 4, .vocabulary = 9};
    sr_failure why = {0};
    assert_null(model_create(&o, &shape, &why));
    check_failure(&why, SR_USAGE, "--char-encoder: the data have no characters");
    why = (sr_failure){0};
    o.heads = 8;
    assert_null(model_create(&o, &shape, &why));
    check_failure(&why, SR_USAGE, "embed-dim 8 is not divisible by heads 8 into even widths");
    why = (sr_failure){0};
    strcpy(o.preset, "large");
    assert_null(model_create(&o, &shape, &why));
    check_failure(&why, SR_USAGE,
                  "preset 'large' of model tener is not one of conll2003|conll2003-mini|resume");
}

static double deviation(const tensor *x) {
    double square = 0;
    for (int64_t i = 0; i < x->count; i++) square += pow((double)x->value[i], 2);
    return sqrt(square / (double)x->count);
}

/* Words N(1/sqrt(width)), transitions N(1); padding rows are zero. */
static void initial_weights(void **state) {
    (void)state;
    model *m = of_preset("conll2003-mini", 17, "");
    const tensor *words = m->embedding, *trans = &params_find(&m->params, "crf.trans")->t,
                 *letters = &params_find(&m->params, "characters.embedding")->t;
    check_within(deviation(words) * sqrt(50), 1, 0.02);
    check_within(deviation(letters) * sqrt(30), 1, 0.06);
    check_within(deviation(trans), 1, 0.2);
    for (int k = 0; k < 50; k++) check_equals(words->value[TOKEN_PAD * 50 + k], 0);
    for (int k = 0; k < 30; k++) check_equals(letters->value[k], 0);
    model_free(m);
}

/* -- gradients */

#ifdef REAL_DOUBLE
static double sum(const double *nll) {
    double s = 0;
    for (int i = 0; i < TAGGED; i++) s += nll[i];
    return s;
}

/* Every parameter, at up to nine entries; dropout draws the same numbers every time. */
static void check_gradients(const char *norm, const char *placement, const char *char_encoder,
                            const char *qk_norm) {
    model_options o = tagger_options(norm, placement, char_encoder);
    strcpy(o.qk_norm, qk_norm);
    tag_batch said;
    double nll[TAGGED];
    tape *t = make_tape(1);
    o.dropout = o.relu_dropout = o.attention_dropout = 0.1;
    model *m = tagger_create(&o);
    tag_batch_fill(&said, 6, 5);
    for (int i = 0; i < m->params.count; i++) {
        const param *p = m->params.item[i];
        real *grad = malloc((size_t)p->t.count * sizeof *grad);
        tagger_run(m, t, &said.b, true, nll);
        memcpy(grad, p->t.grad, (size_t)p->t.count * sizeof *grad);
        for (int64_t k = 0; k < p->t.count; k += 1 + p->t.count / 9) {
            const double held = p->t.value[k], h = 1e-5;
            p->t.value[k] = held + h;
            tagger_run(m, t, &said.b, true, nll);
            const double above = sum(nll);
            p->t.value[k] = held - h;
            tagger_run(m, t, &said.b, true, nll);
            p->t.value[k] = held;
            const double numeric = (above - sum(nll)) / (2 * h);
            const bool pad = strstr(p->name, "embedding") &&
                             k / p->t.dim[1] == (strchr(p->name, '.') ? 0 : TOKEN_PAD);
            if (pad ? grad[k] != 0 : fabs(grad[k] - numeric) > 1e-6 * (1 + fabs(numeric)))
                fail_msg("%s %s %s, qk-norm %s: %s [%lld]: %.9g, by differences %.9g", norm,
                         placement, char_encoder, qk_norm, p->name, (long long)k, grad[k], numeric);
        }
        free(grad);
    }
    tape_free(t);
    model_free(m);
}

static void gradients(void **state) {
    (void)state;
    check_gradients("ln", "post", "cnn", "");
    check_gradients("bn", "post", "cnn", "ln");
    check_gradients("ln", "pre", "transformer", "rmsnorm");
    check_gradients("bn", "pre", "none", "bn");
}
#endif

/* -- padding */

static void gradients_of(const model *m, double *grad) {
    for (int i = 0, at = 0; i < m->params.count; i++)
        for (int64_t k = 0; k < m->params.item[i]->t.count; k++)
            grad[at++] = (double)m->params.item[i]->t.grad[k];
}

/* More padding of words and characters changes neither nll nor gradients. Dropout, which draws by
 * position, is off; the statistics are the batch's. */
static void padding_changes_nothing(void **state) {
    (void)state;
    const char *const encoders[] = {"cnn", "transformer"}, *const norms[] = {"ln", "bn"};
    for (int i = 0; i < 6; i++) {
        model_options o = tagger_options(norms[i % 2], i % 2 ? "pre" : "post", encoders[i / 2 % 2]);
        if (i == 5) strcpy(o.qk_norm, "bn");
        if (i == 4) strcpy(o.char_encoder, "transformer"), strcpy(o.norm_at, "characters.*=bn");
        model *m = tagger_create(&o);
        const size_t n = (size_t)params_total(&m->params);
        double *grad[2] = {malloc(n * sizeof(double)), malloc(n * sizeof(double))};
        double nll[2][TAGGED];
        for (int k = 0; k < 2; k++) {
            tag_batch said;
            tape *t = make_tape(2);
            tag_batch_fill(&said, k ? 11 : 5, k ? 9 : 4);
            tape_reset(t, rng_create(7), false, true);
            pass p = {.tape = t, .batch = &said.b, .mode = NORM_TRAIN};
            tensor *y = m->row->forward(m, &p);
            assert_non_null(y);
            params_zero_grad(&m->params);
            tape_backward(t, op_sum(t, y), 1);
            for (int s = 0; s < TAGGED; s++) nll[k][s] = (double)y->value[s];
            gradients_of(m, grad[k]);
            tape_free(t);
        }
        assert_true(check_close("nll", nll[1], nll[0], TAGGED, CLOSE, CLOSE));
        assert_true(check_close("gradients", grad[1], grad[0], (int64_t)n, 20 * CLOSE, 20 * CLOSE));
        free(grad[0]), free(grad[1]);
        model_free(m);
    }
}

static void keep_sum(void *context, const norm_view *o) {
    double *sum = context;
    for (int64_t i = 0; i < o->call->rows->rows * o->site->features; i++)
        *sum += fabs((double)o->x[i]);
}

/* The layer over characters is post-norm, whatever the placement in the words' layers. */
static void characters_are_post(void **state) {
    (void)state;
    double sum[2][2] = {{0}};
    for (int pre = 0; pre < 2; pre++) {
        model_options o = tagger_options("ln", pre ? "pre" : "post", "transformer");
        model *m = tagger_create(&o);
        tag_batch said;
        tape *t = make_tape(1);
        double nll[TAGGED];
        for (int i = 0; i < 2; i++) {
            m->site[i]->forward_hook = keep_sum;
            m->site[i]->hook_context = &sum[pre][i];
        }
        tag_batch_fill(&said, 5, 4);
        tagger_run(m, t, &said.b, true, nll);
        tape_free(t);
        model_free(m);
    }
    for (int i = 0; i < 2; i++) {
        check_above(sum[0][i], 0);
        check_equals(sum[0][i], sum[1][i]);
    }
}

/* The control experiment: normalizations count padded words as rows. */
static void padding_counted(void **state) {
    (void)state;
    model_options o = tagger_options("bn", "post", "");
    o.count_padding = true;
    model *m = tagger_create(&o);
    double nll[2];
    for (int k = 0; k < 2; k++) {
        tag_batch said;
        tape *t = make_tape(1);
        tag_batch_fill(&said, k ? 11 : 5, 4);
        tape_reset(t, rng_create(7), false, false);
        pass p = {.tape = t, .batch = &said.b, .mode = NORM_TRAIN};
        const tensor *y = m->row->forward(m, &p);
        assert_non_null(y);
        nll[k] = (double)y->value[0];
        tape_free(t);
    }
    check_apart(nll[1], nll[0], 1e-2);
    model_free(m);
}

/* -- decoding, learning */

static bool all_right(const tag_batch *said, const int32_t *predicted) {
    for (int64_t i = 0; i < TAGGED * said->b.source_length; i++)
        if (said->mask[i] && predicted[i] != said->tag[i]) return false;
    return true;
}

/* NULL while training. */
static const int32_t *predict(model *m, tape *t, const batch *b, bool train) {
    tape_reset(t, rng_create(7), train, train);
    pass p = {.tape = t, .batch = b, .mode = train ? NORM_TRAIN : NORM_RUNNING};
    assert_non_null(m->row->forward(m, &p));
    return p.predicted;
}

static void decodes_outside_training(void **state) {
    (void)state;
    model_options o = tagger_options("ln", "", "");
    model *m = tagger_create(&o);
    tag_batch said;
    tape *t = make_tape(1);
    tag_batch_fill(&said, 7, 4);
    assert_null(predict(m, t, &said.b, true));
    /* all logits favour tag 1 and then 3, which is not allowed */
    tensor *bias = &params_find(&m->params, "output.bias")->t;
    tensor *trans = &params_find(&m->params, "crf.trans")->t;
    bias->value[1] = bias->value[3] = 500;
    trans->value[1 * TAG_COUNT + 3] = 200;
    said.allowed[1 * (TAG_COUNT + 2) + 3] = 1;
    const int32_t *free_path = predict(m, t, &said.b, false);
    int forbidden = 0;
    for (int w = 1; w < 5; w++) forbidden += free_path[w - 1] == 1 && free_path[w] == 3;
    assert_true(forbidden > 0);
    said.allowed[1 * (TAG_COUNT + 2) + 3] = 0;
    const int32_t *path = predict(m, t, &said.b, false);
    for (int w = 1; w < 5; w++) assert_false(path[w - 1] == 1 && path[w] == 3);
    for (int w = 5; w < 7; w++) assert_int_equal(path[w], 0);
    tape_free(t);
    model_free(m);
}

/* One step of Adam, lr 0.01. */
static void adam(params *all, int step) {
    sr_failure why = {0};
    check_ok(params_slots(all, 2, &why), &why);
    for (int i = 0; i < all->count; i++)
        for (int64_t k = 0; k < all->item[i]->t.count; k++) {
            real *m = all->item[i]->slot[0] + k, *v = all->item[i]->slot[1] + k;
            const real g = all->item[i]->t.grad[k];
            *m += (real)0.1 * (g - *m);
            *v += (real)0.01 * (g * g - *v);
            const double mean = (double)*m / (1 - pow(0.9, step));
            const double root = sqrt((double)*v / (1 - pow(0.99, step)));
            all->item[i]->t.value[k] -= (real)(0.01 * mean / (root + 1e-8));
        }
}

/* The loss falls, and Viterbi finds the tags, with the preset's dropout. */
static void learns(void **state) {
    (void)state;
    const char *const encoders[] = {"cnn", "transformer", "none"};
    for (int i = 0; i < 6; i++) {
        model_options o =
            tagger_options(i % 2 ? "bn" : "ln", i % 2 ? "pre" : "post", encoders[i / 2]);
        o.dropout = o.attention_dropout = o.relu_dropout = NAN;
        model *m = tagger_create(&o);
        tag_batch said;
        tape *t = make_tape(1);
        double first[TAGGED], nll[TAGGED];
        tag_batch_fill(&said, 6, 4);
        tagger_run(m, t, &said.b, false, first);
        for (int step = 1; step <= 400; step++) {
            tape_reset(t, rng_create((uint64_t)step), true, true);
            pass p = {.tape = t, .batch = &said.b, .mode = NORM_TRAIN};
            params_zero_grad(&m->params);
            tape_backward(t, op_sum(t, m->row->forward(m, &p)), 1);
            adam(&m->params, step);
        }
        tagger_run(m, t, &said.b, false, nll);
        for (int s = 0; s < TAGGED; s++)
            if (!(nll[s] < 0.3 * first[s] && nll[s] < 0.5))
                fail_msg("%s, %s: nll of sentence %d from %g to %g", o.norm, o.char_encoder, s,
                         first[s], nll[s]);
        if (!all_right(&said, predict(m, t, &said.b, false)))
            fail_msg("%s, %s: not the tags of the sentences", o.norm, o.char_encoder);
        tape_free(t);
        model_free(m);
    }
}

/* In training, words become <unk>: its row gets a gradient although the batch has no unknown
 * word. */
static void words_are_dropped(void **state) {
    (void)state;
    model_options o = tagger_options("ln", "", "none");
    model *m = tagger_create(&o);
    tag_batch said;
    tape *t = make_tape(1);
    int dropped = 0;
    tag_batch_fill(&said, 5, 4);
    for (int i = 0; i < 5; i++) said.word[i] = 8;
    const real *row = params_find(&m->params, "embedding")->t.grad + TOKEN_UNK * 50;
    for (uint64_t seed = 0; seed < 1000; seed++) {
        tape_reset(t, rng_create(seed), true, true);
        pass p = {.tape = t, .batch = &said.b, .mode = NORM_TRAIN};
        params_zero_grad(&m->params);
        tape_backward(t, op_sum(t, m->row->forward(m, &p)), 1);
        bool any = false;
        for (int k = 0; k < 50; k++) any |= row[k] != 0;
        dropped += any;
    }
    /* at least one of 9 words, with probability 1 - 0.98^9 = 0.166: 166 +- 12 */
    assert_true(dropped > 166 - 60 && dropped < 166 + 60);
    tape_free(t);
    model_free(m);
}

/* Returns the number of ops that draw random numbers in training; in evaluation none may draw. */
static int64_t draws(double dropout, double attention, double relu, const char *char_encoder) {
    model_options o = tagger_options("ln", "", char_encoder);
    o.dropout = dropout, o.attention_dropout = attention, o.relu_dropout = relu;
    model *m = tagger_create(&o);
    tag_batch said;
    tape *t = make_tape(1);
    double nll[TAGGED];
    tag_batch_fill(&said, 5, 4);
    tagger_run(m, t, &said.b, false, nll);
    assert_int_equal(t->draws, 0);
    tagger_run(m, t, &said.b, true, nll);
    const int64_t count = (int64_t)t->draws;
    tape_free(t);
    model_free(m);
    return count;
}

/* Words, their vectors and the output layer's input are always dropped. Each option adds one per
 * layer, of characters too. */
static void options_of_dropout(void **state) {
    (void)state;
    assert_int_equal(draws(0, 0, 0, "cnn"), 3);
    assert_int_equal(draws(0.1, 0, 0, "cnn"), 5);
    assert_int_equal(draws(0, 0.1, 0, "cnn"), 5);
    assert_int_equal(draws(0, 0, 0.1, "cnn"), 5);
    assert_int_equal(draws(NAN, NAN, NAN, "none"), 9);
    assert_int_equal(draws(NAN, NAN, NAN, "transformer"), 12);
}

static void width_of_words(void **state) {
    (void)state;
    model_options o = tagger_options("ln", "", "none");
    o.word_dim = 20;
    strcpy(o.word_vectors, "vectors.txt"); /* read by the training program */
    model *m = tagger_create(&o);
    assert_int_equal(m->embedding->dim[1], 20);
    assert_string_equal(model_condition(m), "word vectors from a file");
    model_free(m);
    o.word_vectors[0] = 0;
    m = tagger_create(&o);
    assert_string_equal(model_condition(m), "word vectors not pretrained");
    model_free(m);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(parameter_counts),
        cmocka_unit_test(sites),
        cmocka_unit_test(refusals),
        cmocka_unit_test(initial_weights),
#ifdef REAL_DOUBLE
        cmocka_unit_test(gradients),
#endif
        cmocka_unit_test(padding_changes_nothing),
        cmocka_unit_test(padding_counted),
        cmocka_unit_test(characters_are_post),
        cmocka_unit_test(decodes_outside_training),
        cmocka_unit_test(learns),
        cmocka_unit_test(words_are_dropped),
        cmocka_unit_test(options_of_dropout),
        cmocka_unit_test(width_of_words),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
