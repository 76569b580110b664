/* test_bare_site.c -- hooks on the rows of one site, valid and padded: which rows count, and which
 * site is first with non-finite numbers. Also the running position and the final pass. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "bare_site.h"
#include "statrec/runfile.h"
#include "testing/check.h"

enum { VALID_ROW = 4 };

static void one_pass(bare *b, int64_t step) {
    int64_t one = 1;
    bool add;
    norm_rows r;
    sr_begin_step(b->record.recorder, step);
    tensor *out = bare_forward(b, NORM_TRAIN, &r), *loss = tape_tensor(b->t, 1, &one);
    assert_non_null(loss);
    loss->wants_grad = true;
    memcpy(tape_grad(b->t, out, &add), b->dy, sizeof b->dy);
    tape_backward(b->t, loss, 1);
    if (tape_failure(b->t)) fail_msg("%s", tape_failure(b->t)->text);
    sr_end_step(b->record.recorder, &(sr_step){.size = sizeof(sr_step), .update = step});
}

/* -- not finite */

/* One number of x or dy is NaN or infinite. Checks that `want`, or nothing, is reported once. */
static void check_named(const char *norm, bool gradient, int row, int feature, real value,
                        bool look, const char *want) {
    bare b;
    const char *what = "";
    bare_open(&b, norm, false, 0);
    (gradient ? b.dy : b.x)[row * D + feature] = value;
    hooks_look_at_rows(b.record.hooks, look);
    one_pass(&b, 1);
    const char *site = hooks_nonfinite(b.record.hooks, &what);
    if ((site != NULL) != (want != NULL) || (want && strcmp(what, want) != 0))
        fail_msg("%s, %s[%d][%d] = %g: %s of %s", norm, gradient ? "dy" : "x", row, feature,
                 (double)value, what, site ? site : "no site");
    assert_null(hooks_nonfinite(b.record.hooks, &what));
    bare_close(&b);
}

static void every_valid_number(void **state) {
    (void)state;
    static const char *const norms[] = {"bn", "ln", "none"};
    for (int n = 0; n < 3; n++)
        for (int k = 0; k < D; k += D - 1) {
            check_named(norms[n], false, VALID_ROW, k, (real)NAN, true, "input");
            check_named(norms[n], false, ROWS - 1, k, (real)-INFINITY, true, "input");
            check_named(norms[n], true, VALID_ROW, k, (real)NAN, true, "gradient");
            check_named(norms[n], true, ROWS - 1, k, (real)INFINITY, true, "gradient");
        }
}

static void no_padded_number(void **state) {
    (void)state;
    static const char *const norms[] = {"bn", "ln", "none"};
    for (int n = 0; n < 3; n++)
        for (int gradient = 0; gradient < 2; gradient++)
            check_named(norms[n], gradient, PADDED_ROW, 2, (real)NAN, true, NULL);
}

/* Without a check of the rows, statistics are checked: ln sums the gradient times its xhat. */
static void statistics_alone(void **state) {
    (void)state;
    check_named("bn", false, VALID_ROW, 2, (real)NAN, false, "input");
    check_named("ln", false, VALID_ROW, 2, (real)NAN, false, "gradient");
    check_named("ln", true, VALID_ROW, 2, (real)NAN, false, "gradient");
    check_named("none", false, VALID_ROW, 2, (real)NAN, false, NULL);
}

/* -- rows */

static double scalar(const sr_runfile *f, const char *name, int64_t row) {
    sr_failure why = {0};
    float value;
    check_ok(sr_run_scalar(f, name, 0, row, 1, &value, &why), &why);
    return (double)value;
}

/* Rows without samples are samples themselves. A batch without valid rows is a step without rows.
 * No number in it counts as bad, and the running position does not move. */
static void rows_that_count(void **state) {
    (void)state;
    bare b;
    const char *what;
    float position[3][D];
    sr_failure why = {0};
    bare_open(&b, "bn", false, 0);
    const double alpha = b.site.options.alpha;
    one_pass(&b, 1);
    memset(b.mask, 0, sizeof b.mask);
    one_pass(&b, 2);
    assert_null(hooks_nonfinite(b.record.hooks, &what));
    memset(b.mask, 1, sizeof b.mask);
    one_pass(&b, 3);
    for (int k = 0; k < D; k++) {
        const double want = (1 - alpha) * (1 + alpha) * (k + 1);
        check_within(hooks_position(b.record.hooks, 0)[k], want, 1e-12);
    }
    check_ok(sr_close(b.record.recorder,
                      &(sr_finish){.size = sizeof(sr_finish), .status = "complete"}, &why),
             &why);
    b.record.recorder = NULL;
    sr_runfile *f = sr_run_open(bare_path(), &why);
    assert_non_null(f);
    static const double valid[] = {ROWS - 2, 0, ROWS};
    for (int i = 0; i < 3; i++) {
        check_equals(scalar(f, "rows", i), valid[i]);
        check_equals(scalar(f, "samples", i), valid[i]);
        check_equals(scalar(f, "padded", i), ROWS - valid[i]);
    }
    check_ok(sr_run_vector(f, "position_B", 0, 0, 3, position[0], &why), &why);
    for (int k = 0; k < D; k++) {
        check_equals(position[0][k], (float)(k + 1));
        check_equals(position[2][k], (float)(k + 1));
        assert_true(isnan(position[1][k]));
    }
    sr_run_close(f);
    bare_close(&b);
}

/* -- the final pass */

/* Values for the valid rows and frozen running statistics. */
static void final_by_hand(const bare *b, const double *mu, const double *sigma2, double want[2]) {
    double n = 0, apart[2] = {0}, size = 0;
    for (int i = 0; i < ROWS; i++) n += b->mask[i];
    for (int k = 0; k < D; k++) {
        double mean = 0, square = 0;
        for (int i = 0; i < ROWS; i++) mean += b->mask[i] ? (double)b->x[i * D + k] / n : 0;
        for (int i = 0; i < ROWS; i++)
            square += b->mask[i] ? pow((double)b->x[i * D + k] - mean, 2) / n : 0;
        apart[0] += pow(mean - mu[k], 2);
        apart[1] += pow(sqrt(square) - sqrt(sigma2[k]), 2);
        size += sigma2[k];
    }
    for (int m = 0; m < 2; m++) want[m] += sqrt(apart[m] / size);
}

/* Two batches with different padded rows, and one without rows, which does not count. Training in
 * between has no effect, and the site's state is restored. */
static void final_pass(void **state) {
    (void)state;
    for (int observed = 0; observed < 2; observed++) {
        bare b;
        norm_rows r;
        sr_failure why = {0};
        double got[2], want[2] = {0};
        bare_open(&b, observed ? "ln" : "bn", false, 0);
        if (observed) check_ok(norm_site_observe_batch(&b.site, 0.5, &why), &why);
        one_pass(&b, 1);
        void *context = b.site.hook_context;
        for (int wanted = 0; wanted < 2; wanted++) {
            b.site.want_input = wanted;
            final_tid *f = final_tid_begin(&b.m, &why);
            assert_non_null(f);
            assert_false(final_tid_of(f, 0, &got[0], &got[1]));
            assert_true(isnan(got[0]) && isnan(got[1]));
            want[0] = want[1] = 0;
            for (int turn = 0; turn < 3; turn++) {
                for (int i = 0; i < ROWS; i++) b.mask[i] = turn != 1 && i != 2 + turn;
                bare_forward(&b, NORM_BATCH, &r);
                if (turn != 1)
                    final_by_hand(&b, observed ? b.site.observer->mu : b.site.state[0],
                                  observed ? b.site.observer->sigma2 : b.site.state[1], want);
                if (turn == 0) bare_forward(&b, NORM_TRAIN, &r);
            }
            assert_true(final_tid_of(f, 0, &got[0], &got[1]));
            for (int m = 0; m < 2; m++) want[m] /= 2;
            check_near_double("tid", got, want, 2, 1e-5, 0);
            final_tid_end(f);
            assert_ptr_equal(b.site.hook_context, context);
            assert_null(b.site.forward_hook);
            assert_false(b.site.hook_in_batch_mode);
            assert_int_equal(b.site.want_input, wanted);
        }
        bare_close(&b);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_valid_number), cmocka_unit_test(no_padded_number),
        cmocka_unit_test(statistics_alone), cmocka_unit_test(rows_that_count),
        cmocka_unit_test(final_pass)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
