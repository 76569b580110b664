/* test_failing_rows.c -- each kind of row is written while each extension and each write of a
 * dataset fails in turn. The recording ends with a reason, and the file's rows are right. */
#define _GNU_SOURCE 1 /* RTLD_NEXT */
#include <math.h>

#include "copied_run.h"
#include "testing/failing_deeds.h"
#include "testing/run_builder.h"
#include "testing/sample_run.h"

enum { SITES = 2, WIDTH = 2, ROWS = 4, STEPS = 3, EVALS = 18, PAIRS = 2 }; /* 16 are buffered */

static void put_site(sr_recorder *r, int site, int64_t step) {
    float x[ROWS * WIDTH], dy[ROWS * WIDTH];
    const double descending[WIDTH] = {(double)step + 1, (double)step};
    const double *const spectrum[SR_SPECTRUM_COUNT] = {descending, descending};
    for (int i = 0; i < ROWS * WIDTH; i++)
        x[i] = (float)(site + sin((double)(step + i))), dy[i] = (float)cos((double)(step * i));
    const sr_tensor forward = SR_INIT(sr_tensor, x, SR_FLOAT32, ROWS, WIDTH, 1, NULL, 0);
    const sr_tensor backward = SR_INIT(sr_tensor, dy, SR_FLOAT32, ROWS, WIDTH, 1, NULL, 0);
    sr_take_forward(r, site, &forward, NULL);
    sr_take_backward(r, site, &backward);
    sr_put_spectrum(r, site, ROWS, spectrum);
}

/* Rows are flushed inside the second step. */
static void put_steps(sr_recorder *r, const int id[2]) {
    for (int64_t step = 1; step <= STEPS; step++) {
        sr_begin_step(r, step);
        for (int i = 0; i < SITES; i++) put_site(r, i, step);
        sr_put_scalar(r, 0, id[0], (double)step);
        sr_put_step_scalar(r, id[1], 2 * (double)step);
        if (step == 2) sr_flush_rows(r);
        sr_end_step(r, &SR_INIT(sr_step, .update = step, .tokens = 10 * step));
    }
}

static void put_rest(sr_recorder *r) {
    const double singular[2] = {2, 1}, tid[SITES] = {0.5, 0.25};
    const double *const final[SR_FINAL_COUNT] = {tid, tid};
    const float x[PAIRS] = {1, 2}, y[PAIRS] = {3, 4};
    const int32_t feature[PAIRS] = {0, 1};
    for (int i = 0; i < EVALS; i++) {
        sr_begin_eval(r, STEPS + i, i);
        sr_put_metric(r, "m", i);
        sr_end_eval(r);
    }
    sr_put_singular_values(r, "e", STEPS, singular);
    for (int i = 0; i < SITES; i++) sr_put_pairs(r, i, x, y, feature);
    sr_put_final(r, 7, final);
    sr_flush(r);
}

static sr_status record(sr_failure *why) {
    sr_options o = run_options();
    int id[2];
    o.overhead = 0, o.flush_steps = 1000, o.flush_seconds = 1000, o.sync = SR_SYNC_NONE;
    o.vectors_every = 1, o.planned_steps = STEPS, o.spectra = o.final = true, o.pairs = PAIRS;
    sr_recorder *r = sr_create(sample_path("x.h5"), &o, why);
    if (!r) return why->status;
    sr_add_site(
        r, &SR_INIT(sr_site, .name = "a", .family = SR_FAMILY_SIGMA, .width = WIDTH, .alpha = 0.9));
    sr_add_site(
        r, &SR_INIT(sr_site, .name = "b", .family = SR_FAMILY_PSI, .width = WIDTH, .alpha = 0.5));
    sr_add_metric(r, "m", "1", "a metric", SR_BETTER_MORE);
    sr_add_embedding(r, "e", 3, 2);
    id[0] = sr_declare_scalar(r, "own", "1", "of a site", SR_PER_SITE);
    id[1] = sr_declare_scalar(r, "own too", "1", "of a step", SR_PER_STEP);
    put_steps(r, id);
    put_rest(r);
    return sr_close(r, &run_complete, why);
}

/* -- content of the file --------------------------------------------------------------------- */

static void check_rows(const sr_runfile *f, const char *after) {
    const sr_run_info *info = sr_run_get_info(f);
    sr_failure why = {0};
    float own[STEPS];
    double real[STEPS], metric[EVALS];
    int64_t whole[STEPS];
    bool same = info->steps <= STEPS && info->evals <= EVALS;
    if (!same) complain(after, "%lld steps", (long long)info->steps);
    if (sr_run_step_ints(f, "tokens", 0, info->steps, whole, &why) != SR_OK ||
        sr_run_step_reals(f, "own too", 0, info->steps, real, &why) != SR_OK ||
        sr_run_scalar(f, "own", 0, 0, info->steps, own, &why) != SR_OK ||
        sr_run_eval(f, "m", 0, info->evals, metric, &why) != SR_OK)
        complain(after, "%s", why.text);
    for (int i = 0; i < info->steps; i++)
        same = same && whole[i] == 10 * (i + 1) && real[i] == 2.0 * (i + 1) && own[i] == i + 1;
    for (int i = 0; i < info->evals; i++) same = same && metric[i] == i;
    if (!same) complain(after, "other values");
}

static void check_end(const sr_runfile *f, const char *after) {
    const sr_run_info *info = sr_run_get_info(f);
    double tid[SITES], *const final[SR_FINAL_COUNT] = {tid, tid};
    int64_t batches = -1;
    sr_failure why = {0};
    sr_run_final(f, &batches, final, &why);
    if (info->steps != STEPS || info->evals != EVALS || info->spectra != STEPS || batches != 7)
        complain(after, "%lld steps, %lld spectra, %lld batches", (long long)info->steps,
                 (long long)info->spectra, (long long)batches);
    if (sr_run_check(sample_path("x.h5"), &why) != SR_OK) complain(after, "%s", why.text);
    copied_same_datasets("want.h5", "x.h5", "state steps/seconds");
}

static void look(const char *after, sr_status status) {
    sr_failure why = {0};
    sr_runfile *f = sr_run_open(sample_path("x.h5"), &why);
    if (!f && status == SR_OK) complain(after, "%s", why.text);
    if (!f) return;
    check_rows(f, after);
    if (status == SR_OK) check_end(f, after);
    sr_run_close(f);
}

static void prepare(void) {
    unlink(sample_path("x.h5")), unlink(sample_path("x.h5.part"));
}

static const deed recording = {"record", record, look, prepare, "x.h5", true};

static void fail_calls_of(const char *function) {
    failing_only = function;
    deed_fail_all(&recording, FAILING_HDF5);
    failing_only = NULL;
}

static void test_extensions(void **state) {
    (void)state;
    fail_calls_of("H5Dset_extent");
}

static void test_writes(void **state) {
    (void)state;
    fail_calls_of("H5Dwrite");
}

/* The lock and the reservation of space use the file's descriptor. */
static void test_descriptors(void **state) {
    (void)state;
    fail_calls_of("H5Fget_vfd_handle");
}

static int record_whole(void **state) {
    (void)state;
    sr_failure why = {0};
    check_ok(record(&why), &why);
    assert_int_equal(rename(sample_path("x.h5"), sample_path("want.h5")), 0);
    return 0;
}

int main(void) {
    if (access("/dev/shm", W_OK) == 0) setenv("TMPDIR", "/dev/shm", 0);
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_extensions),
                                       cmocka_unit_test(test_writes),
                                       cmocka_unit_test(test_descriptors)};
    return cmocka_run_group_tests(tests, record_whole, NULL);
}
