/* test_final_pairs.c -- pairs of a site's input and output in the final pass against the normalization by
 * hand, which entries they are of, and what else the pass finds. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../src/observe/final_pairs.h"
#include "../check.h"
#include "bare_site.h"
#include "statrec/runfile.h"

enum { VALID = ROWS - 2, PAIRS = 4800, NO_GAIN = 2 };

/* A gain and a bias that are no 1 and 0. */
static void open_bare(bare *b, const char *norm) {
    bare_open(b, norm, true, PAIRS);
    for (int k = 0; b->site.gamma && k < D; k++)
        b->site.gamma->value[k] = (real)(k == NO_GAIN ? 0 : 0.5 + k);
    for (int k = 0; b->site.beta && k < D; k++) b->site.beta->value[k] = (real)(1 - 0.75 * k);
}

static void forward(bare *b) {
    norm_rows r;
    bare_forward(b, NORM_BATCH, &r);
}

typedef struct found {
    float x[PAIRS], y[PAIRS];
    int32_t feature[PAIRS];
    double tid[SR_FINAL_COUNT];
} found;

/* Ends the pass over `batches` batches; closes everything. */
static void finish(bare *b, final_tid *tid, final_pairs *f, int64_t batches, found *got) {
    sr_failure why = {0};
    const sr_finish complete = SR_INIT(sr_finish, .status = "complete");
    check_ok(run_record_final(&b->record, tid, f, batches, &why), &why);
    final_pairs_end(f);
    final_tid_end(tid);
    assert_null(b->site.forward_watcher);
    assert_false(b->site.watch_frozen || b->site.want_input);
    check_ok(sr_close(b->record.recorder, &complete, &why), &why);
    b->record.recorder = NULL;
    sr_runfile *r = sr_run_open(bare_path(), &why);
    double *const value[SR_FINAL_COUNT] = {&got->tid[0], &got->tid[1]};
    assert_non_null(r);
    assert_int_equal(sr_run_get_info(r)->pairs, PAIRS);
    check_ok(sr_run_pairs(r, 0, got->x, got->y, got->feature, &why), &why);
    check_ok(sr_run_final(r, &batches, value, &why), &why);
    sr_run_close(r);
    bare_close(b);
}

/* A pass of one batch. */
static void one_pass(bare *b, uint64_t seed, bool pairs, found *got) {
    sr_failure why = {0};
    final_pairs *f;
    final_tid *tid = final_tid_begin(&b->m, &why);
    check_ok(final_pairs_begin(&b->record, pairs ? PAIRS : 0, seed, &f, &why), &why);
    assert_true((f != NULL) == pairs);
    forward(b);
    finish(b, tid, f, 1, got);
}

/* Number of the valid entry of this feature and value, or -1. */
static int entry_of(const bare *b, int32_t feature, float x) {
    for (int i = 0; i < ROWS; i++)
        if (b->mask[i] && (float)b->x[i * D + feature] == x) return i * D + feature;
    return -1;
}

/* -- by hand --------------------------------------------------------------------------------- */

static double normalised(const bare *b, int entry, bool by_row, double eps) {
    double sum = 0, square = 0, n = 0;
    for (int i = 0; i < ROWS * D; i++) {
        if (by_row ? i / D != entry / D : i % D != entry % D || !b->mask[i / D]) continue;
        sum += (double)b->x[i], n++;
    }
    for (int i = 0; i < ROWS * D; i++) {
        if (by_row ? i / D != entry / D : i % D != entry % D || !b->mask[i / D]) continue;
        square += pow((double)b->x[i] - sum / n, 2);
    }
    return ((double)b->x[entry] - sum / n) / sqrt(square / n + eps);
}

static double want_ln(const bare *b, int entry) {
    return normalised(b, entry, true, 1e-5);
}

static double want_bn(const bare *b, int entry) {
    return normalised(b, entry, false, 1e-5);
}

static double want_dyt(const bare *b, int entry) {
    return tanh((double)b->site.own[0]->value[0] * (double)b->x[entry]);
}

static double want_none(const bare *b, int entry) {
    return (double)b->x[entry];
}

static void every_pair(void **state) {
    (void)state;
    static const struct {
        const char *norm;
        double (*want)(const bare *b, int entry);
    } cases[] = {{"ln", want_ln}, {"bn", want_bn}, {"dyt", want_dyt}, {"none", want_none}};
    static found got;
    for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
        bare b;
        double want[ROWS * D];
        open_bare(&b, cases[c].norm);
        const bool gain = b.site.gamma != NULL;
        b.site.options.eps = 1e-5;
        for (int i = 0; i < ROWS * D; i++) want[i] = cases[c].want(&b, i);
        one_pass(&b, 1, true, &got);
        for (int i = 0; i < PAIRS; i++) {
            const int entry = entry_of(&b, got.feature[i], got.x[i]);
            if (entry < 0) fail_msg("%s: pair %d is no valid entry", cases[c].norm, i);
            if (gain && got.feature[i] == NO_GAIN)
                assert_true(isnan(got.y[i]));
            else if (!(fabs((double)got.y[i] - want[entry]) < 3e-6))
                fail_msg("%s: %.9g at entry %d, not %.9g", cases[c].norm, (double)got.y[i], entry,
                         want[entry]);
        }
    }
}

/* Every valid entry as often as another: 100 times of 4800, with a deviation of 10. */
static void even_draws(void **state) {
    (void)state;
    static found got, again;
    int count[ROWS * D] = {0}, same = 0;
    bare b;
    open_bare(&b, "ln");
    one_pass(&b, 1, true, &got);
    for (int i = 0; i < PAIRS; i++) count[entry_of(&b, got.feature[i], got.x[i])]++;
    for (int i = 0; i < ROWS * D; i++)
        assert_in_range(count[i], b.mask[i / D] ? 60 : 0, b.mask[i / D] ? 140 : 0);
    open_bare(&b, "ln");
    one_pass(&b, 1, true, &again);
    assert_memory_equal(got.x, again.x, sizeof got.x);
    assert_memory_equal(got.feature, again.feature, sizeof got.feature);
    open_bare(&b, "ln");
    one_pass(&b, 2, true, &again);
    for (int i = 0; i < PAIRS; i++) same += got.x[i] == again.x[i];
    assert_in_range(same, 0, PAIRS / 20);
}

/* A batch without a valid row is none, and behind the first one there is nothing to look at. */
static void first_batch(void **state) {
    (void)state;
    static found got;
    bare b;
    sr_failure why = {0};
    final_pairs *f;
    open_bare(&b, "ln");
    final_tid *tid = final_tid_begin(&b.m, &why);
    check_ok(final_pairs_begin(&b.record, PAIRS, 1, &f, &why), &why);
    memset(b.mask, 0, sizeof b.mask);
    forward(&b);
    for (int i = 0; i < ROWS; i++) b.mask[i] = i > 1;
    forward(&b);
    bare first = b;
    for (int i = 0; i < ROWS * D; i++) b.x[i] += 100;
    forward(&b);
    finish(&b, tid, f, 3, &got);
    for (int i = 0; i < PAIRS; i++) assert_true(entry_of(&first, got.feature[i], got.x[i]) >= 0);
}

/* The discrepancy of the same pass is the same with and without pairs. */
static void beside_discrepancy(void **state) {
    (void)state;
    static found with, without;
    bare b;
    open_bare(&b, "bn");
    one_pass(&b, 1, true, &with);
    open_bare(&b, "bn");
    one_pass(&b, 1, false, &without);
    assert_true(without.tid[0] > 0 && without.tid[1] > 0);
    assert_memory_equal(with.tid, without.tid, sizeof with.tid);
    for (int i = 0; i < PAIRS; i++)
        assert_true(without.feature[i] == -1 && isnan(without.x[i]) && isnan(without.y[i]));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_pair),
        cmocka_unit_test(even_draws),
        cmocka_unit_test(first_batch),
        cmocka_unit_test(beside_discrepancy),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
