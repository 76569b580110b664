/* test_pass_calls.c -- rejected calls of raw tensors and sums, values that the host adds, NaN
 * batches, and shapes of tensors. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "statrec/moments.h"
#include "testing/check.h"
#include "testing/pass_script.h"
#include "testing/run_builder.h"
#include "testing/sample_run.h"

static const script_case base = {.site = {.size = sizeof(sr_site),
                                          .name = "site",
                                          .family = SR_FAMILY_SIGMA,
                                          .width = SCRIPT_WIDTH,
                                          .eps = 1e-3,
                                          .alpha = 0.75},
                                 .mean = 2};

static sr_recorder *create(const char *name, const sr_site *site) {
    sr_options o = SR_OPTIONS_DEFAULT;
    o.force = true, o.overhead = 0, o.vectors_every = 1;
    sr_recorder *r = run_create(sample_path(name), o);
    assert_int_equal(sr_add_site(r, site), 0);
    return r;
}

/* -- rejected calls -------------------------------------------------------------------------- */

static void end_refused(sr_recorder *r, sr_status status, const char *part) {
    const sr_failure *why = sr_failed(r);
    if (!why) fail_msg("not refused: %s", part);
    check_failure(why, status, part);
    assert_null(strchr(why->text, '\n'));
    sr_abandon(r);
    unlink(sample_path("refused.h5.part"));
}

static void call_script(sr_recorder *r, const char *script, const script_case *c) {
    for (; *script; script += 2) script_call(r, 0, c, 1, script);
}

static void expect_refused(const char *script, sr_repeat repeat, sr_status status,
                           const char *part) {
    script_case c = base;
    c.site.repeat = repeat;
    sr_recorder *r = create("refused.h5", &c.site);
    sr_begin_step(r, 1);
    call_script(r, script, &c);
    end_refused(r, status, part);
}

static void test_order(void **state) {
    (void)state;
    for (int repeat = 0; repeat < 2; repeat++) {
        expect_refused("B0", (sr_repeat)repeat, SR_STATE, "no forward at site site in step 1");
        expect_refused("b0", (sr_repeat)repeat, SR_STATE, "sr_put_backward: no forward");
        expect_refused("F0B1", (sr_repeat)repeat, SR_STATE, "dy and x differ in shape");
        expect_refused("f0B0", (sr_repeat)repeat, SR_STATE, "the forward pass was sums");
    }
    sr_recorder *r = create("refused.h5", &base.site); /* no step; passes of the step before */
    script_call(r, 0, &base, 1, "F0");
    end_refused(r, SR_STATE, "sr_take_forward outside a step");
    r = create("refused.h5", &base.site);
    sr_begin_step(r, 1);
    script_call(r, 0, &base, 1, "F0");
    sr_end_step(r, &SR_INIT(sr_step, .update = 1));
    sr_begin_step(r, 2);
    script_call(r, 0, &base, 2, "B0");
    end_refused(r, SR_STATE, "no forward at site site in step 2");
}

static void test_tensors(void **state) {
    (void)state;
    static const float x[SCRIPT_WIDTH * 2];
    const sr_tensor good = SR_INIT(sr_tensor, x, SR_FLOAT32, 2, SCRIPT_WIDTH, 1, NULL, 0);
    for (int backward = 0; backward < 2; backward++)
        for (int i = 0; i < 7; i++) {
            sr_tensor t = good;
            sr_recorder *r = create("refused.h5", &base.site);
            sr_begin_step(r, 1);
            if (i == 0) t.data = NULL;
            if (i == 1) t.element = (sr_element)4;
            if (i == 2) t.channels--;
            if (i == 3) t.outer = -1;
            if (i == 4) t.inner = -1;
            if (i == 5) t.samples = -1;
            if (i == 6) t.element = (sr_element)-1;
            if (backward) sr_take_forward(r, 0, &good, NULL);
            backward ? sr_take_backward(r, 0, &t) : sr_take_forward(r, 0, &t, NULL);
            end_refused(r, SR_USAGE, "of width 5");
        }
    static const double sums[SCRIPT_WIDTH];
    for (int i = 0; i < 8; i++) {
        sr_forward f = SR_INIT(sr_forward, 3, 0, 0, sums, sums, sums, NULL);
        sr_backward b = SR_INIT(sr_backward, sums, sums, sums);
        sr_recorder *r = create("refused.h5", &base.site);
        sr_begin_step(r, 1);
        if (i == 0) f.rows = -1;
        if (i == 1) f.samples = -1;
        if (i == 2) f.padded = -1;
        if (i == 3) f.mean = NULL;
        if (i == 4) f.variance = NULL;
        if (i == 5) f.mean_square = NULL;
        if (i == 6) b.sum_g = NULL;
        if (i == 7) b.sum_gc = NULL;
        sr_put_forward(r, 0, &f);
        sr_put_backward(r, 0, &b);
        end_refused(r, SR_USAGE, i < 6 ? "sr_put_forward" : "sr_put_backward: no sum_g");
    }
}

/* The number of waiting passes is limited; with SR_REPEAT_LAST none waits. */
static void test_many_passes(void **state) {
    (void)state;
    enum { WAITING = 4096 };
    for (int merge = 0; merge < 2; merge++) {
        script_case c = base;
        c.site.repeat = merge ? SR_REPEAT_MERGE : SR_REPEAT_LAST;
        sr_recorder *r = create("refused.h5", &c.site);
        for (int step = 1; step <= 2; step++) { /* the second step starts with no waiting pass */
            sr_begin_step(r, step);
            for (int i = 0; i < WAITING; i++) script_call(r, 0, &c, step, "f0");
            for (int i = 0; i < WAITING; i++) script_call(r, 0, &c, step, "b0");
            check_ok(sr_end_step(r, &SR_INIT(sr_step, .update = 1)), sr_failed(r));
        }
        sr_begin_step(r, 3);
        for (int i = 0; i <= WAITING; i++) script_call(r, 0, &c, 3, "f0");
        if (merge) {
            end_refused(r, SR_STATE, "4096 forward passes without a backward pass in step 3");
            continue;
        }
        check_ok(sr_end_step(r, &SR_INIT(sr_step, .update = 1)), sr_failed(r));
        run_finish(r);
    }
}

/* -- values from the host -------------------------------------------------------------------- */

static double other(int vector, int k) {
    return 1.5 + vector + 0.25 * k;
}

static void put_own(sr_recorder *r, uint32_t vectors) {
    double value[SCRIPT_WIDTH];
    for (int v = 0; v < SR_VECTOR_COUNT; v++) {
        for (int k = 0; k < SCRIPT_WIDTH; k++) value[k] = other(v, k);
        if (vectors >> v & 1) sr_put_vector(r, 0, (sr_vector)v, value);
    }
}

/* Steps with the host's vectors, before or after the passes. */
static void run_put(const script_case *c, uint32_t vectors, bool before, script_record *to) {
    sr_recorder *r = create("put.h5", &c->site);
    for (int64_t step = 0; step < SCRIPT_STEPS; step++) {
        sr_begin_step(r, step);
        if (before) put_own(r, vectors);
        script_call(r, 0, c, step, "F0"), script_call(r, 0, c, step, "B0");
        if (!before) put_own(r, vectors);
        check_ok(sr_end_step(r, &SR_INIT(sr_step, .update = 1)), sr_failed(r));
    }
    run_finish(r);
    script_read(sample_path("put.h5"), 1, to);
}

static void expect_host(const script_record *got, uint32_t vectors) {
    for (int v = 0; v < SR_VECTOR_COUNT; v++)
        for (int i = 0; i < SCRIPT_STEPS * SCRIPT_WIDTH && vectors >> v & 1; i++)
            check_equals(got->vector[v][i], (float)other(v, i % SCRIPT_WIDTH));
}

static void test_host_wins(void **state) {
    (void)state;
    static script_record got, plain;
    const uint32_t running = 1u << SR_mu | 1u << SR_sigma2 | 1u << SR_psi2 | 1u << SR_nu;
    for (int before = 0; before < 2; before++) {
        script_case c = base;
        c.site.family = SR_FAMILY_PN;
        run_put(&c, 0, before, &plain);
        run_put(&c, running, before, &got);
        expect_host(&got, running);
        for (int i = 0; i < SCRIPT_STEPS * SCRIPT_WIDTH; i++) {
            const int k = i % SCRIPT_WIDTH;
            const double s2 = other(SR_psi2, k) + 1e-3; /* xhat by the host's psi2 */
            const double Gamma = (double)plain.vector[SR_psi2_B][i] / s2;
            check_within((double)got.vector[SR_Gamma_t][i], Gamma, 1e-5 * Gamma);
            check_equals(got.vector[SR_mu_B][i], plain.vector[SR_mu_B][i]);
        }
        const double dist = (double)got.scalar[SR_SCALAR_dist_psi2][0];
        double sum = 0;
        for (int k = 0; k < SCRIPT_WIDTH; k++)
            sum += pow((double)got.vector[SR_psi2_B][k] - other(SR_psi2, k), 2);
        check_within(dist, sqrt(sum) / SCRIPT_WIDTH, 1e-5 * dist);
        /* dx follows from nu, which is 0 in the first step or given by the host */
        check_equals(plain.scalar[SR_SCALAR_dx_norm][0], plain.scalar[SR_SCALAR_direct_norm][0]);
        check_above(got.scalar[SR_SCALAR_dx_norm][0], 1.1F * got.scalar[SR_SCALAR_direct_norm][0]);
        /* and both of them from the gain */
        c.site.family = SR_FAMILY_SIGMA;
        run_put(&c, 1u << SR_gamma, before, &got);
        run_put(&c, 0, before, &plain);
        expect_host(&got, 1u << SR_gamma);
        check_apart(got.scalar[SR_SCALAR_direct_norm][0], plain.scalar[SR_SCALAR_direct_norm][0],
                    0.1F);
        run_put(&c, 1u << SR_mu_B | 1u << SR_sum_g, before, &got);
        expect_host(&got, 1u << SR_mu_B | 1u << SR_sum_g);
    }
}

static void test_host_scalars(void **state) {
    (void)state;
    static script_record got;
    for (int before = 0; before < 2; before++) {
        sr_recorder *r = create("put.h5", &base.site);
        for (int64_t step = 0; step < SCRIPT_STEPS; step++) {
            sr_begin_step(r, step);
            if (!before) script_call(r, 0, &base, step, "F0"), script_call(r, 0, &base, step, "B0");
            sr_put_rows(r, 0, 77);
            sr_put_scalar(r, 0, SR_SCALAR_samples, 9), sr_put_scalar(r, 0, SR_SCALAR_padded, 8);
            sr_put_scalar(r, 0, SR_SCALAR_dx_norm, 7), sr_put_scalar(r, 0, SR_SCALAR_g_mu, 6);
            if (before) script_call(r, 0, &base, step, "F0"), script_call(r, 0, &base, step, "B0");
            check_ok(sr_end_step(r, &SR_INIT(sr_step, .update = 1)), sr_failed(r));
        }
        run_finish(r);
        script_read(sample_path("put.h5"), 1, &got);
        check_equals(got.scalar[SR_SCALAR_rows][1], 77);
        check_equals(got.scalar[SR_SCALAR_samples][1], 9);
        check_equals(got.scalar[SR_SCALAR_padded][1], 8);
        check_equals(got.scalar[SR_SCALAR_dx_norm][1], 7);
        check_equals(got.scalar[SR_SCALAR_g_mu][1], 6);
    }
}

/* Sums except sum g^2: only the values that need it are missing. */
static void test_without_squares(void **state) {
    (void)state;
    static script_record got;
    static const double one[SCRIPT_WIDTH] = {1, 1, 1, 1, 1};
    for (int squares = 0; squares < 2; squares++) {
        sr_recorder *r = create("put.h5", &base.site);
        for (int64_t step = 0; step < SCRIPT_STEPS; step++) {
            sr_begin_step(r, step);
            sr_put_forward(r, 0, &SR_INIT(sr_forward, 4, 2, 1, one, one, one));
            sr_put_backward(r, 0, &SR_INIT(sr_backward, one, one, squares ? one : NULL));
            sr_end_step(r, &SR_INIT(sr_step, .update = 1));
        }
        run_finish(r);
        script_read(sample_path("put.h5"), 1, &got);
        assert_true(isnan(got.scalar[SR_SCALAR_dx_norm][0]) == !squares);
        assert_true(isnan(got.scalar[SR_SCALAR_direct_norm][0]) == !squares);
        check_equals(got.vector[SR_sum_g][0], 1);
        check_equals(got.vector[SR_gamma][0], 1);
        check_equals(got.scalar[SR_SCALAR_samples][0], 2);
        check_equals(got.scalar[SR_SCALAR_padded][0], 1);
    }
}

/* -- many sites in one call ------------------------------------------------------------------- */

enum { TABLE_STRIDE = SCRIPT_WIDTH + 2 };

static void fill_table(double table[7][TABLE_STRIDE]) {
    for (int i = 0; i < 7; i++)
        for (int k = 0; k < TABLE_STRIDE; k++) table[i][k] = other(i, k);
}

static sr_pass pass_of(double table[7][TABLE_STRIDE]) {
    return SR_INIT(sr_pass, 0, true, true, 8, 2, 1, TABLE_STRIDE, table[0]);
}

static void put_one_by_one(sr_recorder *r, double table[7][TABLE_STRIDE], const sr_pass *p) {
    sr_put_forward(r, 0,
                   &SR_INIT(sr_forward, 8, 2, 1, table[0], table[1], table[2],
                            p->has_gamma ? table[6] : NULL));
    sr_put_backward(r, 0, &SR_INIT(sr_backward, table[3], table[4], p->has_gg ? table[5] : NULL));
    sr_put_vector(r, 0, SR_mu, table[5]);
    sr_put_scalar(r, 0, SR_SCALAR_g_mu, 6);
}

static void put_at_once(sr_recorder *r, double table[7][TABLE_STRIDE], const sr_pass *p) {
    const int site = 0;
    const double *const value = table[5];
    check_ok(sr_put_passes(r, p, 1), sr_failed(r));
    check_ok(sr_put_vectors(r, SR_mu, &site, &value, 1), sr_failed(r));
    check_ok(sr_put_scalars(r, SR_SCALAR_g_mu, &site, &(const double){6}, 1), sr_failed(r));
}

static void test_at_once(void **state) {
    (void)state;
    static script_record got[2];
    double table[7][TABLE_STRIDE];
    fill_table(table);
    for (int without = 0; without < 3; without++) {
        sr_pass p = pass_of(table);
        p.has_gg = without != 1, p.has_gamma = without != 2;
        for (int at_once = 0; at_once < 2; at_once++) {
            sr_recorder *r = create("put.h5", &base.site);
            for (int64_t step = 0; step < SCRIPT_STEPS; step++) {
                sr_begin_step(r, step);
                (at_once ? put_at_once : put_one_by_one)(r, table, &p);
                check_ok(sr_end_step(r, &SR_INIT(sr_step, .update = 1)), sr_failed(r));
            }
            run_finish(r);
            script_read(sample_path("put.h5"), 1, &got[at_once]);
        }
        assert_memory_equal(&got[0], &got[1], sizeof got[0]);
        check_equals(got[1].vector[SR_gamma][1], (float)(without == 2 ? 1 : table[6][1]));
    }
}

static void test_at_once_refused(void **state) {
    (void)state;
    static const char *const parts[] = {"NULL for values", "site 7 of 1", "size is not filled in",
                                        "site 7 of 1",     "site 7 of 1", "put twice"};
    double table[7][TABLE_STRIDE];
    fill_table(table);
    for (int i = 0; i < 6; i++) {
        sr_pass passes[2] = {pass_of(table), pass_of(table)};
        const int sites[2] = {0, i == 5 ? 0 : 7};
        const double *const rows[2] = {table[0], table[1]};
        sr_recorder *r = create("refused.h5", &base.site);
        sr_begin_step(r, 1);
        if (i == 0) passes[0].values = NULL;
        if (i == 1) passes[1].site = 7;
        if (i == 2) passes[1].size = 0;
        if (i < 3) assert_true(sr_put_passes(r, passes, 2) != SR_OK);
        if (i == 3) assert_true(sr_put_scalars(r, SR_SCALAR_g_mu, sites, table[0], 2) != SR_OK);
        if (i > 3) assert_true(sr_put_vectors(r, SR_mu, sites, rows, 2) != SR_OK);
        end_refused(r, i == 5 ? SR_STATE : SR_USAGE, parts[i]);
    }
    assert_int_equal(sr_put_passes(NULL, NULL, 1), SR_STATE);
}

/* A step's samples are the sum over its passes, or unknown; a pass without valid rows has none. */
static void test_samples(void **state) {
    (void)state;
    static const int64_t cases[][5] = {/* samples, padded of two passes, the sum */
                                       {3, 1, 4, 1, 7}, {3, 1, 0, 1, 0}, {0, 1, 4, 1, 0},
                                       {3, 1, 0, 0, 3}, {0, 0, 4, 1, 4}, {0, 0, 0, 0, 0}};
    static script_record got;
    static const double one[SCRIPT_WIDTH] = {1, 1, 1, 1, 1};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        sr_site site = base.site;
        site.repeat = SR_REPEAT_MERGE;
        sr_recorder *r = create("put.h5", &site);
        for (int64_t step = 0; step < SCRIPT_STEPS; step++) {
            sr_begin_step(r, step);
            for (int p = 0; p < 2; p++) {
                sr_put_forward(r, 0, &SR_INIT(sr_forward, 0, cases[i][2 * p], cases[i][2 * p + 1]));
                sr_put_backward(r, 0, &SR_INIT(sr_backward, one, one, one));
            }
            sr_end_step(r, &SR_INIT(sr_step, .update = 1));
        }
        run_finish(r);
        script_read(sample_path("put.h5"), 1, &got);
        const float samples = got.scalar[SR_SCALAR_samples][1];
        assert_true(cases[i][4] ? samples == (float)cases[i][4] : isnan(samples));
    }
}

/* -- NaN ------------------------------------------------------------------------------------- */

/* One value is NaN: its feature is lost, the others and the run are not. */
static void test_nan_batch(void **state) {
    (void)state;
    static script_record got, plain;
    float x[8 * SCRIPT_WIDTH], g[8 * SCRIPT_WIDTH];
    for (int bad = 0; bad < 2; bad++) {
        sr_recorder *r = create("nan.h5", &base.site);
        for (int i = 0; i < 8 * SCRIPT_WIDTH; i++) x[i] = sinf((float)i), g[i] = cosf((float)i);
        for (int64_t step = 0; step < SCRIPT_STEPS; step++) {
            x[2] = bad && step == 1 ? NAN : 0.5F;
            const sr_tensor t = SR_INIT(sr_tensor, x, SR_FLOAT32, 8, SCRIPT_WIDTH, 1, NULL, 0);
            const sr_tensor d = SR_INIT(sr_tensor, g, SR_FLOAT32, 8, SCRIPT_WIDTH, 1, NULL, 0);
            sr_begin_step(r, step);
            sr_take_forward(r, 0, &t, NULL), sr_take_backward(r, 0, &d);
            check_ok(sr_end_step(r, &SR_INIT(sr_step, .update = 1)), sr_failed(r));
        }
        run_finish(r);
        script_read(sample_path("nan.h5"), 1, bad ? &got : &plain);
    }
    for (int i = 0; i < SCRIPT_STEPS * SCRIPT_WIDTH; i++) {
        const bool lost = i % SCRIPT_WIDTH == 2 && i / SCRIPT_WIDTH == 1;
        assert_true(isnan(got.vector[SR_mu_B][i]) == lost);
        assert_true(isnan(got.vector[SR_sum_gx][i]) == lost);
        assert_true(lost || got.vector[SR_sum_gx][i] == plain.vector[SR_sum_gx][i]);
        assert_true(lost || got.vector[SR_sigma2_B][i] == plain.vector[SR_sigma2_B][i]);
    }
    check_equals(got.scalar[SR_SCALAR_nonfinite][0], 0);
    check_equals(got.scalar[SR_SCALAR_nonfinite][1], 4); /* three moments and sum_gx */
    check_equals(got.scalar[SR_SCALAR_nonfinite][2], 3); /* mu, sigma2, psi2 are updated */
}

/* -- shapes ---------------------------------------------------------------------------------- */

/* All numbers of rows and planes around the block sizes, at an address with only the element's
 * alignment. Values in padded rows, and around the tensor, have no effect. */
static void check_shape(int64_t outer, int64_t inner, bool masked) {
    enum { C = 3, MOST = 40 * C * 17 + 2 };
    static float x[MOST], g[MOST];
    double mean[C], variance[C], square[C], sums[3][C];
    const double center[C] = {5, 6, 7};
    uint8_t valid[40 * 17];
    for (int i = 0; i < MOST; i++) x[i] = g[i] = NAN;
    for (int64_t r = 0; r < outer * inner; r++) {
        valid[r] = !masked || r % 3 != 1;
        for (int c = 0; c < C && valid[r]; c++) {
            const int64_t at = 1 + (r / inner * C + c) * inner + r % inner;
            x[at] = (float)(c + 5 + (r % 2 ? 1 : -1)), g[at] = (float)(c + 2);
        }
    }
    const sr_tensor tx =
        SR_INIT(sr_tensor, x + 1, SR_FLOAT32, outer, C, inner, masked ? valid : NULL);
    const sr_tensor tg = SR_INIT(sr_tensor, g + 1, SR_FLOAT32, outer, C, inner);
    double n = 0, odd = 0;
    for (int64_t r = 0; r < outer * inner; r++) n += valid[r], odd += valid[r] && r % 2;
    assert_int_equal(sr_moments(&tx, mean, variance, square), (int64_t)n);
    sr_gradient_sums(&tg, &tx, center, sums[0], sums[1], sums[2]);
    for (int c = 0; c < C; c++) {
        const double off = (2 * odd - n) / n,
                     want[6] = {
                         c + 5 + off, 1 - off * off,     (c + 5) * (c + 5) + 2 * (c + 5) * off + 1,
                         n * (c + 2), (c + 2) * n * off, n * (c + 2) * (c + 2)};
        const double got[6] = {mean[c], variance[c], square[c], sums[0][c], sums[1][c], sums[2][c]};
        check_near_double("shape", got, want, 6, 1e-12, 1e-12);
    }
}

static void test_shapes(void **state) {
    (void)state;
    for (int64_t outer = 1; outer <= 40; outer++)
        for (int64_t inner = 1; inner <= 17; inner += inner > 9 ? 7 : 1)
            for (int masked = 0; masked < 2; masked++) check_shape(outer, inner, masked);
}

int main(void) {
    if (access("/dev/shm", W_OK) == 0) setenv("TMPDIR", "/dev/shm", 0);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_order),           cmocka_unit_test(test_tensors),
        cmocka_unit_test(test_many_passes),     cmocka_unit_test(test_host_wins),
        cmocka_unit_test(test_host_scalars),    cmocka_unit_test(test_without_squares),
        cmocka_unit_test(test_nan_batch),       cmocka_unit_test(test_samples),
        cmocka_unit_test(test_shapes),          cmocka_unit_test(test_at_once),
        cmocka_unit_test(test_at_once_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
