#include "copied_run.h"

#include <hdf5.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "testing/check.h"
#include "testing/damage.h"
#include "testing/run_builder.h"
#include "testing/sample_run.h"

/* -- a run of everything --------------------------------------------------------------------- */

static void put_spectra(sr_recorder *r, int64_t step) {
    double value[SAMPLE_WIDTH];
    const double *const both[SR_SPECTRUM_COUNT] = {value, value};
    for (int i = 0; i < SAMPLE_SITES; i++) {
        for (int k = 0; k < sample_sites[i].width; k++)
            value[k] = (double)(step + 100 + 10 * i - k);
        sr_put_spectrum(r, i, 10 + i, both);
    }
}

/* A sample step with spectra and custom scalars. */
static void put_step(sr_recorder *r, const int id[2], int64_t step) {
    double value[SAMPLE_WIDTH];
    sr_begin_step(r, step);
    for (int i = 0; i < SAMPLE_SITES; i++) {
        sr_put_rows(r, i, sample_rows(step, i));
        sr_put_scalar(r, i, id[0], 0.5 * (double)step + i);
        for (int v = 0; v < SR_VECTOR_COUNT; v++) {
            for (int64_t k = 0; k < sample_sites[i].width; k++)
                value[k] = sample_vector(step, i, v, k);
            if (sample_puts(i, v)) sr_put_vector(r, i, (sr_vector)v, value);
        }
    }
    sr_put_scalar(r, 3, SR_SCALAR_row_grad_var, (double)step);
    if (step % COPIED_SPECTRA == 0) put_spectra(r, step);
    sr_put_step_scalar(r, id[1], (double)(2 * step));
    const sr_step row = sample_row(step);
    sr_end_step(r, &row);
    if (step % 5) return;
    const double singular[SAMPLE_EMBEDDING] = {3 + (double)step, 2, 1};
    sample_put_eval(r, step);
    sr_put_singular_values(r, "shared", step, singular);
}

static void put_end(sr_recorder *r) {
    const double tid[SAMPLE_SITES] = {1, 2, 3, 4}, *const final[SR_FINAL_COUNT] = {tid, tid};
    for (int i = 0; i < SAMPLE_SITES; i++) {
        const float x[COPIED_PAIRS] = {(float)i, 1, 2}, y[COPIED_PAIRS] = {3, (float)i, 5};
        const int32_t feature[COPIED_PAIRS] = {0, 1, 2};
        sr_put_pairs(r, i, x, y, feature);
    }
    sr_put_final(r, 7, final);
}

sr_options copied_options(void) {
    sr_options o = SR_OPTIONS_DEFAULT;
    o.overhead = 0, o.vectors_every = COPIED_VECTORS, o.spectra = o.final = true,
    o.pairs = COPIED_PAIRS;
    o.program = "mytrainer.py", o.version = "2 of carol", o.force = true;
    o.command = "/home/alice/train.py --out scratch/x";
    o.config = "{'mail': 'ann@x.org', 'out': '/home/alice/out'}";
    o.host = COPIED_HOST ".node7.example", o.git = "deadbee42", o.model = "resnet";
    o.data = "/home/alice/my data", o.task = "images", o.loss_reduction = "mean";
    o.parent = "parentfile.h5 step 3", o.ranks = "rank 0 of 2", o.seed = 77, o.threads = 3;
    o.started = 1927843200 + 4 * 86400.0; /* in February 2031 */
    return o;
}

void copied_declare(sr_recorder *r, const run_shape *shape, int id[2]) {
    id[0] = sr_declare_scalar(r, "own", shape->unit, "of a site", SR_PER_SITE);
    id[1] = sr_declare_scalar(r, "own too", "1", "of a step", SR_PER_STEP);
}

void copied_put(sr_recorder *r, const run_shape *shape, const int id[2]) {
    for (int64_t step = shape->first; step <= shape->last; step++) put_step(r, id, step);
    if (shape->end) put_end(r);
}

sr_recorder *copied_begin(const char *name, const run_shape *shape) {
    sr_options o = copied_options();
    o.seed = shape->seed;
    sr_recorder *r = sample_begin(sample_path(name), &o);
    int id[2];
    copied_declare(r, shape, id);
    copied_put(r, shape, id);
    if (sr_failed(r)) fail_msg("%s", sr_failed(r)->text);
    return r;
}

void copied_write(const char *name, const run_shape *shape) {
    sr_failure why = {0};
    const sr_finish end = SR_INIT(sr_finish, .status = "complete", .reason = "by alice",
                                  .weights_digest = "0123abcd");
    check_ok(sr_close(copied_begin(name, shape), &end, &why), &why);
}

/* -- copying --------------------------------------------------------------------------------- */

run_copy_options copied_plain(void) {
    return (run_copy_options){.every = 1,
                              .vectors_every = 1,
                              .first = INT64_MIN,
                              .last = INT64_MAX,
                              .text = "none",
                              .force = true};
}

run_copied copied_copy(const char *from, const char *to, const run_copy_options *o) {
    char *const path = (char *)(uintptr_t)sample_path(from);
    sr_failure why = {0};
    run_copied result;
    check_ok(run_copy(&path, 1, sample_path(to), o, &result, &why), &why);
    sr_failure fault = {0};
    check_ok(sr_run_check(sample_path(to), &fault), &fault);
    sr_runfile *f = sample_open(sample_path(to));
    assert_true(sr_run_has_checksums(f));
    sr_run_close(f);
    assert_int_not_equal(access(sample_path("x.h5.part"), F_OK), 0);
    return result;
}

/* Copies, and requires this failure; no file and no .part remains. */
void copied_refused(char *const *paths, int count, const run_copy_options *o, sr_status status,
                    const char *part) {
    sr_failure why = {0};
    run_copied result;
    const char *path = sample_path("refused.h5");
    if (run_copy(paths, count, path, o, &result, &why) != status)
        fail_msg("not refused with '%s': '%s'", part, why.text);
    check_failure(&why, status, part);
    assert_int_not_equal(access(path, F_OK), 0);
    assert_int_not_equal(access(sample_path("refused.h5.part"), F_OK), 0);
}

/* -- comparing files dataset by dataset ------------------------------------------------------ */

typedef struct comparison {
    hid_t other;
    int datasets;
    const char *skip; /* datasets whose path starts with one of these, separated by spaces */
} comparison;

static bool skips(const char *skip, const char *name) {
    for (size_t length; (length = strcspn(skip, " ")) > 0; skip += length + (skip[length] == ' '))
        if (strncmp(name, skip, length) == 0) return true;
    return false;
}

static void *read_dataset(hid_t file, const char *name, hsize_t *bytes) {
    const hid_t set = H5Dopen2(file, name, H5P_DEFAULT);
    if (set < 0) fail_msg("no dataset %s", name);
    const hid_t space = H5Dget_space(set), type = H5Dget_type(set);
    *bytes = (hsize_t)H5Sget_simple_extent_npoints(space) * H5Tget_size(type);
    void *value = calloc(1, (size_t)*bytes + 1);
    assert_non_null(value);
    assert_true(H5Dread(set, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, value) >= 0);
    H5Tclose(type), H5Sclose(space), H5Dclose(set);
    return value;
}

static herr_t compare_dataset(hid_t file, const char *name, const H5O_info_t *info, void *context) {
    comparison *c = context;
    hsize_t bytes, others;
    if (info->type != H5O_TYPE_DATASET) return 0;
    if (skips(c->skip, name)) return 0;
    void *value = read_dataset(file, name, &bytes), *other = read_dataset(c->other, name, &others);
    if (bytes != others || memcmp(value, other, (size_t)bytes) != 0)
        fail_msg("%s: differs, %d and %d bytes", name, (int)bytes, (int)others);
    free(value), free(other);
    c->datasets++;
    return 0;
}

void copied_same_datasets(const char *a, const char *b, const char *skip) {
    const hid_t file = H5Fopen(sample_path(a), H5F_ACC_RDONLY, H5P_DEFAULT);
    comparison c = {H5Fopen(sample_path(b), H5F_ACC_RDONLY, H5P_DEFAULT), 0, skip};
    assert_true(file >= 0 && c.other >= 0);
    H5Ovisit2(file, H5_INDEX_NAME, H5_ITER_INC, compare_dataset, &c, H5O_INFO_BASIC);
    H5Fclose(file), H5Fclose(c.other);
    check_above(c.datasets, 90);
}

void copied_same_text(const char *name, const char *got, const char *want) {
    if (strcmp(got, want) != 0) fail_msg("%s: '%s', not '%s'", name, got, want);
}

/* Reads a text attribute of /copy. */
void copied_check_attribute(const char *file, const char *name, const char *want) {
    char text[1024] = "";
    const hid_t f = H5Fopen(sample_path(file), H5F_ACC_RDONLY, H5P_DEFAULT);
    const hid_t a = H5Aopen_by_name(f, "/copy", name, H5P_DEFAULT, H5P_DEFAULT);
    assert_true(a >= 0);
    const hid_t type = H5Aget_type(a);
    assert_true(H5Tget_size(type) < sizeof text);
    H5Aread(a, type, text);
    H5Tclose(type), H5Aclose(a), H5Fclose(f);
    copied_same_text(name, text, want);
}
