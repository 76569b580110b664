/* test_final_pairs.c -- pairs of a site's input and output in the final pass against the
 * normalization by hand. Also the entries that they come from, and the pass's other results. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bare_site.h"
#include "observe/final_pairs.h"
#include "statrec/runfile.h"
#include "testing/check.h"
#include "thread_ranks.h"

enum { VALID = ROWS - 2, PAIRS = 4800, NO_GAIN = 2 };

/* A gain and a bias other than 1 and 0. */
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

static sr_status exchange(void *process, const run_exchange *x, sr_failure *why) {
    return final_pairs_exchange(process, x, why);
}

/* Ends the final pass after the passes of pairs f and of the discrepancy, `batches` batches; closes
 * everything. */
static void finish(bare *b, final_tid *tid, final_pairs *f, int64_t batches, found *got) {
    sr_failure why = {0};
    const sr_finish complete = SR_INIT(sr_finish, .status = "complete");
    check_ok(run_record_final(&b->record, tid, f, batches, &why), &why);
    final_pairs_end(f);
    final_tid_end(tid);
    assert_null(b->site.forward_hook);
    assert_false(b->site.hook_in_batch_mode || b->site.want_input);
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

static final_pairs *begin(bare *b, uint64_t seed, bool pairs) {
    sr_failure why = {0};
    final_pairs *f;
    check_ok(final_pairs_begin(&b->record, pairs ? PAIRS : 0, seed, &f, &why), &why);
    assert_true((f != NULL) == pairs && final_pairs_wanted(f) == pairs);
    return f;
}

/* Ends the passes of pairs, then runs the discrepancy's pass over one batch. */
static void end(bare *b, final_pairs *f, found *got) {
    sr_failure why = {0};
    thread_ranks_call(1, (const int[]){0, 1}, exchange, (void *const[]){f});
    assert_null(b->site.forward_hook);
    final_tid *tid = final_tid_begin(&b->m, &why);
    forward(b);
    finish(b, tid, f, 1, got);
}

/* Both passes over one batch. */
static void one_pass(bare *b, uint64_t seed, bool pairs, found *got) {
    final_pairs *f = begin(b, seed, pairs);
    forward(b);
    assert_false(final_pairs_wanted(f));
    end(b, f, got);
}

/* Returns the number of the valid entry with this feature and value, or -1. */
static int entry_of(const bare *b, int32_t feature, float x) {
    for (int i = 0; i < ROWS; i++)
        if (b->mask[i] && (float)b->x[i * D + feature] == x) return i * D + feature;
    return -1;
}

/* -- by hand --------------------------------------------------------------------------------- */

static double normalized(const bare *b, int entry, bool by_row, double eps) {
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
    return normalized(b, entry, true, 1e-5);
}

static double want_bn(const bare *b, int entry) {
    return normalized(b, entry, false, 1e-5);
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

/* Each valid entry is equally likely: 100 of 4800 draws, with a standard deviation of 10. */
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

/* A batch without a valid row does not count; after the first batch no more is needed. */
static void first_batch(void **state) {
    (void)state;
    static found got;
    bare b;
    open_bare(&b, "ln");
    final_pairs *f = begin(&b, 1, true);
    memset(b.mask, 0, sizeof b.mask);
    forward(&b);
    assert_true(final_pairs_wanted(f));
    for (int i = 0; i < ROWS; i++) b.mask[i] = i > 1;
    forward(&b);
    bare first = b;
    for (int i = 0; i < ROWS * D; i++) b.x[i] += 100;
    forward(&b);
    end(&b, f, &got);
    for (int i = 0; i < PAIRS; i++) assert_true(entry_of(&first, got.feature[i], got.x[i]) >= 0);
}

/* The discrepancy is the same with and without pairs. */
static void beside_discrepancy(void **state) {
    (void)state;
    static found with, without;
    bare b;
    open_bare(&b, "bn");
    one_pass(&b, 1, true, &with);
    open_bare(&b, "bn");
    one_pass(&b, 1, false, &without);
    check_above(without.tid[0], 0);
    check_above(without.tid[1], 0);
    assert_memory_equal(with.tid, without.tid, sizeof with.tid);
    for (int i = 0; i < PAIRS; i++)
        assert_true(without.feature[i] == -1 && isnan(without.x[i]) && isnan(without.y[i]));
}

/* -- batches in shards ----------------------------------------------------------------------- */

enum { SHARES = 4, RANKS_MAX = 3 };
static const int rows_of[SHARES + 1] = {0, 3, 3, 8, ROWS}; /* the second has none */

/* One process, and its result of final_pairs_passed. */
typedef struct process {
    bare b;
    final_pairs *f;
    bool again;
} process;

static sr_status passed(void *context, const run_exchange *x, sr_failure *why) {
    process *p = context;
    return final_pairs_passed(p->f, x, &p->again, why);
}

/* Only the first process writes. */
static void open_processes(process *p, int ranks, const int *first, const char *norm) {
    for (int k = ranks - 1; k >= 0; k--) {
        open_bare(&p[k].b, norm);
        p[k].b.record.shares = SHARES;
        p[k].b.record.own_shares = first[k + 1] - first[k];
        if (k == 0) continue;
        sr_abandon(p[k].b.record.recorder);
        p[k].b.record.recorder = NULL;
    }
    for (int k = 0; k < ranks; k++) p[k].f = begin(&p[k].b, 1, true);
}

/* Passes all shards of a batch, with padded rows where mask is 0; returns all processes' result. */
static bool pass_shares(process *p, int ranks, const int *first, const uint8_t *mask) {
    for (int k = 0; k < ranks; k++) {
        bare *b = &p[k].b;
        for (int s = first[k]; s < first[k + 1]; s++) {
            for (int i = 0; i < ROWS; i++)
                b->mask[i] = i >= rows_of[s] && i < rows_of[s + 1] && mask[i];
            b->record.number = s - first[k];
            forward(b);
        }
        b->record.number = 0;
    }
    thread_ranks_call(ranks, first, passed, (void *const[]){&p[0], &p[1], &p[2]});
    for (int k = 1; k < ranks; k++) {
        assert_int_equal(p[k].again, p[0].again);
        assert_int_equal(final_pairs_wanted(p[k].f), final_pairs_wanted(p[0].f));
    }
    return p[0].again;
}

/* A batch without a valid row, then twice the one that pairs are drawn from, then another one. */
static void draw_in_shares(int ranks, const int *first, const char *norm, found *got) {
    static process p[RANKS_MAX];
    static const uint8_t none[ROWS] = {0};
    uint8_t mask[ROWS];
    open_processes(p, ranks, first, norm);
    memcpy(mask, p[0].b.mask, sizeof mask);
    assert_false(pass_shares(p, ranks, first, none));
    assert_true(final_pairs_wanted(p[0].f));
    assert_true(pass_shares(p, ranks, first, mask));
    assert_false(pass_shares(p, ranks, first, mask));
    assert_false(final_pairs_wanted(p[0].f));
    for (int k = 0; k < ranks; k++)
        for (int i = 0; i < ROWS * D; i++) p[k].b.x[i] += 100;
    pass_shares(p, ranks, first, mask);
    thread_ranks_call(ranks, first, exchange, (void *const[]){p[0].f, p[1].f, p[2].f});
    for (int k = 1; k < ranks; k++) {
        final_pairs_put(p[k].f);
        final_pairs_end(p[k].f);
        bare_close(&p[k].b);
    }
    memcpy(p[0].b.mask, mask, sizeof mask);
    end(&p[0].b, p[0].f, got);
}

/* Any number of processes draws the entries of the whole batch. Row statistics give the same pairs;
 * batch statistics give each shard's own. */
static void shares_draw_as_the_whole(void **state) {
    (void)state;
    static found whole, got;
    static const int first[RANKS_MAX][RANKS_MAX + 1] = {{0, 4}, {0, 2, 4}, {0, 1, 3, 4}};
    bare b;
    open_bare(&b, "ln");
    const bare before = b;
    one_pass(&b, 1, true, &whole);
    for (int ranks = 1; ranks <= RANKS_MAX; ranks++) {
        draw_in_shares(ranks, first[ranks - 1], "ln", &got);
        assert_memory_equal(got.x, whole.x, sizeof got.x);
        assert_memory_equal(got.y, whole.y, sizeof got.y);
        assert_memory_equal(got.feature, whole.feature, sizeof got.feature);
    }
    for (int ranks = 1; ranks <= RANKS_MAX; ranks++) {
        int same = 0;
        draw_in_shares(ranks, first[ranks - 1], "bn", &got);
        assert_memory_equal(got.x, whole.x, sizeof got.x);
        for (int i = 0; i < PAIRS; i++) {
            bare share = before;
            const int row = entry_of(&before, got.feature[i], got.x[i]) / D;
            const int s = row >= rows_of[3] ? 3 : row >= rows_of[2] ? 2 : 0;
            for (int k = 0; k < ROWS; k++) share.mask[k] &= k >= rows_of[s] && k < rows_of[s + 1];
            if (got.feature[i] == NO_GAIN) continue;
            const double want = want_bn(&share, row * D + got.feature[i]);
            check_within((double)got.y[i], want, 3e-6);
            same += fabs(want - want_bn(&before, row * D + got.feature[i])) < 1e-3;
        }
        assert_true(same < PAIRS / 10);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_pair),
        cmocka_unit_test(even_draws),
        cmocka_unit_test(first_batch),
        cmocka_unit_test(beside_discrepancy),
        cmocka_unit_test(shares_draw_as_the_whole),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
