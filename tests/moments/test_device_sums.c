/* test_device_sums.c -- sums in a device's buffer, compared with statistics of the values. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "statrec/moments.h"
#include "testing/check.h"

enum { ROWS = 9, MOST = 5, SITES = 3, STRIDE = 16, BUFFER = 8192 };

static double noise(int64_t i) {
    return sin(12.9898 * (double)(i + 1)) * 1.7 + 0.3;
}

/* Values of a site: x and g [ROWS, MOST]. */
typedef struct values {
    double x[ROWS][MOST], g[ROWS][MOST];
} values;

static void fill_values(values *v, int64_t seed) {
    for (int r = 0; r < ROWS; r++)
        for (int c = 0; c < MOST; c++)
            v->x[r][c] = noise(seed + 31 * r + c), v->g[r][c] = noise(seed + 1000 + 17 * r + 5 * c);
}

/* mean, variance, mean square, sum g, sum g (x - mean), sum g^2 of a feature. */
static void reference(const values *v, int c, double out[6]) {
    memset(out, 0, 6 * sizeof *out);
    for (int r = 0; r < ROWS; r++) out[0] += v->x[r][c] / ROWS, out[3] += v->g[r][c];
    for (int r = 0; r < ROWS; r++) {
        const double d = v->x[r][c] - out[0];
        out[1] += d * d / ROWS, out[2] += v->x[r][c] * v->x[r][c] / ROWS;
        out[4] += v->g[r][c] * d, out[5] += v->g[r][c] * v->g[r][c];
    }
}

static void put_sums(const values *v, int channels, double *sums) {
    for (int c = 0; c < channels; c++)
        for (int r = 0; r < ROWS; r++) {
            const double x = v->x[r][c], g = v->g[r][c], all[5] = {x, x * x, g, g * x, g * g};
            for (int i = 0; i < 5; i++) sums[i * STRIDE + c] += all[i];
        }
}

static void put_node(const values *v, int channels, double eps, float *vectors, double *squares) {
    for (int c = 0; c < channels; c++) {
        double want[6];
        reference(v, c, want);
        const double s = sqrt(want[1] + eps), all[4] = {want[0], 1 / s, want[3], want[4] / s};
        for (int i = 0; i < 4; i++) vectors[i * STRIDE + c] = (float)all[i];
        squares[c] = want[5];
    }
}

static void near(double got, double want, double tolerance) {
    if (!(fabs(got - want) <= tolerance * (1 + fabs(want))))
        fail_msg("%.17g, not %.17g", got, want);
}

/* Site 0 is read, site 1 is a node. Site 2 is read and has counted rows and no gain. */
typedef struct board {
    _Alignas(16) char buffer[BUFFER];
    sr_device_place place[SITES];
    values v[SITES];
} board;

static const int channels_of[SITES] = {3, 5, 2};

static void fill_board(board *b) {
    memset(b, 0, sizeof *b);
    for (int s = 0; s < SITES; s++) {
        const int64_t start = 2048 * s, floats = start + 8 * 6 * STRIDE;
        fill_values(&b->v[s], 100 * s);
        double *sums = (double *)(b->buffer + start), *more = sums + 5 * STRIDE;
        float *vectors = (float *)(b->buffer + floats);
        more[0] = 7 + s, more[1] = 70 + s, more[2] = s == 2 ? ROWS - 0.25 : 0;
        const double eps = 0.5;
        if (s == 1)
            put_node(&b->v[s], channels_of[s], eps, vectors, sums);
        else
            put_sums(&b->v[s], channels_of[s], sums);
        for (int c = 0; c < channels_of[s]; c++) vectors[4 * STRIDE + c] = (float)(c + 0.5);
        b->place[s] = (sr_device_place){sizeof *b->place,
                                        channels_of[s],
                                        start,
                                        STRIDE,
                                        s == 1 ? floats : -1,
                                        STRIDE,
                                        s == 2 ? -1 : floats + 4 * 4 * STRIDE,
                                        start + 8 * 5 * STRIDE,
                                        eps};
    }
}

static void check_pass(const board *b, int s, const double *to, int64_t width, double scale) {
    for (int c = 0; c < channels_of[s]; c++) {
        double want[6];
        reference(&b->v[s], c, want);
        for (int i = 0; i < 6; i++) {
            const double of_loss = i < 3 ? 1 : i < 5 ? scale : scale * scale;
            near(to[i * width + c], want[i] / of_loss, s == 1 ? 2e-6 : 1e-13);
        }
        near(to[6 * width + c], s == 2 ? 1 : c + 0.5, 0);
    }
}

static void test_passes(void **state) {
    (void)state;
    board *b = malloc(sizeof *b);
    assert_non_null(b);
    fill_board(b);
    for (double scale = 1; scale < 5000; scale *= 4096) {
        int64_t rows[SITES] = {ROWS, ROWS, -1};
        double to[7 * 10], found[SITES][4];
        sr_read_device_sums(b->place, SITES, b->buffer, scale, rows, to, &found[0][0]);
        for (int s = 0, start = 0; s < SITES; start += channels_of[s++]) {
            check_pass(b, s, to + start, 10, scale);
            assert_int_equal(rows[s], ROWS);
            near(found[s][0], (7 + s) / (scale * scale), 1e-15);
            near(found[s][1], (70 + s) / (scale * scale), 1e-15);
        }
    }
    free(b);
}

/* The least variance and the largest mean^2/variance; NaN of any feature stays. */
static void test_bounds(void **state) {
    (void)state;
    board *b = malloc(sizeof *b);
    assert_non_null(b);
    fill_board(b);
    int64_t rows[1] = {ROWS};
    double to[7 * 3], found[4], least = INFINITY, largest = 0;
    for (int c = 0; c < 3; c++) {
        double want[6];
        reference(&b->v[0], c, want);
        least = fmin(least, want[1]), largest = fmax(largest, want[0] * want[0] / want[1]);
    }
    sr_read_device_sums(b->place, 1, b->buffer, 1, rows, to, found);
    near(found[2], least, 1e-13), near(found[3], largest, 1e-13);
    for (int c = 0; c < 3; c++) {
        fill_board(b);
        ((double *)b->buffer)[c] = NAN;
        sr_read_device_sums(b->place, 1, b->buffer, 1, rows, to, found);
        assert_true(isnan(found[2]) && isnan(found[3]) && isnan(to[c]));
    }
    free(b);
}

/* No rows: the sums are 0, without a division by zero. */
static void test_no_rows(void **state) {
    (void)state;
    char buffer[8 * (5 * STRIDE + 3)] = {0};
    const sr_device_place place = {sizeof place, 3, 0, STRIDE, -1, 0, -1, 8 * 5 * STRIDE, 1e-5};
    int64_t rows[1] = {-1};
    double to[7 * 3], found[4];
    sr_read_device_sums(&place, 1, buffer, 1, rows, to, found);
    assert_int_equal(rows[0], 0);
    for (int i = 0; i < 18; i++) assert_true(to[i] == 0);
}

static void test_moves(void **state) {
    (void)state;
    const double batch[] = {1, 2, 4}, before[] = {0.5, 1, 5}, after[] = {0.75, 1.5, 4};
    const double *const batches[] = {batch, batch + 2}, *const befores[] = {before, before + 2},
                        *const afters[] = {after, after + 2};
    const int64_t width[] = {2, 1};
    double moved[2], apart[2];
    sr_sum_moves(2, width, batches, befores, afters, moved, apart);
    near(moved[0], 0.25 * 0.5 + 0.5 * 1, 1e-15), near(apart[0], 0.25 + 1, 1e-15);
    near(moved[1], 1, 1e-15), near(apart[1], 1, 1e-15);
}

/* A pass of a node, with eps 0.25, and one of moments; the loss was multiplied by 2. */
static void test_join_passes(void **state) {
    (void)state;
    const double node[6] = {3, 2, 8, 6, 20, 5};                        /* 1/s = 2: s^2 = 0.25 */
    const double sums[12] = {1, -4, 0.5, 2, 2, 4, 6, 8, 16, 24, 7, 9}; /* two features */
    const sr_pass_block passes[2] = {SR_INIT(sr_pass_block, 1, node, 0.25 - 1e-3),
                                     SR_INIT(sr_pass_block, 2, sums, -1)};
    double to[7 * 3], bounds[4];
    sr_join_passes(passes, 2, 2, to, bounds);
    const double want[7][3] = {{3, 1, -4}, {1e-3, 0.5, 2}, {9 + 1e-3, 1.5, 18},
                               {4, 1, 2},  {1.5, 3, 4},    {5, 4, 6},
                               {5, 7, 9}};
    for (int i = 0; i < 21; i++) near(to[i], want[i / 3][i % 3], 1e-14);
    near(bounds[0], 1e-3, 1e-14), near(bounds[1], 9e3, 1e-11);
    near(bounds[2], 0.5, 1e-14), near(bounds[3], 8, 1e-14);
}

static void test_read_vectors(void **state) {
    (void)state;
    const float a[2] = {1.5F, -0.0F}, b[3] = {3e38F, 1e-40F, 5};
    const void *from[2] = {a, b};
    const int64_t n[2] = {2, 3};
    double to[6] = {[5] = 7};
    sr_read_vectors(from, n, 2, SR_FLOAT32, to);
    for (int i = 0; i < 5; i++) assert_true(to[i] == (double)(i < 2 ? a[i] : b[i - 2]));
    assert_true(to[5] == 7);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_join_passes), cmocka_unit_test(test_read_vectors),
        cmocka_unit_test(test_passes),      cmocka_unit_test(test_bounds),
        cmocka_unit_test(test_no_rows),     cmocka_unit_test(test_moves),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
