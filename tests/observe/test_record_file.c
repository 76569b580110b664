/* test_record_file.c -- gives every option and number of a run record a different value, and finds
 * each in the run file. Also the projected size. */
#include <hdf5.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/svd.h"
#include "observe/run_record.h"
#include "recorded_pairs.h"
#include "testing/check.h"
#include "text/file_bytes.h"

/* -- texts and numbers */

static void check_metrics(const sr_runfile *f) {
    for (int i = 0; i < 3; i++) {
        const sr_run_metric *m = sr_run_get_metric(f, i);
        assert_non_null(m);
        assert_string_equal(m->name, pairs_metric[i].name);
        assert_string_equal(m->unit, pairs_metric[i].unit);
        assert_string_equal(m->definition, pairs_metric[i].definition);
        assert_int_equal(m->better, pairs_metric[i].better);
    }
    assert_null(sr_run_get_metric(f, 3));
}

static void check_row(const sr_runfile *f) {
    static const char *const whole[] = {"step", "update", "tokens"};
    static const char *const real_name[] = {"epoch", "loss", "lr", "grad_norm"};
    static const int64_t want[] = {1, 11, 21};
    static const double want_real[] = {0.5, 2.5, 0.25, 8};
    sr_failure why = {0};
    for (int i = 0; i < 3; i++) {
        int64_t got;
        check_ok(sr_run_step_ints(f, whole[i], 0, 1, &got, &why), &why);
        assert_int_equal(got, want[i]);
    }
    for (int i = 0; i < 4; i++) {
        double got;
        check_ok(sr_run_step_reals(f, real_name[i], 0, 1, &got, &why), &why);
        check_near_double(real_name[i], &got, &want_real[i], 1, 0, 0);
    }
}

/* Checkpoints contain the running statistics, and equal seeds give equal rows: the file contains
 * neither. */
static void check_absent(const char *path) {
    hid_t h = H5Fopen(path, H5F_ACC_RDONLY, H5P_DEFAULT);
    assert_true(h >= 0);
    assert_true(H5Lexists(h, "running", H5P_DEFAULT) == 0);
    assert_true(H5Lexists(h, "steps/recorder_seconds", H5P_DEFAULT) == 0);
    assert_true(H5Lexists(h, "final", H5P_DEFAULT) == 0);
    assert_true(H5Lexists(h, "spectra", H5P_DEFAULT) == 0);
    H5Fclose(h);
}

static void every_option(void **state) {
    (void)state;
    pairs_model x = pairs_make("bn");
    run_record_options o = pairs_options("a.h5");
    char host[256] = "";
    gethostname(host, sizeof host - 1);
    o.vectors_every = -1;
    run_record *r = pairs_begin(&x, &o);
    pairs_step(&x, r, 1, false);
    sr_runfile *f = pairs_end(r, "diverged", "a.h5");
    const sr_run_info *i = sr_run_get_info(f);
    assert_string_equal(i->program, "statrec train");
    assert_string_equal(i->version, STATREC_VERSION);
    assert_string_equal(i->command, o.command);
    assert_string_equal(i->config, o.config);
    assert_string_equal(i->host, host);
    assert_string_equal(i->git, o.git);
    assert_string_equal(i->model, "transformer");
    assert_string_equal(i->data, o.data);
    assert_string_equal(i->task, o.task);
    assert_string_equal(i->loss_reduction, "sum");
    assert_string_equal(i->parent, o.parent);
    assert_true(i->seed == o.seed);
    assert_int_equal(i->threads, o.threads);
    assert_string_equal(i->status, "diverged");
    assert_string_equal(i->reason, "why it ended");
    assert_string_equal(i->weights_digest, "0123456789abcdef");
    assert_int_equal(i->sites, SITES);
    check_metrics(f);
    check_row(f);
    sr_run_close(f);
    check_absent(pairs_path("a.h5"));
    pairs_free(&x);
}

/* -- projected size */

static int64_t projected(const pairs_model *x, run_record_options o) {
    o.path = pairs_path("plan.h5");
    run_record *r = pairs_begin(x, &o);
    const int64_t bytes = run_record_projected_bytes(r);
    run_record_abandon(r);
    assert_int_equal(access(pairs_path("plan.h5"), F_OK), -1); /* no step: no file */
    assert_int_equal(access(pairs_path("plan.h5.part"), F_OK), -1);
    return bytes;
}

static int ones(uint32_t bits) {
    int count = 0;
    for (; bits; bits &= bits - 1) count++;
    return count;
}

/* Columns of /vectors that the sites fill: their method's, and positions at the first site of
 * encoder and decoder. Running columns exist only for methods with an old-value weight. */
static void vectors_are_expected(void **state) {
    (void)state;
    static const char *const norms[] = {"bn", "pn", "mabn", "adanorm", "bn+ls"};
    for (int n = 0; n < 5; n++) {
        pairs_model x = pairs_make(norms[n]);
        run_record_options o = pairs_options("plan.h5");
        o.steps = 1000, o.updates = 1000;
        int columns = 0;
        for (int i = 0; i < SITES; i++) {
            const norm_site *s = x.m->site[i];
            columns += ones(norm_site_vectors(s));
            if (s->takes_positions && !s->options.layer_scale)
                columns += s->method->alpha > 0 ? 2 : 1;
        }
        const int64_t with = projected(&x, o);
        o.vectors = false;
        const double each = (double)(with - projected(&x, o)) / (1000.0 * 4 * D);
        if (!(each >= columns && each < columns + 0.5))
            fail_msg("%s: %g columns of %d", norms[n], each, columns);
        pairs_free(&x);
    }
}

/* Each row has its step, the rows of every site and two values per feature. Without an interval no
 * rows are planned. */
static void spectra_are_planned(void **state) {
    (void)state;
    pairs_model x = pairs_make("ln");
    run_record_options o = pairs_options("plan.h5");
    o.steps = 400, o.updates = 100;
    const int64_t without = projected(&x, o), one = 8 * (1 + SITES + 2 * SITES * D);
    o.spectra_every = 20;
    assert_true(projected(&x, o) - without >= 5 * one);
    assert_true(projected(&x, o) - without < 6 * one);
    o.spectra_every = 50;
    assert_true(projected(&x, o) - without < 3 * one);
    o.steps = 800;
    assert_true(projected(&x, o) > 3 * without / 2);
    pairs_free(&x);
}

static void spacing(void **state) {
    (void)state;
    pairs_model x = pairs_make("ln");
    run_record_options o = pairs_options("plan.h5");
    o.steps = 1000;
    o.vectors_every = -1;
    for (int limited = 0; limited < 2; limited++) {
        if (limited) o.size_limit = 3000000;
        run_record *r = pairs_begin(&x, &o);
        assert_true(limited ? run_record_vectors_every(r) > 1 : run_record_vectors_every(r) == 1);
        run_record_abandon(r);
    }
    o.vectors_every = 7;
    run_record *r = pairs_begin(&x, &o);
    assert_int_equal(run_record_vectors_every(r), 7);
    run_record_abandon(r);
    pairs_free(&x);
}

/* An existing file is an error unless it may be replaced. */
static void replaces(void **state) {
    (void)state;
    pairs_model x = pairs_make("ln");
    run_record_options o = pairs_options("there.h5");
    sr_failure why = {0};
    run_record *r = pairs_begin(&x, &o);
    pairs_step(&x, r, 1, false);
    sr_run_close(pairs_end(r, "complete", "there.h5"));
    o.force = false;
    assert_null(run_record_create(x.m, &o, &why));
    assert_int_equal(why.status, SR_EXISTS);
    why = (sr_failure){0};
    assert_int_equal(run_record_check_path(o.path, false, &why), SR_EXISTS);
    why = (sr_failure){0};
    check_ok(run_record_check_path(o.path, true, &why), &why);
    pairs_free(&x);
}

/* -- embeddings */

static void check_embedding(const sr_runfile *f, const char *name, const tensor *e) {
    sr_failure why = {0};
    sr_run_embedding got = {.size = sizeof got};
    static double value[D];
    double sum = 0, want = 0;
    int64_t at;
    check_ok(sr_run_get_embedding(f, name, &got, &why), &why);
    assert_int_equal(got.rows, e->dim[0]);
    assert_int_equal(got.cols, e->dim[1]);
    assert_int_equal(got.records, 1);
    assert_int_equal(got.values, D);
    assert_string_equal(got.method, SVD_METHOD);
    check_ok(sr_run_singular_values(f, name, 0, &at, value, &why), &why);
    assert_int_equal(at, 1);
    for (int k = 0; k < D; k++) sum += value[k] * value[k];
    for (int64_t i = 0; i < e->count; i++) want += (double)e->value[i] * (double)e->value[i];
    check_near_double(name, &sum, &want, 1, 1e-5, 0);
}

/* Separate embeddings are stored under their names, a shared one once. */
static void embeddings(void **state) {
    (void)state;
    for (int shared = 0; shared < 2; shared++) {
        pairs_model x = pairs_make("ln");
        const run_record_options o = pairs_options("e.h5");
        sr_failure why = {0};
        sr_run_embedding none = {.size = sizeof none};
        assert_ptr_equal(x.m->target_embedding, x.m->embedding); /* one vocabulary */
        param *another = params_find(&x.m->params, "encoder.0.ffn_block.in.weight");
        assert_non_null(another);
        if (!shared) x.m->target_embedding = &another->t;
        run_record *r = pairs_begin(&x, &o);
        run_record_begin_step(r, 1, false);
        run_record_end_step(r, &(run_step){.update = 1});
        check_ok(run_record_embedding(r, 1, &why), &why);
        sr_runfile *f = pairs_end(r, "complete", "e.h5");
        check_embedding(f, "tokens", x.m->embedding);
        if (shared)
            assert_int_equal(sr_run_get_embedding(f, "target_tokens", &none, &why), SR_USAGE);
        else
            check_embedding(f, "target_tokens", x.m->target_embedding);
        sr_run_close(f);
        pairs_free(&x);
    }
}

/* Seconds since the last call; 0 without sites. */
static void seconds(void **state) {
    (void)state;
    pairs_model x = pairs_make("ln");
    run_record_options o = pairs_options("t.h5");
    run_record *r = pairs_begin(&x, &o);
    pairs_step(&x, r, 1, false);
    check_above(run_record_seconds(r), 0);
    check_equals(run_record_seconds(r), 0);
    run_record_abandon(r);
    o.scalars = o.vectors = false;
    r = pairs_begin(&x, &o);
    pairs_step(&x, r, 1, false);
    check_equals(run_record_seconds(r), 0);
    assert_int_equal(sr_projected_bytes(r->recorder), run_record_projected_bytes(r));
    run_record_abandon(r);
    pairs_free(&x);
}

/* Steps that another process can read while the file is being written. */
static int64_t readable(void) {
    file_bytes all = {0};
    sr_failure why = {0};
    check_ok(file_read_as(pairs_path("u.h5.part"), ACCEPT(KIND_HDF5), "a run file", &all, &why),
             &why);
    FILE *copy = fopen(pairs_path("copy.h5.part"), "wb");
    assert_non_null(copy);
    assert_int_equal(fwrite(all.byte, 1, all.size, copy), all.size);
    assert_int_equal(fclose(copy), 0);
    file_free(&all);
    sr_runfile *f = sr_run_open(pairs_path("copy.h5"), &why);
    const int64_t steps = f ? sr_run_get_info(f)->steps : 0;
    sr_run_close(f);
    return steps;
}

/* A flush follows after N steps or N seconds, whichever is first. */
static void flushed(void **state) {
    (void)state;
    static const int64_t every[] = {3, 1000, 1000};
    static const double pause[] = {1e6, 0, 1e6};
    static const int64_t want[3][6] = {{0, 0, 3, 3, 3, 6}, {1, 2, 3, 4, 5, 6}, {0}};
    for (int row = 0; row < 3; row++) {
        pairs_model x = pairs_make("ln");
        run_record_options o = pairs_options("u.h5");
        o.flush_steps = every[row], o.flush_seconds = pause[row];
        o.sync = "none"; /* a slow disk would space flushes */
        run_record *r = pairs_begin(&x, &o);
        for (int i = 0; i < 6; i++) {
            pairs_step(&x, r, i + 1, false);
            assert_int_equal(readable(), want[row][i]);
        }
        run_record_abandon(r);
        pairs_free(&x);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(every_option),
                                       cmocka_unit_test(vectors_are_expected),
                                       cmocka_unit_test(spectra_are_planned),
                                       cmocka_unit_test(spacing),
                                       cmocka_unit_test(replaces),
                                       cmocka_unit_test(embeddings),
                                       cmocka_unit_test(seconds),
                                       cmocka_unit_test(flushed)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
