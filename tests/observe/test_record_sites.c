/* test_record_sites.c -- the sites that a run record observes and the values that it keeps. Also
 * the values that a resumed run reads from the earlier file. */
#include <hdf5.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "norm/norm_options.h"
#include "observe/run_record.h"
#include "recorded_pairs.h"
#include "testing/check.h"

/* -- a resumed run */

/* Evaluations after steps 1 (both), 2 (only the first) and 3 (only the second). */
static void three_steps(pairs_model *x, const char *name, const char *status) {
    static const char *const a[] = {"valid_a", "valid_b"};
    const run_record_options o = pairs_options(name);
    run_record *r = pairs_begin(x, &o);
    for (int i = 1; i <= 3; i++) {
        pairs_step(x, r, i, false);
        run_record_eval(r, i, 0.25 * i, i == 3 ? a + 1 : a, (double[]){4 + i, 8}, i == 1 ? 2 : 1);
    }
    sr_run_close(pairs_end(r, status, name));
}

static void evaluations(void **state) {
    (void)state;
    pairs_model x = pairs_make("ln");
    sr_failure why = {0};
    double value[3], epoch[3];
    three_steps(&x, "v.h5", "complete");
    const char *path = pairs_path("v.h5");
    assert_true(run_record_has_eval(path, "valid_a", 1));
    assert_true(run_record_has_eval(path, "valid_b", 1));
    assert_true(run_record_has_eval(path, "valid_a", 2));
    assert_false(run_record_has_eval(path, "valid_b", 2));
    assert_false(run_record_has_eval(path, "valid_a", 3));
    assert_true(run_record_has_eval(path, "valid_b", 3));
    assert_false(run_record_has_eval(path, "valid_b", 4));
    assert_false(run_record_has_eval(path, "valid_c", 1));
    assert_false(run_record_has_eval(pairs_path("nowhere.h5"), "valid_a", 1));
    sr_runfile *f = sr_run_open(path, &why);
    assert_non_null(f);
    check_ok(sr_run_eval(f, "valid_a", 0, 3, value, &why), &why);
    check_ok(sr_run_eval(f, "epoch", 0, 3, epoch, &why), &why);
    check_near_double("valid_a", value, (double[]){5, 6, NAN}, 3, 0, 0);
    check_near_double("epoch", epoch, (double[]){0.25, 0.5, 0.75}, 3, 0, 0);
    sr_run_close(f);
    pairs_free(&x);
}

static void look_back(void **state) {
    (void)state;
    static const char *const status[] = {"complete", "diverged", "interrupted", "failed"};
    pairs_model x = pairs_make("ln");
    for (int i = 0; i < 4; i++) {
        run_record_info k;
        sr_failure why = {0};
        three_steps(&x, "v.h5", status[i]);
        check_ok(run_record_open_look(pairs_path("v.h5"), &k, &why), &why);
        assert_int_equal(k.complete, i < 2);
        assert_int_equal(k.last_step, 3);
        assert_string_equal(k.config, "key = value\n");
        assert_string_equal(k.command, "the command");
        assert_string_equal(k.parent, "before.h5 step 7");
        run_record_close_look(&k);
        assert_null(k.config);
    }
    pairs_free(&x);
}

/* The next flush reports a failed write with its text. */
static void flush_tells(void **state) {
    (void)state;
    static const char *const unknown[] = {"valid_unknown"};
    pairs_model x = pairs_make("ln");
    const run_record_options o = pairs_options("f.h5");
    sr_failure why = {0};
    run_record *r = pairs_begin(&x, &o);
    pairs_step(&x, r, 1, false);
    check_ok(run_record_flush(r, &why), &why);
    assert_null(run_record_failed(r));
    run_record_eval(r, 1, 1, unknown, (double[]){1}, 1);
    assert_true(run_record_flush(r, &why) != SR_OK);
    assert_non_null(strstr(why.text, "valid_unknown"));
    assert_non_null(run_record_failed(r));
    run_record_abandon(r);
    pairs_free(&x);
}

static sr_status copied(const pairs_model *x, int64_t steps, sr_failure *why) {
    run_record_options o = pairs_options("next.h5");
    run_record *r = pairs_begin(x, &o);
    const sr_status status = run_record_copy(r, pairs_path("v.h5"), steps, steps, why);
    run_record_abandon(r);
    return status;
}

/* A resumed run needs all steps and all their evaluations. */
static void rows_are_whole(void **state) {
    (void)state;
    pairs_model x = pairs_make("ln");
    sr_failure why = {0};
    three_steps(&x, "v.h5", "interrupted");
    check_ok(copied(&x, 2, &why), &why);
    check_ok(copied(&x, 3, &why), &why);
    assert_int_equal(copied(&x, 4, &why), SR_FORMAT);
    check_failure(&why, SR_FORMAT, "3 of 4 steps can be read");
    const hid_t h = H5Fopen(pairs_path("v.h5"), H5F_ACC_RDWR, H5P_DEFAULT);
    const double none = NAN;
    const hid_t d = H5Dopen(h, "evals/step", H5P_DEFAULT), file = H5Dget_space(d);
    const hid_t memory = H5Screate(H5S_SCALAR);
    assert_true(h >= 0 && d >= 0 && file >= 0 && memory >= 0);
    assert_true(H5Sselect_elements(file, H5S_SELECT_SET, 1, (const hsize_t[]){1}) >= 0);
    assert_true(H5Dwrite(d, H5T_NATIVE_DOUBLE, memory, file, H5P_DEFAULT, &none) >= 0);
    H5Sclose(memory), H5Sclose(file), H5Dclose(d), H5Fclose(h);
    why = (sr_failure){0};
    assert_int_equal(copied(&x, 3, &why), SR_FORMAT);
    pairs_free(&x);
}

/* -- state */

typedef struct walk {
    int items[2 * SITES], positions;
    pairs_model *x;
    run_record *r;
} walk;

static sr_status visit(void *context, const state_item *item, sr_failure *why) {
    static const char *const names[] = {"mu", "sigma2", "psi2", "position"};
    walk *w = context;
    (void)why;
    assert_int_equal(item->kind, STATE_OBSERVER);
    assert_int_equal(item->array.dim[0], D);
    for (int i = 0; i < SITES; i++) {
        const norm_site *s = w->x->m->site[i];
        const double *const value[] = {s->observer->mu, s->observer->sigma2, s->observer->psi2,
                                       hooks_position(w->r->hooks, i)};
        for (int k = 0; k < 4; k++) {
            char name[600];
            snprintf(name, sizeof name, "%s.observed.%s", s->name, names[k]);
            if (strcmp(name, item->name) != 0) continue;
            assert_non_null(value[k]);
            assert_ptr_equal(item->array.data, value[k]);
            w->items[i] |= 1 << k;
        }
    }
    return SR_OK;
}

/* Three running statistics of every observed site; positions at the sites that add them. */
static void state_of_observers(void **state) {
    (void)state;
    pairs_model x = pairs_make("ln");
    run_record_options o = pairs_options("s.h5");
    sr_failure why = {0};
    o.observe_batch = true, o.observe_alpha = 0.625;
    run_record *r = pairs_begin(&x, &o);
    walk w = {.x = &x, .r = r};
    pairs_step(&x, r, 1, false);
    check_ok(run_record_state_each(r, visit, &w, &why), &why);
    for (int i = 0; i < SITES; i++) {
        assert_int_equal(w.items[i], x.m->site[i]->takes_positions ? 15 : 7);
        check_equals(x.m->site[i]->observer->alpha, 0.625);
    }
    run_record_abandon(r);
    pairs_free(&x);
}

/* -- sites */

/* "last-bn" is the last site with batch statistics, except a stack's final norm. It is the
 * encoder's or, if observed, the decoder's. */
static void chosen_sites(void **state) {
    (void)state;
    for (int observed = 0; observed < 2; observed++) {
        pairs_model x = pairs_make("bn");
        run_record_options o = pairs_options("c.h5");
        o.sites = "last-bn", o.observe_batch = observed, o.observe_alpha = 0.5;
        run_record *r = pairs_begin(&x, &o);
        for (int i = 0; i < SITES; i++) {
            const bool chosen = i == (observed ? SITES - 2 : 1);
            assert_int_equal(x.m->site[i]->backward_hook != NULL, chosen);
            assert_int_equal(x.m->site[i]->observer != NULL, chosen && observed);
        }
        pairs_step(&x, r, 1, false);
        sr_runfile *f = pairs_end(r, "complete", "c.h5");
        assert_int_equal(sr_run_get_info(f)->sites, 1);
        assert_string_equal(sr_run_get_site(f, 0)->name, x.m->site[observed ? SITES - 2 : 1]->name);
        sr_run_close(f);
        for (int i = 0; i < SITES; i++) {
            assert_null(x.m->site[i]->backward_hook);
            assert_null(x.m->site[i]->hook_context);
        }
        pairs_free(&x);
    }
}

/* Weight of nu in the site's backward pass; NaN for methods without nu. */
static void alpha_backward(void **state) {
    (void)state;
    pairs_model x = pairs_make("pn");
    const int number = norm_param_find(x.m->site[0]->method, "alpha_bwd");
    x.m->site[1]->options.param[number] = 0.5;
    const run_record_options o = pairs_options("a.h5");
    run_record *r = pairs_begin(&x, &o);
    pairs_step(&x, r, 1, false);
    sr_runfile *f = pairs_end(r, "complete", "a.h5");
    check_equals(sr_run_get_site(f, 0)->alpha_bwd, 0.9);
    check_equals(sr_run_get_site(f, 1)->alpha_bwd, 0.5);
    assert_true(isnan(sr_run_get_site(f, SITES - 1)->alpha_bwd));
    sr_run_close(f);
    pairs_free(&x);
}

/* After a layer scale, the mean excludes positions. */
static void positions_behind_a_scale(void **state) {
    (void)state;
    for (int scaled = 0; scaled < 2; scaled++) {
        pairs_model x = pairs_make(scaled ? "bn+ls" : "bn");
        const run_record_options o = pairs_options("p.h5");
        float value[D];
        sr_failure why = {0};
        run_record *r = pairs_begin(&x, &o);
        pairs_step(&x, r, 1, false);
        assert_int_equal(hooks_position(r->hooks, 0) == NULL, scaled);
        sr_runfile *f = pairs_end(r, "complete", "p.h5");
        const sr_status status = sr_run_vector(f, "position_B", 0, 0, 1, value, &why);
        assert_int_equal(status != SR_OK || isnan(value[0]), scaled);
        sr_run_close(f);
        pairs_free(&x);
    }
}

/* Spectra are recorded at the steps that request them. */
static void spectra_of_steps(void **state) {
    (void)state;
    pairs_model x = pairs_make("ln");
    run_record_options o = pairs_options("w.h5");
    sr_failure why = {0};
    static double value[D];
    int64_t at, rows;
    o.updates = 4, o.spectra_every = 2;
    run_record *r = pairs_begin(&x, &o);
    for (int i = 1; i <= 4; i++) {
        pairs_step(&x, r, i, i % 2 == 0);
        for (int k = 0; k < SITES; k++) assert_int_equal(x.m->site[k]->want_input, i % 2 == 0);
    }
    sr_runfile *f = pairs_end(r, "complete", "w.h5");
    assert_int_equal(sr_run_get_info(f)->spectra, 2);
    for (int i = 0; i < 2; i++) {
        check_ok(sr_run_spectrum(f, SR_SPECTRUM_input, 0, i, &at, &rows, value, &why), &why);
        assert_int_equal(at, 2 * i + 2);
    }
    sr_run_close(f);
    pairs_free(&x);
}

/* Scalars that also need the rows are recorded with the vectors. */
static void scalars_of_rows(void **state) {
    (void)state;
    for (int vectors = 0; vectors < 2; vectors++) {
        pairs_model x = pairs_make("bn");
        run_record_options o = pairs_options("r.h5");
        sr_failure why = {0};
        float value;
        o.vectors = vectors;
        run_record *r = pairs_begin(&x, &o);
        pairs_step(&x, r, 1, false);
        sr_runfile *f = pairs_end(r, "complete", "r.h5");
        check_ok(sr_run_scalar(f, "g_sigma2_rowmean", 0, 0, 1, &value, &why), &why);
        assert_int_equal(!isnan(value), vectors);
        sr_run_close(f);
        pairs_free(&x);
    }
}

/* The final pass stores its means at the recorded site, whichever site of the model it is. */
static void final_of_chosen(void **state) {
    (void)state;
    enum { CHOSEN = 2 };
    pairs_model x = pairs_make("bn");
    run_record_options o = pairs_options("o.h5");
    sr_failure why = {0};
    batch b;
    int64_t batches;
    double want[2], got[2][SITES];
    o.sites = "encoder.final", o.final = true;
    run_record *r = pairs_begin(&x, &o);
    pairs_step(&x, r, 1, false);
    final_tid *f = final_tid_begin(x.m, &why);
    assert_non_null(f);
    check_ok(data_batch(x.data, SPLIT_TRAIN, 0, 1, &b, &why), &why);
    pass p = {.tape = x.t, .batch = &b, .mode = NORM_BATCH};
    tape_reset(x.t, rng_create(3), true, false);
    assert_non_null(
        task_loss(task_of(b.task), &(task_options){.label_smoothing = NAN}, x.m, &p, NULL));
    assert_true(final_tid_of(f, CHOSEN, &want[0], &want[1]));
    check_ok(run_record_final(r, f, NULL, 5, &why), &why);
    final_tid_end(f);
    sr_runfile *file = pairs_end(r, "complete", "o.h5");
    check_ok(sr_run_final(file, &batches,
                          (double *const[]){got[SR_FINAL_tid_mean], got[SR_FINAL_tid_var]}, &why),
             &why);
    assert_int_equal(batches, 5);
    assert_int_equal(sr_run_get_info(file)->sites, 1);
    check_above(want[0], 0);
    check_equals(got[0][0], want[0]);
    check_equals(got[1][0], want[1]);
    sr_run_close(file);
    pairs_free(&x);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(evaluations),
                                       cmocka_unit_test(look_back),
                                       cmocka_unit_test(flush_tells),
                                       cmocka_unit_test(state_of_observers),
                                       cmocka_unit_test(chosen_sites),
                                       cmocka_unit_test(alpha_backward),
                                       cmocka_unit_test(positions_behind_a_scale),
                                       cmocka_unit_test(spectra_of_steps),
                                       cmocka_unit_test(scalars_of_rows),
                                       cmocka_unit_test(final_of_chosen),
                                       cmocka_unit_test(rows_are_whole)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
