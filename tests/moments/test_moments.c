/* test_moments.c -- moments and sums of tensors of every element type and layout, compared with
 * long double. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "statrec/moments.h"
#include "testing/check.h"

typedef struct layout {
    int64_t outer, channels, inner;
    const char *name;
} layout;

static const layout layouts[] = {
    {1, 1, 1, "one value"},      {7, 3, 1, "rows, features"},    {1000, 130, 1, "many rows"},
    {4, 5, 6, "channels first"}, {1, 3, 2500, "one long plane"}, {0, 4, 1, "no rows"},
    {3, 2, 2049, "odd run"},     {64, 128, 1, "exact tile"},     {17, 129, 1, "tile and one"},
};
enum { LAYOUTS = sizeof layouts / sizeof layouts[0] };

static const char *const element_names[] = {"float32", "float64", "bfloat16", "float16"};
enum { ELEMENTS = 4 };

static double noise(int64_t i) {
    uint64_t z = (uint64_t)i * 0x9e3779b97f4a7c15ull + 0x123456789ull;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
    return (double)((z ^ (z >> 31)) >> 11) * 0x1p-53 * 2 - 1;
}

static void *need(size_t bytes) {
    void *p = calloc(bytes + 8, 1);
    assert_non_null(p);
    return p;
}

/* -- elements by arithmetic, not by bits ------------------------------------------------------- */

/* value = sign (1 + fraction / 2^bits) 2^(exponent - bias); exponent 0 without the 1. */
static double decode(uint16_t code, int bits, int bias) {
    const int exponents = 1 << (15 - bits), exponent = (code & 0x7fff) >> bits;
    const double fraction = (double)(code & ((1 << bits) - 1)) / (1 << bits);
    const double sign = code & 0x8000 ? -1 : 1;
    if (exponent == exponents - 1) return fraction > 0 ? NAN : sign * INFINITY;
    if (exponent == 0) return sign * ldexp(fraction, 1 - bias);
    return sign * ldexp(1 + fraction, exponent - bias);
}

static double decode_as(sr_element element, uint16_t code) {
    return element == SR_FLOAT16 ? decode(code, 10, 15) : decode(code, 7, 127);
}

/* Returns the code of the nearest value below in magnitude: codes and values have the same
 * order. */
static uint16_t encode(sr_element element, double value) {
    uint16_t low = 0, high = element == SR_FLOAT16 ? 0x7c00 : 0x7f80;
    if (isnan(value)) return 0x7fff;
    while (high - low > 1) {
        const uint16_t middle = (uint16_t)((low + high) / 2);
        if (decode_as(element, middle) <= fabs(value))
            low = middle;
        else
            high = middle;
    }
    return (uint16_t)(low | (signbit(value) ? 0x8000 : 0));
}

/* Writes value i of a tensor's data; returns the stored, rounded value. */
static double store(sr_element element, void *data, int64_t i, double value) {
    if (element == SR_FLOAT32) return ((float *)data)[i] = (float)value;
    if (element == SR_FLOAT64) return ((double *)data)[i] = value;
    const uint16_t code = encode(element, value);
    ((uint16_t *)data)[i] = code;
    return decode_as(element, code);
}

static void test_every_half(void **state) {
    (void)state;
    for (int element = SR_BFLOAT16; element <= SR_FLOAT16; element++)
        for (int code = 0; code < 0x10000; code++) {
            uint16_t data = (uint16_t)code;
            double mean, variance, square;
            const sr_tensor t = SR_INIT(sr_tensor, &data, (sr_element)element, 1, 1, 1, NULL, 0);
            const double want = decode_as((sr_element)element, data);
            assert_int_equal(sr_moments(&t, &mean, &variance, &square), 1);
            if (isnan(want) ? !isnan(mean) : isinf(want) ? isfinite(mean) : mean != want)
                fail_msg("%s %#x: %g, not %g", element_names[element], code, mean, want);
        }
}

/* -- moments --------------------------------------------------------------------------------- */

/* mean, variance, mean square of feature c; returns the number of rows. */
static int64_t reference(const layout *l, const double *x, const uint8_t *valid, int64_t c,
                         double out[3]) {
    long double sum = 0, square = 0, m2 = 0;
    int64_t n = 0;
    for (int64_t o = 0; o < l->outer; o++)
        for (int64_t i = 0; i < l->inner; i++) {
            if (valid && !valid[o * l->inner + i]) continue;
            long double v = x[(o * l->channels + c) * l->inner + i];
            sum += v, square += v * v, n++;
        }
    for (int64_t o = 0; o < l->outer; o++)
        for (int64_t i = 0; i < l->inner; i++) {
            if (valid && !valid[o * l->inner + i]) continue;
            long double v = x[(o * l->channels + c) * l->inner + i] - sum / n;
            m2 += v * v;
        }
    out[0] = (double)(sum / n), out[1] = (double)(m2 / n), out[2] = (double)(square / n);
    return n;
}

/* every: rows whose number is divisible by it are padding with invalid values; 0: no mask. */
static void check_moments(const layout *l, sr_element element, double mean, double scale,
                          int64_t every) {
    int64_t size = l->outer * l->channels * l->inner, rows = l->outer * l->inner;
    void *data = need((size_t)size * 8);
    double *x = need((size_t)size * sizeof *x);
    uint8_t *valid = every ? need((size_t)rows) : NULL;
    for (int64_t i = 0; i < size; i++) x[i] = store(element, data, i, mean + scale * noise(i));
    for (int64_t r = 0; r < rows && every; r++) {
        valid[r] = r % every != 0;
        for (int64_t c = 0; c < l->channels && !valid[r]; c++)
            store(element, data, (r / l->inner * l->channels + c) * l->inner + r % l->inner,
                  r % 2 ? NAN : 1e30);
    }
    double *got = need(3 * (size_t)l->channels * sizeof *got);
    const sr_tensor t =
        SR_INIT(sr_tensor, data, element, l->outer, l->channels, l->inner, valid, 0);
    int64_t n = sr_moments(&t, got, got + l->channels, got + 2 * l->channels);
    for (int64_t c = 0; c < l->channels; c++) {
        double want[3], found[3] = {got[c], got[c + l->channels], got[c + 2 * l->channels]};
        assert_int_equal(n, reference(l, x, valid, c, want));
        char name[128];
        snprintf(name, sizeof name, "%s %s mean %g scale %g every %d", l->name,
                 element_names[element], mean, scale, (int)every);
        /* tolerances: the mean relative to the spread, the variance relative to itself. If mean /
         * scale is very large, rounding of the mean shows */
        check_near_double(name, found, want, 1, 1e-14, 1e-14 * scale);
        check_near_double(name, found + 1, want + 1, 1, 1e-12 + 1e-15 * fabs(mean) / scale,
                          1e-25 * mean * mean);
        check_near_double(name, found + 2, want + 2, 1, 1e-13, 0);
    }
    free(data), free(x), free(valid), free(got);
}

static void test_moments(void **state) {
    (void)state;
    static const double means[] = {0, 1, 1e4, -1e4, 0, 0, 0},
                        scales[] = {1, 1, 1, 1e-2, 1e-6, 1e-25, 1e20};
    for (int i = 0; i < LAYOUTS; i++)
        for (int k = 0; k < 7; k++)
            for (int every = 0; every <= 3; every += 3)
                check_moments(&layouts[i], SR_FLOAT32, means[k], scales[k], every);
}

static void test_elements(void **state) {
    (void)state;
    for (int i = 0; i < LAYOUTS; i++)
        for (int element = 1; element < ELEMENTS; element++)
            for (int every = 0; every <= 3; every += 3)
                check_moments(&layouts[i], (sr_element)element, 3, 2, every);
}

static sr_tensor floats(const float *x, int64_t outer, int64_t inner, const uint8_t *valid) {
    return SR_INIT(sr_tensor, x, SR_FLOAT32, outer, 2, inner, valid, 0);
}

static void test_moments_without_rows(void **state) {
    (void)state;
    float x[6] = {1, 2, 3, 4, 5, 6};
    uint8_t none[3] = {0, 0, 0}, one[3] = {0, 1, 0};
    double mean[2], variance[2], square[2];
    sr_tensor t = floats(x, 3, 1, none);
    assert_int_equal(sr_moments(&t, mean, variance, square), 0);
    assert_true(isnan(mean[0]) && isnan(variance[1]) && isnan(square[0]));
    t = floats(x, 1, 3, one);
    assert_int_equal(sr_moments(&t, mean, variance, square), 1);
    check_equals(mean[0], 2);
    check_equals(mean[1], 5);
    check_equals(variance[0], 0);
    check_equals(square[1], 25);
    x[0] = NAN;
    t = floats(x, 3, 1, NULL);
    assert_int_equal(sr_moments(&t, mean, variance, square), 3);
    assert_true(isnan(mean[0]) && isnan(variance[0]));
    check_equals(mean[1], 4);
}

/* -- sums of the backward pass ---------------------------------------------------------------- */

typedef struct sums {
    double *g, *gc, *gg; /* [channels] */
} sums;

static sums need_sums(int64_t channels) {
    double *all = need(3 * (size_t)channels * sizeof *all);
    return (sums){all, all + channels, all + 2 * channels};
}

static void reference_sums(const layout *l, const double *g, const double *x, const uint8_t *valid,
                           const double *center, sums out) {
    for (int64_t c = 0; c < l->channels; c++) {
        long double sum = 0, product = 0, square = 0;
        for (int64_t r = 0; r < l->outer * l->inner; r++) {
            int64_t at = (r / l->inner * l->channels + c) * l->inner + r % l->inner;
            if (!valid[r]) continue;
            sum += g[at], square += (long double)g[at] * g[at];
            product += g[at] * ((long double)x[at] - center[c]);
        }
        out.g[c] = (double)sum, out.gc[c] = (double)product, out.gg[c] = (double)square;
    }
}

/* g and x may have different element types. */
static void check_sums(const layout *l, sr_element of_g, sr_element of_x, double mean) {
    const int64_t size = l->outer * l->channels * l->inner, rows = l->outer * l->inner;
    void *xs = need((size_t)size * 8), *gs = need((size_t)size * 8);
    double *x = need((size_t)size * sizeof *x), *g = need((size_t)size * sizeof *g);
    uint8_t *valid = need((size_t)rows);
    double *center = need((size_t)l->channels * sizeof *center);
    const sums got = need_sums(l->channels), want = need_sums(l->channels);
    for (int64_t k = 0; k < size; k++) {
        x[k] = store(of_x, xs, k, mean + noise(k));
        g[k] = store(of_g, gs, k, noise(k + 77777));
    }
    for (int64_t r = 0; r < rows; r++) valid[r] = r % 5 != 2;
    for (int64_t c = 0; c < l->channels; c++) center[c] = mean + 0.01 * (double)c;
    reference_sums(l, g, x, valid, center, want);
    const sr_tensor tg = SR_INIT(sr_tensor, gs, of_g, l->outer, l->channels, l->inner, NULL, 0);
    const sr_tensor tx = SR_INIT(sr_tensor, xs, of_x, l->outer, l->channels, l->inner, valid, 0);
    sr_gradient_sums(&tg, &tx, center, got.g, got.gc, got.gg);
    check_near_double(l->name, got.g, want.g, l->channels, 1e-12, 1e-12);
    check_near_double(l->name, got.gc, want.gc, l->channels, 1e-12, 1e-12);
    check_near_double(l->name, got.gg, want.gg, l->channels, 1e-12, 1e-12);
    free(x), free(g), free(xs), free(gs), free(valid), free(center), free(got.g), free(want.g);
}

static void test_gradient_sums(void **state) {
    (void)state;
    for (int i = 0; i < LAYOUTS; i++) {
        check_sums(&layouts[i], SR_FLOAT32, SR_FLOAT32, 1e4);
        for (int of_g = 0; of_g < ELEMENTS; of_g++)
            check_sums(&layouts[i], (sr_element)of_g, (sr_element)((of_g + 1) % ELEMENTS), 3);
    }
}

/* -- gradient of a row normalization ----------------------------------------------------------- */

typedef struct row_case {
    const char *name;
    int64_t rows, width;
    sr_element of_g, of_x;
    double mean;
    bool root, gained, masked;
} row_case;

/* Squares of dx and of gamma g / s of one row. */
static void add_reference_norms(const row_case *c, const double *g, const double *x,
                                const double *gamma, double eps, long double square[2]) {
    long double mean = 0, spread = 0, mean_q = 0, mean_qx = 0;
    for (int64_t k = 0; k < c->width && !c->root; k++) mean += x[k] / (long double)c->width;
    for (int64_t k = 0; k < c->width; k++)
        spread += (x[k] - mean) * (x[k] - mean) / (long double)c->width;
    const long double s = sqrtl(spread + eps);
    for (int64_t k = 0; k < c->width; k++) {
        const long double q = g[k] * (gamma ? gamma[k] : 1);
        mean_q += c->root ? 0 : q / c->width, mean_qx += q * (x[k] - mean) / s / c->width;
    }
    for (int64_t k = 0; k < c->width; k++) {
        const long double q = g[k] * (gamma ? gamma[k] : 1);
        const long double dx = (q - mean_q - (x[k] - mean) / s * mean_qx) / s;
        square[0] += dx * dx, square[1] += q / s * (q / s);
    }
}

static void check_row_norms(const row_case *c) {
    const int64_t size = c->rows * c->width;
    void *xs = need((size_t)size * 8), *gs = need((size_t)size * 8);
    double *x = need((size_t)size * sizeof *x), *g = need((size_t)size * sizeof *g);
    double *gamma = need((size_t)c->width * 8);
    uint8_t *valid = c->masked ? need((size_t)c->rows) : NULL;
    long double square[2] = {0};
    for (int64_t k = 0; k < c->width; k++) gamma[k] = 1.5 + noise(k + 5);
    for (int64_t k = 0; k < size; k++) {
        x[k] = store(c->of_x, xs, k, c->mean + noise(k));
        g[k] = store(c->of_g, gs, k, 3 * noise(k + 77777));
    }
    for (int64_t r = 0; r < c->rows; r++) {
        if (valid) valid[r] = r % 3 != 1;
        if (!valid || valid[r])
            add_reference_norms(c, g + r * c->width, x + r * c->width, c->gained ? gamma : NULL,
                                1e-3, square);
    }
    const sr_tensor tg = SR_INIT(sr_tensor, gs, c->of_g, c->rows, c->width, 1, NULL, 0);
    const sr_tensor tx = SR_INIT(sr_tensor, xs, c->of_x, c->rows, c->width, 1, valid, 0);
    double got[2];
    sr_row_norms(&tg, &tx, c->gained ? gamma : NULL, 1e-3, c->root, got);
    const double want[2] = {(double)square[0], (double)square[1]};
    check_near_double(c->name, got, want, 2, 1e-11, 1e-300);
    free(x), free(g), free(xs), free(gs), free(gamma), free(valid);
}

static void test_row_norms(void **state) {
    (void)state;
    static const row_case cases[] = {
        {"rows", 7, 24, SR_FLOAT32, SR_FLOAT32, 0, false, true, false},
        {"odd width, large mean", 5, 769, SR_FLOAT32, SR_FLOAT32, 1e3, false, true, false},
        {"root", 9, 17, SR_FLOAT32, SR_FLOAT32, 2, true, true, false},
        {"root without gain", 3, 130, SR_FLOAT64, SR_FLOAT64, 2, true, false, false},
        {"without gain", 3, 8, SR_FLOAT64, SR_FLOAT64, 2, false, false, false},
        {"masked", 10, 11, SR_FLOAT32, SR_FLOAT32, 1, false, true, true},
        {"two elements, tiles", 2, 1100, SR_FLOAT32, SR_FLOAT64, 1, false, true, false},
        {"two elements", 6, 40, SR_BFLOAT16, SR_FLOAT16, 1, false, true, false},
        {"few features", 6, 3, SR_FLOAT32, SR_BFLOAT16, 0, false, true, false},
        {"no rows", 0, 4, SR_FLOAT32, SR_FLOAT32, 0, false, true, false},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) check_row_norms(&cases[i]);
    const float g[4] = {1, NAN, 1, 1}, x[4] = {1, 2, NAN, 4};
    const sr_tensor tg = floats(g, 2, 1, NULL), tx = floats(x, 2, 1, NULL);
    double square[2];
    sr_row_norms(&tg, &tx, NULL, 1e-3, false, square);
    assert_true(isnan(square[0]) && isnan(square[1]));
}

/* -- a complete pass --------------------------------------------------------------------------- */

/* One call returns the same bits as the separate calls. */
static void check_whole_pass(const layout *l, sr_element element, bool gained, bool root) {
    const int64_t d = l->channels, size = l->outer * d * l->inner;
    void *gs = need((size_t)size * 8), *xs = need((size_t)size * 8);
    float *gain = need((size_t)d * sizeof *gain);
    double *gamma = need((size_t)d * 8), *want = need((size_t)d * 7 * 8),
           *got = need((size_t)d * 6 * 8), squares[2], rows[2];
    for (int64_t k = 0; k < d; k++) gamma[k] = gain[k] = (float)(1.5 + noise(k + 5));
    for (int64_t k = 0; k < size; k++)
        store(element, xs, k, 2 + noise(k)), store(element, gs, k, 3 * noise(k + 777));
    const sr_tensor g = SR_INIT(sr_tensor, gs, element, l->outer, d, l->inner, NULL, 0);
    const sr_tensor x = SR_INIT(sr_tensor, xs, element, l->outer, d, l->inner, NULL, 0);
    sr_moments(&x, want, want + d, want + 6 * d);
    sr_gradient_sums(&g, &x, want, want + 2 * d, want + 3 * d, want + 4 * d);
    for (int64_t k = 0; k < d; k++) want[5 * d + k] = gained ? gamma[k] : 1;
    if (l->inner == 1) sr_row_norms(&g, &x, gained ? gamma : NULL, 1e-3, root, rows);
    sr_pass_sums p = SR_INIT(sr_pass_sums, .g = gs, .x = xs, .element = element, .outer = l->outer,
                             .channels = d, .inner = l->inner, .to = got, .eps = 1e-3, .root = root,
                             .square = l->inner == 1 ? squares : NULL);
    p.vector[4] = gained ? gain : NULL, p.vector_element = SR_FLOAT32;
    sr_sum_pass(&p);
    assert_memory_equal(got, want, (size_t)d * 6 * 8);
    if (p.square) assert_memory_equal(squares, rows, sizeof rows);
    free(gs), free(xs), free(gain), free(gamma), free(want), free(got);
}

static void test_whole_pass(void **state) {
    (void)state;
    for (int l = 0; l < LAYOUTS; l++)
        for (int e = SR_FLOAT32; e <= SR_FLOAT64 && layouts[l].outer; e++)
            check_whole_pass(&layouts[l], (sr_element)e, e == SR_FLOAT32, l % 2);
}

/* Given vectors are copied. Of the tensors, only g is read, for its squares. */
static void test_pass_of_vectors(void **state) {
    (void)state;
    const float mean[2] = {1, 2}, inverse[2] = {3, 4}, sum_g[2] = {5, 6}, sum_gx[2] = {7, 8},
                gain[2] = {9, 10};
    const float g[12] = {1, -2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12};
    double to[12] = {[8] = -1, [9] = -1};
    sr_pass_sums p = SR_INIT(sr_pass_sums, NULL, NULL, {mean, inverse, sum_g, sum_gx, gain},
                             SR_FLOAT32, SR_FLOAT32, 2, 2, 3, to, NULL, 0, false);
    sr_sum_pass(&p);
    const double without[12] = {1, 2, 3, 4, 5, 6, 7, 8, -1, -1, 9, 10};
    assert_memory_equal(to, without, sizeof to);
    p.g = g;
    sr_sum_pass(&p);
    const double planes[12] = {1, 2, 3, 4, 5, 6, 7, 8, 14 + 194, 77 + 365, 9, 10};
    check_near_double("planes", to, planes, 12, 1e-15, 0);
    p.outer = 6, p.inner = 1;
    sr_sum_pass(&p);
    const double rows[12] = {1, 2, 3, 4, 5, 6, 7, 8, 286, 364, 9, 10};
    check_near_double("rows", to, rows, 12, 1e-14, 0);
}

/* Squares of planes alone equal the squares of sr_gradient_sums, for every element type. */
static void test_squares_of_planes(void **state) {
    (void)state;
    enum { OUTER = 3, D = 2, INNER = 37, SIZE = OUTER * D * INNER };
    double data[SIZE], want[3][D], to[6 * D];
    const double center[D] = {0}, given[D] = {0};
    for (int e = SR_FLOAT32; e <= SR_FLOAT16; e++) {
        for (int i = 0; i < SIZE; i++) store((sr_element)e, data, i, sin(0.7 * i) + 0.01 * (i % 5));
        const sr_tensor g = SR_INIT(sr_tensor, data, (sr_element)e, OUTER, D, INNER, NULL, 0);
        sr_gradient_sums(&g, &g, center, want[0], want[1], want[2]);
        const sr_pass_sums p =
            SR_INIT(sr_pass_sums, data, NULL, {given, given, given, given, given}, (sr_element)e,
                    SR_FLOAT64, OUTER, D, INNER, to, NULL, 0, false);
        sr_sum_pass(&p);
        check_near_double("squares", to + 4 * D, want[2], D, 1e-14, 0);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_half),        cmocka_unit_test(test_moments),
        cmocka_unit_test(test_elements),          cmocka_unit_test(test_moments_without_rows),
        cmocka_unit_test(test_gradient_sums),     cmocka_unit_test(test_row_norms),
        cmocka_unit_test(test_whole_pass),        cmocka_unit_test(test_pass_of_vectors),
        cmocka_unit_test(test_squares_of_planes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
