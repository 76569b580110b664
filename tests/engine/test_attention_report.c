/* The attentions' reports of their weights, against plain loops in double: shapes, masks, dropout,
 * threads, queries that are masked or see no key. y has the same bytes with and without a
 * report. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "engine/ops/attention/attention_ops.h"
#include "reals.h"
#include "testing/check.h"
#include "testing/gradcheck.h"

enum { HEADS = 3, DH = 4, WIDTH = HEADS * DH, B = 4, MOST = 40 };

#define FACTOR 4.0 /* on the logits */

typedef struct problem {
    int64_t Tq, Tk;
    bool keys, queries, causal; /* masks */
    double p;
    int threads;
} problem;

typedef struct masks {
    uint8_t key[B * MOST], query[B * MOST];
} masks;

/* The last sentence has no key. */
static void masks_make(masks *m, const problem *c) {
    rng r = rng_create(8);
    for (int64_t i = 0; i < B * MOST; i++) {
        m->key[i] = rng_uniform(&r) < 0.6 && i < (B - 1) * c->Tk;
        m->query[i] = rng_uniform(&r) < 0.6;
    }
}

/* Largest logit and entropy of a head's query i; false if it sees no key. */
static bool plain_query(const double *S, const uint8_t *hidden, int64_t n, double *largest,
                        double *entropy) {
    double m = -INFINITY, sum = 0;
    for (int64_t j = 0; j < n; j++)
        if (!hidden[j]) m = fmax(m, S[j]);
    for (int64_t j = 0; j < n; j++) sum += hidden[j] ? 0 : exp(S[j] - m);
    *largest = m;
    *entropy = 0;
    for (int64_t j = 0; j < n; j++)
        if (!hidden[j]) *entropy -= exp(S[j] - m) / sum * log(exp(S[j] - m) / sum);
    return m > -INFINITY;
}

static void plain_report(const problem *c, const masks *m, tensor *const in[2], double *largest,
                         double *entropy, double *queries) {
    for (int h = 0; h < HEADS; h++) {
        int count = 0;
        largest[h] = -INFINITY, entropy[h] = 0;
        for (int64_t q = 0; q < B * c->Tq; q++) {
            double S[MOST], one, two;
            uint8_t hidden[MOST];
            if (c->queries && !m->query[q]) continue;
            for (int64_t j = 0; j < c->Tk; j++) {
                const int64_t key = q / c->Tq * c->Tk + j;
                hidden[j] = (c->causal && j > q % c->Tq) || (c->keys && !m->key[key]);
                S[j] = 0;
                for (int k = h * DH; k < (h + 1) * DH; k++)
                    S[j] += FACTOR * (double)in[0]->value[q * WIDTH + k] *
                            (double)in[1]->value[key * WIDTH + k];
            }
            if (!plain_query(S, hidden, c->Tk, &one, &two)) continue;
            largest[h] = fmax(largest[h], one);
            entropy[h] += two;
            count++;
        }
        queries[h] = count;
        if (!count) largest[h] = NAN;
    }
}

static void check_problem(const problem *c, double *largest, double *entropy) {
    masks m;
    tensor *in[3];
    double want[3][HEADS], queries[HEADS];
    masks_make(&m, c);
    for (int i = 0; i < 3; i++) {
        in[i] =
            gradcheck_tensor(3, (int64_t[]){B, i ? c->Tk : c->Tq, WIDTH}, (uint64_t)i + 1, true);
    }
    plain_report(c, &m, in, want[0], want[1], want[2]);
    attention_report found = {c->queries ? m.query : NULL, largest, entropy, queries};
    tape *t = reals_tape(c->threads), *without = reals_tape(c->threads);
    const uint8_t *keys = c->keys ? m.key : NULL;
    tensor *y = op_attention(t, in[0], in[1], in[2], HEADS, FACTOR, keys, c->causal, c->p, &found);
    tensor *plain =
        op_attention(without, in[0], in[1], in[2], HEADS, FACTOR, keys, c->causal, c->p, NULL);
    reals_check_tape(t);
    assert_memory_equal(y->value, plain->value, (size_t)y->count * sizeof(real));
    assert_true(check_close("largest logit", largest, want[0], HEADS, 1e-5, 1e-6));
    assert_true(check_close("entropy", entropy, want[1], HEADS, 1e-5, 1e-6));
    assert_memory_equal(queries, want[2], sizeof queries);
    tape_free(t);
    tape_free(without);
    for (int i = 0; i < 3; i++) gradcheck_tensor_free(in[i]);
}

static void plain_loops(void **state) {
    (void)state;
    const problem problems[] = {
        {5, 5, false, false, false, 0, 1},  {5, 7, true, false, false, 0, 1},
        {7, 7, false, true, true, 0, 1},    {7, 40, true, true, false, 0.5, 2},
        {40, 40, false, false, true, 0, 3}, {33, 17, true, true, true, 0.3, 4},
        {1, 1, false, false, false, 0, 1},  {16, 16, true, false, true, 0.1, 2},
    };
    double largest[HEADS], entropy[HEADS];
    for (size_t i = 0; i < sizeof problems / sizeof *problems; i++)
        check_problem(&problems[i], largest, entropy);
}

/* Compares bytes, not only values. */
static void threads_agree(void **state) {
    (void)state;
    double one[2][HEADS], more[2][HEADS];
    check_problem(&(problem){33, 40, true, true, false, 0.2, 1}, one[0], one[1]);
    for (int threads = 2; threads < 6; threads++) {
        check_problem(&(problem){33, 40, true, true, false, 0.2, threads}, more[0], more[1]);
        assert_memory_equal(one, more, sizeof one);
    }
}

static void nobody_counts(void **state) {
    (void)state;
    const uint8_t none[B * 3] = {0};
    double largest[HEADS], entropy[HEADS], queries[HEADS];
    tensor *x = gradcheck_tensor(3, (int64_t[]){B, 3, WIDTH}, 1, true);
    for (int which = 0; which < 2; which++) {
        attention_report found = {which ? none : NULL, largest, entropy, queries};
        tape *t = reals_tape(1);
        assert_non_null(op_attention(t, x, x, x, HEADS, 1, which ? NULL : none, false, 0, &found));
        for (int h = 0; h < HEADS; h++) {
            assert_true(isnan(largest[h]));
            check_equals(queries[h], 0);
        }
        tape_free(t);
    }
    gradcheck_tensor_free(x);
}

/* n equal keys have entropy ln n; a single dominant key has 0. */
static void known_entropies(void **state) {
    (void)state;
    double largest[1], entropy[1], queries[1];
    attention_report found = {NULL, largest, entropy, queries};
    tensor *q = gradcheck_tensor(3, (int64_t[]){1, 2, 1}, 1, true);
    tensor *k = gradcheck_tensor(3, (int64_t[]){1, 5, 1}, 2, true);
    for (int i = 0; i < 5; i++) k->value[i] = 3;
    q->value[0] = q->value[1] = 2;
    tape *t = reals_tape(1);
    assert_non_null(op_attention(t, q, k, k, 1, 1, NULL, false, 0, &found));
    check_equals(queries[0], 2);
    check_within(entropy[0], 2 * log(5), 1e-6);
    check_within(largest[0], 6, 1e-6);
    k->value[2] = 300;
    assert_non_null(op_attention(t, q, k, k, 1, 1, NULL, false, 0, &found));
    check_below(fabs(entropy[0]), 1e-12);
    check_equals(largest[0], 600);
    tape_free(t);
    gradcheck_tensor_free(q);
    gradcheck_tensor_free(k);
}

/* -- relative positions */

/* Without positions and biases, it is scaled attention: query i of T sees K - T + i + 1 keys. */
static void relative_positions(void **state) {
    (void)state;
    enum { T = 5, K = 9 };
    double largest[HEADS], entropy[HEADS], queries[HEADS], want[2][HEADS];
    const int64_t dim[4][3] = {{B, T, WIDTH}, {B, K, WIDTH}, {K, WIDTH, 1}, {HEADS, DH, 1}};
    tensor *x[4];
    for (int i = 0; i < 4; i++) {
        x[i] = gradcheck_tensor(i < 2 ? 3 : 2, dim[i], (uint64_t)i + 1, true);
        for (int64_t j = 0; i > 1 && j < x[i]->count; j++) x[i]->value[j] = 0;
    }
    attention_report found = {NULL, largest, entropy, queries};
    tape *t = reals_tape(2);
    const xl_inputs in = {x[0], x[1], x[1], x[2], x[3], x[3]};
    assert_non_null(op_xl_attention(t, &in, &(xl_options){HEADS, 0, 0.2, &found}));
    for (int h = 0; h < HEADS; h++) {
        want[0][h] = -INFINITY, want[1][h] = 0;
        for (int64_t q = 0; q < B * T; q++) {
            double S[K], one, two;
            const uint8_t hidden[K] = {0};
            const int64_t seen = K - T + q % T + 1;
            for (int64_t j = 0; j < seen; j++) {
                S[j] = 0;
                for (int k = h * DH; k < (h + 1) * DH; k++)
                    S[j] += (double)x[0]->value[q * WIDTH + k] *
                            (double)x[1]->value[(q / T * K + j) * WIDTH + k] / sqrt(DH);
            }
            plain_query(S, hidden, seen, &one, &two);
            want[0][h] = fmax(want[0][h], one);
            want[1][h] += two;
        }
        check_equals(queries[h], B * T);
    }
    assert_true(check_close("largest logit", largest, want[0], HEADS, 1e-5, 1e-6));
    assert_true(check_close("entropy", entropy, want[1], HEADS, 1e-5, 1e-6));
    tape_free(t);
    for (int i = 0; i < 4; i++) gradcheck_tensor_free(x[i]);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(plain_loops),        cmocka_unit_test(threads_agree),
        cmocka_unit_test(nobody_counts),      cmocka_unit_test(known_entropies),
        cmocka_unit_test(relative_positions),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
