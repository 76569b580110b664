/* test_copy_run.c -- what run_copy writes: the same numbers, fewer rows, fewer sites, parts joined,
 * no names of anybody; when it refuses, it leaves nothing. */
#include <hdf5.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "runfile/repair/copy_run.h"
#include "testing/check.h"
#include "testing/damage.h"
#include "testing/run_builder.h"
#include "testing/sample_run.h"

enum { STEPS = 40, EVERY = 4, SPECTRA = 6, K = 3 };

/* -- a run of everything --------------------------------------------------------------------- */

/* Texts that no anonymous copy may have. */
#define HOST "nodeseven"
static const char *const secret[] = {
    HOST,        "node7",     "deadbee42",  "alice", "/home/alice/train.py",
    "scratch",   "ann@x.org", "2031-02-03", "carol", "my data",
    "mytrainer", "parentfile"};

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
    if (step % SPECTRA == 0) put_spectra(r, step);
    sr_put_step_scalar(r, id[1], (double)(2 * step));
    const sr_step row = sample_row(step);
    check_ok(sr_end_step(r, &row), sr_failed(r));
    if (step % 5) return;
    const double singular[SAMPLE_EMBEDDING] = {3 + (double)step, 2, 1};
    sample_put_eval(r, step);
    check_ok(sr_put_singular_values(r, "shared", step, singular), sr_failed(r));
}

static void put_end(sr_recorder *r) {
    const double tid[SAMPLE_SITES] = {1, 2, 3, 4}, *const final[SR_FINAL_COUNT] = {tid, tid};
    for (int i = 0; i < SAMPLE_SITES; i++) {
        const float x[K] = {(float)i, 1, 2}, y[K] = {3, (float)i, 5};
        const int32_t feature[K] = {0, 1, 2};
        check_ok(sr_put_pairs(r, i, x, y, feature), sr_failed(r));
    }
    check_ok(sr_put_final(r, 7, final), sr_failed(r));
}

static sr_options whole_options(void) {
    sr_options o = SR_OPTIONS_DEFAULT;
    o.overhead = 0, o.vectors_every = EVERY, o.spectra = o.final = true, o.pairs = K;
    o.program = "mytrainer.py", o.version = "2 of carol", o.force = true;
    o.command = "/home/alice/train.py --out scratch/x";
    o.config = "{'mail': 'ann@x.org', 'out': '/home/alice/out'}";
    o.host = HOST ".node7.example", o.git = "deadbee42", o.model = "resnet";
    o.data = "/home/alice/my data", o.task = "images", o.loss_reduction = "mean";
    o.parent = "parentfile.h5 step 3", o.ranks = "rank 0 of 2", o.seed = 77, o.threads = 3;
    o.started = 1927843200 + 4 * 86400.0; /* in February 2031 */
    return o;
}

typedef struct run_shape {
    int64_t first, last;
    uint64_t seed;
    const char *unit; /* of a custom scalar */
    bool end;
} run_shape;

static const run_shape whole_shape = {1, STEPS, 77, "1", true};

static sr_recorder *begin_run(const char *name, const run_shape *shape) {
    sr_options o = whole_options();
    o.seed = shape->seed;
    sr_recorder *r = sample_begin(sample_path(name), &o);
    const int id[2] = {sr_declare_scalar(r, "own", shape->unit, "of a site", SR_PER_SITE),
                       sr_declare_scalar(r, "own too", "1", "of a step", SR_PER_STEP)};
    for (int64_t step = shape->first; step <= shape->last; step++) put_step(r, id, step);
    if (shape->end) put_end(r);
    return r;
}

static void write_run(const char *name, const run_shape *shape) {
    sr_failure why = {0};
    const sr_finish end = SR_INIT(sr_finish, .status = "complete", .reason = "by alice",
                                  .weights_digest = "0123abcd");
    check_ok(sr_close(begin_run(name, shape), &end, &why), &why);
}

/* -- copying --------------------------------------------------------------------------------- */

static run_copy_options plain(void) {
    return (run_copy_options){.every = 1,
                              .vectors_every = 1,
                              .first = INT64_MIN,
                              .last = INT64_MAX,
                              .text = "none",
                              .force = true};
}

static run_copied copy(const char *from, const char *to, const run_copy_options *o) {
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

/* Copies and must fail like this; no file and no part is left. */
static void refused(char *const *paths, int count, const run_copy_options *o, sr_status status,
                    const char *part) {
    sr_failure why = {0};
    run_copied result;
    const char *path = sample_path("refused.h5");
    assert_int_equal(run_copy(paths, count, path, o, &result, &why), status);
    check_failure(&why, status, part);
    assert_int_not_equal(access(path, F_OK), 0);
    assert_int_not_equal(access(sample_path("refused.h5.part"), F_OK), 0);
}

/* -- comparing files dataset by dataset ------------------------------------------------------ */

typedef struct comparison {
    hid_t other;
    int datasets;
    const char *skip; /* datasets whose path begins like this */
} comparison;

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
    if (*c->skip && strncmp(name, c->skip, strlen(c->skip)) == 0) return 0;
    void *value = read_dataset(file, name, &bytes), *other = read_dataset(c->other, name, &others);
    if (bytes != others || memcmp(value, other, (size_t)bytes) != 0)
        fail_msg("%s: differs, %d and %d bytes", name, (int)bytes, (int)others);
    free(value), free(other);
    c->datasets++;
    return 0;
}

static void same_datasets(const char *a, const char *b, const char *skip) {
    const hid_t file = H5Fopen(sample_path(a), H5F_ACC_RDONLY, H5P_DEFAULT);
    comparison c = {H5Fopen(sample_path(b), H5F_ACC_RDONLY, H5P_DEFAULT), 0, skip};
    assert_true(file >= 0 && c.other >= 0);
    H5Ovisit2(file, H5_INDEX_NAME, H5_ITER_INC, compare_dataset, &c, H5O_INFO_BASIC);
    H5Fclose(file), H5Fclose(c.other);
    check_above(c.datasets, 90);
}

static void same_text(const char *name, const char *got, const char *want) {
    if (strcmp(got, want) != 0) fail_msg("%s: '%s', not '%s'", name, got, want);
}

/* A text attribute of /copy. */
static void check_copied(const char *file, const char *name, const char *want) {
    char text[1024] = "";
    const hid_t f = H5Fopen(sample_path(file), H5F_ACC_RDONLY, H5P_DEFAULT);
    const hid_t a = H5Aopen_by_name(f, "/copy", name, H5P_DEFAULT, H5P_DEFAULT);
    assert_true(a >= 0);
    const hid_t type = H5Aget_type(a);
    assert_true(H5Tget_size(type) < sizeof text);
    H5Aread(a, type, text);
    H5Tclose(type), H5Aclose(a), H5Fclose(f);
    same_text(name, text, want);
}

/* -- the tests ------------------------------------------------------------------------------- */

static int begin(void **state) {
    (void)state;
    write_run("whole.h5", &whole_shape);
    return 0;
}

static void everything(void **state) {
    (void)state;
    const run_copy_options o = plain();
    const run_copied n = copy("whole.h5", "x.h5", &o);
    same_datasets("whole.h5", "x.h5", "");
    assert_int_equal(n.steps, STEPS), assert_int_equal(n.of_steps, STEPS);
    assert_int_equal(n.vectors, STEPS / EVERY), assert_int_equal(n.spectra, STEPS / SPECTRA);
    assert_int_equal(n.evals, STEPS / 5), assert_false(n.unfinished);
    sr_runfile *a = sample_open(sample_path("whole.h5")), *b = sample_open(sample_path("x.h5"));
    const sr_run_info *from = sr_run_get_info(a), *to = sr_run_get_info(b);
#define SAME(name) same_text(#name, to->name, from->name);
    RUN_TEXTS(SAME)
    SAME(status)
    SAME(reason) SAME(weights_digest) SAME(finished) SAME(ranks)
#undef SAME
        assert_int_equal(to->seed, from->seed),
        assert_int_equal(to->threads, from->threads);
    check_equals(to->wall_seconds, from->wall_seconds);
    sr_run_close(a), sr_run_close(b);
}

/* The checksum is that of zlib over the whole file; a copy of a copy lists both. */
static void origin(void **state) {
    (void)state;
    run_copy_options o = plain();
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
    copy("whole.h5", "x.h5", &o);
    check_copied("x.h5", "sources", "whole.h5");
    check_copied("x.h5", "checksums", sum);
    check_copied("x.h5", "options", "none");
    o.text = "--every 3", o.every = o.vectors_every = 3;
    copy("x.h5", "y.h5", &o);
    check_copied("y.h5", "sources", "whole.h5\nx.h5");
    check_copied("y.h5", "options", "none\n--every 3");
    /* recovery keeps it */
    sr_failure why = {0};
    check_ok(sr_run_recover(sample_path("y.h5"), sample_path("z.h5"), true, -1, NULL, &why), &why);
    check_copied("z.h5", "sources", "whole.h5\nx.h5");
    snprintf(want, sizeof want, "%s\n", sum);
    o.anonymous = true;
    copy("y.h5", "z.h5", &o);
    check_copied("z.h5", "sources", "-");
    check_copied("z.h5", "options", "none\n--every 3\n--every 3");
}

/* Steps, and steps of vectors and spectra. */
static void check_steps(const char *name, const int64_t *steps, int count, const int64_t *vectors,
                        int vector_count) {
    sr_runfile *f = sample_open(sample_path(name));
    sr_failure why = {0};
    int64_t got[STEPS];
    assert_int_equal(sr_run_get_info(f)->steps, count);
    assert_int_equal(sr_run_get_info(f)->vectors, vector_count);
    check_ok(sr_run_step_ints(f, "step", 0, count, got, &why), &why);
    for (int i = 0; i < count; i++) assert_int_equal(got[i], steps[i]);
    check_ok(sr_run_vector_steps(f, 0, vector_count, got, &why), &why);
    for (int i = 0; i < vector_count; i++) assert_int_equal(got[i], vectors[i]);
    sr_run_close(f);
}

/* Values of site `site` of the copy, which is `of` in the run. */
static void check_values(const char *name, int site, int of) {
    sr_runfile *a = sample_open(sample_path("whole.h5")), *b = sample_open(sample_path(name));
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
        check_ok(sr_run_spectrum(a, 1, of, step / SPECTRA - 1, &there, &count, wanted, NULL), NULL);
        assert_int_equal(there, step), assert_int_equal(rows, count);
        assert_memory_equal(spectrum, wanted, (size_t)width * sizeof *wanted);
    }
    sr_run_close(a), sr_run_close(b);
}

static void thinned(void **state) {
    (void)state;
    run_copy_options o = plain();
    /* vectors at 4, 8, ...: the first at or after 10, 20, 30, 40 are 12, 20, 32, 40; spectra at 6,
       12, ...: 12, 24, 30 */
    o.every = o.vectors_every = 10;
    run_copied n = copy("whole.h5", "x.h5", &o);
    check_steps("x.h5", (const int64_t[]){10, 12, 20, 24, 30, 32, 40}, 7,
                (const int64_t[]){12, 20, 32, 40}, 4);
    assert_int_equal(n.spectra, 3), assert_int_equal(n.evals, STEPS / 5);
    for (int i = 0; i < SAMPLE_SITES; i++) check_values("x.h5", i, i);
    same_datasets("x.h5", "x.h5", ""); /* readable by HDF5 */
    o.every = 9, o.vectors_every = 0;
    n = copy("whole.h5", "x.h5", &o);
    check_steps("x.h5", (const int64_t[]){9, 18, 27, 36, 40}, 5, NULL, 0);
    assert_int_equal(n.spectra, 0), check_below((double)n.bytes, (double)n.of_bytes);
    o.every = 20, o.vectors_every = 8, o.first = 9, o.last = 31;
    copy("whole.h5", "x.h5", &o);
    check_steps("x.h5", (const int64_t[]){12, 16, 20, 24, 31}, 5, (const int64_t[]){12, 16, 24}, 3);
    check_values("x.h5", 2, 2);
    sr_runfile *f = sample_open(sample_path("x.h5"));
    int64_t batches;
    double memory[SR_FINAL_COUNT][SAMPLE_SITES], *value[SR_FINAL_COUNT] = {memory[0], memory[1]};
    assert_int_equal(sr_run_get_info(f)->evals, 5); /* at 10, 15, 20, 25, 30 */
    check_ok(sr_run_final(f, &batches, value, NULL), NULL);
    assert_int_equal(batches, -1); /* of the last step, which is not among these */
    sr_run_close(f);
}

static bool keeps_some(const void *context, const char *name) {
    return strstr(context, name) != NULL;
}

static void selected(void **state) {
    (void)state;
    run_copy_options o = plain();
    static const int64_t site[] = {0, 2};
    o.choice.site = site, o.choice.sites = 2;
    copy("whole.h5", "x.h5", &o);
    check_values("x.h5", 0, 0), check_values("x.h5", 1, 2);
    sr_runfile *f = sample_open(sample_path("x.h5"));
    float x[K], y[K];
    int32_t feature[K];
    int64_t batches;
    double memory[SR_FINAL_COUNT][2], *value[SR_FINAL_COUNT] = {memory[0], memory[1]};
    assert_int_equal(sr_run_get_info(f)->sites, 2), assert_int_equal(sr_run_get_info(f)->width, 12);
    same_text("site", sr_run_get_site(f, 1)->name, "encoder.final");
    assert_int_equal(sr_run_get_site(f, 1)->depth, 2);
    check_ok(sr_run_pairs(f, 1, x, y, feature, NULL), NULL);
    check_equals(x[0], 2), check_equals(y[1], 2);
    check_ok(sr_run_final(f, &batches, value, NULL), NULL);
    assert_int_equal(batches, 7), check_equals(value[0][1], 3);
    sr_run_close(f);
    o.choice.keeps = keeps_some, o.choice.context = "rows dist_mu mu_B input";
    copy("whole.h5", "x.h5", &o);
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

/* Parts in any order become the run that they are from. */
static void joined(void **state) {
    (void)state;
    run_copy_options o = plain();
    sr_failure why = {0};
    run_copied n;
    char *part[3];
    for (int i = 0; i < 3; i++) {
        char name[16];
        snprintf(name, sizeof name, "part%d.h5", i);
        o.first = i == 0 ? 17 : i == 1 ? 31 : INT64_MIN;
        o.last = i == 0 ? 30 : i == 1 ? INT64_MAX : 16;
        copy("whole.h5", name, &o);
        part[i] = (char *)(uintptr_t)sample_path(name);
    }
    o = plain();
    check_ok(run_copy(part, 3, sample_path("x.h5"), &o, &n, &why), &why);
    check_ok(sr_run_check(sample_path("x.h5"), &why), &why);
    same_datasets("whole.h5", "x.h5", "");
    assert_int_equal(n.steps, STEPS), assert_int_equal(n.of_vectors, STEPS / EVERY);
    check_copied("x.h5", "options", "none\nnone\nnone\nnone\nnone\nnone");
    /* thinning goes on from part to part */
    o.every = o.vectors_every = 10;
    check_ok(run_copy(part, 3, sample_path("x.h5"), &o, &n, &why), &why);
    check_steps("x.h5", (const int64_t[]){10, 12, 16, 20, 24, 30, 32, 40}, 8,
                (const int64_t[]){12, 20, 32, 40}, 4);
}

static void not_parts(void **state) {
    (void)state;
    const run_copy_options o = plain();
    run_shape shape = {STEPS - 2, STEPS + 5, 77, "1", true};
    write_run("after.h5", &shape);
    char *pair[] = {(char *)(uintptr_t)sample_path("whole.h5"),
                    (char *)(uintptr_t)sample_path("after.h5")};
    refused(pair, 2, &o, SR_USAGE, "begins at step 38, but");
    refused((char *[]){pair[1], pair[0]}, 2, &o, SR_USAGE, "ends at step 40: their steps overlap");
    shape.first = STEPS + 1, shape.seed = 78;
    write_run("after.h5", &shape);
    refused(pair, 2, &o, SR_USAGE, "its seed is 78, not 77");
    shape.seed = 77, shape.unit = "percent";
    write_run("after.h5", &shape);
    refused(pair, 2, &o, SR_USAGE, "scalar own has another unit");
    write_small_run(sample_path("small.h5"), 6, true);
    pair[1] = (char *)(uintptr_t)sample_path("small.h5");
    refused(pair, 2, &o, SR_USAGE, "not a part of the run in");
    run_copy_options none = plain();
    none.first = 1000, none.last = 2000;
    refused(pair, 1, &none, SR_USAGE, "none of its 40 steps is from 1000 to 2000");
}

static bool shares_lr(const char *key) {
    return strcmp(key, "lr") == 0;
}

/* Searches the bytes of a file. */
static void has_no(const char *file, const char *text) {
    size_t size;
    char *bytes = damage_load(sample_path(file), &size);
    for (size_t i = 0; i + strlen(text) <= size; i++)
        if (memcmp(bytes + i, text, strlen(text)) == 0)
            fail_msg("%s: '%s' at byte %zu", file, text, i);
    free(bytes);
}

static void anonymous(void **state) {
    (void)state;
    run_copy_options o = plain();
    o.anonymous = true, o.shares = shares_lr, o.text = "--anonymous";
    copy("whole.h5", "x.h5", &o);
    for (size_t i = 0; i < sizeof secret / sizeof *secret; i++) has_no("x.h5", secret[i]);
    has_no("x.h5", "whole.h5"), has_no("x.h5", check_temporary());
    same_datasets("x.h5", "whole.h5", "state/");
    sr_runfile *f = sample_open(sample_path("x.h5"));
    const sr_run_info *i = sr_run_get_info(f);
    same_text("model", i->model, "resnet"), same_text("data", i->data, "");
    same_text("config", i->config, ""), same_text("created", i->created, "");
    same_text("finished", i->finished, ""), same_text("reason", i->reason, "");
    same_text("digest", i->weights_digest, "0123abcd");
    sr_run_close(f);
}

static void anonymous_config(void **state) {
    (void)state;
    sr_options o = whole_options();
    o.program = "statrec train", o.version = "0.2.0";
    o.config =
        "lr = 0.5\nlr-x = 3\n# a note\n# of alice\ndata-dir = \"/home/alice/x\"\noutput = y\n";
    sr_recorder *r = sample_begin(sample_path("own.h5"), &o);
    check_ok(sample_steps(r, 1, 3, 0), sr_failed(r));
    run_finish(r);
    run_copy_options c = plain();
    c.anonymous = true, c.shares = shares_lr;
    copy("own.h5", "x.h5", &c);
    sr_runfile *f = sample_open(sample_path("x.h5"));
    same_text("config", sr_run_get_info(f)->config, "lr = 0.5\n# a note\n");
    same_text("program", sr_run_get_info(f)->program, "statrec train");
    sr_run_close(f);
}

static void named(const char *site, const char *metric, const char *definition) {
    sr_options o = whole_options();
    sr_recorder *r = run_create(sample_path("named.h5"), o);
    run_add_bn(r, site, 2, 0, 1e-5);
    sr_add_metric(r, metric, "1", definition, SR_BETTER_LESS);
    run_put_step(r, 1);
    run_finish(r);
}

/* Names cannot be left out. */
static void anonymous_names(void **state) {
    (void)state;
    run_copy_options o = plain();
    char *path = (char *)(uintptr_t)sample_path("named.h5");
    o.anonymous = true;
    named("block.Alice.bn", "loss", "a loss");
    refused(&path, 1, &o, SR_USAGE, "the name of site block.Alice.bn contains the user");
    named("bn1", "loss", "on " HOST);
    refused(&path, 1, &o, SR_USAGE, "the definition of metric loss contains the host");
    named("bn1", "loss", "as in /data/eval/run.py");
    refused(&path, 1, &o, SR_USAGE, "contains a path");
    named("malice.bn", "loss", "||mu_B - mu||_2 / ||s||, sum_g/n per (a/b)"); /* no user, no path */
    copy("named.h5", "x.h5", &o);
}

/* -- files without an end, damage, targets --------------------------------------------------- */

static void growing(void **state) {
    (void)state;
    const run_shape shape = {1, 20, 77, "1", false};
    sr_recorder *r = begin_run("growing.h5", &shape);
    check_ok(sr_flush(r), sr_failed(r));
    run_copy_options o = plain();
    char *path = (char *)(uintptr_t)sample_path("growing.h5");
    sr_failure why = {0};
    run_copied n;
    check_ok(run_copy(&path, 1, sample_path("x.h5"), &o, &n, &why), &why);
    assert_true(n.unfinished), assert_int_equal(n.steps, 20), assert_int_equal(n.vectors, 5);
    check_copied("x.h5", "checksums", "not finished"),
        check_copied("x.h5", "sources", "growing.h5.part");
    sr_failure fault = {0};
    assert_int_equal(sr_run_check(sample_path("x.h5"), &fault), SR_STATE);
    check_failure(&fault, SR_STATE, "interrupted, 20 steps readable: copied from an unfinished");
    check_ok(sr_flush(r), sr_failed(r)); /* the run goes on */
    sr_abandon(r);
    check_ok(run_copy(&path, 1, sample_path("x.h5"), &o, &n, &why), &why); /* it was killed */
    check_values("x.h5", 1, 1);
}

/* A damaged value is not copied under a new checksum. */
static void damage(void **state) {
    (void)state;
    const run_copy_options o = plain();
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
    refused(&path, 1, &o, SR_FORMAT, "/vectors/nu");
}

static void targets(void **state) {
    (void)state;
    run_copy_options o = plain();
    sr_failure why = {0};
    run_copied n;
    char *path = (char *)(uintptr_t)sample_path("whole.h5");
    assert_int_equal(run_copy(&path, 1, path, &o, &n, &why), SR_EXISTS);
    o.force = false;
    check_write(sample_path("there.h5"), "text");
    why = (sr_failure){0};
    assert_int_equal(run_copy(&path, 1, sample_path("there.h5"), &o, &n, &why), SR_EXISTS);
    check_failure(&why, SR_EXISTS, "there.h5: exists");
    /* a link is replaced by --force, or refused; never followed */
    assert_int_equal(symlink(sample_path("there.h5"), sample_path("link.h5")), 0);
    why = (sr_failure){0};
    assert_int_equal(run_copy(&path, 1, sample_path("link.h5"), &o, &n, &why), SR_EXISTS);
    o.force = true, why = (sr_failure){0};
    assert_int_equal(run_copy(&path, 1, sample_path("link.h5"), &o, &n, &why), SR_EXISTS);
    struct stat s;
    assert_int_equal(stat(sample_path("there.h5"), &s), 0);
    assert_int_equal(s.st_size, 4);
}

static int stop_now(void) {
    return 15;
}

static void signalled(void **state) {
    (void)state;
    run_copy_options o = plain();
    char *path = (char *)(uintptr_t)sample_path("whole.h5");
    o.choice.stopped = stop_now;
    refused(&path, 1, &o, SR_STATE, "stopped by a signal");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(everything),      cmocka_unit_test(origin),
        cmocka_unit_test(thinned),         cmocka_unit_test(selected),
        cmocka_unit_test(joined),          cmocka_unit_test(not_parts),
        cmocka_unit_test(anonymous),       cmocka_unit_test(anonymous_config),
        cmocka_unit_test(anonymous_names), cmocka_unit_test(growing),
        cmocka_unit_test(damage),          cmocka_unit_test(targets),
        cmocka_unit_test(signalled)};
    return cmocka_run_group_tests(tests, begin, NULL);
}
