/* test_copy_run.c -- run_copy's output: equal numbers, fewer rows, fewer sites, joined parts. A
 * rejected copy leaves no file. */
#include <hdf5.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "copied_run.h"
#include "runfile/repair/copy_declare.h"
#include "testing/check.h"
#include "testing/damage.h"
#include "testing/run_builder.h"
#include "testing/sample_run.h"

static const run_shape whole_shape = {1, COPIED_STEPS, 77, "1", true};

static int begin(void **state) {
    (void)state;
    copied_write("whole.h5", &whole_shape);
    return 0;
}

/* Exchanges the first two vector steps of a killed writer's file. */
static void exchange_vector_steps(const char *name) {
    size_t size;
    int exchanged = 0;
    char *bytes = damage_load(sample_path(name), &size);
    const int64_t was[] = {COPIED_VECTORS, 2 * COPIED_VECTORS, 3 * COPIED_VECTORS},
                  now[] = {2 * COPIED_VECTORS, COPIED_VECTORS};
    for (size_t i = 0; i + sizeof was <= size; i++)
        if (memcmp(bytes + i, was, sizeof was) == 0)
            memcpy(bytes + i, now, sizeof now), exchanged++;
    assert_true(exchanged > 0);
    damage_store(sample_path(name), bytes, size);
    free(bytes);
}

/* In a file that may still grow, rows after the last step are skipped; rows out of order are
 * damage. */
static void growing_out_of_order(void **state) {
    (void)state;
    char *const paths[] = {(char *)(uintptr_t)sample_path("killed.h5")};
    const run_copy_options o = copied_plain();
    sr_recorder *r = copied_begin("killed.h5", &whole_shape);
    check_ok(sr_flush(r), sr_failed(r));
    sr_abandon(r);
    exchange_vector_steps("killed.h5.part");
    copied_refused(paths, 1, &o, SR_FORMAT, "/vectors/step: not increasing, or not among");
}

static void everything(void **state) {
    (void)state;
    const run_copy_options o = copied_plain();
    const run_copied n = copied_copy("whole.h5", "x.h5", &o);
    copied_same_datasets("whole.h5", "x.h5", "");
    assert_int_equal(n.steps, COPIED_STEPS), assert_int_equal(n.of_steps, COPIED_STEPS);
    assert_int_equal(n.vectors, COPIED_STEPS / COPIED_VECTORS),
        assert_int_equal(n.spectra, COPIED_STEPS / COPIED_SPECTRA);
    assert_int_equal(n.evals, COPIED_STEPS / 5), assert_false(n.unfinished);
    sr_runfile *a = sample_open(sample_path("whole.h5")), *b = sample_open(sample_path("x.h5"));
    const sr_run_info *from = sr_run_get_info(a), *to = sr_run_get_info(b);
#define SAME(name) copied_same_text(#name, to->name, from->name);
    RUN_TEXTS(SAME)
    copied_same_text("status", to->status, from->status);
    copied_same_text("reason", to->reason, from->reason);
    copied_same_text("weights_digest", to->weights_digest, from->weights_digest);
    copied_same_text("finished", to->finished, from->finished);
    copied_same_text("ranks", to->ranks, from->ranks);
#undef SAME
    assert_int_equal(to->seed, from->seed), assert_int_equal(to->threads, from->threads);
    check_equals(to->wall_seconds, from->wall_seconds);
    sr_run_close(a), sr_run_close(b);
}

/* The checksum is zlib's over the whole file; a copy of a copy lists both. */
static void origin(void **state) {
    (void)state;
    run_copy_options o = copied_plain();
    char want[256], sum[64];
    size_t size;
    char *bytes = damage_load(sample_path("whole.h5"), &size);
    uint32_t crc = ~0U;
    for (size_t i = 0; i < size; i++) {
        crc ^= (unsigned char)bytes[i];
        for (int bit = 0; bit < 8; bit++) crc = crc >> 1 ^ (crc & 1 ? 0xedb88320U : 0);
    }
    free(bytes);
    snprintf(sum, sizeof sum, "crc32 %08lx of %zu bytes", (unsigned long)~crc, size);
    copied_copy("whole.h5", "x.h5", &o);
    copied_check_attribute("x.h5", "sources", "whole.h5");
    copied_check_attribute("x.h5", "checksums", sum);
    copied_check_attribute("x.h5", "options", "none");
    o.text = "--every 3", o.every = o.vectors_every = 3;
    copied_copy("x.h5", "y.h5", &o);
    copied_check_attribute("y.h5", "sources", "whole.h5\nx.h5");
    copied_check_attribute("y.h5", "options", "none\n--every 3");
    /* recovery keeps it */
    sr_failure why = {0};
    check_ok(sr_run_recover(sample_path("y.h5"), sample_path("z.h5"), true, -1, NULL, &why), &why);
    copied_check_attribute("z.h5", "sources", "whole.h5\nx.h5");
    snprintf(want, sizeof want, "%s\n", sum);
    o.anonymous = true;
    copied_copy("y.h5", "z.h5", &o);
    copied_check_attribute("z.h5", "sources", "-\n-\n-");
    copied_check_attribute("z.h5", "options", "none\n--every 3\n--every 3");
}

/* Checks the steps, and the steps of vectors and spectra. */
static void check_steps(const char *name, const int64_t *steps, int count, const int64_t *vectors,
                        int vector_count) {
    sr_runfile *f = sample_open(sample_path(name));
    sr_failure why = {0};
    int64_t got[COPIED_STEPS];
    assert_int_equal(sr_run_get_info(f)->steps, count);
    assert_int_equal(sr_run_get_info(f)->vectors, vector_count);
    check_ok(sr_run_step_ints(f, "step", 0, count, got, &why), &why);
    for (int i = 0; i < count; i++) assert_int_equal(got[i], steps[i]);
    check_ok(sr_run_vector_steps(f, 0, vector_count, got, &why), &why);
    for (int i = 0; i < vector_count; i++) assert_int_equal(got[i], vectors[i]);
    sr_run_close(f);
}

/* Checks site `site` of the copy, which is site `of` of the run. */
static void check_values_of(const char *run, const char *name, int site, int of) {
    sr_runfile *a = sample_open(sample_path(run)), *b = sample_open(sample_path(name));
    const sr_run_info *info = sr_run_get_info(b);
    const int64_t width = sample_sites[of].width;
    float got[8], want[8];
    double real, other;
    int64_t step, there;
    for (int64_t i = 0; i < info->steps; i++) {
        sr_run_step_ints(b, "step", i, 1, &step, NULL);
        static const char *const scalars[] = {"rows", "dist_mu", "dist_psi", "g_psi2", "own"};
        for (int k = 0; k < 5; k++) {
            assert_int_equal(sr_run_scalar(b, scalars[k], site, i, 1, got, NULL), SR_OK);
            assert_int_equal(sr_run_scalar(a, scalars[k], of, step - 1, 1, want, NULL), SR_OK);
            assert_memory_equal(got, want, sizeof *got);
        }
        static const char *const columns[] = {"loss", "tokens", "seconds", "own too"};
        for (int k = 0; k < 4; k++) {
            sr_run_step_reals(b, columns[k], i, 1, &real, NULL);
            sr_run_step_reals(a, columns[k], step - 1, 1, &other, NULL);
            check_equals(real, other);
        }
    }
    for (int64_t i = 0; i < info->vectors; i++) {
        sr_run_vector_steps(b, i, 1, &step, NULL);
        for (int v = 0; v < SR_VECTOR_COUNT; v++) {
            if (!sample_puts(of, v)) continue;
            const char *vector = run_vectors[v].name;
            assert_int_equal(sr_run_vector(b, vector, site, i, 1, got, NULL), SR_OK);
            for (int64_t k = 0; k < width; k++)
                check_equals(got[k], (double)(float)sample_vector(step, of, v, k));
        }
    }
    double spectrum[8], wanted[8];
    int64_t rows, count;
    for (int64_t i = 0; i < info->spectra; i++) {
        check_ok(sr_run_spectrum(b, 1, site, i, &step, &rows, spectrum, NULL), NULL);
        check_ok(sr_run_spectrum(a, 1, of, step / COPIED_SPECTRA - 1, &there, &count, wanted, NULL),
                 NULL);
        assert_int_equal(there, step), assert_int_equal(rows, count);
        assert_memory_equal(spectrum, wanted, (size_t)width * sizeof *wanted);
    }
    sr_run_close(a), sr_run_close(b);
}

static void check_values(const char *name, int site, int of) {
    check_values_of("whole.h5", name, site, of);
}

static void thinned(void **state) {
    (void)state;
    run_copy_options o = copied_plain();
    /* vectors at 4, 8, ...: the first at or after 10, 20, 30, 40 are at 12, 20, 32, 40. Spectra at
     * 6, 12, ...: 12, 24, 30 */
    o.every = o.vectors_every = 10;
    run_copied n = copied_copy("whole.h5", "x.h5", &o);
    check_steps("x.h5", (const int64_t[]){10, 12, 20, 24, 30, 32, 40}, 7,
                (const int64_t[]){12, 20, 32, 40}, 4);
    assert_int_equal(n.spectra, 3), assert_int_equal(n.evals, COPIED_STEPS / 5);
    for (int i = 0; i < SAMPLE_SITES; i++) check_values("x.h5", i, i);
    copied_same_datasets("x.h5", "x.h5", ""); /* readable by HDF5 */
    o.every = 9, o.vectors_every = 0;
    n = copied_copy("whole.h5", "x.h5", &o);
    check_steps("x.h5", (const int64_t[]){9, 18, 27, 36, 40}, 5, NULL, 0);
    assert_int_equal(n.spectra, 0), check_below((double)n.bytes, (double)n.of_bytes);
    o.every = 20, o.vectors_every = 8, o.first = 9, o.last = 31;
    copied_copy("whole.h5", "x.h5", &o);
    check_steps("x.h5", (const int64_t[]){12, 16, 18, 20, 24, 31}, 6, (const int64_t[]){12, 16, 24},
                3);
    check_values("x.h5", 2, 2);
    sr_runfile *f = sample_open(sample_path("x.h5"));
    int64_t batches;
    double memory[SR_FINAL_COUNT][SAMPLE_SITES], *value[SR_FINAL_COUNT] = {memory[0], memory[1]};
    assert_int_equal(sr_run_get_info(f)->evals, 5); /* at 10, 15, 20, 25, 30 */
    check_ok(sr_run_final(f, &batches, value, NULL), NULL);
    assert_int_equal(batches, -1); /* from the last step, which is not among these */
    sr_run_embedding e = SR_INIT(sr_run_embedding, .rows = 0);
    double singular[SAMPLE_EMBEDDING];
    int64_t step;
    check_ok(sr_run_get_embedding(f, "shared", &e, NULL), NULL);
    assert_int_equal(e.records, 5);
    check_ok(sr_run_singular_values(f, "shared", 0, &step, singular, NULL), NULL);
    assert_int_equal(step, 10), check_equals(singular[0], 13);
    sr_run_close(f);
}

static bool keeps_some(const void *context, const char *name) {
    return strstr(context, name) != NULL;
}

static void selected(void **state) {
    (void)state;
    run_copy_options o = copied_plain();
    static const int64_t site[] = {0, 2};
    o.choice.site = site, o.choice.sites = 2;
    copied_copy("whole.h5", "x.h5", &o);
    check_values("x.h5", 0, 0), check_values("x.h5", 1, 2);
    sr_runfile *f = sample_open(sample_path("x.h5"));
    float x[COPIED_PAIRS], y[COPIED_PAIRS];
    int32_t feature[COPIED_PAIRS];
    int64_t batches;
    double memory[SR_FINAL_COUNT][2], *value[SR_FINAL_COUNT] = {memory[0], memory[1]};
    assert_int_equal(sr_run_get_info(f)->sites, 2), assert_int_equal(sr_run_get_info(f)->width, 12);
    copied_same_text("site", sr_run_get_site(f, 1)->name, "encoder.final");
    assert_int_equal(sr_run_get_site(f, 1)->depth, 2);
    check_ok(sr_run_pairs(f, 1, x, y, feature, NULL), NULL);
    check_equals(x[0], 2), check_equals(y[1], 2);
    check_ok(sr_run_final(f, &batches, value, NULL), NULL);
    assert_int_equal(batches, 7), check_equals(value[0][1], 3);
    sr_run_close(f);
    o.choice.keeps = keeps_some, o.choice.context = "rows dist_mu mu_B input";
    copied_copy("whole.h5", "x.h5", &o);
    f = sample_open(sample_path("x.h5"));
    assert_true(sr_run_has_scalar(f, "dist_mu") && sr_run_has_vector(f, "mu_B"));
    assert_false(sr_run_has_scalar(f, "dist_psi") || sr_run_has_vector(f, "psi2"));
    assert_null(sr_run_get_declared(f, 0));
    double spectrum[8];
    int64_t step, rows;
    check_ok(sr_run_spectrum(f, SR_SPECTRUM_input, 0, 0, &step, &rows, spectrum, NULL), NULL);
    check_equals(spectrum[0], 106);
    check_ok(sr_run_spectrum(f, SR_SPECTRUM_gradient, 0, 0, &step, &rows, spectrum, NULL), NULL);
    assert_true(isnan(spectrum[0]));
    sr_run_close(f);
}

/* Values of /running of one site, [R, width] of W columns. */
static void read_running(const char *name, int64_t column, int64_t width, double *value) {
    const hid_t file = H5Fopen(sample_path(name), H5F_ACC_RDONLY, H5P_DEFAULT);
    const hid_t set = H5Dopen2(file, "/running/sigma2", H5P_DEFAULT), all = H5Dget_space(set);
    hsize_t size[2];
    H5Sget_simple_extent_dims(all, size, NULL);
    assert_int_equal(size[0], 4);
    const hsize_t from[2] = {0, (hsize_t)column}, count[2] = {4, (hsize_t)width};
    H5Sselect_hyperslab(all, H5S_SELECT_SET, from, NULL, count, NULL);
    const hid_t memory = H5Screate_simple(2, count, NULL);
    assert_true(H5Dread(set, H5T_NATIVE_DOUBLE, memory, all, H5P_DEFAULT, value) >= 0);
    H5Sclose(memory), H5Sclose(all), H5Dclose(set), H5Fclose(file);
}

static void running(void **state) {
    (void)state;
    sr_options o = copied_options();
    sr_recorder *r = run_create(sample_path("raw.h5"), o);
    for (int i = 0; i < 3; i++) run_add_bn(r, (const char *[]){"a", "b", "c"}[i], 2 + i, i, 1e-5);
    for (int64_t step = 1; step <= 4; step++) {
        sr_begin_step(r, step);
        for (int i = 0; i < 3; i++) {
            float x[8];
            for (int k = 0; k < 8; k++) x[k] = (float)sin((double)(10 * step + 3 * i) + 0.7 * k);
            const sr_tensor t = SR_INIT(sr_tensor, x, SR_FLOAT32, 2, 2 + i, 1, NULL, 0);
            sr_take_forward(r, i, &t, NULL), sr_take_backward(r, i, &t);
        }
        const sr_step row = sample_row(step);
        sr_end_step(r, &row);
        check_ok(sr_flush(r), sr_failed(r));
    }
    run_finish(r);
    run_copy_options c = copied_plain();
    copied_copy("raw.h5", "x.h5", &c);
    copied_same_datasets("raw.h5", "x.h5", "");
    static const int64_t site[] = {1, 2};
    double got[16], want[16];
    c.choice.site = site, c.choice.sites = 2;
    copied_copy("raw.h5", "x.h5", &c);
    read_running("raw.h5", 2, 3, want), read_running("x.h5", 0, 3, got);
    assert_memory_equal(got, want, 12 * sizeof *got);
    read_running("raw.h5", 5, 4, want), read_running("x.h5", 3, 4, got);
    assert_memory_equal(got, want, sizeof got);
}

/* Parts in any order are joined to the original run. */
static void joined(void **state) {
    (void)state;
    run_copy_options o = copied_plain();
    sr_failure why = {0};
    run_copied n;
    char *part[3];
    for (int i = 0; i < 3; i++) {
        char name[16];
        snprintf(name, sizeof name, "part%d.h5", i);
        o.first = i == 0 ? 17 : i == 1 ? 31 : INT64_MIN;
        o.last = i == 0 ? 30 : i == 1 ? INT64_MAX : 16;
        copied_copy("whole.h5", name, &o);
        part[i] = (char *)(uintptr_t)sample_path(name);
    }
    o = copied_plain();
    check_ok(run_copy(part, 3, sample_path("x.h5"), &o, &n, &why), &why);
    check_ok(sr_run_check(sample_path("x.h5"), &why), &why);
    copied_same_datasets("whole.h5", "x.h5", "");
    assert_int_equal(n.steps, COPIED_STEPS),
        assert_int_equal(n.of_vectors, COPIED_STEPS / COPIED_VECTORS);
    copied_check_attribute("x.h5", "options", "none\nnone\nnone\nnone\nnone\nnone");
    /* thinning continues across parts */
    o.every = o.vectors_every = 10;
    check_ok(run_copy(part, 3, sample_path("x.h5"), &o, &n, &why), &why);
    check_steps("x.h5", (const int64_t[]){10, 12, 20, 24, 30, 32, 40}, 7,
                (const int64_t[]){12, 20, 32, 40}, 4);
}

static void not_parts(void **state) {
    (void)state;
    const run_copy_options o = copied_plain();
    run_shape shape = {COPIED_STEPS - 2, COPIED_STEPS + 5, 77, "1", true};
    copied_write("after.h5", &shape);
    char *pair[] = {(char *)(uintptr_t)sample_path("whole.h5"),
                    (char *)(uintptr_t)sample_path("after.h5")};
    copied_refused(pair, 2, &o, SR_USAGE, "begins at step 38, but");
    copied_refused((char *[]){pair[1], pair[0]}, 2, &o, SR_USAGE,
                   "ends at step 40: their steps overlap");
    shape.first = COPIED_STEPS + 1, shape.seed = 78;
    copied_write("after.h5", &shape);
    copied_refused(pair, 2, &o, SR_USAGE, "its seed is 78, not 77");
    shape.seed = 77, shape.unit = "percent";
    copied_write("after.h5", &shape);
    copied_refused(pair, 2, &o, SR_USAGE, "scalar own has another unit");
    write_small_run(sample_path("small.h5"), 6, true);
    pair[1] = (char *)(uintptr_t)sample_path("small.h5");
    copied_refused(pair, 2, &o, SR_USAGE, "not a part of the run in");
    run_copy_options none = copied_plain();
    none.first = 1000, none.last = 2000;
    copied_refused(pair, 1, &none, SR_USAGE, "none of its 40 steps is among");
}

/* -- files without an end, damage, targets --------------------------------------------------- */

static void growing(void **state) {
    (void)state;
    const run_shape shape = {1, 20, 77, "1", false};
    sr_recorder *r = copied_begin("growing.h5", &shape);
    check_ok(sr_flush(r), sr_failed(r));
    run_copy_options o = copied_plain();
    char *path = (char *)(uintptr_t)sample_path("growing.h5");
    sr_failure why = {0};
    run_copied n;
    check_ok(run_copy(&path, 1, sample_path("x.h5"), &o, &n, &why), &why);
    assert_true(n.unfinished), assert_int_equal(n.steps, 20), assert_int_equal(n.vectors, 5);
    copied_check_attribute("x.h5", "checksums", "not finished"),
        copied_check_attribute("x.h5", "sources", "growing.h5.part");
    sr_failure fault = {0};
    assert_int_equal(sr_run_check(sample_path("x.h5"), &fault), SR_STATE);
    check_failure(&fault, SR_STATE, "interrupted, 20 steps readable: copied from an unfinished");
    check_ok(sr_flush(r), sr_failed(r)); /* the run is still recording */
    sr_abandon(r);
    check_ok(run_copy(&path, 1, sample_path("x.h5"), &o, &n, &why), &why); /* it was killed */
    check_values_of("growing.h5", "x.h5", 1, 1);
}

/* A damaged value is not copied under a new checksum. */
static void damage(void **state) {
    (void)state;
    const run_copy_options o = copied_plain();
    size_t size;
    char *bytes = damage_load(sample_path("whole.h5"), &size);
    const float value = (float)sample_vector(8, 2, SR_nu, 3);
    size_t at = 0;
    while (at + sizeof value <= size && memcmp(bytes + at, &value, sizeof value) != 0) at++;
    assert_true(at + sizeof value <= size);
    bytes[at] ^= 4;
    damage_store(sample_path("bad.h5"), bytes, size);
    free(bytes);
    char *path = (char *)(uintptr_t)sample_path("bad.h5");
    copied_refused(&path, 1, &o, SR_FORMAT, "/vectors/nu");
}

static void write_step(const char *file, const char *name, hsize_t at, int64_t value) {
    const hsize_t one = 1;
    hid_t f = damage_reopen(file), set = H5Dopen2(f, name, H5P_DEFAULT);
    hid_t space = H5Dget_space(set), memory = H5Screate_simple(1, &one, NULL);
    H5Sselect_hyperslab(space, H5S_SELECT_SET, &at, NULL, &one, NULL);
    assert_true(H5Dwrite(set, H5T_NATIVE_INT64, memory, space, H5P_DEFAULT, &value) >= 0);
    H5Sclose(memory), H5Sclose(space), H5Dclose(set);
    assert_true(H5Fclose(f) >= 0);
}

/* Flips a bit at every occurrence of these steps in the file. */
static void flip_steps(const char *file, const int64_t step[3]) {
    size_t size, places = 0;
    char *bytes = damage_load(sample_path("killed.h5.part"), &size);
    for (size_t at = 0; at + 24 <= size; at++)
        if (memcmp(bytes + at, step, 24) == 0) bytes[at + 8] ^= 64, places++;
    assert_in_range(places, 1, 9);
    damage_store(sample_path(file), bytes, size);
    free(bytes);
}

static void count_lost(void *context, const char *dataset, int64_t rows, const char *reason) {
    const char **wanted = context;
    (void)rows, (void)reason;
    if (strcmp(dataset, wanted[0]) == 0) wanted[1] = "";
}

/* Unreadable steps in an unfinished file: the file is not copied, and recover names the dataset. */
static void unreadable_steps(void **state) {
    (void)state;
    static const struct {
        const char *dataset;
        int64_t step[3];
    } row[] = {{"/steps/step", {1, 2, 3}},
               {"/vectors/step", {COPIED_VECTORS, 2 * COPIED_VECTORS, 3 * COPIED_VECTORS}},
               {"/spectra/step", {COPIED_SPECTRA, 2 * COPIED_SPECTRA, 3 * COPIED_SPECTRA}}};
    const run_copy_options o = copied_plain();
    const run_shape shape = {1, COPIED_STEPS, 77, "1", false};
    sr_recorder *r = copied_begin("killed.h5", &shape);
    check_ok(sr_flush(r), sr_failed(r));
    sr_abandon(r);
    for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
        sr_failure why = {0};
        const char *wanted[] = {row[i].dataset, NULL};
        char *path = (char *)(uintptr_t)sample_path("flipped.h5");
        flip_steps("flipped.h5", row[i].step);
        copied_refused(&path, 1, &o, SR_FORMAT, "/step: ");
        check_ok(sr_run_recover_report(path, sample_path("x.h5"), true, -1, NULL, count_lost,
                                       wanted, &why),
                 &why);
        if (!wanted[1]) fail_msg("%s is not among the losses", row[i].dataset);
        assert_int_equal(sr_run_check(sample_path("x.h5"), &why), SR_STATE);
    }
}

/* Rows of a step are adjacent: a file with an order that no writer makes is not copied. */
static void orders(void **state) {
    (void)state;
    static const struct {
        const char *dataset;
        hsize_t at;
        int64_t value;
    } row[] = {{"/steps/step", 20, 3},     {"/steps/step", 0, -2},  {"/vectors/step", 3, 5},
               {"/vectors/step", 9, 9999}, {"/vectors/step", 0, 0}, {"/spectra/step", 2, 1},
               {"/spectra/step", 5, 9999}};
    const run_copy_options o = copied_plain();
    char *path = (char *)(uintptr_t)sample_path("order.h5");
    for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
        char part[64];
        snprintf(part, sizeof part, "%s: not increasing", row[i].dataset);
        write_step(path, row[i].dataset, row[i].at, row[i].value);
        copied_refused(&path, 1, &o, SR_FORMAT, part);
    }
}

static void targets(void **state) {
    (void)state;
    run_copy_options o = copied_plain();
    sr_failure why = {0};
    run_copied n;
    char *path = (char *)(uintptr_t)sample_path("whole.h5");
    assert_int_equal(run_copy(&path, 1, path, &o, &n, &why), SR_EXISTS);
    o.force = false;
    check_write(sample_path("there.h5"), "text");
    why = (sr_failure){0};
    assert_int_equal(run_copy(&path, 1, sample_path("there.h5"), &o, &n, &why), SR_EXISTS);
    check_failure(&why, SR_EXISTS, "there.h5: exists");
    /* --force replaces a link, otherwise it is rejected; it is never followed */
    assert_int_equal(symlink(sample_path("there.h5"), sample_path("link.h5")), 0);
    why = (sr_failure){0};
    assert_int_equal(run_copy(&path, 1, sample_path("link.h5"), &o, &n, &why), SR_EXISTS);
    o.force = true, why = (sr_failure){0};
    assert_int_equal(run_copy(&path, 1, sample_path("link.h5"), &o, &n, &why), SR_EXISTS);
    struct stat s;
    assert_int_equal(stat(sample_path("there.h5"), &s), 0);
    assert_int_equal(s.st_size, 4);
}

/* -- selected parts of a run, and empty parts ------------------------------------------------- */

static void chosen_sites(void **state) {
    (void)state;
    static const struct {
        int64_t site[2];
        const char *says;
    } row[] = {{{0, 4}, "whole.h5: site number 4 of 4"},
               {{2, 1}, "whole.h5: site number 1 of 4"},
               {{1, 1}, "whole.h5: site number 1 of 4"},
               {{-1, 1}, "whole.h5: site number -1 of 4"}};
    char *path = (char *)(uintptr_t)sample_path("whole.h5");
    for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
        run_copy_options o = copied_plain();
        o.choice.site = row[i].site, o.choice.sites = 2;
        copied_refused(&path, 1, &o, SR_USAGE, row[i].says);
    }
}

static bool keeps_named(const void *context, const char *name) {
    return strcmp(context, name) == 0;
}

/* Rows of vectors and spectra are selected, but no vector and no spectrum: the copy has none. */
static void one_scalar(void **state) {
    (void)state;
    run_copy_options o = copied_plain();
    o.choice.keeps = keeps_named, o.choice.context = "own";
    const run_copied n = copied_copy("whole.h5", "x.h5", &o);
    assert_int_equal(n.steps, COPIED_STEPS);
    assert_int_equal(n.vectors, 0), assert_int_equal(n.spectra, 0);
    sr_runfile *f = sample_open(sample_path("x.h5"));
    assert_false(sr_run_has_vector(f, "mu"));
    assert_int_equal(sr_run_get_info(f)->vectors, 0);
    sr_run_close(f);
}

/* Copies steps after many others, whose batches are not read. */
static void end_of_many(void **state) {
    (void)state;
    run_copy_options o = copied_plain();
    damage_make_run(sample_path("long.h5"), 200);
    o.first = 190;
    assert_int_equal(copied_copy("long.h5", "x.h5", &o).steps, 11);
    sr_runfile *f = sample_open(sample_path("x.h5"));
    assert_int_equal(sr_run_get_info(f)->steps, 11);
    sample_check(f, 190, 1);
    sr_run_close(f);
}

/* The last part contains no selected step: the copy ends in the part before. Parts without steps
 * cannot overlap. `why` may be NULL. */
static void parts_without_steps(void **state) {
    (void)state;
    run_copy_options o = copied_plain();
    run_copied n;
    sr_failure why = {0};
    const run_shape first = {1, 10, 77, "1", false}, second = {11, 20, 77, "1", true};
    copied_write("a.h5", &first), copied_write("b.h5", &second);
    char *pair[] = {(char *)(uintptr_t)sample_path("a.h5"), (char *)(uintptr_t)sample_path("b.h5")};
    o.last = 7;
    check_ok(run_copy(pair, 2, sample_path("x.h5"), &o, &n, NULL), &why);
    assert_int_equal(n.steps, 7), assert_int_equal(n.of_steps, 20);
    const run_shape none = {1, 0, 77, "1", false};
    copied_write("a.h5", &none), copied_write("b.h5", &none);
    check_ok(run_copy(pair, 2, sample_path("x.h5"), &o, &n, &why), &why);
    assert_int_equal(n.steps, 0), assert_int_equal(n.of_steps, 0);
}

/* Two parts that start at step 0: the first would contribute no step. */
static void parts_of_the_beginning(void **state) {
    (void)state;
    const run_copy_options o = copied_plain();
    run_copied n;
    sr_failure why = {0};
    const run_shape shape = {0, 5, 77, "1", false};
    copied_write("a.h5", &shape), copied_write("b.h5", &shape);
    char *pair[] = {(char *)(uintptr_t)sample_path("a.h5"), (char *)(uintptr_t)sample_path("b.h5")};
    run_copy(pair, 2, sample_path("refused.h5"), &o, &n, &why);
    check_failure(&why, SR_USAGE, "begins at step 0, but");
    assert_string_equal(why.hint, "");
}

/* A metric of only one part is a metric of the copy. */
static void another_metric(void **state) {
    (void)state;
    const run_copy_options o = copied_plain();
    run_copied n;
    int id[2];
    sr_failure why = {0};
    const sr_options options = copied_options();
    const run_shape first = {1, 5, 77, "1", false}, second = {6, 10, 77, "1", true};
    copied_write("a.h5", &first);
    sr_recorder *r = sample_begin(sample_path("b.h5"), &options);
    sr_add_metric(r, "chrf", "percent", "of characters", SR_BETTER_MORE);
    copied_declare(r, &second, id), copied_put(r, &second, id);
    run_finish(r);
    char *pair[] = {(char *)(uintptr_t)sample_path("a.h5"), (char *)(uintptr_t)sample_path("b.h5")};
    check_ok(run_copy(pair, 2, sample_path("x.h5"), &o, &n, &why), &why);
    sr_runfile *f = sample_open(sample_path("x.h5"));
    const sr_run_metric *m = sr_run_find_metric(f, "chrf");
    assert_non_null(m);
    assert_string_equal(m->unit, "percent");
    sr_run_close(f);
}

/* A caller's first failure is kept, as everywhere. */
static void failure_of_before(void **state) {
    (void)state;
    const run_copy_options o = copied_plain();
    run_copied n;
    sr_failure why = {.status = SR_IO, .text = "before"};
    write_step(sample_path("order.h5"), "/evals/step", 1, -7);
    char *path = (char *)(uintptr_t)sample_path("order.h5");
    assert_int_not_equal(run_copy(&path, 1, sample_path("x.h5"), &o, &n, &why), SR_OK);
    assert_string_equal(why.text, "before");
    assert_int_equal(sr_run_check(path, &why), SR_FORMAT);
    assert_string_equal(why.text, "before");
    write_step(sample_path("order.h5"), "/steps/step", 0, -2);
    assert_int_not_equal(sr_run_recover(path, path, true, -1, NULL, &why), SR_OK);
    assert_string_equal(why.text, "before");
}

/* A copy whose /copy lost a text is damaged, also when it is copied anonymously. */
static void copy_without_a_text(void **state) {
    (void)state;
    run_copy_options o = copied_plain();
    sr_failure why = {0};
    run_copied n;
    copied_copy("whole.h5", "once.h5", &o);
    o.anonymous = true;
    hid_t f = H5Fopen(sample_path("once.h5"), H5F_ACC_RDWR, H5P_DEFAULT);
    assert_true(H5Adelete_by_name(f, "/copy", "options", H5P_DEFAULT) >= 0);
    assert_true(H5Fclose(f) >= 0);
    char *path = (char *)(uintptr_t)sample_path("once.h5");
    assert_int_equal(run_copy(&path, 1, sample_path("refused.h5"), &o, &n, &why), SR_FORMAT);
    check_failure(&why, SR_FORMAT, "once.h5");
}

/* No target path, no recorder to copy to. A file with the same number on another device is another
 * file. */
static void nowhere(void **state) {
    (void)state;
    sr_failure why = {0};
    assert_int_equal(sr_run_recover(sample_path("whole.h5"), NULL, true, -1, NULL, &why), SR_USAGE);
    check_failure(&why, SR_USAGE, "no path for the recovered file");
    assert_int_equal(sr_run_recover(sample_path("whole.h5"), "", true, -1, NULL, NULL), SR_USAGE);
    why = (sr_failure){0};
    check_ok(copy_check_target(sample_path("whole.h5"), "/dev/null", &why), &why);
    assert_int_equal(sr_copy_rows(NULL, sample_path("whole.h5"), -1, -1, NULL), SR_STATE);
}

/* A recorder with another number of pairs copies everything else. */
static void other_pairs(void **state) {
    (void)state;
    int id[2];
    const run_shape shape = {1, COPIED_STEPS, 77, "1", true};
    sr_options o = copied_options();
    o.pairs = COPIED_PAIRS + 1;
    sr_recorder *r = sample_begin(sample_path("x.h5"), &o);
    copied_declare(r, &shape, id);
    check_ok(sr_copy_rows(r, sample_path("whole.h5"), -1, -1, NULL), sr_failed(r));
    run_finish(r);
    sr_failure why = {0};
    int64_t batches;
    double tid[SR_FINAL_COUNT][SAMPLE_SITES], *final[SR_FINAL_COUNT];
    for (int i = 0; i < SR_FINAL_COUNT; i++) final[i] = tid[i];
    sr_runfile *f = sample_open(sample_path("x.h5"));
    assert_int_equal(sr_run_get_info(f)->pairs, COPIED_PAIRS + 1);
    check_ok(sr_run_final(f, &batches, final, &why), &why);
    assert_int_equal(batches, 7);
    check_equals(tid[0][3], 4);
    sr_run_close(f);
}

/* Columns of /final are missing: the others are recovered, even the pairs alone. */
static void final_in_parts(void **state) {
    (void)state;
    static const char *const gone[] = {"/final/tid_mean", "/final/tid_var", "/final/batches"};
    for (int count = 2; count <= 3; count++) {
        sr_failure why = {0};
        hid_t f = damage_reopen(sample_path("final.h5"));
        for (int i = 0; i < count; i++) assert_true(H5Ldelete(f, gone[i], H5P_DEFAULT) >= 0);
        assert_true(H5Fclose(f) >= 0);
        check_ok(sr_run_recover(sample_path("final.h5"), sample_path("x.h5"), true, -1, NULL, &why),
                 &why);
        sr_runfile *r = sample_open(sample_path("x.h5"));
        assert_int_equal(sr_run_get_info(r)->pairs, COPIED_PAIRS);
        sr_run_close(r);
    }
}

static void expect_tokens(void *context, const char *dataset, int64_t rows, const char *reason) {
    (void)rows, (void)reason;
    assert_string_equal(dataset, "/steps/tokens");
    ++*(int *)context;
}

/* Even if a path looks like the start of a fault, only the dataset is named. */
static void path_with_a_colon(void **state) {
    (void)state;
    int lost = 0;
    sr_failure why = {0};
    const char *path = sample_path("a: b/run.h5");
    assert_int_equal(mkdir(sample_path("a: b"), 0777), 0);
    hid_t f = damage_reopen(path);
    assert_true(H5Ldelete(f, "/steps/tokens", H5P_DEFAULT) >= 0);
    assert_true(H5Fclose(f) >= 0);
    check_ok(sr_run_recover_report(path, sample_path("x.h5"), true, -1, NULL, expect_tokens, &lost,
                                   &why),
             &why);
    assert_int_equal(lost, 1);
}

static int stop_now(void) {
    return 15;
}

static void signalled(void **state) {
    (void)state;
    run_copy_options o = copied_plain();
    char *path = (char *)(uintptr_t)sample_path("whole.h5");
    o.choice.stopped = stop_now;
    copied_refused(&path, 1, &o, SR_STATE, "stopped by a signal");
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(everything),
                                       cmocka_unit_test(growing_out_of_order),
                                       cmocka_unit_test(origin),
                                       cmocka_unit_test(thinned),
                                       cmocka_unit_test(selected),
                                       cmocka_unit_test(running),
                                       cmocka_unit_test(joined),
                                       cmocka_unit_test(not_parts),
                                       cmocka_unit_test(growing),
                                       cmocka_unit_test(damage),
                                       cmocka_unit_test(orders),
                                       cmocka_unit_test(targets),
                                       cmocka_unit_test(signalled),
                                       cmocka_unit_test(chosen_sites),
                                       cmocka_unit_test(one_scalar),
                                       cmocka_unit_test(end_of_many),
                                       cmocka_unit_test(parts_without_steps),
                                       cmocka_unit_test(parts_of_the_beginning),
                                       cmocka_unit_test(another_metric),
                                       cmocka_unit_test(failure_of_before),
                                       cmocka_unit_test(copy_without_a_text),
                                       cmocka_unit_test(nowhere),
                                       cmocka_unit_test(path_with_a_colon),
                                       cmocka_unit_test(unreadable_steps),
                                       cmocka_unit_test(other_pairs),
                                       cmocka_unit_test(final_in_parts)};
    return cmocka_run_group_tests(tests, begin, NULL);
}
