/* Products in bfloat16: rounding of single numbers, and gemm_bf16 against double sums of rounded
 * operands. Also linear layers and convolutions against their definitions, and equal bytes for any
 * number of threads. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/bf16_number.h"
#include "engine/gemm/bf16.h"
#include "engine/gemm/gemm.h"
#include "engine/ops/image/image_ops.h"
#include "engine/ops/ops.h"
#include "reals.h"
#include "testing/check.h"

static void rounding(void **state) {
    (void)state;
    static const float pair[][2] = {{1, 1},
                                    {-1, -1},
                                    {0, 0},
                                    {1 + 0x1p-8f, 1}, /* tie, to the even one */
                                    {1 + 0x1p-8f + 0x1p-23f, 1 + 0x1p-7f}, /* just above */
                                    {1 + 3 * 0x1p-8f, 1 + 0x1p-6f}, /* tie, to the even one above */
                                    {-1 - 3 * 0x1p-9f, -1 - 0x1p-7f}, /* nearer to the next */
                                    {2 - 0x1p-9f, 2},           /* the carry reaches the exponent */
                                    {0x1.fep127f, 0x1.fep127f}, /* the largest */
                                    {0x1.fefffep127f, 0x1.fep127f}, /* below half way to the next */
                                    {0x1.ffp127f, INFINITY},
                                    {-INFINITY, -INFINITY}};
    for (size_t i = 0; i < sizeof pair / sizeof *pair; i++) {
        const float y = bf16_nearest(pair[i][0]);
        assert_memory_equal(&y, &pair[i][1], sizeof y);
    }
    static const uint32_t nan_bits[] = {0x7fc00000, 0x7f800001, 0x7fffffff, 0xffffffff};
    for (size_t i = 0; i < sizeof nan_bits / sizeof *nan_bits; i++) {
        float x;
        memcpy(&x, &nan_bits[i], sizeof x);
        assert_true(isnan(bf16_nearest(x)));
    }
    real x[3] = {(real)1.01, (real)-3.3333, (real)NAN}, y[3];
    bf16_round(2, 3, x, y);
    check_equals(y[0], (real)0x1.02p0);
    check_equals(y[1], (real)-0x1.aap1);
    assert_true(isnan((double)y[2]));
}

typedef struct sizes {
    int64_t m, n, k, more; /* more: columns of memory after each row */
    double beta;
} sizes;

static const sizes cases[] = {{1, 1, 1, 0, 0},      {8, 32, 2, 0, 0},     {9, 33, 3, 2, 1},
                              {7, 31, 64, 0, 1},    {40, 70, 33, 5, 0.5}, {130, 17, 95, 1, 0},
                              {17, 130, 200, 0, 1}, {100, 100, 128, 3, 0}};

static double element(const real *x, bool transposed, int64_t stride, int64_t i, int64_t j) {
    return (double)bf16_nearest((float)(transposed ? x[j * stride + i] : x[i * stride + j]));
}

static void check_product(const sizes *s, bool ta, bool tb) {
    const int64_t lda = (ta ? s->m : s->k) + s->more, ldb = (tb ? s->k : s->n) + s->more;
    const int64_t ldc = s->n + s->more, size = s->m * ldc;
    real *a = reals_random((ta ? s->k : s->m) * lda, 1),
         *b = reals_random((tb ? s->n : s->k) * ldb, 2);
    real *c = reals_random(size, 3), *other = reals_random(size, 3);
    real *again = reals_random(size, 3);
    double *want = calloc((size_t)size, sizeof *want);
    assert_non_null(want);
    for (int64_t i = 0; i < size; i++) want[i] = (double)c[i];
    for (int64_t i = 0; i < s->m; i++)
        for (int64_t j = 0; j < s->n; j++) {
            double sum = s->beta * (double)c[i * ldc + j];
            for (int64_t p = 0; p < s->k; p++)
                sum += element(a, ta, lda, i, p) * element(b, tb, ldb, p, j);
            want[i * ldc + j] = sum;
        }
    for (int64_t i = 0; s->beta == 0 && i < size;
         i++) /* c is not read; memory after its rows stays unchanged */
        if (i % ldc < s->n) c[i] = other[i] = again[i] = (real)NAN;
    scratch_memory room = {0};
    sr_failure why = {0};
    check_ok(
        gemm_bf16(&room, 1, ta, tb, s->m, s->n, s->k, a, lda, b, ldb, (real)s->beta, c, ldc, &why),
        &why);
    check_ok(gemm_bf16(&room, 3, ta, tb, s->m, s->n, s->k, a, lda, b, ldb, (real)s->beta, other,
                       ldc, &why),
             &why);
    reals_check("product", c, want, size, 1e-5, 2e-5);
    reals_check_bytes("threads", other, c, size);
    const gemm_group by_copies = {ta, tb,  s->m,          s->n,  s->k, a,   lda,
                                  b,  ldb, (real)s->beta, again, ldc,  NULL};
    check_ok(gemm_bf16_by_copies(&by_copies, &room, 2, &why), &why);
    reals_check("product by copies", again, want, size, 1e-5, 2e-5);
    free(again);
    free(a), free(b), free(c), free(other), free(want), free(room.start);
}

static void products(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        for (int transposed = 0; transposed < 4; transposed++)
            check_product(&cases[i], transposed & 1, transposed & 2);
}

/* A NaN in a row affects only its row of c, also if zeros fill a tile. */
static void not_numbers(void **state) {
    (void)state;
    enum { M = 3, N = 5, K = 7 };
    real a[M * K], b[K * N], c[M * N];
    for (int i = 0; i < M * K; i++) a[i] = i / K == 1 ? (real)INFINITY : 1;
    for (int i = 0; i < K * N; i++) b[i] = 1;
    scratch_memory room = {0};
    sr_failure why = {0};
    check_ok(gemm_bf16(&room, 1, false, false, M, N, K, a, K, b, N, 0, c, N, &why), &why);
    for (int i = 0; i < M * N; i++) assert_true(i / N == 1 ? isinf((double)c[i]) : c[i] == (real)K);
    free(room.start);
}

/* -- ops: the effect of tape.bf16 */

typedef struct op_case {
    tape *t;
    tensor *x, *w, *b, *y;
    real *dy;
} op_case;

static void round_tensor(tensor *x) {
    bf16_round(1, x->count, x->value, x->value);
}

typedef tensor *build_fn(tape *t, tensor *x, tensor *w, tensor *b);

/* before: operands are rounded beforehand, for the op in float. */
static op_case op_run(build_fn *build, const int64_t *x, const int64_t *w, bool bf16, bool before) {
    op_case o = {.t = reals_tape(bf16 ? 2 : 1)};
    const int rank = x[2] ? 4 : 2;
    o.x = reals_tensor(o.t, rank, x, 1), o.w = reals_tensor(o.t, rank, w, 2);
    o.b = reals_tensor(o.t, 1, w, 3);
    if (before) round_tensor(o.x), round_tensor(o.w);
    o.t->bf16 = bf16;
    o.y = build(o.t, o.x, o.w, o.b);
    reals_check_tape(o.t);
    o.dy = reals_random(o.y->count, 4);
    if (before) round_tensor(o.y), bf16_round(1, o.y->count, o.dy, o.dy);
    reals_backward(o.t, o.y, o.dy);
    reals_check_tape(o.t);
    return o;
}

static void op_free(op_case *o) {
    tape_free(o->t);
    free(o->dy);
}

/* Another order of summation may round to the other neighbour: one unit of bfloat16. */
static void check_op(build_fn *build, const int64_t *x, const int64_t *w) {
    op_case got = op_run(build, x, w, true, false), want = op_run(build, x, w, false, true);
    reals_check_same("y", got.y->value, want.y->value, want.y->count, 0x1p-7, 1e-4);
    for (int64_t i = 0; i < got.y->count; i++)
        check_equals(got.y->value[i], (real)bf16_nearest((float)got.y->value[i]));
    reals_check_same("dx", got.x->grad, want.x->grad, want.x->count, 1e-4, 1e-4);
    reals_check_same("dw", got.w->grad, want.w->grad, want.w->count, 1e-4, 1e-4);
    op_case plain = op_run(build, x, w, false, false);
    double most = 0;
    for (int64_t i = 0; i < plain.w->count; i++)
        most = fmax(most, fabs((double)(plain.w->grad[i] - got.w->grad[i])));
    check_above(most, 1e-3); /* and unlike float */
    op_free(&got), op_free(&want), op_free(&plain);
}

static tensor *build_linear(tape *t, tensor *x, tensor *w, tensor *b) {
    return op_linear(t, x, w, b);
}
static tensor *build_conv(tape *t, tensor *x, tensor *w, tensor *b) {
    (void)b;
    return op_conv2d(t, x, w, 1, 1);
}
static tensor *build_conv_stride(tape *t, tensor *x, tensor *w, tensor *b) {
    (void)b;
    return op_conv2d_direct(t, x, w, 2, 1);
}

static void ops(void **state) {
    (void)state;
    check_op(build_linear, (int64_t[4]){37, 50}, (int64_t[4]){29, 50});
    check_op(build_linear, (int64_t[4]){300, 128}, (int64_t[4]){64, 128});
    check_op(build_conv, (int64_t[4]){4, 12, 12, 16}, (int64_t[4]){16, 3, 3, 16});
    check_op(build_conv_stride, (int64_t[4]){3, 9, 9, 3}, (int64_t[4]){16, 3, 3, 3});
}

int main(void) {
    gemm_setup(3);
    const struct CMUnitTest tests[] = {cmocka_unit_test(rounding), cmocka_unit_test(products),
                                       cmocka_unit_test(not_numbers), cmocka_unit_test(ops)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
