/* Attention of rows to keys, one by one and grouped, against sums in double: odd sizes, scores that
 * overflow exp. A row has the same bytes whatever the other rows. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/rng.h"
#include "engine/gemm/row_ops.h"
#include "reals.h"
#include "testing/check.h"

#ifdef REAL_DOUBLE
static const double RTOL = 1e-10, ATOL = 1e-11;
#else
static const double RTOL = 1e-3,
                    ATOL = 1e-4; /* scores of hundreds carry their rounding into the weights */
#endif

enum { D = 120, KEYS = 37, ROWS = 13 };

typedef struct sizes {
    int heads;
    int64_t keys, rows;
    double scale; /* for queries and keys */
} sizes;

static const sizes cases[] = {{1, 1, 1, 1},  {2, 16, 2, 1},  {3, 17, 5, 1},
                              {8, 5, 13, 1}, {40, 37, 7, 1}, {4, 31, 3, 9}};

static real q[ROWS * D], key[KEYS * D], value[KEYS * D];

static void fill(real *x, int64_t count, double scale, uint64_t seed) {
    rng r = rng_create(seed);
    for (int64_t i = 0; i < count; i++) x[i] = (real)(scale * rng_normal(&r));
}

static void plain(const sizes *s, int64_t row, double *average, double *y) {
    const int64_t width = D / s->heads;
    double share[KEYS];
    memset(y, 0, D * sizeof *y);
    memset(average, 0, KEYS * sizeof *average);
    for (int64_t at = 0; at < D; at += width) {
        double most = -INFINITY, sum = 0;
        for (int64_t j = 0; j < s->keys; j++) {
            share[j] = 0;
            for (int64_t k = at; k < at + width; k++)
                share[j] += (double)q[row * D + k] * (double)key[j * D + k];
            if (share[j] > most) most = share[j];
        }
        for (int64_t j = 0; j < s->keys; j++) sum += share[j] = exp(share[j] - most);
        for (int64_t j = 0; j < s->keys; j++) {
            average[j] += share[j] / sum / s->heads;
            for (int64_t k = at; k < at + width; k++)
                y[k] += share[j] / sum * (double)value[j * D + k];
        }
    }
}

static void check_case(const sizes *s, const real *average, const real *one, const real *many) {
    double want[D], weight[KEYS];
    for (int64_t r = 0; r < s->rows; r++) {
        plain(s, r, weight, want);
        reals_check("one row", one + r * D, want, D, RTOL, ATOL);
        reals_check("rows", many + r * D, want, D, RTOL, ATOL);
        reals_check("average", average + r * KEYS, weight, s->keys, RTOL, ATOL);
    }
}

static void attention(void **state) {
    (void)state;
    static real one[ROWS * D], many[ROWS * D], alone[D], average[ROWS * KEYS], share[KEYS + 64];
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const sizes *s = &cases[i];
        const real *keys[KEYS], *values[KEYS];
        assert_true(row_attention_scratch(s->keys) <= KEYS + 64);
        fill(q, ROWS * D, s->scale, 3 * i);
        fill(key, KEYS * D, s->scale, 3 * i + 1);
        fill(value, KEYS * D, 1, 3 * i + 2);
        for (int64_t j = 0; j < s->keys; j++) keys[j] = key + j * D, values[j] = value + j * D;
        real *at = malloc((size_t)row_memory_size(D, s->heads, s->keys) * sizeof *at);
        assert_non_null(at);
        const row_memory m = row_memory_make(D, s->heads, s->keys, key, value, at);
        real *scratch = malloc((size_t)row_memory_scratch(&m, s->rows) * sizeof *scratch);
        assert_non_null(scratch);
        memset(average, 0x40, sizeof average); /* previous contents do not matter */
        for (int64_t r = 0; r < s->rows; r++)
            row_attention(D, s->heads, s->keys, q + r * D, keys, values, share, one + r * D);
        row_memory_attention(&m, s->heads, s->rows, q, scratch, average, KEYS, many);
        check_case(s, average, one, many);
        for (int64_t r = 0; r < s->rows; r++) {
            row_memory_attention(&m, s->heads, 1, q + r * D, scratch, NULL, 0, alone);
            assert_memory_equal(alone, many + r * D, sizeof alone);
        }
        free(scratch);
        free(at);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(attention)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
