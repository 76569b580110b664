/* test_gemm_without_memory.c -- products without memory for scratch. Float products use another
 * method; the others fail and leave c unchanged. Also products by the libraries alone. */
#include <stdlib.h>
#include <string.h>

#include "engine/gemm/bf16.h"
#include "engine/gemm/gemm.h"
#include "engine/gemm/row_ops.h"
#include "reals.h"
#include "testing/check.h"
#include "testing/failing_malloc.h"

/* Not split, and split by rows, columns and depth. */
static const int64_t sizes[][3] = {{9, 33, 5}, {700, 64, 90}, {64, 900, 80}, {24, 40, 9000}};

typedef struct product {
    gemm_group p;
    real *a, *b, *bias, *c;
    double *want;
} product;

static product product_create(const int64_t size[3], bool ta, bool tb, real beta, bool biased) {
    const int64_t m = size[0], n = size[1], k = size[2];
    product x = {.a = reals_random(m * k, 1),
                 .b = reals_random(k * n, 2),
                 .bias = reals_random(n, 4),
                 .c = reals_random(m * n, 3),
                 .want = calloc((size_t)(m * n), sizeof(double))};
    assert_non_null(x.want);
    x.p = (gemm_group){
        ta, tb, m, n, k, x.a, ta ? m : k, x.b, tb ? k : n, beta, x.c, n, biased ? x.bias : NULL};
    for (int64_t i = 0; i < m; i++)
        for (int64_t j = 0; j < n; j++) {
            double sum = (double)beta * (double)x.c[i * n + j] + (biased ? (double)x.bias[j] : 0);
            for (int64_t q = 0; q < k; q++)
                sum += (double)x.a[ta ? q * m + i : i * k + q] *
                       (double)x.b[tb ? j * k + q : q * n + j];
            x.want[i * n + j] = sum;
        }
    return x;
}

static void product_free(product *x) {
    free(x->a), free(x->b), free(x->bias), free(x->c), free(x->want);
}

static void check_product(const product *x, const char *name) {
    reals_check(name, x->c, x->want, x->p.m * x->p.n, 1e-4, 1e-3);
}

static void products_by_libraries(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        for (int form = 0; form < 8; form++)
            for (int without = 0; without < 2; without++) {
                product x = product_create(sizes[i], form & 1, form & 2, form & 4 ? (real)0.5 : 0,
                                           form & 4);
                if (without) failing_malloc_begin(0);
                gemm_group_by_libraries(&x.p, 2);
                if (without) failing_malloc_end();
                check_product(&x, "by libraries");
                product_free(&x);
            }
}

/* Float products, with and without a bias. */
static void floats(void **state) {
    (void)state;
    if (!failing_malloc_there()) skip();
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        for (int biased = 0; biased < 2; biased++) {
            product x = product_create(sizes[i], false, false, 0, biased);
            const gemm_group *p = &x.p;
            scratch_memory none = {0};
            failing_malloc_begin(0);
            if (biased)
                gemm_biased(&none, 1, p->ta, p->tb, p->m, p->n, p->k, p->a, p->lda, p->b, p->ldb,
                            p->bias, p->c, p->ldc);
            else
                gemm(&none, 1, p->ta, p->tb, p->m, p->n, p->k, p->a, p->lda, p->b, p->ldb, p->beta,
                     p->c, p->ldc);
            failing_malloc_end();
            free(none.start);
            check_product(&x, "without memory");
            product_free(&x);
        }
}

static void rounded(void **state) {
    (void)state;
    if (!failing_malloc_there()) skip();
    product x = product_create(sizes[1], false, true, 0, false);
    const gemm_group *p = &x.p;
    real *before = reals_random(p->m * p->n, 3);
    for (int copies = 0; copies < 2; copies++) {
        scratch_memory none = {0};
        sr_failure why = {0};
        failing_malloc_begin(0);
        const sr_status status = copies
                                     ? gemm_bf16_by_copies(p, &none, 1, &why)
                                     : gemm_bf16(&none, 1, p->ta, p->tb, p->m, p->n, p->k, p->a,
                                                 p->lda, p->b, p->ldb, p->beta, p->c, p->ldc, &why);
        failing_malloc_end();
        assert_int_equal(status, SR_MEMORY);
        check_failure(&why, SR_MEMORY, "memory");
        reals_check_bytes("c", p->c, before, p->m * p->n);
    }
    free(before);
    product_free(&x);
}

static void row_weights(void **state) {
    (void)state;
    if (!failing_malloc_there()) skip();
    tape *t = reals_tape(1);
    const tensor *w = reals_tensor(t, 2, (int64_t[]){7, 5}, 1);
    row_weight r;
    sr_failure why = {0};
    failing_malloc_begin(0);
    assert_int_equal(row_weight_init(&r, w, &why), SR_MEMORY);
    row_weight_free(&r);
    assert_int_equal(failing_malloc_end(), 0);
    check_failure(&why, SR_MEMORY, "out of memory for a weight of 7 x 5");
    tape_free(t);
}

int main(void) {
    gemm_setup(2);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(products_by_libraries),
        cmocka_unit_test(floats),
        cmocka_unit_test(rounded),
        cmocka_unit_test(row_weights),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
