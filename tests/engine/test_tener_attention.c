/* op_tener_attention against its literal formula, in plain loops in double over lengths, masks,
 * scaling and dropout. The loops use a row of R per distance and no rotated queries and keys. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "engine/ops/attention/attention_ops.h"
#include "engine/ops/dropout_mask.h"
#include "reals.h"
#include "testing/check.h"

#ifdef REAL_DOUBLE
static const double RTOL = 1e-9, ATOL = 1e-10;
#else
static const double RTOL = 1e-4, ATOL = 5e-5;
#endif

typedef struct problem {
    int64_t B, T;
    int heads;
    int64_t dh;
    bool masked, scaled;
    double p;
} problem;

enum { QKV, U, Z, INPUTS };

/* The values that the loops over one head of one sentence read and add to. */
typedef struct head {
    const problem *c;
    const dropout_mask *mask;
    const uint8_t *valid;           /* [T] */
    int64_t number;                 /* index of the head over all sentences */
    const real *q, *k, *v, *u, *z;  /* rows of q, k, v: 3 d apart */
    double *dq, *dk, *dv, *du, *dz; /* the same */
    const real *dy;                 /* rows d apart */
    double *y;
} head;

/* Element m of R[t]. */
static double R(const problem *c, int64_t t, int64_t m) {
    const int64_t half = c->dh / 2;
    const double w = half > 1 ? exp(-(double)(m % half) * log(10000) / (double)(half - 1)) : 1;
    return m < half ? sin((double)t * w) : cos((double)t * w);
}

static double score(const head *h, int64_t i, int64_t j) {
    const problem *c = h->c;
    const int64_t step = 3 * c->heads * c->dh;
    const real *q = h->q + i * step, *k = h->k + j * step;
    double S = 0;
    for (int64_t m = 0; m < c->dh; m++)
        S += (double)q[m] * (double)k[m] + (double)h->u[m] * (double)k[m] +
             (double)q[m] * R(c, j - i, m) + (double)h->z[m] * R(c, j - i, m) +
             (double)k[m] * R(c, i - j, m);
    return S;
}

static double divisor(const problem *c) {
    return c->scaled ? sqrt((double)c->dh) : 1;
}

/* P of query i, before dropout. */
static void weights(const head *h, int64_t i, double *P) {
    double largest = -INFINITY, sum = 0;
    for (int64_t j = 0; j < h->c->T; j++) {
        P[j] = h->valid[j] ? score(h, i, j) / divisor(h->c) : -INFINITY;
        largest = fmax(largest, P[j]);
    }
    for (int64_t j = 0; j < h->c->T; j++) sum += P[j] = exp(P[j] - largest);
    for (int64_t j = 0; j < h->c->T; j++) P[j] /= sum;
}

/* The op draws by index in its padded array of weights. */
static double factor(const head *h, int64_t i, int64_t j) {
    const int64_t lanes = 64 / (int64_t)sizeof(real);
    const int64_t row = (h->c->T + lanes - 1) / lanes * lanes;
    const uint64_t e = (uint64_t)((h->number * h->c->T + i) * row + j);
    const uint64_t bits = rng_at(h->mask->key, e / 4) >> (16 * (e % 4)) & 0xffff;
    return !h->mask->threshold ? 1 : bits < h->mask->threshold ? 0 : (double)h->mask->scale;
}

static void add_score_gradient(const head *h, int64_t i, int64_t j, double dS) {
    const problem *c = h->c;
    const int64_t step = 3 * c->heads * c->dh;
    const real *q = h->q + i * step, *k = h->k + j * step;
    for (int64_t m = 0; m < c->dh; m++) {
        h->dq[i * step + m] += dS * ((double)k[m] + R(c, j - i, m));
        h->dk[j * step + m] += dS * ((double)q[m] + (double)h->u[m] + R(c, i - j, m));
        h->du[m] += dS * (double)k[m];
        h->dz[m] += dS * R(c, j - i, m);
    }
}

static void plain_head(const head *h) {
    const problem *c = h->c;
    const int64_t d = c->heads * c->dh;
    double *P = calloc(2 * (size_t)c->T, sizeof *P), *dP = P + c->T;
    assert_non_null(P);
    for (int64_t i = 0; i < c->T; i++) {
        double D = 0;
        weights(h, i, P);
        for (int64_t j = 0; j < c->T; j++) {
            const double f = factor(h, i, j);
            dP[j] = 0;
            for (int64_t m = 0; m < c->dh; m++) {
                h->y[i * d + m] += P[j] * f * (double)h->v[j * 3 * d + m];
                h->dv[j * 3 * d + m] += P[j] * f * (double)h->dy[i * d + m];
                dP[j] += (double)h->dy[i * d + m] * f * (double)h->v[j * 3 * d + m];
            }
            D += P[j] * dP[j];
        }
        for (int64_t j = 0; j < c->T; j++)
            add_score_gradient(h, i, j, P[j] * (dP[j] - D) / divisor(c));
    }
    free(P);
}

static void plain(const problem *c, const dropout_mask *mask, const uint8_t *valid,
                  tensor *const *in, const real *dy, double *y, double *const *d_in) {
    const int64_t d = c->heads * c->dh;
    for (int64_t n = 0; n < c->B * c->heads; n++) {
        const int64_t at = n % c->heads * c->dh, rows = n / c->heads * c->T * d;
        const real *qkv = in[QKV]->value + 3 * rows + at;
        double *dqkv = d_in[QKV] + 3 * rows + at;
        const head h = {c,
                        mask,
                        valid + n / c->heads * c->T,
                        n,
                        qkv,
                        qkv + d,
                        qkv + 2 * d,
                        in[U]->value + at,
                        in[Z]->value + at,
                        dqkv,
                        dqkv + d,
                        dqkv + 2 * d,
                        d_in[U] + at,
                        d_in[Z] + at,
                        dy + rows + at,
                        y + rows + at};
        plain_head(&h);
    }
}

static void check_problem(const problem *c) {
    const int64_t d = c->heads * c->dh;
    const int64_t qkv_dim[3] = {c->B, c->T, 3 * d}, bias_dim[2] = {c->heads, c->dh};
    tape *t = reals_tape(2);
    tensor *in[INPUTS] = {reals_tensor(t, 3, qkv_dim, 1), reals_tensor(t, 2, bias_dim, 2),
                          reals_tensor(t, 2, bias_dim, 3)};
    uint8_t *valid = malloc((size_t)(c->B * c->T));
    for (int64_t i = 0; i < c->B * c->T; i++)
        valid[i] = !c->masked || i % c->T <= i / c->T; /* 1, 2, 3 ... words */
    real *dy = reals_random(c->B * c->T * d, 9);
    double *y = calloc((size_t)(c->B * c->T * d), sizeof *y), *d_in[INPUTS];
    for (int i = 0; i < INPUTS; i++) d_in[i] = calloc((size_t)in[i]->count, sizeof(double));
    rng stream = t->random;
    const dropout_mask mask = dropout_mask_of(rng_split(&stream, 0).key, c->p);
    plain(c, &mask, valid, in, dy, y, d_in);
    tensor *out = op_tener_attention(t, in[QKV], in[U], in[Z], c->heads, c->masked ? valid : NULL,
                                     c->scaled, c->p, NULL);
    reals_backward(t, out, dy);
    reals_check("y", out->value, y, out->count, RTOL, ATOL);
    const char *name[INPUTS] = {"dqkv", "du", "dz"};
    for (int i = 0; i < INPUTS; i++) {
        reals_check(name[i], in[i]->grad, d_in[i], in[i]->count, RTOL, ATOL * (double)c->T);
        free(d_in[i]);
    }
    free(y), free(dy), free(valid);
    tape_free(t);
}

static void plain_loops(void **state) {
    (void)state;
    const problem problems[] = {
        {2, 5, 2, 4, false, false, 0},    {3, 7, 1, 2, true, false, 0},
        {2, 6, 3, 10, false, true, 0},    {4, 9, 2, 16, true, true, 0.3},
        {2, 33, 4, 8, true, false, 0.15}, {3, 1, 2, 6, false, false, 0},
    };
    for (size_t i = 0; i < sizeof problems / sizeof *problems; i++) check_problem(&problems[i]);
}

/* The same words later in a sentence, after hidden ones, attend to each other in the same way: only
 * distances matter. */
static void places_do_not_count(void **state) {
    (void)state;
    enum { N = 4, BEFORE = 37, D = 12 };
    tape *t = reals_tape(1);
    tensor *x = reals_tensor(t, 3, (int64_t[]){1, N, 3 * D}, 1);
    tensor *u = reals_tensor(t, 1, (int64_t[]){D}, 2), *z = reals_tensor(t, 1, (int64_t[]){D}, 3);
    tensor *late = reals_tensor(t, 3, (int64_t[]){1, BEFORE + N, 3 * D}, 4);
    memcpy(late->value + BEFORE * 3 * D, x->value, sizeof(real) * N * 3 * D);
    uint8_t valid[BEFORE + N] = {0};
    memset(valid + BEFORE, 1, N);
    tensor *y = op_tener_attention(t, x, u, z, 2, NULL, false, 0, NULL);
    tensor *same = op_tener_attention(t, late, u, z, 2, valid, false, 0, NULL);
    reals_check_tape(t);
    reals_check_same("y", same->value + BEFORE * D, y->value, N * D, 2e-4, 2e-5);
    tape_free(t);
}

static void wrong_shapes(void **state) {
    (void)state;
    tape *t = reals_tape(1);
    tensor *x = reals_tensor(t, 3, (int64_t[]){1, 2, 18}, 1);
    tensor *u = reals_tensor(t, 1, (int64_t[]){6}, 2), *few = reals_tensor(t, 1, (int64_t[]){4}, 2);
    assert_null(op_tener_attention(t, x, u, few, 1, NULL, false, 0, NULL));
    check_failure(tape_failure(t), SR_USAGE,
                  "tener_attention: qkv must be [B, T, 3 d], u and z [d]");
    t->failure = (sr_failure){0};
    assert_null(op_tener_attention(t, x, u, u, 2, NULL, false, 0, NULL));
    check_failure(tape_failure(t), SR_USAGE,
                  "tener_attention: 2 heads of an even width in 6 features");
    tape_free(t);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(plain_loops),
        cmocka_unit_test(places_do_not_count),
        cmocka_unit_test(wrong_shapes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
