/* test_dx_norms.c -- a hook gets the norms of dx and of its direct part. They are compared with
 * norms of the dx and dy that it gets, element by element. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "layer.h"

enum { ROWS = 700, WIDTH = 28, WIDEST = 72 };

static int64_t width = WIDTH; /* row width */

/* Values of the last backward pass. */
static double dx_norm, direct_norm, bn_norm, bn_direct, row_norms, squares;

static bool takes_part(const norm_view *o, int64_t i) {
    const norm_rows *r = o->call->rows;
    return !r->mask || r->mask[i] || !strcmp(o->site->method->name, "pn-released");
}

static void see(void *context, const norm_view *o) {
    (void)context;
    squares = 0;
    for (int64_t i = 0; i < o->call->rows->rows; i++)
        for (int64_t k = 0; takes_part(o, i) && k < width; k++)
            squares += (double)o->dx[i * width + k] * (double)o->dx[i * width + k];
    dx_norm = o->call->scalar[NORM_SCALAR_dx_norm];
    direct_norm = o->call->scalar[NORM_SCALAR_direct_norm];
    bn_norm = o->call->scalar[NORM_SCALAR_dx_norm_bn];
    bn_direct = o->call->scalar[NORM_SCALAR_direct_norm_bn];
    row_norms = o->call->scalar[NORM_SCALAR_g_sigma2_rowmean];
}

static void near(const char *what, double got, double want) {
    if (!(fabs(got - want) <= 1e-6 * fabs(want)))
        fail_msg("%s: got %.12g want %.12g", what, got, want);
}

typedef struct data {
    real *x, *dy;
    uint8_t *mask;
} data;

static data make_data(bool padded) {
    data d = {layer_numbers(ROWS, width, 1, 2, 1), layer_numbers(ROWS, width, 2, 0.3, 1), NULL};
    if (padded) d.mask = malloc(ROWS);
    for (int i = 0; padded && i < ROWS; i++) d.mask[i] = i % 5 != 2;
    return d;
}

static void free_data(data *d) {
    free(d->x), free(d->dy), free(d->mask);
}

/* Runs two training passes, so that running statistics differ from their initial values; fills
 * see's results. observe: also observes batch statistics. */
static void pass(const char *method, int64_t groups, const data *d, bool observe, int threads,
                 real *dx) {
    layer l;
    sr_failure why = {0};
    tape *t = tape_create(threads, &why);
    assert_non_null(t);
    layer_make(&l, norm_find(method), width, groups);
    if (observe) check_ok(norm_site_observe_batch(&l.site, 0.9, &why), &why);
    l.site.backward_hook = see;
    l.site.want_input = l.site.want_rows = true;
    for (int i = 0; i < 2; i++) layer_pass(&l, t, d->x, d->dy, ROWS, d->mask, NORM_TRAIN, NULL, dx);
    layer_free(&l);
    tape_free(t);
}

static void every_method_tells_the_norm_of_its_dx(void **state) {
    (void)state;
    for (int padded = 0; padded < 2; padded++) {
        data d = make_data(padded);
        for (int i = 0; norm_at(i); i++)
            for (int64_t groups = 0; groups < 8; groups += 4) {
                pass(norm_at(i)->name, groups, &d, false, 2, NULL);
                near(norm_at(i)->name, dx_norm, sqrt(squares));
                assert_true(isnan(bn_norm) && isnan(bn_direct));
            }
        free_data(&d);
    }
}

static void threads_change_nothing(void **state) {
    (void)state;
    data d = make_data(true);
    for (int i = 0; norm_at(i); i++) {
        pass(norm_at(i)->name, 0, &d, false, 1, NULL);
        const double one[] = {dx_norm, direct_norm};
        pass(norm_at(i)->name, 0, &d, false, 3, NULL);
        check_equals(one[0], dx_norm);
        check_equals(one[1], direct_norm);
    }
    free_data(&d);
}

/* gamma/s g with this method's divisor; gain: the gain of layer_make's layers. */
static double direct_by_hand(const char *method, const data *d, const real *gain) {
    const double eps = 1e-5;
    double n = 0, sum[WIDEST] = {0}, second[WIDEST] = {0}, total = 0;
    bool rows = !strcmp(method, "ln"), centred = strcmp(method, "pnv");
    for (int64_t i = 0; i < ROWS; i++) {
        if (d->mask && !d->mask[i]) continue;
        n++;
        for (int k = 0; k < width; k++) sum[k] += (double)d->x[i * width + k];
    }
    for (int64_t i = 0; i < ROWS; i++)
        for (int k = 0; k < width && !(d->mask && !d->mask[i]); k++)
            second[k] += pow((double)d->x[i * width + k] - (centred ? sum[k] / n : 0), 2) / n;
    for (int64_t i = 0; i < ROWS; i++) {
        if (d->mask && !d->mask[i]) continue;
        double mean = 0, variance = 0;
        for (int k = 0; k < width; k++) mean += (double)d->x[i * width + k] / (double)width;
        for (int k = 0; k < width; k++)
            variance += pow((double)d->x[i * width + k] - mean, 2) / (double)width;
        for (int k = 0; k < width; k++)
            total += pow((double)gain[k] * (double)d->dy[i * width + k], 2) /
                     ((rows ? variance : second[k]) + eps);
    }
    return sqrt(total);
}

static void the_direct_part_by_hand(void **state) {
    (void)state;
    static const char *const method[] = {"bn", "rbn", "pnv", "ln"};
    layer l;
    layer_make(&l, norm_find("bn"), width, 0);
    for (int padded = 0; padded < 2; padded++) {
        data d = make_data(padded);
        for (int i = 0; i < 4; i++) {
            pass(method[i], 0, &d, false, 2, NULL);
            near(method[i], direct_norm, direct_by_hand(method[i], &d, l.site.gamma->value));
        }
        pass("none", 0, &d, false, 2, NULL);
        near("none", direct_norm, dx_norm);
        free_data(&d);
    }
    layer_free(&l);
}

/* 1/(n d) sum over rows of ||gamma/s (sum_gx/n) xhat||, for bn. */
static double row_norms_by_hand(const data *d, const real *gain) {
    double n = 0, mean[WIDEST] = {0}, variance[WIDEST] = {0}, slope[WIDEST] = {0}, total = 0;
    for (int i = 0; i < ROWS; i++) n += !d->mask || d->mask[i];
    for (int k = 0; k < width; k++) {
        for (int i = 0; i < ROWS; i++)
            if (!d->mask || d->mask[i]) mean[k] += (double)d->x[i * width + k] / n;
        for (int i = 0; i < ROWS; i++)
            if (!d->mask || d->mask[i])
                variance[k] += pow((double)d->x[i * width + k] - mean[k], 2) / n;
        for (int i = 0; i < ROWS; i++)
            if (!d->mask || d->mask[i])
                slope[k] +=
                    (double)d->dy[i * width + k] * ((double)d->x[i * width + k] - mean[k]) / n;
        slope[k] *= (double)gain[k] / pow(variance[k] + 1e-5, 1.5);
    }
    for (int i = 0; i < ROWS; i++) {
        double square = 0;
        for (int k = 0; k < width; k++)
            square += pow(slope[k] * ((double)d->x[i * width + k] - mean[k]), 2);
        if (!d->mask || d->mask[i]) total += sqrt(square);
    }
    return total / n / (double)width;
}

/* 700 rows, whose last chunk is no multiple of eight, or 560, whose last chunk is. Rows have one
 * column tile or several; the last tile is full, half or followed by single columns. */
static void norms_of_bn_by_hand(void **state) {
    (void)state;
    static const int64_t widths[] = {5, 8, 13, 16, 24, 28, 32, 40, 64, WIDEST};
    for (size_t i = 0; i < sizeof widths / sizeof *widths; i++) {
        layer l;
        width = widths[i];
        layer_make(&l, norm_find("bn"), width, 0);
        for (int padded = 0; padded < 2; padded++) {
            data d = make_data(padded);
            pass("bn", 0, &d, false, 2, NULL);
            near("g_sigma2_rowmean", row_norms, row_norms_by_hand(&d, l.site.gamma->value));
            near("dx_norm", dx_norm, sqrt(squares));
            near("direct_norm", direct_norm, direct_by_hand("bn", &d, l.site.gamma->value));
            free_data(&d);
        }
        layer_free(&l);
    }
    width = WIDTH;
}

/* The observer's norms of bn equal the norms at a bn site with this gain. */
static void an_observed_site_tells_bn_s(void **state) {
    (void)state;
    static const char *const method[] = {"ln", "pnv", "pn"};
    for (int padded = 0; padded < 2; padded++) {
        data d = make_data(padded);
        pass("bn", 0, &d, false, 2, NULL);
        const double want[] = {dx_norm, direct_norm};
        for (int i = 0; i < 3; i++) {
            pass(method[i], 0, &d, true, 2, NULL);
            near(method[i], dx_norm, sqrt(squares));
            near("dx_norm_bn", bn_norm, want[0]);
            near("direct_norm_bn", bn_direct, want[1]);
        }
        pass("rbn", 0, &d, true, 2, NULL); /* uses its own statistics */
        assert_true(isnan(bn_norm) && isnan(bn_direct));
        free_data(&d);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_method_tells_the_norm_of_its_dx),
        cmocka_unit_test(threads_change_nothing), cmocka_unit_test(the_direct_part_by_hand),
        cmocka_unit_test(norms_of_bn_by_hand), cmocka_unit_test(an_observed_site_tells_bn_s)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
