/* op_xl_attention against plain loops in double: memory, clamped distances, reach, dropout, hidden
 * keys; wrong shapes. (Vectors: tests/train/vectors_language.c.) */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "engine/gemm/gemm.h"
#include "engine/ops/attention/attention_ops.h"
#include "engine/ops/dropout_mask.h"
#include "reals.h"
#include "testing/check.h"
#include "testing/gradcheck.h"

#ifdef REAL_DOUBLE
static const double RTOL = 1e-10, ATOL = 1e-11;
#else
static const double RTOL = 1e-4, ATOL = 3e-5;
#endif

enum { Q, K, V, R, U, Z, INPUTS };

typedef struct problem {
    int64_t B, Tq, Tk, n, width;
    int heads;
    int64_t reach;
    double p;
} problem;

static void inputs_create(const problem *c, tensor *in[INPUTS]) {
    const int64_t dh = c->width / c->heads;
    const int64_t dim[INPUTS][3] = {{c->B, c->Tq, c->width}, {c->B, c->Tk, c->width},
                                    {c->B, c->Tk, c->width}, {c->n, c->width},
                                    {c->heads, dh},          {c->heads, dh}};
    for (int i = 0; i < INPUTS; i++) {
        in[i] = gradcheck_tensor(i < R ? 3 : 2, dim[i], (uint64_t)i + 1, true);
        assert_non_null(in[i]);
    }
}

static void inputs_free(tensor *in[INPUTS]) {
    for (int i = 0; i < INPUTS; i++) gradcheck_tensor_free(in[i]);
}

static tensor *attend(tape *t, const problem *c, tensor *const *in) {
    const xl_inputs x = {in[Q], in[K], in[V], in[R], in[U], in[Z]};
    return op_xl_attention(t, &x, &(xl_options){c->heads, c->reach, c->p, NULL});
}

/* -- the plain form, one query at a time */

typedef struct plain {
    double *y, *d[INPUTS];
} plain;

/* One query of one head: the offsets of its values. */
typedef struct query {
    int64_t b, i, q, keys, column; /* first elements in q, in k and v, in a row of width */
    int64_t number;                /* index of the row of weights */
} query;

static double at(const tensor *x, int64_t i) {
    return (double)x->value[i];
}

/* Element of r for distance D. */
static int64_t distance_row(const problem *c, int64_t D) {
    return (D > c->n - 1 ? 0 : c->n - 1 - D) * c->width;
}

static double score(const problem *c, const query *o, int64_t j, tensor *const *in) {
    const int64_t dh = c->width / c->heads, D = o->i + c->Tk - c->Tq - j;
    double sum = 0;
    if (D < 0 || (c->reach && D >= c->reach)) return -INFINITY;
    for (int64_t h = 0; h < dh; h++) {
        const double q = at(in[Q], o->q + h);
        sum += (q + at(in[U], o->column + h)) * at(in[K], o->keys + j * c->width + h);
        sum += (q + at(in[Z], o->column + h)) * at(in[R], distance_row(c, D) + o->column + h);
    }
    return sum / sqrt((double)dh);
}

/* The op draws by index in its padded array of weights. */
static double factor(const problem *c, const dropout_mask *m, const query *o, int64_t j) {
    const int64_t lanes = 64 / (int64_t)sizeof(real), stride = (c->Tk + lanes - 1) / lanes * lanes;
    const uint64_t e = (uint64_t)(o->number * stride + j);
    const uint64_t bits = rng_at(m->key, e / 4) >> (16 * (e % 4)) & 0xffff;
    return !m->threshold ? 1 : bits < m->threshold ? 0 : (double)m->scale;
}

static void plain_key(const problem *c, const query *o, int64_t j, double dS, tensor *const *in,
                      plain *out) {
    const int64_t dh = c->width / c->heads, r = distance_row(c, o->i + c->Tk - c->Tq - j);
    for (int64_t h = 0; h < dh; h++) {
        const int64_t k = o->keys + j * c->width + h, column = o->column + h;
        const double q = at(in[Q], o->q + h);
        out->d[Q][o->q + h] += dS * (at(in[K], k) + at(in[R], r + column));
        out->d[K][k] += dS * (q + at(in[U], column));
        out->d[R][r + column] += dS * (q + at(in[Z], column));
        out->d[U][column] += dS * at(in[K], k);
        out->d[Z][column] += dS * at(in[R], r + column);
    }
}

static void plain_query(const problem *c, const dropout_mask *m, const query *o, tensor *const *in,
                        const real *dy, plain *out) {
    const int64_t dh = c->width / c->heads;
    double *P = calloc(2 * (size_t)c->Tk, sizeof *P), *dP = P + c->Tk, sum = 0, D = 0;
    for (int64_t j = 0; j < c->Tk; j++) sum += P[j] = exp(score(c, o, j, in));
    for (int64_t j = 0; j < c->Tk; j++) {
        const double f = factor(c, m, o, j);
        P[j] /= sum;
        for (int64_t h = 0; h < dh; h++) {
            const int64_t v = o->keys + j * c->width + h;
            dP[j] += (double)dy[o->q + h] * at(in[V], v) * f;
            out->y[o->q + h] += P[j] * f * at(in[V], v);
            out->d[V][v] += P[j] * f * (double)dy[o->q + h];
        }
        D += P[j] * dP[j];
    }
    for (int64_t j = 0; j < c->Tk; j++)
        if (P[j] > 0) plain_key(c, o, j, P[j] * (dP[j] - D) / sqrt((double)dh), in, out);
    free(P);
}

static plain plain_create(const problem *c, const dropout_mask *m, tensor *const *in,
                          const real *dy) {
    plain out = {.y = calloc((size_t)in[Q]->count, sizeof(double))};
    for (int i = 0; i < INPUTS; i++) out.d[i] = calloc((size_t)in[i]->count, sizeof(double));
    for (int64_t b = 0; b < c->B; b++)
        for (int h = 0; h < c->heads; h++)
            for (int64_t i = 0; i < c->Tq; i++) {
                const int64_t column = h * (c->width / c->heads);
                const query o = {.b = b,
                                 .i = i,
                                 .q = (b * c->Tq + i) * c->width + column,
                                 .keys = b * c->Tk * c->width + column,
                                 .column = column,
                                 .number = (b * c->heads + h) * c->Tq + i};
                plain_query(c, m, &o, in, dy, &out);
            }
    return out;
}

static void check_problem(const problem *c) {
    static const char *const name[INPUTS] = {"dq", "dk", "dv", "dr", "du", "dz"};
    tensor *in[INPUTS];
    inputs_create(c, in);
    real *dy = reals_random(in[Q]->count, 9);
    tape *t = reals_tape(2);
    rng stream = t->random;
    dropout_mask m = dropout_mask_of(rng_split(&stream, 0).key, c->p);
    tensor *y = attend(t, c, in);
    reals_check_tape(t);
    reals_backward(t, y, dy);
    plain want = plain_create(c, &m, in, dy);
    reals_check("y", y->value, want.y, y->count, RTOL, ATOL);
    for (int i = 0; i < INPUTS; i++) {
        const double room = ATOL * (double)(i < U ? c->Tq : c->B * c->Tq * 4);
        reals_check(name[i], in[i]->grad, want.d[i], in[i]->count, RTOL, room);
        free(want.d[i]);
    }
    free(want.y);
    free(dy);
    tape_free(t);
    inputs_free(in);
}

static void plain_loops(void **state) {
    (void)state;
    const problem problems[] = {
        {1, 1, 1, 1, 1, 1, 0, 0},       {2, 4, 4, 4, 8, 2, 0, 0},
        {2, 4, 7, 7, 8, 2, 0, 0},       {2, 4, 7, 3, 8, 2, 0, 0},
        {2, 4, 7, 20, 8, 2, 0, 0},      {2, 4, 8, 8, 8, 2, 4, 0},
        {2, 4, 9, 4, 8, 1, 6, 0},       {3, 5, 5, 5, 12, 3, 1, 0},
        {3, 16, 40, 40, 32, 4, 0, 0.3}, {2, 31, 66, 50, 64, 2, 33, 0.1},
        {2, 17, 33, 1, 16, 1, 0, 0},    {1, 64, 128, 128, 64, 2, 0, 0.5},
    };
    for (size_t i = 0; i < sizeof problems / sizeof *problems; i++) check_problem(&problems[i]);
}

/* Dropout is off outside training. */
static void dropout_in_training_alone(void **state) {
    (void)state;
    problem c = {2, 4, 7, 7, 8, 2, 0, 0.5};
    tensor *in[INPUTS];
    inputs_create(&c, in);
    tape *t = reals_tape(1);
    tape_reset(t, rng_create(1), false, false);
    const tensor *y = attend(t, &c, in);
    c.p = 0;
    const tensor *whole = attend(t, &c, in);
    reals_check_tape(t);
    reals_check_bytes("y", y->value, whole->value, y->count);
    tape_free(t);
    inputs_free(in);
}

static void refuse(const int64_t keys[3], const int64_t distances[2], int heads, double p,
                   const char *text) {
    tape *t = reals_tape(1);
    tensor *q = tape_tensor(t, 3, (int64_t[]){2, 3, 6}), *k = tape_tensor(t, 3, keys),
           *r = tape_tensor(t, 2, distances), *u = tape_tensor(t, 2, (int64_t[]){2, 3});
    const xl_inputs in = {q, k, k, r, u, u};
    assert_null(op_xl_attention(t, &in, &(xl_options){heads, 0, p, NULL}));
    check_failure(tape_failure(t), SR_USAGE, text);
    tape_free(t);
}

static void wrong_arguments(void **state) {
    (void)state;
    const int64_t keys[3] = {2, 4, 6}, few[3] = {2, 2, 6}, wide[3] = {2, 4, 8}, r[2] = {4, 6},
                  narrow[2] = {4, 3};
    refuse(keys, r, 4, 0, "4 heads in 6 features");
    refuse(keys, r, 0, 0, "0 heads");
    refuse(few, r, 2, 0, "K >= T");
    refuse(wide, r, 2, 0, "[B, K, width]");
    refuse(keys, narrow, 2, 0, "r [n, width]");
    refuse(keys, r, 2, 1, "p is 1");
    refuse(keys, r, 2, NAN, "p is nan");
}

int main(void) {
    gemm_setup(2);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(plain_loops),
        cmocka_unit_test(dropout_in_training_alone),
        cmocka_unit_test(wrong_arguments),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
