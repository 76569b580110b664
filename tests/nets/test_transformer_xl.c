/* Transformer-XL (docs/models.md 4): sizes, initial weights, visible tokens, memory against longer
 * windows, attention span, clamped distances. Gradients of every parameter with memory, batch
 * statistics, rejected options. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/gemm/gemm.h"
#include "engine/ops/loss/loss_ops.h"
#include "nets/models.h"
#include "testing/check.h"

static model_options options(const char *preset) {
    model_options o = {.norm_eps = NAN,
                       .norm_alpha = NAN,
                       .dropout = NAN,
                       .attention_dropout = NAN,
                       .relu_dropout = NAN,
                       .norm = "ln",
                       .decoder_norm = "ln",
                       .name = "transformer_xl",
                       .seed = 1};
    strcpy(o.preset, preset);
    return o;
}

static model *create(const model_options *o, int64_t vocabulary, int64_t window) {
    const data_shape shape = {.task = TASK_LM, .vocabulary = vocabulary, .longest = window};
    sr_failure why = {0};
    model *m = model_create(o, &shape, &why);
    if (!m) fail_msg("%s", why.text);
    return m;
}

/* -- sizes */

static void expect(const model_options *o, int64_t vocabulary, int64_t want, int sites) {
    model *m = create(o, vocabulary, 16);
    assert_int_equal(params_total(&m->params), want);
    assert_int_equal(m->sites, sites);
    assert_string_equal(m->site[1]->name, "layer.0.norm2");
    model_free(m);
}

/* The published 41,055,436 with 204 symbols; memory has no parameters. */
static void counts(void **state) {
    (void)state;
    model_options o = options("enwik8");
    expect(&o, 204, 41055436, 24);
    o = options("");
    o.mem_len = o.eval_mem_len = 8, o.layers = 1;
    strcpy(o.placement, "pre");
    expect(&o, 204, 41055436 - 11 * 3412480, 2);
    const int64_t layer = 5 * 128 * 128 + 2 * 128 * 512 + 512 + 128 + 4 * 128;
    o = options("enwik8-mini");
    expect(&o, 200, 200 * 129 + 2 * 128 + 4 * layer, 8);
    o.heads = 2, o.head_dim = 8;
    expect(&o, 200, 200 * 129 + 2 * 16 + 4 * (layer - 5 * 128 * 112), 8);
}

static void spread(const tensor *x, double *mean, double *deviation) {
    double sum = 0, square = 0;
    for (int64_t i = 0; i < x->count; i++) sum += (double)x->value[i];
    *mean = sum / (double)x->count;
    for (int64_t i = 0; i < x->count; i++) square += pow((double)x->value[i] - *mean, 2);
    *deviation = sqrt(square / (double)x->count);
}

static void initial_weights(void **state) {
    (void)state;
    model_options o = options("enwik8-mini");
    model *m = create(&o, 100, 8);
    for (int i = 0; i < m->params.count; i++) {
        const param *p = m->params.item[i];
        const char *last = strrchr(p->name, '.');
        const bool zero = last && (!strcmp(last, ".bias") || !strcmp(last, ".beta"));
        const double want = last && !strcmp(last, ".gamma") ? 1 : 0, about = zero ? 0 : 0.02;
        double mean, deviation;
        spread(&p->t, &mean, &deviation);
        if (!(fabs(mean - want) < 0.012 && fabs(deviation - about) < 0.4 * about + 1e-9))
            fail_msg("%s: %g +- %g, not %g +- %g", p->name, mean, deviation, want, about);
    }
    model_free(m);
}

/* -- small models, and streams through them */

enum { WORDS = 23, SEQS = 2, LENGTH = 12 };

typedef struct small_options {
    int64_t layers, window, mem_len, clamp_len;
    bool pre, same_length;
    const char *norm;
    double dropout;
    const char *placement; /* NULL: given by `pre` */
    const char *qk_norm;   /* NULL: none */
} small_options;

/* Memory is as long in evaluation. Large weights keep rounding from hiding a path. */
static model *small(const small_options *s) {
    model_options o = options("enwik8-mini");
    o.layers = s->layers, o.embed_dim = 8, o.ffn_dim = 10, o.heads = 2, o.head_dim = 3;
    o.mem_len = o.eval_mem_len = s->mem_len, o.clamp_len = s->clamp_len;
    o.same_length = s->same_length, o.dropout = s->dropout;
    strcpy(o.placement, s->placement ? s->placement : s->pre ? "pre" : "post");
    if (s->norm) strcpy(o.norm, s->norm);
    if (s->qk_norm) strcpy(o.qk_norm, s->qk_norm);
    model *m = create(&o, WORDS, s->window);
    rng r = rng_create(5);
    for (int i = 0; i < m->params.count; i++) {
        tensor *p = &m->params.item[i]->t;
        for (int64_t n = 0; n < p->count; n++) p->value[n] += (real)(0.4 * rng_normal(&r));
    }
    return m;
}

static const int32_t stream[SEQS][LENGTH] = {{2, 3, 22, 7, 0, 9, 14, 1, 8, 12, 4, 0},
                                             {5, 1, 1, 17, 20, 6, 3, 11, 9, 2, 13, 18}};

/* Runs the stream in windows of T; logits [SEQS, LENGTH, WORDS] of every position, if not NULL. */
static void run_stream(model *m, const int32_t token[SEQS][LENGTH], int64_t first, int64_t T,
                       model_memory *k, double *logits) {
    sr_failure why = {0};
    tape *t = tape_create(2, &why);
    int32_t in[SEQS * LENGTH];
    for (int64_t at = first; at + T <= LENGTH; at += T) {
        for (int s = 0; s < SEQS; s++) memcpy(in + s * T, &token[s][at], (size_t)T * sizeof *in);
        const batch b = {.task = TASK_LM,
                         .count = SEQS,
                         .target_length = T,
                         .target_in = in,
                         .tokens = SEQS * T};
        pass p = {.tape = t, .batch = &b, .mode = NORM_RUNNING, .memory = k};
        tape_reset(t, rng_create(1), false, false);
        const tensor *y = m->row->forward(m, &p);
        if (!y) fail_msg("%s", tape_failure(t)->text);
        for (int s = 0; s < SEQS; s++)
            for (int64_t n = 0; n < T * WORDS; n++)
                logits[(s * LENGTH + at) * WORDS + n] = (double)y->value[s * T * WORDS + n];
    }
    tape_free(t);
}

enum { LOGITS = SEQS * LENGTH * WORDS };

/* From an empty memory. */
static void run_all(const small_options *s, const int32_t token[SEQS][LENGTH], int64_t first,
                    double *logits) {
    sr_failure why = {0};
    model_memory k;
    model *m = small(s);
    check_ok(model_memory_init(&k, m, false, SEQS, &why), &why);
    run_stream(m, token, first, s->window, &k, logits);
    model_memory_free(&k);
    model_free(m);
}

/* Returns the largest difference of the logits at one position of a sequence. */
static double difference(const double *a, const double *b, int s, int64_t i) {
    double most = 0;
    for (int64_t n = (s * LENGTH + i) * WORDS; n < (s * LENGTH + i + 1) * WORDS; n++)
        most = fmax(most, fabs(a[n] - b[n]));
    return most;
}

static void expect_same(const char *what, const double *a, const double *b, int64_t from,
                        int64_t to, bool same) {
    for (int s = 0; s < SEQS; s++)
        for (int64_t i = from; i < to; i++)
            if ((difference(a, b, s, i) < 2e-5) != same)
                fail_msg("%s: place %lld of sequence %d differs by %g", what, (long long)i, s,
                         difference(a, b, s, i));
}

/* Memory back to the start of the stream gives the logits of one long window, in any layer. Rows in
 * memory depend only on earlier tokens, as in the window. */
static void check_longer_window(int64_t layers, const char *placement, const char *qk_norm) {
    const small_options of = {.layers = layers, .placement = placement, .qk_norm = qk_norm};
    small_options whole_of = of, halves_of = of, thirds_of = of, forgetful_of = of;
    double whole[LOGITS], halves[LOGITS], thirds[LOGITS], forgetful[LOGITS];
    whole_of.window = LENGTH;
    halves_of.window = halves_of.mem_len = forgetful_of.window = 6;
    thirds_of.window = 4, thirds_of.mem_len = 9;
    run_all(&whole_of, stream, 0, whole);
    run_all(&halves_of, stream, 0, halves);
    run_all(&thirds_of, stream, 0, thirds);
    run_all(&forgetful_of, stream, 0, forgetful);
    expect_same("two segments", halves, whole, 0, LENGTH, true);
    expect_same("three segments", thirds, whole, 0, LENGTH, true);
    expect_same("no memory", forgetful, whole, 0, 6, true);
    expect_same("no memory", forgetful, whole, 6, LENGTH, false);
}

static void memory_is_a_longer_window(void **state) {
    (void)state;
    static const char *const placements[] = {"post", "pre", "peri", "scaled"}, *const norms[] = {
                                                                                   NULL, "ln",
                                                                                   "bn"};
    for (int k = 0; k < 4 * 3; k++)
        for (int64_t layers = 1; layers < 4; layers++)
            check_longer_window(layers, placements[k / 3], norms[k % 3]);
}

/* One layer sees memory_rows tokens before the segment and no more. Deeper layers see further back,
 * through the rows of memory. */
static void memory_is_so_long(void **state) {
    (void)state;
    double from_start[LOGITS], from_there[LOGITS], deeper[LOGITS], deeper_there[LOGITS];
    run_all(&(small_options){.layers = 1, .window = 4, .mem_len = 2}, stream, 0, from_start);
    run_all(&(small_options){.layers = 1, .window = 6}, stream, 6, from_there);
    expect_same("rows of memory", from_start, from_there, 8, LENGTH, true);
    run_all(&(small_options){.layers = 2, .window = 4, .mem_len = 2}, stream, 0, deeper);
    run_all(&(small_options){.layers = 2, .window = 6}, stream, 6, deeper_there);
    expect_same("two layers", deeper, deeper_there, 8, LENGTH, false);
}

/* A token changes the logits of its position and later ones of its sequence only. */
static void who_sees_what(void **state) {
    (void)state;
    for (int pre = 0; pre < 2; pre++)
        for (int changed = 0; changed < LENGTH; changed++) {
            const small_options s = {.layers = 2, .window = 3, .mem_len = 12, .pre = pre};
            double a[LOGITS], b[LOGITS];
            int32_t other[SEQS][LENGTH];
            memcpy(other, stream, sizeof other);
            other[1][changed] = 10;
            run_all(&s, stream, 0, a);
            run_all(&s, other, 0, b);
            for (int i = 0; i < LENGTH; i++) {
                check_equals(difference(a, b, 0, i), 0);
                if ((difference(a, b, 1, i) == 0) != (i < changed))
                    fail_msg("token %d changes place %d by %g", changed, i, difference(a, b, 1, i));
            }
        }
}

/* Every query of one layer sees eval_mem_len keys: its own and earlier ones. */
static void same_length(void **state) {
    (void)state;
    for (int changed = 0; changed < LENGTH; changed++) {
        const small_options s = {.layers = 1, .window = 4, .mem_len = 3, .same_length = true};
        double a[LOGITS], b[LOGITS];
        int32_t other[SEQS][LENGTH];
        memcpy(other, stream, sizeof other);
        other[0][changed] = 10;
        run_all(&s, stream, 0, a);
        run_all(&s, other, 0, b);
        for (int i = 0; i < LENGTH; i++)
            if ((difference(a, b, 0, i) > 0) != (i >= changed && i < changed + 3))
                fail_msg("token %d changes place %d by %g", changed, i, difference(a, b, 0, i));
    }
}

/* Tokens at equal clamped distances may be exchanged. */
static void clamped_distances(void **state) {
    (void)state;
    int32_t other[SEQS][LENGTH];
    memcpy(other, stream, sizeof other);
    for (int s = 0; s < SEQS; s++) other[s][4] = stream[s][6], other[s][6] = stream[s][4];
    for (int64_t clamp = 0; clamp < 4; clamp++) {
        const small_options s = {.layers = 1, .window = LENGTH, .clamp_len = clamp};
        double a[LOGITS], b[LOGITS];
        run_all(&s, stream, 0, a);
        run_all(&s, other, 0, b);
        for (int i = 7; i < LENGTH; i++) /* the nearer of the two is i - 6 away */
            if ((difference(a, b, 0, i) < 2e-5) != (clamp && clamp <= i - 6))
                fail_msg("clamp %d, place %d: %g", (int)clamp, i, difference(a, b, 0, i));
    }
}

/* -- training */

/* Returns the second segment's loss after the first one's memory, which is a constant. */
static double loss_of(model *m, tape *t, const model_memory *before, double seed) {
    const int64_t T = 4;
    int32_t in[SEQS * 4], out[SEQS * 4];
    model_memory k = *before;
    const size_t bytes = (size_t)(k.layers * k.sequences * k.rows * k.width) * sizeof *k.value;
    k.value = malloc(bytes);
    memcpy(k.value, before->value, bytes);
    for (int s = 0; s < SEQS; s++) {
        memcpy(in + s * T, &stream[s][4], sizeof in / SEQS);
        memcpy(out + s * T, &stream[s][5], sizeof in / SEQS);
    }
    const batch b = {.task = TASK_LM,
                     .count = SEQS,
                     .target_length = T,
                     .target_in = in,
                     .target_out = out,
                     .tokens = SEQS * T,
                     .unknown = -1};
    pass p = {.tape = t, .batch = &b, .mode = NORM_TRAIN, .memory = &k};
    tape_reset(t, rng_create(9), true, true);
    tensor *loss = op_cross_entropy(t, m->row->forward(m, &p), out, -1, -1, 0, SMOOTHING_ALL, NULL);
    if (seed != 0) tape_backward(t, loss, (real)seed);
    if (tape_failure(t)) fail_msg("%s", tape_failure(t)->text);
    free(k.value);
    return (double)loss->value[0];
}

/* Along its gradient g every parameter changes the loss by |g| per step of length 1. */
static void check_gradient(model *m, tape *t, const model_memory *k, int i) {
    tensor *x = &m->params.item[i]->t;
    const char *name = m->params.item[i]->name;
    real *kept = malloc((size_t)x->count * sizeof *kept);
    double norm = 0, value[2];
    const double step = 0.001;
    memcpy(kept, x->value, (size_t)x->count * sizeof *kept);
    for (int64_t n = 0; n < x->count; n++) norm += pow((double)x->grad[n], 2);
    norm = sqrt(norm);
    if (!(norm > 1e-3)) fail_msg("%s: no gradient", name);
    for (int side = 0; side < 2; side++) {
        for (int64_t n = 0; n < x->count; n++)
            x->value[n] =
                (real)((double)kept[n] + (side ? 1 : -1) * step / norm * (double)x->grad[n]);
        value[side] = loss_of(m, t, k, 0);
    }
    memcpy(x->value, kept, (size_t)x->count * sizeof *kept);
    free(kept);
    const double slope = (value[1] - value[0]) / (2 * step);
    if (!(fabs(slope - norm) < 0.03 * norm + 5e-3))
        fail_msg("%s: along its gradient of length %g the loss rises by %g", name, norm, slope);
}

static void gradients(void **state) {
    (void)state;
    sr_failure why = {0};
    tape *t = tape_create(2, &why);
    for (int pre = 0; pre < 2; pre++) {
        model_memory k;
        double unused[LOGITS];
        model *m = small(&(small_options){
            .layers = 2, .window = 4, .mem_len = 6, .clamp_len = 5, .pre = pre, .dropout = 0.1});
        check_ok(model_memory_init(&k, m, true, SEQS, &why), &why);
        run_stream(m, stream, 8, 4, &k, unused);
        params_zero_grad(&m->params);
        loss_of(m, t, &k, 1);
        for (int i = 0; i < m->params.count; i++) check_gradient(m, t, &k, i);
        model_memory_free(&k);
        model_free(m);
    }
    tape_free(t);
}

/* Rows in memory do not enter batch statistics. */
static void batch_statistics(void **state) {
    (void)state;
    sr_failure why = {0};
    tape *t = tape_create(2, &why);
    for (int pre = 0; pre < 2; pre++) {
        double mu[2][8], unused[LOGITS];
        for (int with = 0; with < 2; with++) {
            model_memory k;
            model *m = small(
                &(small_options){.layers = 1, .window = 4, .mem_len = 6, .pre = pre, .norm = "bn"});
            check_ok(model_memory_init(&k, m, true, SEQS, &why), &why);
            if (with) run_stream(m, stream, 8, 4, &k, unused);
            loss_of(m, t, &k, 0);
            assert_int_equal(m->site[0]->calls, 1);
            memcpy(mu[with], m->site[0]->state[0], sizeof mu[with]);
            model_memory_free(&k);
            model_free(m);
        }
        /* memory changes the input of norms after attention, not before it */
        assert_int_equal(memcmp(mu[0], mu[1], sizeof mu[0]) == 0, pre);
    }
    tape_free(t);
}

/* -- memory itself */

static void memory_grows(void **state) {
    (void)state;
    sr_failure why = {0};
    model_memory k;
    double unused[LOGITS];
    model *m = small(&(small_options){.layers = 2, .window = 4, .mem_len = 6});
    check_ok(model_memory_init(&k, m, true, SEQS, &why), &why);
    assert_true(k.layers == 2 && k.sequences == SEQS && k.rows == 6 && k.width == 8);
    run_stream(m, stream, 8, 4, &k, unused);
    assert_int_equal(k.filled, 4);
    for (int s = 0; s < SEQS; s++)
        for (int i = 0; i < 48; i++) {
            const double want =
                i < 16
                    ? 0
                    : sqrt(8) * (double)m->embedding->value[stream[s][8 + i / 8 - 2] * 8 + i % 8];
            check_within((double)k.value[s * 48 + i], want, 1e-6);
        }
    run_stream(m, stream, 8, 4, &k, unused);
    assert_int_equal(k.filled, 6);
    model_memory_empty(&k);
    assert_int_equal(k.filled, 0);
    for (int i = 0; i < 2 * SEQS * 48; i++) check_equals(k.value[i], 0);
    model_memory_free(&k);
    m->memory_rows = 0;
    check_ok(model_memory_init(&k, m, true, SEQS, &why), &why);
    assert_true(!k.value && k.rows == 0);
    model_free(m);
}

/* A pre-norm model: memory contains the norm's output. */
static void rows_behind_the_norm(void **state) {
    (void)state;
    sr_failure why = {0};
    model_memory k;
    double unused[LOGITS];
    model *m = small(&(small_options){.layers = 1, .window = 4, .mem_len = 4, .pre = true});
    check_ok(model_memory_init(&k, m, true, SEQS, &why), &why);
    run_stream(m, stream, 8, 4, &k, unused);
    for (int row = 0; row < 4; row++) {
        const real *e = m->embedding->value + stream[0][8 + row] * 8;
        const tensor *gamma = m->site[0]->gamma, *beta = m->site[0]->beta;
        double mean = 0, variance = 0;
        for (int i = 0; i < 8; i++) mean += sqrt(8) * (double)e[i] / 8;
        for (int i = 0; i < 8; i++) variance += pow(sqrt(8) * (double)e[i] - mean, 2) / 8;
        for (int i = 0; i < 8; i++) {
            const double xhat = (sqrt(8) * (double)e[i] - mean) / sqrt(variance + 1e-5),
                         want = (double)gamma->value[i] * xhat + (double)beta->value[i];
            check_within((double)k.value[row * 8 + i], want, 1e-4);
        }
    }
    model_memory_free(&k);
    model_free(m);
}

static void refuse_pass(model *m, model_memory *k, int64_t T, const char *part) {
    sr_failure why = {0};
    tape *t = tape_create(1, &why);
    const batch b = {.task = TASK_LM, .count = SEQS, .target_length = T, .target_in = stream[0]};
    pass p = {.tape = t, .batch = &b, .mode = NORM_TRAIN, .memory = k};
    tape_reset(t, rng_create(1), true, true);
    assert_null(m->row->forward(m, &p));
    check_failure(tape_failure(t), SR_USAGE, part);
    tape_free(t);
}

static void expect_refusal(const model_options *o, const char *part) {
    const data_shape shape = {.task = TASK_LM, .vocabulary = 100, .longest = 4};
    sr_failure why = {0};
    assert_null(model_create(o, &shape, &why));
    check_failure(&why, SR_USAGE, part);
}

static void refusals(void **state) {
    (void)state;
    sr_failure why = {0};
    model_memory k;
    model *m = small(&(small_options){.layers = 1, .window = 4, .mem_len = 2});
    check_ok(model_memory_init(&k, m, true, SEQS + 1, &why), &why);
    refuse_pass(m, &k, 4, "memory of 3 sequences of width 8, a batch of 2 of 8");
    refuse_pass(m, NULL, 7, "has 6 positions, not 7");
    model_memory_free(&k);
    model_free(m);
    model_options o = options("mini");
    expect_refusal(&o, "'mini' of model transformer_xl is not one of enwik8|");
    o = options("enwik8-mini");
    o.same_length = true;
    expect_refusal(&o, "--same-length: there is no memory");
    o = options("enwik8-mini");
    o.embed_dim = 7;
    expect_refusal(&o, "embed-dim 7");
}

int main(void) {
    gemm_setup(2);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(counts),
        cmocka_unit_test(initial_weights),
        cmocka_unit_test(memory_is_a_longer_window),
        cmocka_unit_test(memory_is_so_long),
        cmocka_unit_test(who_sees_what),
        cmocka_unit_test(same_length),
        cmocka_unit_test(clamped_distances),
        cmocka_unit_test(gradients),
        cmocka_unit_test(batch_statistics),
        cmocka_unit_test(memory_grows),
        cmocka_unit_test(rows_behind_the_norm),
        cmocka_unit_test(refusals),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
