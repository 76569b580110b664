/* op_attention against PyTorch's numbers, and against plain loops in double over shapes, masks and
 * dropout; hidden rows, NaN, wrong shapes. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "engine/gemm/gemm.h"
#include "engine/ops/attention/attention_ops.h"
#include "engine/ops/dropout_mask.h"
#include "oracle/ops_values.h"
#include "reals.h"
#include "testing/check.h"
#include "testing/gradcheck.h"

#ifdef REAL_DOUBLE
static const double RTOL = 1e-10, ATOL = 1e-11;
#else
static const double RTOL = 1e-4, ATOL = 3e-5;
#endif

enum { Q, K, V, INPUTS };

#define FACTOR 0.75 /* on the logits */

typedef struct problem {
    int64_t B, Tq, Tk, d;
    int heads;
    const uint8_t *key_valid;
    bool causal;
    double p;
    int64_t e; /* features of v and y; 0: d */
} problem;

static int64_t value_width(const problem *c) {
    return c->e ? c->e : c->d;
}

static tensor *input_create(const problem *c, int which) {
    int64_t dim[3] = {c->B, which == Q ? c->Tq : c->Tk, which == V ? value_width(c) : c->d};
    tensor *x = gradcheck_tensor(3, dim, (uint64_t)which + 1, true);
    assert_non_null(x);
    return x;
}

static void inputs_create(const problem *c, tensor *in[INPUTS]) {
    for (int i = 0; i < INPUTS; i++) in[i] = input_create(c, i);
}

static void inputs_free(tensor *in[INPUTS]) {
    for (int i = 0; i < INPUTS; i++) gradcheck_tensor_free(in[i]);
}

static tensor *run(tape *t, const problem *c, tensor *const *in, const real *dy) {
    tensor *y =
        op_attention(t, in[Q], in[K], in[V], c->heads, FACTOR, c->key_valid, c->causal, c->p, NULL);
    reals_check_tape(t);
    reals_backward(t, y, dy);
    return y;
}

/* -- the plain form, one query at a time ------------------------------------------------------- */

typedef struct plain {
    double *y, *d[INPUTS];
} plain;

static double dot(const real *a, const real *b, int64_t n) {
    double sum = 0;
    for (int64_t i = 0; i < n; i++) sum += (double)a[i] * (double)b[i];
    return sum;
}

/* P of query i, before dropout. */
static void plain_weights(const problem *c, int64_t b, int64_t i, const real *q, const real *k,
                          double *P) {
    int64_t dh = c->d / c->heads;
    double largest = -INFINITY, sum = 0;
    for (int64_t j = 0; j < c->Tk; j++) {
        bool hidden = (c->causal && j > i) || (c->key_valid && !c->key_valid[b * c->Tk + j]);
        P[j] = hidden ? -INFINITY : FACTOR * dot(q, k + j * c->d, dh);
        largest = fmax(largest, P[j]);
    }
    for (int64_t j = 0; j < c->Tk; j++) sum += P[j] = largest > -INFINITY ? exp(P[j] - largest) : 0;
    for (int64_t j = 0; j < c->Tk; j++) P[j] = sum > 0 ? P[j] / sum : 0;
}

/* Mask factors of query i: the op draws by index in its padded array of weights. */
static void plain_factors(const problem *c, const dropout_mask *m, int64_t row, double *factor) {
    int64_t lanes = 64 / (int64_t)sizeof(real), stride = (c->Tk + lanes - 1) / lanes * lanes;
    for (int64_t j = 0; j < c->Tk; j++) {
        uint64_t e = (uint64_t)(row * stride + j);
        uint64_t bits = rng_at(m->key, e / 4) >> (16 * (e % 4)) & 0xffff;
        factor[j] = !m->threshold ? 1 : bits < m->threshold ? 0 : (double)m->scale;
    }
}

static void plain_query(const problem *c, const dropout_mask *m, int64_t b, int h, int64_t i,
                        tensor *const *in, const real *dy, plain *out) {
    const int64_t d = c->d, dh = d / c->heads, e = value_width(c), eh = e / c->heads;
    const int64_t at = (b * c->Tq + i) * d + h * dh, keys = b * c->Tk * d + h * dh;
    const int64_t to = (b * c->Tq + i) * e + h * eh, values = b * c->Tk * e + h * eh;
    const real *q = in[Q]->value + at, *k = in[K]->value + keys, *v = in[V]->value + values;
    double *P = malloc(4 * (size_t)c->Tk * sizeof *P), *f = P + c->Tk, *dP = f + c->Tk, D = 0;
    plain_weights(c, b, i, q, k, P);
    plain_factors(c, m, (b * c->heads + h) * c->Tq + i, f);
    for (int64_t j = 0; j < c->Tk; j++) {
        dP[j] = dot(dy + to, v + j * e, eh) * f[j];
        D += P[j] * dP[j];
    }
    for (int64_t j = 0; j < c->Tk; j++) {
        const double dS = FACTOR * P[j] * (dP[j] - D);
        for (int64_t n = 0; n < dh; n++) {
            out->d[Q][at + n] += dS * (double)k[j * d + n];
            out->d[K][keys + j * d + n] += dS * (double)q[n];
        }
        for (int64_t n = 0; n < eh; n++) {
            out->y[to + n] += P[j] * f[j] * (double)v[j * e + n];
            out->d[V][values + j * e + n] += P[j] * f[j] * (double)dy[to + n];
        }
    }
    free(P);
}

static plain plain_create(const problem *c, const dropout_mask *m, tensor *const *in,
                          const real *dy) {
    plain out = {.y = calloc((size_t)(c->B * c->Tq * value_width(c)), sizeof(double))};
    for (int i = 0; i < INPUTS; i++) out.d[i] = calloc((size_t)in[i]->count, sizeof(double));
    for (int64_t b = 0; b < c->B; b++)
        for (int h = 0; h < c->heads; h++)
            for (int64_t i = 0; i < c->Tq; i++) plain_query(c, m, b, h, i, in, dy, &out);
    return out;
}

static void check_problem(const problem *c) {
    tensor *in[INPUTS];
    inputs_create(c, in);
    real *dy = reals_random(c->B * c->Tq * value_width(c), 9);
    tape *t = reals_tape(2);
    rng stream = t->random;
    dropout_mask m = dropout_mask_of(rng_split(&stream, 0).key, c->p);
    tensor *y = run(t, c, in, dy);
    plain want = plain_create(c, &m, in, dy);
    reals_check("y", y->value, want.y, y->count, RTOL, ATOL);
    const char *name[INPUTS] = {"dq", "dk", "dv"};
    for (int i = 0; i < INPUTS; i++) {
        reals_check(name[i], in[i]->grad, want.d[i], in[i]->count, RTOL, ATOL * (double)c->Tq);
        free(want.d[i]);
    }
    free(want.y);
    free(dy);
    tape_free(t);
    inputs_free(in);
}

/* -- tests ------------------------------------------------------------------------------------- */

static void plain_loops(void **state) {
    (void)state;
    uint8_t valid[5 * 40];
    rng r = rng_create(4);
    for (size_t i = 0; i < sizeof valid; i++) valid[i] = rng_uniform(&r) < 0.7;
    memset(valid, 0, 12); /* every key of the first sentences of short problems */
    const problem problems[] = {
        {1, 1, 1, 1, 1, NULL, false, 0, 0},       {2, 3, 5, 8, 2, NULL, false, 0, 0},
        {2, 3, 5, 8, 2, valid, false, 0, 0},      {3, 7, 7, 12, 3, NULL, true, 0, 0},
        {5, 16, 16, 64, 2, valid, false, 0, 0},   {2, 31, 17, 128, 4, valid, false, 0, 0},
        {2, 40, 40, 128, 4, NULL, true, 0, 0},    {2, 17, 40, 32, 1, NULL, true, 0, 0},
        {2, 40, 17, 64, 4, valid, true, 0, 0},    {3, 9, 33, 48, 1, valid, false, 0.1, 0},
        {5, 33, 33, 128, 4, valid, true, 0.3, 0}, {1, 100, 90, 40, 4, NULL, false, 0.5, 0},
        {2, 3, 5, 8, 2, valid, false, 0, 6},      {3, 20, 33, 64, 4, valid, false, 0.1, 32},
        {3, 20, 33, 16, 4, NULL, true, 0.1, 64},
    };
    for (size_t i = 0; i < sizeof problems / sizeof *problems; i++) check_problem(&problems[i]);
}

static void fill(tensor *x, double factor, const double *from) {
    for (int64_t i = 0; i < x->count; i++) x->value[i] = (real)(factor * from[i]);
}

static void check_oracle(const problem *c, const double *const from[INPUTS], const double *dy,
                         const double *y, const double *const want[INPUTS]) {
    tensor *in[INPUTS];
    inputs_create(c, in);
    for (int i = 0; i < INPUTS; i++) fill(in[i], i == Q ? 1 / FACTOR : 1, from[i]);
    real *seed = malloc((size_t)in[Q]->count * sizeof *seed);
    for (int64_t i = 0; i < in[Q]->count; i++) seed[i] = (real)dy[i];
    tape *t = reals_tape(1);
    tensor *got = run(t, c, in, seed);
    reals_check("y", got->value, y, got->count, 1e-5, 1e-6);
    for (int64_t i = 0; i < in[Q]->count; i++) in[Q]->grad[i] /= (real)FACTOR;
    for (int i = 0; i < INPUTS; i++)
        reals_check("gradient", in[i]->grad, want[i], in[i]->count, 1e-5, 1e-5);
    free(seed);
    tape_free(t);
    inputs_free(in);
}

static void pytorch_numbers(void **state) {
    (void)state;
    const uint8_t valid[10] = {1, 1, 1, 1, 1, 1, 0, 1, 0, 0};
    check_oracle(&(problem){2, 3, 5, 8, 2, valid, false, 0, 0},
                 (const double *[]){attention_masked_q, attention_masked_k, attention_masked_v},
                 attention_masked_dy, attention_masked_y,
                 (const double *[]){attention_masked_dq, attention_masked_dk, attention_masked_dv});
    check_oracle(&(problem){1, 4, 4, 6, 3, NULL, true, 0, 0},
                 (const double *[]){attention_causal_q, attention_causal_k, attention_causal_v},
                 attention_causal_dy, attention_causal_y,
                 (const double *[]){attention_causal_dq, attention_causal_dk, attention_causal_dv});
}

static void every_key_hidden_gives_zero(void **state) {
    (void)state;
    const uint8_t none[4] = {0};
    const problem c = {1, 3, 4, 8, 2, none, false, 0, 0};
    tensor *in[INPUTS];
    inputs_create(&c, in);
    tape *t = reals_tape(1);
    real *dy = reals_random(in[Q]->count, 2);
    tensor *y = run(t, &c, in, dy);
    for (int64_t i = 0; i < y->count; i++) check_equals(y->value[i], 0);
    for (int i = 0; i < INPUTS; i++)
        for (int64_t j = 0; j < in[i]->count; j++) check_equals(in[i]->grad[j], 0);
    free(dy);
    tape_free(t);
    inputs_free(in);
}

/* A NaN query affects its own row only; NaN keys affect the queries that see them. */
static void nan_is_data(void **state) {
    (void)state;
    const problem c = {2, 3, 4, 4, 1, NULL, true, 0, 0};
    tensor *in[INPUTS];
    inputs_create(&c, in);
    in[Q]->value[4] = (real)NAN;      /* sentence 0, query 1 */
    in[K]->value[16 + 4] = (real)NAN; /* sentence 1, key 1 */
    tape *t = reals_tape(1);
    tensor *y = op_attention(t, in[Q], in[K], in[V], 1, 1, NULL, true, 0, NULL);
    assert_non_null(y);
    const bool spoilt[6] = {false, true, false, false, true, true};
    for (int r = 0; r < 6; r++)
        for (int j = 0; j < 4; j++) assert_int_equal(isnan(y->value[4 * r + j]), spoilt[r]);
    tape_free(t);
    inputs_free(in);
}

static void refuse(int heads, int64_t d, int64_t Tv, double p, const char *text) {
    tape *t = reals_tape(1);
    tensor *q = tape_tensor(t, 3, (int64_t[]){2, 3, 6});
    tensor *k = tape_tensor(t, 3, (int64_t[]){2, 4, d}),
           *v = tape_tensor(t, 3, (int64_t[]){2, Tv, d});
    assert_null(op_attention(t, q, k, v, heads, 1, NULL, false, p, NULL));
    check_failure(tape_failure(t), SR_USAGE, text);
    tape_free(t);
}

static void wrong_arguments(void **state) {
    (void)state;
    refuse(4, 6, 4, 0, "4 heads in 6 features");
    refuse(0, 6, 4, 0, "0 heads");
    refuse(2, 8, 4, 0, "[B, Tk, d]");
    refuse(2, 6, 5, 0, "[B, Tk, d]");
    refuse(2, 6, 4, 1, "p is 1");
    refuse(2, 6, 4, NAN, "p is nan");
    tape *t = reals_tape(1);
    tensor *q = tape_tensor(t, 3, (int64_t[]){2, 3, 6}),
           *v = tape_tensor(t, 3, (int64_t[]){2, 3, 4});
    assert_null(op_attention(t, q, q, v, 3, 1, NULL, false, 0, NULL));
    check_failure(tape_failure(t), SR_USAGE, "3 heads in 4 features");
    tape_free(t);
}

int main(void) {
    gemm_setup(2);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pytorch_numbers),
        cmocka_unit_test(plain_loops),
        cmocka_unit_test(every_key_hidden_gives_zero),
        cmocka_unit_test(nan_is_data),
        cmocka_unit_test(wrong_arguments),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
