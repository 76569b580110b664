/* test_shared_tables.c -- files of a pool share equal tables; each difference keeps them apart.
 * Rows and numbers out of range are rejected. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "copied_run.h"
#include "runfile/read/datasets/read_custom.h"
#include "runfile/read/datasets/read_metrics.h"
#include "runfile/read/file/shared_tables.h"
#include "testing/check.h"
#include "testing/run_builder.h"
#include "testing/sample_run.h"

enum { DIFFERENCES = 16 };

/* Changes one property. False: no such property. */
static bool differ(sr_runfile *f, int which) {
    reader_metric *m = &f->metric[1];
    reader_declared *d = &f->declared[1];
    char *const text[] = {m->name,
                          m->unit,
                          m->definition,
                          d->name,
                          d->unit,
                          d->definition,
                          f->site[2].norm,
                          f->names[0].name[0],
                          f->names[READER_GROUPS - 1].name[0]};
    const int texts = (int)(sizeof text / sizeof *text);
    if (which < texts) return strcpy(text[which], "other"), true;
    if (which == texts) return m->better = SR_BETTER_NEITHER, true;
    if (which == texts + 1) return m->place++, true;
    if (which == texts + 2) return d->shown.scope = SR_PER_SITE, true;
    if (which == texts + 3) return f->metrics--, true;
    if (which == texts + 4) return f->declared_count--, true;
    if (which == texts + 5) return f->names[1].count--, true;
    if (which == texts + 6) return f->site[0].eps *= 2, true;
    return false;
}

static void test_sharing(void **state) {
    (void)state;
    for (int which = -1; which < DIFFERENCES; which++) {
        shared_tables *list = NULL;
        sr_runfile *a = sample_open(sample_path("whole.h5")),
                   *b = sample_open(sample_path("whole.h5"));
        if (which >= 0) assert_true(differ(b, which));
        shared_tables_join(a, &list);
        shared_tables_join(b, &list);
        if ((a->shared == b->shared) != (which < 0)) fail_msg("difference %d", which);
        if (which < 0) assert_ptr_equal(a->metric, b->metric);
        shared_tables_leave(a, &list);
        if (which < 0) assert_string_equal(b->site[0].name, "stem"); /* the other's tables stay */
        shared_tables_leave(b, &list);
        assert_null(list);
        sr_run_close(a), sr_run_close(b);
    }
}

/* Custom scalars of a host that declared none differ from those without a host. */
static void test_no_declared(void **state) {
    (void)state;
    shared_tables *list = NULL;
    sr_options o = copied_options();
    sr_runfile *f[2];
    for (int i = 0; i < 2; i++) {
        o.ranks = i ? "rank 0 of 2" : NULL;
        sr_recorder *r = sample_begin(sample_path("host.h5"), &o);
        check_ok(sample_steps(r, 1, 3, 0), sr_failed(r));
        run_finish(r);
        f[i] = sample_open(sample_path("host.h5"));
        assert_int_equal(f[i]->declared_count, 0);
        assert_int_equal(f[i]->declared != NULL, i);
        shared_tables_join(f[i], &list);
    }
    assert_ptr_not_equal(f[0]->shared, f[1]->shared);
    for (int i = 0; i < 2; i++) shared_tables_leave(f[i], &list), sr_run_close(f[i]);
    assert_null(list);
}

static void test_outside(void **state) {
    (void)state;
    sr_runfile *f = sample_open(sample_path("whole.h5"));
    assert_false(differ(f, DIFFERENCES)); /* all were tried */
    const int outside[] = {-1, 4096};
    for (int i = 0; i < 2; i++) {
        assert_null(sr_run_get_site(f, outside[i]));
        assert_null(sr_run_get_metric(f, outside[i]));
        assert_null(sr_run_get_declared(f, outside[i]));
        assert_null(sr_run_name(f, "scalars", outside[i]));
        assert_null(sr_run_damage(f, outside[i]));
        assert_null(sr_run_repaired(f, outside[i]));
    }
    assert_null(sr_run_name(f, "no group", 0));
    sr_run_close(f);
}

/* Rows, sites and statistics that the file lacks are the caller's fault. */
static void test_arguments(void **state) {
    (void)state;
    static const int spectrum[][3] = {{-1, 0, 0}, {SR_SPECTRUM_COUNT, 0, 0},
                                      {0, -1, 0}, {0, SAMPLE_SITES, 0},
                                      {0, 0, -1}, {0, 0, 99}};
    sr_runfile *f = sample_open(sample_path("whole.h5"));
    double value[SAMPLE_WIDTH];
    float x[COPIED_PAIRS], y[COPIED_PAIRS];
    int32_t feature[COPIED_PAIRS];
    int64_t step, rows;
    for (size_t k = 0; k < sizeof spectrum / sizeof *spectrum; k++) {
        const int *a = spectrum[k];
        sr_failure why = {0};
        sr_run_spectrum(f, (sr_spectrum)a[0], a[1], a[2], &step, &rows, value, &why);
        check_failure(&why, SR_USAGE, "spectrum ");
    }
    const int64_t outside[] = {-1, 4096};
    for (int k = 0; k < 2; k++) {
        sr_failure pairs = {0}, record = {0}, site = {0}, row = {0};
        sr_run_pairs(f, outside[k], x, y, feature, &pairs);
        check_failure(&pairs, SR_USAGE, "pairs of site");
        sr_run_singular_values(f, "shared", outside[k], &step, value, &record);
        check_failure(&record, SR_USAGE, "of embedding shared");
        sr_run_vectors(f, "mu_B", outside[k], 1, 0, 1, x, &site);
        check_failure(&site, SR_USAGE, "site ");
        sr_run_step_ints(f, "step", outside[k], 1, &step, &row);
        check_failure(&row, SR_USAGE, "rows from");
    }
    sr_run_close(f);
}

static int write_run(void **state) {
    (void)state;
    const run_shape shape = {1, 12, 77, "1", true};
    copied_write("whole.h5", &shape);
    return 0;
}

int main(void) {
    if (access("/dev/shm", W_OK) == 0) setenv("TMPDIR", "/dev/shm", 0);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_sharing), cmocka_unit_test(test_no_declared),
        cmocka_unit_test(test_outside), cmocka_unit_test(test_arguments)};
    return cmocka_run_group_tests(tests, write_run, NULL);
}
