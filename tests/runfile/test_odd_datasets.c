/* test_odd_datasets.c -- single datasets, names and attributes that no writer makes, in an
 * otherwise valid file. The file opens and reports the fault, or is rejected. */
#include <hdf5.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "copied_run.h"
#include "runfile/dataset_layout.h"
#include "testing/check.h"
#include "testing/damage.h"
#include "testing/run_builder.h"
#include "testing/sample_run.h"

enum { STEPS = 12 };

static const char *odd;

/* -- changes --------------------------------------------------------------------------------- */

/* Replaces a dataset. stored: the file contains all its bytes, else none. */
static void replace(hid_t file, const char *name, hid_t type, int rank, const hsize_t *dims,
                    bool stored) {
    const hsize_t chunk[2] = {1, 1}, most[2] = {H5S_UNLIMITED, H5S_UNLIMITED};
    const hid_t space = H5Screate_simple(rank, dims, stored ? NULL : most),
                properties = H5Pcreate(H5P_DATASET_CREATE);
    H5Pset_fill_time(properties, H5D_FILL_TIME_NEVER);
    if (stored)
        H5Pset_alloc_time(properties, H5D_ALLOC_TIME_EARLY);
    else
        H5Pset_chunk(properties, rank, chunk);
    assert_true(H5Ldelete(file, name, H5P_DEFAULT) >= 0);
    const hid_t set = H5Dcreate2(file, name, type, space, H5P_DEFAULT, properties, H5P_DEFAULT);
    assert_true(set >= 0);
    H5Dclose(set), H5Pclose(properties), H5Sclose(space);
}

static void delete (hid_t file, const char *name) {
    assert_true(H5Ldelete(file, name, H5P_DEFAULT) >= 0);
}

static void rename_to(hid_t file, const char *from, const char *to) {
    assert_true(H5Lmove(file, from, file, to, H5P_DEFAULT, H5P_DEFAULT) >= 0);
}

/* Adds `count` names of an object: /group/n0, /group/n1 ... */
static void add_links(hid_t file, const char *object, const char *group, int count) {
    char name[64];
    for (int i = 0; i < count; i++) {
        snprintf(name, sizeof name, "%s/n%d", group, i);
        assert_true(H5Lcreate_hard(file, object, file, name, H5P_DEFAULT, H5P_DEFAULT) >= 0);
    }
}

static void write_text(hid_t file, const char *object, const char *name, const char *value) {
    const hid_t type = H5Tcopy(H5T_C_S1), space = H5Screate(H5S_SCALAR);
    assert_true(H5Tset_size(type, strlen(value)) >= 0);
    assert_true(H5Adelete_by_name(file, object, name, H5P_DEFAULT) >= 0);
    const hid_t a =
        H5Acreate_by_name(file, object, name, type, space, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
    assert_true(H5Awrite(a, type, value) >= 0);
    H5Aclose(a), H5Sclose(space), H5Tclose(type);
}

static void write_at(hid_t file, const char *name, hsize_t at, int64_t value) {
    const hsize_t one = 1;
    const hid_t set = H5Dopen2(file, name, H5P_DEFAULT), space = H5Dget_space(set),
                memory = H5Screate_simple(1, &one, NULL);
    if (H5Sget_simple_extent_ndims(space) > 0)
        H5Sselect_hyperslab(space, H5S_SELECT_SET, &at, NULL, &one, NULL);
    assert_true(H5Dwrite(set, H5T_NATIVE_INT64, memory, space, H5P_DEFAULT, &value) >= 0);
    H5Sclose(memory), H5Sclose(space), H5Dclose(set);
}

/* -- faults that the reader reports ---------------------------------------------------------- */

typedef struct change {
    void (*make)(hid_t file);
    const char *says;
} change;

static void make_odd(void (*make)(hid_t file)) {
    const hid_t file = damage_reopen(odd);
    make(file);
    assert_true(H5Fclose(file) >= 0);
}

/* Requires that the file opens, and that this is its only damage. */
static sr_runfile *open_damaged(const change *c) {
    make_odd(c->make);
    sr_runfile *f = sample_open(odd);
    const char *first = sr_run_damage(f, 0), *second = sr_run_damage(f, 1);
    if (!first || !strstr(first, c->says) || second)
        fail_msg("'%s' is not told: '%s', '%s'", c->says, first ? first : "", second ? second : "");
    return f;
}

static void expect_damage(const change *c, size_t count) {
    for (size_t i = 0; i < count; i++) {
        sr_runfile *f = open_damaged(&c[i]);
        assert_int_equal(sr_run_get_info(f)->steps, STEPS);
        sr_run_close(f);
        damage_exercise(odd);
    }
}

typedef struct search {
    const char *text;
    bool met;
} search;

static void look_for(void *context, const sr_failure *fault) {
    search *s = context;
    s->met = s->met || strstr(fault->text, s->text);
}

/* Requires that the file opens without damage, and that the check finds this. */
static void expect_found(const change *c, size_t count) {
    for (size_t i = 0; i < count; i++) {
        search s = {c[i].says, false};
        make_odd(c[i].make);
        sr_runfile *f = sample_open(odd);
        assert_null(sr_run_damage(f, 0));
        sr_run_close(f);
        sr_run_check_all(odd, look_for, &s, NULL);
        if (!s.met) fail_msg("'%s' is not found", c[i].says);
        damage_exercise(odd);
    }
}

static void expect_refused(const change *c, size_t count) {
    for (size_t i = 0; i < count; i++) {
        sr_failure why = {0};
        make_odd(c[i].make);
        assert_null(sr_run_open(odd, &why));
        check_failure(&why, SR_FORMAT, c[i].says);
        damage_exercise(odd);
    }
}

#define COUNT(list) (sizeof(list) / sizeof *(list))

/* -- pairs ----------------------------------------------------------------------------------- */

static const hsize_t pair_dims[2] = {SAMPLE_SITES, COPIED_PAIRS};

static void pairs_of_doubles(hid_t file) {
    replace(file, "/final/pair_x", H5T_IEEE_F64LE, 2, pair_dims, true);
}
static void pairs_in_a_row(hid_t file) {
    replace(file, "/final/pair_x", H5T_IEEE_F32LE, 1, pair_dims, true);
}
static void no_pairs_of_a_site(hid_t file) {
    replace(file, "/final/pair_x", H5T_IEEE_F32LE, 2, (hsize_t[]){SAMPLE_SITES, 0}, true);
}
static void pairs_of_more_sites(hid_t file) {
    replace(file, "/final/pair_x", H5T_IEEE_F32LE, 2, (hsize_t[]){5, COPIED_PAIRS}, true);
}
static void pairs_without_bytes(hid_t file) {
    replace(file, "/final/pair_x", H5T_IEEE_F32LE, 2, pair_dims, false);
}
static void other_pairs_of_more_sites(hid_t file) {
    replace(file, "/final/pair_y", H5T_IEEE_F32LE, 2, (hsize_t[]){5, COPIED_PAIRS}, true);
}
static void other_pairs_without_bytes(hid_t file) {
    replace(file, "/final/pair_y", H5T_IEEE_F32LE, 2, pair_dims, false);
}
static void pairs_without_pass(hid_t file) {
    delete (file, "/final/batches");
}

static void test_pairs(void **state) {
    (void)state;
    static const change damage[] = {{pairs_of_doubles, "/final/pair_x: unexpected type or shape"},
                                    {pairs_in_a_row, "/final/pair_x: unexpected type or shape"},
                                    {no_pairs_of_a_site, "/final/pair_x: unexpected type or shape"},
                                    {pairs_of_more_sites, "/final/pair_x: unexpected type"},
                                    {pairs_without_bytes, "/final/pair_x: "}};
    static const change found[] = {
        {other_pairs_of_more_sites, "/final/pair_y: not one row for each site"},
        {other_pairs_without_bytes, "/final/pair_y: "},
        {pairs_without_pass, "/final/pair_feature: site stem: values without a pass"}};
    expect_damage(damage, COUNT(damage));
    expect_found(found, COUNT(found));
}

/* -- names ----------------------------------------------------------------------------------- */

static bool tells(const sr_runfile *f, const char *text) {
    const char *damage;
    for (int i = 0; (damage = sr_run_damage(f, i)); i++)
        if (strstr(damage, text)) return true;
    return false;
}

/* The custom scalar "own" stays, whatever follows it. */
static void test_scalar_names(void **state) {
    (void)state;
    static const struct {
        const char *names, *says;
    } row[] = {{"own\n\nx", "/host: '' is not a name"},
               {"own\n.own", "/host: '.own' is not a name"},
               {"own\na/b", "/host: 'a/b' is not a name"},
               {"own\nepoch", "/host: 'epoch' is not a name"},
               {"own\nrows", "/host: 'rows' is not a name"},
               {"own\nloss", "/host: 'loss' is not a name"},
               {"own\nown", "/host: 'own' is not a name"},
               {"own\n0123456789 0123456789 0123456789 0123456789 0123456789 0123456789 ",
                "/host: '0123456789 0123456789"},
               {"own\a", "/host attribute scalars: not a line"}};
    for (size_t i = 0; i < COUNT(row); i++) {
        const hid_t file = damage_reopen(odd);
        write_text(file, "/host", "scalars", row[i].names);
        assert_true(H5Fclose(file) >= 0);
        sr_runfile *f = sample_open(odd);
        if (!tells(f, row[i].says)) fail_msg("'%s' is not told", row[i].says);
        const sr_run_declared *first = sr_run_get_declared(f, 0);
        assert_string_equal(first->name, strchr(row[i].names, '\n') ? "own" : "own too");
        sr_run_close(f);
        damage_exercise(odd);
    }
}

static void too_many_scalars(hid_t file) {
    char names[16 * RUN_DECLARED_MAX] = "", *end = names;
    add_links(file, "/scalars/own", "/scalars", RUN_DECLARED_MAX);
    for (int i = 0; i < RUN_DECLARED_MAX; i++) end += sprintf(end, "n%d\n", i);
    write_text(file, "/host", "scalars", names);
}
static void unknown_old_metric(hid_t file) {
    assert_true(H5Adelete_by_name(file, "/evals", "metrics", H5P_DEFAULT) >= 0);
}
static void control_in_metric(hid_t file) {
    rename_to(file, "/evals/span f1", "/evals/span\tf1");
}
static void delete_in_metric(hid_t file) {
    rename_to(file, "/evals/span f1", "/evals/span\x7f");
}
static void long_metric(hid_t file) {
    rename_to(file, "/evals/span f1",
              "/evals/0123456789 0123456789 0123456789 0123456789 0123456789 0123456789");
}
static void too_many_metrics(hid_t file) {
    add_links(file, "/evals/bleu", "/evals", SR_METRICS_MAX);
}

static void test_names(void **state) {
    (void)state;
    static const change damage[] = {{too_many_scalars, "/host: 'own too' is not a name, or one of"},
                                    {unknown_old_metric, "/evals/span f1: not a metric"},
                                    {control_in_metric, "/evals: invalid name of a metric"},
                                    {delete_in_metric, "/evals: invalid name of a metric"},
                                    {long_metric, "/evals: invalid name of a metric"},
                                    {too_many_metrics, "/evals has "}};
    expect_damage(damage, COUNT(damage));
}

/* -- embeddings ------------------------------------------------------------------------------ */

static void no_embeddings(hid_t file) {
    delete (file, "/embeddings");
}

static void too_many_embeddings(hid_t file) {
    add_links(file, "/embeddings/shared", "/embeddings", SR_EMBEDDINGS_MAX);
}

static void test_many_embeddings(void **state) {
    (void)state;
    static const change damage = {too_many_embeddings, "/embeddings has 1025 members, more than"};
    sr_runfile *f = open_damaged(&damage);
    assert_non_null(sr_run_name(f, "embeddings", SR_EMBEDDINGS_MAX - 1));
    assert_null(sr_run_name(f, "embeddings", SR_EMBEDDINGS_MAX));
    sr_run_close(f);
}

static void test_no_embeddings(void **state) {
    (void)state;
    make_odd(no_embeddings);
    sr_runfile *f = sample_open(odd);
    assert_null(sr_run_damage(f, 0));
    assert_null(sr_run_name(f, "embeddings", 0));
    sr_run_close(f);
}

/* -- sites ----------------------------------------------------------------------------------- */

/* A method with a missing part is unknown. A file without all parts is older than them: the
 * method's name determines them. */
static void test_methods(void **state) {
    (void)state;
    static const char *const part[] = {"/sites/axis", "/sites/uses", "/sites/constants",
                                       "/sites/family"};
    for (int missing = 1; missing <= 4; missing++) {
        const hid_t file = damage_reopen(odd);
        for (int i = 0; i < missing; i++) delete (file, part[i]);
        assert_true(H5Fclose(file) >= 0);
        sr_runfile *f = sample_open(odd);
        const sr_run_site *stem = sr_run_get_site(f, 0);
        const char *damage = sr_run_damage(f, 0);
        assert_string_equal(stem->norm, "bn");
        assert_int_equal(stem->family, missing < 4 ? SR_FAMILY_NONE : SR_FAMILY_SIGMA);
        assert_string_equal(stem->axis, missing < 4 ? "-" : "batch");
        if (missing < 4)
            assert_non_null(strstr(damage, "no dataset /sites/axis"));
        else
            assert_null(damage);
        sr_run_close(f);
    }
}

static const hsize_t many_sites = (1 << 20) + 1, five = 5;

static void too_many_sites(hid_t file) {
    const hid_t type = H5Tcopy(H5T_C_S1);
    H5Tset_size(type, SR_NAME_SIZE);
    replace(file, "/sites/name", type, 1, &many_sites, true);
    H5Tclose(type);
}
static void widths_of_more_sites(hid_t file) {
    replace(file, "/sites/width", H5T_STD_I32LE, 1, &five, true);
}
static void short_reason(hid_t file) {
    const hid_t type = H5Tcopy(H5T_C_S1);
    H5Tset_size(type, SR_REASON_SIZE / 2);
    const hid_t space = H5Screate(H5S_SCALAR);
    delete (file, "/state/reason");
    const hid_t set =
        H5Dcreate2(file, "/state/reason", type, space, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
    char text[SR_REASON_SIZE / 2] = "short";
    assert_true(H5Dwrite(set, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, text) >= 0);
    H5Dclose(set), H5Sclose(space), H5Tclose(type);
}

static void test_sizes(void **state) {
    (void)state;
    static const change refused[] = {
        {too_many_sites, "/sites/name: 1048577 elements"},
        {widths_of_more_sites, "/sites/width: not of the size in a run file"}};
    static const change damage[] = {{short_reason, "/state/reason: not of the size"}};
    expect_refused(refused, COUNT(refused));
    expect_damage(damage, COUNT(damage));
}

/* -- rows ------------------------------------------------------------------------------------ */

static void spectra_twice(hid_t file) {
    write_at(file, "/spectra/step", 1, COPIED_SPECTRA);
}
static void spectra_of_no_step(hid_t file) {
    write_at(file, "/spectra/step", 1, STEPS + 1);
}

static void test_spectra(void **state) {
    (void)state;
    static const change found[] = {{spectra_twice, "/spectra/step: not increasing"},
                                   {spectra_of_no_step, "/spectra/step: not increasing"}};
    expect_found(found, COUNT(found));
}

/* Rows of vectors in a run without sites have no values. */
static void test_no_sites(void **state) {
    (void)state;
    const char *path = sample_path("bare.h5");
    const hsize_t rows = 2;
    float value[2] = {7, 7};
    sr_failure why = {0};
    sr_recorder *r = run_create(path, run_options());
    for (int step = 1; step <= 3; step++) run_put_step(r, step);
    run_finish(r);
    const hid_t file = H5Fopen(path, H5F_ACC_RDWR, H5P_DEFAULT),
                set = H5Dopen2(file, "/vectors/step", H5P_DEFAULT);
    assert_true(H5Dset_extent(set, &rows) >= 0);
    H5Dclose(set);
    write_at(file, "/vectors/step", 0, 1), write_at(file, "/vectors/step", 1, 2);
    write_at(file, "/state/committed_vectors", 0, 2);
    assert_true(H5Fclose(file) >= 0);
    sr_runfile *f = sample_open(path);
    assert_int_equal(sr_run_get_info(f)->sites, 0);
    assert_int_equal(sr_run_get_info(f)->vectors, 2);
    check_ok(sr_run_vector(f, "mu_B", -1, 0, 2, value, &why), &why);
    check_equals(value[0], 7);
    assert_int_equal(sr_run_vectors(f, "mu_B", 0, 1, 0, 2, value, &why), SR_USAGE);
    sr_run_close(f);
    damage_exercise(path);
}

/* A caller's earlier failure stays the first. */
static void linked_vector(hid_t file) {
    delete (file, "/vectors/mu");
    assert_true(H5Lcreate_soft("/nowhere", file, "/vectors/mu", H5P_DEFAULT, H5P_DEFAULT) >= 0);
}

static void test_first_failure(void **state) {
    (void)state;
    sr_failure why = {0}, own = {0};
    float value[SAMPLE_WIDTH];
    int64_t step;
    sr_fail(&why, SR_USAGE, "the first");
    assert_null(sr_run_open(sample_path("nowhere.h5"), &why));
    assert_string_equal(why.text, "the first");
    make_odd(pairs_of_doubles);
    sr_runfile *f = sample_open(odd);
    float x[COPIED_PAIRS], y[COPIED_PAIRS];
    int32_t feature[COPIED_PAIRS];
    assert_int_equal(sr_run_pairs(f, 0, x, y, feature, &why), SR_FORMAT);
    assert_int_equal(sr_run_step_ints(f, "step", -1, 1, &step, &why), SR_USAGE);
    assert_string_equal(why.text, "the first");
    sr_run_close(f);
    make_odd(linked_vector);
    f = sample_open(odd);
    assert_int_equal(sr_run_vector(f, "mu", 0, 0, 1, value, &own), SR_FORMAT);
    check_failure(&own, SR_FORMAT, "/vectors/mu: ");
    assert_int_equal(sr_run_vector(f, "mu", 0, 0, 1, value, &why), SR_FORMAT);
    assert_int_equal(sr_run_vector(f, "mu", 0, 0, 1, value, NULL), SR_FORMAT);
    assert_string_equal(why.text, "the first");
    sr_run_close(f);
}

static int write_run(void **state) {
    (void)state;
    const run_shape shape = {1, STEPS, 77, "1", true};
    copied_write("whole.h5", &shape);
    return 0;
}

int main(void) {
    H5Eset_auto2(H5E_DEFAULT, NULL, NULL);
    if (access("/dev/shm", W_OK) == 0) setenv("TMPDIR", "/dev/shm", 0);
    odd = sample_path("odd.h5");
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_pairs),           cmocka_unit_test(test_scalar_names),
        cmocka_unit_test(test_names),           cmocka_unit_test(test_no_embeddings),
        cmocka_unit_test(test_many_embeddings), cmocka_unit_test(test_methods),
        cmocka_unit_test(test_sizes),           cmocka_unit_test(test_spectra),
        cmocka_unit_test(test_no_sites),        cmocka_unit_test(test_first_failure),
    };
    return cmocka_run_group_tests(tests, write_run, NULL);
}
