/* Multi-linear attention against the shared vectors, whole sublayer with residual and LN, and
 * against plain loops. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../check.h"
#include "../oracle_file.h"
#include "statnet/gemm.h"
#include "statnet/gradcheck.h"
#include "statnet/layers.h"

/* -- plain loops */

enum { SEQS = 2, T = 3, K = 5, R = 4, CORES = 2 };

static double at(const tensor *x, int64_t a, int64_t b, int64_t c) {
    return (double)x->value[(a * x->dim[1] + b) * x->dim[2] + c];
}

/* T1 + T2 of query i for keys j and k of sequence b, as the formulas have it, core by core. */
static double plain(const multilinear_inputs *in, int b, int i, int j, int k) {
    double sum = 0;
    for (int n = 0; n < CORES; n++)
        for (int h = 0; h < R; h++) {
            const double c = (double)in->core->value[n * R + h], q = at(in->q, b, i, h);
            sum += c * (q + (double)in->u->value[h]) * at(in->k, b, j, h) * at(in->v, b, k, h);
            sum += c * (q + (double)in->z->value[h]) * (double)in->r->value[j * R + h] *
                   at(in->v, b, k, h);
        }
    return sum / CORES;
}

static void as_plain_loops(void **state) {
    (void)state;
    const int64_t dim[7][3] = {{SEQS, T, R}, {SEQS, K, R}, {SEQS, K, R}, {K, R},
                               {CORES, R},   {R},          {R}};
    const int rank[7] = {3, 3, 3, 2, 2, 1, 1};
    tensor *x[7];
    sr_failure why = {0};
    for (int i = 0; i < 7; i++) x[i] = gradcheck_tensor(rank[i], dim[i], (uint64_t)i + 1, false);
    const multilinear_inputs in = {x[0], x[1], x[2], x[3], x[4], x[5], x[6]};
    tape *t = tape_create(2, &why);
    for (int causal = 0; causal < 2; causal++) {
        tape_reset(t, rng_create(1), false, false);
        const tensor *y = op_multilinear(t, &in, causal);
        assert_non_null(y);
        assert_true(y->dim[0] == SEQS && y->dim[1] == T && y->dim[2] == K * K);
        for (int b = 0; b < SEQS; b++)
            for (int i = 0; i < T; i++)
                for (int j = 0; j < K; j++)
                    for (int k = 0; k < K; k++) {
                        const bool hidden = causal && (j > K - T + i || k > K - T + i);
                        const double want = hidden ? 0 : plain(&in, b, i, j, k);
                        assert_true(fabs(at(y, b, i, j * K + k) - want) < 1e-4);
                    }
    }
    tape_free(t);
    for (int i = 0; i < 7; i++) gradcheck_tensor_free(x[i]);
}

/* -- vectors */

typedef struct sublayer {
    const oracle_file *file;
    int number;
    int64_t length, sequences, d, R, K, memory;
    params params;
    norm_site norm;
    multilinear_layer layer;
    tensor *u, *z, *x; /* x [B, T, d] */
    real *mems;        /* [B, M, d] */
    tensor *positions;
} sublayer;

static double *read_input(const sublayer *s, const char *name, int64_t dim[4], int64_t *count) {
    char path[32];
    snprintf(path, sizeof path, "in/%s", name);
    double *x = oracle_read(s->file, s->number, path, dim, count);
    if (!x) fail_msg("case %d: %s is missing", s->number, path);
    return x;
}

/* Part of a vector, numbers from `first` on. */
static void fill(const sublayer *s, const char *name, int64_t first, tensor *x) {
    int64_t count;
    double *from = read_input(s, name, NULL, &count);
    assert_true(first + x->count <= count);
    for (int64_t i = 0; i < x->count; i++) x->value[i] = (real)from[first + i];
    free(from);
}

/* Time first in the file, sequences first here. */
static void turn(const double *from, int64_t length, int64_t B, int64_t d, real *to) {
    for (int64_t i = 0; i < length; i++)
        for (int64_t b = 0; b < B; b++)
            for (int64_t k = 0; k < d; k++)
                to[(b * length + i) * d + k] = (real)from[(i * B + b) * d + k];
}

static void read_rows(sublayer *s) {
    double *w = read_input(s, "w", NULL, NULL), *mems = NULL;
    s->x = gradcheck_tensor(3, (int64_t[]){s->sequences, s->length, s->d}, 1, true);
    turn(w, s->length, s->sequences, s->d, s->x->value);
    s->mems = calloc((size_t)(s->sequences * s->K * s->d), sizeof *s->mems);
    if (s->memory) mems = read_input(s, "mems", NULL, NULL);
    if (mems) turn(mems, s->memory, s->sequences, s->d, s->mems);
    free(w);
    free(mems);
}

static void sublayer_read(sublayer *s, const oracle_file *f, int number) {
    *s = (sublayer){.file = f, .number = number};
    int64_t w[4], core[4];
    sr_failure why = {0};
    free(read_input(s, "w", w, NULL));
    free(read_input(s, "core", core, NULL));
    s->length = w[0], s->sequences = w[1], s->d = w[2], s->R = core[1];
    s->memory = (int64_t)oracle_number(f, number, "mem_len", 0);
    s->K = s->length + s->memory;
    params_init(&s->params, 1);
    s->layer = multilinear_init(&s->params, "a", s->d, s->R, s->K, core[0]);
    s->u = params_add(&s->params, "u", 1, &s->R, INIT_CONSTANT, 0);
    s->z = params_add(&s->params, "z", 1, &s->R, INIT_CONSTANT, 0);
    norm_options o = norm_options_preset(norm_find("ln"));
    o.eps = oracle_number(f, number, "eps", 1e-5);
    check_ok(norm_site_init(&s->norm, &s->params, "n", "test", 0, s->d, norm_find("ln"), &o, &why),
             &why);
    const int64_t each = s->R * s->d;
    fill(s, "Wqkv", 0, s->layer.q), fill(s, "Wqkv", each, s->layer.k);
    fill(s, "Wqkv", 2 * each, s->layer.v), fill(s, "Wr", 0, s->layer.r);
    fill(s, "Wo", 0, s->layer.o), fill(s, "core", 0, s->layer.core);
    fill(s, "u", 0, s->u), fill(s, "v", 0, s->z);
    fill(s, "g", 0, s->norm.gamma), fill(s, "c", 0, s->norm.beta);
    s->positions = gradcheck_tensor(2, (int64_t[]){s->K, s->d}, 1, false);
    fill(s, "r", 0, s->positions);
    read_rows(s);
}

static void behind_backward(tape *t, const tape_node *node) {
    const sublayer *s = node->kept;
    const int64_t M = s->memory * s->d, L = s->length * s->d;
    real *dx = tape_grad_zeroed(t, node->in[0]);
    for (int64_t b = 0; dx && b < s->sequences; b++)
        for (int64_t i = 0; i < L; i++) dx[b * L + i] += node->out->grad[b * (M + L) + M + i];
}

/* [B, M + T, d]: the memory, which gets no gradient, and x behind it. */
static tensor *behind_memory(tape *t, sublayer *s, tensor *x) {
    if (!s->memory) return x;
    const int64_t M = s->memory * s->d, L = s->length * s->d;
    tensor *y = tape_tensor(t, 3, (int64_t[]){s->sequences, s->K, s->d});
    for (int64_t b = 0; y && b < s->sequences; b++) {
        memcpy(y->value + b * (M + L), s->mems + b * M, (size_t)M * sizeof(real));
        memcpy(y->value + b * (M + L) + M, x->value + b * L, (size_t)L * sizeof(real));
    }
    return tape_push(t, "behind", behind_backward, y, (tensor *[]){x, NULL}, s);
}

static tensor *normalized(tape *t, sublayer *s, tensor *x) {
    norm_rows *rows = tape_alloc(t, sizeof *rows);
    assert_int_equal(norm_rows_init(rows, t, s->sequences * s->length, NULL, NORM_TRAIN), SR_OK);
    return norm_apply(&s->norm, t, x, rows);
}

static tensor *sublayer_build(tape *t, sublayer *s) {
    const bool pre = oracle_number(s->file, s->number, "pre", 0) != 0;
    const bool causal = oracle_number(s->file, s->number, "causal", 0) != 0;
    assert_false(pre && s->memory);
    tensor *x = pre ? normalized(t, s, s->x) : s->x;
    tensor *a = multilinear_apply(&s->layer, t, x, behind_memory(t, s, x), s->positions, s->u, s->z,
                                  causal);
    tensor *sum = op_add(t, s->x, a);
    return pre ? sum : normalized(t, s, sum);
}

static void compare(const sublayer *s, const char *name, const double *got, int64_t count) {
    if (!oracle_check(s->file, s->number, name, got, count, NULL, 1))
        fail_msg("case %d: %s differs", s->number, name);
}

static void compare_grad(const sublayer *s, const char *name, int tensors, tensor *const *x) {
    double *got = malloc((size_t)(tensors * x[0]->count) * sizeof *got);
    for (int n = 0; n < tensors; n++)
        for (int64_t i = 0; i < x[n]->count; i++) got[n * x[0]->count + i] = (double)x[n]->grad[i];
    compare(s, name, got, tensors * x[0]->count);
    free(got);
}

/* Sequences first here, time first in the file. */
static void compare_rows(const sublayer *s, const char *name, const real *from) {
    const int64_t count = s->sequences * s->length * s->d;
    double *got = malloc((size_t)count * sizeof *got);
    for (int64_t n = 0; n < count; n++) {
        const int64_t k = n % s->d, b = n / s->d % s->sequences, i = n / s->d / s->sequences;
        got[n] = (double)from[(b * s->length + i) * s->d + k];
    }
    compare(s, name, got, count);
    free(got);
}

static void dot_backward(tape *t, const tape_node *node) {
    real *g = tape_grad_zeroed(t, node->in[0]);
    const real *dy = node->kept;
    for (int64_t i = 0; g && i < node->in[0]->count; i++) g[i] += dy[i];
}

static void backward(tape *t, const sublayer *s, tensor *y) {
    double *from = read_input(s, "dy", NULL, NULL);
    real *dy = tape_alloc(t, (size_t)y->count * sizeof *dy);
    turn(from, s->length, s->sequences, s->d, dy);
    tensor *loss = tape_tensor(t, 1, (int64_t[]){1});
    loss->value[0] = 0;
    tape_backward(t, tape_push(t, "dot", dot_backward, loss, (tensor *[]){y, NULL}, dy), 1);
    free(from);
}

static void check_case(const oracle_file *f, int number) {
    sublayer s;
    sr_failure why = {0};
    sublayer_read(&s, f, number);
    tape *t = tape_create(2, &why);
    tape_reset(t, rng_create(1), true, true);
    tensor *y = sublayer_build(t, &s);
    if (!y) fail_msg("%s", tape_failure(t)->text);
    compare_rows(&s, "y", y->value);
    backward(t, &s, y);
    const multilinear_layer *l = &s.layer;
    compare_rows(&s, "d_w", s.x->grad);
    compare_grad(&s, "d_Wqkv", 3, (tensor *[]){l->q, l->k, l->v});
    compare_grad(&s, "d_Wr", 1, &l->r), compare_grad(&s, "d_Wo", 1, &l->o);
    compare_grad(&s, "d_core", 1, &l->core);
    compare_grad(&s, "d_u", 1, &s.u), compare_grad(&s, "d_v", 1, &s.z);
    compare_grad(&s, "d_g", 1, &s.norm.gamma), compare_grad(&s, "d_c", 1, &s.norm.beta);
    tape_free(t);
    norm_site_free(&s.norm);
    params_free(&s.params);
    gradcheck_tensor_free(s.x), gradcheck_tensor_free(s.positions);
    free(s.mems);
}

static void shared_vectors(void **state) {
    (void)state;
    const char *path = check_shared("reference/vectors/models/tensorized_attention.h5");
    if (!path) skip();
    oracle_file *f = oracle_open(path);
    assert_non_null(f);
    assert_true(oracle_cases(f) > 0);
    for (int k = 0; k < oracle_cases(f); k++) check_case(f, k);
    oracle_close(f);
}

int main(void) {
    gemm_setup(2);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(as_plain_loops),
        cmocka_unit_test(shared_vectors),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
