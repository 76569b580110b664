/* test_failing_records.c -- records everything of a run's layers while one allocation or HDF5
 * call fails: the run ends with the reason. Nothing stays open or allocated, and no layer keeps
 * a hook. */
#define _GNU_SOURCE 1 /* RTLD_NEXT */
#include "testing/failing_deeds.h"

#include <math.h>
#include <omp.h>

#include "recorded_pairs.h"

enum { STEPS = 1, SHARES = 2, PAIRS = 8 };

static const char *norm; /* the encoder's */
static bool synchronised;

static run_record_options everything(void) {
    run_record_options o = pairs_options("all.h5");
    o.steps = o.updates = STEPS;
    o.attention = o.final = true;
    o.activations_every = o.layer_norms_every = o.theorems_every = o.spectra_every = 1;
    o.pairs = PAIRS;
    o.shares = o.own_shares = SHARES;
    o.each_share = !synchronised;
    o.synchronised = synchronised;
    o.observe_batch = synchronised;
    o.observe_alpha = 0.5;
    o.metrics = 1;
    return o;
}

static sr_status gather_alone(void *context, double *values, int64_t each) {
    (void)context, (void)values, (void)each;
    return SR_OK;
}

static const run_exchange alone = {
    .gather = gather_alone, .rank = 0, .ranks = 1, .first = (const int[]){0, SHARES}};

/* -- a run ----------------------------------------------------------------------------------- */

/* Checks the tape, the hooks and the file for a failure, as the training loop does. */
static sr_status failure_of(const pairs_model *x, const run_record *r, sr_failure *why) {
    const sr_failure *const of[] = {tape_failure(x->t), run_record_hook_failed(r),
                                    run_record_failed(r)};
    for (int i = 0; i < 3; i++)
        if (of[i]) return sr_fail(why, of[i]->status, "%s", of[i]->text);
    return SR_OK;
}

/* Runs the shards of a batch; backward except in the final pass. */
static sr_status pass_shares(pairs_model *x, run_record *r, norm_mode mode, sr_failure *why) {
    static const task_options plain = {.label_smoothing = NAN};
    sr_status status = SR_OK;
    for (int s = 0; s < SHARES && status == SR_OK; s++) {
        const batch whole = pairs_batch(x, 1), part = batch_slice(&whole, 2 * s, 2);
        const bool training = mode == NORM_TRAIN;
        pass p = {.tape = x->t, .batch = &part, .mode = mode};
        run_record_enter(r, s);
        tape_reset(x->t, rng_create(3), training, training);
        tensor *loss = task_loss(task_of(part.task), &plain, x->m, &p, NULL);
        if (training) tape_backward(x->t, loss, 1);
        status = failure_of(x, r, why);
    }
    run_record_enter(r, 0);
    return status;
}

static sr_status run_step_of(pairs_model *x, run_record *r, int64_t step, sr_failure *why) {
    run_record_begin_step(r, step, true);
    run_record_want_activations(r, true);
    run_record_want_theorems(r, true);
    run_record_look_at_rows(r, true);
    sr_status status = pass_shares(x, r, NORM_TRAIN, why);
    if (status == SR_OK) status = run_record_exchange(r, &alone, why);
    if (status != SR_OK) return status;
    run_record_before_update(r, step, 1, 1);
    run_record_after_update(r, 1);
    pairs_end_step(r, step);
    run_record_eval(r, step, 0.5, (const char *const[]){"valid_a"}, (double[]){1}, 1);
    status = run_record_embedding(r, step, why);
    return status == SR_OK ? failure_of(x, r, why) : status;
}

static sr_status draw_pairs(pairs_model *x, run_record *r, final_pairs *f, sr_failure *why) {
    bool again = true;
    sr_status status = SR_OK;
    while (again && status == SR_OK) {
        status = pass_shares(x, r, NORM_BATCH, why);
        if (status == SR_OK) status = final_pairs_passed(f, &alone, &again, why);
    }
    return status == SR_OK ? final_pairs_exchange(f, &alone, why) : status;
}

static sr_status final_pass(pairs_model *x, run_record *r, sr_failure *why) {
    final_pairs *pairs = NULL;
    final_tid *tid = NULL;
    sr_status status = final_pairs_begin(r, PAIRS, 1, &pairs, why);
    if (status == SR_OK) status = draw_pairs(x, r, pairs, why);
    if (status == SR_OK && !(tid = final_tid_begin(x->m, why))) status = why->status;
    if (status == SR_OK) status = pass_shares(x, r, NORM_BATCH, why);
    if (status == SR_OK) status = run_record_final(r, tid, pairs, 1, why);
    final_pairs_end(pairs);
    final_tid_end(tid);
    return status;
}

static sr_status run_all(pairs_model *x, sr_failure *why) {
    const run_record_options o = everything();
    run_record *r = run_record_create(x->m, &o, why);
    if (!r) return why->status;
    sr_status status = SR_OK;
    for (int64_t step = 1; step <= STEPS && status == SR_OK; step++)
        status = run_step_of(x, r, step, why);
    if (status == SR_OK) status = final_pass(x, r, why);
    if (status == SR_OK) return run_record_close(r, "complete", NULL, NULL, why);
    run_record_abandon(r);
    return status;
}

/* -- failures -------------------------------------------------------------------------------- */

static bool has_hooks(const model *m) {
    for (int i = 0; i < m->sites; i++)
        if (m->site[i]->backward_hook || m->site[i]->forward_hook || m->site[i]->hook_context)
            return true;
    return false;
}

/* The model is made and freed without failures. */
static sr_status record_deed(sr_failure *why) {
    const bool watched = failing_watches;
    failing_watches = false;
    pairs_model x = pairs_make(norm);
    tape_free(x.t);
    x.t = tape_create(1, why); /* worker threads are not forked */
    failing_watches = watched;
    const sr_status status = run_all(&x, why);
    failing_watches = false;
    if (has_hooks(x.m)) complain("a record", "a layer has a hook");
    pairs_free(&x);
    failing_watches = watched;
    return status;
}

static void remove_file(void) {
    remove(pairs_path("all.h5"));
}

/* Only the file stays open after a write that failed. */
static void look(const char *after, sr_status status) {
    if (status != SR_OK && !strstr(after, "all.h5.part") && failing_left())
        complain(after, "%d blocks are not freed", failing_left());
}

/* Only the first call at each place fails: a record makes many calls. */
static void fail_records(const char *of, bool merged, failing_kind kind) {
    static long call[FAILING_PLACES];
    const deed d = {.name = of,
                    .run = record_deed,
                    .look = look,
                    .prepare = remove_file,
                    .file = "",
                    .writes = true};
    norm = of, synchronised = merged;
    deed_note(&d, kind);
    for (int i = 0; i < failing_places; i++) call[i] = failing_found[i].first;
    deed_fail_list(&d, kind, call, failing_places);
}

static void test_allocations(void **state) {
    (void)state;
    fail_records("pn", false, FAILING_ALLOCATIONS);
    fail_records("ln", true, FAILING_ALLOCATIONS);
}

static void test_hdf5(void **state) {
    (void)state;
    fail_records("pn", false, FAILING_HDF5);
}

/* A run without a file, and a process that only sends: every function does nothing. */
static void do_nothing(run_record *r) {
    sr_failure why = {0};
    const char *what = NULL;
    final_pairs *pairs;
    run_record_begin_step(r, 1, true);
    run_record_want_activations(r, true);
    run_record_want_theorems(r, true);
    run_record_before_update(r, 1, 1, 1);
    run_record_after_update(r, 1);
    run_record_look_at_rows(r, true);
    run_record_enter(r, 0);
    pairs_end_step(r, 1);
    run_record_eval(r, 1, 0.5, (const char *const[]){"valid_a"}, (double[]){1}, 1);
    run_record_flush_rows(r);
    check_ok(run_record_embedding(r, 1, &why), &why);
    check_ok(run_record_exchange(r, &alone, &why), &why);
    check_ok(run_record_flush(r, &why), &why);
    check_ok(run_record_copy(r, "none.h5", 1, 1, &why), &why);
    check_ok(final_pairs_begin(r, PAIRS, 1, &pairs, &why), &why);
    check_ok(run_record_final(r, NULL, NULL, 1, &why), &why);
    check_ok(run_record_state_each(r, NULL, NULL, &why), &why);
    assert_null(pairs);
    assert_false(final_pairs_wanted(NULL));
    assert_null(run_record_nonfinite(r, &what));
    assert_null(run_record_lock_refused(r));
    assert_null(run_record_failed(r));
    assert_null(run_record_hook_failed(r));
    assert_int_equal(run_record_projected_bytes(r), 0);
    assert_int_equal(run_record_vectors_every(r), 0);
    assert_true(run_record_seconds(r) >= 0);
    check_ok(run_record_close(r, "complete", NULL, NULL, &why), &why);
}

static void test_without_a_file(void **state) {
    (void)state;
    sr_failure why = {0};
    pairs_model x = pairs_make("ln");
    run_record_options o = everything();
    o.scalars = false;
    do_nothing(NULL);
    run_record_abandon(NULL);
    run_record *r = run_record_follow(x.m, &o, &why);
    assert_non_null(r);
    do_nothing(r);
    assert_false(has_hooks(x.m));
    o.scalars = true, o.sites = "nowhere";
    assert_null(run_record_follow(x.m, &o, &why));
    check_failure(&why, SR_USAGE, "--record-sites 'nowhere' matches no site");
    assert_false(has_hooks(x.m));
    pairs_free(&x);
}

int main(void) {
    omp_set_num_threads(1);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_allocations),
        cmocka_unit_test(test_hdf5),
        cmocka_unit_test(test_without_a_file),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
