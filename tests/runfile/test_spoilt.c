/* test_spoilt.c -- valid HDF5 that is no run file, or has a wrong dataset: the remaining data are
 * read, checked and recovered. */
#include <hdf5.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "testing/check.h"
#include "testing/damage.h"
#include "testing/run_builder.h"
#include "testing/sample_run.h"

static int write_run(void **state) {
    (void)state;
    damage_make_run(sample_path("whole.h5"), 40);
    return 0;
}

/* Replaces a dataset by one of another type, rank or extent (unlimited, without storage). */
static void replace(hid_t file, const char *name, hid_t type, int rank, hsize_t rows,
                    hsize_t columns) {
    hsize_t dims[3] = {rows, columns, 1}, most[3] = {H5S_UNLIMITED, columns, 1},
            chunk[3] = {1, 1, 1};
    hid_t space = rank ? H5Screate_simple(rank, dims, most) : H5Screate(H5S_SCALAR);
    hid_t properties = H5Pcreate(H5P_DATASET_CREATE);
    if (rank) H5Pset_chunk(properties, rank, chunk);
    assert_true(H5Ldelete(file, name, H5P_DEFAULT) >= 0);
    hid_t set = H5Dcreate2(file, name, type, space, H5P_DEFAULT, properties, H5P_DEFAULT);
    assert_true(set >= 0);
    H5Dclose(set), H5Pclose(properties), H5Sclose(space);
}

static void expect_refused(const char *part, void (*spoil)(hid_t file)) {
    const char *path = sample_path("odd.h5");
    sr_failure why = {0};
    hid_t file = damage_reopen(path);
    spoil(file);
    assert_true(H5Fclose(file) >= 0);
    assert_null(sr_run_open(path, &why));
    check_failure(&why, SR_FORMAT, part);
    damage_exercise(path);
}

typedef struct told {
    const char *part;
    int count, met;
} told;

static void hear_lost(void *context, const char *dataset, int64_t rows, const char *reason) {
    told *t = context;
    (void)dataset, (void)rows;
    t->count++;
    t->met += strstr(reason, t->part) != NULL;
}

/* One object is damaged: the opened file reports it, the check too, and recover copies the rest. */
static void expect_rest(const char *part, void (*spoil)(hid_t file)) {
    const char *path = sample_path("odd.h5");
    sr_failure why = {0};
    sr_recovery count = {.size = sizeof(sr_recovery)};
    told lost = {part, 0, 0};
    hid_t file = damage_reopen(path);
    spoil(file);
    assert_true(H5Fclose(file) >= 0);
    sr_runfile *f = sr_run_open(path, &why);
    if (!f) fail_msg("%s", why.text);
    if (!sr_run_damage(f, 0) || !strstr(sr_run_damage(f, 0), part))
        fail_msg("'%s' is not told: %s", part, sr_run_damage(f, 0));
    assert_null(sr_run_damage(f, 1));
    assert_int_equal(sr_run_get_info(f)->steps, 40);
    sr_run_close(f);
    assert_int_equal(sr_run_check(path, &why), SR_FORMAT);
    check_failure(&why, SR_FORMAT, part);
    why = (sr_failure){0};
    check_ok(sr_run_recover_report(path, sample_path("rest.h5"), true, -1, &count, hear_lost, &lost,
                                   &why),
             &why);
    if (lost.met == 0) fail_msg("'%s' is not among %d losses", part, lost.count);
    damage_exercise(path);
}

static void write_int(hid_t file, const char *name, int64_t value) {
    hid_t set = H5Dopen2(file, name, H5P_DEFAULT);
    assert_true(H5Dwrite(set, H5T_NATIVE_INT64, H5S_ALL, H5S_ALL, H5P_DEFAULT, &value) >= 0);
    H5Dclose(set);
}

static void spoil_type(hid_t file) {
    replace(file, "/steps/step", H5T_IEEE_F64LE, 1, 40, 1);
}
static void spoil_rank(hid_t file) {
    replace(file, "/steps/loss", H5T_IEEE_F64LE, 2, 40, 1);
}
static void spoil_rank3(hid_t file) {
    replace(file, "/vectors/mu", H5T_IEEE_F32LE, 3, 40, SAMPLE_WIDTH);
}
static void spoil_columns(hid_t file) {
    replace(file, "/vectors/mu", H5T_IEEE_F32LE, 2, 40, SAMPLE_WIDTH + 1);
}
static void spoil_status(hid_t file) {
    replace(file, "/state/status", H5T_STD_I32LE, 0, 0, 0);
}
static void spoil_committed(hid_t file) {
    write_int(file, "/state/committed_steps", -4);
}
static void spoil_missing(hid_t file) {
    assert_true(H5Ldelete(file, "/steps/tokens", H5P_DEFAULT) >= 0);
}
static void spoil_sites(hid_t file) {
    replace(file, "/sites/width", H5T_STD_I32LE, 1, 1u << 30, 1);
}
static void spoil_names(hid_t file) {
    hid_t type = H5Tcopy(H5T_C_S1);
    H5Tset_size(type, SR_NAME_SIZE);
    replace(file, "/sites/name", type, 1, (hsize_t)1 << 40, 1);
    H5Tclose(type);
}
static void spoil_format(hid_t file) {
    assert_true(H5Adelete(file, "format") >= 0);
}
static void spoil_version(hid_t file) {
    int64_t version = 2;
    hid_t a = H5Aopen(file, "format_version", H5P_DEFAULT);
    assert_true(H5Awrite(a, H5T_NATIVE_INT64, &version) >= 0);
    H5Aclose(a);
}
static void spoil_text(hid_t file) {
    assert_true(H5Adelete(file, "model") >= 0);
    hid_t type = H5Tcopy(H5T_C_S1), space = H5Screate(H5S_SCALAR);
    H5Tset_size(type, H5T_VARIABLE);
    hid_t a = H5Acreate2(file, "model", type, space, H5P_DEFAULT, H5P_DEFAULT);
    const char *text = "variable";
    assert_true(H5Awrite(a, type, &text) >= 0);
    H5Aclose(a), H5Sclose(space), H5Tclose(type);
}
static void spoil_group(hid_t file) {
    assert_true(H5Ldelete(file, "/state", H5P_DEFAULT) >= 0);
}
static void spoil_link(hid_t file) {
    assert_true(H5Ldelete(file, "/steps/lr", H5P_DEFAULT) >= 0);
    assert_true(H5Lcreate_soft("/nowhere", file, "/steps/lr", H5P_DEFAULT, H5P_DEFAULT) >= 0);
}
static void spoil_dataset_for_group(hid_t file) {
    assert_true(H5Ldelete(file, "/sites", H5P_DEFAULT) >= 0);
    hid_t space = H5Screate(H5S_SCALAR);
    hid_t set =
        H5Dcreate2(file, "/sites", H5T_STD_I8LE, space, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
    H5Dclose(set), H5Sclose(space);
}

static void write_root_text(hid_t file, const char *name, const char *value) {
    hid_t type = H5Tcopy(H5T_C_S1), space = H5Screate(H5S_SCALAR);
    assert_true(H5Tset_size(type, strlen(value)) >= 0 && H5Adelete(file, name) >= 0);
    hid_t a = H5Acreate2(file, name, type, space, H5P_DEFAULT, H5P_DEFAULT);
    assert_true(H5Awrite(a, type, value) >= 0);
    H5Aclose(a), H5Sclose(space), H5Tclose(type);
}
static void spoil_to_checkpoint(hid_t file) {
    write_root_text(file, "format", "statrec-checkpoint");
}
static void spoil_to_other(hid_t file) {
    write_root_text(file, "format", "statrec-other");
}
static void spoil_empty_status(hid_t file) {
    const char none[SR_STATUS_SIZE] = "";
    hid_t set = H5Dopen2(file, "/state/status", H5P_DEFAULT), type = H5Dget_type(set);
    assert_true(H5Dwrite(set, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, none) >= 0);
    H5Tclose(type), H5Dclose(set);
}
/* Overwrites one value of a column of /sites. */
static void write_site(hid_t file, const char *name, hid_t memory, hsize_t site,
                       const void *value) {
    const hsize_t one = 1;
    hid_t set = H5Dopen2(file, name, H5P_DEFAULT), space = H5Dget_space(set),
          in_memory = H5Screate_simple(1, &one, NULL);
    H5Sselect_hyperslab(space, H5S_SELECT_SET, &site, NULL, &one, NULL);
    assert_true(H5Dwrite(set, memory, in_memory, space, H5P_DEFAULT, value) >= 0);
    H5Sclose(in_memory), H5Sclose(space), H5Dclose(set);
}
static void write_site_int(hid_t file, const char *name, hsize_t site, int32_t value) {
    write_site(file, name, H5T_NATIVE_INT32, site, &value);
}
static void spoil_offset(hid_t file) {
    write_site_int(file, "/sites/offset", 1, 4);
}
static void spoil_width(hid_t file) {
    write_site_int(file, "/sites/width", 1, 0);
}
static void spoil_wider(hid_t file) {
    write_site_int(file, "/sites/width", SAMPLE_SITES - 1, 6);
}
static void spoil_site_name(hid_t file) {
    const char none[SR_NAME_SIZE] = "";
    hid_t set = H5Dopen2(file, "/sites/name", H5P_DEFAULT), type = H5Dget_type(set);
    H5Dclose(set);
    write_site(file, "/sites/name", type, 2, none);
    H5Tclose(type);
}
static void spoil_eps(hid_t file) {
    const double infinite = INFINITY;
    write_site(file, "/sites/eps", H5T_NATIVE_DOUBLE, 1, &infinite);
}
static void spoil_negative_eps(hid_t file) {
    const double negative = -1e-5;
    write_site(file, "/sites/eps", H5T_NATIVE_DOUBLE, 1, &negative);
}
static void spoil_alpha(hid_t file) {
    const double large = 1.5;
    write_site(file, "/sites/alpha", H5T_NATIVE_DOUBLE, 0, &large);
}

/* Texts and numbers that no writer makes, in otherwise valid objects. */
static void test_values(void **state) {
    (void)state;
    expect_refused("a checkpoint; wanted is a run file", spoil_to_checkpoint);
    expect_refused("not a run file", spoil_to_other);
    expect_refused("/state/status: empty", spoil_empty_status);
    expect_refused("/sites: site 1 'encoder.0.norm1' at column 4, width 3", spoil_offset);
    expect_refused("/sites: site 1 'encoder.0.norm1' at column 5, width 0", spoil_width);
    expect_refused("/sites: site 2 '' at column 8", spoil_site_name);
    expect_refused("/sites/column_site has 19 columns, the sites 21", spoil_wider);
    expect_rest("/sites/eps: inf at site 1", spoil_eps);
    expect_rest("/sites/eps: -1e-05 at site 1", spoil_negative_eps);
    expect_rest("/sites/alpha: 1.5 at site 0", spoil_alpha);
}

/* The number of threads is informative; an impossible number is ignored. */
static void test_threads(void **state) {
    (void)state;
    static const int64_t given[] = {-1, (int64_t)1 << 40};
    for (int i = 0; i < 2; i++) {
        hid_t file = damage_reopen(sample_path("odd.h5")),
              a = H5Aopen(file, "threads", H5P_DEFAULT);
        assert_true(H5Awrite(a, H5T_NATIVE_INT64, &given[i]) >= 0);
        H5Aclose(a);
        assert_true(H5Fclose(file) >= 0);
        sr_runfile *f = sample_open(sample_path("odd.h5"));
        assert_int_equal(sr_run_get_info(f)->threads, 0);
        sr_run_close(f);
    }
}

/* -- unusual files without damage ------------------------------------------------------------ */

static sr_runfile *open_unusual(void (*change)(hid_t file)) {
    hid_t file = damage_reopen(sample_path("odd.h5"));
    change(file);
    assert_true(H5Fclose(file) >= 0);
    sr_runfile *f = sample_open(sample_path("odd.h5"));
    if (sr_run_damage(f, 0)) fail_msg("%s", sr_run_damage(f, 0));
    return f;
}

static void name_twice(hid_t file) {
    const char name[SR_NAME_SIZE] = "stem";
    hid_t set = H5Dopen2(file, "/sites/name", H5P_DEFAULT), type = H5Dget_type(set);
    H5Dclose(set);
    write_site(file, "/sites/name", type, 2, name);
    H5Tclose(type);
}
static void make_older(hid_t file) {
    assert_true(H5Ldelete(file, "/sites/observed", H5P_DEFAULT) >= 0);
    assert_true(H5Ldelete(file, "/sites/merged", H5P_DEFAULT) >= 0);
    assert_true(H5Adelete_by_name(file, "/embeddings/shared", "method", H5P_DEFAULT) >= 0);
}
static void without_norms(hid_t file) {
    hid_t set = H5Dopen2(file, "/sites/norm", H5P_DEFAULT), type = H5Dget_type(set);
    char norm[SR_NAME_SIZE] = "none";
    H5Dclose(set);
    assert_true(H5Tget_size(type) <= sizeof norm);
    for (hsize_t i = 0; i < SAMPLE_SITES; i++) write_site(file, "/sites/norm", type, i, norm);
    H5Tclose(type);
}
static void empty_embedding(hid_t file) {
    const int64_t none = 0;
    hid_t space = H5Screate(H5S_SCALAR); /* HDF5 1.10 cannot always overwrite one of many */
    assert_true(H5Adelete_by_name(file, "/embeddings/shared", "rows", H5P_DEFAULT) >= 0);
    hid_t a = H5Acreate_by_name(file, "/embeddings/shared", "rows", H5T_STD_I64LE, space,
                                H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
    assert_true(H5Awrite(a, H5T_NATIVE_INT64, &none) >= 0);
    H5Aclose(a), H5Sclose(space);
}

static void test_unusual(void **state) {
    (void)state;
    sr_failure why = {0};
    sr_run_embedding e = SR_INIT(sr_run_embedding, .rows = 0);
    sr_runfile *f = open_unusual(name_twice);
    assert_int_equal(sr_run_find_site(f, "stem"), 0); /* the first of this name */
    assert_string_equal(sr_run_definition(f, "/steps/loss"), sr_run_definition(f, "steps/loss"));
    assert_true(strlen(sr_run_definition(f, "steps/loss")) > 0);
    assert_string_equal(sr_run_definition(f, "steps/nothing"), "");
    assert_string_equal(sr_run_main_norm(f), "bn");
    sr_run_close(f);
    f = open_unusual(make_older);
    assert_int_equal(sr_run_get_site(f, 0)->observed, 0);
    check_ok(sr_run_get_embedding(f, "shared", &e, &why), &why);
    assert_string_equal(e.method, "");
    sr_run_close(f);
    f = open_unusual(without_norms);
    assert_null(sr_run_main_site(f));
    assert_string_equal(sr_run_main_norm(f), "none");
    sr_run_close(f);
    f = open_unusual(empty_embedding);
    assert_int_equal(sr_run_get_embedding(f, "shared", &e, &why), SR_FORMAT);
    check_failure(&why, SR_FORMAT, "/embeddings/shared: no values");
    sr_run_close(f);
}

static void test_no_path(void **state) {
    (void)state;
    sr_failure why = {0};
    assert_null(sr_run_open(NULL, &why));
    check_failure(&why, SR_USAGE, "no path of a run file");
    assert_null(sr_run_open("", NULL));
    assert_null(sr_run_open(sample_path("nowhere.h5"), NULL));
}

static void test_foreign(void **state) {
    (void)state;
    const char *path = sample_path("foreign.h5");
    sr_failure why = {0};
    damage_store(path, "not HDF5 at all", 15);
    assert_null(sr_run_open(path, &why));
    check_failure(&why, SR_FORMAT, "signature");
    hid_t file = H5Fcreate(path, H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT);
    H5Fclose(file);
    why = (sr_failure){0};
    assert_null(sr_run_open(path, &why));
    check_failure(&why, SR_FORMAT, "not a run file");
    expect_rest("/steps/step", spoil_type);
    expect_rest("/steps/loss", spoil_rank);
    expect_rest("/vectors/mu", spoil_rank3);
    expect_rest("/vectors/mu", spoil_columns);
    expect_rest("/state/status", spoil_status);
    expect_rest("committed_steps: -4", spoil_committed);
    expect_rest("no dataset /steps/tokens", spoil_missing);
    expect_rest("attribute model", spoil_text);
    expect_rest("/steps/lr", spoil_link);
    expect_refused("/sites/width", spoil_sites);
    expect_refused("/sites/name", spoil_names);
    expect_refused("not a run file", spoil_format);
    expect_refused("format_version 2", spoil_version);
    expect_refused("/sites/name", spoil_dataset_for_group);
}

/* Missing values are NaN or -1; values beside them are unchanged. */
static void test_recovered_values(void **state) {
    (void)state;
    sr_failure why = {0};
    sr_recovery count = {.size = sizeof(sr_recovery)};
    double loss[40], lr[40], was[40];
    int64_t tokens[40];
    const char *path = sample_path("values.h5");
    hid_t file = damage_reopen(path);
    spoil_rank(file), spoil_missing(file);
    assert_true(H5Fclose(file) >= 0);
    check_ok(sr_run_recover(path, sample_path("rest.h5"), true, -1, &count, &why), &why);
    sr_runfile *f = sr_run_open(sample_path("rest.h5"), &why),
               *whole = sr_run_open(sample_path("whole.h5"), &why);
    if (!f || !whole) fail_msg("%s", why.text);
    check_ok(sr_run_step_reals(f, "loss", 0, 40, loss, &why), &why);
    check_ok(sr_run_step_reals(f, "lr", 0, 40, lr, &why), &why);
    check_ok(sr_run_step_reals(whole, "lr", 0, 40, was, &why), &why);
    check_ok(sr_run_step_ints(f, "tokens", 0, 40, tokens, &why), &why);
    for (int i = 0; i < 40; i++) assert_true(isnan(loss[i]) && tokens[i] == -1);
    assert_memory_equal(lr, was, sizeof lr);
    sr_run_close(f), sr_run_close(whole);
}

/* Without /state, existing rows are counted. */
static void test_without_state(void **state) {
    (void)state;
    sr_failure why = {0};
    sr_recovery count = {.size = sizeof(sr_recovery)};
    const char *path = sample_path("stateless.h5");
    hid_t file = damage_reopen(path);
    spoil_group(file);
    assert_true(H5Fclose(file) >= 0);
    sr_runfile *f = sr_run_open(path, &why);
    if (!f) fail_msg("%s", why.text);
    const sr_run_info *info = sr_run_get_info(f);
    assert_string_equal(info->status, "damaged");
    assert_true(info->steps == 40 && info->vectors == 40 && info->evals == 4);
    assert_true(isnan(info->wall_seconds));
    sample_check(f, 1, 1);
    sr_run_close(f);
    check_ok(sr_run_recover(path, sample_path("rest.h5"), true, -1, &count, &why), &why);
    assert_true(count.steps == 40 && count.lost_steps == 0 && count.lost_vectors == 0);
    f = sr_run_open(sample_path("rest.h5"), &why);
    if (!f) fail_msg("%s", why.text);
    sample_check(f, 1, 1);
    sr_run_close(f);
}

static void expect_too_many_rows(const char *path) {
    sr_failure why = {0};
    sr_runfile *f = sr_run_open(path, &why);
    if (!f) fail_msg("%s", why.text);
    assert_int_equal(sr_run_get_info(f)->steps, 0);
    assert_non_null(strstr(sr_run_damage(f, 0), "more rows than the file has bytes for"));
    sr_run_close(f);
    assert_int_equal(sr_run_check(path, &why), SR_FORMAT);
    check_failure(&why, SR_FORMAT, "/steps/step: refused");
}

/* Columns with more rows than bytes are rejected. */
static void test_huge_extent(void **state) {
    (void)state;
    const char *path = sample_path("huge.h5");
    hid_t file = damage_reopen(path);
    const char *columns[] = {"step", "update", "tokens",    "epoch",
                             "loss", "lr",     "grad_norm", "seconds"};
    for (int i = 0; i < 8; i++) {
        char name[32];
        hsize_t rows = (hsize_t)1 << 50;
        snprintf(name, sizeof name, "/steps/%s", columns[i]);
        hid_t set = H5Dopen2(file, name, H5P_DEFAULT);
        assert_true(H5Dset_extent(set, &rows) >= 0);
        H5Dclose(set);
    }
    write_int(file, "/state/committed_steps", (int64_t)1 << 50);
    H5Fclose(file);
    expect_too_many_rows(path);
    damage_exercise(path);
}

/* Likewise if no column of statistics has fewer rows. */
static void test_huge_extent_alone(void **state) {
    (void)state;
    static const char *const columns[] = {"step", "update", "tokens",    "epoch",
                                          "loss", "lr",     "grad_norm", "seconds"};
    const char *path = sample_path("alone.h5");
    sr_options o = SR_OPTIONS_DEFAULT;
    o.overhead = 0;
    o.force = true, o.planned_steps = 40, o.scalars = o.vectors = false;
    sr_recorder *r = sample_begin(path, &o);
    check_ok(sample_steps(r, 1, 40, 10), sr_failed(r));
    run_finish(r);
    hid_t file = H5Fopen(path, H5F_ACC_RDWR, H5P_DEFAULT);
    for (int i = 0; i < 8; i++) {
        char name[32];
        hsize_t rows = (hsize_t)1 << 50;
        snprintf(name, sizeof name, "/steps/%s", columns[i]);
        hid_t set = H5Dopen2(file, name, H5P_DEFAULT);
        assert_true(H5Dset_extent(set, &rows) >= 0);
        H5Dclose(set);
    }
    write_int(file, "/state/committed_steps", (int64_t)1 << 50);
    H5Fclose(file);
    expect_too_many_rows(path);
}

/* Faults that leave a file readable are found by the check. */
static void expect_found(const char *part, void (*spoil)(hid_t file)) {
    const char *path = sample_path("found.h5");
    sr_failure why = {0};
    hid_t file = damage_reopen(path);
    spoil(file);
    assert_true(H5Fclose(file) >= 0);
    assert_int_equal(sr_run_check(path, &why), SR_FORMAT);
    check_failure(&why, SR_FORMAT, part);
    damage_exercise(path);
}

static void write_element(hid_t file, const char *name, hsize_t at, int64_t value) {
    hsize_t one = 1;
    hid_t set = H5Dopen2(file, name, H5P_DEFAULT), space = H5Dget_space(set);
    hid_t memory = H5Screate_simple(1, &one, NULL);
    H5Sselect_hyperslab(space, H5S_SELECT_SET, &at, NULL, &one, NULL);
    assert_true(H5Dwrite(set, H5T_NATIVE_INT64, memory, space, H5P_DEFAULT, &value) >= 0);
    H5Sclose(memory), H5Sclose(space), H5Dclose(set);
}

static void spoil_order(hid_t file) {
    write_element(file, "/steps/step", 20, 3);
}
static void spoil_vector_step(hid_t file) {
    write_element(file, "/vectors/step", 39, 9999);
}
static void spoil_step_twice(hid_t file) {
    write_element(file, "/steps/step", 20, 20);
}
static void spoil_vector_twice(hid_t file) {
    write_element(file, "/vectors/step", 20, 20);
}
static void spoil_vector_before(hid_t file) { /* all steps */
    write_element(file, "/vectors/step", 0, 0);
}
static void spoil_eval_step(hid_t file) {
    write_element(file, "/evals/step", 3, 1);
}
static void spoil_column_site(hid_t file) {
    write_element(file, "/sites/column_site", 7, 0);
}
static void spoil_count(hid_t file) {
    write_int(file, "/state/committed_steps", 39);
}
static void spoil_count_up(hid_t file) {
    write_int(file, "/state/committed_vectors", 41);
}
static void spoil_scalar(hid_t file) {
    assert_true(H5Ldelete(file, "/scalars/g_mu", H5P_DEFAULT) >= 0);
}

static void spoil_first_scalar(hid_t file) {
    assert_true(H5Ldelete(file, "/scalars/rows", H5P_DEFAULT) >= 0);
}
static void spoil_one_exact(hid_t file) {
    assert_true(H5Ldelete(file, "/scalars/row_exact_mean", H5P_DEFAULT) >= 0);
}

/* The first files of version 1 lack columns that were added to /scalars later. */
static void test_older(void **state) {
    (void)state;
    sr_failure why = {0};
    sr_recovery count = {.size = sizeof(sr_recovery)};
    const char *path = sample_path("older.h5");
    hid_t file = damage_reopen(path);
    assert_true(H5Ldelete(file, "/scalars/row_free_var", H5P_DEFAULT) >= 0);
    assert_true(H5Fclose(file) >= 0);
    check_ok(sr_run_check(path, &why), &why); /* from between the two additions */
    file = damage_reopen(path);
    assert_true(H5Ldelete(file, "/scalars/row_free_var", H5P_DEFAULT) >= 0);
    assert_true(H5Ldelete(file, "/scalars/row_exact_mean", H5P_DEFAULT) >= 0);
    assert_true(H5Ldelete(file, "/scalars/row_exact_var", H5P_DEFAULT) >= 0);
    assert_true(H5Fclose(file) >= 0);
    check_ok(sr_run_check(path, &why), &why);
    sr_runfile *f = sr_run_open(path, &why);
    assert_non_null(f);
    assert_int_equal(sr_run_get_info(f)->steps, 40);
    assert_false(sr_run_has_scalar(f, "row_exact_var"));
    assert_true(sr_run_has_scalar(f, "row_grad_var"));
    sr_run_close(f);
    check_ok(sr_run_recover(path, sample_path("again.h5"), true, -1, &count, &why), &why);
    assert_int_equal(count.steps, 40);
    expect_found("/scalars/row_exact_mean: missing", spoil_one_exact);
}

/* Another program's texts: ASCII attributes, and shorter ones. */
static void test_ascii_attribute(void **state) {
    (void)state;
    sr_failure why = {0};
    const char *path = sample_path("ascii.h5");
    hid_t file = damage_reopen(path), type = H5Tcopy(H5T_C_S1), space = H5Screate(H5S_SCALAR);
    assert_true(H5Tset_size(type, 8) >= 0);
    assert_true(H5Adelete(file, "model") >= 0);
    hid_t a = H5Acreate2(file, "model", type, space, H5P_DEFAULT, H5P_DEFAULT);
    assert_true(H5Awrite(a, type, "resnet\0") >= 0);
    H5Aclose(a), H5Sclose(space), H5Tclose(type), H5Fclose(file);
    sr_runfile *f = sr_run_open(path, &why);
    if (!f) fail_msg("%s", why.text);
    assert_string_equal(sr_run_get_info(f)->model, "resnet");
    sr_run_close(f);
    check_ok(sr_run_check(path, &why), &why);
}

static void test_check_finds(void **state) {
    (void)state;
    expect_found("not increasing", spoil_order);
    expect_found("not increasing, or not among", spoil_vector_step);
    expect_found("/steps/step: not increasing", spoil_step_twice);
    expect_found("not increasing, or not among", spoil_vector_twice);
    expect_found("not increasing, or not among", spoil_vector_before);
    expect_found("decreasing", spoil_eval_step);
    expect_found("column_site", spoil_column_site);
    expect_found("not counted", spoil_count);
    expect_found("rows are missing", spoil_count_up);
    expect_found("/scalars/g_mu", spoil_scalar);
    expect_found("/scalars/rows: missing", spoil_first_scalar);
}

/* Changes the first site's number; the other sites keep theirs. */
static void spoil_number(hid_t file, const char *name, double value) {
    double all[SAMPLE_SITES];
    hid_t set = H5Dopen2(file, name, H5P_DEFAULT);
    assert_true(H5Dread(set, H5T_NATIVE_DOUBLE, H5S_ALL, H5S_ALL, H5P_DEFAULT, all) >= 0);
    all[0] = value;
    assert_true(H5Dwrite(set, H5T_NATIVE_DOUBLE, H5S_ALL, H5S_ALL, H5P_DEFAULT, all) >= 0);
    H5Dclose(set);
}
static void large_alpha(hid_t file) {
    spoil_number(file, "/sites/alpha", 1e300);
}
static void infinite_alpha(hid_t file) {
    spoil_number(file, "/sites/alpha", INFINITY);
}
static void negative_alpha(hid_t file) {
    spoil_number(file, "/sites/alpha", -0.01);
}
static void negative_eps(hid_t file) {
    spoil_number(file, "/sites/eps", -1e-5);
}

/* Analyses use these values. */
static void test_numbers_of_sites(void **state) {
    (void)state;
    expect_rest("/sites/alpha: 1e+300 at site 0 is not within 0 and 1", large_alpha);
    expect_rest("/sites/alpha: inf at site 0", infinite_alpha);
    expect_rest("/sites/alpha: -0.01 at site 0", negative_alpha);
    expect_rest("/sites/eps: -1e-05 at site 0", negative_eps);
}

int main(void) {
    H5Eset_auto2(H5E_DEFAULT, NULL, NULL);
    if (access("/dev/shm", W_OK) == 0) setenv("TMPDIR", "/dev/shm", 0); /* many small files */
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_unusual),
        cmocka_unit_test(test_no_path),
        cmocka_unit_test(test_values),
        cmocka_unit_test(test_threads),
        cmocka_unit_test(test_foreign),
        cmocka_unit_test(test_without_state),
        cmocka_unit_test(test_recovered_values),
        cmocka_unit_test(test_huge_extent),
        cmocka_unit_test(test_huge_extent_alone),
        cmocka_unit_test(test_check_finds),
        cmocka_unit_test(test_older),
        cmocka_unit_test(test_ascii_attribute),
        cmocka_unit_test(test_numbers_of_sites),
    };
    return cmocka_run_group_tests(tests, write_run, NULL);
}
